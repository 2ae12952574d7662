// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles of chunks, and how a chunk is found by its handle or its address.
 *
 * A published chunk has a handle in its client's table and address tree; that is one
 * reference.  Handles that other processes get of it, by import, are entries of the same
 * kind and count as users.
 */
#include <linux/slab.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/isolation.h"
#include "handle.h"
#include "failure.h"
#include "hbm.h"
#include "limit.h"

/* Of a chunk that the process did not allocate? */
static bool neuron_handle_imported(const struct neuron_handle *h)
{
	return h != &h->chunk->own;
}

/* Under the lock of client->handles, like the functions that follow. */
static noinline void neuron_handle_index(struct neuron_client *client, struct neuron_handle *h)
{
	struct rb_root *root = &client->by_addr[neuron_handle_imported(h)];
	struct rb_node **link = &root->rb_node, *parent = NULL;

	list_del(&h->unindexed);
	client->nr_unindexed--;
	while (*link) {
		parent = *link;
		link = h->chunk->addr < rb_entry(parent, struct neuron_handle, node)->chunk->addr ?
		       &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&h->node, parent, link);
	rb_insert_color(&h->node, root);
	h->place = NEURON_PLACE_TREE;
}

/*
 * Make client->by_addr complete, the oldest first: of two imports it is found.  There may be
 * a million, so this may drop the lock; handles that are added meanwhile can be missing.
 */
static void neuron_handles_index(struct neuron_client *client)
{
	u32 n = client->nr_unindexed;

	for (; n && !list_empty(&client->unindexed); n--) {
		neuron_handle_index(client, list_last_entry(&client->unindexed,
							    struct neuron_handle, unindexed));
		cond_resched_lock(&client->handles.xa_lock);
	}
}

/* Most chunks are never looked for by their address: they enter the tree at a lookup. */
static void neuron_handle_link(struct neuron_client *client, struct neuron_handle *h)
{
	list_add(&h->unindexed, &client->unindexed);
	client->nr_unindexed++;
	h->place = NEURON_PLACE_UNINDEXED;
}

/* Nobody finds a handle any more: it was taken away. */
static void neuron_handle_gone(struct neuron_handle *h)
{
	neuron_chunk_spoil_move(h->chunk);
	h->place = NEURON_PLACE_NONE;
}

/* Remove a handle that was taken away from the lookup by address. */
static void neuron_handle_unlink(struct neuron_client *client, struct neuron_handle *h)
{
	if (h->place == NEURON_PLACE_UNINDEXED) {
		list_del(&h->unindexed);
		client->nr_unindexed--;
	} else {
		rb_erase(&h->node, &client->by_addr[neuron_handle_imported(h)]);
	}
	neuron_handle_gone(h);
}

/* The number above all others, without a search; false: none, or no memory at once. */
static bool neuron_handle_append(struct neuron_client *client, struct neuron_handle *h)
{
	XA_STATE(xas, &client->handles, client->top + 1UL);

	if (client->top == INT_MAX)
		return false;
	xas_store(&xas, h);
	if (xas_error(&xas))
		return false;
	xas_clear_mark(&xas, XA_FREE_MARK);
	h->number = ++client->top;
	return true;
}

/*
 * Give a handle its number.  This may drop the lock to allocate memory, so the caller must
 * not have changed anything that the lock guards before.
 */
static int neuron_handle_number(struct neuron_client *client, struct neuron_handle *h)
{
	int err;

	if (WARN_ON_ONCE(client->closed))
		return -ENODEV;
	if (client->spare.xa_index) {
		/* It has its slot, which keeps its node: no memory is needed, and no walk. */
		xas_store(&client->spare, h);
		h->number = client->spare.xa_index;
		client->spare.xa_index = 0;
		return 0;
	}
	if (!client->holes && neuron_handle_append(client, h))
		return 0;
	err = __xa_alloc(&client->handles, &h->number, h, XA_LIMIT(1, INT_MAX),
			 GFP_KERNEL_ACCOUNT);
	if (err)
		return -ENOMEM;
	if (h->number <= client->top)
		client->holes--;
	client->top = max(client->top, h->number);
	return 0;
}

