// SPDX-License-Identifier: GPL-2.0-only
/* ioctls of DMA engines, queues and descriptors. */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/trace.h"
#include "../mem/chunk.h"
#include "../mem/handle.h"
#include "../mem/host.h"
#include "copy.h"
#include "nq_event.h"
#include "queue.h"
#include "ring.h"

/* Descriptors are handled this many bytes at a time. */
#define NEURON_DESC_BATCH	(64u << 10)

/* Also bounds @eng. */
static int neuron_engine_access(struct neuron_client *client, u32 *eng)
{
	struct neuron_device *nd = client->nd;

	if (!neuron_index_valid(eng, nd->geo->nr_dma_engines))
		return -EINVAL;
	/* The engines of the copy rings belong to nobody. */
	if (neuron_engine_core(nd, *eng) >= nd->geo->nr_cores)
		return -EPERM;
	return neuron_core_acquire(nd, neuron_engine_core(nd, *eng), client);
}

/* The vendor's driver does nothing either (uapi/FACTS.md 2). */
int neuron_do_dma_eng_init(struct neuron_call *call)
{
	struct neuron_ioctl_dma_eng_init *a = call->arg;

	return a->eng_id < call->nd->geo->nr_dma_engines ? 0 : -EINVAL;
}

/*
 * May an engine that does not check addresses go on?  Only the reset of its core ends an
 * abort, which may be its own.  Under engine->lock.
 */
static int neuron_engine_may_start(struct neuron_device *nd, u32 eng)
{
	u32 state;
	int err = nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng, NEURON_DMA_COMMON, &state);

	return err ?: nd->engine[eng].aborted || state == NEURON_DMA_ENG_ABORT ? -EPERM : 0;
}

int neuron_do_dma_eng_set_state(struct neuron_call *call)
{
	struct neuron_ioctl_dma_eng_set_state *a = call->arg;
	struct neuron_device *nd = call->nd;
	struct neuron_engine *engine;
	int err;

	if (a->state != NEURON_DMA_ENG_DISABLE && a->state != NEURON_DMA_ENG_NORMAL &&
	    a->state != NEURON_DMA_ENG_ABORT)
		return -EINVAL;
	/* The driver's copies for all processes would stop, too. */
	if (a->state != NEURON_DMA_ENG_NORMAL && neuron_engine_is_kernel(nd, a->eng_id))
		return -EPERM;
	err = neuron_engine_access(call->client, &a->eng_id);
	if (err)
		return err;
	engine = &nd->engine[a->eng_id];
	mutex_lock(&engine->lock);
	/* A reset that has begun since must not be disturbed. */
	err = neuron_core_usable(&nd->core[neuron_engine_core(nd, a->eng_id)]);
	if (!err && nd->isolation == NEURON_ISOLATION_CHECKED && a->state == NEURON_DMA_ENG_NORMAL)
		err = neuron_engine_may_start(nd, a->eng_id);
	err = err ?: nd->ops->reg_write(nd, NEURON_BLOCK_DMA, a->eng_id, NEURON_DMA_COMMON,
					a->state);
	engine->aborted |= !err && a->state == NEURON_DMA_ENG_ABORT;
	mutex_unlock(&engine->lock);
	return err;
}

/* The registers of an engine may not answer while its core is being reset. */
static int neuron_engine_state(struct neuron_device *nd, u32 eng, u32 *state)
{
	u32 core = neuron_engine_core(nd, eng);
	struct neuron_core *c = core < nd->geo->nr_cores ? &nd->core[core] : NULL;
	int err = 0;

	if (c) {
		mutex_lock(&c->lock);
		err = neuron_core_usable(c);
	}
	err = err ?: nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng, NEURON_DMA_COMMON, state);
	if (c)
		mutex_unlock(&c->lock);
	return err;
}

int neuron_do_dma_eng_get_state(struct neuron_call *call)
{
	struct neuron_ioctl_dma_eng_get_state *a = call->arg;
	struct neuron_dma_eng_state state = {
		.revision_id = 4,		/* uapi/FACTS.md 2 */
		.max_queues = NEURON_HW_QUEUES_PER_ENGINE,
		.num_queues = NEURON_HW_QUEUES_PER_ENGINE,
	};
	u32 val;
	int err;

	if (!neuron_index_valid(&a->eng_id, call->nd->geo->nr_dma_engines))
		return -EINVAL;
	err = neuron_engine_state(call->nd, a->eng_id, &val);
	if (err)
		return err;
	state.tx_state = val;
	state.rx_state = val;
	return copy_to_user((void __user *)a->state, &state, sizeof(state)) ? -EFAULT : 0;
}

