/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kmod/dma calls, as a test controls it: memory whose users are counted, cores,
 * eventfds, locks that know whether they are held, and a device that refuses what the
 * software device never refuses. Its queues are those of two cores with two engines
 * each; engine 4 does the driver's copies for both. Nothing here waits.
 */
#ifndef DMA_FAKE_H
#define DMA_FAKE_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/eventfd.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "../../uapi/neuron_isa.h"

#define neuron_core_acquire	fake_core_acquire
#define neuron_core_check	fake_core_check
#define neuron_core_hold	fake_core_hold
#define neuron_client_release	fake_client_release
#define neuron_eventfd_get	fake_eventfd_get
#define neuron_queue_work	fake_queue_work
#define neuron_chunk_use	fake_chunk_use
#define neuron_chunk_unuse	fake_chunk_unuse
#define neuron_chunk_put	fake_chunk_put
#define neuron_chunk_admit	fake_chunk_admit
#define neuron_chunk_range	fake_chunk_range
#define neuron_chunk_publish	fake_chunk_publish
#define neuron_chunk_revoke	fake_chunk_revoke
#define neuron_chunk_alloc	fake_chunk_alloc
#define neuron_chunk_user_pages	fake_chunk_user_pages
#define neuron_chunk_rw_host	fake_chunk_rw_host
#define neuron_chunk_rw_user	fake_chunk_rw_user
#define neuron_chunk_fill_host	fake_chunk_fill_host
#define neuron_chunk_find	fake_chunk_find
#define neuron_chunk_find_ring	fake_chunk_find_ring
#define neuron_chunk_make_ring	fake_chunk_make_ring
#define neuron_chunk_missing	fake_chunk_missing
#define neuron_isolation_refused	fake_isolation_refused
#define neuron_isolation_window	fake_isolation_window
#define neuron_pin_chunk	fake_pin_chunk
#define neuron_pin_window	fake_pin_window

#include "../../kmod/compat/compat.h"
#include "../../kmod/base/call.h"
#include "../../kmod/base/client.h"
#include "../../kmod/base/core.h"
#include "../../kmod/base/eventfd.h"
#include "../../kmod/base/geometry.h"
#include "../../kmod/base/hw.h"
#include "../../kmod/base/isolation.h"
#include "../../kmod/base/trace.h"
#include "../../kmod/base/workqueue.h"
#include "../../kmod/dma/async.h"
#include "../../kmod/dma/copy.h"
#include "../../kmod/dma/notify.h"
#include "../../kmod/dma/nq_event.h"
#include "../../kmod/dma/queue.h"
#include "../../kmod/dma/ring.h"
#include "../../kmod/mem/failure.h"
#include "../../kmod/mem/handle.h"
#include "../../kmod/mem/host.h"
#include "../../kmod/mem/space.h"
#include "../../kmod/mem/watch.h"

#define MEM_SIZE	(4u << 20)		/* device memory that has contents */
#define MEM_ADDR	0x10000000ULL
#define HOST_ADDR	(1ULL << 44)
#define CORE_ADDR(c)	(0xfffc0000000ULL + 0x4000000ULL * (c))
#define NR_HANDLES	6u			/* 1..6; 5 and 6 are host memory */
#define CHUNK_SIZE	(512u << 10)		/* of the memory of a handle */
#define COPY_ENGINE	4u
#define NR_EVENTFDS	4
#define BAD_EVENTFD	77

/* Unsigned and of one type everywhere; KUnit compares types, too. */
#define EQ(a, b)	KUNIT_EXPECT_EQ(fake.test, (u64)(a), (u64)(b))
#define OK(a)		KUNIT_EXPECT_TRUE(fake.test, a)

/* What the device was asked for, in order. */
struct fake_op {
	char op;	/* write, bind, stop, poll, flush */
	u32 index;	/* engine or core */
	u32 off;	/* register, or queue */
	u32 val;
};

struct fake_copy {
	u64 dst, src;
	u32 len;
};

/* A notification queue as the device may have it: register writes are posted. */
struct fake_nq {
	u64 base;
	u32 size;
	u64 old_base;	/* the ring of before, until a flush */
	u32 old_size;
};

struct fake_memory {
	struct neuron_chunk chunk;
	u8 *data;
	bool used;
};

/* FAKE_LATE: the device does its work while the caller sleeps. */
enum fake_mode { FAKE_RUNS, FAKE_SILENT, FAKE_ABORTS, FAKE_GONE, FAKE_LATE };

