// SPDX-License-Identifier: GPL-2.0-only
/*
 * One hbm per HBM: the allocator, its lock and the accounting that changes
 * together with it.
 */
#include <linux/log2.h>

#include "../base/client.h"
#include "dmem.h"
#include "failure.h"
#include "hbm.h"
#include "limit.h"
#include "recorder.h"
#include "watch.h"

/**
 * neuron_hbm_init() - set up an HBM
 * @nd: device
 * @index: HBM number
 *
 * Context: may sleep, before the device is visible.
 * Return: 0, -EINVAL geometry, -ENOMEM.
 */
int neuron_hbm_init(struct neuron_device *nd, u32 index)
{
	const struct neuron_hbm_geometry *geo = &nd->geo->hbm[index];
	struct neuron_hbm *hbm = &nd->hbm[index];

	if (!geo->size || geo->size % NEURON_BUDDY_GRANULE || geo->size > NEURON_BUDDY_MAX_SIZE ||
	    geo->reserved % NEURON_BUDDY_GRANULE || geo->reserved >= geo->size)
		return -EINVAL;
	spin_lock_init(&hbm->lock);
	mutex_init(&hbm->scrub_lock);
	init_waitqueue_head(&hbm->move_wait);
	spin_lock_init(&hbm->watch_lock);
	hbm->watched = RB_ROOT_CACHED;
	hbm->nd = nd;
	hbm->base = geo->base;
	hbm->index = index;
	return neuron_dmem_init(nd, hbm, geo->size - geo->reserved);
}

static noinline int neuron_hbm_make(struct neuron_hbm *hbm)
{
	const struct neuron_hbm_geometry *geo = &hbm->nd->geo->hbm[hbm->index];
	struct neuron_recorder *recorder;
	struct neuron_buddy *buddy;
	int err;

	recorder = kvzalloc(sizeof(*recorder), GFP_KERNEL);
	if (!recorder)
		return -ENOMEM;
	err = neuron_buddy_create(&buddy, geo->size);
	if (err)
		goto free;
	/* No other thread knows it yet, so there is no -EAGAIN. */
	err = neuron_buddy_prepare(buddy);
	if (!err) {
		spin_lock(&hbm->lock);
		if (geo->reserved)
			err = neuron_buddy_reserve(buddy, 0, geo->reserved);
		if (!err && hbm->nd->geo->hbm_clear_at_start)
			neuron_buddy_mark_clear(buddy);
		spin_unlock(&hbm->lock);
	}
	/* Another process may have made both meanwhile. */
	spin_lock(&hbm->lock);
	if (!err && !hbm->buddy) {
		swap(hbm->recorder, recorder);
		/* Pairs with the acquire of those who look without the lock. */
		smp_store_release(&hbm->buddy, buddy);
		buddy = NULL;
	}
	spin_unlock(&hbm->lock);
	neuron_buddy_destroy(buddy);
free:
	kvfree(recorder);
	return err;
}

/**
 * neuron_hbm_ready() - make the allocator of an HBM, if there is none yet
 * @hbm: the HBM
 *
 * Its tables take some 22 KiB per GiB, the flight recorder 64 KiB; a device that nobody uses
 * does not need them.
 * Takes the firmware's share (uapi/FACTS.md 4) out for good.
 *
 * Context: may sleep; any number of callers.
 * Return: 0, -ENOMEM.
 */
int neuron_hbm_ready(struct neuron_hbm *hbm)
{
	/* Pairs with the release in neuron_hbm_make(). */
	return likely(smp_load_acquire(&hbm->buddy)) ? 0 : neuron_hbm_make(hbm);
}

/**
 * neuron_hbm_exit() - release what neuron_hbm_init() made
 * @hbm: the HBM; no chunk of it exists any more
 *
 * Context: may sleep.
 */
void neuron_hbm_exit(struct neuron_hbm *hbm)
{
	neuron_dmem_exit(hbm);
	neuron_buddy_destroy(hbm->buddy);
	hbm->buddy = NULL;
	kvfree(hbm->recorder);
	hbm->recorder = NULL;
}

/*
 * Charge device memory of @allocs chunks like @chunk, or of a part of it (0), or take the charge
 * back.  Between lock and unlock.
 */
