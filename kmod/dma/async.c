// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous copies.  A process has two tokens for each core: it starts one
 * copy and waits for the one before, so that there is always one under way.
 *
 * A copy that is done holds no memory any more.  Only its result stays until a thread
 * waits for it or the process ends: at most two results for each core.
 */
#include <linux/completion.h>
#include <linux/eventfd.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/device.h"
#include "../base/eventfd.h"
#include "../base/workqueue.h"
#include "../mem/chunk.h"
#include "../mem/handle.h"
#include "../mem/sync.h"
#include "async.h"
#include "copy.h"

#define NEURON_TOKEN_NONE	(~0u)	/* uapi/FACTS.md 3 */
#define NEURON_TOKEN_SYNC	0u

/* A copy checks after this many bytes whether its process has ended. */
#define NEURON_ASYNC_BATCH	(64ull << 20)

/**
 * struct neuron_async - a copy under way, or its result
 * @ref: held by its token, its work and its waiters
 * @work: does it
 * @done: it is done
 * @nd: device; only until it is done
 * @client: process that asked for it, which waits for its end; only until it is done
 * @core: whose ring is used
 * @src: used until it is done
 * @dst: used until it is done
 * @src_handle: what the caller named, to find the copy when it is freed
 * @dst_handle: same
 * @fence: of exported memory, until it is done
 * @from: device address
 * @to: device address
 * @len: bytes
 * @err: result
 * @lock: @finished, @eventfd
 * @finished: @eventfd is not used any more
 * @eventfd: signalled at the end
 */
struct neuron_async {
	struct kref ref;
	struct work_struct work;
	struct completion done;
	struct neuron_device *nd;
	struct neuron_client *client;
	u32 core;
	struct neuron_chunk *src;
	struct neuron_chunk *dst;
	u64 src_handle;
	u64 dst_handle;
	struct dma_fence *fence;
	u64 from;
	u64 to;
	u64 len;
	int err;
	spinlock_t lock;
	bool finished;
	struct eventfd_ctx *eventfd;
};

static void neuron_async_release(struct kref *ref)
{
	kfree(container_of(ref, struct neuron_async, ref));
}

static void neuron_async_put(struct neuron_async *async)
{
	kref_put(&async->ref, neuron_async_release);
}

/* It does not access its memory any more, or never will. */
static void neuron_async_unuse(struct neuron_async *async, int err)
{
	neuron_sync_end(async->fence, err);
	neuron_chunk_unuse(async->src, NEURON_USER_READER);
	neuron_chunk_unuse(async->dst, NEURON_USER_TRANSFER);
}

static void neuron_async_work(struct work_struct *work)
{
	struct neuron_async *async = container_of(work, struct neuron_async, work);
	u64 done, n;
	int err = 0;

	for (done = 0; done < async->len && !err; done += n) {
		n = min_t(u64, async->len - done, NEURON_ASYNC_BATCH);
		/* The teardown of a dead process must not wait for the rest. */
		if (READ_ONCE(async->client->dead))
			err = -EINTR;
		else
			err = neuron_dma_copy(async->nd, async->core, async->to + done,
					      async->from + done, n);
	}
	async->err = err;
	/* Memory that the process has freed must be free when the waiter goes on. */
	neuron_async_unuse(async, err);

	spin_lock(&async->lock);
	async->finished = true;
	if (async->eventfd)
		neuron_eventfd_signal(async->eventfd);
	spin_unlock(&async->lock);
	if (async->eventfd)
		eventfd_ctx_put(async->eventfd);
	complete_all(&async->done);
	neuron_async_put(async);
}

/**
 * neuron_async_exit() - wait for all copies of a process
 * @client: being torn down, starts nothing any more
 *
 * Context: may sleep.
 */
void neuron_async_exit(struct neuron_client *client)
{
	struct neuron_async *async;
	u32 core, i;

	for (core = 0; core < NEURON_HW_MAX_CORES; core++) {
		for (i = 0; i < NEURON_ASYNC_TOKENS; i++) {
			async = client->async[core][i];
			client->async[core][i] = NULL;
			if (!async)
				continue;
			wait_for_completion(&async->done);
			neuron_async_put(async);
		}
	}
}

