// SPDX-License-Identifier: GPL-2.0-only
/*
 * One HBM without the rest of neuron.ko: what is charged, what a refusal tells, and what
 * the device is asked for. The allocator is the real one (buddy_kunit.c has it); limits
 * and the cgroup refuse what a test wants refused.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "../../kmod/mem/dmem.h"
#include "../../kmod/mem/watch.h"

#define neuron_dmem_init	hbm_dmem_init
#define neuron_dmem_exit	hbm_dmem_exit
#define neuron_dmem_charge	hbm_dmem_charge
#define neuron_dmem_uncharge	hbm_dmem_uncharge
#define neuron_limit_charge	hbm_limit_charge
#define neuron_limit_uncharge	hbm_limit_uncharge
#define neuron_buddy_create	hbm_buddy_create
#define neuron_buddy_destroy	hbm_buddy_destroy
#define neuron_buddy_prepare	hbm_buddy_prepare
#define neuron_buddy_reserve	hbm_buddy_reserve
#define neuron_buddy_alloc	hbm_buddy_alloc
#define neuron_watch_free	hbm_watch_free

static int hbm_dmem_init(struct neuron_device *nd, struct neuron_hbm *hbm, u64 size);
static void hbm_dmem_exit(struct neuron_hbm *hbm);
static int hbm_dmem_charge(struct neuron_hbm *hbm, struct neuron_chunk *chunk);
static void hbm_dmem_uncharge(struct neuron_chunk *chunk);
static int hbm_buddy_create(struct neuron_buddy **out, u64 size);
static void hbm_buddy_destroy(struct neuron_buddy *buddy);
static int hbm_buddy_prepare(struct neuron_buddy *buddy);
static int hbm_buddy_reserve(struct neuron_buddy *buddy, u64 addr, u64 size);
static int hbm_buddy_alloc(struct neuron_buddy *buddy, const struct neuron_buddy_request *req,
			   struct neuron_buddy_block *block, enum neuron_buddy_cause *cause);
static void hbm_watch_free(struct neuron_hbm *hbm, u64 off, u64 len);

#include "../../kmod/mem/recorder.c"
#include "../../kmod/mem/hbm.c"
#include "../../kmod/base/client.h"

#define SIZE		(64ULL << 20)
#define RESERVED	(2ULL << 20)

static struct {
	struct neuron_geometry geo;
	struct neuron_hw_ops ops;
	struct neuron_device nd;
	struct neuron_client client, kclient;
	int dmem_err;			/* of the next charge */
	int dmem;			/* chunks charged to the cgroup */
	u64 dmem_size;			/* what the cgroups are told that there is */
	u64 limit, charged;		/* as if there were one limit */
	int clear_err;
	u32 clears, releases;
	u64 released;			/* bytes of the last call */
	bool release_clears;
	int create_err, prepare_err, reserve_err;
	u32 again;			/* so often the allocator says -EAGAIN */
	u32 attempts;			/* charges to the limit */
	int pools;			/* allocators that exist */
	struct neuron_buddy *rival;	/* made by another process meanwhile */
	/* A scrub that begins or ends during the first attempt; who holds its lock. */
	struct neuron_scrub *scrub;
	bool scrub_changes, scrub_locked;
	u32 moves;			/* that end during an attempt */
	struct work_struct move;	/* ends one that holds memory, */
	bool move_ends;			/* not before the first attempt */
	u64 watched, watched_len;	/* what became free last */
} hw;

#undef neuron_buddy_create
#undef neuron_buddy_destroy
#undef neuron_buddy_prepare
#undef neuron_buddy_reserve
#undef neuron_buddy_alloc

static int hbm_buddy_create(struct neuron_buddy **out, u64 size)
{
	int err = hw.create_err ?: neuron_buddy_create(out, size);

	hw.pools += !err;
	return err;
}

static void hbm_buddy_destroy(struct neuron_buddy *buddy)
{
	hw.pools -= !!buddy;
	neuron_buddy_destroy(buddy);
}

static int hbm_buddy_prepare(struct neuron_buddy *buddy)
{
	return hw.prepare_err ?: neuron_buddy_prepare(buddy);
}

static int hbm_buddy_reserve(struct neuron_buddy *buddy, u64 addr, u64 size)
{
	if (hw.rival)
		WRITE_ONCE(hw.nd.hbm[1].buddy, hw.rival);
	return hw.reserve_err ?: neuron_buddy_reserve(buddy, addr, size);
}

static int hbm_buddy_alloc(struct neuron_buddy *buddy, const struct neuron_buddy_request *req,
			   struct neuron_buddy_block *block, enum neuron_buddy_cause *cause)
{
	if (hw.again) {
		hw.again--;
		return -EAGAIN;
	}
	return neuron_buddy_alloc(buddy, req, block, cause);
}

static void hbm_watch_free(struct neuron_hbm *hbm, u64 off, u64 len)
{
	hw.watched = off;
	hw.watched_len = len;
}

