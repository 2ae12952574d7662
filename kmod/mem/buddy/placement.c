// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choosing a place.
 */
#include "bits.h"
#include "extents.h"
#include "frames.h"
#include "placement.h"
#include "trees.h"

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
bool range_free(struct neuron_buddy *zone, u32 start, u32 n)
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
struct ext *range_to_extent(struct neuron_buddy *zone, u32 start, u32 n)
{
	struct ext *e = ext_find(zone, start);

	if (e->type == EXT_FRAME)
		frame_trim(zone, to_frame(e), false, ext_end(e) - start);
	e = ext_find(zone, start + n - 1);
	if (e->type == EXT_FRAME)
		frame_trim(zone, to_frame(e), true, start + n - e->start);
	return ext_find(zone, start);
}

bool range_in_frame(struct neuron_buddy *zone, u32 start, u32 n, struct frame **fr)
{
	struct ext *e = ext_find(zone, start);

	if (e->type != EXT_FRAME || start + n > ext_end(e))
		return false;
	*fr = to_frame(e);
	return true;
}

bool place_find(struct neuron_buddy *zone, u32 n, u32 k, u32 flags, struct place *p)
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
int place_exact(struct neuron_buddy *zone, u32 start, u32 n, struct place *p)
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

/* Why nothing was found for @n granules. */
enum neuron_buddy_cause refusal(struct neuron_buddy *zone, u32 n, u32 k)
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

void update_largest(struct neuron_buddy *zone)
{
	WRITE_ONCE(zone->largest_ext, tree_top(&zone->longest));
	WRITE_ONCE(zone->largest_whole, tree_top(&zone->whole));
	WRITE_ONCE(zone->largest_run, run_top(zone));
}
