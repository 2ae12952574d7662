// SPDX-License-Identifier: GPL-2.0-only
/*
 * The HBM allocator on the host: properties against the model, and a case for
 * every hazard that was found in the allocators it replaces.
 *
 * usage: test_buddy [STEPS [SEED]] runs the property test only, that long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "buddy_model.h"

#define G	NEURON_BUDDY_GRANULE
#define KIB	1024ULL
#define MIB	(KIB * 1024)
#define GIB	(MIB * 1024)

/* Steps of the property test; the seed is printed, and can be given. */
#ifndef PROPERTY_STEPS
#define PROPERTY_STEPS 10000000ULL
#endif

static u64 property_seed;

static u64 rnd_state;

static u64 rnd(void)
{
	rnd_state ^= rnd_state >> 12;
	rnd_state ^= rnd_state << 25;
	rnd_state ^= rnd_state >> 27;
	return rnd_state * 0x2545f4914f6cdd1dULL >> 16;
}

static void rnd_seed(u64 seed)
{
	rnd_state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
}

/* --- property test --------------------------------------------------------- */

/*
 * Zones around the sizes that matter: smaller than a frame, odd ends, many
 * frames. The mix of sizes changes every few thousand steps, so that frames
 * fill, empty, and meet large blocks.
 */
static void property(u64 steps, u64 seed)
{
	static const u32 zones[] = { 1, 2, 31, 512, 513, 1023, 2048, 4096, 5000, 8192, 12345 };
	const u32 count = sizeof(zones) / sizeof(zones[0]);
	u64 refused = 0, bad = 0, hidden = 0;
	u32 z;

	for (z = 0; z < count; z++) {
		/* Most steps where there is most to go wrong. */
		u64 n = z < 4 ? steps / 50 : (steps - 4 * (steps / 50)) / (count - 4), i;
		struct model m;

		rnd_seed(seed * 1000 + z);
		model_init(&m, zones[z]);
		model_step_no = 0;
		for (i = 0; i < n; i++) {
			static const u32 log_max[] = { 32, 3, 5, 7, 9, 4 };
			u32 phase = (i >> 12) % 6, op = rnd() % 64, a = rnd();

			if (op < 30 && phase)
				a %= log_max[phase];
			model_step(&m, op, a, rnd(), rnd(), rnd());
			/* The check costs as much as the zone is large. */
			if (!(rnd() % (zones[z] / 16 + 1)))
				MODEL_ASSERT(neuron_buddy_check(m.zone) == 0);
		}
		refused += m.refused;
		bad += m.bad_frees;
		hidden += m.hidden;
		assert_int_equal(m.refused_wrongly, 0);
		model_exit(&m);
	}
	/* Otherwise the test did not test what it is for. */
	if (steps > 100000) {
		assert_true(refused > steps / 100);
		assert_true(bad > steps / 100);
	}
	print_message("# %llu steps, seed %llu, %llu refusals, %llu bad frees refused, %llu stale frees not tried\n",
		      (unsigned long long)steps, (unsigned long long)seed,
		      (unsigned long long)refused, (unsigned long long)bad,
		      (unsigned long long)hidden);
}

static void test_property(void **state)
{
	(void)state;
	property(PROPERTY_STEPS, property_seed);
}

/* --- the interface ------------------------------------------------------------ */

static struct neuron_buddy *zone_new(u64 size)
{
	struct neuron_buddy *zone;

	assert_int_equal(neuron_buddy_create(&zone, size), 0);
	assert_int_equal(neuron_buddy_check(zone), 0);
	return zone;
}

static int alloc(struct neuron_buddy *zone, u64 size, u64 align, u32 flags,
		 struct neuron_buddy_block *b)
{
	struct neuron_buddy_request req = { .size = size, .align = align, .flags = flags };

	assert_int_equal(neuron_buddy_prepare(zone), 0);
	return neuron_buddy_alloc(zone, &req, b, NULL);
}

static int alloc_at(struct neuron_buddy *zone, u64 addr, u64 size, struct neuron_buddy_block *b)
{
	struct neuron_buddy_request req = { .size = size, .addr = addr,
					    .flags = NEURON_BUDDY_EXACT };

	assert_int_equal(neuron_buddy_prepare(zone), 0);
	return neuron_buddy_alloc(zone, &req, b, NULL);
}

static void zone_end(struct neuron_buddy *zone)
{
	assert_int_equal(neuron_buddy_check(zone), 0);
	neuron_buddy_destroy(zone);
}

static void test_create(void **state)
{
	struct neuron_buddy *zone = NULL;

	(void)state;
	assert_int_equal(neuron_buddy_create(&zone, 0), -EINVAL);
	assert_int_equal(neuron_buddy_create(&zone, G + 1), -EINVAL);
	assert_int_equal(neuron_buddy_create(&zone, NEURON_BUDDY_MAX_SIZE + G), -EINVAL);
	assert_int_equal(neuron_buddy_create(&zone, ~0ULL << 12), -EINVAL);
	assert_null(zone);
	neuron_buddy_destroy(NULL);
	zone = zone_new(96 * GIB);
	assert_int_equal(neuron_buddy_total(zone), 96 * GIB);
	assert_int_equal(neuron_buddy_free_bytes(zone), 96 * GIB);
	assert_int_equal(neuron_buddy_used(zone), 0);
	assert_int_equal(neuron_buddy_largest(zone, G), 96 * GIB);
	assert_int_equal(neuron_buddy_largest(zone, 64 * KIB), 96 * GIB);
	assert_int_equal(neuron_buddy_largest(zone, 2 * MIB), 96 * GIB);
	/* above that a bound: the start may have to move by up to one alignment */
	assert_int_equal(neuron_buddy_largest(zone, 4 * MIB), 96 * GIB - 2 * MIB);
	assert_int_equal(neuron_buddy_largest(zone, 128 * GIB), 0);
	zone_end(zone);
}

/* The largest zone there can be: 8 TiB. Address arithmetic at its end. */
static void test_largest_zone(void **state)
{
	struct neuron_buddy *zone = zone_new(NEURON_BUDDY_MAX_SIZE);
	struct neuron_buddy_block b, c;

	(void)state;
	assert_int_equal(neuron_buddy_largest(zone, 1), NEURON_BUDDY_MAX_SIZE);
	assert_int_equal(alloc(zone, NEURON_BUDDY_MAX_SIZE, 1ULL << 63, 0, &b), 0);
	assert_int_equal(b.addr, 0);
	assert_int_equal(alloc(zone, G, 0, 0, &c), -ENOSPC);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(alloc(zone, 4 * MIB, 0, NEURON_BUDDY_HIGH, &b), 0);
	assert_int_equal(b.addr, NEURON_BUDDY_MAX_SIZE - 4 * MIB);
	assert_int_equal(alloc(zone, G, 1ULL << 62, 0, &c), 0);
	assert_int_equal(c.addr, 0);
	assert_int_equal(alloc(zone, 64 * KIB, 0, 0, &c), 0);
	assert_int_equal(neuron_buddy_query(zone, b.addr, &c), 0);
	assert_int_equal(c.size, 4 * MIB);
	zone_end(zone);
}

static void test_bad_requests(void **state)
{
	struct neuron_buddy *zone = zone_new(16 * MIB);
	struct neuron_buddy_request req = { .size = G };
	struct neuron_buddy_block b = { .addr = 42 };
	enum neuron_buddy_cause cause = NEURON_BUDDY_CAUSE_FULL;
	static const struct neuron_buddy_request bad[] = {
		{ .size = 0 },
		{ .size = G, .align = 3 },
		{ .size = G, .align = 3 * G },
		{ .size = G, .align = ~0ULL },
		{ .size = G, .flags = 8 },
		{ .size = G, .flags = ~0u },
		{ .size = G, .flags = NEURON_BUDDY_LOW | NEURON_BUDDY_HIGH },
		{ .size = G, .flags = NEURON_BUDDY_LOW | NEURON_BUDDY_EXACT },
		{ .size = G, .addr = 1, .flags = NEURON_BUDDY_EXACT },
		{ .size = G, .addr = G, .align = 2 * G, .flags = NEURON_BUDDY_EXACT },
		{ .size = G, .addr = 16 * MIB, .flags = NEURON_BUDDY_EXACT },
		{ .size = G, .addr = ~0ULL << 12, .flags = NEURON_BUDDY_EXACT },
		{ .size = 16 * MIB, .addr = G, .flags = NEURON_BUDDY_EXACT },
		{ .size = ~0ULL, .addr = G, .flags = NEURON_BUDDY_EXACT },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(neuron_buddy_alloc(zone, &bad[i], &b, &cause), -EINVAL);
		assert_int_equal(cause, NEURON_BUDDY_CAUSE_NONE);
		assert_int_equal(b.addr, 42);
	}
	/* Sizes that wrap when rounded up are simply too large. */
	req.size = ~0ULL;
	assert_int_equal(neuron_buddy_alloc(zone, &req, &b, &cause), -ENOSPC);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_FULL);
	req.size = 16 * MIB + 1;
	assert_int_equal(neuron_buddy_alloc(zone, &req, &b, NULL), -ENOSPC);
	/* The smallest size and alignments below the granule are fine. */
	assert_int_equal(alloc(zone, 1, 1, 0, &b), 0);
	assert_int_equal(b.size, G);
	assert_int_equal(alloc(zone, G + 1, 2048, 0, &b), 0);
	assert_int_equal(b.size, 2 * G);
	assert_int_equal(neuron_buddy_query(zone, 16 * MIB, &b), -EINVAL);
	assert_int_equal(neuron_buddy_query(zone, ~0ULL, &b), -EINVAL);
	assert_int_equal(neuron_buddy_reserve(zone, 1, G), -EINVAL);
	assert_int_equal(neuron_buddy_reserve(zone, 0, 0), -EINVAL);
	assert_int_equal(neuron_buddy_reserve(zone, 16 * MIB, G), -EINVAL);
	assert_int_equal(neuron_buddy_reserve(zone, G, 16 * MIB), -EINVAL);
	assert_int_equal(neuron_buddy_reserve(zone, G, 5), -EINVAL);
	assert_int_equal(neuron_buddy_largest(zone, 0), 0);
	assert_int_equal(neuron_buddy_largest(zone, 3 * G), 0);
	zone_end(zone);
}

/* Double, stale, foreign and malformed frees: told apart, nothing changes. */
static void bad_frees(u64 size)
{
	struct neuron_buddy *zone = zone_new(64 * MIB), *other = zone_new(64 * MIB);
	struct neuron_buddy_block b, again, x, keep;
	struct neuron_buddy_stats st;

	/* something that keeps the frame of small blocks in use */
	assert_int_equal(alloc(zone, G, 0, 0, &keep), 0);
	assert_int_equal(alloc(zone, size, 0, 0, &b), 0);
	assert_int_equal(neuron_buddy_free(other, &b, false), -EINVAL);
	x = b;
	x.addr += 1;
	assert_int_equal(neuron_buddy_free(zone, &x, false), -EINVAL);
	x = b;
	x.size = 0;
	assert_int_equal(neuron_buddy_free(zone, &x, false), -EINVAL);
	x = b;
	x.size += G;
	assert_int_equal(neuron_buddy_free(zone, &x, false), -ESTALE);
	x = b;
	x.addr = ~0ULL << 12;
	assert_int_equal(neuron_buddy_free(zone, &x, false), -EINVAL);
	x.addr = 64 * MIB - G;
	x.size = 2 * G;
	assert_int_equal(neuron_buddy_free(zone, &x, false), -EINVAL);
	if (size > G) {
		x = b;
		x.addr += G;
		x.size -= G;
		assert_int_equal(neuron_buddy_free(zone, &x, false), -ENOENT);
	}
	assert_int_equal(neuron_buddy_used(zone), size + G);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), -ENOENT);
	/* the same place and size again: the old block must not free the new one */
	assert_int_equal(alloc_at(zone, b.addr, size, &again), 0);
	assert_int_equal(again.addr, b.addr);
	assert_int_equal(neuron_buddy_free(zone, &b, false), -ESTALE);
	assert_int_equal(neuron_buddy_check(zone), 0);
	assert_int_equal(neuron_buddy_free(zone, &again, false), 0);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.bad_frees, size > G ? 8 : 7);
	assert_int_equal(st.used, G);
	zone_end(zone);
	zone_end(other);
}

