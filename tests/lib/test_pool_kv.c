// SPDX-License-Identifier: GPL-2.0-only
/* Paged pools of keys and values: sizes, sharing, eviction and what comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "fake_driver.h"
#include "random_side.h"
#include "src/memory/kv.h"

#define KIB	(1ull << 10)
#define BLOCK	4u		/* tokens */
#define TOKEN	8u		/* bytes */

static struct neuron_device *device;
static char lines[8][160];
static unsigned int nr_lines;

static void log_line(void *data, const char *line)
{
	assert_ptr_equal(data, lines);
	snprintf(lines[nr_lines++ % 8], sizeof(lines[0]), "%s", line);
}

static int setup(void **state)
{
	(void)state;
	nr_lines = 0;
	return neuron_device_open(0, &device);
}

static int teardown(void **state)
{
	(void)state;
	fake.fail_at = 0;
	memset(fake.dev[0].limit, 0, sizeof(fake.dev[0].limit));
	neuron_device_close(device);
	return fake.left_bytes || fake.left_handles || fake.dev[0].opens;
}

static struct neuron_kv_pool *open_pool(uint64_t blocks, uint64_t host)
{
	const struct neuron_kv_opts opts = {
		.size = sizeof(opts), .block_tokens = BLOCK, .token_bytes = TOKEN, .nc = 1,
		.max_tokens = blocks * BLOCK, .host_bytes = host * BLOCK * TOKEN,
		.log = log_line, .data = lines,
	};
	struct neuron_kv_pool *pool;

	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), 0);
	return pool;
}

static struct neuron_kv_stats stats_of(struct neuron_kv_pool *pool)
{
	struct neuron_kv_stats stats = { .size = sizeof(stats) };

	assert_int_equal(neuron_kv_pool_get_stats(pool, &stats), 0);
	assert_true(stats.blocks == stats.free_blocks + stats.active_blocks +
		    stats.inactive_blocks);
	return stats;
}

static struct neuron_kv_seq *open_seq(struct neuron_kv_pool *pool, uint32_t priority,
				      uint64_t tokens)
{
	struct neuron_kv_seq *seq;

	assert_int_equal(neuron_kv_seq_open(pool, priority, &seq), 0);
	assert_int_equal(neuron_kv_seq_append(seq, tokens), 0);
	return seq;
}

/* ---- sizes ------------------------------------------------------------------------- */

/* What users know: 79.10 GiB, of which 70.48 are available, and a quarter of a MiB a token. */
static void test_known_example(void **state)
{
	static const char *const expected[] = {
		"Memory usage when calculating max tokens in paged kv cache: total: 79.10 GiB, "
		"available: 70.48 GiB",
		"Number of blocks in KV cache primary pool: 4060",
		"Number of blocks in KV cache secondary pool: 0, onboard blocks to primary memory "
		"before reuse: true",
		"Max KV cache pages per sequence: 32",
		"Number of tokens per block: 64.",
		"[MemUsageChange] Allocated 63.44 GiB for max tokens in paged KV cache (259840).",
	};
	const struct neuron_kv_opts opts = {
		.size = sizeof(opts), .token_bytes = 256 * KIB, .max_seq_tokens = 2048,
		.log = log_line, .data = lines,
	};
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_CONSTANTS };
	struct neuron_kv_seq *seq, *more;
	struct neuron_kv_pool *pool;
	struct neuron_mem *weights;

	(void)state;
	/* 70.48 GiB, in pages. */
	assert_int_equal(neuron_mem_alloc(device, FAKE_HBM_SIZE - 18475909ull * 4096, &o,
					  &weights), 0);
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), 0);
	assert_int_equal(nr_lines, 6);
	for (int i = 0; i < 6; i++)
		assert_string_equal(lines[i], expected[i]);
	assert_int_equal(stats_of(pool).blocks, 4060);
	assert_true(stats_of(pool).reserved_bytes == 4060ull << 24);
	assert_int_equal(neuron_kv_seq_open(pool, 0, &more), 0);
	assert_int_equal(neuron_kv_seq_append(more, 2049), -EFBIG);
	neuron_kv_seq_close(more);
	/* All but the last 28 of the 4,060. */
	struct neuron_kv_seq *all[126];

	for (int i = 0; i < 126; i++)
		all[i] = open_seq(pool, 0, 2048);
	seq = open_seq(pool, 0, 28 * 64);
	assert_int_equal(neuron_kv_seq_open(pool, 0, &more), 0);
	assert_int_equal(neuron_kv_seq_append(more, 1), -ENOBUFS);
	assert_string_equal(lines[6], "Can't allocate new blocks. No free blocks left");
	assert_true(stats_of(pool).num_ooms == 1 && !neuron_kv_seq_tokens(more));
	for (int i = 0; i < 126; i++)
		neuron_kv_seq_close(all[i]);
	neuron_kv_seq_close(seq);
	neuron_kv_seq_close(more);
	assert_true(stats_of(pool).free_blocks == 4060);
	neuron_kv_pool_close(pool);
	neuron_mem_free(weights);
}

