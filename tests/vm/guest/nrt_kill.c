// SPDX-License-Identifier: GPL-2.0-only
/* A process that dies while it runs a model: everything comes back within a second. */
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

static double since(const struct timespec *t0)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)(t.tv_sec - t0->tv_sec) + (double)(t.tv_nsec - t0->tv_nsec) / 1e9;
}

static void once(int round)
{
	struct timespec t0;
	int ready[2], status;
	double took;
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
	clock_gettime(CLOCK_MONOTONIC, &t0);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "it is killed");
	do {
		counters_take(&now);
		took = since(&t0);
	} while (counters_sum(&now) != counters_sum(&start) && took < 1);
	CHECK(counters_equal(&start, &now), "all counters are 0 after %.0f ms", took * 1000);
}

int main(void)
{
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	neff_list(&neff);
	counters_take(&start);
	CHECK(counters_sum(&start) == 0, "all counters are 0 at the start");
	for (int i = 0; i < 3; i++)
		once(i);
	/* The cores are free at once. */
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS,
	      "the next process gets all cores");
	nrt_close();
	return failed != 0;
}