static int hbm_dmem_init(struct neuron_device *nd, struct neuron_hbm *hbm, u64 size)
{
	hw.dmem_size = size;
	return 0;
}

static void hbm_dmem_exit(struct neuron_hbm *hbm)
{
	hw.dmem_size = 0;
}

static int hbm_dmem_charge(struct neuron_hbm *hbm, struct neuron_chunk *chunk)
{
	hw.dmem += !hw.dmem_err;
	return hw.dmem_err;
}

static void hbm_dmem_uncharge(struct neuron_chunk *chunk)
{
	hw.dmem--;
}

bool neuron_limit_charge(struct neuron_chunk *chunk, u64 bytes, u64 *limit)
{
	struct neuron_hbm *hbm = &hw.nd.hbm[1];

	hw.attempts++;
	hw.scrub_locked = mutex_is_locked(&hbm->scrub_lock);
	if (hw.scrub_changes)
		hbm->scrub = hw.scrub;
	hbm->moves_ended += hw.moves;
	if (hw.move_ends)
		schedule_work(&hw.move);
	hw.move_ends = false;
	if (bytes > hw.limit - hw.charged) {
		*limit = hw.limit;
		return false;
	}
	hw.charged += bytes;
	return true;
}

void neuron_limit_uncharge(struct neuron_chunk *chunk, u64 bytes)
{
	hw.charged -= bytes;
}

static int hw_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	hw.clears++;
	return hw.clear_err;
}

static bool hw_release(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	hw.releases++;
	hw.released = len;
	return hw.release_clears;
}

static int hbm_suite_init(struct kunit *test)
{
	memset(&hw, 0, sizeof(hw));
	hw.geo.nr_hbms = 2;
	hw.geo.hbm[1].base = 1ULL << 40;
	hw.geo.hbm[1].size = SIZE;
	hw.geo.hbm[1].reserved = RESERVED;
	hw.ops.hbm_clear = hw_clear;
	hw.ops.hbm_release = hw_release;
	hw.nd.geo = &hw.geo;
	hw.nd.ops = &hw.ops;
	hw.nd.hbm = kunit_kcalloc(test, 2, sizeof(*hw.nd.hbm), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hw.nd.hbm);
	hw.client.nd = &hw.nd;
	hw.kclient.nd = &hw.nd;
	hw.kclient.kernel = true;
	hw.limit = SIZE;
	KUNIT_ASSERT_EQ(test, neuron_hbm_init(&hw.nd, 1), 0);
	KUNIT_EXPECT_EQ(test, hw.dmem_size, SIZE - RESERVED);
	return 0;
}

static void hbm_suite_exit(struct kunit *test)
{
	u32 core, cat;

	if (!hw.nd.hbm)
		return;
	for (core = 0; core < NEURON_HW_MAX_CORES; core++)
		for (cat = 0; cat < NEURON_NR_CATEGORIES; cat++)
			KUNIT_EXPECT_EQ(test, hw.nd.hbm[1].used[core][cat], 0ULL);
	KUNIT_EXPECT_EQ(test, hw.charged, 0ULL);
	KUNIT_EXPECT_EQ(test, hw.dmem, 0);
	KUNIT_EXPECT_EQ(test, hw.client.hbm_bytes[1], 0ULL);
	KUNIT_EXPECT_EQ(test, hw.nd.hbm[1].driver, 0ULL);
	/* Nobody holds the lock. */
	KUNIT_EXPECT_TRUE(test, spin_trylock(&hw.nd.hbm[1].lock));
	spin_unlock(&hw.nd.hbm[1].lock);
	neuron_hbm_exit(&hw.nd.hbm[1]);
	KUNIT_EXPECT_NULL(test, hw.nd.hbm[1].buddy);
	KUNIT_EXPECT_EQ(test, hw.pools, 0);
	KUNIT_EXPECT_EQ(test, hw.dmem_size, 0ULL);
}

