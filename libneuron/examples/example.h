/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the examples share; nothing of it has to do with the library. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	void *bytes;
	size_t size;
};

/* The library copies what it needs: a mapping for reading will do. */
static inline struct file map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file f;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", path);
	f.size = (size_t)st.st_size;
	f.bytes = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (f.bytes == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	return f;
}

/* Some input. */
static inline void fill(uint8_t *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 7 + seed);
}

static inline uint32_t checksum(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	return sum;
}

/* Functions of libneuron return 0 or a negative errno value. */
static inline void check(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, strerror(-ret));
}

#endif
