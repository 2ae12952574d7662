/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file pool.h
 * @brief Pools of device memory in the order of queues.
 */
#ifndef NEURON_POOL_H
#define NEURON_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <neuron/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup pool Pools of memory
 *
 * Both kinds of pools ask the driver for a few long segments and hand out parts of them, so that
 * an allocation takes no system call. Functions may be called from several threads; what they
 * are about may not be freed at the same time. In a child after fork() nothing of a pool can be
 * used. Statistics use the words of other allocators:
 *
 *  - reserved: bytes of the segments that the pool holds of the driver
 *  - allocated: bytes that the program holds of the pool
 *  - active: allocated, and freed but maybe still used by the device
 *  - inactive: reserved and not active
 * @{ */

struct neuron_mem_pool;
struct neuron_mem_block;

/** @brief A figure of a pool over time. */
struct neuron_pool_figure {
	uint64_t current;
	uint64_t peak;		/**< highest value of @c current since the last clearing */
	uint64_t allocated;	/**< sum of what was added */
	uint64_t freed;		/**< sum of what was taken away */
};

#define NEURON_POOL_MAX_QUEUES 256u

/**
 * @brief Wait until the work of a queue is done, up to a point.
 *
 * Called without a lock of the pool, from within neuron_mem_pool_alloc(), before that refuses.
 * @return 0 it is done; else the pool goes on as if it had not asked
 */
typedef int (*neuron_pool_wait_fn)(void *data, uint32_t queue, uint64_t point);

struct neuron_mem_pool_opts {
	size_t size;
	uint32_t hbm;				/**< device memory */
	uint32_t nc;				/**< core that is charged */
	enum neuron_mem_category category;	/**< of device memory; 0: NEURON_MEM_TENSORS */
	uint32_t queues;			/**< their number; 0: 16 */
	/** Bytes of the first segment, allocated at once; 0: 2 GiB, or less if that is not free. */
	uint64_t init;
	uint64_t increase;			/**< bytes of further segments; 0: 2 GiB */
	uint64_t max;				/**< bytes reserved at most; 0: no limit */
	uint64_t align;				/**< of all blocks, a power of two; 0: 512 */
	neuron_pool_wait_fn wait;		/**< may be NULL: nothing is waited for */
	void *data;				/**< first argument of @c wait */
	struct neuron_mem_failure *failure;	/**< of neuron_mem_pool_open(), may be NULL */
};

/** @brief Statistics of a pool, in one consistent picture. */
struct neuron_mem_pool_stats {
	size_t size;
	struct neuron_pool_figure allocation;		/**< number of blocks allocated */
	struct neuron_pool_figure segment;		/**< number of segments */
	struct neuron_pool_figure requested_bytes;	/**< allocated, as they were asked for */
	struct neuron_pool_figure allocated_bytes;	/**< same, rounded up to @c align */
	struct neuron_pool_figure reserved_bytes;
	uint64_t active_bytes;
	uint64_t inactive_bytes;
	uint64_t inactive_split_bytes;	/**< inactive in segments that have active bytes, too */
	uint64_t largest_inactive;	/**< longest inactive run */
	uint64_t num_alloc_retries;	/**< the driver or @c max refused, unused segments went */
	uint64_t num_ooms;		/**< refused requests */
};

/**
 * @brief Make a pool of device memory whose allocations and frees follow the order of queues.
 *
 * A queue is what executes work in the order in which it was queued: a core with the program's
 * requests for it. The pool knows it by a number and by points: neuron_mem_pool_submit() counts
 * one up when the program queues work that uses blocks, neuron_mem_pool_complete() tells how far
 * it came. A block that was freed is at once there for allocations of the same queue, whose work
 * comes later; allocations of other queues get it when the work before the free is known to be
 * complete. A program that waits for its work before it frees needs neither of the two.
 * @return 0, -EINVAL, -E2BIG, -ENOMEM @c init is not free, see @c failure, or host memory ran out
 */
int neuron_mem_pool_open(struct neuron_device *device, const struct neuron_mem_pool_opts *opts,
			 struct neuron_mem_pool **pool);
/**
 * @brief Drop the handle; the pool goes with its last block, and its segments with it. The work
 * of all queues must be complete by then. NULL is allowed.
 */
void neuron_mem_pool_close(struct neuron_mem_pool *pool);

/**
 * @brief Allocate a block; its contents are what was there before.
 *
 * Takes the tightest free place. Without one it joins what the queue may use, reserves a
 * further segment, returns unused ones and tries again, waits (opts.wait), and refuses.
 * @param bytes	length; blocks are rounded up to opts.align
 * @param queue	whose later work uses the block
 * @param block	to be freed with neuron_mem_block_free(); keeps the pool
 * @param failure filled in with -ENOMEM, may be NULL: reason CAPPED with opts.max as @c total,
 *		  or what the driver says
 * @return 0, -EINVAL 0 bytes or no such queue, -ENOMEM
 */
int neuron_mem_pool_alloc(struct neuron_mem_pool *pool, uint64_t bytes, uint32_t queue,
			  struct neuron_mem_block **block, struct neuron_mem_failure *failure);
/**
 * @brief Free a block behind the work that its queue has by now. NULL is allowed.
 * @param queue	the queue that used it last; if that is not the one that it was allocated for,
 *		the program has put the work of the two in order
 * @return 0, -EINVAL no such queue: the block stays
 */
int neuron_mem_block_free(struct neuron_mem_block *block, uint32_t queue);
/** @brief Device address of a block; it does not change. */
uint64_t neuron_mem_block_address(const struct neuron_mem_block *block);
/** @brief Bytes that were requested. */
uint64_t neuron_mem_block_bytes(const struct neuron_mem_block *block);
/**
 * @brief Memory that has the block in it, for neuron_mem_read(), neuron_io and others. It belongs
 * to the pool.
 */
struct neuron_mem *neuron_mem_block_mem(const struct neuron_mem_block *block);
/** @brief Place of the block in neuron_mem_block_mem(). */
uint64_t neuron_mem_block_offset(const struct neuron_mem_block *block);

/**
 * @brief Work was queued that may use blocks of the pool. Takes no lock.
 * @return its point, counted from 1; 0 no such queue
 */
uint64_t neuron_mem_pool_submit(struct neuron_mem_pool *pool, uint32_t queue);
/**
 * @brief The work of a queue is complete up to a point, which may be an old one. Takes no lock.
 * @return 0, -EINVAL no such queue, or work that was not queued
 */
int neuron_mem_pool_complete(struct neuron_mem_pool *pool, uint32_t queue, uint64_t point);
/**
 * @brief Return what is not used to the driver: unused segments, and the unused ends of others.
 * @param keep	bytes that stay reserved at least
 * @param returned bytes returned; may be NULL
 */
void neuron_mem_pool_trim(struct neuron_mem_pool *pool, uint64_t keep, uint64_t *returned);
/** @brief Statistics. @return 0, -EINVAL */
int neuron_mem_pool_get_stats(struct neuron_mem_pool *pool, struct neuron_mem_pool_stats *stats);
/** @brief Peaks count from the present values on. */
void neuron_mem_pool_reset_peak(struct neuron_mem_pool *pool);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