static uint64_t planned(double fraction, uint64_t max_tokens, uint32_t block, uint64_t token,
			uint64_t free_bytes)
{
	const struct neuron_kv_opts opts = {
		.size = sizeof(opts), .fraction = fraction, .max_tokens = max_tokens,
		.block_tokens = block, .token_bytes = token,
	};
	uint64_t blocks;

	assert_int_equal(neuron_kv_plan(&opts, free_bytes, &blocks), 0);
	return blocks;
}

/* Of any fraction, limit and free memory: what is promised, and the smaller of both wins. */
static void test_plan(void **state)
{
	(void)state;
	for (int i = 0; i < 300000; i++) {
		double fraction = (double)(1 + rnd(1000)) / 1000;
		uint32_t block = 1u << rnd(9);
		uint64_t token = 1 + rnd(1 << rnd(22)), free_bytes = rnd(1ull << rnd(40));
		uint64_t max = 1 + rnd(1ull << rnd(30)), bytes = block * token;
		uint64_t by_fraction = planned(fraction, 0, block, token, free_bytes);
		uint64_t by_tokens = planned(0, max, block, token, free_bytes);
		uint64_t both = planned(fraction, max, block, token, free_bytes);
		bool most = by_fraction == NEURON_KV_MAX_BLOCKS;

		assert_true(by_fraction * bytes <= free_bytes && by_tokens * bytes <= free_bytes);
		assert_true(both == MIN(by_fraction, by_tokens));
		/* No more than the fraction but for the last block, and no whole block less. */
		assert_true((double)by_fraction * (double)bytes <
			    (double)free_bytes * fraction + (double)bytes + 1);
		assert_true(most || (double)(by_fraction + 1) * (double)bytes >
			    (double)free_bytes * fraction - 1);
		assert_true(by_tokens * block >= max || (by_tokens + 1) * bytes > free_bytes);
		assert_true((by_tokens - (by_tokens > 0)) * block < max);
		assert_true(planned(0, 0, block, token, free_bytes) ==
			    planned(0.9, 0, block, token, free_bytes));
	}
}

