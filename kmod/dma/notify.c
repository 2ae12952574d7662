// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification queues: rings in memory that the device appends to and the
 * application maps.  A queue belongs to the owner of its core and ends with that
 * ownership.  Instead of spinning on the memory, an application can have an eventfd
 * signalled (nq_event.c).
 */
#include <linux/eventfd.h>
#include <linux/slab.h>

#include "../base/call.h"
#include "../base/core.h"
#include "../base/eventfd.h"
#include "../base/hw.h"
#include "../base/trace.h"
#include "../mem/failure.h"
#include "../mem/handle.h"
#include "../mem/watch.h"
#include "notify.h"
#include "nq_event.h"
#include "ring.h"

#define NEURON_NQ_MIN_SIZE	256u

/* Where the three init calls store their result. */
struct neuron_nq_args {
	u32 core;
	u32 type;
	u32 engine;
	u32 size;
	bool host;
	u32 hbm;
	bool force;
	u64 mmap_offset;
	u64 handle;
};

static int neuron_nq_program(struct neuron_device *nd, u32 core, u32 nq, u64 addr, u32 size)
{
	const struct neuron_hw_ops *ops = nd->ops;

	/* The queue is off while its base changes. */
	return ops->reg_write(nd, NEURON_BLOCK_CORE_NQ, core, NEURON_NQ_SIZE(nq), 0) ?:
	       ops->reg_write(nd, NEURON_BLOCK_CORE_NQ, core, NEURON_NQ_BASE_LO(nq),
			      lower_32_bits(addr)) ?:
	       ops->reg_write(nd, NEURON_BLOCK_CORE_NQ, core, NEURON_NQ_BASE_HI(nq),
			      upper_32_bits(addr)) ?:
	       ops->reg_write(nd, NEURON_BLOCK_CORE_NQ, core, NEURON_NQ_SIZE(nq), size);
}

static void neuron_nq_free(struct neuron_nq *q)
{
	neuron_unwatch(q->watch);
	neuron_chunk_unuse(q->chunk, NEURON_USER_RING);
	kfree(q);
}

static void neuron_nq_held(struct neuron_held *held)
{
	neuron_nq_free(container_of(held, struct neuron_nq, held));
}

/* Under core->lock. */
static void neuron_nq_hold(struct neuron_core *core, u32 nq)
{
	struct neuron_nq *q = core->nq[nq];
	struct eventfd_ctx *eventfd;

	spin_lock(&core->nq_lock);
	core->nq[nq] = NULL;
	eventfd = q->eventfd;
	spin_unlock(&core->nq_lock);
	if (eventfd)
		eventfd_ctx_put(eventfd);
	q->held.bytes = q->chunk->size;
	q->held.release = neuron_nq_held;
	neuron_core_hold(core, &q->held);
}

/**
 * neuron_nqs_hold() - forget all notification queues of a core that is to be reset
 * @nd: device
 * @core: core number
 *
 * The device may write to them until the reset has ended; they stay as long.
 *
 * Context: may sleep, core->lock held.
 */
void neuron_nqs_hold(struct neuron_device *nd, u32 core)
{
	u32 i;

	lockdep_assert_held(&nd->core[core].lock);
	for (i = 0; i < NEURON_HW_NR_NQ; i++)
		if (nd->core[core].nq[i])
			neuron_nq_hold(&nd->core[core], i);
}

/*
 * Is there a queue that the caller can go on using?  A queue whose handle was freed is
 * replaced.  Under core->lock.
 */
static bool neuron_nq_usable(struct neuron_client *client, struct neuron_core *core, u32 nq)
{
	struct neuron_chunk *chunk, *live;

	if (core->owner != client || !core->nq[nq])
		return false;
	chunk = core->nq[nq]->chunk;
	live = neuron_chunk_get(client, chunk->own.number);
	neuron_chunk_put(live);
	return live == chunk;
}

/* Install a queue of a core that the caller owns.  Under core->lock.  @old: the one before. */
static int neuron_nq_install(struct neuron_client *client, u32 index, u32 nq,
			     struct neuron_nq *q, struct neuron_nq **old)
{
	struct neuron_device *nd = client->nd;
	struct neuron_core *core = &nd->core[index];
	int err;

