/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies that go on after the call. */
#ifndef NEURON_DMA_ASYNC_H
#define NEURON_DMA_ASYNC_H

#include <linux/types.h>

struct neuron_client;

void neuron_async_exit(struct neuron_client *client);

#endif
