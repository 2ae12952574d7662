// SPDX-License-Identifier: GPL-2.0-only
/*
 * The peer API (uapi/FACTS.md 8): another driver learns where mapped memory is,
 * and is told when it must forget the address.
 *
 * A registration holds the chunk until the peer unregisters it or, once the process no
 * longer maps the memory, the peer's callback has run.  It holds the pages, too, because
 * the device may go earlier.  Where there are none, the callback runs before the device goes.
 */
#include <linux/completion.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "../base/hw.h"
#include "dmabuf.h"
#include "map.h"
#include "neuron_p2p.h"
#include "peer.h"
#include "watch.h"

/* From this size on, pages of 2 MiB are reported (uapi/FACTS.md 8). */
#define NEURON_PEER_LARGE	SZ_256M

/**
 * struct neuron_peer - a registration
 * @node: in neuron_mapping.peers; empty once it is being taken back
 * @all: if the memory has no pages: in neuron_peers_io as long as @node is in its list, then in
 *	 neuron_peers_told until the peer has been told
 * @nd: the device
 * @chunk: held until the peer has forgotten the memory
 * @watch: of @chunk, for watch.c
 * @callback: tells the peer to forget the memory
 * @data: for the callback
 * @revoker: runs the callback
 * @revoked: the callback has returned
 * @orphan: unregistered by its own callback
 * @info: what the peer sees
 */
struct neuron_peer {
	struct list_head node;
	struct list_head all;
	struct neuron_device *nd;
	struct neuron_chunk *chunk;
	struct neuron_watch *watch;
	void (*callback)(void *data);
	void *data;
	struct task_struct *revoker;
	struct completion revoked;
	bool orphan;
	struct neuron_p2p_va_info info;
};

/* Guards the lists of peers and their revocation. */
static DEFINE_SPINLOCK(neuron_peer_lock);
/* Registrations that end with their device. */
static LIST_HEAD(neuron_peers_io);
static LIST_HEAD(neuron_peers_told);
static DECLARE_WAIT_QUEUE_HEAD(neuron_peer_wait);

static void neuron_peer_pages(struct neuron_peer *peer, bool hold)
{
	u32 i, k, shift = peer->info.shift_page_size - PAGE_SHIFT;

	if (!neuron_chunk_has_pages(peer->chunk))
		return;
	for (i = 0; i < peer->info.entries; i++) {
		struct neuron_p2p_page_info *run = &peer->info.page_info[i];
		struct page *page = pfn_to_page(PHYS_PFN(run->physical_address));

		for (k = 0; k < run->page_count << shift; k++)
			if (hold)
				get_page(page + k);
			else
				put_page(page + k);
		cond_resched();
	}
}

/* The peer does not use the memory any more. */
static void neuron_peer_let_go(struct neuron_peer *peer)
{
	neuron_peer_pages(peer, false);
	neuron_unwatch(peer->watch);
	neuron_chunk_unuse(peer->chunk, NEURON_USER_PEER);
}

/* Tell a peer.  Drops the lock and takes it again; @peer may be gone then. */
static void neuron_peer_tell(struct neuron_peer *peer)
{
	bool orphan;

	list_del_init(&peer->node);
	if (!list_empty(&peer->all))
		list_move(&peer->all, &neuron_peers_told);
	peer->revoker = current;
	spin_unlock(&neuron_peer_lock);
	peer->callback(peer->data);
	neuron_peer_let_go(peer);
	spin_lock(&neuron_peer_lock);
	peer->chunk = NULL;
	list_del_init(&peer->all);
	wake_up_all(&neuron_peer_wait);
	orphan = peer->orphan;
	/* Unless @peer is an orphan, it may be freed from here on. */
	complete(&peer->revoked);
	if (orphan) {
		spin_unlock(&neuron_peer_lock);
		kvfree(peer);
		spin_lock(&neuron_peer_lock);
	}
}

