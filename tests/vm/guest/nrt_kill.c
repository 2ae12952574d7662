// SPDX-License-Identifier: GPL-2.0-only
/* A process that dies while it runs a model: everything is back before wait() returns. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <nrt/nrt.h>

#include "nrt_guest.h"

static struct counters start, now;
static struct neff neff;

static void child(int ready)
{
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *x, *y, *more;
	nrt_model_t *m, *second;

	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") ||
	    nrt_load(neff.data, neff.size, 0, -1, &m) ||
	    nrt_load(neff.data, neff.size, 2, -1, &second) ||
	    nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, LIST_IN, "x", &x) ||
	    nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, LIST_OUT, "y", &y) ||
	    nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 4, 1 << 30, "more", &more) ||
	    nrt_allocate_tensor_set(&in) || nrt_allocate_tensor_set(&out) ||
	    nrt_add_tensor_to_tensor_set(in, "x", x) || nrt_add_tensor_to_tensor_set(out, "y", y) ||
	    nrt_execute(m, in, out))
		_exit(1);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		if (nrt_execute(m, in, out))
			_exit(1);
}

static void once(int round)
{
	int ready[2], status;
	pid_t pid;
	char c;

	if (pipe(ready))
		exit(1);
	pid = fork();
	if (!pid) {
		close(ready[0]);
		child(ready[1]);
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1, "a process runs a model");
	close(ready[0]);
	counters_take(&now);
	CHECK(counters_sum(&now) > 1ull << 30, "and holds memory");
	/* Somewhere in the middle of a run. */
	usleep(10000 + 7000 * round);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "it is killed");
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "and all counters are 0 before wait() returns");
}

static NRT_STATUS init_in_child(const char *name, const char *value)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		unsetenv("NEURON_RT_VISIBLE_CORES");
		if (name)
			setenv(name, value, 1);
		/* A child has nothing of its parent's; exec would do the same. */
		_exit(execl("/proc/self/exe", "nrt_kill", "init", NULL) < 0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return NRT_HW_ERROR;
	return (NRT_STATUS)WEXITSTATUS(status);
}

/* Two processes share a device by cores. */
static void shared_device(void)
{
	setenv("NEURON_RT_VISIBLE_CORES", "2-3", 1);
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "take cores 2 and 3");
	CHECK(init_in_child(NULL, NULL) == NRT_FAILURE, "another process cannot have all");
	CHECK(init_in_child("NEURON_RT_VISIBLE_CORES", "3") == NRT_FAILURE, "nor core 3");
	CHECK(init_in_child("NEURON_RT_VISIBLE_CORES", "4-7") == NRT_SUCCESS, "but 4 to 7");
	CHECK(init_in_child("NEURON_RT_NUM_CORES", "4") == NRT_SUCCESS, "or any 4 in a row");
	CHECK(init_in_child("NEURON_RT_NUM_CORES", "5") == NRT_FAILURE, "not 5, there are none");
	nrt_close();
	CHECK(init_in_child(NULL, NULL) == NRT_SUCCESS, "after close all of them");
}

int main(int argc, char **argv)
{
	(void)argv;
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	if (argc > 1)
		return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
	neff_list(&neff);
	counters_take(&start);
	CHECK(counters_sum(&start) == 0, "all counters are 0 at the start");
	for (int i = 0; i < 3; i++)
		once(i);
	/* The cores are free at once. */
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS,
	      "the next process gets all cores");
	nrt_close();
	shared_device();
	counters_take(&now);
	CHECK(counters_equal(&start, &now), "all counters are 0 at the end");
	return failed != 0;
}
