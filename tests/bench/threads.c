// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contention: threads that allocate and free, each on a zone of its own, or all
 * on one zone under one spinlock. Allocations per second, and per thread.
 *
 * usage: bench-threads [THREADS]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include "bench.h"
#include "trace.h"
#include "../../kmod/mem/buddy/all.h"

#define SECONDS		1.0
#define LIVE		64
#define MAX_THREADS	64

struct shared {
	pthread_spinlock_t lock;
	struct neuron_buddy *zone;
} __attribute__((aligned(128)));

struct worker {
	pthread_t thread;
	struct shared *s;
	u64 seed;
	u64 done;
} __attribute__((aligned(128)));

static volatile bool stop;

static void *work(void *arg)
{
	struct neuron_buddy_block b[LIVE];
	struct worker *w = arg;
	struct shared *s = w->s;
	struct rng r;
	u32 n = 0, i;

	rng_seed(&r, w->seed);
	while (!stop) {
		struct neuron_buddy_request req = { .size = size_ml_mix(&r) / 8 + 1 };
		int err;

		if (n == LIVE) {
			i = rng_below(&r, LIVE);
			pthread_spin_lock(&s->lock);
			neuron_buddy_free(s->zone, &b[i], false);
			pthread_spin_unlock(&s->lock);
			b[i] = b[--n];
		}
		do {
			if (neuron_buddy_prepare(s->zone))
				return NULL;
			pthread_spin_lock(&s->lock);
			err = neuron_buddy_alloc(s->zone, &req, &b[n], NULL);
			pthread_spin_unlock(&s->lock);
		} while (err == -EAGAIN);
		n += !err;
		w->done++;
	}
	return NULL;
}

static double run(u32 threads, u32 zones)
{
	static struct shared s[MAX_THREADS];
	static struct worker w[MAX_THREADS];
	struct timespec t = { .tv_sec = (time_t)SECONDS };
	u64 done = 0;
	u32 i;

	stop = false;
	for (i = 0; i < zones; i++) {
		pthread_spin_init(&s[i].lock, PTHREAD_PROCESS_PRIVATE);
		if (neuron_buddy_create(&s[i].zone, 24 * GIB))
			return 0;
	}
	for (i = 0; i < threads; i++) {
		w[i] = (struct worker){ .s = &s[i % zones], .seed = i };
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	nanosleep(&t, NULL);
	stop = true;
	for (i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		done += w[i].done;
	}
	for (i = 0; i < zones; i++)
		neuron_buddy_destroy(s[i].zone);
	return done / SECONDS;
}

int main(int argc, char **argv)
{
	u32 max_threads = argc > 1 ? (u32)atoi(argv[1]) : 8, n;
	double one = run(1, 1);

	if (max_threads < 1 || max_threads > MAX_THREADS)
		return 2;
	printf("threads zones  allocations/s  of one thread\n");
	for (n = 1; n <= max_threads; n *= 2) {
		double own = run(n, n), all = run(n, 1);

		printf("%7u %5u %14.0f %14.2f\n", n, n, own, own / one);
		printf("%7u %5u %14.0f %14.2f\n", n, 1, all, all / one);
	}
	return 0;
}