static struct neuron_chunk chunk_of(struct neuron_client *client, u64 size)
{
	return (struct neuron_chunk){
		.client = client, .hbm = 1, .core = 3, .size = size,
		.category = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
}

/* As neuron_chunk_make() begins. */
static struct neuron_failure no_failure(void)
{
	return (struct neuron_failure){ .limit = NEURON_NO_LIMIT };
}

static void hbm_geometry(struct kunit *test)
{
	static const struct {
		u64 size, reserved;
		int err;
	} rows[] = {
		{ 0, 0, -EINVAL }, { SZ_1M + 1, 0, -EINVAL }, { SZ_1M, 1, -EINVAL },
		{ SZ_1M, SZ_1M, -EINVAL }, { SZ_1M, SZ_2M, -EINVAL },
		{ SZ_1M, SZ_1M - SZ_4K, 0 }, { NEURON_BUDDY_MAX_SIZE, 0, 0 },
		{ NEURON_BUDDY_MAX_SIZE + SZ_4K, 0, -EINVAL },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		hw.geo.hbm[0].size = rows[i].size;
		hw.geo.hbm[0].reserved = rows[i].reserved;
		KUNIT_EXPECT_EQ(test, neuron_hbm_init(&hw.nd, 0), rows[i].err);
	}
}

/* The figures before the allocator is made are those that it gives then. */
static void hbm_figures_unused(struct kunit *test)
{
	static struct neuron_native_hbm_stats before, after;
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	u64 largest = neuron_hbm_largest(hbm, SZ_4K), aligned = neuron_hbm_largest(hbm, SZ_32M);

	neuron_hbm_stats(hbm, NULL, &before);
	KUNIT_EXPECT_PTR_EQ(test, hbm->buddy, (struct neuron_buddy *)NULL);
	KUNIT_ASSERT_EQ(test, neuron_hbm_ready(hbm), 0);
	neuron_hbm_stats(hbm, NULL, &after);
	KUNIT_EXPECT_EQ(test, before.total, SIZE);
	KUNIT_EXPECT_EQ(test, before.reserved, RESERVED);
	KUNIT_EXPECT_EQ(test, before.metadata, 0ULL);
	before.metadata = after.metadata;
	KUNIT_EXPECT_EQ(test, memcmp(&before, &after, sizeof(before)), 0);
	KUNIT_EXPECT_EQ(test, largest, SIZE - RESERVED);
	KUNIT_EXPECT_EQ(test, largest, neuron_hbm_largest(hbm, SZ_4K));
	KUNIT_EXPECT_EQ(test, aligned, neuron_hbm_largest(hbm, SZ_32M));
}

static void hbm_alloc_and_free(struct kunit *test)
{
	struct neuron_client *clients[] = { &hw.client, &hw.kclient };
	struct neuron_failure why = no_failure();
	static struct neuron_native_hbm_stats s;
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	u32 i;

	for (i = 0; i < 2; i++) {
		struct neuron_chunk chunk = chunk_of(clients[i], SZ_1M);

		KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_64K, 0, &why), 0);
		KUNIT_EXPECT_EQ(test, chunk.addr, hbm->base + chunk.block.addr);
		KUNIT_EXPECT_EQ(test, chunk.block.addr & (SZ_64K - 1), 0ULL);
		KUNIT_EXPECT_EQ(test, hw.clears, i + 1);
		KUNIT_EXPECT_EQ(test, hw.charged, (u64)SZ_1M);
		KUNIT_EXPECT_EQ(test, hw.dmem, 1);
		neuron_hbm_stats(hbm, clients[i], &s);
		KUNIT_EXPECT_EQ(test, s.used, (u64)SZ_1M);
		KUNIT_EXPECT_EQ(test, s.nr_allocs, 1ULL);
		KUNIT_EXPECT_EQ(test, s.driver, i ? (u64)SZ_1M : 0);
		KUNIT_EXPECT_EQ(test, s.own_process, i ? 0 : (u64)SZ_1M);
		KUNIT_EXPECT_EQ(test, s.by_core[3], (u64)SZ_1M);
		KUNIT_EXPECT_EQ(test, s.by_category[chunk.category], (u64)SZ_1M);
		neuron_hbm_free(&hw.nd, &chunk);
		KUNIT_EXPECT_EQ(test, hw.releases, i + 1);
		KUNIT_EXPECT_EQ(test, hw.released, (u64)SZ_1M);
		KUNIT_EXPECT_EQ(test, hw.watched, chunk.block.addr);
		KUNIT_EXPECT_EQ(test, hw.watched_len, (u64)SZ_1M);
	}
	/* Nothing was refused, so nothing is told. */
	KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_NONE);
	KUNIT_EXPECT_EQ(test, why.total, 0ULL);
}

/* What the device has cleared need not be cleared again. */
static void hbm_clears(struct kunit *test)
{
	struct neuron_chunk chunk = chunk_of(&hw.client, SIZE - RESERVED);
	struct neuron_failure why = no_failure();

	hw.release_clears = true;
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), 0);
	neuron_hbm_free(&hw.nd, &chunk);
	KUNIT_EXPECT_EQ(test, hw.clears, 1u);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), 0);
	KUNIT_EXPECT_EQ(test, hw.clears, 1u);
	hw.release_clears = false;
	neuron_hbm_free(&hw.nd, &chunk);
	hw.clear_err = -EIO;
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -EIO);
	KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_NONE);
	hw.clear_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENOMEM);
	KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_HOST);
}

