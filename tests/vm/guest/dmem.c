// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device-memory cgroup controller: each HBM is a region, memory is charged to the
 * cgroup of the process that allocates it until it is free, and dmem.max holds.
 */
#define _GNU_SOURCE
#include <sys/klog.h>
#include <time.h>

#include "cgroup.h"

#define MIB	(1ull << 20)

static struct neuron_native_geometry geo;

/* ---- cgroups ---- */

/* A number of a device's HBM; ~0: it says "max"; 1: it has no line. */
static uint64_t value_of(const char *group, const char *file, int device, unsigned int hbm)
{
	char name[64], line[256], text[32];
	FILE *f = fopen(cg(group, file), "re");
	uint64_t value = 1;

	snprintf(name, sizeof(name), "neuron/neuron%d/hbm%u %%31s", device, hbm);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, name, text) == 1)
			value = strcmp(text, "max") ? strtoull(text, NULL, 10) : ~0ull;
	if (f)
		fclose(f);
	return value;
}

static uint64_t current(const char *group, unsigned int hbm)
{
	return value_of(group, "dmem.current", 0, hbm);
}

/* What the kernel frees in its own time is uncharged then. */
static int becomes(const char *group, unsigned int hbm, uint64_t want)
{
	int i;

	for (i = 0; i < 1000 && current(group, hbm) != want; i++)
		usleep(10000);
	return current(group, hbm) == want;
}

/* ---- memory ---- */

static int get_as(int fd, uint64_t bytes, uint32_t hbm, uint32_t flags,
		  struct neuron_native_mem_alloc *a)
{
	*a = (struct neuron_native_mem_alloc){
		.size = sizeof(*a), .flags = flags, .bytes = bytes, .hbm = hbm,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	return call(fd, NEURON_NATIVE_MEM_ALLOC, a);
}

static int get(int fd, uint64_t bytes, uint32_t hbm, struct neuron_native_mem_alloc *a)
{
	return get_as(fd, bytes, hbm, 0, a);
}

static int capped(int err, const struct neuron_native_mem_alloc *a)
{
	return err == ENOMEM && a->reason == NEURON_NATIVE_REASON_CAPPED &&
	       a->limit == NEURON_NATIVE_LIMIT_NONE && a->total == geo.hbm[a->hbm].size;
}

static int grow(int fd, uint64_t handle, uint64_t bytes, uint32_t *reason)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .mem_handle = handle, .bytes = bytes,
	};
	int err = call(fd, NEURON_NATIVE_MEM_GROW, &g);

	*reason = g.reason;
	return err;
}

static int export_fd(int fd, uint64_t handle)
{
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = handle };

	return call(fd, NEURON_NATIVE_MEM_EXPORT, &e) ? -1 : e.fd;
}

/* The next message of a child of the test, or 0 if it died. */
static char hear(int sock)
{
	char c;

	return read(sock, &c, 1) == 1 ? c : 0;
}

static void tell(int sock, char c)
{
	if (write(sock, &c, 1) != 1)
		_exit(1);
}

/* ---- tests ---- */

static void test_regions(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };
	int fd = open_node(O_WRONLY);
	unsigned int i, bad = 0;

	for (i = 0; i < geo.nr_hbms; i++) {
		s.hbm = i;
		if (call(fd, NEURON_NATIVE_HBM_STATS, &s) ||
		    value_of("", "dmem.capacity", 0, i) != s.total - s.reserved ||
		    value_of("a", "dmem.max", 0, i) != ~0ull || current("a", i) != 0)
			bad++;
	}
	CHECK(!bad, "%u HBMs are regions with their size, no limit, nothing in use", geo.nr_hbms);
	CHECK(value_of("", "dmem.capacity", 0, i) == 1 && value_of("", "dmem.capacity", 1, 0) == 1,
	      "and there are no more");
	close(fd);
}

