// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names for what happens in a run (labels.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../isa/program.h"
#include "labels.h"

struct labels *labels_get(struct labels *l)
{
	if (l)
		atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
	return l;
}

void labels_put(struct labels *l)
{
	if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < l->nr_rings; i++)
		free(l->rings[i].name);
	free(l->rings);
	free(l->entries);
	free(l->by_ring);
	free(l->name);
	free(l);
}

static int by_ring(const void *a, const void *b, void *entries)
{
	const struct label_entry *x = (struct label_entry *)entries + *(const uint32_t *)a;
	const struct label_entry *y = (struct label_entry *)entries + *(const uint32_t *)b;

	if (x->ring != y->ring)
		return x->ring < y->ring ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

struct labels *labels_new(const char *name, const struct programs *programs, size_t nr_rings)
{
	struct labels *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	atomic_init(&l->refs, 1);
	l->name = strdup(name);
	l->rings = calloc(nr_rings + 1, sizeof(*l->rings));
	l->entries = calloc(programs->nr_triggers + 1, sizeof(*l->entries));
	l->by_ring = calloc(programs->nr_triggers + 1, sizeof(*l->by_ring));
	if (!l->name || !l->rings || !l->entries || !l->by_ring) {
		labels_put(l);
		return NULL;
	}
	l->nr_rings = nr_rings;
	/* The header of a file has bytes; a profile is UTF-8. */
	for (char *c = l->name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		l->nr_inst[i] = (uint32_t)(programs->code_size[i] / NEURON_ISA_INST_SIZE);
	return l;
}

int labels_add(struct labels *l, const struct trigger *t, uint32_t engine, uint32_t first)
{
	char **name = &l->rings[t->ring].name;

	l->by_ring[l->nr_entries] = (uint32_t)l->nr_entries;
	l->entries[l->nr_entries++] = (struct label_entry){
		.engine = engine,
		.inst = (uint32_t)t->inst,
		.ring = t->ring,
		.first = first,
		.id = t->dma->id,
	};
	if (!*name)
		*name = strdup(t->dma->queue->name);
	return *name ? 0 : -ENOMEM;
}

void labels_sort(struct labels *l)
{
	qsort_r(l->by_ring, l->nr_entries, sizeof(*l->by_ring), by_ring, l->entries);
}
