// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory counters that sysfs shows.  The figures that must add up exactly
 * change under the HBM's lock (hbm.c); these are the same bytes seen by
 * category and core, readable one by one without any lock.
 */
#include "../base/client.h"
#include "../base/core.h"
#include "account.h"
#include "chunk.h"

/**
 * neuron_category() - category to charge
 * @type: category that the caller asked for
 * @host: host or device memory
 *
 * Unknown categories, and those of the other kind of memory, are charged as
 * uncategorized (uapi/FACTS.md 4), so that nothing ever escapes the sums.
 *
 * Return: a mem_alloc_category_t that fits @host.
 */
u32 neuron_category(u32 type, bool host)
{
	bool is_host = type <= NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST ||
		       type == NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST;

	if (type >= NEURON_NR_CATEGORIES || is_host != host)
		return host ? NEURON_MEMALLOC_TYPE_UNKNOWN_HOST :
			      NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE;
	return type;
}

/**
 * neuron_category_name() - name of a category, that of its directory in sysfs
 * @type: mem_alloc_category_t
 */
const char *neuron_category_name(u32 type)
{
	static const char * const names[NEURON_NR_CATEGORIES] = {
		[NEURON_MEMALLOC_TYPE_UNKNOWN_HOST] = "uncategorized",
		[NEURON_MEMALLOC_TYPE_CODE_HOST] = "dma_buffers",
		[NEURON_MEMALLOC_TYPE_TENSORS_HOST] = "tensors",
		[NEURON_MEMALLOC_TYPE_CONSTANTS_HOST] = "constants",
		[NEURON_MEMALLOC_TYPE_MISC_HOST] = "application_memory",
		[NEURON_MEMALLOC_TYPE_NCDEV_HOST] = "driver_memory",
		[NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST] = "notifications",
		[NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE] = "uncategorized",
		[NEURON_MEMALLOC_TYPE_CODE_DEVICE] = "model_code",
		[NEURON_MEMALLOC_TYPE_TENSORS_DEVICE] = "tensors",
		[NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE] = "constants",
		[NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE] = "model_shared_scratchpad",
		[NEURON_MEMALLOC_TYPE_MISC_DEVICE] = "runtime_memory",
		[NEURON_MEMALLOC_TYPE_NCDEV_DEVICE] = "driver_memory",
		[NEURON_MEMALLOC_TYPE_COLLECTIVES_DEVICE] = "collectives",
		[NEURON_MEMALLOC_TYPE_SCRATCHPAD_NONSHARED_DEVICE] = "nonshared_scratchpad",
		[NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE] = "notifications",
		[NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST] = "dma_rings",
		[NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE] = "dma_rings",
		[NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE] = "contiguous_scratchpad",
	};

	return type < NEURON_NR_CATEGORIES ? names[type] : "unknown";
}

/**
 * neuron_account() - show a chunk in sysfs
 * @chunk: the chunk; its kind, core, category and client are set
 * @bytes: its length, what it grew by, or the sum over several chunks that are charged
 *	like it
 * @last: length of the last chunk in @bytes
 * @add: allocated, else freed
 *
 * Context: process, no locks held.
 */
void neuron_account(struct neuron_chunk *chunk, u64 bytes, u64 last, bool add)
{
	struct neuron_device *nd = chunk->client->nd;
	struct neuron_core *core = &nd->core[chunk->core];
	u32 cat = chunk->category;

	/* The contiguous scratchpad shares the counter (uapi/FACTS.md 4). */
	if (cat == NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE)
		cat = NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE;

	if (chunk->host) {
		neuron_counter_change(nd, &nd->host_category[cat], bytes, last, add);
		neuron_counter_change(nd, &nd->host_mem, bytes, last, add);
		neuron_counter_change(nd, &core->host_mem, bytes, last, add);
		atomic64_add(add ? bytes : -bytes, &chunk->client->host_bytes);
		if (chunk->owner)
			atomic64_add(add ? bytes : -bytes, &chunk->owner->host_bytes);
	} else {
		neuron_counter_change(nd, &core->category[cat], bytes, last, add);
		neuron_counter_change(nd, &core->device_mem, bytes, last, add);
	}
}
