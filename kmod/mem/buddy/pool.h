/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metadata: descriptors of extents and frames, and where they come from.
 */
#ifndef NEURON_BUDDY_POOL_H
#define NEURON_BUDDY_POOL_H

#include "zone.h"

static inline void ext_put(struct neuron_buddy *zone, struct ext *e)
{
	e->type = EXT_POOL;
	if (e->embedded) {
		e->bnext = zone->frame_pool ? &zone->frame_pool->e : NULL;
		zone->frame_pool = to_frame(e);
		WRITE_ONCE(zone->frame_pool_len, zone->frame_pool_len + 1);
	} else {
		e->bnext = zone->pool;
		zone->pool = e;
		WRITE_ONCE(zone->pool_len, zone->pool_len + 1);
	}
}

/* The caller made sure with reserve_ready() that there is one. */
static inline struct ext *ext_get(struct neuron_buddy *zone)
{
	struct ext *e = zone->pool;

	zone->pool = e->bnext;
	WRITE_ONCE(zone->pool_len, zone->pool_len - 1);
	return e;
}

static inline struct frame *frame_get(struct neuron_buddy *zone)
{
	struct frame *fr = zone->frame_pool;

	zone->frame_pool = to_frame(fr->e.bnext);
	WRITE_ONCE(zone->frame_pool_len, zone->frame_pool_len - 1);
	return fr;
}

static void refill(struct neuron_buddy *zone, u32 want);
static bool reserve_ready(struct neuron_buddy *zone, u32 want);

#endif
