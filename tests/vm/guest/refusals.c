// SPDX-License-Identifier: GPL-2.0-only
/* K13: a process keeps the explanation of what was refused to it, whatever others do. */
#include <sys/klog.h>

#include "check.h"

#define MAX	NEURON_NATIVE_FAILURES_MAX
#define MANY	(17 * MAX)
#define HUGE	(1ull << 42)	/* more than there is */

static struct neuron_native_failure all[MANY];
static int pipe_up[2], pipe_down[2];

static int refused(int fd, uint64_t bytes)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	return call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == ENOMEM;
}

static uint32_t read_all(int fd, struct neuron_native_failure *f, uint32_t room, uint64_t since)
{
	struct neuron_native_failures a = {
		.size = sizeof(a), .count = room, .since = since, .entries = (uintptr_t)f,
		.entry_size = sizeof(*f),
	};

	return call(fd, NEURON_NATIVE_FAILURES, &a) ? ~0u : a.count;
}

/* How many of @pid, and whether they are in their order. */
static uint32_t of(uint32_t n, int pid, int *sorted)
{
	uint32_t i, found = 0;

	*sorted = 1;
	for (i = 0; i < n; i++) {
		found += all[i].pid == pid;
		*sorted &= !i || all[i].seq > all[i - 1].seq;
	}
	return found;
}

static int in_log(uint64_t bytes, int pid)
{
	static char log[1 << 20];
	char want[64], who[32];
	int len = klogctl(3, log, sizeof(log) - 1);
	char *at;

	log[len > 0 ? len : 0] = 0;
	snprintf(want, sizeof(want), " needed %llu ", (unsigned long long)bytes);
	snprintf(who, sizeof(who), " pid %d:", pid);
	at = strstr(log, want);
	return at && strstr(at, who);
}

static void is_refused_a_lot(void)
{
	int fd = open_node(O_RDWR), i, bad = 0;

	for (i = 0; i < 20 * MAX; i++)
		bad += !refused(fd, HUGE + 8192);
	CHECK(!bad, "another process is refused 320 times");
	if (setuid(65534))
		exit(1);
	CHECK(read_all(fd, all, MANY, 0) == MAX && of(MAX, getpid(), &i) == MAX && i,
	      "a user sees the last 16 of its own, in their order");
	CHECK(read_all(fd, all, 4, 0) == 4 &&
	      read_all(fd, all + 4, MANY - 4, all[3].seq) == MAX - 4 &&
	      of(MAX, getpid(), &i) == MAX && i, "also in two parts");
}

/* One refusal; then its memory of it is asked for when told. */
static void remembers(void)
{
	int fd = open_node(O_RDWR), sorted;
	char c;

	if (read(pipe_down[0], &c, 1) != 1)
		exit(1);
	CHECK(refused(fd, HUGE + 4096), "a process is refused once, after the other one");
	if (write(pipe_up[1], "", 1) != 1 || read(pipe_down[0], &c, 1) != 1)
		exit(1);
	CHECK(in_log(HUGE + 4096, getpid()), "K13: the kernel log says so, however many lines others cause");
	if (setuid(65534))
		exit(1);
	CHECK(read_all(fd, all, MANY, 0) == 1 && of(1, getpid(), &sorted) == 1 &&
	      all[0].bytes == HUGE + 4096, "K13: it still sees its own refusal, and no other");
}

#define HOLDERS	(NEURON_NATIVE_FAILURE_TOP + 2)

/* Each holds a page more than the one before. */
static void hold(int pages, int ready, int go)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = PAGE * pages,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	int fd = open_node(O_RDWR);
	char c;

	if (call(fd, NEURON_NATIVE_MEM_ALLOC, &a) || write(ready, "", 1) != 1 ||
	    read(go, &c, 1) > 0)
		_exit(1);
	_exit(0);
}

/* More of them than a record has room for; the kernel looks for what is leaked afterwards. */
static void is_refused_beside_others(void)
{
	int fd, ready[2], go[2], pid[HOLDERS], i, good = 1;
	struct neuron_native_failure f;
	uint64_t since;
	uint32_t n;
	char c;

	if (pipe(ready) || pipe(go))
		exit(1);
	for (i = 0; i < HOLDERS; i++) {
		fflush(stdout);
		pid[i] = fork();
		if (!pid[i]) {
			close(go[1]);
			hold(i + 1, ready[1], go[0]);
		}
		good &= read(ready[0], &c, 1) == 1;
	}
	fd = open_node(O_RDWR);
	/* Others may have been refused before. */
	n = read_all(fd, all, MANY, 0);
	since = n && n <= MANY ? all[n - 1].seq : 0;
	CHECK(good && refused(fd, HUGE) && read_all(fd, &f, 1, since) == 1, "refused beside five others");
	for (i = 0; i < NEURON_NATIVE_FAILURE_TOP; i++) {
		good &= f.process[i].pid == pid[HOLDERS - 1 - i] &&
			f.process[i].bytes == PAGE * (HOLDERS - i);
		printf("# process %d: %llu bytes, wanted %d\n", f.process[i].pid,
		       (unsigned long long)f.process[i].bytes, pid[HOLDERS - 1 - i]);
	}
	CHECK(good, "the largest are named, the largest first");
	close(go[1]);
	while (wait(NULL) > 0)
		;
}

int main(void)
{
	int look = open_node(O_WRONLY), status, sorted;
	uint32_t n;
	pid_t pid;
	char c;

	if (pipe(pipe_up) || pipe(pipe_down))
		return 1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		remembers();
		fflush(stdout);
		_exit(failed);
	}
	in_child(is_refused_beside_others);
	in_child(is_refused_a_lot);
	if (write(pipe_down[1], "", 1) != 1 || read(pipe_up[0], &c, 1) != 1)
		return 1;
	in_child(is_refused_a_lot);
	n = read_all(look, all, MANY, 0);
	CHECK(n <= MANY && of(n, pid, &sorted) == 1 && sorted,
	      "K13: root sees it among those of all, in their order");
	if (write(pipe_down[1], "", 1) != 1)
		return 1;
	waitpid(pid, &status, 0);
	failed += !WIFEXITED(status) || WEXITSTATUS(status);
	n = read_all(look, all, MANY, 0);
	CHECK(n <= MAX && of(n, pid, &sorted) == 1 && sorted,
	      "K13: the process is gone: root still sees it, of all that are gone the last 16");
	close(look);
	return failed != 0;
}
