// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous copies.  A process has two tokens for each core: it starts one
 * copy and waits for the one before, so that there is always one under way.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../core/neuron.h"

#define NEURON_TOKEN_NONE	(~0u)	/* uapi spec 2.4 */
#define NEURON_TOKEN_SYNC	0u

/* A copy looks for the end of its process this often. */
#define NEURON_ASYNC_BATCH	(64ull << 20)

static struct workqueue_struct *neuron_async_wq;

/**
 * struct neuron_async - a copy under way
 * @work: does it
 * @done: it is done
 * @nd: device
 * @core: whose ring is used
 * @src: held
 * @dst: held
 * @from: device address
 * @to: device address
 * @len: bytes
 * @err: result
 */
struct neuron_async {
	struct work_struct work;
	struct completion done;
	struct neuron_device *nd;
	u32 core;
	struct neuron_chunk *src;
	struct neuron_chunk *dst;
	u64 from;
	u64 to;
	u64 len;
	int err;
};

/* Copies sleep for long: they get a queue of their own. */
int neuron_async_init(void)
{
	neuron_async_wq = alloc_workqueue("neuron_copy", WQ_UNBOUND, 0);
	return neuron_async_wq ? 0 : -ENOMEM;
}

void neuron_async_destroy(void)
{
	destroy_workqueue(neuron_async_wq);
}

static void neuron_async_work(struct work_struct *work)
{
	struct neuron_async *async = container_of(work, struct neuron_async, work);
	u64 done, n;
	int err = 0;

	for (done = 0; done < async->len && !err; done += n) {
		n = min_t(u64, async->len - done, NEURON_ASYNC_BATCH);
		/* A dead process must not wait here for the rest. */
		if (READ_ONCE(async->dst->client->dead))
			err = -EINTR;
		else
			err = neuron_dma_copy(async->nd, async->core, async->to + done,
					      async->from + done, n);
	}
	async->err = err;
	complete_all(&async->done);
}

static void neuron_async_free(struct neuron_async *async)
{
	if (!async)
		return;
	/* The work may still be on its way out of complete_all(). */
	flush_work(&async->work);
	neuron_chunk_put(async->src);
	neuron_chunk_put(async->dst);
	kfree(async);
}

/**
 * neuron_async_exit() - wait for all copies of a process
 * @client: being torn down, starts nothing any more
 *
 * Context: may sleep.
 */
void neuron_async_exit(struct neuron_client *client)
{
	u32 core, i;

	for (core = 0; core < NEURON_HW_MAX_CORES; core++) {
		for (i = 0; i < 2; i++) {
			neuron_async_free(client->async[core][i]);
			client->async[core][i] = NULL;
		}
	}
}

/* Wait for a token and give it back. */
static int neuron_async_wait(struct neuron_client *client, u32 core, u32 token)
{
	struct neuron_async **slot = &client->async[core][token - 1], *async;
	int err;

	if (mutex_lock_killable(&client->async_lock))
		return -EINTR;
	async = *slot;
	if (!async) {
		err = -EINVAL;
	} else if (wait_for_completion_killable(&async->done)) {
		/* It stays, for the end of the process. */
		err = -EINTR;
	} else {
		err = async->err;
		*slot = NULL;
		neuron_async_free(async);
	}
	mutex_unlock(&client->async_lock);
	return err;
}

/* Takes the references of @async's chunks, whatever happens. */
static int neuron_async_start(struct neuron_client *client, struct neuron_async *async, u32 prev,
			      u32 *token)
{
	struct neuron_async **slots = client->async[async->core];
	u32 next = prev == 1 ? 2 : 1;
	int err = 0;

	init_completion(&async->done);
	INIT_WORK(&async->work, neuron_async_work);
	if (mutex_lock_killable(&client->async_lock))
		err = -EINTR;
	else if (prev != NEURON_TOKEN_NONE && !slots[prev - 1])
		err = -EINVAL;
	else if (slots[next - 1])
		err = -EBUSY;
	if (!err) {
		slots[next - 1] = async;
		queue_work(neuron_async_wq, &async->work);
	}
	if (err != -EINTR)
		mutex_unlock(&client->async_lock);
	if (err) {
		neuron_chunk_put(async->src);
		neuron_chunk_put(async->dst);
		kfree(async);
		return err;
	}
	*token = next;
	return 0;
}

