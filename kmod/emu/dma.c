// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA engines: their registers, including doorbells, and the turns of their queues.
 *
 * One work item for each engine serves its queues in turns.  A doorbell queues it through
 * emu_dma_schedule(), and it ends when no queue has descriptors on both rings.  On a
 * device that completes inline, the doorbell does the work itself.  A thread that waits
 * for a queue may also do a piece of the queue's work (emu_dma_poll()).
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../compat/compat.h"
#include "dma.h"
#include "window.h"

/*
 * Turns, and their time, before the work item ends and queues itself again: descriptors that
 * compute take many times as long as those that copy, and engines of others wait for a worker.
 */
#define EMU_DMA_TURNS		16
#define EMU_DMA_NSEC		(20 * NSEC_PER_MSEC)

static void emu_dma_work(struct work_struct *work);
static int emu_dma_set_state(struct emu_dma *dma, u32 state);

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
	mutex_init(&ed->alloc);
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

/* The engine, or NULL if none of its queues was ever bound. */
static struct emu_dma *emu_dma_find(struct emu_device *ed, u32 eng)
{
	if (eng >= ed->geo.nr_dma_engines)
		return NULL;
	/* pairs with the release in emu_dma_get() */
	return smp_load_acquire(&ed->dma[eng]);
}

/* The engine, made if needed; NULL: no memory. */
static struct emu_dma *emu_dma_get(struct emu_device *ed, u32 eng)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);

	if (dma)
		return dma;
	mutex_lock(&ed->alloc);
	dma = ed->dma[eng];
	if (dma)
		goto out;
	dma = kzalloc(sizeof(*dma), GFP_KERNEL);
	if (!dma)
		goto out;
	dma->ed = ed;
	dma->index = eng;
	dma->state = NEURON_DMA_ENG_NORMAL;
	emu_shuffle_start(&dma->shuffle, NEURON_HW_MAX_CORES + eng);
	mutex_init(&dma->run);
	spin_lock_init(&dma->lock);
	INIT_WORK(&dma->work, emu_dma_work);
	emu_share_init(&dma->share, ed);
	hrtimer_setup(&dma->timer, emu_dma_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	/* pairs with the acquire in emu_dma_find() */
	smp_store_release(&ed->dma[eng], dma);
out:
	mutex_unlock(&ed->alloc);
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

/* Something changed that may let the queue run.  Caller holds the lock. */
static void emu_dma_check(struct emu_dma *dma, u32 i)
{
	if (emu_queue_runnable(dma, &dma->q[i])) {
		dma->ready |= BIT(i);
		emu_dma_schedule(dma);
	}
}

/* Serve a queue when the core can do nothing else.  Caller holds dma->lock. */
static void emu_dma_schedule_late(struct emu_dma *dma, u32 i)
{
	u32 core = dma->index / dma->ed->geo.engines_per_core;
	struct emu_window *w;
	bool later = false;

	/* The core's work ends with emu_dma_core_idle(), as does a reset. */
	if (core < dma->ed->geo.nr_cores) {
		w = dma->ed->window[core];
		WRITE_ONCE(w->late, true);
		spin_lock(&w->lock);
		later = emu_window_wake(w);
		spin_unlock(&w->lock);
	}
	if (later) {
		dma->late |= BIT(i);
		return;
	}
	dma->ready |= BIT(i);
	emu_dma_schedule(dma);
}

/* A doorbell rang.  Return: the caller does the work once it has dropped the lock. */
static bool emu_queue_ring(struct emu_dma *dma, u32 i)
{
	if (!emu_queue_runnable(dma, &dma->q[i]))
		return false;
	/* Before whatever the core does next, or after all that it can do. */
	if (dma->shuffle.on && emu_shuffle_draw(&dma->shuffle, 2)) {
		emu_dma_schedule_late(dma, i);
		return false;
	}
	dma->ready |= BIT(i);
	if (dma->shuffle.on || READ_ONCE(dma->ed->completion) == EMU_COMPLETE_INLINE)
		return true;
	emu_dma_schedule(dma);
	return false;
}

/* The queue whose turn it is, -1 if none has work. */
static int emu_dma_next(struct emu_dma *dma)
{
	u32 n, i;

	spin_lock(&dma->lock);
	if (dma->shuffle.on)
		dma->last = emu_shuffle_draw(&dma->shuffle, NEURON_HW_QUEUES_PER_ENGINE);
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

/* Give a queue its turn.  Return: true if there is more to do now. */
static bool emu_dma_turn(struct emu_dma *dma, u32 i)
{
	bool more;

	mutex_lock(&dma->run);
	more = emu_queue_serve(dma, i);
	mutex_unlock(&dma->run);
	if (more) {
		spin_lock(&dma->lock);
		dma->ready |= BIT(i);
		spin_unlock(&dma->lock);
	}
	return more;
}

/* Return: true if there may be more to do. */
static bool emu_dma_turns(struct emu_dma *dma)
{
	u64 start = ktime_get_ns();
	int i, n;

	for (n = 0; n < EMU_DMA_TURNS; n++) {
		i = emu_dma_next(dma);
		if (i < 0)
			return false;
		emu_dma_turn(dma, i);
		cond_resched();
		/* The order of a seed must not depend on the clock. */
		if (!dma->shuffle.on && ktime_get_ns() - start >= EMU_DMA_NSEC)
			break;
	}
	return true;
}

static void emu_dma_serve(struct emu_dma *dma)
{
	bool more;

	emu_busy_begin(&dma->ed->busy);
	more = emu_dma_turns(dma);
	emu_busy_end(&dma->ed->busy);
	/* The latency applies to the start of the work only. */
	if (more)
		queue_work(dma->ed->wq, &dma->work);
}

static void emu_dma_work(struct work_struct *work)
{
	emu_dma_serve(container_of(work, struct emu_dma, work));
}

/**
 * emu_dma_core_idle() - serve the queues that waited until a core could do nothing else
 * @ed: device that shuffles
 * @core: core
 */
void emu_dma_core_idle(struct emu_device *ed, u32 core)
{
	u32 i, first = core * ed->geo.engines_per_core;

	for (i = first; i < first + ed->geo.engines_per_core; i++) {
		struct emu_dma *dma = emu_dma_find(ed, i);

		if (!dma)
			continue;
		spin_lock(&dma->lock);
		dma->ready |= dma->late;
		dma->late = 0;
		emu_dma_schedule(dma);
		spin_unlock(&dma->lock);
	}
}

/**
 * emu_dma_kick() - an instruction FIFO has room
 * @ed: device
 *
 * All queues that wait for room in any FIFO try again.
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

/* A doorbell.  Return: 0, -EINVAL the queue is not set up or has no room for that many. */
static int emu_dma_ring(struct emu_dma *dma, u32 i, bool rx, u32 n)
{
	struct emu_queue *q = &dma->q[i];
	bool ok, now = false;

	spin_lock(&dma->lock);
	ok = q->space && (rx ? &q->rx : &q->tx)->len && emu_queue_add(q, rx ? 0 : n, rx ? n : 0);
	if (ok)
		now = emu_queue_ring(dma, i);
	spin_unlock(&dma->lock);
	if (now)
		emu_dma_serve(dma);
	return ok ? 0 : -EINVAL;
}

/**
 * emu_dma_start() - ring the doorbells of a queue for a thread that will wait for it
 * @ed: device
 * @eng: engine
 * @i: queue
 * @n: descriptors to add to both rings
 *
 * If the device completes in a work item, the thread calls emu_dma_poll() next, and no work
 * item is woken.
 *
 * Return: as a doorbell.
 */
int emu_dma_start(struct emu_device *ed, u32 eng, u32 i, u32 n)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	bool ok, now = false;
	struct emu_queue *q;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return -EINVAL;
	q = &dma->q[i];
	spin_lock(&dma->lock);
	ok = q->space && q->tx.len && q->rx.len && emu_queue_add(q, n, n);
	if (ok && READ_ONCE(ed->completion) == EMU_COMPLETE_WORKER && !ed->parent) {
		if (emu_queue_runnable(dma, q))
			dma->ready |= BIT(i);
	} else if (ok) {
		now = emu_queue_ring(dma, i);
	}
	spin_unlock(&dma->lock);
	if (now)
		emu_dma_serve(dma);
	return ok ? 0 : -EINVAL;
}

/**
 * emu_dma_trigger() - ring the doorbells of a queue for an engine of a core
 * @ed: device
 * @eng: DMA engine
 * @i: queue
 * @space: space that the core acts for
 * @tx: source descriptors to add
 * @rx: destination descriptors to add
 *
 * Return: false if the queue is not set up, is not bound to @space, or has no room for
 * that many descriptors; then nothing was done.
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
	     emu_queue_add(q, tx, rx);
	if (ok)
		now = emu_queue_ring(dma, i);
	spin_unlock(&dma->lock);
	if (now)
		emu_dma_serve(dma);
	return ok;
}

/* Registers that must not change while an enabled ring runs from them. */
static int emu_ring_program(struct emu_queue *q, struct emu_ring *r, u32 reg, u32 val)
{
	if (emu_ring_enabled(r))
		return -EINVAL;
	switch (reg) {
	case NEURON_DMA_Q_BASE_LO:
		if (val % NEURON_RING_ALIGN)
			return -EINVAL;
		r->base = (r->base & ~(u64)U32_MAX) | val;
		return 0;
	case NEURON_DMA_Q_BASE_HI:
		r->base = (r->base & U32_MAX) | (u64)val << 32;
		return 0;
	default: /* NEURON_DMA_Q_LENGTH */
		/* 0: there is no ring (yet) */
		if (val && (val < NEURON_RING_MIN || val > NEURON_RING_MAX || val % 16))
			return -EINVAL;
		emu_queue_restart(q, r);
		r->len = val;
		return 0;
	}
}

/* Caller holds emu_dma.run and emu_dma.lock.  Return: 0, -EINVAL an address or a length. */
static int emu_queue_set_up(struct emu_queue *q, const struct neuron_queue_setup *setup)
{
	struct emu_ring *r[2] = { &q->tx, &q->rx };
	int i, err;

	for (i = 0; i < 2; i++) {
		err = emu_ring_program(q, r[i], NEURON_DMA_Q_BASE_LO,
				       lower_32_bits(setup->addr[i])) ?:
		      emu_ring_program(q, r[i], NEURON_DMA_Q_BASE_HI,
				       upper_32_bits(setup->addr[i])) ?:
		      emu_ring_program(q, r[i], NEURON_DMA_Q_LENGTH, setup->length[i]);
		if (err)
			return err;
		if (setup->addr[i])
			r[i]->config = NEURON_DMA_Q_CONFIG_ENABLE;
	}
	return 0;
}

/**
 * emu_dma_bind() - give a queue to a space, and program its rings
 * @ed: device
 * @eng: engine
 * @i: queue, stopped
 * @setup: what it may touch, and its rings; one without an address is not enabled
 *
 * Return: 0, -ENOMEM; -EINVAL no such queue, or as writes of the registers (then the queue
 *	   is bound); -EBUSY it was not stopped.
 */
int emu_dma_bind(struct emu_device *ed, u32 eng, u32 i, const struct neuron_queue_setup *setup)
{
	struct emu_queue *q;
	struct emu_dma *dma;
	int err = -EBUSY;

	if (eng >= ed->geo.nr_dma_engines || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return -EINVAL;
	dma = emu_dma_get(ed, eng);
	if (!dma)
		return -ENOMEM;
	q = &dma->q[i];
	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	if (!q->space) {
		emu_queue_init(q, setup->space);
		err = emu_queue_set_up(q, setup);
	}
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
 * Waits for the descriptor under way, if any.  A paused queue has none under way.
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
	dma->late &= ~BIT(i);
	dma->stalled &= ~BIT(i);
	emu_queue_init(q, NULL);
	spin_unlock(&dma->lock);
	mutex_unlock(&dma->run);
}

/**
 * emu_dma_reset() - stop what a core's DMA engines do, and let them work again
 * @ed: device
 * @core: core
 *
 * The driver's copies go on where they use an engine of the core.
 *
 * Context: may sleep.
 */
void emu_dma_reset(struct emu_device *ed, u32 core)
{
	u32 i, q, first = core * ed->geo.engines_per_core;

	for (i = first; i < first + ed->geo.engines_per_core; i++) {
		struct emu_dma *dma = emu_dma_find(ed, i);

		if (!dma)
			continue;
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			if (i != ed->geo.copy_engine[core] || q != ed->geo.copy_queue[core])
				emu_dma_stop(ed, i, q);
		emu_dma_set_state(dma, NEURON_DMA_ENG_NORMAL);
		spin_lock(&dma->lock);
		emu_shuffle_start(&dma->shuffle, NEURON_HW_MAX_CORES + i);
		spin_unlock(&dma->lock);
	}
}

/**
 * emu_dma_poll() - do a piece of a queue's work in place of the work item
 * @ed: device
 * @eng: engine
 * @i: queue
 *
 * Only a device that completes in a work item lets its waiters work.  If the completion
 * mode has changed, or the waiter was killed, no further call comes: work that an earlier
 * call left undone goes back to the work item.
 *
 * Context: may sleep.
 * Return: true if there is more, which nobody else does.
 */
bool emu_dma_poll(struct emu_device *ed, u32 eng, u32 i)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	bool more;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE)
		return false;
	spin_lock(&dma->lock);
	/* Otherwise the work item has taken the queue already. */
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
	more = emu_dma_turn(dma, i);
	emu_busy_end(&ed->busy);
	return more;
}

