// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a chunk, that is of one allocation.
 *
 * Its handle, mappings, rings, notification queues, transfers, exports and imports
 * hold a reference each, so taking the handle away (MEM_FREE, process exit) is
 * always safe.  They are counted by kind, too: README.md.
 */
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../base/client.h"
#include "../base/devices.h"
#include "../base/trace.h"
#include "account.h"
#include "chunk.h"
#include "failure.h"
#include "hbm.h"
#include "host.h"
#include "limit.h"
#include "sync.h"

static struct kmem_cache *neuron_chunk_cache;

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

/*
 * Of @client, with one reference; all is zero that is looked at before it is set.  Field by
 * field, because for so few bytes a call of memset() takes longer.
 */
static void neuron_chunk_init(struct neuron_chunk *chunk, struct neuron_client *client)
{
	u32 i;

	kref_init(&chunk->ref);
	chunk->host = false;
	chunk->hbm = 0;
	chunk->core = 0;
	chunk->category = 0;
	chunk->kind = NEURON_CHUNK_PLAIN;
	chunk->given = false;
	chunk->movable = 0;
	chunk->moving = NEURON_MOVING_NOT;
	for (i = 0; i < ARRAY_SIZE(chunk->users); i++)
		chunk->users[i] = 0;
	chunk->size = 0;
	chunk->addr = 0;
	chunk->owner = NULL;
	chunk->resv = NULL;
#ifdef NEURON_DMEM
	chunk->dmem = NULL;
	chunk->dmem_extra = 0;
	chunk->dmem_kept = 0;
#endif
	chunk->own.number = 0;
	chunk->own.leaving = false;
	chunk->own.place = NEURON_PLACE_NONE;
	chunk->client = client;
	chunk->own.chunk = chunk;
}

static struct neuron_chunk *neuron_chunk_new(struct neuron_client *client, gfp_t gfp)
{
	struct neuron_chunk *chunk = kmem_cache_alloc(neuron_chunk_cache, gfp);

	if (chunk)
		neuron_chunk_init(chunk, client);
	return chunk;
}

/* Is the request valid?  @size: filled in, whole pages. */
static int neuron_chunk_check(const struct neuron_device *nd,
			      const struct neuron_chunk_request *req, u64 *size)
{
	if (!req->size || req->core >= nd->geo->nr_cores ||
	    (!req->host && req->hbm >= nd->geo->nr_hbms) ||
	    (req->align && !is_power_of_2(req->align)) ||
	    (req->host && req->align > PAGE_SIZE))
		return -EINVAL;
	if (check_add_overflow(req->size, (u64)PAGE_SIZE - 1, size))
		return -EOVERFLOW;
	*size &= PAGE_MASK;
	return 0;
}

/* What a valid request says of a chunk. */
static void neuron_chunk_set(struct neuron_chunk *chunk, const struct neuron_chunk_request *req,
			     u64 size)
{
	const struct neuron_geometry *geo = chunk->client->nd->geo;

	chunk->host = req->host;
	chunk->hbm = req->host ? 0 : array_index_nospec(req->hbm, geo->nr_hbms);
	chunk->core = array_index_nospec(req->core, geo->nr_cores);
	chunk->category = neuron_category(req->category, req->host);
	chunk->size = size;
	chunk->addr = req->at;
	if (req->movable)
		chunk->movable = 1 + ilog2(max_t(u64, req->align, PAGE_SIZE)) -
				 NEURON_BUDDY_GRANULE_SHIFT;
}

static int neuron_chunk_make(struct neuron_client *client, const struct neuron_chunk_request *req,
			     struct neuron_chunk **out, struct neuron_failure *why)
{
	struct neuron_device *nd = client->nd;
	struct neuron_chunk *chunk;
	u64 size;
	int err;

