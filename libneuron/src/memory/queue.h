/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Words of DMA descriptors (uapi/FACTS.md 5). */
#ifndef NEURON_LIB_QUEUE_H
#define NEURON_LIB_QUEUE_H

/* Of word 0. */
#define DESC_RING_ID_1		(1u << 24)
#define DESC_FIRST		(1u << 26)
#define DESC_LAST		(1u << 27)

#endif
