// SPDX-License-Identifier: GPL-2.0-only
/* Pools in the order of queues, a behaviour at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "random_side.h"
#include "test_pools.h"

#define GIB	(1ull << 30)

/* The calloc'th call from now fails; 0: none. */
static unsigned int calloc_fails;

void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size)
{
	if (calloc_fails && !--calloc_fails)
		return NULL;
	return __real_calloc(nr, size);
}

static int teardown(void **state)
{
	(void)state;
	calloc_fails = 0;
	fake.fail_at = 0;
	fake.no_bulk = false;
	fake.reason = NEURON_NATIVE_REASON_NONE;
	neuron_device_close(device);
	/* Nothing is left of a pool. */
	return fake.left_bytes || fake.left_handles || fake.dev[0].opens;
}

static void test_options(void **state)
{
	static const struct neuron_mem_pool_opts bad[] = {
		{ .size = sizeof(bad[0]), .align = 3 },
		{ .size = sizeof(bad[0]), .queues = NEURON_POOL_MAX_QUEUES + 1 },
		{ .size = sizeof(bad[0]), .init = 2 * MIB, .max = MIB },
		{ .size = sizeof(bad[0]), .init = UINT64_MAX },
		{ .size = sizeof(bad[0]), .init = (1ull << 48) + 1, .max = UINT64_MAX },
		{ .size = sizeof(bad[0]), .hbm = FAKE_HBMS, .init = MIB },
		{ .size = 4 },
	};
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_mem_pool_opts large = {
		.size = sizeof(large), .init = FAKE_HBM_SIZE + 4096, .failure = &failure,
	};
	struct neuron_mem_pool *pool = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(neuron_mem_pool_open(device, &bad[i], &pool), -EINVAL);
	assert_int_equal(neuron_mem_pool_open(device, NULL, NULL), -EINVAL);
	assert_int_equal(neuron_mem_pool_open(device, &large, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	large.init = 1ull << 48;
	assert_int_equal(neuron_mem_pool_open(device, &large, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	assert_null(pool);
	/* As much as there is. */
	pool = open_pool(MIB, UINT64_MAX, UINT64_MAX);
	give(take(pool, 4096, 0), 0);
	give(take(pool, FAKE_HBM_SIZE, 0), 0);
	give(take(pool, 4096, 0), 0);
	neuron_mem_pool_close(pool);
	neuron_mem_pool_close(NULL);
	assert_int_equal(neuron_mem_block_free(NULL, 0), 0);
}

static struct neuron_mem_failure refused_pool(uint64_t init)
{
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = init, .failure = &failure,
	};
	struct neuron_mem_pool *pool;

	memset(fake.dev[0].most, 0, sizeof(fake.dev[0].most));
	memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
	assert_int_equal(neuron_mem_pool_open(device, &opts, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	return failure;
}

/* A pool that there is no room for takes nothing meanwhile, and is told what there is. */
static void test_refused_at_once(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_CONSTANTS };
	struct neuron_mem_failure failure;
	struct neuron_mem *weights;

	(void)state;
	assert_int_equal(neuron_mem_alloc(device, 4 * GIB, &o, &weights), 0);
	failure = refused_pool(20 * GIB + 4096);
	assert_true(failure.bytes == 20 * GIB + 4096 && failure.free == 20 * GIB);
	assert_true(failure.largest_free == 20 * GIB && failure.total == 24 * GIB);
	assert_int_equal(fake.dev[0].most[0][NEURON_MEM_TENSORS], 0);
	assert_int_equal(fake.calls_nr[_IOC_NR(NEURON_NATIVE_MEM_ALLOC_BULK)], 0);
	neuron_mem_pool_close(open_pool(20 * GIB, 0, 0));
	neuron_mem_free(weights);
}

/* Without figures of the driver: what it got meanwhile, and gave back, is told as free. */
static void test_refused_late(void **state)
{
	struct neuron_mem_failure failure;

	(void)state;
	fake_fail(1, _IOC_NR(NEURON_NATIVE_HBM_STATS), EIO);
	fake.sticky = true;
	failure = refused_pool(25 * GIB);
	assert_true(fake.dev[0].most[0][NEURON_MEM_TENSORS] == 24 * GIB);
	assert_true(failure.bytes == 25 * GIB && failure.free == 24 * GIB);
	assert_int_equal(fake_used(), 0);
}

/* Memory that other pools do not use is there for one that is opened, in segments. */
static void test_open_reclaims(void **state)
{
	struct neuron_mem_pool *idle = open_pool(3 * GIB, 0, 0), *pool = open_pool(23 * GIB, 0, 0);

	(void)state;
	assert_true(stats_of(idle).segment.current == 0);
	assert_true(stats_of(pool).segment.current == 23 * 1024);
	neuron_mem_pool_close(pool);
	neuron_mem_pool_close(idle);
}

static void test_defaults(void **state)
{
	struct neuron_mem_block *block, *more;
	struct neuron_mem_pool *pool;

	(void)state;
	assert_int_equal(neuron_mem_pool_open(device, NULL, &pool), 0);
	assert_true(stats_of(pool).reserved_bytes.current == 2 * GIB);
	assert_true(fake.dev[0].by_category[NEURON_MEM_TENSORS] == 2 * GIB);
	/* A long block takes the place of unused segments, but for a few that short ones get. */
	block = take(pool, 2 * GIB, 0);
	more = take(pool, 1, 15);
	assert_true(stats_of(pool).reserved_bytes.current == 2 * GIB + 16 * MIB);
	assert_true(stats_of(pool).allocated_bytes.current == 2 * GIB + 512);
	assert_true(stats_of(pool).requested_bytes.current == 2 * GIB + 1);
	assert_true(neuron_mem_block_bytes(more) == 1);
	give(more, 15);
	/* One that is longer than an increase gets what it needs. */
	more = take(pool, 5 * GIB, 0);
	assert_true(stats_of(pool).reserved_bytes.current == 7 * GIB + 16 * MIB);
	give(more, 0);
	give(block, 0);
	neuron_mem_pool_close(pool);
}

/* The default takes what is there; the figures of the driver say how much that is. */
static void test_small_device(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	struct neuron_mem_pool *pool;
	struct neuron_mem *weights;

	(void)state;
	assert_int_equal(neuron_mem_alloc(device, FAKE_HBM_SIZE - 3 * MIB, &o, &weights), 0);
	assert_int_equal(neuron_mem_pool_open(device, NULL, &pool), 0);
	assert_true(stats_of(pool).reserved_bytes.current == 3 * MIB);
	neuron_mem_pool_close(pool);
	neuron_mem_free(weights);
}

static void test_hits_ask_nobody(void **state)
{
	struct neuron_mem_pool *pool = open_pool(64 * MIB, MIB, 0);
	struct neuron_mem_block *live[64] = { NULL };
	unsigned int calls = fake.calls;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		unsigned int at = (unsigned int)rnd(64);
		uint32_t queue = (uint32_t)rnd(4);

		give(live[at], queue);
		live[at] = take(pool, 1 + rnd(300000), queue);
	}
	assert_int_equal(fake.calls, calls);
	for (int i = 0; i < 64; i++)
		give(live[i], 0);
	neuron_mem_pool_close(pool);
}

/* The sentence: the same queue at once, another one when the free's point is complete. */
static void test_order(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, MIB);
	struct neuron_mem_block *block = take(pool, MIB, 1), *other = NULL;
	struct neuron_mem_failure failure;
	uint64_t first, second;

	(void)state;
	first = neuron_mem_pool_submit(pool, 1);
	second = neuron_mem_pool_submit(pool, 1);
	assert_true(first == 1 && second == 2);
	give(block, 1);
	assert_true(stats_of(pool).active_bytes == MIB);
	block = take(pool, MIB, 1);
	give(block, 1);
	assert_int_equal(neuron_mem_pool_complete(pool, 1, first), 0);
	assert_int_equal(neuron_mem_pool_alloc(pool, MIB, 2, &other, &failure), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_CAPPED);
	assert_true(failure.total == MIB && failure.bytes == MIB && !failure.free);
	assert_null(other);
	assert_int_equal(neuron_mem_pool_complete(pool, 1, second), 0);
	/* An old point takes nothing back. */
	assert_int_equal(neuron_mem_pool_complete(pool, 1, first), 0);
	assert_true(stats_of(pool).active_bytes == 0);
	other = take(pool, MIB, 2);
	give(other, 2);
	assert_int_equal(neuron_mem_pool_complete(pool, 1, second + 1), -EINVAL);
	assert_int_equal(neuron_mem_pool_complete(pool, 4, 0), -EINVAL);
	assert_true(neuron_mem_pool_submit(pool, 4) == 0);
	neuron_mem_pool_close(pool);
}

/* A block may be freed behind the work of another queue than that of its allocation. */
static void test_freed_in_another_queue(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, MIB);
	struct neuron_mem_block *block = take(pool, MIB, 0), *none;

	(void)state;
	neuron_mem_pool_submit(pool, 3);
	assert_int_equal(neuron_mem_block_free(block, 4), -EINVAL);
	give(block, 3);
	assert_int_equal(neuron_mem_pool_alloc(pool, MIB, 0, &none, NULL), -ENOMEM);
	give(take(pool, MIB, 3), 3);
	neuron_mem_pool_close(pool);
}

static void test_best_fit(void **state)
{
	static const uint64_t kib[] = { 64, 1, 16, 1, 17, 1, 16, 1, 300 };
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, MIB);
	struct neuron_mem_block *block[9], *got;
	uint64_t address[9];

	(void)state;
	for (int i = 0; i < 9; i++) {
		block[i] = take(pool, kib[i] << 10, 0);
		address[i] = neuron_mem_block_address(block[i]);
		assert_true(!i || address[i] == address[i - 1] + (kib[i - 1] << 10));
	}
	for (int i = 0; i < 8; i += 2)
		give(block[i], 0);
	got = take(pool, 16 << 10, 0);
	assert_true(neuron_mem_block_address(got) == address[2]);
	give(got, 0);
	got = take(pool, (16 << 10) + 1, 0);
	assert_true(neuron_mem_block_address(got) == address[4]);
	/* What was cut off is free, and joins its neighbours when they are. */
	give(block[5], 0);
	block[5] = take(pool, (17 << 10) + 512, 0);
	assert_true(neuron_mem_block_address(block[5]) == address[4] + (16 << 10) + 512);
	give(got, 0);
	for (int i = 1; i < 8; i += 2)
		give(block[i], 0);
	give(block[8], 0);
	assert_true(stats_of(pool).largest_inactive == MIB);
	neuron_mem_pool_close(pool);
}

