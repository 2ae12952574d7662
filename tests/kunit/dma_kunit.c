// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA queues, notification queues and copies without the rest of neuron.ko, on a
 * device that refuses what a test wants refused. After each case everything that was
 * taken must have been given back.
 */
#include "dma_fake.h"

#include <linux/dma-resv.h>

#include "../../kmod/mem/sync.h"

#include "../../kmod/dma/ring.c"
#include "../../kmod/dma/queue.c"
#include "../../kmod/dma/copy.c"
#include "../../kmod/dma/nq_event.c"
#include "../../kmod/dma/dma_ioctl.c"
#include "../../kmod/dma/notify.c"
#include "../../kmod/dma/async.c"

static int dma_init(struct kunit *test)
{
	u32 i;

	memset(&fake, 0, sizeof(fake));
	fake.test = test;
	fake.mem = vzalloc(MEM_SIZE);
	KUNIT_ASSERT_NOT_NULL(test, fake.mem);
	fake.geo = (struct neuron_geometry){
		.nr_cores = 2, .nr_hbms = 2, .nr_dma_engines = 5, .engines_per_core = 2,
		.nr_nq_types = 6, .nr_nq_engines = 16,
		.copy_engine = { COPY_ENGINE, COPY_ENGINE }, .copy_queue = { 0, 1 },
		.tpb_base = { CORE_ADDR(0), CORE_ADDR(1) }, .tpb_size = 64 << 20,
	};
	fake.nd.geo = &fake.geo;
	fake.nd.ops = &fake_ops;
	fake.nd.core = fake.core;
	fake.nd.engine = fake.engine;
	for (i = 0; i < ARRAY_SIZE(fake.engine); i++)
		fake.engine[i].queue = fake.queue[i];
	fake.nd.kclient = &fake.kclient;
	fake.kclient.nd = &fake.nd;
	fake.client.nd = &fake.nd;
	fake.other.nd = &fake.nd;
	INIT_LIST_HEAD(&fake.client.rings);
	INIT_LIST_HEAD(&fake.other.rings);
	xa_init(&fake.client.handles);
	xa_init(&fake.other.handles);
	kref_init(&fake.client.ref);
	kref_init(&fake.other.ref);
	for (i = 1; i <= NR_HANDLES; i++) {
		fake_memory_init(&fake.handle[i], &fake.client, CHUNK_SIZE);
		fake.handle[i].chunk.own.number = i;
		fake.handle[i].chunk.host = i > 4;
		fake.handle[i].chunk.core = i & 1;
		fake.handle[i].chunk.addr = MEM_ADDR + i * CHUNK_SIZE;
	}
	for (i = 0; i < 2; i++) {
		INIT_LIST_HEAD(&fake.core[i].held);
		fake.core[i].copy = neuron_copy_new();
		KUNIT_ASSERT_NOT_NULL(test, fake.core[i].copy);
	}
	EQ(fake.inits, 4);
	return 0;
}

static void dma_exit(struct kunit *test)
{
	u32 i, k;

	neuron_async_exit(&fake.client);
	for (i = 0; i < COPY_ENGINE; i++)
		neuron_engine_hold(&fake.nd, i);
	for (i = 0; i < 2; i++) {
		fake_take(&fake.core[i].lock);
		neuron_nqs_hold(&fake.nd, i);
		fake_drop(&fake.core[i].lock);
		neuron_nq_poll_exit(&fake.nd, i);
		kfree(fake.core[i].nq_poll);
		fake_reset_ends(i);
		neuron_copy_exit(&fake.nd, i);
		kfree(fake.core[i].copy);
	}
	for (i = 1; i <= NR_HANDLES; i++)
		fake_ring_free(i);
	EQ(fake.allocs, 0);
	EQ(kref_read(&fake.client.ref), 1);
	EQ(kref_read(&fake.other.ref), 1);
	EQ(fake.watches, 0);
	EQ(fake.eventfds, 0);
	EQ(fake.pinned, 0);
	for (i = 0; i < ARRAY_SIZE(fake.locks); i++)
		OK(!fake.locks[i]);
	for (i = 0; i < ARRAY_SIZE(fake.own); i++)
		OK(!fake.own[i].used || fake.own[i].chunk.own.number);
	for (i = 1; i <= NR_HANDLES; i++) {
		EQ(kref_read(&fake.handle[i].chunk.ref), 1);
		for (k = 0; k < NEURON_NR_USERS - 1; k++)
			EQ(fake.handle[i].chunk.users[k], 0);
	}
	for (i = 0; i < ARRAY_SIZE(fake.own); i++)
		if (fake.own[i].used)
			fake_chunk_revoke(&fake.own[i].chunk);
	for (i = 0; i < ARRAY_SIZE(fake.own); i++)
		OK(!fake.own[i].used);
	vfree(fake.mem);
}

/* A call with an argument of type neuron_ioctl_@name or neuron_native_@name. */
#define CALL(name, who, ...) CALL_(neuron_do_##name, struct neuron_ioctl_##name, who, __VA_ARGS__)
#define NATIVE(name, ...) \
	CALL_(neuron_do_native_##name, struct neuron_native_##name, client, __VA_ARGS__)
#define CALL_(function, type, who, ...) ({						\
	type arg_ = { __VA_ARGS__ };							\
	struct neuron_call call_ = { .nd = &fake.nd, .client = &fake.who, .arg = &arg_ };	\
											\
	function(&call_);								\
})

/* ---- queues ------------------------------------------------------------------------ */

#define INIT(eng, q, tx, nr_tx, rx, nr_rx) \
	((struct neuron_ioctl_dma_queue_init){ eng, q, nr_tx, nr_rx, tx, rx })

static int queue_init(u32 eng, u32 q, u64 tx, u32 nr_tx, u64 rx, u32 nr_rx)
{
	const struct neuron_ioctl_dma_queue_init arg = INIT(eng, q, tx, nr_tx, rx, nr_rx);

	return neuron_queue_init(&fake.client, &arg);
}

static void dma_queue_init_refuses(struct kunit *test)
{
	static const struct {
		struct neuron_ioctl_dma_queue_init arg;
		int err;
	} rows[] = {
		{ INIT(5, 0, 1, 32, 2, 32), -EINVAL },
		{ INIT(0, 16, 1, 32, 2, 32), -EINVAL },
		{ INIT(0, 0, 1, 31, 2, 32), -EINVAL },
		{ INIT(0, 0, 1, 16, 2, 32), -EINVAL },
		{ INIT(0, 0, 1, 40, 2, 32), -EINVAL },
		{ INIT(0, 0, 1, 32, 2, 16), -EINVAL },
		{ INIT(0, 0, 1, NEURON_RING_MAX + 16, 2, 32), -EINVAL },
		{ INIT(0, 0, 1, CHUNK_SIZE / 16 + 16, 2, 32), -EINVAL },
		{ INIT(0, 0, 9, 32, 2, 32), -ENOENT },
		{ INIT(0, 0, 1, 32, 9, 32), -ENOENT },
		{ INIT(4, 2, 1, 32, 2, 32), -EPERM },
		{ { .tx_handle = 1, .tx_desc_count = 32, .rxc_handle = 1 }, -EINVAL },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		EQ(neuron_queue_init(&fake.client, &rows[i].arg), rows[i].err);
		EQ(fake.watches, 0);
		EQ(fake.allocs, 2);
	}
	/* A ring where it must not start; a copy queue on an engine of a core, as inf1. */
	fake.handle[1].chunk.addr += 128;
	EQ(queue_init(0, 0, 1, 32, 2, 32), -EINVAL);
	fake.handle[1].chunk.addr -= 128;
	fake.geo.copy_engine[1] = 3;
	EQ(queue_init(3, 1, 1, 32, 2, 32), -EPERM);
	fake.fail_alloc = 1;
	EQ(queue_init(0, 0, 1, 32, 2, 32), -ENOMEM);
	/* None of this took a core. */
	OK(!fake.core[0].owner && !fake.core[1].owner);
	EQ(fake.nr_ops, 0);
	fake.core[1].owner = &fake.other;
	EQ(queue_init(2, 0, 1, 32, 2, 32), -EBUSY);
	EQ(fake.nr_ops, 0);
}

/* The rings of the queue that was started last. */
static void expect_rings(u64 tx, u32 nr_tx, u64 rx, u32 nr_rx)
{
	EQ(fake.setup.addr[0], tx);
	EQ(fake.setup.length[0], nr_tx);
	EQ(fake.setup.addr[1], rx);
	EQ(fake.setup.length[1], nr_rx);
}

/* Rings of the largest and the smallest length, then a queue with one ring in its place. */
static void dma_queue_init_programs(struct kunit *test)
{
	u64 tx = fake.handle[1].chunk.addr |= 0x700000000;
	u64 rx = fake.handle[2].chunk.addr;

	EQ(queue_init(2, 15, 1, CHUNK_SIZE / 16, 2, NEURON_RING_MIN), 0);
	OK(fake.core[1].owner == &fake.client && !fake.core[0].owner);
	EXPECT_OP(0, 'b', 2, 15);
	expect_rings(tx, CHUNK_SIZE / 16, rx, NEURON_RING_MIN);
	EQ(fake.nr_ops, 1);
	EQ(fake.watches, 2);
	EQ(fake.watch_len, NEURON_RING_MIN * 16);
	EQ(fake.handle[1].chunk.users[NEURON_USER_RING - 1], 1);
	fake.nr_ops = 0;
	EQ(queue_init(2, 15, 0, 0, 2, 48), 0);
	EXPECT_OP(0, 's', 2, 15);
	EXPECT_OP(1, 'b', 2, 15);
	expect_rings(0, 0, rx, 48);
	EQ(fake.handle[1].chunk.users[NEURON_USER_RING - 1], 0);
	EQ(fake.handle[2].chunk.users[NEURON_USER_RING - 1], 1);
	EQ(fake.watches, 1);
	fake.nr_ops = 0;
	EQ(queue_init(2, 15, 1, 48, 0, 0), 0);
	expect_rings(tx, 48, 0, 0);
	EQ(fake.nr_ops, 2);
}

/* The device refuses: the queue is stopped and there is none. */
static void dma_queue_init_fails(struct kunit *test)
{
	fake.fail_start = 1;
	EQ(queue_init(0, 3, 1, 32, 2, 32), -ENOMEM);
	EXPECT_OP(1, 's', 0, 3);
	EQ(fake.nr_ops, 2);
	OK(!fake.engine[0].queue[3]);
	EQ(fake.watches, 0);
	EQ(fake.allocs, 2);
}

/* A queue belongs to one process. */
static void dma_queue_of_another(struct kunit *test)
{
	const struct neuron_ioctl_dma_queue_init arg = { .eng_id = 1 };

	EQ(queue_init(1, 15, 1, 32, 2, 32), 0);
	fake.engine[1].queue[15]->client = &fake.other;
	EQ(queue_init(1, 15, 1, 32, 2, 32), -EBUSY);
	EQ(neuron_queue_init(&fake.other, &arg), -EBUSY);
	OK(fake.engine[1].queue[15]);
}

/* A reset takes the queues of an engine; their rings stay until it has ended. */
static void dma_queues_are_held(struct kunit *test)
{
	EQ(queue_init(0, 0, 1, 32, 2, 32), 0);
	EQ(queue_init(0, 15, 0, 0, 2, 48), 0);
	EQ(queue_init(3, 4, 1, 32, 0, 0), 0);
	fake.nr_ops = 0;
	neuron_engine_hold(&fake.nd, 0);
	EQ(fake.nr_ops, 0);
	OK(!fake.engine[0].queue[0] && !fake.engine[0].queue[15] && fake.engine[3].queue[4]);
	EQ(fake.core[0].held_bytes, 3 * CHUNK_SIZE);
	/* They may go on in the space of their process. */
	EQ(kref_read(&fake.client.ref), 3);
	EQ(fake.core[1].held_bytes, 0);
	EQ(fake.handle[1].chunk.users[NEURON_USER_RING - 1], 2);
	EQ(fake.handle[2].chunk.users[NEURON_USER_RING - 1], 2);
	EQ(fake.watches, 4);
	fake_reset_ends(0);
	EQ(kref_read(&fake.client.ref), 1);
	EQ(fake.handle[1].chunk.users[NEURON_USER_RING - 1], 1);
	EQ(fake.handle[2].chunk.users[NEURON_USER_RING - 1], 0);
	EQ(fake.watches, 1);
}

/* A core is reset, from its begin to its end. */
static void reset_core(u32 core)
{
	u32 n = fake.geo.engines_per_core, i;

	for (i = 0; i < n; i++)
		neuron_engine_hold(&fake.nd, core * n + i);
	fake_reset_ends(core);
}

/* The device cannot stop a queue: it is gone, and its rings stay until a reset. */
static void dma_queue_that_does_not_stop(struct kunit *test)
{
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	fake.fail_stop = 1;
	EQ(queue_init(0, 3, 1, 48, 0, 0), -EIO);
	OK(!fake.engine[0].queue[3]);
	EQ(fake.core[0].held_bytes, 2 * CHUNK_SIZE);
	EQ(fake.watches, 2);
	/* It goes on, so it does not become another one; others do. */
	fake.nr_ops = 0;
	EQ(queue_init(0, 3, 1, 48, 0, 0), -EIO);
	EQ(fake.nr_ops, 0);
	EQ(queue_init(0, 4, 1, 48, 0, 0), 0);
	EQ(queue_init(1, 3, 1, 48, 0, 0), 0);
	reset_core(0);
	EQ(fake.watches, 0);
	/* Nor can it stop one that it did not start. */
	fake.fail_start = 1;
	fake.fail_stop = 1;
	EQ(queue_init(0, 3, 1, 32, 2, 32), -ENOMEM);
	OK(!fake.engine[0].queue[3]);
	EQ(fake.core[0].held_bytes, 2 * CHUNK_SIZE);
	reset_core(0);
	EQ(fake.watches, 0);
}

static void dma_irq_finds_its_core(struct kunit *test)
{
	u32 core = 7;

	OK(neuron_queue_is_kernel(&fake.nd, COPY_ENGINE, 1, &core));
	EQ(core, 1);
	OK(!neuron_queue_is_kernel(&fake.nd, COPY_ENGINE, 2, &core));
	OK(!neuron_queue_is_kernel(&fake.nd, 1, 1, NULL));
	OK(neuron_engine_is_kernel(&fake.nd, COPY_ENGINE));
	OK(!neuron_engine_is_kernel(&fake.nd, 3));
	neuron_dma_irq(&fake.nd, 2, 5);
	EQ(fake.woken, 0);
	neuron_dma_irq(&fake.nd, COPY_ENGINE, 0);
	EQ(fake.woken, 1);
	EQ(fake.nr_traces, 0);
	fake.tracing = true;
	neuron_dma_irq(&fake.nd, 2, 5);
	EQ(fake.nr_traces, 1);
	fake_set_reg(2, NEURON_DMA_TX(5) + NEURON_DMA_Q_STATUS, NEURON_QUEUE_ABORTED);
	neuron_dma_irq(&fake.nd, 2, 5);
	EQ(fake.nr_traces, 3);
	EQ(fake.traced, 'f');
	EQ(fake.trace[0], 1);
	EQ(fake.trace[1], NEURON_FAULT_DMA);
	EQ(fake.trace[2], 2);
	EQ(fake.trace[3], 5);
	fake.fail_read = 1;
	neuron_dma_irq(&fake.nd, 2, 5);
	EQ(fake.nr_traces, 3);
}