	/* Another thread may have asked for a reset. */
	err = neuron_core_usable(core) ?: neuron_nq_program(nd, index, nq, q->chunk->addr, q->size);
	if (err)
		return err;
	/* Move the eventfd immediately: the device already writes to the new buffer. */
	spin_lock(&core->nq_lock);
	*old = core->nq[nq];
	if (*old)
		swap(q->eventfd, (*old)->eventfd);
	core->nq[nq] = q;
	spin_unlock(&core->nq_lock);
	/* What the device wrote to the old one has arrived before that is given back. */
	if (*old)
		nd->ops->flush(nd);
	return 0;
}

/* A queue that was replaced: its memory is freed like any other. */
static void neuron_nq_retire(struct neuron_client *client, struct neuron_nq *q)
{
	neuron_chunk_revoke(q->chunk);
	neuron_ring_forget(client, q->chunk);
	neuron_nq_free(q);
}

static void neuron_nq_result(struct neuron_nq_args *args, const struct neuron_chunk *chunk)
{
	args->mmap_offset = chunk->host ? chunk->addr : ~0ULL;
	args->handle = chunk->own.number;
}

static bool neuron_nq_exists(struct neuron_device *nd, u32 *core, u32 *type, u32 *engine)
{
	return neuron_index_valid(core, nd->geo->nr_cores) &&
	       neuron_index_valid(type, nd->geo->nr_nq_types) &&
	       neuron_index_valid(engine, nd->geo->nr_nq_engines);
}

static int neuron_nq_init(struct neuron_client *client, struct neuron_nq_args *args)
{
	struct neuron_device *nd = client->nd;
	struct neuron_chunk_request req = {
		.size = args->size,
		.host = args->host,
		.hbm = args->hbm,
		.core = args->core,
		.category = args->host ? NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST :
					 NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE,
	};
	struct neuron_nq *q, *old = NULL;
	struct neuron_failure why;
	struct neuron_core *core;
	u32 handle, nq;
	bool done;
	int err;

	if (!neuron_nq_exists(nd, &args->core, &args->type, &args->engine) ||
	    !is_power_of_2(args->size) || args->size < NEURON_NQ_MIN_SIZE ||
	    (!args->host && args->hbm >= nd->geo->nr_hbms))
		return -EINVAL;

	nq = args->type * NEURON_HW_NQ_ENGINES + args->engine;
	core = &nd->core[args->core];
	mutex_lock(&core->lock);
	err = neuron_core_check(core, client);
	done = !args->force && neuron_nq_usable(client, core, nq);
	if (done)
		neuron_nq_result(args, core->nq[nq]->chunk);
	mutex_unlock(&core->lock);
	if (err || done)
		return err;

	/* Memory is allocated without the lock: it may take long. */
	q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	if (!q)
		return -ENOMEM;
	err = neuron_chunk_alloc(client, &req, &q->chunk, &why);
	if (err)
		goto free;
	q->size = args->size;
	q->seen = neuron_nq_fresh(nd, q);
	/* One reference for the handle, one for the queue. */
	neuron_chunk_ref(q->chunk);
	neuron_chunk_admit(q->chunk, NEURON_USER_RING);
	q->watch = neuron_watch_chunk(q->chunk, 0, args->size, NEURON_USER_RING);
	err = neuron_chunk_publish(q->chunk, &handle);
	if (err) {
		neuron_chunk_put(q->chunk);
		goto put;
	}

	/* Last, so that a refused request does not take the core. */
	done = false;
	err = neuron_core_acquire(nd, args->core, client);
	if (err)
		goto revoke;
	mutex_lock(&core->lock);
	done = !args->force && neuron_nq_usable(client, core, nq);
	if (!done)
		err = neuron_nq_install(client, args->core, nq, q, &old);
	if (!err)
		neuron_nq_result(args, core->nq[nq]->chunk);
	mutex_unlock(&core->lock);
	if (old)
		neuron_nq_retire(client, old);
	if (!err && !done)
		return 0;

revoke:
	neuron_chunk_revoke(q->chunk);
	/* Another thread may have guessed its number. */
	neuron_ring_forget(client, q->chunk);
put:
	neuron_unwatch(q->watch);
	neuron_chunk_unuse(q->chunk, NEURON_USER_RING);
free:
	kfree(q);
	return err;
}