/* What is planned is what a pool gets, as far as one is opened. */
static void test_plan_is_kept(void **state)
{
	const uint64_t hbm = FAKE_HBM_SIZE;
	const struct neuron_kv_opts opts[] = {
		{ .size = sizeof(opts[0]), .token_bytes = 1 << 20 },
		{ .size = sizeof(opts[0]), .token_bytes = 1 << 20, .max_tokens = 100 },
		{ .size = sizeof(opts[0]), .token_bytes = 1 << 20, .max_tokens = hbm >> 26 << 6 },
		{ .size = sizeof(opts[0]), .token_bytes = 1 << 20, .max_tokens = 1 << 20,
		  .fraction = 1 },
		/* Less than a token. */
		{ .size = sizeof(opts[0]), .token_bytes = 1 << 20, .fraction = 1e-6 },
		{ .size = sizeof(opts[0]), .token_bytes = 1 << 20, .fraction = 1e-6,
		  .max_tokens = 1 << 20 },
		/* Not one block. */
		{ .size = sizeof(opts[0]), .token_bytes = hbm >> 5 },
		{ .size = sizeof(opts[0]), .token_bytes = hbm >> 5, .fraction = 1e-6 },
		{ .size = sizeof(opts[0]), .token_bytes = hbm >> 5, .max_tokens = 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(opts) / sizeof(opts[0]); i++) {
		struct neuron_kv_pool *pool;
		uint64_t blocks;

		assert_int_equal(neuron_kv_plan(&opts[i], hbm, &blocks), 0);
		assert_int_equal(neuron_kv_pool_open(device, &opts[i], &pool),
				 blocks ? 0 : -ENOMEM);
		if (!blocks)
			continue;
		assert_true(stats_of(pool).blocks == blocks);
		neuron_kv_pool_close(pool);
	}
	/* Of tokens alone that there is not room for, how many there is room for. */
	assert_true(planned(0, hbm, 64, 1 << 20, hbm) == hbm >> 26);
}

static void test_options(void **state)
{
	static const struct neuron_kv_opts bad[] = {
		{ .size = sizeof(bad[0]) },
		{ .size = sizeof(bad[0]), .token_bytes = 1, .fraction = 1.01 },
		{ .size = sizeof(bad[0]), .token_bytes = 1, .fraction = -0.1 },
		{ .size = sizeof(bad[0]), .token_bytes = 1, .fraction = 0. / 0. },
		{ .size = sizeof(bad[0]), .token_bytes = UINT64_MAX },
		{ .size = sizeof(bad[0]), .token_bytes = 1, .hbm = FAKE_HBMS },
	};
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_kv_opts large = {
		.size = sizeof(large), .token_bytes = 1 << 20, .max_tokens = FAKE_HBM_SIZE >> 20,
		.failure = &failure, .host_bytes = 64 << 20,
	};
	struct neuron_kv_pool *pool = NULL;
	struct neuron_kv_seq *seq;
	uint64_t blocks;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(neuron_kv_pool_open(device, &bad[i], &pool), -EINVAL);
	assert_int_equal(neuron_kv_plan(&bad[1], 1, &blocks), -EINVAL);
	assert_int_equal(neuron_kv_plan(&large, 1, NULL), -EINVAL);
	/* Tokens that were named are wanted, all of them. */
	large.max_tokens += 64;
	assert_int_equal(neuron_kv_pool_open(device, &large, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	/* Not so with a fraction, even of all. */
	large.fraction = 1;
	assert_int_equal(neuron_kv_pool_open(device, &large, &pool), 0);
	assert_true(stats_of(pool).blocks == FAKE_HBM_SIZE >> 26);
	assert_true(stats_of(pool).host_blocks == 1);
	assert_int_equal(neuron_kv_seq_open(pool, NEURON_KV_MAX_PRIORITY + 1, &seq), -EINVAL);
	neuron_kv_pool_close(pool);
	/* Not one block. */
	large.token_bytes = FAKE_HBM_SIZE >> 5;
	assert_int_equal(neuron_kv_pool_open(device, &large, &pool), -ENOMEM);
	neuron_kv_pool_close(NULL);
	neuron_kv_seq_close(NULL);
}

/* Tokens that were named, but whose bytes or blocks are more than can be counted. */
static void test_too_many(void **state)
{
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_kv_opts opts = {
		.size = sizeof(opts), .block_tokens = 1, .token_bytes = (1ull << 47) + 1,
		.max_tokens = 1 << 17, .failure = &failure,
	};
	struct neuron_kv_pool *pool;

	(void)state;
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	/* 2^64 - 1: no page is added. */
	opts.token_bytes = UINT64_MAX / 42009217;
	opts.max_tokens = 42009217;
	assert_true(opts.token_bytes * opts.max_tokens == UINT64_MAX);
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	opts.token_bytes = 1;
	opts.max_tokens = NEURON_KV_MAX_BLOCKS + 1;
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_NONE);
}

/*
 * More than there is: nothing is taken meanwhile, and what there is is told. What other pools do
 * not use counts as free.
 */
static void test_refused_at_once(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_CONSTANTS };
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_kv_opts opts = {
		.size = sizeof(opts), .token_bytes = 1 << 20, .max_tokens = 40 << 10, .nc = 1,
		.failure = &failure,
	};
	const uint64_t there = FAKE_HBM_SIZE - (50ull << 30);
	struct neuron_mem_pool *idle;
	struct neuron_kv_pool *pool;
	struct neuron_mem *weights;

	(void)state;
	assert_int_equal(neuron_mem_alloc(device, 50ull << 30, &o, &weights), 0);
	memset(fake.dev[0].most, 0, sizeof(fake.dev[0].most));
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FULL);
	assert_true(failure.bytes == 40ull << 30 && failure.free == there);
	assert_true(failure.largest_free == there && failure.total == FAKE_HBM_SIZE);
	assert_int_equal(fake.dev[0].most[1][NEURON_MEM_TENSORS], 0);
	assert_int_equal(neuron_mem_pool_open(device, NULL, &idle), 0);
	opts.max_tokens = there >> 26 << 6;
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), 0);
	neuron_mem_pool_close(idle);
	neuron_kv_pool_close(pool);
	/* More than can be counted. */
	opts.max_tokens = 1ull << 50;
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), -ENOMEM);
	assert_true(failure.free == there && failure.largest_free == there);
	neuron_mem_free(weights);
}

/* Limits count like memory that is not free. */
static void test_limits(void **state)
{
	struct neuron_kv_opts opts = { .size = sizeof(opts), .token_bytes = 1 << 20 };
	struct neuron_kv_pool *pool;

	(void)state;
	fake.dev[0].limit[NEURON_LIMIT_PROCESS][0] = 10ull << 30;
	assert_int_equal(neuron_kv_pool_open(device, &opts, &pool), 0);
	assert_true(stats_of(pool).blocks == 144);
	neuron_kv_pool_close(pool);
}

/* ---- sequences --------------------------------------------------------------------- */

/* Tokens of a sequence have numbers of their own. */
static void put(struct neuron_kv_seq *seq, uint64_t token, uint64_t value)
{
	struct neuron_mem *mem;
	uint64_t offset;

	assert_int_equal(neuron_kv_seq_locate(seq, token, &mem, &offset, NULL), 0);
	assert_int_equal(neuron_mem_write(mem, offset, &value, TOKEN), 0);
}

static uint64_t get(struct neuron_kv_seq *seq, uint64_t token)
{
	struct neuron_mem *mem;
	uint64_t offset, value = 0;

	assert_int_equal(neuron_kv_seq_locate(seq, token, &mem, &offset, NULL), 0);
	assert_int_equal(neuron_mem_read(mem, offset, &value, TOKEN), 0);
	return value;
}

