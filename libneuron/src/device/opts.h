/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Structures that begin with their size, so that both sides can grow (neuron.h). */
#ifndef NEURON_LIB_OPTS_H
#define NEURON_LIB_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * Options of the caller's size in a structure of ours; the tail reads as 0.  -E2BIG if
 * the caller knows members that we do not and uses one.
 */
int opts_copy(void *ours, size_t our_size, const void *theirs);

static inline bool result_valid(const void *theirs)
{
	return theirs && *(const size_t *)theirs >= sizeof(size_t);
}

/* A result of our layout to the caller's size, if the caller has a place for it. */
static inline void result_copy(void *theirs, const void *ours, size_t our_size)
{
	size_t size;

	if (!result_valid(theirs))
		return;
	size = *(size_t *)theirs;
	memcpy((char *)theirs + sizeof(size), (const char *)ours + sizeof(size),
	       (size < our_size ? size : our_size) - sizeof(size));
}

#endif