static u32 neuron_async_core(const struct neuron_chunk *src, const struct neuron_chunk *dst)
{
	return dst->host ? src->core : dst->core;
}

static int neuron_mem_copy_async(struct neuron_file *nf, u64 src, u64 dst, u64 size, u64 src_off,
				 u64 dst_off, u32 prev, u32 *token)
{
	struct neuron_async *async;
	u32 core;
	int err = -ENOENT;

	async = kzalloc(sizeof(*async), GFP_KERNEL_ACCOUNT);
	if (!async)
		return -ENOMEM;
	async->nd = nf->nd;
	async->src = neuron_chunk_get(nf->client, src);
	async->dst = neuron_chunk_get(nf->client, dst);
	if (!async->src || !async->dst)
		goto free;
	err = neuron_chunk_range(async->src, src_off, size) ?:
	      neuron_chunk_range(async->dst, dst_off, size);
	if (!err && prev != NEURON_TOKEN_NONE && prev > 2)
		err = -EINVAL;
	if (err)
		goto free;
	core = neuron_async_core(async->src, async->dst);
	async->core = core;
	async->from = async->src->addr + src_off;
	async->to = async->dst->addr + dst_off;
	async->len = size;
	if (prev == NEURON_TOKEN_SYNC) {
		*token = NEURON_TOKEN_SYNC;
		err = neuron_dma_copy(nf->nd, core, async->to, async->from, size);
		goto free;
	}
	err = neuron_async_start(nf->client, async, prev, token);
	if (err || prev == NEURON_TOKEN_NONE)
		return err;
	err = neuron_async_wait(nf->client, core, prev);
	/* The caller does not learn the new token, so that copy ends here, too. */
	if (err)
		neuron_async_wait(nf->client, core, *token);
	return err;

free:
	neuron_chunk_put(async->src);
	neuron_chunk_put(async->dst);
	kfree(async);
	return err;
}

int neuron_ioctl_mem_copy_async(struct neuron_file *nf, void *arg, void __user *uarg)
{
	struct neuron_ioctl_mem_copy_async *a = arg;

	return neuron_mem_copy_async(nf, a->src_mem_handle, a->dst_mem_handle, a->size,
				     a->src_offset, a->dst_offset, a->pwait_handle,
				     &a->wait_handle);
}

int neuron_ioctl_mem_copy_async64(struct neuron_file *nf, void *arg, void __user *uarg)
{
	struct neuron_ioctl_mem_copy_async64 *a = arg;

	return neuron_mem_copy_async(nf, a->src_mem_handle, a->dst_mem_handle, a->size,
				     a->src_offset, a->dst_offset, a->pwait_handle,
				     &a->wait_handle);
}

/* The handles only tell which core it was. */
int neuron_ioctl_mem_copy_async_wait(struct neuron_file *nf, void *arg, void __user *uarg)
{
	struct neuron_ioctl_mem_copy_async_wait *a = arg;
	struct neuron_chunk *src = neuron_chunk_get(nf->client, a->src_mem_handle);
	struct neuron_chunk *dst = neuron_chunk_get(nf->client, a->dst_mem_handle);
	int err = -ENOENT;
	u32 core = 0;

	if (src && dst) {
		core = neuron_async_core(src, dst);
		err = a->pwait_handle == 1 || a->pwait_handle == 2 ? 0 : -EINVAL;
	}
	neuron_chunk_put(src);
	neuron_chunk_put(dst);
	return err ?: neuron_async_wait(nf->client, core, a->pwait_handle);
}