/* Wait for a copy and give its token back.  Consumes a reference of @async. */
static int neuron_async_wait(struct neuron_client *client, struct neuron_async *async)
{
	int err = async ? 0 : -EINVAL;
	u32 i;

	if (!err && wait_for_completion_killable(&async->done)) {
		/* The copy keeps its token until the process ends. */
		err = -EINTR;
	} else if (!err) {
		err = -EINVAL;
		mutex_lock(&client->async_lock);
		for (i = 0; i < NEURON_ASYNC_TOKENS; i++) {
			struct neuron_async **slot = &client->async[async->core][i];

			/* Another thread may have waited for it, too: only one gets the result. */
			if (*slot == async) {
				err = async->err;
				*slot = NULL;
				neuron_async_put(async);
			}
		}
		mutex_unlock(&client->async_lock);
	}
	if (async)
		neuron_async_put(async);
	return err;
}

/* Under client.async_lock; returns a reference. */
static struct neuron_async *neuron_async_get(struct neuron_client *client, u32 core, u32 token)
{
	struct neuron_async *async = client->async[core][token - 1];

	if (async)
		kref_get(&async->ref);
	return async;
}

/*
 * Start the copy.  It gives up its chunks in any case; the caller keeps its own reference
 * of @async.  @before is set to the copy of token @prev, if any, which the caller waits
 * for.
 */
static int neuron_async_start(struct neuron_client *client, struct neuron_async *async, u32 prev,
			      u32 *token, struct neuron_async **before)
{
	struct neuron_async **slots = client->async[async->core];
	u32 next = prev == 1 ? 2 : 1;
	int err = 0;

	*before = NULL;
	init_completion(&async->done);
	INIT_WORK(&async->work, neuron_async_work);
	mutex_lock(&client->async_lock);
	if (prev != NEURON_TOKEN_NONE && !slots[prev - 1])
		err = -EINVAL;
	else if (slots[next - 1])
		err = -EBUSY;
	if (!err) {
		if (prev != NEURON_TOKEN_NONE)
			*before = neuron_async_get(client, async->core, prev);
		/* For the token and for the work. */
		kref_get(&async->ref);
		kref_get(&async->ref);
		slots[next - 1] = async;
		neuron_queue_work(&async->work);
	}
	mutex_unlock(&client->async_lock);
	if (err)
		neuron_async_unuse(async, err);
	*token = next;
	return err;
}

static u32 neuron_async_core(const struct neuron_chunk *src, const struct neuron_chunk *dst)
{
	return dst->host ? src->core : dst->core;
}

static int neuron_mem_copy_async(struct neuron_client *client, u64 src, u64 dst, u64 size,
				 u64 src_off, u64 dst_off, u32 prev, u32 *token)
{
	struct neuron_async *async, *before;
	struct dma_fence *fence;
	int err = -ENOENT;

	async = kzalloc(sizeof(*async), GFP_KERNEL_ACCOUNT);
	if (!async)
		return -ENOMEM;
	kref_init(&async->ref);
	spin_lock_init(&async->lock);
	async->nd = client->nd;
	async->client = client;
	async->src_handle = src;
	async->dst_handle = dst;
	async->src = neuron_chunk_use(client, src, NEURON_USER_READER);
	async->dst = neuron_chunk_use(client, dst, NEURON_USER_TRANSFER);
	if (async->src && !async->dst)
		err = neuron_chunk_missing(client, dst);
	if (!async->src || !async->dst)
		goto put;
	err = neuron_chunk_range(async->src, src_off, size) ?:
	      neuron_chunk_range(async->dst, dst_off, size);
	if (!err && prev != NEURON_TOKEN_NONE && prev > NEURON_ASYNC_TOKENS)
		err = -EINVAL;
	if (err)
		goto put;
	async->core = neuron_async_core(async->src, async->dst);
	async->from = async->src->addr + src_off;
	async->to = async->dst->addr + dst_off;
	async->len = size;
	if (prev == NEURON_TOKEN_SYNC) {
		*token = NEURON_TOKEN_SYNC;
		err = neuron_dma_copy_chunks(client->nd, async->core, async->dst, dst_off,
					     async->src, src_off, size);
		goto put;
	}
	fence = neuron_dma_begin(client->nd, async->core, async->src, async->dst);
	if (IS_ERR(fence)) {
		err = PTR_ERR(fence);
		goto put;
	}
	async->fence = fence;
	err = neuron_async_start(client, async, prev, token, &before);
	if (!err && before) {
		err = neuron_async_wait(client, before);
		/* The caller does not learn the new token: wait for that copy here, too. */
		if (err) {
			neuron_async_wait(client, async);
			return err;
		}
	}
	neuron_async_put(async);
	return err;

put:
	neuron_async_unuse(async, err);
	neuron_async_put(async);
	return err;
}

