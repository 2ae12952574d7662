/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allocator of contiguous device memory; what a zone is made of. See buddy.h for the interface.
 *
 * What it keeps of a buddy allocator, and what not
 * ------------------------------------------------
 * Sizes are counted in orders, blocks are split, and a freed block joins its
 * neighbours at once. What is missing is the habit of a binary buddy to place
 * every request at a multiple of its rounded-up size. Contiguous device memory
 * has no use for that, and it is what fragments: at 90 % occupancy, mixed
 * machine learning sizes, 24 GiB,
 *
 *	power-of-two placement (kernel GPU buddy)  14.4 % refused
 *	lowest address (genalloc first fit)         3.9 %
 *	this allocator                              see tests/bench/README.md
 *
 * and a buddy had to evict a model at every second model load, where the
 * others never did. So:
 *
 * Large requests are extents. Free extents sit in two-level size bins and in
 * two trees of maxima over the zone's 2 MiB frames. While more than a fifth of
 * the zone is free, the lowest fitting address wins (the highest for what is
 * below 4 MiB); after that, the tightest fit. Head and tail of the chosen extent
 * stay free.
 *
 * Small requests (up to 1 MiB) share frames: aligned 2 MiB pieces taken from
 * the top of the zone, two bits per granule. The frame whose longest run is
 * tightest takes the request, in its tightest run. An empty frame becomes a
 * free extent again. If no frame can be had, small requests use holes between
 * large ones; and if nothing else is left, the free edge of a frame is given
 * back so that it joins the free extent (or frame edge) beside it. A request is
 * therefore refused only if there is no run for it at all.
 *
 * Two bits describe a granule of a frame:
 *
 *	a b
 *	0 0	free
 *	0 1	first granule of a block
 *	1 x	later granule of a block; x: next bit of the block's generation
 *
 * so that a block of n granules carries n - 1 bits of its generation, at no
 * cost. Single granules carry none: for them, and to be exact for the others,
 * a table remembers the most recent frees ("obituaries").
 *
 * Aligned small requests: the only search with a cap. When no frame is known
 * to have an aligned run, at most PROBE_FRAMES_MAX frames are examined; each
 * remembers the failure until something in it is freed.
 *
 * Work per operation is bounded by the number of frames, and typically touches
 * a handful of cache lines.
 */
#ifndef NEURON_BUDDY_ZONE_H
#define NEURON_BUDDY_ZONE_H

#include "buddy.h"

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/llist.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#endif

#define SHIFT		NEURON_BUDDY_GRANULE_SHIFT

/* Frames of 512 granules; model checking uses smaller ones. */
#ifndef NEURON_BUDDY_FRAME_ORDER
#define NEURON_BUDDY_FRAME_ORDER 9
#endif
#define FRAME_ORDER	NEURON_BUDDY_FRAME_ORDER
#define FRAME_LEN	(1u << FRAME_ORDER)
#define FRAME_WORDS	(FRAME_ORDER > 6 ? FRAME_LEN / 64 : 1)
#define FRAME_BITS	(FRAME_WORDS * 64)

/* Requests of up to this many granules live in frames. */
#ifndef NEURON_BUDDY_SMALL
#define NEURON_BUDDY_SMALL (FRAME_LEN / 2)
#endif
#define SMALL_MAX	NEURON_BUDDY_SMALL

/* Below this, requests beyond a frame come from the top, too, while there is plenty. */
#define MEDIUM_END	(2 * FRAME_LEN)

/* Above this percentage of free memory the lowest address wins, else the tightest fit. */
#ifndef NEURON_BUDDY_FIT_PERCENT
#define NEURON_BUDDY_FIT_PERCENT 20
#endif

/* Frames examined for an aligned request before a new frame is taken, and at most. */
#define PROBE_FRAMES	4
#define PROBE_FRAMES_MAX 1024
/* Extents examined in one bin, and in all bins before the trees decide. */
#define PROBE_BIN	16
#define PROBE_BINS	64

/* Two-level bins: exact below 32 granules, then 32 steps per power of two. */
#ifndef NEURON_BUDDY_BIN_ROWS
#define NEURON_BUDDY_BIN_ROWS 28u
#endif
#define BIN_COLS	32u
#define BIN_ROWS	NEURON_BUDDY_BIN_ROWS

/* Fan-out of the trees of maxima; 6 levels above the leaves cover 2^22 frames. */
#ifndef NEURON_BUDDY_TREE_SHIFT
#define NEURON_BUDDY_TREE_SHIFT 4
#endif
#define TREE_SHIFT	NEURON_BUDDY_TREE_SHIFT
#define TREE_FAN	(1u << TREE_SHIFT)
#define TREE_LEVELS	7

