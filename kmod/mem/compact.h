/* SPDX-License-Identifier: GPL-2.0-only */
/* Which allocations to move, and where to, so that a request fits. */
#ifndef NEURON_MEM_COMPACT_H
#define NEURON_MEM_COMPACT_H

#include "buddy/buddy.h"

enum neuron_compact_state {
	NEURON_COMPACT_FREE,
	NEURON_COMPACT_FIXED,
	NEURON_COMPACT_MOVABLE,
};

/**
 * struct neuron_compact_range - a part of a device memory; granules
 * @start: where it begins
 * @len: length
 * @fixed: number of the first fixed range at or above it
 * @used: what lies in movable ranges below it
 * @state: enum neuron_compact_state
 * @align: movable: its place is a multiple of 2^align granules
 */
struct neuron_compact_range {
	u32 start;
	u32 len;
	u32 fixed;
	u32 used;
	u8 state;
	u8 align;
};

/* One allocation to move; granules. */
struct neuron_compact_move {
	u32 from;
	u32 to;
	u32 len;
	u8 align;
};

struct neuron_compact_hole {
	u32 len;
	u32 start;
};

/* A place for the request, and the first and last range that is in the way there. */
struct neuron_compact_window {
	u32 start;
	u32 cost;
	u32 first;
	u32 last;
};

#define NEURON_COMPACT_WINDOWS	128

/**
 * struct neuron_compact - a picture of a device memory, and a plan
 * @range: the ranges, by address, without a gap
 * @nr: their number
 * @room: what @range has room for; @move has the same, @hole has twice that
 * @free: granules that are free
 * @budget: granules to copy, at most
 * @hole: holes outside of the window that is tried, the shortest first
 * @nr_holes: their number
 * @move: the plan, in the order in which it is to be carried out
 * @nr_moves: their number
 * @cost: granules that it copies
 * @window: the cheapest windows, the cheapest first
 * @nr_windows: their number
 */
struct neuron_compact {
	struct neuron_compact_range *range;
	u32 nr;
	u32 room;
	u32 free;
	u32 budget;
	struct neuron_compact_hole *hole;
	u32 nr_holes;
	struct neuron_compact_move *move;
	u32 nr_moves;
	u32 cost;
	struct neuron_compact_window window[NEURON_COMPACT_WINDOWS];
	u32 nr_windows;
};

struct neuron_compact *neuron_compact_new(u32 room);
void neuron_compact_free(struct neuron_compact *c);
void neuron_compact_clear(struct neuron_compact *c, u32 budget);
void neuron_compact_add(struct neuron_compact *c, u32 len, enum neuron_compact_state state,
			u8 align);
u32 neuron_compact_largest(const struct neuron_compact *c, u8 align);
u32 neuron_compact_plan(struct neuron_compact *c, u32 want, u8 align);

#endif
