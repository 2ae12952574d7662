// SPDX-License-Identifier: LGPL-2.1-or-later
/* DMA queues and the descriptors in their rings (uapi/FACTS.md 5). */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "../device/opts.h"
#include "mem.h"

#define META_COPY		0x01080003u

/* MAX_DMA_QUEUE_INIT_BATCH itself is refused. */
#define BATCH (MAX_DMA_QUEUE_INIT_BATCH - 1)

_Static_assert(sizeof(struct neuron_descriptor) == 16, "descriptor layout");
_Static_assert((int)NEURON_RING_TX == NEURON_DMA_QUEUE_TYPE_TX &&
	       (int)NEURON_RING_RX == NEURON_DMA_QUEUE_TYPE_RX, "ring sides");

NEURON_EXPORT uint32_t neuron_ring_slots(uint64_t descriptors)
{
	if (descriptors > NEURON_RING_MAX_SLOTS - NEURON_RING_UNUSED_SLOTS)
		return 0;
	return MAX((uint32_t)round_up(descriptors + NEURON_RING_UNUSED_SLOTS, 16),
		   NEURON_RING_MIN_SLOTS);
}

NEURON_EXPORT void neuron_descriptor_copy(struct neuron_descriptor *tx,
					  struct neuron_descriptor *rx, uint64_t dst,
					  uint64_t src, uint32_t bytes, bool barrier)
{
	/* A length of 65536 is written as 0. */
	uint32_t length = bytes & 0xffff;

	tx->control = htole32(length | DESC_RING_ID_1 | DESC_FIRST | DESC_LAST);
	tx->meta = htole32(META_COPY | (barrier ? META_WRITE_BARRIER : 0));
	tx->address = htole64(src);
	rx->control = htole32(length | DESC_RING_ID_1);
	rx->meta = 0;
	rx->address = htole64(dst);
}

NEURON_EXPORT int neuron_queue_init(struct neuron_device *device,
				    const struct neuron_queue_setup *setup, size_t count)
{
	struct neuron_ioctl_dma_queue_init_batch *batch;
	int ret = 0;

	for (size_t i = 0; i < count; i++) {
		const struct neuron_queue_setup *s = &setup[i];

		if ((s->tx && s->tx_slots > s->tx->bytes / sizeof(struct neuron_descriptor)) ||
		    (s->rx && s->rx_slots > s->rx->bytes / sizeof(struct neuron_descriptor)))
			return -EINVAL;
	}
	batch = malloc(sizeof(*batch));
	if (!batch)
		return -ENOMEM;
	while (count && !ret) {
		size_t n = count < BATCH ? count : BATCH;

		/* There is room for many, which each run of a model would clear: only @n are read. */
		batch->count = (uint32_t)n;
		for (size_t i = 0; i < n; i++)
			batch->entries[i] = (struct neuron_ioctl_dma_queue_init){
				.eng_id = setup[i].engine,
				.qid = setup[i].queue,
				.tx_desc_count = setup[i].tx_slots,
				.rx_desc_count = setup[i].rx_slots,
				.tx_handle = setup[i].tx ? setup[i].tx->handle : 0,
				.rx_handle = setup[i].rx ? setup[i].rx->handle : 0,
			};
		ret = device_ioctl(device, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, batch);
		setup += n;
		count -= n;
	}
	free(batch);
	return ret;
}

NEURON_EXPORT int neuron_queue_write(struct neuron_device *device, struct neuron_mem *ring,
				     enum neuron_ring_side side, uint32_t first,
				     const struct neuron_descriptor *descriptors, uint32_t count)
{
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring->handle,
		.buffer = (void *)(uintptr_t)descriptors,
		.num_descs = count,
		.offset = (uint64_t)first * sizeof(*descriptors),
		.queue_type = side == NEURON_RING_TX ? NEURON_DMA_QUEUE_TYPE_TX :
						       NEURON_DMA_QUEUE_TYPE_RX,
	};

	if (ring->device != device || (side != NEURON_RING_TX && side != NEURON_RING_RX) ||
	    (uint64_t)first + count > ring->bytes / sizeof(*descriptors))
		return -EINVAL;
	if (!count)
		return 0;
	return device_ioctl(device, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c);
}

NEURON_EXPORT int neuron_queue_start(struct neuron_device *device, uint32_t engine,
				     uint32_t queue, uint32_t tx_count, uint32_t rx_count)
{
	struct neuron_ioctl_dma_queue_copy_start s = {
		.eng_id = engine,
		.qid = queue,
		.tx_desc_count = tx_count,
		.rx_desc_count = rx_count,
	};

	return device_ioctl(device, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s);
}

NEURON_EXPORT int neuron_queue_ack(struct neuron_device *device, uint32_t engine,
				   uint32_t queue, uint32_t count)
{
	struct neuron_ioctl_dma_ack_completed a = {
		.eng_id = engine,
		.qid = queue,
		.count = count,
	};

	return device_ioctl(device, NEURON_IOCTL_DMA_ACK_COMPLETED, &a);
}

static void side_copy(struct neuron_queue_side *out, const struct neuron_dma_queue_state *in)
{
	out->hw_status = in->hw_status;
	out->sw_status = in->sw_status;
	out->base = in->base_addr;
	out->slots = in->length;
	out->head = in->head_pointer;
	out->tail = in->tail_pointer;
}

NEURON_EXPORT int neuron_queue_get_state(struct neuron_device *device, uint32_t engine,
					 uint32_t queue, struct neuron_queue_state *state)
{
	struct neuron_dma_queue_state tx = { 0 }, rx = { 0 };
	struct neuron_ioctl_dma_queue_get_state g = {
		.eng_id = engine,
		.qid = queue,
		.tx = &tx,
		.rx = &rx,
	};
	struct neuron_queue_state out = { 0 };
	int ret;

	if (!result_valid(state))
		return -EINVAL;
	ret = device_ioctl(device, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &g);
	if (ret)
		return ret;
	side_copy(&out.tx, &tx);
	side_copy(&out.rx, &rx);
	result_copy(state, &out, sizeof(out));
	return 0;
}

/*
 * Existing drivers accept DMA_QUEUE_RELEASE and keep the queue.  A queue that is
 * set up without rings is stopped and holds no memory, which is what is wanted.
 */
NEURON_EXPORT int neuron_queue_release(struct neuron_device *device, uint32_t engine,
				       uint32_t queue)
{
	struct neuron_ioctl_dma_queue_init i = { .eng_id = engine, .qid = queue };
	struct neuron_ioctl_dma_queue_release r = { .eng_id = engine, .qid = queue };

	return device_ioctl(device, NEURON_IOCTL_DMA_QUEUE_INIT, &i) ?:
	       device_ioctl(device, NEURON_IOCTL_DMA_QUEUE_RELEASE, &r);
}
