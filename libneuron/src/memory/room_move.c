// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocations on paper that give way to a request (room.h), as those of the driver do when a
 * request is refused: of the windows where nothing but these is in the way, the one with the
 * fewest bytes whose allocations find holes outside, the longest first, each in the tightest.
 * If no window does, a longer run than there is may bring one nearer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "room.h"

#define WINDOWS	128u		/* the cheapest, that are tried */
#define STEPS	8u		/* attempts to come nearer */
#define PLANS	64u		/* one after the other */
#define SMALL	(512u << 10)	/* goes high into its hole */

struct window {
	uint64_t at, cost;
	size_t order;
};

/* What there is to try out: where nothing is that stays, and where moved allocations went. */
struct shift {
	struct room stretch;		/* holes and movable allocations together */
	struct room rest;		/* holes outside of the window */
	struct movable *moved;		/* all that can move; those of the window come first */
	struct window *window;
	size_t nr_windows;
	uint64_t bytes;			/* of those that moved */
};

static int by_address(const void *a, const void *b)
{
	const struct movable *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* The longest first. */
static int by_length(const void *a, const void *b)
{
	const struct movable *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) :
				      by_address(a, b);
}

static int by_cost(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost) :
				    (x->order > y->order) - (x->order < y->order);
}

static int read_stretches(const struct room *room, struct room *stretch)
{
	size_t h = 0, m = 0;
	int ret = 0;

	stretch->count = 0;
	while ((h < room->count || m < room->nr_movable) && !ret) {
		if (m == room->nr_movable ||
		    (h < room->count && room->hole[h].at < room->movable[m].at)) {
			ret = room_add(stretch, room->hole[h].at, room->hole[h].bytes);
			h++;
		} else {
			ret = room_add(stretch, room->movable[m].at, room->movable[m].bytes);
			m++;
		}
	}
	return ret;
}

/* The holes are what the movable allocations, wherever they are now, leave of the stretches. */
static int read_holes(struct room *room, const struct room *stretch)
{
	size_t m = 0;
	int ret = 0;

	if (room->nr_movable)
		qsort(room->movable, room->nr_movable, sizeof(*room->movable), by_address);
	room->count = 0;
	for (size_t i = 0; i < stretch->count && !ret; i++) {
		uint64_t at = stretch->hole[i].at, end = at + stretch->hole[i].bytes;

		for (; m < room->nr_movable && room->movable[m].at < end && !ret; m++) {
			ret = room_add(room, at, room->movable[m].at - at);
			at = room->movable[m].at + room->movable[m].bytes;
		}
		ret = ret ?: room_add(room, at, end - at);
	}
	return ret;
}

int room_follow(struct room *room, const struct room *moved)
{
	struct room stretch = { .count = 0 };
	int ret = read_stretches(room, &stretch);

	if (!ret && room->nr_movable) {
		memcpy(room->movable, moved->movable, room->nr_movable * sizeof(*room->movable));
		room->moved = moved->moved;
		ret = read_holes(room, &stretch);
	}
	room_free(&stretch);
	return ret;
}

static uint64_t longest_run(const struct room *room, uint64_t align)
{
	uint64_t best = 0;

	for (size_t i = 0; i < room->count; i++) {
		uint64_t first = round_up(room->hole[i].at, align);
		uint64_t gap = first - room->hole[i].at;

		if (room->hole[i].bytes > gap)
			best = MAX(best, room->hole[i].bytes - gap);
	}
	return best;
}

static bool overlaps(const struct movable *m, uint64_t at, uint64_t bytes)
{
	return m->at < at + bytes && at < m->at + m->bytes;
}

/* Is nothing in the way there that stays?  Then it is one more. */
static void add_window(struct shift *s, const struct room *room, const struct hole *stretch,
		       uint64_t at, uint64_t bytes)
{
	uint64_t cost = 0;

	if (at < stretch->at || at - stretch->at > stretch->bytes ||
	    stretch->bytes - (at - stretch->at) < bytes)
		return;
	for (size_t i = 0; i < room->nr_movable; i++)
		cost += overlaps(&room->movable[i], at, bytes) ? room->movable[i].bytes : 0;
	s->window[s->nr_windows] = (struct window){ at, cost, s->nr_windows };
	s->nr_windows++;
}

