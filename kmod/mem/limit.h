/* SPDX-License-Identifier: GPL-2.0-only */
/* Limits of memory, and charges to them. */
#ifndef NEURON_MEM_LIMIT_H
#define NEURON_MEM_LIMIT_H

#include <linux/types.h>

struct neuron_chunk;
struct neuron_client;

bool neuron_limit_charge(struct neuron_chunk *chunk, u64 bytes, u64 *limit);
void neuron_limit_uncharge(struct neuron_chunk *chunk, u64 bytes);
int neuron_limit_core(const struct neuron_client *client, u32 core);
u64 neuron_host_limit(bool process);
bool neuron_limit_charge_host(struct neuron_client *client, u64 bytes, u64 *limit);
void neuron_limit_uncharge_host(struct neuron_client *client, u64 bytes);

#endif