static void hbm_refusals(struct kunit *test)
{
	static const struct {
		u64 size, align, limit;
		enum neuron_native_reason reason;
	} rows[] = {
		{ SIZE, SZ_4K, SIZE, NEURON_NATIVE_REASON_FULL },
		{ SIZE, SZ_4K, SIZE - SZ_4K, NEURON_NATIVE_REASON_CAPPED },
		{ SIZE - RESERVED - SZ_4K, SZ_64M, SIZE, NEURON_NATIVE_REASON_ALIGNMENT },
	};
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_chunk chunk = chunk_of(&hw.client, rows[i].size);
		struct neuron_failure why = no_failure();
		bool limited = rows[i].reason == NEURON_NATIVE_REASON_CAPPED;

		hw.limit = rows[i].limit;
		KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, rows[i].align, 0, &why),
				-ENOMEM);
		KUNIT_EXPECT_EQ(test, (int)why.reason, (int)rows[i].reason);
		KUNIT_EXPECT_EQ(test, why.limit, limited ? rows[i].limit : NEURON_NO_LIMIT);
		KUNIT_EXPECT_EQ(test, why.total, SIZE);
		KUNIT_EXPECT_EQ(test, why.free, SIZE - RESERVED);
		KUNIT_EXPECT_EQ(test, why.largest_free, SIZE - RESERVED);
		KUNIT_EXPECT_EQ(test, why.largest_aligned,
				neuron_hbm_largest(hbm, rows[i].align));
		KUNIT_EXPECT_EQ(test, hbm->refused[rows[i].reason], 1ULL);
		KUNIT_EXPECT_EQ(test, hw.charged, 0ULL);
	}
}

/* A cgroup's limit counts as one; another error of the charge is want of host memory. */
static void hbm_cgroup(struct kunit *test)
{
	struct neuron_chunk chunk = chunk_of(&hw.client, SZ_1M);
	struct neuron_failure why = no_failure();
	struct neuron_hbm *hbm = &hw.nd.hbm[1];

	hw.dmem_err = -EAGAIN;
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENOMEM);
	KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_CAPPED);
	KUNIT_EXPECT_EQ(test, why.limit, NEURON_NO_LIMIT);
	KUNIT_EXPECT_EQ(test, why.free, SIZE - RESERVED);
	KUNIT_EXPECT_EQ(test, hbm->refused[NEURON_NATIVE_REASON_CAPPED], 1ULL);
	hw.dmem_err = -ENODEV;
	why = no_failure();
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENODEV);
	KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_HOST);
	KUNIT_EXPECT_EQ(test, why.free, 0ULL);
	KUNIT_EXPECT_EQ(test, hbm->refused[NEURON_NATIVE_REASON_CAPPED], 1ULL);
}

/* An exact range: taken, beyond the end, longer than what is free; without a limit. */
static void hbm_exact(struct kunit *test)
{
	static const struct {
		u64 addr, size;
		int err;
		enum neuron_native_reason reason;
	} rows[] = {
		{ 0, SZ_4K, -EBUSY, NEURON_NATIVE_REASON_FRAGMENTED },
		{ SIZE, SZ_4K, -EINVAL, NEURON_NATIVE_REASON_FRAGMENTED },
		{ RESERVED, SIZE - RESERVED + SZ_4K, -EINVAL, NEURON_NATIVE_REASON_FULL },
	};
	struct neuron_chunk chunk = chunk_of(&hw.client, 0);
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	struct neuron_buddy_block block;
	u32 i;

	KUNIT_ASSERT_EQ(test, neuron_hbm_ready(hbm), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_buddy_request req = {
			.size = rows[i].size, .addr = rows[i].addr, .flags = NEURON_BUDDY_EXACT,
		};
		struct neuron_failure why = no_failure();

		hw.limit = U64_MAX;
		KUNIT_EXPECT_EQ(test, neuron_hbm_take(hbm, &chunk, &req, &block, &why),
				rows[i].err);
		KUNIT_EXPECT_EQ(test, (int)why.reason, (int)rows[i].reason);
		hw.limit = 0;
		KUNIT_EXPECT_EQ(test, neuron_hbm_take(hbm, &chunk, &req, &block, NULL),
				rows[i].err);
	}
	KUNIT_EXPECT_EQ(test, hbm->refused[NEURON_NATIVE_REASON_FRAGMENTED], 2ULL);
	KUNIT_EXPECT_EQ(test, hbm->refused[NEURON_NATIVE_REASON_FULL], 1ULL);
	KUNIT_EXPECT_EQ(test, hbm->refused[NEURON_NATIVE_REASON_CAPPED], 0ULL);
	/* A short-lived request is accounted, but no limit counts it. */
	KUNIT_ASSERT_EQ(test,
			neuron_hbm_take(hbm, &chunk,
					&(struct neuron_buddy_request){
						.size = SZ_1M, .addr = SZ_4M,
						.flags = NEURON_BUDDY_EXACT,
					}, &block, NULL), 0);
	KUNIT_EXPECT_EQ(test, block.addr, (u64)SZ_4M);
	KUNIT_EXPECT_EQ(test, hw.charged, 0ULL);
	KUNIT_EXPECT_EQ(test, hbm->used[3][chunk.category], (u64)SZ_1M);
	neuron_hbm_give(hbm, &chunk, &block, SZ_1M, true);
}