int neuron_do_dma_queue_init(struct neuron_call *call)
{
	return neuron_queue_init(call->client, call->arg);
}

/* Stops at the first error; earlier entries stay applied (uapi/FACTS.md 2). */
int neuron_do_dma_queue_init_batch(struct neuron_call *call)
{
	struct neuron_ioctl_dma_queue_init_batch __user *batch = call->uarg;
	struct neuron_ioctl_dma_queue_init entry;
	u32 i, count;
	int err;

	if (get_user(count, &batch->count))
		return -EFAULT;
	if (count >= MAX_DMA_QUEUE_INIT_BATCH)
		return -E2BIG;
	for (i = 0; i < count; i++) {
		if (copy_from_user(&entry, &batch->entries[i], sizeof(entry)))
			return -EFAULT;
		err = neuron_queue_init(call->client, &entry);
		if (err)
			return err;
		call->begun = true;
	}
	return 0;
}

/* The vendor's driver does nothing either: a queue stays until its process ends. */
int neuron_do_dma_queue_release(struct neuron_call *call)
{
	struct neuron_ioctl_dma_queue_release *a = call->arg;

	return a->eng_id < call->nd->geo->nr_dma_engines && a->qid < NEURON_HW_QUEUES_PER_ENGINE ?
	       0 : -EINVAL;
}

/* Finds a queue of the caller, and bounds its numbers; on success engine->lock is held. */
static int neuron_queue_lock(struct neuron_client *client, u32 *eng, u32 *q,
			     struct neuron_queue **out)
{
	struct neuron_device *nd = client->nd;
	struct neuron_queue *queue;
	int err = 0;

	if (!neuron_index_valid(eng, nd->geo->nr_dma_engines) ||
	    !neuron_index_valid(q, NEURON_HW_QUEUES_PER_ENGINE))
		return -EINVAL;
	mutex_lock(&nd->engine[*eng].lock);
	queue = neuron_queue_find(nd, *eng, *q);
	if (!queue)
		err = neuron_engine_core(nd, *eng) >= nd->geo->nr_cores ||
		      neuron_queue_is_kernel(nd, *eng, *q, NULL) ? -EPERM : -ENOENT;
	else if (queue->client != client)
		err = -EBUSY;
	if (err)
		mutex_unlock(&nd->engine[*eng].lock);
	*out = queue;
	return err;
}

/* Room for @count more descriptors, and may they be started?  Under engine->lock. */
static int neuron_queue_room(struct neuron_device *nd, u32 eng, u32 base,
			     const struct neuron_queue *queue, int dir, u32 count)
{
	u32 head, tail, len = queue->length[dir], busy;
	int err;

	if (!count)
		return 0;
	if (!queue->ring[dir] || count > len - NEURON_RING_UNUSED)
		return -EINVAL;
	err = nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng, base + NEURON_DMA_Q_HEAD, &head) ?:
	      nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng, base + NEURON_DMA_Q_TAIL, &tail);
	if (err)
		return err;
	head &= NEURON_DMA_Q_INDEX_MASK;
	tail &= NEURON_DMA_Q_INDEX_MASK;
	busy = tail >= head ? tail - head : tail + len - head;
	if (count + busy > len - NEURON_RING_UNUSED)
		return -ENOSPC;
	if (likely(!queue->checked[dir]))
		return 0;
	/* A device that makes tail up is not to lead out of the ring. */
	return tail < len ? neuron_ring_startable(queue->checked[dir], len, tail, count) : -EIO;
}

