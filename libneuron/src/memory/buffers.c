// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Places for buffers by their lifetimes: offsets in one memory, known before a program runs.
 * To find the best ones is NP-hard, so there are several heuristics and the best result wins.
 * Pure arithmetic.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <neuron/buffers.h>

#include "../../common/util.h"
#include "../device/opts.h"
#include "buffers.h"

/* No further heuristic is tried after so many steps: half a second or less. */
#define MAX_STEPS (1ull << 29)
/* Nor a further round of the search for a better order. */
#define MAX_ROUNDS 2000
/* Of choices that are left to chance: the same each time. */
#define RANDOM_SEED 88172645463325252ull

/* An item that first fit has placed. */
struct placed {
	uint32_t from, to;
	uint64_t begin, end;
};

struct placement {
	struct search s;
	struct placed *placed;		/* by where they begin */
	uint64_t *best;			/* offsets, by item */
	bool level;			/* a skyline was better than the orders before it */
	struct neuron_buffers_result result;
};

/* ---- first fit --------------------------------------------------------------------- */

/* The first room that is long enough, or @best, the shortest one. */
static uint64_t find_room(struct placement *p, const struct item *item, uint32_t nr, bool best)
{
	uint64_t at = 0, room = UINT64_MAX, found = 0;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		const struct placed *o = &p->placed[i];

		if (o->from >= item->to || item->from >= o->to)
			continue;
		if (o->begin >= at + item->bytes) {
			if (!best)
				break;
			if (o->begin - at < room) {
				room = o->begin - at;
				found = at;
			}
		}
		if (o->end > at)
			at = (o->end + item->align - 1) & ~(item->align - 1);
	}
	p->s.steps += i;
	return room < UINT64_MAX ? found : at;
}

static void note(struct placement *p, const struct item *item, uint32_t nr)
{
	uint32_t low = 0, high = nr;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (p->placed[middle].begin < item->offset)
			low = middle + 1;
		else
			high = middle;
	}
	memmove(p->placed + low + 1, p->placed + low, (nr - low) * sizeof(*p->placed));
	p->placed[low] = (struct placed){
		item->from, item->to, item->offset, item->offset + item->bytes,
	};
}

/* Items in the order that the keys say; what it takes is kept if it is the least so far. */
static uint64_t fit(struct placement *p, const char *heuristic, bool best)
{
	struct search *s = &p->s;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		struct item *item = &s->items[s->order[i]];

		item->offset = find_room(p, item, i, best);
		note(p, item, i);
		bytes = MAX(bytes, item->offset + item->bytes);
	}
	if (p->result.heuristic && bytes >= p->result.bytes)
		return bytes;
	p->result.bytes = bytes;
	p->result.heuristic = heuristic;
	for (uint32_t i = 0; i < s->nr; i++)
		p->best[i] = s->items[i].offset;
	return bytes;
}

static int by_key(const void *a, const void *b, void *context)
{
	const struct search *s = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (s->key[i] != s->key[k])
		return s->key[i] < s->key[k] ? 1 : -1;
	if (s->items[i].bytes != s->items[k].bytes)
		return s->items[i].bytes < s->items[k].bytes ? 1 : -1;
	return i < k ? -1 : i > k;
}

static void sort(struct search *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		s->order[i] = i;
	qsort_r(s->order, s->nr, sizeof(*s->order), by_key, s);
}

/* ---- heuristics -------------------------------------------------------------------- */

static double as_given(const struct item *item)
{
	return -(double)item->index;
}

static double by_size(const struct item *item)
{
	return (double)item->bytes;
}

static double by_length(const struct item *item)
{
	return item->to - item->from;
}

static double by_area(const struct item *item)
{
	return (double)item->bytes * (item->to - item->from);
}

static double by_start(const struct item *item)
{
	return -(double)item->from;
}

static double by_offset(const struct item *item)
{
	return -(double)item->offset;
}

static void order_by(struct search *s, double (*key)(const struct item *item))
{
	for (uint32_t i = 0; i < s->nr; i++)
		s->key[i] = key(&s->items[i]);
	sort(s);
}

static bool done(const struct placement *p)
{
	return p->result.bytes <= p->s.bound || p->s.steps >= MAX_STEPS;
}