/**
 * emu_dma_rw() - read or write an address as a descriptor of a queue would
 * @ed: device
 * @eng: engine
 * @i: queue
 * @addr: device address
 * @buf: kernel memory
 * @len: bytes, not 0
 * @write: to @addr
 *
 * Only where a descriptor would be done in a work item, and without faults.
 *
 * Context: may sleep.
 * Return: false, the queue has to do it.
 */
bool emu_dma_rw(struct emu_device *ed, u32 eng, u32 i, u64 addr, void *buf, u32 len, bool write)
{
	struct emu_dma *dma = emu_dma_find(ed, eng);
	bool done;

	if (!dma || i >= NEURON_HW_QUEUES_PER_ENGINE ||
	    READ_ONCE(ed->completion) != EMU_COMPLETE_WORKER)
		return false;
	emu_busy_begin(&ed->busy);
	mutex_lock(&dma->run);
	done = emu_queue_rw(dma, i, addr, buf, len, write);
	mutex_unlock(&dma->run);
	emu_busy_end(&ed->busy);
	return done;
}

static u32 emu_pointer(u32 index, u32 phase)
{
	return index | phase << NEURON_DMA_Q_PHASE_SHIFT;
}

/* Under dma->lock, but for a ring that nobody else knows. */
static int emu_ring_read(const struct emu_ring *r, bool aborted, bool rx, u32 reg, u32 *val)
{
	*val = 0;
	switch (reg) {
	case NEURON_DMA_Q_CONFIG:
		*val = r->config;
		break;
	case NEURON_DMA_Q_STATUS:
		*val = aborted ? NEURON_QUEUE_ABORTED :
		       emu_ring_enabled(r) ? NEURON_QUEUE_ENABLED : NEURON_QUEUE_DISABLED;
		break;
	case NEURON_DMA_Q_BASE_LO:
		*val = lower_32_bits(r->base);
		break;
	case NEURON_DMA_Q_BASE_HI:
		*val = upper_32_bits(r->base);
		break;
	case NEURON_DMA_Q_LENGTH:
		*val = r->len;
		break;
	case NEURON_DMA_Q_HEAD:
	case NEURON_DMA_Q_CURRENT:
		*val = emu_pointer(r->head, r->head_phase);
		break;
	case NEURON_DMA_Q_TAIL:
		*val = emu_pointer(r->tail, r->tail_phase);
		break;
	case NEURON_DMA_Q_TAIL_INC:
	case NEURON_DMA_Q_COMPL_LO:
	case NEURON_DMA_Q_COMPL_HI:
	case NEURON_DMA_Q_COMPL_HEAD:
		break;
	default:
		return reg == (rx ? NEURON_DMA_RX_SWRESET : NEURON_DMA_TX_SWRESET) ? 0 : -EINVAL;
	}
	return 0;
}