/* What was freed is not freed again, whether it became a part of another one, waits, or not. */
static void test_freed_twice(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, MIB);
	struct neuron_mem_block *block[4];
	struct neuron_mem_pool_stats before, after;

	(void)state;
	for (int i = 0; i < 4; i++)
		block[i] = take(pool, 4096, 0);
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			neuron_mem_pool_submit(pool, 1);
		give(block[i], 1);
	}
	before = stats_of(pool);
	for (int i = 0; i < 3; i++)
		assert_int_equal(neuron_mem_block_free(block[i], 1), -EINVAL);
	after = stats_of(pool);
	assert_memory_equal(&before, &after, sizeof(before));
	/* Nor does that end the pool. */
	neuron_mem_pool_close(pool);
	assert_int_equal(neuron_mem_block_free(block[0], 1), -EINVAL);
	give(block[3], 1);
}

/* Ready blocks that lie between pending ones serve a long request of the queue. */
static void test_join(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, MIB);
	struct neuron_mem_block *block[16];

	(void)state;
	for (int i = 0; i < 16; i++)
		block[i] = take(pool, MIB / 16, 0);
	for (int i = 0; i < 16; i += 2)
		give(block[i], 2);
	neuron_mem_pool_submit(pool, 0);
	for (int i = 15; i > 0; i -= 2)
		give(block[i], 0);
	assert_int_equal(neuron_mem_pool_alloc(pool, MIB / 8, 1, &block[0], NULL), -ENOMEM);
	block[0] = take(pool, MIB, 0);
	give(block[0], 0);
	neuron_mem_pool_close(pool);
}

