// SPDX-License-Identifier: GPL-2.0-only
/*
 * One zone per HBM: the allocator, its lock and the accounting that changes
 * together with it.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "dmem.h"
#include "failure.h"
#include "hbm.h"
#include "limit.h"
#include "watch.h"

/**
 * neuron_zone_init() - set up the zone of an HBM
 * @nd: device
 * @hbm: HBM number
 *
 * Context: may sleep, before the device is visible.
 * Return: 0, -EINVAL geometry, -ENOMEM.
 */
int neuron_zone_init(struct neuron_device *nd, u32 hbm)
{
	const struct neuron_hbm_geometry *geo = &nd->geo->hbm[hbm];
	struct neuron_zone *zone = &nd->zone[hbm];

	if (!geo->size || geo->size % NEURON_BUDDY_GRANULE || geo->size > NEURON_BUDDY_MAX_SIZE ||
	    geo->reserved % NEURON_BUDDY_GRANULE || geo->reserved >= geo->size)
		return -EINVAL;
	spin_lock_init(&zone->lock);
	mutex_init(&zone->scrub_lock);
	spin_lock_init(&zone->watch_lock);
	zone->watched = RB_ROOT_CACHED;
	seqcount_spinlock_init(&zone->seq, &zone->lock);
	zone->nd = nd;
	zone->base = geo->base;
	zone->index = hbm;
	return neuron_dmem_init(nd, zone, geo->size - geo->reserved);
}

static int neuron_zone_make(struct neuron_zone *zone)
{
	const struct neuron_geometry *geo = zone->nd->geo;
	const struct neuron_hbm_geometry *hbm = &geo->hbm[zone->index];
	struct neuron_buddy *buddy;
	int err;

	err = neuron_buddy_create(&buddy, hbm->size);
	if (err)
		return err;
	/* Nobody else knows it, so there is no -EAGAIN. */
	err = neuron_buddy_prepare(buddy);
	if (!err) {
		spin_lock(&zone->lock);
		if (hbm->reserved)
			err = neuron_buddy_reserve(buddy, 0, hbm->reserved);
		if (!err && geo->hbm_clear_at_start)
			neuron_buddy_mark_clear(buddy);
		spin_unlock(&zone->lock);
	}
	/* Another process may have been faster. */
	if (err || cmpxchg_release(&zone->buddy, NULL, buddy))
		neuron_buddy_destroy(buddy);
	return err;
}

/**
 * neuron_zone_ready() - make the allocator of an HBM, if there is none yet
 * @zone: the zone
 *
 * Its tables take some 20 KiB per GiB; a device that nobody uses does without.
 * Takes the firmware's share (uapi/FACTS.md 4) out for good.
 *
 * Context: may sleep; any number of callers.
 * Return: 0, -ENOMEM.
 */
int neuron_zone_ready(struct neuron_zone *zone)
{
	/* Pairs with the release in neuron_zone_make(). */
	return likely(smp_load_acquire(&zone->buddy)) ? 0 : neuron_zone_make(zone);
}

/**
 * neuron_zone_exit() - release what neuron_zone_init() made
 * @zone: the zone; no chunk of it exists any more
 *
 * Context: may sleep.
 */
void neuron_zone_exit(struct neuron_zone *zone)
{
	neuron_dmem_exit(zone);
	neuron_buddy_destroy(zone->buddy);
	zone->buddy = NULL;
}

/**
 * neuron_zone_charge() - charge device memory to whoever has it
 * @zone: the zone; its lock is held and its sequence counter odd
 * @chunk: core, category and client
 * @bytes: how much
 * @add: it comes or it goes
 */
void neuron_zone_charge(struct neuron_zone *zone, struct neuron_chunk *chunk, u64 bytes, bool add)
{
	u64 delta = add ? bytes : -bytes;

	zone->used[chunk->core][chunk->category] += delta;
	if (chunk->client->kernel)
		zone->driver += delta;
	else
		chunk->client->hbm_bytes[zone->index] += delta;
}

