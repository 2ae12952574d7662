/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Variables of the environment, and what they and options say. */
#ifndef NEURON_ENV_H
#define NEURON_ENV_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

/* NULL: it is not set, or empty, which is the same. */
static inline const char *env_text(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* 1, 0; -1: neither. */
static inline int env_truth(const char *text)
{
	static const char *const words[] = { "0", "1", "false", "true", "no", "yes", "off", "on" };

	for (int i = 0; i < 8; i++)
		if (!strcasecmp(text, words[i]))
			return i & 1;
	return -1;
}

/* Does @text begin with a decimal number from 0 to @max?  *@end is what follows it. */
static inline bool env_digits(const char *text, const char **end, unsigned long max,
			      unsigned long *n)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*n = strtoul(text, &rest, 10);
	*end = rest;
	return !errno && *n <= max;
}

/* Is @text such a number, and nothing else? */
static inline bool env_number(const char *text, unsigned long max, unsigned long *n)
{
	const char *end;

	return env_digits(text, &end, max, n) && !*end;
}

#endif
