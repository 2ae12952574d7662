// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of categories, as in sysfs, and of reasons. */
#include <neuron/neuron.h>

#include "../../common/util.h"

NEURON_EXPORT const char *neuron_mem_category_name(enum neuron_mem_category category)
{
	static const char *const names[NEURON_MEM_NR_CATEGORIES] = {
		[NEURON_MEM_HOST_OTHER] = "uncategorized",
		[NEURON_MEM_HOST_CODE] = "dma_buffers",
		[NEURON_MEM_HOST_TENSORS] = "tensors",
		[NEURON_MEM_HOST_CONSTANTS] = "constants",
		[NEURON_MEM_HOST_MISC] = "application_memory",
		[NEURON_MEM_HOST_DRIVER] = "driver_memory",
		[NEURON_MEM_HOST_NOTIFICATION] = "notifications",
		[NEURON_MEM_OTHER] = "uncategorized",
		[NEURON_MEM_CODE] = "model_code",
		[NEURON_MEM_TENSORS] = "tensors",
		[NEURON_MEM_CONSTANTS] = "constants",
		[NEURON_MEM_SCRATCHPAD] = "model_shared_scratchpad",
		[NEURON_MEM_MISC] = "runtime_memory",
		[NEURON_MEM_DRIVER] = "driver_memory",
		[NEURON_MEM_COLLECTIVES] = "collectives",
		[NEURON_MEM_SCRATCHPAD_PRIVATE] = "nonshared_scratchpad",
		[NEURON_MEM_NOTIFICATION] = "notifications",
		[NEURON_MEM_HOST_RINGS] = "dma_rings",
		[NEURON_MEM_RINGS] = "dma_rings",
		[NEURON_MEM_SCRATCHPAD_CONTIGUOUS] = "model_shared_scratchpad",
	};

	return (unsigned int)category < NEURON_MEM_NR_CATEGORIES ? names[category] : "unknown";
}

NEURON_EXPORT const char *neuron_mem_reason_name(enum neuron_mem_reason reason)
{
	static const char *const names[] = {
		[NEURON_MEM_REASON_NONE] = "none",
		[NEURON_MEM_REASON_FULL] = "full",
		[NEURON_MEM_REASON_FRAGMENTED] = "fragmented",
		[NEURON_MEM_REASON_ALIGNMENT] = "alignment",
		[NEURON_MEM_REASON_CAPPED] = "capped",
		[NEURON_MEM_REASON_HOST] = "host",
	};

	return (unsigned int)reason < ARRAY_SIZE(names) ? names[reason] : "unknown";
}
