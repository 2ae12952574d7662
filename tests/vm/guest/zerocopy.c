// SPDX-License-Identifier: GPL-2.0-only
/* Copies between a process and device memory that go without a buffer between. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

#define SIZE	(9u << 20)

static int fd;
static uint64_t handle;
static uint8_t *in, *out;

static int copy(unsigned long cmd, void *buf, uint64_t size, uint64_t off, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return call(fd, cmd, &c);
}

static void there_and_back(unsigned long cmd, const char *what)
{
	static const struct { uint32_t size, off, in; } cases[] = {
		{ SIZE, 0, 0 }, { 128 << 10, 0, 0 }, { (128 << 10) - 1, 1, 1 },
		{ (2 << 20) + 1, 4095, 4095 }, { (4 << 20) - 1, 12345, 777 }, { 1, 8191, 4095 },
		{ (2 << 20) + (128 << 10), 3, 4093 },
	};
	uint32_t i, k;
	int bad;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (k = 0; k < cases[i].size; k++)
			in[cases[i].in + k] = k * 31 + (k >> 9) + i;
		memset(out, 0xee, SIZE + 8192);
		bad = copy(cmd, in + cases[i].in, cases[i].size, cases[i].off, 1) ||
		      copy(cmd, out + cases[i].in, cases[i].size, cases[i].off, 0) ||
		      memcmp(in + cases[i].in, out + cases[i].in, cases[i].size);
		/* And not a byte beside it. */
		if (cases[i].in && out[cases[i].in - 1] != 0xee)
			bad = 1;
		if (out[cases[i].in + cases[i].size] != 0xee)
			bad = 1;
		CHECK(!bad, "%s: %u bytes at %u", what, cases[i].size, cases[i].off);
	}
}

static void *unmapper(void *arg)
{
	usleep(2000);
	munmap(arg, SIZE);
	return NULL;
}

static void unmapped(void)
{
	int err = 0, i;
	pthread_t t;

	for (i = 0; i < 20 && (!err || err == EFAULT); i++) {
		void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);

		pthread_create(&t, NULL, unmapper, map);
		err = copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, map, SIZE, 0, i & 1);
		pthread_join(t, NULL);
	}
	CHECK(i == 20, "memory that is unmapped meanwhile: done or EFAULT");
}

static void killed(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = open_node(O_RDWR);
		handle = alloc(fd, SIZE, 0, 0);
		for (;;)
			if (copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, in, SIZE, 0, 1) ||
			    copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, out, SIZE, 0, 0))
				_exit(1);
	}
	usleep(300000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status), "a process is killed in the middle of it");
}

int main(void)
{
	struct neuron_native_mem_alloc dev = {
		.size = sizeof(dev), .bytes = SIZE, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	uint8_t *map, *hole, *ro;

	fd = open_node(O_RDWR);
	handle = alloc(fd, SIZE + 16384, 0, 0);
	in = mmap(NULL, SIZE + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	out = mmap(NULL, SIZE + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	there_and_back(NEURON_IOCTL_MEM_BUF_COPY64, "BUF_COPY64");
	there_and_back(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, "ZEROCOPY64");
	CHECK(copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, in, 0, 0, 1) == EINVAL,
	      "vendor B6: 0 bytes: EINVAL");

	/* Another chunk's mapping as the buffer: it has no pages. */
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &dev), "a second chunk");
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, dev.mmap_offset);
	CHECK(map != MAP_FAILED, "map it");
	memset(map, 0x33, SIZE);
	CHECK(!copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, map, SIZE, 0, 1) &&
	      !copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, out, SIZE, 0, 0) && out[0] == 0x33 &&
	      out[SIZE - 1] == 0x33, "from a mapping of device memory");
	munmap(map, SIZE);
	mem_free(fd, dev.mem_handle);

	ro = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(!copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, ro, SIZE, 0, 1), "from read-only memory");
	CHECK(copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, ro, SIZE, 0, 0) == EFAULT,
	      "to read-only memory: EFAULT");
	hole = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole + (5 << 20), 4096);
	CHECK(copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, hole, SIZE, 0, 1) == EFAULT &&
	      copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, hole, SIZE, 0, 0) == EFAULT,
	      "a hole in the middle: EFAULT");
	CHECK(copy(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, (void *)-4096ul, 1 << 20, 0, 0) == EFAULT,
	      "around the end of memory: EFAULT");

	/*
	 * In User Mode Linux a page that goes between the fault and the copy is a null pointer of
	 * the kernel (maybe_map() in arch/um of 6.12).
	 */
	if (!is_uml())
		unmapped();
	killed();
	CHECK(!mem_free(fd, handle), "free");
	close(fd);
	return failed != 0;
}