static struct {
	struct kunit *test;
	struct neuron_geometry geo;
	struct neuron_device nd;
	struct neuron_client kclient, client, other;
	struct neuron_core core[2];
	struct neuron_engine engine[5];
	struct neuron_queue *queue[5][NEURON_HW_QUEUES_PER_ENGINE];
	struct fake_memory handle[NR_HANDLES + 1], own[16];
	u8 *mem;
	void *locks[8];
	/* Counts of what is held: all 0 in the end. */
	int allocs, watches, eventfds, pinned;
	/* The one that fails, counting from 1; 0: none does. */
	u32 fail_alloc, fail_write, fail_read, fail_user, fail_start, fail_stop, fail_chunk;
	u32 fail_publish, fail_pin, fail_lent;
	bool kill_lock, kill_wait, tracing;
	int acquire_err;
	enum fake_mode mode;
	struct fake_op op[96];
	u32 nr_ops;
	struct neuron_queue_setup setup;	/* of the queue started last */
	struct fake_copy copy[4096];
	u32 nr_copies;
	u32 bell[2];		/* of a copy ring: RX, TX */
	u32 head, ring_id;
	struct { u32 eng, off, val; } reg[32];
	u32 nr_regs;
	int efd_refs[NR_EVENTFDS], signals[NR_EVENTFDS];
	struct work_struct *work[4];
	u32 nr_work;
	u64 watch_len;
	long timeout;
	int woken, inits;
	u32 trace[6];
	char traced;
	int nr_traces;
	struct neuron_chunk_request request;
	unsigned int pin_flags;
	bool dirty;
	u64 now;		/* nanoseconds */
	u32 nr_reads, nr_sleeps, late, nr_delayed;
	unsigned long sleep;	/* the longest, microseconds */
	u32 nq_head;
	struct fake_nq nq[2][NEURON_HW_NR_NQ];
	u32 nr_refused;		/* by a ring */
	u32 freed;		/* this handle was */
	void (*meanwhile)(struct kunit *test);	/* while the device copies */
	u32 aborts;		/* so many batches stop the engine of the copies */
	bool entered, alone;	/* somebody copies, nobody else does */
	bool kill_enter;
} fake;

static bool fail_now(u32 *n)
{
	return *n && !--*n;
}

/* ---- locks, memory of the kernel --------------------------------------------------- */

static bool fake_held(const void *lock)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(fake.locks); i++)
		if (fake.locks[i] == lock)
			return true;
	return false;
}

static void fake_take(void *lock)
{
	u32 i;

	OK(!fake_held(lock));
	for (i = 0; i < ARRAY_SIZE(fake.locks); i++) {
		if (!fake.locks[i]) {
			fake.locks[i] = lock;
			return;
		}
	}
}

static void fake_drop(void *lock)
{
	u32 i;

	OK(fake_held(lock));
	for (i = 0; i < ARRAY_SIZE(fake.locks); i++)
		if (fake.locks[i] == lock)
			fake.locks[i] = NULL;
}

static bool fake_try(void *lock)
{
	if (fake_held(lock))
		return false;
	fake_take(lock);
	return true;
}

static int fake_take_killable(void *lock)
{
	if (fake.kill_lock)
		return -EINTR;
	fake_take(lock);
	return 0;
}

static int fake_enter(struct rw_semaphore *users, bool alone)
{
	OK(users == &fake.core[0].copy->users && !fake.entered);
	if (fake.kill_enter)
		return -EINTR;
	fake.entered = true;
	fake.alone = alone;
	return 0;
}

static void fake_leave(struct rw_semaphore *users, bool alone)
{
	OK(users == &fake.core[0].copy->users && fake.entered && fake.alone == alone);
	fake.entered = false;
}

static void *fake_alloc(size_t size)
{
	if (fail_now(&fake.fail_alloc))
		return NULL;
	fake.allocs++;
	return kvzalloc(size, GFP_KERNEL);
}

static void fake_free(const void *p)
{
	if (p)
		fake.allocs--;
	kvfree(p);
}

/* ---- memory of the device ---------------------------------------------------------- */

static void fake_memory_init(struct fake_memory *m, struct neuron_client *client, u64 size)
{
	memset(m, 0, sizeof(*m));
	m->used = true;
	kref_init(&m->chunk.ref);
	m->chunk.client = client;
	m->chunk.size = size;
}

static struct fake_memory *fake_memory_of(struct neuron_chunk *chunk)
{
	return container_of(chunk, struct fake_memory, chunk);
}

/* Where the bytes of a device address are; NULL: nowhere. */
static u8 *fake_bytes(u64 addr, u64 len)
{
	u32 i;

	if (addr >= MEM_ADDR && addr + len <= MEM_ADDR + MEM_SIZE)
		return fake.mem + (addr - MEM_ADDR);
	for (i = 0; i < ARRAY_SIZE(fake.own); i++) {
		struct fake_memory *m = &fake.own[i];

		if (m->used && m->data && addr >= m->chunk.addr &&
		    addr + len <= m->chunk.addr + m->chunk.size)
			return m->data + (addr - m->chunk.addr);
	}
	return NULL;
}

