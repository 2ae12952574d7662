/* SPDX-License-Identifier: GPL-2.0-only */
/* How applications learn of new entries in notification queues. */
#ifndef NEURON_DMA_NQ_EVENT_H
#define NEURON_DMA_NQ_EVENT_H

#include <linux/types.h>
#include <linux/workqueue.h>

#include "../base/reset.h"

struct eventfd_ctx;
struct neuron_chunk;
struct neuron_device;
struct neuron_watch;

/**
 * struct neuron_nq - a notification queue in use
 * @held: when it is not in use any more, but hardware may not know
 * @chunk: its buffer
 * @size: of the ring, bytes
 * @watch: of @chunk, for mem/watch.c
 * @eventfd: signalled at new entries, under core.nq_lock
 * @seen: where the device wrote next when it was looked at last
 */
struct neuron_nq {
	struct neuron_held held;
	struct neuron_chunk *chunk;
	u32 size;
	struct neuron_watch *watch;
	struct eventfd_ctx *eventfd;
	u32 seen;
};

/**
 * struct neuron_nq_poll - looks for new entries in the queues of a core that have an eventfd;
 * once made, it stays until the device is freed
 * @work: the next look; queued while there is such a queue
 * @nd: device
 * @core: core number
 * @since: when there was a new entry, or a reason to expect one; nanoseconds
 * @slow: the next look is far away
 */
struct neuron_nq_poll {
	struct delayed_work work;
	struct neuron_device *nd;
	u32 core;
	u64 since;
	bool slow;
};

void neuron_nqs_wake(struct neuron_device *nd, u32 core);
u32 neuron_nq_fresh(const struct neuron_device *nd, const struct neuron_nq *q);
int neuron_nq_poll_start(struct neuron_device *nd, u32 core, u32 nq);
void neuron_nq_poll_expect(struct neuron_device *nd, u32 core);
void neuron_nq_poll_exit(struct neuron_device *nd, u32 core);

#endif
