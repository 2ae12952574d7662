/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every file of both libraries may need. */
#ifndef NEURON_UTIL_H
#define NEURON_UTIL_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/param.h>

/* A function of the public interface. */
#define NEURON_EXPORT __attribute__((visibility("default")))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A size as text, which lives until the end of the block; needs <neuron/neuron.h>. */
#define SIZE_TEXT(bytes) neuron_report_size((bytes), (char[32]){ 0 }, 32)

/* The unit in which the driver hands out memory. */
#define NEURON_PAGE 4096u

static inline uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* Room for one more element of an array that doubles.  0 or -ENOMEM. */
static inline int array_grow(void **array, size_t nr, size_t *max, size_t size)
{
	size_t more = *max ? *max * 2 : 16;
	void *p;

	if (nr < *max)
		return 0;
	p = reallocarray(*array, more, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*max = more;
	return 0;
}

#endif