/**
 * emu_dma_reg_read() - read a register of a DMA engine
 * @ed: device
 * @eng: engine
 * @off: offset, a multiple of 4
 * @val: the result
 *
 * Registers of an engine that was never used read as after a reset.
 *
 * Return: 0, -EINVAL no such register.
 */
int emu_dma_reg_read(struct emu_device *ed, u32 eng, u32 off, u32 *val)
{
	static const struct emu_ring unused = { .head_phase = 1, .tail_phase = 1 };
	struct emu_dma *dma = emu_dma_find(ed, eng);
	struct emu_queue *q;
	u32 i, reg;
	bool rx;
	int err;

	if (eng >= ed->geo.nr_dma_engines)
		return -EINVAL;
	if (off == NEURON_DMA_COMMON) {
		*val = dma ? READ_ONCE(dma->state) : NEURON_DMA_ENG_NORMAL;
		return 0;
	}
	if (!neuron_dma_decode(off, &i, &rx, &reg))
		return -EINVAL;
	if (!dma)
		return emu_ring_read(&unused, false, rx, reg, val);
	q = &dma->q[i];
	spin_lock(&dma->lock);
	err = emu_ring_read(rx ? &q->rx : &q->tx, q->aborted, rx, reg, val);
	spin_unlock(&dma->lock);
	return err;
}