/* @out: the number; once the lock is dropped, another thread may free @h. */
static int neuron_handle_add(struct neuron_client *client, struct neuron_handle *h, u32 *out)
{
	int err;

	xa_lock(&client->handles);
	err = neuron_handle_number(client, h);
	if (!err) {
		*out = h->number;
		neuron_handle_link(client, h);
	}
	xa_unlock(&client->handles);
	return err;
}

/*
 * Take a handle out of the table.  One number stays reserved, so that a process which
 * frees and allocates in turn neither tears the table down nor searches it.
 */
static void neuron_handle_take(struct neuron_client *client, struct xa_state *xas,
			       struct neuron_handle *h)
{
	if (client->spare.xa_index) {
		xas_store(xas, NULL);
		client->holes++;
	} else {
		xas_store(xas, XA_ZERO_ENTRY);
		client->spare = *xas;
	}
	neuron_handle_unlink(client, h);
}

static struct neuron_handle *neuron_handle_drop(struct neuron_client *client,
						struct xa_state *xas)
{
	struct neuron_handle *h = xas_load(xas);

	if (!h || xa_is_zero(h) || client->closed)
		return NULL;
	neuron_handle_take(client, xas, h);
	return h;
}

/**
 * neuron_chunk_import() - give a process a handle of a chunk
 * @client: the process, of the device that the chunk is on
 * @chunk: held by the caller; the handle gets its own reference
 * @out: the handle
 *
 * The process may use the whole chunk as if it had allocated it.  The chunk stays charged
 * to the process that did.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int neuron_chunk_import(struct neuron_client *client, struct neuron_chunk *chunk, u32 *out)
{
	struct neuron_handle *h = kzalloc(sizeof(*h), GFP_KERNEL_ACCOUNT);
	int err;

	if (!h)
		return -ENOMEM;
	h->chunk = neuron_chunk_ref(chunk);
	/* It is a user's already, so it is no ring. */
	neuron_chunk_admit(chunk, NEURON_USER_IMPORT);
	err = neuron_handle_add(client, h, out);
	if (err) {
		neuron_chunk_unuse(chunk, NEURON_USER_IMPORT);
		kfree(h);
	}
	return err;
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
	return neuron_handle_add(chunk->client, &chunk->own, out);
}

static noinline int neuron_handle_failed(struct neuron_chunk *chunk, struct neuron_failure *why,
					 int err)
{
	why->reason = NEURON_NATIVE_REASON_HOST;
	neuron_chunk_put(chunk);
	return err;
}

/**
 * neuron_chunk_alloc_handle() - allocate a chunk for a process and give it a handle
 * @client: the process
 * @req: what to allocate; may be charged to any core that is free or the process's
 * @handle: the handle
 * @addr: its device address; 0: it is movable, and the process cannot know when it moves
 * @why: filled in with an error
 *
 * Another thread of the process may guess the handle and free the chunk before this returns.
 *
 * Context: may sleep; none of the device's locks held.
 * Return: 0; -EINVAL no such core; -EBUSY another process has the core; as
 *	   neuron_chunk_alloc().
 */
int __flatten __neuron_hot
neuron_chunk_alloc_handle(struct neuron_client *client, const struct neuron_chunk_request *req,
			  u32 *handle, u64 *addr, struct neuron_failure *why)
{
	struct neuron_chunk *chunk;
	u32 core = req->core;
	int err;

	err = neuron_index_valid(&core, client->nd->geo->nr_cores) ?
		      neuron_limit_core(client, core) :
		      -EINVAL;
	if (unlikely(err)) {
		memset(why, 0, sizeof(*why));
		return err;
	}
	err = neuron_chunk_alloc(client, req, &chunk, why);
	if (err)
		return err;
	*addr = req->movable ? 0 : chunk->addr;
	err = neuron_handle_add(client, &chunk->own, handle);
	return unlikely(err) ? neuron_handle_failed(chunk, why, err) : 0;
}

/* Handles for chunks: numbers above all that were given out, in one walk. */
static noinline u32 __flatten
neuron_handles_add(struct neuron_client *client, struct neuron_chunk **chunks, u32 n,
		   struct neuron_native_mem_bulk_entry *entries)
{
	XA_STATE(xas, &client->handles, 0);
	struct neuron_handle *h;
	u32 i = 0;

