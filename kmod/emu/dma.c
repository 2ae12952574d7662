// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA engines: 16 queues each.
 *
 * One work item for each engine serves its queues in turns.  It runs when a
 * doorbell rang and sleeps when no queue has descriptors on both rings.  All
 * starts of work go through emu_dma_schedule(), or are done by the doorbell
 * itself if the device is to complete them inline.  Who waits may do the work, too.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../compat/compat.h"
#include "dma.h"

/* Turns before the work item ends and queues itself again. */
#define EMU_DMA_TURNS		16

static void emu_dma_work(struct work_struct *work);

static enum hrtimer_restart emu_dma_timer(struct hrtimer *timer)
{
	struct emu_dma *dma = container_of(timer, struct emu_dma, timer);

	queue_work(dma->ed->wq, &dma->work);
	return HRTIMER_NORESTART;
}

/**
 * emu_dma_init() - prepare the DMA part of a device
 * @ed: device
 */
void emu_dma_init(struct emu_device *ed)
{
	mutex_init(&ed->dma_alloc);
}

/**
 * emu_dma_destroy() - remove the DMA engines
 * @ed: device; neuron_device_del() has stopped all queues, and the cores are gone
 */
void emu_dma_destroy(struct emu_device *ed)
{
	u32 i, q;

	for (i = 0; i < EMU_MAX_ENGINES; i++) {
		struct emu_dma *dma = ed->dma[i];

		if (!dma)
			continue;
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			WARN_ON(dma->q[q].space);
		hrtimer_cancel(&dma->timer);
		cancel_work_sync(&dma->work);
		ed->dma[i] = NULL;
		kfree(dma);
	}
}

/**
 * emu_dma_find() - a DMA engine
 * @ed: device
 * @eng: number
 *
 * Return: the engine; NULL: there is none, or none of its queues was ever bound.
 */
struct emu_dma *emu_dma_find(struct emu_device *ed, u32 eng)
{
	if (eng >= ed->geo.nr_dma_engines)
		return NULL;
	/* pairs with the release in emu_dma_get() */
	return smp_load_acquire(&ed->dma[eng]);
}

/**
 * emu_dma_get() - a DMA engine, made if needed
 * @ed: device
 * @eng: number of an engine that there is
 *
 * Return: the engine, NULL: no memory.
 */
struct emu_dma *emu_dma_get(struct emu_device *ed, u32 eng)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);

	if (dma)
		return dma;
	mutex_lock(&ed->dma_alloc);
	dma = ed->dma[eng];
	if (dma)
		goto out;
	dma = kzalloc(sizeof(*dma), GFP_KERNEL);
	if (!dma)
		goto out;
	dma->ed = ed;
	dma->index = eng;
	dma->state = NEURON_DMA_ENG_NORMAL;
	mutex_init(&dma->run);
	spin_lock_init(&dma->lock);
	INIT_WORK(&dma->work, emu_dma_work);
	hrtimer_setup(&dma->timer, emu_dma_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	/* pairs with the acquire in emu_dma_find() */
	smp_store_release(&ed->dma[eng], dma);
out:
	mutex_unlock(&ed->dma_alloc);
	return dma;
}

/* Serve the queues in @ready.  Caller holds dma->lock. */
static void emu_dma_schedule(struct emu_dma *dma)
{
	lockdep_assert_held(&dma->lock);
	if (!dma->ready)
		return;
	if (READ_ONCE(dma->ed->completion) != EMU_COMPLETE_TIMER)
		queue_work(dma->ed->wq, &dma->work);
	else if (!hrtimer_is_queued(&dma->timer))
		hrtimer_start(&dma->timer, ns_to_ktime(READ_ONCE(dma->ed->completion_nsec)),
			      HRTIMER_MODE_REL);
}

/**
 * emu_dma_check() - something changed that may let a queue run
 * @dma: engine, locked
 * @i: queue
 */
