// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles of chunks, and how a chunk is found by its handle or its address.
 *
 * A published chunk is in its client's handle table and address tree; that is
 * one reference.
 */
#include <linux/slab.h>

#include "../base/client.h"
#include "handle.h"
#include "hbm.h"

#define NEURON_ENTRY_IMPORT	1	/* xa_pointer_tag() */

/*
 * Most chunks that come and go are never looked for by their address.  So the newest
 * ones, up to this number, only enter the tree at the next lookup.
 */
#define NEURON_UNINDEXED_MAX	256

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

/* Under the lock of client->handles, like the functions that follow. */
static void neuron_chunk_index(struct neuron_client *client, struct neuron_chunk *chunk)
{
	struct rb_node **link = &client->chunks.rb_node, *parent = NULL;

	list_del(&chunk->unindexed);
	client->nr_unindexed--;
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
 * neuron_chunks_index() - make client.chunks complete
 * @client: whose chunks
 *
 * Context: the lock of client->handles is held.
 */
void neuron_chunks_index(struct neuron_client *client)
{
	while (!list_empty(&client->unindexed))
		neuron_chunk_index(client, list_first_entry(&client->unindexed, struct neuron_chunk,
							    unindexed));
}

static void neuron_chunk_link(struct neuron_client *client, struct neuron_chunk *chunk)
{
	list_add(&chunk->unindexed, &client->unindexed);
	chunk->place = NEURON_PLACE_UNINDEXED;
	if (++client->nr_unindexed > NEURON_UNINDEXED_MAX)
		neuron_chunk_index(client, list_last_entry(&client->unindexed, struct neuron_chunk,
							   unindexed));
}

/* Remove an entry that loses its handle from the lookup by address. */
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
	if (!client->closed && chunk->place == NEURON_PLACE_UNINDEXED) {
		list_del(&chunk->unindexed);
		client->nr_unindexed--;
	} else if (!client->closed) {
		rb_erase(&chunk->node, &client->chunks);
	}
	chunk->place = NEURON_PLACE_NONE;
}

/*
 * Store an entry under a new handle.  This may drop the lock to allocate memory, so the
 * caller must not have changed anything that the lock guards before.
 */
static int neuron_handle_new(struct neuron_client *client, void *entry, u32 *handle)
{
	int err;

	if (WARN_ON_ONCE(client->closed))
		return -ENODEV;
	if (client->spare) {
		XA_STATE(xas, &client->handles, client->spare);

		/* A reserved handle has its slot already: no memory is needed. */
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
 * Take an entry away from its handle.  One handle stays reserved, so that a process which
 * frees and allocates in turn neither tears the table down nor searches it.
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
 * The process may use the whole chunk as if it had allocated it.  The chunk stays charged
 * to the process that did.
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

/**
 * neuron_chunk_unpublish_all() - take all handles of a client away
 * @client: being torn down, so that no handle is added; the caller has a reference
 *
 * Context: may sleep.
 */
void neuron_chunk_unpublish_all(struct neuron_client *client)
{
	XA_STATE(xas, &client->handles, 1);	/* 0 is never given out */
	void *batch[NEURON_FREE_BATCH], *entry;
	struct neuron_chunk *chunk;
	u32 n, nr_free, i;

	/* All entries go, so none needs to be unlinked from the trees. */
	xa_lock(&client->handles);
	client->closed = true;
	client->chunks = RB_ROOT;
	client->imports = RB_ROOT;
	INIT_LIST_HEAD(&client->unindexed);
	xa_unlock(&client->handles);

	do {
		n = 0;
		xas_lock(&xas);
		xas_for_each(&xas, entry, ULONG_MAX) {
			/* The spare handle. */
			if (xa_is_zero(entry))
				continue;
			neuron_entry_unlink(client, entry);
			batch[n++] = entry;
			if (n == NEURON_FREE_BATCH)
				break;
		}
		xas_pause(&xas);
		xas_unlock(&xas);

		/*
		 * Chunks to be freed move to the front: the stack has no room for a
		 * second array.
		 */
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

/* Take a reference and add a user of a chunk that was found under the lock of client->handles. */
static void neuron_chunk_hold(struct neuron_client *client, struct neuron_chunk *chunk,
			      enum neuron_user as)
{
	kref_get(&chunk->ref);
	if (as && chunk->client == client)
		chunk->users[as]++;
}

/* The second half, without the lock: an imported chunk counts its users at its own client. */
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
 * @as: kind of user; ends with neuron_chunk_unuse(), or neuron_chunk_put() if it is
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
 * @as: kind of user, as for neuron_chunk_use()
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
	neuron_chunks_index(client);
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
