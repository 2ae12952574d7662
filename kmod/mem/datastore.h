/* SPDX-License-Identifier: GPL-2.0-only */
/* Datastores: memory in which a process publishes counters. */
#ifndef NEURON_MEM_DATASTORE_H
#define NEURON_MEM_DATASTORE_H

#include <linux/types.h>

struct neuron_chunk;
struct neuron_client;
struct neuron_device;

void neuron_datastore_release(struct neuron_client *client);
struct neuron_chunk *neuron_datastore_find(struct neuron_device *nd, u64 addr);
void neuron_nds_read(struct neuron_device *nd, u32 core, u32 counter, u64 *total, u64 *present);
void neuron_nds_clear(struct neuron_device *nd, u32 core, u32 counter, bool total);

#endif