int neuron_do_dma_queue_copy_start(struct neuron_call *call)
{
	struct neuron_ioctl_dma_queue_copy_start *a = call->arg;
	struct neuron_device *nd = call->nd;
	struct neuron_queue *queue;
	bool half = false;
	int err;

	if (!a->rx_desc_count)
		return -EINVAL;
	err = neuron_queue_lock(call->client, &a->eng_id, &a->qid, &queue);
	if (err)
		return err;
	neuron_ring_lock(queue->checked[0]);
	neuron_ring_lock(queue->checked[1]);
	err = neuron_queue_room(nd, a->eng_id, NEURON_DMA_RX(a->qid), queue, 1,
				a->rx_desc_count) ?:
	      neuron_queue_room(nd, a->eng_id, NEURON_DMA_TX(a->qid), queue, 0,
				a->tx_desc_count);
	if (!err) {
		/* Trace it before it can complete. */
		trace_neuron_ring_start(nd->dev.id, neuron_engine_core(nd, a->eng_id), a->eng_id,
					a->qid, a->tx_desc_count, a->rx_desc_count);
		/* Descriptors before doorbells; RX first (uapi/FACTS.md 5). */
		wmb();
		err = nd->ops->reg_write(nd, NEURON_BLOCK_DMA, a->eng_id,
					 NEURON_DMA_RX(a->qid) + NEURON_DMA_Q_TAIL_INC,
					 a->rx_desc_count);
		if (!err && a->tx_desc_count) {
			err = nd->ops->reg_write(nd, NEURON_BLOCK_DMA, a->eng_id,
						 NEURON_DMA_TX(a->qid) + NEURON_DMA_Q_TAIL_INC,
						 a->tx_desc_count);
			half = err;
		}
	}
	neuron_ring_unlock(queue->checked[1]);
	neuron_ring_unlock(queue->checked[0]);
	/* Otherwise one ring would stay ahead of the other. */
	if (half)
		neuron_queue_drop(nd, a->eng_id, a->qid);
	mutex_unlock(&nd->engine[a->eng_id].lock);
	neuron_nq_poll_expect(nd, neuron_engine_core(nd, a->eng_id));
	return err;
}

int neuron_do_dma_ack_completed(struct neuron_call *call)
{
	struct neuron_ioctl_dma_ack_completed *a = call->arg;
	struct neuron_queue *queue;
	int err, dir;

	err = neuron_queue_lock(call->client, &a->eng_id, &a->qid, &queue);
	if (err)
		return err;
	for (dir = 0; dir < 2; dir++)
		if (queue->length[dir] && a->count > queue->length[dir])
			err = -EINVAL;
	for (dir = 0; dir < 2 && !err; dir++)
		if (queue->length[dir])
			queue->completed[dir] = ((u64)queue->completed[dir] + a->count) %
						queue->length[dir];
	if (!err)
		trace_neuron_ring_ack(call->nd->dev.id, neuron_engine_core(call->nd, a->eng_id),
				      a->eng_id, a->qid, queue->length[0] ? a->count : 0,
				      queue->length[1] ? a->count : 0);
	mutex_unlock(&call->nd->engine[a->eng_id].lock);
	return err;
}

static int neuron_queue_regs(struct neuron_device *nd, u32 eng, u32 base,
			     struct neuron_dma_queue_state *state)
{
	static const u32 offs[] = {
		NEURON_DMA_Q_STATUS, NEURON_DMA_Q_BASE_LO, NEURON_DMA_Q_BASE_HI,
		NEURON_DMA_Q_LENGTH, NEURON_DMA_Q_HEAD, NEURON_DMA_Q_TAIL,
		NEURON_DMA_Q_COMPL_LO, NEURON_DMA_Q_COMPL_HI, NEURON_DMA_Q_COMPL_HEAD,
	};
	u32 v[ARRAY_SIZE(offs)];
	int i, err;

	for (i = 0; i < ARRAY_SIZE(offs); i++) {
		err = nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng, base + offs[i], &v[i]);
		if (err)
			return err;
	}
	memset(state, 0, sizeof(*state));
	state->hw_status = v[0];
	state->sw_status = v[0];
	state->base_addr = (u64)v[2] << 32 | v[1];
	state->length = v[3] & NEURON_DMA_Q_INDEX_MASK;
	state->head_pointer = v[4] & NEURON_DMA_Q_INDEX_MASK;
	state->tail_pointer = v[5] & NEURON_DMA_Q_INDEX_MASK;
	state->completion_base_addr = (u64)v[7] << 32 | v[6];
	state->completion_head = v[8] & NEURON_DMA_Q_INDEX_MASK;
	return 0;
}