void emu_dma_check(struct emu_dma *dma, u32 i)
{
	if (emu_queue_runnable(dma, &dma->q[i])) {
		dma->ready |= BIT(i);
		emu_dma_schedule(dma);
	}
}

/*
 * A doorbell rang.  Return: its caller does the work, when it has let go of
 * the lock.
 */
static bool emu_queue_ring(struct emu_dma *dma, u32 i)
{
	if (READ_ONCE(dma->ed->completion) != EMU_COMPLETE_INLINE) {
		emu_dma_check(dma, i);
		return false;
	}
	if (!emu_queue_runnable(dma, &dma->q[i]))
		return false;
	dma->ready |= BIT(i);
	return true;
}

/* The queue whose turn it is, -1 if none has work. */
static int emu_dma_next(struct emu_dma *dma)
{
	u32 n, i;

	spin_lock(&dma->lock);
	for (n = 1; n <= NEURON_HW_QUEUES_PER_ENGINE; n++) {
		i = (dma->last + n) % NEURON_HW_QUEUES_PER_ENGINE;
		if (!(dma->ready & BIT(i)))
			continue;
		dma->ready &= ~BIT(i);
		dma->last = i;
		spin_unlock(&dma->lock);
		return i;
	}
	spin_unlock(&dma->lock);
	return -1;
}

/* Return: there may be more to do. */
static bool emu_dma_turns(struct emu_dma *dma)
{
	bool more;
	int i, n;

	for (n = 0; n < EMU_DMA_TURNS; n++) {
		i = emu_dma_next(dma);
		if (i < 0)
			return false;
		mutex_lock(&dma->run);
		more = emu_queue_serve(dma, i);
		mutex_unlock(&dma->run);
		if (more) {
			spin_lock(&dma->lock);
			dma->ready |= BIT(i);
			spin_unlock(&dma->lock);
		}
		cond_resched();
	}
	return true;
}

static void emu_dma_serve(struct emu_dma *dma)
{
	bool more;

	emu_busy_begin(&dma->ed->busy);
	more = emu_dma_turns(dma);
	emu_busy_end(&dma->ed->busy);
	/* What began has had its latency. */
	if (more)
		queue_work(dma->ed->wq, &dma->work);
}

static void emu_dma_work(struct work_struct *work)
{
	emu_dma_serve(container_of(work, struct emu_dma, work));
}

/**
 * emu_dma_kick() - an instruction FIFO has room
 * @ed: device
 *
 * All queues that wait for room try again; it does not matter which FIFO it is.
 */
void emu_dma_kick(struct emu_device *ed)
{
	u32 i;

	for_each_set_bit(i, ed->stalled, EMU_MAX_ENGINES) {
		struct emu_dma *dma = emu_dma_find(ed, i);

		clear_bit(i, ed->stalled);
		if (!dma)
			continue;
		spin_lock(&dma->lock);
		dma->ready |= dma->stalled;
		dma->stalled = 0;
		emu_dma_schedule(dma);
		spin_unlock(&dma->lock);
	}
}

/**
 * emu_dma_ring() - ring the doorbell of a ring
 * @dma: engine
 * @i: queue
 * @rx: of destination descriptors
 * @n: descriptors to add
 *
 * Return: 0, -EINVAL the queue is not set up or has no room for that many.
 */
int emu_dma_ring(struct emu_dma *dma, u32 i, bool rx, u32 n)
{
	struct emu_queue *q = &dma->q[i];
	struct emu_ring *r = rx ? &q->rx : &q->tx;
	bool now = false;
	int err = 0;

	spin_lock(&dma->lock);
	if (!q->space || !r->len || !emu_ring_takes(r, n)) {
		err = -EINVAL;
	} else {
		emu_ring_add(r, n);
		now = emu_queue_ring(dma, i);
	}
	spin_unlock(&dma->lock);
	if (now)
		emu_dma_serve(dma);
	return err;
}