/* ---- ioctls of engines and queues -------------------------------------------------- */

static void dma_engine_states(struct kunit *test)
{
	struct neuron_dma_eng_state state = {};
	u32 i;

	EQ(CALL(dma_eng_init, client, 4), 0);
	EQ(CALL(dma_eng_init, client, 5), -EINVAL);
	EQ(CALL(dma_queue_release, client, 4, 15), 0);
	EQ(CALL(dma_queue_release, client, 5, 15), -EINVAL);
	EQ(CALL(dma_queue_release, client, 4, 16), -EINVAL);
	for (i = 0; i < 6; i++)
		EQ(CALL(dma_eng_set_state, client, 1, i),
		   i == 0 || i == 2 || i == 3 ? 0 : -EINVAL);
	EXPECT_OP(0, 'w', 1, NEURON_DMA_COMMON, 0);
	EXPECT_OP(1, 'w', 1, NEURON_DMA_COMMON, 2);
	EXPECT_OP(2, 'w', 1, NEURON_DMA_COMMON, 3);
	EQ(fake.nr_ops, 3);
	EQ(CALL(dma_eng_set_state, client, 5, 2), -EINVAL);
	EQ(CALL(dma_eng_set_state, client, 4, 2), -EPERM);
	EQ(CALL(dma_eng_set_state, other, 1, 2), -EBUSY);
	fake.geo.copy_engine[0] = 1;
	EQ(CALL(dma_eng_set_state, client, 1, 0), -EPERM);
	EQ(CALL(dma_eng_set_state, client, 1, 2), 0);
	EQ(fake.nr_ops, 4);
	/* What does not check goes on after an abort when its core was reset, not before. */
	fake.nd.isolation = NEURON_ISOLATION_CHECKED;
	EQ(CALL(dma_eng_set_state, client, 1, 2), -EPERM);
	neuron_engine_hold(&fake.nd, 1);
	EQ(CALL(dma_eng_set_state, client, 1, 2), 0);
	fake_set_reg(1, NEURON_DMA_COMMON, NEURON_DMA_ENG_ABORT);
	EQ(CALL(dma_eng_set_state, client, 1, 2), -EPERM);
	fake.core[0].state = NEURON_CORE_RESETTING;
	EQ(CALL(dma_eng_set_state, client, 1, 2), -EBUSY);
	fake.core[0].state = NEURON_CORE_READY;
	EQ(fake.nr_ops, 5);
	fake.nd.isolation = NEURON_ISOLATION_DEVICE;

	fake_set_reg(4, NEURON_DMA_COMMON, 3);
	EQ(CALL(dma_eng_get_state, client, 4, &state), 0);
	EQ(state.revision_id, 4);
	EQ(state.max_queues, 16);
	EQ(state.num_queues, 16);
	EQ(state.tx_state, 3);
	EQ(state.rx_state, 3);
	EQ(CALL(dma_eng_get_state, client, 5, &state), -EINVAL);
	fake.fail_read = 1;
	EQ(CALL(dma_eng_get_state, client, 4, &state), -EIO);
	fake.fail_user = 1;
	EQ(CALL(dma_eng_get_state, client, 4, &state), -EFAULT);
}

static void dma_queue_init_batches(struct kunit *test)
{
	struct neuron_ioctl_dma_queue_init_batch *batch = vzalloc(sizeof(*batch));
	struct neuron_call call = {
		.nd = &fake.nd, .client = &fake.client, .uarg = (void __user *)batch,
	};

	KUNIT_ASSERT_NOT_NULL(test, batch);
	EQ(neuron_do_dma_queue_init_batch(&call), 0);
	EQ(fake.nr_ops, 0);
	batch->count = 3;
	batch->entries[0] = INIT(0, 0, 1, 32, 2, 32);
	batch->entries[1] = INIT(0, 16, 1, 32, 2, 32);
	batch->entries[2] = INIT(0, 2, 1, 32, 2, 32);
	EQ(neuron_do_dma_queue_init_batch(&call), -EINVAL);
	OK(fake.engine[0].queue[0] && !fake.engine[0].queue[2]);
	/* It is not tried again, because a queue may run by now. */
	OK(call.begun);
	call.begun = false;
	batch->entries[0].qid = 16;
	EQ(neuron_do_dma_queue_init_batch(&call), -EINVAL);
	OK(!call.begun);
	batch->entries[0].qid = 0;
	fake.fail_user = 1;
	EQ(neuron_do_dma_queue_init_batch(&call), -EFAULT);
	fake.fail_user = 3;
	EQ(neuron_do_dma_queue_init_batch(&call), -EFAULT);
	batch->entries[1].qid = 1;
	EQ(neuron_do_dma_queue_init_batch(&call), 0);
	OK(fake.engine[0].queue[1] && fake.engine[0].queue[2] && !fake.engine[0].queue[3]);
	batch->count = 256;
	EQ(neuron_do_dma_queue_init_batch(&call), -E2BIG);
	batch->count = 255;
	EQ(neuron_do_dma_queue_init_batch(&call), 0);
	vfree(batch);
}

static void dma_start_is_for_the_owner(struct kunit *test)
{
	fake.geo.copy_engine[0] = 1;
	EQ(queue_init(0, 3, 1, 64, 2, 32), 0);
	EQ(CALL(dma_queue_copy_start, client, 5, 0, 1, 1), -EINVAL);
	EQ(CALL(dma_queue_copy_start, client, 0, 16, 1, 1), -EINVAL);
	EQ(CALL(dma_queue_copy_start, client, 4, 0, 1, 1), -EPERM);
	EQ(CALL(dma_queue_copy_start, client, 1, 0, 1, 1), -EPERM);
	EQ(CALL(dma_queue_copy_start, client, 1, 1, 1, 1), -ENOENT);
	EQ(CALL(dma_queue_copy_start, client, 0, 4, 1, 1), -ENOENT);
	EQ(CALL(dma_queue_copy_start, other, 0, 3, 1, 1), -EBUSY);
	EQ(CALL(dma_queue_copy_start, client, 0, 3, 1, 0), -EINVAL);
	EQ(CALL(dma_queue_copy_start, client, 0, 3, 1, 1), 0);
}

/* Room for descriptors, by length, head, tail and count; 16 slots stay empty. */
static void dma_start_needs_room(struct kunit *test)
{
	static const struct {
		u32 head, tail, count;
		int err;
	} rows[] = {
		{ 0, 0, 48, 0 }, { 0, 0, 49, -EINVAL }, { 0, 1, 47, 0 }, { 0, 1, 48, -ENOSPC },
		{ 10, 10, 48, 0 }, { 10, 9, 1, -ENOSPC }, { 60, 2, 42, 0 }, { 60, 2, 43, -ENOSPC },
		{ 0xc0000001, 0x80000003, 46, 0 }, { 0xc0000001, 0x80000003, 47, -ENOSPC },
	};
	u32 i, dir;

	EQ(queue_init(0, 3, 1, 64, 2, 64), 0);
	for (dir = 0; dir < 2; dir++) {
		u32 base = dir ? NEURON_DMA_RX(3) : NEURON_DMA_TX(3);

		for (i = 0; i < ARRAY_SIZE(rows); i++) {
			fake.nr_regs = 0;
			fake.nr_ops = 0;
			fake_set_reg(0, base + NEURON_DMA_Q_HEAD, rows[i].head);
			fake_set_reg(0, base + NEURON_DMA_Q_TAIL, rows[i].tail);
			EQ(CALL(dma_queue_copy_start, client, 0, 3, dir ? 1 : rows[i].count,
				dir ? rows[i].count : 1), rows[i].err);
			EQ(fake.nr_ops, rows[i].err ? 0 : 2);
		}
	}
	for (i = 1; i <= 4; i++) {
		fake.fail_read = i;
		EQ(CALL(dma_queue_copy_start, client, 0, 3, 1, 1), -EIO);
	}
	EQ(queue_init(0, 3, 0, 0, 2, 64), 0);
	EQ(CALL(dma_queue_copy_start, client, 0, 3, 1, 1), -EINVAL);
	EQ(CALL(dma_queue_copy_start, client, 0, 3, 0, 1), 0);
}

/* RX first; a queue whose rings are not in step any more is gone. */
static void dma_start_rings_bells(struct kunit *test)
{
	EQ(queue_init(2, 3, 1, 64, 2, 64), 0);
	fake.nr_ops = 0;
	EQ(CALL(dma_queue_copy_start, client, 2, 3, 5, 7), 0);
	EXPECT_OP(0, 'w', 2, NEURON_DMA_RX(3) + NEURON_DMA_Q_TAIL_INC, 7);
	EXPECT_OP(1, 'w', 2, NEURON_DMA_TX(3) + NEURON_DMA_Q_TAIL_INC, 5);
	EQ(fake.traced, 's');
	EQ(fake.trace[0], 1);
	EQ(fake.trace[3], 5);
	EQ(fake.trace[4], 7);
	EQ(CALL(dma_queue_copy_start, client, 2, 3, 0, 7), 0);
	EQ(fake.nr_ops, 3);
	fake.fail_write = 1;
	EQ(CALL(dma_queue_copy_start, client, 2, 3, 5, 7), -EIO);
	OK(fake.engine[2].queue[3]);
	EQ(fake.nr_ops, 4);
	fake.fail_write = 2;
	EQ(CALL(dma_queue_copy_start, client, 2, 3, 5, 7), -EIO);
	EXPECT_OP(6, 's', 2, 3);
	OK(!fake.engine[2].queue[3]);
}

static void dma_ack_counts(struct kunit *test)
{
	struct neuron_queue *queue;

	EQ(queue_init(2, 3, 1, 64, 2, 32), 0);
	queue = fake.engine[2].queue[3];
	EQ(CALL(dma_ack_completed, client, 2, 4, 1), -ENOENT);
	EQ(CALL(dma_ack_completed, client, 2, 3, 33), -EINVAL);
	EQ(queue->completed[0], 0);
	EQ(fake.nr_traces, 0);
	EQ(CALL(dma_ack_completed, client, 2, 3, 32), 0);
	EQ(queue->completed[0], 32);
	EQ(queue->completed[1], 0);
	EQ(CALL(dma_ack_completed, client, 2, 3, 31), 0);
	EQ(CALL(dma_ack_completed, client, 2, 3, 2), 0);
	EQ(queue->completed[0], 1);
	EQ(queue->completed[1], 1);
	EQ(fake.nr_traces, 3);
	EQ(fake.traced, 'a');
	EQ(fake.trace[0], 1);
	EQ(fake.trace[1], 2);
	EQ(fake.trace[2], 3);
	EQ(fake.trace[3], 2);
	EQ(fake.trace[4], 2);
	EQ(queue_init(2, 3, 0, 0, 2, 32), 0);
	EQ(CALL(dma_ack_completed, client, 2, 3, 4), 0);
	EQ(fake.trace[3], 0);
	EQ(fake.trace[4], 4);
	EQ(fake.engine[2].queue[3]->completed[0], 0);
	EQ(queue_init(2, 3, 1, 32, 0, 0), 0);
	EQ(CALL(dma_ack_completed, client, 2, 3, 4), 0);
	EQ(fake.trace[3], 4);
	EQ(fake.trace[4], 0);
}

static void dma_queue_state_is_that_of_the_registers(struct kunit *test)
{
	static const u32 offs[] = {
		NEURON_DMA_Q_STATUS, NEURON_DMA_Q_BASE_LO, NEURON_DMA_Q_BASE_HI,
		NEURON_DMA_Q_LENGTH, NEURON_DMA_Q_HEAD, NEURON_DMA_Q_TAIL,
		NEURON_DMA_Q_COMPL_LO, NEURON_DMA_Q_COMPL_HI, NEURON_DMA_Q_COMPL_HEAD,
	};
	struct neuron_dma_queue_state s[2] = {};
	u32 i, dir;

	EQ(queue_init(2, 3, 1, 64, 2, 32), 0);
	for (i = 0; i < ARRAY_SIZE(offs); i++) {
		fake_set_reg(2, NEURON_DMA_TX(3) + offs[i], 0xc1000000 + i);
		fake_set_reg(2, NEURON_DMA_RX(3) + offs[i], 0xc1000010 + i);
	}
	EQ(CALL(dma_queue_get_state, client, 2, 3, &s[0], &s[1]), 0);
	for (dir = 0; dir < 2; dir++) {
		u32 k = 16 * dir, v = 0xc1000000 + k;

		EQ(s[dir].hw_status, v);
		EQ(s[dir].sw_status, v);
		EQ(s[dir].base_addr, (u64)(v + 2) << 32 | (v + 1));
		EQ(s[dir].length, k + 3);
		EQ(s[dir].head_pointer, k + 4);
		EQ(s[dir].tail_pointer, k + 5);
		EQ(s[dir].completion_base_addr, (u64)(v + 7) << 32 | (v + 6));
		EQ(s[dir].completion_head, k + 8);
	}
	EQ(CALL(dma_queue_get_state, other, 2, 3, &s[0], &s[1]), -EBUSY);
	for (i = 1; i <= 18; i++) {
		fake.fail_read = i;
		EQ(CALL(dma_queue_get_state, client, 2, 3, &s[0], &s[1]), -EIO);
	}
	for (i = 1; i <= 2; i++) {
		fake.fail_user = i;
		EQ(CALL(dma_queue_get_state, client, 2, 3, &s[0], &s[1]), -EFAULT);
	}
}

/* ---- descriptors ------------------------------------------------------------------- */

static void fill(u8 *p, size_t n, u32 seed)
{
	while (n--)
		*p++ = (seed = seed * 1103515245 + 12345) >> 16;
}

