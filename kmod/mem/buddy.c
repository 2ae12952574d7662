// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocator of contiguous device memory; see buddy.h for the interface.
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

/* --- bits ---------------------------------------------------------------- */

static u32 log2_floor(u64 x)
{
	return (u32)fls64(x) - 1;
}

static void bits_assign(u64 *w, u32 from, u32 n, bool value)
{
	while (n) {
		u32 bit = from & 63;
		u32 take = min(n, 64 - bit);
		u64 mask = (~0ULL >> (64 - take)) << bit;

		if (value)
			w[from >> 6] |= mask;
		else
			w[from >> 6] &= ~mask;
		from += take;
		n -= take;
	}
}

/* True if bits [from, from + n) of @w all equal @value. */
static bool bits_all(const u64 *w, u32 from, u32 n, bool value)
{
	while (n) {
		u32 bit = from & 63;
		u32 take = min(n, 64 - bit);
		u64 mask = (~0ULL >> (64 - take)) << bit;

		if ((w[from >> 6] & mask) != (value ? mask : 0))
			return false;
		from += take;
		n -= take;
	}
	return true;
}

/* Highest set bit of @w at or below @from, or NONE. */
static u32 bits_prev(const u64 *w, u32 from)
{
	u32 i = from >> 6;
	u64 x = w[i] & (~0ULL >> (63 - (from & 63)));

	while (!x) {
		if (!i)
			return NONE;
		x = w[--i];
	}
	return i * 64 + log2_floor(x);
}

/* --- metadata pools ------------------------------------------------------- */

static void ext_put(struct neuron_buddy *zone, struct ext *e)
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
static struct ext *ext_get(struct neuron_buddy *zone)
{
	struct ext *e = zone->pool;

	zone->pool = e->bnext;
	WRITE_ONCE(zone->pool_len, zone->pool_len - 1);
	return e;
}

static struct frame *frame_get(struct neuron_buddy *zone)
{
	struct frame *fr = zone->frame_pool;

	zone->frame_pool = to_frame(fr->e.bnext);
	WRITE_ONCE(zone->frame_pool_len, zone->frame_pool_len - 1);
	return fr;
}

/* Take over what prepare donated, and cut up as many pages as are needed. */
static void refill(struct neuron_buddy *zone, u32 want)
{
	struct llist_node *node = llist_del_all(&zone->donated);
	struct page_head *page;
	char *p, *end;

	while (node) {
		/* node is the first member: a batch hangs off its page */
		page = (struct page_head *)node;
		node = node->next;
		while (page) {
			struct page_head *more = page->batch;

			page->all = zone->pages;
			zone->pages = page;
			page->batch = zone->spare;
			zone->spare = page;
			zone->st.metadata += PAGE_SIZE;
			page = more;
		}
	}
	while (zone->spare && (zone->pool_len < want || !zone->frame_pool_len)) {
		page = zone->spare;
		zone->spare = page->batch;
		p = (char *)(page + 1);
		end = (char *)page + PAGE_SIZE;
		if (zone->pool_len < want) {
			for (; p + sizeof(struct ext) <= end; p += sizeof(struct ext))
				ext_put(zone, (struct ext *)p);
		} else {
			for (; p + sizeof(struct frame) <= end; p += sizeof(struct frame)) {
				to_frame(p)->e.embedded = true;
				ext_put(zone, (struct ext *)p);
			}
		}
	}
}

static bool reserve_ready(struct neuron_buddy *zone, u32 want)
{
	if (likely(zone->pool_len >= want && zone->frame_pool_len &&
		   zone->want == NEED_EXTENTS))
		return true;
	refill(zone, want);
	if (zone->pool_len < want || !zone->frame_pool_len) {
		WRITE_ONCE(zone->want, want);
		return false;
	}
	WRITE_ONCE(zone->want, NEED_EXTENTS);
	return true;
}

int neuron_buddy_prepare(struct neuron_buddy *zone)
{
	const u32 per_page = (PAGE_SIZE - sizeof(struct page_head)) / sizeof(struct ext);
	u32 want = READ_ONCE(zone->want);
	u32 have = READ_ONCE(zone->pool_len);
	struct page_head *batch = NULL, *page;
	u32 pages = 0;

	if (have < want)
		pages += (want - have + per_page - 1) / per_page;
	if (!READ_ONCE(zone->frame_pool_len))
		pages++;
	/* Pages wait to be taken over; if they do not do, there is another round. */
	if (likely(!pages) || !llist_empty(&zone->donated))
		return 0;
	while (pages--) {
		page = (struct page_head *)get_zeroed_page(GFP_KERNEL);
		if (!page) {
			while (batch) {
				page = batch;
				batch = page->batch;
				free_page((unsigned long)page);
			}
			return -ENOMEM;
		}
		page->batch = batch;
		batch = page;
	}
	llist_add(&batch->node, &zone->donated);
	return 0;
}

/* --- trees of maxima ------------------------------------------------------ */

static u32 tree_top(const struct tree *t)
{
	return t->level[t->levels - 1][0];
}

/* Maximum of siblings, of which one has @value. */
static u32 tree_max(const u32 *child, u32 value)
{
	u32 all = 0, c;

	/* No value exceeds all of them ored, and mostly only one is not 0. */
	for (c = 0; c < TREE_FAN; c += 2)
		all |= child[c] | child[c + 1];
	for (c = 0; c < TREE_FAN && value != all; c++)
		value = max(value, child[c]);
	return value;
}

static void tree_set(struct tree *t, u32 i, u32 value)
{
	u32 l, old;

	for (l = 0; ; l++) {
		old = t->level[l][i];
		if (old == value)
			return;
		t->level[l][i] = value;
		if (l == t->levels - 1)
			return;
		if (value < old) {
			/* The parent only changes if this child was its maximum. */
			if (t->level[l + 1][i >> TREE_SHIFT] != old)
				return;
			value = tree_max(&t->level[l][i & ~(TREE_FAN - 1)], value);
		} else if (t->level[l + 1][i >> TREE_SHIFT] >= value) {
			return;
		}
		i >>= TREE_SHIFT;
	}
}

/* Lowest index at or above @i whose value is at least @need, or NONE. */
static u32 tree_next(const struct tree *t, u32 i, u32 need)
{
	u32 l = 0, end;

	for (;;) {
		if (i >= t->count[l])
			return NONE;
		end = min((i | (TREE_FAN - 1)) + 1, t->count[l]);
		while (i < end && t->level[l][i] < need)
			i++;
		if (i < end)
			break;
		if (++l == t->levels)
			return NONE;
		i = ((end - 1) >> TREE_SHIFT) + 1;
	}
	while (l--) {
		i <<= TREE_SHIFT;
		while (t->level[l][i] < need)
			i++;
	}
	return i;
}

/* Highest index below @i whose value is at least @need, or NONE. */
static u32 tree_prev(const struct tree *t, u32 i, u32 need)
{
	u32 l = 0, begin;

	for (;;) {
		if (!i)
			return NONE;
		begin = (i - 1) & ~(TREE_FAN - 1);
		while (i > begin && t->level[l][i - 1] < need)
			i--;
		if (i > begin)
			break;
		if (++l == t->levels)
			return NONE;
		i = begin >> TREE_SHIFT;
	}
	i--;
	while (l--) {
		i = (i << TREE_SHIFT) + TREE_FAN - 1;
		i = min(i, t->count[l] - 1);
		while (t->level[l][i] < need)
			i--;
	}
	return i;
}

/* --- extents: address list, bins ------------------------------------------ */

static u32 frame_of(u32 granule)
{
	return granule >> FRAME_ORDER;
}

static u32 ext_end(const struct ext *e)
{
	return e->start + e->len;
}

/* Whole aligned frames inside an extent. */
static u32 ext_whole(const struct ext *e)
{
	u32 first = frame_of(e->start + FRAME_LEN - 1);
	u32 end = frame_of(ext_end(e));

	return end > first ? end - first : 0;
}

/* Recompute what the trees say about the extents that start in frame @f. */
static void trees_update(struct neuron_buddy *zone, u32 f)
{
	const struct ext *e;
	u32 len = 0, whole = 0;

	for (e = zone->map[f]; e && frame_of(e->start) == f; e = e->next) {
		if (e->type == EXT_FREE) {
			len = max(len, e->len);
			whole = max(whole, ext_whole(e));
		}
	}
	tree_set(&zone->longest, f, len);
	tree_set(&zone->whole, f, whole);
	if (whole && f > zone->whole_end)
		zone->whole_end = f;
}

static void map_add(struct neuron_buddy *zone, struct ext *e)
{
	u32 f = frame_of(e->start);

	if (!zone->map[f] || zone->map[f]->start >= e->start) {
		zone->map[f] = e;
		zone->starts[f >> 6] |= 1ULL << (f & 63);
	}
}

static void map_del(struct neuron_buddy *zone, struct ext *e)
{
	u32 f = frame_of(e->start);

	if (zone->map[f] != e)
		return;
	if (e->next && frame_of(e->next->start) == f) {
		zone->map[f] = e->next;
	} else {
		zone->map[f] = NULL;
		zone->starts[f >> 6] &= ~(1ULL << (f & 63));
	}
}

static void ext_link_after(struct neuron_buddy *zone, struct ext *prev, struct ext *e)
{
	e->prev = prev;
	e->next = prev->next;
	if (e->next)
		e->next->prev = e;
	prev->next = e;
	map_add(zone, e);
}

/* Not for the lowest extent: what goes is always the upper part of a merge. */
static void ext_unlink(struct neuron_buddy *zone, struct ext *e)
{
	map_del(zone, e);
	e->prev->next = e->next;
	if (e->next)
		e->next->prev = e->prev;
}