static void test_trim(void **state)
{
	struct neuron_mem_pool *pool = open_pool(4 * MIB, 4 * MIB, 0);
	struct neuron_mem_block *block[4];
	uint64_t returned;

	(void)state;
	for (int i = 0; i < 4; i++)
		block[i] = take(pool, 4 * MIB, 0);
	assert_true(stats_of(pool).reserved_bytes.current == 20 * MIB);
	give(block[0], 0);
	give(block[1], 0);
	give(block[2], 0);
	neuron_mem_pool_submit(pool, 0);
	give(block[3], 0);
	/* One is pending: the driver does not get it back. */
	neuron_mem_pool_trim(pool, 10 * MIB + 1, &returned);
	assert_true(returned == 10 * MIB - 4096);
	neuron_mem_pool_trim(pool, 0, &returned);
	assert_true(returned == 6 * MIB + 4096 && fake_used() == 4 * MIB);
	neuron_mem_pool_complete(pool, 0, 1);
	/* What is used keeps its segment, whose end goes. */
	block[0] = take(pool, MIB / 2 + 1, 0);
	assert_true(stats_of(pool).reserved_bytes.current == 4 * MIB);
	neuron_mem_pool_trim(pool, 0, &returned);
	assert_true(returned == 4 * MIB - fake_used() && fake_used() == MIB / 2 + 4096);
	assert_true(stats_of(pool).inactive_bytes == 4096 - 512);
	assert_true(stats_of(pool).inactive_split_bytes == 4096 - 512);
	give(block[0], 0);
	neuron_mem_pool_trim(pool, 0, NULL);
	assert_int_equal(fake_used(), 0);
	assert_true(stats_of(pool).segment.current == 0 && stats_of(pool).segment.freed == 12);
	give(take(pool, 1, 0), 0);
	neuron_mem_pool_close(pool);
}

