// SPDX-License-Identifier: GPL-2.0-only
/* Growing and shrinking without the rest of neuron.ko: what is charged, cleared, given back. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "../../kmod/base/call.h"
#include "../../kmod/base/client.h"
#include "../../kmod/mem/account.h"
#include "../../kmod/mem/dmem.h"
#include "../../kmod/mem/failure.h"
#include "../../kmod/mem/handle.h"
#include "../../kmod/mem/limit.h"
#include "../../kmod/mem/watch.h"

#define SIZE	(16 * PAGE_SIZE)
#define BLOCK	SZ_1M			/* where the chunk is in its HBM */
#define HANDLE	5

static struct {
	struct neuron_hw_ops ops;
	struct neuron_device nd;
	struct neuron_client client, other;
	struct neuron_chunk chunk;
	/* What fails, and how. */
	int dmem_err, take_err, clear_err, join_err, prepare_err, split_err, core_err;
	u32 again;			/* so often -EAGAIN before that */
	int reap_err;
	u32 reaps;			/* that were told of the teardowns before the attempt */
	bool cleared, release_clears, fault;
	/* What is charged to the chunk: taken, dmem, limit, shown. */
	s64 taken, dmem, limit, shown;
	s64 kept;			/* dmem stays charged */
	u32 takes, clears, joins, splits, releases;
	u32 explained;			/* why a grown chunk cannot leave its frame */
	bool given_clear;
	u64 watched, watched_len;	/* what became free */
	struct neuron_native_mem_grow user;	/* the caller's, to which results are copied */
} state;

static int grow_dmem_grow(struct neuron_hbm *hbm, struct neuron_chunk *chunk, u64 more)
{
	state.dmem += state.dmem_err ? 0 : more;
	return state.dmem_err;
}

static void grow_dmem_shrink(struct neuron_chunk *chunk, u64 more)
{
	state.dmem -= more;
}

static void grow_dmem_cut(struct neuron_chunk *chunk, u64 less)
{
	state.kept += less;
}

static u32 grow_teardowns(void)
{
	return 77 + state.takes;
}

/* The dead process had the memory that follows. */
static int grow_reap(struct neuron_device *nd, u32 seen)
{
	state.reaps += nd == &state.nd && seen == 77;
	if (!state.reap_err)
		state.take_err = 0;
	return state.reap_err;
}

static int grow_capped(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		       const struct neuron_buddy_request *req, int err, struct neuron_failure *why)
{
	why->reason = req->align ? NEURON_NATIVE_REASON_NONE : NEURON_NATIVE_REASON_CAPPED;
	return -ENOMEM;
}

static u64 grow_moves(struct neuron_hbm *hbm)
{
	return 99 + state.takes;
}

/* What lies behind may be with the scrubber, or with a move. */
static int grow_take(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		     const struct neuron_buddy_request *req, struct neuron_buddy_block *block,
		     struct neuron_failure *why, bool scrub, u64 moves)
{
	bool exact = req->flags == NEURON_BUDDY_EXACT && !req->align &&
		     req->addr == chunk->block.addr + chunk->block.size;

	exact &= moves == 99 + state.takes++;
	if (state.take_err || !exact || hbm != &state.nd.hbm[1] || !scrub) {
		why->reason = NEURON_NATIVE_REASON_FRAGMENTED;
		return state.take_err ?: -EINVAL;
	}
	*block = (struct neuron_buddy_block){
		.addr = req->addr, .size = req->size, .cleared = state.cleared,
	};
	state.taken += req->size;
	state.limit += req->size;
	return 0;
}

static void grow_give(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		      struct neuron_buddy_block *block, u64 bytes, bool clear)
{
	state.taken -= bytes;
	state.given_clear = clear;
}

static int grow_join(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		     struct neuron_buddy_block *tail)
{
	int err = ++state.joins <= state.again ? -EAGAIN : state.join_err;

	if (err)
		state.taken -= tail->size;
	else
		chunk->block.size += tail->size;
	return err;
}

static void grow_explain(struct neuron_hbm *hbm, u64 align, enum neuron_native_reason reason,
			 struct neuron_failure *why)
{
	lockdep_assert_held(&hbm->lock);
	state.explained += !align && reason == NEURON_NATIVE_REASON_FRAGMENTED;
	why->reason = NEURON_NATIVE_REASON_FRAGMENTED;
	why->total = 9;
	why->free = 8;
	why->largest_free = 7;
}