/* Put @e in the place of @old, which covers the same range. */
static void ext_replace(struct neuron_buddy *zone, struct ext *old, struct ext *e)
{
	e->start = old->start;
	e->len = old->len;
	e->prev = old->prev;
	e->next = old->next;
	if (e->prev)
		e->prev->next = e;
	else
		zone->first = e;
	if (e->next)
		e->next->prev = e;
	if (zone->map[frame_of(e->start)] == old)
		zone->map[frame_of(e->start)] = e;
}

/* The extent that contains @granule. */
static struct ext *ext_find(struct neuron_buddy *zone, u32 granule)
{
	u32 f = frame_of(granule);
	struct ext *e = zone->map[f];

	if (!e || e->start > granule) {
		/* Extent 0 starts in frame 0: there always is a lower one. */
		f = bits_prev(zone->starts, f - 1);
		e = zone->map[f];
	}
	while (ext_end(e) <= granule)
		e = e->next;
	return e;
}

static void bin_of(u32 len, u32 *row, u32 *col)
{
	u32 log = log2_floor(len);

	if (log < 5) {
		*row = 0;
		*col = len;
	} else {
		*row = log - 4;
		*col = (len >> (log - 5)) & (BIN_COLS - 1);
	}
}

static void order_add(struct neuron_buddy *zone, u32 len)
{
	if (len)
		zone->st.order_free[log2_floor(len)] += (u64)len << SHIFT;
}

static void order_sub(struct neuron_buddy *zone, u32 len)
{
	if (len)
		zone->st.order_free[log2_floor(len)] -= (u64)len << SHIFT;
}

static void bin_add(struct neuron_buddy *zone, struct ext *e)
{
	u32 row, col;

	bin_of(e->len, &row, &col);
	e->type = EXT_FREE;
	e->bprev = NULL;
	e->bnext = zone->bin[row][col];
	if (e->bnext)
		e->bnext->bprev = e;
	zone->bin[row][col] = e;
	zone->bin_cols[row] |= 1u << col;
	zone->bin_rows |= 1u << row;
	order_add(zone, e->len);
}

static void bin_del(struct neuron_buddy *zone, struct ext *e)
{
	u32 row, col;

	bin_of(e->len, &row, &col);
	if (e->bnext)
		e->bnext->bprev = e->bprev;
	if (e->bprev) {
		e->bprev->bnext = e->bnext;
	} else {
		zone->bin[row][col] = e->bnext;
		if (!e->bnext) {
			zone->bin_cols[row] &= ~(1u << col);
			if (!zone->bin_cols[row])
				zone->bin_rows &= ~(1u << row);
		}
	}
	order_sub(zone, e->len);
}

/* First non-empty bin at or after (row, col). */
static bool bin_next(const struct neuron_buddy *zone, u32 *row, u32 *col)
{
	u32 bits = 0;

	if (*col < BIN_COLS)
		bits = zone->bin_cols[*row] & (~0u << *col);
	if (!bits) {
		bits = zone->bin_rows & (~0u << *row) & ~(1u << *row);
		if (!bits)
			return false;
		*row = __ffs64(bits);
		bits = zone->bin_cols[*row];
	}
	*col = __ffs64(bits);
	return true;
}

/* Turn the free range @e (not in a bin, not in the trees) into free memory. */
static struct ext *ext_release(struct neuron_buddy *zone, struct ext *e)
{
	struct ext *prev = e->prev, *next = e->next;

	if (next && next->type == EXT_FREE) {
		u32 f = frame_of(next->start);

		bin_del(zone, next);
		e->len += next->len;
		ext_unlink(zone, next);
		ext_put(zone, next);
		if (f != frame_of(e->start))
			trees_update(zone, f);
	}
	if (prev && prev->type == EXT_FREE) {
		u32 f = frame_of(e->start);

		bin_del(zone, prev);
		prev->len += e->len;
		ext_unlink(zone, e);
		ext_put(zone, e);
		if (f != frame_of(prev->start))
			trees_update(zone, f);
		e = prev;
	}
	bin_add(zone, e);
	trees_update(zone, frame_of(e->start));
	return e;
}

/* Cut [pos, pos + n) out of the free extent @e. Needs up to two extents. */
static struct ext *ext_take(struct neuron_buddy *zone, struct ext *e, u32 pos, u32 n)
{
	u32 head = pos - e->start;
	u32 tail = e->len - head - n;
	u32 f = frame_of(e->start);
	struct ext *used = e, *rest;

	bin_del(zone, e);
	if (head) {
		used = ext_get(zone);
		used->start = pos;
		ext_link_after(zone, e, used);
		e->len = head;
		bin_add(zone, e);
	}
	used->len = n;
	used->type = EXT_USED;
	if (tail) {
		rest = ext_get(zone);
		rest->start = pos + n;
		rest->len = tail;
		ext_link_after(zone, used, rest);
		bin_add(zone, rest);
		if (frame_of(rest->start) != f)
			trees_update(zone, frame_of(rest->start));
	}
	trees_update(zone, f);
	return used;
}

/* --- frames ---------------------------------------------------------------- */

static u64 frame_used(const struct frame *fr, u32 word)
{
	return fr->a[word] | fr->b[word];
}

/* First granule at or after @from that is free (@value false) or not. */
static u32 frame_scan(const struct frame *fr, u32 from, bool value)
{
	u32 i = from >> 6;
	u64 x;

	if (from >= FRAME_BITS)
		return FRAME_BITS;
	x = value ? frame_used(fr, i) : ~frame_used(fr, i);
	x &= ~0ULL << (from & 63);
	while (!x) {
		if (++i == FRAME_WORDS)
			return FRAME_BITS;
		x = value ? frame_used(fr, i) : ~frame_used(fr, i);
	}
	return i * 64 + __ffs64(x);
}

/* Number of free granules directly below @from. */
static u32 frame_free_below(const struct frame *fr, u32 from)
{
	u32 i = from >> 6;
	u64 x = from & 63 ? frame_used(fr, i) & ~(~0ULL << (from & 63)) : 0;

	while (!x) {
		if (!i)
			return from;
		x = frame_used(fr, --i);
	}
	return from - (i * 64 + log2_floor(x) + 1);
}

/* Offset of the frame's extent within its aligned 2 MiB, and its end. */
static u32 frame_lo(const struct frame *fr)
{
	return fr->e.start & (FRAME_LEN - 1);
}

static u32 frame_hi(const struct frame *fr)
{
	return frame_lo(fr) + fr->e.len;
}

static u32 frame_base(const struct frame *fr)
{
	return fr->e.start & ~(FRAME_LEN - 1);
}

static void run_del(struct neuron_buddy *zone, struct frame *fr)
{
	struct ext *e = &fr->e;

	if (e->bnext)
		e->bnext->bprev = e->bprev;
	if (e->bprev) {
		e->bprev->bnext = e->bnext;
	} else {
		zone->run[fr->run] = e->bnext;
		if (!e->bnext)
			zone->run_map[fr->run >> 6] &= ~(1ULL << (fr->run & 63));
	}
}

static void run_add(struct neuron_buddy *zone, struct frame *fr, u32 run)
{
	struct ext *e = &fr->e;

	fr->run = run;
	e->bprev = NULL;
	e->bnext = zone->run[run];
	if (e->bnext)
		e->bnext->bprev = e;
	zone->run[run] = e;
	zone->run_map[run >> 6] |= 1ULL << (run & 63);
}

/* Smallest longest-run at or above @run that some frame has, or NONE. */
static u32 run_next(const struct neuron_buddy *zone, u32 run)
{
	u32 i = run >> 6;
	u64 x;

	if (run > FRAME_LEN)
		return NONE;
	x = zone->run_map[i] & (~0ULL << (run & 63));
	while (!x) {
		if (++i == FRAME_BITS / 64 + 1)
			return NONE;
		x = zone->run_map[i];
	}
	return i * 64 + __ffs64(x);
}

static u32 run_top(const struct neuron_buddy *zone)
{
	u32 run = bits_prev(zone->run_map, FRAME_LEN);

	return run == NONE ? 0 : run;
}

static void frame_set_run(struct neuron_buddy *zone, struct frame *fr, u32 run)
{
	if (run != fr->run) {
		run_del(zone, fr);
		run_add(zone, fr, run);
	}
}

static void frame_set_edges(struct frame *fr)
{
	u32 lo = frame_lo(fr), hi = frame_hi(fr);

	fr->head = min(frame_scan(fr, lo, true), hi) - lo;
	fr->tail = min(frame_free_below(fr, hi), fr->e.len);
}

/* A place in a frame. */
struct fit {
	u32 off;	/* first granule, relative to the aligned frame */
	u32 lo;		/* the free run around it */
	u32 hi;
	u32 rest;	/* longest run of the frame once this is taken, NONE = unknown */
};

/*
 * State of frame_fit(): the tightest run so far, and the longest of the others. Runs
 * that are too short by far are passed over.
 */
struct fit_search {
	u32 n;
	u32 mask;
	u32 best;
	u32 rest;
	bool passed;
};

/* The runs of set bits of @x that have at least @n, which is not 0. */
static u64 runs_from(u64 x, u32 n)
{
	u32 have, step;
	u64 y = x;

	if (n > 64)
		return 0;
	/* A bit stays if @have of them begin there. */
	for (have = 1; have < n && y; have += step) {
		step = min(have, n - have);
		y &= y >> step;
	}
	for (have = 1; have < n && y; have += step) {
		step = min(have, n - have);
		y |= y << step;
	}
	return y;
}