/* Segments that are unused go before a request is refused, and what they were is in the figures. */
static void test_retry(void **state)
{
	struct neuron_mem_pool *pool = open_pool(8 * GIB, 8 * GIB, 0);
	struct neuron_mem_block *a = take(pool, 8 * GIB, 0), *b = take(pool, 8 * GIB, 0);
	struct neuron_mem_failure failure;
	struct neuron_mem_pool_stats before, after;
	struct neuron_mem_block *none;

	(void)state;
	give(a, 0);
	give(b, 0);
	a = take(pool, 20 * GIB, 0);
	assert_int_equal(stats_of(pool).num_alloc_retries, 0);
	give(a, 0);
	a = take(pool, 24 * GIB - 8 * MIB, 0);
	before = stats_of(pool);
	assert_true(before.num_alloc_retries == 1 && before.num_ooms == 0);
	assert_true(before.reserved_bytes.current == 24 * GIB - 8 * MIB);
	assert_int_equal(neuron_mem_pool_alloc(pool, 5 * GIB, 0, &none, &failure), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	assert_true(failure.free == 8 * MIB);
	after = stats_of(pool);
	assert_true(after.num_ooms == 1);
	/* Nothing else has changed. */
	after.num_ooms = before.num_ooms;
	after.num_alloc_retries = before.num_alloc_retries;
	assert_memory_equal(&before, &after, sizeof(before));
	/* Of a smaller one than an increase the driver has enough. */
	b = take(pool, 1, 0);
	assert_true(stats_of(pool).reserved_bytes.current == 24 * GIB);
	give(b, 0);
	give(a, 0);
	neuron_mem_pool_reset_peak(pool);
	assert_true(stats_of(pool).allocated_bytes.peak == 0);
	assert_int_equal(neuron_mem_pool_alloc(pool, 0, 0, &none, NULL), -EINVAL);
	assert_int_equal(neuron_mem_pool_alloc(pool, UINT64_MAX, 0, &none, NULL), -ENOMEM);
	assert_int_equal(neuron_mem_pool_alloc(pool, 1, 4, &none, NULL), -EINVAL);
	neuron_mem_pool_close(pool);
}

/* What a pool does not use is there for others: models, and other pools. */
static void test_reclaim(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_CONSTANTS };
	struct neuron_mem_pool *idle = open_pool(16 * GIB, GIB, 0), *busy = open_pool(GIB, GIB, 0);
	struct neuron_mem_block *used = take(idle, GIB, 0), *pending = take(idle, GIB, 0), *block;
	struct neuron_mem *weights, *more;

	(void)state;
	block = take(busy, 20 * GIB, 0);
	assert_true(stats_of(idle).reserved_bytes.current == 2 * GIB);
	give(block, 0);
	assert_int_equal(neuron_mem_alloc(device, 20 * GIB, &o, &weights), 0);
	/* Memory that the device may still use stays. */
	neuron_mem_pool_submit(idle, 0);
	give(pending, 0);
	assert_int_equal(neuron_mem_alloc(device, 3 * GIB, &o, &more), -ENOMEM);
	neuron_mem_pool_complete(idle, 0, 1);
	assert_int_equal(neuron_mem_alloc(device, 3 * GIB, &o, &more), 0);
	assert_true(fake_used() == 24 * GIB && stats_of(busy).segment.current == 0);
	neuron_mem_free(more);
	neuron_mem_free(weights);
	give(used, 0);
	neuron_mem_pool_close(idle);
	neuron_mem_pool_close(busy);
}