static int grow_prepare(struct neuron_buddy *buddy)
{
	return state.prepare_err;
}

static int grow_split(struct neuron_hbm *hbm, struct neuron_buddy_block *head, u64 size,
		      struct neuron_buddy_block *tail)
{
	int err = ++state.splits <= state.again ? -EAGAIN : state.split_err;

	if (err)
		return err;
	*tail = (struct neuron_buddy_block){ .addr = head->addr + size, .size = head->size - size };
	head->size = size;
	return 0;
}

static void grow_uncharge(struct neuron_chunk *chunk, u64 bytes)
{
	state.limit -= bytes;
}

static int grow_core(const struct neuron_client *client, u32 core)
{
	return core == 3 ? state.core_err : -ENOTTY;
}

static void grow_account(struct neuron_chunk *chunk, u64 bytes, u64 last, bool add)
{
	state.shown += bytes != last ? 1 : add ? bytes : -bytes;
}

static struct neuron_chunk *grow_use(struct neuron_client *client, u64 handle,
				     enum neuron_user as)
{
	return handle == HANDLE ? neuron_chunk_ref(&state.chunk) : NULL;
}

static void grow_put(struct neuron_chunk *chunk)
{
	refcount_dec(&chunk->ref.refcount);
}

static int grow_put_user(u32 val, u32 *to)
{
	*to = val;
	return state.fault ? -EFAULT : 0;
}

static void grow_watch_free(struct neuron_hbm *hbm, u64 off, u64 len)
{
	/* Before anybody else can have it. */
	state.watched = state.releases || hbm != &state.nd.hbm[1] ? 0 : off;
	state.watched_len = len;
}

#undef put_user
#define put_user(val, to)	grow_put_user(val, (u32 __force *)(to))
#define neuron_dmem_grow	grow_dmem_grow
#define neuron_dmem_shrink	grow_dmem_shrink
#define neuron_dmem_cut		grow_dmem_cut
#define neuron_hbm_capped	grow_capped
#define neuron_hbm_moves	grow_moves
#define neuron_hbm_take_late	grow_take
#define neuron_hbm_give		grow_give
#define neuron_hbm_join		grow_join
#define neuron_hbm_explain	grow_explain
#define neuron_hbm_split	grow_split
#define neuron_buddy_prepare	grow_prepare
#define neuron_limit_uncharge	grow_uncharge
#define neuron_limit_core	grow_core
#define neuron_account		grow_account
#define neuron_chunk_get(client, handle)	grow_use(client, handle, NEURON_USER_NONE)
#define neuron_chunk_put	grow_put
#define neuron_watch_free	grow_watch_free
#define neuron_teardowns_read	grow_teardowns
#define neuron_clients_reap	grow_reap

#include "../../kmod/mem/grow.c"

static int grow_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	state.clears++;
	return hbm != 1 || off != state.chunk.block.addr + state.chunk.block.size ||
	       !len ? -EIO : state.clear_err;
}

static bool grow_release(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	state.releases += hbm == 1 && off == state.watched && len == state.watched_len;
	return state.release_clears;
}

static int grow_init(struct kunit *test)
{
	memset(&state, 0, sizeof(state));
	state.ops.hbm_clear = grow_clear;
	state.ops.hbm_release = grow_release;
	state.reap_err = -ENOENT;
	state.nd.ops = &state.ops;
	mutex_init(&state.nd.grow_lock);
	state.nd.hbm = kunit_kcalloc(test, 2, sizeof(*state.nd.hbm), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, state.nd.hbm);
	spin_lock_init(&state.nd.hbm[1].lock);
	mutex_init(&state.nd.hbm[1].scrub_lock);
	state.client.nd = &state.nd;
	state.other.nd = &state.nd;
	xa_init_flags(&state.client.handles, XA_FLAGS_ALLOC1);
	xa_init_flags(&state.other.handles, XA_FLAGS_ALLOC1);
	kref_init(&state.chunk.ref);
	state.chunk.client = &state.client;
	state.chunk.hbm = 1;
	state.chunk.core = 3;
	state.chunk.size = SIZE;
	state.chunk.block.addr = BLOCK;
	state.chunk.block.size = SIZE;
	state.chunk.own.place = NEURON_PLACE_TREE;
	return 0;
}