/* In whichever order the chunks of a row come. */
static void hbm_free_downwards(struct kunit *test)
{
	static struct neuron_chunk chunk[7];
	struct neuron_chunk *batch[7];
	struct neuron_failure why = no_failure();
	u32 i;

	for (i = 0; i < ARRAY_SIZE(chunk); i++) {
		chunk[i] = chunk_of(&hw.client, SZ_4M);
		batch[i] = &chunk[i];
		KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk[i], SZ_4K,
						       NEURON_BUDDY_HIGH, &why), 0);
	}
	KUNIT_ASSERT_EQ(test, chunk[6].block.addr, chunk[0].block.addr - 6 * (u64)SZ_4M);
	KUNIT_EXPECT_EQ(test, neuron_hbm_free_batch(&hw.nd, batch, 7), SZ_4M * 7ULL);
	KUNIT_EXPECT_EQ(test, hw.releases, 1u);
	KUNIT_EXPECT_EQ(test, hw.released, SZ_4M * 7ULL);
}

/* Chunks of a row are released in one piece, and what reads as zero is known. */
static void hbm_free_many(struct kunit *test)
{
	static struct neuron_chunk chunk[6];
	struct neuron_chunk *batch[5] = { &chunk[0], &chunk[1], &chunk[3], &chunk[4], &chunk[5] };
	struct neuron_chunk all = chunk_of(&hw.client, SIZE - RESERVED);
	struct neuron_failure why = no_failure();
	static struct neuron_native_hbm_stats s;
	static struct neuron_record r[5];
	struct neuron_recorder *recorder;
	u64 seq = NEURON_RECORDS - 3;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(chunk); i++) {
		chunk[i] = chunk_of(&hw.client, i < 5 ? SZ_4M : SZ_2M);
		KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk[i], SZ_4K,
						       NEURON_BUDDY_LOW, &why), 0);
		KUNIT_ASSERT_EQ(test, chunk[i].block.addr, RESERVED + i * (u64)SZ_4M);
	}
	/* The ring goes round among them. */
	recorder = hw.nd.hbm[1].recorder;
	recorder->seq = seq;
	recorder->slot = seq;
	hw.release_clears = true;
	KUNIT_EXPECT_EQ(test, neuron_hbm_free_batch(&hw.nd, batch, 5), SZ_2M * 9ULL);
	KUNIT_EXPECT_EQ(test, hw.releases, 2u);
	KUNIT_EXPECT_EQ(test, hw.released, SZ_2M * 5ULL);
	KUNIT_EXPECT_EQ(test, hw.watched, RESERVED + 3 * (u64)SZ_4M);
	KUNIT_EXPECT_EQ(test, hw.watched_len, SZ_2M * 5ULL);
	KUNIT_EXPECT_EQ(test, hw.charged, (u64)SZ_4M);
	KUNIT_EXPECT_EQ(test, hw.dmem, 1);
	neuron_hbm_stats(&hw.nd.hbm[1], &hw.client, &s);
	KUNIT_EXPECT_EQ(test, s.own_process, (u64)SZ_4M);
	KUNIT_EXPECT_EQ(test, s.nr_allocs, 1ULL);
	/* Each of them is recorded. */
	KUNIT_ASSERT_EQ(test, neuron_recorder_read(recorder, &seq, r, 5), 5u);
	KUNIT_EXPECT_EQ(test, seq, NEURON_RECORDS + 2ULL);
	KUNIT_EXPECT_EQ(test, recorder->slot, 2u);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, r[i].what, (u8)NEURON_NATIVE_EVENT_FREE);
		KUNIT_EXPECT_EQ(test, r[i].core, chunk[0].core);
		KUNIT_EXPECT_EQ(test, r[i].category, chunk[0].category);
		KUNIT_EXPECT_EQ(test, r[i].client, (u32)hw.client.id);
		KUNIT_EXPECT_EQ(test, r[i].time, r[0].time);
		KUNIT_EXPECT_EQ(test, r[i].page, (u32)(batch[i]->block.addr >> PAGE_SHIFT));
		KUNIT_EXPECT_EQ(test, r[i].pages, (u32)(batch[i]->size >> PAGE_SHIFT));
	}
	hw.clears = 0;
	all.size = SZ_2M * 5ULL;
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &all, SZ_4K, NEURON_BUDDY_LOW, &why), 0);
	KUNIT_EXPECT_EQ(test, all.block.addr, RESERVED + 3 * (u64)SZ_4M);
	KUNIT_EXPECT_EQ(test, hw.clears, 0u);
	neuron_hbm_free(&hw.nd, &all);
	neuron_hbm_free(&hw.nd, &chunk[2]);
}

