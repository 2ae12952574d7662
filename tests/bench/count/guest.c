// SPDX-License-Identifier: GPL-2.0-only
/* System calls between marks, for plugin.c to count their instructions. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>

#include "../../vm/guest/check.h"

#define CALLS	1000
#define LIVE	100000

#define MARK(work) do { \
	asm volatile(".byte 0x0f, 0x1f, 0x80; .long 0x4e5500 + " #work ::: "memory"); \
} while (0)

#define BULK	NEURON_NATIVE_BULK_MAX

static struct neuron_native_mem_bulk_entry entries[BULK];
static __u64 handles[LIVE], spare[CALLS];

/* Of one call each time: the loop around it is not counted. */
#define COUNT(work, call) do { \
	MARK(work); \
	(void)(call); \
	MARK(0); \
} while (0)

/* An allocation, and at once its free. */
#define COUNT_PAIRS(alloc, free, size) do { \
	for (int i_ = 0; i_ < CALLS; i_++) { \
		COUNT(alloc, get(fd, size, &handle)); \
		COUNT(free, put(fd, handle)); \
	} \
} while (0)

static int get(int fd, uint64_t size, __u64 *handle)
{
	struct neuron_ioctl_mem_alloc a = { .size = size, .mem_handle = handle };

	return ioctl(fd, NEURON_IOCTL_MEM_ALLOC, &a);
}

static int put(int fd, uint64_t handle)
{
	struct neuron_ioctl_mem_free f = { .mem_handle = handle };

	return ioctl(fd, NEURON_IOCTL_MEM_FREE, &f);
}

static int copy(int fd, __u64 handle, void *buf, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = 4096, .copy_to_mem_handle = to,
	};

	return ioctl(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static void copies(int fd)
{
	static char buf[4096] __attribute__((aligned(4096)));
	__u64 handle;

	CHECK(!get(fd, 4096, &handle) && !copy(fd, handle, buf, 1) && !copy(fd, handle, buf, 0),
	      "a copy there and back");
	for (int i = 0; i < CALLS; i++) {
		COUNT(15, copy(fd, handle, buf, 1));
		COUNT(16, copy(fd, handle, buf, 0));
	}
	put(fd, handle);
}

static void pairs(int fd, uint64_t size)
{
	__u64 handle;

	for (int i = 0; i < 100; i++)
		CHECK(!get(fd, size, &handle) && !put(fd, handle), "pair");
}

int main(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_compatible_version v;
	struct neuron_native_mem_alloc_bulk a = {
		.size = sizeof(a), .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, .count = BULK,
		.entry_size = sizeof(*entries), .entries = (uintptr_t)entries,
	};
	struct neuron_native_mem_free_bulk f = {
		.size = sizeof(f), .count = BULK, .handles = (uintptr_t)handles,
	};
	__u64 handle;

	cpu_set_t cpu;

	/* Only that processor is counted, and a close may offer it to others. */
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	CHECK(!sched_setaffinity(0, sizeof(cpu), &cpu), "stay on a processor");
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	for (int i = 0; i < CALLS; i++) {
		COUNT(1, syscall(SYS_getppid));
		COUNT(2, ioctl(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &v));
	}
	copies(fd);
	pairs(fd, 4096);
	/* Each counts as one call. */
	for (int i = 0; i < BULK; i++)
		entries[i].bytes = 4096;
	for (int i = 0; i < 10; i++) {
		COUNT(13, ioctl(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a));
		for (int k = 0; k < BULK; k++)
			handles[k] = entries[k].mem_handle;
		COUNT(14, ioctl(fd, NEURON_NATIVE_MEM_FREE_BULK, &f));
	}
	COUNT_PAIRS(3, 4, 4096);
	for (int i = 0; i < LIVE; i++)
		get(fd, 4096, &handles[i]);
	COUNT_PAIRS(5, 6, 4096);
	/* One after the other, as programs fill memory and give it back. */
	for (int i = 0; i < CALLS; i++)
		COUNT(7, get(fd, 4096, &spare[i]));
	for (int i = 0; i < CALLS; i++)
		COUNT(8, put(fd, spare[i]));
	/* A victim drawn, and another one in its place. */
	srand(1);
	for (int i = 0; i < CALLS; i++) {
		int k = (rand() * 32768ll + rand()) % LIVE;

		COUNT(9, put(fd, handles[k]));
		COUNT(10, get(fd, 4096, &handles[k]));
	}
	for (int i = 0; i < LIVE; i += 2)
		put(fd, handles[i]);
	COUNT_PAIRS(11, 12, 8192);
	/* What a process leaves behind that ends: each chunk counts as one call. */
	close(fd);
	fd = open_node(O_RDWR);
	for (int i = 0; i < LIVE; i++)
		get(fd, 4096, &handles[i]);
	COUNT(17, close(fd));
	return 0;
}
