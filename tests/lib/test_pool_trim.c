// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a pool in the order of queues does not use goes back to the driver, whatever it reserves
 * in a step, if its blocks are longer than a MiB: with the driver's allocator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "random_side.h"
#include "test_pools.h"

#define LIVE	600u
#define STEPS	5000u
#define SETS	10u
#define LAG	16u		/* steps until work is known to be done */

static int teardown(void **state)
{
	(void)state;
	neuron_device_close(device);
	return fake.left_bytes || fake.left_handles || fake.dev[0].opens;
}

/* Blocks of a program, each with its address in its first bytes. */
struct set {
	struct neuron_mem_pool *pool;
	struct neuron_mem_block *block[LIVE];
	uint64_t bytes, most;	/* used now, and at most */
};

/* 1 to 64 MiB, each length in digits as frequent; one of eight is short. */
static uint64_t draw_length(void)
{
	uint64_t least = rnd(8) ? MIB << rnd(6) : 512ull << rnd(6);

	return least + 1 + rnd(least);
}

static void set_take(struct set *s, unsigned int i)
{
	struct neuron_mem_block *block;
	uint64_t address;

	if (neuron_mem_pool_alloc(s->pool, draw_length(), 0, &block, NULL))
		return;
	address = neuron_mem_block_address(block);
	assert_int_equal(neuron_mem_write(neuron_mem_block_mem(block),
					  neuron_mem_block_offset(block), &address, 8), 0);
	s->block[i] = block;
	s->bytes += neuron_mem_block_bytes(block);
	s->most = s->bytes > s->most ? s->bytes : s->most;
}

static void set_check(const struct neuron_mem_block *block)
{
	uint64_t address;

	assert_int_equal(neuron_mem_read(neuron_mem_block_mem(block),
					 neuron_mem_block_offset(block), &address, 8), 0);
	assert_true(address == neuron_mem_block_address(block));
}

static void set_give(struct set *s, unsigned int i)
{
	if (!s->block[i])
		return;
	set_check(s->block[i]);
	s->bytes -= neuron_mem_block_bytes(s->block[i]);
	assert_int_equal(neuron_mem_block_free(s->block[i], 0), 0);
	s->block[i] = NULL;
}

/* All work is done; what is unused then, and how much of it trim returns. */
static uint64_t trimmed(struct set *s, uint64_t *unused)
{
	uint64_t returned, used = fake_used();

	neuron_mem_pool_complete(s->pool, 0, neuron_mem_pool_submit(s->pool, 0));
	*unused = stats_of(s->pool).inactive_bytes;
	neuron_mem_pool_trim(s->pool, 0, &returned);
	assert_true(used - fake_used() == returned);
	return returned;
}

/* Of a queue whose work is done as soon as it is waited for. */
static int waited(void *data, uint32_t queue, uint64_t point)
{
	(void)data;
	(void)queue;
	(void)point;
	return 0;
}

static void run_set(uint64_t seed, uint64_t increase)
{
	struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = MIB, .increase = increase, .queues = 1,
		.wait = waited,
	};
	uint64_t unused, returned, point;
	struct set s = { .pool = NULL };

	rng = 88172645463325252ull + seed;
	opts.max = rnd(2) ? 2048 * MIB : 0;
	assert_int_equal(neuron_mem_pool_open(device, &opts, &s.pool), 0);
	for (unsigned int k = 0; k < STEPS; k++) {
		unsigned int i = (unsigned int)rnd(LIVE);

		s.block[i] ? set_give(&s, i) : set_take(&s, i);
		point = neuron_mem_pool_submit(s.pool, 0);
		if (point > LAG)
			neuron_mem_pool_complete(s.pool, 0, point - LAG);
	}
	/* A long increase is more than a quarter of this. */
	assert_true((double)stats_of(s.pool).reserved_bytes.peak <=
		    1.25 * (double)s.most + (increase > 64 * MIB ? (double)increase : 0));
	for (unsigned int i = 0; i < LIVE; i++)
		if (rnd(2))
			set_give(&s, i);
	returned = trimmed(&s, &unused);
	assert_true(unused > s.most / 8);
	assert_true((double)returned >= 0.99 * (double)unused);
	for (unsigned int i = 0; i < LIVE; i++)
		set_give(&s, i);
	returned = trimmed(&s, &unused);
	assert_true(returned == unused && !fake_used());
	neuron_mem_pool_close(s.pool);
}

