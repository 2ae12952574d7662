/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Choosing a place.
 */
#ifndef NEURON_BUDDY_PLACEMENT_H
#define NEURON_BUDDY_PLACEMENT_H

#include "frames.h"
#include "zone.h"

/* Where an allocation goes: into a frame, or out of a free extent. */
struct place {
	struct frame *fr;
	struct fit fit;
	struct ext *e;
	u32 pos;
};

static bool range_free(struct neuron_buddy *zone, u32 start, u32 n);
static struct ext *range_to_extent(struct neuron_buddy *zone, u32 start, u32 n);
static bool range_in_frame(struct neuron_buddy *zone, u32 start, u32 n, struct frame **fr);
static void place_settle(struct neuron_buddy *zone, u32 n, u32 k, u32 flags);
static bool place_find(struct neuron_buddy *zone, u32 n, u32 k, u32 flags, struct place *p);
static int place_exact(struct neuron_buddy *zone, u32 start, u32 n, struct place *p);
static enum neuron_buddy_cause refusal(struct neuron_buddy *zone, u32 n, u32 k);

#endif
