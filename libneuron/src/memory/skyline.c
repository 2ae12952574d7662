// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buffers from below (buffers.h).  The skyline is what has been placed, seen from above: over
 * the times it is a list of pieces of one height.  Its lowest piece is a valley.  Items that
 * are in use within its times only are a path through them, with gaps; the cheapest path is
 * placed.  What is hard to place has no room to spare at many times: there a path without a
 * gap is looked for, elsewhere a gap costs little.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"

#define NONE UINT32_MAX
/*
 * An item of a path costs 1 to 16, a gap at a time at which there is no room so much; where
 * there is room it still costs more than any item.
 */
#define GAP 1000.0
#define GAP_LEAST 20.0

struct skyline {
	struct search *s;
	const struct skyline_taste *taste;
	/* By time at which a piece starts. */
	uint64_t *height;
	uint32_t *next, *prev;
	/* By time. */
	uint64_t *rest;			/* bytes in use that are not placed yet */
	uint32_t *items;		/* the first item from then on */
	double *cost;			/* of the best path to there */
	uint32_t *by;			/* item that it ends with, NONE: a gap */
	bool *placed;			/* by item */
};

/* A piece of the skyline that is lower than both of its neighbours. */
struct valley {
	uint32_t from, to;
	uint64_t floor;
	uint64_t left, right;		/* walls; UINT64_MAX: the end of all times */
};

/* How much a byte that is lost over a time hurts. */
static double weight(const struct skyline *k, uint64_t floor, uint32_t time)
{
	double full = (double)(floor + k->rest[time]) / (double)k->s->bound;

	if (!k->rest[time])
		return 0;
	full *= full;
	full *= full;
	return full * full;
}

static struct valley lowest(struct skyline *k)
{
	struct valley v = { .floor = UINT64_MAX };

	for (uint32_t at = 0; at < k->s->nr_times; at = k->next[at]) {
		k->s->steps++;
		if (k->height[at] < v.floor) {
			v.from = at;
			v.floor = k->height[at];
		}
	}
	v.to = k->next[v.from];
	v.left = v.from ? k->height[k->prev[v.from]] : UINT64_MAX;
	v.right = v.to < k->s->nr_times ? k->height[v.to] : UINT64_MAX;
	return v;
}

static double item_cost(const struct skyline *k, const struct valley *v, const struct item *item)
{
	uint64_t wall = v->left < v->right ? v->left : v->right, top = v->floor + item->bytes;
	double cost = 1 + k->taste->thick * (double)item->bytes / (double)k->s->bound;

	if (k->taste->chance > 0)
		cost += k->taste->chance * search_chance(k->s);
	if (top > wall)
		cost += k->taste->rise * (double)(top - wall) / (double)k->s->bound;
	return cost;
}

static double gap_cost(const struct skyline *k, const struct valley *v, uint32_t time)
{
	double cost = GAP * weight(k, v->floor, time);

	return k->rest[time] && cost < GAP_LEAST ? GAP_LEAST : cost;
}

/* The cheapest path from one wall of the valley to the other. */
static void find_path(struct skyline *k, const struct valley *v)
{
	struct search *s = k->s;

	for (uint32_t t = v->from; t <= v->to; t++)
		k->cost[t] = HUGE_VAL;
	k->cost[v->from] = 0;
	for (uint32_t t = v->from; t < v->to; t++) {
		double cost = k->cost[t] + gap_cost(k, v, t);

		if (cost < k->cost[t + 1]) {
			k->cost[t + 1] = cost;
			k->by[t + 1] = NONE;
		}
		s->steps++;
		for (uint32_t i = k->items[t]; i < k->items[t + 1]; i++) {
			const struct item *item = &s->items[i];

			s->steps++;
			if (k->placed[i] || item->to > v->to)
				continue;
			cost = k->cost[t] + item_cost(k, v, item);
			if (cost < k->cost[item->to]) {
				k->cost[item->to] = cost;
				k->by[item->to] = i;
			}
		}
	}
}

/* What is lost if the valley is filled up to @top over some times. */
static double lost(const struct skyline *k, const struct valley *v, uint32_t from, uint32_t to,
		   uint64_t top)
{
	double sum = 0;

	for (uint32_t t = from; t < to; t++)
		sum += weight(k, v->floor, t) * (double)(top - v->floor);
	return sum;
}

