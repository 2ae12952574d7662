// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moving a chunk without the rest of neuron.ko: what becomes of its old place and of the new one,
 * whatever fails, and what a compaction sees. handle_kunit.c has who keeps a chunk where it is.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "../../kmod/base/trace.h"
#include "../../kmod/mem/compact.h"
#include "../../kmod/mem/dump.h"
#include "../../kmod/mem/handle.h"
#include "../../kmod/mem/hbm.h"
#include "../../kmod/mem/watch.h"

#define neuron_chunk_idle_at	move_idle_at
#define neuron_chunk_replace	move_replace
#define neuron_chunk_put	move_put
#define neuron_hbm_take		move_take
#define neuron_hbm_give		move_give
#define neuron_watch_free	move_watch_free
#define neuron_buddy_walk	move_walk
#define neuron_compact_clear	move_clear
#define neuron_compact_add	move_add
#undef trace_neuron_move
#define trace_neuron_move	move_trace

#define BASE	0x100000000ULL
#define FROM	SZ_1M
#define TO	SZ_8M
#define SIZE	SZ_64K

static bool move_idle_at(struct neuron_client *client, u64 addr, u8 *align,
			 struct neuron_chunk **start);
static bool move_replace(struct neuron_chunk *chunk, struct neuron_buddy_block *block, u64 addr);
static void move_put(struct neuron_chunk *chunk);
static int move_take(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		     const struct neuron_buddy_request *req, struct neuron_buddy_block *block,
		     struct neuron_failure *why);
static void move_give(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		      struct neuron_buddy_block *block, u64 bytes, bool clear);
static void move_watch_free(struct neuron_hbm *hbm, u64 off, u64 len);
static unsigned int move_walk(struct neuron_buddy *zone, u64 *pos, struct neuron_buddy_range *out,
			      unsigned int count);
static void move_clear(struct neuron_compact *c, u32 budget);
static void move_add(struct neuron_compact *c, u32 len, enum neuron_compact_state state, u8 align);
static void move_trace(u32 dev, const struct neuron_chunk *chunk, u64 from, u64 to, int err);

#include "../../kmod/mem/move.c"

static struct {
	struct neuron_hw_ops ops;
	struct neuron_device nd;
	struct neuron_hbm hbm;
	struct neuron_client client, kclient;
	struct neuron_dump_source src[2];
	struct neuron_move_view view;
	struct neuron_chunk chunk;
	struct neuron_move move;
	int take_err;
	bool stays;			/* somebody came */
	bool found_early, put_late;
	u64 ended;
	u64 taken, given, watched, released;	/* places; 0: none */
	bool clear;
	u64 traced[2];
	int traced_err;
	u32 walked, budget;
	char seen[8];			/* states and alignments */
	u32 nr_seen;
} state;

static bool move_idle_at(struct neuron_client *client, u64 addr, u8 *align,
			 struct neuron_chunk **start)
{
	if (client != &state.client || addr != state.chunk.addr)
		return false;
	*align = 2;
	if (!start)
		return true;
	/* Whoever frees it from now on waits for the move, and for one more that has ended. */
	state.found_early |= !state.hbm.held;
	state.ended = state.hbm.moves_ended;
	kref_get(&state.chunk.ref);
	state.chunk.moving = NEURON_MOVING;
	*start = &state.chunk;
	return true;
}

static bool move_replace(struct neuron_chunk *chunk, struct neuron_buddy_block *block, u64 addr)
{
	chunk->moving = NEURON_MOVING_NOT;
	if (state.stays)
		return false;
	swap(chunk->block, *block);
	chunk->addr = addr;
	return true;
}

static void move_put(struct neuron_chunk *chunk)
{
	if (!chunk)
		return;
	refcount_dec(&chunk->ref.refcount);
	/* Whoever waits for memory finds that of the chunk. */
	state.put_late |= !state.hbm.held || state.hbm.moves_ended != state.ended;
}

/* The place is the driver's, and nobody's limit counts it. */
static int move_take(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		     const struct neuron_buddy_request *req, struct neuron_buddy_block *block,
		     struct neuron_failure *why)
{
	if (why || req->flags != NEURON_BUDDY_EXACT || chunk->client != &state.kclient ||
	    chunk->core != 3 || !hbm->held)
		return -EINVAL;
	if (state.take_err)
		return state.take_err;
	state.taken = req->addr;
	*block = (struct neuron_buddy_block){ .addr = req->addr, .size = req->size };
	return 0;
}