/* What is charged to a chunk is what it has become longer by, and no lock is held. */
static void grow_exit(struct kunit *test)
{
	s64 more = state.chunk.size - SIZE;

	KUNIT_EXPECT_EQ(test, state.chunk.block.size, state.chunk.size);
	KUNIT_EXPECT_EQ(test, state.chunk.block.addr, (u64)BLOCK);
	KUNIT_EXPECT_EQ(test, state.taken, more);
	KUNIT_EXPECT_EQ(test, state.dmem, max_t(s64, more, 0));
	KUNIT_EXPECT_EQ(test, state.kept, max_t(s64, -more, 0));
	KUNIT_EXPECT_EQ(test, state.limit, more);
	KUNIT_EXPECT_EQ(test, state.shown, more);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk.ref), 1u);
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&state.nd.grow_lock));
}

static int change(u64 bytes, u32 flags, struct neuron_native_mem_grow *a)
{
	struct neuron_call call = {
		.nd = &state.nd, .client = &state.client, .arg = a,
		.uarg = (void __user *)&state.user,
	};

	state.user.reason = 77;
	*a = (struct neuron_native_mem_grow){
		.mem_handle = HANDLE, .bytes = bytes, .flags = flags,
	};
	return neuron_do_native_mem_grow(&call);
}

static void grow_longer(struct kunit *test)
{
	static const struct {
		u64 bytes, becomes;
		int err;
		bool cleared;
		u32 takes, clears;	/* so far */
	} rows[] = {
		{ SIZE, SIZE, 0, false, 0, 0 },
		{ SIZE - PAGE_SIZE + 1, SIZE, 0, false, 0, 0 },
		{ SIZE - PAGE_SIZE, SIZE, -EINVAL, false, 0, 0 },
		{ U64_MAX, SIZE, -EOVERFLOW, false, 0, 0 },
		{ SIZE + 1, SIZE + PAGE_SIZE, 0, false, 1, 1 },
		{ SIZE + 4 * PAGE_SIZE, SIZE + 4 * PAGE_SIZE, 0, true, 2, 1 },
	};
	struct neuron_native_mem_grow a;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		state.cleared = rows[i].cleared;
		KUNIT_EXPECT_EQ(test, change(rows[i].bytes, 0, &a), rows[i].err);
		KUNIT_EXPECT_EQ(test, state.chunk.size, rows[i].becomes);
		KUNIT_EXPECT_EQ(test, a.bytes, rows[i].err ? rows[i].bytes : rows[i].becomes);
		KUNIT_EXPECT_EQ(test, a.reason, (u32)NEURON_NATIVE_REASON_NONE);
		KUNIT_EXPECT_EQ(test, state.user.reason, 0u);
		KUNIT_EXPECT_EQ(test, state.takes, rows[i].takes);
		KUNIT_EXPECT_EQ(test, state.clears, rows[i].clears);
	}
}

