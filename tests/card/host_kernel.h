/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the sources of the software device use of the kernel, on the host. The Makefile
 * makes a header of each kernel header's name that includes this one.
 *
 * Locks are pthread mutexes, and a workqueue is a thread, so the order of locks of emu.h
 * and its promises about work items hold here as they do there.
 */
#ifndef CARD_KERNEL_H
#define CARD_KERNEL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../kmod/emu/shim.h"

#define IS_ENABLED(x)		0
#define KERNEL_VERSION(a, b, c)	(((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE	KERNEL_VERSION(255, 0, 0)

/*
 * A card has one notification queue for each engine, whatever the type.  Which traces it
 * writes there is not known, so theirs are behind those that registers reach.
 */
#define EMU_NQ(type, engine)	((type) == EMU_NQ_NOTIFY || (type) == EMU_NQ_ERROR ? (engine) : \
				 ((type) + 1) * NEURON_HW_NQ_ENGINES + (engine))

struct dentry;

#define BIT(n)			(1UL << (n))
#define lower_32_bits(n)	((u32)(n))
#define upper_32_bits(n)	((u32)((n) >> 32))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min3(a, b, c)		min(min(a, b), c)
#define swap(a, b)		do { typeof(a) t_ = (a); (a) = (b); (b) = t_; } while (0)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define SZ_64K			0x10000
#define SZ_256K			0x40000
#define SZ_1M			0x100000
#define PAGE_SHIFT		12
#define PAGE_SIZE		(1UL << PAGE_SHIFT)
#define div_u64(n, d)		((u64)(n) / (u32)(d))
#define div64_u64(n, d)		((u64)(n) / (u64)(d))
#define sysfs_streq(a, b)	(!strcmp(a, b))
#define NSEC_PER_SEC		1000000000L
#define NSEC_PER_MSEC		1000000L
#define container_of(p, t, m)	((t *)((char *)(p) - offsetof(t, m)))

/* ---- memory and order ---- */

#define data_race(x)		(x)
#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile typeof(x) *)&(x) = (v))
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define smp_wmb()		__atomic_thread_fence(__ATOMIC_RELEASE)
#define xchg(p, v)		__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)

typedef struct { int n; } atomic_t;
typedef struct { s64 n; } atomic64_t;
typedef struct { long n; } atomic_long_t;
#define atomic_read(v)		__atomic_load_n(&(v)->n, __ATOMIC_SEQ_CST)
#define atomic_inc_return(v)	__atomic_add_fetch(&(v)->n, 1, __ATOMIC_SEQ_CST)
#define atomic_set(v, i)	__atomic_store_n(&(v)->n, i, __ATOMIC_SEQ_CST)
#define atomic64_inc(v)		((void)__atomic_add_fetch(&(v)->n, 1, __ATOMIC_SEQ_CST))
#define atomic64_inc_return(v)	__atomic_add_fetch(&(v)->n, 1, __ATOMIC_SEQ_CST)
#define atomic64_set(v, i)	__atomic_store_n(&(v)->n, i, __ATOMIC_SEQ_CST)
#define atomic64_read(v)	__atomic_load_n(&(v)->n, __ATOMIC_SEQ_CST)

static inline int atomic_dec_if_positive(atomic_t *v)
{
	int old = atomic_read(v);

	while (old > 0 && !__atomic_compare_exchange_n(&v->n, &old, old - 1, false,
						       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	return old - 1;
}

struct rnd_state { unsigned short x[3]; };

static inline void prandom_seed_state(struct rnd_state *s, u64 seed)
{
	for (int i = 0; i < 3; i++)
		s->x[i] = (unsigned short)(seed >> 16 * i);
}

static inline u32 prandom_u32_state(struct rnd_state *s)
{
	return (u32)jrand48(s->x);
}

#define hash_64(v, bits)	((u64)(v) * 0x61c8864680b583ebull >> (64 - (bits)))
#define reciprocal_scale(v, n)	((u32)((u64)(v) * (n) >> 32))

/* Faults are injected through the control socket. */
#define debugfs_create_atomic_t(name, mode, dir, value) ((void)(dir), (void)(value))

struct xarray { char unused; };		/* the memory of a card is a file */

#define GFP_KERNEL		0
#define __GFP_NORETRY		0
#define struct_size(p, m, n)	(sizeof(*(p)) + sizeof((p)->m[0]) * (n))
#define num_online_cpus()	((u32)sysconf(_SC_NPROCESSORS_ONLN))
#define __GFP_NOWARN		0
#define __GFP_RETRY_MAYFAIL	0
#define kcalloc(n, size, f)	calloc(n, size)
#define kzalloc(n, f)		calloc(1, n)
#define kvzalloc(n, f)		calloc(1, n)
#define kvmalloc(n, f)		malloc(n)
#define kfree(p)		free((void *)(p))
#define kvfree(p)		free((void *)(p))

#define WARN_ON(c) ({								\
	bool c_ = (c);								\
										\
	if (c_)									\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c);		\
	c_;									\
})

