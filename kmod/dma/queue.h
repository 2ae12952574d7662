/* SPDX-License-Identifier: GPL-2.0-only */
/* DMA queues of processes. */
#ifndef NEURON_DMA_QUEUE_H
#define NEURON_DMA_QUEUE_H

#include <linux/mutex.h>

#include "../base/neuron_hw.h"

struct neuron_chunk;
struct neuron_client;
struct neuron_device;
struct neuron_ioctl_dma_queue_init;
struct neuron_watch;

/**
 * struct neuron_queue - a DMA queue pair in use
 * @client: owner
 * @ring: ring memory by direction (enum neuron_dma_queue_type), may be NULL
 * @watch: of @ring, for mem/watch.c
 * @length: descriptors by direction
 * @completed: software completion index by direction
 */
struct neuron_queue {
	struct neuron_client *client;
	struct neuron_chunk *ring[2];
	struct neuron_watch *watch[2];
	u32 length[2];
	u32 completed[2];
};

/**
 * struct neuron_engine - a DMA engine
 * @lock: @queue
 * @queue: queues in use
 */
struct neuron_engine {
	struct mutex lock;
	struct neuron_queue *queue[NEURON_HW_QUEUES_PER_ENGINE];
};

bool neuron_engine_is_kernel(struct neuron_device *nd, u32 eng);
int neuron_queue_init(struct neuron_client *client, const struct neuron_ioctl_dma_queue_init *arg);
void neuron_queue_drop(struct neuron_device *nd, u32 eng, u32 q);
void neuron_queues_release(struct neuron_client *client);
void neuron_engine_release(struct neuron_client *client, u32 eng);
bool neuron_queue_is_kernel(struct neuron_device *nd, u32 eng, u32 q, u32 *core);

#endif