static void neuron_hbm_charge(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
			      enum neuron_native_event_kind kind, u64 bytes, u32 allocs, u64 now)
{
	bool add = kind == NEURON_NATIVE_EVENT_ALLOC || kind == NEURON_NATIVE_EVENT_GROW;
	u64 delta = add ? bytes : -bytes;

	hbm->used[chunk->core][chunk->category] += delta;
	if (chunk->client->kernel)
		hbm->driver += delta;
	else
		chunk->client->hbm_bytes[hbm->index] += delta;
	if (chunk->owner)
		neuron_owner_charge(chunk->owner, hbm->index, bytes, allocs, add, now);
}

/* Between lock and unlock.  @ask: alignment and placement, for struct neuron_record. */
static __always_inline struct neuron_record *
neuron_hbm_record(struct neuron_hbm *hbm, const struct neuron_chunk *chunk, u8 what, u8 ask,
		  u64 addr, u64 bytes, u64 now)
{
	struct neuron_record *r = neuron_recorder_next(hbm->recorder);

	r->time = now;
	r->page = addr >> PAGE_SHIFT;
	r->pages = min_t(u64, bytes >> PAGE_SHIFT, U32_MAX);
	r->client = chunk->client->id;
	r->free = 0;
	r->owner = chunk->owner ? chunk->owner->id : 0;
	r->what = what;
	r->core = chunk->core;
	r->category = chunk->category;
	r->ask = ask;
	return r;
}

/* What was recorded last, in @r, happened to @n more chunks that are charged alike. */
static void neuron_hbm_record_more(struct neuron_hbm *hbm, const struct neuron_record *r,
				   struct neuron_chunk **chunks, u32 n)
{
	struct neuron_recorder *recorder = hbm->recorder;
	struct neuron_record *to = &recorder->ring[recorder->slot];
	u32 i;

	for (i = 0; i < n; i++) {
		const struct neuron_chunk *chunk = chunks[i];

		to = neuron_recorder_after(recorder, to);
		*to = *r;
		to->page = chunk->block.addr >> PAGE_SHIFT;
		to->pages = chunk->size >> PAGE_SHIFT;
	}
	recorder->slot = to - recorder->ring;
	recorder->seq += n;
}

static u8 neuron_hbm_ask(const struct neuron_buddy_request *req)
{
	u8 place = req->flags & NEURON_BUDDY_EXACT ? NEURON_RECORD_AT :
		   req->flags & (NEURON_BUDDY_LOW | NEURON_BUDDY_HIGH);

	return ilog2(req->align | 1) | place << 6;
}

/* A chunk got memory, or gave it back: charge and record it.  Between lock and unlock. */
static void neuron_hbm_note(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
			    enum neuron_native_event_kind kind, u8 ask, u64 addr, u64 bytes,
			    u64 now)
{
	bool whole = kind == NEURON_NATIVE_EVENT_ALLOC || kind == NEURON_NATIVE_EVENT_FREE;

	neuron_hbm_charge(hbm, chunk, kind, bytes, whole, now);
	/* Clearing what is free would push out everything else. */
	if (chunk->kind != NEURON_CHUNK_PIECE)
		neuron_hbm_record(hbm, chunk, kind, ask, addr, bytes, now);
}

/* A request was refused, with figures of that moment in @why.  Between lock and unlock. */
static noinline void neuron_hbm_note_refusal(struct neuron_hbm *hbm,
					     const struct neuron_chunk *chunk,
					     const struct neuron_buddy_request *req,
					     const struct neuron_failure *why)
{
	struct neuron_record *r;

	r = neuron_hbm_record(hbm, chunk, NEURON_NATIVE_EVENT_REFUSE | why->reason << 4,
			      neuron_hbm_ask(req), req->addr, req->size,
			      neuron_hbm_now(hbm));
	r->free = why->free >> PAGE_SHIFT;
}

/**
 * neuron_hbm_note_move() - record that a chunk has another place
 * @hbm: the HBM
 * @chunk: has its new block
 * @from: where it was
 *
 * Context: process, also under client.handles: it is recorded before its end.
 */
