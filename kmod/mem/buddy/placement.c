// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choosing a place.
 */
#include "bits.h"
#include "extents.h"
#include "frames.h"
#include "placement.h"
#include "sizes.h"
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
 * FRAME_LEN whole frames; for any other request the trees only know lengths.
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
		for (e = zone->map[f]; e && cell_of(e->start) == f; e = e->next) {
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

	for (f = tree_prev(t, zone->cells, need); f != NONE; f = tree_prev(t, f, need)) {
		for (e = zone->map[f]; e && cell_of(e->start) == f; e = e->next) {
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

/*
 * The policy. A request that is small in this zone goes to the top, out of the way. Any
 * other takes the tightest extent if that suits it. If it does not, the rest should stay
 * useful: take the tightest extent that leaves room for more than small requests.
 */
static struct ext *find_extent(struct neuron_buddy *zone, u32 n, u32 k, u32 flags, u32 *pos)
{
	struct ext *e, *x;
	u32 cut, p;

	if (flags & NEURON_BUDDY_HIGH)
		return find_highest(zone, n, k, pos);
	if (flags & NEURON_BUDDY_LOW)
		return find_lowest(zone, n, k, pos);
	cut = sizes_cut(zone);
	if (n < cut)
		return find_highest(zone, n, k, pos);
	e = find_tightest(zone, n, k, pos);
	if (!e || e->len <= SUITS(n))
		return e;
	x = cut <= zone->len - n ? find_tightest(zone, n + cut, k, &p) : NULL;
	if (!x)
		return e;
	*pos = p;
	return x;
}

/* A frame with room for @n granules aligned to 2^k; examines at most @probes. */
static __neuron_hot struct frame *find_frame(struct neuron_buddy *zone, u32 n, u32 k,
					     u32 probes, struct fit *fit)
{
	u32 sure = n + (1u << k) - 1;
	u32 run;

	for (run = run_next(zone, n); run != NONE; run = run_next(zone, run + 1)) {
		struct ext *e;

		/* From here on every frame fits. */
		if (run >= sure)
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
		probes = 0;
		run = max(run, sure - 1);
	}
	return NULL;
}

/* The length of a frame for blocks of @n granules aligned to 2^k, which fill it. */
static u32 frame_len(u32 n, u32 k)
{
	u32 stride = ((n - 1) | ((1u << k) - 1)) + 1;

	return FRAME_LEN / stride * stride;
}

/* Take a new frame: from the top, or the bottom if asked for. */
static struct frame *new_frame(struct neuron_buddy *zone, u32 n, u32 k, u32 flags)
{
	u32 len, pos;
	struct ext *e;

	if (k > FRAME_ORDER)
		return NULL;
	len = frame_len(n, k);
	if (flags & NEURON_BUDDY_LOW)
		e = find_lowest(zone, len, k, &pos);
	else
		e = find_highest(zone, len, k, &pos);
	return e ? frame_create(zone, ext_take(zone, e, pos, len)) : NULL;
}

/* A place in the run that belongs to @e and crosses a border of a frame. */
static bool joined_fits(const struct ext *e, u32 n, u32 mask, u32 *pos)
{
	u32 len = ext_joined(e), lo, p;

	if (len < n)
		return false;
	lo = e->start - (e->prev ? ext_tail(e->prev) : 0);
	p = (lo + mask) & ~mask;
	if (p - lo > len - n)
		return false;
	*pos = p;
	return true;
}

/* Search the runs that cross a border of a frame; the result is [*pos, *pos + n). */
static bool find_joined(struct neuron_buddy *zone, u32 n, u32 k, u32 *pos)
{
	u32 mask = (1u << k) - 1, probes = mask < n ? NONE : PROBE_JOINED, need = n, f;
	const struct ext *e;

	for (f = tree_next(&zone->joined, 0, n); f != NONE;
	     f = tree_next(&zone->joined, f + 1, need)) {
		for (e = zone->map[f]; e && cell_of(e->start) == f; e = e->next) {
			if (joined_fits(e, n, mask, pos))
				return true;
		}
		/* Out of probes: go on where success is certain. */
		if (!--probes)
			need = n + mask;
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

/* Would a new frame for this request be like the empty one?  Else give that back. */
void place_settle(struct neuron_buddy *zone, u32 n, u32 k, u32 flags)
{
	const struct frame *fr = zone->empty;

	if (fr && (n > SMALL_MAX || k > FRAME_ORDER || flags & ~NEURON_BUDDY_HIGH ||
		   fr->e.len != frame_len(n, k) || fr->e.start & ((1u << k) - 1)))
		frame_settle(zone);
}

/* The free range [start, start + n), in one frame or in an extent that is made of it. */
static void place_at(struct neuron_buddy *zone, u32 start, u32 n, struct place *p)
{
	p->fr = NULL;
	p->pos = start;
	if (range_in_frame(zone, start, n, &p->fr)) {
		frame_fit_at(p->fr, start - frame_base(p->fr), n, &p->fit);
		p->fit.rest = NONE;
	} else {
		p->e = range_to_extent(zone, start, n);
	}
}

/* What no index tells: runs in frames, larger or badly aligned, and over the frames' edges. */
static noinline bool place_search(struct neuron_buddy *zone, u32 n, u32 k, struct place *p)
{
	zone->st.slow_calls++;
	/* A new frame would be like the empty one, whose edges are old ones. */
	if (zone->empty && frame_fit(zone->empty, n, k, &p->fit)) {
		p->fr = zone->empty;
		return true;
	}
	if (n <= FRAME_LEN)
		p->fr = find_frame(zone, n, k, (1u << k) > n ? PROBE_FRAMES_MAX : NONE, &p->fit);
	if (p->fr)
		return true;
	if (!find_joined(zone, n, k, &p->pos))
		return false;
	place_at(zone, p->pos, n, p);
	return true;
}

bool place_find(struct neuron_buddy *zone, u32 n, u32 k, u32 flags, struct place *p)
{
	p->fr = NULL;
	if (n <= SMALL_MAX) {
		p->fr = find_frame(zone, n, k, PROBE_FRAMES, &p->fit);
		if (!p->fr) {
			p->fr = new_frame(zone, n, k, flags);
			if (p->fr)
				p->fit = (struct fit){ .hi = p->fr->e.len,
						       .rest = p->fr->e.len - n };
		}
		if (p->fr)
			return true;
		/* Among the holes only the tightest one will do. */
		if (!(flags & NEURON_BUDDY_HIGH))
			p->e = find_tightest(zone, n, k, &p->pos);
		else
			p->e = find_highest(zone, n, k, &p->pos);
	} else {
		p->e = find_extent(zone, n, k, flags, &p->pos);
	}
	if (p->e)
		return true;
	return (u64)n << SHIFT <= zone->st.free && place_search(zone, n, k, p);
}

/* EXACT: -EBUSY unless the range is free. */
int place_exact(struct neuron_buddy *zone, u32 start, u32 n, struct place *p)
{
	if (!range_free(zone, start, n))
		return -EBUSY;
	place_at(zone, start, n, p);
	return 0;
}

/* The reason that nothing was found for @n granules. */
enum neuron_buddy_cause refusal(struct neuron_buddy *zone, u32 n, u32 k)
{
	if ((u64)n << SHIFT > zone->st.free)
		return NEURON_BUDDY_CAUSE_FULL;
	if (!k)
		return NEURON_BUDDY_CAUSE_FRAGMENTED;
	if (tree_top(&zone->longest) >= n || tree_top(&zone->joined) >= n || run_top(zone) >= n)
		return NEURON_BUDDY_CAUSE_ALIGNMENT;
	return NEURON_BUDDY_CAUSE_FRAGMENTED;
}
