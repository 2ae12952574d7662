/* SPDX-License-Identifier: GPL-2.0-only */
/* Fences of exported memory. */
#ifndef NEURON_MEM_SYNC_H
#define NEURON_MEM_SYNC_H

#include "chunk.h"

/* Fences of others end in finite time; a process can also import one that does not. */
#define NEURON_SYNC_TIMEOUT	(30 * HZ)

struct dma_fence;

struct dma_resv *neuron_sync_resv(struct neuron_chunk *chunk);
void neuron_sync_drop(struct neuron_chunk *chunk);
int neuron_sync_wait(struct neuron_chunk *chunk, bool write);
bool neuron_sync_drain(struct neuron_chunk *chunk, unsigned long deadline);
struct dma_fence *neuron_sync_begin(struct neuron_chunk *src, struct neuron_chunk *dst);
void neuron_sync_end(struct dma_fence *fence, int err);

/* A chunk goes: nobody has it. */
static inline void neuron_sync_free(struct neuron_chunk *chunk)
{
	if (unlikely(chunk->resv))
		neuron_sync_drop(chunk);
}

#endif
