/* SPDX-License-Identifier: GPL-2.0-only */
/* What device addresses refer to; neuron_hw.h has what back ends call. */
#ifndef NEURON_MEM_SPACE_H
#define NEURON_MEM_SPACE_H

#include "../base/device.h"
#include "chunk.h"

struct neuron_pin;

/**
 * neuron_space_core() - the core whose window contains a range of addresses
 * @nd: device
 * @addr: device address
 * @len: bytes, not 0
 *
 * Context: any.
 * Return: core number; nr_cores if there is none.
 */
static inline u32 neuron_space_core(const struct neuron_device *nd, u64 addr, u64 len)
{
	const struct neuron_geometry *geo = nd->geo;
	u32 i;

	for (i = 0; i < geo->nr_cores; i++) {
		u64 off = addr - geo->tpb_base[i];

		if (off < geo->tpb_size && len <= geo->tpb_size - off)
			break;
	}
	return i;
}

void neuron_pin_window(struct neuron_pin *pin, struct neuron_device *nd, u32 core, u64 addr);
void neuron_pin_chunk(struct neuron_pin *pin, struct neuron_chunk *chunk, u64 addr, u64 len,
		      enum neuron_user as);

#endif
