/* SPDX-License-Identifier: GPL-2.0-only */
/* One HBM: allocator, lock, accounting. */
#ifndef NEURON_MEM_HBM_H
#define NEURON_MEM_HBM_H

#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/sched/clock.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "../base/device.h"
#include "../compat/compat.h"
#include "buddy/buddy.h"

struct dmem_cgroup_region;
struct neuron_buddy;
struct neuron_chunk;
struct neuron_client;
struct neuron_failure;
struct neuron_native_hbm_stats;
struct neuron_native_mem_bulk_entry;
struct neuron_recorder;
struct neuron_scrub;

/**
 * struct neuron_hbm - one HBM
 * @lock: @buddy, @used, @refused, @recorder, @now, @moves, @moved_bytes, @move_failures and
 *	  client.hbm_bytes[index]
 * @nd: the device
 * @buddy: the allocator; NULL until the first allocation
 * @base: device address
 * @index: HBM number
 * @used: bytes by core and category
 * @driver: bytes of @used that the driver holds
 * @refused: requests that were refused, by the reason that was told
 * @recorder: what happened last; made with @buddy
 * @now: the last time in it and in the figures of owners; local_clock(), ns
 * @scrub_lock: held while memory is taken for scrubbing
 * @scrub: the scrub under way, NULL = none; not dereferenced
 * @compacting: memory is being moved; set with xchg()
 * @held: a move holds a place that it may give back, or a chunk that its owner may have freed
 * @moves_ended: moves that hold nothing any more, with those in vain; written by who compacts
 * @moves: allocations moved so far
 * @moved_bytes: their bytes
 * @move_failures: moves given up
 * @move_wait: woken when one of these changes
 * @watch_lock: @watched
 * @watched: ranges by user, mem/watch.c
 * @dmem: the HBM as the device-memory cgroup controller knows it
 */
struct neuron_hbm {
	spinlock_t lock;
	struct neuron_device *nd;
	struct neuron_buddy *buddy;
	u64 base;
	u32 index;
	u64 used[NEURON_HW_MAX_CORES][NEURON_NR_CATEGORIES];
	u64 driver;
	u64 refused[NEURON_NATIVE_REASON_CAPPED + 1];
	struct neuron_recorder *recorder;
	u64 now;
	struct mutex scrub_lock;
	struct neuron_scrub *scrub;
	bool compacting;
	bool held;
	u64 moves_ended;
	u64 moves;
	u64 moved_bytes;
	u64 move_failures;
	wait_queue_head_t move_wait;
	spinlock_t watch_lock;
	struct rb_root_cached watched;
#ifdef NEURON_DMEM
	struct dmem_cgroup_region *dmem;
#endif
} ____cacheline_aligned_in_smp;

/**
 * neuron_hbm_now() - the time for what happens now
 * @hbm: the HBM, locked
 *
 * The scheduler's clock takes some instructions; that of the system can take an access to a
 * register of the board.
 *
 * Return: local_clock(), ns, which does not go back from processor to processor.
 */
static inline u64 neuron_hbm_now(struct neuron_hbm *hbm)
{
	hbm->now = max(hbm->now, local_clock());
	return hbm->now;
}

#define NEURON_FREE_BATCH	64	/* chunks freed at a time, at most */

int neuron_hbm_init(struct neuron_device *nd, u32 hbm);
int neuron_hbm_ready(struct neuron_hbm *hbm);
void neuron_hbm_figures(struct neuron_hbm *hbm, struct neuron_buddy_stats *bs);
u64 neuron_hbm_largest(struct neuron_hbm *hbm, u64 align);
void neuron_hbm_exit(struct neuron_hbm *hbm);
int neuron_hbm_alloc(struct neuron_device *nd, struct neuron_chunk *chunk, u64 align,
		     u32 flags, struct neuron_failure *why);
void neuron_hbm_free(struct neuron_device *nd, struct neuron_chunk *chunk);
bool neuron_hbm_alloc_batch(struct neuron_device *nd, struct neuron_chunk **chunks,
			    const struct neuron_native_mem_bulk_entry *entries, u32 n, u64 bytes,
			    u32 flags);
u64 neuron_hbm_free_batch(struct neuron_device *nd, struct neuron_chunk **chunks, u32 n);
int neuron_hbm_capped(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		      const struct neuron_buddy_request *req, int err, struct neuron_failure *why);
void neuron_hbm_note_move(struct neuron_hbm *hbm, const struct neuron_chunk *chunk, u64 from);
void neuron_hbm_explain(struct neuron_hbm *hbm, u64 align, enum neuron_native_reason reason,
			struct neuron_failure *why);
int neuron_hbm_take(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		    const struct neuron_buddy_request *req, struct neuron_buddy_block *block,
		    struct neuron_failure *why);
u64 neuron_hbm_moves(struct neuron_hbm *hbm);
int neuron_hbm_take_late(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
			 const struct neuron_buddy_request *req, struct neuron_buddy_block *block,
			 struct neuron_failure *why, bool scrub, u64 moves);
int neuron_hbm_join(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		    struct neuron_buddy_block *tail);
int neuron_hbm_split(struct neuron_hbm *hbm, struct neuron_buddy_block *head, u64 size,
		     struct neuron_buddy_block *tail);
void neuron_hbm_give(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		     struct neuron_buddy_block *block, u64 bytes, bool clear);
void neuron_hbm_stats(struct neuron_hbm *hbm, struct neuron_client *client,
		      struct neuron_native_hbm_stats *stats);

#endif