/* Look at the free run [lo, hi). True once nothing better can come. */
static bool fit_run(struct fit_search *s, struct fit *fit, u32 lo, u32 hi, u32 longest)
{
	u32 off = (lo + s->mask) & ~s->mask;

	if (off < hi && hi - off >= s->n && hi - lo < s->best) {
		if (s->best != NONE)
			s->rest = max(s->rest, s->best);
		s->best = hi - lo;
		fit->off = off;
		fit->lo = lo;
		fit->hi = hi;
	} else {
		s->rest = max(s->rest, hi - lo);
	}
	/* An exact fit, and the frame's longest run was seen elsewhere or must be. */
	return s->best == s->n && (s->rest == longest || s->n < longest);
}

/* Tightest run of @fr for @n granules aligned to 2^k. */
static bool frame_fit(struct frame *fr, u32 n, u32 k, struct fit *fit)
{
	struct fit_search s = { .n = n, .best = NONE };
	u32 i, base, open = 0;
	u64 x, low;

	if (fr->miss_n && n >= fr->miss_n && k >= fr->miss_k)
		return false;
	/* Above the frame size only the frame's first granule can be aligned. */
	if (k > FRAME_ORDER && frame_base(fr) & ((1u << k) - 1))
		return false;
	s.mask = (1u << min_t(u32, k, FRAME_ORDER)) - 1;

	/* open: length of the run that reaches the end of the words seen so far */
	for (i = 0, base = 0; i < FRAME_WORDS; i++, base += 64) {
		u32 top;

		x = ~frame_used(fr, i);
		if (!~x) {
			open += 64;
			continue;
		}
		if (!x && !open)
			continue;
		if (open || x & 1) {
			u32 first = __ffs64(~x);

			if (fit_run(&s, fit, base - open, base + first, fr->run))
				goto found;
			x &= x + 1;
		}
		top = 64 - fls64(~x);
		open = top;
		if (top)
			x &= ~0ULL >> top;
		low = runs_from(x, n);
		s.passed |= low != x;
		x = low;
		while (x) {
			u32 lo = __ffs64(x), len = __ffs64(~(x >> lo));

			if (fit_run(&s, fit, base + lo, base + lo + len, fr->run))
				goto found;
			low = x & -x;
			x &= x + low;
		}
	}
	if (open)
		fit_run(&s, fit, base - open, base, fr->run);
	if (s.best == NONE) {
		fr->miss_n = n;
		fr->miss_k = k;
		return false;
	}
found:
	if (s.best < fr->run)
		s.rest = fr->run;
	s.rest = max(s.rest, fit->off - fit->lo);
	fit->rest = max(s.rest, fit->hi - fit->off - n);
	/* What was passed over has at least one granule, and less than n. */
	if (s.passed && fit->rest < n - 1)
		fit->rest = n > 2 ? NONE : 1;
	return true;
}

/* Write the generation into the later granules of a block. */
static void frame_put_tag(struct frame *fr, u32 off, u32 n, u32 gen)
{
	u32 bits = min(n - 1, TAG_BITS);
	u32 bit = (off + 1) & 63, word = (off + 1) >> 6;
	u64 mask, tag;

	if (!bits)
		return;
	mask = (1ULL << bits) - 1;
	tag = gen & mask;
	fr->b[word] = (fr->b[word] & ~(mask << bit)) | (tag << bit);
	if (bit + bits > 64) {
		mask >>= 64 - bit;
		tag >>= 64 - bit;
		fr->b[word + 1] = (fr->b[word + 1] & ~mask) | tag;
	}
}

static bool frame_check_tag(const struct frame *fr, u32 off, u32 n, u32 gen)
{
	u32 bits = min(n - 1, TAG_BITS);
	u32 bit = (off + 1) & 63, word = (off + 1) >> 6;
	u64 tag;

	if (!bits)
		return true;
	tag = fr->b[word] >> bit;
	if (bit + bits > 64)
		tag |= fr->b[word + 1] << (64 - bit);
	return !((tag ^ gen) & ((1ULL << bits) - 1));
}

/* Make [off, off + n) of the frame one block. */
static void frame_mark(struct frame *fr, u32 off, u32 n, u32 gen)
{
	bits_assign(fr->a, off + 1, n - 1, true);
	fr->b[off >> 6] |= 1ULL << (off & 63);
	frame_put_tag(fr, off, n, gen);
	fr->live++;
}

static void frame_clear(struct frame *fr, u32 off, u32 n)
{
	while (n) {
		u32 bit = off & 63, word = off >> 6;
		u32 take = min(n, 64 - bit);
		u64 mask = (~0ULL >> (64 - take)) << bit;

		fr->a[word] &= ~mask;
		fr->b[word] &= ~mask;
		off += take;
		n -= take;
	}
}

/* Length of the block that starts at @off: up to the next granule that does not belong. */
static u32 frame_block_len(const struct frame *fr, u32 off)
{
	u32 i = (off + 1) >> 6;
	u64 x;

	if (off + 1 >= FRAME_BITS)
		return 1;
	x = ~fr->a[i] & (~0ULL << ((off + 1) & 63));
	while (!x) {
		if (++i == FRAME_WORDS)
			return FRAME_BITS - off;
		x = ~fr->a[i];
	}
	return i * 64 + __ffs64(x) - off;
}

/* First granule of the block that contains @off; @off is not free. */
static u32 frame_block_start(const struct frame *fr, u32 off)
{
	u32 i = off >> 6;
	u64 x = ~fr->a[i] & (~0ULL >> (63 - (off & 63)));

	while (!x)
		x = ~fr->a[--i];
	return i * 64 + log2_floor(x);
}

static void frame_take(struct neuron_buddy *zone, struct frame *fr, const struct fit *fit,
		       u32 n, u32 gen)
{
	order_sub(zone, fit->hi - fit->lo);
	order_add(zone, fit->off - fit->lo);
	order_add(zone, fit->hi - fit->off - n);
	frame_mark(fr, fit->off, n, gen);
	frame_set_run(zone, fr, fit->rest);
	if (fit->lo == frame_lo(fr))
		fr->head = fit->off - fit->lo;
	if (fit->hi == frame_hi(fr))
		fr->tail = fit->hi - fit->off - n;
}

/* Longest free run, the slow way. */
static u32 frame_longest(const struct frame *fr)
{
	u32 lo, hi, run = 0;

	for (lo = frame_scan(fr, 0, false); lo < FRAME_LEN; lo = frame_scan(fr, hi, false)) {
		hi = frame_scan(fr, lo, true);
		run = max(run, hi - lo);
	}
	return run;
}

/* Turn the used extent @e, one whole frame, into an empty frame. */
static struct frame *frame_create(struct neuron_buddy *zone, struct ext *e)
{
	struct frame *fr = frame_get(zone);
	u32 i;

	ext_replace(zone, e, &fr->e);
	ext_put(zone, e);
	fr->e.type = EXT_FRAME;
	for (i = 0; i < FRAME_WORDS; i++) {
		fr->a[i] = 0;
		fr->b[i] = 0;
	}
	if (FRAME_LEN < FRAME_BITS)
		bits_assign(fr->b, FRAME_LEN, FRAME_BITS - FRAME_LEN, true);
	fr->live = 0;
	fr->pins = 0;
	fr->miss_n = 0;
	fr->miss_k = 0;
	/* head and tail follow with the first block, which both edges see */
	run_add(zone, fr, FRAME_LEN);
	order_add(zone, FRAME_LEN);
	zone->st.frames++;
	return fr;
}

/* The frame became empty: it is a free extent again. Allocates nothing. */
static void frame_destroy(struct neuron_buddy *zone, struct frame *fr)
{
	struct ext *e = &fr->e;

	run_del(zone, fr);
	order_sub(zone, e->len);
	zone->st.frames--;
	/* With an empty pool the frame's own extent serves instead. */
	if (zone->pool_len) {
		e = ext_get(zone);
		ext_replace(zone, &fr->e, e);
		ext_put(zone, &fr->e);
	}
	ext_release(zone, e);
}

/* Free [off, off + n) of the frame, which is @blocks blocks. */
static void frame_free(struct neuron_buddy *zone, struct frame *fr, u32 off, u32 n, u32 blocks)
{
	u32 below, above;

	frame_clear(fr, off, n);
	fr->live -= blocks;
	fr->miss_n = 0;
	below = frame_free_below(fr, off);
	above = min(frame_scan(fr, off + n, true), FRAME_LEN) - (off + n);
	order_sub(zone, below);
	order_sub(zone, above);
	off -= below;
	n += below + above;
	order_add(zone, n);
	if (!fr->live) {
		frame_destroy(zone, fr);
		return;
	}
	if (n > fr->run)
		frame_set_run(zone, fr, n);
	if (off == frame_lo(fr))
		fr->head = n;
	if (off + n == frame_hi(fr))
		fr->tail = n;
}

/*
 * Give the free edge of a frame back: @n granules at its low (@low) or high end
 * become a free extent. Needs one extent.
 */
static void frame_trim(struct neuron_buddy *zone, struct frame *fr, bool low, u32 n)
{
	struct ext *e = ext_get(zone);
	u32 edge = low ? fr->head : fr->tail;

	order_sub(zone, edge);
	order_add(zone, edge - n);
	if (low) {
		bits_assign(fr->b, frame_lo(fr), n, true);
		e->start = fr->e.start;
		map_del(zone, &fr->e);
		fr->e.start += n;
		fr->e.len -= n;
		/* It goes in front; a range that ends here begins below. */
		e->prev = fr->e.prev;
		e->next = &fr->e;
		e->prev->next = e;
		fr->e.prev = e;
		map_add(zone, &fr->e);
		map_add(zone, e);
	} else {
		bits_assign(fr->b, frame_hi(fr) - n, n, true);
		fr->e.len -= n;
		e->start = ext_end(&fr->e);
		ext_link_after(zone, &fr->e, e);
	}
	e->len = n;
	frame_set_run(zone, fr, frame_longest(fr));
	frame_set_edges(fr);
	ext_release(zone, e);
}