/**
 * neuron_zone_explain() - say why there was no memory
 * @zone: the zone
 * @align: of the request, bytes
 * @cause: what the allocator said
 * @why: filled in
 *
 * Context: zone->lock held.
 */
void neuron_zone_explain(struct neuron_zone *zone, u64 align, enum neuron_buddy_cause cause,
			 struct neuron_failure *why)
{
	static const enum neuron_native_reason reasons[] = {
		[NEURON_BUDDY_CAUSE_NONE] = NEURON_NATIVE_REASON_NONE,
		[NEURON_BUDDY_CAUSE_FULL] = NEURON_NATIVE_REASON_FULL,
		[NEURON_BUDDY_CAUSE_FRAGMENTED] = NEURON_NATIVE_REASON_FRAGMENTED,
		[NEURON_BUDDY_CAUSE_ALIGNMENT] = NEURON_NATIVE_REASON_ALIGNMENT,
		[NEURON_BUDDY_CAUSE_BUSY] = NEURON_NATIVE_REASON_FRAGMENTED,
	};
	u32 core, cat;

	why->reason = why->limit == NEURON_NO_LIMIT ? reasons[cause] : NEURON_NATIVE_REASON_CAPPED;
	why->total = neuron_buddy_total(zone->buddy);
	why->free = neuron_buddy_free_bytes(zone->buddy);
	why->largest_free = neuron_buddy_largest(zone->buddy, NEURON_BUDDY_GRANULE);
	why->largest_aligned = neuron_buddy_largest(zone->buddy,
						    max_t(u64, align, NEURON_BUDDY_GRANULE));
	memset(why->used, 0, sizeof(why->used));
	for (core = 0; core < NEURON_HW_MAX_CORES; core++)
		for (cat = 0; cat < NEURON_NR_CATEGORIES; cat++)
			why->used[cat] += zone->used[core][cat];
}

/**
 * neuron_zone_take() - take a certain range for a moment
 * @zone: the zone
 * @piece: size, core, category and client are set; block is filled in
 * @addr: first byte, from the start of the zone
 *
 * What the memory holds is not changed.
 *
 * Context: may sleep.
 * Return: 0; -EBUSY not all of it is free; -ENOMEM.
 */
int neuron_zone_take(struct neuron_zone *zone, struct neuron_chunk *piece, u64 addr)
{
	struct neuron_buddy_request req = {
		.size = piece->size,
		.addr = addr,
		.flags = NEURON_BUDDY_EXACT,
	};
	int err;

	do {
		err = neuron_buddy_prepare(zone->buddy);
		if (err)
			return err;
		spin_lock(&zone->lock);
		write_seqcount_begin(&zone->seq);
		err = neuron_buddy_alloc(zone->buddy, &req, &piece->block, NULL);
		if (!err)
			neuron_zone_charge(zone, piece, piece->size, true);
		write_seqcount_end(&zone->seq);
		spin_unlock(&zone->lock);
	} while (err == -EAGAIN);
	return err;
}

/**
 * neuron_zone_give() - give a range or a chunk's memory back
 * @zone: the zone
 * @chunk: from neuron_zone_take() or neuron_zone_alloc()
 * @clear: it reads as zero
 *
 * Context: process.
 */
void neuron_zone_give(struct neuron_zone *zone, struct neuron_chunk *chunk, bool clear)
{
	int err;

	spin_lock(&zone->lock);
	write_seqcount_begin(&zone->seq);
	err = neuron_buddy_free(zone->buddy, &chunk->block, clear);
	if (!err)
		neuron_zone_charge(zone, chunk, chunk->size, false);
	write_seqcount_end(&zone->seq);
	spin_unlock(&zone->lock);
	WARN_ONCE(err, "neuron: free of %#llx + %#llx: %d\n", chunk->block.addr, chunk->size, err);
}

