/* SPDX-License-Identifier: GPL-2.0-only */
/* A process attaches to a device and detaches from it. */
#ifndef NEURON_CORE_ATTACH_H
#define NEURON_CORE_ATTACH_H

#include <linux/types.h>

struct neuron_client;
struct neuron_device;

int neuron_client_attach(struct neuron_device *nd, struct neuron_client **client);
void neuron_client_detach(struct neuron_client *client);
void neuron_client_exit(struct neuron_client *client);

#endif