static void charge(void)
{
	struct neuron_native_mem_alloc a, b;
	int fd, i;

	CHECK(!join("a"), "a process joins");
	fd = open_node(O_RDWR);
	CHECK(!get(fd, 4 * MIB, 0, &a) && !get(fd, 4097, 1, &b), "memory of two HBMs");
	CHECK(current("a", 0) == 4 * MIB && current("a", 1) == 8192 && current("b", 0) == 0 &&
	      current("", 0) == 4 * MIB, "charged to its cgroup and those above, in pages");
	CHECK(!mem_free(fd, a.mem_handle) && current("a", 0) == 0 && current("a", 1) == 8192,
	      "and uncharged when it is free");
	CHECK(value_of("a", "dmem.peak", 0, 0) == 4 * MIB, "the peak stays");
	CHECK(get(fd, 1ull << 50, 0, &a) == ENOMEM && a.reason == NEURON_NATIVE_REASON_FULL &&
	      get(fd, 1ull << 63, 0, &a) == ENOMEM && a.reason == NEURON_NATIVE_REASON_FULL &&
	      value_of("a", "dmem.peak", 0, 0) == 4 * MIB &&
	      grow(fd, b.mem_handle, 1ull << 62, &a.reason) == ENOMEM &&
	      value_of("a", "dmem.peak", 0, 1) == 8192,
	      "a request for more than there is, is charged to nobody");
	for (i = 0; i < 100; i++)
		if (get(fd, 65536, i % 2, &a))
			break;
	CHECK(i == 100 && current("a", 0) == 50 * 65536, "many of them");
	close(fd);
	CHECK(current("a", 0) == 0 && current("a", 1) == 0, "close: all is uncharged");
}

static void test_kill(void)
{
	struct neuron_native_mem_alloc a;
	int p[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd;

		close(p[0]);
		if (join("a"))
			_exit(1);
		fd = open_node(O_RDWR);
		while (!get(fd, MIB, 0, &a))
			tell(p[1], '+');
		_exit(1);
	}
	close(p[1]);
	CHECK(hear(p[0]) == '+' && hear(p[0]) == '+' && current("a", 0) >= 2 * MIB,
	      "a process in the middle of allocating");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(p[0]);
	CHECK(WIFSIGNALED(status) && becomes("a", 0, 0), "is killed: all is uncharged");
}

/* Is the refusal in the kernel log? Another one if not: how many lines there are is limited. */
static int logged(int fd, uint64_t bytes)
{
	static char log[1 << 18];
	struct neuron_native_mem_alloc a;
	char want[64], pid[64];
	char *at;
	int i, n;

	snprintf(want, sizeof(want), "needed %llu ", (unsigned long long)bytes);
	snprintf(pid, sizeof(pid), "pid %d: capped;", getpid());
	for (i = 0; i < 60; i++) {
		n = klogctl(3, log, sizeof(log) - 1);
		log[n > 0 ? n : 0] = '\0';
		for (at = log; (at = strstr(at, want)); at++) {
			char *end = strchrnul(at, '\n'), *cap = strstr(at, " cap cgroup for nc 0 ");

			if (cap && cap < end && strstr(cap, pid) && strstr(cap, pid) < end)
				return 1;
		}
		usleep(500000);
		if (get(fd, bytes, 0, &a) != ENOMEM)
			return 0;
	}
	return 0;
}

static void limit(void)
{
	struct neuron_native_failure f[NEURON_NATIVE_FAILURES_MAX], *last;
	struct neuron_native_failures all = {
		.size = sizeof(all), .count = NEURON_NATIVE_FAILURES_MAX, .entries = (uintptr_t)f,
		.entry_size = sizeof(*f),
	};
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };
	struct neuron_native_mem_alloc a, b, c;
	uint64_t was;
	int fd;

	CHECK(!set_max("a", 0, "8M") && value_of("a", "dmem.max", 0, 0) == 8 * MIB,
	      "at most 8 MiB of HBM 0");
	CHECK(!join("a"), "a process joins");
	fd = open_node(O_RDWR);
	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s), "statistics");
	was = s.fail_capped;
	CHECK(!get(fd, 6 * MIB, 0, &a), "6 MiB");
	CHECK(capped(get(fd, 2 * MIB + 4096, 0, &b), &b), "a page too much: ENOMEM, capped");
	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s) && s.fail_capped == was + 1 &&
	      s.own_process == 6 * MIB && current("a", 0) == 6 * MIB, "counted, and nothing changed");
	CHECK(!call(fd, NEURON_NATIVE_FAILURES, &all) && all.count, "the last failures");
	last = &f[all.count ? all.count - 1 : 0];
	CHECK(last->reason == NEURON_NATIVE_REASON_CAPPED && last->bytes == 2 * MIB + 4096 &&
	      last->pid == getpid() && last->limit == NEURON_NATIVE_LIMIT_NONE, "it is one");
	CHECK(logged(fd, 2 * MIB + 4096), "and logged");
	CHECK(!get(fd, 2 * MIB, 0, &b), "up to the last byte");
	CHECK(!get(fd, 16 * MIB, 1, &c), "another HBM has no limit");
	CHECK(!set_max("a", 0, "1M") && current("a", 0) == 8 * MIB, "less than is in use");
	CHECK(!mem_free(fd, a.mem_handle) && capped(get(fd, 4096, 0, &a), &a),
	      "nothing before enough is back");
	CHECK(!mem_free(fd, b.mem_handle) && !get(fd, MIB, 0, &a), "then 1 MiB");
	CHECK(!set_max("a", 0, "0") && !mem_free(fd, a.mem_handle) &&
	      capped(get(fd, 4096, 0, &a), &a), "none at all");
	CHECK(!set_max("a", 0, "max") && !get(fd, 16 * MIB, 0, &a), "no limit");
	close(fd);
	CHECK(current("a", 0) == 0 && current("a", 1) == 0, "all is uncharged");
}

