/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cores and models: what core.c, model.c and exec.c share. */
#ifndef NEURON_LIB_MODEL_H
#define NEURON_LIB_MODEL_H

#include <pthread.h>

#include "../../../uapi/neuron_isa.h"
#include "../device/device.h"
#include "../neff/neff.h"
#include "../isa/span.h"

#define NR_ENGINES ((uint32_t)NEURON_ISA_NR_ENGINES)

/* Queues 14 and 15 have conventional users (sequencers, collectives; uapi/FACTS.md 5). */
#define QUEUES_PER_ENGINE 14u
/* The id that ends a run (docs/loading.md). */
#define NOTIFY_DONE 1u
/* Of a notification queue: more than a run can fill (scan_program()). */
#define NQ_BYTES 16384u
#define NQ_ENTRIES (NQ_BYTES / (uint32_t)sizeof(struct neuron_isa_notice))
#define SCRATCHPAD_PAGE (512ull << 20)
/* By which the contiguous scratchpad grows. */
#define SCRATCHPAD_STEP (64ull << 20)
/* What the start of every piece of the scratchpad is aligned to. */
#define SCRATCHPAD_ALIGN (1u << 20)

/*
 * DMA queues of a core are handed out by slot: consecutive slots are on
 * different DMA engines.  Slots 0 to 4 fetch the instructions of the engines.
 */
static inline uint32_t slot_engine(const struct neuron_geometry *g, uint32_t slot)
{
	return slot % g->engines_per_core;
}

static inline uint32_t slot_queue(const struct neuron_geometry *g, uint32_t slot)
{
	return slot / g->engines_per_core;
}

/*
 * The scratchpad of a core: one region, which can be empty, and pages behind it.  In
 * paged mode there are only pages; in contiguous mode there are pages only when the
 * region could not grow.
 */
struct scratchpad_layout {
	uint64_t region;		/* bytes */
	uint64_t page;
};

struct neuron_core {
	struct neuron_device *device;
	struct neuron_core *peer;	/* second one of a logical core */
	uint32_t nc;
	uint32_t hbm;
	uint32_t nr_slots;
	uint64_t page;
	bool contiguous;
	struct neuron_mem *microcode;
	atomic_uint refs;

	pthread_mutex_t lock;		/* everything below, and running a model */
	struct neuron_mem *region;	/* shared scratchpad */
	struct neuron_mem **pages;
	size_t nr_pages;
	struct neuron_model *models;	/* those that count for the scratchpad */
	const struct neuron_model **owner;	/* whose rings a slot's queue has */
	struct neuron_nq *notify;
	struct neuron_nq *error;
	int eventfd;			/* signalled by both */
	struct core_compute *compute;	/* compute.c, NULL at first */
	bool broken;			/* to be reset before the next run */
	bool held;			/* the driver kept what only a reset gives back */
	struct profile_part *profile;	/* being recorded, or NULL */
	bool done;			/* its part of the run */
};

/* A ring pair and its queue. */
struct ring {
	uint32_t slot;
	uint32_t count;			/* descriptors of the longer side */
	uint32_t side_count[2];		/* of each side, by enum neuron_ring_side */
	uint32_t slots;			/* of the rings */
	bool io;			/* touches inputs or outputs */
	uint64_t moves;			/* descriptors of both sides that move data */
	uint64_t io_moves;		/* of these, for transfers from or to inputs or outputs */
	size_t alloc;			/* of @tx in the plan; @rx is the next */
	struct neuron_mem *tx;
	struct neuron_mem *rx;
	/* Kept for rings that touch inputs or outputs, with what is to be uploaded. */
	struct neuron_descriptor *tx_desc;
	struct neuron_descriptor *rx_desc;
	uint32_t dirty_first;
	uint32_t dirty_end;
};

/* A descriptor that depends on where a tensor is. */
struct fixup {
	uint32_t ring;
	uint32_t index;
	uint64_t offset;		/* in the tensor */
	bool rx;
};

/* A word of a pointer table that does. */
struct pointer_fixup {
	struct neuron_mem *mem;
	uint64_t offset;
};

struct io_tensor {
	char *name;
	enum neuron_tensor_usage usage;
	uint64_t bytes;
	uint32_t dtype;
	uint32_t ndim;
	uint32_t shape[8];
	bool bound;
	uint64_t address;		/* that the descriptors have */
	struct fixup *fixups;
	size_t nr_fixups;
	size_t max_fixups;
	struct pointer_fixup *pointers;
	size_t nr_pointers;
};

