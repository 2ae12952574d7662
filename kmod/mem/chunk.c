// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: allocations, their handles and their addresses.
 *
 * A published chunk is in its client's handle table and address tree; that is
 * one reference.  Mappings, rings, notification queues, transfers, exports and
 * imports hold their own, so unpublishing (MEM_FREE, process exit) is always safe.
 * They are counted by kind, too: README.md.
 */
#include <linux/highmem.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../base/client.h"
#include "../base/devices.h"
#include "../base/trace.h"
#include "account.h"
#include "chunk.h"
#include "failure.h"
#include "hbm.h"
#include "limit.h"

static struct kmem_cache *neuron_chunk_cache;

/**
 * struct neuron_import - a handle of a chunk that was allocated elsewhere
 * @node: in client.imports
 * @chunk: held
 * @handle: in client.handles, where the entry is tagged NEURON_ENTRY_IMPORT
 */
struct neuron_import {
	struct rb_node node;
	struct neuron_chunk *chunk;
	u32 handle;
};

#define NEURON_ENTRY_IMPORT	1	/* xa_pointer_tag() */

/*
 * Most chunks that come and go are never looked for by their address.  So the
 * newest ones, up to this number, only enter the tree when somebody looks.
 */
#define NEURON_FRESH_MAX	256

/* Host memory is seen by the device through 2^40 bytes of its address space. */
#define NEURON_HOST_PAGES_MAX	((1UL << (40 - PAGE_SHIFT)) - 1)

int neuron_chunk_cache_init(void)
{
	neuron_chunk_cache = KMEM_CACHE(neuron_chunk, 0);
	return neuron_chunk_cache ? 0 : -ENOMEM;
}

void neuron_chunk_cache_exit(void)
{
	rcu_barrier();
	kmem_cache_destroy(neuron_chunk_cache);
}

static void neuron_chunk_free_rcu(struct rcu_head *rcu)
{
	kmem_cache_free(neuron_chunk_cache, container_of(rcu, struct neuron_chunk, rcu));
}

static void neuron_host_free(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long index = (chunk->addr & ~nd->geo->host_window) >> PAGE_SHIFT;
	unsigned long i, n = chunk->size >> PAGE_SHIFT;
	bool lent = chunk->kind == NEURON_CHUNK_LENT || chunk->kind == NEURON_CHUNK_LENT_DIRTY;

	/* Older kernels: it can fail for want of memory. */
	do
		mtree_erase(&nd->host_pages, index);
	while (mtree_load(&nd->host_pages, index) == chunk);
	if (lent)
		unpin_user_pages_dirty_lock(chunk->pages, n,
					    chunk->kind == NEURON_CHUNK_LENT_DIRTY);
	for (i = 0; !lent && i < n; i++) {
		__free_page(chunk->pages[i]);
		cond_resched();
	}
	kvfree(chunk->pages);
}

/*
 * Find room in the device's view of host memory. mtree_alloc_range() of 6.1
 * gives wrong ranges; this is what it does since. Storing may let go of the
 * tree's lock, so those who look for room are kept apart by a mutex.
 */
static int neuron_host_map(struct neuron_device *nd, struct neuron_chunk *chunk,
			   unsigned long n, unsigned long *start)
{
	MA_STATE(mas, &nd->host_pages, 0, 0);
	int err;

	mutex_lock(&nd->host_lock);
	mas_lock(&mas);
	err = mas_empty_area(&mas, 1, NEURON_HOST_PAGES_MAX, n);
	if (!err) {
		*start = mas.index;
		mas_set_range(&mas, *start, *start + n - 1);
		err = mas_store_gfp(&mas, chunk, GFP_KERNEL);
	}
	mas_unlock(&mas);
	mutex_unlock(&nd->host_lock);
	return err;
}

/*
 * What the driver itself needs, such as the rings for copies, serves everybody for as
 * long as the device is open: it is not charged to the cgroup of who came first.
 */