static void test_sequence(void **state)
{
	struct neuron_kv_pool *pool = open_pool(8, 0);
	struct neuron_kv_seq *seq = open_seq(pool, 0, 10);
	const uint64_t *address;
	uint64_t offset, tokens;
	struct neuron_mem *mem;
	size_t n;

	(void)state;
	assert_true(neuron_kv_seq_tokens(seq) == 10 && stats_of(pool).free_blocks == 5);
	assert_int_equal(neuron_kv_seq_blocks(seq, &address, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(neuron_kv_seq_blocks(seq, NULL, &n), -EINVAL);
	assert_int_equal(neuron_kv_seq_blocks(seq, &address, NULL), -EINVAL);
	assert_int_equal(neuron_kv_seq_locate(seq, 0, NULL, &offset, NULL), -EINVAL);
	assert_int_equal(neuron_kv_seq_locate(seq, 0, &mem, NULL, NULL), -EINVAL);
	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(neuron_kv_seq_locate(seq, i, &mem, &offset, &tokens), 0);
		assert_true(neuron_mem_address(mem) + offset ==
			    address[i / BLOCK] + i % BLOCK * TOKEN);
		assert_true(tokens == MIN(BLOCK - i % BLOCK, 10 - i));
	}
	assert_int_equal(neuron_kv_seq_locate(seq, 10, &mem, &offset, NULL), -EINVAL);
	assert_int_equal(neuron_kv_seq_append(seq, 2), 0);
	assert_true(stats_of(pool).free_blocks == 5);
	assert_int_equal(neuron_kv_seq_append(seq, 21), -ENOBUFS);
	assert_int_equal(neuron_kv_seq_append(seq, UINT64_MAX), -EFBIG);
	assert_true(neuron_kv_seq_tokens(seq) == 12 && stats_of(pool).free_blocks == 5);
	assert_int_equal(neuron_kv_seq_append(seq, 20), 0);
	assert_int_equal(neuron_kv_seq_truncate(seq, 33), -EINVAL);
	assert_int_equal(neuron_kv_seq_truncate(seq, 5), 0);
	assert_true(stats_of(pool).free_blocks == 6 && stats_of(pool).allocated_blocks.peak == 8);
	assert_int_equal(neuron_kv_seq_pin(seq), -EALREADY);
	assert_int_equal(neuron_kv_seq_unpin(seq), 0);
	assert_int_equal(neuron_kv_seq_unpin(seq), -EALREADY);
	assert_int_equal(neuron_kv_seq_append(seq, 1), -EAGAIN);
	assert_int_equal(neuron_kv_seq_blocks(seq, &address, &n), -EAGAIN);
	assert_int_equal(neuron_kv_seq_locate(seq, 0, &mem, &offset, NULL), -EAGAIN);
	assert_int_equal(neuron_kv_seq_fork(seq, 0, 0, &seq), -EAGAIN);
	/* The pool goes with its last sequence. */
	neuron_kv_pool_close(pool);
	assert_int_equal(neuron_kv_seq_pin(seq), 0);
	neuron_kv_seq_close(seq);
	assert_int_equal(fake_used(), 0);
}

static void test_copy_on_write(void **state)
{
	struct neuron_kv_pool *pool = open_pool(8, 0);
	struct neuron_kv_seq *seq = open_seq(pool, 0, 6), *child, *second;
	const uint64_t *a, *b;
	size_t n;

	(void)state;
	for (uint64_t i = 0; i < 6; i++)
		put(seq, i, 100 + i);
	assert_int_equal(neuron_kv_seq_fork(seq, 7, 0, &child), -EINVAL);
	assert_int_equal(neuron_kv_seq_fork(seq, 5, 0, &child), 0);
	assert_int_equal(neuron_kv_seq_fork(seq, 4, 0, &second), 0);
	assert_true(stats_of(pool).free_blocks == 6 && stats_of(pool).shared_blocks == 2);
	assert_int_equal(neuron_kv_seq_append(child, 1), 0);
	put(child, 5, 7);
	assert_true(stats_of(pool).copies_on_write == 1 && stats_of(pool).shared_blocks == 1);
	assert_int_equal(neuron_kv_seq_append(second, 1), 0);
	assert_true(stats_of(pool).copies_on_write == 1 && stats_of(pool).free_blocks == 4);
	put(second, 4, 9);
	for (uint64_t i = 0; i < 6; i++)
		assert_true(get(seq, i) == 100 + i && get(child, i) == (i == 5 ? 7 : 100 + i));
	assert_int_equal(neuron_kv_seq_blocks(seq, &a, &n), 0);
	assert_int_equal(neuron_kv_seq_blocks(child, &b, &n), 0);
	assert_true(a[0] == b[0] && a[1] != b[1]);
	/* The last one writes in place. */
	neuron_kv_seq_close(child);
	assert_int_equal(neuron_kv_seq_append(seq, 1), 0);
	assert_true(stats_of(pool).copies_on_write == 1);
	/* A copy that fails leaves everything as it was. */
	assert_int_equal(neuron_kv_seq_fork(seq, 7, 0, &child), 0);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_MEM_COPY64), EIO);
	assert_int_equal(neuron_kv_seq_append(child, 1), -EIO);
	assert_true(neuron_kv_seq_tokens(child) == 7 && stats_of(pool).shared_blocks == 2);
	assert_true(stats_of(pool).free_blocks == 5 && get(child, 5) == 105);
	neuron_kv_seq_close(child);
	neuron_kv_seq_close(second);
	neuron_kv_seq_close(seq);
	assert_true(stats_of(pool).free_blocks == 8 && !stats_of(pool).allocated_blocks.current);
	neuron_kv_pool_close(pool);
}