static void move_give(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		      struct neuron_buddy_block *block, u64 bytes, bool clear)
{
	state.given = bytes == SIZE && chunk->client == &state.kclient ? block->addr : 0;
	state.clear = clear;
}

static void move_watch_free(struct neuron_hbm *hbm, u64 off, u64 len)
{
	state.watched = len == SIZE ? off : 0;
}

static bool move_hbm_release(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	state.released = len == SIZE ? off : 0;
	return true;
}

static void move_trace(u32 dev, const struct neuron_chunk *chunk, u64 from, u64 to, int err)
{
	state.traced[0] = from;
	state.traced[1] = to;
	state.traced_err = err;
}

static unsigned int move_walk(struct neuron_buddy *zone, u64 *pos, struct neuron_buddy_range *out,
			      unsigned int count)
{
	static const struct neuron_buddy_range ranges[] = {
		{ 0, FROM, NEURON_BUDDY_RANGE_RESERVED },
		{ FROM, SIZE, NEURON_BUDDY_RANGE_USED },
		{ FROM + SIZE, SIZE, NEURON_BUDDY_RANGE_USED },
		{ FROM + 2 * SIZE, SIZE, NEURON_BUDDY_RANGE_FREE },
	};

	lockdep_assert_held(&state.hbm.lock);
	if (state.walked == ARRAY_SIZE(ranges))
		return 0;
	*out = ranges[state.walked++];
	return 1;
}

static void move_clear(struct neuron_compact *c, u32 budget)
{
	state.budget = budget;
	state.walked = 0;
	state.nr_seen = 0;
}

static void move_add(struct neuron_compact *c, u32 len, enum neuron_compact_state is, u8 align)
{
	state.seen[state.nr_seen++] = is == NEURON_COMPACT_MOVABLE ? '0' + align :
				      is == NEURON_COMPACT_FREE ? '.' : '#';
}

static int move_init(struct kunit *test)
{
	memset(&state, 0, sizeof(state));
	state.ops.hbm_release = move_hbm_release;
	state.nd.ops = &state.ops;
	state.nd.kclient = &state.kclient;
	state.hbm.nd = &state.nd;
	state.hbm.base = BASE;
	spin_lock_init(&state.hbm.lock);
	init_waitqueue_head(&state.hbm.move_wait);
	xa_init_flags(&state.client.handles, XA_FLAGS_ALLOC1);
	state.src[0].client = &state.kclient;
	state.src[1].client = &state.client;
	state.view = (struct neuron_move_view){ .hbm = &state.hbm, .src = state.src, .nr = 2 };
	kref_init(&state.chunk.ref);
	state.chunk.client = &state.client;
	state.chunk.core = 3;
	state.chunk.size = SIZE;
	state.chunk.addr = BASE + FROM;
	state.chunk.block = (struct neuron_buddy_block){ .addr = FROM, .size = SIZE };
	return 0;
}

/* Nothing is held when a move has ended, however it did. */
static void move_exit(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk.ref), 1u);
	KUNIT_EXPECT_EQ(test, state.chunk.moving, NEURON_MOVING_NOT);
	KUNIT_EXPECT_FALSE(test, state.hbm.held);
	KUNIT_EXPECT_FALSE(test, state.put_late || state.found_early);
}

static int begin(void)
{
	const struct neuron_compact_move plan = {
		.from = FROM >> NEURON_BUDDY_GRANULE_SHIFT, .to = TO >> NEURON_BUDDY_GRANULE_SHIFT,
		.len = SIZE >> NEURON_BUDDY_GRANULE_SHIFT,
		.align = 2,
	};

	return neuron_move_begin(&state.view, &plan, &state.move);
}

