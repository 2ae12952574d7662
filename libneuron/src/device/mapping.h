/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that the process has mapped, and what it had mapped last, for addresses of faults. */
#ifndef NEURON_LIB_MAPPING_H
#define NEURON_LIB_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include <neuron/neuron.h>

struct mapping {
	struct mapping *prev, *next;	/* of the device, its mappings_lock */
	uint64_t va, mapped;
	uint64_t address, bytes;	/* of the memory, for the device */
	uint64_t freed;			/* CLOCK_MONOTONIC, nanoseconds; 0: it is mapped */
	uint32_t nc, owner;
	enum neuron_mem_category category;
};

/* A copy that the device knows; NULL without memory. */
struct mapping *mapping_add(struct neuron_device *device, const struct mapping *mapping);
/* It is unmapped.  The last ones are kept, not longer than the device. */
void mapping_retire(struct neuron_device *device, struct mapping *mapping);
/* What is mapped at an address of the process, or with @freed was last; false: nothing. */
bool mapping_find(struct neuron_device *device, const void *pointer, bool freed,
		  struct mapping *out);
/* The device is closed, and all memory freed. */
void mappings_free(struct neuron_device *device);

#endif
