/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a parsed NEFF to what it takes of a core, without a device (isa/program.c,
 * plan.c, and the first half of rings.c), and then onto one
 * (apply.c and the second half).  A preflight stops after the first step, so
 * that it cannot say anything else than what loading does.
 */
#ifndef NEURON_LIB_LOAD_H
#define NEURON_LIB_LOAD_H

#include "../run/model.h"

/* Semaphores from here up belong to the loader (docs/loading.md). */
#define LOADER_SEMAPHORES 250u

/* Instructions fetched by one descriptor. */
#define FETCH_BYTES 4096u

#define WHERE(sg, e) (sg)->dir, (e)->code_name ? (e)->code_name : (e)->json_name

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

/* Small variables of a category share an allocation. */
struct arena {
	enum neuron_mem_category category;
	uint64_t *account;
	size_t alloc;			/* index + 1 of the one that is being filled */
};

/* A transfer that a program starts. */
struct trigger {
	uint32_t engine;
	size_t inst;			/* in the program; unused if generated */
	const struct neuron_neff_dma *dma;
	uint32_t ring;			/* index in loader.ring_of_queue */
	uint32_t count[2];		/* descriptors, by enum neuron_ring_side */
	uint64_t moves, io_moves;	/* as in struct ring */
	uint32_t semaphore;		/* generated: to wait for */
	bool own_semaphore;
};

/* Where the time goes, if somebody asked. */
struct stopwatch {
	bool on;
	uint64_t last;
	struct neuron_load_stats stats;
};

struct loader {
	struct neuron_core *core;	/* NULL: only planning */
	struct stopwatch *watch;	/* of a load */
	const struct neuron_geometry *g;
	uint32_t nc;
	uint32_t nr_slots;
	struct scratchpad_layout layout;
	struct neuron_model *model;
	const struct neuron_neff_subgraph *sg;
	struct loader *other;		/* of the other core of a logical one, or NULL */
	struct neuron_error *error;

	struct plan_alloc *allocs;
	size_t nr_allocs;
	size_t max_allocs;
	struct plan_item *items;
	size_t nr_items;
	size_t max_items;

	struct place *places;		/* by variable */
	struct place ones;		/* the numbers 1 to 16, to add to semaphores */
	uint32_t le_ones[NEURON_NEFF_MAX_QUEUES];
	uint64_t *scratch;		/* offset of virtual variables */
	uint32_t *io_of_var;		/* index in model->io + 1 */

	/* What all programs add less what they take away. */
	int64_t semaphores[NEURON_NEFF_MAX_SEMAPHORES];
	int64_t events[NEURON_NEFF_MAX_EVENTS];
	size_t nr_notify;		/* of SP */

	bool generated;			/* the SP program is ours */
	bool vendor;			/* programs are not looked into: it is only placed */
	void *code[NR_ENGINES];
	size_t code_size[NR_ENGINES];
	struct place programs[NR_ENGINES];
	struct trigger *triggers;
	size_t nr_triggers;
	size_t max_triggers;
	uint32_t *ring_of_queue;	/* index in model->rings, or 0 (a fetch ring) */
};

/* loader.c: what the others share */
int __attribute__((format(printf, 4, 5)))
load_fail(struct loader *l, enum neuron_error_kind kind, int ret, const char *fmt, ...);
int load_no_memory(struct loader *l);
/* Add the time since the last call to a member of the statistics. */
void load_lap(struct stopwatch *watch, uint64_t *sum);
int load_device_error(struct loader *l, const char *what, int ret);
void __attribute__((format(printf, 2, 3)))
load_obstacle(struct loader *l, const char *fmt, ...);
/* Room for one more element of an array that doubles. */
int load_grow(void **array, size_t nr, size_t *max, size_t size);

/* isa/program.c */
int load_scan_programs(struct loader *l);
/* When all programs were looked through. */
void load_check_balance(struct loader *l);
int load_generate_program(struct loader *l);
void load_patch_programs(struct loader *l);

/* Words that a variable has for addresses of others. */
static inline size_t pointer_count(const struct neuron_neff_var *v)
{
	return v->type == NEURON_NEFF_VAR_POINTER ? v->referenced != NULL :
	       v->type == NEURON_NEFF_VAR_DGE_TABLE ? v->nr_list : 0;
}

/* plan.c: nothing of it needs a device */
void load_plan_need(struct loader *l);
int load_plan_variables(struct loader *l);
int load_plan_ring(struct loader *l, struct ring *ring, uint64_t *account);
int load_plan_programs(struct loader *l);
/* After this, usage is what will be allocated, to the byte; or what was so far. */
int load_account(struct loader *l, bool held);

/* apply.c */
/* Decides the layout; from here on the model counts for the scratchpad. */
int load_apply_scratchpad(struct loader *l);
int load_apply_memory(struct loader *l);
int load_apply_contents(struct loader *l);

/* rings.c: the first two plan, the others write what needs addresses */
int load_plan_rings(struct loader *l);
int load_plan_ring_memory(struct loader *l);
int load_fill_rings(struct loader *l);
int load_fill_fetch(struct loader *l, struct ring *ring);
int load_plan_setup(struct loader *l);

#endif
