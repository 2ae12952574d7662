/* SPDX-License-Identifier: GPL-2.0-only */
/* Pools of a device, for tests of them: what has to work does, or the test fails. */
#ifndef TEST_POOLS_H
#define TEST_POOLS_H

#include "fake_driver.h"

#define MIB	(1ull << 20)

static struct neuron_device *device;

static int setup(void **state)
{
	(void)state;
	return neuron_device_open(0, &device);
}

static struct neuron_mem_pool *open_pool(uint64_t init, uint64_t increase, uint64_t max)
{
	const struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .init = init, .increase = increase, .max = max, .queues = 4,
	};
	struct neuron_mem_pool *pool;

	assert_int_equal(neuron_mem_pool_open(device, &opts, &pool), 0);
	return pool;
}

static inline struct neuron_mem_block *take(struct neuron_mem_pool *pool, uint64_t bytes,
					    uint32_t queue)
{
	struct neuron_mem_block *block;

	assert_int_equal(neuron_mem_pool_alloc(pool, bytes, queue, &block, NULL), 0);
	return block;
}

static void give(struct neuron_mem_block *block, uint32_t queue)
{
	assert_int_equal(neuron_mem_block_free(block, queue), 0);
}

static struct neuron_mem_pool_stats stats_of(struct neuron_mem_pool *pool)
{
	struct neuron_mem_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(neuron_mem_pool_get_stats(pool, &stats), 0);
	assert_true(stats.reserved_bytes.current == stats.active_bytes + stats.inactive_bytes);
	return stats;
}

#endif