/* Whether the gaps of the path lose more than the whole valley does up to its lower wall. */
static bool better_raised(const struct skyline *k, const struct valley *v)
{
	uint64_t wall = v->left < v->right ? v->left : v->right, right = v->right, left;
	uint32_t from, t = v->to;
	double gaps = 0;

	if (!k->taste->raise || wall == UINT64_MAX)
		return false;
	if (right == UINT64_MAX)
		right = v->left;
	while (t > v->from) {
		if (k->by[t] != NONE) {
			right = v->floor + k->s->items[k->by[t]].bytes;
			t = k->s->items[k->by[t]].from;
			continue;
		}
		for (from = t; from > v->from && k->by[from] == NONE; from--)
			;
		left = from > v->from ? v->floor + k->s->items[k->by[from]].bytes :
		       v->left < UINT64_MAX ? v->left : right;
		gaps += lost(k, v, from, t, left < right ? left : right);
		t = from;
	}
	return lost(k, v, v->from, v->to, wall) < gaps;
}

/* A piece from @from to @to out of the one that starts at @piece. */
static void cut(struct skyline *k, uint32_t piece, uint32_t from, uint32_t to, uint64_t height)
{
	uint32_t end = k->next[piece];

	if (to < end) {
		k->height[to] = k->height[piece];
		k->next[to] = end;
		k->prev[to] = from;
	}
	if (end < k->s->nr_times)
		k->prev[end] = to < end ? to : from;
	if (from > piece) {
		k->next[piece] = from;
		k->prev[from] = piece;
	}
	k->next[from] = to < end ? to : end;
	k->height[from] = height;
}

/* Neighbours of one height become one piece. */
static void join(struct skyline *k, uint32_t from, uint32_t to)
{
	uint32_t at = from ? k->prev[from] : from;

	while (at < to && k->next[at] < k->s->nr_times) {
		uint32_t next = k->next[at];

		if (k->height[at] != k->height[next]) {
			at = next;
			continue;
		}
		k->next[at] = k->next[next];
		if (k->next[at] < k->s->nr_times)
			k->prev[k->next[at]] = at;
	}
}

/* Items of the path; how many. */
static uint32_t place_path(struct skyline *k, const struct valley *v)
{
	uint32_t nr = 0;

	for (uint32_t t = v->to; t > v->from;) {
		uint32_t by = k->by[t];
		struct item *item = &k->s->items[by];

		if (by == NONE) {
			t--;
			continue;
		}
		item->offset = v->floor;
		k->placed[by] = true;
		for (uint32_t i = item->from; i < item->to; i++)
			k->rest[i] -= item->bytes;
		k->s->steps += item->to - item->from;
		cut(k, v->from, item->from, item->to, v->floor + item->bytes);
		t = item->from;
		nr++;
	}
	return nr;
}

static void fill(struct skyline *k)
{
	for (uint32_t left = k->s->nr; left;) {
		struct valley v = lowest(k);
		uint32_t nr = 0;

		find_path(k, &v);
		if (!better_raised(k, &v))
			nr = place_path(k, &v);
		if (!nr)
			k->height[v.from] = v.left < v.right ? v.left : v.right;
		left -= nr;
		join(k, v.from, v.to);
	}
}

int skyline_place(struct search *s, const struct skyline_taste *taste)
{
	size_t times = s->nr_times + 1;
	struct skyline k = {
		.s = s,
		.taste = taste,
		.height = calloc(times, sizeof(*k.height)),
		.next = calloc(times, sizeof(*k.next)),
		.prev = calloc(times, sizeof(*k.prev)),
		.rest = calloc(times, sizeof(*k.rest)),
		.items = calloc(times, sizeof(*k.items)),
		.cost = calloc(times, sizeof(*k.cost)),
		.by = calloc(times, sizeof(*k.by)),
		.placed = calloc(s->nr, sizeof(*k.placed)),
	};
	int ret = -ENOMEM;

	if (k.height && k.next && k.prev && k.rest && k.items && k.cost && k.by && k.placed) {
		for (uint32_t t = 0, i = 0; t < times; t++) {
			while (i < s->nr && s->items[i].from < t)
				i++;
			k.items[t] = i;
		}
		for (uint32_t i = 0; i < s->nr; i++)
			for (uint32_t t = s->items[i].from; t < s->items[i].to; t++)
				k.rest[t] += s->items[i].bytes;
		k.next[0] = s->nr_times;
		fill(&k);
		ret = 0;
	}
	free(k.height);
	free(k.next);
	free(k.prev);
	free(k.rest);
	free(k.items);
	free(k.cost);
	free(k.by);
	free(k.placed);
	return ret;
}
