/* SPDX-License-Identifier: GPL-2.0-only */
/* Who asks for the reset of cores. */
#ifndef NEURON_CORE_RESET_H
#define NEURON_CORE_RESET_H

struct neuron_client;

void neuron_cores_release(struct neuron_client *client);
int neuron_cores_reset(struct neuron_client *client, unsigned long map);

#endif
