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
	/* bytes copied to make room; NULL if its blocks stay where they are */
	u64 (*copied)(void *zone);
	/* gives out scattered pieces: placement says nothing about it */
	bool scattered;
	/* a bitmap that is searched from its beginning: not for what takes it hours */
	bool slow;
	/* stands for another one where that is slow: says nothing about time */
	bool only_packing;
	/* negative if its books are wrong; NULL if it cannot tell */
	int (*check)(void *zone);
};

extern const struct bench_peer bench_ours, bench_exact_first, bench_exact_best;
extern const struct bench_peer bench_moving_all, bench_moving_half;
extern const struct bench_peer *const bench_peers[];

/* Platform. */
u64 bench_cycles(void);
u64 bench_cycles_to_ns(u64 cycles);	/* rounded */
void bench_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A file as text, from bench_alloc_mem(); NULL if it cannot be read. */
char *bench_read(const char *path);

/* What the owner reads before a call has arrived: its misses are not the allocator's. */
static inline void bench_settle(void)
{
#ifdef __x86_64__
	__asm__ volatile("lfence" : : : "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* What to run. */
struct bench_options {
	const char *tests, *peers;	/* parts of names, separated; "" for all */
	u32 seeds;
	char *recorded;			/* files with recorded traces, separated by commas; taken apart */
	bool quick;			/* packing in minutes instead of hours */
	u64 draw;			/* seed that the mixes of "mixes" are drawn from */
};

/* Results go to bench_print, one JSON object per line. */
int bench_run(const struct bench_options *o);

/* How tightly @p packs (pack.c), with up to @max of @blocks. */
void bench_pack(const struct bench_peer *p, const struct bench_options *o,
		struct bench_block *blocks, u32 max);

/* True if two peers of one policy give out the same addresses. */
bool bench_twins(const struct bench_peer *a, const struct bench_peer *b,
		 struct bench_block *blocks, u32 max);

#endif
