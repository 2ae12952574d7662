/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's cgroup controller of device memory. */
#ifndef NEURON_MEM_DMEM_H
#define NEURON_MEM_DMEM_H

#include <linux/types.h>

#include "../compat/compat.h"

struct neuron_chunk;
struct neuron_device;
struct neuron_hbm;

#ifdef NEURON_DMEM
int neuron_dmem_init(struct neuron_device *nd, struct neuron_hbm *hbm, u64 size);
void neuron_dmem_exit(struct neuron_hbm *hbm);
int neuron_dmem_charge(struct neuron_hbm *hbm, struct neuron_chunk *chunk);
int neuron_dmem_grow(struct neuron_hbm *hbm, struct neuron_chunk *chunk, u64 more);
void neuron_dmem_shrink(struct neuron_chunk *chunk, u64 more);
void neuron_dmem_cut(struct neuron_chunk *chunk, u64 less);
void neuron_dmem_uncharge(struct neuron_chunk *chunk);
#else
static inline int neuron_dmem_init(struct neuron_device *nd, struct neuron_hbm *hbm, u64 size)
{
	return 0;
}

static inline void neuron_dmem_exit(struct neuron_hbm *hbm)
{
}

static inline int neuron_dmem_charge(struct neuron_hbm *hbm, struct neuron_chunk *chunk)
{
	return 0;
}

static inline int neuron_dmem_grow(struct neuron_hbm *hbm, struct neuron_chunk *chunk, u64 more)
{
	return 0;
}

static inline void neuron_dmem_shrink(struct neuron_chunk *chunk, u64 more)
{
}

static inline void neuron_dmem_cut(struct neuron_chunk *chunk, u64 less)
{
}

static inline void neuron_dmem_uncharge(struct neuron_chunk *chunk)
{
}
#endif

#endif