/* Into host memory at once, into device memory in batches of 64 KiB. */
static void dma_copies_descriptors(struct kunit *test)
{
	u32 n = (160 << 10) / 16, size = n * 16;
	u8 *buf = vzalloc(size), *to;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	fill(buf, size, 1);
	for (i = 2; i <= 5; i += 3) {
		to = fake_bytes(fake.handle[i].chunk.addr, CHUNK_SIZE);
		EQ(CALL(dma_copy_descriptors, client, i, buf, n, 48, 1), 0);
		OK(!memcmp(to + 48, buf, size) && !to[47] && !to[48 + size]);
		EQ(CALL(dma_copy_descriptors64, client, i, buf, 1, CHUNK_SIZE - 16, 0), 0);
		OK(!memcmp(to + CHUNK_SIZE - 16, buf, 16));
		EQ(CALL(dma_copy_descriptors64, client, i, buf, 2, CHUNK_SIZE - 16, 0), -EINVAL);
		EQ(CALL(dma_copy_descriptors, client, i, buf, 1, 8, 0), -EINVAL);
		EQ(CALL(dma_copy_descriptors, client, i, buf, 1, 0, 2), -EINVAL);
		EQ(CALL(dma_copy_descriptors, client, i, buf, 0, 0, 1), -EINVAL);
		fake.fail_user = 1;
		EQ(CALL(dma_copy_descriptors, client, i, buf, n, 0, 1), -EFAULT);
	}
	EQ(fake.nr_copies, 4);
	EQ(fake.copy[0].len, 65536);
	EQ(CALL(dma_copy_descriptors, client, 9, buf, 1, 0, 1), -ENOENT);
	EQ(CALL(dma_copy_descriptors, other, 2, buf, 1, 0, 1), -ENOENT);
	fake.fail_user = 2;
	EQ(CALL(dma_copy_descriptors, client, 2, buf, n, 0, 1), -EFAULT);
	fake.fail_alloc = 1;
	EQ(CALL(dma_copy_descriptors, client, 2, buf, n, 0, 1), -ENOMEM);
	fake.mode = FAKE_ABORTS;
	EQ(CALL(dma_copy_descriptors, client, 2, buf, n, 0, 1), -EIO);
	EQ(fake.allocs, 2);
	vfree(buf);
}

static void dma_copies_descriptors_out(struct kunit *test)
{
	u8 buf[64];
	u32 i;

	for (i = 2; i <= 5; i += 3) {
		u8 *from = fake_bytes(fake.handle[i].chunk.addr, CHUNK_SIZE);

		fill(from, 2048, i);
		EQ(queue_init(0, 3, i, 32, 0, 0), 0);
		memset(buf, 0, sizeof(buf));
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 0, 30, 2, buf), 0);
		OK(!memcmp(buf, from + 480, 32) && !buf[32]);
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 0, 30, 3, buf), -EINVAL);
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 0, 32, 1, buf), -EINVAL);
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 0, 33, U32_MAX, buf), -EINVAL);
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 0, 0, 0, buf), -EINVAL);
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 1, 0, 1, buf), -EINVAL);
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 2, 0, 1, buf), -EINVAL);
		EQ(CALL(dma_descriptor_copyout, client, 0, 4, 0, 0, 1, buf), -ENOENT);
		EQ(CALL(dma_descriptor_copyout, other, 0, 3, 0, 0, 1, buf), -EBUSY);
		fake.fail_user = 1;
		EQ(CALL(dma_descriptor_copyout, client, 0, 3, 0, 0, 1, buf), -EFAULT);
		EQ(fake.handle[i].chunk.users[NEURON_USER_READER - 1], 0);
	}
}

/* ---- rings that the driver checks -------------------------------------------------- */

#define TX		NEURON_DMA_QUEUE_TYPE_TX
#define RX		NEURON_DMA_QUEUE_TYPE_RX
#define FIRST		NEURON_DESC_FIRST
#define LAST		NEURON_DESC_LAST
#define WHOLE		(FIRST | LAST)
#define COPY		NEURON_DESC_META_COPY
#define AT(h)		(MEM_ADDR + (h) * CHUNK_SIZE)
#define USERS(h)	(fake.handle[h].chunk.users[NEURON_USER_RING - 1])

static struct neuron_desc ring_desc(u32 ctrl, u32 meta, u64 addr)
{
	return (struct neuron_desc){ cpu_to_le32(ctrl), cpu_to_le32(meta), cpu_to_le64(addr) };
}

/* A device that does not check; one copy ring is enough. */
static void ring_init(void)
{
	u32 i;

	for (i = 1; i <= NR_HANDLES; i++)
		fake.handle[i].chunk.core = 0;
	fake.nd.isolation = NEURON_ISOLATION_CHECKED;
	fake.geo.sbuf_size = 24 << 20;
	fake.geo.nr_events = 256;
	fake.geo.sem_block = 0x400;
}

static int ring_write(u32 handle, int dir, u32 slot, const struct neuron_desc *d, u32 n)
{
	return neuron_ring_write(&fake.client, handle, (const void __user *)d, n,
				 (u64)slot * NEURON_DESC_SIZE, dir);
}

static int ring_put(u32 handle, int dir, u32 slot, u32 ctrl, u32 meta, u64 addr)
{
	struct neuron_desc d = ring_desc(ctrl, meta, addr);

	return ring_write(handle, dir, slot, &d, 1);
}

static int ring_make(u32 handle, int dir)
{
	return neuron_ring_make(&fake.client, &fake.handle[handle].chunk, dir);
}

static struct neuron_ring *ring_at(u32 handle)
{
	return neuron_ring_of(&fake.handle[handle].chunk);
}

/* Which descriptors pass, but for what they name. */
static void ring_kinds(struct kunit *test)
{
	static const struct {
		int dir;
		bool isa;
		u32 ctrl, meta;
		int err;
	} rows[] = {
		{ TX, false, 4 | WHOLE, COPY, 0 },
		{ TX, false, 4 | WHOLE | NEURON_DESC_INT | NEURON_DESC_BARRIER, COPY, 0 },
		{ TX, false, 4 | WHOLE | NEURON_DESC_RING_ID_MASK, COPY, 0 },
		{ TX, false, 4 | WHOLE, COPY | NEURON_DESC_META_WRITE_BARRIER, 0 },
		{ TX, false, 4 | WHOLE, 0, -EINVAL },
		{ TX, false, 4 | WHOLE, COPY | 4, -EINVAL },
		{ TX, false, 4 | WHOLE, COPY | BIT(31), -EINVAL },
		{ TX, false, 4 | WHOLE, COPY & ~3u, -EINVAL },
		{ TX, false, 4 | WHOLE | BIT(16), COPY, -EINVAL },
		{ TX, false, 4 | WHOLE | BIT(23), COPY, -EINVAL },
		{ TX, false, 4 | WHOLE | BIT(29), COPY, -EINVAL },
		{ TX, false, 4 | WHOLE | BIT(31), COPY, -EINVAL },
		{ TX, false, 4 | WHOLE, NEURON_ISA_DMA_COMPUTE, -EINVAL },
		{ TX, true, 4 | WHOLE, NEURON_ISA_DMA_COMPUTE | 0x123, 0 },
		{ TX, true, 4 | WHOLE, COPY, 0 },
		{ TX, true, 4 | WHOLE, COPY | 4, -EINVAL },
		{ RX, false, 4, 0, 0 },
		{ RX, false, 4 | WHOLE, 0, 0 },
		{ RX, false, 4, 1, -EINVAL },
		{ RX, false, 4 | BIT(31), 0, -EINVAL },
		{ RX, true, 4, 0x3f800000, 0 },
	};
	u32 i;

	ring_init();
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fake.geo.isa_version = rows[i].isa;
		KUNIT_EXPECT_EQ_MSG(test, ring_put(rows[i].dir == TX ? 1 : 2, rows[i].dir, 0,
						   rows[i].ctrl, rows[i].meta, AT(3)),
				    rows[i].err, "row %u", i);
	}
}

/* What they may name, to the byte. */
static void ring_targets(struct kunit *test)
{
	const u64 end = AT(3) + CHUNK_SIZE, core = CORE_ADDR(0), other = CORE_ADDR(1);
	const struct {
		u64 addr;
		u32 len;
		int err;
	} rows[] = {
		{ AT(3), 1, 0 }, { AT(3), 0, 0 }, { end - 1, 1, 0 }, { end - 0x10000, 0, 0 },
		/* Handle 4 is another process's. */
		{ end - 1, 2, -EACCES }, { end - 0xffff, 0, -EACCES }, { AT(4), 4, -EACCES },
		{ AT(5), 4, 0 }, { AT(7), 4, -EACCES }, { 0, 4, -EACCES },
		{ U64_MAX, 2, -EACCES }, { U64_MAX, 1, -EACCES }, { U64_MAX - 3, 4, -EACCES },
		{ U64_MAX - 0xfffe, 0, -EACCES },
		/* Rings: itself, and the other one. */
		{ AT(1), 4, -EACCES }, { AT(1) + CHUNK_SIZE - 4, 4, -EACCES },
		{ AT(2), 4, -EACCES },
		/* The window of its core. */
		{ core, 4, 0 }, { core + (24 << 20) - 4, 4, 0 },
		{ core + (24 << 20) - 4, 5, -EACCES }, { core + (24 << 20), 4, -EACCES },
		{ core + 0x2700000 - 4, 4, -EACCES }, { core + 0x2700000, 4, 0 },
		{ core + 0x27003fc, 4, 0 }, { core + 0x27003fc, 8, -EACCES },
		{ core + 0x2700400, 4, -EACCES }, { core + 0x2701000, 4, 0 },
		{ core + 0x2701ffc, 4, 0 }, { core + 0x2702000, 4, -EACCES },
		{ core + 0x2800000, 64, -EACCES }, { core - 4, 4, -EACCES },
		{ core - 2, 4, -EACCES }, { core + (64 << 20) - 2, 4, -EACCES },
		/* A core that somebody else owns. */
		{ other, 4, -EACCES }, { other + 0x2701000, 4, -EACCES },
	};
	u32 i;

	ring_init();
	fake.handle[4].chunk.client = &fake.other;
	fake.core[0].owner = &fake.client;
	fake.core[1].owner = &fake.other;
	EQ(ring_make(1, TX), 0);
	EQ(ring_make(2, RX), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ_MSG(test, ring_put(2, RX, i, rows[i].len, 0, rows[i].addr),
				    rows[i].err, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, !ring_at(2)->slot[i], !!rows[i].err, "row %u", i);
	}
	fake.geo.isa_version = 1;
	EQ(ring_put(2, RX, 0, 64, 0, core + 0x2800000), 0);
	EQ(ring_put(2, RX, 0, 64, 0, core + 0x2850000 - 64), 0);
	EQ(ring_put(2, RX, 0, 64, 0, core + 0x2850000), -EACCES);
	fake.core[0].owner = NULL;
	fake.core[1].owner = NULL;
}

/* Where they may be written. */
static void ring_places(struct kunit *test)
{
	const u32 n = CHUNK_SIZE / NEURON_DESC_SIZE;
	struct neuron_desc d[2] = { ring_desc(4, 0, AT(3)), ring_desc(4, 0, AT(3)) };

	ring_init();
	EQ(ring_write(2, RX, n - 2, d, 2), 0);
	EQ(ring_write(2, RX, n - 1, d, 2), -EINVAL);
	EQ(ring_write(2, RX, n, d, 1), -EINVAL);
	EQ(ring_write(2, RX, 0, d, 0), -EINVAL);
	EQ(ring_write(9, RX, 0, d, 1), -ENOENT);
	EQ(neuron_ring_write(&fake.client, 2, (const void __user *)d, U32_MAX, 0, RX), -EINVAL);
	EQ(neuron_ring_write(&fake.client, 2, (const void __user *)d, 1, U64_MAX - 15, RX),
	   -EINVAL);
	EQ(USERS(3), 2);
}

static void ring_side(struct kunit *test)
{
	ring_init();
	EQ(ring_put(1, TX, 0, 4 | WHOLE, COPY, AT(3)), 0);
	EQ(ring_put(1, RX, 1, 4, 0, AT(3)), -EINVAL);
	EQ(queue_init(0, 3, 0, 0, 1, 32), -EINVAL);
	EQ(ring_make(2, RX), 0);
	EQ(queue_init(0, 3, 2, 32, 0, 0), -EINVAL);
	EQ(queue_init(0, 3, 1, 32, 1, 32), -EINVAL);
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
}

/* What does not become a ring keeps its contents. */
static void ring_not_made(struct kunit *test)
{
	u8 *bytes = fake_bytes(AT(1), CHUNK_SIZE);

	ring_init();
	bytes[0] = 0xee;
	EQ(queue_init(0, 3, 1, CHUNK_SIZE / NEURON_DESC_SIZE + 16, 0, 0), -EINVAL);
	EQ(neuron_ring_make(&fake.other, &fake.handle[1].chunk, TX), -EBUSY);
	EQ(bytes[0], 0xee);
	OK(!ring_at(1));
	/* It has become longer between. */
	EQ(ring_make(1, TX), 0);
	EQ(bytes[0], 0);
	fake.handle[1].chunk.size += 16 * NEURON_DESC_SIZE;
	EQ(queue_init(0, 3, 1, CHUNK_SIZE / NEURON_DESC_SIZE + 16, 0, 0), -EINVAL);
	EQ(ring_at(1)->bound, 0);
	EQ(queue_init(0, 3, 1, CHUNK_SIZE / NEURON_DESC_SIZE, 0, 0), 0);
}

/* A QUEUE_INIT that is refused for what is not its first ring leaves that one alone, too. */
static void ring_kept(struct kunit *test)
{
	u8 *tx = fake_bytes(AT(1), CHUNK_SIZE), *rx = fake_bytes(AT(2), CHUNK_SIZE);

	ring_init();
	tx[0] = 0xee;
	rx[0] = 0xdd;
	EQ(ring_make(3, TX), 0);
	EQ(ring_make(4, RX), 0);
	EQ(queue_init(0, 3, 1, 32, 2, 33), -EINVAL);
	EQ(queue_init(0, 3, 1, 32, 2, CHUNK_SIZE / NEURON_DESC_SIZE + 16), -EINVAL);
	EQ(queue_init(0, 3, 1, 32, 9, 32), -ENOENT);
	EQ(queue_init(0, 3, 1, 32, 3, 32), -EINVAL);
	EQ(queue_init(0, 3, 1, 32, 1, 32), -EINVAL);
	fake.handle[2].chunk.users[NEURON_USER_MAPPING - 1]++;
	EQ(queue_init(0, 3, 1, 32, 2, 32), -EBUSY);
	fake.handle[2].chunk.users[NEURON_USER_MAPPING - 1]--;
	OK(!fake.core[0].owner);
	fake.core[0].owner = &fake.other;
	EQ(queue_init(0, 3, 1, 32, 2, 32), -EBUSY);
	fake.core[0].owner = &fake.client;
	/* A queue that goes on, and a core that is being reset. */
	fake.engine[0].stuck = BIT(3);
	EQ(queue_init(0, 3, 1, 32, 2, 32), -EIO);
	fake.engine[0].stuck = 0;
	fake.core[0].state = NEURON_CORE_RESETTING;
	EQ(queue_init(0, 3, 1, 32, 2, 32), -EBUSY);
	fake.core[0].state = NEURON_CORE_READY;
	/* The other ring is that of a queue. */
	EQ(queue_init(0, 4, 3, 32, 4, 32), 0);
	EQ(queue_init(0, 3, 1, 32, 4, 32), -EBUSY);
	EQ(queue_init(0, 3, 3, 32, 2, 32), -EBUSY);
	OK(!ring_at(1) && !ring_at(2) && tx[0] == 0xee && rx[0] == 0xdd);
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	OK(ring_at(1) && ring_at(2) && !tx[0] && !rx[0]);
	EQ(USERS(1), 1);
}