void neuron_hbm_note_move(struct neuron_hbm *hbm, const struct neuron_chunk *chunk, u64 from)
{
	struct neuron_record *r;

	spin_lock(&hbm->lock);
	r = neuron_hbm_record(hbm, chunk, NEURON_NATIVE_EVENT_MOVE, 0, chunk->block.addr,
			      chunk->block.size, neuron_hbm_now(hbm));
	r->free = from >> PAGE_SHIFT;
	spin_unlock(&hbm->lock);
}

/* Chunks are whole pages, and so is what is free between them, wherever it begins. */
static u64 neuron_run_align(u64 align)
{
	return align > PAGE_SIZE ? align : NEURON_BUDDY_GRANULE;
}

/**
 * neuron_hbm_explain() - record why a request was refused, and count it
 * @hbm: the HBM
 * @align: of the request, bytes
 * @reason: the reason, unless @why names a limit
 * @why: filled in
 *
 * Context: hbm->lock held.
 */
noinline void neuron_hbm_explain(struct neuron_hbm *hbm, u64 align,
				 enum neuron_native_reason reason, struct neuron_failure *why)
{
	u32 core, cat;

	why->reason = why->limit == NEURON_NO_LIMIT ? reason : NEURON_NATIVE_REASON_CAPPED;
	hbm->refused[why->reason]++;
	why->total = neuron_buddy_total(hbm->buddy);
	why->free = neuron_buddy_free_bytes(hbm->buddy);
	why->largest_free = neuron_buddy_largest(hbm->buddy, NEURON_BUDDY_GRANULE);
	why->largest_aligned = neuron_buddy_largest(hbm->buddy, neuron_run_align(align));
	memset(why->used, 0, sizeof(why->used));
	for (core = 0; core < NEURON_HW_MAX_CORES; core++)
		for (cat = 0; cat < NEURON_NR_CATEGORIES; cat++)
			why->used[cat] += hbm->used[core][cat];
}

/* Was a valid request refused?  An exact range past the end is valid, too. */
static bool neuron_hbm_refused(const struct neuron_buddy_request *req, int err)
{
	return err == -ENOSPC || err == -EDQUOT ||
	       (req->flags & NEURON_BUDDY_EXACT && (err == -EBUSY || err == -EINVAL));
}

/**
 * neuron_hbm_take() - take memory and charge it
 * @hbm: the HBM
 * @chunk: core, category and client to charge
 * @req: the request
 * @block: filled in
 * @why: filled in when it is refused; NULL: a short-lived request, which limits do not
 *	count
 *
 * The contents of the memory do not change.
 *
 * Context: may sleep.
 * Return: 0; -ENOSPC no memory; -EBUSY, -EINVAL range not available; -EDQUOT a limit; -ENOMEM
 *	host memory.
 */
int neuron_hbm_take(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		    const struct neuron_buddy_request *req, struct neuron_buddy_block *block,
		    struct neuron_failure *why)
{
	static const enum neuron_native_reason reasons[] = {
		[NEURON_BUDDY_CAUSE_NONE] = NEURON_NATIVE_REASON_NONE,
		[NEURON_BUDDY_CAUSE_FULL] = NEURON_NATIVE_REASON_FULL,
		[NEURON_BUDDY_CAUSE_FRAGMENTED] = NEURON_NATIVE_REASON_FRAGMENTED,
		[NEURON_BUDDY_CAUSE_ALIGNMENT] = NEURON_NATIVE_REASON_ALIGNMENT,
		[NEURON_BUDDY_CAUSE_BUSY] = NEURON_NATIVE_REASON_FRAGMENTED,
	};
	/* What follows a chunk has a block of its own until both are joined. */
	enum neuron_native_event_kind kind = block == &chunk->block ? NEURON_NATIVE_EVENT_ALLOC :
								      NEURON_NATIVE_EVENT_GROW;
	enum neuron_buddy_cause cause = NEURON_BUDDY_CAUSE_NONE;
	int err;

