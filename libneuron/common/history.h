/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranges of a device memory, and what events do to them, forwards and backwards. */
#ifndef NEURON_HISTORY_H
#define NEURON_HISTORY_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <neuron/neuron.h>

#include "util.h"

struct history {
	struct neuron_range *range;	/* by address, without gaps; from malloc() */
	size_t count, max;
	/* Bytes that an event gave or took although they were, or were not, in use. */
	uint64_t wrong;
};

static inline bool history_in_use(const struct neuron_range *r)
{
	return r->state != NEURON_RANGE_FREE;
}

/* The first range that ends behind @address. */
static inline size_t history_find(const struct history *h, uint64_t address)
{
	size_t low = 0, high = h->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (h->range[middle].address + h->range[middle].bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Puts @n ranges in the place of @gone from @at on. */
static inline int history_replace(struct history *h, size_t at, size_t gone,
				  const struct neuron_range *with, size_t n)
{
	while (h->count + n > h->max + gone)
		if (array_grow((void **)&h->range, h->max, &h->max, sizeof(*h->range)))
			return -ENOMEM;
	memmove(h->range + at + n, h->range + at + gone,
		(h->count - at - gone) * sizeof(*h->range));
	memcpy(h->range + at, with, n * sizeof(*with));
	h->count += n - gone;
	return 0;
}

/*
 * From now on a part of the memory is @r, whatever was there: also right if some of what was
 * there was looked at before, and some after a change.
 */
static inline int history_set(struct history *h, const struct neuron_range *r)
{
	size_t from = history_find(h, r->address), to = from, n = 0;
	uint64_t end = r->address + r->bytes;
	struct neuron_range piece[3];

	if (!r->bytes || from == h->count)
		return 0;
	if (h->range[from].address < r->address) {
		piece[n] = h->range[from];
		piece[n++].bytes = r->address - h->range[from].address;
	}
	piece[n++] = *r;
	for (; to < h->count && h->range[to].address < end; to++) {
		const struct neuron_range *old = &h->range[to];
		uint64_t begin = old->address > r->address ? old->address : r->address;
		uint64_t stop = old->address + old->bytes;

		if (history_in_use(old) == history_in_use(r))
			h->wrong += (stop < end ? stop : end) - begin;
		if (stop > end) {
			piece[n] = *old;
			piece[n].address = end;
			piece[n++].bytes = stop - end;
		}
	}
	return history_replace(h, from, to - from, piece, n);
}

/* What follows an allocation is a part of it. */
static inline int history_lengthen(struct history *h, const struct neuron_range *r)
{
	size_t at;
	int ret = history_set(h, r);

	if (ret)
		return ret;
	at = history_find(h, r->address);
	if (!at || !history_in_use(&h->range[at - 1]))
		return 0;
	h->range[at - 1].bytes += r->bytes;
	return history_replace(h, at, 1, r, 0);
}

/* What an event makes of its part of the memory, or with @undo, what was there before. */
static inline int history_apply(struct history *h, const struct neuron_event *e, bool undo)
{
	struct neuron_range r = { .address = e->address, .bytes = e->bytes,
				  .state = NEURON_RANGE_FREE };
	bool whole = e->kind == NEURON_EVENT_ALLOC || e->kind == NEURON_EVENT_FREE;
	bool add = e->kind == NEURON_EVENT_ALLOC || e->kind == NEURON_EVENT_GROW;

	if (e->kind == NEURON_EVENT_MOVE) {
		struct neuron_event gone = *e, new = *e;

		gone.kind = undo ? NEURON_EVENT_ALLOC : NEURON_EVENT_FREE;
		new.kind = undo ? NEURON_EVENT_FREE : NEURON_EVENT_ALLOC;
		/* @free is where it was before. */
		*(undo ? &new.address : &gone.address) = e->free;
		return history_apply(h, &gone, undo) ?: history_apply(h, &new, undo);
	}
	if (!whole && e->kind != NEURON_EVENT_GROW && e->kind != NEURON_EVENT_SHRINK)
		return 0;
	if (add == undo)
		return history_set(h, &r);
	r.state = e->pid ? NEURON_RANGE_OWNED : NEURON_RANGE_USED;
	if (e->pid) {
		r.pid = e->pid;
		r.nc = e->nc;
		r.category = e->category;
		r.owner = e->owner;
	}
	return whole ? history_set(h, &r) : history_lengthen(h, &r);
}

/* Takes @n events back, the last one first. */
static inline int history_rewind(struct history *h, const struct neuron_event *events, size_t n)
{
	int ret = 0;

	while (n-- && !ret)
		ret = history_apply(h, &events[n], true);
	return ret;
}

#endif
