// SPDX-License-Identifier: GPL-2.0-only
/* Asynchronous copies. */
#include <signal.h>

#include "check.h"

#define SIZE	(4u << 20)

static int start(int fd, uint64_t src, uint64_t dst, uint64_t size, uint64_t off, uint32_t prev,
		 uint32_t *token)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = src, .dst_mem_handle = dst, .size = size, .src_offset = off,
		.dst_offset = off, .pwait_handle = prev, .wait_handle = 77,
	};
	int err = call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);

	*token = c.wait_handle;
	return err;
}

static int wait_for(int fd, uint64_t src, uint64_t dst, uint32_t token)
{
	struct neuron_ioctl_mem_copy_async_wait w = {
		.src_mem_handle = src, .dst_mem_handle = dst, .pwait_handle = token,
	};

	return call(fd, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w);
}

static int buf(int fd, uint64_t handle, void *p, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = p, .size = SIZE, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static void dies_with_copies(void)
{
	int fd = open_node(O_RDWR);
	uint64_t a = alloc(fd, SIZE, 0, 0), b = alloc(fd, SIZE, 0, 0);
	uint32_t token;

	CHECK(!start(fd, a, b, SIZE, 0, ~0u, &token) && !mem_free(fd, a) && !mem_free(fd, b),
	      "a process goes while it copies memory that it has freed");
	fflush(stdout);
}

int main(void)
{
	int fd = open_node(O_RDWR), bad = 0;
	uint64_t a = alloc(fd, SIZE, 0, 1), b = alloc(fd, SIZE, 0, 1);
	struct neuron_ioctl_mem_copy_async old = {
		.src_mem_handle = a, .dst_mem_handle = b, .size = 64, .pwait_handle = ~0u,
	};
	uint8_t *in = malloc(SIZE), *out = calloc(1, SIZE);
	uint32_t token, last, i;

	for (i = 0; i < SIZE; i++)
		in[i] = i * 7 + (i >> 11);
	CHECK(!buf(fd, a, in, 1), "fill");
	CHECK(!start(fd, a, b, 1 << 20, 0, ~0u, &token) && token == 1, "first copy: token 1");
	for (i = 1, last = token; i < 4; i++) {
		bad += start(fd, a, b, 1 << 20, i << 20, last, &token) || token != 3 - last;
		last = token;
	}
	CHECK(!bad, "three more, each waits for the one before: tokens 2, 1, 2");
	CHECK(!wait_for(fd, a, b, last), "wait for the last");
	CHECK(!buf(fd, b, out, 0) && !memcmp(in, out, SIZE), "everything is there");
	CHECK(wait_for(fd, a, b, last) == EINVAL, "wait again: EINVAL");
	CHECK(wait_for(fd, a, b, 0) == EINVAL && wait_for(fd, a, b, 3) == EINVAL &&
	      wait_for(fd, a, b, ~0u) == EINVAL, "no such token: EINVAL");
	CHECK(start(fd, a, b, 64, 0, 1, &token) == EINVAL, "after one that is not: EINVAL");
	CHECK(start(fd, a, b, 64, 0, 3, &token) == EINVAL, "after no token: EINVAL");
	CHECK(!start(fd, b, a, SIZE, 0, 0, &token) && !token, "token 0: at once");
	CHECK(start(fd, a, b, 0, 0, ~0u, &token) == EINVAL, "vendor A10: 0 bytes: EINVAL");
	CHECK(start(fd, a, b, SIZE, 1, ~0u, &token) == EINVAL, "over the end: EINVAL");
	CHECK(start(fd, a, b, 64, ~0ull, ~0u, &token) == EOVERFLOW, "vendor A3: wraps: EOVERFLOW");
	CHECK(start(fd, a, 9999, 64, 0, ~0u, &token) == ENOENT && wait_for(fd, 9999, b, 1) == ENOENT,
	      "no such handle: ENOENT");
	CHECK(!start(fd, a, b, SIZE, 0, ~0u, &token) && token == 1, "token 1");
	CHECK(start(fd, a, b, 64, 0, ~0u, &token) == EBUSY, "token 1 is in use: EBUSY");
	CHECK(!wait_for(fd, a, b, 1), "wait");
	CHECK(!call(fd, NEURON_IOCTL_MEM_COPY_ASYNC, &old) && old.wait_handle == 1 &&
	      !wait_for(fd, a, b, 1), "the 32-bit form");
	in_child(dies_with_copies);
	CHECK(!mem_free(fd, a) && !mem_free(fd, b), "free");
	close(fd);
	free(in);
	free(out);
	return failed != 0;
}
