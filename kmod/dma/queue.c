// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA queues of applications.
 *
 * A queue belongs to the first process that initialises it, until that
 * process goes.  Its rings are the process's own chunks; what they contain is
 * checked by the device against the process's space, or else by ring.c.
 */
#include <linux/slab.h>

#include "../base/call.h"
#include "../base/core.h"
#include "../base/trace.h"
#include "../mem/handle.h"
#include "../mem/watch.h"
#include "copy.h"
#include "queue.h"
#include "ring.h"

/**
 * neuron_queue_is_kernel() - is this queue one of the driver's copy rings?
 * @nd: device
 * @eng: engine number
 * @q: queue number
 * @core: set to the core that it serves, may be NULL
 */
bool neuron_queue_is_kernel(struct neuron_device *nd, u32 eng, u32 q, u32 *core)
{
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++) {
		if (nd->geo->copy_engine[i] == eng && nd->geo->copy_queue[i] == q) {
			if (core)
				*core = i;
			return true;
		}
	}
	return false;
}

/**
 * neuron_engine_is_kernel() - does this engine serve one of the driver's copy rings?
 * @nd: device
 * @eng: engine number
 *
 * Where the engines of cores do the driver's copies, too (inf1), the owner of the core
 * shares the engine with all processes whose memory is copied.
 */
bool neuron_engine_is_kernel(struct neuron_device *nd, u32 eng)
{
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++)
		if (nd->geo->copy_engine[i] == eng)
			return true;
	return false;
}

static void neuron_trace_irq(struct neuron_device *nd, u32 core, u32 eng, u32 q)
{
	u32 status;

	if (nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng, NEURON_DMA_TX(q) + NEURON_DMA_Q_STATUS,
			      &status))
		return;
	trace_neuron_ring_done(nd->dev.id, core, eng, q, status);
	if (status == NEURON_QUEUE_ABORTED)
		trace_neuron_fault(nd->dev.id, core, NEURON_FAULT_DMA, eng, q);
}

/**
 * neuron_dma_irq() - a descriptor with the interrupt bit completed, or the queue stopped
 * @nd: device
 * @eng: engine number
 * @q: queue number
 *
 * Called by the device.
 *
 * Context: process, no spinlocks of the device held.
 */
void neuron_dma_irq(struct neuron_device *nd, u32 eng, u32 q)
{
	u32 core = neuron_engine_core(nd, eng);
	bool kernel = neuron_queue_is_kernel(nd, eng, q, &core);

	if (trace_neuron_ring_done_enabled() || trace_neuron_fault_enabled())
		neuron_trace_irq(nd, core, eng, q);
	if (kernel)
		neuron_copy_wake(nd, core);
}
NEURON_EXPORT_SYMBOL(neuron_dma_irq);

static bool neuron_queue_is_checked(const struct neuron_queue *queue)
{
	return queue->client->nd->isolation == NEURON_ISOLATION_CHECKED;
}

static void neuron_queue_free(struct neuron_queue *queue)
{
	int dir;

	for (dir = 0; dir < 2; dir++) {
		neuron_unwatch(queue->watch[dir]);
		neuron_ring_unbind(queue->checked[dir]);
		/* Of memory that is not bound yet the queue is no user. */
		if (neuron_queue_is_checked(queue) && !queue->checked[dir])
			neuron_chunk_put(queue->ring[dir]);
		else
			neuron_chunk_unuse(queue->ring[dir], NEURON_USER_RING);
	}
	kfree(queue);
}

static void neuron_queue_held(struct neuron_held *held)
{
	struct neuron_queue *queue = container_of(held, struct neuron_queue, held);
	struct neuron_client *client = queue->client;

	neuron_queue_free(queue);
	neuron_client_put(client);
}

/* What its descriptors name, where the driver has checked them. */
static u64 neuron_queue_named(struct neuron_held *held, struct xarray *seen)
{
	struct neuron_queue *queue = container_of(held, struct neuron_queue, held);

	return neuron_ring_bytes(queue->checked[0], seen) +
	       neuron_ring_bytes(queue->checked[1], seen);
}

/* While a queue is being stopped or reset, its registers do not say how far it is. */
static void neuron_queue_hold_rings(struct neuron_queue *queue)
{
	neuron_ring_hold(queue->checked[0]);
	neuron_ring_hold(queue->checked[1]);
}

/* Keep the rings, which are held, until the core of the engine is reset. */
static void neuron_queue_hold(struct neuron_device *nd, u32 eng, struct neuron_queue *queue)
{
	int dir;

	/* Its space is asked as long as the queue goes on; rings may be of another process. */
	kref_get(&queue->client->ref);
	queue->held.release = neuron_queue_held;
	queue->held.named = neuron_queue_named;
	for (dir = 0; dir < 2; dir++)
		if (queue->ring[dir])
			queue->held.bytes += queue->ring[dir]->size;
	neuron_core_hold(&nd->core[neuron_engine_core(nd, eng)], &queue->held);
}