/* May the device still write notifications to a piece of memory? */
static bool fake_is_nq(const struct neuron_chunk *chunk)
{
	const struct fake_nq *nq = fake.nq[0];
	u32 i;

	for (i = 0; i < 2 * NEURON_HW_NR_NQ; i++, nq++)
		if ((nq->size && nq->base == chunk->addr) ||
		    (nq->old_size && nq->old_base == chunk->addr))
			return true;
	return false;
}

static void fake_memory_release(struct kref *ref)
{
	struct fake_memory *m = container_of(ref, struct fake_memory, chunk.ref);
	u32 i;

	OK(!fake_is_nq(&m->chunk));
	for (i = 0; i < ARRAY_SIZE(m->chunk.users); i++)
		EQ(m->chunk.users[i], 0);
	if (m->chunk.kind != NEURON_CHUNK_PLAIN) {
		fake.pinned -= m->chunk.size >> PAGE_SHIFT;
		fake_free(m->chunk.pages);
	} else if (m >= fake.own && m < fake.own + ARRAY_SIZE(fake.own)) {
		free_pages((unsigned long)m->data, get_order(m->chunk.size));
		kfree(m->chunk.pages);
	}
	m->used = false;
}

void fake_chunk_put(struct neuron_chunk *chunk)
{
	if (chunk)
		kref_put(&chunk->ref, fake_memory_release);
}

struct neuron_chunk *fake_chunk_use(struct neuron_client *client, u64 handle,
				    enum neuron_user as)
{
	struct neuron_chunk *chunk = NULL;
	u32 i;

	if (handle && handle <= NR_HANDLES && fake.handle[handle].chunk.client == client)
		chunk = &fake.handle[handle].chunk;
	for (i = 0; i < ARRAY_SIZE(fake.own); i++)
		if (handle > NR_HANDLES && fake.own[i].used &&
		    fake.own[i].chunk.own.number == handle && fake.own[i].chunk.client == client)
			chunk = &fake.own[i].chunk;
	if (!chunk)
		return NULL;
	kref_get(&chunk->ref);
	if (as)
		chunk->users[as - 1]++;
	return chunk;
}

bool fake_chunk_admit(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1]++;
	return true;
}

void fake_chunk_unuse(struct neuron_chunk *chunk, enum neuron_user as)
{
	if (!chunk)
		return;
	OK(chunk->users[as - 1] > 0);
	chunk->users[as - 1]--;
	fake_chunk_put(chunk);
}

int fake_chunk_range(const struct neuron_chunk *chunk, u64 off, u64 len)
{
	return !len || off > chunk->size || len > chunk->size - off ? -EINVAL : 0;
}

struct neuron_chunk *fake_chunk_find(struct neuron_client *client, u64 addr, u64 len,
				     enum neuron_user as)
{
	u32 i;

	for (i = 1; i <= NR_HANDLES; i++) {
		struct neuron_chunk *chunk = &fake.handle[i].chunk;

		if (chunk->client == client && i != fake.freed && addr >= chunk->addr &&
		    !fake_chunk_range(chunk, addr - chunk->addr, len))
			return fake_chunk_use(client, i, as);
	}
	for (i = 0; i < ARRAY_SIZE(fake.own); i++) {
		struct neuron_chunk *chunk = &fake.own[i].chunk;

		if (fake.own[i].used && chunk->own.number && addr >= chunk->addr &&
		    !fake_chunk_range(chunk, addr - chunk->addr, len))
			return fake_chunk_use(client, chunk->own.number, as);
	}
	return NULL;
}

int fake_chunk_missing(struct neuron_client *client, u64 handle)
{
	return -ENOENT;
}

int fake_chunk_make_ring(struct neuron_chunk *chunk, struct neuron_chunk_ring *ring)
{
	if (chunk->kind == NEURON_CHUNK_RING)
		return -EEXIST;
	if (chunk->users[NEURON_USER_MAPPING - 1])
		return -EBUSY;
	if (!ring)
		return 0;
	chunk->kind = NEURON_CHUNK_RING;
	ring->chunk = chunk;
	list_add(&ring->node, &chunk->client->rings);
	return 0;
}

struct neuron_chunk_ring *fake_chunk_find_ring(struct neuron_chunk *chunk)
{
	struct neuron_chunk_ring *ring;

	list_for_each_entry(ring, &chunk->client->rings, node)
		if (ring->chunk == chunk)
			return ring;
	return NULL;
}

/* The memory of a handle is freed, and is new. */
static void fake_ring_free(u32 handle)
{
	struct neuron_chunk_ring *ring = fake_chunk_find_ring(&fake.handle[handle].chunk);

	if (!ring)
		return;
	list_del(&ring->node);
	ring->chunk->kind = NEURON_CHUNK_PLAIN;
	ring->release(ring);
}

void fake_isolation_refused(struct neuron_device *nd, const char *what)
{
	fake.nr_refused++;
}

bool fake_isolation_window(struct neuron_device *nd, u64 off, u64 len)
{
	return neuron_geometry_window(nd->geo, off, len);
}