static bool on_device(const struct neuron_kv_seq *seq, size_t block)
{
	return seq->pool->page[seq->page[block]].side == KV_DEVICE;
}

/* The lowest priority first, of these what was unpinned first, and the end of a sequence first. */
static void test_eviction_order(void **state)
{
	struct neuron_kv_pool *pool = open_pool(8, 8);
	struct neuron_kv_seq *high = open_seq(pool, 70, 8), *old = open_seq(pool, 3, 8);
	struct neuron_kv_seq *young = open_seq(pool, 3, 8), *pinned = open_seq(pool, 0, 8);

	(void)state;
	assert_int_equal(neuron_kv_seq_unpin(high), 0);
	assert_int_equal(neuron_kv_seq_unpin(old), 0);
	assert_int_equal(neuron_kv_seq_unpin(young), 0);
	for (unsigned int i = 1; i <= 6; i++) {
		assert_int_equal(neuron_kv_pool_evict(pool, i), 0);
		assert_int_equal(kv_settle(pool), 0);
		assert_int_equal(on_device(old, 1) + on_device(old, 0), i > 1 ? 0 : 1);
		assert_int_equal(on_device(old, 0), i < 2);
		assert_int_equal(on_device(young, 1), i < 3);
		assert_int_equal(on_device(young, 0), i < 4);
		assert_int_equal(on_device(high, 1), i < 5);
		assert_int_equal(on_device(high, 0), i < 6);
	}
	assert_int_equal(neuron_kv_pool_evict(pool, 7), -ENOBUFS);
	assert_true(on_device(pinned, 0) && on_device(pinned, 1));
	assert_true(stats_of(pool).evictions == 6 && stats_of(pool).host_free_blocks == 2);
	neuron_kv_seq_close(high);
	neuron_kv_seq_close(old);
	neuron_kv_seq_close(young);
	neuron_kv_seq_close(pinned);
	assert_true(stats_of(pool).host_free_blocks == 8);
	neuron_kv_pool_close(pool);
}

/* Of a pool with two free blocks. */
static void evict_one(struct neuron_kv_pool *pool)
{
	assert_int_equal(neuron_kv_pool_evict(pool, 3), 0);
	assert_int_equal(kv_settle(pool), 0);
}

/* What sequences share stays for the one of the highest priority, in whatever order they let go. */
static void test_shared_priority(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct neuron_kv_pool *pool = open_pool(4, 4);
		struct neuron_kv_seq *prompt = open_seq(pool, 100, 4), *other = open_seq(pool, 50, 4);
		struct neuron_kv_seq *child;

		assert_int_equal(neuron_kv_seq_fork(prompt, 4, 0, &child), 0);
		assert_int_equal(neuron_kv_seq_unpin(other), 0);
		if (i == 3)
			assert_int_equal(neuron_kv_seq_unpin(child), 0);
		assert_int_equal(neuron_kv_seq_unpin(prompt), 0);
		if (i == 0)
			neuron_kv_seq_close(child);
		else if (i == 1)
			assert_int_equal(neuron_kv_seq_truncate(child, 0), 0);
		else if (i == 2)
			assert_int_equal(neuron_kv_seq_unpin(child), 0);
		evict_one(pool);
		assert_true(on_device(prompt, 0) && !on_device(other, 0));
		neuron_kv_seq_close(prompt);
		if (i >= 2) {
			/* Of who has it alone, its own one. */
			assert_int_equal(neuron_kv_seq_pin(child), 0);
			assert_int_equal(neuron_kv_seq_pin(other), 0);
			assert_int_equal(neuron_kv_seq_unpin(other), 0);
			assert_int_equal(neuron_kv_seq_unpin(child), 0);
			evict_one(pool);
			assert_true(on_device(other, 0) && !on_device(child, 0));
		}
		if (i)
			neuron_kv_seq_close(child);
		neuron_kv_seq_close(other);
		neuron_kv_pool_close(pool);
	}
}

