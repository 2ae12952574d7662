/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loaded models. */
#ifndef NRT_MODEL_H
#define NRT_MODEL_H

#include "../../common/turn.h"
#include "../base/process.h"

/* Host memory that the device reaches, in place of a buffer of the caller. */
struct nrt_stage {
	struct neuron_mem *mem;
	void *va;
};

struct nrt_model {
	struct neuron_model *model;
	struct nrt_vnc *vnc;
	uint32_t vnc_index;
	uint32_t id;
	uint32_t refs;			/* process lock; the list has one */
	struct turn turn;		/* running: @stages, @io */
	_Atomic uint64_t used;		/* when it ran last: the number of that execution */
	size_t nr_io;
	struct neuron_tensor_info *info;
	struct nrt_stage *stages;
	struct neuron_io *io;
	struct nrt_model *next;		/* process lock */
};

/* What a model has of device memory, without the shared scratchpad of its core. */
static inline uint64_t nrt_usage_bytes(const struct neuron_model_usage *u)
{
	return u->code + u->constants + u->scratchpad + u->runtime + u->rings_io + u->rings_spill +
	       u->rings_collectives + u->rings_runtime + u->collectives;
}

/* Not one that others use. */
void nrt_model_free(struct nrt_model *m);
/* Under the life lock for writing: nobody else is in here. */
void nrt_models_close(void);
/* Where a model without a core of its own goes. */
uint32_t nrt_emptiest_vnc(void);
/*
 * The list tells handles from anything else.  NULL, or the model, which stays until
 * nrt_model_put() even if another thread unloads it.
 */
struct nrt_model *nrt_model_get(const struct nrt_model *handle);
void nrt_model_put(struct nrt_model *m);

static inline void nrt_model_leave(struct nrt_model *const *m)
{
	nrt_model_put(*m);
}

/* Behind NRT_ENTER(): the model of a handle until the function returns, or it says there is none. */
#define NRT_MODEL(m, handle) \
	struct nrt_model *m __attribute__((cleanup(nrt_model_leave))) = nrt_model_get(handle); \
	if (!m) \
		return NRT_INVALID_HANDLE

#endif
