// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eventfds of notification queues.  The software device tells of new entries; a card does
 * not, so that somebody has to look as long as a queue has an eventfd.  The pauses grow with
 * the time that nothing came, so that a wait gets longer by a small part of itself; a
 * doorbell makes them short again.
 *
 * Where the device writes next follows from the phase bits in memory; reading a register
 * stops the CPU for a microsecond, and is only done for queues in device memory and for
 * entries whose layout is not known.
 */
#include <linux/delay.h>
#include <linux/eventfd.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../../uapi/neuron_isa.h"
#include "../base/core.h"
#include "../base/hw.h"
#include "../base/trace.h"
#include "../base/workqueue.h"
#include "../mem/chunk.h"
#include "nq_event.h"

/* A pause is this part of the time that nothing came, within limits. */
#define NEURON_NQ_PART		16
#define NEURON_NQ_MIN_USEC	10
#define NEURON_NQ_MAX_USEC	10000
/* Others may want the worker's thread. */
#define NEURON_NQ_RUN_MSEC	10

/* In neuron_nq.seen, above the index of the next entry: its phase. */
#define NEURON_NQ_PHASE		BIT(31)

/**
 * neuron_nqs_wake() - signal all eventfds of a core
 * @nd: device
 * @core: core number
 *
 * Context: process.
 */
void neuron_nqs_wake(struct neuron_device *nd, u32 core)
{
	struct neuron_core *c = &nd->core[core];
	u32 i;

	spin_lock(&c->nq_lock);
	for (i = 0; i < NEURON_HW_NR_NQ; i++)
		if (c->nq[i] && c->nq[i]->eventfd)
			neuron_eventfd_signal(c->nq[i]->eventfd);
	spin_unlock(&c->nq_lock);
}

/**
 * neuron_nq_posted() - the device appended to a notification queue
 * @nd: device
 * @core: core number
 * @nq: type * 16 + engine
 *
 * Called by the device after the entry is visible; or else by neuron_nqs_look().
 *
 * Context: process; takes core->nq_lock.
 */
void neuron_nq_posted(struct neuron_device *nd, u32 core, u32 nq)
{
	struct neuron_core *c;

	if (WARN_ON_ONCE(core >= nd->geo->nr_cores || nq >= NEURON_HW_NR_NQ))
		return;
	/* Removal of a device calls this to wake everybody. */
	if (!neuron_device_gone(nd)) {
		trace_neuron_notify(nd->dev.id, core, nq / NEURON_HW_NQ_ENGINES,
				    nq % NEURON_HW_NQ_ENGINES);
		if (nq / NEURON_HW_NQ_ENGINES == NQ_TYPE_ERROR)
			trace_neuron_fault(nd->dev.id, core, NEURON_FAULT_NOTICE, 0, 0);
	}
	c = &nd->core[core];
	spin_lock(&c->nq_lock);
	if (c->nq[nq] && c->nq[nq]->eventfd)
		neuron_eventfd_signal(c->nq[nq]->eventfd);
	spin_unlock(&c->nq_lock);
}
NEURON_EXPORT_SYMBOL(neuron_nq_posted);

static bool neuron_nq_phases(const struct neuron_device *nd, const struct neuron_chunk *chunk)
{
	return chunk->host && nd->geo->isa_version;
}

static bool neuron_nq_phase(const struct neuron_nq *q, u32 i)
{
	u64 off = (u64)i * sizeof(struct neuron_isa_notice);
	const struct neuron_isa_notice *entry =
		page_address(q->chunk->pages[off >> PAGE_SHIFT]) + offset_in_page(off);

	return READ_ONCE(entry->phase) & 1;
}

/*
 * Entries of this pass through the ring come first, those of the last pass behind them have
 * the other phase.  If the device goes on meanwhile, the next look gives another result.
 */
static u32 neuron_nq_next(const struct neuron_nq *q)
{
	u32 low = 1, high = q->size / sizeof(struct neuron_isa_notice), end = high, mid;
	bool phase = neuron_nq_phase(q, 0);

	while (low < high) {
		mid = low + (high - low) / 2;
		if (neuron_nq_phase(q, mid) == phase)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == end) {
		low = 0;
		phase = !phase;
	}
	return low | (phase ? NEURON_NQ_PHASE : 0);
}

/**
 * neuron_nq_fresh() - where the device writes next in a queue that it was just given
 * @nd: device
 * @q: the queue; its memory was zero
 *
 * Return: for neuron_nq.seen.
 */
u32 neuron_nq_fresh(const struct neuron_device *nd, const struct neuron_nq *q)
{
	return neuron_nq_phases(nd, q->chunk) ? NEURON_NQ_PHASE : 0;
}