int neuron_do_dma_queue_get_state(struct neuron_call *call)
{
	struct neuron_ioctl_dma_queue_get_state *a = call->arg;
	struct neuron_dma_queue_state tx, rx;
	struct neuron_queue *queue;
	int err;

	err = neuron_queue_lock(call->client, &a->eng_id, &a->qid, &queue);
	if (err)
		return err;
	err = neuron_queue_regs(call->nd, a->eng_id, NEURON_DMA_TX(a->qid), &tx) ?:
	      neuron_queue_regs(call->nd, a->eng_id, NEURON_DMA_RX(a->qid), &rx);
	mutex_unlock(&call->nd->engine[a->eng_id].lock);
	if (err)
		return err;
	if (copy_to_user((void __user *)a->tx, &tx, sizeof(tx)) ||
	    copy_to_user((void __user *)a->rx, &rx, sizeof(rx)))
		return -EFAULT;
	return 0;
}

/*
 * Unless ring.c checks them, descriptors are only moved: what they point to is checked when
 * the device fetches them, because a ring can change at any time after this.
 */
static int neuron_copy_descriptors(struct neuron_client *client, u64 handle, const void __user *buf,
				   u32 num, u64 off, u32 type)
{
	u64 len = (u64)num * NEURON_DESC_SIZE;
	struct neuron_chunk *chunk;
	void *batch = NULL;
	u32 n;
	int err;

	if (type != NEURON_DMA_QUEUE_TYPE_TX && type != NEURON_DMA_QUEUE_TYPE_RX)
		return -EINVAL;
	if (off % NEURON_DESC_SIZE)
		return -EINVAL;
	if (client->nd->isolation == NEURON_ISOLATION_CHECKED)
		return neuron_ring_write(client, handle, buf, num, off, type);
	chunk = neuron_chunk_use(client, handle, NEURON_USER_TRANSFER);
	if (!chunk)
		return -ENOENT;
	err = neuron_chunk_range(chunk, off, len);
	if (!err && chunk->host) {
		err = neuron_chunk_rw_user(chunk, off, (void __user *)buf, len, true);
	} else if (!err) {
		batch = kvmalloc(min_t(u64, len, NEURON_DESC_BATCH), GFP_KERNEL_ACCOUNT);
		if (!batch)
			err = -ENOMEM;
	}
	while (batch && len && !err) {
		n = min_t(u64, len, NEURON_DESC_BATCH);
		if (copy_from_user(batch, buf, n))
			err = -EFAULT;
		else
			err = neuron_dma_write(client->nd, chunk->core, chunk->addr + off, batch,
					       n);
		buf += n;
		off += n;
		len -= n;
	}
	kvfree(batch);
	neuron_chunk_unuse(chunk, NEURON_USER_TRANSFER);
	return err;
}

int neuron_do_dma_copy_descriptors(struct neuron_call *call)
{
	struct neuron_ioctl_dma_copy_descriptors *a = call->arg;

	return neuron_copy_descriptors(call->client, a->mem_handle, (void __user *)a->buffer,
				       a->num_descs, a->offset, a->queue_type);
}

int neuron_do_dma_copy_descriptors64(struct neuron_call *call)
{
	struct neuron_ioctl_dma_copy_descriptors64 *a = call->arg;

	return neuron_copy_descriptors(call->client, a->mem_handle, (void __user *)a->buffer,
				       a->num_descs, a->offset, a->queue_type);
}

int neuron_do_dma_descriptor_copyout(struct neuron_call *call)
{
	struct neuron_ioctl_dma_descriptor_copyout *a = call->arg;
	struct neuron_queue *queue;
	struct neuron_chunk *ring = NULL;
	u64 off, len;
	int err;

	if (!neuron_index_valid(&a->type, ARRAY_SIZE(queue->ring)))
		return -EINVAL;
	err = neuron_queue_lock(call->client, &a->eng_id, &a->qid, &queue);
	if (err)
		return err;
	if (!a->count || a->start_index >= queue->length[a->type] ||
	    a->count > queue->length[a->type] - a->start_index)
		err = -EINVAL;
	else
		ring = neuron_chunk_ref(queue->ring[a->type]);
	if (ring)
		neuron_chunk_admit(ring, NEURON_USER_READER);
	mutex_unlock(&call->nd->engine[a->eng_id].lock);
	if (err)
		return err;

	off = (u64)a->start_index * NEURON_DESC_SIZE;
	len = (u64)a->count * NEURON_DESC_SIZE;
	if (ring->host)
		err = neuron_chunk_rw_user(ring, off, (void __user *)a->buffer, len, false);
	else
		err = neuron_dma_copy_user(call->nd, ring->core, ring, off,
					   (void __user *)a->buffer, len, false);
	neuron_chunk_unuse(ring, NEURON_USER_READER);
	return err;
}