static gfp_t neuron_chunk_gfp(const struct neuron_client *client)
{
	return client->kernel ? GFP_KERNEL : GFP_KERNEL_ACCOUNT;
}

static int neuron_host_pages(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long i, n = chunk->size >> PAGE_SHIFT, start;
	gfp_t gfp = neuron_chunk_gfp(chunk->client) | __GFP_ZERO | __GFP_NOWARN |
		    __GFP_RETRY_MAYFAIL;
	int err = -ENOMEM;

	/* Rather than push out what others use until somebody is killed for it. */
	if (n > (unsigned long)max(si_mem_available(), 0L))
		return -ENOMEM;
	chunk->pages = kvcalloc(n, sizeof(*chunk->pages), gfp);
	if (!chunk->pages)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		/* A large request must not keep a killed process alive. */
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			goto free;
		}
		chunk->pages[i] = alloc_page(gfp);
		if (!chunk->pages[i])
			goto free;
		cond_resched();
	}

	/*
	 * The device sees the pages as one range.  Offsets start at 1 so that
	 * no chunk has the address of the window itself.
	 */
	err = neuron_host_map(nd, chunk, n, &start);
	if (err)
		goto free;
	chunk->addr = nd->geo->host_window | ((u64)start << PAGE_SHIFT);
	return 0;

free:
	while (i--)
		__free_page(chunk->pages[i]);
	kvfree(chunk->pages);
	return err == -EBUSY ? -ENOMEM : err;
}

static int neuron_host_alloc(struct neuron_device *nd, struct neuron_chunk *chunk,
			     struct neuron_failure *why)
{
	int err;

	if (!neuron_limit_charge_host(chunk->client, chunk->size, &why->limit)) {
		why->reason = NEURON_NATIVE_REASON_CAPPED;
		return -ENOMEM;
	}
	err = neuron_host_pages(nd, chunk);
	if (err)
		neuron_limit_uncharge_host(chunk->client, chunk->size);
	if (err == -ENOMEM)
		why->reason = NEURON_NATIVE_REASON_HOST;
	return err;
}

static int neuron_chunk_make(struct neuron_client *client, const struct neuron_chunk_request *req,
			     struct neuron_chunk **out, struct neuron_failure *why)
{
	struct neuron_device *nd = client->nd;
	struct neuron_chunk *chunk;
	u64 size;
	int err;

	/* neuron_zone_explain() fills the rest in. */
	memset(why, 0, offsetof(struct neuron_failure, used));
	why->limit = NEURON_NO_LIMIT;
	if (!req->size || req->core >= nd->geo->nr_cores ||
	    (!req->host && req->hbm >= nd->geo->nr_hbms) ||
	    (req->align && !is_power_of_2(req->align)) ||
	    (req->host && req->align > PAGE_SIZE))
		return -EINVAL;
	if (check_add_overflow(req->size, (u64)PAGE_SIZE - 1, &size))
		return -EOVERFLOW;
	size &= PAGE_MASK;
	if (req->host && size >> PAGE_SHIFT > NEURON_HOST_PAGES_MAX) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return -ENOMEM;
	}

	chunk = kmem_cache_zalloc(neuron_chunk_cache, neuron_chunk_gfp(client));
	if (!chunk) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return -ENOMEM;
	}
	kref_init(&chunk->ref);
	chunk->host = req->host;
	chunk->hbm = req->host ? 0 : array_index_nospec(req->hbm, nd->geo->nr_hbms);
	chunk->core = array_index_nospec(req->core, nd->geo->nr_cores);
	chunk->category = neuron_category(req->category, req->host);
	chunk->size = size;
	chunk->client = client;

	if (req->host) {
		err = neuron_host_alloc(nd, chunk, why);
	} else {
		/* A page that is mapped must hold nothing else. */
		err = neuron_zone_alloc(nd, chunk, max_t(u64, req->align, PAGE_SIZE),
					req->placement, why);
	}
	if (err) {
		trace_neuron_alloc_fail(nd->dev.id, chunk, req->align, why->reason);
		kmem_cache_free(neuron_chunk_cache, chunk);
		return err;
	}
	kref_get(&client->ref);
	neuron_account(chunk, chunk->size, chunk->size, true);
	trace_neuron_alloc(nd->dev.id, chunk, req->align, 0);
	*out = chunk;
	return 0;
}