	do {
		err = neuron_buddy_prepare(hbm->buddy);
		if (err) {
			if (why)
				why->reason = NEURON_NATIVE_REASON_HOST;
			return err;
		}
		spin_lock(&hbm->lock);
		if (why && !neuron_limit_charge(chunk, req->size, &why->limit)) {
			err = -EDQUOT;
		} else {
			err = neuron_buddy_alloc(hbm->buddy, req, block, &cause);
			if (!err)
				neuron_hbm_note(hbm, chunk, kind, neuron_hbm_ask(req), block->addr,
						req->size, neuron_hbm_now(hbm));
			else if (why)
				neuron_limit_uncharge(chunk, req->size);
		}
		if (req->flags & NEURON_BUDDY_EXACT)
			cause = req->size > neuron_buddy_free_bytes(hbm->buddy) ?
				NEURON_BUDDY_CAUSE_FULL : NEURON_BUDDY_CAUSE_BUSY;
		/* Still under the lock, so these are the figures at the refusal. */
		if (why && neuron_hbm_refused(req, err)) {
			neuron_hbm_explain(hbm, req->align, reasons[cause], why);
			neuron_hbm_note_refusal(hbm, chunk, req, why);
		}
		spin_unlock(&hbm->lock);
	} while (err == -EAGAIN);
	return err;
}

/**
 * neuron_hbm_give() - give memory back
 * @hbm: the HBM
 * @chunk: core, category and client that are charged
 * @block: from neuron_hbm_take(), or of a chunk
 * @bytes: that are charged
 * @clear: it reads as zero
 *
 * Context: process.
 */
void neuron_hbm_give(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		     struct neuron_buddy_block *block, u64 bytes, bool clear)
{
	u64 addr = block->addr;
	int err;

	spin_lock(&hbm->lock);
	err = neuron_buddy_free(hbm->buddy, block, clear);
	if (!err)
		neuron_hbm_note(hbm, chunk, block == &chunk->block ? NEURON_NATIVE_EVENT_FREE :
								     NEURON_NATIVE_EVENT_SHRINK,
				0, addr, bytes, neuron_hbm_now(hbm));
	spin_unlock(&hbm->lock);
	WARN_ONCE(err, "neuron: free of %#llx + %#llx: %d\n", block->addr, bytes, err);
}

/**
 * neuron_hbm_join() - grow a chunk by the memory behind it, in one step
 * @hbm: the HBM
 * @chunk: its block changes
 * @tail: block behind the chunk, cleared and charged like it; gone afterwards
 *
 * Context: may sleep.
 * Return: 0; an error of neuron_buddy_grow(): the memory is no longer charged, and after
 *	   -EAGAIN the caller can try again.
 */
int neuron_hbm_join(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
		    struct neuron_buddy_block *tail)
{
	struct neuron_buddy_block grown = chunk->block;
	int err = neuron_buddy_prepare(hbm->buddy);
	bool join = !err;

	spin_lock(&hbm->lock);
	WARN_ON_ONCE(neuron_buddy_free(hbm->buddy, tail, join));
	if (join)
		err = neuron_buddy_grow(hbm->buddy, &grown, grown.size + tail->size);
	if (err)
		neuron_hbm_note(hbm, chunk, NEURON_NATIVE_EVENT_SHRINK, 0,
				grown.addr + grown.size, tail->size, neuron_hbm_now(hbm));
	else
		chunk->block = grown;
	spin_unlock(&hbm->lock);
	return err;
}

/**
 * neuron_hbm_split() - split the end of a block off
 * @hbm: the HBM; prepared
 * @head: gets shorter
 * @size: its new length
 * @tail: filled in
 *
 * Context: process.
 * Return: as neuron_buddy_split().
 */
int neuron_hbm_split(struct neuron_hbm *hbm, struct neuron_buddy_block *head, u64 size,
		     struct neuron_buddy_block *tail)
{
	int err;

	spin_lock(&hbm->lock);
	err = neuron_buddy_split(hbm->buddy, head, size, tail);
	spin_unlock(&hbm->lock);
	return err;
}

/**
 * neuron_hbm_capped() - report that a charge to the cgroup of the process failed
 * @hbm: the HBM
 * @chunk: what would be charged
 * @req: the request
 * @err: -EAGAIN: its limit is reached; else the charge itself failed
 * @why: filled in
 *
 * Context: process.
 * Return: the error for the process.
 */
noinline int neuron_hbm_capped(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
			       const struct neuron_buddy_request *req, int err,
			       struct neuron_failure *why)
{
	if (err != -EAGAIN) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return err;
	}
	spin_lock(&hbm->lock);
	neuron_hbm_explain(hbm, req->align, NEURON_NATIVE_REASON_CAPPED, why);
	neuron_hbm_note_refusal(hbm, chunk, req, why);
	spin_unlock(&hbm->lock);
	return -ENOMEM;
}