void fake_pin_chunk(struct neuron_pin *pin, struct neuron_chunk *chunk, u64 addr, u64 len,
		    enum neuron_user as)
{
	pin->chunk = chunk;
	pin->off = addr - chunk->addr;
	pin->counted = as;
}

void fake_pin_window(struct neuron_pin *pin, struct neuron_device *nd, u32 core, u64 addr)
{
	pin->chunk = NULL;
	pin->index = core;
	pin->off = addr - CORE_ADDR(core);
}

int fake_chunk_alloc(struct neuron_client *client, const struct neuron_chunk_request *req,
		     struct neuron_chunk **out, struct neuron_failure *why)
{
	struct fake_memory *m = fake.own;

	*out = NULL;
	fake.request = *req;
	if (fail_now(&fake.fail_chunk))
		return -ENOMEM;
	while (m->used)
		m++;
	fake_memory_init(m, client, req->size);
	m->data = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, get_order(req->size));
	m->chunk.host = req->host;
	m->chunk.addr = HOST_ADDR + 0x100000 * (1 + (m - fake.own));
	m->chunk.pages = kmalloc(sizeof(struct page *), GFP_KERNEL);
	m->chunk.pages[0] = virt_to_page(m->data);
	*out = &m->chunk;
	return 0;
}

int fake_chunk_publish(struct neuron_chunk *chunk, u32 *out)
{
	if (fail_now(&fake.fail_publish))
		return -ENOMEM;
	chunk->own.number = 100 + (fake_memory_of(chunk) - fake.own);
	*out = chunk->own.number;
	return 0;
}

void fake_chunk_revoke(struct neuron_chunk *chunk)
{
	if (!chunk->own.number)
		return;
	chunk->own.number = 0;
	fake_chunk_put(chunk);
}

int fake_chunk_user_pages(struct neuron_device *nd, u32 core, struct page **pages,
			  unsigned long n, bool dirty, struct neuron_chunk **out)
{
	struct fake_memory *m = fake.own;

	if (fail_now(&fake.fail_lent))
		return -ENOMEM;
	while (m->used)
		m++;
	fake_memory_init(m, &fake.kclient, n << PAGE_SHIFT);
	m->data = (u8 *)pages[0];	/* see fake_pin() */
	m->chunk.addr = HOST_ADDR + 0x40000000;
	m->chunk.kind = NEURON_CHUNK_PINNED;
	m->chunk.pages = pages;
	fake.dirty = dirty;
	*out = &m->chunk;
	return 0;
}

/* What is "pinned" is found again by its address. */
static int fake_pin(unsigned long start, int n, unsigned int flags, struct page **pages)
{
	if (fail_now(&fake.fail_pin))
		n = n > 1 ? n - 1 : -EFAULT;
	fake.pin_flags = flags;
	if (n > 0) {
		pages[0] = (struct page *)start;
		fake.pinned += n;
	}
	return n;
}

static void fake_unpin(struct page **pages, unsigned long n)
{
	fake.pinned -= n;
}

static bool fake_is_ring(const struct neuron_chunk *chunk, u32 core)
{
	const struct neuron_copy *copy = fake.core[core].copy;

	return copy && (copy->ring[0] == chunk || copy->ring[1] == chunk);
}

int fake_chunk_rw_host(struct neuron_chunk *chunk, u64 off, void *buf, u64 len, bool write)
{
	u8 *data = fake_memory_of(chunk)->data;
	u32 i;

	for (i = 0; i < 2; i++)
		if (fake_is_ring(chunk, i))
			OK(fake_held(&fake.core[i].copy->lock));
	if (!data || fake_chunk_range(chunk, off, len))
		return -EINVAL;
	memcpy(write ? data + off : buf, write ? buf : data + off, len);
	return 0;
}

int fake_chunk_rw_user(struct neuron_chunk *chunk, u64 off, void __user *buf, u64 len,
		       bool write)
{
	if (fail_now(&fake.fail_user))
		return -EFAULT;
	if (fake_memory_of(chunk)->data)
		return fake_chunk_rw_host(chunk, off, (void __force *)buf, len, write);
	/* The memory of a handle. */
	if (fake_chunk_range(chunk, off, len))
		return -EINVAL;
	memcpy(write ? fake_bytes(chunk->addr + off, len) : (u8 __force *)buf,
	       write ? (u8 __force *)buf : fake_bytes(chunk->addr + off, len), len);
	return 0;
}

int fake_chunk_fill_host(struct neuron_chunk *chunk, u64 off, u8 value, u64 len)
{
	if (fake_chunk_range(chunk, off, len))
		return -EINVAL;
	memset(fake_memory_of(chunk)->data + off, value, len);
	return 0;
}