static void move_succeeds(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, begin(), 0);
	KUNIT_EXPECT_EQ(test, state.taken, (u64)TO);
	KUNIT_EXPECT_TRUE(test, neuron_move_wanted(&state.move));
	KUNIT_EXPECT_TRUE(test, state.hbm.held);
	KUNIT_EXPECT_EQ(test, neuron_move_end(&state.move, 0), 0);
	KUNIT_EXPECT_EQ(test, state.chunk.addr, BASE + TO);
	KUNIT_EXPECT_EQ(test, state.chunk.block.addr, (u64)TO);
	KUNIT_EXPECT_EQ(test, state.given, (u64)FROM);
	KUNIT_EXPECT_EQ(test, state.watched, (u64)FROM);
	KUNIT_EXPECT_EQ(test, state.released, (u64)FROM);
	KUNIT_EXPECT_TRUE(test, state.clear);
	KUNIT_EXPECT_EQ(test, state.traced[0], BASE + FROM);
	KUNIT_EXPECT_EQ(test, state.traced[1], BASE + TO);
	KUNIT_EXPECT_EQ(test, state.traced_err, 0);
	KUNIT_EXPECT_EQ(test, state.hbm.moves, 1);
	KUNIT_EXPECT_EQ(test, state.hbm.moved_bytes, (u64)SIZE);
	KUNIT_EXPECT_EQ(test, state.hbm.move_failures, 0);
}

/* The copy failed, or somebody came: the new place goes back. */
static void move_is_given_up(struct kunit *test)
{
	static const struct {
		int copy, end;
	} rows[] = { { -EIO, -EIO }, { -EAGAIN, -EAGAIN }, { 0, -EAGAIN } };
	u32 i;

	state.stays = true;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_ASSERT_EQ(test, begin(), 0);
		KUNIT_EXPECT_EQ(test, neuron_move_end(&state.move, rows[i].copy), rows[i].end);
		KUNIT_EXPECT_EQ(test, state.chunk.addr, BASE + FROM);
		KUNIT_EXPECT_EQ(test, state.chunk.block.addr, (u64)FROM);
		KUNIT_EXPECT_EQ(test, state.given, (u64)TO);
		KUNIT_EXPECT_EQ(test, state.watched, (u64)TO);
		KUNIT_EXPECT_EQ(test, state.released, (u64)TO);
		KUNIT_EXPECT_EQ(test, state.traced[0], BASE + FROM);
		KUNIT_EXPECT_EQ(test, state.traced[1], BASE + TO);
		KUNIT_EXPECT_EQ(test, state.traced_err, rows[i].end);
		KUNIT_EXPECT_EQ(test, state.hbm.move_failures, i + 1);
		KUNIT_EXPECT_EQ(test, state.hbm.moves_ended, i + 1);
		KUNIT_EXPECT_EQ(test, state.hbm.moves, 0);
	}
}

/* The picture was out of date, or there is no memory for the books. */
static void move_does_not_begin(struct kunit *test)
{
	state.take_err = -EBUSY;
	KUNIT_EXPECT_EQ(test, begin(), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, state.hbm.held);
	state.take_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, begin(), -ENOMEM);
	state.take_err = 0;
	state.chunk.size += PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, begin(), -EAGAIN);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk.ref), 1u);
	state.chunk.addr += PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, begin(), -EAGAIN);
	KUNIT_EXPECT_EQ(test, state.taken, 0);
}

static void move_sees(struct kunit *test)
{
	neuron_move_picture(&state.view, NULL, 0);
	KUNIT_EXPECT_STREQ(test, state.seen, "#2#.");
	KUNIT_EXPECT_EQ(test, state.budget, U32_MAX);
	state.view.stay[state.view.nr_stay++] = BASE + FROM;
	neuron_move_picture(&state.view, NULL, 5 * NEURON_BUDDY_GRANULE - 1);
	KUNIT_EXPECT_STREQ(test, state.seen, "###.");
	KUNIT_EXPECT_EQ(test, state.budget, 4);
}

static struct kunit_case move_cases[] = {
	KUNIT_CASE(move_succeeds),
	KUNIT_CASE(move_is_given_up),
	KUNIT_CASE(move_does_not_begin),
	KUNIT_CASE(move_sees),
	{ }
};

static struct kunit_suite move_suite = {
	.name = "neuron_move",
	.init = move_init,
	.exit = move_exit,
	.test_cases = move_cases,
};

kunit_test_suite(move_suite);