/**
 * neuron_chunk_alloc() - allocate a chunk
 * @client: who is charged; a reference is taken
 * @req: what
 * @out: the chunk; the caller holds its reference
 * @why: filled in with -ENOMEM
 *
 * The memory reads as zero.  The chunk has no handle yet.  A failure of a
 * process is logged and recorded.
 *
 * Context: may sleep; for a process, none of the device's locks held.
 * Return: 0; -EINVAL size 0, alignment, HBM, core; -EOVERFLOW; -ENOMEM; -EINTR; -EIO.
 */
int neuron_chunk_alloc(struct neuron_client *client, const struct neuron_chunk_request *req,
		       struct neuron_chunk **out, struct neuron_failure *why)
{
	u32 seen = neuron_teardowns_read();
	int err = neuron_chunk_make(client, req, out, why);

	if (err == -ENOMEM && !client->kernel) {
		int reaped = req->host ? neuron_devices_reap(seen) :
					 neuron_clients_reap(client->nd, seen);

		if (reaped != -ENOENT)
			err = reaped ?: neuron_chunk_make(client, req, out, why);
	}
	if (err && (req->host || why->reason == NEURON_NATIVE_REASON_HOST))
		memset(why->used, 0, sizeof(why->used));
	if (err == -ENOMEM && !client->kernel)
		neuron_failure_record(client, req, why);
	return err;
}

/**
 * neuron_chunk_lend() - let the driver's copy rings reach pages of a process
 * @nd: device
 * @core: core whose ring is used
 * @pages: pinned pages in an array from kvmalloc(); on success the chunk's,
 *	   unpinned and freed when its last user is gone
 * @n: their number
 * @dirty: the device will write to them
 * @out: a chunk without handle; the caller holds its reference
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int neuron_chunk_lend(struct neuron_device *nd, u32 core, struct page **pages, unsigned long n,
		      bool dirty, struct neuron_chunk **out)
{
	struct neuron_chunk *chunk = kmem_cache_zalloc(neuron_chunk_cache, GFP_KERNEL_ACCOUNT);
	unsigned long start;
	int err;

	if (!chunk)
		return -ENOMEM;
	kref_init(&chunk->ref);
	chunk->host = true;
	chunk->core = core;
	chunk->category = NEURON_MEMALLOC_TYPE_NCDEV_HOST;
	chunk->kind = dirty ? NEURON_CHUNK_LENT_DIRTY : NEURON_CHUNK_LENT;
	chunk->size = (u64)n << PAGE_SHIFT;
	chunk->client = nd->kclient;
	chunk->pages = pages;
	err = neuron_host_map(nd, chunk, n, &start);
	if (err) {
		kmem_cache_free(neuron_chunk_cache, chunk);
		return -ENOMEM;
	}
	chunk->addr = nd->geo->host_window | ((u64)start << PAGE_SHIFT);
	kref_get(&nd->kclient->ref);
	*out = chunk;
	return 0;
}

static void neuron_chunk_release(struct kref *ref)
{
	struct neuron_chunk *chunk = container_of(ref, struct neuron_chunk, ref);
	struct neuron_client *client = chunk->client;
	struct neuron_device *nd = client->nd;

	/* What is lent was never allocated. */
	if (chunk->kind == NEURON_CHUNK_LENT || chunk->kind == NEURON_CHUNK_LENT_DIRTY) {
		neuron_host_free(nd, chunk);
		goto free;
	}
	trace_neuron_free(nd->dev.id, chunk, 0, 0);
	if (chunk->host) {
		neuron_host_free(nd, chunk);
		neuron_limit_uncharge_host(client, chunk->size);
	} else {
		neuron_zone_free(nd, chunk);
	}
	neuron_account(chunk, chunk->size, chunk->size, false);