/* One attempt.  -ENOSPC, -EDQUOT: refused, for want of memory or by a limit; see @why. */
static int neuron_zone_try(struct neuron_zone *zone, struct neuron_chunk *chunk,
			   const struct neuron_buddy_request *req, enum neuron_buddy_cause *cause,
			   struct neuron_failure *why)
{
	int err;

	do {
		err = neuron_buddy_prepare(zone->buddy);
		if (err) {
			why->reason = NEURON_NATIVE_REASON_HOST;
			return err;
		}
		spin_lock(&zone->lock);
		write_seqcount_begin(&zone->seq);
		if (neuron_limit_charge(chunk, chunk->size, &why->limit)) {
			err = neuron_buddy_alloc(zone->buddy, req, &chunk->block, cause);
			if (!err)
				neuron_zone_charge(zone, chunk, chunk->size, true);
			else
				neuron_limit_uncharge(chunk, chunk->size);
		} else {
			zone->fail_capped++;
			err = -EDQUOT;
		}
		write_seqcount_end(&zone->seq);
		/* These are the figures that the request met. */
		if (err == -ENOSPC || err == -EDQUOT)
			neuron_zone_explain(zone, req->align, *cause, why);
		spin_unlock(&zone->lock);
	} while (err == -EAGAIN);
	return err;
}

/**
 * neuron_zone_capped() - report that the cgroup of the process was not charged
 * @zone: the zone
 * @align: of the request, bytes
 * @err: -EAGAIN it may not have more, else it could not be asked
 * @why: filled in
 *
 * Context: process.
 * Return: what to tell the process.
 */
int neuron_zone_capped(struct neuron_zone *zone, u64 align, int err, struct neuron_failure *why)
{
	if (err != -EAGAIN) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return err;
	}
	spin_lock(&zone->lock);
	write_seqcount_begin(&zone->seq);
	zone->fail_capped++;
	write_seqcount_end(&zone->seq);
	neuron_zone_explain(zone, align, NEURON_BUDDY_CAUSE_NONE, why);
	spin_unlock(&zone->lock);
	why->reason = NEURON_NATIVE_REASON_CAPPED;
	return -ENOMEM;
}

/**
 * neuron_zone_alloc() - allocate device memory for a chunk and charge it
 * @nd: device
 * @chunk: size, hbm, core, category and client are set; block and addr are filled in
 * @align: bytes, 0 or a power of two
 * @flags: NEURON_BUDDY_LOW, _HIGH or 0
 * @why: filled in when memory was refused
 *
 * The memory reads as zero.
 *
 * Context: may sleep.
 * Return: 0; -EINVAL; -ENOMEM refused, see @why; -EIO clearing failed.
 */
int neuron_zone_alloc(struct neuron_device *nd, struct neuron_chunk *chunk, u64 align,
		      u32 flags, struct neuron_failure *why)
{
	struct neuron_zone *zone = &nd->zone[chunk->hbm];
	struct neuron_buddy_request req = {
		.size = chunk->size,
		.align = align,
		.flags = flags,
	};
	enum neuron_buddy_cause cause = NEURON_BUDDY_CAUSE_NONE;
	bool scrub;
	int err;

	err = neuron_zone_ready(zone);
	if (err) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return err;
	}
	if (neuron_fault_hit(&nd->fail_alloc)) {
		spin_lock(&zone->lock);
		neuron_zone_explain(zone, align, NEURON_BUDDY_CAUSE_FULL, why);
		spin_unlock(&zone->lock);
		return -ENOMEM;
	}
	err = neuron_dmem_charge(zone, chunk);
	if (err)
		return neuron_zone_capped(zone, align, err, why);
	scrub = READ_ONCE(zone->scrub);
	err = neuron_zone_try(zone, chunk, &req, &cause, why);
	if (err == -ENOSPC && (scrub || READ_ONCE(zone->scrub))) {
		/* What is missing may be the piece that is being scrubbed. */
		mutex_lock(&zone->scrub_lock);
		err = neuron_zone_try(zone, chunk, &req, &cause, why);
		mutex_unlock(&zone->scrub_lock);
	}
	if (err)
		neuron_dmem_uncharge(chunk);
	if (err)
		return err == -ENOSPC || err == -EDQUOT ? -ENOMEM : err;

	chunk->addr = zone->base + chunk->block.addr;
	if (!chunk->block.cleared) {
		err = nd->ops->hbm_clear(nd, zone->index, chunk->block.addr, chunk->size);
		if (err) {
			if (err == -ENOMEM)
				why->reason = NEURON_NATIVE_REASON_HOST;
			neuron_zone_free(nd, chunk);
			return err;
		}
	}
	return 0;
}