/* From where something begins, and up to where it ends: a hole, or what can move. */
static void find_windows(struct shift *s, const struct room *room, uint64_t bytes, uint64_t align)
{
	size_t h = 0, m = 0;

	s->nr_windows = 0;
	for (size_t i = 0; i < s->stretch.count; i++) {
		const struct hole *in = &s->stretch.hole[i];

		while ((h < room->count && room->hole[h].at - in->at < in->bytes) ||
		       (m < room->nr_movable && room->movable[m].at - in->at < in->bytes)) {
			uint64_t at, end;

			if (m == room->nr_movable ||
			    (h < room->count && room->hole[h].at < room->movable[m].at)) {
				at = room->hole[h].at;
				end = at + room->hole[h++].bytes;
			} else {
				at = room->movable[m].at;
				end = at + room->movable[m++].bytes;
			}
			add_window(s, room, in, round_up(at, align), bytes);
			if (end >= bytes)
				add_window(s, room, in, (end - bytes) / align * align, bytes);
		}
	}
	if (s->nr_windows)
		qsort(s->window, s->nr_windows, sizeof(*s->window), by_cost);
	s->nr_windows = MIN(s->nr_windows, (size_t)WINDOWS);
}

/* Do those in the window find places outside?  1, 0, -ENOMEM */
static int try_window(struct shift *s, const struct room *room, uint64_t at, uint64_t bytes)
{
	size_t n = 0, stay = room->nr_movable;
	int ret = 0;

	s->bytes = 0;
	s->rest.count = 0;
	for (size_t i = 0; i < room->nr_movable; i++)
		if (overlaps(&room->movable[i], at, bytes))
			s->moved[n++] = room->movable[i];
		else
			s->moved[--stay] = room->movable[i];
	for (size_t i = 0; i < room->count && !ret; i++) {
		const struct hole *h = &room->hole[i];
		uint64_t end = h->at + h->bytes;

		if (h->at < at)
			ret = room_add(&s->rest, h->at, MIN(end, at) - h->at);
		if (end > at + bytes && !ret)
			ret = room_add(&s->rest, MAX(h->at, at + bytes),
				       end - MAX(h->at, at + bytes));
	}
	if (n)
		qsort(s->moved, n, sizeof(*s->moved), by_length);
	for (size_t i = 0; i < n && !ret; i++) {
		struct movable *m = &s->moved[i];

		s->bytes += m->bytes;
		ret = room_take(&s->rest, m->bytes, m->align, m->bytes <= SMALL ?
				ROOM_TIGHTEST_END : ROOM_TIGHTEST, &m->at);
	}
	return ret == -ENOSPC ? 0 : ret ?: 1;
}

static int try_run(struct shift *s, const struct room *room, uint64_t bytes, uint64_t align)
{
	int ret = 0;

	find_windows(s, room, bytes, align);
	for (size_t i = 0; i < s->nr_windows && !ret; i++)
		ret = try_window(s, room, s->window[i].at, bytes);
	return ret;
}

/* Room for it or, if there is none at once, the longest run that is tried. */
static int plan(struct shift *s, const struct room *room, uint64_t bytes, uint64_t align)
{
	uint64_t low = longest_run(room, align) / host_page(), high = bytes / host_page(), best = 0;
	int ret = high <= low ? 0 : try_run(s, room, bytes, align);

	if (ret || high <= low)
		return ret;
	for (unsigned int i = 0; i < STEPS && high - low > 1 && ret >= 0; i++) {
		uint64_t middle = low + (high - low) / 2;

		ret = try_run(s, room, middle * host_page(), align);
		if (ret)
			best = low = middle;
		else
			high = middle;
	}
	return ret < 0 || !best ? MIN(ret, 0) : try_run(s, room, best * host_page(), align);
}

static uint64_t free_bytes(const struct room *room)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < room->count; i++)
		sum += room->hole[i].bytes;
	return sum;
}

int room_move(struct room *room, uint64_t bytes, uint64_t align)
{
	size_t most = 2 * room->nr_movable + room->count;
	struct shift s = { .nr_windows = 0 };
	int ret;

	if (free_bytes(room) < bytes)
		return 0;
	s.moved = calloc(room->nr_movable + 1, sizeof(*s.moved));
	s.window = calloc(2 * most + 2, sizeof(*s.window));
	ret = s.moved && s.window ? read_stretches(room, &s.stretch) : -ENOMEM;
	for (unsigned int i = 0; i < PLANS && !ret; i++) {
		int better = plan(&s, room, bytes, align);

		if (better <= 0) {
			ret = better;
			break;
		}
		memcpy(room->movable, s.moved, room->nr_movable * sizeof(*s.moved));
		room->moved += s.bytes;
		ret = read_holes(room, &s.stretch);
	}
	room_free(&s.stretch);
	room_free(&s.rest);
	free(s.moved);
	free(s.window);
	return ret;
}

int room_ask(struct room *room, uint64_t bytes, uint64_t align, enum room_fit fit, uint64_t *at)
{
	uint64_t even = align > host_page() ? align : host_page();
	int ret = room_take(room, bytes, align, fit, at);

	if (ret != -ENOSPC || !room->nr_movable || room->still ||
	    bytes > UINT64_MAX / 2 || even > UINT64_MAX / 2)
		return ret;
	return room_move(room, round_up(bytes, host_page()), even) ?:
	       room_take(room, bytes, align, fit, at);
}