free:
	if (chunk->host)
		call_rcu(&chunk->rcu, neuron_chunk_free_rcu);
	else
		kmem_cache_free(neuron_chunk_cache, chunk);
	neuron_client_put(client);
}

/**
 * neuron_chunk_put() - drop a reference; the last one gives the memory back
 * @chunk: may be NULL
 *
 * Context: may sleep.
 */
void neuron_chunk_put(struct neuron_chunk *chunk)
{
	if (chunk)
		kref_put(&chunk->ref, neuron_chunk_release);
}

/* Under the lock of client->handles, as what follows. */
static void neuron_chunk_settle(struct neuron_client *client, struct neuron_chunk *chunk)
{
	struct rb_node **link = &client->chunks.rb_node, *parent = NULL;

	list_del(&chunk->fresh);
	client->nr_fresh--;
	while (*link) {
		parent = *link;
		link = chunk->addr < rb_entry(parent, struct neuron_chunk, node)->addr ?
		       &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&chunk->node, parent, link);
	rb_insert_color(&chunk->node, &client->chunks);
	chunk->place = NEURON_PLACE_TREE;
}

/**
 * neuron_chunks_settle() - make client.chunks complete
 * @client: whose chunks
 *
 * Context: the lock of client->handles is held.
 */
void neuron_chunks_settle(struct neuron_client *client)
{
	while (!list_empty(&client->fresh))
		neuron_chunk_settle(client, list_first_entry(&client->fresh, struct neuron_chunk,
							     fresh));
}

static void neuron_chunk_link(struct neuron_client *client, struct neuron_chunk *chunk)
{
	list_add(&chunk->fresh, &client->fresh);
	chunk->place = NEURON_PLACE_FRESH;
	if (++client->nr_fresh > NEURON_FRESH_MAX)
		neuron_chunk_settle(client, list_last_entry(&client->fresh, struct neuron_chunk,
							    fresh));
}

/* Take what loses its handle out of where it is found by its address. */
static void neuron_entry_unlink(struct neuron_client *client, void *entry)
{
	struct neuron_chunk *chunk = entry;
	struct neuron_import *imp;

	if (xa_pointer_tag(entry) == NEURON_ENTRY_IMPORT) {
		imp = xa_untag_pointer(entry);
		if (!client->closed)
			rb_erase(&imp->node, &client->imports);
		return;
	}
	if (!client->closed && chunk->place == NEURON_PLACE_FRESH) {
		list_del(&chunk->fresh);
		client->nr_fresh--;
	} else if (!client->closed) {
		rb_erase(&chunk->node, &client->chunks);
	}
	chunk->place = NEURON_PLACE_NONE;
}

/*
 * Store an entry at a handle of its own.  Memory may be allocated, and the lock be
 * dropped for that: nothing else of what it guards may have changed before.
 */
static int neuron_handle_new(struct neuron_client *client, void *entry, u32 *handle)
{
	int err;

	if (WARN_ON_ONCE(client->closed))
		return -ENODEV;
	if (client->spare) {
		XA_STATE(xas, &client->handles, client->spare);

		/* What is reserved has its place: no memory is needed. */
		xas_store(&xas, entry);
		*handle = client->spare;
		client->spare = 0;
		return 0;
	}
	err = __xa_alloc(&client->handles, handle, entry, XA_LIMIT(1, INT_MAX),
			 GFP_KERNEL_ACCOUNT);
	return err ? -ENOMEM : 0;
}

/*
 * Take an entry away from its handle.  One handle stays reserved: whoever frees and
 * allocates in turn neither tears the table down nor searches it.
 */
