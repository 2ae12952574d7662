// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spaces: which device addresses a process may reach by DMA.
 *
 * A device that isolates asks for every address in a ring or a descriptor, as it would ask
 * an IOMMU.  A pin holds the memory until it is put.
 */
#include <linux/overflow.h>

#include "../base/core.h"
#include "handle.h"
#include "space.h"
#include "watch.h"

static bool neuron_in(u64 base, u64 size, u64 addr, u64 len)
{
	return addr >= base && addr - base < size && len <= size - (addr - base);
}

/**
 * neuron_pin_window() - resolve an address in the window of a core
 * @pin: filled in
 * @nd: device
 * @core: from neuron_space_core()
 * @addr: device address
 *
 * Context: any.
 */
void neuron_pin_window(struct neuron_pin *pin, struct neuron_device *nd, u32 core, u64 addr)
{
	pin->kind = NEURON_TARGET_CORE;
	pin->index = core;
	pin->off = addr - nd->geo->tpb_base[core];
	pin->pages = NULL;
	pin->chunk = NULL;
	pin->watch = NULL;
}

static int neuron_pin_core(struct neuron_device *nd, struct neuron_client *client,
			   u64 addr, u64 len, struct neuron_pin *pin)
{
	u32 core = neuron_space_core(nd, addr, len);

	if (core == nd->geo->nr_cores ||
	    (client && READ_ONCE(nd->core[core].owner) != client))
		return -EACCES;
	neuron_pin_window(pin, nd, core, addr);
	return 0;
}

/**
 * neuron_pin_chunk() - resolve an address in a chunk
 * @pin: filled in
 * @chunk: the pin takes over a reference
 * @addr: device address
 * @len: bytes; the range is inside of the chunk
 * @as: what the chunk counts this user as; ends with the pin
 *
 * Context: process.
 */
void neuron_pin_chunk(struct neuron_pin *pin, struct neuron_chunk *chunk, u64 addr, u64 len,
		      enum neuron_user as)
{
	pin->watch = neuron_watch_chunk(chunk, addr - chunk->addr, len, NEURON_USER_TRANSFER);
	pin->chunk = chunk;
	pin->counted = as;
	if (chunk->host) {
		pin->kind = NEURON_TARGET_HOST;
		pin->index = 0;
		pin->off = addr - chunk->addr;
		pin->pages = chunk->pages;
	} else {
		pin->kind = NEURON_TARGET_HBM;
		pin->index = chunk->hbm;
		pin->off = chunk->block.addr + (addr - chunk->addr);
		pin->pages = NULL;
	}
}

static int neuron_pin_host(struct neuron_device *nd, u64 addr, u64 len, struct neuron_pin *pin)
{
	struct neuron_chunk *chunk;

	rcu_read_lock();
	chunk = mtree_load(&nd->host_pages, (addr & ~nd->geo->host_window) >> PAGE_SHIFT);
	if (chunk && !kref_get_unless_zero(&chunk->ref))
		chunk = NULL;
	rcu_read_unlock();
	if (!chunk)
		return -EACCES;
	if (addr < chunk->addr || neuron_chunk_range(chunk, addr - chunk->addr, len)) {
		neuron_chunk_put(chunk);
		return -EACCES;
	}
	/* The caller on whose behalf the driver acts is the counted user. */
	neuron_pin_chunk(pin, chunk, addr, len, NEURON_USER_NONE);
	return 0;
}

/**
 * neuron_device_pin() - resolve an address that the driver itself chose
 * @nd: device
 * @addr: device address
 * @len: bytes, not 0
 * @write: the device will write
 * @pin: filled in; put with neuron_pin_put()
 *
 * Context: process, no spinlocks held.
 * Return: 0; -EACCES nothing is there; -EOVERFLOW.
 */
int neuron_device_pin(struct neuron_device *nd, u64 addr, u64 len, bool write,
		      struct neuron_pin *pin)
{
	u64 end;
	u32 i;

	if (!len || check_add_overflow(addr, len - 1, &end))
		return -EOVERFLOW;
	if (neuron_in(nd->geo->host_window, nd->geo->host_window, addr, 1))
		return neuron_pin_host(nd, addr, len, pin);

	for (i = 0; i < nd->geo->nr_hbms; i++) {
		const struct neuron_hbm_geometry *hbm = &nd->geo->hbm[i];

		if (neuron_in(hbm->base, hbm->size, addr, len)) {
			pin->kind = NEURON_TARGET_HBM;
			pin->index = i;
			pin->off = addr - hbm->base;
			pin->pages = NULL;
			pin->chunk = NULL;
			pin->watch = neuron_watch(nd, i, pin->off, len, NEURON_USER_TRANSFER);
			return 0;
		}
	}
	return neuron_pin_core(nd, NULL, addr, len, pin);
}
NEURON_EXPORT_SYMBOL(neuron_device_pin);

/**
 * neuron_space_pin() - check and resolve an address found in a ring
 * @space: space of the queue
 * @addr: device address
 * @len: bytes, not 0
 * @write: the device will write
 * @pin: filled in; put with neuron_pin_put()
 *
 * A process reaches its own chunks, all of them readable and, but for rings that the
 * driver checks, writable, and the windows of the cores it owns.
 *
 * Context: process, no spinlocks held.
 * Return: 0; -EACCES not its memory; -EOVERFLOW.
 */
int neuron_space_pin(struct neuron_space *space, u64 addr, u64 len, bool write,
		     struct neuron_pin *pin)
{
	struct neuron_client *client = space->client;
	enum neuron_user as = write ? NEURON_USER_TRANSFER : NEURON_USER_READER;
	struct neuron_chunk *chunk;
	u64 end;

	if (client->kernel)
		return neuron_device_pin(client->nd, addr, len, write, pin);
	if (!len || check_add_overflow(addr, len - 1, &end))
		return -EOVERFLOW;

	chunk = neuron_chunk_find(client, addr, len, as);
	if (!chunk)
		return neuron_pin_core(client->nd, client, addr, len, pin);
	neuron_pin_chunk(pin, chunk, addr, len, as);
	return 0;
}
NEURON_EXPORT_SYMBOL(neuron_space_pin);

/**
 * neuron_pin_put() - end an access
 * @pin: from neuron_space_pin() or neuron_device_pin()
 *
 * Context: may sleep.
 */
void neuron_pin_put(struct neuron_pin *pin)
{
	neuron_unwatch(pin->watch);
	pin->watch = NULL;
	if (pin->chunk && pin->counted)
		neuron_chunk_unuse(pin->chunk, pin->counted);
	else
		neuron_chunk_put(pin->chunk);
	pin->chunk = NULL;
}
NEURON_EXPORT_SYMBOL(neuron_pin_put);
