// SPDX-License-Identifier: GPL-2.0-only
/* K4: how much host memory processes may hold through devices. */
#include <signal.h>
#include <time.h>

#include "emu.h"

#define MIB	(1ull << 20)
#define STEP	(4 * MIB)
#define PARAMS	"/sys/module/neuron/parameters/"
#define NONE	NEURON_NATIVE_LIMIT_NONE

static uint64_t ours, all;		/* limits */
static int up[2], down[2];

static int take(int fd, uint64_t bytes, struct neuron_native_mem_alloc *a)
{
	*a = (struct neuron_native_mem_alloc){
		.size = sizeof(*a), .bytes = bytes, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
	};
	return call(fd, NEURON_NATIVE_MEM_ALLOC, a);
}

/* As much as there is in steps; how much that was, and the refusal. */
static uint64_t take_all(int fd, struct neuron_native_mem_alloc *a)
{
	uint64_t sum = 0;

	while (!take(fd, STEP, a))
		sum += STEP;
	return sum;
}

static int second(void)
{
	int fd = open("/dev/neuron1", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		exit(1);
	return fd;
}

static void limits(void)
{
	uint64_t page = sysconf(_SC_PAGESIZE), total = sysconf(_SC_PHYS_PAGES) * page;

	CHECK(!text_write(PARAMS "process_host_percent", "10") &&
	      !text_write(PARAMS "host_percent", "15"), "a process may have 10 %%, all 15 %%");
	ours = strtoull(text_read(SYSFS "limits/process_host_memory"), NULL, 10);
	all = strtoull(text_read(SYSFS "limits/host_memory"), NULL, 10);
	CHECK(ours <= total / 10 && ours + page > total / 10 && all <= total * 15 / 100 &&
	      all + page > total * 15 / 100, "K4: sysfs shows what that is: %llu, %llu",
	      (unsigned long long)ours, (unsigned long long)all);
}

static void huge(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_native_mem_alloc a;
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	CHECK(take(fd, 1ull << 39, &a) == ENOMEM && a.reason == NEURON_NATIVE_REASON_CAPPED &&
	      a.limit == ours, "K4: 2^39 bytes: refused, the limit is named");
	clock_gettime(CLOCK_MONOTONIC, &to);
	CHECK(to.tv_sec - from.tv_sec < 3, "K4: before any page is taken");
	CHECK(take(fd, ours + 4096, &a) == ENOMEM && a.limit == ours, "K4: a page too much, too");
}

/* What files add up to, whose names @where has with each of @names. */
static uint64_t sum_of(const char *where, const char *const *names)
{
	uint64_t sum = 0;
	char path[256];

	for (; *names; names++) {
		snprintf(path, sizeof(path), where, *names);
		sum += strtoull(text_read(path), NULL, 10);
	}
	return sum;
}

static void adds_up(uint64_t held)
{
	static const char *const use[] = {
		"application_memory", "constants", "dma_buffers", "dma_rings", "driver_memory",
		"notifications", "tensors", "uncategorized", NULL,
	}, *const core[] = { "0", "1", "2", "3", "4", "5", "6", "7", NULL };
	uint64_t sum = strtoull(text_read(SYSFS "stats/memory_usage/host_mem/total"), NULL, 10);

	CHECK(sum >= held && sum == sum_of(SYSFS "stats/memory_usage/host_mem/%s/total", use) &&
	      sum == sum_of(SYSFS "neuron_core%s/stats/memory_usage/host_mem/total", core),
	      "the device's host memory is that of its uses, and of its cores: %llu MiB",
	      (unsigned long long)(sum / MIB));
}

static void one_process(void)
{
	int fd = open_node(O_RDWR), other = second(), i, bad = 0;
	struct neuron_native_failure f;
	struct neuron_native_failures r = {
		.size = sizeof(r), .count = 1, .entries = (uintptr_t)&f, .entry_size = sizeof(f),
	};
	struct neuron_native_mem_alloc a, b, c;
	struct neuron_ioctl_mem_alloc_v2 lost = {
		.size = STEP, .host_memory = 1, .mem_handle = (void *)8,
	};
	uint64_t sum;

	CHECK(!take(fd, STEP, &a) && !take(other, STEP, &b), "memory through two devices");
	sum = take_all(fd, &c) + 2 * STEP;
	CHECK(sum <= ours && sum + STEP > ours, "K4: a process gets its share: %llu MiB",
	      (unsigned long long)(sum / MIB));
	CHECK(c.reason == NEURON_NATIVE_REASON_CAPPED && c.limit == ours && !c.total, "and no more");
	adds_up(sum - STEP);
	CHECK(take(other, STEP, &c) == ENOMEM && c.reason == NEURON_NATIVE_REASON_CAPPED,
	      "K4: nor through the other device");
	CHECK(!call(other, NEURON_NATIVE_FAILURES, &r) && r.count == 1 && f.limit == ours &&
	      f.reason == NEURON_NATIVE_REASON_CAPPED && f.flags == NEURON_NATIVE_ALLOC_HOST,
	      "the record says so");
	CHECK(!mem_free(other, b.mem_handle), "give some back there");
	for (i = 0; i < 200; i++)
		bad += take(fd, STEP, &b) || mem_free(fd, b.mem_handle);
	CHECK(!bad, "K4: what is given back can be had again, 200 times");
	for (i = 0; i < 20; i++)
		bad += call(fd, NEURON_IOCTL_MEM_ALLOC_V2, &lost) != EFAULT;
	CHECK(!bad && !take(fd, STEP, &b), "K4: so can what nobody could be told of");
	CHECK(take(fd, STEP, &c) == ENOMEM, "and once only");
}

static void holds(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_native_mem_alloc a;
	char c;

	CHECK(take_all(fd, &a) + STEP > ours && a.limit == ours, "a process takes its share");
	if (write(up[1], "", 1) != 1 || read(down[0], &c, 1) < 0)
		exit(1);
}

static void all_of_them(void)
{
	int fd, status;
	struct neuron_native_mem_alloc a;
	uint64_t sum;
	pid_t pid;
	char c;

	if (pipe(up) || pipe(down))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		holds();
		_exit(failed);
	}
	CHECK(read(up[0], &c, 1) == 1, "one process has its share");
	fd = second();
	sum = take_all(fd, &a);
	CHECK(sum <= all - ours + STEP && sum + 2 * STEP > all - ours &&
	      a.reason == NEURON_NATIVE_REASON_CAPPED && a.limit == all,
	      "K4: another one gets what is left for all: %llu MiB", (unsigned long long)(sum / MIB));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(!take(fd, STEP, &a), "K4: the first one is killed: there is more, at once");
	close(fd);
}