static void *neuron_handle_drop(struct neuron_client *client, u32 handle)
{
	XA_STATE(xas, &client->handles, handle);
	void *entry = xas_load(&xas);

	if (!entry || xa_is_zero(entry) || client->closed)
		return NULL;
	xas_store(&xas, client->spare ? NULL : XA_ZERO_ENTRY);
	client->spare = client->spare ?: handle;
	return entry;
}

/**
 * neuron_chunk_import() - give a process a handle of a chunk
 * @client: the process, of the device that the chunk is on
 * @chunk: held by the caller; the handle gets its own reference
 * @out: the handle
 *
 * The process reaches all of the chunk, as if it had allocated it; it stays
 * charged to who did.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int neuron_chunk_import(struct neuron_client *client, struct neuron_chunk *chunk, u32 *out)
{
	struct rb_node **link, *parent = NULL;
	struct neuron_import *imp;
	int err;

	imp = kzalloc(sizeof(*imp), GFP_KERNEL_ACCOUNT);
	if (!imp)
		return -ENOMEM;
	imp->chunk = neuron_chunk_ref(chunk);
	neuron_chunk_admit(chunk, NEURON_USER_IMPORT);

	xa_lock(&client->handles);
	err = neuron_handle_new(client, xa_tag_pointer(imp, NEURON_ENTRY_IMPORT), &imp->handle);
	if (err) {
		xa_unlock(&client->handles);
		neuron_chunk_unuse(chunk, NEURON_USER_IMPORT);
		kfree(imp);
		return err;
	}
	*out = imp->handle;
	link = &client->imports.rb_node;
	while (*link) {
		parent = *link;
		link = chunk->addr < rb_entry(parent, struct neuron_import, node)->chunk->addr ?
		       &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&imp->node, parent, link);
	rb_insert_color(&imp->node, &client->imports);
	xa_unlock(&client->handles);
	return 0;
}

static struct neuron_chunk *neuron_entry_chunk(void *entry)
{
	struct neuron_import *imp;

	if (xa_pointer_tag(entry) != NEURON_ENTRY_IMPORT)
		return entry;
	imp = xa_untag_pointer(entry);
	return imp->chunk;
}

/**
 * neuron_chunk_publish() - give a chunk a handle and make its address known
 * @chunk: the caller's reference becomes the handle's, on success
 * @out: the handle
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM (the caller keeps its reference).
 */
int neuron_chunk_publish(struct neuron_chunk *chunk, u32 *out)
{
	struct neuron_client *client = chunk->client;
	int err;

	xa_lock(&client->handles);
	err = neuron_handle_new(client, chunk, &chunk->handle);
	if (!err) {
		*out = chunk->handle;
		neuron_chunk_link(client, chunk);
	}
	xa_unlock(&client->handles);
	return err;
}

static void neuron_entry_put(void *entry)
{
	struct neuron_chunk *chunk = neuron_entry_chunk(entry);

	if (xa_pointer_tag(entry) != NEURON_ENTRY_IMPORT) {
		neuron_chunk_put(chunk);
		return;
	}
	kfree(xa_untag_pointer(entry));
	neuron_chunk_unuse(chunk, NEURON_USER_IMPORT);
}

/**
 * neuron_chunk_revoke() - take the handle of a known chunk away
 * @chunk: held by the caller; its handle may have been freed before
 *
 * Context: may sleep.
 */
void neuron_chunk_revoke(struct neuron_chunk *chunk)
{
	struct neuron_client *client = chunk->client;
	bool known;

	xa_lock(&client->handles);
	/* The number may belong to another chunk by now. */
	known = !client->closed && chunk->place != NEURON_PLACE_NONE;
	if (known) {
		neuron_handle_drop(client, chunk->handle);
		neuron_entry_unlink(client, chunk);
	}
	xa_unlock(&client->handles);
	if (known)
		neuron_chunk_put(chunk);
}

/**
 * neuron_chunk_unpublish() - take a chunk's handle away
 * @client: owner
 * @handle: its handle; not valid any more afterwards
 *
 * Context: may sleep.
 * Return: 0, -ENOENT.
 */