/* The first one always runs: nothing is worse than it. */
static void try_orders(struct placement *p)
{
	static const struct {
		const char *name;
		double (*key)(const struct item *item);
		bool best;
	} orders[] = {
		{ "first fit as given", as_given, false },
		{ "first fit by size", by_size, false },
		{ "first fit by lifetime", by_length, false },
		{ "first fit by area", by_area, false },
		{ "first fit by start", by_start, false },
		{ "best fit by size", by_size, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		uint64_t bytes;

		if (i && done(p))
			return;
		order_by(&p->s, orders[i].key);
		bytes = fit(p, orders[i].name, orders[i].best);
		if (!i)
			p->result.first_fit = bytes;
	}
}

/* First fit from below keeps alignment, and closes what gaps there are. */
static int try_skyline(struct placement *p, const struct skyline_taste *taste)
{
	int ret = skyline_place(&p->s, taste);
	uint64_t before;

	if (ret)
		return ret;
	order_by(&p->s, by_offset);
	before = p->result.bytes;
	p->level |= fit(p, taste->name, false) < before;
	return 0;
}

static int try_skylines(struct placement *p)
{
	static const struct skyline_taste tastes[] = {
		{ .name = "skyline" },
		{ .name = "level skyline", .rise = 10, .raise = true },
		{ .name = "low skyline", .thick = 5, .raise = true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tastes) && !done(p); i++) {
		int ret = try_skyline(p, &tastes[i]);

		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Two searches in turn, the second one less often where skylines were no good. In the order
 * by size, what ends above the bound comes earlier in the next round; a skyline is made again
 * with choices that are left to chance.
 */
static int search(struct placement *p)
{
	static const struct skyline_taste taste = {
		.name = "search for a skyline", .rise = 10, .chance = 2, .raise = true,
	};
	struct search *s = &p->s;
	double *key = calloc(s->nr, sizeof(*key));
	int ret = key ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->nr && !ret; i++)
		key[i] = by_size(&s->items[i]);
	for (int round = 0; round < MAX_ROUNDS && !done(p) && !ret; round++) {
		memcpy(s->key, key, s->nr * sizeof(*key));
		sort(s);
		fit(p, "search for an order by size", false);
		for (uint32_t i = 0; i < s->nr; i++)
			if (s->items[i].offset + s->items[i].bytes > s->bound)
				key[i] *= 2 + 2 * search_chance(s);
		if (!done(p) && (p->level || !(round % 4)))
			ret = try_skyline(p, &taste);
	}
	free(key);
	return ret;
}

/* ---- what there is to place -------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to > y->to ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static uint32_t time_of(const uint64_t *times, uint32_t nr, uint64_t step)
{
	return (uint32_t)((const uint64_t *)bsearch(&step, times, nr, sizeof(*times),
						     compare_times) - times);
}

/* Only steps at which a buffer starts, or has just ended, count. */
static int number_times(struct search *s, const struct neuron_buffer *buffers)
{
	uint64_t *times = calloc(2 * (size_t)s->nr, sizeof(*times));
	uint32_t nr = 0;

	if (!times)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr; i++) {
		times[2 * i] = buffers[s->items[i].index].first;
		times[2 * i + 1] = buffers[s->items[i].index].last + 1ull;
	}
	qsort(times, 2 * (size_t)s->nr, sizeof(*times), compare_times);
	for (uint32_t i = 0; i < 2 * s->nr; i++)
		if (!nr || times[nr - 1] != times[i])
			times[nr++] = times[i];
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct neuron_buffer *b = &buffers[s->items[i].index];

		s->items[i].from = time_of(times, nr, b->first);
		s->items[i].to = time_of(times, nr, b->last + 1ull);
	}
	s->nr_times = nr - 1;
	free(times);
	qsort(s->items, s->nr, sizeof(*s->items), compare_items);
	return 0;
}

/*
 * The most that is in use at a time.  Where all offsets are multiples of something, so is
 * what each but the last of them takes.
 */
static int find_bound(struct search *s)
{
	uint64_t *plain = calloc(s->nr_times + 1u, sizeof(*plain));
	uint64_t *padded = calloc(s->nr_times + 1u, sizeof(*padded));
	uint64_t unit = UINT64_MAX, slack = 0, sum = 0, with = 0;
	int ret = plain && padded ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->nr; i++)
		unit = MIN(unit, s->items[i].align);
	for (uint32_t i = 0; i < s->nr && !ret; i++) {
		const struct item *item = &s->items[i];
		uint64_t bytes = round_up(item->bytes, unit);

		slack = MAX(slack, bytes - item->bytes);
		plain[item->from] += item->bytes;
		plain[item->to] -= item->bytes;
		padded[item->from] += bytes;
		padded[item->to] -= bytes;
	}
	for (uint32_t t = 0; t < s->nr_times && !ret; t++) {
		sum += plain[t];
		with += padded[t];
		s->bound = MAX(s->bound, sum);
		if (with > slack)
			s->bound = MAX(s->bound, with - slack);
	}
	free(plain);
	free(padded);
	return ret;
}

static int read_buffers(struct search *s, const struct neuron_buffer *buffers, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct neuron_buffer *b = &buffers[i];
		uint64_t align = b->align ? b->align : 1, bytes;

		if (b->first > b->last || align & (align - 1))
			return -EINVAL;
		if (b->bytes > 1ull << 62 || align > 1ull << 62)
			return -E2BIG;
		bytes = round_up(b->bytes, align);
		if (bytes >= (1ull << 62) - sum)
			return -E2BIG;
		sum += bytes;
		if (b->bytes)
			s->items[s->nr++] = (struct item){
				.bytes = b->bytes, .align = align, .index = (uint32_t)i,
			};
	}
	return s->nr ? number_times(s, buffers) ?: find_bound(s) : 0;
}

NEURON_EXPORT int neuron_buffers_place(struct neuron_buffer *buffers, size_t nr,
				       struct neuron_buffers_result *result)
{
	struct placement p = { .result.heuristic = NULL, .s.random = RANDOM_SEED };
	int ret = -ENOMEM;

	if ((nr && !buffers) || nr > INT32_MAX)
		return buffers ? -E2BIG : -EINVAL;
	p.s.items = calloc(nr + 1, sizeof(*p.s.items));
	p.s.order = calloc(nr + 1, sizeof(*p.s.order));
	p.s.key = calloc(nr + 1, sizeof(*p.s.key));
	p.placed = calloc(nr + 1, sizeof(*p.placed));
	p.best = calloc(nr + 1, sizeof(*p.best));
	if (p.s.items && p.s.order && p.s.key && p.placed && p.best)
		ret = read_buffers(&p.s, buffers, nr);
	if (!ret) {
		try_orders(&p);
		ret = try_skylines(&p) ?: search(&p);
	}
	if (!ret) {
		for (size_t i = 0; i < nr; i++)
			buffers[i].offset = 0;
		for (uint32_t i = 0; i < p.s.nr; i++)
			buffers[p.s.items[i].index].offset = p.best[i];
		p.result.bound = p.s.bound;
		p.result.steps = p.s.steps;
		result_copy(result, &p.result, sizeof(p.result));
	}
	free(p.s.items);
	free(p.s.order);
	free(p.s.key);
	free(p.placed);
	free(p.best);
	return ret;
}
