// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moving a chunk: everything but the copy, which is in dma/move.c.
 *
 * The chunk is marked, copied to a place of its own while it stays usable where it is, and then
 * changes its place in one step, under the lock of its client's handles.  Nobody waits for a
 * move: whoever comes to write to the chunk, or knows its address, takes the mark away, and then
 * the copy is thrown away.  So nothing that delays a copy delays anybody else.
 */
#include "../base/client.h"
#include "../base/trace.h"
#include "compact.h"
#include "dump.h"
#include "handle.h"
#include "hbm.h"
#include "move.h"
#include "watch.h"

#define NEURON_MOVE_RANGES	16

static u32 neuron_granules(u64 bytes)
{
	return bytes >> NEURON_BUDDY_GRANULE_SHIFT;
}

/* As neuron_chunk_idle_at(), of the processes of @view. */
static bool neuron_move_find(const struct neuron_move_view *view, u64 addr, u8 *align,
			     struct neuron_chunk **start)
{
	u32 i;

	for (i = 0; i < view->nr; i++)
		if (neuron_chunk_idle_at(view->src[i].client, addr, align, start))
			return true;
	return false;
}

static enum neuron_compact_state neuron_move_state(const struct neuron_move_view *view,
						   const struct neuron_buddy_range *range,
						   u8 *align)
{
	u64 addr = view->hbm->base + range->addr;
	u32 i;

	if (range->state == NEURON_BUDDY_RANGE_FREE)
		return NEURON_COMPACT_FREE;
	if (range->state != NEURON_BUDDY_RANGE_USED)
		return NEURON_COMPACT_FIXED;
	for (i = 0; i < view->nr_stay; i++)
		if (view->stay[i] == addr)
			return NEURON_COMPACT_FIXED;
	return neuron_move_find(view, addr, align, NULL) ? NEURON_COMPACT_MOVABLE :
							   NEURON_COMPACT_FIXED;
}

/**
 * neuron_move_picture() - what is where in an HBM, and what of it can be moved
 * @view: the HBM, and whose memory may be moved
 * @c: filled in
 * @budget: bytes to copy, at most; 0: any number
 *
 * It may be out of date when it is there; neuron_move_begin() finds out.
 *
 * Context: may sleep.
 */
void neuron_move_picture(const struct neuron_move_view *view, struct neuron_compact *c, u64 budget)
{
	struct neuron_buddy_range range[NEURON_MOVE_RANGES];
	struct neuron_hbm *hbm = view->hbm;
	enum neuron_compact_state state;
	unsigned int i, n;
	u8 align = 0;
	u64 pos = 0;

	neuron_compact_clear(c, budget ? min_t(u64, budget >> NEURON_BUDDY_GRANULE_SHIFT, U32_MAX) :
				U32_MAX);
	do {
		spin_lock(&hbm->lock);
		n = neuron_buddy_walk(hbm->buddy, &pos, range, NEURON_MOVE_RANGES);
		spin_unlock(&hbm->lock);
		for (i = 0; i < n; i++) {
			state = neuron_move_state(view, &range[i], &align);
			neuron_compact_add(c, neuron_granules(range[i].size), state, align);
		}
		cond_resched();
	} while (n);
}

/* The move holds nothing any more. */
static void neuron_move_let_go(struct neuron_hbm *hbm)
{
	/* Who finds it so finds the number of moves that have ended. */
	smp_store_release(&hbm->held, false);
	wake_up_all(&hbm->move_wait);
}

/* No memory is held any more: neither a place, nor a chunk that others have freed. */
static void neuron_move_release(struct neuron_move *move)
{
	struct neuron_hbm *hbm = move->hbm;

	neuron_chunk_put(move->chunk);
	/* Only now: who is refused memory that was held, and sees this number, tries again. */
	WRITE_ONCE(hbm->moves_ended, hbm->moves_ended + 1);
	neuron_move_let_go(hbm);
}

