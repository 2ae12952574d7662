// SPDX-License-Identifier: GPL-2.0-only
/* Scrubbing: free memory only, in the background, in nobody's way. */
#include <pthread.h>
#include <signal.h>

#include "check.h"
#include "device.h"

#define SIZE	(1u << 20)

static int fd;
static uint8_t buf[SIZE], back[SIZE];

static int start(int dev, uint32_t hbm)
{
	struct neuron_ioctl_hbm_scrub_start s = { .hbm_index = hbm, .init_val = 0xa5a5a5a5 };

	return call(dev, NEURON_IOCTL_HBM_SCRUB_START, &s);
}

static int finish(int dev, uint32_t hbm)
{
	struct neuron_ioctl_hbm_scrub_wait w = { .hbm_index = hbm };

	return call(dev, NEURON_IOCTL_HBM_SCRUB_WAIT, &w);
}

static int copy(uint64_t handle, uint8_t *p, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = p, .size = SIZE, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static struct neuron_native_hbm_stats stats(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s), "statistics");
	return s;
}

static void other(void)
{
	int mine = open_node(O_RDWR);

	CHECK(finish(mine, 0) == EINVAL, "A18: another process has nothing to wait for");
	close(mine);
}

/* A process dies with a scrub under way. */
static void killed(void)
{
	int status, i, mine;
	pid_t pid;

	for (i = 0; i < 5; i++) {
		pid = fork();
		if (!pid) {
			mine = open_node(O_RDWR);
			_exit(start(mine, 0) || start(mine, 1));
		}
		waitpid(pid, &status, 0);
		if (status)
			break;
	}
	CHECK(i == 5, "processes die without waiting");
}

/* Takes all of it at once, again and again: a piece that is out must not show. */
static void *all_of_it(void *arg)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = *(uint64_t *)arg,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	long bad = 0, i;

	for (i = 0; i < 300; i++) {
		a.flags = i & 1 ? NEURON_NATIVE_ALLOC_HIGH : NEURON_NATIVE_ALLOC_LOW;
		bad += call(fd, NEURON_NATIVE_MEM_ALLOC, &a) || mem_free(fd, a.mem_handle);
	}
	return (void *)bad;
}

int main(void)
{
	struct neuron_ioctl_hbm_scrub_start s = { .nc_id = 200 };
	struct neuron_native_hbm_stats before, after;
	uint64_t handle[2], largest;
	pthread_t thread;
	void *bad;
	int i, n, card = is_card();

	/* All of a card's memory takes an emulated one too long, 31 times. */
	if (card)
		CHECK(!system("rmmod neuron_pci && modprobe neuron_pci model_isa=1 hbm_limit=256"),
		      "a card with less memory");
	fd = open_node(O_RDWR);
	for (i = 0; i < 2; i++)
		handle[i] = alloc(fd, SIZE, 0, 0);
	memset(buf, 0x3c, SIZE);
	CHECK(!copy(handle[1], buf, 1), "fill");
	mem_free(fd, handle[0]);
	before = stats();
	CHECK(finish(fd, 0) == EINVAL, "nothing to wait for");
	CHECK(start(fd, 64) == EINVAL && finish(fd, 64) == EINVAL, "no such memory");
	CHECK(call(fd, NEURON_IOCTL_HBM_SCRUB_START, &s) == EINVAL, "no such core");
	CHECK(!start(fd, 0), "start");
	CHECK(start(fd, 0) == EBUSY, "once at a time");
	in_child(other);
	CHECK(!finish(fd, 0), "wait");
	CHECK(finish(fd, 0) == EINVAL, "once");
	CHECK(!copy(handle[1], back, 0) && !memcmp(buf, back, SIZE),
	      "A18: memory in use is left alone");
	after = stats();
	CHECK(after.used == before.used && after.driver == before.driver &&
	      after.free == before.free && after.nr_allocs == before.nr_allocs,
	      "nothing is missing afterwards");
	CHECK(after.largest_free == before.largest_free, "nor broken up");

	largest = after.largest_free;
	if (pthread_create(&thread, NULL, all_of_it, &largest))
		return 1;
	for (i = n = 0; i < 30; i++)
		n += !start(fd, 0) && !finish(fd, 0);
	pthread_join(thread, &bad);
	CHECK(n == 30, "scrub %d times while all memory comes and goes", n);
	CHECK(!bad, "none of the allocations was refused (%ld)", (long)bad);
	killed();
	CHECK(!start(fd, 0) && !start(fd, 1) && !finish(fd, 1) && !finish(fd, 0),
	      "two memories at once");
	mem_free(fd, handle[1]);
	after = stats();
	CHECK(!after.driver || after.driver == before.driver, "all of it is back");
	close(fd);
	if (card)
		CHECK(!device_unload(card) && !device_load(card), "all of its memory again");
	return failed != 0;
}