	do {
		xas_lock(&xas);
		for (xas_set(&xas, client->top + 1UL); i < n && client->top < INT_MAX; i++) {
			h = &chunks[i]->own;
			xas_store(&xas, h);
			if (xas_error(&xas))
				break;
			xas_clear_mark(&xas, XA_FREE_MARK);
			h->number = ++client->top;
			entries[i].mem_handle = h->number;
			entries[i].pa = chunks[i]->movable ? 0 : chunks[i]->addr;
			neuron_handle_link(client, h);
			xas_next(&xas);
		}
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_KERNEL_ACCOUNT));
	return i;
}

/**
 * neuron_chunks_publish() - give several chunks handles, all of them or none
 * @client: the process that allocated them
 * @chunks: the caller's references are gone afterwards
 * @n: their number
 * @entries: handles and addresses are filled in
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int neuron_chunks_publish(struct neuron_client *client, struct neuron_chunk **chunks, u32 n,
			  struct neuron_native_mem_bulk_entry *entries)
{
	u32 i = 0, part, added, done, number = 0;
	int err = 0;

	while (i < n && !err) {
		part = min_t(u32, n - i, NEURON_FREE_BATCH);
		added = neuron_handles_add(client, chunks + i, part, entries + i);
		i += added;
		/* The numbers above have run out, or memory has. */
		if (added < part) {
			entries[i].pa = chunks[i]->movable ? 0 : chunks[i]->addr;
			err = neuron_handle_add(client, &chunks[i]->own, &number);
			entries[i].mem_handle = number;
			i += !err;
		}
		cond_resched();
	}
	for (done = i; err && i < n; i++)
		neuron_chunk_put(chunks[i]);
	for (i = 0; err && i < done; i++)
		neuron_chunk_unpublish(client, entries[i].mem_handle);
	return err;
}

static void neuron_handle_put(struct neuron_handle *h)
{
	struct neuron_chunk *chunk = h->chunk;

	if (!neuron_handle_imported(h)) {
		neuron_chunk_put(chunk);
		return;
	}
	kfree(h);
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
	XA_STATE(xas, &client->handles, READ_ONCE(chunk->own.number));
	bool known;

	xa_lock(&client->handles);
	/* The number may belong to another chunk by now. */
	known = !client->closed && chunk->own.place != NEURON_PLACE_NONE;
	if (known)
		neuron_handle_drop(client, &xas);
	xa_unlock(&client->handles);
	if (known)
		neuron_chunk_put(chunk);
}

/* The chunk behind a handle, under the lock of the handles of @client. */
static struct neuron_handle *neuron_handle_load(struct neuron_client *client, u64 handle)
{
	if (!handle || handle > INT_MAX || client->closed)
		return NULL;
	return xa_load(&client->handles, handle);
}

static bool neuron_handle_marked(struct neuron_client *client, u64 handle)
{
	struct neuron_handle *h = neuron_handle_load(client, handle);

	return h && h->leaving;
}

/*
 * Take a handle out of the table; with @marked, only if neuron_chunks_mark() marked it.
 * Return: the handle, NULL: it is not there.
 */
static struct neuron_handle *neuron_handle_remove(struct neuron_client *client, u64 handle,
						  bool marked)
{
	XA_STATE(xas, &client->handles, handle);
	struct neuron_handle *h = NULL;

	if (!handle || handle > INT_MAX)
		return NULL;
	xa_lock(&client->handles);
	/* Of two callers only one gets it; the number may be that of another chunk by now. */
	if (!marked || neuron_handle_marked(client, handle))
		h = neuron_handle_drop(client, &xas);
	xa_unlock(&client->handles);
	return h;
}

/**
 * neuron_chunk_unpublish() - take a chunk's handle away
 * @client: owner
 * @handle: its handle; not valid any more afterwards
 *
 * Context: may sleep.
 * Return: 0, -ENOENT.
 */
int __flatten __neuron_hot neuron_chunk_unpublish(struct neuron_client *client, u64 handle)
{
	struct neuron_handle *h = neuron_handle_remove(client, handle, false);

	if (!h)
		return -ENOENT;
	neuron_handle_put(h);
	return 0;
}

/**
 * neuron_chunk_unpublish_hold() - take a chunk's handle away, but hold the chunk
 * @client: owner
 * @handle: its handle; not valid any more afterwards
 * @marked: the caller has marked it with neuron_chunks_mark()
 *
 * Context: may sleep.
 * Return: the chunk, NULL: there is no such handle, or it is not marked any more: it was
 *	   freed, and its number is that of another chunk.
 */