/* --- knowledge about cleared memory ---------------------------------------- */

/*
 * One bit says that what is free of a unit is zero. It never influences how
 * ranges are kept or merged. A frame that is all the same needs no word.
 */
#define UNIT		(FRAME_ORDER >= 6 ? FRAME_LEN / 64 : 1)
#define UNITS		(FRAME_LEN / UNIT)
#define ALL_UNITS	(~0ULL >> (64 - UNITS))

static bool bit_test(const u64 *w, u32 i)
{
	return w[i >> 6] >> (i & 63) & 1;
}

static u64 clean_word(const struct neuron_buddy *zone, u32 f)
{
	if (bit_test(zone->clean_mixed, f))
		return zone->clean[f];
	return bit_test(zone->clean_frame, f) ? ALL_UNITS : 0;
}

/* Units of frame @f touched by, or (@inside) lying within, [lo, hi) of it. */
static u64 clean_mask(u32 lo, u32 hi, bool inside)
{
	if (inside)
		lo += UNIT - 1;
	else
		hi += UNIT - 1;
	lo /= UNIT;
	hi /= UNIT;
	if (hi <= lo)
		return 0;
	return (~0ULL >> (64 - (hi - lo))) << lo;
}

static void clean_set(struct neuron_buddy *zone, u32 start, u32 n, bool clean)
{
	u32 f = frame_of(start), end = start + n;

	/* Mostly there is nothing new to know. */
	if (f == frame_of(end - 1) && !bit_test(zone->clean_mixed, f) &&
	    bit_test(zone->clean_frame, f) == clean)
		return;
	while (start < end) {
		u32 lo = start & (FRAME_LEN - 1);
		u32 hi = min(end - (start - lo), FRAME_LEN);

		if (lo == 0 && hi == FRAME_LEN) {
			u32 frames = (end - start) >> FRAME_ORDER;

			bits_assign(zone->clean_mixed, f, frames, false);
			bits_assign(zone->clean_frame, f, frames, clean);
			f += frames;
			start += frames << FRAME_ORDER;
			continue;
		}
		if (clean != bit_test(zone->clean_frame, f) || bit_test(zone->clean_mixed, f)) {
			u64 word = clean_word(zone, f);
			bool mixed;

			if (clean)
				word |= clean_mask(lo, hi, true);
			else
				word &= ~clean_mask(lo, hi, false);
			mixed = word && word != ALL_UNITS;
			zone->clean[f] = word;
			bits_assign(zone->clean_mixed, f, 1, mixed);
			bits_assign(zone->clean_frame, f, 1, word == ALL_UNITS);
		}
		start += hi - lo;
		f++;
	}
}

static bool clean_test(const struct neuron_buddy *zone, u32 start, u32 n)
{
	u32 f = frame_of(start), end = start + n;

	/* Most are small, and in a frame that is all the same. */
	if (f == frame_of(end - 1) && !bit_test(zone->clean_mixed, f))
		return bit_test(zone->clean_frame, f);
	while (start < end) {
		u32 lo = start & (FRAME_LEN - 1);
		u32 hi = min(end - (start - lo), FRAME_LEN);

		if (lo == 0 && hi == FRAME_LEN) {
			u32 frames = (end - start) >> FRAME_ORDER;

			if (!bits_all(zone->clean_frame, f, frames, true))
				return false;
			f += frames;
			start += frames << FRAME_ORDER;
			continue;
		}
		if (clean_mask(lo, hi, false) & ~clean_word(zone, f))
			return false;
		start += hi - lo;
		f++;
	}
	return true;
}

/* --- generations and obituaries --------------------------------------------- */

static struct obit *obit_of(struct neuron_buddy *zone, u32 start)
{
	return &zone->obits[(start * 0x9e3779b1u) >> zone->obit_shift];
}

static u32 gen_next(struct neuron_buddy *zone, u32 start)
{
	const struct obit *o = obit_of(zone, start);

	do {
		zone->gen = (zone->gen + 1) & GEN_MASK;
	} while (!zone->gen || (o->start == start && o->gen == zone->gen));
	return zone->gen;
}

/* --- choosing a place -------------------------------------------------------- */

static bool ext_fits(const struct ext *e, u32 n, u32 mask, u32 *pos)
{
	u32 p = (e->start + mask) & ~mask;

	if (p >= ext_end(e) || ext_end(e) - p < n)
		return false;
	*pos = p;
	return true;
}

/*
 * A fit for @n granules aligned to a whole frame or more must contain n /
 * FRAME_LEN whole frames; for anything else length is all the trees know.
 */
static const struct tree *tree_for(const struct neuron_buddy *zone, u32 n, u32 k, u32 *need)
{
	if (k >= FRAME_ORDER && n >= FRAME_LEN) {
		*need = n >> FRAME_ORDER;
		return &zone->whole;
	}
	*need = n;
	return &zone->longest;
}

static struct ext *find_lowest(struct neuron_buddy *zone, u32 n, u32 k, u32 *pos)
{
	u32 mask = (1u << k) - 1, need, f;
	const struct tree *t = tree_for(zone, n, k, &need);
	struct ext *e;

	for (f = tree_next(t, 0, need); f != NONE; f = tree_next(t, f + 1, need)) {
		for (e = zone->map[f]; e && frame_of(e->start) == f; e = e->next) {
			if (e->type == EXT_FREE && ext_fits(e, n, mask, pos))
				return e;
		}
	}
	return NULL;
}

static struct ext *find_highest(struct neuron_buddy *zone, u32 n, u32 k, u32 *pos)
{
	u32 mask = (1u << k) - 1, need, f;
	const struct tree *t = tree_for(zone, n, k, &need);
	struct ext *e, *best = NULL;

	for (f = tree_prev(t, zone->frames, need); f != NONE; f = tree_prev(t, f, need)) {
		for (e = zone->map[f]; e && frame_of(e->start) == f; e = e->next) {
			if (e->type == EXT_FREE && ext_fits(e, n, mask, pos))
				best = e;
		}
		if (best) {
			*pos = (ext_end(best) - n) & ~mask;
			return best;
		}
	}
	return NULL;
}

/* Tightest of the first few extents of a bin; lower address on ties. */
static struct ext *bin_tightest(struct ext *e, u32 n, u32 mask, u32 *pos, u32 *probes)
{
	struct ext *best = NULL;
	u32 p, i;

	for (i = 0; e && i < PROBE_BIN; e = e->bnext, i++) {
		++*probes;
		if (!ext_fits(e, n, mask, &p))
			continue;
		if (!best || e->len < best->len ||
		    (e->len == best->len && e->start < best->start)) {
			best = e;
			*pos = p;
		}
	}
	return best;
}

/*
 * Bins from the request's size upwards, then the trees, which miss nothing.
 * Without alignment the second bin always has a fit.
 */
static struct ext *find_tightest(struct neuron_buddy *zone, u32 n, u32 k, u32 *pos)
{
	u32 mask = (1u << k) - 1, row, col, probes = 0;
	struct ext *e;

	bin_of(n, &row, &col);
	while (probes < PROBE_BINS && bin_next(zone, &row, &col)) {
		e = bin_tightest(zone->bin[row][col], n, mask, pos, &probes);
		if (e)
			return e;
		col++;
	}
	return find_lowest(zone, n, k, pos);
}

static bool plenty_free(const struct neuron_buddy *zone)
{
	return (zone->st.free >> SHIFT) * 100 > (u64)zone->len * NEURON_BUDDY_FIT_PERCENT;
}

static struct ext *find_extent(struct neuron_buddy *zone, u32 n, u32 k, u32 flags, u32 *pos)
{
	if (!flags) {
		if (!plenty_free(zone))
			return find_tightest(zone, n, k, pos);
		if (n < MEDIUM_END)
			flags = NEURON_BUDDY_HIGH;
	}
	if (flags & NEURON_BUDDY_HIGH)
		return find_highest(zone, n, k, pos);
	return find_lowest(zone, n, k, pos);
}

/* A frame with room for @n granules aligned to 2^k; examines at most @probes. */
static struct frame *find_frame(struct neuron_buddy *zone, u32 n, u32 k, u32 probes,
				struct fit *fit)
{
	u32 sure = n + (1u << min_t(u32, k, FRAME_ORDER)) - 1;
	u32 run;

	for (run = run_next(zone, n); run != NONE; run = run_next(zone, run + 1)) {
		struct ext *e;

		/* From here on every frame fits, unless alignment exceeds the frame. */
		if (run >= sure && k <= FRAME_ORDER)
			probes = NONE;
		for (e = zone->run[run]; e; e = e->bnext) {
			if (!probes--)
				break;
			if (frame_fit(to_frame(e), n, k, fit))
				return to_frame(e);
		}
		if (!e)
			continue;
		/* Out of probes: go on where success is certain. */
		if (k > FRAME_ORDER)
			return NULL;
		probes = 0;
		run = max(run, sure - 1);
	}
	return NULL;
}

/* Take a new frame: from the top, or the bottom if asked for. */
static struct frame *new_frame(struct neuron_buddy *zone, u32 k, u32 flags)
{
	struct ext *e;
	u32 pos, f;

