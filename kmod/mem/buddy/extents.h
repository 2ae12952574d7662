/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Extents: the list of ranges that tile the zone, and the bins of the free ones.
 */
#ifndef NEURON_BUDDY_EXTENTS_H
#define NEURON_BUDDY_EXTENTS_H

#include "bits.h"
#include "zone.h"

static inline u32 ext_end(const struct ext *e)
{
	return e->start + e->len;
}

/* Whole cells inside an extent. */
static inline u32 ext_whole(const struct ext *e)
{
	u32 first = cell_of(e->start + FRAME_LEN - 1);
	u32 end = cell_of(ext_end(e));

	return end > first ? end - first : 0;
}

/* Free granules at the low end of @e, and at its high end. */
static inline u32 ext_head(const struct ext *e)
{
	return e->type == EXT_FREE ? e->len : e->type == EXT_FRAME ? to_frame(e)->head : 0;
}

static inline u32 ext_tail(const struct ext *e)
{
	return e->type == EXT_FREE ? e->len : e->type == EXT_FRAME ? to_frame(e)->tail : 0;
}

/*
 * The length of a free run that crosses a border of a frame; 0 if no border is crossed.
 * The run belongs to the free extent in it or, if two frames touch, to the upper frame.
 */
static inline u32 ext_joined(const struct ext *e)
{
	u32 below = e->prev && e->prev->type == EXT_FRAME ? to_frame(e->prev)->tail : 0;
	u32 above = e->next && e->next->type == EXT_FRAME ? to_frame(e->next)->head : 0;

	if (e->type == EXT_FREE)
		return below | above ? below + e->len + above : 0;
	if (e->type == EXT_FRAME && below && to_frame(e)->head)
		return below + to_frame(e)->head;
	return 0;
}

static inline void order_add(struct neuron_buddy *zone, u32 len)
{
	if (len)
		zone->st.order_free[log2_floor(len)] += (u64)len << SHIFT;
}

static inline void order_sub(struct neuron_buddy *zone, u32 len)
{
	if (len)
		zone->st.order_free[log2_floor(len)] -= (u64)len << SHIFT;
}

static void trees_update(struct neuron_buddy *zone, u32 f);
static void map_add(struct neuron_buddy *zone, struct ext *e);
static void map_del(struct neuron_buddy *zone, struct ext *e);
static void ext_link_after(struct neuron_buddy *zone, struct ext *prev, struct ext *e);
static void ext_unlink(struct neuron_buddy *zone, struct ext *e);
static void ext_replace(struct neuron_buddy *zone, struct ext *old, struct ext *e);
static struct ext *ext_find(struct neuron_buddy *zone, u32 granule);
static void bin_of(u32 len, u32 *row, u32 *col);
static void bin_add(struct neuron_buddy *zone, struct ext *e);
static bool bin_next(const struct neuron_buddy *zone, u32 *row, u32 *col);
static struct ext *ext_release(struct neuron_buddy *zone, struct ext *e);
static struct ext *ext_take(struct neuron_buddy *zone, struct ext *e, u32 pos, u32 n);

#endif
