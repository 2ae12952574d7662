/* SPDX-License-Identifier: GPL-2.0-only */
/* One HBM: allocator, lock, accounting. */
#ifndef NEURON_MEM_HBM_H
#define NEURON_MEM_HBM_H

#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>

#include "../base/device.h"
#include "../compat/compat.h"
#include "buddy/buddy.h"

struct dmem_cgroup_region;
struct neuron_buddy;
struct neuron_chunk;
struct neuron_client;
struct neuron_failure;
struct neuron_native_hbm_stats;
struct neuron_scrub;

/**
 * struct neuron_zone - one HBM
 * @lock: @buddy, @used, @fail_capped and client.hbm_bytes[index]
 * @seq: written under @lock around every change, for readers without it
 * @nd: the device
 * @buddy: the allocator; NULL until somebody wants memory
 * @base: device address
 * @index: HBM number
 * @used: bytes by core and category
 * @driver: bytes of @used that the driver holds
 * @fail_capped: requests refused by a limit
 * @scrub_lock: memory is out for being scrubbed
 * @scrub: who scrubs it, NULL = nobody; not dereferenced
 * @watch_lock: @watched
 * @watched: who was given which range, mem/watch.c
 * @dmem: the HBM as the device-memory cgroup controller knows it
 */
struct neuron_zone {
	spinlock_t lock;
	seqcount_spinlock_t seq;
	struct neuron_device *nd;
	struct neuron_buddy *buddy;
	u64 base;
	u32 index;
	u64 used[NEURON_HW_MAX_CORES][NEURON_NR_CATEGORIES];
	u64 driver;
	u64 fail_capped;
	struct mutex scrub_lock;
	struct neuron_scrub *scrub;
	spinlock_t watch_lock;
	struct rb_root_cached watched;
#ifdef NEURON_DMEM
	struct dmem_cgroup_region *dmem;
#endif
} ____cacheline_aligned_in_smp;

#define NEURON_FREE_BATCH	64	/* chunks freed at a time, at most */

int neuron_zone_init(struct neuron_device *nd, u32 hbm);
int neuron_zone_ready(struct neuron_zone *zone);
void neuron_zone_figures(struct neuron_zone *zone, struct neuron_buddy_stats *bs);
u64 neuron_zone_largest(struct neuron_zone *zone, u64 align);
void neuron_zone_exit(struct neuron_zone *zone);
int neuron_zone_alloc(struct neuron_device *nd, struct neuron_chunk *chunk, u64 align,
		      u32 flags, struct neuron_failure *why);
void neuron_zone_free(struct neuron_device *nd, struct neuron_chunk *chunk);
void neuron_zone_free_batch(struct neuron_device *nd, struct neuron_chunk **chunks, u32 n);
void neuron_zone_charge(struct neuron_zone *zone, struct neuron_chunk *chunk, u64 bytes, bool add);
int neuron_zone_capped(struct neuron_zone *zone, u64 align, int err, struct neuron_failure *why);
void neuron_zone_explain(struct neuron_zone *zone, u64 align, enum neuron_buddy_cause cause,
			 struct neuron_failure *why);
int neuron_zone_take(struct neuron_zone *zone, struct neuron_chunk *piece, u64 addr);
void neuron_zone_give(struct neuron_zone *zone, struct neuron_chunk *chunk, bool clear);
void neuron_zone_stats(struct neuron_zone *zone, struct neuron_client *client,
		       struct neuron_native_hbm_stats *stats);

#endif
