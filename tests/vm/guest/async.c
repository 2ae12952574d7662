// SPDX-License-Identifier: GPL-2.0-only
/* Asynchronous copies. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

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

static uint64_t used(int fd)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s), "statistics");
	return s.used;
}

/* Memory that is freed while it is copied is back when the copy is done. */
static void result_only(int fd)
{
	uint64_t before = used(fd), a = alloc(fd, SIZE, 0, 2), b = alloc(fd, SIZE, 0, 2);
	uint32_t token;
	int i;

	CHECK(!start(fd, a, b, SIZE, 0, ~0u, &token) && !mem_free(fd, a) && !mem_free(fd, b),
	      "free what is being copied");
	for (i = 0; i < 600 && used(fd) != before; i++)
		usleep(100000);
	CHECK(used(fd) == before, "a copy that nobody waits for does not keep its memory");
	CHECK(wait_for(fd, a, b, 3 - token) == ENOENT, "another token of it: ENOENT");
	CHECK(!wait_for(fd, a, b, token), "its result can be had by the handles that are gone");
	CHECK(wait_for(fd, a, b, token) == ENOENT, "once");
	CHECK(used(fd) == before, "nothing is left");
}

struct waiter {
	pthread_t thread;
	int fd, err;
	uint64_t a, b;
	uint32_t token;
};

static void *waits(void *arg)
{
	struct waiter *w = arg;

	w->err = wait_for(w->fd, w->a, w->b, w->token);
	return NULL;
}

/* A wait for one copy does not delay others. */
static void two_waiters(int fd)
{
	uint64_t big = 256ull << 20, a = alloc(fd, big, 0, 3), b = alloc(fd, big, 0, 3);
	uint64_t c = alloc(fd, 4096, 0, 4), d = alloc(fd, 4096, 0, 4);
	struct waiter w[2];
	uint32_t token, small;
	int i;

	CHECK(!start(fd, a, b, big, 0, ~0u, &token), "a long copy");
	for (i = 0; i < 2; i++) {
		w[i] = (struct waiter){ .fd = fd, .a = a, .b = b, .token = token };
		pthread_create(&w[i].thread, NULL, waits, &w[i]);
	}
	CHECK(!start(fd, c, d, 64, 0, ~0u, &small) && !wait_for(fd, c, d, small),
	      "a short one on another core meanwhile");
	for (i = 0; i < 2; i++)
		pthread_join(w[i].thread, NULL);
	CHECK(w[0].err + w[1].err == EINVAL && (!w[0].err || !w[1].err),
	      "two threads wait for one copy: one gets the result, one EINVAL");
	CHECK(!mem_free(fd, a) && !mem_free(fd, b) && !mem_free(fd, c) && !mem_free(fd, d), "free");
}

/* A token that cannot be told is given back. */
static void lost_token(int fd, uint64_t a, uint64_t b)
{
	struct neuron_ioctl_mem_copy_async64 *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
						       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t token;

	*c = (struct neuron_ioctl_mem_copy_async64){
		.src_mem_handle = a, .dst_mem_handle = b, .size = 64, .pwait_handle = ~0u,
	};
	mprotect(c, 4096, PROT_READ);
	CHECK(call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, c) == EFAULT, "read-only argument: EFAULT");
	CHECK(!start(fd, a, b, 64, 0, ~0u, &token) && token == 1 && !wait_for(fd, a, b, 1),
	      "the token is free");
	munmap(c, 4096);
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
	lost_token(fd, a, b);
	result_only(fd);
	two_waiters(fd);
	in_child(dies_with_copies);
	CHECK(!mem_free(fd, a) && !mem_free(fd, b), "free");
	close(fd);
	free(in);
	free(out);
	return failed != 0;
}