/* Take the mark away: the chunk stays where it is. */
static void neuron_move_stop(struct neuron_move *move)
{
	xa_lock(&move->chunk->client->handles);
	WRITE_ONCE(move->chunk->moving, NEURON_MOVING_NOT);
	xa_unlock(&move->chunk->client->handles);
	neuron_move_release(move);
}

/**
 * neuron_move_begin() - begin to move a chunk
 * @view: as for neuron_move_picture()
 * @plan: the chunk, and where it goes
 * @move: filled in; ends with neuron_move_end()
 *
 * Context: may sleep.
 * Return: 0; -EAGAIN the picture is out of date; -ENOMEM.
 */
int neuron_move_begin(const struct neuron_move_view *view, const struct neuron_compact_move *plan,
		      struct neuron_move *move)
{
	struct neuron_hbm *hbm = view->hbm;
	struct neuron_buddy_request req = {
		.size = (u64)plan->len << NEURON_BUDDY_GRANULE_SHIFT,
		.addr = (u64)plan->to << NEURON_BUDDY_GRANULE_SHIFT,
		.flags = NEURON_BUDDY_EXACT,
	};
	u64 from = hbm->base + ((u64)plan->from << NEURON_BUDDY_GRANULE_SHIFT);
	struct neuron_chunk *chunk;
	int err = -EAGAIN;
	u8 align;

	/* Before there is a reference: who frees the chunk from then on knows of it. */
	WRITE_ONCE(hbm->held, true);
	if (!neuron_move_find(view, from, &align, &chunk)) {
		neuron_move_let_go(hbm);
		return -EAGAIN;
	}
	move->hbm = hbm;
	move->chunk = chunk;
	/* The place is the driver's until the chunk has it, and charged to nobody else. */
	move->piece = (struct neuron_chunk){
		.hbm = hbm->index,
		.core = chunk->core,
		.category = NEURON_MEMALLOC_TYPE_NCDEV_DEVICE,
		.kind = NEURON_CHUNK_PIECE,
		.client = hbm->nd->kclient,
		.size = req.size,
	};
	/* It may be another chunk than that of the picture. */
	if (READ_ONCE(chunk->size) == req.size && align == plan->align)
		err = neuron_hbm_take(hbm, &move->piece, &req, &move->piece.block, NULL);
	if (!err)
		return 0;
	neuron_move_stop(move);
	return err == -ENOMEM ? err : -EAGAIN;
}

/**
 * neuron_move_end() - the chunk was copied, or not
 * @move: from neuron_move_begin()
 * @err: of the copy; then the chunk stays where it is
 *
 * Context: may sleep.
 * Return: 0 it has moved; @err; -EAGAIN somebody came, and it stays where it is.
 */
int neuron_move_end(struct neuron_move *move, int err)
{
	struct neuron_buddy_block *block = &move->piece.block;
	struct neuron_chunk *chunk = move->chunk;
	struct neuron_hbm *hbm = move->hbm;
	struct neuron_device *nd = hbm->nd;
	u64 to = block->addr, bytes = move->piece.size;
	bool clear;

	if (!err && !neuron_chunk_replace(chunk, block, hbm->base + block->addr))
		err = -EAGAIN;
	trace_neuron_move(nd->dev.id, chunk, hbm->base + (err ? chunk->block.addr : block->addr),
			  hbm->base + to, err);
	neuron_watch_free(hbm, block->addr, bytes);
	/* Release it before anybody else can allocate it. */
	clear = nd->ops->hbm_release(nd, hbm->index, block->addr, bytes);
	neuron_hbm_give(hbm, &move->piece, block, bytes, clear);
	spin_lock(&hbm->lock);
	if (err) {
		WRITE_ONCE(hbm->move_failures, hbm->move_failures + 1);
	} else {
		WRITE_ONCE(hbm->moves, hbm->moves + 1);
		hbm->moved_bytes += bytes;
	}
	spin_unlock(&hbm->lock);
	if (err)
		neuron_move_stop(move);
	else
		neuron_move_release(move);
	return err;
}