/**
 * neuron_zone_free() - give the device memory of a chunk back
 * @nd: device
 * @chunk: as neuron_zone_alloc() left it; nothing uses its memory any more
 *
 * Context: may sleep.
 */
void neuron_zone_free(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	struct neuron_zone *zone = &nd->zone[chunk->hbm];
	bool clear;

	neuron_watch_free(zone, chunk->block.addr, chunk->size);
	/* Before anyone else can get it. */
	clear = nd->ops->hbm_release(nd, zone->index, chunk->block.addr, chunk->size);
	neuron_zone_give(zone, chunk, clear);
	neuron_dmem_uncharge(chunk);
	neuron_limit_uncharge(chunk, chunk->size);
}

/**
 * neuron_zone_free_batch() - same for several chunks at once
 * @nd: device
 * @chunks: of one process, HBM, core and category
 * @n: their number, up to NEURON_FREE_BATCH
 *
 * Context: may sleep.
 */
void neuron_zone_free_batch(struct neuron_device *nd, struct neuron_chunk **chunks, u32 n)
{
	const struct neuron_buddy_block *blocks[NEURON_FREE_BATCH];
	struct neuron_zone *zone = &nd->zone[chunks[0]->hbm];
	u64 clear = 0, bytes = 0, addr, end;
	u32 i, j;
	int err;

	/* What is allocated in one go mostly lies in one piece. */
	for (i = 0; i < n; i = j) {
		addr = chunks[i]->block.addr;
		end = addr;
		for (j = i; j < n && chunks[j]->block.addr == end; j++) {
			blocks[j] = &chunks[j]->block;
			end += chunks[j]->size;
		}
		bytes += end - addr;
		neuron_watch_free(zone, addr, end - addr);
		if (nd->ops->hbm_release(nd, zone->index, addr, end - addr))
			clear |= GENMASK_ULL(j - 1, i);
	}
	spin_lock(&zone->lock);
	write_seqcount_begin(&zone->seq);
	err = neuron_buddy_free_batch(zone->buddy, blocks, n, clear);
	/* Also if one was refused: nobody will give it back any more. */
	neuron_zone_charge(zone, chunks[0], bytes, false);
	write_seqcount_end(&zone->seq);
	spin_unlock(&zone->lock);
	WARN_ONCE(err, "neuron: free of %u chunks: %d\n", n, err);
	for (i = 0; i < n; i++)
		neuron_dmem_uncharge(chunks[i]);
	neuron_limit_uncharge(chunks[0], bytes);
}

/* What the allocator will say when it is made. */
static void neuron_zone_unused(const struct neuron_hbm_geometry *geo,
			       struct neuron_buddy_stats *bs)
{
	memset(bs, 0, sizeof(*bs));
	bs->total = geo->size;
	bs->reserved = geo->reserved;
	bs->free = geo->size - geo->reserved;
	bs->largest = bs->free;
	bs->order_free[ilog2(bs->free >> NEURON_BUDDY_GRANULE_SHIFT)] = bs->free;
}