/**
 * neuron_hbm_moves() - moves that have ended
 * @hbm: HBM
 *
 * Context: any.
 * Return: their number, with those in vain; for neuron_hbm_take_late().
 */
u64 neuron_hbm_moves(struct neuron_hbm *hbm)
{
	return READ_ONCE(hbm->moves_ended);
}

static bool neuron_hbm_held(const struct neuron_hbm *hbm)
{
	/* Pairs with neuron_move_let_go(). */
	return smp_load_acquire(&hbm->held);
}

/*
 * A request was refused that had seen @seen moves.  Is it to try again, because a move held
 * memory meanwhile?  Waits for its end.
 */
static bool neuron_hbm_moved(struct neuron_hbm *hbm, u64 seen)
{
	wait_event_killable(hbm->move_wait, neuron_hbm_moves(hbm) != seen ||
			    !neuron_hbm_held(hbm));
	return neuron_hbm_moves(hbm) != seen;
}

/**
 * neuron_hbm_take_late() - take memory that may have been taken for a while
 * @hbm: HBM
 * @chunk: who it is for
 * @req: what to take
 * @block: filled in
 * @why: filled in when it is refused
 * @scrub: it may be with the scrubber
 * @moves: neuron_hbm_moves() before the first try: one that came later may hold it
 *
 * Context: may sleep; waits for the end of a piece that is scrubbed and of a move.
 * Return: as neuron_hbm_take(); -ENOSPC also if there was nothing to wait for.
 */
noinline int neuron_hbm_take_late(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
				  const struct neuron_buddy_request *req,
				  struct neuron_buddy_block *block, struct neuron_failure *why,
				  bool scrub, u64 moves)
{
	int err = -ENOSPC;

	if (scrub || READ_ONCE(hbm->scrub)) {
		mutex_lock(&hbm->scrub_lock);
		err = neuron_hbm_take(hbm, chunk, req, block, why);
		mutex_unlock(&hbm->scrub_lock);
	}
	if ((err == -ENOSPC || err == -EBUSY) && !chunk->client->kernel &&
	    neuron_hbm_moved(hbm, moves))
		err = neuron_hbm_take(hbm, chunk, req, block, why);
	return err;
}

/**
 * neuron_hbm_free() - give the device memory of a chunk back
 * @nd: device
 * @chunk: as neuron_hbm_alloc() left it; nothing uses its memory any more
 *
 * Context: may sleep.
 */
void neuron_hbm_free(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	struct neuron_hbm *hbm = &nd->hbm[chunk->hbm];
	bool clear;

	neuron_watch_free(hbm, chunk->block.addr, chunk->size);
	/* Release it before anybody else can allocate it. */
	clear = nd->ops->hbm_release(nd, hbm->index, chunk->block.addr, chunk->size);
	neuron_hbm_give(hbm, chunk, &chunk->block, chunk->size, clear);
	neuron_dmem_uncharge(chunk);
	neuron_limit_uncharge(chunk, chunk->size);
}

/* Clear the memory of a new chunk, or give it back. */
static noinline int neuron_hbm_clear(struct neuron_hbm *hbm, struct neuron_chunk *chunk,
				     struct neuron_failure *why)
{
	struct neuron_device *nd = hbm->nd;
	int err = nd->ops->hbm_clear(nd, hbm->index, chunk->block.addr, chunk->size);

	if (err == -ENOMEM)
		why->reason = NEURON_NATIVE_REASON_HOST;
	if (err)
		neuron_hbm_free(nd, chunk);
	return err;
}

/**
 * neuron_hbm_alloc() - allocate device memory for a chunk and charge it
 * @nd: device
 * @chunk: size, hbm, core, category and client are set, with _EXACT addr; block and addr
 *	are filled in
 * @align: bytes, 0 or a power of two
 * @flags: NEURON_BUDDY_LOW, _HIGH, _EXACT or 0
 * @why: filled in when memory was refused
 *
 * The memory reads as zero.
 *
 * Context: may sleep.
 * Return: 0; -EINVAL, also if it is not in the HBM; -ENOMEM refused, see @why; -EIO clearing
 *	failed.
 */
