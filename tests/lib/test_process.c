// SPDX-License-Identifier: GPL-2.0-only
/* libneuron/src/device/process.c: the number of a process, its children and theirs. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/device/process.h"

static bool right(void)
{
	return process_id() == getpid() && process_id() == getpid();
}

/* Of a child, which has to leave with 0. */
static void expect_good_end(pid_t pid)
{
	int status = -1;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_itself(void **state)
{
	(void)state;
	assert_true(right());
	process_remember();
	assert_true(right());
	process_remember();
	assert_true(right());
}

static void test_child(void **state)
{
	pid_t pid;

	(void)state;
	process_remember();
	pid = fork();
	if (!pid)
		_exit(!right());
	expect_good_end(pid);
	assert_true(right());
}

/* No function that the C library could call in the child. */
static void test_clone(void **state)
{
	pid_t pid;

	(void)state;
	process_remember();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
	if (!pid)
		syscall(SYS_exit_group, !right());
	expect_good_end(pid);
}

static void test_grandchild(void **state)
{
	int status = -1;
	pid_t pid, next;

	(void)state;
	process_remember();
	pid = fork();
	if (pid) {
		expect_good_end(pid);
		return;
	}
	process_remember();
	if (!right())
		_exit(1);
	next = fork();
	if (!next)
		_exit(!right());
	_exit(waitpid(next, &status, 0) != next || status || !right());
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_itself),
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_clone),
		cmocka_unit_test(test_grandchild),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