	if (k > FRAME_ORDER)
		return NULL;
	if (flags & NEURON_BUDDY_LOW) {
		f = tree_next(&zone->whole, 0, 1);
		if (f == NONE)
			return NULL;
		for (e = zone->map[f]; e->type != EXT_FREE || !ext_whole(e); e = e->next)
			;
		pos = (e->start + FRAME_LEN - 1) & ~(FRAME_LEN - 1);
	} else {
		struct ext *x;

		f = tree_prev(&zone->whole, zone->whole_end + 1, 1);
		if (f == NONE)
			return NULL;
		zone->whole_end = f;
		for (e = NULL, x = zone->map[f]; x && frame_of(x->start) == f; x = x->next) {
			if (x->type == EXT_FREE && ext_whole(x))
				e = x;
		}
		pos = (ext_end(e) & ~(FRAME_LEN - 1)) - FRAME_LEN;
	}
	return frame_create(zone, ext_take(zone, e, pos, FRAME_LEN));
}

/* --- joining frame edges ------------------------------------------------------ */

static u32 edge_low(const struct ext *e)
{
	return e->type == EXT_FREE ? e->len : e->type == EXT_FRAME ? to_frame(e)->head : 0;
}

static u32 edge_high(const struct ext *e)
{
	return e->type == EXT_FREE ? e->len : e->type == EXT_FRAME ? to_frame(e)->tail : 0;
}

/*
 * The free run around the boundary below @e: it may take the free high edge of
 * the frame (or the free extent, and the frame edge below that) before it.
 */
static bool joined_run(const struct ext *e, u32 *lo, u32 *hi)
{
	const struct ext *x = e;

	if (!e->prev || !edge_low(e) || !edge_high(e->prev))
		return false;
	*lo = e->start;
	*hi = e->start + edge_low(e);
	/* upwards, over a free extent */
	if (x->type == EXT_FREE && x->next)
		*hi += x->next->type == EXT_FRAME ? to_frame(x->next)->head : 0;
	x = e->prev;
	*lo -= edge_high(x);
	if (x->type == EXT_FREE && x->prev)
		*lo -= x->prev->type == EXT_FRAME ? to_frame(x->prev)->tail : 0;
	return true;
}

/*
 * Search the runs that cross the edge of a frame; the result is [*pos, *pos +
 * n). @longest gets the longest such run, for the statistics of refusals.
 */
static bool find_joined(struct neuron_buddy *zone, u32 n, u32 k, u32 *pos, u32 *longest)
{
	u32 mask = (1u << k) - 1, run, lo, hi, p, side;
	const struct ext *e, *at;

	*longest = 0;
	if (tree_top(&zone->longest) + 2 * run_top(zone) < n)
		return false;
	for (run = run_next(zone, 1); run != NONE; run = run_next(zone, run + 1)) {
		for (e = zone->run[run]; e; e = e->bnext) {
			for (side = 0; side < 2; side++) {
				at = side ? e->next : e;
				if (!at || !joined_run(at, &lo, &hi))
					continue;
				*longest = max(*longest, hi - lo);
				p = (lo + mask) & ~mask;
				if (p < hi && hi - p >= n) {
					*pos = p;
					return true;
				}
			}
		}
	}
	return false;
}

/* True if every granule of [start, start + n) is free. */
static bool range_free(struct neuron_buddy *zone, u32 start, u32 n)
{
	struct ext *e = ext_find(zone, start);
	u32 end = start + n;

	for (; e && e->start < end; e = e->next) {
		if (e->type == EXT_FRAME) {
			u32 base = frame_base(to_frame(e));
			u32 lo = max(start, e->start) - base;
			u32 hi = min(end, ext_end(e)) - base;

			if (frame_scan(to_frame(e), lo, true) < hi)
				return false;
		} else if (e->type != EXT_FREE) {
			return false;
		}
	}
	return true;
}

/*
 * Make the free range [start, start + n) part of one free extent by trimming the
 * frames it begins and ends in. It must not lie within one frame. Needs up to
 * two extents.
 */
static struct ext *range_to_extent(struct neuron_buddy *zone, u32 start, u32 n)
{
	struct ext *e = ext_find(zone, start);

	if (e->type == EXT_FRAME)
		frame_trim(zone, to_frame(e), false, ext_end(e) - start);
	e = ext_find(zone, start + n - 1);
	if (e->type == EXT_FRAME)
		frame_trim(zone, to_frame(e), true, start + n - e->start);
	return ext_find(zone, start);
}

static bool range_in_frame(struct neuron_buddy *zone, u32 start, u32 n, struct frame **fr)
{
	struct ext *e = ext_find(zone, start);

	if (e->type != EXT_FRAME || start + n > ext_end(e))
		return false;
	*fr = to_frame(e);
	return true;
}

/* The fit that describes the free range [off, off + n) of a frame. */
static void frame_fit_at(struct frame *fr, u32 off, u32 n, struct fit *fit)
{
	fit->off = off;
	fit->lo = off - frame_free_below(fr, off);
	fit->hi = frame_scan(fr, off + n, true);
}

/* --- operations ---------------------------------------------------------------- */

static void update_largest(struct neuron_buddy *zone)
{
	WRITE_ONCE(zone->largest_ext, tree_top(&zone->longest));
	WRITE_ONCE(zone->largest_whole, tree_top(&zone->whole));
	WRITE_ONCE(zone->largest_run, run_top(zone));
}

static void charge(struct neuron_buddy *zone, u32 n)
{
	u64 bytes = (u64)n << SHIFT;

	WRITE_ONCE(zone->st.used, zone->st.used + bytes);
	WRITE_ONCE(zone->st.free, zone->st.free - bytes);
	zone->st.high_water = max(zone->st.high_water, zone->st.used);
}

static void fill_block(struct neuron_buddy *zone, struct neuron_buddy_block *block,
		       u32 start, u32 n, u32 gen)
{
	block->addr = (u64)start << SHIFT;
	block->size = (u64)n << SHIFT;
	block->id = zone->id;
	block->gen = gen;
	block->cleared = clean_test(zone, start, n);
}

/* Where an allocation goes: into a frame, or out of a free extent. */
struct place {
	struct frame *fr;
	struct fit fit;
	struct ext *e;
	u32 pos;
};

static bool place_find(struct neuron_buddy *zone, u32 n, u32 k, u32 flags, struct place *p)
{
	bool small = n <= SMALL_MAX;
	u32 longest;

	p->fr = NULL;
	if (small) {
		p->fr = find_frame(zone, n, k, PROBE_FRAMES, &p->fit);
		if (!p->fr) {
			p->fr = new_frame(zone, k, flags);
			if (p->fr)
				p->fit = (struct fit){ .hi = FRAME_LEN, .rest = FRAME_LEN - n };
		}
		if (p->fr)
			return true;
		/* In the holes only the tightest one is good enough. */
		if (!(flags & NEURON_BUDDY_HIGH))
			p->e = find_tightest(zone, n, k, &p->pos);
		else
			p->e = find_highest(zone, n, k, &p->pos);
	} else {
		p->e = find_extent(zone, n, k, flags, &p->pos);
	}
	if (p->e)
		return true;
	if ((u64)n << SHIFT > zone->st.free)
		return false;

	zone->st.slow_calls++;
	/* Whatever else the frames have: larger or awkwardly aligned runs. */
	if (n < FRAME_LEN)
		p->fr = find_frame(zone, n, k, PROBE_FRAMES_MAX, &p->fit);
	if (p->fr)
		return true;
	if (!find_joined(zone, n, k, &p->pos, &longest))
		return false;
	p->e = range_to_extent(zone, p->pos, n);
	return true;
}

/* EXACT: -EBUSY unless the range is free. */
static int place_exact(struct neuron_buddy *zone, u32 start, u32 n, struct place *p)
{
	if (!range_free(zone, start, n))
		return -EBUSY;
	p->fr = NULL;
	p->pos = start;
	if (range_in_frame(zone, start, n, &p->fr)) {
		frame_fit_at(p->fr, start - frame_base(p->fr), n, &p->fit);
		return 0;
	}
	p->e = range_to_extent(zone, start, n);
	return 0;
}

static void place_take(struct neuron_buddy *zone, struct place *p, u32 n, bool exact,
		       struct neuron_buddy_block *block)
{
	u32 start = p->fr ? frame_base(p->fr) + p->fit.off : p->pos;
	u32 gen = gen_next(zone, start);

	if (p->fr) {
		if (exact || p->fit.rest == NONE) {
			/* rest is not known: take first, then look */
			p->fit.rest = p->fr->run;
			frame_take(zone, p->fr, &p->fit, n, gen);
			frame_set_run(zone, p->fr, frame_longest(p->fr));
		} else {
			frame_take(zone, p->fr, &p->fit, n, gen);
		}
	} else {
		ext_take(zone, p->e, p->pos, n)->gen = gen;
	}
	charge(zone, n);
	zone->st.allocs++;
	zone->st.alloc_calls++;
	fill_block(zone, block, start, n, gen);
}

/* Why nothing was found for @n granules. */
static enum neuron_buddy_cause refusal(struct neuron_buddy *zone, u32 n, u32 k)
{
	u32 pos, longest;

	if ((u64)n << SHIFT > zone->st.free)
		return NEURON_BUDDY_CAUSE_FULL;
	if (!k)
		return NEURON_BUDDY_CAUSE_FRAGMENTED;
	if (tree_top(&zone->longest) >= n || run_top(zone) >= n ||
	    find_joined(zone, n, 0, &pos, &longest))
		return NEURON_BUDDY_CAUSE_ALIGNMENT;
	return NEURON_BUDDY_CAUSE_FRAGMENTED;
}

static u64 to_granules(u64 bytes)
{
	return (bytes >> SHIFT) + !!(bytes & (NEURON_BUDDY_GRANULE - 1));
}

int neuron_buddy_alloc(struct neuron_buddy *zone, const struct neuron_buddy_request *req,
		       struct neuron_buddy_block *block, enum neuron_buddy_cause *cause)
{
	enum neuron_buddy_cause why = NEURON_BUDDY_CAUSE_NONE;
	u64 size = to_granules(req->size);
	bool exact = req->flags & NEURON_BUDDY_EXACT;
	struct place p;
	u32 n, k = 0;
	int err = 0;

