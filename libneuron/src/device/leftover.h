/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that the driver did not take back yet. */
#ifndef NEURON_LIB_LEFTOVER_H
#define NEURON_LIB_LEFTOVER_H

#include <stdint.h>

struct neuron_device;

/* Memory to be given back to the driver. */
struct leftover {
	struct leftover *next;
	uint64_t handle;
	/*
	 * A notification queue's: mapped at @va, and the driver may have replaced it, so
	 * that its handle is gone or another's. What is mapped keeps its address, by
	 * which it is told apart. NULL: the handle is ours for certain.
	 */
	void *va;
	uint64_t mapped;
	uint64_t mmap_offset;
};

/*
 * Give memory back. What the driver refuses, for another reason than that it has no such
 * memory, is kept and tried again with the next memory that is given back, and when the
 * device is closed.
 */
void device_give_back(struct neuron_device *device, const struct leftover *what);
/* The device is about to be closed: try a last time; then the driver takes everything. */
void device_forget_leftovers(struct neuron_device *device);

#endif