/* Memory that is mapped for writing; and what was in it before is gone. */
static void ring_busy(struct kunit *test)
{
	u8 *bytes = fake_bytes(AT(1), CHUNK_SIZE);

	ring_init();
	memset(bytes, 0xee, CHUNK_SIZE);
	fake.handle[1].chunk.users[NEURON_USER_MAPPING - 1]++;
	EQ(ring_put(1, TX, 0, 4 | WHOLE, COPY, AT(3)), -EBUSY);
	EQ(queue_init(0, 3, 1, 32, 0, 0), -EBUSY);
	EQ(bytes[0], 0xee);
	fake.handle[1].chunk.users[NEURON_USER_MAPPING - 1]--;
	EQ(fake.nr_refused, 2);
	EQ(queue_init(0, 3, 1, 32, 0, 0), 0);
	OK(!memchr_inv(bytes, 0, CHUNK_SIZE));
	EQ(ring_put(1, TX, 7, 4 | WHOLE, COPY, AT(3)), 0);
	EQ(queue_init(0, 3, 1, 32, 0, 0), 0);
	EQ(((struct neuron_desc *)bytes)[7].addr, AT(3));
}

/* A slot is a user of what it names, until it is written again or freed. */
static void ring_pins(struct kunit *test)
{
	struct neuron_desc d[3] = { ring_desc(4, 0, AT(3)), ring_desc(4, 0, AT(4)),
				    ring_desc(4, 0, AT(3)) };

	ring_init();
	EQ(ring_write(2, RX, 0, d, 3), 0);
	EQ(USERS(3), 2);
	EQ(USERS(4), 1);
	EQ(ring_put(2, RX, 0, 4, 0, AT(4)), 0);
	EQ(USERS(3), 1);
	EQ(USERS(4), 2);
	EQ(ring_put(2, RX, 0, 0, 0, 0), 0);
	EQ(USERS(4), 1);
	fake.core[0].owner = &fake.client;
	EQ(ring_put(2, RX, 1, 4, 0, CORE_ADDR(0)), 0);
	fake.core[0].owner = NULL;
	EQ(USERS(4), 0);
	fake_ring_free(2);
	EQ(USERS(3), 0);
	EQ(kref_read(&fake.handle[3].chunk.ref), 1);
	fake.handle[3].chunk.users[NEURON_USER_RING - 1] = NEURON_RING_PINS_MAX;
	EQ(ring_put(2, RX, 0, 4, 0, AT(3)), -ENOSPC);
	EQ(USERS(3), NEURON_RING_PINS_MAX);
	fake.handle[3].chunk.users[NEURON_USER_RING - 1] = 0;
}

/* A device may use a descriptor that it has fetched after its slot was written again. */
static void ring_keeps(struct kunit *test)
{
	struct neuron_pin pin;
	u32 i;

	ring_init();
	fake.client.space.client = &fake.client;
	EQ(ring_put(2, RX, 0, 4, 0, AT(3)), 0);
	EQ(queue_init(0, 3, 0, 0, 2, 32), 0);
	for (i = 0; i < 4; i++)
		EQ(ring_put(2, RX, 0, 4, 0, AT(3 + (i & 1))), 0);
	EQ(ring_put(2, RX, 0, 0, 0, 0), 0);
	EQ(USERS(3), 1);
	EQ(USERS(4), 1);
	EQ(neuron_ring_pin(&fake.client.space, AT(3), 4, true, &pin), 0);
	neuron_chunk_unuse(pin.chunk, pin.counted);
	/* The queue has stopped before it was set up again. */
	EQ(queue_init(0, 3, 0, 0, 2, 32), 0);
	EQ(USERS(3), 0);
	EQ(ring_put(2, RX, 0, 4, 0, AT(3)), 0);
	EQ(ring_put(2, RX, 0, 0, 0, 0), 0);
	EQ(USERS(3), 1);
	fake.fail_stop = 1;
	EQ(queue_init(0, 3, 0, 0, 0, 0), -EIO);
	EQ(USERS(3), 1);
	reset_core(0);
	EQ(USERS(3), 0);
	EQ(USERS(4), 0);
	EQ(neuron_ring_pin(&fake.client.space, AT(3), 4, true, &pin), -EACCES);
}

/* One that is refused keeps those beside it out. */
static void ring_refused_as_a_whole(struct kunit *test)
{
	struct neuron_desc d[3] = { ring_desc(4, 0, AT(3)), ring_desc(4, 0, AT(3)),
				    ring_desc(4, 0, 0) };
	struct neuron_desc *bytes = (struct neuron_desc *)fake_bytes(AT(2), CHUNK_SIZE);

	ring_init();
	/* Memory keeps its contents. */
	bytes[0].addr = 7;
	EQ(ring_write(2, RX, 0, d, 3), -EACCES);
	fake.fail_user = 1;
	EQ(ring_write(2, RX, 0, d, 3), -EFAULT);
	d[2].addr = cpu_to_le64(AT(2));
	EQ(ring_write(2, RX, 0, d, 3), -EACCES);
	EQ(ring_write(2, RX, CHUNK_SIZE / NEURON_DESC_SIZE, d, 2), -EINVAL);
	EQ(USERS(2), 0);
	EQ(USERS(3), 0);
	OK(!ring_at(2) && bytes[0].addr == 7);
	EQ(fake.nr_refused, 2);
	/* And so does a ring. */
	EQ(ring_make(2, RX), 0);
	EQ(ring_write(2, RX, 0, d, 3), -EACCES);
	EQ(USERS(3), 0);
	OK(!bytes[0].addr && !ring_at(2)->slot[0]);
	EQ(fake.nr_refused, 3);
	fake.fail_user = 1;
	EQ(ring_write(2, RX, 0, d, 2), -EFAULT);
	EQ(USERS(3), 0);
	EQ(ring_write(2, RX, 0, d, 2), 0);
	EQ(USERS(3), 2);
}

/* A core that the process comes to own later. */
static void ring_staged(struct kunit *test)
{
	ring_init();
	EQ(ring_put(2, RX, 0, 4, 0, CORE_ADDR(0)), 0);
	EQ(ring_put(2, RX, 1, 4, 0, CORE_ADDR(1)), 0);
	EQ(ring_at(2)->staged, 2);
	EQ(ring_make(1, TX), 0);
	fake.nr_ops = 0;
	EQ(queue_init(0, 3, 1, 32, 2, 32), -EACCES);
	EQ(ring_at(2)->staged, 2);
	EQ(ring_at(2)->bound, 0);
	EQ(ring_at(1)->bound, 0);
	EQ(fake.nr_ops, 0);
	fake.core[1].owner = &fake.other;
	EQ(queue_init(0, 3, 1, 32, 2, 32), -EACCES);
	fake.core[1].owner = &fake.client;
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	EQ(ring_at(2)->staged, 0);
	EQ(ring_at(2)->bound, 1);
	EQ(fake.core[0].reaches, 3);
	EQ(fake.core[1].reaches, 0);
	EQ(ring_put(2, RX, 1, 0, 0, 0), 0);
	EQ(ring_at(2)->staged, 0);
}

/* Nothing waits in a ring that hardware knows of, not even one of a held queue. */
static void ring_bound(struct kunit *test)
{
	ring_init();
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	EQ(ring_put(2, RX, 0, 4, 0, CORE_ADDR(1)), -EACCES);
	EQ(ring_put(2, RX, 0, 4, 0, CORE_ADDR(0)), 0);
	EQ(fake.core[0].reaches, 1);
	EQ(queue_init(0, 4, 0, 0, 2, 32), -EBUSY);
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	EQ(ring_at(2)->bound, 1);
	neuron_engine_hold(&fake.nd, 0);
	EQ(ring_at(2)->bound, 1);
	EQ(ring_put(2, RX, 0, 4, 0, AT(3)), -EBUSY);
	EQ(queue_init(0, 3, 1, 32, 2, 32), -EBUSY);
	fake_reset_ends(0);
	EQ(ring_at(2)->bound, 0);
	EQ(ring_put(2, RX, 0, 4, 0, CORE_ADDR(1)), 0);
	EQ(ring_at(2)->staged, 1);
}

static int ring_bell(u32 tx, u32 rx)
{
	return CALL(dma_queue_copy_start, client, 0, 3, tx, rx);
}

/* No doorbell over slots that are empty. */
static void ring_start(struct kunit *test)
{
	struct neuron_desc tx[3], rx[3];
	u32 i;

	ring_init();
	for (i = 0; i < 3; i++) {
		tx[i] = ring_desc(4 | WHOLE, COPY, AT(3));
		rx[i] = ring_desc(4, 0, AT(4));
	}
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	EQ(ring_bell(1, 1), -EINVAL);
	EQ(ring_write(1, TX, 0, tx, 3), 0);
	EQ(ring_bell(1, 1), -EINVAL);
	EQ(ring_write(2, RX, 0, rx, 3), 0);
	EQ(ring_bell(4, 3), -EINVAL);
	EQ(ring_bell(3, 4), -EINVAL);
	EQ(ring_bell(3, 3), 0);
	/* It goes on where the queue is, and around the end. */
	EQ(neuron_ring_startable(ring_at(1), 32, 31, 1), -EINVAL);
	EQ(ring_put(1, TX, 31, 4 | WHOLE, COPY, AT(3)), 0);
	EQ(neuron_ring_startable(ring_at(1), 32, 31, 4), 0);
	EQ(neuron_ring_startable(ring_at(1), 32, 31, 5), -EINVAL);
	EQ(neuron_ring_startable(ring_at(1), 48, 31, 2), -EINVAL);
	EQ(ring_put(1, TX, 1, 0, 0, 0), 0);
	EQ(neuron_ring_startable(ring_at(1), 32, 31, 4), -EINVAL);
	EQ(neuron_ring_startable(ring_at(1), 32, 31, 2), 0);
}

/* Slots that hardware has still to fetch do not change. */
static void ring_in_flight(struct kunit *test)
{
	static const struct {
		u32 head, tail, status, slot, n;
		int err;
	} rows[] = {
		{ 0, 0, NEURON_QUEUE_ENABLED, 0, 2, 0 },
		{ 4, 8, NEURON_QUEUE_ENABLED, 2, 2, 0 },
		{ 4, 8, NEURON_QUEUE_ENABLED, 3, 2, -EBUSY },
		{ 4, 8, NEURON_QUEUE_ENABLED, 7, 2, -EBUSY },
		{ 4, 8, NEURON_QUEUE_ENABLED, 8, 2, 0 },
		{ 4, 8, NEURON_QUEUE_ABORTED, 4, 2, -EBUSY },
		{ 4 | 1u << 30, 8 | 1u << 30, NEURON_QUEUE_ENABLED, 4, 1, -EBUSY },
		{ 30, 2, NEURON_QUEUE_ENABLED, 0, 1, -EBUSY },
		{ 30, 2, NEURON_QUEUE_ENABLED, 1, 2, -EBUSY },
		{ 30, 2, NEURON_QUEUE_ENABLED, 2, 2, 0 },
		{ 30, 2, NEURON_QUEUE_ENABLED, 28, 2, 0 },
		{ 30, 2, NEURON_QUEUE_ENABLED, 29, 2, -EBUSY },
		{ 30, 2, NEURON_QUEUE_ENABLED, 31, 1, -EBUSY },
	};
	struct neuron_desc d[2] = { ring_desc(4, 0, AT(3)), ring_desc(4, 0, AT(3)) };
	u32 i;

	ring_init();
	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fake.nr_regs = 0;
		fake_set_reg(0, NEURON_DMA_RX(3) + NEURON_DMA_Q_HEAD, rows[i].head);
		fake_set_reg(0, NEURON_DMA_RX(3) + NEURON_DMA_Q_TAIL, rows[i].tail);
		fake_set_reg(0, NEURON_DMA_RX(3) + NEURON_DMA_Q_STATUS, rows[i].status);
		KUNIT_EXPECT_EQ_MSG(test, ring_write(2, RX, rows[i].slot, d, rows[i].n),
				    rows[i].err, "row %u", i);
	}
	EQ(ring_put(1, TX, 30, 4 | WHOLE, COPY, AT(3)), 0);
	fake.nr_regs = 0;
}

/* FIRST, up to 65 descriptors, LAST; also across two doorbells. */
static void ring_packets(struct kunit *test)
{
	static const struct {
		u32 slot, ctrl;
	} parts[] = {
		{ 0, FIRST }, { 1, 0 }, { 2, LAST }, { 3, WHOLE }, { 4, LAST }, { 5, FIRST },
	};
	u32 i;

	ring_init();
	EQ(ring_make(1, TX), 0);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		EQ(ring_put(1, TX, parts[i].slot, 4 | parts[i].ctrl, COPY, AT(3)), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 0, 4), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 0, 2), 0);
	/* What was started goes on, whatever is in slots before. */
	EQ(ring_at(1)->open, 2);
	EQ(ring_put(1, TX, 1, 4 | LAST, COPY, AT(3)), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 3, 1), -EINVAL);
	EQ(neuron_ring_startable(ring_at(1), 128, 2, 2), 0);
	EQ(ring_at(1)->open, 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 2, 1), -EINVAL);
	EQ(neuron_ring_startable(ring_at(1), 128, 3, 1), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 3, 2), -EINVAL);
	EQ(neuron_ring_startable(ring_at(1), 128, 4, 1), -EINVAL);
	EQ(ring_put(1, TX, 4, 4 | FIRST, COPY, AT(3)), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 4, 2), -EINVAL);
	for (i = 0; i < 66; i++)
		EQ(ring_put(1, TX, 10 + i, 4 | (i ? 0 : FIRST), COPY, AT(3)), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 10, 66), -EINVAL);
	EQ(neuron_ring_startable(ring_at(1), 128, 10, 65), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 75, 1), -EINVAL);
	/* A queue that is set up again begins anew. */
	EQ(queue_init(0, 3, 1, 128, 0, 0), 0);
	EQ(neuron_ring_startable(ring_at(1), 128, 75, 1), -EINVAL);
	EQ(neuron_ring_startable(ring_at(1), 128, 10, 1), 0);
}

/* What may be in a slot after a write that failed is held, whichever it is. */
static void ring_write_fails(struct kunit *test)
{
	ring_init();
	EQ(ring_put(2, RX, 0, 4, 0, AT(3)), 0);
	fake.mode = FAKE_ABORTS;
	EQ(ring_put(2, RX, 0, 4, 0, AT(4)), -EIO);
	fake.mode = FAKE_RUNS;
	EQ(USERS(3), 1);
	EQ(USERS(4), 1);
	EQ(ring_put(2, RX, 0, 0, 0, 0), 0);
	EQ(USERS(3), 1);
	EQ(USERS(4), 1);
	EQ(queue_init(0, 3, 0, 0, 2, 32), -EIO);
	EQ(neuron_ring_startable(ring_at(2), 32, 0, 1), -EIO);
	fake_ring_free(2);
	EQ(USERS(3), 0);
	/* One that did not begin changes nothing. */
	EQ(ring_put(2, RX, 0, 4, 0, AT(3)), 0);
	neuron_copy_exit(&fake.nd, 0);
	fake.fail_chunk = 1;
	EQ(ring_put(2, RX, 0, 4, 0, AT(4)), -ENOMEM);
	EQ(USERS(3), 1);
	EQ(USERS(4), 0);
	EQ(neuron_ring_startable(ring_at(2), 32, 0, 1), 0);
}

