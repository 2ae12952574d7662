/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Snapshots of a device memory that refused a request. */
#ifndef NEURON_LIB_SNAPSHOT_H
#define NEURON_LIB_SNAPSHOT_H

#include <neuron/neuron.h>

/*
 * A request was refused: if NEURON_MEMORY_DUMP names a directory, a snapshot goes there.  A
 * file that cannot be written is nothing that the program could do something about.
 */
void mem_dump(struct neuron_device *device, const struct neuron_mem_failure *failure);
/* A snapshot of that memory, and who would have to go: "refused". */
int mem_snapshot_refused(struct neuron_device *device, const struct neuron_mem_failure *failure,
			 char **json);

#endif
