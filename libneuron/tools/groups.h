/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Groups of an owner's memory: what it has of each category for each core, of a snapshot. */
#ifndef TOOLS_GROUPS_H
#define TOOLS_GROUPS_H

#include "snapshot.h"

struct owner_group {
	int32_t pid;
	uint32_t owner, nc;
	enum neuron_mem_category category;
	uint64_t bytes, allocs;
};

struct owner_groups {
	struct owner_group *list;	/* those of an owner follow each other */
	size_t count;
};

static inline int groups_order(const void *a, const void *b)
{
	const struct owner_group *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid) ?:
	       (x->owner > y->owner) - (x->owner < y->owner) ?:
	       (x->nc > y->nc) - (x->nc < y->nc) ?:
	       (int)x->category - (int)y->category;
}

/* To be freed; 0 or -ENOMEM. */
static inline int groups_read(const struct history *ranges, struct owner_groups *g)
{
	size_t n = 0;

	*g = (struct owner_groups){ calloc(ranges->count + 1, sizeof(*g->list)), 0 };
	if (!g->list)
		return -ENOMEM;
	for (size_t i = 0; i < ranges->count; i++) {
		const struct neuron_range *r = &ranges->range[i];

		if (r->state == NEURON_RANGE_OWNED)
			g->list[n++] = (struct owner_group){ r->pid, r->owner, r->nc, r->category,
						       r->bytes, 1 };
	}
	qsort(g->list, n, sizeof(*g->list), groups_order);
	for (size_t i = 0; i < n; i++) {
		struct owner_group *last = g->count ? &g->list[g->count - 1] : NULL;

		if (last && !groups_order(last, &g->list[i])) {
			last->bytes += g->list[i].bytes;
			last->allocs += g->list[i].allocs;
		} else {
			g->list[g->count++] = g->list[i];
		}
	}
	return 0;
}

/*
 * The next one of an owner from *@at on; NULL: there is none.  Processes that the caller's PID
 * namespace does not have cannot be told apart.
 */
static inline const struct owner_group *
groups_next(const struct owner_groups *g, const struct neuron_owner *o, size_t *at)
{
	while (o->pid && *at < g->count) {
		const struct owner_group *next = &g->list[(*at)++];

		if (next->pid == o->pid && next->owner == o->id)
			return next;
	}
	return NULL;
}

#endif
