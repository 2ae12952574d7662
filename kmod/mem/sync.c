// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fences of exported memory: the driver's copies wait for what other devices do with it, and
 * other devices, poll() and DMA_BUF_IOCTL_SYNC can wait for the driver's copies.
 *
 * All exports of a chunk have one reservation object, which is made with the first of them
 * and stays as long as the chunk.  Queues of processes are not seen here: a process writes
 * their doorbells itself and waits for them itself.
 *
 * A copy waits for the fences of others before its own can be seen.  So nothing that a
 * fence of ours waits for depends on another driver or on user space, and copies do not
 * wait for each other: their order is what the process asked for.
 */
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "sync.h"

/**
 * struct neuron_fence - a copy under way
 * @base: first, as dma_fence_free() needs it
 * @lock: of @base
 */
struct neuron_fence {
	struct dma_fence base;
	spinlock_t lock;
};

static const char *neuron_fence_driver(struct dma_fence *fence)
{
	return "neuron";
}

static const char *neuron_fence_timeline(struct dma_fence *fence)
{
	return "copy";
}

/* A sync file may keep a fence, and with it these functions, after all else is gone. */
static void neuron_fence_release(struct dma_fence *fence)
{
	dma_fence_free(fence);
	module_put(THIS_MODULE);
}

static const struct dma_fence_ops neuron_fence_ops = {
	.get_driver_name = neuron_fence_driver,
	.get_timeline_name = neuron_fence_timeline,
	.release = neuron_fence_release,
};

static struct dma_fence *neuron_fence_new(void)
{
	struct neuron_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL_ACCOUNT);

	if (!fence)
		return NULL;
	__module_get(THIS_MODULE);
	spin_lock_init(&fence->lock);
	/* Copies of one ring may belong to several processes: none is later than another. */
	dma_fence_init(&fence->base, &neuron_fence_ops, &fence->lock, dma_fence_context_alloc(1),
		       1);
	return &fence->base;
}

/* Newer kernels have an address space for @ops. */
static bool neuron_fence_waits(struct dma_fence *fence)
{
	return (const void __force *)fence->ops != &neuron_fence_ops &&
	       !dma_fence_is_signaled(fence);
}

/**
 * neuron_sync_resv() - the reservation object for exports of a chunk
 * @chunk: held by the caller
 *
 * Context: may sleep.
 * Return: it stays as long as the chunk; NULL without memory.
 */
struct dma_resv *neuron_sync_resv(struct neuron_chunk *chunk)
{
	struct dma_resv *resv = READ_ONCE(chunk->resv), *old;

	if (resv)
		return resv;
	resv = kmalloc(sizeof(*resv), GFP_KERNEL_ACCOUNT);
	if (!resv)
		return NULL;
	dma_resv_init(resv);
	old = cmpxchg(&chunk->resv, NULL, resv);
	if (!old)
		return resv;
	dma_resv_fini(resv);
	kfree(resv);
	return old;
}

/**
 * neuron_sync_drop() - free the reservation object of a chunk
 * @chunk: without any user; it has one
 *
 * Use neuron_sync_free().
 *
 * Context: process.
 */
void neuron_sync_drop(struct neuron_chunk *chunk)
{
	dma_resv_fini(chunk->resv);
	kfree(chunk->resv);
}

/**
 * neuron_sync_wait() - wait for what other devices do with a chunk
 * @chunk: held by the caller
 * @write: the caller will write, and waits for readers, too
 *
 * Context: may sleep; no lock held.
 * Return: 0; -ERESTARTSYS; -ETIMEDOUT.
 */
int neuron_sync_wait(struct neuron_chunk *chunk, bool write)
{
	struct dma_resv *resv = READ_ONCE(chunk->resv);
	long left = NEURON_SYNC_TIMEOUT;
	struct dma_resv_iter cursor;
	struct dma_fence *fence;

	if (likely(!resv))
		return 0;
	dma_resv_iter_begin(&cursor, resv, dma_resv_usage_rw(write));
	dma_resv_for_each_fence_unlocked(&cursor, fence) {
		if (neuron_fence_waits(fence))
			left = dma_fence_wait_timeout(fence, true, left);
		if (left <= 0)
			break;
	}
	dma_resv_iter_end(&cursor);
	return left > 0 ? 0 : left ?: -ETIMEDOUT;
}

/**
 * neuron_sync_drain() - wait until no other device uses a chunk that was taken from them
 * @chunk: held by the caller; exported once
 * @deadline: in jiffies
 *
 * Context: may sleep; no lock held.
 * Return: false, others may still use it.
 */