/* The allocator is made by the first that needs it; whatever fails, none is left over. */
static void hbm_made_once(struct kunit *test)
{
	struct neuron_chunk chunk = chunk_of(&hw.client, SZ_1M);
	struct neuron_failure why = no_failure();
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	int *fails[] = { &hw.create_err, &hw.prepare_err, &hw.reserve_err };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(fails); i++) {
		*fails[i] = -ENOMEM;
		why = no_failure();
		KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENOMEM);
		KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_HOST);
		KUNIT_EXPECT_NULL(test, hbm->buddy);
		KUNIT_EXPECT_EQ(test, hw.pools, 0);
		*fails[i] = 0;
	}
	/* Another process makes it at the same time: that one stays. */
	KUNIT_ASSERT_EQ(test, hbm_buddy_create(&hw.rival, SIZE), 0);
	KUNIT_EXPECT_EQ(test, neuron_hbm_ready(hbm), 0);
	KUNIT_EXPECT_PTR_EQ(test, hbm->buddy, hw.rival);
	KUNIT_EXPECT_EQ(test, hw.pools, 1);
	hw.rival = NULL;
	KUNIT_EXPECT_EQ(test, neuron_hbm_ready(hbm), 0);
	KUNIT_EXPECT_EQ(test, hw.pools, 1);
}

/* A device whose memory reads as zero at its start, and has no part for firmware. */
static void hbm_clear_at_start(struct kunit *test)
{
	struct neuron_chunk chunk = chunk_of(&hw.client, SIZE);
	struct neuron_failure why = no_failure();

	hw.geo.hbm[1].reserved = 0;
	hw.geo.hbm_clear_at_start = true;
	hw.reserve_err = -EINVAL;
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), 0);
	KUNIT_EXPECT_EQ(test, hw.clears, 0u);
	neuron_hbm_free(&hw.nd, &chunk);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), 0);
	KUNIT_EXPECT_EQ(test, hw.clears, 1u);
	neuron_hbm_free(&hw.nd, &chunk);
}

static void hbm_injected(struct kunit *test)
{
	struct neuron_chunk chunk = chunk_of(&hw.client, SZ_1M);
	struct neuron_failure why = no_failure();

	atomic_set(&hw.nd.fail_alloc.shots, 1);
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENOMEM);
	KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_FULL);
	KUNIT_EXPECT_EQ(test, why.total, SIZE);
	KUNIT_EXPECT_EQ(test, hw.attempts, 0u);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), 0);
	neuron_hbm_free(&hw.nd, &chunk);
}

/* The allocator may need more tables while the lock is not held: it is asked again. */
static void hbm_again(struct kunit *test)
{
	struct neuron_chunk chunk = chunk_of(&hw.client, SZ_1M);
	struct neuron_failure why = no_failure();
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	struct neuron_buddy_request req = { .size = SZ_1M };
	struct neuron_buddy_block block;

	hw.again = 2;
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), 0);
	KUNIT_EXPECT_EQ(test, hw.attempts, 3u);
	KUNIT_EXPECT_EQ(test, hw.charged, (u64)SZ_1M);
	KUNIT_EXPECT_EQ(test, why.total, 0ULL);
	neuron_hbm_free(&hw.nd, &chunk);
	hw.prepare_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, neuron_hbm_take(hbm, &chunk, &req, &block, &why), -ENOMEM);
	KUNIT_EXPECT_EQ(test, (int)why.reason, (int)NEURON_NATIVE_REASON_HOST);
	KUNIT_EXPECT_EQ(test, neuron_hbm_take(hbm, &chunk, &req, &block, NULL), -ENOMEM);
	KUNIT_EXPECT_EQ(test, hw.attempts, 3u);
}

/* Memory that is missing may be at a scrub: its lock is waited for, then there is a last try. */
static void hbm_scrubbed(struct kunit *test)
{
	struct neuron_scrub *scrub = (struct neuron_scrub *)&hw;
	const struct {
		struct neuron_scrub *before, *then;
		u64 limit;
		u32 attempts;
	} rows[] = {
		{ NULL, NULL, 2 * SIZE, 1 }, { scrub, scrub, 2 * SIZE, 2 },
		{ NULL, scrub, 2 * SIZE, 2 }, { scrub, NULL, 2 * SIZE, 2 },
		{ scrub, scrub, SZ_1M, 1 },
	};
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	u32 i;

	hw.scrub_changes = true;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_chunk chunk = chunk_of(&hw.client, SIZE);
		struct neuron_failure why = no_failure();

		hbm->scrub = rows[i].before;
		hw.scrub = rows[i].then;
		hw.limit = rows[i].limit;
		hw.attempts = 0;
		KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENOMEM);
		KUNIT_EXPECT_EQ(test, hw.attempts, rows[i].attempts);
		KUNIT_EXPECT_EQ(test, hw.scrub_locked, rows[i].attempts == 2);
		KUNIT_EXPECT_FALSE(test, mutex_is_locked(&hbm->scrub_lock));
	}
}

static void hbm_end_move(struct work_struct *work)
{
	struct neuron_hbm *hbm = &hw.nd.hbm[1];

	WRITE_ONCE(hbm->moves_ended, 1);
	WRITE_ONCE(hbm->held, false);
	wake_up_all(&hbm->move_wait);
}

