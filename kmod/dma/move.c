// SPDX-License-Identifier: GPL-2.0-only
/*
 * MEM_COMPACT: move chunks, so that a request fits.  mem/compact.c says which, mem/move.c does
 * everything but the copy.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../mem/compact.h"
#include "../mem/dump.h"
#include "../mem/hbm.h"
#include "../mem/move.h"
#include "copy.h"

/* Bytes after which a copy asks whether it is still worth while: within a batch of the ring. */
#define NEURON_MOVE_STEP	(1000ull * NEURON_DESC_MAX_LEN)

/* Plans of one call: each one makes the longest run longer, if nobody interferes. */
#define NEURON_MOVE_PLANS	64

/* Ranges that are looked at.  What lies behind them stays where it is. */
#define NEURON_MOVE_RANGES_MIN	64u
#define NEURON_MOVE_RANGES_MAX	(1u << 18)

static int neuron_move_copy(const struct neuron_move *move)
{
	struct neuron_chunk *chunk = move->chunk;
	u64 len = move->piece.size, pos, n;
	int err = 0;

	for (pos = 0; pos < len && !err; pos += n) {
		n = min(len - pos, NEURON_MOVE_STEP);
		err = neuron_move_wanted(move) ?
		      neuron_dma_copy(move->hbm->nd, chunk->core,
				      move->hbm->base + move->piece.block.addr + pos,
				      move->hbm->base + chunk->block.addr + pos, n) : -EAGAIN;
	}
	return err;
}

/* Carry a plan out.  Return: 0; -EAGAIN it is out of date. */
static noinline_for_stack int neuron_plan_run(struct neuron_move_view *view,
					      const struct neuron_compact *c,
					      struct neuron_native_mem_compact *a)
{
	struct neuron_move move;
	int err = 0;
	u32 i;

	for (i = 0; i < c->nr_moves && !err && !signal_pending(current); i++) {
		err = neuron_move_begin(view, &c->move[i], &move);
		if (!err)
			err = neuron_move_end(&move, neuron_move_copy(&move));
		if (!err) {
			a->moves++;
			a->moved_bytes += move.piece.size;
		} else if (view->nr_stay < NEURON_MOVE_STAY) {
			view->stay[view->nr_stay++] = view->hbm->base +
				((u64)c->move[i].from << NEURON_BUDDY_GRANULE_SHIFT);
		}
	}
	return err;
}

static int neuron_compact_run(struct neuron_move_view *view, struct neuron_compact *c,
			      struct neuron_native_mem_compact *a)
{
	u32 want = PAGE_ALIGN(a->bytes) >> NEURON_BUDDY_GRANULE_SHIFT;
	u8 align = ilog2(max_t(u64, a->align, PAGE_SIZE)) - NEURON_BUDDY_GRANULE_SHIFT;
	u64 budget = a->budget ?: U64_MAX;
	int err = 0, i;

	for (i = 0; i < NEURON_MOVE_PLANS && !signal_pending(current); i++) {
		neuron_move_picture(view, c, budget - a->moved_bytes);
		if (!neuron_compact_plan(c, want, align))
			return 0;
		err = neuron_plan_run(view, c, a);
		if ((err && err != -EAGAIN) || view->nr_stay == NEURON_MOVE_STAY ||
		    a->moved_bytes >= budget)
			break;
	}
	/* What changed meanwhile is no error. */
	return err == -EAGAIN ? 0 : err;
}

/* Room for the picture of an HBM: a range for each allocation, and the holes between them. */
static noinline_for_stack u32 neuron_move_room(struct neuron_hbm *hbm)
{
	struct neuron_buddy_stats stats;

	neuron_hbm_figures(hbm, &stats);
	return clamp_t(u64, 4 * stats.allocs, NEURON_MOVE_RANGES_MIN, NEURON_MOVE_RANGES_MAX);
}

static int neuron_compact_do(struct neuron_call *call, struct neuron_native_mem_compact *a)
{
	struct neuron_hbm *hbm = &call->nd->hbm[a->hbm];
	struct neuron_move_view view = { .hbm = hbm };
	struct neuron_compact *c = neuron_compact_new(neuron_move_room(hbm));
	int err;

	view.src = neuron_dump_begin(call, true, 0, 0, &view.nr);
	err = c && view.src ? neuron_compact_run(&view, c, a) : -ENOMEM;
	if (view.src)
		neuron_dump_end(view.src, view.nr);
	neuron_compact_free(c);
	return err;
}

int neuron_do_native_mem_compact(struct neuron_call *call)
{
	struct neuron_native_mem_compact *a = call->arg;
	struct neuron_hbm *hbm;
	int err;

	if (a->flags || a->__reserved || a->moves || a->moved_bytes || a->largest ||
	    (a->align && !is_power_of_2(a->align)) || a->bytes > NEURON_BUDDY_MAX_SIZE ||
	    a->align > NEURON_BUDDY_MAX_SIZE ||
	    !neuron_index_valid(&a->hbm, call->nd->geo->nr_hbms))
		return -EINVAL;
	hbm = &call->nd->hbm[a->hbm];
	err = neuron_hbm_ready(hbm);
	if (err)
		return err;
	/* One at a time; the others begin with what it leaves. */
	if (wait_event_killable(hbm->move_wait, !xchg(&hbm->compacting, true)))
		return -EINTR;
	err = neuron_compact_do(call, a);
	/* Pairs with the xchg() of the next one. */
	smp_store_release(&hbm->compacting, false);
	wake_up_all(&hbm->move_wait);
	a->largest = neuron_hbm_largest(hbm, a->align);
	return err;
}