int neuron_chunk_unpublish(struct neuron_client *client, u64 handle)
{
	void *entry;

	if (!handle || handle > INT_MAX)
		return -ENOENT;
	xa_lock(&client->handles);
	/* Of two callers only one gets the entry. */
	entry = neuron_handle_drop(client, handle);
	if (entry)
		neuron_entry_unlink(client, entry);
	xa_unlock(&client->handles);
	if (!entry)
		return -ENOENT;
	neuron_entry_put(entry);
	return 0;
}

/* Give the memory of chunks of a process back that nobody refers to any more. */
static void neuron_chunks_free(struct neuron_client *client, struct neuron_chunk **chunks, u32 n)
{
	struct neuron_device *nd = client->nd;
	u32 i, j;

	for (i = 0; i < n; i = j) {
		struct neuron_chunk *c, *first = chunks[i];
		u64 bytes = 0;

		for (j = i; j < n; j++) {
			c = chunks[j];
			if (c->hbm != first->hbm || c->core != first->core ||
			    c->category != first->category)
				break;
			trace_neuron_free(nd->dev.id, c, 0, 0);
			bytes += c->size;
		}
		neuron_zone_free_batch(nd, chunks + i, j - i);
		neuron_account(first, bytes, chunks[j - 1]->size, false);
	}
	kmem_cache_free_bulk(neuron_chunk_cache, n, (void **)chunks);
	neuron_client_put_some(client, n);
}

/**
 * neuron_chunk_unpublish_all() - take all handles of a client away
 * @client: being torn down, nobody adds any; the caller has a reference
 *
 * Context: may sleep.
 */
void neuron_chunk_unpublish_all(struct neuron_client *client)
{
	XA_STATE(xas, &client->handles, 1);	/* 0 is never given out */
	void *batch[NEURON_FREE_BATCH], *entry;
	struct neuron_chunk *chunk;
	u32 n, nr_free, i;

	/* All of it goes, so nothing needs to be taken out one by one. */
	xa_lock(&client->handles);
	client->closed = true;
	client->chunks = RB_ROOT;
	client->imports = RB_ROOT;
	INIT_LIST_HEAD(&client->fresh);
	xa_unlock(&client->handles);

	do {
		n = 0;
		xas_lock(&xas);
		xas_for_each(&xas, entry, ULONG_MAX) {
			/* The spare one. */
			if (xa_is_zero(entry))
				continue;
			neuron_entry_unlink(client, entry);
			batch[n++] = entry;
			if (n == NEURON_FREE_BATCH)
				break;
		}
		xas_pause(&xas);
		xas_unlock(&xas);

		/* Those to be freed move to the front: the stack has no room for two arrays. */
		for (i = 0, nr_free = 0; i < n; i++) {
			chunk = batch[i];
			if (xa_pointer_tag(batch[i]) == NEURON_ENTRY_IMPORT || chunk->host)
				neuron_entry_put(batch[i]);
			else if (refcount_dec_and_test(&chunk->ref.refcount))
				batch[nr_free++] = chunk;
		}
		if (nr_free)
			neuron_chunks_free(client, (struct neuron_chunk **)batch, nr_free);
		cond_resched();
	} while (n == NEURON_FREE_BATCH);
	xa_destroy(&client->handles);
}

/**
 * neuron_chunk_admit() - count a user of a chunk
 * @chunk: held by the caller, with a reference for the user
 * @as: kind of user, not NEURON_USER_NONE
 *
 * Until neuron_chunk_unuse() the chunk is as long as it is now, or longer: only
 * afterwards is its length to be looked at.
 *
 * Context: process.
 */
void neuron_chunk_admit(struct neuron_chunk *chunk, enum neuron_user as)
{
	xa_lock(&chunk->client->handles);
	chunk->users[as]++;
	xa_unlock(&chunk->client->handles);
}

