// SPDX-License-Identifier: GPL-2.0-only
/* Who is suspected of a leak, in sequences that are made up here; groups of owners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/groups.h"
#include "tools/leaks.h"

static struct leaks all;
static uint64_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static int teardown(void **state)
{
	(void)state;
	free(all.list);
	memset(&all, 0, sizeof(all));
	return 0;
}

/* What an owner has in the next picture; its rate. */
static uint64_t look(uint32_t id, uint64_t bytes)
{
	const struct neuron_owner o = { .id = id, .pid = 10, .bytes = bytes };

	assert_int_equal(leak_add(&all, 0, 0, &o), 0);
	return leak_rate(leak_find(&all, 0, 0, &o));
}

/* 4 KiB a step, beside owners that take and give back. */
static void test_named(void **state)
{
	unsigned int named = 0;

	(void)state;
	seed = 1;
	for (unsigned int step = 0; step <= 50; step++) {
		uint64_t rate;

		leaks_begin(&all);
		for (uint32_t id = 2; id < 20; id++)
			assert_int_equal(look(id, (1 + draw(1000)) * 4096ull), 0);
		assert_int_equal(look(20, 1 << 20), 0);
		rate = look(1, (100 + step) * 4096ull);
		if (rate && !named)
			named = step;
		assert_true(!rate || rate == 4096);
	}
	assert_in_range(named, 8, 50);
}

/* The leak is in an owner that also allocates and frees. */
static void test_hidden(void **state)
{
	unsigned int found = 0;

	(void)state;
	for (seed = 1; seed < 200; seed += 1) {
		uint64_t start = seed, rate = 0;

		for (unsigned int step = 0; step < 100; step++) {
			leaks_begin(&all);
			rate = look(1, (50 + step) * 4096ull + draw(4) * (4096ull << draw(10)));
		}
		found += rate > 2048 && rate < 8192;
		teardown(NULL);
		seed = start;
	}
	assert_true(found > 190);
}

/* Owners that only go up and down, however: at random, in steps, in waves. */
static void test_innocent(void **state)
{
	unsigned int named = 0;

	(void)state;
	for (unsigned int round = 0; round < 2000; round++) {
		unsigned int kind = round % 4, period = 2 + draw(39), phase = draw(48);
		bool suspected = false;

		for (unsigned int step = 0; step < 200; step++) {
			unsigned int at = (step + phase) % period;
			uint64_t bytes = kind == 0 ? draw(1000) : kind == 1 ? at :
					 kind == 2 ? (at < period / 2 ? at : period - at) :
						     (at < period / 2) * 100 + draw(3);

			leaks_begin(&all);
			suspected |= look(1, (10 + bytes) * 4096) != 0;
		}
		named += suspected;
		teardown(NULL);
	}
	/* Eight lows in order happen once in 8! = 40320 times. */
	assert_in_range(named, 0, 2);
}

/* Growing to a size and staying there is no leak; neither is one step. */
static void test_warm(void **state)
{
	(void)state;
	for (unsigned int step = 0; step < 300; step++) {
		uint64_t rate;

		leaks_begin(&all);
		rate = look(1, (step < 45 ? step : 45) * 65536ull);
		assert_true(step < 75 || !rate);
		assert_int_equal(look(2, step < 45 ? 0 : 65536), 0);
	}
}

/* A leak that becomes slower is still one, and the rate is that of the whole time. */
static void test_slow(void **state)
{
	uint64_t rate = 0;

	(void)state;
	for (unsigned int step = 0; step < 1000; step++) {
		leaks_begin(&all);
		rate = look(1, step / 10 * 40960ull);
	}
	assert_in_range(rate, 4000, 4096);
}

/* An owner that ended is forgotten, and its number may come again. */
static void test_ended(void **state)
{
	(void)state;
	leaks_begin(&all);
	look(1, 4096);
	look(2, 4096);
	leaks_begin(&all);
	look(2, 4096);
	assert_int_equal(all.count, 2);
	leaks_begin(&all);
	assert_int_equal(all.count, 1);
	look(1, 8192);
	assert_true(all.list[1].fresh);
}

/* What an owner has is divided without rest, and what others have is not in it. */
static void test_groups(void **state)
{
	static const uint32_t categories[] = { NEURON_MEM_CONSTANTS, NEURON_MEM_CODE,
					       NEURON_MEM_RINGS };
	struct neuron_range range[3000];
	struct history ranges = { .range = range, .count = ARRAY_SIZE(range) };
	uint64_t bytes[3][4][2][3] = { 0 }, allocs[3][4][2][3] = { 0 };
	struct owner_groups g;

	(void)state;
	seed = 3;
	for (size_t i = 0; i < ranges.count; i++) {
		uint32_t pid = draw(3), owner = draw(4), nc = draw(2), kind = draw(3);
		uint64_t size = (1 + draw(100)) * 4096ull;
		bool owned = draw(5);

		range[i] = (struct neuron_range){
			.address = i << 20, .bytes = size, .pid = (int32_t)pid + 10, .nc = nc,
			.state = owned ? NEURON_RANGE_OWNED : draw(3), .owner = owner,
			.category = categories[kind],
		};
		bytes[pid][owner][nc][kind] += owned ? size : 0;
		allocs[pid][owner][nc][kind] += owned;
	}
	assert_int_equal(groups_read(&ranges, &g), 0);
	assert_int_equal(g.count, 3 * 4 * 2 * 3);
	for (uint32_t pid = 0; pid < 3; pid++)
		for (uint32_t owner = 0; owner < 4; owner++) {
			const struct neuron_owner o = { .pid = (int32_t)pid + 10, .id = owner };
			const struct owner_group *next;
			size_t at = 0, n = 0;

			for (; (next = groups_next(&g, &o, &at)); n++) {
				uint32_t kind = 0;

				while (categories[kind] != next->category)
					kind++;
				assert_true(next->bytes == bytes[pid][owner][next->nc][kind]);
				assert_true(next->allocs == allocs[pid][owner][next->nc][kind]);
			}
			assert_int_equal(n, 2 * 3);
		}
	free(g.list);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_named), TEST(test_hidden), TEST(test_innocent), TEST(test_warm),
		TEST(test_slow), TEST(test_ended), TEST(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
