/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The programs of a NEFF: which transfers they trigger, whether they leave a core clean,
 * and the one that is made for a NEFF without any (docs/loading.md).
 */
#ifndef NEURON_LIB_PROGRAM_H
#define NEURON_LIB_PROGRAM_H

#include "../neff/error.h"
#include <neuron/neff.h>
#include "names.h"

/* Semaphores from here up belong to the loader (docs/loading.md). */
#define LOADER_SEMAPHORES 250u
/* Of these: 1 while the state buffer has the resident constants of the last model. */
#define RESIDENT_SEMAPHORE LOADER_SEMAPHORES
/* The id that ends a run (docs/loading.md). */
#define NOTIFY_DONE 1u
/* Of a notification queue: more than a run can fill (scan_program()). */
#define NQ_BYTES 16384u
#define NQ_ENTRIES (NQ_BYTES / (uint32_t)sizeof(struct neuron_isa_notice))

/* A transfer that a program starts. */
struct trigger {
	uint32_t engine;
	size_t inst;			/* in the program; unused if generated */
	const struct neuron_neff_dma *dma;
	/* Of the loader: */
	uint32_t ring;			/* index in model->rings */
	uint32_t slot;			/* of its queue */
	uint32_t count[2];		/* descriptors, by enum neuron_ring_side */
	uint64_t moves, io_moves;	/* as in struct ring */
	uint32_t semaphore;		/* generated: to wait for */
	bool own_semaphore;
};

/* Of a subgraph. */
struct programs {
	const struct neuron_neff_subgraph *sg;	/* set by the caller, like the next three */
	struct neuron_error *error;
	struct obstacles *obstacles;
	struct programs *other;		/* of the other core of a logical one, or NULL */

	bool generated;			/* the SP program is ours */
	bool vendor;			/* programs are not looked into: it is only placed */
	bool dirty;			/* a run leaves semaphores or events set */
	uint64_t macs;			/* multiply-accumulates of a run */
	void *code[NR_ENGINES];
	size_t code_size[NR_ENGINES];
	struct trigger *triggers;
	size_t nr_triggers;
	size_t max_triggers;

	/* What all programs add less what they take away. */
	int64_t semaphores[NEURON_NEFF_MAX_SEMAPHORES];
	int64_t events[NEURON_NEFF_MAX_EVENTS];
	size_t nr_notify;		/* of SP */
};

/* Copies the programs and looks through them; @isa_version of the device.  0 or -errno. */
int programs_scan(struct programs *p, uint32_t isa_version);
/* When those of both cores were looked through. */
void programs_check_balance(struct programs *p);
int programs_generate(struct programs *p);
/* Write into the triggers where their rings are. */
void programs_patch(struct programs *p, const struct neuron_geometry *g);
void programs_free(struct programs *p);

#endif
