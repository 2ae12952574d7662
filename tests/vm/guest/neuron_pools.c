// SPDX-License-Identifier: GPL-2.0-only
/* Pools of memory on the software device: what is copied is what was written. */
#define _GNU_SOURCE
#include <neuron/neuron.h>

#include "nrt_guest.h"

#define MIB		(1ull << 20)
#define BLOCKS		64u
#define TOKENS		16u	/* of a block */
#define TOKEN		1024u	/* bytes */
#define BLOCK		(TOKENS * TOKEN)

static struct counters start, now;

static void fill(uint8_t *bytes, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

/* Copies of the device from block to block, while memory goes from one to the other. */
static bool order_round(struct neuron_mem_pool *pool, uint32_t seed)
{
	static uint8_t in[300000], out[300000];
	struct neuron_mem_block *b[BLOCKS] = { NULL };
	size_t size = 1000 + seed * 7919 % (sizeof(in) - 1000);
	bool ok = true;

	fill(in, size, seed);
	for (unsigned int i = 0; i < BLOCKS && ok; i++) {
		uint32_t queue = i % 3;
		uint64_t point = neuron_mem_pool_submit(pool, queue);

		ok = !neuron_mem_pool_alloc(pool, size, queue, &b[i], NULL);
		if (ok && !i)
			ok = !neuron_mem_write(neuron_mem_block_mem(b[0]),
					       neuron_mem_block_offset(b[0]), in, size);
		else if (ok)
			ok = !neuron_mem_copy(neuron_mem_block_mem(b[i]),
					      neuron_mem_block_offset(b[i]),
					      neuron_mem_block_mem(b[i - 1]),
					      neuron_mem_block_offset(b[i - 1]), size);
		if (i)
			neuron_mem_block_free(b[i - 1], (i - 1) % 3);
		neuron_mem_pool_complete(pool, queue, point);
	}
	ok = ok && !neuron_mem_read(neuron_mem_block_mem(b[BLOCKS - 1]),
				    neuron_mem_block_offset(b[BLOCKS - 1]), out, size) &&
	     !memcmp(in, out, size);
	neuron_mem_block_free(b[BLOCKS - 1], (BLOCKS - 1) % 3);
	return ok;
}

static void test_order(struct neuron_device *d)
{
	const struct neuron_mem_pool_opts opts = {
		.size = sizeof(opts), .nc = 1, .init = 4 * MIB, .increase = 4 * MIB,
		.max = 16 * MIB,
	};
	struct neuron_mem_pool_stats s = { .size = sizeof(s) };
	struct neuron_hbm_stats hbm = { .size = sizeof(hbm) };
	struct neuron_mem_block *block, *none;
	struct neuron_mem_failure why;
	struct neuron_mem_pool *pool;
	uint64_t returned, used;
	unsigned int good = 0;

	neuron_hbm_get_stats(d, 0, &hbm);
	used = hbm.used;
	CHECK(!neuron_mem_pool_open(d, &opts, &pool), "a pool");
	for (uint32_t seed = 1; seed <= 20; seed++)
		good += order_round(pool, seed);
	CHECK(good == 20, "20 chains of copies are bit-exact");
	CHECK(!neuron_mem_pool_get_stats(pool, &s) && s.allocation.allocated == 20 * BLOCKS &&
	      !s.allocation.current && s.reserved_bytes.peak <= 16 * MIB, "figures");
	CHECK(!neuron_mem_pool_alloc(pool, 5 * MIB, 0, &block, &why), "longer than an increase");
	CHECK(neuron_mem_pool_alloc(pool, 12 * MIB, 0, &none, &why) == -ENOMEM &&
	      why.reason == NEURON_MEM_REASON_CAPPED && why.total == 16 * MIB, "over its limit");
	neuron_mem_pool_trim(pool, 0, &returned);
	neuron_hbm_get_stats(d, 0, &hbm);
	CHECK(hbm.used == used + 5 * MIB, "what is not used is the driver's again");
	neuron_mem_block_free(block, 0);
	/* The segment of the long one goes back in the place of another; its end does, too. */
	CHECK(!neuron_mem_pool_alloc(pool, MIB, 0, &block, &why), "a short one");
	neuron_hbm_get_stats(d, 0, &hbm);
	CHECK(hbm.used == used + 4 * MIB, "in a segment of its own length");
	neuron_mem_pool_trim(pool, 0, &returned);
	CHECK(returned == 3 * MIB, "the end of a segment is returned");
	neuron_mem_block_free(block, 0);
	neuron_mem_pool_close(pool);
	neuron_hbm_get_stats(d, 0, &hbm);
	CHECK(hbm.used == used, "nothing is left");
}

/* A pool has nearly all of the memory, and uses none of it. */
static void test_reclaim(struct neuron_device *d)
{
	struct neuron_mem_opts o = { .size = sizeof(o), .nc = 1, .category = NEURON_MEM_TENSORS };
	struct neuron_mem_pool_opts opts = { .size = sizeof(opts), .nc = 1 };
	struct neuron_hbm_stats hbm = { .size = sizeof(hbm) };
	struct neuron_mem_block *block;
	struct neuron_mem_pool *pool;
	struct neuron_mem *mem;

	neuron_hbm_get_stats(d, 0, &hbm);
	opts.init = hbm.largest_free - MIB;
	CHECK(!neuron_mem_pool_open(d, &opts, &pool) &&
	      !neuron_mem_pool_alloc(pool, MIB, 0, &block, NULL), "a pool of all memory");
	CHECK(!neuron_mem_alloc(d, 1024 * MIB, &o, &mem), "what it does not use is others'");
	neuron_mem_free(mem);
	neuron_mem_block_free(block, 0);
	neuron_mem_pool_close(pool);
}

static bool transfer(struct neuron_kv_seq *seq, uint8_t *bytes, bool write)
{
	uint64_t offset, tokens;
	struct neuron_mem *mem;

	for (uint64_t i = 0; i < neuron_kv_seq_tokens(seq); i += tokens) {
		uint8_t *here = bytes + i * TOKEN;

		if (neuron_kv_seq_locate(seq, i, &mem, &offset, &tokens) ||
		    (write ? neuron_mem_write(mem, offset, here, tokens * TOKEN) :
			     neuron_mem_read(mem, offset, here, tokens * TOKEN)))
			return false;
	}
	return true;
}

static bool holds(struct neuron_kv_seq *seq, uint32_t seed, uint64_t tokens)
{
	static uint8_t want[8 * BLOCK], got[8 * BLOCK];

	fill(want, sizeof(want), seed);
	return neuron_kv_seq_tokens(seq) >= tokens && transfer(seq, got, false) &&
	       !memcmp(want, got, tokens * TOKEN);
}

/* Sequences for four times the device memory take turns on it. */
static void test_paged(struct neuron_device *d)
{
	const struct neuron_kv_opts opts = {
		.size = sizeof(opts), .nc = 1, .block_tokens = TOKENS, .token_bytes = TOKEN,
		.max_tokens = 8 * TOKENS, .host_bytes = 24 * BLOCK,
	};
	struct neuron_kv_stats s = { .size = sizeof(s) };
	struct neuron_kv_seq *seq[4], *child;
	static uint8_t bytes[8 * BLOCK];
	struct neuron_kv_pool *pool;
	const uint64_t *address;
	unsigned int good = 0;
	size_t n;

	CHECK(!neuron_kv_pool_open(d, &opts, &pool), "a paged pool");
	for (uint32_t i = 0; i < 4; i++) {
		fill(bytes, sizeof(bytes), 100 + i);
		good += !neuron_kv_seq_open(pool, 0, &seq[i]) &&
			!neuron_kv_seq_append(seq[i], 7 * TOKENS + 3) &&
			transfer(seq[i], bytes, true) && !neuron_kv_seq_unpin(seq[i]);
	}
	CHECK(good == 4, "four sequences, each as long as the device's part");
	good = 0;
	for (uint32_t round = 0; round < 10; round++)
		for (uint32_t i = 0; i < 4; i++)
			good += !neuron_kv_seq_pin(seq[i]) &&
				holds(seq[i], 100 + i, 7 * TOKENS + 3) &&
				!neuron_kv_seq_unpin(seq[i]);
	CHECK(good == 40 && !neuron_kv_pool_get_stats(pool, &s) && s.onboards == 40 * 8 &&
	      s.evictions == 24 + 40 * 8, "evicted and brought back 40 times, bit-exact");
	CHECK(!neuron_kv_seq_pin(seq[0]) && !neuron_kv_seq_truncate(seq[0], 2 * TOKENS + 1) &&
	      !neuron_kv_seq_fork(seq[0], 2 * TOKENS + 1, 0, &child), "a common beginning");
	CHECK(!neuron_kv_seq_append(child, TOKENS) && holds(child, 100, 2 * TOKENS + 1) &&
	      !neuron_kv_seq_blocks(child, &address, &n) && n == 4 &&
	      !neuron_kv_pool_get_stats(pool, &s) && s.copies_on_write == 1 && s.shared_blocks == 2,
	      "is copied when it is written");
	CHECK(neuron_kv_seq_append(child, 6 * TOKENS) == -ENOBUFS, "nothing free or to evict");
	neuron_kv_seq_close(child);
	for (uint32_t i = 0; i < 4; i++)
		neuron_kv_seq_close(seq[i]);
	neuron_kv_pool_close(pool);
}

int main(void)
{
	struct neuron_device *d;

	counters_take(&start);
	CHECK(!neuron_device_open(0, &d), "open");
	test_order(d);
	test_reclaim(d);
	test_paged(d);
	neuron_device_close(d);
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "all counters are back after close");
	return failed != 0;
}