/* A transfer of a model. */
struct label_entry {
	uint32_t engine;		/* whose program starts it */
	uint32_t inst;
	uint32_t ring;
	uint32_t first;			/* source descriptor */
	uint32_t id;			/* in the file */
};

/* What things are called that happen in a run; profiles keep it longer than the model. */
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

struct neuron_model {
	struct neuron_core *core;
	char *name;
	char uuid[33];			/* hexadecimal */
	struct labels *labels;		/* NULL: it cannot be run */
	char obstacles[NEURON_MAX_OBSTACLES + 1][256];
	size_t nr_obstacles;
	bool dirty;			/* a run leaves semaphores or events set */
	uint64_t macs;			/* multiply-accumulates of a run */
	struct neuron_mem **mems;	/* everything it allocated */
	size_t nr_mems;
	struct io_tensor *io;
	size_t nr_io;
	struct ring *rings;		/* fetch rings first, by nr_fetch */
	size_t nr_rings;
	size_t nr_fetch;
	struct neuron_queue_setup *setup;	/* one per ring */
	struct neuron_model_usage usage;
	struct neuron_model *peer;	/* part on the other core of a logical one */
	struct io_tensor **tensors;	/* of both, by name */
	size_t nr_tensors;
	struct neuron_model *next;	/* of the core; core->lock */
};

/* Queues of a core that models can have. */
static inline uint32_t core_slots(const struct neuron_geometry *g)
{
	return (g->nr_queues < QUEUES_PER_ENGINE ? g->nr_queues : QUEUES_PER_ENGINE) *
	       g->engines_per_core;
}

/* As neuron_model_load(), of a file that was opened already. */
int model_load_opened(struct neuron_core *core, struct neuron_neff *neff,
		      const struct neuron_model_opts *opts, struct neuron_model **model);
struct neuron_core *core_get(struct neuron_core *core);
void core_put(struct neuron_core *core);
/* Under core->lock. */
int core_reset_locked(struct neuron_core *core);
int core_scratchpad_grow(struct neuron_core *core, uint64_t need,
			 struct neuron_mem_failure *failure);
void core_scratchpad_shrink(struct neuron_core *core);
struct scratchpad_layout core_scratchpad_layout(const struct neuron_core *core);
/* Device address of a byte that there is memory for. */
uint64_t core_scratchpad_address(const struct neuron_core *core, uint64_t offset);
/* Last reference, nothing is computed any more. */
void core_compute_free(struct neuron_core *core);
/*
 * Stop the queues that have rings of the model; NULL: all.  A queue that the driver does
 * not let go keeps its rings until the core is reset, and the core is @held.
 */
void core_release_queues(struct neuron_core *core, const struct neuron_model *model);
/* Try again to reset a core that is @held. */
void core_take_back(struct neuron_core *core);

/* profile/record.c; all but the first two under core->lock. */
struct labels *labels_get(struct labels *l);
void labels_put(struct labels *l);
/* The core has to be reset before the next run. */
bool profile_starts_over(const struct neuron_core *core);
/* Behind a reset; @works: the core can be used again. */
void profile_reset(struct neuron_core *core, bool works);
void profile_run_begin(struct neuron_model *model);
void profile_run_end(struct neuron_model *model, int ret);

/* Device memory document, "Shared scratchpad". */
static inline bool scratchpad_page_valid(uint64_t page)
{
	return page && !(page % SCRATCHPAD_PAGE) && page < 4ull << 30;
}

/* Pages for @need bytes; can be far more than there is memory for. */
static inline uint64_t scratchpad_pages(uint64_t need, uint64_t page)
{
	return need / page + (need % page != 0);
}

/* Whether a variable lies in one page (device memory document, "Shared scratchpad"). */
static inline bool scratchpad_fits(uint64_t offset, uint64_t bytes, uint64_t page)
{
	return bytes <= page && offset % page <= page - bytes;
}

/* Whether it lies in one piece of memory. */
static inline bool scratchpad_placed(const struct scratchpad_layout *layout, uint64_t offset,
				     uint64_t bytes)
{
	if (offset < layout->region)
		return bytes <= layout->region - offset;
	return scratchpad_fits(offset - layout->region, bytes, layout->page);
}

#endif
