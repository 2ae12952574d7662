// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that mpirun starts: their ranks meet without NEURON_RT_ROOT_COMM_ID. A rank is this
 * program itself; hosts are name spaces of this machine, which mpirun enters as it would by ssh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nrt/nrt_experimental.h>

#include "fleet.h"

#define TIMEOUT "4"
#define MPIRUN "mpirun --allow-run-as-root --oversubscribe"

static char program[200], ranks[200];

/* What the launcher's library keeps for itself until the end. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpmix.so\n";
}

/* A child ends with what it has of its parent. */
static bool is_child;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}

/* ---- a rank ------------------------------------------------------------------------------ */

static uint32_t number(const char *name)
{
	const char *text = getenv(name);

	return text ? (uint32_t)atoi(text) : UINT32_MAX;
}

/* Names of hosts are those of directories, where ranks of one host meet. */
static void enter_host(void)
{
	char host[65], path[300];

	if (gethostname(host, sizeof(host)))
		exit(10);
	snprintf(path, sizeof(path), "%s/%s", getenv("JOB_DIR"), host);
	mkdir(path, 0700);
	setenv("XDG_RUNTIME_DIR", path, 1);
}

/* What each has sent is what comes. */
static int gather(uint32_t rank, uint32_t count)
{
	uint32_t own = 0x1000 + rank, all[8] = { 0 };

	if (nrt_all_gather(0, rank, count, sizeof(own), &own, all) != NRT_SUCCESS)
		return 12;
	for (uint32_t i = 0; i < count; i++)
		if (all[i] != 0x1000 + i)
			return 13;
	return 0;
}

static int reopen(void)
{
	nrt_close();
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS ? 0 : 11;
}

/* The launcher's library leaves signals alone, or libnrt sees to it. */
static int signals_changed(const struct sigaction *before)
{
	for (int i = 1; i < NSIG; i++) {
		struct sigaction now;

		if (!sigaction(i, NULL, &now) && now.sa_handler != before[i].sa_handler)
			return i;
	}
	return 0;
}

/* A child of a rank is none: it is refused, and does not say good-bye for its parent. */
static int child_joins(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		NRT_STATUS joined;

		is_child = true;
		nrt_close();
		if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS)
			_exit(1);
		joined = nrt_barrier(0, 0, 2);
		nrt_close();
		exit(joined == NRT_INVALID ? 0 : 2);
	}
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 14;
}

static int rank_main(const char *what)
{
	struct sigaction before[NSIG];
	uint32_t rank = number("PMIX_RANK"), count = number("OMPI_COMM_WORLD_SIZE");
	int status = 0;

	enter_host();
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &before[i]);
	fake.nr_devices = 1;
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS)
		return 11;
	if (!strcmp(what, "gather"))
		status = gather(rank, count) ?: gather(rank, count);
	else if (!strcmp(what, "again"))
		status = gather(rank, count) ?: reopen() ?: gather(rank, count);
	else if (!strcmp(what, "fork"))
		status = gather(rank, count) ?: child_joins() ?: gather(rank, count);
	else if (!rank)
		/* "alone": the first process never joins, and is there all the time. */
		sleep((unsigned)atoi(TIMEOUT) + 3);
	else if (nrt_barrier(0, rank, count) != NRT_TIMEOUT)
		status = 15;
	if (!status && signals_changed(before))
		status = 16;
	nrt_close();
	return status ?: fake_used() ? 17 : 0;
}

/* ---- jobs -------------------------------------------------------------------------------- */

/*
 * The exit status.  What mpirun wrote is in the file "log", what libnrt did in "ranks": that
 * does not depend on how the launcher passes on what a rank, or its child, writes at its end.
 */
static int job(const char *options, const char *what)
{
	unlink(ranks);
	return run("timeout 60 %s %s %s %s >%s/log 2>&1", MPIRUN, options, program, what, directory);
}

static bool log_has(const char *text)
{
	return !run("grep -qs -- '%s' %s/log %s", text, directory, ranks);
}

static void show_log(void)
{
	run("cat %s/log %s >&2", directory, ranks);
}

static void assert_log_has(const char *text)
{
	bool has = log_has(text);

	if (!has)
		show_log();
	assert_true(has);
}