struct waiting {
	unsigned int calls;
	uint32_t queue;
	uint64_t point;
	int ret;
};

static int wait_fn(void *data, uint32_t queue, uint64_t point)
{
	struct waiting *w = data;

	w->calls++;
	w->queue = queue;
	w->point = point;
	return w->ret;
}

/* What can never fit is not waited for, and nothing goes for it. */
static void test_too_long(void **state)
{
	static const uint64_t bytes[] = {
		8 * MIB, 7 * MIB + 4096, 7 * MIB + 512, 1ull << 48, (1ull << 48) + 1, UINT64_MAX,
	};
	struct waiting waiting = { 0 };
	const struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = 4 * MIB, .max = 7 * MIB + 1024, .wait = wait_fn,
		.data = &waiting,
	};
	struct neuron_mem_pool *pool;
	struct neuron_mem_block *block = NULL;
	unsigned int calls;

	(void)state;
	assert_int_equal(neuron_mem_pool_open(device, &opts, &pool), 0);
	give(take(pool, 4096, 1), 1);
	neuron_mem_pool_submit(pool, 0);
	give(take(pool, 4096, 0), 0);
	calls = fake.calls;
	for (unsigned int i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };

		assert_int_equal(neuron_mem_pool_alloc(pool, bytes[i], 0, &block, &failure),
				 -ENOMEM);
		assert_int_equal(failure.reason, NEURON_MEM_REASON_CAPPED);
		assert_true(failure.bytes == bytes[i] && failure.total == opts.max);
		assert_true(failure.free == 3 * MIB);
		assert_int_equal(stats_of(pool).num_ooms, i + 1);
	}
	assert_true(!waiting.calls && fake.calls == calls && !block);
	assert_true(stats_of(pool).num_alloc_retries == 0 && stats_of(pool).active_bytes == 4096);
	assert_true(stats_of(pool).reserved_bytes.current == 4 * MIB);
	/* All of the pool is worth both. */
	give(take(pool, 7 * MIB, 0), 0);
	assert_int_equal(waiting.calls, 1);
	neuron_mem_pool_close(pool);
}

