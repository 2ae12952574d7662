/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A physical core, which runs the models that are loaded onto it. */
#ifndef NEURON_LIB_CORE_H
#define NEURON_LIB_CORE_H

#include <neuron/neff.h>

#include "../../common/turn.h"
#include "../load/model.h"

struct profile_part;
struct compute_queue;

/* What a profile of a core is told, in a turn of the core. */
struct recorder_ops {
	/* Whether the core has to be reset before the next run. */
	bool (*starts_over)(struct profile_part *part);
	/* Behind a reset; @works: the core can be used again. */
	void (*reset)(struct profile_part *part, bool works);
	void (*run_begin)(struct profile_part *part, const struct neuron_model *model);
	void (*run_end)(struct profile_part *part, int ret);
};

struct neuron_core {
	struct neuron_device *device;
	struct neuron_core *peer;	/* second one of a logical core */
	uint32_t nc;
	uint32_t hbm;
	uint32_t nr_slots;
	bool contiguous;
	struct neuron_mem *microcode;
	atomic_uint refs;
	struct scratchpad scratchpad;	/* has a lock of its own */

	struct turn turn;		/* for everything below, and running a model */
	const struct neuron_model **owner;	/* whose rings a slot's queue has */
	struct neuron_nq *notify;
	struct neuron_nq *error;
	struct reset_watch watch;	/* its eventfd is signalled by both, too */
	struct compute_queue *compute;	/* NULL until something is computed */
	bool broken;			/* to be reset before the next run, not only after errors */
	bool foreign;			/* what is in it is another user's, also after a reset */
	bool held;			/* the driver kept what only a reset gives back */
	bool done;			/* its part of the run */
	const struct recorder_ops *recorder;	/* of @profile */
	struct profile_part *profile;	/* being recorded, or NULL */
};

struct neuron_core *core_get(struct neuron_core *core);
void core_put(struct neuron_core *core);
/* In a turn of the core. */
int core_reset_locked(struct neuron_core *core);
/*
 * Stop the queues that have rings of the model; NULL: all.  A queue that the driver does
 * not let go keeps its rings until the core is reset, and the core is @held.
 */
void core_release_queues(struct neuron_core *core, const struct neuron_model *model);
/* Memory next to the core, charged to it. */
int core_alloc(const struct neuron_core *core, enum neuron_mem_category category, uint32_t flags,
	       uint64_t bytes, struct neuron_mem_failure *failure, struct neuron_mem **mem);
/* Try again to reset a core that is @held. */
void core_take_back(struct neuron_core *core);

/* By name; callers tend to have them in the order of the model, at @hint.  NULL: none. */
const struct neuron_io *find_io(const struct neuron_io *io, size_t nr, size_t hint,
				const char *name);
/* As neuron_model_load(), of a file that was opened already. */
int model_load_opened(struct neuron_core *core, struct neuron_neff *neff,
		      const struct neuron_model_opts *opts, struct neuron_model **model);

#endif
