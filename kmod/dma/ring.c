// SPDX-License-Identifier: GPL-2.0-only
/* Rings of descriptors, as the device knows them. */
#include "ring.h"

/**
 * neuron_ring_program() - tell the device where a ring is
 * @nd: device
 * @eng: engine number
 * @base: NEURON_DMA_TX(queue) or NEURON_DMA_RX(queue)
 * @addr: device address; 0: no ring, and the queue is not enabled
 * @length: descriptors
 *
 * Context: may sleep; the queue is bound and stopped.
 * Return: 0, or the device's error.
 */
int neuron_ring_program(struct neuron_device *nd, u32 eng, u32 base, u64 addr, u32 length)
{
	const struct neuron_hw_ops *ops = nd->ops;

	return ops->reg_write(nd, NEURON_BLOCK_DMA, eng, base + NEURON_DMA_Q_BASE_LO,
			      lower_32_bits(addr)) ?:
	       ops->reg_write(nd, NEURON_BLOCK_DMA, eng, base + NEURON_DMA_Q_BASE_HI,
			      upper_32_bits(addr)) ?:
	       ops->reg_write(nd, NEURON_BLOCK_DMA, eng, base + NEURON_DMA_Q_LENGTH, length) ?:
	       addr ? ops->reg_write(nd, NEURON_BLOCK_DMA, eng, base + NEURON_DMA_Q_CONFIG,
				     NEURON_DMA_Q_CONFIG_ENABLE) : 0;
}