static void test_wait(void **state)
{
	struct waiting waiting = { .ret = -ETIMEDOUT };
	const struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = MIB, .max = MIB, .wait = wait_fn, .data = &waiting,
	};
	struct neuron_mem_pool *pool;
	struct neuron_mem_block *block;

	(void)state;
	assert_int_equal(neuron_mem_pool_open(device, &opts, &pool), 0);
	block = take(pool, MIB, 7);
	neuron_mem_pool_submit(pool, 7);
	give(block, 7);
	assert_int_equal(neuron_mem_pool_alloc(pool, MIB, 0, &block, NULL), -ENOMEM);
	assert_int_equal(waiting.calls, 1);
	waiting.ret = 0;
	block = take(pool, MIB, 0);
	assert_true(waiting.calls == 2 && waiting.queue == 7 && waiting.point == 1);
	give(block, 0);
	neuron_mem_pool_close(pool);
}

static unsigned int calls(unsigned long cmd)
{
	return fake.calls_nr[_IOC_NR(cmd)];
}

/* Many segments at once, and back; one by one with a driver that knows no other way. */
static void test_few_calls(void **state)
{
	static struct neuron_mem_block *block[3 * 1024];
	struct neuron_mem_pool *pool;
	uint64_t returned;

	(void)state;
	for (int bulk = 0; bulk < 2; bulk++) {
		fake.no_bulk = !bulk;
		memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
		pool = open_pool(GIB, 2 * GIB, 0);
		for (int i = 0; i < 3 * 1024; i++) {
			block[i] = take(pool, MIB, 0);
			assert_true(fake_used() == (i < 1024 ? 1 : 3) * GIB);
		}
		assert_true(stats_of(pool).segment.current == 3 * 1024);
		assert_int_equal(calls(NEURON_NATIVE_MEM_ALLOC), bulk ? 0 : 3 * 1024);
		if (bulk)
			assert_int_equal(calls(NEURON_NATIVE_MEM_ALLOC_BULK), 3);
		for (int i = 0; i < 3 * 1024; i += 2)
			give(block[i], 0);
		memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
		neuron_mem_pool_trim(pool, 0, &returned);
		assert_true(returned == 1536 * MIB && fake_used() == 1536 * MIB);
		assert_int_equal(calls(NEURON_IOCTL_MEM_FREE), bulk ? 0 : 1536);
		if (bulk)
			assert_int_equal(calls(NEURON_NATIVE_MEM_FREE_BULK), 2);
		for (int i = 1; i < 3 * 1024; i += 2)
			give(block[i], 0);
		neuron_mem_pool_close(pool);
	}
}

/* A driver that has less than what is to be reserved gives what it has. */
static void test_part(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS };
	struct neuron_mem_pool *pool = open_pool(MIB, GIB, 0);
	struct neuron_mem_block *block = take(pool, MIB, 0), *more;
	struct neuron_mem *weights;

	(void)state;
	assert_int_equal(neuron_mem_alloc(device, 23 * GIB, &o, &weights), 0);
	/* The driver's figures are of before somebody was quicker. */
	fake_fail(1, _IOC_NR(NEURON_NATIVE_HBM_STATS), EIO);
	more = take(pool, 1, 0);
	assert_true(stats_of(pool).reserved_bytes.current == GIB);
	assert_int_equal(stats_of(pool).num_alloc_retries, 0);
	give(more, 0);
	give(block, 0);
	neuron_mem_free(weights);
	neuron_mem_pool_close(pool);
}