static struct neuron_watch *fake_watch(const struct neuron_chunk *chunk, u64 off, u64 len,
				       enum neuron_user as)
{
	EQ(off, 0);
	EQ(as, NEURON_USER_RING);
	fake.watch_len = len;
	fake.watches++;
	return (struct neuron_watch *)&fake;
}

static void fake_unwatch(struct neuron_watch *w)
{
	if (w)
		fake.watches--;
}

/* ---- memory of programs, eventfds, work -------------------------------------------- */

static unsigned long fake_to_user(void __user *to, const void *from, unsigned long n)
{
	if (fail_now(&fake.fail_user))
		return n;
	memcpy((void __force *)to, from, n);
	return 0;
}

static unsigned long fake_from_user(void *to, const void __user *from, unsigned long n)
{
	return fail_now(&fake.fail_user) ? n : (memcpy(to, (void __force *)from, n), 0);
}

int fake_eventfd_get(int fd, struct eventfd_ctx **out)
{
	*out = NULL;
	if (fd == -1)
		return 0;
	if (fd >= NR_EVENTFDS)
		return -EBADF;
	fake.efd_refs[fd]++;
	fake.eventfds++;
	*out = (struct eventfd_ctx *)&fake.efd_refs[fd];
	return 0;
}

static void fake_eventfd_put(struct eventfd_ctx *ctx)
{
	(*(int *)ctx)--;
	fake.eventfds--;
}

static void fake_signal(struct eventfd_ctx *ctx)
{
	int fd = (int *)ctx - fake.efd_refs;
	u32 i, held = 0;

	/* All that can be signalled is under a spinlock of its own. */
	for (i = 0; i < ARRAY_SIZE(fake.locks); i++)
		held += !!fake.locks[i];
	OK(held > 0);
	OK(fake.efd_refs[fd] > 0);
	fake.signals[fd]++;
}

void fake_queue_work(struct work_struct *work)
{
	OK(fake_held(&fake.client.async_lock));
	fake.work[fake.nr_work++] = work;
}

static void fake_run_work(void)
{
	while (fake.nr_work) {
		struct work_struct *work = fake.work[--fake.nr_work];

		work->func(work);
	}
}

static void fake_wait(struct completion *done)
{
	fake_run_work();
	OK(completion_done(done));
}

static int fake_wait_killable(struct completion *done)
{
	if (fake.kill_wait)
		return -ERESTARTSYS;
	fake_wait(done);
	return 0;
}

static long fake_wait_result(bool done, long timeout)
{
	fake.timeout = timeout;
	return done ? 1 : fake.kill_wait ? -ERESTARTSYS : 0;
}

static void fake_trace(char what, u32 a, u32 b, u32 c, u32 d, u32 e)
{
	fake.traced = what;
	fake.nr_traces++;
	fake.trace[0] = a;
	fake.trace[1] = b;
	fake.trace[2] = c;
	fake.trace[3] = d;
	fake.trace[4] = e;
}

/* ---- cores and the device ---------------------------------------------------------- */

static void fake_op(char op, u32 index, u32 off, u32 val)
{
	if (fake.nr_ops < ARRAY_SIZE(fake.op))
		fake.op[fake.nr_ops++] = (struct fake_op){ op, index, off, val };
}

#define EXPECT_OP(i, ...) do {								\
	const struct fake_op want_ = { __VA_ARGS__ }, *op_ = &fake.op[i];		\
											\
	OK((u32)(i) < fake.nr_ops);							\
	EQ(op_->op, want_.op);								\
	EQ(op_->index, want_.index);							\
	EQ(op_->off, want_.off);							\
	EQ(op_->val, want_.val);							\
} while (0)

int fake_core_check(struct neuron_core *core, const struct neuron_client *client)
{
	OK(fake_held(&core->lock));
	return core->owner && core->owner != client ? -EBUSY : 0;
}

int fake_core_acquire(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	if (core >= nd->geo->nr_cores)
		return -EINVAL;
	if (nd->core[core].owner && nd->core[core].owner != client)
		return -EBUSY;
	if (fake.acquire_err)
		return fake.acquire_err;
	nd->core[core].owner = client;
	return 0;
}

void fake_client_release(struct kref *ref)
{
	OK(false);
}

void fake_core_hold(struct neuron_core *core, struct neuron_held *held)
{
	list_add_tail(&held->node, &core->held);
	core->held_bytes += held->bytes;
}

/* The reset of a core has ended. */
static void fake_reset_ends(u32 core)
{
	struct neuron_held *held, *next;

	memset(fake.nq[core], 0, sizeof(fake.nq[core]));
	list_for_each_entry_safe(held, next, &fake.core[core].held, node)
		held->release(held);
	INIT_LIST_HEAD(&fake.core[core].held);
	fake.core[core].held_bytes = 0;
}

static void fake_set_reg(u32 eng, u32 off, u32 val)
{
	u32 i;

	for (i = 0; i < fake.nr_regs; i++)
		if (fake.reg[i].eng == eng && fake.reg[i].off == off)
			break;
	fake.reg[i].eng = eng;
	fake.reg[i].off = off;
	fake.reg[i].val = val;
	if (i == fake.nr_regs)
		fake.nr_regs++;
}