/* Whatever fails, nothing is charged for it and the reason is told. */
static void grow_fails(struct kunit *test)
{
	static const struct {
		int *how, fails, err;
		enum neuron_native_reason reason;
		u32 again, takes, joins;
		bool given;	/* it goes back without having been joined */
	} rows[] = {
		{ &state.core_err, -EBUSY, -EBUSY, NEURON_NATIVE_REASON_NONE },
		{ &state.dmem_err, -EAGAIN, -ENOMEM, NEURON_NATIVE_REASON_CAPPED },
		{ &state.take_err, -EBUSY, -ENOMEM, NEURON_NATIVE_REASON_FRAGMENTED, 0, 1 },
		{ &state.clear_err, -EIO, -EIO, NEURON_NATIVE_REASON_NONE, 0, 1, 0, true },
		{ &state.clear_err, -ENOMEM, -ENOMEM, NEURON_NATIVE_REASON_HOST, 0, 1, 0, true },
		{ &state.join_err, -ENOMEM, -ENOMEM, NEURON_NATIVE_REASON_HOST, 0, 1, 1 },
		{ &state.join_err, -EINVAL, -EINVAL, NEURON_NATIVE_REASON_NONE, 3, 4, 4 },
		{ &state.join_err, -ENOSPC, -ENOMEM, NEURON_NATIVE_REASON_FRAGMENTED, 2, 3, 3 },
	};
	struct neuron_native_mem_grow a;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		*rows[i].how = rows[i].fails;
		state.again = rows[i].again;
		state.takes = 0;
		state.joins = 0;
		state.given_clear = true;
		KUNIT_EXPECT_EQ(test, change(2 * SIZE, 0, &a), rows[i].err);
		KUNIT_EXPECT_EQ(test, a.reason, (u32)rows[i].reason);
		KUNIT_EXPECT_EQ(test, state.takes, rows[i].takes);
		KUNIT_EXPECT_EQ(test, state.joins, rows[i].joins);
		KUNIT_EXPECT_EQ(test, state.given_clear, !rows[i].given);
		KUNIT_EXPECT_EQ(test, state.taken, 0LL);
		KUNIT_EXPECT_EQ(test, state.limit, 0LL);
		KUNIT_EXPECT_EQ(test, state.dmem, 0LL);
		*rows[i].how = 0;
	}
	/* The last one told how much there is. */
	KUNIT_EXPECT_EQ(test, state.explained, 1u);
	KUNIT_EXPECT_EQ(test, a.total, 9ULL);
	KUNIT_EXPECT_EQ(test, a.free, 8ULL);
	KUNIT_EXPECT_EQ(test, a.largest_free, 7ULL);
	KUNIT_EXPECT_EQ(test, state.chunk.size, (u64)SIZE);
	/* The memory behind it is free again after two attempts. */
	state.again = 2;
	state.joins = 0;
	KUNIT_EXPECT_EQ(test, change(2 * SIZE, 0, &a), 0);
	KUNIT_EXPECT_EQ(test, state.joins, 3u);
}

/* Memory of a process that is being torn down is waited for. */
static void grow_reaps(struct kunit *test)
{
	static const struct {
		int reap, err;
		u32 takes;
	} rows[] = {
		{ -ENOENT, -ENOMEM, 1 },
		{ -EINTR, -EINTR, 1 },
		{ 0, 0, 2 },
	};
	struct neuron_native_mem_grow a;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		state.take_err = -EBUSY;
		state.reap_err = rows[i].reap;
		state.takes = 0;
		KUNIT_EXPECT_EQ(test, change(2 * SIZE, 0, &a), rows[i].err);
		KUNIT_EXPECT_EQ(test, state.takes, rows[i].takes);
		KUNIT_EXPECT_EQ(test, state.reaps, i + 1);
	}
	KUNIT_EXPECT_EQ(test, state.chunk.size, 2ULL * SIZE);
	/* Nobody else has what is cut off a chunk. */
	state.prepare_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, change(PAGE_SIZE, NEURON_NATIVE_GROW_SHRINK, &a), -ENOMEM);
	KUNIT_EXPECT_EQ(test, state.reaps, 3u);
}

static void grow_shorter(struct kunit *test)
{
	static const struct {
		u64 bytes, becomes;
		int err;
		bool clear;
		u32 releases;
	} rows[] = {
		{ 0, SIZE, -EINVAL, false, 0 }, { SIZE + 1, SIZE, -EINVAL, false, 0 },
		{ SIZE, SIZE, 0, false, 0 }, { SIZE - PAGE_SIZE + 1, SIZE, 0, false, 0 },
		{ SIZE - PAGE_SIZE, SIZE - PAGE_SIZE, 0, true, 1 },
		{ 1, PAGE_SIZE, 0, false, 1 },
	};
	struct neuron_native_mem_grow a;
	u32 i;

	state.again = 2;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		state.release_clears = rows[i].clear;
		state.releases = 0;
		KUNIT_EXPECT_EQ(test, change(rows[i].bytes, NEURON_NATIVE_GROW_SHRINK, &a),
				rows[i].err);
		KUNIT_EXPECT_EQ(test, state.chunk.size, rows[i].becomes);
		KUNIT_EXPECT_EQ(test, a.bytes, rows[i].err ? rows[i].bytes : rows[i].becomes);
		KUNIT_EXPECT_EQ(test, state.releases, rows[i].releases);
		KUNIT_EXPECT_EQ(test, state.given_clear, rows[i].clear);
	}
	KUNIT_EXPECT_EQ(test, state.watched, (u64)BLOCK + PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, state.watched_len, (u64)SIZE - 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, state.splits, 4u);
}

