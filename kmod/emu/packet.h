/* SPDX-License-Identifier: GPL-2.0-only */
/* Compute packets: DMA that computes on its sources instead of copying them. */
#ifndef EMU_PACKET_H
#define EMU_PACKET_H

#include "compute.h"
#include "emu.h"

/**
 * struct emu_extent - a run of bytes
 * @addr: device address
 * @len: bytes
 * @pin: held while the packet is executed
 */
struct emu_extent {
	u64 addr;
	u32 len;
	struct neuron_pin pin;
};

/**
 * struct emu_packet - a compute packet being collected; belongs to a queue
 * @meta: word 1 of its first descriptor, without the source type
 * @nr_tx: source descriptors
 * @nr_rx: destination descriptors
 * @count: elements of each source; transpose: bytes of all sources
 * @result: bytes of the result
 * @room: bytes of the destination descriptors so far
 * @irq: one of the descriptors asks for an interrupt
 * @c: what to compute
 * @lane: for elementwise operations
 * @tx: sources
 * @rx: destinations
 */
struct emu_packet {
	u32 meta;
	u32 nr_tx;
	u32 nr_rx;
	u32 count;
	u32 result;
	u32 room;
	bool irq;
	struct emu_compute c;
	struct emu_lane lane;
	struct emu_extent tx[NEURON_ISA_DMA_MAX_DESCS];
	struct emu_extent rx[NEURON_ISA_DMA_MAX_DESCS];
};

struct emu_packet *emu_packet_new(u32 meta);
void emu_packet_free(struct emu_packet *p);
int emu_packet_source(struct emu_packet *p, u32 meta, u64 addr, u32 len, bool irq);
int emu_packet_dest(struct emu_packet *p, u32 arg, u64 addr, u32 len, bool irq);
int emu_packet_run(struct emu_device *ed, struct neuron_space *space, u32 core,
		   struct emu_packet *p, u64 *bad);

#endif /* EMU_PACKET_H */
