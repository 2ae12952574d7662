// SPDX-License-Identifier: GPL-2.0-only
/*
 * The HBM allocator in the kernel: the cases that depend on being there (pages,
 * locks, two processors), and a random walk against a bitmap. The rest of its
 * tests run on the host, on the same files (tests/lib/test_buddy.c).
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include "../../kmod/mem/buddy/all.h"

struct buddy_test {
	struct neuron_buddy *zone;
	spinlock_t lock;	/* of the zone */
};

static int test_zone(struct kunit *test, struct buddy_test *t, u64 size)
{
	spin_lock_init(&t->lock);
	KUNIT_ASSERT_EQ(test, neuron_buddy_create(&t->zone, size), 0);
	return 0;
}

static void test_zone_end(struct kunit *test, struct buddy_test *t)
{
	KUNIT_EXPECT_EQ(test, neuron_buddy_check(t->zone), 0);
	neuron_buddy_destroy(t->zone);
}

/* The shape that buddy.h asks every caller to have. */
static int test_alloc(struct buddy_test *t, u64 size, u64 align, u32 flags, u64 addr,
		      struct neuron_buddy_block *block)
{
	struct neuron_buddy_request req = { .size = size, .align = align, .addr = addr,
					    .flags = flags };
	int err;

	do {
		err = neuron_buddy_prepare(t->zone);
		if (err)
			break;
		spin_lock(&t->lock);
		err = neuron_buddy_alloc(t->zone, &req, block, NULL);
		spin_unlock(&t->lock);
	} while (err == -EAGAIN);
	return err;
}

static int test_free(struct buddy_test *t, const struct neuron_buddy_block *block)
{
	int err;

	spin_lock(&t->lock);
	err = neuron_buddy_free(t->zone, block, false);
	spin_unlock(&t->lock);
	return err;
}

/* A call that wants the zone's lock. */
#define LOCKED(t, call) ({						\
	int ret_;							\
									\
	spin_lock(&(t)->lock);						\
	ret_ = (call);							\
	spin_unlock(&(t)->lock);					\
	ret_;								\
})

static void buddy_basics(struct kunit *test)
{
	struct neuron_buddy_block a, b, c;
	struct buddy_test t;

	test_zone(test, &t, 24ULL * SZ_1G);
	KUNIT_EXPECT_EQ(test, test_alloc(&t, 5 * SZ_1M, 0, NEURON_BUDDY_LOW, 0, &a), 0);
	KUNIT_EXPECT_EQ(test, a.addr, 0ULL);
	KUNIT_EXPECT_EQ(test, a.size, 5ULL * SZ_1M);
	KUNIT_EXPECT_EQ(test, test_alloc(&t, SZ_4K, SZ_64K, 0, 0, &b), 0);
	KUNIT_EXPECT_EQ(test, b.addr & (SZ_64K - 1), 0ULL);
	KUNIT_EXPECT_EQ(test, test_alloc(&t, SZ_4K, 0, NEURON_BUDDY_EXACT, SZ_1M, &c), -EBUSY);
	KUNIT_EXPECT_EQ(test, test_alloc(&t, 32ULL * SZ_1G, 0, 0, 0, &c), -ENOSPC);
	KUNIT_EXPECT_EQ(test, test_alloc(&t, 0, 0, 0, 0, &c), -EINVAL);
	KUNIT_EXPECT_EQ(test, neuron_buddy_used(t.zone), 5ULL * SZ_1M + SZ_4K);
	KUNIT_EXPECT_EQ(test, LOCKED(&t, neuron_buddy_grow(t.zone, &a, 9 * SZ_1M)), 0);
	KUNIT_EXPECT_EQ(test, LOCKED(&t, neuron_buddy_query(t.zone, 8 * SZ_1M, &c)), 0);
	KUNIT_EXPECT_EQ(test, c.size, 9ULL * SZ_1M);
	KUNIT_EXPECT_EQ(test,
			LOCKED(&t, neuron_buddy_reserve(t.zone, 16ULL * SZ_1G, SZ_2M)), 0);
	KUNIT_EXPECT_EQ(test,
			LOCKED(&t, neuron_buddy_reserve(t.zone, 8 * SZ_1M, SZ_2M)), -EBUSY);
	KUNIT_EXPECT_EQ(test, test_free(&t, &a), 0);
	KUNIT_EXPECT_EQ(test, test_free(&t, &a), -ENOENT);
	KUNIT_EXPECT_EQ(test, test_free(&t, &b), 0);
	KUNIT_EXPECT_EQ(test, neuron_buddy_largest(t.zone, SZ_4K), 16ULL * SZ_1G);
	test_zone_end(test, &t);
}