int neuron_hbm_alloc(struct neuron_device *nd, struct neuron_chunk *chunk, u64 align,
		     u32 flags, struct neuron_failure *why)
{
	struct neuron_hbm *hbm = &nd->hbm[chunk->hbm];
	struct neuron_buddy_request req = {
		.size = chunk->size,
		.align = align,
		.flags = flags,
	};
	bool scrub;
	u64 moves;
	int err;

	if (unlikely(flags & NEURON_BUDDY_EXACT)) {
		u64 room = nd->geo->hbm[hbm->index].size;

		req.addr = chunk->addr - hbm->base;
		if (chunk->addr < hbm->base || req.addr >= room || chunk->size > room - req.addr)
			return -EINVAL;
	}
	err = neuron_hbm_ready(hbm);
	if (err) {
		why->reason = NEURON_NATIVE_REASON_HOST;
		return err;
	}
	if (neuron_fault_hit(&nd->fail_alloc)) {
		spin_lock(&hbm->lock);
		neuron_hbm_explain(hbm, align, NEURON_NATIVE_REASON_FULL, why);
		spin_unlock(&hbm->lock);
		return -ENOMEM;
	}
	err = neuron_dmem_charge(hbm, chunk);
	if (err)
		return neuron_hbm_capped(hbm, chunk, &req, err, why);
	scrub = READ_ONCE(hbm->scrub);
	moves = neuron_hbm_moves(hbm);
	err = neuron_hbm_take(hbm, chunk, &req, &chunk->block, why);
	if (unlikely(err == -ENOSPC || err == -EBUSY))
		err = neuron_hbm_take_late(hbm, chunk, &req, &chunk->block, why, scrub, moves);
	if (err)
		neuron_dmem_uncharge(chunk);
	if (err)
		return err == -ENOSPC || err == -EBUSY || err == -EDQUOT ? -ENOMEM : err;

	chunk->addr = hbm->base + chunk->block.addr;
	return chunk->block.cleared ? 0 : neuron_hbm_clear(hbm, chunk, why);
}

/**
 * neuron_hbm_free_batch() - same for several chunks at once
 * @nd: device
 * @chunks: of one process, HBM, core, category and owner; may be put into another order
 * @n: their number, up to NEURON_FREE_BATCH
 *
 * Context: may sleep.
 * Return: bytes that were freed.
 */
u64 neuron_hbm_free_batch(struct neuron_device *nd, struct neuron_chunk **chunks, u32 n)
{
	struct neuron_hbm *hbm = &nd->hbm[chunks[0]->hbm];
	u64 clear = 0, bytes = 0, addr, end, now;
	struct neuron_record *r;
	u32 i, j;
	bool down;
	int err;

	/* Chunks that were allocated in a row usually lie side by side, upwards or downwards. */
	down = chunks[0]->block.addr > chunks[n - 1]->block.addr;
	for (i = 0; down && i < n / 2; i++)
		swap(chunks[i], chunks[n - 1 - i]);
	for (i = 0; i < n; i = j) {
		addr = chunks[i]->block.addr;
		end = addr;
		for (j = i; j < n && chunks[j]->block.addr == end; j++)
			end += chunks[j]->size;
		bytes += end - addr;
		neuron_watch_free(hbm, addr, end - addr);
		if (nd->ops->hbm_release(nd, hbm->index, addr, end - addr))
			clear |= GENMASK_ULL(j - 1, i);
	}
	/* A chunk begins with its block. */
	BUILD_BUG_ON(offsetof(struct neuron_chunk, block));
	spin_lock(&hbm->lock);
	err = neuron_buddy_free_batch(hbm->buddy, (const struct neuron_buddy_block **)chunks, n,
				      clear);
	now = neuron_hbm_now(hbm);
	/* Also for a refused one, because nobody will free it again. */
	r = neuron_hbm_record(hbm, chunks[0], NEURON_NATIVE_EVENT_FREE, 0, chunks[0]->block.addr,
			      chunks[0]->size, now);
	neuron_hbm_record_more(hbm, r, chunks + 1, n - 1);
	neuron_hbm_charge(hbm, chunks[0], NEURON_NATIVE_EVENT_FREE, bytes, n, now);
	spin_unlock(&hbm->lock);
	WARN_ONCE(err, "neuron: free of %u chunks: %d\n", n, err);
	for (i = 0; i < n; i++)
		neuron_dmem_uncharge(chunks[i]);
	neuron_limit_uncharge(chunks[0], bytes);
	return bytes;
}

