// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which counter of the datastore an allocation belongs to. */
#include "../device/datastore.h"
#include "mem.h"

static unsigned int counter_of(enum neuron_mem_category category)
{
	switch (category) {
	case NEURON_MEM_HOST_CODE: return NDS_ND_COUNTER_MEM_USAGE_CODE_HOST;
	case NEURON_MEM_HOST_TENSORS: return NDS_ND_COUNTER_MEM_USAGE_TENSORS_HOST;
	case NEURON_MEM_HOST_CONSTANTS: return NDS_ND_COUNTER_MEM_USAGE_CONSTANTS_HOST;
	case NEURON_MEM_CODE: return NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE;
	case NEURON_MEM_TENSORS: return NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE;
	case NEURON_MEM_CONSTANTS: return NDS_NC_COUNTER_MEM_USAGE_CONSTANTS_DEVICE;
	case NEURON_MEM_SCRATCHPAD:
	case NEURON_MEM_SCRATCHPAD_PRIVATE:
	case NEURON_MEM_SCRATCHPAD_CONTIGUOUS: return NDS_NC_COUNTER_MEM_USAGE_SCRATCHPAD_DEVICE;
	default: return category_host(category) ? NDS_ND_COUNTER_MEM_USAGE_MISC_HOST :
						  NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE;
	}
}

void mem_count(struct neuron_mem *mem, uint64_t bytes)
{
	const struct neuron_device *device = mem->device;
	uint64_t before = mem->counted;

	if (!atomic_load(&device->datastore) || device_inherited(device))
		return;
	mem->counted = round_up(bytes, host_page());
	/* Modulo 2^64: also less. */
	if (category_host(mem->category))
		stats_add_host(device, counter_of(mem->category), mem->counted - before);
	else
		stats_add(device, mem->nc, counter_of(mem->category), mem->counted - before);
}
