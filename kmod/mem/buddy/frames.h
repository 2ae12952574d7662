/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames: 2 MiB shared by small blocks, two bits per granule.
 */
#ifndef NEURON_BUDDY_FRAMES_H
#define NEURON_BUDDY_FRAMES_H

#include "extents.h"
#include "zone.h"

/* A place in a frame. */
struct fit {
	u32 off;	/* first granule, relative to the frame */
	u32 lo;		/* the free run around it */
	u32 hi;
	u32 rest;	/* longest run of the frame once this is taken, NONE = unknown */
};

static inline u64 frame_used(const struct frame *fr, u32 word)
{
	return fr->a[word] | fr->b[word];
}

/* Where the frame's extent begins and ends, in bits. */
static inline u32 frame_lo(const struct frame *fr)
{
	return fr->lo;
}

static inline u32 frame_hi(const struct frame *fr)
{
	return frame_lo(fr) + fr->e.len;
}

/* The granule of the first bit. */
static inline u32 frame_base(const struct frame *fr)
{
	return fr->e.start - fr->lo;
}

static inline u32 run_top(const struct neuron_buddy *zone)
{
	u32 run = bits_prev(zone->run_map, FRAME_LEN);

	return run == NONE ? 0 : run;
}

static u32 __neuron_hot frame_scan(const struct frame *fr, u32 from, bool value);
static u32 __neuron_hot frame_free_below(const struct frame *fr, u32 from);
static u32 run_next(const struct neuron_buddy *zone, u32 run);
static void __neuron_hot frame_set_run(struct neuron_buddy *zone, struct frame *fr, u32 run);
static __always_inline bool frame_fit(struct frame *fr, u32 n, u32 k, struct fit *fit);
static void frame_fit_at(struct frame *fr, u32 off, u32 n, struct fit *fit);
static bool frame_has_later(const struct frame *fr, u32 at, u32 n, u32 gen);
static u32 frame_block_len(const struct frame *fr, u32 off);
static u32 frame_block_start(const struct frame *fr, u32 off);
static void __neuron_hot frame_take(struct neuron_buddy *zone, struct frame *fr,
				    const struct fit *fit, u32 n, u32 gen);
static u32 frame_longest(const struct frame *fr);
static struct frame *frame_create(struct neuron_buddy *zone, struct ext *e);
static void __neuron_hot frame_free(struct neuron_buddy *zone, struct frame *fr, u32 off, u32 n,
				    u32 blocks);
static void frame_settle(struct neuron_buddy *zone);
static void frame_trim(struct neuron_buddy *zone, struct frame *fr, bool low, u32 n);
static void frame_grow(struct neuron_buddy *zone, struct frame *fr, u32 off, u32 n,
		       u32 more, u32 gen);
static bool pin_covers(const struct neuron_buddy *zone, u32 start, u32 n);
static u32 frame_reserve(struct neuron_buddy *zone, struct frame *fr, u32 lo, u32 hi);
static bool frame_reservable(const struct neuron_buddy *zone, const struct frame *fr,
			     u32 lo, u32 hi, u32 *need);

/* Is there a block of @n granules and generation @gen at @off, where some block begins? */
static inline bool frame_is_block(const struct frame *fr, u32 off, u64 n, u32 gen)
{
	return n - 1 < FRAME_BITS - off &&
	       (off + n == FRAME_BITS || !bit_test(fr->a, off + n)) &&
	       (n == 1 || frame_has_later(fr, off + 1, n - 1, gen));
}

#endif
