// SPDX-License-Identifier: GPL-2.0-only
/*
 * Self-check: every invariant of a zone. For tests; not part of the module.
 */
#include "bits.h"
#include "extents.h"
#include "frames.h"
#include "trees.h"

/* The line number of a check names the violated rule. */
struct tally {
	u64 order_free[NEURON_BUDDY_ORDERS];
	u64 free;
	u64 used;
	u64 reserved;
	u64 blocks;
	u64 pins;
	u64 frames;
	u64 free_exts;
	u64 extents_used;	/* granules */
};

static void tally_free(struct tally *sum, u32 n)
{
	sum->free += (u64)n << SHIFT;
	sum->order_free[log2_floor(n)] += (u64)n << SHIFT;
}

static int check_frame(const struct neuron_buddy *zone, const struct frame *fr,
		       struct tally *sum)
{
	u32 lo = frame_lo(fr), hi = frame_hi(fr), off, end, live = 0, free = 0, longest = 0;
	const struct ext *x;

	if (!fr->e.embedded)
		return __LINE__;
	if (hi > FRAME_LEN || (fr->live ? fr == zone->empty : fr != zone->empty))
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
			free += end - off;
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
	if (longest != fr->run || free != fr->free)
		return __LINE__;
	/* The edges of an empty frame are what they were before the last block was freed. */
	if (fr->live && fr->head != min(frame_scan(fr, lo, true), hi) - lo)
		return __LINE__;
	if (fr->live && fr->tail != min(frame_free_below(fr, hi), fr->e.len))
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

/* The value that the tree @t should have for @e. */
static u32 tree_value(const struct neuron_buddy *zone, const struct tree *t, const struct ext *e)
{
	if (t == &zone->joined)
		return ext_joined(e);
	if (e->type != EXT_FREE)
		return 0;
	return t == &zone->whole ? ext_whole(e) : e->len;
}

static int check_trees(const struct neuron_buddy *zone, const struct tree *t)
{
	u32 f, l, i, best, c;

	for (f = 0; f < zone->cells; f++) {
		const struct ext *e;

		best = 0;
		if (!zone->map[f] != !bit_test(zone->starts, f))
			return __LINE__;
		for (e = zone->map[f]; e && cell_of(e->start) == f; e = e->next) {
			if (e == zone->map[f] && e->prev && cell_of(e->prev->start) == f)
				return __LINE__;
			best = max(best, tree_value(zone, t, e));
		}
		if (t->level[0][f] != best)
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

static int check_sizes(const struct neuron_buddy *zone, u64 used)
{
	u64 sum = 0, below = 0;
	u32 c;

	for (c = 0; c < CLASSES; c++) {
		sum += zone->class_used[c];
		below += c < zone->cut ? zone->class_used[c] : 0;
	}
	if (sum != used || sum != zone->extents_used)
		return __LINE__;
	if (below != zone->cut_below)
		return __LINE__;
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
		if (!zone->map[cell_of(e->start)])
			return __LINE__;
		at += e->len;
		if (e->type == EXT_FREE) {
			err = check_free(zone, e, &sum);
		} else if (e->type == EXT_FRAME) {
			err = check_frame(zone, to_frame(e), &sum);
			sum.frames++;
		} else if (e->type == EXT_USED) {
			sum.used += (u64)e->len << SHIFT;
			sum.extents_used += e->len;
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
	if (zone->first->prev || (zone->empty && zone->empty->e.type != EXT_FRAME))
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
	err = check_sizes(zone, sum.extents_used);
	if (!err)
		err = check_bins(zone, sum.free_exts);
	if (!err)
		err = check_runs(zone, sum.frames);
	if (!err)
		err = check_trees(zone, &zone->longest);
	if (!err)
		err = check_trees(zone, &zone->whole);
	if (!err)
		err = check_trees(zone, &zone->joined);
	if (!err)
		err = check_pools(zone);
	return err;
}
