/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file pool.h
 * @brief Pools of device memory: in the order of queues, and paged for the keys and values of
 * sequences.
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
 * Both kinds of pools ask the driver for segments in advance and hand out parts of them, so that
 * an allocation takes no system call. Functions may be called from several threads; what they
 * are about may not be freed at the same time. In a child after fork() nothing of a pool can be
 * used. What is freed or closed there is forgotten, whatever threads of the parent were doing with
 * the pool: its host memory stays until the child ends or calls exec(), and the device is open as
 * long, if not for neuron_device_abandon(). Statistics use the words of other allocators:
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
	uint32_t owner;				/**< as in struct neuron_mem_opts */
	enum neuron_mem_category category;	/**< of device memory; 0: NEURON_MEM_TENSORS */
	uint32_t queues;			/**< their number; 0: 16 */
	/** Bytes reserved at once when the pool is opened, up to 2^48; 0: 2 GiB, or less if that is
	 * not free. */
	uint64_t init;
	/** Bytes reserved in a step, in segments of 1 MiB; 0: 2 GiB. After the driver refused, a
	 * while less. A block of more than 1 MiB has a segment of its own, in the place of those of
	 * the last step or beside them: as much as an eighth of what is used, or as an increase,
	 * may be unused then. It is rounded up to pages. */
	uint64_t increase;
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
	uint64_t inactive_split_bytes;	/**< inactive, in segments with active bytes */
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
 * Takes the tightest free place; of more than 1 MiB, a segment of just that length. Without one
 * it joins what the queue may use, reserves further segments, returns unused ones and tries
 * again, waits (opts.wait), and refuses. What is longer than opts.max, or than 2^48 bytes, is
 * refused at once.
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
 * @return 0, -EINVAL no such queue: the block stays; or it is free already, which is seen only until
 *	   another request or the driver gets its place
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
 * Of blocks that have a segment each, that is all. Takes a call of the driver for each 1,024
 * segments, and one for each end.
 * @param keep	bytes that stay reserved at least
 * @param returned bytes returned; may be NULL
 */
void neuron_mem_pool_trim(struct neuron_mem_pool *pool, uint64_t keep, uint64_t *returned);
/** @brief Statistics. @return 0, -EINVAL */
int neuron_mem_pool_get_stats(struct neuron_mem_pool *pool, struct neuron_mem_pool_stats *stats);
/** @brief Peaks count from the present values on. */
void neuron_mem_pool_reset_peak(struct neuron_mem_pool *pool);

/** @} @defgroup kv Paged memory for keys and values
 *
 * The pool is cut into blocks of some tokens. A sequence is a list of blocks, of which sequences
 * with the same beginning share the first ones; the last one is copied when one of them appends
 * to it. Pinned sequences are in device memory. The blocks of others may be evicted to host
 * memory, those of the lowest priority first, of these what was unpinned first; a shared block has
 * the highest priority of those that unpinned it. Pinning brings blocks back. Sequences of a pool
 * may be used by different threads, a sequence by one at a time.
 * @{ */

struct neuron_kv_pool;
struct neuron_kv_seq;

#define NEURON_KV_NO_BLOCK "Can't allocate new blocks. No free blocks left"
#define NEURON_KV_MAX_PRIORITY 100u
#define NEURON_KV_MAX_BLOCKS (1u << 30)

struct neuron_kv_opts {
	size_t size;
	uint32_t hbm;			/**< device memory */
	uint32_t nc;			/**< core that is charged, and whose DMA copies blocks */
	uint32_t owner;			/**< as in struct neuron_mem_opts */
	enum neuron_mem_category category;	/**< of device memory; 0: NEURON_MEM_TENSORS */
	uint32_t block_tokens;		/**< tokens of a block; 0: 64 */
	uint64_t token_bytes;		/**< keys and values of a token, of all layers */
	/** Of the free device memory, above 0 and up to 1; 0: 0.9, or all that max_tokens takes. */
	double fraction;
	uint64_t max_tokens;		/**< 0: no limit; with @c fraction the smaller one wins */
	uint64_t host_bytes;		/**< host memory for evicted blocks, in whole blocks */
	uint64_t max_seq_tokens;	/**< of a sequence; 0: no limit */
	/** Told, a line at a time, what the pool takes and what it refuses; must not call the pool;
	 * may be NULL. */
	void (*log)(void *data, const char *line);
	void *data;			/**< first argument of @c log */
	struct neuron_mem_failure *failure;	/**< of neuron_kv_pool_open(), may be NULL */
};

struct neuron_kv_stats {
	size_t size;
	uint64_t block_bytes;
	uint32_t block_tokens;
	uint32_t segments;		/**< of device memory */
	struct neuron_pool_figure allocated_blocks;	/**< of sequences, in both memories */
	uint64_t blocks;		/**< of device memory */
	uint64_t free_blocks;		/**< of these: free */
	uint64_t active_blocks;		/**< of these: of pinned sequences */
	uint64_t inactive_blocks;	/**< of these: may be evicted */
	uint64_t shared_blocks;		/**< that more than one sequence holds */
	uint64_t host_blocks;		/**< of host memory */
	uint64_t host_free_blocks;
	uint64_t reserved_bytes;	/**< of device memory */
	uint64_t allocated_bytes;	/**< device memory that sequences hold */
	uint64_t host_reserved_bytes;
	uint64_t evictions;		/**< blocks copied to host memory */
	uint64_t onboards;		/**< blocks copied back */
	uint64_t copies_on_write;	/**< blocks */
	uint64_t num_ooms;		/**< refused requests */
};

