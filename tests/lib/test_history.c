// SPDX-License-Identifier: GPL-2.0-only
/* The memory over time that neuron-top draws: what it has after a pause. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/sysfs.h"

/* Samples of a thing that began to be looked at when the host had been up for so long. */
static void fill(struct history *h, long first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		history_add(h, (double)(first + i) * HISTORY_SECONDS, 100 + i);
}

static void test_samples(void **state)
{
	struct history h = { 0 };

	(void)state;
	fill(&h, 1000, 3);
	history_add(&h, 1002 * HISTORY_SECONDS + 1, 500);
	history_add(&h, 1002 * HISTORY_SECONDS + 2, 7);
	assert_int_equal(history_at(&h, 0), 500);
	assert_int_equal(history_at(&h, 1), 101);
	assert_int_equal(history_at(&h, 2), 100);
	assert_int_equal(history_at(&h, 3), 0);
	history_add(&h, 1003 * HISTORY_SECONDS, UNKNOWN);
	assert_int_equal(history_at(&h, 0), 0);
}

static void test_host_just_started(void **state)
{
	struct history h = { 0 };

	(void)state;
	fill(&h, 0, 5);
	assert_int_equal(history_at(&h, 4), 100);
	assert_int_equal(history_at(&h, 5), 0);
	h = (struct history){ 0 };
	fill(&h, 7, 2);
	assert_int_equal(history_at(&h, 1), 100);
	assert_int_equal(history_at(&h, 2), 0);
}

static void test_pause(void **state)
{
	struct history h = { 0 };

	(void)state;
	fill(&h, 1000, 3);
	history_add(&h, 1010 * HISTORY_SECONDS, 9);
	assert_int_equal(history_at(&h, 0), 9);
	for (unsigned int i = 1; i <= 8; i++)
		assert_int_equal(history_at(&h, i), 102);
	assert_int_equal(history_at(&h, 9), 101);
}

/* As long as the history, or so long that its places come round again. */
static void test_long_pause(void **state)
{
	(void)state;
	for (long pause = HISTORY; pause < 3 * HISTORY; pause++) {
		struct history h = { 0 };

		fill(&h, 1000, HISTORY);
		history_add(&h, (double)(1000 + HISTORY - 1 + pause) * HISTORY_SECONDS, 9);
		assert_int_equal(history_at(&h, 0), 9);
		for (unsigned int i = 1; i < HISTORY; i++)
			assert_int_equal(history_at(&h, i), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_host_just_started),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_long_pause),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
