/* SPDX-License-Identifier: GPL-2.0-only */
/* Host memory of chunks. */
#ifndef NEURON_MEM_HOST_H
#define NEURON_MEM_HOST_H

#include "../base/client.h"
#include "chunk.h"

/* The device sees host memory through 2^40 bytes of its address space. */
#define NEURON_HOST_PAGES_MAX	((1UL << (40 - PAGE_SHIFT)) - 1)

/*
 * Memory of the driver itself, such as the copy rings, serves all processes while the
 * device is open.  It is not charged to the cgroup of the process that came first.
 */
static inline gfp_t neuron_chunk_gfp(const struct neuron_client *client)
{
	return client->kernel ? GFP_KERNEL : GFP_KERNEL_ACCOUNT;
}

int neuron_host_map(struct neuron_device *nd, struct neuron_chunk *chunk);
void neuron_host_detach(struct neuron_device *nd);
int neuron_host_alloc(struct neuron_device *nd, struct neuron_chunk *chunk,
		      struct neuron_failure *why);
void neuron_host_free(struct neuron_device *nd, struct neuron_chunk *chunk);
int neuron_chunk_rw_host(struct neuron_chunk *chunk, u64 off, void *buf, u64 len, bool write);
int neuron_chunk_rw_user(struct neuron_chunk *chunk, u64 off, void __user *buf, u64 len,
			 bool write);
int neuron_chunk_fill_host(struct neuron_chunk *chunk, u64 off, u8 value, u64 len);

#endif