/* Free a queue, or keep its rings if the device cannot stop it.  Under engine->lock. */
static int neuron_queue_end(struct neuron_device *nd, u32 eng, u32 q, struct neuron_queue *queue)
{
	int err;

	neuron_queue_hold_rings(queue);
	err = nd->ops->queue_stop(nd, eng, q);
	if (err) {
		nd->engine[eng].stuck |= BIT(q);
		neuron_queue_hold(nd, eng, queue);
	} else {
		neuron_queue_free(queue);
	}
	return err;
}

/**
 * neuron_queue_drop() - stop and forget a queue
 * @nd: device
 * @eng: engine number
 * @q: queue number; in use
 *
 * Context: may sleep, engine.lock is held.
 * Return: 0; -EIO the device cannot stop it: its rings are kept until the core is reset.
 */
int neuron_queue_drop(struct neuron_device *nd, u32 eng, u32 q)
{
	struct neuron_queue *queue = nd->engine[eng].queue[q];

	nd->engine[eng].queue[q] = NULL;
	return neuron_queue_end(nd, eng, q, queue);
}

/**
 * neuron_queue_find() - a queue in use
 * @nd: device
 * @eng: engine number
 * @q: queue number
 *
 * Context: process, engine.lock is held.
 * Return: the queue, or NULL.
 */
struct neuron_queue *neuron_queue_find(struct neuron_device *nd, u32 eng, u32 q)
{
	struct neuron_engine *engine = &nd->engine[eng];

	return engine->queue ? engine->queue[q] : NULL;
}

static void neuron_queue_watch(struct neuron_queue *queue, int dir)
{
	queue->watch[dir] = neuron_watch_chunk(queue->ring[dir], 0,
					       (u64)queue->length[dir] * NEURON_DESC_SIZE,
					       NEURON_USER_RING);
}

/* The memory of a ring, which does not change yet. */
static int neuron_queue_ring(struct neuron_queue *queue, u64 handle, u32 count, int dir)
{
	bool checked = neuron_queue_is_checked(queue);
	struct neuron_chunk *chunk;

	/* A ring may be attached later by other means (uapi/FACTS.md 5). */
	if (!handle)
		return 0;
	if (count < NEURON_RING_MIN || count > NEURON_RING_MAX || count % 16)
		return -EINVAL;
	/* One look-up: the queue gets what may become a ring, and nothing else. */
	chunk = neuron_chunk_use(queue->client, handle,
				 checked ? NEURON_USER_NONE : NEURON_USER_RING);
	if (!chunk)
		return -ENOENT;
	queue->ring[dir] = chunk;
	queue->length[dir] = count;
	if (neuron_chunk_range(chunk, 0, (u64)count * NEURON_DESC_SIZE) ||
	    chunk->addr % NEURON_RING_ALIGN)
		return -EINVAL;
	if (!checked) {
		neuron_queue_watch(queue, dir);
		return 0;
	}
	/* A ring is of one side. */
	if (chunk == queue->ring[!dir])
		return -EINVAL;
	return neuron_ring_possible(queue->client, chunk, dir);
}

/* May @client set a queue up?  Under engine->lock. */
static int neuron_queue_check(struct neuron_client *client, u32 eng, u32 q)
{
	struct neuron_device *nd = client->nd;
	const struct neuron_queue *old = neuron_queue_find(nd, eng, q);
	int err;

	if (old && old->client != client)
		return -EBUSY;
	/* A reset that has begun since has taken the engine's queues already. */
	err = neuron_core_usable(&nd->core[neuron_engine_core(nd, eng)]);
	/* Nor does one that goes on become another one. */
	return err ?: nd->engine[eng].stuck & BIT(q) ? -EIO : 0;
}

static int neuron_queue_bind_ring(struct neuron_queue *queue, int dir, u32 eng, u32 q)
{
	struct neuron_chunk *chunk = queue->ring[dir];
	struct neuron_ring *ring;
	int err;

	err = neuron_ring_make(queue->client, chunk, dir);
	if (err)
		return err;
	ring = neuron_ring_of(chunk);
	err = neuron_ring_bind(ring, dir, queue->length[dir], eng, q);
	if (err)
		return err;
	queue->checked[dir] = ring;
	neuron_chunk_admit(chunk, NEURON_USER_RING);
	neuron_queue_watch(queue, dir);
	return 0;
}

/*
 * The driver answers for what is in the rings.  Memory that becomes one loses its contents,
 * so it does when everything else that may be refused has passed: rings of before, too.
 */