static void test_bad_frees(void **state)
{
	(void)state;
	bad_frees(G);
	bad_frees(7 * G);
	bad_frees(512 * KIB);
	bad_frees(MIB);
	bad_frees(MIB + G);
	bad_frees(13 * MIB);
}

static void test_placement(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB + 3 * G);
	struct neuron_buddy_block lo, hi, lo2, hi2, b;

	(void)state;
	assert_int_equal(alloc(zone, 3 * MIB, 0, NEURON_BUDDY_LOW, &lo), 0);
	assert_int_equal(lo.addr, 0);
	assert_int_equal(alloc(zone, 3 * MIB, 0, NEURON_BUDDY_HIGH, &hi), 0);
	assert_int_equal(hi.addr, 61 * MIB + 3 * G);
	assert_int_equal(alloc(zone, 3 * MIB, 2 * MIB, NEURON_BUDDY_LOW, &lo2), 0);
	assert_int_equal(lo2.addr, 4 * MIB);
	assert_int_equal(alloc(zone, 3 * MIB, 2 * MIB, NEURON_BUDDY_HIGH, &hi2), 0);
	assert_int_equal(hi2.addr, 58 * MIB);
	/* frames of small blocks follow the flag, too; the default is the top */
	assert_int_equal(alloc(zone, G, 0, NEURON_BUDDY_LOW, &b), 0);
	assert_int_equal(b.addr, 7 * MIB);
	zone_end(zone);
	zone = zone_new(64 * MIB);
	assert_int_equal(alloc(zone, G, 0, 0, &b), 0);
	assert_int_equal(b.addr, 62 * MIB);
	/* a second frame below a full one */
	while (b.addr >= 62 * MIB)
		assert_int_equal(alloc(zone, 64 * KIB, 0, NEURON_BUDDY_HIGH, &b), 0);
	assert_int_equal(b.addr, 60 * MIB);
	zone_end(zone);
}

/* Nothing is lost to rounding: 5 MiB uses 5 MiB. */
static void test_no_waste(void **state)
{
	static const u64 sizes[] = { G, 5 * MIB, 3 * G, 777 * G, 512 * KIB + G, 2 * MIB + 1, 1 };
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block b;
	u64 used = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(alloc(zone, sizes[i], 0, 0, &b), 0);
		used += (sizes[i] + G - 1) / G * G;
		assert_int_equal(neuron_buddy_used(zone), used);
	}
	zone_end(zone);
}

/* And gets shorter: what is cut off is an allocation of its own. */
static void test_split(void **state)
{
	struct neuron_buddy_request req = { .size = 8 * MIB + 2 * G };
	struct neuron_buddy_block b, tail, stale, small, more;
	struct neuron_buddy_stats before, after;
	struct neuron_buddy *zone;

	(void)state;
	assert_int_equal(neuron_buddy_create(&zone, 64 * MIB), 0);
	neuron_buddy_stats(zone, &before);
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &b, NULL), 0);
	stale = b;
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(neuron_buddy_split(zone, &b, 0, &tail), -EINVAL);
	assert_int_equal(neuron_buddy_split(zone, &b, b.size, &tail), -EINVAL);
	assert_int_equal(neuron_buddy_split(zone, &b, b.size + 1, &tail), -EINVAL);
	assert_int_equal(neuron_buddy_split(zone, &b, ~0ULL, &tail), -EINVAL);
	/* Inside a 2 MiB frame, and down to one granule. */
	assert_int_equal(neuron_buddy_split(zone, &b, 5 * MIB + 1, &tail), 0);
	assert_int_equal(b.size, 5 * MIB + G);
	assert_int_equal(tail.addr, b.addr + b.size);
	assert_int_equal(tail.size, 3 * MIB + G);
	assert_int_equal(neuron_buddy_free(zone, &stale, false), -ESTALE);
	assert_int_equal(neuron_buddy_split(zone, &stale, G, &more), -ESTALE);
	assert_int_equal(neuron_buddy_free(zone, &tail, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &tail, false), -ENOENT);
	neuron_buddy_stats(zone, &after);
	assert_int_equal(after.used, 5 * MIB + G);
	assert_int_equal(after.allocs, 1);
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(neuron_buddy_split(zone, &b, G, &tail), 0);
	assert_int_equal(neuron_buddy_free(zone, &tail, false), 0);
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(neuron_buddy_grow(zone, &b, 20 * MIB), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), -ENOENT);
	/* One that shares a frame. */
	req.size = 3 * G;
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &small, NULL), 0);
	assert_int_equal(neuron_buddy_split(zone, &small, G, &tail), -ENOSPC);
	assert_int_equal(neuron_buddy_free(zone, &small, false), 0);
	neuron_buddy_stats(zone, &after);
	assert_int_equal(after.used, before.used);
	assert_int_equal(after.free, before.free);
	assert_int_equal(after.largest, before.largest);
	neuron_buddy_destroy(zone);
}

/* The contiguous scratchpad grows in place, through free extents and frame edges. */
static void test_grow(void **state)
{
	struct neuron_buddy *zone = zone_new(16 * MIB);
	struct neuron_buddy_block b, c, small, tiny;
	struct neuron_buddy_stats st;

	(void)state;
	neuron_buddy_mark_clear(zone);
	assert_int_equal(alloc(zone, 3 * MIB, 0, NEURON_BUDDY_LOW, &b), 0);
	assert_int_equal(b.cleared, 1);
	assert_int_equal(neuron_buddy_grow(zone, &b, G), -EINVAL);
	assert_int_equal(neuron_buddy_grow(zone, &b, 3 * MIB), 0);
	assert_int_equal(neuron_buddy_grow(zone, &b, 5 * MIB), 0);
	assert_int_equal(b.size, 5 * MIB);
	assert_int_equal(b.cleared, 1);
	assert_int_equal(neuron_buddy_grow(zone, &b, ~0ULL), -ENOSPC);
	assert_int_equal(neuron_buddy_grow(zone, &b, 16 * MIB + 1), -ENOSPC);
	assert_int_equal(alloc_at(zone, 8 * MIB, MIB, &c), 0);
	assert_int_equal(neuron_buddy_free(zone, &c, false), 0);
	/* now some of what follows is dirty */
	assert_int_equal(neuron_buddy_grow(zone, &b, 9 * MIB), 0);
	assert_int_equal(b.cleared, 0);
	/* a frame at 14 MiB: its free head can be taken, its block cannot */
	assert_int_equal(alloc(zone, G, 0, 0, &small), 0);
	assert_int_equal(small.addr, 14 * MIB);
	assert_int_equal(alloc(zone, G, 0, 0, &tiny), 0);
	assert_int_equal(neuron_buddy_free(zone, &small, false), 0);
	assert_int_equal(neuron_buddy_grow(zone, &b, 14 * MIB + G), 0);
	assert_int_equal(neuron_buddy_grow(zone, &b, 14 * MIB + 2 * G), -ENOSPC);
	assert_int_equal(neuron_buddy_check(zone), 0);
	/* a small block grows inside its frame, up to the end, not beyond */
	assert_int_equal(neuron_buddy_grow(zone, &tiny, 9 * G), 0);
	assert_int_equal(neuron_buddy_grow(zone, &tiny, 2 * MIB - G), 0);
	assert_int_equal(neuron_buddy_grow(zone, &tiny, 2 * MIB), -ENOSPC);
	assert_int_equal(neuron_buddy_free(zone, &small, false), -ENOENT);
	assert_int_equal(neuron_buddy_grow(zone, &small, 4 * G), -ENOENT);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.used, 16 * MIB);
	assert_int_equal(st.high_water, 16 * MIB);
	assert_int_equal(neuron_buddy_free(zone, &tiny, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(neuron_buddy_largest(zone, 1), 16 * MIB);
	zone_end(zone);
}

static void test_reserve(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block b, small, x;
	struct neuron_buddy_stats st;

	(void)state;
	/* firmware carve-out at the top, retired pages anywhere */
	assert_int_equal(neuron_buddy_reserve(zone, 60 * MIB, 4 * MIB), 0);
	assert_int_equal(neuron_buddy_reserve(zone, 62 * MIB, 2 * MIB), 0);
	assert_int_equal(alloc(zone, G, 0, 0, &small), 0);
	assert_int_equal(small.addr, 58 * MIB);
	assert_int_equal(neuron_buddy_reserve(zone, small.addr + 3 * G, 2 * G), 0);
	assert_int_equal(neuron_buddy_reserve(zone, small.addr + G, 8 * G), 0);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.reserved, 4 * MIB + 8 * G);
	/* busy: the live block; nothing changes */
	assert_int_equal(neuron_buddy_reserve(zone, small.addr, 4 * G), -EBUSY);
	assert_int_equal(neuron_buddy_reserve(zone, 57 * MIB, 2 * MIB), -EBUSY);
	assert_int_equal(alloc(zone, 2 * MIB, 0, 0, &b), 0);
	assert_int_equal(neuron_buddy_reserve(zone, b.addr + MIB, G), -EBUSY);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.reserved, 4 * MIB + 8 * G);
	assert_int_equal(st.failures[NEURON_BUDDY_CAUSE_BUSY], 3);
	/* nobody frees or queries a reservation */
	x = small;
	x.addr = small.addr + 3 * G;
	x.size = 2 * G;
	x.gen = 0;
	assert_int_equal(neuron_buddy_free(zone, &x, false), -EPERM);
	x.addr = 60 * MIB;
	x.size = 4 * MIB;
	assert_int_equal(neuron_buddy_free(zone, &x, false), -EPERM);
	assert_int_equal(neuron_buddy_query(zone, 61 * MIB, &x), -ENOENT);
	assert_int_equal(neuron_buddy_query(zone, small.addr + 3 * G, &x), -ENOENT);
	/* the retired pages stay out when everything else is gone */
	assert_int_equal(neuron_buddy_free(zone, &small, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(neuron_buddy_check(zone), 0);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.free + st.reserved, 64 * MIB);
	/* the frame with the retired pages gives its edges to large requests */
	assert_int_equal(alloc(zone, 58 * MIB + G, 0, 0, &b), 0);
	assert_int_equal(b.addr, 0);
	assert_int_equal(alloc(zone, 2 * MIB - 9 * G, 0, 0, &b), 0);
	assert_int_equal(neuron_buddy_free_bytes(zone), 0);
	zone_end(zone);
}