/* Another thread, while slots 1 and 2 are being written. */
static void ring_meanwhile(struct kunit *test)
{
	struct neuron_ring *ring = ring_at(2);

	OK(fake_held(&ring->write));
	OK(!fake_held(&ring->lock));
	neuron_ring_lock(ring);
	EQ(neuron_ring_startable(ring, 32, 0, 1), 0);
	EQ(neuron_ring_startable(ring, 32, 0, 2), -EBUSY);
	EQ(neuron_ring_startable(ring, 32, 1, 1), -EBUSY);
	EQ(neuron_ring_startable(ring, 32, 2, 1), -EBUSY);
	EQ(neuron_ring_startable(ring, 32, 3, 1), 0);
	neuron_ring_unlock(ring);
	/* A reset begins. */
	neuron_ring_hold(ring);
	/* What was there, and what comes, is held. */
	EQ(USERS(3), 4 + 1);
	EQ(USERS(4), 2);
}

/* A write takes as long as a copy: nothing that a core's lock is held for waits for it. */
static void ring_is_written(struct kunit *test)
{
	struct neuron_desc d[4] = { ring_desc(4, 0, AT(3)), ring_desc(4, 0, AT(3)),
				    ring_desc(4, 0, AT(3)), ring_desc(4, 0, AT(3)) };
	struct neuron_desc e[2] = { ring_desc(4, 0, AT(4)), ring_desc(4, 0, AT(4)) };

	ring_init();
	EQ(ring_write(2, RX, 0, d, 4), 0);
	EQ(queue_init(0, 3, 0, 0, 2, 32), 0);
	fake.meanwhile = ring_meanwhile;
	EQ(ring_write(2, RX, 1, e, 2), 0);
	fake.meanwhile = NULL;
	EQ(USERS(3), 2 + 1);
	EQ(USERS(4), 2);
	EQ(ring_write(2, RX, 1, e, 2), -EBUSY);
	EQ(neuron_ring_startable(ring_at(2), 32, 0, 4), 0);
	OK(!fake_held(&ring_at(2)->write));
}

/* Freed memory: slots are emptied while no queue has their ring. */
static void ring_forgets(struct kunit *test)
{
	struct neuron_desc *bytes = (struct neuron_desc *)fake_bytes(AT(2), CHUNK_SIZE);
	struct neuron_desc d[4] = { ring_desc(4, 0, AT(3)), ring_desc(4, 0, AT(3)),
				    ring_desc(4, 0, AT(4)), ring_desc(4, 0, AT(3)) };

	ring_init();
	EQ(ring_write(2, RX, 0, d, 4), 0);
	/* It has another handle. */
	neuron_ring_forget(&fake.client, &fake.handle[3].chunk);
	EQ(USERS(3), 3);
	EQ(queue_init(0, 3, 0, 0, 2, 32), 0);
	fake.freed = 3;
	neuron_ring_forget(&fake.client, &fake.handle[3].chunk);
	EQ(USERS(3), 3);
	EQ(queue_init(0, 3, 0, 0, 0, 0), 0);
	neuron_ring_forget(&fake.client, &fake.handle[3].chunk);
	EQ(USERS(3), 0);
	EQ(USERS(4), 1);
	OK(!bytes[0].addr && !bytes[1].addr && bytes[2].addr && !bytes[3].addr);
	EQ(neuron_ring_startable(ring_at(2), 32, 2, 1), 0);
	EQ(neuron_ring_startable(ring_at(2), 32, 3, 1), -EINVAL);
	/* If nobody knows whether they are empty, they keep it, and do not run. */
	fake.freed = 4;
	fake.mode = FAKE_ABORTS;
	neuron_ring_forget(&fake.client, &fake.handle[4].chunk);
	fake.mode = FAKE_RUNS;
	EQ(USERS(4), 1);
	EQ(neuron_ring_startable(ring_at(2), 32, 2, 1), -EIO);
	neuron_ring_forget(&fake.client, &fake.handle[4].chunk);
	EQ(USERS(4), 0);
}

/* What a model of a card may do after the process has no handle any more. */
static void ring_pin_resolves(struct kunit *test)
{
	struct neuron_space *space = &fake.client.space;
	struct neuron_pin pin;

	ring_init();
	fake.client.space.client = &fake.client;
	fake.core[0].owner = &fake.client;
	EQ(ring_put(2, RX, 0, 4, 0, AT(3)), 0);
	EQ(ring_put(2, RX, 1, 4, 0, CORE_ADDR(0)), 0);
	EQ(neuron_ring_pin(space, AT(4), 4, true, &pin), -EACCES);
	EQ(neuron_ring_pin(space, CORE_ADDR(1), 4, true, &pin), -EACCES);
	EQ(neuron_ring_pin(space, AT(2), 4, true, &pin), -EACCES);
	EQ(neuron_ring_pin(space, AT(3) + CHUNK_SIZE - 2, 4, true, &pin), -EACCES);
	EQ(neuron_ring_pin(space, AT(2), 16, false, &pin), 0);
	neuron_chunk_unuse(pin.chunk, pin.counted);
	EQ(neuron_ring_pin(space, AT(3) + 8, 4, true, &pin), 0);
	OK(pin.chunk == &fake.handle[3].chunk && pin.off == 8);
	neuron_chunk_unuse(pin.chunk, pin.counted);
	EQ(neuron_ring_pin(space, CORE_ADDR(0) + 4, 4, true, &pin), 0);
	OK(!pin.chunk && pin.index == 0 && pin.off == 4);
	fake.core[0].owner = NULL;
	EQ(neuron_ring_pin(space, CORE_ADDR(0), 4, true, &pin), 0);
	fake.core[0].owner = &fake.other;
	EQ(neuron_ring_pin(space, CORE_ADDR(0), 4, true, &pin), -EACCES);
	fake.core[0].owner = NULL;
}

/* ---- the driver's own copies ------------------------------------------------------- */

/* The first copy sets the ring up; a step that fails leaves nothing, the next one works. */
static void dma_copy_setup_fails(struct kunit *test)
{
	struct neuron_copy *copy = fake.core[1].copy;
	u32 i;

	fake.fail_start = 1;
	EQ(neuron_dma_copy(&fake.nd, 1, MEM_ADDR, MEM_ADDR + 4096, 64), -ENOMEM);
	EXPECT_OP(1, 's', COPY_ENGINE, 1);
	OK(!copy->ready && !copy->marker && !copy->ring[0] && !copy->ring[1]);
	for (i = 1; i <= 3; i++) {
		fake.fail_chunk = i;
		EQ(neuron_dma_copy(&fake.nd, 1, MEM_ADDR, MEM_ADDR + 4096, 64), -ENOMEM);
		OK(!copy->marker && !copy->ring[0] && !copy->ring[1]);
	}
	fake.kill_lock = true;
	EQ(neuron_dma_copy(&fake.nd, 1, MEM_ADDR, MEM_ADDR + 4096, 64), -EINTR);
	fake.kill_lock = false;
	fake.nr_ops = 0;
	EQ(neuron_dma_copy(&fake.nd, 1, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
	EXPECT_OP(0, 'b', COPY_ENGINE, 1);
	expect_rings(copy->ring[0]->addr, NEURON_COPY_RING, copy->ring[1]->addr, NEURON_COPY_RING);
	EXPECT_OP(1, 'w', COPY_ENGINE, NEURON_DMA_RX(1) + NEURON_DMA_Q_TAIL_INC, 2);
	EXPECT_OP(2, 'w', COPY_ENGINE, NEURON_DMA_TX(1) + NEURON_DMA_Q_TAIL_INC, 2);
	EXPECT_OP(3, 'p', COPY_ENGINE, 1, 2);
	EQ(fake.nr_ops, 4);
	EQ(copy->ring[0]->size, NEURON_COPY_RING * NEURON_DESC_SIZE);
	EQ(copy->marker->size, PAGE_SIZE);
	EQ(fake.request.core, 1);
	EQ(fake.request.category, NEURON_MEMALLOC_TYPE_NCDEV_HOST);
	fake.nr_ops = 0;
	neuron_copy_exit(&fake.nd, 1);
	EXPECT_OP(0, 's', COPY_ENGINE, 1);
	neuron_copy_exit(&fake.nd, 1);
	EQ(fake.nr_ops, 1);
}

/* Every byte once, in order, whatever the length, and around the end of the ring. */
static void dma_copy_covers(struct kunit *test)
{
	static const u64 lens[] = {
		1, 65535, 65536, 65537, 3ull << 20, 64ull << 20, (64ull << 20) + 5,
		1007ull << 16, (1007ull << 16) + 1, 2014ull << 16,
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		u64 pos = 0, dst = 0x700000000, src = 0x300000000;

		fake.nr_copies = 0;
		EQ(neuron_dma_copy(&fake.nd, 0, dst, src, lens[i]), 0);
		EQ(fake.nr_copies, DIV_ROUND_UP(lens[i], NEURON_DESC_MAX_LEN));
		for (k = 0; k < fake.nr_copies; k++) {
			EQ(fake.copy[k].dst, dst + pos);
			EQ(fake.copy[k].src, src + pos);
			pos += fake.copy[k].len;
		}
		EQ(pos, lens[i]);
		EQ(fake.core[0].copy->next, fake.head);
	}
	EQ(fake.traced, 's');
	EQ(fake.trace[3], 1008);
	EQ(fake.trace[4], 1008);
	EQ(fake.trace[0], 0);
	EQ(fake.trace[1], COPY_ENGINE);
}

/* What ends a copy early stops the queue before the memory is given back. */
static void dma_copy_fails(struct kunit *test)
{
	static const struct {
		enum fake_mode mode;
		bool kill;
		int err;
	} rows[] = {
		{ FAKE_SILENT, false, -ETIMEDOUT }, { FAKE_SILENT, true, -EINTR },
		{ FAKE_ABORTS, false, -EIO }, { FAKE_GONE, false, -ENODEV },
	};
	u32 i, k;

	EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fake.mode = rows[i].mode;
		fake.kill_wait = rows[i].kill;
		fake.nr_ops = 0;
		fake.nr_traces = 0;
		EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), rows[i].err);
		for (k = 0; k < fake.nr_ops && fake.op[k].op != 'a'; k++)
			OK(fake.op[k].op == 'w' || fake.op[k].op == 'p');
		EXPECT_OP(k, 'a', COPY_ENGINE, 0);
		EXPECT_OP(k + 1, 'b', COPY_ENGINE, 0);
		EQ(fake.nr_ops, k + 2);
		EQ(fake.nr_traces, i ? 1 : 2);
		fake.nr_regs = 0;
		fake.nd.gone = false;
		fake.kill_wait = false;
		/* It goes on from the start. */
		fake.mode = FAKE_RUNS;
		EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
	}
	EQ(fake.timeout, 30 * HZ);
	/* Setting it up again fails: the next copy tries it from the beginning. */
	fake.mode = FAKE_SILENT;
	fake.nr_ops = 0;
	fake.fail_start = 1;
	EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), -ETIMEDOUT);
	EQ(fake.trace[1], NEURON_FAULT_TIMEOUT);
	EXPECT_OP(fake.nr_ops - 1, 's', COPY_ENGINE, 0);
	OK(!fake.core[0].copy->ready && !fake.core[0].copy->marker);
	fake.mode = FAKE_RUNS;
	EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
}

static u32 nr_ops(char op)
{
	u32 i, n = 0;

	for (i = 0; i < fake.nr_ops; i++)
		n += fake.op[i].op == op;
	return n;
}

/*
 * An engine that others use, too, may stop because of them: a copy that can be done twice is tried
 * again, any copy if its queue was off before it began.
 */
static void dma_copy_again(struct kunit *test)
{
	const u64 sbuf = CORE_ADDR(1), regs = CORE_ADDR(1) + NEURON_ISA_EVENT_OFF(0);
	const struct {
		u64 dst, src;
		bool polled;
		u32 aborts, fail_write, tries;
		int err;
	} rows[] = {
		{ MEM_ADDR, MEM_ADDR + 4096, true, 1, 0, 2, 0 },
		{ MEM_ADDR, MEM_ADDR + 4096, true, 2, 0, 3, 0 },
		{ MEM_ADDR, MEM_ADDR + 4096, true, 3, 0, 3, -EIO },
		{ MEM_ADDR, MEM_ADDR + 64, true, 1, 0, 2, 0 },
		{ MEM_ADDR + 64, MEM_ADDR, true, 1, 0, 2, 0 },
		{ sbuf, MEM_ADDR, true, 1, 0, 2, 0 },
		/* A device whose queues stop for their own reasons only. */
		{ MEM_ADDR, MEM_ADDR + 4096, false, 1, 0, 1, -EIO },
		/* What is copied has changed, and registers count. */
		{ MEM_ADDR, MEM_ADDR + 63, true, 1, 0, 1, -EIO },
		{ MEM_ADDR + 63, MEM_ADDR, true, 1, 0, 1, -EIO },
		{ regs, MEM_ADDR, true, 1, 0, 1, -EIO },
		{ MEM_ADDR, regs, true, 1, 0, 1, -EIO },
		{ sbuf - 32, MEM_ADDR, true, 1, 0, 1, -EIO },
		{ sbuf + (24 << 20) - 32, MEM_ADDR, true, 1, 0, 1, -EIO },
		/* Nothing was begun. */
		{ regs, MEM_ADDR, true, 0, 1, 2, 0 }, { regs, MEM_ADDR, false, 0, 2, 2, 0 },
	};
	u32 i;

	fake.geo.sbuf_size = 24 << 20;
	EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fake.nd.desc.polled = rows[i].polled;
		fake.aborts = rows[i].aborts;
		fake.fail_write = rows[i].fail_write;
		fake.nr_ops = 0;
		fake.nr_copies = 0;
		EQ(neuron_dma_copy(&fake.nd, 0, rows[i].dst, rows[i].src, 64), rows[i].err);
		EQ(nr_ops('p'), rows[i].tries - !!rows[i].fail_write);
		EQ(nr_ops('a'), rows[i].tries - !rows[i].err);
		EQ(nr_ops('b'), rows[i].tries - !rows[i].err);
		EQ(fake.nr_copies, !rows[i].err);
		/* What a program may have chosen wrongly is alone on its engine. */
		OK(!rows[i].polled ||
		   fake.alone == (rows[i].dst == regs || rows[i].src == regs ||
				  rows[i].dst % 64 == 32));
		OK(!fake.entered);
		fake.aborts = 0;
		fake.nr_regs = 0;
		EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
	}
	/* The engine has stopped before: neither was anything begun. */
	fake.nd.desc.polled = true;
	fake_set_reg(COPY_ENGINE, NEURON_DMA_TX(0) + NEURON_DMA_Q_STATUS, NEURON_QUEUE_ABORTED);
	fake.nr_ops = 0;
	EQ(neuron_dma_copy(&fake.nd, 0, regs, MEM_ADDR, 64), 0);
	EQ(nr_ops('p'), 1);
	EQ(nr_ops('a'), 1);
	/* Only the batch that failed, and with what belongs there. */
	fake.fail_write = 3;
	fake.nr_copies = 0;
	EQ(neuron_dma_copy(&fake.nd, 0, 0x700000000, 0x300000000, 1008ull << 16), 0);
	EQ(fake.nr_copies, 1008);
	for (i = 0; i < fake.nr_copies; i++)
		EQ(fake.copy[i].src, 0x300000000 + ((u64)i << 16));
	/* The ring cannot be set up again. */
	fake.aborts = 1;
	fake.fail_start = 1;
	EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), -EIO);
	OK(!fake.core[0].copy->ready);
	fake.aborts = 0;
	EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
	/* Killed while others copy: the ring is as it was. */
	fake.nr_ops = 0;
	fake.kill_enter = true;
	fake.nd.desc.polled = true;
	EQ(neuron_dma_copy(&fake.nd, 0, regs, MEM_ADDR, 64), -EINTR);
	EQ(fake.nr_ops, 0);
	fake.kill_enter = false;
	EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), 0);
}