static int neuron_queue_bind(struct neuron_queue *queue, u32 eng, u32 q)
{
	struct neuron_engine *engine = &queue->client->nd->engine[eng];
	int plain, dir, err;

	/* Not held on: clearing takes as long as the device likes. */
	mutex_lock(&engine->lock);
	err = neuron_queue_check(queue->client, eng, q);
	mutex_unlock(&engine->lock);
	for (plain = 0; plain < 2; plain++)
		for (dir = 0; dir < 2 && !err; dir++)
			if (queue->ring[dir] && !queue->checked[dir] &&
			    (plain || neuron_ring_of(queue->ring[dir])))
				err = neuron_queue_bind_ring(queue, dir, eng, q);
	return err;
}

static int neuron_queue_start(struct neuron_device *nd, u32 eng, u32 q,
			      const struct neuron_queue *queue)
{
	struct neuron_queue_setup setup = { .space = &queue->client->space };
	int dir;

	for (dir = 0; dir < 2; dir++) {
		setup.addr[dir] = queue->ring[dir] ? queue->ring[dir]->addr : 0;
		setup.length[dir] = queue->length[dir];
		neuron_ring_start(queue->checked[dir]);
	}
	return nd->ops->queue_start(nd, eng, q, &setup);
}

/**
 * neuron_queue_init() - set a queue pair up, for the first time or again
 * @client: caller
 * @arg: as user space wrote it
 *
 * Context: may sleep.
 * Return: 0; -EINVAL engine, queue, count, alignment, ring larger than its
 *	   chunk, completion ring; -ENOENT handle; -EPERM an engine of the
 *	   driver; -EBUSY queue or core of another process, a ring that others may write or
 *	   that another queue has;
 *	   -EACCES a ring names what the caller does not have; -EIO the queue could not be
 *	   stopped, and goes on until its core is reset; -ENOMEM.
 */
int neuron_queue_init(struct neuron_client *client, const struct neuron_ioctl_dma_queue_init *arg)
{
	struct neuron_device *nd = client->nd;
	struct neuron_queue *queue;
	struct neuron_engine *engine;
	u32 eng = arg->eng_id, q = arg->qid;
	int err;

	if (!neuron_index_valid(&eng, nd->geo->nr_dma_engines) ||
	    !neuron_index_valid(&q, NEURON_HW_QUEUES_PER_ENGINE) || arg->rxc_handle)
		return -EINVAL;
	/* The engines of the copy rings are the driver's. */
	if (neuron_engine_core(nd, eng) >= nd->geo->nr_cores ||
	    neuron_queue_is_kernel(nd, eng, q, NULL))
		return -EPERM;

	queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return -ENOMEM;
	queue->client = client;
	err = neuron_queue_ring(queue, arg->tx_handle, arg->tx_desc_count, 0) ?:
	      neuron_queue_ring(queue, arg->rx_handle, arg->rx_desc_count, 1);
	/* Late, so that a refused request does not take the core. */
	if (!err)
		err = neuron_core_acquire(nd, neuron_engine_core(nd, eng), client);
	if (!err && neuron_queue_is_checked(queue))
		err = neuron_queue_bind(queue, eng, q);
	if (err)
		goto free;

	engine = &nd->engine[eng];
	mutex_lock(&engine->lock);
	if (!engine->queue)
		engine->queue = kcalloc(NEURON_HW_QUEUES_PER_ENGINE, sizeof(*engine->queue),
					GFP_KERNEL);
	if (!engine->queue) {
		err = -ENOMEM;
		goto unlock;
	}
	err = neuron_queue_check(client, eng, q);
	if (!err && engine->queue[q])
		err = neuron_queue_drop(nd, eng, q);
	if (err)
		goto unlock;
	err = neuron_queue_start(nd, eng, q, queue);
	if (!err) {
		engine->queue[q] = queue;
	} else {
		neuron_queue_end(nd, eng, q, queue);
		queue = NULL;
	}
unlock:
	mutex_unlock(&engine->lock);
free:
	if (err && queue)
		neuron_queue_free(queue);
	return err;
}

/**
 * neuron_engine_hold() - forget the queues of an engine, whose core is to be reset
 * @nd: device
 * @eng: engine number
 *
 * The rings stay until the reset has ended.
 *
 * Context: may sleep; the core is locked.
 */
void neuron_engine_hold(struct neuron_device *nd, u32 eng)
{
	struct neuron_engine *engine = &nd->engine[eng];
	u32 q;

	mutex_lock(&engine->lock);
	for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++) {
		struct neuron_queue *queue = neuron_queue_find(nd, eng, q);

		if (!queue)
			continue;
		engine->queue[q] = NULL;
		neuron_queue_hold_rings(queue);
		neuron_queue_hold(nd, eng, queue);
	}
	engine->aborted = false;
	engine->stuck = 0;
	mutex_unlock(&engine->lock);
}