/* A reservation over many pieces needs more metadata than one page holds. */
static void test_reserve_many_pieces(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block b[400];
	struct neuron_buddy_stats st;
	int i, err, again = 0;

	(void)state;
	for (i = 0; i < 400; i++)
		assert_int_equal(alloc_at(zone, i * 2 * G, G, &b[i]), 0);
	for (i = 0; i < 400; i += 2) {
		assert_int_equal(neuron_buddy_free(zone, &b[i], false), 0);
		assert_int_equal(neuron_buddy_prepare(zone), 0);
		assert_int_equal(neuron_buddy_reserve(zone, b[i].addr, G), 0);
	}
	for (i = 1; i < 400; i += 2)
		assert_int_equal(neuron_buddy_free(zone, &b[i], false), 0);
	/* as it may be after other threads took the reserve */
	while (zone->pool_len > 4)
		ext_get(zone)->type = EXT_POOL;
	do {
		assert_int_equal(neuron_buddy_prepare(zone), 0);
		err = neuron_buddy_reserve(zone, 0, 64 * MIB);
		again += err == -EAGAIN;
	} while (err == -EAGAIN);
	assert_int_equal(err, 0);
	assert_int_equal(again, 1);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.reserved, 64 * MIB);
	assert_int_equal(st.free, 0);
	zone_end(zone);
}

/* Cleared memory is reported as such only if all of it is, and never hinders merging. */
static void test_cleared(void **state)
{
	struct neuron_buddy *zone = zone_new(16 * MIB);
	struct neuron_buddy_block b, c, d;
	u64 unit = 32 * KIB;

	(void)state;
	assert_int_equal(alloc(zone, 4 * MIB, 0, 0, &b), 0);
	assert_int_equal(b.cleared, 0);
	assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
	assert_int_equal(alloc_at(zone, b.addr, 4 * MIB, &b), 0);
	assert_int_equal(b.cleared, 1);
	assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
	assert_int_equal(alloc_at(zone, b.addr, 4 * MIB + G, &b), 0);
	assert_int_equal(b.cleared, 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);

	/* a part of a dirty frame: known exactly, unit by unit */
	assert_int_equal(alloc_at(zone, 9 * MIB - 2 * unit, 3 * unit, &b), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
	assert_int_equal(alloc_at(zone, 9 * MIB - 2 * unit, 3 * unit, &b), 0);
	assert_int_equal(b.cleared, 1);
	assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
	assert_int_equal(alloc_at(zone, 9 * MIB - 3 * unit, 2 * unit, &b), 0);
	assert_int_equal(b.cleared, 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(alloc_at(zone, 9 * MIB, unit, &b), 0);
	assert_int_equal(b.cleared, 1);
	assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
	/* less than a unit says nothing, and a unit in parts neither */
	assert_int_equal(alloc_at(zone, 10 * MIB, unit - G, &b), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
	assert_int_equal(alloc_at(zone, 10 * MIB, G, &b), 0);
	assert_int_equal(b.cleared, 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);

	/* the smallest unit of knowledge */
	neuron_buddy_mark_clear(zone);
	assert_int_equal(alloc_at(zone, 3 * unit, unit, &b), 0);
	assert_int_equal(alloc_at(zone, 4 * unit, unit, &c), 0);
	assert_int_equal(alloc_at(zone, 5 * unit, G, &d), 0);
	assert_true(b.cleared && c.cleared && d.cleared);
	assert_int_equal(neuron_buddy_free(zone, &c, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
	assert_int_equal(neuron_buddy_free(zone, &d, true), 0);
	/* one free extent again, whatever its parts know */
	assert_int_equal(neuron_buddy_largest(zone, 1), 16 * MIB);
	assert_int_equal(alloc_at(zone, 0, 4 * unit, &b), 0);
	assert_int_equal(b.cleared, 1);
	assert_int_equal(alloc_at(zone, 4 * unit, G, &c), 0);
	assert_int_equal(c.cleared, 0);
	assert_int_equal(alloc_at(zone, 5 * unit, 8 * MIB, &d), 0);
	assert_int_equal(d.cleared, 1);
	zone_end(zone);
}

/* The same over so many frames that the bits take several words. */
static void test_cleared_far(void **state)
{
	struct neuron_buddy *zone = zone_new(512 * MIB);
	struct neuron_buddy_block b;
	u32 dirty, i;

	(void)state;
	for (dirty = 1; dirty < 255; dirty += 23) {
		for (i = 0; i < 3; i++) {
			u64 from = i * 64 * MIB + 2 * MIB;

			neuron_buddy_mark_clear(zone);
			assert_int_equal(alloc_at(zone, dirty * 2 * MIB, 2 * MIB, &b), 0);
			assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
			assert_int_equal(alloc_at(zone, from, 510 * MIB - from, &b), 0);
			assert_int_equal(b.cleared, dirty * 2 * MIB < from || dirty == 255);
			assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
		}
		/* what was freed as cleared is known to be, next to what is not */
		neuron_buddy_mark_clear(zone);
		assert_int_equal(alloc_at(zone, 0, 512 * MIB, &b), 0);
		assert_int_equal(b.cleared, 1);
		assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
		assert_int_equal(alloc_at(zone, 2 * MIB, dirty * 2 * MIB, &b), 0);
		assert_int_equal(b.cleared, 0);
		assert_int_equal(neuron_buddy_free(zone, &b, true), 0);
		assert_int_equal(alloc_at(zone, 2 * MIB, dirty * 2 * MIB, &b), 0);
		assert_int_equal(b.cleared, 1);
		assert_int_equal(neuron_buddy_grow(zone, &b, b.size + G), 0);
		assert_int_equal(b.cleared, 0);
		assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
		assert_int_equal(alloc_at(zone, 0, 2 * MIB, &b), 0);
		assert_int_equal(b.cleared, 0);
		assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	}
	zone_end(zone);
}

static void test_causes(void **state)
{
	struct neuron_buddy *zone = zone_new(16 * MIB);
	struct neuron_buddy_request req = { .size = 4 * MIB };
	struct neuron_buddy_block b[16], x;
	enum neuron_buddy_cause cause;
	struct neuron_buddy_stats st;
	int i;

	(void)state;
	for (i = 0; i < 16; i++)
		assert_int_equal(alloc_at(zone, i * MIB, MIB, &b[i]), 0);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -ENOSPC);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_FULL);
	for (i = 1; i < 16; i += 2)
		assert_int_equal(neuron_buddy_free(zone, &b[i], false), 0);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -ENOSPC);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_FRAGMENTED);
	req.size = MIB;
	req.align = 2 * MIB;
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -ENOSPC);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_ALIGNMENT);
	req.size = 2 * MIB;
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -ENOSPC);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_FRAGMENTED);
	req.flags = NEURON_BUDDY_EXACT;
	req.addr = 0;
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -EBUSY);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_BUSY);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.failures[NEURON_BUDDY_CAUSE_FULL], 1);
	assert_int_equal(st.failures[NEURON_BUDDY_CAUSE_FRAGMENTED], 2);
	assert_int_equal(st.failures[NEURON_BUDDY_CAUSE_ALIGNMENT], 1);
	assert_int_equal(st.failures[NEURON_BUDDY_CAUSE_BUSY], 1);
	assert_int_equal(st.order_free[8], 8 * MIB);
	assert_int_equal(st.largest, MIB);
	assert_int_equal(neuron_buddy_largest(zone, MIB), MIB - (MIB - G));
	assert_int_equal(neuron_buddy_largest(zone, 4 * MIB), 0);
	zone_end(zone);
}

/* --- hazards seen in other allocators ----------------------------------------------- */

/* A minimum alignment above the size was silently ignored: every block must have it. */
static void test_hazard_underaligned(void **state)
{
	struct neuron_buddy *zone = zone_new(GIB);
	struct neuron_buddy_block b;
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		assert_int_equal(alloc(zone, 8 * KIB, 64 * KIB, 0, &b), 0);
		assert_int_equal(b.addr % (64 * KIB), 0);
	}
	zone_end(zone);
}

/* A fallback that looks at one order only refuses although a run exists. */
static void test_hazard_one_order(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block a, b, c;

	(void)state;
	/* the only run that fits is 7 MiB at 1 MiB: no aligned power of two holds 6 MiB */
	assert_int_equal(alloc_at(zone, 0, MIB, &a), 0);
	assert_int_equal(alloc_at(zone, 8 * MIB, 56 * MIB, &b), 0);
	assert_int_equal(alloc(zone, 6 * MIB, 0, 0, &c), 0);
	assert_int_equal(c.addr, 2 * MIB);
	zone_end(zone);
}

/* A run over the border of two frames, and of frame and extent, is found. */
static void test_hazard_tier_border(void **state)
{
	struct neuron_buddy *zone = zone_new(4 * MIB);
	struct neuron_buddy_block low, high, b;

	(void)state;
	/* two frames with one granule each, at the far ends */
	assert_int_equal(alloc(zone, G, 0, 0, &high), 0);
	assert_int_equal(high.addr, 2 * MIB);
	assert_int_equal(alloc(zone, 512 * KIB, 2 * MIB, 0, &b), 0);
	assert_int_equal(b.addr, 0);
	assert_int_equal(alloc_at(zone, G * 1023, G, &low), 0);
	assert_int_equal(neuron_buddy_free(zone, &high, false), 0);
	/* free: 512 KiB .. 4 MiB - 4 KiB, over the border at 2 MiB */
	assert_int_equal(alloc(zone, 3 * MIB + 512 * KIB - G, 0, 0, &high), 0);
	assert_int_equal(high.addr, 512 * KIB);
	assert_int_equal(neuron_buddy_free_bytes(zone), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &high, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &low, false), 0);
	assert_int_equal(neuron_buddy_largest(zone, 1), 4 * MIB);
	zone_end(zone);
}