	neuron_failure_none(why);
	err = neuron_chunk_check(nd, req, &size);
	if (err)
		return err;
	if (req->host && size >> PAGE_SHIFT > NEURON_HOST_PAGES_MAX) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return -ENOMEM;
	}

	chunk = neuron_chunk_new(client, neuron_chunk_gfp(client));
	if (!chunk) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return -ENOMEM;
	}
	neuron_chunk_set(chunk, req, size);
	if (!client->kernel) {
		chunk->owner = req->owner ? neuron_owner_get(client, req->owner) :
					    &client->owner;
		if (!chunk->owner) {
			kmem_cache_free(neuron_chunk_cache, chunk);
			return -ENOENT;
		}
	}

	if (req->host) {
		err = neuron_host_alloc(nd, chunk, why);
	} else {
		/* A page that is mapped must hold nothing else. */
		err = neuron_hbm_alloc(nd, chunk, max_t(u64, req->align, PAGE_SIZE),
				       req->placement, why);
	}
	if (err) {
		trace_neuron_alloc_fail(nd->dev.id, chunk, req->align, why->reason);
		neuron_owner_put(chunk->owner);
		kmem_cache_free(neuron_chunk_cache, chunk);
		return err;
	}
	kref_get(&client->ref);
	neuron_account(chunk, chunk->size, chunk->size, true);
	trace_neuron_alloc(nd->dev.id, chunk, req->align, 0);
	*out = chunk;
	return 0;
}

/* A request ended with @err: is it worth another try, as a dead process gave memory back? */
static noinline bool neuron_chunk_reap(struct neuron_client *client,
				       const struct neuron_chunk_request *req, u32 seen, int *err)
{
	if (*err != -ENOMEM || client->kernel)
		return false;
	return neuron_reaped(req->host ? neuron_devices_reap(seen) :
					 neuron_clients_reap(client->nd, seen), err);
}

/**
 * neuron_chunk_alloc() - allocate a chunk
 * @client: the process that is charged; a reference is taken
 * @req: what to allocate
 * @out: the chunk; the caller holds its reference
 * @why: filled in with -ENOMEM
 *
 * The memory reads as zero.  The chunk has no handle yet.  A failure of a
 * process is logged and recorded.
 *
 * Context: may sleep; for a process, none of the device's locks held.
 * Return: 0; -EINVAL size 0, alignment, HBM, core; -ENOENT owner; -EOVERFLOW; -ENOMEM;
 *	   -EINTR; -EIO.
 */
int neuron_chunk_alloc(struct neuron_client *client, const struct neuron_chunk_request *req,
		       struct neuron_chunk **out, struct neuron_failure *why)
{
	u32 seen = neuron_teardowns_read();
	bool again = false;
	int err;

	do {
		err = neuron_chunk_make(client, req, out, why);
		if (likely(!err))
			return 0;
		again = !again && neuron_chunk_reap(client, req, seen, &err);
	} while (again);
	if (req->host || why->reason == NEURON_NATIVE_REASON_HOST)
		memset(why->used, 0, sizeof(why->used));
	if (err == -ENOMEM && !client->kernel)
		neuron_failure_record(client, req, why);
	return err;
}

/*
 * Up to NEURON_FREE_BATCH chunks of device memory at once, if nothing is in the way.  False:
 * something is, and nothing has changed; who asks for them one by one learns what.
 */
static noinline bool __flatten
neuron_chunks_make(struct neuron_client *client, struct neuron_chunk_request *req,
		   const struct neuron_native_mem_bulk_entry *entries, u32 n,
		   struct neuron_chunk **chunks)
{
	struct neuron_device *nd = client->nd;
	struct neuron_owner *owner;
	u64 bytes = 0, size;
	u32 i;

	owner = req->owner ? neuron_owner_get(client, req->owner) : &client->owner;
	if (!owner)
		return false;
	if (!kmem_cache_alloc_bulk(neuron_chunk_cache, neuron_chunk_gfp(client), n,
				   (void **)chunks))
		goto put;
	for (i = 0; i < n; i++) {
		req->size = entries[i].bytes;
		req->align = entries[i].align;
		if (neuron_chunk_check(nd, req, &size) ||
		    check_add_overflow(bytes, size, &bytes))
			goto free;
		neuron_chunk_init(chunks[i], client);
		neuron_chunk_set(chunks[i], req, size);
		chunks[i]->owner = owner;
	}
	if (!neuron_hbm_alloc_batch(nd, chunks, entries, n, bytes, req->placement))
		goto free;
	if (owner->id && n > 1)
		refcount_add(n - 1, &owner->ref.refcount);
	refcount_add(n, &client->ref.refcount);
	neuron_account(chunks[0], bytes, chunks[n - 1]->size, true);
	for (i = 0; i < n; i++)
		trace_neuron_alloc(nd->dev.id, chunks[i], entries[i].align, 0);
	return true;

free:
	kmem_cache_free_bulk(neuron_chunk_cache, n, (void **)chunks);
put:
	neuron_owner_put(owner);
	return false;
}