/*
 * Find a copy by the handles that it was started with, even if they have been freed
 * since.  Without such a copy, any two handles that determine the core will do.
 */
static int neuron_async_find(struct neuron_client *client, u64 src_handle, u64 dst_handle,
			     u32 token, struct neuron_async **out)
{
	struct neuron_chunk *src, *dst;
	struct neuron_async *async;
	int err = -EINVAL;
	u32 core;

	*out = NULL;
	if (!token || token > NEURON_ASYNC_TOKENS)
		return -EINVAL;
	token = array_index_nospec(token, NEURON_ASYNC_TOKENS + 1);
	src = neuron_chunk_get(client, src_handle);
	dst = neuron_chunk_get(client, dst_handle);
	mutex_lock(&client->async_lock);
	for (core = 0; core < NEURON_HW_MAX_CORES && !*out; core++) {
		async = client->async[core][token - 1];
		if (async && async->src_handle == src_handle && async->dst_handle == dst_handle)
			*out = neuron_async_get(client, core, token);
	}
	if (!*out && src && dst)
		*out = neuron_async_get(client, neuron_async_core(src, dst), token);
	else if (!*out)
		err = -ENOENT;
	mutex_unlock(&client->async_lock);
	neuron_chunk_put(src);
	neuron_chunk_put(dst);
	return *out ? 0 : err;
}

int neuron_do_mem_copy_async(struct neuron_call *call)
{
	struct neuron_ioctl_mem_copy_async *a = call->arg;

	return neuron_mem_copy_async(call->client, a->src_mem_handle, a->dst_mem_handle, a->size,
				     a->src_offset, a->dst_offset, a->pwait_handle,
				     &a->wait_handle);
}

int neuron_do_mem_copy_async64(struct neuron_call *call)
{
	struct neuron_ioctl_mem_copy_async64 *a = call->arg;

	return neuron_mem_copy_async(call->client, a->src_mem_handle, a->dst_mem_handle, a->size,
				     a->src_offset, a->dst_offset, a->pwait_handle,
				     &a->wait_handle);
}

/* The caller did not learn its token: wait for the copy. */
static void neuron_async_forget(struct neuron_client *client, u64 src, u64 dst, u32 token)
{
	struct neuron_async *async;

	if (token != NEURON_TOKEN_SYNC &&
	    !neuron_async_find(client, src, dst, token, &async))
		neuron_async_wait(client, async);
}

void neuron_undo_mem_copy_async(struct neuron_call *call)
{
	struct neuron_ioctl_mem_copy_async *a = call->arg;

	neuron_async_forget(call->client, a->src_mem_handle, a->dst_mem_handle, a->wait_handle);
}

void neuron_undo_mem_copy_async64(struct neuron_call *call)
{
	struct neuron_ioctl_mem_copy_async64 *a = call->arg;

	neuron_async_forget(call->client, a->src_mem_handle, a->dst_mem_handle, a->wait_handle);
}

int neuron_do_mem_copy_async_wait(struct neuron_call *call)
{
	struct neuron_ioctl_mem_copy_async_wait *a = call->arg;
	struct neuron_async *async;
	int err;

	err = neuron_async_find(call->client, a->src_mem_handle, a->dst_mem_handle,
				a->pwait_handle, &async);
	return err ?: neuron_async_wait(call->client, async);
}

int neuron_do_native_copy_eventfd(struct neuron_call *call)
{
	struct neuron_native_copy_eventfd *a = call->arg;
	struct eventfd_ctx *eventfd;
	struct neuron_async *async;
	int err;

	if (a->flags)
		return -EINVAL;
	err = neuron_eventfd_get(a->eventfd, &eventfd);
	if (err)
		return err;
	err = neuron_async_find(call->client, a->src_mem_handle, a->dst_mem_handle, a->token,
				&async);
	if (!err) {
		spin_lock(&async->lock);
		if (!async->finished)
			swap(async->eventfd, eventfd);
		else if (eventfd)
			neuron_eventfd_signal(eventfd);
		spin_unlock(&async->lock);
		neuron_async_put(async);
	}
	if (eventfd)
		eventfd_ctx_put(eventfd);
	return err;
}
