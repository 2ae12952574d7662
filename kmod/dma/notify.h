/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification queues. */
#ifndef NEURON_DMA_NOTIFY_H
#define NEURON_DMA_NOTIFY_H

#include <linux/types.h>

struct neuron_device;

void neuron_nqs_hold(struct neuron_device *nd, u32 core);

#endif