/* Clear and dirty halves must merge at once: no forced merging on the allocation path. */
static void test_hazard_clear_barrier(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block b[64], all;
	int i;

	(void)state;
	for (i = 0; i < 64; i++)
		assert_int_equal(alloc(zone, MIB, 0, NEURON_BUDDY_LOW, &b[i]), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(neuron_buddy_free(zone, &b[i], i & 1), 0);
	assert_int_equal(neuron_buddy_largest(zone, 1), 64 * MIB);
	assert_int_equal(alloc(zone, 64 * MIB, 0, 0, &all), 0);
	zone_end(zone);
}

/* Rounding the size class up skips exact holes: powers of two must find them. */
static void test_hazard_exact_hole(void **state)
{
	struct neuron_buddy *zone = zone_new(256 * MIB);
	struct neuron_buddy_block b[128], x;
	int i;

	(void)state;
	for (i = 0; i < 128; i++)
		assert_int_equal(alloc(zone, 2 * MIB, 0, NEURON_BUDDY_LOW, &b[i]), 0);
	for (i = 0; i < 128; i += 2)
		assert_int_equal(neuron_buddy_free(zone, &b[i], false), 0);
	for (i = 0; i < 128; i += 2)
		assert_int_equal(alloc(zone, 2 * MIB, 0, 0, &x), 0);
	assert_int_equal(neuron_buddy_free_bytes(zone), 0);
	zone_end(zone);
}

/* Alignment beyond 32 bits of bytes. */
static void test_hazard_int_alignment(void **state)
{
	struct neuron_buddy *zone = zone_new(24 * GIB);
	struct neuron_buddy_block a, b, c;

	(void)state;
	assert_int_equal(alloc(zone, MIB, 0, NEURON_BUDDY_LOW, &a), 0);
	assert_int_equal(alloc(zone, MIB, 8 * GIB, 0, &b), 0);
	assert_int_equal(b.addr % (8 * GIB), 0);
	assert_int_equal(alloc(zone, MIB, 8 * GIB, 0, &c), 0);
	assert_int_equal(c.addr % (8 * GIB), 0);
	assert_int_equal(alloc(zone, MIB, 8 * GIB, 0, &c), -ENOSPC);
	assert_int_equal(alloc(zone, MIB, 1ULL << 40, 0, &c), -ENOSPC);
	zone_end(zone);
}

/* --- adversaries ------------------------------------------------------------------------ */

/* Free in reverse and in order; every pattern ends with one free run. */
static void test_adversary_free_orders(void **state)
{
	static struct neuron_buddy_block b[5000];
	int round, i, n;

	(void)state;
	for (round = 0; round < 4; round++) {
		struct neuron_buddy *zone = zone_new(256 * MIB);

		rnd_seed(round);
		for (n = 0; n < 5000; n++) {
			u64 size = round & 1 ? 12 * G : (1 + rnd() % 300) * G;

			if (alloc(zone, size, 0, 0, &b[n]))
				break;
		}
		assert_true(n > 300);
		for (i = 0; i < n; i++)
			assert_int_equal(neuron_buddy_free(zone, &b[round < 2 ? n - 1 - i : i],
							   false), 0);
		assert_int_equal(neuron_buddy_largest(zone, 1), 256 * MIB);
		zone_end(zone);
	}
}

/*
 * Checkerboard in granules: half of the zone free in single granules. Two
 * granules in a row do not exist, single ones all do.
 */
static void test_adversary_checkerboard(void **state)
{
	static struct neuron_buddy_block b[16384];
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_stats st;
	struct neuron_buddy_block x;
	int i;

	(void)state;
	for (i = 0; i < 16384; i++)
		assert_int_equal(alloc(zone, G, 0, 0, &b[i]), 0);
	assert_int_equal(alloc(zone, G, 0, 0, &x), -ENOSPC);
	for (i = 0; i < 16384; i++) {
		if (b[i].addr / G % 2)
			assert_int_equal(neuron_buddy_free(zone, &b[i], false), 0);
	}
	assert_int_equal(neuron_buddy_check(zone), 0);
	assert_int_equal(alloc(zone, 2 * G, 0, 0, &x), -ENOSPC);
	assert_int_equal(alloc(zone, G, 2 * G, 0, &x), -ENOSPC);
	for (i = 0; i < 8192; i++)
		assert_int_equal(alloc(zone, G, 0, 0, &x), 0);
	assert_int_equal(alloc(zone, G, 0, 0, &x), -ENOSPC);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(st.used, 64 * MIB);
	assert_int_equal(st.order_free[0], 0);
	zone_end(zone);
}

/* Fill with aligned objects smaller than their alignment, then use what is between. */
static void test_adversary_aligned(void **state)
{
	struct neuron_buddy *zone = zone_new(256 * MIB);
	struct neuron_buddy_block b;
	int i;

	(void)state;
	for (i = 0; i < 4096; i++)
		assert_int_equal(alloc(zone, 8 * KIB, 64 * KIB, 0, &b), 0);
	assert_int_equal(alloc(zone, 8 * KIB, 64 * KIB, 0, &b), -ENOSPC);
	for (i = 0; i < 4096; i++)
		assert_int_equal(alloc(zone, 56 * KIB, 8 * KIB, 0, &b), 0);
	assert_int_equal(neuron_buddy_free_bytes(zone), 0);
	zone_end(zone);
}

/*
 * Robson's growth: fill with 2^i granules, keep only what blocks one offset
 * modulo 2^(i+1), go on with the next power. Refusals must agree with the model.
 */
static void test_adversary_robson(void **state)
{
	struct model m;
	u32 i, j;

	(void)state;
	model_init(&m, 8192);
	for (i = 0; i < 12; i++) {
		u64 size = G << i;

		while (model_alloc(&m, size, 0, 0, i & 1 ? NEURON_BUDDY_LOW : 0) >= 0)
			;
		for (j = 0; j < m.nr_live; ) {
			u64 addr = m.live[j].addr, end = addr + m.live[j].size;

			/* keep a block only if it covers an odd multiple of 2^i */
			if ((addr / size) % 2 || (end - 1) / (2 * size) != addr / (2 * size))
				j++;
			else
				model_free(&m, j, false);
		}
		MODEL_ASSERT(neuron_buddy_check(m.zone) == 0);
		model_compare(&m, i);
	}
	model_exit(&m);
}

/* Sizes that share no divisor. */
static void test_adversary_primes(void **state)
{
	static const u16 primes[] = { 1, 2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 131, 251, 257, 509,
				      521, 1021, 2039 };
	struct model m;
	u32 i;

	(void)state;
	rnd_seed(7);
	model_init(&m, 32768);
	for (i = 0; i < 20000; i++) {
		if (model_alloc(&m, primes[rnd() % 18] * G, 0, 0, 0) < 0 || rnd() % 3 == 0)
			model_free(&m, rnd() % m.nr_live, false);
	}
	MODEL_ASSERT(neuron_buddy_check(m.zone) == 0);
	model_compare(&m, 7);
	model_exit(&m);
}

/* Two processes load and unload in turns; each leaves nothing behind. */
static void test_adversary_two_processes(void **state)
{
	static struct neuron_buddy_block b[2][600];
	struct neuron_buddy *zone = zone_new(512 * MIB);
	int n[2] = { 0, 0 }, round, i;

	(void)state;
	rnd_seed(3);
	for (round = 0; round < 200; round++) {
		int who = round & 1;

		while (n[who])
			assert_int_equal(neuron_buddy_free(zone, &b[who][--n[who]], false), 0);
		/* half the zone each: interleaved with what the other one holds */
		for (i = 0; i < 600; i++) {
			u64 size = rnd() % 4 ? (1 + rnd() % 16) * G : (1 + rnd() % 512) * G;

			assert_int_equal(alloc(zone, size, 0, 0, &b[who][i]), 0);
			n[who]++;
		}
	}
	for (i = 0; i < 2; i++) {
		while (n[i])
			assert_int_equal(neuron_buddy_free(zone, &b[i][--n[i]], false), 0);
	}
	assert_int_equal(neuron_buddy_largest(zone, 1), 512 * MIB);
	zone_end(zone);
}

/* --- the parts ---------------------------------------------------------------------------- */

static void test_bits(void **state)
{
	u32 round, i;

	(void)state;
	rnd_seed(21);
	for (round = 0; round < 20000; round++) {
		u64 w[5], before[5];
		u32 from = rnd() % 320, n = rnd() % (321 - from), at = rnd() % 320, top = NONE;
		bool value = rnd() & 1, all = true, none = true;

		for (i = 0; i < 5; i++) {
			w[i] = round & 1 ? rnd() << 32 ^ rnd() : round & 2 ? ~0ULL : 0;
			if (round & 4)
				w[i] &= rnd() & rnd() & rnd();
			before[i] = w[i];
		}
		for (i = 0; i < 320; i++) {
			if (i >= from && i < from + n) {
				all = all && bit_test(w, i);
				none = none && !bit_test(w, i);
			}
			if (i <= at && bit_test(w, i))
				top = i;
		}
		assert_int_equal(bits_all(w, from, n, true), all);
		assert_int_equal(bits_all(w, from, n, false), none);
		assert_int_equal(bits_prev(w, at), top);
		bits_assign(w, from, n, value);
		for (i = 0; i < 320; i++)
			assert_int_equal(bit_test(w, i), i >= from && i < from + n ? value :
					 bit_test(before, i));
	}
}

/* The trees of a zone with eight levels, against a plain array. */
static void test_trees(void **state)
{
	static u32 plain[4353];
	struct neuron_buddy *zone = zone_new(4353 * 2 * MIB);
	struct tree *t = &zone->longest;
	u32 n = zone->cells, round, i, want, need, at;

	(void)state;
	assert_int_equal(n, 4353);
	assert_int_equal(t->levels, 8);
	rnd_seed(22);
	tree_set(t, 0, 0);
	for (round = 0; round < 4000; round++) {
		/* few values at first, so that long gaps have to be crossed */
		at = rnd() % n;
		plain[at] = rnd() % 4 ? rnd() % 1000 : 0;
		tree_set(t, at, plain[at]);
		if (round > 50 && round % 16)
			continue;
		if (!(round % 3) && round > 60) {
			tree_set(t, at, 0);
			plain[at] = 0;
		}
		at = round % 7 ? rnd() % n : round % 2 ? n - 1 : 0;
		need = 1 + rnd() % 1001;
		for (i = at; i < n && plain[i] < need; i++)
			;
		assert_int_equal(tree_next(t, at, need), i < n ? i : NONE);
		want = NONE;
		for (i = 0; i < at; i++)
			want = plain[i] >= need ? i : want;
		assert_int_equal(tree_prev(t, at, need), want);
		want = 0;
		for (i = 0; i < n; i++)
			want = max(want, plain[i]);
		assert_int_equal(tree_top(t), want);
	}
	assert_int_equal(tree_next(t, n, 1), NONE);
	assert_int_equal(tree_prev(t, 0, 1), NONE);
	for (i = 0; i < n; i++)
		tree_set(t, i, i ? 0 : zone->len);
	zone_end(zone);
}

static void test_bins(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	u32 rows = zone->bin_rows, cols[BIN_ROWS], round, i, len, row = 0, col = 0, r, c;

	(void)state;
	memcpy(cols, zone->bin_cols, sizeof(cols));
	rnd_seed(23);
	for (round = 0; round < 20000; round++) {
		u32 from = rnd() % (BIN_ROWS * BIN_COLS);

		zone->bin_rows = 0;
		for (i = 0; i < BIN_ROWS; i++) {
			zone->bin_cols[i] = rnd() % 8 ? 0 : (u32)(rnd() & rnd());
			zone->bin_rows |= zone->bin_cols[i] ? 1u << i : 0;
		}
		row = from / BIN_COLS;
		col = from % BIN_COLS;
		if (round % 3 == 0) {
			/* as the search leaves it after the last column of a row */
			col = BIN_COLS;
			from = (row + 1) * BIN_COLS;
		}
		for (i = from; i < BIN_ROWS * BIN_COLS; i++) {
			if (zone->bin_cols[i / BIN_COLS] >> i % BIN_COLS & 1)
				break;
		}
		assert_int_equal(bin_next(zone, &row, &col), i < BIN_ROWS * BIN_COLS);
		if (i < BIN_ROWS * BIN_COLS)
			assert_int_equal(row * BIN_COLS + col, i);
	}
	zone->bin_rows = rows;
	memcpy(zone->bin_cols, cols, sizeof(cols));
	/* sizes go up from bin to bin, and a bin is narrow */
	row = 0;
	col = 1;
	for (len = 1; len < 1u << 16; len++) {
		bin_of(len, &r, &c);
		assert_true(r < BIN_ROWS && c < BIN_COLS);
		if (len < 64)
			assert_true(r * BIN_COLS + c == len);
		assert_true(r * BIN_COLS + c == row * BIN_COLS + col ||
			    r * BIN_COLS + c == row * BIN_COLS + col + 1);
		row = r;
		col = c;
	}
	bin_of(1u << 31, &r, &c);
	assert_int_equal(r, BIN_ROWS - 1);
	assert_int_equal(c, 0);
	zone_end(zone);
}

/* A zone with holes of the given MiB, one MiB used between them; the rest is used. */
static struct neuron_buddy *zone_with_holes(u64 size, const u32 *holes, u32 n, u64 *at)
{
	struct neuron_buddy *zone = zone_new(size);
	struct neuron_buddy_block b[16], used;
	u64 pos = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		at[i] = pos;
		assert_int_equal(alloc_at(zone, pos, holes[i] * MIB, &b[i]), 0);
		pos += holes[i] * MIB;
		assert_int_equal(alloc_at(zone, pos, MIB, &used), 0);
		pos += MIB;
	}
	if (pos < size)
		assert_int_equal(alloc_at(zone, pos, size - pos, &used), 0);
	for (i = 0; i < n; i++)
		assert_int_equal(neuron_buddy_free(zone, &b[i], false), 0);
	assert_int_equal(neuron_buddy_check(zone), 0);
	return zone;
}