static int fake_reg_read(struct neuron_device *nd, enum neuron_block block, u32 index, u32 off,
			 u32 *val)
{
	u32 i;

	fake.nr_reads++;
	if (block == NEURON_BLOCK_CORE_NQ) {
		*val = fake.nq_head;
		return fail_now(&fake.fail_read) ? -EIO : 0;
	}
	EQ(block, NEURON_BLOCK_DMA);
	if (fail_now(&fake.fail_read))
		return -EIO;
	*val = 0;
	for (i = 0; i < fake.nr_regs; i++)
		if (fake.reg[i].eng == index && fake.reg[i].off == off)
			*val = fake.reg[i].val;
	return 0;
}

static void fake_check_lock(u32 eng, u32 q)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		if (eng == COPY_ENGINE && q == i)
			OK(fake_held(&fake.core[i].copy->lock));
	}
	if (eng < COPY_ENGINE)
		OK(fake_held(&fake.engine[eng].lock));
}

static void fake_nq_write(u32 core, u32 off, u32 val)
{
	struct fake_nq *nq;
	u32 i, reg;

	OK(neuron_nq_decode(off, &i, &reg));
	nq = &fake.nq[core][i];
	if (reg == NEURON_NQ_BASE_LO(0)) {
		nq->base = val;
	} else if (reg == NEURON_NQ_BASE_HI(0)) {
		nq->base |= (u64)val << 32;
	} else {
		if (nq->size) {
			nq->old_base = nq->base;
			nq->old_size = nq->size;
		}
		nq->size = val;
	}
}

static int fake_reg_write(struct neuron_device *nd, enum neuron_block block, u32 index, u32 off,
			  u32 val)
{
	if (block == NEURON_BLOCK_DMA && off < NEURON_DMA_COMMON)
		fake_check_lock(index, (off - (off < NEURON_DMA_RX(0) ? NEURON_DMA_TX(0) :
					       NEURON_DMA_RX(0))) / 0x1000);
	if (block == NEURON_BLOCK_CORE_NQ)
		OK(fake_held(&nd->core[index].lock));
	if (block == NEURON_BLOCK_DMA && off == NEURON_DMA_COMMON)
		OK(fake_held(&fake.engine[index].lock));
	fake_op(block == NEURON_BLOCK_CORE_NQ ? 'n' : 'w', index, off, val);
	if (fail_now(&fake.fail_write))
		return -EIO;
	if (block == NEURON_BLOCK_CORE_NQ)
		fake_nq_write(index, off, val);
	else if (off % 0x1000 == NEURON_DMA_Q_TAIL_INC && index == COPY_ENGINE)
		fake.bell[off < NEURON_DMA_RX(0)] = val;
	return 0;
}

static int fake_queue_start(struct neuron_device *nd, u32 eng, u32 q,
			    const struct neuron_queue_setup *setup)
{
	fake_check_lock(eng, q);
	OK(setup->space == (eng == COPY_ENGINE ? &fake.kclient.space : &fake.client.space));
	fake_op('b', eng, q, 0);
	fake.setup = *setup;
	if (eng == COPY_ENGINE) {
		fake.head = 0;
		fake.ring_id = 1;
		fake_set_reg(eng, NEURON_DMA_TX(q) + NEURON_DMA_Q_STATUS, NEURON_QUEUE_ENABLED);
	}
	return fail_now(&fake.fail_start) ? -ENOMEM : 0;
}

static int fake_queue_stop(struct neuron_device *nd, u32 eng, u32 q)
{
	struct neuron_chunk_ring *base;

	fake_check_lock(eng, q);
	/* What its rings hold cannot change meanwhile. */
	list_for_each_entry(base, &fake.client.rings, node) {
		struct neuron_ring *ring = container_of(base, struct neuron_ring, base);

		OK(!ring->bound || ring->eng != eng || ring->q != q || ring->held);
	}
	fake_op('s', eng, q, 0);
	return fail_now(&fake.fail_stop) ? -EIO : 0;
}

static void fake_queue_abort(struct neuron_device *nd, u32 eng, u32 q)
{
	OK(eng == COPY_ENGINE && fake.entered == nd->desc.polled);
	fake_check_lock(eng, q);
	fake_op('a', eng, q, 0);
}

static void fake_flush(struct neuron_device *nd)
{
	struct fake_nq *nq = fake.nq[0];
	u32 i;

	fake_op('f', 0, 0, 0);
	for (i = 0; i < 2 * NEURON_HW_NR_NQ; i++)
		nq[i].old_size = 0;
}

