/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Owners of memory over time: what changed, and who only ever gets more. */
#ifndef TOOLS_LEAKS_H
#define TOOLS_LEAKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <neuron/neuron.h>

#include "../common/util.h"

#define LEAK_LOWS	48
#define LEAK_GROUPS	8
#define LEAK_RISES	40

/* An owner as pictures of it follow each other. */
struct leak {
	unsigned int device, hbm;
	struct neuron_owner now;
	uint64_t before, first;
	uint64_t steps;			/* pictures after the first one */
	uint64_t rises, falls, last_rise;
	/* Least bytes of @width pictures each; two become one when there is no room. */
	uint64_t low[LEAK_LOWS], width, in_low;
	size_t nr_lows;
	bool fresh;			/* in the last picture for the first time */
	bool seen;			/* in the last picture */
};

struct leaks {
	struct leak *list;
	size_t count, max;
};

static inline struct leak *leak_find(struct leaks *all, unsigned int device, unsigned int hbm,
				     const struct neuron_owner *o)
{
	for (size_t i = 0; i < all->count; i++) {
		struct leak *l = &all->list[i];

		if (l->device == device && l->hbm == hbm && l->now.pid == o->pid &&
		    l->now.id == o->id)
			return l;
	}
	return NULL;
}

static inline void leak_low(struct leak *l, uint64_t bytes)
{
	uint64_t *low;

	if (!l->in_low && l->nr_lows == LEAK_LOWS) {
		for (size_t i = 0; i < LEAK_LOWS / 2; i++)
			l->low[i] = l->low[2 * i] < l->low[2 * i + 1] ? l->low[2 * i] :
								        l->low[2 * i + 1];
		l->nr_lows /= 2;
		l->width *= 2;
	}
	if (!l->in_low)
		l->low[l->nr_lows++] = bytes;
	low = &l->low[l->nr_lows - 1];
	*low = bytes < *low ? bytes : *low;
	l->in_low = (l->in_low + 1) % l->width;
}

/* An owner is in a new picture.  0 or -ENOMEM. */
static inline int leak_add(struct leaks *all, unsigned int device, unsigned int hbm,
			   const struct neuron_owner *o)
{
	struct leak *l = leak_find(all, device, hbm, o);

	if (!l) {
		if (array_grow((void **)&all->list, all->count, &all->max, sizeof(*l)))
			return -ENOMEM;
		l = &all->list[all->count++];
		*l = (struct leak){ .device = device, .hbm = hbm, .now = *o, .first = o->bytes,
				    .width = 1, .fresh = true, .seen = true };
		leak_low(l, o->bytes);
		return 0;
	}
	l->before = l->now.bytes;
	l->now = *o;
	l->steps++;
	l->rises += o->bytes > l->before;
	l->falls += o->bytes < l->before;
	if (o->bytes > l->before)
		l->last_rise = l->steps;
	leak_low(l, o->bytes);
	l->fresh = false;
	l->seen = true;
	return 0;
}

/* Before a new picture: owners that were not in the last one are forgotten. */
static inline void leaks_begin(struct leaks *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].seen) {
			all->list[n] = all->list[i];
			all->list[n++].seen = false;
		}
	all->count = n;
}

/*
 * Bytes that an owner is likely to lose in a step; 0: it is not suspected.  One that never
 * gives anything back, and got more again and again until lately; or one of which the least
 * that it had was more in each eighth of the time than in the one before.
 */
static inline uint64_t leak_rate(const struct leak *l)
{
	size_t group = l->nr_lows / LEAK_GROUPS;
	uint64_t low[LEAK_GROUPS], span = (LEAK_GROUPS - 1) * group * l->width, rate;

	if (!l->falls && l->rises >= LEAK_RISES && l->steps - l->last_rise <= l->steps / 4) {
		rate = (l->now.bytes - l->first) / l->steps;
		return rate ? rate : 1;
	}
	if (l->steps + 1 < LEAK_LOWS || !group)
		return 0;
	for (size_t g = 0; g < LEAK_GROUPS; g++) {
		low[g] = UINT64_MAX;
		for (size_t i = g * group; i < (g + 1) * group; i++)
			low[g] = l->low[i] < low[g] ? l->low[i] : low[g];
		if (g && low[g] <= low[g - 1])
			return 0;
	}
	rate = (low[LEAK_GROUPS - 1] - low[0]) / span;
	return rate ? rate : 1;
}

#endif