int neuron_do_notifications_init_v1(struct neuron_call *call)
{
	struct neuron_ioctl_notifications_init_v1 *a = call->arg;
	struct neuron_nq_args args = {
		.core = a->nc_id,
		.type = a->nq_type,
		.engine = a->engine_index,
		.size = a->size,
		.host = true,
	};
	int err = neuron_nq_init(call->client, &args);

	if (!err)
		a->mmap_offset = args.mmap_offset;
	return err;
}

static int neuron_nq_dev_type(u32 type)
{
	if (type == NQ_DEVICE_TYPE_NEURON_CORE)
		return 0;
	/* Collective sequencers exist, but have no notification queues here. */
	return type == NQ_DEVICE_TYPE_TOPSP ? -EOPNOTSUPP : -EINVAL;
}

/* The common part of both layouts, which are the same up to dram_region. */
static int neuron_nq_init_v2(struct neuron_client *client,
			     const struct neuron_ioctl_notifications_init_v2 *a, bool force,
			     u64 *mmap_offset, u64 *handle)
{
	struct neuron_nq_args args = {
		.core = a->nq_dev_id,
		.type = a->nq_type,
		.engine = a->engine_index,
		.size = a->size,
		.host = a->on_host_memory,
		.hbm = a->dram_channel,
		.force = force,
	};
	int err = neuron_nq_dev_type(a->nq_dev_type) ?: neuron_nq_init(client, &args);

	if (!err) {
		*mmap_offset = args.mmap_offset;
		*handle = args.handle;
	}
	return err;
}

int neuron_do_notifications_init_v2(struct neuron_call *call)
{
	struct neuron_ioctl_notifications_init_v2 *a = call->arg;

	return neuron_nq_init_v2(call->client, a, false, &a->mmap_offset, &a->mem_handle);
}

int neuron_do_notifications_init_with_realloc_v2(struct neuron_call *call)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 *a = call->arg;

	BUILD_BUG_ON(offsetof(typeof(*a), dram_region) !=
		     offsetof(struct neuron_ioctl_notifications_init_v2, dram_region));
	return neuron_nq_init_v2(call->client, call->arg, a->force_alloc_mem, &a->mmap_offset,
				 &a->mem_handle);
}

int neuron_do_native_nq_eventfd(struct neuron_call *call)
{
	struct neuron_native_nq_eventfd *a = call->arg;
	struct eventfd_ctx *eventfd;
	struct neuron_device *nd = call->nd;
	struct neuron_core *core;
	u32 nq;
	int err;

	err = neuron_nq_dev_type(a->nq_dev_type);
	if (err)
		return err;
	if (a->flags || a->__reserved ||
	    !neuron_nq_exists(nd, &a->nq_dev_id, &a->nq_type, &a->engine_index))
		return -EINVAL;
	err = neuron_eventfd_get(a->eventfd, &eventfd);
	if (err)
		return err;

	nq = a->nq_type * NEURON_HW_NQ_ENGINES + a->engine_index;
	core = &nd->core[a->nq_dev_id];
	mutex_lock(&core->lock);
	if (core->owner != call->client)
		err = core->owner ? -EBUSY : -ENOENT;
	else if (!core->nq[nq])
		err = -ENOENT;
	else
		err = eventfd ? neuron_nq_poll_start(nd, a->nq_dev_id, nq) : 0;
	if (!err) {
		spin_lock(&core->nq_lock);
		swap(core->nq[nq]->eventfd, eventfd);
		spin_unlock(&core->nq_lock);
	}
	mutex_unlock(&core->lock);
	if (eventfd)
		eventfd_ctx_put(eventfd);
	return err;
}