/**
 * neuron_chunk_unuse() - a user of a chunk is gone, with its reference
 * @chunk: may be NULL
 * @as: what it was admitted as, not NEURON_USER_NONE
 *
 * Context: may sleep.
 */
void neuron_chunk_unuse(struct neuron_chunk *chunk, enum neuron_user as)
{
	if (!chunk)
		return;
	xa_lock(&chunk->client->handles);
	chunk->users[as]--;
	xa_unlock(&chunk->client->handles);
	neuron_chunk_put(chunk);
}

/* A reference and a user of a chunk that was found under the lock of client->handles. */
static void neuron_chunk_hold(struct neuron_client *client, struct neuron_chunk *chunk,
			      enum neuron_user as)
{
	kref_get(&chunk->ref);
	if (as && chunk->client == client)
		chunk->users[as]++;
}

/* Then, without the lock: what was imported is counted where it was allocated. */
static void neuron_chunk_held(struct neuron_client *client, struct neuron_chunk *chunk,
			      enum neuron_user as)
{
	if (as && chunk->client != client)
		neuron_chunk_admit(chunk, as);
}

/**
 * neuron_chunk_use() - chunk behind a handle
 * @client: whose handle
 * @handle: as user space knows it
 * @as: what for; ends with neuron_chunk_unuse(), or neuron_chunk_put() if it is
 *	NEURON_USER_NONE
 *
 * Context: process.
 * Return: the chunk with a reference for the caller, NULL if there is none.
 */
struct neuron_chunk *neuron_chunk_use(struct neuron_client *client, u64 handle,
				      enum neuron_user as)
{
	struct neuron_chunk *chunk;

	if (!handle || handle > INT_MAX)
		return NULL;
	xa_lock(&client->handles);
	chunk = client->closed ? NULL : neuron_entry_chunk(xa_load(&client->handles, handle));
	if (chunk)
		neuron_chunk_hold(client, chunk, as);
	xa_unlock(&client->handles);
	if (chunk)
		neuron_chunk_held(client, chunk, as);
	return chunk;
}

/* The import whose chunk contains an address.  Under the lock of client->handles. */
static struct neuron_import *neuron_import_find(struct neuron_client *client, u64 addr)
{
	struct rb_node *node = client->imports.rb_node;

	while (node) {
		struct neuron_import *imp = rb_entry(node, struct neuron_import, node);

		if (addr < imp->chunk->addr)
			node = node->rb_left;
		else if (addr - imp->chunk->addr >= imp->chunk->size)
			node = node->rb_right;
		else
			return imp;
	}
	return NULL;
}

/**
 * neuron_chunk_find() - chunk with a handle that contains a range of addresses
 * @client: whose handle
 * @addr: device address
 * @len: bytes, not 0
 * @as: what for, as for neuron_chunk_use()
 *
 * Context: process.
 * Return: the chunk with a reference for the caller, NULL if there is none.
 */
struct neuron_chunk *neuron_chunk_find(struct neuron_client *client, u64 addr, u64 len,
				       enum neuron_user as)
{
	struct neuron_chunk *chunk, *found = NULL;
	struct neuron_import *imp;
	struct rb_node *node;

	xa_lock(&client->handles);
	neuron_chunks_settle(client);
	node = client->chunks.rb_node;
	while (node) {
		chunk = rb_entry(node, struct neuron_chunk, node);
		if (addr < chunk->addr) {
			node = node->rb_left;
		} else if (addr - chunk->addr >= chunk->size) {
			node = node->rb_right;
		} else {
			found = chunk;
			break;
		}
	}
	imp = found ? NULL : neuron_import_find(client, addr);
	if (imp)
		found = imp->chunk;
	if (found)
		neuron_chunk_hold(client, found, as);
	xa_unlock(&client->handles);
	if (!found)
		return NULL;
	neuron_chunk_held(client, found, as);
	if (!neuron_chunk_range(found, addr - found->addr, len))
		return found;
	if (as)
		neuron_chunk_unuse(found, as);
	else
		neuron_chunk_put(found);
	return NULL;
}