static void assert_ends(int status)
{
	if (status)
		show_log();
	assert_int_equal(status, 0);
}

static void test_one_host(void **state)
{
	(void)state;
	assert_ends(job("-n 3", "gather"));
	assert_ends(job("-n 2", "again"));
}

/* Of two at a time, with the same directory: each has a port of its own. */
static void test_two_jobs(void **state)
{
	(void)state;
	assert_ends(run("timeout 60 %s -n 2 %s gather >%s/other 2>&1 & "
			"timeout 60 %s -n 2 %s gather >%s/log 2>&1 && wait $!",
			MPIRUN, program, directory, MPIRUN, program, directory));
}

static void test_fork(void **state)
{
	(void)state;
	assert_ends(job("-n 2", "fork"));
	assert_log_has("NEURON_RT_ROOT_COMM_ID is not set");
}

/* A first process that does not join is waited for as long as for anything, and named. */
static void test_missing(void **state)
{
	(void)state;
	/* mpirun has a word to say about the first one, too. */
	(void)job("-n 2", "alone");
	assert_false(log_has("Exit code"));
	assert_log_has("process 0 of the job has not told the launcher where to meet");
}

/* What the user sets is what counts. */
static void test_given(void **state)
{
	(void)state;
	assert_ends(job("-x NEURON_RT_ROOT_COMM_ID=127.0.0.1:19001 -x NEURON_RT_LOG_LEVEL=INFO -n 2",
			"gather"));
	assert_log_has("core 0 is rank 1 of 2");
	assert_true(job("-x NEURON_RT_ROOT_COMM_ID=elsewhere -n 2", "gather") != 0);
	assert_log_has("=elsewhere is not an address and a port");
}

static pid_t make_host(const char *name)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET | CLONE_NEWUTS) || sethostname(name, strlen(name)))
			_exit(91);
		run("ip link set lo up");
		for (;;)
			pause();
	}
	while (run("nsenter -t %d -u hostname | grep -q '^%s$'", pid, name))
		usleep(1000);
	return pid;
}

static void test_two_hosts(void **state)
{
	pid_t a = make_host("joba"), b = make_host("jobb");

	(void)state;
	assert_false(run("ip link add eth0 netns %d type veth peer name eth0 netns %d", a, b));
	assert_false(run("nsenter -t %d -n sh -c 'ip addr add 10.98.0.1/24 dev eth0; ip link set eth0 up'", a));
	assert_false(run("nsenter -t %d -n sh -c 'ip addr add 10.98.0.2/24 dev eth0; ip link set eth0 up'", b));
	assert_false(run("printf '#!/bin/sh\\nshift\\nexec nsenter -t %d -n -u sh -c \"$*\"\\n' >%s/agent && chmod +x %s/agent",
			 b, directory, directory));
	assert_ends(run("timeout 60 nsenter -t %d -n -u %s -H joba:2,jobb:2 --mca plm_rsh_agent %s/agent "
			"-x NEURON_RT_LOG_LEVEL=INFO -x NEURON_RT_LOG_LOCATION -n 4 %s gather >%s/log 2>&1",
			a, MPIRUN, directory, program, directory));
	assert_log_has("is rank 3 of 4, 2 of them on this host, fabric tcp");
	kill(a, SIGKILL);
	kill(b, SIGKILL);
	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
}

static int setup(void **state)
{
	(void)state;
	setenv("NEURON_RT_EXEC_TIMEOUT", TIMEOUT, 1);
	if (fleet_setup())
		return -1;
	unsetenv("NEURON_RT_ROOT_COMM_ID");
	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	setenv("JOB_DIR", directory, 1);
	snprintf(ranks, sizeof(ranks), "%s/ranks", directory);
	setenv("NEURON_RT_LOG_LOCATION", ranks, 1);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_host),
		cmocka_unit_test(test_two_jobs),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_two_hosts),
	};

	if (argc == 2)
		return rank_main(argv[1]);
	if (run("command -v mpirun >/dev/null")) {
		printf("1..0 # skipped: needs mpirun\n");
		return 0;
	}
	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return 1;
	return fleet_tests() ? cmocka_run_group_tests(tests, setup, fleet_end) : 0;
}
