// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which allocations to move, and where to, so that a request fits: a function of a picture of
 * the memory. It moves nothing, and compiles on the host like the allocator.
 *
 * A window is a place for the request whose allocations can all be moved. Of all windows the
 * one is taken that needs the fewest bytes to be copied, and whose allocations find a hole
 * outside of it: the longest first, each in the tightest hole. So nothing moves twice, no place
 * overlaps the old one, and the memory is in order after every single move. If no window works,
 * usually because something long is in the way everywhere, a plan for the longest run that can
 * be had brings the next one nearer.
 */
#include "compact.h"

#ifdef __KERNEL__
#include <linux/mm.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#define interrupted()			signal_pending(current)
#else
#define cond_resched()			do { } while (0)
#define interrupted()			false
#define sort(base, n, size, cmp, swap)	((void)(swap), qsort(base, n, size, cmp))
#endif

#define SMALL	(512u << 10 >> NEURON_BUDDY_GRANULE_SHIFT)

/* Ranges of a window: a plan takes time with the square of their number. */
#define WINDOW_RANGES	16384u

/* Attempts to come near to a request that no plan makes fit. */
#define STEPS	8

/**
 * neuron_compact_new() - make an empty picture
 * @room: ranges that it has room for
 *
 * Context: may sleep.
 * Return: to be freed with neuron_compact_free(); NULL without memory.
 */
struct neuron_compact *neuron_compact_new(u32 room)
{
	struct neuron_compact *c = kvzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);

	if (!c)
		return NULL;
	c->room = room;
	c->range = kvcalloc(room, sizeof(*c->range), GFP_KERNEL_ACCOUNT);
	c->move = kvcalloc(room, sizeof(*c->move), GFP_KERNEL_ACCOUNT);
	c->hole = kvcalloc(2 * (size_t)room + 2, sizeof(*c->hole), GFP_KERNEL_ACCOUNT);
	if (c->range && c->move && c->hole)
		return c;
	neuron_compact_free(c);
	return NULL;
}

/**
 * neuron_compact_free() - free a picture
 * @c: may be NULL
 *
 * Context: may sleep.
 */
void neuron_compact_free(struct neuron_compact *c)
{
	if (!c)
		return;
	kvfree(c->range);
	kvfree(c->move);
	kvfree(c->hole);
	kvfree(c);
}

/**
 * neuron_compact_clear() - begin a new picture
 * @c: the picture
 * @budget: granules to copy, at most
 *
 * Context: any.
 */
void neuron_compact_clear(struct neuron_compact *c, u32 budget)
{
	c->nr = 0;
	c->free = 0;
	c->budget = budget;
}

/**
 * neuron_compact_add() - add what follows by address
 * @c: the picture
 * @len: granules, not 0
 * @state: what it is
 * @align: movable: its place is a multiple of 2^align granules
 *
 * Without room, this and all that follows is one range that does not move.
 *
 * Context: any.
 */
void neuron_compact_add(struct neuron_compact *c, u32 len, enum neuron_compact_state state,
			u8 align)
{
	struct neuron_compact_range *last = c->nr ? &c->range[c->nr - 1] : NULL;

	if (c->nr == c->room || (last && last->state == state && state != NEURON_COMPACT_MOVABLE)) {
		if (last->state != state || state == NEURON_COMPACT_MOVABLE)
			last->state = NEURON_COMPACT_FIXED;
		last->len += len;
		return;
	}
	c->range[c->nr++] = (struct neuron_compact_range){
		.start = last ? last->start + last->len : 0,
		.len = len,
		.state = state,
		.align = align,
	};
}

static u32 range_end(const struct neuron_compact_range *r)
{
	return r->start + r->len;
}

static u32 align_up(u32 x, u8 align)
{
	u32 mask = (1u << align) - 1;

	return (x + mask) & ~mask;
}

/* Bytes of movable ranges below each range, and the next fixed one: for neuron_window_add(). */
static void neuron_compact_index(struct neuron_compact *c)
{
	u32 i, fixed = c->nr, used = 0;

	for (i = c->nr; i--;) {
		if (c->range[i].state == NEURON_COMPACT_FIXED)
			fixed = i;
		c->range[i].fixed = fixed;
	}
	c->free = 0;
	for (i = 0; i < c->nr; i++) {
		c->range[i].used = used;
		if (c->range[i].state == NEURON_COMPACT_MOVABLE)
			used += c->range[i].len;
		else if (c->range[i].state == NEURON_COMPACT_FREE)
			c->free += c->range[i].len;
	}
}