/* A sequence that there is no room for keeps its place in the order of eviction. */
static void test_refused_pin(void **state)
{
	struct neuron_kv_pool *pool = open_pool(4, 8);
	struct neuron_kv_seq *long_one = open_seq(pool, 0, 16), *young, *pinned;

	(void)state;
	assert_int_equal(neuron_kv_seq_unpin(long_one), 0);
	pinned = open_seq(pool, 0, 4);
	young = open_seq(pool, 0, 4);
	assert_int_equal(neuron_kv_seq_unpin(young), 0);
	assert_int_equal(kv_settle(pool), 0);
	assert_true(on_device(long_one, 0) && on_device(long_one, 1) && !on_device(long_one, 2));
	assert_int_equal(neuron_kv_seq_pin(long_one), -ENOBUFS);
	assert_int_equal(neuron_kv_seq_pin(long_one), -ENOBUFS);
	assert_true(stats_of(pool).num_ooms == 2 && stats_of(pool).inactive_blocks == 3);
	assert_int_equal(neuron_kv_pool_evict(pool, 2), 0);
	assert_int_equal(kv_settle(pool), 0);
	assert_true(on_device(young, 0) && !on_device(long_one, 0) && !on_device(long_one, 1));
	neuron_kv_seq_close(long_one);
	neuron_kv_seq_close(young);
	neuron_kv_seq_close(pinned);
	neuron_kv_pool_close(pool);
}

/* Full on both sides: sequences still change places. */
static void test_exchange(void **state)
{
	struct neuron_kv_pool *pool = open_pool(2, 2);
	struct neuron_kv_seq *a = open_seq(pool, 0, 8), *b, *c;

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		put(a, i, i);
	assert_int_equal(neuron_kv_seq_unpin(a), 0);
	b = open_seq(pool, 0, 8);
	for (uint64_t i = 0; i < 8; i++)
		put(b, i, 100 + i);
	assert_int_equal(neuron_kv_seq_pin(a), -ENOBUFS);
	assert_int_equal(neuron_kv_seq_unpin(b), 0);
	assert_true(stats_of(pool).host_free_blocks == 0 && stats_of(pool).free_blocks == 0);
	assert_int_equal(neuron_kv_seq_pin(a), 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(get(a, i) == i);
	/* There is nowhere to put the other one for a new block. */
	assert_int_equal(neuron_kv_seq_append(a, 1), -ENOBUFS);
	assert_int_equal(neuron_kv_seq_unpin(a), 0);
	assert_int_equal(neuron_kv_seq_pin(b), 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(get(b, i) == 100 + i);
	/* One leaves and the other one does not come: its place is not for a third one. */
	assert_int_equal(neuron_kv_seq_unpin(b), 0);
	fake_fail(2, _IOC_NR(NEURON_IOCTL_MEM_COPY_ASYNC64), EIO);
	assert_int_equal(neuron_kv_seq_pin(a), -EIO);
	assert_true(stats_of(pool).host_free_blocks == 0 && stats_of(pool).free_blocks == 1);
	assert_int_equal(neuron_kv_seq_open(pool, 0, &c), 0);
	assert_int_equal(neuron_kv_seq_append(c, 1), -ENOBUFS);
	neuron_kv_seq_close(c);
	for (int n = 0; n < 2; n++) {
		assert_int_equal(neuron_kv_seq_pin(n ? a : b), 0);
		for (uint64_t i = 0; i < 8; i++)
			assert_true(get(n ? a : b, i) == (n ? 0 : 100) + i);
		assert_int_equal(neuron_kv_seq_unpin(n ? a : b), 0);
	}
	assert_true(stats_of(pool).free_blocks == 0);
	neuron_kv_seq_close(a);
	neuron_kv_seq_close(b);
	neuron_kv_pool_close(pool);
}

static void test_prefetch(void **state)
{
	struct neuron_kv_pool *pool = open_pool(4, 8);
	struct neuron_kv_seq *seq = open_seq(pool, 0, 12);
	uint64_t left = 0, calls;

	(void)state;
	for (uint64_t i = 0; i < 12; i++)
		put(seq, i, i * i);
	assert_int_equal(neuron_kv_seq_prefetch(seq, &left), -EALREADY);
	assert_int_equal(neuron_kv_seq_unpin(seq), 0);
	assert_int_equal(neuron_kv_pool_evict(pool, 4), 0);
	for (uint64_t expect = 3; expect; expect--) {
		assert_int_equal(neuron_kv_seq_prefetch(seq, &left), 0);
		assert_true(left == expect);
	}
	assert_int_equal(neuron_kv_seq_prefetch(seq, &left), 0);
	assert_true(left == 0);
	/* Who does not ask how many is not told. */
	assert_int_equal(neuron_kv_seq_prefetch(seq, NULL), 0);
	calls = fake.calls;
	assert_int_equal(neuron_kv_seq_pin(seq), 0);
	assert_true(fake.calls == calls);
	for (uint64_t i = 0; i < 12; i++)
		assert_true(get(seq, i) == i * i);
	neuron_kv_seq_close(seq);
	neuron_kv_pool_close(pool);
}

/* What a copy says that fails, at its start or its end; and one that the program has begun. */
static void test_failed_copies(void **state)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_TENSORS, .nc = 1 };
	static const unsigned int nr[] = {
		_IOC_NR(NEURON_IOCTL_MEM_COPY_ASYNC64), _IOC_NR(NEURON_IOCTL_MEM_COPY_ASYNC_WAIT),
	};
	struct neuron_kv_pool *pool = open_pool(2, 2);
	struct neuron_kv_seq *a = open_seq(pool, 0, 8), *b;
	struct neuron_mem *mem;

	(void)state;
	put(a, 7, 77);
	assert_int_equal(neuron_kv_seq_unpin(a), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(neuron_kv_seq_open(pool, 0, &b), 0);
		fake_fail(1, nr[i], EIO);
		assert_int_equal(neuron_kv_seq_append(b, 4), -EIO);
		/* Whose result was taken. */
		fake.dev[0].async[1].on = false;
		assert_true(stats_of(pool).free_blocks == 0 && stats_of(pool).inactive_blocks == 2);
		assert_true(stats_of(pool).host_free_blocks == 2 && !stats_of(pool).evictions);
		assert_int_equal(neuron_kv_seq_append(b, 8), 0);
		assert_int_equal(neuron_kv_seq_unpin(b), 0);
		fake_fail(1, nr[i], EIO);
		assert_int_equal(neuron_kv_seq_pin(a), -EIO);
		fake.dev[0].async[1].on = false;
		assert_int_equal(neuron_kv_seq_pin(a), 0);
		assert_true(get(a, 7) == 77);
		neuron_kv_seq_close(b);
		assert_int_equal(neuron_kv_seq_unpin(a), 0);
		pool->stats.evictions = 0;
	}
	assert_int_equal(neuron_mem_alloc(device, 4096, &o, &mem), 0);
	assert_int_equal(neuron_mem_copy_start(mem, 0, mem, 64, 64, -1), 0);
	b = open_seq(pool, 0, 8);
	assert_true(stats_of(pool).evictions == 2);
	assert_int_equal(neuron_mem_copy_finish(mem, mem), 0);
	neuron_mem_free(mem);
	neuron_kv_seq_close(a);
	neuron_kv_seq_close(b);
	neuron_kv_pool_close(pool);
}