/* In a read section of zone->seq. */
static void neuron_zone_read(struct neuron_zone *zone, struct neuron_buddy_stats *bs)
{
	/* Pairs with the release in neuron_zone_make(). */
	struct neuron_buddy *buddy = smp_load_acquire(&zone->buddy);

	if (buddy)
		neuron_buddy_stats(buddy, bs);
	else
		neuron_zone_unused(&zone->nd->geo->hbm[zone->index], bs);
}

/**
 * neuron_zone_figures() - what the allocator of an HBM counts
 * @zone: the zone
 * @bs: filled in
 *
 * Context: process; retries while the zone changes.
 */
void neuron_zone_figures(struct neuron_zone *zone, struct neuron_buddy_stats *bs)
{
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&zone->seq);
		neuron_zone_read(zone, bs);
	} while (read_seqcount_retry(&zone->seq, seq));
}

/**
 * neuron_zone_largest() - longest free run of an HBM
 * @zone: the zone
 * @align: that its start must have, bytes, a power of two
 *
 * Context: any.
 * Return: bytes.
 */
u64 neuron_zone_largest(struct neuron_zone *zone, u64 align)
{
	const struct neuron_hbm_geometry *hbm = &zone->nd->geo->hbm[zone->index];
	/* Pairs with the release in neuron_zone_make(). */
	struct neuron_buddy *buddy = smp_load_acquire(&zone->buddy);

	return buddy ? neuron_buddy_largest(buddy, align) :
		       hbm->size - ALIGN(hbm->reserved, align);
}

/**
 * neuron_zone_stats() - consistent picture of an HBM, without its lock
 * @zone: the zone
 * @client: whose own_process to report, may be NULL
 * @stats: filled in, except size and hbm
 *
 * Context: process; retries while the zone changes.
 */
void neuron_zone_stats(struct neuron_zone *zone, struct neuron_client *client,
		       struct neuron_native_hbm_stats *stats)
{
	struct neuron_buddy_stats bs;
	unsigned int seq, core, cat;

	BUILD_BUG_ON(NEURON_BUDDY_ORDERS > NEURON_NATIVE_MAX_ORDERS);
	BUILD_BUG_ON(NEURON_NR_CATEGORIES > NEURON_NATIVE_MAX_CATEGORIES);
	BUILD_BUG_ON(NEURON_HW_MAX_CORES > NEURON_NATIVE_MAX_CORES);

	do {
		seq = read_seqcount_begin(&zone->seq);
		memset(stats->by_category, 0, sizeof(stats->by_category));
		memset(stats->by_core, 0, sizeof(stats->by_core));
		for (core = 0; core < NEURON_HW_MAX_CORES; core++) {
			for (cat = 0; cat < NEURON_NR_CATEGORIES; cat++) {
				stats->by_category[cat] += zone->used[core][cat];
				stats->by_core[core] += zone->used[core][cat];
			}
		}
		stats->driver = zone->driver;
		stats->own_process = client ? client->hbm_bytes[zone->index] : 0;
		stats->fail_capped = zone->fail_capped;
		neuron_zone_read(zone, &bs);
	} while (read_seqcount_retry(&zone->seq, seq));

	stats->total = bs.total;
	stats->used = bs.used;
	stats->reserved = bs.reserved;
	stats->free = bs.free;
	stats->largest_free = bs.largest;
	stats->high_water = bs.high_water;
	stats->nr_allocs = bs.allocs;
	stats->metadata = bs.metadata;
	stats->fail_full = bs.failures[NEURON_BUDDY_CAUSE_FULL];
	stats->fail_fragmented = bs.failures[NEURON_BUDDY_CAUSE_FRAGMENTED];
	stats->fail_alignment = bs.failures[NEURON_BUDDY_CAUSE_ALIGNMENT];
	memset(stats->free_by_order, 0, sizeof(stats->free_by_order));
	memcpy(stats->free_by_order, bs.order_free, sizeof(bs.order_free));
}