/* No piece of a mapping is mapped any more.  When this returns, no peer uses the memory. */
static void neuron_peer_revoke(struct neuron_mapping *mapping)
{
	spin_lock(&neuron_peer_lock);
	while (!list_empty(&mapping->peers))
		neuron_peer_tell(list_first_entry(&mapping->peers, struct neuron_peer, node));
	spin_unlock(&neuron_peer_lock);
}

static struct neuron_peer *neuron_peer_of(struct list_head *peers, struct neuron_device *nd)
{
	struct neuron_peer *peer;

	list_for_each_entry(peer, peers, all)
		if (peer->nd == nd)
			return peer;
	return NULL;
}

/* Has every peer been told that another thread began to tell? */
static bool neuron_peers_forgot(struct neuron_device *nd)
{
	bool forgot;

	spin_lock(&neuron_peer_lock);
	forgot = !neuron_peer_of(&neuron_peers_told, nd);
	spin_unlock(&neuron_peer_lock);
	return forgot;
}

/**
 * neuron_peers_revoke() - no peer may use memory that goes with its device
 * @nd: device; gone, so that no peer is added
 *
 * Context: may sleep, without locks that callbacks take; not in a callback.
 */
void neuron_peers_revoke(struct neuron_device *nd)
{
	struct neuron_peer *peer;

	spin_lock(&neuron_peer_lock);
	while ((peer = neuron_peer_of(&neuron_peers_io, nd)))
		neuron_peer_tell(peer);
	spin_unlock(&neuron_peer_lock);
	wait_event(neuron_peer_wait, neuron_peers_forgot(nd));
}

/*
 * Describe @len bytes of a chunk: count the physically contiguous runs, collect
 * the address bits of their borders, and with @info note the runs.  Inside of
 * neuron_device_enter().
 */
static int neuron_peer_runs(struct neuron_chunk *chunk, u64 off, u64 len, u64 *bits,
			    struct neuron_p2p_va_info *info, u32 *count)
{
	u64 pos, phys, start = 0, end = 0;
	unsigned long pfn;
	u32 n = 0;
	int err;

	for (pos = 0; pos < len; pos += PAGE_SIZE) {
		err = neuron_chunk_frame(chunk, off + pos, &pfn);
		if (err)
			return err;
		phys = PFN_PHYS(pfn);
		if (!n || phys != end) {
			*bits |= phys | end;
			start = phys;
			if (info)
				info->page_info[n].physical_address = phys;
			n++;
		}
		end = phys + PAGE_SIZE;
		if (info)
			info->page_info[n - 1].page_count =
				(end - start) >> info->shift_page_size;
		if (!(pos & (SZ_1M - 1))) {
			if (fatal_signal_pending(current))
				return -EINTR;
			cond_resched();
		}
	}
	*bits |= end;
	*count = n;
	return 0;
}

/**
 * neuron_p2p_register_va() - learn where mapped memory of a device is
 * @virtual_address: address in the calling process; whole pages
 * @length: bytes, whole pages, inside of one mapping
 * @va_info: the memory; valid until neuron_p2p_unregister_va()
 * @free_callback: called once, when the process does not map the memory any
 *	more or a card goes, unless it was unregistered before.  When it returns, the peer must
 *	not use the memory any more.  May sleep, must not touch user memory, nor wait
 *	for a card to be removed, which waits for it, and may call
 *	neuron_p2p_unregister_va().
 * @data: for the callback
 *
 * Context: may sleep, mmap lock not held.
 * Return: 0; -EINVAL no such mapping, not whole pages, no callback; -EPERM the
 *	   mapping is only for reading; -ENOMEM; -EINTR; -ENODEV the device
 *	   is gone; -ENXIO memory that others cannot reach.
 */