	if (cause)
		*cause = why;
	if (!size || req->flags & ~NEURON_BUDDY_FLAGS || req->flags & (req->flags - 1))
		return -EINVAL;
	if (req->align > NEURON_BUDDY_GRANULE) {
		if (!is_power_of_2(req->align))
			return -EINVAL;
		/* Only address 0 is aligned to 2^31 granules and more. */
		k = min(log2_floor(req->align) - SHIFT, 31u);
	} else if (req->align && !is_power_of_2(req->align)) {
		return -EINVAL;
	}
	if (exact && (req->addr & (max_t(u64, req->align, NEURON_BUDDY_GRANULE) - 1) ||
		      to_granules(req->addr) >= zone->len ||
		      size > zone->len - to_granules(req->addr)))
		return -EINVAL;
	if (size <= zone->len && !reserve_ready(zone, NEED_EXTENTS))
		return -EAGAIN;

	n = min_t(u64, size, zone->len);
	if (size > zone->len) {
		why = NEURON_BUDDY_CAUSE_FULL;
		err = -ENOSPC;
	} else if (exact) {
		err = place_exact(zone, (u32)(req->addr >> SHIFT), n, &p);
		if (err)
			why = NEURON_BUDDY_CAUSE_BUSY;
	} else if (!place_find(zone, n, k, req->flags, &p)) {
		why = refusal(zone, n, k);
		err = -ENOSPC;
	}
	if (err)
		zone->st.failures[why]++;
	else
		place_take(zone, &p, n, exact, block);
	update_largest(zone);
	if (cause)
		*cause = why;
	return err;
}

static bool pin_covers(const struct neuron_buddy *zone, u32 start, u32 n)
{
	const struct ext *pin;

	for (pin = zone->pins; pin; pin = pin->bnext) {
		if (start < ext_end(pin) && pin->start < start + n)
			return true;
	}
	return false;
}

/* Find the live allocation that @block names. */
static int block_find(struct neuron_buddy *zone, const struct neuron_buddy_block *block,
		      struct ext **ext)
{
	u64 addr = block->addr, size = block->size;
	const struct obit *o;
	struct frame *fr;
	struct ext *e;
	u32 start, n, off;

	if (block->id != zone->id || (addr | size) & (NEURON_BUDDY_GRANULE - 1) || !size ||
	    addr >> SHIFT >= zone->len || size >> SHIFT > zone->len - (addr >> SHIFT))
		return -EINVAL;
	start = (u32)(addr >> SHIFT);
	n = (u32)(size >> SHIFT);
	e = ext_find(zone, start);
	*ext = e;
	if (e->type == EXT_RESERVED)
		return -EPERM;
	if (e->type == EXT_USED) {
		if (e->start != start)
			return -ENOENT;
		return e->len == n && e->gen == block->gen ? 0 : -ESTALE;
	}
	if (e->type != EXT_FRAME)
		return -ENOENT;

	fr = to_frame(e);
	off = start - frame_base(fr);
	if (fr->pins && pin_covers(zone, start, 1))
		return -EPERM;
	if (bit_test(fr->a, off) || !bit_test(fr->b, off))
		return -ENOENT;
	o = obit_of(zone, start);
	if (frame_block_len(fr, off) != n || !frame_check_tag(fr, off, n, block->gen) ||
	    (o->start == start && o->gen == block->gen))
		return -ESTALE;
	return 0;
}

static void obit_add(struct neuron_buddy *zone, const struct neuron_buddy_block *block)
{
	u32 start = (u32)(block->addr >> SHIFT);
	struct obit *o = obit_of(zone, start);

	o->start = start;
	o->gen = block->gen;
}

int neuron_buddy_free_batch(struct neuron_buddy *zone,
			    const struct neuron_buddy_block *const *blocks, unsigned int n,
			    u64 cleared)
{
	struct ext *e, *next;
	int err, ret = 0;
	u32 i, j;

	for (i = 0; i < n; i = j) {
		bool clear = cleared >> i & 1;
		u64 addr = blocks[i]->addr, end = addr + blocks[i]->size;

		j = i + 1;
		err = block_find(zone, blocks[i], &e);
		if (err) {
			zone->st.bad_frees++;
			ret = ret ? ret : err;
			continue;
		}
		/* What comes next in the frame goes along. */
		if (e->type == EXT_FRAME) {
			obit_add(zone, blocks[i]);
			for (; j < n && blocks[j]->addr == end &&
			       end >> SHIFT < ext_end(e) && (cleared >> j & 1) == clear; j++) {
				if (block_find(zone, blocks[j], &next))
					break;
				obit_add(zone, blocks[j]);
				end += blocks[j]->size;
			}
		}
		clean_set(zone, (u32)(addr >> SHIFT), (u32)((end - addr) >> SHIFT), clear);
		WRITE_ONCE(zone->st.used, zone->st.used - (end - addr));
		WRITE_ONCE(zone->st.free, zone->st.free + (end - addr));
		zone->st.allocs -= j - i;
		zone->st.free_calls += j - i;
		if (e->type == EXT_FRAME)
			frame_free(zone, to_frame(e),
				   (u32)(addr >> SHIFT) - frame_base(to_frame(e)),
				   (u32)((end - addr) >> SHIFT), j - i);
		else
			ext_release(zone, e);
	}
	update_largest(zone);
	return ret;
}

int neuron_buddy_free(struct neuron_buddy *zone, const struct neuron_buddy_block *block,
		      bool cleared)
{
	return neuron_buddy_free_batch(zone, &block, 1, cleared);
}

/* Enlarge a block of a frame by @more free granules behind it. */
static void frame_grow(struct neuron_buddy *zone, struct frame *fr, u32 off, u32 n,
		       u32 more, u32 gen)
{
	u32 end = off + n;
	u32 room = frame_scan(fr, end, true) - end;

	order_sub(zone, room);
	order_add(zone, room - more);
	bits_assign(fr->a, end, more, true);
	frame_put_tag(fr, off, n + more, gen);
	frame_set_run(zone, fr, frame_longest(fr));
	frame_set_edges(fr);
}

int neuron_buddy_grow(struct neuron_buddy *zone, struct neuron_buddy_block *block, u64 new_size)
{
	u64 size = to_granules(new_size);
	u32 start, n, more;
	struct ext *e, *next;
	bool cleared;
	int err;

	err = block_find(zone, block, &e);
	if (err)
		return err;
	start = (u32)(block->addr >> SHIFT);
	n = (u32)(block->size >> SHIFT);
	if (size < n)
		return -EINVAL;
	if (size == n)
		return 0;
	if (!reserve_ready(zone, NEED_EXTENTS))
		return -EAGAIN;

	if (size > zone->len - start) {
		zone->st.failures[NEURON_BUDDY_CAUSE_BUSY]++;
		return -ENOSPC;
	}
	more = (u32)size - n;
	/* A block of a frame cannot leave it. */
	if (!range_free(zone, start + n, more) ||
	    (e->type == EXT_FRAME && start + (u32)size > ext_end(e))) {
		zone->st.failures[NEURON_BUDDY_CAUSE_BUSY]++;
		return -ENOSPC;
	}
	cleared = block->cleared && clean_test(zone, start + n, more);
	if (e->type == EXT_FRAME) {
		frame_grow(zone, to_frame(e), start - frame_base(to_frame(e)), n, more,
			   block->gen);
	} else {
		struct frame *fr;

		if (range_in_frame(zone, start + n, more, &fr)) {
			frame_trim(zone, fr, true, more);
			next = e->next;
		} else {
			next = range_to_extent(zone, start + n, more);
		}
		next = ext_take(zone, next, start + n, more);
		ext_unlink(zone, next);
		e->len += more;
		ext_put(zone, next);
	}
	charge(zone, more);
	block->size = size << SHIFT;
	block->cleared = cleared;
	update_largest(zone);
	return 0;
}

int neuron_buddy_split(struct neuron_buddy *zone, struct neuron_buddy_block *block, u64 new_size,
		       struct neuron_buddy_block *tail)
{
	u64 size = to_granules(new_size);
	struct ext *e, *rest;
	u32 n;
	int err;

	err = block_find(zone, block, &e);
	if (err)
		return err;
	n = (u32)(block->size >> SHIFT);
	if (!size || size >= n)
		return -EINVAL;
	if (e->type == EXT_FRAME)
		return -ENOSPC;
	if (!reserve_ready(zone, NEED_EXTENTS))
		return -EAGAIN;

	rest = ext_get(zone);
	rest->type = EXT_USED;
	rest->start = e->start + (u32)size;
	rest->len = n - (u32)size;
	rest->gen = gen_next(zone, rest->start);
	e->len = (u32)size;
	ext_link_after(zone, e, rest);
	zone->st.allocs++;
	zone->st.alloc_calls++;
	block->size = size << SHIFT;
	fill_block(zone, tail, rest->start, rest->len, rest->gen);
	tail->cleared = 0;
	return 0;
}

/* Reserve the free granules of [lo, hi) of a frame. One extent per free run. */
static u32 frame_reserve(struct neuron_buddy *zone, struct frame *fr, u32 lo, u32 hi)
{
	u32 done = 0, end;

	for (lo = frame_scan(fr, lo, false); lo < hi; lo = frame_scan(fr, end, false)) {
		struct ext *pin = ext_get(zone);
		struct fit fit;

		end = min(frame_scan(fr, lo, true), hi);
		frame_fit_at(fr, lo, end - lo, &fit);
		fit.rest = fr->run;
		frame_take(zone, fr, &fit, end - lo, 0);
		fr->pins = 1;
		pin->type = EXT_PIN;
		pin->start = frame_base(fr) + lo;
		pin->len = end - lo;
		pin->bnext = zone->pins;
		zone->pins = pin;
		done += end - lo;
	}
	frame_set_run(zone, fr, frame_longest(fr));
	return done;
}

