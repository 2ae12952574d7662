/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model: what was made of a NEFF on one physical core. */
#ifndef NEURON_LIB_MODEL_H
#define NEURON_LIB_MODEL_H

#include "../memory/scratchpad.h"
#include "../neff/error.h"
#include "../neff/object.h"
#include "labels.h"

/* A ring pair and its queue. */
struct ring {
	uint32_t slot;
	uint32_t engine;		/* that triggers it first */
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

/* A word of a pointer table with the address of a variable of the model. */
struct pointer_word {
	struct neuron_mem *mem;
	uint64_t offset;
	uint64_t address;
};

struct io_tensor {
	struct neuron_tensor_info info;	/* with a name of its own */
	bool bound;
	uint64_t address;		/* that the descriptors have */
	struct fixup *fixups;
	size_t nr_fixups;
	size_t max_fixups;
	struct pointer_fixup *pointers;
	size_t nr_pointers;
};

/*
 * The part of an engine's program that brings resident constants.  Both forms have one length;
 * the other one says at once that they are there.
 */
struct resident {
	struct neuron_mem *mem;
	uint64_t offset;
	size_t bytes;
	struct neuron_isa_inst *brings, *has;
};

/* Which form is in memory. */
enum resident_form { RESIDENT_BRINGS, RESIDENT_HAS, RESIDENT_UNKNOWN };

struct neuron_model {
	struct neuron_core *core;	/* that it is on, of run/core.h; NULL: it is only planned */
	char *name;
	char uuid[33];			/* hexadecimal */
	struct labels *labels;		/* NULL: it cannot be run */
	struct obstacles obstacles;
	enum neuron_pretend pretend;	/* of its runs, if there are obstacles; first part */
	uint64_t pretend_ns;		/* that they take */
	bool dirty;			/* a run leaves semaphores or events set */
	uint64_t macs;			/* multiply-accumulates of a run */
	uint32_t owner;			/* of its memory; 0: the process */
	struct symbols *symbols;	/* the device's; NULL until it is loaded */
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
	struct scratchpad_user scratchpad;
	struct resident *resident;
	size_t nr_resident;
	enum resident_form form;	/* in a turn of the core, once it is loaded */
	uint64_t serial;		/* no other model of the process has it; 0: not resident */
	struct pointer_word *words;
	size_t nr_words;
	struct away *away;		/* run/offload.c: its contents in host memory, or NULL */
	struct residence *residence;	/* run/offload.c: of all parts; the first has it */
};

/* Not its core. */
void model_free(struct neuron_model *model);

#endif