static u64 where(struct neuron_buddy *zone, u64 size, u64 align, u32 flags)
{
	struct neuron_buddy_block b;
	u64 at;

	assert_int_equal(alloc(zone, size, align, flags, &b), 0);
	at = b.addr;
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	return at;
}

static const u32 policy_holes[] = { 17, 9, 5, 3, 5, 33, 4, 9 };

/* Where what is large in its zone goes, the slow way. Sizes in granules. */
static u32 policy_choice(u32 n, u32 cut)
{
	u32 i, len, tightest = NONE, roomy = NONE;

	for (i = 0; i < 8; i++) {
		len = policy_holes[i] * 256;
		if (len >= n && (tightest == NONE || policy_holes[i] < policy_holes[tightest]))
			tightest = i;
		if (len >= n + cut && (roomy == NONE || policy_holes[i] < policy_holes[roomy]))
			roomy = i;
	}
	if (policy_holes[tightest] * 256 <= n + n * 3 / 10)
		return tightest;
	return roomy == NONE ? tightest : roomy;
}

/* What is small in its zone goes to the top, and so does what is asked to. */
static void test_policy_small(void **state)
{
	u64 at[8], size, lowest, highest;
	struct neuron_buddy *zone;
	u32 i, n;

	(void)state;
	/* 419 of the 427 MiB in use are one extent: all that is smaller is small */
	zone = zone_with_holes(512 * MIB, policy_holes, 8, at);
	assert_int_equal(sizes_cut(zone), 416 * 256);
	for (n = 2; n <= 33; n++) {
		size = n * MIB;
		lowest = highest = 0;
		for (i = 0; i < 8; i++) {
			if (policy_holes[i] >= n)
				highest = at[i] + (policy_holes[i] - n) * MIB;
		}
		for (i = 8; i--; )
			lowest = policy_holes[i] >= n ? at[i] : lowest;
		assert_int_equal(where(zone, size, 0, 0), highest);
		assert_int_equal(where(zone, size, 0, NEURON_BUDDY_LOW), lowest);
		assert_int_equal(where(zone, size, 0, NEURON_BUDDY_HIGH), highest);
	}
	assert_int_equal(where(zone, 3 * MIB, 32 * MIB, NEURON_BUDDY_LOW), 0);
	assert_int_equal(where(zone, 9 * MIB, 32 * MIB, NEURON_BUDDY_HIGH), 64 * MIB);
	neuron_buddy_destroy(zone);
}

/* The others: tight, or leaving something useful. */
static void test_policy_large(void **state)
{
	struct neuron_buddy *zone;
	u64 at[8];
	u32 n;

	(void)state;
	/* 8 MiB in walls of 1 MiB, 35 in one extent: from 1 MiB up nothing is small */
	zone = zone_with_holes(128 * MIB, policy_holes, 8, at);
	assert_int_equal(sizes_cut(zone), 256);
	for (n = 256; n <= 33 * 256; n += 16)
		assert_int_equal(where(zone, n * G, 0, 0), at[policy_choice(n, 256)]);
	/* below: the top */
	assert_int_equal(where(zone, 255 * G, 0, 0), at[7] + 9 * MIB - 255 * G);
	/* aligned: the tightest that fits, 5 MiB at 28 MiB does, at 38 it does not */
	assert_int_equal(at[2], 28 * MIB);
	assert_int_equal(where(zone, 5 * MIB, 4 * MIB, 0), 28 * MIB);
	neuron_buddy_destroy(zone);
}

