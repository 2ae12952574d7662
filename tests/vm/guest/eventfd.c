// SPDX-License-Identifier: GPL-2.0-only
/* eventfds of asynchronous copies and of resets. */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "check.h"

#define BIG	(64ull << 20)

static int copy_start(int fd, uint64_t a, uint64_t b, uint64_t size, uint32_t *token)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = a, .dst_mem_handle = b, .size = size, .pwait_handle = ~0u,
	};
	int err = call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);

	*token = c.wait_handle;
	return err;
}

static int copy_wait(int fd, uint64_t a, uint64_t b, uint32_t token)
{
	struct neuron_ioctl_mem_copy_async_wait w = {
		.src_mem_handle = a, .dst_mem_handle = b, .pwait_handle = token,
	};

	return call(fd, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w);
}

static int copy_eventfd(int fd, uint64_t a, uint64_t b, uint32_t token, int ev)
{
	struct neuron_native_copy_eventfd e = {
		.size = sizeof(e), .src_mem_handle = a, .dst_mem_handle = b, .token = token,
		.eventfd = ev,
	};

	return call(fd, NEURON_NATIVE_COPY_EVENTFD, &e);
}

static int reset_eventfd(int fd, uint32_t core, int ev)
{
	struct neuron_native_reset_eventfd e = {
		.size = sizeof(e), .nc_id = core, .eventfd = ev,
	};

	return call(fd, NEURON_NATIVE_RESET_EVENTFD, &e);
}

/* How often it was signalled; waits @ms for the first time. */
static uint64_t signals(int ev, int ms)
{
	struct pollfd p = { .fd = ev, .events = POLLIN };
	uint64_t n = 0;

	if (poll(&p, 1, ms) == 1 && read(ev, &n, sizeof(n)) != sizeof(n))
		n = 0;
	return n;
}

static void copies(int fd)
{
	int ev = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), other = eventfd(0, EFD_NONBLOCK);
	uint64_t a = alloc(fd, BIG, 0, 0), b = alloc(fd, BIG, 0, 0);
	struct neuron_native_copy_eventfd odd = { .size = sizeof(odd), .flags = 1, .token = 1 };
	uint32_t token;

	CHECK(copy_eventfd(fd, a, b, 1, ev) == EINVAL, "no such copy: EINVAL");
	CHECK(!copy_start(fd, a, b, BIG, &token), "start a copy");
	CHECK(copy_eventfd(fd, a, b, 0, ev) == EINVAL && copy_eventfd(fd, a, b, 3, ev) == EINVAL,
	      "no such token: EINVAL");
	CHECK(copy_eventfd(fd, 9999, b, token, ev) == ENOENT, "no such handle: ENOENT");
	CHECK(copy_eventfd(fd, a, b, token, fd) == EINVAL &&
	      copy_eventfd(fd, a, b, token, 9999) == EBADF &&
	      copy_eventfd(fd, a, b, token, -2) == EINVAL, "no eventfd: EINVAL, EBADF");
	CHECK(call(fd, NEURON_NATIVE_COPY_EVENTFD, &odd) == EINVAL, "a flag: EINVAL");
	CHECK(!copy_eventfd(fd, a, b, token, ev), "ask for its end");
	CHECK(signals(ev, 60000) == 1, "one signal");
	CHECK(!copy_wait(fd, a, b, token), "the result");
	CHECK(copy_eventfd(fd, a, b, token, ev) == EINVAL, "then it is no copy any more: EINVAL");

	CHECK(!copy_start(fd, a, b, 64, &token), "a short one");
	usleep(500000);
	CHECK(!copy_eventfd(fd, a, b, token, ev) && signals(ev, 60000) == 1,
	      "asked for afterwards: a signal at once");
	CHECK(!copy_wait(fd, a, b, token) && !signals(ev, 0), "no more");

	CHECK(!copy_start(fd, a, b, BIG, &token) && !mem_free(fd, a) && !mem_free(fd, b) &&
	      !copy_eventfd(fd, a, b, token, other), "a copy of memory that is freed");
	CHECK(signals(other, 60000) == 1 && !copy_wait(fd, a, b, token), "is found, too");
	close(ev);
	close(other);
}

static int shared;

static void stranger(void)
{
	int fd = open_node(O_RDWR), ev = eventfd(0, EFD_NONBLOCK);

	CHECK(reset_eventfd(fd, 0, ev) == EBUSY, "another process's core: EBUSY");
	CHECK(reset_eventfd(shared, 0, ev) == EACCES, "through its descriptor: EACCES");
}

static void *resets(void *arg)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };

	usleep(100000);
	return (void *)(long)call(*(int *)arg, NEURON_IOCTL_NC_RESET, &reset);
}

static void reset_of_core(int fd, uint32_t nr_cores)
{
	int ev = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct neuron_ioctl_semaphore sem = { .nc_id = 0 };
	struct neuron_native_reset_eventfd odd = { .size = sizeof(odd), .flags = 1 };
	pthread_t t;
	void *err;

	CHECK(reset_eventfd(fd, 0, ev) == ENOENT, "nobody's core: ENOENT");
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem), "use core 0");
	CHECK(reset_eventfd(fd, nr_cores, ev) == EINVAL && reset_eventfd(fd, ~0u, ev) == EINVAL,
	      "no such core: EINVAL");
	CHECK(reset_eventfd(fd, 0, fd) == EINVAL && reset_eventfd(fd, 0, -2) == EINVAL,
	      "no eventfd: EINVAL");
	CHECK(call(fd, NEURON_NATIVE_RESET_EVENTFD, &odd) == EINVAL, "a flag: EINVAL");
	CHECK(!reset_eventfd(fd, 0, ev) && !signals(ev, 0), "ask for resets of core 0");
	shared = fd;
	in_child(stranger);
	pthread_create(&t, NULL, resets, &fd);
	CHECK(signals(ev, 60000) == 1, "a signal when another thread resets it");
	pthread_join(t, &err);
	CHECK(!err, "reset");
	CHECK(!call(fd, NEURON_IOCTL_DEVICE_RESET, NULL) && signals(ev, 60000) == 1,
	      "and when the device is reset");
	CHECK(!reset_eventfd(fd, 0, -1) && !call(fd, NEURON_IOCTL_DEVICE_RESET, NULL) &&
	      !signals(ev, 100), "none after it was removed");
	CHECK(!reset_eventfd(fd, 0, ev), "ask again, and go");
	close(ev);
}

int main(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_native_geometry geo = geometry(fd);

	copies(fd);
	reset_of_core(fd, geo.nr_cores);
	close(fd);
	return failed != 0;
}