/* One descriptor pair of a copy ring. */
static void fake_execute(const struct neuron_copy *copy, u32 i)
{
	const struct neuron_desc *tx = (void *)fake_memory_of(copy->ring[0])->data;
	const struct neuron_desc *rx = (void *)fake_memory_of(copy->ring[1])->data;
	bool polled = fake.nd.desc.polled, last = i == fake.bell[0] - 1, barrier = last;
	u32 ctrl, len, flags;
	u8 *to, *from;

	tx += fake.head;
	rx += fake.head;
	ctrl = le32_to_cpu(rx->ctrl);
	len = ctrl & NEURON_DESC_LEN_MASK ?: NEURON_DESC_MAX_LEN;
	flags = last && !polled ? NEURON_DESC_INT | NEURON_DESC_BARRIER : 0;
	/* With the marker, or with the data before it. */
	if (polled)
		barrier = i == fake.bell[0] - 2;
	EQ(ctrl & ~NEURON_DESC_LEN_MASK, flags | fake.ring_id << NEURON_DESC_RING_ID_SHIFT);
	EQ(le32_to_cpu(tx->ctrl), ctrl | NEURON_DESC_FIRST | NEURON_DESC_LAST);
	EQ(le32_to_cpu(tx->meta), NEURON_DESC_META_COPY |
	   (barrier ? NEURON_DESC_META_WRITE_BARRIER : 0));
	to = fake_bytes(le64_to_cpu(rx->addr), len);
	from = fake_bytes(le64_to_cpu(tx->addr), len);
	if (to && from)
		memmove(to, from, len);
	if (!last && fake.nr_copies < ARRAY_SIZE(fake.copy))
		fake.copy[fake.nr_copies++] = (struct fake_copy){
			le64_to_cpu(rx->addr), le64_to_cpu(tx->addr), len,
		};
}

/* What the doorbells of a copy ring asked for. */
static void fake_run_ring(u32 q)
{
	u32 i;

	for (i = 0; i < fake.bell[0]; i++) {
		fake_execute(fake.core[q].copy, i);
		if (++fake.head == NEURON_COPY_RING) {
			fake.head = 0;
			fake.ring_id = (fake.ring_id + 1) & 3;
		}
	}
}

static int fake_queue_ring(struct neuron_device *nd, u32 eng, u32 q, u32 count)
{
	return fake_reg_write(nd, NEURON_BLOCK_DMA, eng, NEURON_DMA_RX(q) + NEURON_DMA_Q_TAIL_INC,
			      count) ?:
	       fake_reg_write(nd, NEURON_BLOCK_DMA, eng, NEURON_DMA_TX(q) + NEURON_DMA_Q_TAIL_INC,
			      count);
}

static bool fake_queue_rw(struct neuron_device *nd, u32 eng, u32 q, u64 addr, void *buf, u32 len,
			  bool write)
{
	return false;
}

static bool fake_queue_poll(struct neuron_device *nd, u32 eng, u32 q)
{
	fake_op('p', eng, q, fake.bell[0]);
	EQ(eng, COPY_ENGINE);
	EQ(fake.bell[0], fake.bell[1]);
	if (fake.meanwhile)
		fake.meanwhile(fake.test);
	if (fake.mode == FAKE_GONE && !fake.late)
		nd->gone = true;
	if (fake.mode == FAKE_ABORTS || fake.aborts) {
		fake_set_reg(eng, NEURON_DMA_TX(q) + NEURON_DMA_Q_STATUS, NEURON_QUEUE_ABORTED);
		fake.aborts -= !!fake.aborts;
	} else if (fake.mode == FAKE_RUNS) {
		fake_run_ring(q);
	}
	return false;
}

/* Each look at the clock takes a microsecond. */
static u64 fake_clock(void)
{
	return fake.now += NSEC_PER_USEC;
}

/* A device with one copy ring under way, of core 0. */
static void fake_sleep(unsigned long min, unsigned long max)
{
	OK(min >= 10 && max >= min && max <= 20000);
	fake.sleep = max(fake.sleep, min);
	fake.now += min * NSEC_PER_USEC;
	if (++fake.nr_sleeps != fake.late)
		return;
	if (fake.mode == FAKE_LATE)
		fake_run_ring(0);
	else if (fake.mode == FAKE_GONE)
		fake.nd.gone = true;
	else
		fake.kill_wait = fake.mode == FAKE_SILENT;
}

static const struct neuron_hw_ops fake_ops = {
	.reg_read = fake_reg_read,
	.reg_write = fake_reg_write,
	.queue_start = fake_queue_start,
	.queue_stop = fake_queue_stop,
	.queue_abort = fake_queue_abort,
	.queue_ring = fake_queue_ring,
	.queue_poll = fake_queue_poll,
	.queue_rw = fake_queue_rw,
	.flush = fake_flush,
};

/* ---- the code under test ----------------------------------------------------------- */

