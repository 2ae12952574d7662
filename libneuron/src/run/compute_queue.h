/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A DMA queue of a core that the host drives.  Nobody but the core's lock keeps two threads
 * out of it.
 */
#ifndef NEURON_LIB_COMPUTE_QUEUE_H
#define NEURON_LIB_COMPUTE_QUEUE_H

#include "../isa/transfer.h"
#include "../memory/mem.h"

struct compute_queue;

/* @mem says where the rings go.  0, -EOPNOTSUPP the device cannot compute, -ENOMEM, ... */
int compute_queue_new(struct neuron_device *device, const struct neuron_mem_opts *mem,
		      struct compute_queue **queue);
/* NULL is allowed.  True: the driver did not let go of it, until the core is reset. */
bool compute_queue_free(struct compute_queue *queue);
/* Let the device do a transfer, and wait for it. */
int compute_queue_run(struct compute_queue *queue, struct transfer *t, int timeout_ms);
/* Behind an error: it must not write any more.  True: as of compute_queue_free(). */
bool compute_queue_stop(struct compute_queue *queue);

#endif
