/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allocator of contiguous device memory: what a zone is made of. See buddy.h for the
 * interface.
 *
 * What it keeps of a buddy allocator, and what not
 * ------------------------------------------------
 * Sizes are counted in orders, blocks are split, and a freed block joins its neighbours at
 * once. Unlike a binary buddy, it does not place every request at a multiple of its
 * rounded-up size. Contiguous device memory has no use for that, and it causes
 * fragmentation: tests/bench/README.md has the figures.
 *
 * Where a request goes
 * --------------------
 * The zone decides which requests are *small*: those of the smallest sizes, as long as
 * these make no more than a sixteenth of the bytes in use (sizes.c). A small request goes
 * to the highest place that it fits in. So small allocations gather at the top, where
 * allocating and freeing them does not cut up the space that the large ones need.
 *
 * Any other request takes
 *
 *  1. the tightest free extent, if that is at most 3/10 longer than the request;
 *  2. else the tightest which leaves at least as much as a request that is not small;
 *  3. else the tightest after all.
 *
 * It begins where the extent begins. A tight fit wastes little; any other fit ought to
 * leave a rest of useful size. Best fit alone prefers a useless rest to a useful one and
 * gets into states where no request fits any more; so does first fit. Requests of one
 * size pack without a gap: every place is a multiple of the size away from one end of the
 * zone, or the other.
 *
 * How it is kept
 * --------------
 * Extents tile the zone. The free ones sit in two-level size bins and in trees of maxima
 * over the zone's cells of 2 MiB, by address.
 *
 * An extent costs 48 bytes. Requests of up to 512 KiB share *frames* instead: pieces of up
 * to 2 MiB, two bits per granule. A frame is as long as a whole number of the blocks that
 * it was made for, taken like a small request, and holds blocks of other sizes, too. The
 * request goes to the frame whose longest run is the tightest, into that frame's tightest
 * run. An empty frame becomes a free extent again. If there is no room for a frame, such
 * a request takes the tightest free extent.
 *
 * One empty frame is kept, as a program that frees its only small block often allocates
 * another one. It is given back before anybody could see it: before any request but one
 * that it would have been made for, and before figures are read.
 *
 * Frames are no barrier. A tree of its own knows the runs of free granules that cross a
 * border of a frame. They are used before a request is refused: the free edge of the frame
 * is given back and joins the extent (or edge) beside it.
 *
 * Two bits describe a granule of a frame:
 *
 *	a b
 *	0 0	free
 *	0 1	first granule of a block
 *	1 x	later granule of a block; x: next bit of the block's generation
 *
 * so that a block of n granules carries n - 1 bits of its generation, at no cost. Single
 * granules carry none: for them, and to be exact for the others, a table remembers the
 * most recent frees ("obituaries").
 *
 * What is refused
 * ---------------
 * A request is refused if the whole zone has no free aligned run for it. Bounded work
 * makes one exception, for alignments that exceed the size: after PROBE_FRAMES_MAX
 * frames, and PROBE_JOINED runs over borders, that turned out to have no place, the
 * search goes on only where there must be one. Each frame remembers its failure until
 * something in it is freed.
 *
 * Work per operation is bounded by the number of cells, and typically touches a handful of
 * cache lines.
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

/* Cells, and frames at most, of 512 granules; model checking uses smaller ones. */
#ifndef NEURON_BUDDY_FRAME_ORDER
#define NEURON_BUDDY_FRAME_ORDER 9
#endif
#define FRAME_ORDER	NEURON_BUDDY_FRAME_ORDER
#define FRAME_LEN	(1u << FRAME_ORDER)
#define FRAME_WORDS	(FRAME_ORDER > 6 ? FRAME_LEN / 64 : 1)
#define FRAME_BITS	(FRAME_WORDS * 64)

/* Requests of up to this many granules live in frames, which keeps metadata small. */
#ifndef NEURON_BUDDY_SMALL
#define NEURON_BUDDY_SMALL (FRAME_LEN / 4)
#endif
#define SMALL_MAX	NEURON_BUDDY_SMALL

/* The smallest requests, which make one part in SHARE of the bytes in use, go to the top. */
#define SHARE		16u
/* A free extent suits a request if it is at most 3/10 longer. */
#define SUITS(n)	((n) + (u32)((u64)(n) * 3 / 10))

