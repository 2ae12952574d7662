// SPDX-License-Identifier: GPL-2.0-only
/*
 * MEM_GROW: make a chunk longer in place.  Its address, its contents and its users are
 * not touched; existing users (mappings, rings, transfers, exports) keep the length they
 * were made with.  So a chunk can get shorter only while it has no such user: README.md.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "account.h"
#include "dmem.h"
#include "failure.h"
#include "handle.h"
#include "limit.h"
#include "watch.h"

/* Take the bytes behind a chunk, so that nobody else gets them. */
static int neuron_tail_take(struct neuron_device *nd, struct neuron_chunk *chunk, u64 more,
			    struct neuron_buddy_block *tail, struct neuron_failure *why)
{
	struct neuron_hbm *hbm = &nd->hbm[chunk->hbm];
	struct neuron_buddy_request req = {
		.size = more,
		.addr = chunk->block.addr + chunk->block.size,
		.flags = NEURON_BUDDY_EXACT,
	};
	u64 moves = neuron_hbm_moves(hbm);
	int err;

	err = neuron_dmem_grow(hbm, chunk, more);
	if (err)
		return neuron_hbm_capped(hbm, chunk, &req, err, why);
	err = neuron_hbm_take_late(hbm, chunk, &req, tail, why, true, moves);
	if (err)
		neuron_dmem_shrink(chunk, more);
	return err;
}

/* Uncharge memory that is no longer the chunk's, or did not become the chunk's. */
static void neuron_tail_uncharge(struct neuron_chunk *chunk, u64 bytes)
{
	neuron_limit_uncharge(chunk, bytes);
	neuron_dmem_shrink(chunk, bytes);
}

static int neuron_tail_add(struct neuron_device *nd, struct neuron_chunk *chunk, u64 more,
			   struct neuron_failure *why)
{
	struct neuron_hbm *hbm = &nd->hbm[chunk->hbm];
	struct neuron_buddy_block tail;
	int err;

	do {
		err = neuron_tail_take(nd, chunk, more, &tail, why);
		/* The memory that follows is not free, or a limit is reached: see @why. */
		if (err)
			return -ENOMEM;
		if (!tail.cleared)
			err = nd->ops->hbm_clear(nd, chunk->hbm, tail.addr, more);
		if (err)
			neuron_hbm_give(hbm, chunk, &tail, more, false);
		else
			err = neuron_hbm_join(hbm, chunk, &tail);
		if (err)
			neuron_tail_uncharge(chunk, more);
	} while (err == -EAGAIN);
	if (err == -ENOMEM)
		why->reason = NEURON_NATIVE_REASON_HOST;
	if (err != -ENOSPC)
		return err;
	/* A short chunk lives in a frame and cannot leave it. */
	spin_lock(&hbm->lock);
	neuron_hbm_explain(hbm, 0, NEURON_NATIVE_REASON_FRAGMENTED, why);
	spin_unlock(&hbm->lock);
	return -ENOMEM;
}

/*
 * May the holder of a handle change a chunk?  It must not be ring memory and must still
 * have its handle, and no other process may have one.  Under the lock of the handles of
 * @chunk's client.
 */
static int neuron_chunk_changeable(const struct neuron_client *client,
				   const struct neuron_chunk *chunk)
{
	/*
	 * The caller may be an importer, even one whose import is gone by now: it may not
	 * change the chunk.
	 */
	if (chunk->client != client || chunk->users[NEURON_USER_IMPORT - 1] ||
	    chunk->kind == NEURON_CHUNK_RING)
		return -EBUSY;
	return chunk->own.place == NEURON_PLACE_NONE ? -ENOENT : 0;
}

/*
 * @bytes: the new length, rounded up to a page.  The added bytes read as zero and are
 * charged like the chunk.  Return: 0; -EINVAL host memory, or shorter than the chunk is;
 * -EOVERFLOW; -EBUSY another process has a handle of it, or owns or has claimed the core;
 * -ENOENT it was freed; -ENOMEM the memory that follows is not free, see @why; -EIO
 * clearing failed; -EINTR.  Nothing changes on error.
 */
static int neuron_chunk_grow(struct neuron_client *client, struct neuron_chunk *chunk,
			     u64 bytes, struct neuron_failure *why)
{
	struct neuron_device *nd = chunk->client->nd;
	u64 size, more;
	int err = 0;

	neuron_failure_none(why);
	if (chunk->host)
		return -EINVAL;
	if (check_add_overflow(bytes, (u64)PAGE_SIZE - 1, &size))
		return -EOVERFLOW;
	size &= PAGE_MASK;

	if (mutex_lock_killable(&nd->grow_lock))
		return -EINTR;
	if (size < chunk->size) {
		err = -EINVAL;
		goto unlock;
	}
	more = size - chunk->size;
	if (!more)
		goto unlock;
	/*
	 * Other processes were given the old length and no more.  No import is added
	 * meanwhile, because imports are admitted under grow_lock.
	 */
	xa_lock(&chunk->client->handles);
	err = neuron_chunk_changeable(client, chunk);
	/* It does not move meanwhile. */
	if (!err)
		neuron_chunk_count(chunk, NEURON_USER_TRANSFER);
	xa_unlock(&chunk->client->handles);
	if (err)
		goto unlock;
	err = neuron_limit_core(client, chunk->core) ?: neuron_tail_add(nd, chunk, more, why);
	if (!err)
		neuron_account(chunk, more, more, true);
	xa_lock(&chunk->client->handles);
	if (!err) {
		/* A reader of the new length finds the memory cleared and owned by the chunk. */
		smp_store_release(&chunk->size, size);
	}
	chunk->users[NEURON_USER_TRANSFER - 1]--;
	xa_unlock(&chunk->client->handles);
unlock:
	mutex_unlock(&nd->grow_lock);
	return err;
}