/**
 * neuron_chunk_handle() - a handle that a process has of a chunk
 * @client: the process
 * @chunk: held by the caller
 *
 * Context: process.
 * Return: the handle, that of the allocation if there are several; 0 if it was
 *	   freed meanwhile.
 */
u32 neuron_chunk_handle(struct neuron_client *client, struct neuron_chunk *chunk)
{
	struct neuron_import *imp;
	u32 handle = 0;

	xa_lock(&client->handles);
	imp = neuron_import_find(client, chunk->addr);
	if (chunk->client == client && chunk->place != NEURON_PLACE_NONE)
		handle = chunk->handle;
	else if (imp)
		handle = imp->handle;
	xa_unlock(&client->handles);
	return handle;
}

/**
 * neuron_chunk_range() - does a range lie inside a chunk?
 * @chunk: the chunk
 * @off: bytes from its start
 * @len: bytes
 *
 * Return: 0; -EINVAL empty or outside; -EOVERFLOW the sum wraps.
 */
int neuron_chunk_range(const struct neuron_chunk *chunk, u64 off, u64 len)
{
	u64 end;

	if (!len)
		return -EINVAL;
	if (check_add_overflow(off, len, &end))
		return -EOVERFLOW;
	/* It may be growing; see grow.c. */
	return end > smp_load_acquire(&chunk->size) ? -EINVAL : 0;
}

/**
 * neuron_chunk_rw_host() - read or write host memory of a chunk from the kernel
 * @chunk: host chunk
 * @off: bytes from its start; the range was checked
 * @buf: kernel memory
 * @len: bytes
 * @write: to the chunk
 *
 * Return: 0.
 */
int neuron_chunk_rw_host(struct neuron_chunk *chunk, u64 off, void *buf, u64 len, bool write)
{
	while (len) {
		u32 in = offset_in_page(off);
		u32 n = min_t(u64, len, PAGE_SIZE - in);
		struct page *page = chunk->pages[off >> PAGE_SHIFT];

		if (write)
			memcpy_to_page(page, in, buf, n);
		else
			memcpy_from_page(buf, page, in, n);
		buf += n;
		off += n;
		len -= n;
	}
	return 0;
}

/**
 * neuron_chunk_rw_user() - same, from user space
 * @chunk: host chunk
 * @off: bytes from its start; the range was checked
 * @buf: user memory
 * @len: bytes
 * @write: to the chunk
 *
 * Context: may sleep.
 * Return: 0; -EFAULT, -EINTR (a part may have been copied).
 */
int neuron_chunk_rw_user(struct neuron_chunk *chunk, u64 off, void __user *buf, u64 len,
			 bool write)
{
	while (len) {
		u32 in = offset_in_page(off);
		u32 n = min_t(u64, len, PAGE_SIZE - in);
		void *page = kmap_local_page(chunk->pages[off >> PAGE_SHIFT]);
		unsigned long left;

		left = write ? copy_from_user(page + in, buf, n) :
			       copy_to_user(buf, page + in, n);
		kunmap_local(page);
		if (left)
			return -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		buf += n;
		off += n;
		len -= n;
	}
	return 0;
}

/**
 * neuron_chunk_fill_host() - set bytes of a host chunk
 * @chunk: host chunk
 * @off: bytes from its start; the range was checked
 * @value: byte
 * @len: bytes
 *
 * Context: may sleep.
 * Return: 0, -EINTR.
 */
int neuron_chunk_fill_host(struct neuron_chunk *chunk, u64 off, u8 value, u64 len)
{
	while (len) {
		u32 in = offset_in_page(off);
		u32 n = min_t(u64, len, PAGE_SIZE - in);
		void *page = kmap_local_page(chunk->pages[off >> PAGE_SHIFT]);

		memset(page + in, value, n);
		kunmap_local(page);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		off += n;
		len -= n;
	}
	return 0;
}