static void buddy_bad_frees(struct kunit *test)
{
	static const u32 sizes[] = { SZ_4K, SZ_64K, SZ_1M, 3 * SZ_1M };
	struct neuron_buddy_block keep, a, b, bad;
	struct buddy_test t, other;
	int i;

	test_zone(test, &t, SZ_64M);
	test_zone(test, &other, SZ_64M);
	KUNIT_ASSERT_EQ(test, test_alloc(&t, SZ_4K, 0, 0, 0, &keep), 0);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_ASSERT_EQ(test, test_alloc(&t, sizes[i], 0, 0, 0, &a), 0);
		KUNIT_EXPECT_EQ(test, test_free(&other, &a), -EINVAL);
		bad = a;
		bad.size += SZ_4K;
		KUNIT_EXPECT_EQ(test, test_free(&t, &bad), -ESTALE);
		KUNIT_EXPECT_EQ(test, test_free(&t, &a), 0);
		KUNIT_EXPECT_EQ(test, test_free(&t, &a), -ENOENT);
		KUNIT_ASSERT_EQ(test, test_alloc(&t, sizes[i], 0, NEURON_BUDDY_EXACT, a.addr, &b),
				0);
		KUNIT_EXPECT_EQ(test, test_free(&t, &a), -ESTALE);
		KUNIT_EXPECT_EQ(test, test_free(&t, &b), 0);
	}
	test_zone_end(test, &t);
	test_zone_end(test, &other);
}

/* Every allocated granule in one bitmap; a request that is refused must not fit. */
static void buddy_random(struct kunit *test)
{
	const u32 len = 16384, max = 2000;
	struct neuron_buddy_block *block;
	unsigned long *used;
	struct rnd_state rnd;
	struct buddy_test t;
	u32 seed = get_random_u32(), n = 0, i, granules, at;

	kunit_info(test, "seed %u\n", seed);
	prandom_seed_state(&rnd, seed);
	used = bitmap_zalloc(len, GFP_KERNEL);
	block = vzalloc(array_size(max, sizeof(*block)));
	KUNIT_ASSERT_TRUE(test, used && block);
	test_zone(test, &t, (u64)len * SZ_4K);
	for (i = 0; i < 20000; i++) {
		u32 r = prandom_u32_state(&rnd), order = r % 12;
		u32 align = r >> 8 & 1 ? 1u << (r >> 16) % 11 : 1;

		if ((r >> 4 & 3) == 0 && n) {
			at = prandom_u32_state(&rnd) % n;
			bitmap_clear(used, block[at].addr >> 12, block[at].size >> 12);
			KUNIT_ASSERT_EQ(test, test_free(&t, &block[at]), 0);
			block[at] = block[--n];
			continue;
		}
		granules = (1u << order) + prandom_u32_state(&rnd) % (1u << order);
		if (n < max && !test_alloc(&t, (u64)granules * SZ_4K, (u64)align * SZ_4K, 0, 0,
					   &block[n])) {
			at = block[n].addr >> 12;
			KUNIT_ASSERT_EQ(test, at & (align - 1), 0u);
			KUNIT_ASSERT_GE(test, find_next_bit(used, at + granules, at),
					(unsigned long)at + granules);
			bitmap_set(used, at, granules);
			n++;
		} else {
			KUNIT_ASSERT_GE(test, bitmap_find_next_zero_area(used, len, 0, granules,
									 align - 1),
					(unsigned long)len);
			/* full: make room */
			at = n / 2;
			while (n > at) {
				n--;
				bitmap_clear(used, block[n].addr >> 12, block[n].size >> 12);
				KUNIT_ASSERT_EQ(test, test_free(&t, &block[n]), 0);
			}
		}
		if (i % 512 == 0)
			KUNIT_ASSERT_EQ(test, neuron_buddy_check(t.zone), 0);
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, neuron_buddy_used(t.zone),
			(u64)bitmap_weight(used, len) * SZ_4K);
	test_zone_end(test, &t);
	vfree(block);
	bitmap_free(used);
}

#define STRESS_LIVE	200
#define STRESS_STEPS	20000
#define STRESS_LEN	16384

struct buddy_stress {
	struct buddy_test *t;
	unsigned long *owned;	/* bit per granule, shared */
	struct completion done;
	u32 seed;
	u32 failed;		/* line of the first violated expectation */
	struct neuron_buddy_block block[STRESS_LIVE];
};