/* Nor is a request refused because of memory that a move held meanwhile, or holds. */
static void hbm_moved(struct kunit *test)
{
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	struct neuron_failure why = no_failure();
	struct neuron_chunk chunk;
	u32 i;

	hw.limit = 2 * SIZE;
	for (i = 0; i < 3; i++) {
		chunk = chunk_of(i == 2 ? &hw.kclient : &hw.client, SIZE);
		hw.attempts = 0;
		hw.moves = i;
		KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENOMEM);
		KUNIT_EXPECT_EQ(test, hw.attempts, i == 1 ? 2 : 1);
	}
	hw.moves = 0;
	hw.attempts = 0;
	INIT_WORK(&hw.move, hbm_end_move);
	hbm->held = true;
	hw.move_ends = true;
	chunk = chunk_of(&hw.client, SIZE);
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), -ENOMEM);
	flush_work(&hw.move);
	KUNIT_EXPECT_EQ(test, hw.attempts, 2);
}

/* A chunk gets longer by what is behind it, or what is behind it is free again. */
static void hbm_join_and_split(struct kunit *test)
{
	static const int errs[] = { -ENOMEM, 0 };
	struct neuron_chunk chunk = chunk_of(&hw.client, SZ_4M);
	struct neuron_failure why = no_failure();
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	struct neuron_buddy_block tail;
	u32 i;

	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4M, 0, &why), 0);
	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		struct neuron_buddy_request req = {
			.size = SZ_1M, .addr = chunk.block.addr + SZ_4M,
			.flags = NEURON_BUDDY_EXACT,
		};

		KUNIT_ASSERT_EQ(test, neuron_hbm_take(hbm, &chunk, &req, &tail, NULL), 0);
		hw.prepare_err = errs[i];
		KUNIT_EXPECT_EQ(test, neuron_hbm_join(hbm, &chunk, &tail), errs[i]);
		hw.prepare_err = 0;
		KUNIT_EXPECT_EQ(test, chunk.block.size, errs[i] ? SZ_4M : SZ_4M + (u64)SZ_1M);
		KUNIT_EXPECT_EQ(test, hbm->used[3][chunk.category], chunk.block.size);
		KUNIT_EXPECT_EQ(test, hw.client.hbm_bytes[1], chunk.block.size);
	}
	KUNIT_ASSERT_EQ(test, neuron_hbm_split(hbm, &chunk.block, SZ_2M, &tail), 0);
	KUNIT_EXPECT_EQ(test, chunk.block.size, (u64)SZ_2M);
	KUNIT_EXPECT_EQ(test, tail.size, (u64)SZ_2M + SZ_1M);
	KUNIT_EXPECT_EQ(test, neuron_hbm_split(hbm, &chunk.block, SZ_4M, &tail), -EINVAL);
	neuron_hbm_give(hbm, &chunk, &tail, SZ_2M + SZ_1M, false);
	chunk.size = SZ_2M;
	hw.charged = SZ_2M;
	neuron_hbm_free(&hw.nd, &chunk);
}

/* What an owner has, had at most and at least; the process itself has the rest. */
static void hbm_owners(struct kunit *test)
{
	struct neuron_chunk chunk[3] = {
		chunk_of(&hw.client, SZ_1M), chunk_of(&hw.client, SZ_2M),
		chunk_of(&hw.client, SZ_4M),
	};
	struct neuron_owner_use *use = &hw.client.owner.use[1];
	struct neuron_owner *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct neuron_failure why = no_failure();
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, other);
	for (i = 0; i < ARRAY_SIZE(chunk); i++) {
		chunk[i].owner = i == 2 ? other : &hw.client.owner;
		KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk[i], SZ_4K, 0, &why), 0);
	}
	KUNIT_EXPECT_EQ(test, use->bytes, (u64)SZ_1M + SZ_2M);
	KUNIT_EXPECT_EQ(test, use->allocs, 2u);
	KUNIT_EXPECT_EQ(test, other->use[1].bytes, (u64)SZ_4M);
	KUNIT_EXPECT_EQ(test, hw.client.hbm_bytes[1], use->bytes + other->use[1].bytes);
	use->low = use->bytes;
	neuron_hbm_free(&hw.nd, &chunk[1]);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk[1], SZ_4K, 0, &why), 0);
	KUNIT_EXPECT_EQ(test, use->low, (u64)SZ_1M);
	KUNIT_EXPECT_EQ(test, use->peak, (u64)SZ_1M + SZ_2M);
	for (i = 0; i < ARRAY_SIZE(chunk); i++)
		neuron_hbm_free(&hw.nd, &chunk[i]);
	KUNIT_EXPECT_EQ(test, use->bytes, 0ULL);
	KUNIT_EXPECT_EQ(test, use->allocs, 0u);
	KUNIT_EXPECT_EQ(test, use->peak, (u64)SZ_1M + SZ_2M);
	KUNIT_EXPECT_EQ(test, other->use[1].bytes, 0ULL);
	KUNIT_EXPECT_EQ(test, other->use[1].peak, (u64)SZ_4M);
}

