/* SPDX-License-Identifier: GPL-2.0-only */
/* Drivers of other devices that know where memory is. */
#ifndef NEURON_MEM_PEER_H
#define NEURON_MEM_PEER_H

struct neuron_device;

void neuron_peers_revoke(struct neuron_device *nd);

#endif