/* The owner is dead, its descriptor is not, on the other device. */
static void left_behind(void)
{
	struct neuron_native_mem_alloc a;
	int pair[2], fd, status;
	uint64_t sum;
	pid_t pid;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		exit(1);
	text_write(PARAMS "host_percent", "10");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = second();
		take_all(fd, &a);
		_exit(pass_fd(pair[0], fd) || close(fd) || read(pair[0], &c, 1) < 0);
	}
	fd = take_fd(pair[1]);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(pair[1]);
	pair[1] = open_node(O_RDWR);
	sum = take_all(pair[1], &a);
	CHECK(fd >= 0 && sum + STEP > ours, "K4: what the dead had through another device is there");
	close(fd);
	close(pair[1]);
}

static void killed(void)
{
	struct neuron_native_mem_alloc a;
	int status, round, fd;
	pid_t pid;

	text_write(PARAMS "host_percent", "100");
	text_write(PARAMS "process_host_percent", "40");
	for (round = 0; round < 5; round++) {
		fflush(stdout);
		pid = fork();
		if (!pid) {
			fd = open_node(O_RDWR);
			for (;;)
				if (!take(fd, 256 * MIB, &a))
					mem_free(fd, a.mem_handle);
		}
		usleep(20000 + 17000 * round);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		CHECK(!strcmp(text_read(SYSFS "stats/memory_usage/host_mem/tensors/total"), "0"),
		      "K4: killed while it takes 256 MiB: nothing is left");
	}
	in_child(limits);
}

int main(void)
{
	CHECK(!system("rmmod neuron_emu && modprobe neuron_emu nr_devices=2"), "two devices");
	limits();
	in_child(huge);
	in_child(one_process);
	in_child(one_process);
	in_child(all_of_them);
	in_child(left_behind);
	killed();
	in_child(one_process);
	CHECK(!system("rmmod neuron_emu && rmmod neuron && modprobe neuron_emu"),
	      "load for the tests that follow");
	return failed != 0;
}