/* Take memory for chunks and charge it; as many as there is room for.  @bytes: of all. */
static u32 neuron_hbm_take_batch(struct neuron_hbm *hbm, struct neuron_chunk **chunks,
				 const struct neuron_native_mem_bulk_entry *entries, u32 n,
				 u64 bytes, u32 flags)
{
	struct neuron_buddy_request req = { .flags = flags };
	u64 limit, now, left;
	u32 done = 0, before;
	int err;

	do {
		if (neuron_buddy_prepare(hbm->buddy))
			break;
		left = bytes;
		before = done;
		spin_lock(&hbm->lock);
		err = neuron_limit_charge(chunks[0], bytes, &limit) ? 0 : -EDQUOT;
		now = neuron_hbm_now(hbm);
		while (done < n && !err) {
			struct neuron_chunk *chunk = chunks[done];

			req.size = chunk->size;
			req.align = max_t(u64, entries[done].align, PAGE_SIZE);
			err = neuron_buddy_alloc(hbm->buddy, &req, &chunk->block, NULL);
			if (err)
				break;
			chunk->addr = hbm->base + chunk->block.addr;
			neuron_hbm_record(hbm, chunk, NEURON_NATIVE_EVENT_ALLOC,
					  neuron_hbm_ask(&req), chunk->block.addr, req.size, now);
			bytes -= req.size;
			done++;
		}
		neuron_hbm_charge(hbm, chunks[0], NEURON_NATIVE_EVENT_ALLOC, left - bytes,
				  done - before, now);
		/* Nobody sees a charge that is taken back. */
		if (err && err != -EDQUOT)
			neuron_limit_uncharge(chunks[0], bytes);
		spin_unlock(&hbm->lock);
	} while (err == -EAGAIN);
	return done;
}

/**
 * neuron_hbm_alloc_batch() - allocate device memory for several chunks, if nothing is in the way
 * @nd: device
 * @chunks: of one process, HBM, core, category and owner; block and addr are filled in
 * @entries: alignment of each
 * @n: their number, up to NEURON_FREE_BATCH
 * @bytes: sum of their lengths
 * @flags: NEURON_BUDDY_LOW, _HIGH or 0
 *
 * The memory reads as zero.
 *
 * Context: may sleep.
 * Return: false: none of them has memory.
 */
bool neuron_hbm_alloc_batch(struct neuron_device *nd, struct neuron_chunk **chunks,
			    const struct neuron_native_mem_bulk_entry *entries, u32 n, u64 bytes,
			    u32 flags)
{
	struct neuron_hbm *hbm = &nd->hbm[chunks[0]->hbm];
	u32 i, charged = 0, done = 0;
	bool ok = true;

	if (bytes > NEURON_BUDDY_MAX_SIZE || neuron_fault_armed(&nd->fail_alloc) ||
	    neuron_hbm_ready(hbm))
		return false;
	while (charged < n && !neuron_dmem_charge(hbm, chunks[charged]))
		charged++;
	if (charged == n)
		done = neuron_hbm_take_batch(hbm, chunks, entries, n, bytes, flags);
	for (i = 0; i < n && done == n && ok; i++)
		ok = chunks[i]->block.cleared ||
		     !nd->ops->hbm_clear(nd, hbm->index, chunks[i]->block.addr, chunks[i]->size);
	if (done == n && ok)
		return true;
	for (i = done; i < charged; i++)
		neuron_dmem_uncharge(chunks[i]);
	if (done)
		neuron_hbm_free_batch(nd, chunks, done);
	return false;
}

/* The figures that the allocator will give once it is made. */
static void neuron_hbm_unused(const struct neuron_hbm_geometry *geo,
			      struct neuron_buddy_stats *bs)
{
	memset(bs, 0, sizeof(*bs));
	bs->total = geo->size;
	bs->reserved = geo->reserved;
	bs->free = geo->size - geo->reserved;
	bs->largest = bs->free;
	bs->order_free[ilog2(bs->free >> NEURON_BUDDY_GRANULE_SHIFT)] = bs->free;
}

