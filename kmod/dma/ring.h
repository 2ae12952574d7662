/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings of descriptors, as the device knows them. */
#ifndef NEURON_DMA_RING_H
#define NEURON_DMA_RING_H

#include "../base/device.h"

int neuron_ring_program(struct neuron_device *nd, u32 eng, u32 base, u64 addr, u32 length);

#endif