/**
 * neuron_chunks_alloc() - allocate several chunks, all of them or none
 * @client: the process that is charged
 * @req: what all of them have in common
 * @entries: length and alignment of each
 * @n: their number
 * @chunks: filled in, as by neuron_chunk_alloc()
 * @failed: index of the one that failed
 * @why: filled in with -ENOMEM
 *
 * Context: may sleep; none of the device's locks held.
 * Return: as neuron_chunk_alloc().
 */
int neuron_chunks_alloc(struct neuron_client *client, struct neuron_chunk_request *req,
			const struct neuron_native_mem_bulk_entry *entries, u32 n,
			struct neuron_chunk **chunks, u32 *failed, struct neuron_failure *why)
{
	u32 i = 0, end;
	int err = 0;

	while (i < n && !err) {
		end = min_t(u32, n, i + NEURON_FREE_BATCH);
		if (!req->host && neuron_chunks_make(client, req, entries + i, end - i, chunks + i))
			i = end;
		while (i < end && !err) {
			req->size = entries[i].bytes;
			req->align = entries[i].align;
			err = neuron_chunk_alloc(client, req, &chunks[i], why);
			i += !err;
		}
		/* Clearing may have taken long, and is to go on if there is more. */
		if (!err && i < n && fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	*failed = i;
	while (err && i--)
		neuron_chunk_put(chunks[i]);
	return err;
}

/**
 * neuron_chunk_user_pages() - let the driver's copy rings reach pages of a process
 * @nd: device
 * @core: core whose ring is used
 * @pages: pinned pages in an array from kvmalloc(); on success the chunk's,
 *	   unpinned and freed when its last user is gone
 * @n: their number
 * @dirty: the device will write to them
 * @out: a chunk without handle; the caller holds its reference
 *
 * Context: may sleep.
 * Return: 0; -ENOMEM also if the device cannot see the pages as one range.
 */
int neuron_chunk_user_pages(struct neuron_device *nd, u32 core, struct page **pages,
			    unsigned long n, bool dirty, struct neuron_chunk **out)
{
	struct neuron_chunk *chunk = neuron_chunk_new(nd->kclient, GFP_KERNEL_ACCOUNT);

	if (!chunk)
		return -ENOMEM;
	chunk->host = true;
	chunk->core = core;
	chunk->category = NEURON_MEMALLOC_TYPE_NCDEV_HOST;
	chunk->kind = dirty ? NEURON_CHUNK_PINNED_DIRTY : NEURON_CHUNK_PINNED;
	chunk->size = (u64)n << PAGE_SHIFT;
	chunk->pages = pages;
	if (neuron_host_map(nd, chunk)) {
		kmem_cache_free(neuron_chunk_cache, chunk);
		return -ENOMEM;
	}
	kref_get(&nd->kclient->ref);
	*out = chunk;
	return 0;
}

/**
 * neuron_chunk_find_ring() - what belongs to ring memory
 * @chunk: held by the caller
 *
 * Context: process.
 * Return: as given to neuron_chunk_make_ring(); NULL: it is not ring memory.
 */
struct neuron_chunk_ring *neuron_chunk_find_ring(struct neuron_chunk *chunk)
{
	struct neuron_chunk_ring *ring;

	xa_lock(&chunk->client->handles);
	ring = chunk->kind == NEURON_CHUNK_RING ? chunk->ring : NULL;
	xa_unlock(&chunk->client->handles);
	return ring;
}

static noinline void neuron_chunk_end_ring(struct neuron_chunk *chunk)
{
	struct neuron_chunk_ring *ring = chunk->ring;

	xa_lock(&chunk->client->handles);
	list_del(&ring->node);
	xa_unlock(&chunk->client->handles);
	ring->release(ring);
}

static void neuron_chunk_release(struct kref *ref)
{
	struct neuron_chunk *chunk = container_of(ref, struct neuron_chunk, ref);
	struct neuron_client *client = chunk->client;
	struct neuron_device *nd = client->nd;

	if (chunk->kind == NEURON_CHUNK_RING)
		neuron_chunk_end_ring(chunk);
	/* Pinned user pages were never allocated here. */
	if (chunk->kind == NEURON_CHUNK_PINNED || chunk->kind == NEURON_CHUNK_PINNED_DIRTY) {
		neuron_host_free(nd, chunk);
		goto free;
	}
	trace_neuron_free(nd->dev.id, chunk, 0, 0);
	if (chunk->host) {
		neuron_host_free(nd, chunk);
		neuron_limit_uncharge_host(client, chunk->size);
	} else {
		neuron_hbm_free(nd, chunk);
	}
	neuron_account(chunk, chunk->size, chunk->size, false);
	neuron_owner_put(chunk->owner);
	neuron_sync_free(chunk);
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

/* Charged to the same, so that their bytes can be given back in one sum? */
static bool neuron_chunks_alike(const struct neuron_chunk *a, const struct neuron_chunk *b)
{
	return a->hbm == b->hbm && a->core == b->core && a->category == b->category &&
	       a->owner == b->owner;
}

/* Free chunks of a process, of device memory, that have no reference left. */
void neuron_chunks_free(struct neuron_client *client, struct neuron_chunk **chunks, u32 n)
{
	struct neuron_device *nd = client->nd;
	u32 i, j;

	for (i = 0; i < n; i = j) {
		struct neuron_chunk *chunk, *first = chunks[i];
		u64 bytes, last;

		for (j = i; j < n && neuron_chunks_alike(chunks[j], first); j++) {
			chunk = chunks[j];
			if (unlikely(chunk->kind == NEURON_CHUNK_RING))
				neuron_chunk_end_ring(chunk);
			neuron_sync_free(chunk);
			if (trace_neuron_free_enabled())
				trace_neuron_free(nd->dev.id, chunk, 0, 0);
		}
		last = chunks[j - 1]->size;
		bytes = neuron_hbm_free_batch(nd, chunks + i, j - i);
		neuron_account(first, bytes, last, false);
		neuron_owner_put_some(first->owner, j - i);
	}
	kmem_cache_free_bulk(neuron_chunk_cache, n, (void **)chunks);
	neuron_client_put_some(client, n);
}

/**
 * neuron_chunk_admit() - count a user of a chunk
 * @chunk: held by the caller, with a reference for the user
 * @as: kind of user, not NEURON_USER_NONE
 *
 * The chunk does not get shorter until neuron_chunk_unuse(), so its length is only valid
 * to check after this call.
 *
 * Context: process.
 * Return: false: it is ring memory, which admits no such user.
 */
bool neuron_chunk_admit(struct neuron_chunk *chunk, enum neuron_user as)
{
	bool ok;

	xa_lock(&chunk->client->handles);
	ok = neuron_chunk_admits(chunk, as);
	if (ok)
		neuron_chunk_count(chunk, as);
	xa_unlock(&chunk->client->handles);
	return ok;
}

/**
 * neuron_chunk_make_ring() - a chunk becomes ring memory, until it is freed
 * @chunk: held by the caller, who is not counted as a user
 * @ring: what belongs to it from now on; NULL: nothing changes, could it become one?
 *
 * Users that only read may stay.
 *
 * Context: process.
 * Return: 0; -EBUSY somebody else may write to it, or it is movable; -EEXIST it is ring memory
 *	   already.
 */
int neuron_chunk_make_ring(struct neuron_chunk *chunk, struct neuron_chunk_ring *ring)
{
	int err = 0, i;

	xa_lock(&chunk->client->handles);
	if (chunk->kind == NEURON_CHUNK_RING)
		err = -EEXIST;
	else if (chunk->kind != NEURON_CHUNK_PLAIN || chunk->given || chunk->movable)
		err = -EBUSY;
	for (i = NEURON_USER_NONE + 1; i < NEURON_NR_USERS && !err; i++)
		if (i != NEURON_USER_READER && chunk->users[i - 1])
			err = -EBUSY;
	if (!err && ring) {
		WRITE_ONCE(chunk->kind, NEURON_CHUNK_RING);
		chunk->ring = ring;
		ring->chunk = chunk;
		list_add(&ring->node, &chunk->client->rings);
	}
	xa_unlock(&chunk->client->handles);
	return err;
}

/**
 * neuron_chunk_unuse() - a user of a chunk is gone, with its reference
 * @chunk: may be NULL
 * @as: kind that it was admitted as, not NEURON_USER_NONE
 *
 * Context: may sleep.
 */
void neuron_chunk_unuse(struct neuron_chunk *chunk, enum neuron_user as)
{
	if (!chunk)
		return;
	xa_lock(&chunk->client->handles);
	chunk->users[as - 1]--;
	xa_unlock(&chunk->client->handles);
	neuron_chunk_put(chunk);
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