/* Without interrupts: the device is not asked before the time is over. */
static void dma_copy_polls(struct kunit *test)
{
	static const struct {
		enum fake_mode mode;
		u32 late, aborted;
		int err;
	} rows[] = {
		{ FAKE_RUNS, 0, 0, 0 }, { FAKE_LATE, 1, 0, 0 }, { FAKE_LATE, 50, 0, 0 },
		{ FAKE_GONE, 3, 0, -ENODEV }, { FAKE_SILENT, 3, 0, -EINTR },
		{ FAKE_SILENT, 0, 0, -ETIMEDOUT }, { FAKE_ABORTS, 0, 1, -EIO },
	};
	u32 i;

	fake.nd.desc.polled = true;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fake.mode = rows[i].mode;
		fake.late = rows[i].late;
		fake.nr_sleeps = 0;
		fake.nr_reads = 0;
		fake.sleep = 0;
		fake.now = 0;
		EQ(neuron_dma_copy(&fake.nd, 0, MEM_ADDR, MEM_ADDR + 4096, 64), rows[i].err);
		/* A register is read only when nothing moves; the first look finds an abort. */
		if (rows[i].err == -EIO)
			EQ(fake.nr_reads, 3);
		else
			OK(fake.nr_reads <= DIV_ROUND_UP(fake.nr_sleeps, 16));
		OK(rows[i].err != -ETIMEDOUT || fake.nr_reads > 10);
		/* What nobody wants any more gets ten seconds to end. */
		if (rows[i].late)
			EQ(fake.nr_sleeps, rows[i].late + (rows[i].err == -EINTR ? 10000 : 0));
		else if (rows[i].err == -EIO)
			OK(fake.now < NSEC_PER_SEC);
		else
			OK(!rows[i].err || fake.now >= 30 * (u64)NSEC_PER_SEC);
		EQ(fake.traced, rows[i].err == -ETIMEDOUT ? 'f' : rows[i].err ? 's' : 'd');
		OK(fake.sleep <= 1000);
		EQ(fake.sleep == 1000, fake.nr_sleeps > 7);
		fake.nd.gone = false;
		fake.kill_wait = false;
		fake.nr_regs = 0;
	}
}

/* What is no memory, such as a FIFO that its engine does not empty, holds the ring for a second. */
static void dma_copy_to_a_register_has_less_time(struct kunit *test)
{
	const u64 end = CORE_ADDR(1) + (24 << 20), next = CORE_ADDR(1) + (64 << 20);
	const struct {
		u64 dst, src;
		long timeout;
	} rows[] = {
		{ CORE_ADDR(1) + NEURON_ISA_FIFO_OFF(0), MEM_ADDR, HZ },
		{ MEM_ADDR, CORE_ADDR(1) + NEURON_ISA_EVENT_OFF(0), HZ },
		{ end - 64, MEM_ADDR, 30 * HZ }, { end - 63, MEM_ADDR, HZ },
		{ next - 64, MEM_ADDR, HZ }, { next, MEM_ADDR, 30 * HZ },
	};
	u32 i;

	fake.geo.sbuf_size = 24 << 20;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		EQ(neuron_dma_copy(&fake.nd, 0, rows[i].dst, rows[i].src, 64), 0);
		EQ(fake.timeout, rows[i].timeout);
	}
}

static void dma_user_memory_is_pinned(struct kunit *test)
{
	u32 size = (5 << 20) / 2 + 300, i;
	u8 *buf = vzalloc(size + PAGE_SIZE), *user = buf + 100;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	fill(user, size, 3);
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR + 8, (void __user *)user, size, true), 0);
	OK(!memcmp(fake.mem + 8, user, size) && !fake.mem[7] && !fake.mem[size + 8]);
	EQ(fake.pin_flags, 0);
	OK(!fake.dirty && !fake.core[0].copy->bounce);
	memset(buf, 0, size + PAGE_SIZE);
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR + 8, (void __user *)user, size, false), 0);
	OK(!memcmp(fake.mem + 8, user, size) && !buf[99] && !user[size]);
	EQ(fake.pin_flags, FOLL_WRITE);
	OK(fake.dirty);
	fake.mode = FAKE_ABORTS;
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR, (void __user *)user, size, true), -EIO);
	fake.mode = FAKE_RUNS;
	fake.nr_regs = 0;
	EQ(fake.allocs, 2);
	EQ(fake.pinned, 0);
	/* What cannot be pinned, or lent, goes through the buffer. */
	for (i = 0; i < 3; i++) {
		memset(fake.mem, 0, size + 100);
		fake.fail_alloc = i == 0;
		fake.fail_pin = i == 1;
		fake.fail_lent = i == 2;
		EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR, (void __user *)user, size, true),
		   0);
		OK(!memcmp(fake.mem, user, size) && !fake.mem[size]);
		EQ(fake.allocs, 2);
		EQ(fake.pinned, 0);
	}
	OK(fake.core[0].copy->bounce);
	vfree(buf);
}

/* Short copies and memory that cannot be pinned: one buffer, kept for the next one. */
static void dma_user_memory_is_bounced(struct kunit *test)
{
	u32 size = (128 << 10) - 1;
	u8 *user = vzalloc(size + 1);
	struct neuron_chunk *bounce;

	KUNIT_ASSERT_NOT_NULL(test, user);
	fill(user, size, 4);
	fake.fail_chunk = 1;
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR, (void __user *)user, size, true), -ENOMEM);
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR, (void __user *)user, size, true), 0);
	OK(!memcmp(fake.mem, user, size) && !fake.mem[size]);
	EQ(fake.pin_flags, 0);
	bounce = fake.core[0].copy->bounce;
	OK(bounce);
	EQ(bounce->size, NEURON_COPY_BOUNCE);
	memset(user, 0, size);
	EQ(neuron_dma_copy_user(&fake.nd, 0, &fake.handle[1].chunk, 16, (void __user *)user, 32,
				false), 0);
	EQ(fake.copy[fake.nr_copies - 1].src, fake.handle[1].chunk.addr + 16);
	OK(fake.core[0].copy->bounce == bounce);
	fake.fail_user = 1;
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR, (void __user *)user, 32, true), -EFAULT);
	fake.fail_user = 1;
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR, (void __user *)user, 32, false), -EFAULT);
	fake.mode = FAKE_ABORTS;
	EQ(neuron_dma_addr_user(&fake.nd, 0, MEM_ADDR, (void __user *)user, 32, false), -EIO);
	OK(fake.core[0].copy->bounce == bounce);
	vfree(user);
}

static void dma_writes_and_fills(struct kunit *test)
{
	u8 *buf = vzalloc(NEURON_COPY_BOUNCE + 1);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	fill(buf, NEURON_COPY_BOUNCE, 5);
	EQ(neuron_dma_write(&fake.nd, 0, MEM_ADDR, buf, 0), -EINVAL);
	EQ(neuron_dma_write(&fake.nd, 0, MEM_ADDR, buf, NEURON_COPY_BOUNCE + 1), -EINVAL);
	EQ(neuron_dma_write(&fake.nd, 0, MEM_ADDR, buf, NEURON_COPY_BOUNCE), 0);
	OK(!memcmp(fake.mem, buf, NEURON_COPY_BOUNCE) && !fake.mem[NEURON_COPY_BOUNCE]);
	EQ(neuron_dma_fill(&fake.nd, 0, MEM_ADDR + 1, 0xa5, 65537 * 3), 0);
	OK(fake.mem[0] == buf[0] && fake.mem[65537 * 3 + 1] == buf[65537 * 3 + 1]);
	for (i = 1; i <= 65537 * 3; i++)
		if (fake.mem[i] != 0xa5)
			break;
	EQ(i, 65537 * 3 + 1);
	/* More than one batch: each has the ring for itself. */
	fake.nr_copies = 0;
	EQ(neuron_dma_fill(&fake.nd, 0, 0x700000000, 1, (1007ull << 16) + 7), 0);
	EQ(fake.nr_copies, 1008);
	EQ(fake.copy[1007].dst, 0x700000000 + (1007ull << 16));
	EQ(fake.copy[1007].len, 7);
	fake.mode = FAKE_ABORTS;
	EQ(neuron_dma_fill(&fake.nd, 0, MEM_ADDR, 1, 100), -EIO);
	EQ(neuron_dma_write(&fake.nd, 0, MEM_ADDR, buf, 100), -EIO);
	fake.kill_lock = true;
	EQ(neuron_dma_fill(&fake.nd, 0, MEM_ADDR, 1, 100), -EINTR);
	OK(fake.core[0].copy->bounce);
	neuron_copy_exit(&fake.nd, 0);
	fake.fail_chunk = 1;
	EQ(neuron_dma_fill(&fake.nd, 0, MEM_ADDR, 1, 100), -ENOMEM);
	fake.fail_chunk = 1;
	EQ(neuron_dma_write(&fake.nd, 0, MEM_ADDR, buf, 100), -ENOMEM);
	fake.kill_lock = false;
	vfree(buf);
}

/* Two callers that had a buffer each give back one to keep. */
static void dma_keeps_one_buffer(struct kunit *test)
{
	struct neuron_chunk *a, *b;

	EQ(neuron_bounce_take(&fake.nd, 0, &a), 0);
	EQ(neuron_bounce_take(&fake.nd, 0, &b), 0);
	OK(a != b);
	neuron_bounce_give(&fake.nd, 0, a);
	neuron_bounce_give(&fake.nd, 0, b);
	OK(fake.core[0].copy->bounce == a);
	OK(!fake_memory_of(b)->used);
}

/* ---- notification queues ----------------------------------------------------------- */

#define V2(...) ((struct neuron_ioctl_notifications_init_v2){ __VA_ARGS__ })

static int nq_init(struct neuron_client *client, struct neuron_ioctl_notifications_init_v2 *a)
{
	struct neuron_call call = { .nd = &fake.nd, .client = client, .arg = a };

	return neuron_do_notifications_init_v2(&call);
}

static void dma_nq_init_refuses(struct kunit *test)
{
	static const struct {
		struct neuron_ioctl_notifications_init_v2 arg;
		int err;
	} rows[] = {
		{ { .nq_dev_id = 2, .size = 256 }, -EINVAL },
		{ { .nq_type = 6, .size = 256 }, -EINVAL },
		{ { .engine_index = 16, .size = 256 }, -EINVAL },
		{ { .size = 128 }, -EINVAL }, { { .size = 384 }, -EINVAL }, { {}, -EINVAL },
		{ { .size = 256, .dram_channel = 2 }, -EINVAL },
		{ { .size = 256, .nq_dev_type = NQ_DEVICE_TYPE_TOPSP }, -EOPNOTSUPP },
		{ { .size = 256, .nq_dev_type = 2 }, -EINVAL },
	};
	struct neuron_ioctl_notifications_init_v2 a;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		a = rows[i].arg;
		EQ(nq_init(&fake.client, &a), rows[i].err);
	}
	for (i = 0; i < 3; i++) {
		fake.fail_alloc = i == 0;
		fake.fail_chunk = i == 1;
		fake.fail_publish = i == 2;
		a = V2(.size = 256, .dram_channel = 1);
		EQ(nq_init(&fake.client, &a), -ENOMEM);
		EQ(fake.allocs, 2);
		EQ(fake.watches, 0);
		OK(!fake.own[0].used);
	}
	EQ(fake.nr_ops, 0);
	OK(!fake.core[0].owner);
}

static void expect_nq(u32 i, u32 core, u32 nq, u64 addr, u32 size)
{
	EXPECT_OP(i, 'n', core, NEURON_NQ_SIZE(nq), 0);
	EXPECT_OP(i + 1, 'n', core, NEURON_NQ_BASE_LO(nq), lower_32_bits(addr));
	EXPECT_OP(i + 2, 'n', core, NEURON_NQ_BASE_HI(nq), upper_32_bits(addr));
	EXPECT_OP(i + 3, 'n', core, NEURON_NQ_SIZE(nq), size);
}

/* The first queue takes the core; the same request again gets the same queue. */
static void dma_nq_init_programs(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.nq_dev_id = 1, .nq_type = 5,
		.engine_index = 15, .size = 256, .dram_channel = 1), b;
	struct neuron_nq *q;

	EQ(nq_init(&fake.client, &a), 0);
	q = fake.core[1].nq[95];
	OK(q);
	OK(fake.core[1].owner == &fake.client);
	expect_nq(0, 1, 95, q->chunk->addr, 256);
	EQ(fake.nr_ops, 4);
	EQ(a.mmap_offset, U64_MAX);
	EQ(a.mem_handle, q->chunk->own.number);
	EQ(fake.request.size, 256);
	EQ(fake.request.hbm, 1);
	EQ(fake.request.core, 1);
	EQ(fake.request.category, NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE);
	EQ(fake.watch_len, 256);
	EQ(q->chunk->users[NEURON_USER_RING - 1], 1);
	b = V2(.nq_dev_id = 1, .nq_type = 5, .engine_index = 15, .size = 512);
	/* No memory is taken for it, not even for a while. */
	fake.fail_chunk = 1;
	EQ(nq_init(&fake.client, &b), 0);
	fake.fail_chunk = 0;
	EQ(b.mem_handle, a.mem_handle);
	EQ(fake.nr_ops, 4);
	EQ(nq_init(&fake.other, &b), -EBUSY);
	/* Host memory is mapped by its address. */
	b = V2(.nq_dev_id = 1, .size = 256, .on_host_memory = 1, .dram_channel = 9);
	EQ(nq_init(&fake.client, &b), 0);
	EQ(b.mmap_offset, fake.core[1].nq[0]->chunk->addr);
	EQ(fake.request.category, NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST);
	EXPECT_OP(7, 'n', 1, NEURON_NQ_SIZE(0), 256);
	EQ(fake.nr_ops, 8);
	/* A queue whose handle was freed is replaced. */
	fake_chunk_revoke(q->chunk);
	EQ(nq_init(&fake.client, &a), 0);
	OK(fake.core[1].nq[95] && fake.core[1].nq[95] != q);
	EQ(fake.watches, 2);
	EQ(CALL(notifications_init_v1, client, 0, 1, 2, 256), 0);
	OK(fake.core[0].nq[18] && fake.core[0].nq[18]->chunk->host);
	EQ(CALL(notifications_init_v1, client, 2, 1, 2, 256), -EINVAL);
}

