/* SPDX-License-Identifier: GPL-2.0-only */
/* Reset of a core. */
#ifndef NEURON_CORE_RESET_H
#define NEURON_CORE_RESET_H

#include <linux/types.h>

struct neuron_client;
struct neuron_device;

void neuron_core_release(struct neuron_device *nd, u32 core, struct neuron_client *client);
int neuron_core_reset(struct neuron_device *nd, u32 core, struct neuron_client *client);

#endif