/*
 * If the chunk has a handle and no user, its end becomes a block of its own, which nobody
 * else knows, and the chunk gets shorter.  Users that are admitted later find the new
 * length.
 */
static int neuron_tail_cut(struct neuron_client *client, struct neuron_chunk *chunk, u64 size,
			   struct neuron_buddy_block *tail)
{
	struct neuron_hbm *hbm = &client->nd->hbm[chunk->hbm];
	struct neuron_buddy_block head;
	int err, i;

	do {
		err = neuron_buddy_prepare(hbm->buddy);
		if (err)
			return err;
		xa_lock(&client->handles);
		err = neuron_chunk_changeable(client, chunk);
		head = chunk->block;
		for (i = 0; i < ARRAY_SIZE(chunk->users) && !err; i++)
			err = chunk->users[i] ? -EBUSY : 0;
		/* What is being read is not given to anybody. */
		if (!err && chunk->moving) {
			neuron_chunk_spoil_move(chunk);
			err = -EINPROGRESS;
		}
		if (!err)
			err = neuron_hbm_split(hbm, &head, size, tail);
		if (!err) {
			chunk->block = head;
			WRITE_ONCE(chunk->size, size);
		}
		xa_unlock(&client->handles);
	} while (err == -EAGAIN);
	return err == -ENOSPC ? -EOPNOTSUPP : err;
}

/*
 * @bytes: the new length, rounded up to a page.  Return: 0; -EINVAL host memory, 0, or
 * longer than the chunk is; -EBUSY the chunk has users, or another process has a handle
 * of it; -ENOENT it was freed; -EOPNOTSUPP it shares a frame; -ENOMEM; -EINTR.  Nothing
 * changes on error.
 */
static int neuron_chunk_shrink(struct neuron_client *client, struct neuron_chunk *chunk, u64 bytes)
{
	struct neuron_device *nd = client->nd;
	struct neuron_hbm *hbm = &nd->hbm[chunk->hbm];
	struct neuron_buddy_block tail;
	bool clear;
	int err;

	if (chunk->host)
		return -EINVAL;
again:
	if (mutex_lock_killable(&nd->grow_lock))
		return -EINTR;
	err = -EINVAL;
	if (!bytes || bytes > chunk->size)
		goto unlock;
	err = 0;
	if (PAGE_ALIGN(bytes) == chunk->size)
		goto unlock;
	/* The lock is that of the client that the chunk belongs to. */
	err = chunk->client == client ? neuron_tail_cut(client, chunk, PAGE_ALIGN(bytes), &tail) :
					-EBUSY;
	if (err)
		goto unlock;
	neuron_watch_free(hbm, tail.addr, tail.size);
	/* Release it before anybody else can allocate it. */
	clear = nd->ops->hbm_release(nd, chunk->hbm, tail.addr, tail.size);
	neuron_hbm_give(hbm, chunk, &tail, tail.size, clear);
	neuron_limit_uncharge(chunk, tail.size);
	neuron_dmem_cut(chunk, tail.size);
	neuron_account(chunk, tail.size, tail.size, false);
unlock:
	mutex_unlock(&nd->grow_lock);
	if (err != -EINPROGRESS)
		return err;
	/* It is being moved, which ends soon, because it is in vain. */
	if (!wait_event_killable(hbm->move_wait, !READ_ONCE(chunk->moving)))
		goto again;
	return -EINTR;
}

int neuron_do_native_mem_grow(struct neuron_call *call)
{
	struct neuron_native_mem_grow __user *result = call->uarg;
	struct neuron_native_mem_grow *a = call->arg;
	struct neuron_failure why = { };
	bool shrink = a->flags & NEURON_NATIVE_GROW_SHRINK;
	u32 seen = neuron_teardowns_read();
	struct neuron_chunk *chunk;
	int err;

	if (a->flags & ~NEURON_NATIVE_GROW_SHRINK || a->reason || a->__reserved)
		return -EINVAL;
	/* Shrinking cannot be undone if a later copy to the caller fails. */
	if (put_user(0, &result->reason))
		return -EFAULT;
	chunk = neuron_chunk_get(call->client, a->mem_handle);
	if (!chunk)
		return -ENOENT;
	err = shrink ? neuron_chunk_shrink(call->client, chunk, a->bytes) :
		       neuron_chunk_grow(call->client, chunk, a->bytes, &why);
	/* The memory that follows may be that of a process that is being torn down. */
	if (err == -ENOMEM && !shrink && neuron_reaped(neuron_clients_reap(call->nd, seen), &err))
		err = neuron_chunk_grow(call->client, chunk, a->bytes, &why);
	if (!err)
		a->bytes = READ_ONCE(chunk->size);
	neuron_chunk_put(chunk);
	a->reason = why.reason;
	a->total = why.total;
	a->free = why.free;
	a->largest_free = why.largest_free;
	return err;
}