/* ---- a model with contents --------------------------------------------------------- */

#define SEQS		24u
#define DEVICE_BLOCKS	24u
#define HOST_BLOCKS	40u
#define MAX_TOKENS	40u

struct model {
	struct neuron_kv_pool *pool;
	uint64_t rng, next;
	struct model_seq {
		struct neuron_kv_seq *seq;
		uint64_t value[MAX_TOKENS];
		bool pinned;
	} seq[SEQS];
	bool alone;
	uint64_t refused;
};

static uint64_t draw(struct model *m, uint64_t n)
{
	m->rng ^= m->rng << 13;
	m->rng ^= m->rng >> 7;
	m->rng ^= m->rng << 17;
	return m->rng % n;
}

/* Blocks that an allocation may have, when the copy under way is done; of a model that is alone. */
static uint64_t obtainable(struct model *m, bool exchange)
{
	struct neuron_kv_pool *pool = m->pool;
	struct neuron_kv_stats s = stats_of(pool);

	if (!m->alone)
		return 0;
	if (pool->copy.page != KV_NONE && pool->page[pool->copy.page].side == KV_DEVICE)
		s.free_blocks++;
	else if (pool->copy.page != KV_NONE) {
		s.inactive_blocks++;
		s.host_free_blocks++;
	}
	return s.free_blocks + (exchange ? s.inactive_blocks :
				MIN(s.inactive_blocks, s.host_free_blocks));
}

static void verify(struct model_seq *s)
{
	for (uint64_t i = 0; i < neuron_kv_seq_tokens(s->seq);) {
		uint64_t offset, tokens, value[BLOCK];
		struct neuron_mem *mem;

		assert_int_equal(neuron_kv_seq_locate(s->seq, i, &mem, &offset, &tokens), 0);
		assert_int_equal(neuron_mem_read(mem, offset, value, tokens * TOKEN), 0);
		assert_memory_equal(value, s->value + i, tokens * TOKEN);
		i += tokens;
	}
}

static void model_append(struct model *m, struct model_seq *s)
{
	uint64_t had = neuron_kv_seq_tokens(s->seq), n = draw(m, MAX_TOKENS / 3), need;
	uint64_t can = obtainable(m, false);
	int ret;

	n = MIN(n, MAX_TOKENS - had);
	need = (had + n + BLOCK - 1) / BLOCK - s->seq->nr;
	if (m->alone && n && had % BLOCK && m->pool->page[s->seq->page[s->seq->nr - 1]].refs > 1)
		need++;
	ret = neuron_kv_seq_append(s->seq, n);
	if (m->alone)
		assert_int_equal(ret, need > can ? -ENOBUFS : 0);
	assert_true(ret == 0 || ret == -ENOBUFS);
	m->refused += ret != 0;
	for (uint64_t i = had; i < neuron_kv_seq_tokens(s->seq); i++) {
		s->value[i] = m->next++;
		put(s->seq, i, s->value[i]);
	}
}