static void growing(void)
{
	struct neuron_native_mem_alloc a, wall;
	uint32_t reason;
	int fd, i, err = 0;

	CHECK(!set_max("a", 0, "8M") && !join("a"), "at most 8 MiB");
	fd = open_node(O_RDWR);
	CHECK(!get_as(fd, 2 * MIB, 0, NEURON_NATIVE_ALLOC_LOW, &a), "2 MiB");
	for (i = 3; i <= 6 && !err; i++)
		err = grow(fd, a.mem_handle, i * MIB, &reason);
	CHECK(!err && current("a", 0) == 6 * MIB, "grow to 6 in four steps: charged");
	CHECK(grow(fd, a.mem_handle, 9 * MIB, &reason) == ENOMEM &&
	      reason == NEURON_NATIVE_REASON_CAPPED && current("a", 0) == 6 * MIB,
	      "to 9: ENOMEM, capped, nothing changed");
	CHECK(!grow(fd, a.mem_handle, 8 * MIB, &reason) && current("a", 0) == 8 * MIB, "to 8");
	CHECK(!mem_free(fd, a.mem_handle) && current("a", 0) == 0, "free: all of it is back");

	CHECK(!get_as(fd, MIB, 0, NEURON_NATIVE_ALLOC_LOW, &a) &&
	      !get_as(fd, MIB, 0, NEURON_NATIVE_ALLOC_LOW, &wall), "two neighbours");
	CHECK(wall.pa == a.pa + MIB && grow(fd, a.mem_handle, 2 * MIB, &reason) == ENOMEM &&
	      reason != NEURON_NATIVE_REASON_CAPPED && current("a", 0) == 2 * MIB,
	      "what follows is not free: ENOMEM, not charged");
	CHECK(!set_max("a", 0, "max"), "no limit");
	close(fd);
	CHECK(current("a", 0) == 0, "close: all of it is back");
}

static void moved(void)
{
	struct neuron_native_mem_alloc a, b;
	uint32_t reason;
	int fd;

	CHECK(!join("a"), "a process joins");
	fd = open_node(O_RDWR);
	CHECK(!get(fd, 2 * MIB, 0, &a) && current("a", 0) == 2 * MIB, "2 MiB");
	CHECK(!join("b") && current("a", 0) == 2 * MIB && current("b", 0) == 0,
	      "it moves: its memory stays where it was charged");
	CHECK(!get(fd, 3 * MIB, 0, &b) && current("a", 0) == 2 * MIB && current("b", 0) == 3 * MIB,
	      "new memory is charged where it is now");
	CHECK(grow(fd, a.mem_handle, 4 * MIB, &reason) == ENOMEM &&
	      reason == NEURON_NATIVE_REASON_CAPPED && current("a", 0) == 2 * MIB &&
	      current("b", 0) == 3 * MIB, "what another cgroup pays for does not grow");
	CHECK(!mem_free(fd, a.mem_handle) && current("a", 0) == 0 && current("b", 0) == 3 * MIB,
	      "who paid gets it back");
	close(fd);
	CHECK(current("b", 0) == 0, "all of them");
}

/* A child in cgroup @group that exports 4 MiB of @node, and is gone. */
static int export_from(const char *group, int number)
{
	int p[2], dma, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct neuron_native_mem_alloc a;
		int fd;

		if (join(group))
			_exit(1);
		fd = emu_open(number, O_RDWR);
		_exit(get(fd, 4 * MIB, 0, &a) || pass_fd(p[1], export_fd(fd, a.mem_handle)));
	}
	dma = take_fd(p[0]);
	waitpid(pid, &status, 0);
	CHECK(dma >= 0 && WIFEXITED(status) && !WEXITSTATUS(status), "a process exports 4 MiB");
	close(p[0]);
	close(p[1]);
	return dma;
}

