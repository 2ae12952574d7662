// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device-memory cgroup controller: each HBM is a region, "neuron/neuronN/hbmM",
 * and an allocation is charged to the cgroup of the process that makes it.
 */
#include <linux/err.h>

#include "../base/client.h"
#include "chunk.h"
#include "dmem.h"
#include "hbm.h"

#ifdef NEURON_DMEM
#include <linux/cgroup_dmem.h>

/**
 * neuron_dmem_init() - make an HBM known to the controller
 * @nd: device; it has its name
 * @hbm: HBM
 * @size: bytes that can be allocated
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int neuron_dmem_init(struct neuron_device *nd, struct neuron_hbm *hbm, u64 size)
{
	struct dmem_cgroup_init init = { .size = size };
	struct dmem_cgroup_region *region;

	region = dmem_cgroup_register_region(&init, "neuron/%s/hbm%u", dev_name(&nd->dev),
					     hbm->index);
	if (IS_ERR(region))
		return PTR_ERR(region);
	hbm->dmem = region;
	return 0;
}

/**
 * neuron_dmem_exit() - undo neuron_dmem_init()
 * @hbm: HBM; may not have got that far
 *
 * Context: may sleep.
 */
void neuron_dmem_exit(struct neuron_hbm *hbm)
{
	dmem_cgroup_unregister_region(hbm->dmem);
	hbm->dmem = NULL;
}

/*
 * No cgroup is charged for the driver's own memory.  A request for more than the HBM has
 * fails anyway; charged until then, it would make requests of others under the same limit
 * fail.
 */
static bool neuron_dmem_counts(const struct neuron_chunk *chunk, u64 bytes)
{
	struct neuron_client *client = chunk->client;

	return !client->kernel && bytes <= client->nd->geo->hbm[chunk->hbm].size;
}

/**
 * neuron_dmem_charge() - charge an allocation to the cgroup of the calling process
 * @hbm: HBM
 * @chunk: its size, HBM and client are set
 *
 * Context: may sleep.
 * Return: 0; -EAGAIN a limit was reached; -ENOMEM.
 */
int neuron_dmem_charge(struct neuron_hbm *hbm, struct neuron_chunk *chunk)
{
	chunk->dmem = NULL;
	if (!neuron_dmem_counts(chunk, chunk->size))
		return 0;
	return dmem_cgroup_try_charge(hbm->dmem, chunk->size, &chunk->dmem, NULL);
}

/**
 * neuron_dmem_grow() - charge the bytes that a chunk will grow by
 * @hbm: HBM
 * @chunk: the chunk; its process must be in the cgroup that is charged already
 * @more: bytes
 *
 * Context: may sleep, grow_lock of the device held.
 * Return: 0; -EAGAIN a limit was reached, or another cgroup; -ENOMEM.
 */
int neuron_dmem_grow(struct neuron_hbm *hbm, struct neuron_chunk *chunk, u64 more)
{
	struct dmem_cgroup_pool_state *pool;
	int err;

	if (!neuron_dmem_counts(chunk, more))
		return 0;
	err = dmem_cgroup_try_charge(hbm->dmem, more, &pool, NULL);
	if (err)
		return err;
	if (pool != chunk->dmem) {
		dmem_cgroup_uncharge(pool, more);
		return -EAGAIN;
	}
	chunk->dmem_extra++;
	return 0;
}

/**
 * neuron_dmem_shrink() - undo neuron_dmem_grow()
 * @chunk: the chunk
 * @more: bytes
 *
 * Context: grow_lock of the device held.
 */
void neuron_dmem_shrink(struct neuron_chunk *chunk, u64 more)
{
	if (!neuron_dmem_counts(chunk, more))
		return;
	dmem_cgroup_uncharge(chunk->dmem, more);
	chunk->dmem_extra--;
}

/**
 * neuron_dmem_cut() - a chunk got shorter
 * @chunk: the chunk
 * @less: bytes
 *
 * Context: grow_lock of the device held.
 */
void neuron_dmem_cut(struct neuron_chunk *chunk, u64 less)
{
	if (!chunk->dmem)
		return;
	/* The remaining bytes are uncharged with the first charge, which must hold the pool. */
	if (chunk->dmem_extra)
		neuron_dmem_shrink(chunk, less);
	else
		chunk->dmem_kept += less;
}

/**
 * neuron_dmem_uncharge() - the memory of a chunk is free again
 * @chunk: the chunk; the cgroup that allocated it gets the credit, whichever process
 *	frees it
 *
 * Context: any.
 */
void neuron_dmem_uncharge(struct neuron_chunk *chunk)
{
	if (!chunk->dmem)
		return;
	/* Each charge holds the pool. */
	while (chunk->dmem_extra) {
		dmem_cgroup_uncharge(chunk->dmem, 0);
		chunk->dmem_extra--;
	}
	dmem_cgroup_uncharge(chunk->dmem, chunk->size + chunk->dmem_kept);
	chunk->dmem = NULL;
}
#endif
