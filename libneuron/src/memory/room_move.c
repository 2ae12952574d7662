// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocations on paper that give way to a request (room.h), as those of the driver do when a
 * request is refused: of the windows where nothing but these is in the way, the one with the
 * fewest bytes whose allocations find holes outside, the longest first, each in the tightest.
 * If no window does, a longer run than there is may bring one nearer.
 *
 * With n allocations, looking for windows takes n steps, and trying one log n for each allocation
 * in it: holes are found by length for each alignment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "fit.h"
#include "room.h"

/* Limits of the driver (kmod/mem/compact.c, kmod/dma/move.c). */
#define WINDOWS	128u		/* the cheapest, that are tried */
#define WINDOW_RANGES 16384u	/* holes and allocations of one */
#define RANGES	(1u << 18)	/* of a memory; what lies behind them stays where it is */
#define STEPS	8u		/* attempts to come nearer */
#define PLANS	64u		/* one after the other */
#define SMALL	(512u << 10)	/* goes high into its hole */

/* Allocations that follow one another. */
struct span {
	size_t first, end;
};

struct window {
	uint64_t at, cost;
	struct span moved;		/* what is in the way */
};

/* What is where windows begin: each one no lower than the last. */
struct cursor {
	size_t stretch;
	struct span moved, holes;
};

/* The holes for allocations of one alignment, each of which is in one of two. */
struct sized {
	uint64_t align;
	struct fit fit;			/* by length */
	struct fit uneven;		/* by what the alignment leaves: too little for the last one */
	struct neuron_mem_block *block;	/* of each hole */
};

