/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Timeouts that survive interrupted waits, and telling those who wait without one. */
#ifndef NEURON_WAIT_H
#define NEURON_WAIT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

struct deadline {
	bool forever;
	int64_t ms;
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t now_us(void)
{
	return now_ns() / 1000;
}

static inline int64_t now_ms(void)
{
	return (int64_t)(now_ns() / 1000000);
}

/* For pthread_cond_clockwait() with CLOCK_MONOTONIC. */
static inline struct timespec time_in_us(int64_t us)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += us / 1000000;
	t.tv_nsec += us % 1000000 * 1000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static inline struct deadline deadline_in(int timeout_ms)
{
	return (struct deadline){
		.forever = timeout_ms < 0,
		.ms = timeout_ms < 0 ? 0 : now_ms() + timeout_ms,
	};
}

/* For poll(): -1 no limit, 0 over. */
static inline int deadline_left(const struct deadline *d)
{
	int64_t left;

	if (d->forever)
		return -1;
	left = d->ms - now_ms();
	return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

/*
 * Add 1 to a program's eventfd, which may be a blocking one: the flag belongs to all who
 * share it.  One that cannot take it is readable as it is; whoever waits for it wakes up.
 */
static inline void tell_eventfd(int fd)
{
	static const uint64_t one = 1;
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	/* With an error, too, it is a pipe without a reader. */
	if (poll(&pfd, 1, 0) == 1 && pfd.revents == POLLOUT && write(fd, &one, sizeof(one)) < 0)
		return;
}

#endif