/*
 * State request of an engine: any state but NORMAL pauses it; ABORT stops the queues in
 * use for good.
 */
static int emu_dma_set_state(struct emu_dma *dma, u32 state)
{
	u32 i;

	if (state != NEURON_DMA_ENG_DISABLE && state != NEURON_DMA_ENG_NORMAL &&
	    state != NEURON_DMA_ENG_ABORT)
		return -EINVAL;
	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	WRITE_ONCE(dma->state, state);
	for (i = 0; i < NEURON_HW_QUEUES_PER_ENGINE; i++)
		emu_dma_check(dma, i);
	spin_unlock(&dma->lock);
	if (state == NEURON_DMA_ENG_ABORT)
		emu_dma_abort(dma);
	mutex_unlock(&dma->run);
	return 0;
}

static int emu_queue_write(struct emu_dma *dma, u32 i, bool rx, u32 reg, u32 val)
{
	struct emu_queue *q = &dma->q[i];
	struct emu_ring *r = rx ? &q->rx : &q->tx;
	int err = 0;

	mutex_lock(&dma->run);
	spin_lock(&dma->lock);
	if (!q->space || q->stopping) {
		err = -EINVAL;
		goto out;
	}
	switch (reg) {
	case NEURON_DMA_Q_CONFIG:
		r->config = val;
		emu_dma_check(dma, i);
		break;
	case NEURON_DMA_Q_BASE_LO:
	case NEURON_DMA_Q_BASE_HI:
	case NEURON_DMA_Q_LENGTH:
		err = emu_ring_program(q, r, reg, val);
		break;
	case NEURON_DMA_Q_COMPL_LO:
	case NEURON_DMA_Q_COMPL_HI:
		/* there are no completion rings */
		err = val ? -EINVAL : 0;
		break;
	default:
		if (reg != (rx ? NEURON_DMA_RX_SWRESET : NEURON_DMA_TX_SWRESET)) {
			err = -EINVAL;
		} else if (val & NEURON_DMA_Q_SWRESET) {
			emu_queue_restart(q, r);
			q->aborted = false;
			if (!rx)
				q->done = 0;
		}
	}
out:
	spin_unlock(&dma->lock);
	mutex_unlock(&dma->run);
	return err;
}