/* Nothing leaves a useful rest: the tightest after all. */
static void test_policy_useless_rest(void **state)
{
	static const u32 holes[] = { 4, 6, 5 };
	struct neuron_buddy_block b;
	struct neuron_buddy *zone;
	u64 at[3];
	u32 i;

	(void)state;
	zone = zone_with_holes(74 * MIB, holes, 3, at);
	/* fourteen extents of 4 MiB in the place of one of 56, beside three of 1 MiB */
	assert_int_equal(neuron_buddy_query(zone, 18 * MIB, &b), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	for (i = 0; i < 14; i++)
		assert_int_equal(alloc_at(zone, (18 + 4 * i) * MIB, 4 * MIB, &b), 0);
	assert_int_equal(sizes_cut(zone), 1024);
	assert_int_equal(where(zone, 4 * MIB, 0, 0), at[0]);
	/* 1.5 MiB would be left of 6, and 0.5 of 5, which suits */
	assert_int_equal(where(zone, 4 * MIB + 512 * KIB, 0, 0), at[2]);
	assert_int_equal(alloc_at(zone, at[2], 5 * MIB, &b), 0);
	assert_int_equal(alloc_at(zone, at[0], 4 * MIB, &b), 0);
	/* 6 and 8 MiB: neither suits, and neither leaves 4 */
	assert_int_equal(neuron_buddy_query(zone, 66 * MIB, &b), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(neuron_buddy_query(zone, 70 * MIB, &b), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(where(zone, 4 * MIB + 512 * KIB, 0, 0), at[1]);
	assert_int_equal(where(zone, 4 * MIB + 512 * KIB, 2 * MIB, 0), at[1] + MIB);
	zone_end(zone);
}

/* The cut follows what is in use. */
static void test_policy_cut(void **state)
{
	struct neuron_buddy_block b[20], small;
	struct neuron_buddy *zone = zone_new(256 * MIB);
	u32 i;

	(void)state;
	assert_int_equal(sizes_cut(zone), 1);
	for (i = 0; i < 20; i++)
		assert_int_equal(alloc(zone, (i < 2 ? 1 : 8) * MIB, 0, 0, &b[i]), 0);
	/* 2 MiB of 146 */
	assert_int_equal(sizes_cut(zone), 8 * 256);
	for (i = 4; i < 20; i++)
		assert_int_equal(neuron_buddy_free(zone, &b[i], false), 0);
	/* 2 MiB of 18 */
	assert_int_equal(sizes_cut(zone), 256);
	/* frames are small, whatever their size: 4 MiB of 22 */
	for (i = 0; i < 8; i++)
		assert_int_equal(alloc(zone, 512 * KIB, 0, 0, &small), 0);
	assert_int_equal(sizes_cut(zone), 1);
	assert_int_equal(neuron_buddy_grow(zone, &b[3], 100 * MIB), 0);
	assert_int_equal(sizes_cut(zone), 8 * 256);
	assert_int_equal(neuron_buddy_split(zone, &b[3], 60 * MIB, &small), 0);
	zone_end(zone);
}

/* One size fills a zone to the last block, with each alignment, and again after churn. */
static void test_fill_one_size(void **state)
{
	static const u32 sizes[] = { 1, 3, 7, 9, 36, 63, 100, 127, 128, 129, 150, 171, 175, 192,
				     250, 256, 257, 400, 511, 512, 513, 1000, 1536, 2000 };
	static struct neuron_buddy_block b[32768];
	u32 i, k, n, live, most, j;

	(void)state;
	rnd_seed(9);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (k = 0; !(sizes[i] & ((1u << k) - 1)); k++) {
			struct neuron_buddy *zone = zone_new(128 * MIB);

			n = sizes[i];
			most = 32768 / n;
			for (live = 0; !alloc(zone, n * G, G << k, 0, &b[live]); live++)
				;
			assert_int_equal(live, most);
			for (j = 0; j < 3 * most; j++) {
				u32 x = rnd() % live, y = rnd() % live;

				assert_int_equal(neuron_buddy_free(zone, &b[x], false), 0);
				if (y != x) {
					assert_int_equal(neuron_buddy_free(zone, &b[y], false), 0);
					assert_int_equal(alloc(zone, n * G, G << k, 0, &b[y]), 0);
				}
				assert_int_equal(alloc(zone, n * G, G << k, 0, &b[x]), 0);
			}
			zone_end(zone);
		}
	}
}

/* Small requests: the tightest frame, in it the tightest run, the lowest among equals. */
static void test_policy_frames(void **state)
{
	/* first frame: runs of 9, 4, 6, 4; the second has runs of 7 and 30 */
	static const u16 used1[][2] = { { 0, 10 }, { 19, 5 }, { 28, 3 }, { 37, 2 }, { 43, 255 },
					{ 298, 214 } };
	static const u16 used2[][2] = { { 0, 1 }, { 8, 200 }, { 238, 250 }, { 488, 24 } };
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block b, last;
	u64 f1 = 62 * MIB, f2 = 60 * MIB;
	u32 i;

	(void)state;
	assert_int_equal(alloc(zone, G, 0, 0, &b), 0);
	assert_int_equal(b.addr, f1);
	assert_int_equal(neuron_buddy_grow(zone, &b, used1[0][1] * G), 0);
	for (i = 1; i < 6; i++)
		assert_int_equal(alloc_at(zone, f1 + used1[i][0] * G, used1[i][1] * G, &b), 0);
	assert_int_equal(alloc(zone, 128 * G, 0, 0, &b), 0);
	assert_int_equal(b.addr, f2);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(alloc(zone, G, 0, 0, &b), 0);
	assert_int_equal(b.addr, f1 + 24 * G);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	assert_int_equal(alloc(zone, 128 * G, 0, 0, &b), 0);
	assert_int_equal(b.addr, f2);
	/* the last one first: it keeps the frame while the middle is cut up */
	assert_int_equal(alloc_at(zone, f2 + used2[3][0] * G, used2[3][1] * G, &last), 0);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(alloc_at(zone, f2 + used2[i][0] * G, used2[i][1] * G, &b), 0);
	assert_int_equal(neuron_buddy_check(zone), 0);
	assert_int_equal(where(zone, 4 * G, 0, 0), f1 + 24 * G);
	assert_int_equal(where(zone, 3 * G, 0, 0), f1 + 24 * G);
	assert_int_equal(where(zone, 5 * G, 0, 0), f1 + 31 * G);
	assert_int_equal(where(zone, 7 * G, 0, 0), f1 + 10 * G);
	assert_int_equal(where(zone, 10 * G, 0, 0), f2 + 208 * G);
	/* alignment: granule 32 is inside the run of 6 */
	assert_int_equal(where(zone, 4 * G, 16 * G, 0), f1 + 32 * G);
	/* a new frame is as long as sixteen blocks, which fill it */
	assert_int_equal(where(zone, 31 * G, 0, 0), f2 - 16 * 31 * G);
	/* or begins where the block does, and ends where one would */
	assert_int_equal(where(zone, 31 * G, 64 * G, 0), 58 * MIB);
	zone_end(zone);
}

/* Prepare donates as many pages as are missing, and not one more. */
/* The empty frame in the middle of what is free: nobody may see it but the next block. */
static void test_empty_frame(void **state)
{
	static const struct neuron_buddy_request others[] = {
		{ .size = 64 * KIB }, { .size = 3 * G }, { .size = G, .flags = NEURON_BUDDY_LOW },
		{ .size = G, .align = 4 * MIB }, { .size = 16 * MIB },
		{ .size = 16 * MIB, .flags = NEURON_BUDDY_EXACT },
	};
	struct neuron_buddy *zone = zone_new(16 * MIB);
	struct neuron_buddy_block a, b, pin;
	struct neuron_buddy_stats st, none;
	struct neuron_buddy_range range;
	u64 pos = 0;
	u32 i;

	(void)state;
	neuron_buddy_stats(zone, &none);
	assert_int_equal(none.largest, 16 * MIB);
	for (i = 0; i < 6; i++) {
		/* The frame is not at an end of the zone: what follows it is free by then. */
		assert_int_equal(alloc(zone, 6 * MIB, 0, NEURON_BUDDY_HIGH, &pin), 0);
		assert_int_equal(alloc(zone, 2 * G, 0, 0, &a), 0);
		assert_int_equal(neuron_buddy_free(zone, &pin, false), 0);
		assert_int_equal(neuron_buddy_free(zone, &a, false), 0);
		assert_non_null(zone->empty);
		/* The same again takes the same place. */
		assert_int_equal(alloc(zone, 2 * G, 0, 0, &b), 0);
		assert_int_equal(b.addr, a.addr);
		assert_null(zone->empty);
		assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
		assert_non_null(zone->empty);
		switch (i) {
		case 0:
			assert_int_equal(neuron_buddy_largest(zone, 2 * MIB), 16 * MIB);
			break;
		case 1:
			assert_int_equal(neuron_buddy_walk(zone, &pos, &range, 1), 1);
			assert_int_equal(range.size, 16 * MIB);
			break;
		case 2:
			assert_int_equal(neuron_buddy_reserve(zone, a.addr, G), 0);
			assert_null(zone->empty);
			zone_end(zone);
			zone = zone_new(16 * MIB);
			break;
		default:
			neuron_buddy_stats(zone, &st);
			assert_int_equal(st.largest, none.largest);
			assert_memory_equal(st.order_free, none.order_free, sizeof(st.order_free));
			assert_int_equal(st.frames, 0);
		}
		assert_null(zone->empty);
	}
	/* Any other request uses it as a new one, or finds the zone as if it had never been. */
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		assert_int_equal(alloc(zone, 2 * G, 0, 0, &a), 0);
		assert_int_equal(neuron_buddy_free(zone, &a, false), 0);
		assert_ptr_not_equal(zone->empty, NULL);
		assert_int_equal(neuron_buddy_prepare(zone), 0);
		assert_int_equal(neuron_buddy_alloc(zone, &others[i], &b, NULL), 0);
		assert_null(zone->empty);
		neuron_buddy_stats(zone, &st);
		assert_int_equal(st.frames, i < 3);
		assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	}
	zone_end(zone);
}

static void test_prepare_pages(void **state)
{
	const u32 per_page = (PAGE_SIZE - sizeof(struct page_head)) / sizeof(struct ext);
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block b;
	unsigned long calls;

	(void)state;
	assert_int_equal(zone->pool_len, per_page - 1);
	assert_int_equal(zone->frame_pool_len,
			 (PAGE_SIZE - sizeof(struct page_head)) / sizeof(struct frame));
	while (zone->pool_len > NEED_EXTENTS)
		ext_get(zone);
	/* just enough is enough */
	calls = model_alloc_calls;
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(model_alloc_calls, calls);
	assert_true(reserve_ready(zone, NEED_EXTENTS));
	ext_get(zone);
	assert_false(reserve_ready(zone, NEED_EXTENTS));
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(model_alloc_calls, calls + 1);
	assert_true(reserve_ready(zone, NEED_EXTENTS));
	assert_int_equal(zone->pool_len, NEED_EXTENTS - 1 + per_page);
	/* one more than a page holds takes two */
	assert_false(reserve_ready(zone, zone->pool_len + per_page));
	assert_int_equal(zone->want, zone->pool_len + per_page);
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(model_alloc_calls, calls + 2);
	assert_true(reserve_ready(zone, zone->want));
	assert_int_equal(zone->want, NEED_EXTENTS);
	assert_false(reserve_ready(zone, zone->pool_len + per_page + 1));
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(model_alloc_calls, calls + 4);
	/* any operation takes them over, and the large wish is history */
	assert_int_equal(alloc(zone, MIB, 0, 0, &b), 0);
	assert_int_equal(zone->want, NEED_EXTENTS);
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(model_alloc_calls, calls + 4);
	zone_end(zone);
}

/* After all the others: whatever they did, every page came back. */
static void test_no_leak(void **state)
{
	(void)state;
	assert_int_equal(model_alloc_live, 0);
}

/* Every count wraps somewhere: generations skip 0 and what is remembered. */
static void test_generations(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block keep, a, b;

	(void)state;
	assert_int_equal(alloc(zone, G, 0, 0, &keep), 0);
	zone->gen = GEN_MASK;
	assert_int_equal(alloc(zone, G, 0, 0, &a), 0);
	assert_int_equal(a.gen, 1);
	assert_int_equal(neuron_buddy_free(zone, &a, false), 0);
	/* the whole number space later, the same generation comes up: not here */
	zone->gen = 0;
	assert_int_equal(alloc_at(zone, a.addr, G, &b), 0);
	assert_int_equal(b.gen, 2);
	assert_int_equal(neuron_buddy_free(zone, &a, false), -ESTALE);
	assert_int_equal(neuron_buddy_free(zone, &b, false), 0);
	zone_end(zone);
}

/* A zone so large that the cap on aligned probes bites: rarely, and reported as such. */
static void test_probe_cap(void **state)
{
	struct neuron_buddy *zone = zone_new(4 * GIB);
	static struct neuron_buddy_block b[2048][2];
	struct neuron_buddy_block x;
	enum neuron_buddy_cause cause;
	struct neuron_buddy_request req = { .size = 255 * G, .align = G * 256 };
	int i, tries = 0;

	(void)state;
	/* every frame: used below 4 KiB and above 1 MiB + 4 KiB: 257 free, one aligned granule */
	for (i = 0; i < 2048; i++) {
		assert_int_equal(alloc_at(zone, i * 2 * MIB, 2 * MIB, &b[i][0]), 0);
		assert_int_equal(neuron_buddy_free(zone, &b[i][0], false), 0);
		assert_int_equal(alloc(zone, G, 2 * MIB, NEURON_BUDDY_LOW, &b[i][0]), 0);
		assert_int_equal(alloc_at(zone, b[i][0].addr + MIB + 2 * G, MIB - 2 * G, &b[i][1]),
				 0);
	}
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -ENOSPC);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_ALIGNMENT);
	/* one frame is opened: it is found, if not at once */
	assert_int_equal(neuron_buddy_free(zone, &b[1000][1], false), 0);
	while (neuron_buddy_alloc(zone, &req, &x, &cause)) {
		assert_int_equal(neuron_buddy_prepare(zone), 0);
		assert_true(++tries < 4);
	}
	assert_int_equal(x.addr, b[1000][0].addr + MIB);
	zone_end(zone);
}

/* The same for runs that cross the border of two frames. */
static void test_probe_cap_joined(void **state)
{
	struct neuron_buddy_request req = { .size = 4 * G, .align = 2 * MIB };
	struct neuron_buddy *zone = zone_new(1100 * 4 * MIB);
	static struct neuron_buddy_block low, high[1100], last, x;
	enum neuron_buddy_cause cause;
	u64 at = 0;
	int i;

	(void)state;
	/* each pair of frames: free are three granules below the border, and two above it */
	for (i = 0; i < 1100; i++) {
		assert_int_equal(alloc(zone, G, 2 * MIB, NEURON_BUDDY_LOW, &low), 0);
		at = low.addr;
		assert_int_equal(alloc(zone, G, 2 * MIB, NEURON_BUDDY_LOW, &high[i]), 0);
		assert_int_equal(high[i].addr, at + 2 * MIB);
		assert_int_equal(alloc_at(zone, at + G, 2 * MIB - (i < 1099 ? 4 : 8) * G, &x), 0);
		assert_int_equal(alloc_at(zone, high[i].addr + 2 * G, 2 * MIB - 2 * G, &last), 0);
	}
	for (i = 0; i < 1100; i++) {
		assert_int_equal(alloc_at(zone, high[i].addr + G, G, &x), 0);
		assert_int_equal(neuron_buddy_free(zone, &high[i], false), 0);
		assert_int_equal(neuron_buddy_free(zone, &x, false), 0);
	}
	assert_int_equal(neuron_buddy_check(zone), 0);
	assert_int_equal(neuron_buddy_largest(zone, 1), 9 * G);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -ENOSPC);
	assert_int_equal(cause, NEURON_BUDDY_CAUSE_ALIGNMENT);
	/* the last one opens, but for its last granule: long enough to be sure */
	assert_int_equal(alloc_at(zone, last.addr - 2 * G, 2 * G, &low), 0);
	assert_int_equal(neuron_buddy_free(zone, &last, false), 0);
	assert_int_equal(alloc_at(zone, last.addr + 2 * MIB - 3 * G, G, &x), 0);
	assert_int_equal(neuron_buddy_free(zone, &low, false), 0);
	assert_int_equal(neuron_buddy_largest(zone, 1), (7 + 511) * G);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), 0);
	assert_int_equal(x.addr, at + 2 * MIB);
	zone_end(zone);
}

/* A small block that had an extent is known to be stale when a frame covers its place. */
static void test_stale_extent(void **state)
{
	struct neuron_buddy *zone = zone_new(512 * G);
	struct neuron_buddy_block large, small, x;
	int i;

	(void)state;
	assert_int_equal(alloc(zone, 300 * G, 0, 0, &large), 0);
	assert_int_equal(alloc(zone, G, 0, 0, &small), 0);
	assert_int_equal(ext_find(zone, (u32)(small.addr / G))->type, EXT_USED);
	assert_int_equal(neuron_buddy_free(zone, &small, false), 0);
	assert_int_equal(neuron_buddy_free(zone, &large, false), 0);
	for (i = 0; i <= 300; i++)
		assert_int_equal(alloc(zone, G, 0, 0, &x), 0);
	assert_int_equal(x.addr, small.addr);
	assert_int_equal(neuron_buddy_free(zone, &small, false), -ESTALE);
	assert_int_equal(neuron_buddy_free(zone, &x, false), 0);
	zone_end(zone);
}

/*
 * More frames than are examined, none of which has a place but the second one, at its lower end:
 * only the search for runs over a border gets there, and the place lies in that frame alone.
 */