/* The core does not reset, or the device refuses a step: the memory is given back. */
static void dma_nq_init_fails(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a;
	u32 i;

	for (i = 0; i <= 4; i++) {
		fake.nr_ops = 0;
		fake.acquire_err = i ? 0 : -EIO;
		fake.fail_write = i;
		a = V2(.size = 256);
		EQ(nq_init(&fake.client, &a), -EIO);
		EQ(fake.nr_ops, i);
		OK(!fake.core[0].nq[0]);
		OK(fake.core[0].owner == (i ? &fake.client : NULL));
		OK(!fake.own[0].used);
		EQ(fake.watches, 0);
		EQ(fake.allocs, 2);
	}
}

/* During a reset nothing starts. */
static void dma_queue_during_a_reset(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.size = 256);

	EQ(queue_init(0, 3, 1, 32, 2, 32), 0);
	fake.core[0].state = NEURON_CORE_RESETTING;
	fake.nr_ops = 0;
	EQ(queue_init(0, 3, 2, 32, 0, 0), -EBUSY);
	EQ(queue_init(0, 4, 2, 32, 0, 0), -EBUSY);
	EQ(nq_init(&fake.client, &a), -EBUSY);
	EQ(fake.nr_ops, 0);
	OK(fake.engine[0].queue[3] && !fake.engine[0].queue[4] && !fake.core[0].nq[0]);
	EQ(fake.watches, 2);
	OK(!fake.own[0].used);
	fake.core[0].state = NEURON_CORE_WEDGED;
	EQ(queue_init(0, 4, 2, 32, 0, 0), -EIO);
	fake.core[0].state = NEURON_CORE_READY;
	EQ(queue_init(0, 4, 2, 32, 0, 0), 0);
}

/* A queue that is made anew keeps its eventfd; the old memory is given back. */
static void dma_nq_realloc_moves_the_eventfd(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 a = { .size = 256 };
	struct neuron_call call = { .nd = &fake.nd, .client = &fake.client, .arg = &a };
	struct neuron_nq *q;
	u64 old;

	EQ(neuron_do_notifications_init_with_realloc_v2(&call), 0);
	q = fake.core[0].nq[0];
	old = a.mem_handle;
	EQ(NATIVE(nq_eventfd, .eventfd = 2), 0);
	EQ(neuron_do_notifications_init_with_realloc_v2(&call), 0);
	EQ(a.mem_handle, old);
	a.force_alloc_mem = 1;
	a.size = 1024;
	fake.nr_ops = 0;
	EQ(neuron_do_notifications_init_with_realloc_v2(&call), 0);
	OK(a.mem_handle != old);
	OK(fake.core[0].nq[0] != q);
	expect_nq(0, 0, 0, fake.core[0].nq[0]->chunk->addr, 1024);
	EXPECT_OP(4, 'f');
	EQ(fake.nr_ops, 5);
	OK(!fake.own[old - 100].used);
	EQ(fake.watches, 1);
	EQ(fake.efd_refs[2], 1);
	neuron_nq_posted(&fake.nd, 0, 0);
	EQ(fake.signals[2], 1);
	a.nq_dev_type = NQ_DEVICE_TYPE_TOPSP;
	EQ(neuron_do_notifications_init_with_realloc_v2(&call), -EOPNOTSUPP);
}

/*
 * Register writes are posted: until they have arrived the device writes to the queue of before.
 * fake_memory_release() checks that its memory is not given back while it may.
 */
static void dma_nq_replaced_is_flushed(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.nq_type = 2, .size = 512);
	struct neuron_chunk *old;
	u32 i;

	EQ(nq_init(&fake.client, &a), 0);
	for (i = 0; i < 3; i++) {
		old = fake.core[0].nq[32]->chunk;
		OK(fake_is_nq(old));
		/* Nothing but the queue has the old memory any more. */
		fake_chunk_revoke(old);
		EQ(kref_read(&old->ref), 1);
		EQ(nq_init(&fake.client, &a), 0);
		OK(!fake_is_nq(old));
		OK(!fake_memory_of(old)->used);
		OK(fake_is_nq(fake.core[0].nq[32]->chunk));
	}
	/* The other way: the handle is there until the queue is replaced. */
	old = fake.core[0].nq[32]->chunk;
	EQ(kref_read(&old->ref), 2);
	EQ(CALL(notifications_init_with_realloc_v2, client, .nq_type = 2, .size = 256,
		.force_alloc_mem = 1), 0);
	OK(!fake_is_nq(old));
	OK(!fake_memory_of(old)->used);
}

/* Nor does a ring name the old memory then. */
static void dma_nq_replaced_is_forgotten(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.nq_type = 2, .size = 512,
							 .on_host_memory = 1);
	struct neuron_desc d;
	struct neuron_chunk *old;

	ring_init();
	EQ(nq_init(&fake.client, &a), 0);
	old = fake.core[0].nq[32]->chunk;
	d = ring_desc(4, 0, old->addr);
	EQ(ring_write(2, RX, 0, &d, 1), 0);
	EQ(neuron_ring_startable(ring_at(2), 32, 0, 1), 0);
	EQ(CALL(notifications_init_with_realloc_v2, client, .nq_type = 2, .size = 256,
		.force_alloc_mem = 1), 0);
	OK(!fake_memory_of(old)->used);
	EQ(neuron_ring_startable(ring_at(2), 32, 0, 1), -EINVAL);
}

static void dma_nq_eventfds(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.size = 256);

	EQ(NATIVE(nq_eventfd, .eventfd = 0), -ENOENT);
	fake.core[0].owner = &fake.other;
	EQ(NATIVE(nq_eventfd, .eventfd = 0), -EBUSY);
	fake.core[0].owner = NULL;
	EQ(nq_init(&fake.client, &a), 0);
	EQ(NATIVE(nq_eventfd, .eventfd = 0, .engine_index = 1), -ENOENT);
	EQ(NATIVE(nq_eventfd, .eventfd = 0, .flags = 1), -EINVAL);
	EQ(NATIVE(nq_eventfd, .eventfd = 0, .__reserved = 1), -EINVAL);
	EQ(NATIVE(nq_eventfd, .eventfd = 0, .nq_dev_id = 2), -EINVAL);
	EQ(NATIVE(nq_eventfd, .eventfd = 0, .nq_type = 6), -EINVAL);
	EQ(NATIVE(nq_eventfd, .eventfd = 0, .engine_index = 16), -EINVAL);
	EQ(NATIVE(nq_eventfd, .eventfd = 0, .nq_dev_type = 1), -EOPNOTSUPP);
	EQ(NATIVE(nq_eventfd, .eventfd = BAD_EVENTFD), -EBADF);
	EQ(fake.eventfds, 0);
	neuron_nq_posted(&fake.nd, 0, 0);
	EQ(NATIVE(nq_eventfd, .eventfd = 0), 0);
	neuron_nq_posted(&fake.nd, 0, 0);
	neuron_nq_posted(&fake.nd, 0, 1);
	neuron_nq_posted(&fake.nd, 1, 0);
	EQ(fake.signals[0], 1);
	neuron_nqs_wake(&fake.nd, 1);
	EQ(fake.signals[0], 1);
	neuron_nqs_wake(&fake.nd, 0);
	EQ(fake.signals[0], 2);
	/* Another one in its place, then none. */
	EQ(NATIVE(nq_eventfd, .eventfd = 1), 0);
	EQ(fake.efd_refs[0], 0);
	EQ(NATIVE(nq_eventfd, .eventfd = -1), 0);
	EQ(fake.eventfds, 0);
	EQ(NATIVE(nq_eventfd, .eventfd = 3), 0);
	fake_take(&fake.core[0].lock);
	neuron_nqs_hold(&fake.nd, 0);
	fake_drop(&fake.core[0].lock);
	EQ(fake.eventfds, 0);
	EQ(fake.watches, 1);
	EQ(fake.core[0].held_bytes, 256);
	OK(!fake.core[0].nq[0]);
	fake_reset_ends(0);
	EQ(fake.watches, 0);
	EQ(fake.allocs, 2);
}

/* As the device does: the phase is 1 on the first pass. */
static void nq_append(struct neuron_nq *q, u32 *total, u32 n)
{
	struct neuron_isa_notice *entry = page_address(q->chunk->pages[0]);
	u32 count = q->size / sizeof(*entry);

	for (; n; n--, (*total)++)
		entry[*total % count].phase = !(*total / count & 1);
}

/* A device that never tells: each look finds whether something came since the last one. */
static void dma_nq_polls_phases(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.size = 256, .on_host_memory = 1);
	u32 before, n, round, total;
	struct neuron_nq *q;

	fake.nd.desc.polled = true;
	fake.geo.isa_version = 1;
	for (before = 0; before < 50; before++) {
		EQ(nq_init(&fake.client, &a), 0);
		q = fake.core[0].nq[0];
		total = 0;
		nq_append(q, &total, before);
		/* What came before does not count. */
		EQ(NATIVE(nq_eventfd, .eventfd = 1), 0);
		for (round = 0; round < 40; round++) {
			fake.signals[1] = 0;
			OK(neuron_nqs_look(fake.core[0].nq_poll));
			EQ(fake.signals[1], 0);
			n = 1 + round % 31;
			nq_append(q, &total, n);
			OK(neuron_nqs_look(fake.core[0].nq_poll));
			EQ(fake.signals[1], 1);
		}
		EQ(NATIVE(nq_eventfd, .eventfd = -1), 0);
		OK(!neuron_nqs_look(fake.core[0].nq_poll));
		fake_take(&fake.core[0].lock);
		neuron_nqs_hold(&fake.nd, 0);
		fake_reset_ends(0);
		fake_drop(&fake.core[0].lock);
		fake_chunk_revoke(&fake.own[a.mem_handle - 100].chunk);
	}
	EQ(fake.nr_reads, 0);
}

/* Where phases tell nothing, the device is asked. */
static void dma_nq_polls_heads(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.size = 256);

	fake.nd.desc.polled = true;
	fake.geo.isa_version = 1;
	EQ(nq_init(&fake.client, &a), 0);
	fake.nq_head = 16;
	EQ(NATIVE(nq_eventfd, .eventfd = 1), 0);
	OK(neuron_nqs_look(fake.core[0].nq_poll));
	EQ(fake.signals[1], 0);
	fake.nq_head = 32;
	OK(neuron_nqs_look(fake.core[0].nq_poll));
	EQ(fake.signals[1], 1);
	/* It does not answer. */
	fake.nq_head = 48;
	fake.fail_read = 1;
	OK(neuron_nqs_look(fake.core[0].nq_poll));
	EQ(fake.signals[1], 1);
	OK(neuron_nqs_look(fake.core[0].nq_poll));
	EQ(fake.signals[1], 2);
	/* Busy for long, which says nothing. */
	fake_take(&fake.core[0].lock);
	OK(neuron_nqs_look(fake.core[0].nq_poll));
	fake_drop(&fake.core[0].lock);
	fake.nd.gone = true;
	OK(!neuron_nqs_look(fake.core[0].nq_poll));
	fake.nd.gone = false;
}

/* The work: pauses grow with the time that nothing came, a doorbell ends a long one. */
static void dma_nq_pauses(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.size = 256);
	struct neuron_nq_poll *poll;

	EQ(nq_init(&fake.client, &a), 0);
	EQ(NATIVE(nq_eventfd, .eventfd = 1), 0);
	EQ(fake.nr_delayed, 0);
	fake.nd.desc.polled = true;
	neuron_nq_poll_expect(&fake.nd, 0);
	EQ(NATIVE(nq_eventfd, .eventfd = 1), 0);
	poll = fake.core[0].nq_poll;
	KUNIT_ASSERT_NOT_NULL(test, poll);
	EQ(fake.nr_delayed, 1);
	poll->work.work.func(&poll->work.work);
	EQ(fake.nr_delayed, 2);
	OK(!poll->slow && fake.nr_sleeps > 10);
	fake.now += NSEC_PER_SEC;
	fake.nr_sleeps = 0;
	poll->work.work.func(&poll->work.work);
	EQ(fake.nr_delayed, 3);
	OK(poll->slow && !fake.nr_sleeps);
	neuron_nq_poll_expect(&fake.nd, 0);
	EQ(fake.nr_delayed, 4);
	/* Nobody waits any more. */
	EQ(NATIVE(nq_eventfd, .eventfd = -1), 0);
	poll->work.work.func(&poll->work.work);
	EQ(fake.nr_delayed, 4);
	fake.nd.gone = true;
	EQ(NATIVE(nq_eventfd, .eventfd = 1), -ENODEV);
	fake.nd.gone = false;
	EQ(fake.eventfds, 0);
}

/* The last queue of a core is one, too. */
static void dma_nq_last(struct kunit *test)
{
	struct neuron_ioctl_notifications_init_v2 a = V2(.nq_type = 5, .engine_index = 15,
							 .size = 256);

	EQ(nq_init(&fake.client, &a), 0);
	EQ(NATIVE(nq_eventfd, .nq_type = 5, .engine_index = 15, .eventfd = 1), 0);
	neuron_nqs_wake(&fake.nd, 0);
	EQ(fake.signals[1], 1);
	neuron_nq_posted(&fake.nd, 0, 95);
	EQ(fake.signals[1], 2);
	EQ(fake.nr_traces, 1);
	EQ(fake.traced, 'n');
	EQ(fake.trace[0], 0);
	EQ(fake.trace[1], 5);
	EQ(fake.trace[2], 15);
	neuron_nq_posted(&fake.nd, 1, NQ_TYPE_ERROR * 16 + 3);
	EQ(fake.nr_traces, 3);
	EQ(fake.traced, 'f');
	EQ(fake.trace[0], 1);
	EQ(fake.trace[1], NEURON_FAULT_NOTICE);
	/* A device that goes wakes everybody, which is no notification. */
	fake.nd.gone = true;
	neuron_nq_posted(&fake.nd, 0, 95);
	EQ(fake.nr_traces, 3);
	EQ(fake.signals[1], 3);
}

/* ---- asynchronous copies ----------------------------------------------------------- */

#define NONE	NEURON_TOKEN_NONE

static int start(u32 prev, u32 *token)
{
	struct neuron_ioctl_mem_copy_async a = {
		.src_mem_handle = 1, .dst_mem_handle = 2, .size = 4096, .src_offset = 16,
		.dst_offset = 32, .pwait_handle = prev,
	};
	struct neuron_call call = { .nd = &fake.nd, .client = &fake.client, .arg = &a };
	int err = neuron_do_mem_copy_async(&call);

	*token = a.wait_handle;
	return err;
}