bool neuron_sync_drain(struct neuron_chunk *chunk, unsigned long deadline)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;
	bool ended = true;
	long left;

	dma_resv_iter_begin(&cursor, chunk->resv, DMA_RESV_USAGE_BOOKKEEP);
	dma_resv_for_each_fence_unlocked(&cursor, fence) {
		left = deadline - jiffies;
		/* Some drivers have errors of their own for one that does not end. */
		if (neuron_fence_waits(fence) && left > 0)
			dma_fence_wait_timeout(fence, false, left);
		ended = ended && !neuron_fence_waits(fence);
	}
	dma_resv_iter_end(&cursor);
	return ended;
}

/* @b may be NULL.  On success both are locked. */
static int neuron_sync_lock(struct dma_resv *a, struct dma_resv *b, struct ww_acquire_ctx *ctx)
{
	int err = dma_resv_lock_interruptible(a, ctx);

	if (err || !b)
		return err;
	while ((err = dma_resv_lock_interruptible(b, ctx)) == -EDEADLK) {
		dma_resv_unlock(a);
		err = dma_resv_lock_slow_interruptible(b, ctx);
		if (err)
			return err;
		swap(a, b);
	}
	if (err)
		dma_resv_unlock(a);
	return err;
}

/* Under the lock of @resv, which may be NULL: a fence to wait for, with a reference. */
static struct dma_fence *neuron_sync_before(struct dma_resv *resv, bool write)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;

	if (!resv)
		return NULL;
	dma_resv_for_each_fence(&cursor, resv, dma_resv_usage_rw(write), fence)
		if (neuron_fence_waits(fence))
			break;
	fence = dma_fence_get(fence);
	dma_resv_iter_end(&cursor);
	return fence;
}

/*
 * Add a fence, unless there is one of others to wait for first: @before, with a reference.
 * One of the objects may be NULL.
 */
static int neuron_sync_add(struct dma_resv *from, struct dma_resv *to, struct dma_fence *fence,
			   struct dma_fence **before)
{
	struct ww_acquire_ctx ctx;
	int err;

	ww_acquire_init(&ctx, &reservation_ww_class);
	err = neuron_sync_lock(from ?: to, from ? to : NULL, &ctx);
	if (err)
		goto fini;
	*before = neuron_sync_before(from, false) ?: neuron_sync_before(to, true);
	if (*before)
		goto unlock;
	if (from)
		err = dma_resv_reserve_fences(from, 1);
	if (!err && to)
		err = dma_resv_reserve_fences(to, 1);
	if (err)
		goto unlock;
	if (from)
		dma_resv_add_fence(from, fence, DMA_RESV_USAGE_READ);
	if (to)
		dma_resv_add_fence(to, fence, DMA_RESV_USAGE_WRITE);
unlock:
	if (from)
		dma_resv_unlock(from);
	if (to)
		dma_resv_unlock(to);
fini:
	ww_acquire_fini(&ctx);
	return err;
}

/**
 * neuron_sync_begin() - a copy begins: wait for others, and let others wait
 * @src: where it reads; held by the caller, may be NULL
 * @dst: where it writes; held by the caller
 *
 * What the copy needs must be there already: nothing between this call and
 * neuron_sync_end() may allocate memory or wait for a process.
 *
 * Context: may sleep; no lock held.
 * Return: for neuron_sync_end(); NULL: neither was ever exported; -ENOMEM; -EINTR;
 *	   -ERESTARTSYS; -ETIMEDOUT others did not end in time.
 */
struct dma_fence *neuron_sync_begin(struct neuron_chunk *src, struct neuron_chunk *dst)
{
	struct dma_resv *from = src ? READ_ONCE(src->resv) : NULL, *to = READ_ONCE(dst->resv);
	struct dma_fence *fence, *before;
	long left = NEURON_SYNC_TIMEOUT;
	int err;

	if (likely(!from && !to))
		return NULL;
	/* Who writes waits for all that a reader waits for. */
	if (from == to)
		from = NULL;
	fence = neuron_fence_new();
	if (!fence)
		return ERR_PTR(-ENOMEM);
	for (;;) {
		err = neuron_sync_add(from, to, fence, &before);
		if (err)
			break;
		if (!before)
			return fence;
		left = dma_fence_wait_timeout(before, true, left);
		dma_fence_put(before);
		err = left ?: -ETIMEDOUT;
		if (left <= 0)
			break;
	}
	dma_fence_put(fence);
	return ERR_PTR(err);
}

/**
 * neuron_sync_end() - a copy has ended
 * @fence: from neuron_sync_begin(), may be NULL
 * @err: its result
 *
 * Context: any.
 */
void neuron_sync_end(struct dma_fence *fence, int err)
{
	if (!fence)
		return;
	if (err)
		dma_fence_set_error(fence, err);
	dma_fence_signal(fence);
	dma_fence_put(fence);
}
