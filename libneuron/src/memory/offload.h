/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Movable memory that went to host memory comes back when it is used (offload.c). */
#ifndef NEURON_LIB_OFFLOAD_H
#define NEURON_LIB_OFFLOAD_H

#include "../../common/lock.h"
#include "image.h"

/* Under mem->lock: it is on the device afterwards, or nothing changed. @failure may be NULL. */
int offload_return_locked(struct neuron_mem *mem, struct neuron_mem_failure *failure);
/* It is on the device, and stays there until offload_drop(). Other than movable memory is always. */
int offload_hold(struct neuron_mem *mem);

static inline void offload_drop(struct neuron_mem *mem)
{
	if (!mem->movable)
		return;
	GUARD(&mem->lock);
	mem->uses--;
}

/* Of the two tokens of a core only the first is used: there is nothing to tell apart. */
#define COPY_TOKEN 1u

/* A copy was started, and holds both (started.c). */
void copy_note(struct neuron_mem *dst, struct neuron_mem *src);
/* Wait for it, and drop both. Its result; -EINVAL: there is none of this pair. */
int copy_finish(struct neuron_mem *dst, struct neuron_mem *src);
/* The memory is about to be freed: wait for what was started from or to it. */
void copies_end(struct neuron_mem *mem);

#endif
