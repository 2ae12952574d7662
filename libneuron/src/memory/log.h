/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last allocations of device memory through a handle, if the program asked for them. */
#ifndef NEURON_LIB_LOG_H
#define NEURON_LIB_LOG_H

#include "mem.h"

enum memlog_op {
	MEMLOG_ALLOC,
	MEMLOG_FREE,
	MEMLOG_GROW,
	MEMLOG_SHRINK,
};

/* Host memory is not logged; without a log this does nothing.  @reason: enum
 * neuron_mem_reason of one that failed, 0 */
void memlog_add(struct neuron_device *device, enum memlog_op op, const struct neuron_mem *mem,
		uint64_t bytes, uint64_t align, uint32_t reason);

#endif