/**
 * emu_dma_reg_write() - write a register of a DMA engine
 * @ed: device
 * @eng: engine
 * @off: offset, a multiple of 4
 * @val: value
 *
 * Doorbells return at once, unless completion is inline.  Other writes wait for
 * the turn of the queue that is being served, so that the change has taken effect when
 * they return.
 *
 * Return: 0, -ENOMEM, -EINVAL: no such register, queue not bound, value refused
 * (misaligned base, length out of range, doorbell beyond the ring), or the ring is
 * enabled and must not be programmed.
 */
int emu_dma_reg_write(struct emu_device *ed, u32 eng, u32 off, u32 val)
{
	struct emu_dma *dma;
	u32 i, reg;
	bool rx;

	if (eng >= ed->geo.nr_dma_engines)
		return -EINVAL;
	if (off == NEURON_DMA_COMMON) {
		dma = emu_dma_get(ed, eng);
		return dma ? emu_dma_set_state(dma, val) : -ENOMEM;
	}
	dma = emu_dma_find(ed, eng);
	if (!dma || !neuron_dma_decode(off, &i, &rx, &reg))
		return -EINVAL;
	if (reg == NEURON_DMA_Q_TAIL_INC)
		return emu_dma_ring(dma, i, rx, val);
	return emu_queue_write(dma, i, rx, reg, val);
}