/* Of one length more and more at once; what is beside it stays as it was. */
static void test_alike(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, GIB, 0);
	struct neuron_mem_block *block[512];

	(void)state;
	memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
	for (int i = 0; i < 512; i++)
		block[i] = take(pool, 8 * MIB, 0);
	assert_true(calls(NEURON_NATIVE_MEM_ALLOC) + calls(NEURON_NATIVE_MEM_ALLOC_BULK) < 160);
	assert_true(fake_used() <= 512 * 8 * MIB * 5 / 4);
	memset(fake.calls_nr, 0, sizeof(fake.calls_nr));
	for (int i = 0; i < 512; i++)
		give(block[i], 0);
	/* What was freed is beyond what may stay unused: it goes with a few calls. */
	block[0] = take(pool, 9 * MIB, 0);
	assert_true(fake_used() == 10 * MIB);
	assert_in_range(calls(NEURON_NATIVE_MEM_FREE_BULK), 1, 2);
	assert_int_equal(calls(NEURON_IOCTL_MEM_FREE), 0);
	give(block[0], 0);
	neuron_mem_pool_close(pool);
}

/* A pool stays until its last block is freed. */
static void test_close_first(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, 0);
	struct neuron_mem_block *a = take(pool, 4096, 0), *b = take(pool, 4096, 0);
	uint64_t got = 0;
	const uint64_t word = 0x123456789abcdef;

	(void)state;
	neuron_mem_pool_close(pool);
	assert_int_equal(neuron_mem_write(neuron_mem_block_mem(b), neuron_mem_block_offset(b),
					  &word, 8), 0);
	assert_true(neuron_mem_block_offset(b) == 4096);
	give(a, 0);
	assert_int_equal(neuron_mem_read(neuron_mem_block_mem(b), neuron_mem_block_offset(b),
					 &got, 8), 0);
	assert_true(got == word);
	assert_int_equal(fake_used(), MIB);
	give(b, 0);
	assert_int_equal(fake_used(), 0);
}

static void test_align(void **state)
{
	const struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = 3 * MIB, .align = MIB, .hbm = 1,
	};
	struct neuron_mem_pool *pool;
	struct neuron_mem_block *a, *b;

	(void)state;
	assert_int_equal(neuron_mem_pool_open(device, &opts, &pool), 0);
	a = take(pool, 1, 0);
	b = take(pool, MIB + 1, 0);
	assert_true(neuron_mem_block_address(a) % MIB == 0);
	assert_true(neuron_mem_block_address(b) % MIB == 0);
	assert_true(stats_of(pool).allocated_bytes.current == 3 * MIB);
	assert_true(fake.dev[0].used[1] == 5 * MIB);
	give(a, 0);
	give(b, 0);
	neuron_mem_pool_close(pool);
}

/* Each allocation of host memory fails in turn: -ENOMEM, and the next try succeeds. */
static void test_host_memory(void **state)
{
	struct neuron_mem_failure failure;
	const struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = 64 * MIB, .failure = &failure,
	};
	struct neuron_mem_block *live[200] = { NULL };
	struct neuron_mem_pool *pool;
	unsigned int n = 0, refused = 0;

	(void)state;
	for (;;) {
		memset(&failure, 0x5a, sizeof(failure));
		calloc_fails = ++n;
		if (!neuron_mem_pool_open(device, &opts, &pool))
			break;
		assert_int_equal(failure.reason, NEURON_MEM_REASON_HOST);
		assert_true(failure.bytes == 64 * MIB);
	}
	assert_true(n > 3);
	for (int i = 0; i < 200; i++) {
		memset(&failure, 0x5a, sizeof(failure));
		calloc_fails = 1;
		if (neuron_mem_pool_alloc(pool, 4096, 0, &live[i], &failure)) {
			refused++;
			assert_int_equal(failure.reason, NEURON_MEM_REASON_HOST);
			assert_true(failure.bytes == 4096);
			live[i] = take(pool, 4096, 0);
		}
	}
	calloc_fails = 0;
	assert_true(refused > 1 && stats_of(pool).num_ooms == refused);
	for (int i = 0; i < 200; i++)
		give(live[i], 0);
	neuron_mem_pool_close(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_reclaims, setup, teardown),
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_small_device, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hits_ask_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_freed_in_another_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_best_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_freed_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_join, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reclaim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_part, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alike, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_align, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