/*
 * Count the extents that reserving [lo, hi) of a frame takes. False if something
 * in there is allocated.
 */
static bool frame_reservable(const struct neuron_buddy *zone, const struct frame *fr,
			     u32 lo, u32 hi, u32 *need)
{
	u32 base = frame_base(fr);

	while (lo < hi) {
		u32 next = min(frame_scan(fr, lo, true), hi);

		if (next > lo)
			++*need;
		for (lo = next; lo < hi; lo++) {
			if (!bit_test(fr->a, lo) && !bit_test(fr->b, lo))
				break;
			if (!pin_covers(zone, base + lo, 1))
				return false;
		}
	}
	return true;
}

int neuron_buddy_reserve(struct neuron_buddy *zone, u64 addr, u64 size)
{
	u32 start, end, need = 0, done = 0;
	struct ext *e;

	if ((addr | size) & (NEURON_BUDDY_GRANULE - 1) || !size || addr >> SHIFT >= zone->len ||
	    size >> SHIFT > zone->len - (addr >> SHIFT))
		return -EINVAL;
	start = (u32)(addr >> SHIFT);
	end = start + (u32)(size >> SHIFT);

	for (e = ext_find(zone, start); e && e->start < end; e = e->next) {
		u32 lo = max(start, e->start), hi = min(end, ext_end(e));
		bool busy = e->type == EXT_USED;

		if (e->type == EXT_FREE)
			need += 2;
		else if (e->type == EXT_FRAME)
			busy = !frame_reservable(zone, to_frame(e), lo - frame_base(to_frame(e)),
						 hi - frame_base(to_frame(e)), &need);
		if (busy) {
			zone->st.failures[NEURON_BUDDY_CAUSE_BUSY]++;
			return -EBUSY;
		}
	}
	if (!reserve_ready(zone, max(need, NEED_EXTENTS)))
		return -EAGAIN;

	for (e = ext_find(zone, start); e && e->start < end; e = e->next) {
		u32 lo = max(start, e->start), hi = min(end, ext_end(e));

		if (e->type == EXT_FREE) {
			e = ext_take(zone, e, lo, hi - lo);
			e->type = EXT_RESERVED;
			done += hi - lo;
		} else if (e->type == EXT_FRAME) {
			struct frame *fr = to_frame(e);

			done += frame_reserve(zone, fr, lo - frame_base(fr), hi - frame_base(fr));
		}
	}
	zone->st.reserved += (u64)done << SHIFT;
	WRITE_ONCE(zone->st.free, zone->st.free - ((u64)done << SHIFT));
	update_largest(zone);
	return 0;
}

void neuron_buddy_mark_clear(struct neuron_buddy *zone)
{
	/*
	 * A unit's bit speaks of its free granules only, so it may be set for
	 * all; what is allocated now says at its free what it leaves behind.
	 */
	clean_set(zone, 0, zone->frames << FRAME_ORDER, true);
}

int neuron_buddy_query(struct neuron_buddy *zone, u64 addr, struct neuron_buddy_block *out)
{
	struct frame *fr;
	struct ext *e;
	u32 granule, off;

	if (addr >> SHIFT >= zone->len)
		return -EINVAL;
	granule = (u32)(addr >> SHIFT);
	e = ext_find(zone, granule);
	if (e->type == EXT_USED) {
		fill_block(zone, out, e->start, e->len, e->gen);
		out->cleared = 0;
		return 0;
	}
	if (e->type != EXT_FRAME)
		return -ENOENT;
	fr = to_frame(e);
	off = granule - frame_base(fr);
	if (!bit_test(fr->a, off) && !bit_test(fr->b, off))
		return -ENOENT;
	if (fr->pins && pin_covers(zone, granule, 1))
		return -ENOENT;
	off = frame_block_start(fr, off);
	fill_block(zone, out, frame_base(fr) + off, frame_block_len(fr, off), 0);
	out->cleared = 0;
	return 0;
}

unsigned int neuron_buddy_walk(struct neuron_buddy *zone, u64 *pos,
			       struct neuron_buddy_range *out, unsigned int count)
{
	unsigned int i;
	u64 at = to_granules(*pos);

	for (i = 0; i < count && at < zone->len; i++) {
		struct ext *e = ext_find(zone, (u32)at);
		u32 end = ext_end(e);

		out[i].addr = at << SHIFT;
		out[i].small = e->type == EXT_FRAME;
		if (e->type == EXT_FREE) {
			out[i].state = NEURON_BUDDY_RANGE_FREE;
		} else if (e->type == EXT_USED) {
			out[i].state = NEURON_BUDDY_RANGE_USED;
		} else if (e->type == EXT_RESERVED) {
			out[i].state = NEURON_BUDDY_RANGE_RESERVED;
		} else {
			struct frame *fr = to_frame(e);
			u32 off = (u32)at - frame_base(fr);

			if (bit_test(fr->a, off) || bit_test(fr->b, off)) {
				u32 first = frame_block_start(fr, off);

				end = frame_base(fr) + first + frame_block_len(fr, first);
				out[i].state = fr->pins && pin_covers(zone, (u32)at, 1) ?
					       NEURON_BUDDY_RANGE_RESERVED :
					       NEURON_BUDDY_RANGE_USED;
			} else {
				end = min(frame_base(fr) + frame_scan(fr, off, true), end);
				out[i].state = NEURON_BUDDY_RANGE_FREE;
			}
		}
		out[i].size = (end - at) << SHIFT;
		at = end;
	}
	*pos = at << SHIFT;
	return i;
}

/* --- counters -------------------------------------------------------------------- */

void neuron_buddy_stats(const struct neuron_buddy *zone, struct neuron_buddy_stats *stats)
{
	*stats = zone->st;
	stats->largest = (u64)max(zone->largest_ext, zone->largest_run) << SHIFT;
}

u64 neuron_buddy_largest(struct neuron_buddy *zone, u64 align)
{
	u64 ext = READ_ONCE(zone->largest_ext), run = READ_ONCE(zone->largest_run);
	u64 whole = (u64)READ_ONCE(zone->largest_whole) << FRAME_ORDER;
	u64 mask, best;

	if (!is_power_of_2(align))
		return 0;
	align = max_t(u64, align >> SHIFT, 1);
	mask = align - 1;
	best = max(ext > mask ? ext - mask : 0, run > mask ? run - mask : 0);
	if (align <= FRAME_LEN)
		best = max(best, whole);
	else
		best = max(best, whole > align - FRAME_LEN ? whole - (align - FRAME_LEN) : 0);
	return best << SHIFT;
}

u64 neuron_buddy_total(const struct neuron_buddy *zone)
{
	return (u64)zone->len << SHIFT;
}

u64 neuron_buddy_used(const struct neuron_buddy *zone)
{
	return READ_ONCE(zone->st.used);
}

u64 neuron_buddy_free_bytes(const struct neuron_buddy *zone)
{
	return READ_ONCE(zone->st.free);
}

/* --- life of a zone ---------------------------------------------------------------- */