struct neuron_chunk *neuron_chunk_unpublish_hold(struct neuron_client *client, u64 handle,
						 bool marked)
{
	struct neuron_handle *h = neuron_handle_remove(client, handle, marked);
	struct neuron_chunk *chunk;

	if (!h)
		return NULL;
	chunk = neuron_chunk_ref(h->chunk);
	neuron_handle_put(h);
	return chunk;
}

/*
 * neuron_handle_load() for one of several: numbers that follow each other, as
 * neuron_chunks_publish() gives them out, are next to each other in the table.
 */
static struct neuron_handle *neuron_handle_seek(struct neuron_client *client, struct xa_state *xas,
						u64 handle)
{
	struct neuron_handle *h;

	if (!handle || handle > INT_MAX || client->closed)
		return NULL;
	if (handle == xas->xa_index + 1) {
		h = xas_next(xas);
	} else {
		xas_set(xas, handle);
		h = xas_load(xas);
	}
	return xa_is_zero(h) ? NULL : h;
}

/* Chunks of a process that are to be freed together. */
struct neuron_chunks_left {
	struct neuron_client *client;
	u32 n;
	void *chunk[NEURON_FREE_BATCH];
};

static void neuron_chunks_left_free(struct neuron_chunks_left *left)
{
	if (left->n)
		neuron_chunks_free(left->client, (struct neuron_chunk **)left->chunk, left->n);
	left->n = 0;
}

/* Take a handle away that has left the table; the chunk is freed by the end of the batch. */
static __always_inline void neuron_handle_leave(struct neuron_chunks_left *left,
						struct neuron_handle *h)
{
	struct neuron_chunk *chunk = h->chunk;

	if (neuron_handle_imported(h) || chunk->host) {
		neuron_handle_put(h);
	} else if (refcount_dec_and_test(&chunk->ref.refcount)) {
		left->chunk[left->n++] = chunk;
		if (left->n < NEURON_FREE_BATCH)
			return;
		neuron_chunks_left_free(left);
	}
	cond_resched();
}

/**
 * neuron_chunks_mark() - several handles are about to be taken away
 * @client: owner
 * @numbers: the handles
 * @n: their number
 *
 * Context: process.
 * Return: 0; -ENOENT; -EINVAL one is there twice, or another thread is here with it; none is
 *	   marked then.
 */
int neuron_chunks_mark(struct neuron_client *client, const u64 *numbers, u32 n)
{
	XA_STATE(xas, &client->handles, ULONG_MAX);
	struct neuron_handle *h;
	int err = 0;
	u32 i;

	xa_lock(&client->handles);
	for (i = 0; i < n && !err; i++) {
		h = neuron_handle_seek(client, &xas, numbers[i]);
		err = !h ? -ENOENT : h->leaving ? -EINVAL : 0;
		if (!err)
			h->leaving = true;
	}
	for (i--; err && i--;)
		neuron_handle_load(client, numbers[i])->leaving = false;
	xa_unlock(&client->handles);
	return err;
}

/**
 * neuron_chunks_unpublish() - take several handles away, all of them or none
 * @client: owner
 * @numbers: the handles; not valid any more afterwards
 * @n: their number
 *
 * One that another thread takes away meanwhile is gone, too.
 *
 * Context: may sleep.
 * Return: as neuron_chunks_mark().
 */
int neuron_chunks_unpublish(struct neuron_client *client, const u64 *numbers, u32 n)
{
	struct neuron_chunks_left left NEURON_UNINIT;
	XA_STATE(xas, &client->handles, 0);
	struct neuron_handle *h;
	u32 i, k, nr;
	int err = neuron_chunks_mark(client, numbers, n);

	left.client = client;
	left.n = 0;
	for (i = 0; i < n && !err; cond_resched()) {
		xa_lock(&client->handles);
		/* Nothing follows it: where the walk stood may have gone meanwhile. */
		xas_set(&xas, ULONG_MAX);
		for (nr = 0; i < n && nr < NEURON_FREE_BATCH; i++) {
			h = neuron_handle_seek(client, &xas, numbers[i]);
			if (!h || !h->leaving)
				continue;
			neuron_handle_take(client, &xas, h);
			/* The stack has no room for a second array. */
			left.chunk[nr++] = h;
		}
		xa_unlock(&client->handles);
		for (k = 0; k < nr; k++)
			neuron_handle_leave(&left, left.chunk[k]);
		neuron_chunks_left_free(&left);
	}
	return err;
}