/**
 * emu_dma_trigger() - ring the doorbells of a queue for an engine of a core
 * @ed: device
 * @eng: DMA engine
 * @i: queue
 * @space: for whom the core acts
 * @tx: source descriptors to add
 * @rx: destination descriptors to add
 *
 * Return: false if the queue is not set up, is not bound to @space, or has no
 * room for that many descriptors; nothing was done then.
 */
bool emu_dma_trigger(struct emu_device *ed, u32 eng, u32 i, struct neuron_space *space,
		     u32 tx, u32 rx)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	struct emu_queue *q;
	bool ok, now = false;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return false;
	q = &dma->q[i];
	spin_lock(&dma->lock);
	ok = q->space == space && !q->stopping && !q->aborted && q->tx.len && q->rx.len &&
	     emu_ring_takes(&q->tx, tx) && emu_ring_takes(&q->rx, rx);
	if (ok) {
		emu_ring_add(&q->rx, rx);
		emu_ring_add(&q->tx, tx);
		now = emu_queue_ring(dma, i);
	}
	spin_unlock(&dma->lock);
	if (now)
		emu_dma_serve(dma);
	return ok;
}

/**
 * emu_dma_bind() - give a queue to @space
 * @ed: device
 * @eng: engine
 * @i: queue, stopped
 * @space: what it may touch
 *
 * Return: 0, -ENOMEM, -EINVAL no such queue, -EBUSY it was not stopped.
 */
int emu_dma_bind(struct emu_device *ed, u32 eng, u32 i, struct neuron_space *space)
{
	struct emu_queue *q;
	struct emu_dma *dma;
	int err = 0;

	if (eng >= ed->geo.nr_dma_engines || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return -EINVAL;
	dma = emu_dma_get(ed, eng);
	if (!dma)
		return -ENOMEM;
	q = &dma->q[i];
	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	if (q->space)
		err = -EBUSY;
	else
		emu_queue_init(q, space);
	spin_unlock(&dma->lock);
	mutex_unlock(&dma->run);
	return err;
}

/**
 * emu_dma_stop() - stop and forget a queue
 * @ed: device
 * @eng: engine
 * @i: queue
 *
 * Waits for the descriptor being worked on, not for more: a paused queue is
 * not being worked on.
 */
void emu_dma_stop(struct emu_device *ed, u32 eng, u32 i)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	struct emu_queue *q;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return;
	q = &dma->q[i];
	spin_lock(&dma->lock);
	q->stopping = true;
	spin_unlock(&dma->lock);
	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	dma->ready &= ~BIT(i);
	dma->stalled &= ~BIT(i);
	emu_queue_init(q, NULL);
	spin_unlock(&dma->lock);
	mutex_unlock(&dma->run);
}

/**
 * emu_dma_poll() - do a piece of a queue's work in the place of the work item
 * @ed: device
 * @eng: engine
 * @i: queue
 *
 * Only a device that completes its work in a work item lets its waiters do it.
 * Work that a former call left undone goes back to the device when that is no
 * longer so, or when the waiter was killed: nobody will call again then.
 *
 * Context: may sleep.
 * Return: there is more, and nobody else does it.
 */
bool emu_dma_poll(struct emu_device *ed, u32 eng, u32 i)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	bool more;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return false;
	spin_lock(&dma->lock);
	/* Otherwise the work item was faster. */
	more = dma->ready & BIT(i);
	if (more && (READ_ONCE(ed->completion) != EMU_COMPLETE_WORKER ||
		     fatal_signal_pending(current))) {
		emu_dma_schedule(dma);
		more = false;
	}
	if (more)
		dma->ready &= ~BIT(i);
	spin_unlock(&dma->lock);
	if (!more)
		return false;
	emu_busy_begin(&ed->busy);
	mutex_lock(&dma->run);
	more = emu_queue_serve(dma, i);
	mutex_unlock(&dma->run);
	emu_busy_end(&ed->busy);
	if (more) {
		spin_lock(&dma->lock);
		dma->ready |= BIT(i);
		spin_unlock(&dma->lock);
	}
	return more;
}