static void grow_shorter_fails(struct kunit *test)
{
	static const struct {
		int *how, fails, err;
	} rows[] = {
		{ &state.prepare_err, -ENOMEM, -ENOMEM },
		{ &state.split_err, -ENOSPC, -EOPNOTSUPP },
		{ &state.split_err, -EINVAL, -EINVAL },
	};
	struct neuron_native_mem_grow a;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		*rows[i].how = rows[i].fails;
		KUNIT_EXPECT_EQ(test, change(PAGE_SIZE, NEURON_NATIVE_GROW_SHRINK, &a),
				rows[i].err);
		*rows[i].how = 0;
	}
	/* Each kind of user forbids it; longer it may become, unless another process has it. */
	for (i = 0; i < ARRAY_SIZE(state.chunk.users); i++) {
		int grow = i == NEURON_USER_IMPORT - 1 ? -EBUSY : 0;

		state.splits = 0;
		state.chunk.users[i] = 1;
		KUNIT_EXPECT_EQ(test, change(PAGE_SIZE, NEURON_NATIVE_GROW_SHRINK, &a), -EBUSY);
		KUNIT_EXPECT_EQ(test, state.splits, 0u);
		KUNIT_EXPECT_EQ(test, change(state.chunk.size + 1, 0, &a), grow);
		state.chunk.users[i] = 0;
	}
	KUNIT_EXPECT_EQ(test, state.releases, 0u);
}

/* Neither way: of another process, a ring, freed meanwhile, host memory. */
static void grow_refused(struct kunit *test)
{
	static const u32 flags[2] = { 0, NEURON_NATIVE_GROW_SHRINK };
	struct neuron_native_mem_grow a;
	u32 i;

	for (i = 0; i < 2; i++) {
		u64 bytes = i ? PAGE_SIZE : 2 * SIZE;

		state.chunk.client = &state.other;
		KUNIT_EXPECT_EQ(test, change(bytes, flags[i], &a), -EBUSY);
		state.chunk.client = &state.client;
		state.chunk.kind = NEURON_CHUNK_RING;
		KUNIT_EXPECT_EQ(test, change(bytes, flags[i], &a), -EBUSY);
		state.chunk.kind = NEURON_CHUNK_PLAIN;
		state.chunk.own.place = NEURON_PLACE_NONE;
		KUNIT_EXPECT_EQ(test, change(bytes, flags[i], &a), -ENOENT);
		state.chunk.own.place = NEURON_PLACE_UNINDEXED;
		state.chunk.host = true;
		KUNIT_EXPECT_EQ(test, change(bytes, flags[i], &a), -EINVAL);
		state.chunk.host = false;
		KUNIT_EXPECT_EQ(test, state.takes + state.splits, 0u);
	}
}

static void grow_arguments(struct kunit *test)
{
	struct neuron_native_mem_grow bad[] = {
		{ .flags = NEURON_NATIVE_GROW_SHRINK << 1 }, { .reason = 1 }, { .__reserved = 1 },
	}, a;
	struct neuron_call call = {
		.nd = &state.nd, .client = &state.client, .uarg = (void __user *)&a,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].mem_handle = HANDLE;
		bad[i].bytes = 2 * SIZE;
		call.arg = &bad[i];
		KUNIT_EXPECT_EQ(test, neuron_do_native_mem_grow(&call), -EINVAL);
	}
	state.fault = true;
	KUNIT_EXPECT_EQ(test, change(2 * SIZE, 0, &a), -EFAULT);
	state.fault = false;
	bad[2].__reserved = 0;
	bad[2].mem_handle = HANDLE + 1;
	KUNIT_EXPECT_EQ(test, neuron_do_native_mem_grow(&call), -ENOENT);
}

static struct kunit_case grow_cases[] = {
	KUNIT_CASE(grow_longer),
	KUNIT_CASE(grow_fails),
	KUNIT_CASE(grow_reaps),
	KUNIT_CASE(grow_shorter),
	KUNIT_CASE(grow_shorter_fails),
	KUNIT_CASE(grow_refused),
	KUNIT_CASE(grow_arguments),
	{}
};

static struct kunit_suite grow_suite = {
	.name = "neuron_grow",
	.init = grow_init,
	.exit = grow_exit,
	.test_cases = grow_cases,
};

kunit_test_suite(grow_suite);