/* Extents that one alloc, grow or plain reserve may need: two trimmed edges, two splits. */
#define NEED_EXTENTS	4u

#define NONE		(~0u)
#define GEN_MASK	0x7fffffffu
#define TAG_BITS	31u

#define OBITS_MAX	4096u
#define OBITS_MIN	64u

enum ext_type {
	EXT_POOL,	/* unused descriptor */
	EXT_FREE,
	EXT_USED,
	EXT_RESERVED,
	EXT_FRAME,	/* first member of a struct frame */
	EXT_PIN,	/* not in the address list: a reservation inside a frame */
};

/* A range of the zone; ranges tile the zone. All fields: zone lock. */
struct ext {
	u32 start;		/* granules */
	u32 len;
	struct ext *prev;	/* neighbours by address */
	struct ext *next;
	struct ext *bprev;	/* bin of a free extent, run list of a frame, ... */
	struct ext *bnext;	/* ... pool or pin list (singly linked) */
	u32 gen;		/* EXT_USED: generation */
	u8 type;
	bool embedded;		/* lives in a struct frame */
};

/*
 * A frame in use. Its extent covers the whole frame or, after an edge was given
 * back, what is left of it. Granules outside the extent look like first
 * granules, which ends both runs and blocks.
 */
struct frame {
	struct ext e;
	u16 run;		/* longest free run */
	u16 live;		/* blocks, reservations included */
	u16 head;		/* free granules at the low edge of the extent */
	u16 tail;		/* free granules at its high edge */
	u16 miss_n;		/* no run of miss_n granules aligned to 2^miss_k */
	u8 miss_k;		/* (miss_n == 0: nothing known) */
	u8 pins;		/* some blocks are reservations */
	u64 a[FRAME_WORDS];
	u64 b[FRAME_WORDS];
};

#define to_frame(ext)	((struct frame *)(ext))

/* Maxima over 2^TREE_SHIFT children each; level 0 has one value per frame. */
struct tree {
	u32 *level[TREE_LEVELS];
	u32 count[TREE_LEVELS];
	u32 levels;
};

/* The most recent free of a small block at some address. */
struct obit {
	u32 start;
	u32 gen;
};

/* Donated page: metadata memory on its way from prepare to the pools. */
struct page_head {
	struct llist_node node;		/* donated list */
	struct page_head *all;		/* every page of the zone, for destroy */
	struct page_head *batch;	/* pages donated together; then spare pages */
	u64 pad[5];			/* frames on cache line boundaries */
};

/*
 * Everything is protected by the owner's zone lock, but: donated (lock-free
 * list) and the reserve levels read by prepare.
 */
struct neuron_buddy {
	u32 len;			/* granules */
	u32 frames;			/* frames, the last one may be partial */
	u32 id;
	u32 gen;
	struct ext *first;		/* lowest extent */

	u32 bin_rows;
	u32 bin_cols[BIN_ROWS];
	struct ext *bin[BIN_ROWS][BIN_COLS];

	struct tree longest;		/* longest free extent starting in a frame */
	struct tree whole;		/* most whole frames inside one such extent */
	u32 whole_end;			/* above this frame, whole is 0 */

	struct ext **map;		/* lowest extent starting in a frame, or NULL */
	u64 *starts;			/* bit: map[] is set */

	u64 run_map[FRAME_BITS / 64 + 1];
	struct ext *run[FRAME_LEN + 1];	/* frames by longest run */

	u64 *clean;			/* per frame, if mixed: bit per unit known clear */
	u64 *clean_frame;		/* bit: frame known clear, if not mixed */
	u64 *clean_mixed;

	struct obit *obits;
	u32 obit_shift;

	struct ext *pins;		/* reservations inside frames */

	struct ext *pool;		/* unused extents */
	struct frame *frame_pool;	/* unused frames, linked by e.bnext */
	u32 pool_len;			/* read by prepare */
	u32 frame_pool_len;		/* read by prepare */
	u32 want;			/* extents the next operation needs; ditto */
	struct page_head *pages;
	struct page_head *spare;
	struct llist_head donated;

	u64 allocs_large;
	struct neuron_buddy_stats st;	/* largest: unused, see the next three */
	u32 largest_ext;
	u32 largest_whole;
	u32 largest_run;
};

static inline u32 frame_of(u32 granule)
{
	return granule >> FRAME_ORDER;
}

#endif