/* Size classes, 8 to an octave, for counting the granules in use by size. */
#ifndef NEURON_BUDDY_CLASS_BITS
#define NEURON_BUDDY_CLASS_BITS 3u
#endif
#define CLASS_BITS	NEURON_BUDDY_CLASS_BITS
#define CLASSES		(32u << CLASS_BITS)

/* Frames examined for an aligned request before a new frame is taken, and in all. */
#ifndef NEURON_BUDDY_PROBE_FRAMES
#define NEURON_BUDDY_PROBE_FRAMES 4
#define NEURON_BUDDY_PROBE_FRAMES_MAX 1024
#endif
#define PROBE_FRAMES	NEURON_BUDDY_PROBE_FRAMES
#define PROBE_FRAMES_MAX NEURON_BUDDY_PROBE_FRAMES_MAX
/* Borders of frames examined for an alignment that exceeds the size. */
#define PROBE_JOINED	1024
/* Extents examined in one bin, and in all bins before the trees decide. */
#define PROBE_BIN	16
#define PROBE_BINS	64

/* Two-level bins: exact below 32 granules, then 32 steps per power of two. */
#ifndef NEURON_BUDDY_BIN_ROWS
#define NEURON_BUDDY_BIN_ROWS 28u
#endif
#define BIN_COLS	32u
#define BIN_ROWS	NEURON_BUDDY_BIN_ROWS

/*
 * Fan-out of the trees of maxima: the work of a change, and of a search, is smallest with 4.
 * 11 levels above the leaves cover 2^22 cells.
 */
#ifndef NEURON_BUDDY_TREE_SHIFT
#define NEURON_BUDDY_TREE_SHIFT 2
#endif
#define TREE_SHIFT	NEURON_BUDDY_TREE_SHIFT
#define TREE_FAN	(1u << TREE_SHIFT)
#define TREE_LEVELS	12

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
 * A frame in use. Its extent covers all of it or, after an edge was given back, what is
 * left. Granules outside the extent look like first granules, which ends both runs and
 * blocks.
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
	u16 lo;			/* the bit of the extent's first granule */
	u16 free;		/* free granules */
	u64 a[FRAME_WORDS];
	u64 b[FRAME_WORDS];
};

#define to_frame(ext)	((struct frame *)(ext))

/* Maxima over 2^TREE_SHIFT children each; level 0 has one value per cell. */
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
 * The owner's zone lock protects everything except donated (a lock-free list) and the
 * reserve levels that prepare reads.
 */
struct neuron_buddy {
	u32 len;			/* granules */
	u32 cells;			/* of FRAME_LEN granules, the last one may be partial */
	u32 id;
	u32 gen;
	struct ext *first;		/* lowest extent */

	u32 bin_rows;
	u32 bin_cols[BIN_ROWS];
	struct ext *bin[BIN_ROWS][BIN_COLS];

	struct tree longest;		/* longest free extent starting in a cell */
	struct tree whole;		/* most whole cells inside one such extent */
	struct tree joined;		/* longest run over a border of a frame */

	struct ext **map;		/* lowest extent starting in a cell, or NULL */
	u64 *starts;			/* bit: map[] is set */

	u64 run_map[FRAME_BITS / 64 + 1];
	struct ext *run[FRAME_LEN + 1];	/* frames by longest run */

	u64 *clean;			/* per cell, if mixed: bit per unit known clear */
	u64 *clean_cell;		/* bit: cell known clear, if not mixed */
	u64 *clean_mixed;

	struct obit *obits;
	u32 obit_shift;

	struct ext *pins;		/* reservations inside frames */
	struct frame *empty;		/* kept for the next small request, or NULL */

	struct ext *pool;		/* unused extents */
	struct frame *frame_pool;	/* unused frames, linked by e.bnext */
	u32 pool_len;			/* read by prepare */
	u32 frame_pool_len;		/* read by prepare */
	u32 want;			/* extents the next operation needs; ditto */
	struct page_head *pages;
	struct page_head *spare;
	struct llist_head donated;

	u64 class_used[CLASSES];	/* granules of used extents, by size */
	u64 extents_used;		/* their sum: the rest is in frames */
	u64 cut_below;			/* of the classes below cut */
	u32 cut;

	struct neuron_buddy_stats st;	/* largest: unused */
};

static inline u32 cell_of(u32 granule)
{
	return granule >> FRAME_ORDER;
}

#endif