/* Under hbm->lock. */
static void neuron_hbm_read(struct neuron_hbm *hbm, struct neuron_buddy_stats *bs)
{
	/* Pairs with the release in neuron_hbm_make(). */
	struct neuron_buddy *buddy = smp_load_acquire(&hbm->buddy);

	if (buddy)
		neuron_buddy_stats(buddy, bs);
	else
		neuron_hbm_unused(&hbm->nd->geo->hbm[hbm->index], bs);
}

/**
 * neuron_hbm_figures() - figures of an HBM's allocator
 * @hbm: the HBM
 * @bs: filled in
 *
 * Context: process.
 */
void neuron_hbm_figures(struct neuron_hbm *hbm, struct neuron_buddy_stats *bs)
{
	spin_lock(&hbm->lock);
	neuron_hbm_read(hbm, bs);
	spin_unlock(&hbm->lock);
}

/**
 * neuron_hbm_largest() - longest free run of an HBM
 * @hbm: the HBM
 * @align: alignment of its start, bytes, 0 or a power of two
 *
 * Context: any.
 * Return: bytes.
 */
u64 neuron_hbm_largest(struct neuron_hbm *hbm, u64 align)
{
	const struct neuron_hbm_geometry *geo = &hbm->nd->geo->hbm[hbm->index];
	/* Pairs with the release in neuron_hbm_make(). */
	struct neuron_buddy *buddy = smp_load_acquire(&hbm->buddy);
	u64 bytes;

	align = neuron_run_align(align);
	if (!buddy)
		return geo->size - ALIGN(geo->reserved, align);
	spin_lock(&hbm->lock);
	bytes = neuron_buddy_largest(buddy, align);
	spin_unlock(&hbm->lock);
	return bytes;
}

/**
 * neuron_hbm_stats() - consistent picture of an HBM
 * @hbm: the HBM
 * @client: whose own_process to report, may be NULL
 * @stats: filled in, except size and hbm
 *
 * Context: process.
 */
void neuron_hbm_stats(struct neuron_hbm *hbm, struct neuron_client *client,
		      struct neuron_native_hbm_stats *stats)
{
	struct neuron_buddy_stats bs;
	unsigned int core, cat;

	BUILD_BUG_ON(NEURON_BUDDY_ORDERS > NEURON_NATIVE_MAX_ORDERS);
	BUILD_BUG_ON(NEURON_NR_CATEGORIES > NEURON_NATIVE_MAX_CATEGORIES);
	BUILD_BUG_ON(NEURON_HW_MAX_CORES > NEURON_NATIVE_MAX_CORES);

	spin_lock(&hbm->lock);
	memset(stats->by_category, 0, sizeof(stats->by_category));
	memset(stats->by_core, 0, sizeof(stats->by_core));
	for (core = 0; core < NEURON_HW_MAX_CORES; core++) {
		for (cat = 0; cat < NEURON_NR_CATEGORIES; cat++) {
			stats->by_category[cat] += hbm->used[core][cat];
			stats->by_core[core] += hbm->used[core][cat];
		}
	}
	stats->driver = hbm->driver;
	stats->own_process = client ? client->hbm_bytes[hbm->index] : 0;
	stats->fail_full = hbm->refused[NEURON_NATIVE_REASON_FULL];
	stats->fail_fragmented = hbm->refused[NEURON_NATIVE_REASON_FRAGMENTED];
	stats->fail_alignment = hbm->refused[NEURON_NATIVE_REASON_ALIGNMENT];
	stats->fail_capped = hbm->refused[NEURON_NATIVE_REASON_CAPPED];
	stats->moves = hbm->moves;
	stats->moved_bytes = hbm->moved_bytes;
	stats->move_failures = hbm->move_failures;
	neuron_hbm_read(hbm, &bs);
	spin_unlock(&hbm->lock);

	stats->total = bs.total;
	stats->used = bs.used;
	stats->reserved = bs.reserved;
	stats->free = bs.free;
	stats->largest_free = bs.largest;
	stats->high_water = bs.high_water;
	stats->nr_allocs = bs.allocs;
	stats->metadata = bs.metadata;
	memset(stats->free_by_order, 0, sizeof(stats->free_by_order));
	memcpy(stats->free_by_order, bs.order_free, sizeof(bs.order_free));
}
