// SPDX-License-Identifier: GPL-2.0-only
/* The plans of kmod/mem/compact.c, as the kernel compiles it: tests/lib/test_compact.c has more. */
#include <kunit/test.h>
#include <linux/module.h>

#define neuron_compact_new	compact_new
#define neuron_compact_free	compact_free
#define neuron_compact_clear	compact_clear
#define neuron_compact_add	compact_add
#define neuron_compact_largest	compact_largest
#define neuron_compact_plan	compact_plan

#include "../../kmod/mem/compact.c"
#include "compact_model.h"

#define MEMORIES	1000

static void compact_plans(struct kunit *test)
{
	struct compact_model *m = kunit_kzalloc(test, 2 * sizeof(*m), GFP_KERNEL);
	struct neuron_compact *c = compact_new(2 * MODEL_LEN);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_ASSERT_NOT_NULL(test, c);
	for (i = 0; i < MEMORIES; i++) {
		m->seed = i;
		KUNIT_EXPECT_EQ_MSG(test, compact_model_step(m, m + 1, c), 0, "seed %u", i);
	}
	compact_free(c);
}

static struct kunit_case compact_cases[] = {
	KUNIT_CASE(compact_plans),
	{ }
};

static struct kunit_suite compact_suite = {
	.name = "neuron_compact",
	.test_cases = compact_cases,
};

kunit_test_suite(compact_suite);