/**
 * @brief Number of blocks that a pool would get; 0 if there is not room for one.
 *
 * As many as the tokens of opts.fraction, of opts.max_tokens or of the smaller one take, but at
 * least one; the last block is a whole one if there is room for it. Of opts.max_tokens alone it
 * may be fewer than they take, as many as there is room for: then neuron_kv_pool_open() refuses.
 * @param available	free bytes of the device memory
 * @return 0, -EINVAL
 */
int neuron_kv_plan(const struct neuron_kv_opts *opts, uint64_t available, uint64_t *blocks);
/**
 * @brief Make a pool; all of its memory is allocated here.
 *
 * Available is what is free when this is called, after the weights and scratchpads of the models
 * that are loaded by then, and within the limits of core and process.
 * @return 0, -EINVAL, -E2BIG, -ENOMEM there is not room for one block, or for opts.max_tokens
 *	   alone, these are more than NEURON_KV_MAX_BLOCKS blocks, or no host memory, see
 *	   opts.failure
 */
int neuron_kv_pool_open(struct neuron_device *device, const struct neuron_kv_opts *opts,
			struct neuron_kv_pool **pool);
/** @brief Drop the handle; the pool goes with its last sequence. NULL is allowed. */
void neuron_kv_pool_close(struct neuron_kv_pool *pool);
int neuron_kv_pool_get_stats(struct neuron_kv_pool *pool, struct neuron_kv_stats *stats);
/** @brief Peaks count from the present values on. */
void neuron_kv_pool_reset_peak(struct neuron_kv_pool *pool);
/**
 * @brief Evict blocks until so many of the device memory are free. The last copy is under way
 * when this returns; the next function that needs it waits for it.
 * @return 0, -ENOBUFS there are not so many to evict, or no host memory for them; errors of the
 *	   copies
 */
int neuron_kv_pool_evict(struct neuron_kv_pool *pool, uint64_t blocks);

/** @brief Make an empty, pinned sequence. @param priority 0 (evicted first) to
 * NEURON_KV_MAX_PRIORITY @return 0, -EINVAL, -ENOMEM */
int neuron_kv_seq_open(struct neuron_kv_pool *pool, uint32_t priority,
		       struct neuron_kv_seq **seq);
/**
 * @brief Make a pinned sequence that begins with the first tokens of another, pinned one. Nothing
 * is copied. @return 0, -EINVAL it has fewer, -EAGAIN it is not pinned, -ENOMEM
 */
int neuron_kv_seq_fork(struct neuron_kv_seq *seq, uint64_t tokens, uint32_t priority,
		       struct neuron_kv_seq **child);
/**
 * @brief Free a sequence. The device must have done what reads or writes it, unless all that use
 * the pool are in one queue. NULL is allowed.
 */
void neuron_kv_seq_close(struct neuron_kv_seq *seq);
/**
 * @brief Room for more tokens at the end, which the caller may write. A last block that others
 * share is copied first, and its address changes.
 * @return 0, -EAGAIN it is not pinned, -ENOBUFS no block is free and none can be evicted,
 *	   -EFBIG longer than opts.max_seq_tokens, -ENOMEM, errors of the copies; nothing changes
 */
int neuron_kv_seq_append(struct neuron_kv_seq *seq, uint64_t tokens);
/** @brief Drop the tokens behind the first @p tokens ones. @return 0, -EINVAL it has fewer */
int neuron_kv_seq_truncate(struct neuron_kv_seq *seq, uint64_t tokens);
/**
 * @brief Bring a sequence to device memory and keep it there. Blocks until it is there.
 * @return 0, -EALREADY it is pinned, -ENOBUFS there is no room: it stays unpinned; errors of the
 *	   copies
 */
int neuron_kv_seq_pin(struct neuron_kv_seq *seq);
/** @brief Let a sequence be evicted; the device must have done what uses it. @return 0,
 * -EALREADY it is not pinned */
int neuron_kv_seq_unpin(struct neuron_kv_seq *seq);
/**
 * @brief Start bringing the next block of an unpinned sequence to device memory, and return.
 * @param left	blocks that are not there, with that one; 0: neuron_kv_seq_pin() will not wait; may
 *		be NULL
 * @return 0, -EALREADY it is pinned, -ENOBUFS no block is free; errors of the copies
 */
int neuron_kv_seq_prefetch(struct neuron_kv_seq *seq, uint64_t *left);
uint64_t neuron_kv_seq_tokens(const struct neuron_kv_seq *seq);
/**
 * @brief Device addresses of the blocks of a pinned sequence, in order: what a gather list is made
 * of. The array belongs to the sequence, until its next call. @return 0, -EINVAL, -EAGAIN it is not
 * pinned
 */
int neuron_kv_seq_blocks(struct neuron_kv_seq *seq, const uint64_t **addresses, size_t *n);
/**
 * @brief Where a token of a pinned sequence is. @param mem belongs to the pool @param offset of the
 * token in it @param tokens how many follow there without a gap, with this one; may be NULL
 * @return 0, -EAGAIN it is not pinned, -EINVAL there is no such token
 */
int neuron_kv_seq_locate(struct neuron_kv_seq *seq, uint64_t token, struct neuron_mem **mem,
			 uint64_t *offset, uint64_t *tokens);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
