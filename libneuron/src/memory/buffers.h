/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The search for places of buffers (buffers.c). */
#ifndef NEURON_LIB_BUFFERS_H
#define NEURON_LIB_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

/* A buffer with bytes.  Times are numbered: each is a step at which something changes. */
struct item {
	uint64_t bytes;
	uint64_t align;			/* at least 1 */
	uint64_t offset;		/* of the attempt that is under way */
	uint32_t from, to;		/* times: it is in use before the second */
	uint32_t index;			/* of the caller's */
};

struct search {
	struct item *items;		/* by @from, the longest of a time first */
	uint32_t nr;
	uint32_t nr_times;
	uint64_t bound;
	uint64_t steps;			/* so far */
	uint64_t random;
	uint32_t *order;		/* in which first fit takes the items */
	double *key;			/* by item: the larger, the earlier */
};

/* From 0 to 1. */
static inline double search_chance(struct search *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (double)(s->random % 1024) / 1024;
}

/* How the skyline weighs one choice against another. */
struct skyline_taste {
	const char *name;
	double rise;			/* of an item above the lower wall of its valley */
	double thick;			/* of an item */
	double chance;			/* of any choice */
	bool raise;			/* a valley rather than leave a gap in it, if that wastes less */
};

/*
 * An offset for each item, from below: what lies in the lowest place of the skyline is chosen
 * so that it leaves no gap there, if possible.  Alignment is not kept.
 */
int skyline_place(struct search *s, const struct skyline_taste *taste);

#endif
