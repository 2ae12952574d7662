/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Variables of the environment. */
#ifndef NEURON_ENV_H
#define NEURON_ENV_H

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

#endif
