// SPDX-License-Identifier: GPL-2.0-only
/* Categories of memory, and which counters a chunk is shown in. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "../../kmod/base/counter.h"

#define neuron_counter_change	account_counter_change

static void account_counter_change(struct neuron_device *nd, struct neuron_counter *counter,
				   u64 bytes, u64 last, bool add);

#include "../../kmod/mem/account.c"

/* The counters that changed, in order. */
static struct {
	struct neuron_counter *counter[3];
	u64 bytes, last;
	bool add;
	u32 nr;
} seen;

static void account_counter_change(struct neuron_device *nd, struct neuron_counter *counter,
				   u64 bytes, u64 last, bool add)
{
	if (seen.nr < ARRAY_SIZE(seen.counter))
		seen.counter[seen.nr] = counter;
	seen.nr++;
	seen.bytes = bytes;
	seen.last = last;
	seen.add = add;
}

static void account_categories(struct kunit *test)
{
	static const struct {
		u32 type;
		bool host;
	} rows[] = {
		{ NEURON_MEMALLOC_TYPE_UNKNOWN_HOST, true },
		{ NEURON_MEMALLOC_TYPE_TENSORS_HOST, true },
		{ NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST, true },
		{ NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE, false },
		{ NEURON_MEMALLOC_TYPE_CODE_DEVICE, false },
		{ NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE, false },
		{ NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST, true },
		{ NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, false },
		{ NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE, false },
	};
	static const u32 unknown[] = { NEURON_NR_CATEGORIES, NEURON_NR_CATEGORIES + 1, U32_MAX };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ(test, neuron_category(rows[i].type, rows[i].host), rows[i].type);
		KUNIT_EXPECT_EQ(test, neuron_category(rows[i].type, !rows[i].host),
				(u32)(rows[i].host ? NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE :
						     NEURON_MEMALLOC_TYPE_UNKNOWN_HOST));
	}
	for (i = 0; i < NEURON_NR_CATEGORIES; i++) {
		KUNIT_ASSERT_NOT_NULL(test, neuron_category_name(i));
		KUNIT_EXPECT_STRNEQ(test, neuron_category_name(i), "unknown");
	}
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		KUNIT_EXPECT_EQ(test, neuron_category(unknown[i], true),
				(u32)NEURON_MEMALLOC_TYPE_UNKNOWN_HOST);
		KUNIT_EXPECT_EQ(test, neuron_category(unknown[i], false),
				(u32)NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE);
		KUNIT_EXPECT_STREQ(test, neuron_category_name(unknown[i]), "unknown");
	}
}

static void account_counters(struct kunit *test)
{
	static struct neuron_client client;
	static struct neuron_device nd;
	struct neuron_core *core = kunit_kcalloc(test, 3, sizeof(*core), GFP_KERNEL);
	struct neuron_chunk chunk = { .client = &client, .core = 2 };
	struct neuron_counter *scratchpad;

	KUNIT_ASSERT_NOT_NULL(test, core);
	memset(&seen, 0, sizeof(seen));
	client.nd = &nd;
	nd.core = core;

	chunk.category = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE;
	neuron_account(&chunk, SZ_64K, SZ_4K, true);
	KUNIT_EXPECT_EQ(test, seen.nr, 2u);
	KUNIT_EXPECT_PTR_EQ(test, seen.counter[0],
			    &core[2].category[NEURON_MEMALLOC_TYPE_TENSORS_DEVICE]);
	KUNIT_EXPECT_PTR_EQ(test, seen.counter[1], &core[2].device_mem);
	KUNIT_EXPECT_EQ(test, seen.bytes, (u64)SZ_64K);
	KUNIT_EXPECT_EQ(test, seen.last, (u64)SZ_4K);
	KUNIT_EXPECT_TRUE(test, seen.add);

	seen.nr = 0;
	scratchpad = &core[2].category[NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE];
	chunk.category = NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE;
	neuron_account(&chunk, SZ_4K, SZ_4K, false);
	KUNIT_EXPECT_PTR_EQ(test, seen.counter[0], scratchpad);
	KUNIT_EXPECT_FALSE(test, seen.add);
	KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&client.host_bytes), 0ULL);

	seen.nr = 0;
	chunk.host = true;
	chunk.category = NEURON_MEMALLOC_TYPE_TENSORS_HOST;
	neuron_account(&chunk, SZ_64K, SZ_64K, true);
	KUNIT_EXPECT_EQ(test, seen.nr, 3u);
	KUNIT_EXPECT_PTR_EQ(test, seen.counter[0],
			    &nd.host_category[NEURON_MEMALLOC_TYPE_TENSORS_HOST]);
	KUNIT_EXPECT_PTR_EQ(test, seen.counter[1], &nd.host_mem);
	KUNIT_EXPECT_PTR_EQ(test, seen.counter[2], &core[2].host_mem);
	KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&client.host_bytes), (u64)SZ_64K);
	neuron_account(&chunk, SZ_64K, SZ_64K, false);
	KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&client.host_bytes), 0ULL);
}

static struct kunit_case account_cases[] = {
	KUNIT_CASE(account_categories),
	KUNIT_CASE(account_counters),
	{}
};

static struct kunit_suite account_suite = {
	.name = "neuron_account",
	.test_cases = account_cases,
};

kunit_test_suite(account_suite);