/* Claim or give up the granules of a block; false if that was done before. */
static bool stress_own(struct buddy_stress *s, const struct neuron_buddy_block *b, bool own)
{
	unsigned long at = b->addr >> 12, end = at + (b->size >> 12);
	bool ok = true;

	for (; at < end; at++)
		ok &= (own ? test_and_set_bit(at, s->owned) :
			     !test_and_clear_bit(at, s->owned)) == 0;
	return ok;
}

static int stress_thread(void *arg)
{
	struct buddy_stress *s = arg;
	struct rnd_state rnd;
	u32 n = 0, i, at;

	prandom_seed_state(&rnd, s->seed);
	for (i = 0; (i < STRESS_STEPS || n) && !s->failed; i++) {
		u32 r = prandom_u32_state(&rnd);

		if (i < STRESS_STEPS && n < STRESS_LIVE && r & 1) {
			if (test_alloc(s->t, (u64)(1 + (r >> 8) % 700) * SZ_4K, 0, 0, 0,
				       &s->block[n]))
				continue;
			if (!stress_own(s, &s->block[n], true))
				s->failed = __LINE__;
			n++;
		} else if (n) {
			at = (r >> 8) % n;
			if (!stress_own(s, &s->block[at], false))
				s->failed = __LINE__;
			if (test_free(s->t, &s->block[at]))
				s->failed = __LINE__;
			s->block[at] = s->block[--n];
		}
		cond_resched();
	}
	complete(&s->done);
	return 0;
}

/* Two threads share a zone; statistics are read beside them. */
static void buddy_two_threads(struct kunit *test)
{
	struct neuron_buddy_stats st;
	struct buddy_stress *s;
	struct buddy_test t;
	int i, threads = 0, reads = 0;

	s = vzalloc(2 * sizeof(*s));
	KUNIT_ASSERT_NOT_NULL(test, s);
	s[0].owned = bitmap_zalloc(STRESS_LEN, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s[0].owned);
	s[1].owned = s[0].owned;
	test_zone(test, &t, (u64)STRESS_LEN * SZ_4K);
	for (i = 0; i < 2; i++) {
		struct task_struct *task;

		s[i].t = &t;
		s[i].seed = get_random_u32();
		kunit_info(test, "seed %u\n", s[i].seed);
		init_completion(&s[i].done);
		task = kthread_run(stress_thread, &s[i], "buddy-stress/%d", i);
		if (IS_ERR(task))
			break;
		threads++;
	}
	KUNIT_EXPECT_EQ(test, threads, 2);
	while (threads == 2 && (!completion_done(&s[0].done) || !completion_done(&s[1].done))) {
		spin_lock(&t.lock);
		neuron_buddy_stats(t.zone, &st);
		spin_unlock(&t.lock);
		KUNIT_EXPECT_EQ(test, st.used + st.free + st.reserved, st.total);
		KUNIT_EXPECT_LE(test, st.used, st.high_water);
		KUNIT_EXPECT_EQ(test, st.alloc_calls - st.free_calls, st.allocs);
		KUNIT_EXPECT_LE(test, neuron_buddy_used(t.zone), st.total);
		reads++;
		cond_resched();
	}
	for (i = 0; i < threads; i++) {
		wait_for_completion(&s[i].done);
		KUNIT_EXPECT_EQ(test, s[i].failed, 0u);
	}
	KUNIT_EXPECT_GT(test, reads, 0);
	KUNIT_EXPECT_EQ(test, neuron_buddy_used(t.zone), 0ULL);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(s[0].owned, STRESS_LEN));
	KUNIT_EXPECT_EQ(test, neuron_buddy_largest(t.zone, 1), (u64)STRESS_LEN * SZ_4K);
	test_zone_end(test, &t);
	bitmap_free(s[0].owned);
	vfree(s);
}

static struct kunit_case buddy_cases[] = {
	KUNIT_CASE(buddy_basics),
	KUNIT_CASE(buddy_bad_frees),
	KUNIT_CASE(buddy_random),
	KUNIT_CASE(buddy_two_threads),
	{}
};

static struct kunit_suite buddy_suite = {
	.name = "neuron_buddy",
	.test_cases = buddy_cases,
};

kunit_test_suite(buddy_suite);

MODULE_DESCRIPTION("Tests of the Neuron driver");
MODULE_LICENSE("GPL");