#undef mutex_lock
#undef mutex_unlock
#undef mutex_lock_killable
#undef mutex_trylock
#undef init_rwsem
#undef fatal_signal_pending
#undef ktime_get
#undef mutex_init
#undef mutex_lock_nested
#undef spin_lock
#undef spin_unlock
#undef init_waitqueue_head
#undef lockdep_assert_held
#undef wake_up
#undef kzalloc
#undef kvmalloc
#undef kvmalloc_array
#undef kvcalloc
#undef kfree
#undef kvfree
#undef copy_to_user
#undef copy_from_user
#undef get_user
#undef wait_event_killable_timeout
#undef NEURON_EXPORT_SYMBOL
#undef neuron_eventfd_signal

#define mutex_lock(lock)			fake_take(lock)
#define mutex_lock_nested(lock, class)		((void)(class), fake_take(lock))
#define mutex_unlock(lock)			fake_drop(lock)
#define mutex_lock_killable(lock)		fake_take_killable(lock)
#define mutex_trylock(lock)			fake_try(lock)
#define init_rwsem(users)			((void)(users))
#define down_read_killable(users)		fake_enter(users, false)
#define down_write_killable(users)		fake_enter(users, true)
#define up_read(users)				fake_leave(users, false)
#define up_write(users)				fake_leave(users, true)
#define fatal_signal_pending(task)		((void)(task), fake.kill_wait)
#define ktime_get()				ns_to_ktime(fake_clock())
#define ktime_get_ns()				fake_clock()
#define usleep_range(min, max)			fake_sleep(min, max)
#define neuron_queue_work_later(work, delay)	((void)(work), (void)(delay), fake.nr_delayed++)
#define neuron_queue_work_now(work)		((void)(work), fake.nr_delayed++)
#define cancel_delayed_work_sync(work)		((void)(work))
#define neuron_device_enter(nd, idx)		(*(idx) = 0, !neuron_device_gone(nd))
#define neuron_device_exit(nd, idx)		((void)(nd), (void)(idx))
#define spin_lock(lock)				fake_take(lock)
#define spin_unlock(lock)			fake_drop(lock)
#define mutex_init(lock)			((void)(lock), fake.inits++)
#define init_waitqueue_head(wait)		((void)(wait), fake.inits++)
#define lockdep_assert_held(lock)		OK(fake_held(lock))
#define wake_up(wait)				((void)(wait), fake.woken++)
#define kzalloc(size, flags)			((void)(flags), fake_alloc(size))
#define kvmalloc(size, flags)			((void)(flags), fake_alloc(size))
#define kvmalloc_array(n, size, flags)		((void)(flags), fake_alloc((n) * (size)))
#define kvcalloc(n, size, flags)		((void)(flags), fake_alloc((n) * (size)))
#define kfree(p)				fake_free(p)
#define kvfree(p)				fake_free(p)
#define copy_to_user(to, from, n)		fake_to_user(to, from, n)
#define copy_from_user(to, from, n)		fake_from_user(to, from, n)
#define get_user(x, p)				(fake_from_user(&(x), p, sizeof(x)) ? -EFAULT : 0)
#define pin_user_pages_fast(a, n, flags, pages)	fake_pin(a, n, flags, pages)
#define unpin_user_pages(pages, n)		fake_unpin(pages, n)
#define eventfd_ctx_put(ctx)			fake_eventfd_put(ctx)
#define neuron_eventfd_signal(ctx)		fake_signal(ctx)
#define wait_for_completion(done)		fake_wait(done)
#define wait_for_completion_killable(done)	fake_wait_killable(done)
#define wait_event_killable_timeout(wait, condition, timeout)	\
	((void)(wait), fake_wait_result(condition, timeout))
#define neuron_watch_chunk(chunk, off, len, as)	fake_watch(chunk, off, len, as)
#define neuron_unwatch(w)			fake_unwatch(w)
#define trace_neuron_ring_done_enabled()	fake.tracing
#define trace_neuron_fault_enabled()		false
/* Small copies use the ring, too. */
#define trace_neuron_ring_start_enabled()	true
#define trace_neuron_ring_done(nd, core, eng, q, status)	\
	((void)(nd), fake_trace('d', core, eng, q, status, 0))
#define trace_neuron_ring_start(nd, core, eng, q, tx, rx)	\
	((void)(nd), fake_trace('s', core, eng, q, tx, rx))
#define trace_neuron_ring_ack(nd, core, eng, q, tx, rx)		\
	((void)(nd), fake_trace('a', core, eng, q, tx, rx))
#define trace_neuron_fault(nd, core, kind, eng, q)		\
	((void)(nd), fake_trace('f', core, kind, eng, q, 0))
#define trace_neuron_notify(nd, core, type, engine)		\
	((void)(nd), fake_trace('n', core, type, engine, 0, 0))
#define FAKE_EXPORT(sym)			static_assert(sizeof(typeof(sym) *) > 0)
#define NEURON_EXPORT_SYMBOL			FAKE_EXPORT

#endif