int neuron_p2p_register_va(u64 virtual_address, u64 length, struct neuron_p2p_va_info **va_info,
			   void (*free_callback)(void *data), void *data)
{
	struct neuron_mapping *mapping;
	struct neuron_peer *peer = NULL;
	struct neuron_device *nd;
	u64 off, bits = 0;
	int idx, err;
	bool write;
	u32 count;

	if (!va_info || !free_callback || !PAGE_ALIGNED(virtual_address) || !length ||
	    !PAGE_ALIGNED(length))
		return -EINVAL;
	mapping = neuron_mapping_get(virtual_address, length, &off, &write);
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	nd = mapping->chunk->client->nd;
	err = write ? 0 : -EPERM;
	if (!err && !neuron_device_enter(nd, &idx))
		err = -ENODEV;
	if (err)
		goto put;

	err = neuron_peer_runs(mapping->chunk, off, length, &bits, NULL, &count);
	if (!err) {
		peer = kvzalloc(struct_size(peer, info.page_info, count), GFP_KERNEL_ACCOUNT);
		err = peer ? 0 : -ENOMEM;
	}
	if (err)
		goto exit;
	peer->nd = nd;
	peer->callback = free_callback;
	peer->data = data;
	init_completion(&peer->revoked);
	INIT_LIST_HEAD(&peer->all);
	peer->info.virtual_address = virtual_address;
	peer->info.size = length;
	peer->info.device_index = neuron_device_index(nd);
	peer->info.shift_page_size = PAGE_SHIFT;
	if (length >= NEURON_PEER_LARGE && IS_ALIGNED(bits | virtual_address | length, SZ_2M))
		peer->info.shift_page_size = ilog2(SZ_2M);
	/* The pages stay in place as long as the chunk and the device exist. */
	err = neuron_peer_runs(mapping->chunk, off, length, &bits, &peer->info,
			       &peer->info.entries);
	if (err)
		goto exit;
	peer->chunk = neuron_chunk_ref(mapping->chunk);
	neuron_chunk_admit(peer->chunk, NEURON_USER_PEER);
	peer->watch = neuron_watch_chunk(peer->chunk, off, length, NEURON_USER_PEER);
	neuron_peer_pages(peer, true);

	spin_lock(&neuron_peer_lock);
	WRITE_ONCE(mapping->revoke, neuron_peer_revoke);
	/* Either the unmap of the last piece sees the callback, or this function sees the unmap. */
	smp_mb();
	if (!atomic_read(&mapping->areas))
		err = -EINVAL;
	else
		list_add(&peer->node, &mapping->peers);
	if (!err && !neuron_chunk_has_pages(peer->chunk))
		list_add(&peer->all, &neuron_peers_io);
	spin_unlock(&neuron_peer_lock);
	if (err)
		neuron_peer_let_go(peer);
	else
		*va_info = &peer->info;
exit:
	neuron_device_exit(nd, idx);
	if (err)
		kvfree(peer);
put:
	neuron_mapping_put(mapping);
	return err;
}
EXPORT_SYMBOL_GPL(neuron_p2p_register_va);

/**
 * neuron_p2p_unregister_va() - end a registration
 * @va_info: from neuron_p2p_register_va(); not valid afterwards
 *
 * Waits for a running callback, except when the callback itself calls it.  The callback
 * is not called after this has returned.
 *
 * Context: may sleep; without locks that the callback takes.
 * Return: 0, -EINVAL NULL.
 */
int neuron_p2p_unregister_va(struct neuron_p2p_va_info *va_info)
{
	struct neuron_peer *peer;
	bool wait, own;

	if (!va_info)
		return -EINVAL;
	peer = container_of(va_info, struct neuron_peer, info);
	spin_lock(&neuron_peer_lock);
	wait = list_empty(&peer->node);
	list_del_init(&peer->node);
	/* Otherwise its device waits for the callback. */
	if (!wait)
		list_del_init(&peer->all);
	own = wait && peer->chunk && peer->revoker == current;
	if (own)
		peer->orphan = true;
	spin_unlock(&neuron_peer_lock);
	if (own)
		return 0;
	if (wait) {
		wait_for_completion(&peer->revoked);
		/* The thread that completed it may still hold the lock. */
		spin_lock(&neuron_peer_lock);
		spin_unlock(&neuron_peer_lock);
	}
	if (!wait)
		neuron_peer_let_go(peer);
	kvfree(peer);
	return 0;
}
EXPORT_SYMBOL_GPL(neuron_p2p_unregister_va);
