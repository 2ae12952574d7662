/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel primitives that the allocator uses, for user space: unit tests,
 * fuzzing, benchmarks and model checking compile the very same files.
 */
#ifndef NEURON_MEM_BUDDY_SHIM_H
#define NEURON_MEM_BUDDY_SHIM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define noinline	__attribute__((__noinline__))

#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define GFP_KERNEL	0
#define GFP_KERNEL_ACCOUNT 0
#define PAGE_SIZE	4096UL

/*
 * Every allocation goes through one function that a test can replace, so that
 * the n-th one can be made to fail, and every free, so that leaks are seen.
 */
#ifndef NEURON_BUDDY_SHIM_ALLOC
#define NEURON_BUDDY_SHIM_ALLOC(n, size) calloc(n, size)
#endif

#define kvcalloc(n, size, gfp)	NEURON_BUDDY_SHIM_ALLOC(n, size)
#define kvzalloc(size, gfp)	NEURON_BUDDY_SHIM_ALLOC(1, size)
#ifndef NEURON_BUDDY_SHIM_FREE
#define NEURON_BUDDY_SHIM_FREE(p) free(p)
#endif
#define kvfree(p)		NEURON_BUDDY_SHIM_FREE(p)
#define get_zeroed_page(gfp)	((unsigned long)NEURON_BUDDY_SHIM_ALLOC(1, PAGE_SIZE))
#define free_page(p)		NEURON_BUDDY_SHIM_FREE((void *)(p))

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

static inline bool llist_empty(const struct llist_head *head)
{
	return !READ_ONCE(head->first);
}

static inline bool llist_add(struct llist_node *node, struct llist_head *head)
{
	struct llist_node *first = __atomic_load_n(&head->first, __ATOMIC_RELAXED);

	do {
		node->next = first;
	} while (!__atomic_compare_exchange_n(&head->first, &first, node, false,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	return !first;
}

static inline struct llist_node *llist_del_all(struct llist_head *head)
{
	return __atomic_exchange_n(&head->first, NULL, __ATOMIC_ACQUIRE);
}

static inline unsigned int __ffs64(u64 x)
{
	return (unsigned int)__builtin_ctzll(x);
}

/* One-based, as in the kernel; 0 for 0. */
static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline unsigned int hweight64(u64 x)
{
	return (unsigned int)__builtin_popcountll(x);
}

static inline bool is_power_of_2(u64 x)
{
	return x && !(x & (x - 1));
}

#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))

#endif