/**
 * neuron_chunk_unpublish_all() - take all handles of a client away
 * @client: being torn down, so that no handle is added; the caller has a reference
 *
 * Context: may sleep.
 */
void neuron_chunk_unpublish_all(struct neuron_client *client)
{
	struct neuron_chunks_left left NEURON_UNINIT;
	struct rb_node *node[ARRAY_SIZE(client->by_addr)], *low;
	struct neuron_handle *h, *next;
	LIST_HEAD(unindexed);
	int i;

	left.client = client;
	left.n = 0;
	xa_lock(&client->handles);
	client->closed = true;
	for (i = 0; i < ARRAY_SIZE(node); i++) {
		node[i] = client->by_addr[i].rb_node;
		client->by_addr[i] = RB_ROOT;
	}
	list_replace_init(&client->unindexed, &unindexed);
	xa_unlock(&client->handles);
	xa_destroy(&client->handles);

	/* Nobody else finds them: each tree is turned into a list, the lowest first, as it goes. */
	for (i = 0; i < ARRAY_SIZE(node); i++) {
		while (node[i]) {
			low = node[i]->rb_left;
			if (low) {
				node[i]->rb_left = low->rb_right;
				low->rb_right = node[i];
				node[i] = low;
			} else {
				h = rb_entry(node[i], struct neuron_handle, node);
				node[i] = node[i]->rb_right;
				neuron_handle_gone(h);
				neuron_handle_leave(&left, h);
			}
		}
	}
	list_for_each_entry_safe_reverse(h, next, &unindexed, unindexed) {
		neuron_handle_gone(h);
		neuron_handle_leave(&left, h);
	}
	neuron_chunks_left_free(&left);
}

/*
 * Take a reference and add a user of a chunk that was found under the lock of
 * client->handles.  Return: NULL if there is none, or it admits no such user.
 */
static struct neuron_chunk *neuron_chunk_hold(struct neuron_client *client,
					      struct neuron_handle *h, enum neuron_user as)
{
	struct neuron_chunk *chunk = h ? h->chunk : NULL;

	if (!chunk || !neuron_chunk_admits(chunk, as))
		return NULL;
	kref_get(&chunk->ref);
	if (as && chunk->client == client)
		neuron_chunk_count(chunk, as);
	return chunk;
}

/*
 * The second half, without the lock: an imported chunk counts its users at its own client.
 * If the import has gone meanwhile, it may have become a ring.
 */
static struct neuron_chunk *neuron_chunk_held(struct neuron_client *client,
					      struct neuron_chunk *chunk, enum neuron_user as)
{
	if (!as || !chunk || chunk->client == client || neuron_chunk_admit(chunk, as))
		return chunk;
	neuron_chunk_put(chunk);
	return NULL;
}

/**
 * neuron_chunk_use() - chunk behind a handle
 * @client: whose handle
 * @handle: as user space knows it
 * @as: kind of user; ends with neuron_chunk_unuse(), or neuron_chunk_put() if it is
 *	NEURON_USER_NONE
 *
 * Context: process.
 * Return: the chunk with a reference for the caller, NULL if there is none that admits
 *	   such a user; see neuron_chunk_missing().
 */
struct neuron_chunk *neuron_chunk_use(struct neuron_client *client, u64 handle,
				      enum neuron_user as)
{
	struct neuron_chunk *chunk;
	struct neuron_handle *h;

	if (!handle || handle > INT_MAX)
		return NULL;
	xa_lock(&client->handles);
	h = client->closed ? NULL : xa_load(&client->handles, handle);
	chunk = neuron_chunk_hold(client, h, as);
	xa_unlock(&client->handles);
	return neuron_chunk_held(client, chunk, as);
}

/**
 * neuron_chunk_missing() - why neuron_chunk_use() found nothing
 * @client: whose handle
 * @handle: as user space knows it
 *
 * Context: process.
 * Return: -ENOENT; -EPERM it is ring memory.
 */
int neuron_chunk_missing(struct neuron_client *client, u64 handle)
{
	struct neuron_chunk *chunk = neuron_chunk_get(client, handle);
	bool ring = chunk && READ_ONCE(chunk->kind) == NEURON_CHUNK_RING;

	neuron_chunk_put(chunk);
	if (!ring)
		return -ENOENT;
	neuron_isolation_refused(client->nd, "to write to a ring");
	return -EPERM;
}

