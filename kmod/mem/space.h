/* SPDX-License-Identifier: GPL-2.0-only */
/* What device addresses refer to; neuron_hw.h has what back ends call. */
#ifndef NEURON_MEM_SPACE_H
#define NEURON_MEM_SPACE_H

#include "chunk.h"

struct neuron_pin;

u32 neuron_space_core(struct neuron_device *nd, u64 addr, u64 len);
void neuron_pin_window(struct neuron_pin *pin, struct neuron_device *nd, u32 core, u64 addr);
void neuron_pin_chunk(struct neuron_pin *pin, struct neuron_chunk *chunk, u64 addr, u64 len,
		      enum neuron_user as);

#endif
