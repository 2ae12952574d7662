/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes whose allocations a caller may know. */
#ifndef NEURON_MEM_DUMP_H
#define NEURON_MEM_DUMP_H

#include "../base/device.h"

struct neuron_call;
struct neuron_client;

/**
 * struct neuron_dump_source - allocations of one process
 * @client: the process, with a reference
 * @next: its next allocation
 * @valid: @next is filled in
 */
struct neuron_dump_source {
	struct neuron_client *client;
	struct neuron_native_range next;
	bool valid;
};

struct neuron_dump_source *neuron_dump_begin(struct neuron_call *call, bool users, u64 from,
					     u64 end, u32 *nr);
void neuron_dump_end(struct neuron_dump_source *src, u32 n);

#endif
