// SPDX-License-Identifier: GPL-2.0-only
/* A mutex whose holder may take it again at once, unless somebody has waited for long. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/turn.h"

#define THREADS	4
#define TURNS	20000

static struct turn turn;
static unsigned long count;

static void *count_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		TURN(&turn);
		count++;
	}
	return NULL;
}

static void test_one_at_a_time(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	count = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count_up, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(count, THREADS * TURNS);
}

static void *note_turn(void *arg)
{
	TURN(&turn);
	*(bool *)arg = true;
	return NULL;
}

/* Many times, so that luck is no help. */
static void test_who_waited_is_first(void **state)
{
	pthread_t thread;
	bool had;

	(void)state;
	for (int i = 0; i < 200; i++) {
		had = false;
		turn_take(&turn);
		assert_int_equal(pthread_create(&thread, NULL, note_turn, &had), 0);
		while (!turn_awaited(&turn))
			sched_yield();
		turn_give(&turn);
		turn_take(&turn);
		assert_true(had);
		turn_give(&turn);
		pthread_join(thread, NULL);
		assert_false(turn_awaited(&turn));
	}
}

static int start(void **state)
{
	(void)state;
	turn_init(&turn);
	return 0;
}

static int end(void **state)
{
	(void)state;
	turn_destroy(&turn);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_who_waited_is_first),
	};

	return cmocka_run_group_tests(tests, start, end);
}