static void test_random_half(void **state)
{
	static const uint64_t increases[] = { MIB, 64 * MIB, 2048 * MIB };

	for (uint64_t seed = 0; seed < SETS; seed++)
		run_set(seed, increases[seed % 3]);
	(void)state;
}

/* The same length again takes no call of the driver; another one takes the place of the first. */
static void test_reuse(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, 41 * MIB);
	struct neuron_mem_block *block = take(pool, 40 * MIB, 0);
	unsigned int calls;

	(void)state;
	neuron_mem_pool_submit(pool, 0);
	give(block, 0);
	calls = fake.calls;
	block = take(pool, 40 * MIB - 1, 0);
	assert_int_equal(fake.calls, calls);
	neuron_mem_pool_complete(pool, 0, 1);
	give(block, 0);
	block = take(pool, 40 * MIB, 3);
	assert_int_equal(fake.calls, calls);
	give(block, 3);
	block = take(pool, 30 * MIB, 0);
	assert_true(fake_used() == 31 * MIB && stats_of(pool).num_alloc_retries == 0);
	give(block, 0);
	neuron_mem_pool_close(pool);
}

/* Before a request is refused, its queue gets a part of what its earlier work may still use. */
static void test_cut_up(void **state)
{
	struct neuron_mem_pool *pool = open_pool(MIB, MIB, 41 * MIB);
	struct neuron_mem_block *full = take(pool, MIB, 0), *block = take(pool, 40 * MIB, 0), *part;
	uint64_t address = neuron_mem_block_address(block);

	(void)state;
	neuron_mem_pool_submit(pool, 0);
	give(block, 0);
	assert_int_equal(neuron_mem_pool_alloc(pool, 512, 1, &part, NULL), -ENOMEM);
	part = take(pool, 512, 0);
	assert_true(neuron_mem_block_address(part) == address);
	block = take(pool, 39 * MIB, 0);
	give(part, 0);
	give(block, 0);
	/* It is one again, and for all. */
	neuron_mem_pool_complete(pool, 0, 1);
	block = take(pool, 40 * MIB, 1);
	assert_true(neuron_mem_block_address(block) == address);
	give(block, 1);
	give(full, 0);
	neuron_mem_pool_close(pool);
}

/* Free memory in two holes that have a block and a half each: three blocks are not there. */
static void test_kv_holes(void **state)
{
	const uint64_t there = FAKE_HBM_SIZE - FAKE_RESERVED;
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_kv_opts kv = {
		.size = sizeof(kv), .block_tokens = 1, .token_bytes = 2 * MIB, .max_tokens = 3,
		.failure = &failure,
	};
	struct neuron_mem_opts o = { .size = sizeof(o), .category = NEURON_MEM_CONSTANTS };
	struct neuron_mem *mem[5];
	struct neuron_kv_pool *pool;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(neuron_mem_alloc(device, 3 * MIB, &o, &mem[i]), 0);
	assert_int_equal(neuron_mem_alloc(device, there - 12 * MIB, &o, &mem[4]), 0);
	neuron_mem_free(mem[0]);
	neuron_mem_free(mem[2]);
	assert_int_equal(neuron_kv_pool_open(device, &kv, &pool), -ENOMEM);
	assert_int_equal(failure.reason, NEURON_MEM_REASON_FRAGMENTED);
	assert_true(failure.bytes == 6 * MIB && failure.free == 6 * MIB);
	assert_true(failure.largest_free == 3 * MIB);
	kv.max_tokens = 2;
	assert_int_equal(neuron_kv_pool_open(device, &kv, &pool), 0);
	neuron_kv_pool_close(pool);
	neuron_mem_free(mem[1]);
	neuron_mem_free(mem[3]);
	neuron_mem_free(mem[4]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random_half, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kv_holes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
