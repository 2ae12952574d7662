/* SPDX-License-Identifier: GPL-2.0-only */
/* DMA queues of processes. */
#ifndef NEURON_DMA_QUEUE_H
#define NEURON_DMA_QUEUE_H

#include <linux/mutex.h>

#include "../base/neuron_hw.h"
#include "../base/reset.h"

struct neuron_chunk;
struct neuron_client;
struct neuron_device;
struct neuron_ioctl_dma_queue_init;
struct neuron_ring;
struct neuron_watch;

/**
 * struct neuron_queue - a DMA queue pair in use
 * @held: when it is not in use any more, but hardware may not know
 * @client: owner
 * @ring: ring memory by direction (enum neuron_dma_queue_type), may be NULL
 * @checked: the same, if the driver checks what is in it
 * @watch: of @ring, for mem/watch.c
 * @length: descriptors by direction
 * @completed: software completion index by direction
 */
struct neuron_queue {
	struct neuron_held held;
	struct neuron_client *client;
	struct neuron_chunk *ring[2];
	struct neuron_ring *checked[2];
	struct neuron_watch *watch[2];
	u32 length[2];
	u32 completed[2];
};

/**
 * struct neuron_engine - a DMA engine
 * @lock: the rest
 * @aborted: a process has aborted it, and its core was not reset since
 * @stuck: queues that could not be stopped before, by bit
 * @queue: queues in use, NEURON_HW_QUEUES_PER_ENGINE entries; NULL before the first one
 */
struct neuron_engine {
	struct mutex lock;
	bool aborted;
	u32 stuck;
	struct neuron_queue **queue;
};

bool neuron_engine_is_kernel(struct neuron_device *nd, u32 eng);
int neuron_queue_init(struct neuron_client *client, const struct neuron_ioctl_dma_queue_init *arg);
int neuron_queue_drop(struct neuron_device *nd, u32 eng, u32 q);
struct neuron_queue *neuron_queue_find(struct neuron_device *nd, u32 eng, u32 q);
void neuron_engine_hold(struct neuron_device *nd, u32 eng);
bool neuron_queue_is_kernel(struct neuron_device *nd, u32 eng, u32 q, u32 *core);

#endif
