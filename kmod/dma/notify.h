/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification queues. */
#ifndef NEURON_DMA_NOTIFY_H
#define NEURON_DMA_NOTIFY_H

#include <linux/types.h>

struct eventfd_ctx;
struct neuron_chunk;
struct neuron_device;
struct neuron_watch;

/**
 * struct neuron_nq - a notification queue in use
 * @chunk: its buffer
 * @watch: of @chunk, for mem/watch.c
 * @eventfd: signalled at new entries, under core.nq_lock
 */
struct neuron_nq {
	struct neuron_chunk *chunk;
	struct neuron_watch *watch;
	struct eventfd_ctx *eventfd;
};

void neuron_nqs_release(struct neuron_device *nd, u32 core);
void neuron_nqs_wake(struct neuron_device *nd, u32 core);

#endif