/* A page that is held for some ticks counts as often; a clock that goes back takes away. */
static void hbm_owner_time(struct kunit *test)
{
	struct neuron_owner_use use = { };
	const u64 tick = 1ULL << NEURON_OWNER_TICK_SHIFT;

	neuron_owner_clear(&use, 7 * tick);
	use.bytes = 3 * PAGE_SIZE;
	neuron_owner_count(&use, 9 * tick + 5);
	KUNIT_EXPECT_EQ(test, use.page_ticks, 6ULL);
	neuron_owner_count(&use, 8 * tick);
	KUNIT_EXPECT_EQ(test, use.page_ticks, 3ULL);
	neuron_owner_count(&use, 107 * tick);
	KUNIT_EXPECT_EQ(test, use.page_ticks, 300ULL);
}

/* What happened is recorded, a refusal with the figures of that moment; the oldest goes. */
static void hbm_recorder(struct kunit *test)
{
	struct neuron_chunk chunk = chunk_of(&hw.client, SZ_4M);
	struct neuron_chunk big = chunk_of(&hw.client, SIZE);
	struct neuron_failure why = no_failure();
	struct neuron_hbm *hbm = &hw.nd.hbm[1];
	static struct neuron_record r[NEURON_RECORDS];
	u64 seq = 0, addr;
	u32 i, n = NEURON_RECORDS / 2 + 3;

	hw.client.id = 5;
	hw.limit = 2 * SIZE;
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_2M, NEURON_BUDDY_HIGH, &why), 0);
	addr = chunk.block.addr;
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(&hw.nd, &big, SZ_4K, 0, &why), -ENOMEM);
	neuron_hbm_free(&hw.nd, &chunk);
	KUNIT_ASSERT_EQ(test, neuron_recorder_read(hbm->recorder, &seq, r, 9), 3u);
	KUNIT_EXPECT_EQ(test, seq, 3ULL);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, r[i].client, 5u);
	KUNIT_EXPECT_EQ(test, r[0].what, (u8)NEURON_NATIVE_EVENT_ALLOC);
	KUNIT_EXPECT_EQ(test, r[0].page, (u32)(addr >> PAGE_SHIFT));
	KUNIT_EXPECT_EQ(test, r[0].pages, (u32)(SZ_4M >> PAGE_SHIFT));
	KUNIT_EXPECT_EQ(test, r[0].ask, (u8)(21 | NEURON_BUDDY_HIGH << 6));
	KUNIT_EXPECT_EQ(test, r[1].what,
			(u8)(NEURON_NATIVE_EVENT_REFUSE | NEURON_NATIVE_REASON_FULL << 4));
	KUNIT_EXPECT_EQ(test, r[1].free, (u32)((SIZE - RESERVED - SZ_4M) >> PAGE_SHIFT));
	KUNIT_EXPECT_EQ(test, r[2].what, (u8)NEURON_NATIVE_EVENT_FREE);
	KUNIT_EXPECT_EQ(test, r[2].page, r[0].page);
	/* Nothing that came later. */
	KUNIT_EXPECT_EQ(test, neuron_recorder_read(hbm->recorder, &seq, r, 9), 0u);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(&hw.nd, &chunk, SZ_4K, 0, &why), 0);
		neuron_hbm_free(&hw.nd, &chunk);
	}
	KUNIT_EXPECT_EQ(test, neuron_recorder_read(hbm->recorder, &seq, r, NEURON_RECORDS),
			(u32)NEURON_RECORDS);
	KUNIT_EXPECT_EQ(test, seq, 3 + 2ULL * n);
	KUNIT_EXPECT_EQ(test, r[NEURON_RECORDS - 1].what, (u8)NEURON_NATIVE_EVENT_FREE);
	KUNIT_EXPECT_EQ(test, r[NEURON_RECORDS - 2].what, (u8)NEURON_NATIVE_EVENT_ALLOC);
}

static struct kunit_case hbm_cases[] = {
	KUNIT_CASE(hbm_geometry),
	KUNIT_CASE(hbm_figures_unused),
	KUNIT_CASE(hbm_alloc_and_free),
	KUNIT_CASE(hbm_clears),
	KUNIT_CASE(hbm_refusals),
	KUNIT_CASE(hbm_cgroup),
	KUNIT_CASE(hbm_exact),
	KUNIT_CASE(hbm_free_many),
	KUNIT_CASE(hbm_free_downwards),
	KUNIT_CASE(hbm_made_once),
	KUNIT_CASE(hbm_clear_at_start),
	KUNIT_CASE(hbm_injected),
	KUNIT_CASE(hbm_again),
	KUNIT_CASE(hbm_scrubbed),
	KUNIT_CASE(hbm_moved),
	KUNIT_CASE(hbm_join_and_split),
	KUNIT_CASE(hbm_owners),
	KUNIT_CASE(hbm_owner_time),
	KUNIT_CASE(hbm_recorder),
	{}
};

static struct kunit_suite hbm_suite = {
	.name = "neuron_hbm",
	.init = hbm_suite_init,
	.exit = hbm_suite_exit,
	.test_cases = hbm_cases,
};

kunit_test_suite(hbm_suite);
