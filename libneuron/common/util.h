/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every file of both libraries may need. */
#ifndef NEURON_UTIL_H
#define NEURON_UTIL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <unistd.h>

/* A function of the public interface. */
#define NEURON_EXPORT __attribute__((visibility("default")))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A size as text, which lives until the end of the block; needs <neuron/neuron.h>. */
#define SIZE_TEXT(bytes) neuron_report_size((bytes), (char[32]){ 0 }, 32)

#define MIB (1ull << 20)

/* The unit of addresses and lengths of device memory, whatever machine it is of. */
#define NEURON_PAGE 4096u

/* The driver of this machine hands out memory in its kernel's pages, which are up to 64 KiB. */
static inline uint64_t host_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static inline uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* A sum that is too large for the type stays as large as that can be. */
static inline void add_capped(uint64_t *sum, uint64_t bytes)
{
	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = UINT64_MAX;
}

/*
 * A pointer to what is to be freed, which is NULL from here on. Another thread may fork() at any
 * time, and the child frees what it finds.
 */
#define TAKE_OUT(pointer) ({ \
	__typeof__(pointer) taken_ = (pointer); \
	(pointer) = NULL; \
	atomic_signal_fence(memory_order_seq_cst); \
	taken_; \
})

/* Room for one more element of an array that doubles.  0 or -ENOMEM. */
static inline int array_grow(void **array, size_t nr, size_t *max, size_t size)
{
	size_t more = *max ? *max * 2 : 16;
	void *p;

	if (nr < *max)
		return 0;
	p = reallocarray(*array, more, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*max = more;
	return 0;
}

/* A file that is short: what there is of it, terminated. Returns its length. */
static inline size_t read_short(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t len = file ? fread(text, 1, size - 1, file) : 0;

	text[len] = 0;
	if (file)
		fclose(file);
	return len;
}

/* 0 or -errno. */
static inline int write_bytes(int fd, const void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

#endif