static int tree_create(struct neuron_buddy *zone, struct tree *t)
{
	u32 count = zone->frames, l, total = 0;
	u32 *mem;

	/* Every level is padded to whole groups, which stay 0. */
	for (l = 0; ; l++) {
		t->count[l] = count;
		total += (count + TREE_FAN - 1) & ~(TREE_FAN - 1);
		if (count == 1)
			break;
		count = (count + TREE_FAN - 1) >> TREE_SHIFT;
	}
	t->levels = l + 1;
	mem = kvcalloc(total, sizeof(*mem), GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	zone->st.metadata += total * sizeof(*mem);
	for (l = 0; l < t->levels; l++) {
		t->level[l] = mem;
		mem += (t->count[l] + TREE_FAN - 1) & ~(TREE_FAN - 1);
	}
	return 0;
}

static void *meta_alloc(struct neuron_buddy *zone, u32 n, u32 size)
{
	zone->st.metadata += (u64)n * size;
	return kvcalloc(n, size, GFP_KERNEL);
}

int neuron_buddy_create(struct neuron_buddy **out, u64 size)
{
	static u32 last_id;
	struct neuron_buddy *zone;
	u32 words, obits, i;
	struct ext *e;

	if (!size || size & (NEURON_BUDDY_GRANULE - 1) || size > NEURON_BUDDY_MAX_SIZE)
		return -EINVAL;
	zone = kvzalloc(sizeof(*zone), GFP_KERNEL);
	if (!zone)
		return -ENOMEM;
	zone->st.metadata = sizeof(*zone);
	zone->len = (u32)(size >> SHIFT);
	zone->frames = (u32)(((size >> SHIFT) + FRAME_LEN - 1) >> FRAME_ORDER);
	/* Only to tell zones apart; a tie between racing creators is harmless. */
	zone->id = READ_ONCE(last_id) + 1;
	WRITE_ONCE(last_id, zone->id);
	zone->want = NEED_EXTENTS;
	words = (zone->frames + 63) / 64;
	for (obits = OBITS_MIN; obits < OBITS_MAX && obits < zone->len >> 10; )
		obits *= 2;
	zone->obit_shift = 32 - log2_floor(obits);

	zone->map = meta_alloc(zone, zone->frames, sizeof(*zone->map));
	zone->starts = meta_alloc(zone, words, sizeof(u64));
	zone->clean = meta_alloc(zone, zone->frames, sizeof(u64));
	zone->clean_frame = meta_alloc(zone, words, sizeof(u64));
	zone->clean_mixed = meta_alloc(zone, words, sizeof(u64));
	zone->obits = meta_alloc(zone, obits, sizeof(*zone->obits));
	if (!zone->map || !zone->starts || !zone->clean || !zone->clean_frame ||
	    !zone->clean_mixed || !zone->obits || tree_create(zone, &zone->longest) ||
	    tree_create(zone, &zone->whole) || neuron_buddy_prepare(zone)) {
		neuron_buddy_destroy(zone);
		return -ENOMEM;
	}
	refill(zone, NEED_EXTENTS);
	for (i = 0; i < obits; i++)
		zone->obits[i].start = NONE;

	e = ext_get(zone);
	e->start = 0;
	e->len = zone->len;
	e->prev = NULL;
	e->next = NULL;
	zone->first = e;
	map_add(zone, e);
	bin_add(zone, e);
	trees_update(zone, 0);
	zone->st.total = size;
	zone->st.free = size;
	update_largest(zone);
	*out = zone;
	return 0;
}

void neuron_buddy_destroy(struct neuron_buddy *zone)
{
	struct page_head *page;

	if (!zone)
		return;
	refill(zone, 0);
	while (zone->pages) {
		page = zone->pages;
		zone->pages = page->all;
		free_page((unsigned long)page);
	}
	kvfree(zone->whole.level[0]);
	kvfree(zone->longest.level[0]);
	kvfree(zone->obits);
	kvfree(zone->clean_mixed);
	kvfree(zone->clean_frame);
	kvfree(zone->clean);
	kvfree(zone->starts);
	kvfree(zone->map);
	kvfree(zone);
}

/* --- self-check ---------------------------------------------------------------------- */

/* A violated rule is named by its line. */
struct tally {
	u64 order_free[NEURON_BUDDY_ORDERS];
	u64 free;
	u64 used;
	u64 reserved;
	u64 blocks;
	u64 pins;
	u64 frames;
	u64 free_exts;
};

static void tally_free(struct tally *sum, u32 n)
{
	sum->free += (u64)n << SHIFT;
	sum->order_free[log2_floor(n)] += (u64)n << SHIFT;
}

static int check_frame(const struct neuron_buddy *zone, const struct frame *fr,
		       struct tally *sum)
{
	u32 lo = frame_lo(fr), hi = frame_hi(fr), off, end, live = 0, longest = 0;
	const struct ext *x;

	if (!fr->e.embedded)
		return __LINE__;
	if (hi > FRAME_LEN || !fr->live)
		return __LINE__;
	for (off = 0; off < FRAME_BITS; off++) {
		if (off < lo || off >= hi)
			if (bit_test(fr->a, off) || !bit_test(fr->b, off))
				return __LINE__;
	}
	for (off = lo; off < hi; off = end) {
		if (!bit_test(fr->a, off) && !bit_test(fr->b, off)) {
			end = frame_scan(fr, off, true);
			tally_free(sum, end - off);
			longest = max(longest, end - off);
			continue;
		}
		/* A block begins with its first granule. */
		if (bit_test(fr->a, off))
			return __LINE__;
		end = off + frame_block_len(fr, off);
		live++;
		if (fr->pins && pin_covers(zone, frame_base(fr) + off, 1)) {
			sum->reserved += (u64)(end - off) << SHIFT;
			sum->pins++;
		} else {
			sum->used += (u64)(end - off) << SHIFT;
			sum->blocks++;
		}
	}
	if (live != fr->live)
		return __LINE__;
	if (longest != fr->run)
		return __LINE__;
	if (fr->head != min(frame_scan(fr, lo, true), hi) - lo)
		return __LINE__;
	if (fr->tail != min(frame_free_below(fr, hi), fr->e.len))
		return __LINE__;
	for (x = zone->run[fr->run]; x && x != &fr->e; x = x->bnext)
		if (x->bnext && x->bnext->bprev != x)
			return __LINE__;
	if (!x)
		return __LINE__;
	return 0;
}

static int check_free(const struct neuron_buddy *zone, const struct ext *e, struct tally *sum)
{
	const struct ext *x;
	u32 row, col;

	if (e->next && e->next->type == EXT_FREE)
		return __LINE__;
	bin_of(e->len, &row, &col);
	for (x = zone->bin[row][col]; x && x != e; x = x->bnext)
		if (x->bnext && x->bnext->bprev != x)
			return __LINE__;
	if (!x)
		return __LINE__;
	tally_free(sum, e->len);
	sum->free_exts++;
	return 0;
}

/* Bins hold free extents of their size only, as many as there are, and the bits agree. */
static int check_bins(const struct neuron_buddy *zone, u64 free_exts)
{
	u32 row, col, r, c;
	const struct ext *e;

	for (row = 0; row < BIN_ROWS; row++) {
		if (!zone->bin_cols[row] != !(zone->bin_rows >> row & 1))
			return __LINE__;
		for (col = 0; col < BIN_COLS; col++) {
			if (!zone->bin[row][col] != !(zone->bin_cols[row] >> col & 1))
				return __LINE__;
			for (e = zone->bin[row][col]; e; e = e->bnext) {
				if (e->type != EXT_FREE || !free_exts)
					return __LINE__;
				bin_of(e->len, &r, &c);
				if (r != row || c != col)
					return __LINE__;
				free_exts--;
			}
		}
	}
	return 0;
}

static int check_runs(const struct neuron_buddy *zone, u64 frames)
{
	const struct ext *e;
	u32 run;

	for (run = 0; run <= FRAME_LEN; run++) {
		if (!zone->run[run] != !bit_test(zone->run_map, run))
			return __LINE__;
		for (e = zone->run[run]; e; e = e->bnext) {
			if (!frames || e->type != EXT_FRAME || to_frame(e)->run != run)
				return __LINE__;
			frames--;
		}
	}
	return 0;
}

static int check_trees(const struct neuron_buddy *zone, const struct tree *t, bool whole)
{
	u32 f, l, i, best, c;

	for (f = 0; f < zone->frames; f++) {
		const struct ext *e;

		best = 0;
		if (!zone->map[f] != !bit_test(zone->starts, f))
			return __LINE__;
		for (e = zone->map[f]; e && frame_of(e->start) == f; e = e->next) {
			if (e == zone->map[f] && e->prev && frame_of(e->prev->start) == f)
				return __LINE__;
			if (e->type == EXT_FREE)
				best = max(best, whole ? ext_whole(e) : e->len);
		}
		if (t->level[0][f] != best || (whole && best && f > zone->whole_end))
			return __LINE__;
	}
	for (l = 1; l < t->levels; l++) {
		for (i = 0; i < t->count[l]; i++) {
			best = 0;
			for (c = 0; c < TREE_FAN; c++)
				best = max(best, t->level[l - 1][i * TREE_FAN + c]);
			if (t->level[l][i] != best)
				return __LINE__;
		}
	}
	return 0;
}

static int check_pools(const struct neuron_buddy *zone)
{
	const struct ext *e;
	u32 n = 0;

	for (e = zone->pool; e; e = e->bnext, n++)
		if (e->type != EXT_POOL || e->embedded || n >= zone->pool_len)
			return __LINE__;
	if (n != zone->pool_len)
		return __LINE__;
	n = 0;
	for (e = (const struct ext *)zone->frame_pool; e; e = e->bnext, n++)
		if (e->type != EXT_POOL || !e->embedded || n >= zone->frame_pool_len)
			return __LINE__;
	if (n != zone->frame_pool_len)
		return __LINE__;
	return 0;
}

int neuron_buddy_check(struct neuron_buddy *zone)
{
	struct tally sum = { };
	const struct ext *e;
	u32 at = 0, o;
	int err = 0;

	for (e = zone->first; e; e = e->next) {
		if (e->start != at || !e->len || e->len > zone->len - at)
			return __LINE__;
		if (e->next && e->next->prev != e)
			return __LINE__;
		if (!zone->map[frame_of(e->start)])
			return __LINE__;
		at += e->len;
		if (e->type == EXT_FREE) {
			err = check_free(zone, e, &sum);
		} else if (e->type == EXT_FRAME) {
			err = check_frame(zone, to_frame(e), &sum);
			sum.frames++;
		} else if (e->type == EXT_USED) {
			sum.used += (u64)e->len << SHIFT;
			sum.blocks++;
		} else {
			if (e->type != EXT_RESERVED)
				return __LINE__;
			sum.reserved += (u64)e->len << SHIFT;
		}
		if (err)
			return err;
	}
	if (at != zone->len)
		return __LINE__;
	if (zone->first->prev)
		return __LINE__;
	for (e = zone->pins; e; e = e->bnext)
		if (e->type != EXT_PIN || !sum.pins--)
			return __LINE__;
	if (sum.pins)
		return __LINE__;
	if (sum.free != zone->st.free)
		return __LINE__;
	if (sum.used != zone->st.used || sum.used > zone->st.high_water)
		return __LINE__;
	if (sum.reserved != zone->st.reserved)
		return __LINE__;
	if (sum.blocks != zone->st.allocs || sum.frames != zone->st.frames)
		return __LINE__;
	if (zone->st.total != sum.free + sum.used + sum.reserved)
		return __LINE__;
	for (o = 0; o < NEURON_BUDDY_ORDERS; o++)
		if (sum.order_free[o] != zone->st.order_free[o])
			return __LINE__;
	err = check_bins(zone, sum.free_exts);
	if (!err)
		err = check_runs(zone, sum.frames);
	if (!err)
		err = check_trees(zone, &zone->longest, false);
	if (!err)
		err = check_trees(zone, &zone->whole, true);
	if (!err)
		err = check_pools(zone);
	return err;
}
