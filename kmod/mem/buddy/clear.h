/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knowledge about cleared memory.
 */
#ifndef NEURON_BUDDY_CLEAR_H
#define NEURON_BUDDY_CLEAR_H

#include "bits.h"
#include "zone.h"

static void clean_set_units(struct neuron_buddy *zone, u32 start, u32 n, bool clean);
static bool clean_test_units(const struct neuron_buddy *zone, u32 start, u32 n);

/* A range of one cell, whose units all have the same bit? */
static inline bool clean_plain(const struct neuron_buddy *zone, u32 start, u32 n)
{
	return cell_of(start) == cell_of(start + n - 1) &&
	       !bit_test(zone->clean_mixed, cell_of(start));
}

static inline void clean_set(struct neuron_buddy *zone, u32 start, u32 n, bool clean)
{
	/* Usually nothing changes. */
	if (!clean_plain(zone, start, n) || bit_test(zone->clean_cell, cell_of(start)) != clean)
		clean_set_units(zone, start, n, clean);
}

static inline bool clean_test(const struct neuron_buddy *zone, u32 start, u32 n)
{
	return clean_plain(zone, start, n) ? bit_test(zone->clean_cell, cell_of(start)) :
					     clean_test_units(zone, start, n);
}

#endif
