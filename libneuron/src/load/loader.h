/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of one core: what is planned for it, and then done (steps.h). */
#ifndef NEURON_LIB_LOADER_H
#define NEURON_LIB_LOADER_H

#include "../isa/program.h"
#include "model.h"

/* Where a variable is.  @address is known once the plan has been applied. */
struct place {
	uint64_t address;
	size_t alloc;			/* index + 1 in loader.allocs, 0: none of the model */
	uint64_t offset;		/* in that */
};

/* What to write into an allocation. */
struct plan_item {
	uint64_t offset;
	const void *data;
	size_t size;
	size_t next;			/* index + 1, of the same allocation */
};

/* An allocation that the model needs. */
struct plan_alloc {
	enum neuron_mem_category category;
	uint64_t *account;		/* member of neuron_model_usage */
	uint64_t bytes;
	uint64_t align;
	size_t first;			/* items, index + 1 */
	size_t last;
	struct neuron_mem *mem;
};

/* Where the time goes, if somebody asked. */
struct stopwatch {
	bool on;
	uint64_t last;
	struct neuron_load_stats stats;
};

struct loader {
	struct scratchpad *scratchpad;	/* of the core, and where that is; NULL: only planning */
	struct stopwatch *watch;	/* of a load */
	struct spots *spots;		/* NULL: the driver chooses */
	const struct neuron_geometry *g;
	uint32_t nc;
	uint32_t nr_slots;
	struct scratchpad_layout layout;
	struct neuron_model *model;
	const struct neuron_neff_subgraph *sg;
	struct neuron_error *error;
	uint64_t max_descriptors;	/* as in neuron_model_opts */

	struct plan_alloc *allocs;
	size_t nr_allocs;
	size_t max_allocs;
	struct plan_item *items;
	size_t nr_items;
	size_t max_items;

	struct place *places;		/* by variable */
	struct place ones;		/* the numbers 1 to 16, to add to semaphores */
	uint32_t le_ones[NEURON_NEFF_MAX_QUEUES];
	uint32_t *io_of_var;		/* index in model->io + 1 */
	uint64_t tries;			/* to find shapes of large tensors */

	struct programs programs;
	struct place code[NR_ENGINES];	/* where the programs are */
	uint32_t *ring_of_queue;	/* index in model->rings + 1, 0 none */
};

/* Add the time since the last call to a member of the statistics. */
void load_lap(struct stopwatch *watch, uint64_t *sum);

/* Instructions fetched by one descriptor. */
#define FETCH_BYTES 4096u

/* Words that a variable has for addresses of others. */
static inline size_t pointer_count(const struct neuron_neff_var *v)
{
	return v->type == NEURON_NEFF_VAR_POINTER ? v->referenced != NULL :
	       v->type == NEURON_NEFF_VAR_DGE_TABLE ? v->nr_list : 0;
}

/* Where a virtual variable starts in the scratchpad. */
static inline uint64_t scratch_offset(const struct neuron_neff_var *v)
{
	return v->area->base + v->backing_off;
}

int load_plan_variables(struct loader *l);
int load_plan_ring(struct loader *l, struct ring *ring, uint64_t *account);
int load_plan_programs(struct loader *l);
/*
 * After this, usage is what will be allocated, to the byte; or, @held, what was so far.
 */
int load_account(struct loader *l, bool held);

/* Decides the layout; from here on the model counts for the scratchpad. */
int load_apply_scratchpad(struct loader *l);
/* Everything the plan asks for, and the addresses that come of it. */
int load_apply_memory(struct loader *l);
/* Constants, programs, tables of addresses. */
int load_apply_contents(struct loader *l);

/* Names of what lies in the memory, when all of that is done. */
int load_symbols(struct loader *l);

/* Decide which rings there are and how long they get. */
int load_plan_rings(struct loader *l);
int load_fill_rings(struct loader *l);
int load_fill_fetch(struct loader *l, struct ring *ring);
int load_plan_setup(struct loader *l);

/* Whether transfers of resident constants are what they say; before anything is allocated. */
int load_check_resident(struct loader *l);
/* When the programs have their triggers and their places. */
int load_resident(struct loader *l);

#endif
