/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pool of device memory in the order of queues.
 *
 * A segment is memory of the driver, cut into blocks that lie side by side.  Free blocks are
 * found by length: those that are ready for any queue, and those of each queue whose
 * earlier work is not known to be done.  Free neighbours of a kind are always one block.
 *
 * A block that is longer than a segment of many has one of its own.  That is never cut up, so
 * that nothing short keeps the driver from getting all of it back.
 */
#ifndef NEURON_LIB_POOL_H
#define NEURON_LIB_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../common/util.h"
#include "../device/device.h"
#include "figure.h"
#include "fit.h"

struct segment {
	/* Of these, a free looks at the first two. */
	uint64_t bytes;
	bool own;		/* of one long block, which is all of it */
	uint64_t address;
	struct neuron_mem *mem;
	struct neuron_mem_pool *pool;
	struct neuron_mem_block *first, *last;
	struct segment *prev, *next;
};

/* Free blocks of a kind: in segments of many, and in those of one. */
struct fits {
	struct fit shared, own;
};

struct pool_queue {
	/* Written without the lock of the pool. */
	_Atomic uint64_t submitted, completed;
	struct fits fits;	/* pending blocks, with their list below */
	struct neuron_mem_block *oldest, *newest;
	uint64_t pending;	/* their bytes */
};

struct neuron_mem_pool {
	pthread_mutex_t lock;	/* all but @opts and what is atomic */
	struct neuron_device *device;
	struct reserve reserve;
	struct neuron_mem_pool_opts opts;	/* with the defaults filled in */
	bool closed;
	uint64_t segment;	/* length of one of many; a longer block has one of its own */
	uint64_t ahead;		/* bytes to reserve in a step: an increase, less when memory is short */
	struct fits ready;
	struct {
		uint64_t shared, own;
	} idle;			/* bytes of segments that are one ready block */
	struct segment *segments;
	/* How many long segments of a length were asked for at once, by a hash of the length. */
	struct guess {
		uint64_t bytes, n;
	} guess[64];
	struct neuron_mem_block *spare;
	struct slab *slabs;
	struct neuron_mem_pool_stats stats;	/* figures and counters; others on demand */
	uint32_t nr_queues;
	struct pool_queue queue[];
};

/* From here on under the lock. */

/* A block without memory, or NULL. */
struct neuron_mem_block *block_new(struct neuron_mem_pool *pool);
void block_drop(struct neuron_mem_pool *pool, struct neuron_mem_block *block);
/* The memory of all of them. */
void blocks_free(struct neuron_mem_pool *pool);
/* A block of no index, with its state, queue and point set: join its neighbours, index it. */
void block_put(struct neuron_mem_pool *pool, struct neuron_mem_block *block);
/* A segment of one becomes one of many. */
void segment_share(struct neuron_mem_pool *pool, struct segment *segment);
/* Out of its index. */
void block_take(struct neuron_mem_pool *pool, struct neuron_mem_block *block);
/* The first @bytes of a free block become one that is used; -ENOMEM. */
int block_split(struct neuron_mem_pool *pool, struct neuron_mem_block *block, uint64_t bytes,
		struct neuron_mem_block **used);
/* What waited for work that is done now becomes ready. */
void blocks_harvest(struct neuron_mem_pool *pool);
/* Pending blocks of a queue take the ready ones beside them. */
void blocks_join(struct neuron_mem_pool *pool, struct pool_queue *queue);

/* Segments consist of whole pages and whole places for blocks. */
uint64_t segment_unit(const struct neuron_mem_pool *pool);
/* What the pool is to reserve: segments of @each bytes, @least together, better @most. */
struct step {
	uint64_t each, least, most;
};
int segments_add(struct neuron_mem_pool *pool, const struct step *step,
		 struct neuron_mem_failure *failure);
/* What a request is told that opts.max leaves no room for. */
struct neuron_mem_failure segments_capped(const struct neuron_mem_pool *pool, uint64_t bytes);
/* Return unused segments of one, or of many, of at least @bytes together if there are so many. */
void segments_return(struct neuron_mem_pool *pool, bool own, uint64_t bytes);
/* Return what is not used, down to @keep reserved bytes.  How much was returned. */
uint64_t segments_trim(struct neuron_mem_pool *pool, uint64_t keep);
/* All of them, whatever is in them. */
void segments_free(struct neuron_mem_pool *pool);

#endif