static void test_export(void)
{
	int dma = export_from("a", 0);

	CHECK(current("a", 0) == 4 * MIB, "it is gone, the dma-buf is not: still charged");
	close(dma);
	CHECK(becomes("a", 0, 0), "until that is closed");

	CHECK(!make("c"), "another cgroup");
	dma = export_from("c", 0);
	CHECK(!drop("c") && current("", 0) == 4 * MIB, "which goes before the dma-buf");
	close(dma);
	CHECK(becomes("", 0, 0), "all is uncharged");
}

/* Both fight for memory of their own, and for what their parent may have together. */
static void fighter(const char *group, uint64_t own, uint64_t together, int sock)
{
	struct neuron_native_mem_alloc a[16];
	unsigned int refused = 0, bad = 0;
	int fd, i, n;

	if (join(group))
		_exit(1);
	fd = open_node(O_RDWR);
	for (i = 0; i < 200; i++) {
		for (n = 0; n < 16; n++) {
			int err = get(fd, MIB, 0, &a[n]);

			if (!err)
				continue;
			bad += !capped(err, &a[n]);
			refused++;
			break;
		}
		bad += (uint64_t)n * MIB > own || current(group, 0) > own ||
		       current("p", 0) > together + 2 * MIB;
		while (n--)
			mem_free(fd, a[n].mem_handle);
	}
	close(fd);
	tell(sock, bad ? '-' : refused ? '+' : '0');
	_exit(0);
}

static void test_side_by_side(void)
{
	int p[2];

	CHECK(!make("p") && !text_write(cg("p", "cgroup.subtree_control"), "+dmem") &&
	      !make("p/x") && !make("p/y"), "two cgroups in a third");
	CHECK(!set_max("p", 0, "10M") && !set_max("p/x", 0, "8M") && !set_max("p/y", 0, "6M"),
	      "with limits");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p))
		exit(1);
	fflush(stdout);
	if (!fork())
		fighter("p/x", 8 * MIB, 10 * MIB, p[1]);
	if (!fork())
		fighter("p/y", 6 * MIB, 10 * MIB, p[1]);
	CHECK(hear(p[0]) == '+' && hear(p[0]) == '+', "neither goes beyond its own");
	wait(NULL);
	wait(NULL);
	CHECK(value_of("p", "dmem.peak", 0, 0) <= 10 * MIB &&
	      value_of("p/x", "dmem.peak", 0, 0) <= 8 * MIB &&
	      value_of("p/y", "dmem.peak", 0, 0) <= 6 * MIB, "nor both beyond that of the third");
	CHECK(becomes("p", 0, 0) && current("p/x", 0) == 0 && current("p/y", 0) == 0,
	      "all is uncharged");
	CHECK(!drop("p/x") && !drop("p/y") && !drop("p"), "the cgroups go");
	close(p[0]);
	close(p[1]);
}

static void test_removal(void)
{
	int number = emu_add("pulled"), dma;

	CHECK(value_of("", "dmem.capacity", number, 0) > MIB, "a new device has regions");
	dma = export_from("b", number);
	CHECK(value_of("b", "dmem.current", number, 0) == 4 * MIB, "its memory is charged");
	emu_del("pulled");
	CHECK(value_of("b", "dmem.current", number, 0) == 4 * MIB,
	      "the device is gone, who holds its memory is charged");
	close(dma);
	for (int i = 0; i < 1000 && value_of("", "dmem.capacity", number, 0) != 1; i++)
		usleep(10000);
	CHECK(value_of("", "dmem.capacity", number, 0) == 1 &&
	      value_of("b", "dmem.current", number, 0) == 1, "then the regions go, too");
	CHECK(emu_add("pulled") == number && value_of("b", "dmem.current", number, 0) == 0,
	      "the next device of that number starts from 0");
	emu_del("pulled");
}

int main(void)
{
	int fd;

	if (!has_controller("dmem"))
		return 0;
	fd = open_node(O_WRONLY);
	geo = geometry(fd);
	close(fd);
	CHECK(!text_write(cg("", "cgroup.subtree_control"), "+dmem") && !make("a") && !make("b"),
	      "two cgroups");
	test_regions();
	in_child(charge);
	test_kill();
	in_child(limit);
	in_child(growing);
	in_child(moved);
	test_export();
	test_side_by_side();
	test_removal();
	CHECK(!drop("a") && !drop("b"), "the cgroups go");
	return failed != 0;
}