/* ---- bits ---- */

#define BITS_PER_LONG		(8 * (int)sizeof(long))
#define DECLARE_BITMAP(name, n)	unsigned long name[DIV_ROUND_UP(n, 8 * sizeof(long))]
#define bitmap_zero(p, n)	memset(p, 0, DIV_ROUND_UP(n, BITS_PER_LONG) * sizeof(long))
#define BIT_WORD(p, n)		((p)[(n) / BITS_PER_LONG])
#define BIT_MASK(n)		(1UL << ((n) % BITS_PER_LONG))
#define test_bit(n, p)		(!!(READ_ONCE(BIT_WORD(p, n)) & BIT_MASK(n)))
#define set_bit(n, p) \
	((void)__atomic_or_fetch(&BIT_WORD(p, n), BIT_MASK(n), __ATOMIC_SEQ_CST))
#define clear_bit(n, p) \
	((void)__atomic_and_fetch(&BIT_WORD(p, n), ~BIT_MASK(n), __ATOMIC_SEQ_CST))
#define __clear_bit(n, p)	clear_bit(n, p)
#define __assign_bit(n, p, v)	((v) ? set_bit(n, p) : clear_bit(n, p))
#define for_each_set_bit(i, p, n) for ((i) = 0; (i) < (n); (i)++) if (test_bit(i, p))

/* ---- locks ---- */

struct mutex { pthread_mutex_t m; };
typedef struct { pthread_mutex_t m; } spinlock_t;
struct rw_semaphore { pthread_rwlock_t l; };

#define mutex_init(l)		pthread_mutex_init(&(l)->m, NULL)
#define mutex_lock(l)		pthread_mutex_lock(&(l)->m)
#define mutex_unlock(l)		pthread_mutex_unlock(&(l)->m)
#define spin_lock_init(l)	mutex_init(l)
#define spin_lock(l)		mutex_lock(l)
#define spin_unlock(l)		mutex_unlock(l)
#define init_rwsem(s)		pthread_rwlock_init(&(s)->l, NULL)
#define down_read(s)		pthread_rwlock_rdlock(&(s)->l)
#define up_read(s)		pthread_rwlock_unlock(&(s)->l)
#define down_write(s)		pthread_rwlock_wrlock(&(s)->l)
#define up_write(s)		pthread_rwlock_unlock(&(s)->l)
#define lockdep_assert_held(l)	((void)(l))

/* ---- time and tasks ---- */

#define cond_resched()			((void)0)
struct task_struct { unsigned int flags; };
#define current				(&(struct task_struct){ 0 })
#define PF_WQ_WORKER			1
#define fatal_signal_pending(t)		false
#define msleep(ms)			usleep((ms) * 1000)

static inline u64 ktime_get_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static inline u64 local_clock(void)
{
	return ktime_get_ns();
}

static inline s64 ktime_get_real_seconds(void)
{
	return time(NULL);
}

/* The model does its work in work items, so its timers are never started. */
enum hrtimer_restart { HRTIMER_NORESTART };
struct hrtimer { char unused; };
#define HRTIMER_MODE_REL		0
#define hrtimer_setup(t, fn, c, m)	((void)(t), (void)(fn))
#define hrtimer_is_queued(t)		false
#define hrtimer_start(t, ns, m)		abort()
#define hrtimer_cancel(t)		((void)(t))
#define ns_to_ktime(ns)			(ns)

/* ---- work ---- */

struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);

/**
 * struct work_struct - a function to be called by the thread of a workqueue
 * @func: the function
 * @wq: queue that it was put on last
 * @next: next in that queue
 * @queued: it is in the queue
 */
struct work_struct {
	work_func_t func;
	struct workqueue_struct *wq;
	struct work_struct *next;
	bool queued;
};

#define INIT_WORK(w, f)		(*(w) = (struct work_struct){ .func = (f) })

struct workqueue_struct *card_workqueue_new(void);
void destroy_workqueue(struct workqueue_struct *wq);
bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
bool cancel_work_sync(struct work_struct *work);

#endif