static void dma_async_refuses(struct kunit *test)
{
	u32 i;

	EQ(CALL(mem_copy_async, client, 9, 2, 16, 0, 0, 0, NONE), -ENOENT);
	EQ(CALL(mem_copy_async, client, 1, 9, 16, 0, 0, 0, NONE), -ENOENT);
	EQ(CALL(mem_copy_async, client, 1, 2, CHUNK_SIZE, 1, 0, 0, NONE), -EINVAL);
	EQ(CALL(mem_copy_async, client, 1, 2, CHUNK_SIZE, 0, 1, 0, NONE), -EINVAL);
	EQ(CALL(mem_copy_async, client, 1, 2, 16, 0, 0, 0, 3), -EINVAL);
	for (i = 1; i <= 2; i++)
		EQ(CALL(mem_copy_async, client, 1, 2, 16, 0, 0, 0, i), -EINVAL);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 0), -EINVAL);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 3), -EINVAL);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), -EINVAL);
	EQ(CALL(mem_copy_async_wait, client, 1, 9, 1), -ENOENT);
	EQ(CALL(mem_copy_async_wait, client, 9, 2, 1), -ENOENT);
	fake.fail_alloc = 1;
	EQ(CALL(mem_copy_async, client, 1, 2, 16, 0, 0, 0, NONE), -ENOMEM);
	EQ(fake.allocs, 2);
	EQ(fake.nr_work, 0);
}

/* Two copies of a core, each waited for by the next; a third one has to wait. */
static void dma_async_tokens(struct kunit *test)
{
	u8 *from = fake_bytes(fake.handle[1].chunk.addr, CHUNK_SIZE);
	u8 *to = fake_bytes(fake.handle[2].chunk.addr, CHUNK_SIZE);
	u32 token;

	fill(from, 8192, 6);
	EQ(start(NONE, &token), 0);
	EQ(token, 1);
	EQ(fake.nr_work, 1);
	EQ(start(NONE, &token), -EBUSY);
	EQ(fake.handle[1].chunk.users[NEURON_USER_READER - 1], 1);
	EQ(start(2, &token), -EINVAL);
	EQ(start(1, &token), 0);
	EQ(token, 2);
	/* The second one ran, too: it was there when the first one was waited for. */
	OK(!memcmp(to + 32, from + 16, 4096) && !to[31] && !to[4128]);
	EQ(start(1, &token), -EINVAL);
	EQ(start(NONE, &token), 0);
	EQ(token, 1);
	EQ(start(1, &token), -EBUSY);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 2), 0);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 2), -EINVAL);
	EQ(start(1, &token), 0);
	EQ(token, 2);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 2), 0);
	EQ(fake.allocs, 2);
}

/* The core is the destination's, or the source's where that one is host memory. */
static void dma_async_core(struct kunit *test)
{
	EQ(CALL(mem_copy_async64, client, 1, 2, 16, 0, 0, 0, NONE), 0);
	OK(fake.client.async[0][0]);
	EQ(CALL(mem_copy_async64, client, 2, 1, 16, 0, 0, 0, NONE), 0);
	OK(fake.client.async[1][0]);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), 0);
	EQ(CALL(mem_copy_async_wait, client, 2, 1, 1), 0);
	EQ(CALL(mem_copy_async64, client, 1, 6, 16, 0, 0, 0, NONE), 0);
	OK(fake.client.async[1][0] && !fake.client.async[0][0]);
	/* Any handles that determine the core will do. */
	EQ(CALL(mem_copy_async_wait, client, 2, 3, 1), 0);
	/* Found by its handles, even after they were freed. */
	EQ(CALL(mem_copy_async64, client, 1, 3, 16, 0, 0, 0, NONE), 0);
	fake.handle[1].chunk.client = &fake.other;
	fake.handle[3].chunk.client = &fake.other;
	EQ(CALL(mem_copy_async_wait, client, 3, 1, 1), -ENOENT);
	EQ(CALL(mem_copy_async_wait, client, 1, 3, 1), 0);
	EQ(fake.allocs, 2);
}

static void dma_async_synchronous(struct kunit *test)
{
	u32 token = 7;

	EQ(start(0, &token), 0);
	EQ(token, 0);
	EQ(fake.nr_work, 0);
	EQ(fake.nr_copies, 1);
	EQ(fake.copy[0].src, fake.handle[1].chunk.addr + 16);
	EQ(fake.copy[0].dst, fake.handle[2].chunk.addr + 32);
	EQ(fake.copy[0].len, 4096);
	fake.mode = FAKE_ABORTS;
	EQ(start(0, &token), -EIO);
	EQ(fake.allocs, 2);
}

/* An error is the result, or that of the next call, which then starts nothing. */
static void dma_async_errors(struct kunit *test)
{
	u32 token;

	fake.mode = FAKE_ABORTS;
	EQ(start(NONE, &token), 0);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), -EIO);
	EQ(start(NONE, &token), 0);
	EQ(start(1, &token), -EIO);
	EQ(fake.allocs, 2);
	OK(!fake.client.async[0][0] && !fake.client.async[0][1]);
	fake.mode = FAKE_RUNS;
	fake.nr_regs = 0;
	EQ(start(NONE, &token), 0);
	fake.kill_wait = true;
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), -EINTR);
	OK(fake.client.async[0][0]);
	fake.kill_wait = false;
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), 0);
	/* The end of its process ends a copy. */
	EQ(start(NONE, &token), 0);
	fake.client.dead = true;
	fake.nr_copies = 0;
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), -EINTR);
	EQ(fake.nr_copies, 0);
	EQ(start(NONE, &token), 0);
	neuron_async_exit(&fake.client);
	EQ(fake.allocs, 2);
	OK(!fake.client.async[0][0]);
}

static bool busy(u32 handle)
{
	return !dma_resv_test_signaled(fake.handle[handle].chunk.resv, DMA_RESV_USAGE_READ);
}

/* Exported memory is busy until the copy is done, whatever becomes of it. */
static void dma_async_fences(struct kunit *test)
{
	struct neuron_chunk *src = &fake.handle[1].chunk, *dst = &fake.handle[2].chunk;
	u32 token;

	OK(neuron_sync_resv(src) && neuron_sync_resv(dst));
	EQ(start(NONE, &token), 0);
	OK(busy(1) && busy(2));
	OK(dma_resv_test_signaled(src->resv, DMA_RESV_USAGE_WRITE));
	OK(!dma_resv_test_signaled(dst->resv, DMA_RESV_USAGE_WRITE));
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), 0);
	OK(!busy(1) && !busy(2));
	EQ(start(0, &token), 0);
	OK(!busy(1) && !busy(2));
	/* One that is not started: of two, the first is still under way. */
	EQ(start(NONE, &token), 0);
	EQ(start(NONE, &token), -EBUSY);
	OK(busy(2));
	fake.mode = FAKE_ABORTS;
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), -EIO);
	OK(!busy(1) && !busy(2));
	fake.mode = FAKE_RUNS;
	fake.nr_regs = 0;
	EQ(neuron_dma_fill_chunk(&fake.nd, 0, dst, 0, 1, 64), 0);
	OK(!busy(2));
	/* Without a ring there is no fence. */
	fake.kill_lock = true;
	EQ(start(NONE, &token), -EINTR);
	EQ(neuron_dma_fill_chunk(&fake.nd, 0, dst, 0, 1, 64), -EINTR);
	fake.kill_lock = false;
	OK(!busy(1) && !busy(2));
	neuron_sync_free(src);
	neuron_sync_free(dst);
}

/* Large copies are made in pieces, so that their process can end between two. */
static void dma_async_long(struct kunit *test)
{
	u64 size = (128ull << 20) + 4096, pos = 0;
	u32 i;

	fake.handle[1].chunk.size = size;
	fake.handle[2].chunk.size = size;
	fake.handle[1].chunk.addr = 0x300000000;
	fake.handle[2].chunk.addr = 0x700000000;
	EQ(CALL(mem_copy_async64, client, 1, 2, size, 0, 0, 0, NONE), 0);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), 0);
	for (i = 0; i < fake.nr_copies; i++) {
		EQ(fake.copy[i].src, 0x300000000 + pos);
		EQ(fake.copy[i].dst, 0x700000000 + pos);
		pos += fake.copy[i].len;
	}
	EQ(pos, size);
}

/* A caller that cannot be told its token: nothing is left of the copy. */
static void dma_async_undo(struct kunit *test)
{
	struct neuron_ioctl_mem_copy_async a = {
		.src_mem_handle = 1, .dst_mem_handle = 2, .size = 16, .pwait_handle = NONE,
	};
	struct neuron_ioctl_mem_copy_async64 b = {
		.src_mem_handle = 1, .dst_mem_handle = 2, .size = 16, .pwait_handle = NONE,
	};
	struct neuron_call call = { .nd = &fake.nd, .client = &fake.client, .arg = &a };

	EQ(neuron_do_mem_copy_async(&call), 0);
	neuron_undo_mem_copy_async(&call);
	OK(!fake.client.async[0][0]);
	a.wait_handle = 0;
	neuron_undo_mem_copy_async(&call);
	call.arg = &b;
	EQ(neuron_do_mem_copy_async64(&call), 0);
	EQ(b.wait_handle, 1);
	neuron_undo_mem_copy_async64(&call);
	OK(!fake.client.async[0][0]);
	EQ(fake.allocs, 2);
}

static void dma_async_eventfds(struct kunit *test)
{
	u32 token;

	EQ(NATIVE(copy_eventfd, .src_mem_handle = 1, .dst_mem_handle = 2, .token = 1,
		  .eventfd = 0), -EINVAL);
	EQ(fake.eventfds, 0);
	EQ(start(NONE, &token), 0);
	EQ(NATIVE(copy_eventfd, .src_mem_handle = 1, .dst_mem_handle = 2, .token = 1,
		  .eventfd = 0, .flags = 1), -EINVAL);
	EQ(NATIVE(copy_eventfd, .src_mem_handle = 1, .dst_mem_handle = 2, .token = 1,
		  .eventfd = BAD_EVENTFD), -EBADF);
	EQ(NATIVE(copy_eventfd, .src_mem_handle = 1, .dst_mem_handle = 2, .token = 1,
		  .eventfd = 0), 0);
	EQ(NATIVE(copy_eventfd, .src_mem_handle = 1, .dst_mem_handle = 2, .token = 1,
		  .eventfd = 1), 0);
	EQ(fake.efd_refs[0], 0);
	EQ(fake.efd_refs[1], 1);
	fake_run_work();
	EQ(fake.signals[0], 0);
	EQ(fake.signals[1], 1);
	EQ(fake.eventfds, 0);
	/* Done already: signalled at once. */
	EQ(NATIVE(copy_eventfd, .src_mem_handle = 1, .dst_mem_handle = 2, .token = 1,
		  .eventfd = 2), 0);
	EQ(NATIVE(copy_eventfd, .src_mem_handle = 1, .dst_mem_handle = 2, .token = 1,
		  .eventfd = -1), 0);
	EQ(fake.signals[2], 1);
	EQ(fake.eventfds, 0);
	EQ(CALL(mem_copy_async_wait, client, 1, 2, 1), 0);
	EQ(fake.allocs, 2);
}

static struct kunit_case dma_cases[] = {
	KUNIT_CASE(dma_queue_init_refuses),
	KUNIT_CASE(dma_queue_init_programs),
	KUNIT_CASE(dma_queue_init_fails),
	KUNIT_CASE(dma_queue_of_another),
	KUNIT_CASE(dma_queues_are_held),
	KUNIT_CASE(ring_kinds),
	KUNIT_CASE(ring_targets),
	KUNIT_CASE(ring_places),
	KUNIT_CASE(ring_side),
	KUNIT_CASE(ring_busy),
	KUNIT_CASE(ring_not_made),
	KUNIT_CASE(ring_kept),
	KUNIT_CASE(ring_pins),
	KUNIT_CASE(ring_keeps),
	KUNIT_CASE(ring_refused_as_a_whole),
	KUNIT_CASE(ring_staged),
	KUNIT_CASE(ring_bound),
	KUNIT_CASE(ring_start),
	KUNIT_CASE(ring_in_flight),
	KUNIT_CASE(ring_packets),
	KUNIT_CASE(ring_write_fails),
	KUNIT_CASE(ring_is_written),
	KUNIT_CASE(ring_forgets),
	KUNIT_CASE(ring_pin_resolves),
	KUNIT_CASE(dma_queue_that_does_not_stop),
	KUNIT_CASE(dma_queue_during_a_reset),
	KUNIT_CASE(dma_irq_finds_its_core),
	KUNIT_CASE(dma_engine_states),
	KUNIT_CASE(dma_queue_init_batches),
	KUNIT_CASE(dma_start_is_for_the_owner),
	KUNIT_CASE(dma_start_needs_room),
	KUNIT_CASE(dma_start_rings_bells),
	KUNIT_CASE(dma_ack_counts),
	KUNIT_CASE(dma_queue_state_is_that_of_the_registers),
	KUNIT_CASE(dma_copies_descriptors),
	KUNIT_CASE(dma_copies_descriptors_out),
	KUNIT_CASE(dma_copy_setup_fails),
	KUNIT_CASE(dma_copy_covers),
	KUNIT_CASE(dma_copy_fails),
	KUNIT_CASE(dma_copy_again),
	KUNIT_CASE(dma_copy_polls),
	KUNIT_CASE(dma_copy_to_a_register_has_less_time),
	KUNIT_CASE(dma_user_memory_is_pinned),
	KUNIT_CASE(dma_user_memory_is_bounced),
	KUNIT_CASE(dma_writes_and_fills),
	KUNIT_CASE(dma_keeps_one_buffer),
	KUNIT_CASE(dma_nq_init_refuses),
	KUNIT_CASE(dma_nq_init_programs),
	KUNIT_CASE(dma_nq_init_fails),
	KUNIT_CASE(dma_nq_realloc_moves_the_eventfd),
	KUNIT_CASE(dma_nq_replaced_is_flushed),
	KUNIT_CASE(dma_nq_replaced_is_forgotten),
	KUNIT_CASE(dma_nq_eventfds),
	KUNIT_CASE(dma_nq_polls_phases),
	KUNIT_CASE(dma_nq_polls_heads),
	KUNIT_CASE(dma_nq_pauses),
	KUNIT_CASE(dma_nq_last),
	KUNIT_CASE(dma_async_refuses),
	KUNIT_CASE(dma_async_tokens),
	KUNIT_CASE(dma_async_core),
	KUNIT_CASE(dma_async_synchronous),
	KUNIT_CASE(dma_async_errors),
	KUNIT_CASE(dma_async_fences),
	KUNIT_CASE(dma_async_long),
	KUNIT_CASE(dma_async_undo),
	KUNIT_CASE(dma_async_eventfds),
	{}
};

static struct kunit_suite dma_suite = {
	.name = "neuron_dma",
	.init = dma_init,
	.exit = dma_exit,
	.test_cases = dma_cases,
};

kunit_test_suite(dma_suite);
