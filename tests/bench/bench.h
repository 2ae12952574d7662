/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Benchmark of allocators of contiguous device memory: what an allocator must
 * offer to take part, and what the platform (kernel module or host program)
 * offers to the benchmark. Sizes and addresses in bytes unless said otherwise.
 */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#define bench_complain(fmt, ...) pr_err(fmt "\n", ##__VA_ARGS__)
#define bench_alloc_mem(n)	vzalloc(n)
#define bench_free_mem(p)	vfree(p)
#define bench_sort_u32(p, n)	sort(p, n, sizeof(u32), bench_cmp_u32, NULL)
#else
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../kmod/mem/buddy/shim.h"
#define bench_complain(fmt, ...) fprintf(stderr, fmt "\n", ##__VA_ARGS__)
#define bench_alloc_mem(n)	calloc(1, n)
#define bench_free_mem(p)	free(p)
#define bench_sort_u32(p, n)	qsort(p, n, sizeof(u32), bench_cmp_u32)
#define cond_resched()		do { } while (0)
#endif

/* An allocation in flight: enough room for what any of the peers keeps. */
struct bench_block {
	u64 size;
	u64 priv[24];
};

struct bench_peer {
	const char *name;
	void *(*create)(u64 size);
	void (*destroy)(void *zone);
	int (*alloc)(void *zone, u64 size, u64 align, struct bench_block *block);
	void (*free)(void *zone, struct bench_block *block);
	/* the block was moved in memory; NULL if that does not matter */
	void (*moved)(struct bench_block *block);
	/* bytes of host memory in use for bookkeeping now */
	u64 (*metadata)(void *zone);
	/* gives out scattered pieces: placement says nothing about it */
	bool scattered;
	/* negative if its books are wrong; NULL if it cannot tell */
	int (*check)(void *zone);
};

extern const struct bench_peer bench_ours;
extern const struct bench_peer *const bench_peers[];

/* Platform. */
u64 bench_cycles(void);
u64 bench_cycles_to_ns(u64 cycles);	/* rounded */
void bench_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A file as text, from bench_alloc_mem(); NULL if it cannot be read. */
char *bench_read(const char *path);

/*
 * Run the tests whose name contains @tests ("" for all) on the peers whose
 * name contains @peers; results go to bench_print, one JSON object per line.
 * @recorded: files with recorded traces, separated by commas; taken apart.
 */
int bench_run(const char *tests, const char *peers, u32 seeds, char *recorded);

#endif