static void probe_cap_in_frame(bool empty)
{
	struct neuron_buddy_request req = { .size = 2 * G, .align = 2 * MIB };
	struct neuron_buddy *zone = zone_new(1100 * 2 * MIB);
	static struct neuron_buddy_block first[1100], rest, live, x;
	int i;

	for (i = 0; i < 1100; i++) {
		u64 at = (u64)i * 2 * MIB, used = i == 1 ? 10 * G : i ? 3 * G : G;

		assert_int_equal(alloc(zone, G, 2 * MIB, NEURON_BUDDY_LOW, &first[i]), 0);
		assert_int_equal(first[i].addr, at);
		assert_int_equal(alloc_at(zone, at + used, 2 * MIB - max(used, 3 * G), &rest), 0);
		if (i == 1)
			live = rest;
	}
	assert_int_equal(neuron_buddy_free(zone, &first[1], false), 0);
	if (empty)
		assert_int_equal(neuron_buddy_free(zone, &live, false), 0);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, NULL), 0);
	assert_int_equal(x.addr, 2 * MIB);
	assert_int_equal(neuron_buddy_check(zone), 0);
	assert_int_equal(neuron_buddy_query(zone, live.addr, &rest), empty ? -ENOENT : 0);
	zone_end(zone);
}

static void test_probe_cap_in_frame(void **state)
{
	(void)state;
	probe_cap_in_frame(false);
}

/* The same when that frame has become empty, and is kept with the edges that it had. */
static void test_probe_cap_empty_frame(void **state)
{
	(void)state;
	probe_cap_in_frame(true);
}

/* Alignment up to the size: nothing is left out, however much there is. */
static void test_no_cap(void **state)
{
	struct neuron_buddy_request req = { .size = 256 * G, .align = 256 * G };
	struct neuron_buddy *zone = zone_new(4 * GIB);
	enum neuron_buddy_cause cause;
	struct neuron_buddy_block x;
	u64 at;
	u32 i;

	(void)state;
	for (i = 0; i < 2048; i++) {
		/* free: granules 1 to 299, and in the 1,500th frame 255 to 511 */
		assert_int_equal(alloc(zone, G, 2 * MIB, NEURON_BUDDY_LOW, &x), 0);
		at = x.addr;
		if (i == 1500)
			assert_int_equal(alloc_at(zone, at + G, 254 * G, &x), 0);
		else
			assert_int_equal(alloc_at(zone, at + 300 * G, 212 * G, &x), 0);
	}
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), 0);
	assert_int_equal(x.addr, 1500 * 2 * MIB + MIB);
	assert_int_equal(neuron_buddy_alloc(zone, &req, &x, &cause), -ENOSPC);
	zone_end(zone);
}

/* --- failing metadata --------------------------------------------------------------------- */

/* Make each allocation of create fail in turn: nothing leaks, nothing is returned. */
static void test_fail_create(void **state)
{
	struct neuron_buddy *zone;
	int n, err;

	(void)state;
	for (n = 1; ; n++) {
		zone = NULL;
		model_alloc_fail = n;
		err = neuron_buddy_create(&zone, 64 * MIB);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_null(zone);
	}
	assert_true(n > 9);
	model_alloc_fail = 0;
	zone_end(zone);
}

/*
 * A fixed story of allocations, grows and reservations, with the n-th metadata
 * allocation failing, for every n until none fails. A failed prepare changes
 * nothing, and without prepare the operation says -EAGAIN and changes nothing.
 */
static int story(struct model *m, int *splits)
{
	int i, failed = 0;

	for (i = 0; i < 3000; i++) {
		struct neuron_buddy_request req = { .size = (1 + rnd() % 40) * G };
		struct neuron_buddy_stats before, after;
		struct neuron_buddy_block b, rest;
		int err = neuron_buddy_prepare(m->zone);
		u32 j;

		if (err) {
			assert_int_equal(err, -ENOMEM);
			failed++;
			neuron_buddy_stats(m->zone, &before);
			err = neuron_buddy_alloc(m->zone, &req, &b, NULL);
			neuron_buddy_stats(m->zone, &after);
			assert_int_equal(err, -EAGAIN);
			assert_memory_equal(&before, &after, sizeof(after));
			if (m->nr_live) {
				b = m->live[0];
				assert_int_equal(neuron_buddy_grow(m->zone, &b, b.size + G), -EAGAIN);
				neuron_buddy_stats(m->zone, &after);
				assert_memory_equal(&before, &after, sizeof(after));
			}
			/* One granule, or part of a frame, is refused for that. */
			for (j = 0; j < m->nr_live; j++) {
				b = m->live[j];
				err = neuron_buddy_split(m->zone, &b, G, &rest);
				assert_true(err == -EAGAIN || err == -EINVAL || err == -ENOSPC);
				assert_int_equal(b.size, m->live[j].size);
				*splits += err == -EAGAIN;
			}
			assert_int_equal(neuron_buddy_check(m->zone), 0);
			model_compare(m, i);
		}
		/* direct extents, so that descriptors run out: no room for frames */
		if (rnd() % 8)
			model_alloc(m, req.size, 0, 0, 0);
		else if (m->nr_live)
			model_free(m, rnd() % m->nr_live, false);
	}
	return failed;
}

static void test_fail_nth(void **state)
{
	int n, failed = 1, splits = 0;

	(void)state;
	for (n = 1; failed; n++) {
		struct model m;
		u64 hole;

		rnd_seed(11);
		model_init(&m, 8192);
		/* there is room for a frame nowhere */
		for (hole = 128; hole < 8192; hole += 256)
			assert_true(model_alloc(&m, G, 0, hole * G, NEURON_BUDDY_EXACT) >= 0);
		model_alloc_fail = n;
		failed = story(&m, &splits);
		model_alloc_fail = 0;
		model_exit(&m);
	}
	assert_true(n > 3 && splits);
}

/* Frees go through with an empty reserve, whatever they have to merge or dissolve. */
static void test_free_needs_nothing(void **state)
{
	struct model m;
	u32 i;

	(void)state;
	rnd_seed(5);
	model_init(&m, 16384);
	for (i = 0; i < 2000; i++)
		model_alloc(&m, (1 + rnd() % (i & 1 ? 600 : 60)) * G, 0, 0, 0);
	/* hide the pools */
	m.zone->pool = NULL;
	m.zone->pool_len = 0;
	m.zone->frame_pool = NULL;
	m.zone->frame_pool_len = 0;
	model_alloc_fail = 1;
	while (m.nr_live) {
		model_free(&m, rnd() % m.nr_live, false);
		if (!(rnd() % 64)) {
			/* keep the pools empty: frees put descriptors there */
			m.zone->pool = NULL;
			m.zone->pool_len = 0;
			MODEL_ASSERT(neuron_buddy_check(m.zone) == 0);
		}
	}
	assert_int_equal(model_alloc_fail, 1);
	model_alloc_fail = 0;
	assert_int_equal(neuron_buddy_largest(m.zone, 1), 64 * MIB);
	/* descriptors that live in frames still work as extents */
	for (i = 0; i < 500; i++)
		model_alloc(&m, (1 + rnd() % 600) * G, 0, 0, 0);
	model_exit(&m);
}

static int by_addr(const void *a, const void *b)
{
	u64 x = ((const struct neuron_buddy_block *)a)->addr;
	u64 y = ((const struct neuron_buddy_block *)b)->addr;

	return x < y ? -1 : x > y;
}

/* A batch does what single frees in its order do, refusals included. */
static void test_free_batch(void **state)
{
	struct neuron_buddy *batch = zone_new(256 * MIB), *single = zone_new(256 * MIB);
	static struct neuron_buddy_block live[3000];
	const struct neuron_buddy_block *list[64];
	struct neuron_buddy_stats st[2];
	struct neuron_buddy_block b;
	u32 n = 0, round, i, k;

	(void)state;
	rnd_seed(11);
	for (round = 0; round < 600; round++) {
		u32 want = 1 + rnd() % 64, first, kind = rnd() % 4;
		u64 cleared = kind ? rnd() : 0, gone = 0;
		int err, all = 0;

		for (err = 0; n < 3000 && !err; n += !err) {
			u64 size = (1 + rnd() % (kind == 3 ? 700 : 1 + 8 * kind)) * G;

			err = alloc(batch, size, 0, 0, &live[n]);
			assert_int_equal(alloc(single, size, 0, 0, &b), err);
			assert_true(err || b.addr == live[n].addr);
			/* Neighbours that go together may clear a whole unit. */
			assert_true(err || live[n].cleared >= b.cleared);
		}
		qsort(live, n, sizeof(*live), by_addr);
		first = rnd() % (n - want + 1);
		for (i = 0; i < want; i++)
			list[i] = &live[first + i];
		/* One of them twice, one by a wrong name. */
		if (!(rnd() % 4))
			list[want - 1] = list[rnd() % want];
		if (!(rnd() % 4))
			live[first + want / 2].gen ^= 1;
		for (i = 0; i < want; i++) {
			b = *list[i];
			b.id = single->id;
			err = neuron_buddy_free(single, &b, cleared >> i & 1);
			if (!err)
				gone |= 1ULL << (list[i] - &live[first]);
			all = all ? all : err;
		}
		assert_int_equal(neuron_buddy_free_batch(batch, list, want, cleared), all);
		assert_int_equal(neuron_buddy_check(batch), 0);
		neuron_buddy_stats(batch, &st[0]);
		neuron_buddy_stats(single, &st[1]);
		assert_memory_equal(&st[0], &st[1], sizeof(st[0]));
		if (!(gone >> want / 2 & 1))
			live[first + want / 2].gen ^= 1;
		for (i = k = first; i < n; i++)
			if (i >= first + want || !(gone >> (i - first) & 1))
				live[k++] = live[i];
		n = k;
	}
	zone_end(batch);
	zone_end(single);
}

/* Two callers prepare at once: the second one's pages are not lost. */
static void test_donations(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_stats st, st2;
	struct neuron_buddy_block b;
	u32 i;

	(void)state;
	zone->pool = NULL;
	zone->pool_len = 0;
	zone->frame_pool = NULL;
	zone->frame_pool_len = 0;
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	/* pages wait: a second prepare adds none */
	i = model_alloc_calls;
	assert_int_equal(neuron_buddy_prepare(zone), 0);
	assert_int_equal(model_alloc_calls, i);
	neuron_buddy_stats(zone, &st);
	assert_int_equal(alloc(zone, G, 0, 0, &b), 0);
	neuron_buddy_stats(zone, &st2);
	assert_int_equal(st2.metadata, st.metadata + 2 * PAGE_SIZE);
	zone_end(zone);
}

/* A walk in small steps while the zone changes: no address twice, always forward. */
static void test_walk_while_changing(void **state)
{
	struct model m;
	u64 pos = 0, at = 0;
	u32 i;

	(void)state;
	rnd_seed(9);
	model_init(&m, 8192);
	for (i = 0; i < 300; i++)
		model_alloc(&m, (1 + rnd() % 40) * G, 0, 0, 0);
	for (;;) {
		struct neuron_buddy_range r[3];
		unsigned int n = neuron_buddy_walk(m.zone, &pos, r, 3), j;

		if (!n)
			break;
		for (j = 0; j < n; j++) {
			assert_true(r[j].addr >= at && r[j].size);
			at = r[j].addr + r[j].size;
		}
		if (m.nr_live)
			model_free(&m, rnd() % m.nr_live, false);
		model_alloc(&m, (1 + rnd() % 40) * G, 0, 0, 0);
	}
	assert_int_equal(pos, 8192 * G);
	model_exit(&m);
}