/*
 * The first handle of an allocated or an imported chunk that ends above an address.  Under
 * the lock of client->handles.
 */
static struct neuron_handle *neuron_handle_above(struct neuron_client *client, bool imported,
						 u64 addr)
{
	struct rb_node *node = client->by_addr[imported].rb_node;
	struct neuron_handle *h, *best = NULL;

	while (node) {
		h = rb_entry(node, struct neuron_handle, node);
		/* No length changes: this lock is that of its own chunks, imports are users. */
		if (addr < h->chunk->addr || addr - h->chunk->addr < h->chunk->size) {
			best = h;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

/* Is the address of its chunk to stay?  Under the lock of the handles of its client. */
static bool neuron_handle_stays(const struct neuron_handle *h)
{
	return neuron_handle_imported(h) || !h->chunk->movable ||
	       h->chunk->users[NEURON_USER_PIN - 1];
}

/* The handle whose chunk contains an address that is to stay.  Under the same lock. */
static struct neuron_handle *neuron_handle_at(struct neuron_client *client, u64 addr)
{
	struct neuron_handle *h;
	int i;

	neuron_handles_index(client);
	for (i = 0; i < ARRAY_SIZE(client->by_addr); i++) {
		h = neuron_handle_above(client, i, addr);
		if (h && h->chunk->addr <= addr && neuron_handle_stays(h))
			return h;
	}
	return NULL;
}

/**
 * neuron_chunk_find() - chunk with a handle that contains a range of addresses
 * @client: whose handle
 * @addr: device address
 * @len: bytes, not 0
 * @as: kind of user, as for neuron_chunk_use()
 *
 * Context: process.
 * Return: the chunk with a reference for the caller, NULL if there is none that admits
 *	   such a user, or it is movable and not pinned.
 */
struct neuron_chunk *neuron_chunk_find(struct neuron_client *client, u64 addr, u64 len,
				       enum neuron_user as)
{
	struct neuron_chunk *found;
	struct neuron_handle *h;

	xa_lock(&client->handles);
	h = neuron_handle_at(client, addr);
	found = neuron_chunk_hold(client, h, as);
	xa_unlock(&client->handles);
	found = neuron_chunk_held(client, found, as);
	if (!found)
		return NULL;
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
 * Return: the handle, that of the allocation or else of the oldest import if there are
 *	   several; 0 if it was freed meanwhile.
 */
u32 neuron_chunk_handle(struct neuron_client *client, struct neuron_chunk *chunk)
{
	struct neuron_handle *h;
	u32 number;

	xa_lock(&client->handles);
	h = neuron_handle_at(client, chunk->addr);
	number = h && h->chunk == chunk ? h->number : 0;
	xa_unlock(&client->handles);
	return number;
}

/* May it move, and has it no user?  Under the lock of the handles of its client. */
static bool neuron_chunk_idle(const struct neuron_chunk *chunk)
{
	int i;

	if (chunk->client->closed || !chunk->movable || chunk->kind != NEURON_CHUNK_PLAIN ||
	    chunk->own.place == NEURON_PLACE_NONE)
		return false;
	for (i = 0; i < ARRAY_SIZE(chunk->users); i++)
		if (chunk->users[i])
			return false;
	return true;
}

/**
 * neuron_chunk_next() - the first chunk of a process at or above an address
 * @client: the process, which has allocated the chunk and has a handle of it
 * @from: device address
 * @info: filled in, but for state and pid
 *
 * Context: process.
 * Return: false if there is none.
 */
bool neuron_chunk_next(struct neuron_client *client, u64 from,
		       struct neuron_native_range *info)
{
	struct neuron_handle *h;

	xa_lock(&client->handles);
	neuron_handles_index(client);
	h = neuron_handle_above(client, false, from);
	if (h && h->chunk->addr < from)
		h = rb_entry_safe(rb_next(&h->node), struct neuron_handle, node);
	if (h) {
		info->address = h->chunk->addr;
		info->bytes = h->chunk->size;
		info->nc_id = h->chunk->core;
		info->mem_type = h->chunk->category;
		info->owner = h->chunk->owner ? h->chunk->owner->id : 0;
		info->movable = neuron_chunk_idle(h->chunk) ?
				h->chunk->movable - 1 + NEURON_BUDDY_GRANULE_SHIFT : 0;
	}
	xa_unlock(&client->handles);
	return h;
}

/**
 * neuron_chunk_address() - the address of a chunk, for the process
 * @client: the process
 * @handle: its handle
 * @addr: filled in
 *
 * Context: process.
 * Return: 0; -ENOENT; -EOPNOTSUPP it is movable and not pinned.
 */
int neuron_chunk_address(struct neuron_client *client, u64 handle, u64 *addr)
{
	struct neuron_handle *h;
	int err = -ENOENT;

	xa_lock(&client->handles);
	h = neuron_handle_load(client, handle);
	if (h)
		err = neuron_handle_stays(h) ? 0 : -EOPNOTSUPP;
	if (!err)
		*addr = h->chunk->addr;
	xa_unlock(&client->handles);
	return err;
}

/**
 * neuron_chunk_pin() - keep a chunk at its address, or no longer
 * @client: the process that allocated it
 * @handle: its handle
 * @pin: once more, or once less
 * @addr: filled in when it is pinned
 *
 * Pins hold no reference: they end with the handle.
 *
 * Context: process.
 * Return: 0; -ENOENT; -EPERM another process allocated it; -EINVAL it is not pinned;
 *	   -EOVERFLOW too often.
 */
int neuron_chunk_pin(struct neuron_client *client, u64 handle, bool pin, u64 *addr)
{
	struct neuron_handle *h;
	int err = -ENOENT;
	u32 *pins;

	xa_lock(&client->handles);
	h = neuron_handle_load(client, handle);
	if (h && neuron_handle_imported(h)) {
		err = -EPERM;
	} else if (h) {
		pins = &h->chunk->users[NEURON_USER_PIN - 1];
		err = *pins == (pin ? U32_MAX : 0) ? pin ? -EOVERFLOW : -EINVAL : 0;
		if (!err && pin) {
			neuron_chunk_count(h->chunk, NEURON_USER_PIN);
			*addr = h->chunk->addr;
		} else if (!err) {
			--*pins;
		}
	}
	xa_unlock(&client->handles);
	return err;
}

/**
 * neuron_chunk_idle_at() - can the chunk at an address be moved now?
 * @client: the process that allocated it
 * @addr: its device address
 * @align: filled in: it goes to multiples of 2^align granules
 * @start: filled in with the chunk, with a reference for the caller, and marked as moving; NULL:
 *	   nothing holds it
 *
 * Context: process.
 * Return: false: there is none, or it must stay.
 */
bool neuron_chunk_idle_at(struct neuron_client *client, u64 addr, u8 *align,
			  struct neuron_chunk **start)
{
	struct neuron_handle *h;
	bool idle;

	xa_lock(&client->handles);
	neuron_handles_index(client);
	h = neuron_handle_above(client, false, addr);
	idle = h && h->chunk->addr == addr && neuron_chunk_idle(h->chunk) && !h->chunk->moving;
	if (idle) {
		*align = h->chunk->movable - 1;
		if (start) {
			*start = neuron_chunk_ref(h->chunk);
			WRITE_ONCE(h->chunk->moving, NEURON_MOVING);
		}
	}
	xa_unlock(&client->handles);
	return idle;
}

/**
 * neuron_chunk_replace() - a chunk has been copied elsewhere
 * @chunk: found by neuron_chunk_idle_at(), which marked it
 * @block: where it is now; on success where it was
 * @addr: the device address of @block
 *
 * Context: process.
 * Return: false: somebody came, and may have written to the old place.
 */
bool neuron_chunk_replace(struct neuron_chunk *chunk, struct neuron_buddy_block *block, u64 addr)
{
	struct neuron_client *client = chunk->client;
	bool ok;

	xa_lock(&client->handles);
	ok = chunk->moving == NEURON_MOVING && neuron_chunk_idle(chunk);
	WRITE_ONCE(chunk->moving, NEURON_MOVING_NOT);
	if (ok) {
		neuron_handle_unlink(client, &chunk->own);
		swap(chunk->block, *block);
		chunk->addr = addr;
		neuron_handle_link(client, &chunk->own);
		neuron_hbm_note_move(&client->nd->hbm[chunk->hbm], chunk, block->addr);
	}
	xa_unlock(&client->handles);
	return ok;
}