/* Under core.lock.  Return: for neuron_nq.seen; the old value if the device does not answer. */
static u32 neuron_nq_look(struct neuron_device *nd, u32 core, u32 nq)
{
	const struct neuron_nq *q = nd->core[core].nq[nq];
	u32 head;

	if (neuron_nq_phases(nd, q->chunk))
		return neuron_nq_next(q);
	return nd->ops->reg_read(nd, NEURON_BLOCK_CORE_NQ, core, NEURON_NQ_HEAD(nq), &head) ?
	       q->seen : head;
}

/* Look at all queues of a core.  Return: is there one to look at? */
static bool neuron_nqs_look(struct neuron_nq_poll *poll)
{
	struct neuron_device *nd = poll->nd;
	struct neuron_core *c = &nd->core[poll->core];
	bool any = false;
	u32 i, seen;

	if (neuron_device_gone(nd))
		return false;
	/* Whoever has it is done soon, and this looks again. */
	if (!mutex_trylock(&c->lock))
		return true;
	for (i = 0; i < NEURON_HW_NR_NQ; i++) {
		if (!c->nq[i] || !c->nq[i]->eventfd)
			continue;
		any = true;
		seen = neuron_nq_look(nd, poll->core, i);
		if (seen == c->nq[i]->seen)
			continue;
		c->nq[i]->seen = seen;
		WRITE_ONCE(poll->since, ktime_get_ns());
		neuron_nq_posted(nd, poll->core, i);
	}
	mutex_unlock(&c->lock);
	return any;
}

static void neuron_nq_poll_work(struct work_struct *work)
{
	struct neuron_nq_poll *poll =
		container_of(to_delayed_work(work), struct neuron_nq_poll, work);
	u64 start = ktime_get_ns(), now, pause;
	bool slow = false;

	WRITE_ONCE(poll->slow, false);
	while (neuron_nqs_look(poll)) {
		now = ktime_get_ns();
		pause = clamp_t(u64, (now - READ_ONCE(poll->since)) / NSEC_PER_USEC /
				NEURON_NQ_PART, NEURON_NQ_MIN_USEC, NEURON_NQ_MAX_USEC);
		slow = pause >= jiffies_to_usecs(1);
		if (slow || now - start > NEURON_NQ_RUN_MSEC * NSEC_PER_MSEC) {
			neuron_queue_work_later(&poll->work, slow ? usecs_to_jiffies(pause) : 0);
			/* Whoever sees this finds the work queued. */
			smp_store_release(&poll->slow, slow);
			return;
		}
		usleep_range(pause, pause + pause / 4);
	}
}

/**
 * neuron_nq_poll_start() - look for entries of a queue that gets an eventfd
 * @nd: device; does nothing if it tells of new entries itself
 * @core: core number
 * @nq: queue number, in use
 *
 * Entries that are there already do not count.
 *
 * Context: may sleep, core.lock is held.
 * Return: 0; -ENOMEM; -ENODEV.
 */
int neuron_nq_poll_start(struct neuron_device *nd, u32 core, u32 nq)
{
	struct neuron_core *c = &nd->core[core];
	struct neuron_nq_poll *poll = c->nq_poll;
	int idx;

	lockdep_assert_held(&c->lock);
	if (!nd->desc.polled)
		return 0;
	if (!poll) {
		poll = kzalloc(sizeof(*poll), GFP_KERNEL);
		if (!poll)
			return -ENOMEM;
		INIT_DELAYED_WORK(&poll->work, neuron_nq_poll_work);
		poll->nd = nd;
		poll->core = core;
		/* Pairs with neuron_nq_poll_expect(). */
		smp_store_release(&c->nq_poll, poll);
	}
	/* Removal waits for this, then ends the work. */
	if (!neuron_device_enter(nd, &idx))
		return -ENODEV;
	c->nq[nq]->seen = neuron_nq_look(nd, core, nq);
	WRITE_ONCE(poll->since, ktime_get_ns());
	neuron_queue_work_now(&poll->work);
	neuron_device_exit(nd, idx);
	return 0;
}

/**
 * neuron_nq_poll_expect() - new entries are to be expected
 * @nd: device
 * @core: core number
 *
 * Context: process.
 */
void neuron_nq_poll_expect(struct neuron_device *nd, u32 core)
{
	/* Pairs with neuron_nq_poll_start(). */
	struct neuron_nq_poll *poll = smp_load_acquire(&nd->core[core].nq_poll);
	int idx;

	if (!poll)
		return;
	WRITE_ONCE(poll->since, ktime_get_ns());
	/* Pairs with neuron_nq_poll_work(). */
	if (!smp_load_acquire(&poll->slow) || !neuron_device_enter(nd, &idx))
		return;
	neuron_queue_work_now(&poll->work);
	neuron_device_exit(nd, idx);
}

/**
 * neuron_nq_poll_exit() - end it for good
 * @nd: device; gone, and no call that began before is under way
 * @core: core number
 *
 * Context: may sleep.
 */
void neuron_nq_poll_exit(struct neuron_device *nd, u32 core)
{
	struct neuron_nq_poll *poll = nd->core[core].nq_poll;

	if (poll)
		cancel_delayed_work_sync(&poll->work);
}
