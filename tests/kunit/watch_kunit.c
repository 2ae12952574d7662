// SPDX-License-Identifier: GPL-2.0-only
/* The check that memory which becomes free has no users: what it knows of them. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>

/* The structures that are noted, and that there is no memory for one. */
static bool watch_nomem;
static int watch_allocs;

static void *watch_alloc(size_t size, gfp_t gfp)
{
	void *p = watch_nomem ? NULL : kzalloc(size, gfp);

	watch_allocs += !!p;
	return p;
}

static void watch_free(void *p)
{
	watch_allocs -= !!p;
	kfree(p);
}

#undef WARN
#undef kzalloc
#define kzalloc	watch_alloc
#define kfree	watch_free
#define WARN(condition, format...) do {				\
	if (condition) {					\
		warnings++;					\
		snprintf(warning, sizeof(warning), format);	\
	}							\
} while (0)

/* A real one would end a guest; that it does, tests/vm/selftest.sh shows. */
static unsigned int warnings;
static char warning[128];

#include "../../kmod/mem/watch.c"

static void watch_sees_overlap(struct kunit *test)
{
	static struct neuron_hbm hbm = { .watched = RB_ROOT_CACHED };
	struct neuron_watch *map, *ring;

	spin_lock_init(&hbm.watch_lock);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0, U64_MAX), NEURON_USER_NONE);
	map = neuron_watch_range(&hbm, 0x10000, 0x4000, NEURON_USER_MAPPING);
	ring = neuron_watch_range(&hbm, 0x12000, 0x10000, NEURON_USER_RING);
	KUNIT_ASSERT_NOT_NULL(test, map);
	KUNIT_ASSERT_NOT_NULL(test, ring);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0, 0x10000), NEURON_USER_NONE);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0, 0x10001), NEURON_USER_MAPPING);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0x11000, 1), NEURON_USER_MAPPING);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0x14000, 0x1000), NEURON_USER_RING);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0x22000, 0x1000), NEURON_USER_NONE);

	/* The same range twice: the other one still has it. */
	neuron_watch_end(map);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0x11000, 0x1000), NEURON_USER_NONE);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0x11000, 0x1001), NEURON_USER_RING);
	neuron_watch_end(ring);
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0, U64_MAX), NEURON_USER_NONE);
	KUNIT_EXPECT_EQ(test, watch_allocs, 0);
	watch_nomem = true;
	KUNIT_EXPECT_NULL(test, neuron_watch_range(&hbm, 0, 1, NEURON_USER_RING));
	watch_nomem = false;
	KUNIT_EXPECT_EQ(test, neuron_watch_user(&hbm, 0, U64_MAX), NEURON_USER_NONE);
}

static void watch_warns(struct kunit *test)
{
	static struct neuron_hbm hbm = { .watched = RB_ROOT_CACHED, .index = 1 };
	static const struct {
		enum neuron_user as;
		const char *name;
	} rows[] = {
		{ NEURON_USER_MAPPING, "mapping" }, { NEURON_USER_EXPORT, "dma-buf" },
		{ NEURON_USER_RING, "ring" }, { NEURON_USER_TRANSFER, "transfer" },
		{ NEURON_USER_PEER, "peer" },
	};
	char want[128];
	unsigned int i;

	spin_lock_init(&hbm.watch_lock);
	warnings = 0;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_watch *w = neuron_watch_range(&hbm, 0x10000, 0x4000, rows[i].as);

		KUNIT_ASSERT_NOT_NULL(test, w);
		neuron_watch_freed(&hbm, 0, 0x10000);
		neuron_watch_freed(&hbm, 0x14000, 0x1000);
		KUNIT_EXPECT_EQ(test, warnings, i);
		neuron_watch_freed(&hbm, 0x13000, 0x2000);
		KUNIT_EXPECT_EQ(test, warnings, i + 1);
		snprintf(want, sizeof(want),
			 "neuron: HBM 1: 0x13000 + 0x2000 is freed and part of a %s\n",
			 rows[i].name);
		KUNIT_EXPECT_STREQ(test, warning, want);
		neuron_watch_end(w);
		neuron_watch_freed(&hbm, 0x13000, 0x2000);
		KUNIT_EXPECT_EQ(test, warnings, i + 1);
	}
}

/* Whoever does not watch pays nothing; the parameter can only switch it on. */
static void watch_parameter(struct kunit *test)
{
	static const struct {
		const char *val, *shown;
		int err;
	} rows[] = {
		{ "0", "N\n", 0 }, { "maybe", "N\n", -EINVAL }, { "1", "Y\n", 0 },
		{ "0", "Y\n", 0 }, { "maybe", "Y\n", -EINVAL },
	};
	char *page = (char *)__get_free_page(GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ(test, neuron_watch_set(rows[i].val, NULL), rows[i].err);
		KUNIT_EXPECT_EQ(test, neuron_watch_get(page, NULL), 2);
		KUNIT_EXPECT_STREQ(test, page, rows[i].shown);
	}
	static_branch_disable(&neuron_watching);
	free_page((unsigned long)page);
}

static struct kunit_case watch_cases[] = {
	KUNIT_CASE(watch_sees_overlap),
	KUNIT_CASE(watch_warns),
	KUNIT_CASE(watch_parameter),
	{}
};

static struct kunit_suite watch_suite = {
	.name = "neuron_watch",
	.test_cases = watch_cases,
};

kunit_test_suite(watch_suite);
