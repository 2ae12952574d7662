// SPDX-License-Identifier: GPL-2.0-only
/* What is to be moved so that a request fits: kmod/mem/compact.c against a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../kunit/compact_model.h"

#define MEMORIES	20000

static void every_plan_holds(void **state)
{
	static struct compact_model m, scratch;
	struct neuron_compact *c = neuron_compact_new(2 * MODEL_LEN);
	unsigned int i;
	int line;

	(void)state;
	assert_non_null(c);
	for (i = 0; i < MEMORIES; i++) {
		m.seed = i;
		line = compact_model_step(&m, &scratch, c);
		if (line)
			fail_msg("seed %u: compact_model.h:%d", i, line);
	}
	neuron_compact_free(c);
}

/* Half of the zone in one run, by copying a quarter of what there is. */
static void a_checkerboard_moves_half_of_it(void **state)
{
	struct neuron_compact *c = neuron_compact_new(256);
	u32 i;

	(void)state;
	neuron_compact_clear(c, ~0u);
	for (i = 0; i < 128; i++)
		neuron_compact_add(c, 10, i & 1 ? NEURON_COMPACT_MOVABLE : NEURON_COMPACT_FREE, 0);
	assert_int_equal(neuron_compact_plan(c, 0, 0), 32);
	assert_int_equal(c->cost, 320);
	neuron_compact_free(c);
}

static void the_budget_is_kept(void **state)
{
	struct neuron_compact *c = neuron_compact_new(16);
	u32 i, budget;

	(void)state;
	for (budget = 9; budget <= 10; budget++) {
		neuron_compact_clear(c, budget);
		for (i = 0; i < 4; i++)
			neuron_compact_add(c, 10, i & 1 ? NEURON_COMPACT_MOVABLE :
					   NEURON_COMPACT_FREE, 0);
		assert_int_equal(neuron_compact_plan(c, 20, 0), budget == 10);
	}
	neuron_compact_free(c);
}

/* What there is no room for in the picture does not move. */
static void a_full_picture_is_used(void **state)
{
	struct neuron_compact *c = neuron_compact_new(4);
	u32 i;

	(void)state;
	neuron_compact_clear(c, ~0u);
	for (i = 0; i < 8; i++)
		neuron_compact_add(c, 10, i & 1 ? NEURON_COMPACT_MOVABLE : NEURON_COMPACT_FREE, 0);
	assert_int_equal(c->nr, 4);
	assert_int_equal(c->range[3].state, NEURON_COMPACT_FIXED);
	assert_int_equal(c->range[3].len, 50);
	assert_int_equal(neuron_compact_plan(c, 20, 0), 1);
	assert_int_equal(c->move[0].from, 10);
	assert_int_equal(neuron_compact_plan(c, 21, 0), 0);
	neuron_compact_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_holds),
		cmocka_unit_test(a_checkerboard_moves_half_of_it),
		cmocka_unit_test(the_budget_is_kept),
		cmocka_unit_test(a_full_picture_is_used),
	};

	return cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}