/* The check itself must see damage, or the tests above prove nothing. */
/* The check sees that a value is wrong, and that it is right again. */
#define DAMAGE(lvalue, value)						\
	do {								\
		__typeof__(lvalue) was = lvalue;			\
		(lvalue) = (value);					\
		assert_true(neuron_buddy_check(zone) > 0);		\
		(lvalue) = was;						\
		assert_int_equal(neuron_buddy_check(zone), 0);		\
	} while (0)

static void damage_fields(struct neuron_buddy *zone, struct frame *fr, struct ext *e)
{
	DAMAGE(zone->st.free, zone->st.free + G);
	DAMAGE(zone->st.used, zone->st.used + G);
	DAMAGE(zone->st.high_water, 0);
	DAMAGE(zone->st.reserved, G);
	DAMAGE(zone->st.allocs, 3);
	DAMAGE(zone->st.frames, 0);
	DAMAGE(zone->empty, fr);
	DAMAGE(zone->empty, (struct frame *)e);
	DAMAGE(zone->st.total, 0);
	DAMAGE(zone->st.order_free[0], G);
	DAMAGE(zone->pool_len, zone->pool_len + 1);
	DAMAGE(zone->pool_len, zone->pool_len - 1);
	DAMAGE(zone->frame_pool_len, zone->frame_pool_len + 1);
	DAMAGE(zone->frame_pool_len, zone->frame_pool_len - 1);
	DAMAGE(zone->bin_rows, zone->bin_rows ^ 1);
	DAMAGE(zone->bin_cols[0], 1);
	DAMAGE(zone->run_map[0], zone->run_map[0] ^ 2);
	DAMAGE(zone->starts[0], zone->starts[0] ^ 1);
	DAMAGE(zone->longest.level[0][0], 1);
	DAMAGE(zone->longest.level[1][0], 1);
	DAMAGE(zone->whole.level[0][0], 1);
	DAMAGE(e->len, e->len + 1);
	DAMAGE(e->len, e->len - 1);
	DAMAGE(e->type, EXT_USED);
	DAMAGE(e->type, EXT_PIN);
	DAMAGE(e->prev->type, EXT_FREE);
	DAMAGE(e->next->prev, NULL);
	DAMAGE(zone->map[cell_of(e->start)], NULL);
	DAMAGE(fr->run, fr->run - 1);
	DAMAGE(fr->free, fr->free - 1);
	DAMAGE(fr->live, 9);
	DAMAGE(fr->live, 0);
	DAMAGE(fr->head, 1);
	DAMAGE(fr->tail, 1);
	DAMAGE(fr->a[0], 1);
	DAMAGE(fr->b[0], 0);
	DAMAGE(fr->b[7], 1ULL << 63);
	DAMAGE(fr->e.embedded, false);
	DAMAGE(fr->e.len, FRAME_LEN + 1);
	DAMAGE(fr->a[0], fr->a[0] | fr->b[0]);
	DAMAGE(zone->first->prev, e);
	DAMAGE(zone->first->len, 0);
	DAMAGE(zone->len, zone->len - FRAME_LEN);
	DAMAGE(zone->len, zone->len + 1);
	DAMAGE(zone->pool->type, EXT_USED);
	DAMAGE(zone->pool->embedded, true);
	DAMAGE(zone->frame_pool->e.type, EXT_USED);
	DAMAGE(zone->frame_pool->e.embedded, false);
}

/* What other lists hold, or hold twice; @addr is in @fr. */
static void damage_lists(struct neuron_buddy *zone, struct frame *fr, struct ext *e, u64 addr)
{
	struct neuron_buddy_block x;
	struct ext stray;
	u32 row, col;

	assert_int_equal(neuron_buddy_reserve(zone, addr + 8 * G, G), 0);
	DAMAGE(zone->pins->type, EXT_USED);
	DAMAGE(zone->pins, NULL);
	DAMAGE(fr->pins, 0);
	DAMAGE(zone->pins->bnext, zone->pool);
	assert_int_equal(alloc_at(zone, addr + 9 * G, G, &x), 0);
	DAMAGE(zone->pins->len, 2);
	bin_of(e->len, &row, &col);
	DAMAGE(zone->bin_cols[row], zone->bin_cols[row] ^ (2u << col));
	DAMAGE(zone->bin[row][col], NULL);
	DAMAGE(zone->bin[row][col]->bnext, e->prev);
	DAMAGE(zone->bin[row][(col + 1) % 32], e);
	/* an extent that is in a bin but nowhere else, and in the wrong one */
	stray = *e;
	stray.bprev = NULL;
	stray.bnext = e;
	e->bprev = &stray;
	DAMAGE(zone->bin[row][col], &stray);
	e->bprev = NULL;
	stray.bnext = NULL;
	stray.len = 1;
	e->bnext = &stray;
	stray.bprev = e;
	assert_true(neuron_buddy_check(zone) > 0);
	stray.type = EXT_USED;
	assert_true(neuron_buddy_check(zone) > 0);
	e->bnext = NULL;
}

static void damage_runs(struct neuron_buddy *zone, struct frame *fr)
{
	struct frame stray_frame;

	DAMAGE(zone->run[fr->run], NULL);
	DAMAGE(zone->run[1], &fr->e);
	DAMAGE(fr->e.bnext, zone->pool);
	stray_frame = *fr;
	stray_frame.e.bprev = &fr->e;
	stray_frame.e.bnext = NULL;
	fr->e.bnext = &stray_frame.e;
	assert_true(neuron_buddy_check(zone) > 0);
	stray_frame.run--;
	assert_true(neuron_buddy_check(zone) > 0);
	stray_frame.e.type = EXT_USED;
	assert_true(neuron_buddy_check(zone) > 0);
	fr->e.bnext = NULL;
}

/* @small is the first block of @fr. */
static void damage_frames(struct neuron_buddy *zone, struct frame *fr,
			  struct neuron_buddy_block *small)
{
	struct neuron_buddy_block x;
	u32 lo, n;

	/* a second extent of the same frame as its first */
	assert_int_equal(alloc_at(zone, 20 * MIB, 8 * G, &x), 0);
	assert_int_equal(alloc_at(zone, 20 * MIB + 8 * G, 8 * G, &x), 0);
	DAMAGE(zone->map[cell_of(20 * MIB / G)], zone->map[cell_of(20 * MIB / G)]->next);
	/* a granule outside a trimmed frame */
	assert_int_equal(neuron_buddy_free(zone, small, false), 0);
	lo = fr->e.start;
	n = fr->head;
	frame_trim(zone, fr, true, n);
	assert_int_equal(neuron_buddy_check(zone), 0);
	assert_true(fr->e.start == lo + n);
	DAMAGE(fr->b[0], fr->b[0] & ~1ULL);
	DAMAGE(fr->a[0], fr->a[0] | 1);
}

static void damage_sizes(struct neuron_buddy *zone)
{
	struct neuron_buddy_block x;
	struct frame *two;
	int i;

	/* what is in use by size, the part of it that is small, runs over a border */
	DAMAGE(zone->extents_used, zone->extents_used + 1);
	DAMAGE(zone->class_used[0], zone->class_used[0] + 1);
	DAMAGE(zone->cut_below, zone->cut_below + 1);
	DAMAGE(zone->joined.level[0][0], zone->joined.level[0][0] + 1);
	/* frames with the same longest run are linked both ways */
	for (i = 0; i < 12; i++)
		assert_int_equal(alloc(zone, 120 * G, 0, 0, &x), 0);
	two = to_frame(zone->run[0]);
	assert_non_null(two->e.bnext);
	DAMAGE(two->e.bnext->bprev, NULL);
	DAMAGE(two->e.bnext, NULL);
	/* and so are extents of the same size */
	assert_int_equal(alloc_at(zone, 30 * MIB, MIB, &x), 0);
	assert_int_equal(alloc_at(zone, 31 * MIB + G, MIB, &x), 0);
	assert_int_equal(alloc_at(zone, 32 * MIB + 2 * G, MIB, &x), 0);
	assert_non_null(zone->bin[0][1]->bnext);
	DAMAGE(zone->bin[0][1]->bnext->bprev, NULL);
	DAMAGE(zone->bin[0][1]->bnext, NULL);
}

static void test_check_sees_damage(void **state)
{
	struct neuron_buddy *zone = zone_new(64 * MIB);
	struct neuron_buddy_block small[3], large[3];
	struct frame *fr;
	struct ext *e;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(alloc(zone, 3 * G, 0, 0, &small[i]), 0);
		assert_int_equal(alloc(zone, 3 * MIB, 0, 0, &large[i]), 0);
	}
	assert_int_equal(neuron_buddy_free(zone, &small[1], false), 0);
	assert_int_equal(neuron_buddy_free(zone, &large[1], false), 0);
	assert_int_equal(neuron_buddy_check(zone), 0);
	fr = to_frame(ext_find(zone, small[0].addr / G));
	e = ext_find(zone, large[1].addr / G);
	damage_fields(zone, fr, e);
	damage_lists(zone, fr, e, small[2].addr);
	damage_runs(zone, fr);
	damage_frames(zone, fr, &small[0]);
	damage_sizes(zone);
	zone_end(zone);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_largest_zone),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_bad_frees),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_no_waste),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_reserve_many_pieces),
		cmocka_unit_test(test_cleared),
		cmocka_unit_test(test_cleared_far),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_hazard_underaligned),
		cmocka_unit_test(test_hazard_one_order),
		cmocka_unit_test(test_hazard_tier_border),
		cmocka_unit_test(test_hazard_clear_barrier),
		cmocka_unit_test(test_hazard_exact_hole),
		cmocka_unit_test(test_hazard_int_alignment),
		cmocka_unit_test(test_adversary_free_orders),
		cmocka_unit_test(test_adversary_checkerboard),
		cmocka_unit_test(test_adversary_aligned),
		cmocka_unit_test(test_adversary_robson),
		cmocka_unit_test(test_adversary_primes),
		cmocka_unit_test(test_adversary_two_processes),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_bins),
		cmocka_unit_test(test_policy_small),
		cmocka_unit_test(test_policy_large),
		cmocka_unit_test(test_policy_useless_rest),
		cmocka_unit_test(test_policy_cut),
		cmocka_unit_test(test_fill_one_size),
		cmocka_unit_test(test_policy_frames),
		cmocka_unit_test(test_empty_frame),
		cmocka_unit_test(test_prepare_pages),
		cmocka_unit_test(test_generations),
		cmocka_unit_test(test_probe_cap),
		cmocka_unit_test(test_probe_cap_joined),
		cmocka_unit_test(test_stale_extent),
		cmocka_unit_test(test_probe_cap_in_frame),
		cmocka_unit_test(test_probe_cap_empty_frame),
		cmocka_unit_test(test_no_cap),
		cmocka_unit_test(test_fail_create),
		cmocka_unit_test(test_fail_nth),
		cmocka_unit_test(test_free_needs_nothing),
		cmocka_unit_test(test_free_batch),
		cmocka_unit_test(test_donations),
		cmocka_unit_test(test_walk_while_changing),
		cmocka_unit_test(test_check_sees_damage),
		cmocka_unit_test(test_property),
		cmocka_unit_test(test_no_leak),
	};

	property_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (u64)time(NULL);
	if (argc > 1) {
		property(strtoull(argv[1], NULL, 0), property_seed);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
