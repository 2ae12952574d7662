/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A piece of a segment of a pool: a program's, or free. */
#ifndef NEURON_LIB_BLOCK_H
#define NEURON_LIB_BLOCK_H

#include <neuron/pool.h>

enum block_state {
	BLOCK_SPARE,	/* no memory, kept for the next one */
	BLOCK_USED,	/* a program's */
	BLOCK_READY,	/* free, for any queue */
	BLOCK_PENDING,	/* free, for the later work of its queue */
};

struct neuron_mem_block {
	uint64_t address;
	uint64_t bytes;
	struct segment *segment;
	/* Neighbours in the segment; of a spare one only @next. */
	struct neuron_mem_block *prev, *next;
	union {
		struct {	/* free */
			struct neuron_mem_block *left, *right;
		};
		uint64_t asked;	/* used: bytes that the program wanted */
	};
	/* Pending: those of its queue in the order of points, and the work that it waits for. */
	struct neuron_mem_block *older, *newer;
	uint64_t point;
	uint32_t queue;
	enum block_state state;
};

#endif