static void model_pin(struct model *m, struct model_seq *s)
{
	uint64_t missing = 0, own = 0;
	bool can;
	int ret;

	/* A copy under way may be of this one. */
	pthread_mutex_lock(&m->pool->lock);
	assert_int_equal(kv_settle(m->pool), 0);
	pthread_mutex_unlock(&m->pool->lock);
	for (size_t i = 0; m->alone && i < s->seq->nr; i++) {
		const struct kv_page *p = &m->pool->page[s->seq->page[i]];

		missing += p->side == KV_HOST;
		own += p->side == KV_DEVICE && !p->pins;
	}
	can = missing <= obtainable(m, true) - own;
	ret = neuron_kv_seq_pin(s->seq);
	if (m->alone)
		assert_int_equal(ret, can ? 0 : -ENOBUFS);
	s->pinned = !ret;
	m->refused += ret != 0;
	if (s->pinned)
		verify(s);
}

static void model_fork(struct model *m, struct model_seq *from, struct model_seq *to)
{
	uint64_t n = draw(m, neuron_kv_seq_tokens(from->seq) + 1);

	if (to->seq || !from->pinned)
		return;
	assert_int_equal(neuron_kv_seq_fork(from->seq, n, (uint32_t)draw(m, 101), &to->seq), 0);
	memcpy(to->value, from->value, n * TOKEN);
	to->pinned = true;
}

static void model_step(struct model *m)
{
	struct model_seq *s = &m->seq[draw(m, SEQS)];
	uint64_t left;

	if (!s->seq) {
		assert_int_equal(neuron_kv_seq_open(m->pool, (uint32_t)draw(m, 3), &s->seq), 0);
		s->pinned = true;
		return;
	}
	switch (draw(m, 24)) {
	case 0:
		neuron_kv_seq_close(s->seq);
		s->seq = NULL;
		break;
	case 1:
		left = draw(m, neuron_kv_seq_tokens(s->seq) + 1);
		assert_int_equal(neuron_kv_seq_truncate(s->seq, left), 0);
		break;
	case 2:
		model_fork(m, s, &m->seq[draw(m, SEQS)]);
		break;
	case 3:
		neuron_kv_pool_evict(m->pool, draw(m, 4));
		break;
	case 4:
		neuron_kv_seq_prefetch(s->seq, &left);
		break;
	default:
		if (!s->pinned) {
			model_pin(m, s);
		} else if (draw(m, 3)) {
			assert_int_equal(neuron_kv_seq_unpin(s->seq), 0);
			s->pinned = false;
		} else {
			model_append(m, s);
		}
	}
}

static void model_end(struct model *m)
{
	for (unsigned int i = 0; i < SEQS; i++) {
		neuron_kv_seq_close(m->seq[i].seq);
		m->seq[i].seq = NULL;
	}
}

/* A million blocks go and come back, and each token is what was written. */
static void test_model(void **state)
{
	struct model m = { .rng = 4711, .alone = true };
	struct neuron_kv_stats stats;

	(void)state;
	m.pool = open_pool(DEVICE_BLOCKS, HOST_BLOCKS);
	do {
		for (int i = 0; i < 1000; i++)
			model_step(&m);
		stats = stats_of(m.pool);
	} while (stats.evictions < 1000000 || stats.onboards < 1000000);
	assert_true(m.refused > 1000 && stats.copies_on_write > 100);
	model_end(&m);
	stats = stats_of(m.pool);
	assert_true(stats.free_blocks == DEVICE_BLOCKS && stats.host_free_blocks == HOST_BLOCKS);
	assert_true(!stats.shared_blocks && !stats.allocated_blocks.current);
	neuron_kv_pool_close(m.pool);
}

static void *model_thread(void *arg)
{
	for (int i = 0; i < 20000; i++)
		model_step(arg);
	model_end(arg);
	return NULL;
}

static void test_threads(void **state)
{
	static struct model m[4];
	pthread_t thread[4];

	(void)state;
	m[0].pool = open_pool(DEVICE_BLOCKS, HOST_BLOCKS);
	for (unsigned int i = 0; i < 4; i++) {
		m[i].pool = m[0].pool;
		m[i].rng = 99 + i;
		m[i].next = (uint64_t)i << 48;
		assert_int_equal(pthread_create(&thread[i], NULL, model_thread, &m[i]), 0);
	}
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_true(stats_of(m[0].pool).free_blocks == DEVICE_BLOCKS);
	neuron_kv_pool_close(m[0].pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_known_example, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plan_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sequence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_on_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_eviction_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_priority, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_pin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exchange, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prefetch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_model, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
