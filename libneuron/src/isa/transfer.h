/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Transfers that compute: from a description in a NEFF to packets of descriptors. */
#ifndef NEURON_TRANSFER_H
#define NEURON_TRANSFER_H

#include <neuron/neuron.h>

#include "../../../uapi/neuron_isa.h"
#include "span.h"

/* Of each of the two rings with which the host lets a core compute (run/compute_queue.c). */
#define COMPUTE_SLOTS 2048u
#define COMPUTE_RINGS (2ull * COMPUTE_SLOTS * sizeof(struct neuron_descriptor))

/* One descriptor. */
struct transfer_part {
	uint64_t address;	/* or offset in a tensor not yet bound */
	uint32_t bytes;		/* 1..65536 */
	uint32_t meta;		/* word 1 */
	uint32_t source;	/* TX: index of the source */
};

/* One operation of the DMA engine (kmod/emu/ISA.md section 11). */
struct transfer_packet {
	uint32_t nr_tx;
	uint32_t nr_rx;
	struct transfer_part tx[NEURON_ISA_DMA_MAX_DESCS];
	struct transfer_part rx[NEURON_ISA_DMA_MAX_DESCS];
};

struct transfer {
	const struct neuron_neff_desc *desc;
	uint32_t meta;		/* word 1 of sources, without their type */
	uint32_t arg;
	struct span_iter src[NEURON_NEFF_MAX_SOURCES];
	struct span_iter dst;
	/* transpose: where we are, and the largest tile */
	uint64_t outer;
	uint64_t row;
	uint64_t col;
	uint32_t rows;
	uint32_t cols;
};

/*
 * Start with the first packet.  @dst and @src are where the sides lie.
 * Returns NULL, or why the transfer cannot be built.
 */
const char *transfer_start(struct transfer *t, const struct neuron_neff_desc *desc,
			   const struct span *dst, const struct span *src);
bool transfer_next(struct transfer *t, struct transfer_packet *packet);

/* The descriptor of a part; RX descriptors are neither first nor last. */
void transfer_descriptor(struct neuron_descriptor *d, const struct transfer_part *part,
			 bool first, bool last);

/* Descriptors of all packets on each side; gives up when one is beyond @limit. */
void transfer_count(struct transfer t, uint64_t limit, uint64_t *tx, uint64_t *rx);

#endif