/**
 * neuron_compact_largest() - the longest free run
 * @c: the picture
 * @align: it begins at a multiple of 2^align granules
 *
 * Context: any.
 * Return: granules.
 */
u32 neuron_compact_largest(const struct neuron_compact *c, u8 align)
{
	u32 i, best = 0;

	for (i = 0; i < c->nr; i++) {
		const struct neuron_compact_range *r = &c->range[i];
		u32 lo = align_up(r->start, align);

		if (r->state == NEURON_COMPACT_FREE && lo < range_end(r))
			best = max(best, range_end(r) - lo);
	}
	return best;
}

/* The range that contains a granule. */
static u32 neuron_compact_at(const struct neuron_compact *c, u32 granule)
{
	u32 lo = 0, hi = c->nr - 1;

	while (lo < hi) {
		u32 mid = (lo + hi + 1) / 2;

		if (c->range[mid].start <= granule)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/* Remember a window if it is one of the cheapest. */
static void neuron_window_add(struct neuron_compact *c, u32 start, u32 want)
{
	u32 end = range_end(&c->range[c->nr - 1]), first, last, cost, i;
	struct neuron_compact_window *w = c->window;

	if (start >= end || end - start < want)
		return;
	first = neuron_compact_at(c, start);
	last = neuron_compact_at(c, start + want - 1);
	if (c->range[first].fixed <= last || last - first >= WINDOW_RANGES)
		return;
	cost = c->range[last].used - c->range[first].used;
	if (c->range[last].state == NEURON_COMPACT_MOVABLE)
		cost += c->range[last].len;
	if (cost > c->budget)
		return;
	i = c->nr_windows;
	if (i == NEURON_COMPACT_WINDOWS) {
		if (w[i - 1].cost <= cost)
			return;
		i--;
	}
	for (; i && w[i - 1].cost > cost; i--)
		;
	/* There is one like it. */
	if (i && w[i - 1].start == start)
		return;
	c->nr_windows = min(c->nr_windows + 1, (u32)NEURON_COMPACT_WINDOWS);
	memmove(&w[i + 1], &w[i], (c->nr_windows - 1 - i) * sizeof(*w));
	w[i] = (struct neuron_compact_window){
		.start = start,
		.cost = cost,
		.first = first,
		.last = last,
	};
}

/*
 * The best windows begin where something ends that stays, or end where something begins that
 * stays.
 */
static void neuron_windows_find(struct neuron_compact *c, u32 want, u8 align)
{
	u32 i;

	c->nr_windows = 0;
	for (i = 0; i < c->nr; i++) {
		const struct neuron_compact_range *r = &c->range[i];

		if (r->state == NEURON_COMPACT_FIXED)
			continue;
		neuron_window_add(c, align_up(r->start, align), want);
		if (range_end(r) >= want)
			neuron_window_add(c, (range_end(r) - want) & ~((1u << align) - 1), want);
		if (!(i & 1023))
			cond_resched();
	}
}

static int neuron_hole_cmp(const void *a, const void *b)
{
	const struct neuron_compact_hole *x = a, *y = b;

	return x->len != y->len ? (x->len < y->len ? -1 : 1) :
	       x->start < y->start ? -1 : x->start > y->start;
}

/* The longest first; of one length in the order of addresses. */
static int neuron_move_cmp(const void *a, const void *b)
{
	const struct neuron_compact_move *x = a, *y = b;

	return x->len != y->len ? (x->len > y->len ? -1 : 1) :
	       x->from < y->from ? -1 : x->from > y->from;
}

static void neuron_hole_push(struct neuron_compact *c, u32 start, u32 end)
{
	if (start < end)
		c->hole[c->nr_holes++] = (struct neuron_compact_hole){ end - start, start };
}

/* The first of @hi holes that is longer, or as long and not below @start. */
static u32 neuron_hole_above(const struct neuron_compact *c, u32 hi, u32 len, u32 start)
{
	const struct neuron_compact_hole key = { len, start };
	u32 lo = 0;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (neuron_hole_cmp(&c->hole[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Hole number @i gets shorter, or another one appears (@i = nr_holes). */
static void neuron_hole_set(struct neuron_compact *c, u32 i, u32 start, u32 len)
{
	u32 to = neuron_hole_above(c, i, len, start);

	memmove(&c->hole[to + 1], &c->hole[to], (i - to) * sizeof(c->hole[0]));
	c->hole[to] = (struct neuron_compact_hole){ len, start };
}

/* Place an allocation in the tightest hole: low in it, or high if it is small. */
static bool neuron_move_place(struct neuron_compact *c, struct neuron_compact_move *m)
{
	u32 mask = (1u << m->align) - 1, i, lo = 0, end = 0;

	for (i = neuron_hole_above(c, c->nr_holes, m->len, 0); i < c->nr_holes; i++) {
		lo = align_up(c->hole[i].start, m->align);
		end = c->hole[i].start + c->hole[i].len;
		if (lo < end && end - lo >= m->len)
			break;
	}
	if (i == c->nr_holes)
		return false;
	m->to = m->len <= SMALL ? (end - m->len) & ~mask : lo;
	lo = c->hole[i].start;
	/* What is left above it, then what is left below it, may be nothing. */
	neuron_hole_set(c, i, m->to + m->len, end - m->to - m->len);
	if (m->to > lo)
		neuron_hole_set(c, c->nr_holes++, lo, m->to - lo);
	return true;
}

/* Make a plan for a window. */
static bool neuron_window_plan(struct neuron_compact *c, const struct neuron_compact_window *w,
			       u32 want)
{
	u32 i, end = w->start + want;

	c->nr_moves = 0;
	for (i = w->first; i <= w->last; i++)
		if (c->range[i].state == NEURON_COMPACT_MOVABLE)
			c->move[c->nr_moves++] = (struct neuron_compact_move){
				.from = c->range[i].start,
				.len = c->range[i].len,
				.align = c->range[i].align,
			};
	sort(c->move, c->nr_moves, sizeof(c->move[0]), neuron_move_cmp, NULL);

	c->nr_holes = 0;
	for (i = 0; i < c->nr; i++) {
		const struct neuron_compact_range *r = &c->range[i];

		if (r->state != NEURON_COMPACT_FREE)
			continue;
		neuron_hole_push(c, r->start, min(range_end(r), w->start));
		neuron_hole_push(c, max(r->start, end), range_end(r));
	}
	sort(c->hole, c->nr_holes, sizeof(c->hole[0]), neuron_hole_cmp, NULL);
	for (i = 0; i < c->nr_moves; i++) {
		if (!neuron_move_place(c, &c->move[i]))
			return false;
		cond_resched();
	}
	c->cost = w->cost;
	return true;
}

static bool neuron_compact_try(struct neuron_compact *c, u32 want, u8 align)
{
	u32 i;

	if (want > c->free)
		return false;
	neuron_windows_find(c, want, align);
	for (i = 0; i < c->nr_windows && !interrupted(); i++) {
		if (neuron_window_plan(c, &c->window[i], want))
			return true;
		cond_resched();
	}
	return false;
}

/**
 * neuron_compact_plan() - what to move next
 * @c: the picture, complete; the plan is in @c->move
 * @want: granules of the request; 0: as long a run as possible
 * @align: its place is a multiple of 2^align granules
 *
 * The plan makes room for the request or, if that cannot be had in one go, a longer run than
 * there is. After it, the caller makes a new picture and asks again.
 *
 * Context: may sleep.
 * Return: number of moves; 0: there is room already, or nothing helps.
 */
u32 neuron_compact_plan(struct neuron_compact *c, u32 want, u8 align)
{
	u32 lo, hi, mid, best = 0, i;

	c->nr_moves = 0;
	if (!c->nr)
		return 0;
	neuron_compact_index(c);
	lo = neuron_compact_largest(c, align);
	hi = want ?: c->free;
	if (hi <= lo || hi > c->free)
		return 0;
	if (neuron_compact_try(c, hi, align))
		return c->nr_moves;
	for (i = 0; i < STEPS && hi - lo > 1; i++) {
		mid = lo + (hi - lo) / 2;
		if (neuron_compact_try(c, mid, align)) {
			best = mid;
			lo = mid;
		} else {
			hi = mid;
		}
	}
	c->nr_moves = 0;
	if (best)
		neuron_compact_try(c, best, align);
	return c->nr_moves;
}
