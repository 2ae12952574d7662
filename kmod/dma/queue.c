// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA queues of applications.
 *
 * A queue belongs to the first process that initialises it, until that
 * process goes.  Its rings are the process's own chunks; what they contain is
 * checked by the device against the process's space, never trusted here.
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

static void neuron_queue_free(struct neuron_queue *queue)
{
	int dir;

	for (dir = 0; dir < 2; dir++) {
		neuron_unwatch(queue->watch[dir]);
		neuron_chunk_unuse(queue->ring[dir], NEURON_USER_RING);
	}
	kfree(queue);
}

/**
 * neuron_queue_drop() - stop and forget a queue
 * @nd: device
 * @eng: engine number
 * @q: queue number; in use
 *
 * Context: may sleep, engine.lock is held.
 */
void neuron_queue_drop(struct neuron_device *nd, u32 eng, u32 q)
{
	struct neuron_queue *queue = nd->engine[eng].queue[q];

	nd->ops->queue_stop(nd, eng, q);
	nd->engine[eng].queue[q] = NULL;
	neuron_queue_free(queue);
}

static int neuron_queue_ring(struct neuron_client *client, u64 handle, u32 count,
			     struct neuron_queue *queue, int dir)
{
	struct neuron_chunk *chunk;

	/* A ring may be attached later by other means (uapi/FACTS.md 5). */
	if (!handle)
		return 0;
	if (count < NEURON_RING_MIN || count > NEURON_RING_MAX || count % 16)
		return -EINVAL;
	chunk = neuron_chunk_use(client, handle, NEURON_USER_RING);
	if (!chunk)
		return -ENOENT;
	if (neuron_chunk_range(chunk, 0, (u64)count * NEURON_DESC_SIZE) ||
	    chunk->addr % NEURON_RING_ALIGN) {
		neuron_chunk_unuse(chunk, NEURON_USER_RING);
		return -EINVAL;
	}
	queue->ring[dir] = chunk;
	queue->watch[dir] = neuron_watch_chunk(chunk, 0, (u64)count * NEURON_DESC_SIZE,
					       NEURON_USER_RING);
	return 0;
}

static int neuron_queue_program(struct neuron_device *nd, u32 eng, u32 q,
				const struct neuron_queue *queue)
{
	const u32 base[2] = { NEURON_DMA_TX(q), NEURON_DMA_RX(q) };
	int dir, err = 0;

	for (dir = 0; dir < 2 && !err; dir++)
		err = neuron_ring_program(nd, eng, base[dir],
					  queue->ring[dir] ? queue->ring[dir]->addr : 0,
					  queue->length[dir]);
	return err;
}

/**
 * neuron_queue_init() - set a queue pair up, for the first time or again
 * @client: caller
 * @arg: as user space wrote it
 *
 * Context: may sleep.
 * Return: 0; -EINVAL engine, queue, count, alignment, ring larger than its
 *	   chunk, completion ring; -ENOENT handle; -EPERM an engine of the
 *	   driver; -EBUSY queue or core of another process; -ENOMEM.
 */
int neuron_queue_init(struct neuron_client *client, const struct neuron_ioctl_dma_queue_init *arg)
{
	struct neuron_device *nd = client->nd;
	struct neuron_queue *queue, *old;
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
	err = neuron_queue_ring(client, arg->tx_handle, arg->tx_desc_count, queue, 0) ?:
	      neuron_queue_ring(client, arg->rx_handle, arg->rx_desc_count, queue, 1);
	/* Last, so that a refused request does not take the core. */
	if (!err)
		err = neuron_core_acquire(nd, neuron_engine_core(nd, eng), client);
	if (err)
		goto free;
	queue->length[0] = queue->ring[0] ? arg->tx_desc_count : 0;
	queue->length[1] = queue->ring[1] ? arg->rx_desc_count : 0;

	engine = &nd->engine[eng];
	mutex_lock(&engine->lock);
	old = engine->queue[q];
	if (old && old->client != client) {
		err = -EBUSY;
		goto unlock;
	}
	if (old)
		neuron_queue_drop(nd, eng, q);
	err = nd->ops->queue_bind(nd, eng, q, &client->space);
	if (!err)
		err = neuron_queue_program(nd, eng, q, queue);
	if (err)
		nd->ops->queue_stop(nd, eng, q);
	else
		engine->queue[q] = queue;
unlock:
	mutex_unlock(&engine->lock);
free:
	if (err)
		neuron_queue_free(queue);
	return err;
}

/**
 * neuron_engine_release() - stop a process's queues of one engine
 * @client: the process
 * @eng: engine number
 *
 * Context: may sleep.
 */
void neuron_engine_release(struct neuron_client *client, u32 eng)
{
	struct neuron_device *nd = client->nd;
	struct neuron_engine *engine = &nd->engine[eng];
	u32 q;

	mutex_lock(&engine->lock);
	for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
		if (engine->queue[q] && engine->queue[q]->client == client)
			neuron_queue_drop(nd, eng, q);
	mutex_unlock(&engine->lock);
}

/**
 * neuron_queues_release() - stop all queues of a process
 * @client: being torn down, starts nothing any more
 *
 * Context: may sleep.  When it returns, no transfer of the process is running.
 */
void neuron_queues_release(struct neuron_client *client)
{
	u32 eng;

	for (eng = 0; eng < client->nd->geo->nr_dma_engines; eng++)
		neuron_engine_release(client, eng);
}
