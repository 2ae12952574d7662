/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What things are called that happen in a run; a profile keeps it longer than the model.
 */
#ifndef NEURON_LIB_LABELS_H
#define NEURON_LIB_LABELS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../isa/names.h"

/* A transfer of a model. */
struct label_entry {
	uint32_t engine;		/* whose program starts it */
	uint32_t inst;
	uint32_t ring;
	uint32_t first;			/* source descriptor */
	uint32_t id;			/* in the file */
};

struct labels {
	atomic_uint refs;
	char *name;
	uint32_t nr_inst[NR_ENGINES];	/* length of the programs */
	struct {
		uint32_t slot;
		char *name;		/* of the queue set; NULL: fetches instructions */
	} *rings;
	size_t nr_rings;
	struct label_entry *entries;	/* by engine and instruction */
	uint32_t *by_ring;		/* the same by ring and descriptor */
	size_t nr_entries;
};

struct programs;
struct trigger;

/* For the programs of the model @name, with @nr_rings rings; NULL without memory. */
struct labels *labels_new(const char *name, const struct programs *programs, size_t nr_rings);
/* Before the descriptors of @t are written: @first is the next one.  0 or -ENOMEM. */
int labels_add(struct labels *l, const struct trigger *t, uint32_t engine, uint32_t first);
/* When all are there. */
void labels_sort(struct labels *l);
/* NULL is allowed in both. */
struct labels *labels_get(struct labels *l);
void labels_put(struct labels *l);

#endif
