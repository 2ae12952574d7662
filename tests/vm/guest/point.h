/* SPDX-License-Identifier: GPL-2.0-only */
/* A point of a test program, and how many of them failed. */
#ifndef POINT_H
#define POINT_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int failed __attribute__((unused));

#define CHECK(cond, ...) do {						\
	int ok_ = !!(cond);						\
	printf("%s - ", ok_ ? "ok" : "not ok");				\
	printf(__VA_ARGS__);						\
	if (!ok_)							\
		printf(" (line %d, errno %d %s)", __LINE__, errno, strerror(errno)); \
	printf("\n");							\
	fflush(stdout);							\
	failed += !ok_;							\
} while (0)

#endif