/* What there is to try out: where nothing is that stays, and where moved allocations went. */
struct shift {
	struct room *room;
	struct room stretch;		/* holes and movable allocations together */
	uint64_t end;			/* of what the driver looks at */
	uint64_t *below;		/* bytes of the movable allocations before each one */
	struct hole *hole;		/* of the room, then what is left of some; empty: taken */
	size_t nr_holes, max_holes;
	size_t *taken, nr_taken;	/* holes of the room */
	struct sized *sized;
	size_t nr_sized, max_sized;
	struct movable *moved;		/* those of the window that was tried last */
	struct span span;
	struct window window[WINDOWS];	/* the cheapest first */
	size_t nr_windows;
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

/* How many holes and movable allocations were seen, in the order of their addresses. */
struct walk {
	size_t hole, movable;
};

/* The next one; false: there is none. */
static bool next_piece(const struct room *room, struct walk *w, struct hole *piece)
{
	const struct movable *m = w->movable < room->nr_movable ? &room->movable[w->movable] : NULL;
	const struct hole *h = w->hole < room->count ? &room->hole[w->hole] : NULL;

	if (h && (!m || h->at < m->at)) {
		*piece = *h;
		w->hole++;
	} else if (m) {
		*piece = (struct hole){ m->at, m->bytes };
		w->movable++;
	}
	return h || m;
}

static int read_stretches(const struct room *room, struct room *stretch)
{
	struct walk w = { 0, 0 };
	struct hole piece;
	int ret = 0;

	stretch->count = 0;
	while (!ret && next_piece(room, &w, &piece))
		ret = room_add(stretch, piece.at, piece.bytes);
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

/* To the window at @at. */
static void advance(struct cursor *c, const struct shift *s, uint64_t at, uint64_t bytes)
{
	const struct movable *m = s->room->movable;
	const struct hole *h = s->room->hole, *stretch = s->stretch.hole;
	struct span *moved = &c->moved, *holes = &c->holes;

	while (c->stretch < s->stretch.count && stretch[c->stretch].at + stretch[c->stretch].bytes <= at)
		c->stretch++;
	while (moved->first < s->room->nr_movable && m[moved->first].at + m[moved->first].bytes <= at)
		moved->first++;
	moved->end = MAX(moved->end, moved->first);
	while (moved->end < s->room->nr_movable && m[moved->end].at < at + bytes)
		moved->end++;
	while (holes->first < s->room->count && h[holes->first].at + h[holes->first].bytes <= at)
		holes->first++;
	holes->end = MAX(holes->end, holes->first);
	while (holes->end < s->room->count && h[holes->end].at < at + bytes)
		holes->end++;
}

/* Is nothing in the way there that stays, and is it no more than the driver plans for? */
static bool is_open(const struct shift *s, const struct cursor *c, uint64_t at, uint64_t bytes)
{
	const struct hole *in = &s->stretch.hole[c->stretch];

	return c->stretch < s->stretch.count && at >= in->at && bytes <= in->bytes &&
	       at - in->at <= in->bytes - bytes && at + bytes <= s->end &&
	       c->moved.end - c->moved.first + c->holes.end - c->holes.first <= WINDOW_RANGES;
}

/* If it is one of the cheapest, and begins elsewhere than the last one that is as cheap. */
static void add_window(struct shift *s, struct cursor *c, uint64_t at, uint64_t bytes)
{
	struct window *w = s->window;
	size_t i = s->nr_windows;
	uint64_t cost;

	advance(c, s, at, bytes);
	if (!is_open(s, c, at, bytes))
		return;
	cost = s->below[c->moved.end] - s->below[c->moved.first];
	if (i == WINDOWS && w[--i].cost <= cost)
		return;
	while (i && w[i - 1].cost > cost)
		i--;
	if (i && w[i - 1].at == at)
		return;
	s->nr_windows = MIN(s->nr_windows + 1, (size_t)WINDOWS);
	memmove(&w[i + 1], &w[i], (s->nr_windows - 1 - i) * sizeof(*w));
	w[i] = (struct window){ at, cost, c->moved };
}

/* From where something begins, and up to where it ends: a hole, or what can move. */
static void find_windows(struct shift *s, uint64_t bytes, uint64_t align)
{
	struct cursor from = { .stretch = 0 }, up_to = { .stretch = 0 };
	struct walk w = { 0, 0 };
	struct hole piece;

	s->nr_windows = 0;
	while (next_piece(s->room, &w, &piece)) {
		uint64_t end = piece.at + piece.bytes;

		add_window(s, &from, round_up(piece.at, align), bytes);
		if (end >= bytes)
			add_window(s, &up_to, (end - bytes) / align * align, bytes);
	}
}

/* ---- holes outside of a window ------------------------------------------------------ */

static void list_hole(struct shift *s, size_t i)
{
	for (size_t k = 0; k < s->nr_sized; k++) {
		struct neuron_mem_block *b = &s->sized[k].block[i];

		*b = (struct neuron_mem_block){ .address = s->hole[i].at, .bytes = s->hole[i].bytes };
		fit_add(&s->sized[k].fit, b);
	}
}

static void unlist_hole(struct shift *s, size_t i)
{
	for (size_t k = 0; k < s->nr_sized; k++) {
		struct sized *z = &s->sized[k];

		fit_remove(z->block[i].bytes < s->hole[i].bytes ? &z->uneven : &z->fit, &z->block[i]);
	}
}

static void add_hole(struct shift *s, uint64_t at, uint64_t end)
{
	if (at >= end)
		return;
	s->hole[s->nr_holes] = (struct hole){ at, end - at };
	list_hole(s, s->nr_holes++);
}

static void take_hole(struct shift *s, size_t i)
{
	unlist_hole(s, i);
	s->hole[i].bytes = 0;
	if (i < s->room->count)
		s->taken[s->nr_taken++] = i;
}

/* From one to the other; @bytes: by which it is found there. */
static void relist(struct neuron_mem_block *b, struct fit *from, struct fit *to, uint64_t bytes)
{
	fit_remove(from, b);
	b->bytes = bytes;
	fit_add(to, b);
}

static void even_out(struct shift *s, struct sized *z, uint64_t bytes)
{
	struct neuron_mem_block *b;

	while ((b = fit_last(&z->uneven)) && b->bytes >= bytes)
		relist(b, &z->uneven, &z->fit, s->hole[b - z->block].bytes);
}

/* The tightest.  As each one is no longer than the last, none becomes uneven twice. */
static struct hole *find_hole(struct shift *s, struct sized *z, uint64_t bytes)
{
	struct neuron_mem_block *b;

	even_out(s, z, bytes);
	while ((b = fit_find(&z->fit, bytes))) {
		uint64_t gap = round_up(b->address, z->align) - b->address;

		if (gap <= b->bytes && b->bytes - gap >= bytes)
			return &s->hole[b - z->block];
		relist(b, &z->fit, &z->uneven, b->bytes - MIN(gap, b->bytes));
	}
	return NULL;
}

/* All are as in the room again. */
static void restore_holes(struct shift *s)
{
	while (s->nr_holes > s->room->count)
		if (s->hole[--s->nr_holes].bytes)
			unlist_hole(s, s->nr_holes);
	for (size_t k = 0; k < s->nr_sized; k++)
		even_out(s, &s->sized[k], 0);
	while (s->nr_taken) {
		size_t i = s->taken[--s->nr_taken];

		s->hole[i] = s->room->hole[i];
		list_hole(s, i);
	}
}

static struct sized *find_sized(struct shift *s, uint64_t align)
{
	size_t k = 0;

	align = MAX(align, host_page());
	while (k < s->nr_sized && s->sized[k].align != align)
		k++;
	if (k < s->nr_sized)
		return &s->sized[k];
	if (array_grow((void **)&s->sized, k, &s->max_sized, sizeof(*s->sized)))
		return NULL;
	s->sized[k] = (struct sized){
		.align = align, .block = calloc(s->max_holes, sizeof(*s->sized->block)),
	};
	s->nr_sized++;
	return s->sized[k].block ? &s->sized[k] : NULL;
}

/* ---- plans -------------------------------------------------------------------------- */

static void read_room(struct shift *s)
{
	const struct room *room = s->room;

	for (size_t i = 0; i < room->nr_movable; i++)
		s->below[i + 1] = s->below[i] + room->movable[i].bytes;
	for (size_t k = 0; k < s->nr_sized; k++) {
		memset(&s->sized[k].fit, 0, sizeof(s->sized[k].fit));
		memset(&s->sized[k].uneven, 0, sizeof(s->sized[k].uneven));
	}
	s->nr_holes = s->nr_taken = 0;
	for (size_t i = 0; i < room->count; i++)
		add_hole(s, room->hole[i].at, room->hole[i].at + room->hole[i].bytes);
}

/* The first hole that ends above @at. */
static size_t hole_above(const struct room *room, uint64_t at)
{
	size_t low = 0, high = room->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (room->hole[middle].at + room->hole[middle].bytes > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void clear_window(struct shift *s, uint64_t at, uint64_t bytes)
{
	const struct room *room = s->room;

	for (size_t i = hole_above(room, at);
	     i < room->count && room->hole[i].at < at + bytes; i++) {
		const struct hole *h = &room->hole[i];

		take_hole(s, i);
		add_hole(s, h->at, at);
		add_hole(s, at + bytes, h->at + h->bytes);
	}
}

static bool place(struct shift *s, struct movable *m)
{
	struct sized *z = find_sized(s, m->align);
	uint64_t bytes = round_up(m->bytes, host_page()), end;
	struct hole *found = find_hole(s, z, bytes), h;

	if (!found)
		return false;
	h = *found;
	end = h.at + h.bytes;
	take_hole(s, (size_t)(found - s->hole));
	m->at = m->bytes <= SMALL ? (end - bytes) / z->align * z->align : round_up(h.at, z->align);
	add_hole(s, h.at, m->at);
	add_hole(s, m->at + bytes, end);
	return true;
}

/* Do those in the window find places outside? */
static bool try_window(struct shift *s, const struct window *w, uint64_t bytes)
{
	size_t n = w->moved.end - w->moved.first;
	bool fits = true;

	restore_holes(s);
	clear_window(s, w->at, bytes);
	s->span = w->moved;
	if (n) {
		memcpy(s->moved, s->room->movable + w->moved.first, n * sizeof(*s->moved));
		qsort(s->moved, n, sizeof(*s->moved), by_length);
	}
	for (size_t i = 0; i < n && fits; i++)
		fits = place(s, &s->moved[i]);
	return fits;
}

static bool try_run(struct shift *s, uint64_t bytes, uint64_t align)
{
	bool fits = false;

	find_windows(s, bytes, align);
	for (size_t i = 0; i < s->nr_windows && !fits; i++)
		fits = try_window(s, &s->window[i], bytes);
	return fits;
}

static uint64_t free_bytes(const struct room *room)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < room->count; i++)
		sum += room->hole[i].bytes;
	return sum;
}

/* Leaves the holes and allocations that the driver looks at. */
static void cut_off(struct shift *s)
{
	const struct hole *in = s->stretch.hole, *memory = &s->room->memory;
	size_t stay = in->at > memory->at, ranges = stay;
	struct room *room = s->room;
	struct walk seen = { 0, 0 };

	s->end = UINT64_MAX;
	ranges += room->count + room->nr_movable + s->stretch.count - 1;
	in += s->stretch.count - 1;
	ranges += in->at + in->bytes < memory->at + memory->bytes;
	if (ranges <= RANGES)
		return;
	/* The last one is all that follows. */
	in = s->stretch.hole;
	while (seen.hole + seen.movable + stay < RANGES - 1) {
		struct walk next = seen;
		struct hole piece;

		if (!next_piece(room, &next, &piece))
			break;
		if (piece.at - in->at >= in->bytes) {
			in++;
			stay++;
			continue;
		}
		seen = next;
		s->end = piece.at + piece.bytes;
	}
	room->count = seen.hole;
	room->nr_movable = seen.movable;
}

/* Room for it or, if there is none at once, the longest run that is tried. */
static bool plan_seen(struct shift *s, uint64_t bytes, uint64_t align)
{
	uint64_t low = longest_run(s->room, align) / host_page(), high = bytes / host_page();
	uint64_t best = 0;

	if (high <= low || bytes > free_bytes(s->room))
		return false;
	read_room(s);
	if (try_run(s, bytes, align))
		return true;
	for (unsigned int i = 0; i < STEPS && high - low > 1; i++) {
		uint64_t middle = low + (high - low) / 2;

		if (try_run(s, middle * host_page(), align))
			best = low = middle;
		else
			high = middle;
	}
	return best && try_run(s, best * host_page(), align);
}

static bool plan(struct shift *s, uint64_t bytes, uint64_t align)
{
	size_t holes = s->room->count, movable = s->room->nr_movable;
	bool found;

	cut_off(s);
	found = plan_seen(s, bytes, align);
	s->room->count = holes;
	s->room->nr_movable = movable;
	return found;
}

static int shift_init(struct shift *s)
{
	struct room *room = s->room;
	int ret = read_stretches(room, &s->stretch);

	/* Holes are between them; of a window, what is left on either side of each place. */
	s->max_holes = s->stretch.count + 3 * room->nr_movable + 2;
	s->below = calloc(room->nr_movable + 1, sizeof(*s->below));
	s->hole = calloc(s->max_holes, sizeof(*s->hole));
	s->taken = calloc(s->max_holes, sizeof(*s->taken));
	s->moved = calloc(room->nr_movable + 1, sizeof(*s->moved));
	if (!s->below || !s->hole || !s->taken || !s->moved)
		return -ENOMEM;
	for (size_t i = 0; i < room->nr_movable; i++)
		if (!find_sized(s, room->movable[i].align))
			return -ENOMEM;
	return ret;
}

static void shift_free(struct shift *s)
{
	for (size_t k = 0; k < s->nr_sized; k++)
		free(s->sized[k].block);
	free(s->sized);
	room_free(&s->stretch);
	free(s->below);
	free(s->hole);
	free(s->taken);
	free(s->moved);
}

int room_move(struct room *room, uint64_t bytes, uint64_t align)
{
	struct shift s = { .room = room };
	int ret;

	if (free_bytes(room) < bytes || !bytes)
		return 0;
	ret = shift_init(&s);
	for (unsigned int i = 0; i < PLANS && !ret && plan(&s, bytes, align); i++) {
		memcpy(room->movable + s.span.first, s.moved,
		       (s.span.end - s.span.first) * sizeof(*s.moved));
		room->moved += s.below[s.span.end] - s.below[s.span.first];
		ret = read_holes(room, &s.stretch);
	}
	shift_free(&s);
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
