// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reset state machine of cores (core/RESET.md has it as a table).
 *
 * A reset is marked under core.lock, run without any lock, and looked after by a work
 * item.  What the hardware was told about stays in core.held until a reset has
 * succeeded or the device is gone.
 */
#include <linux/eventfd.h>
#include <linux/jiffies.h>
#include <linux/mm.h>

#include "../compat/compat.h"
#include "client.h"
#include "core.h"
#include "reset.h"
#include "trace.h"
#include "workqueue.h"

/* Pauses between two looks at a reset, in milliseconds. */
#define NEURON_RESET_PAUSE_MIN	1u
#define NEURON_RESET_PAUSE_MAX	100u

static u32 neuron_core_index(const struct neuron_core *c)
{
	return c - c->nd->core;
}

static void neuron_held_release(struct list_head *list)
{
	struct neuron_held *held, *next;

	list_for_each_entry_safe(held, next, list, node)
		held->release(held);
}

/**
 * neuron_core_hold() - keep memory until the hardware of a core cannot touch it any more
 * @c: core
 * @held: embedded in what is kept; released, perhaps before this returns, when a reset
 *	  has succeeded or the device is gone
 *
 * Context: may sleep.
 */
void neuron_core_hold(struct neuron_core *c, struct neuron_held *held)
{
	bool gone;

	spin_lock(&c->held_lock);
	gone = c->state == NEURON_CORE_GONE;
	if (!gone) {
		list_add_tail(&held->node, &c->held);
		c->held_bytes += held->bytes;
	}
	spin_unlock(&c->held_lock);
	if (gone)
		held->release(held);
}

/**
 * neuron_core_held() - memory that the hardware of a core may still touch
 * @c: core
 *
 * Context: any.
 * Return: bytes.
 */
u64 neuron_core_held(struct neuron_core *c)
{
	u64 bytes;

	spin_lock(&c->held_lock);
	bytes = c->held_bytes + c->held_named;
	spin_unlock(&c->held_lock);
	return bytes;
}

/* What was held goes to @done.  Under core->held_lock. */
static void neuron_core_take_held(struct neuron_core *c, struct list_head *done)
{
	list_splice_init(&c->held, done);
	c->held_bytes = 0;
	c->held_named = 0;
}

/* The core does not reset: who wants to know what that costs sees all of it.  Under core->lock. */
static void neuron_core_count_named(struct neuron_core *c)
{
	struct neuron_held *held;
	struct xarray seen;
	u64 bytes = 0;
	LIST_HEAD(list);

	xa_init(&seen);
	/* Nobody else takes anything from the list now. */
	spin_lock(&c->held_lock);
	list_splice_init(&c->held, &list);
	spin_unlock(&c->held_lock);
	list_for_each_entry(held, &list, node)
		if (held->named)
			bytes += held->named(held, &seen);
	xa_destroy(&seen);
	spin_lock(&c->held_lock);
	list_splice(&list, &c->held);
	c->held_named = bytes;
	spin_unlock(&c->held_lock);
}

/* Leave RESETTING, with what is not needed any more in @done.  Under core->lock. */
static void neuron_core_enter(struct neuron_core *c, enum neuron_core_state state,
			      struct list_head *done)
{
	spin_lock(&c->held_lock);
	if (state != NEURON_CORE_WEDGED) {
		neuron_core_take_held(c, done);
		WRITE_ONCE(c->reaches, 0);
	}
	/* Last: who finds the core READY may start queues that reach others. */
	smp_store_release(&c->state, state);
	spin_unlock(&c->held_lock);
}

/*
 * The reset has succeeded: give back what was held before anybody finds the core READY and
 * uses the same rings again.
 */
static void neuron_core_let_go(struct neuron_core *c)
{
	LIST_HEAD(done);

	mutex_lock(&c->lock);
	/* Another reset follows if the owner has gone: what it held last came too late. */
	if (c->state == NEURON_CORE_RESETTING && !c->again) {
		spin_lock(&c->held_lock);
		neuron_core_take_held(c, &done);
		spin_unlock(&c->held_lock);
	}
	mutex_unlock(&c->lock);
	neuron_held_release(&done);
}

/**
 * neuron_core_reset_mark() - a core is to be reset
 * @c: core, locked
 *
 * Return: true if the caller has to call neuron_core_reset_run() once it has dropped the
 * lock; false if a reset is under way, or the device is gone.
 */
bool neuron_core_reset_mark(struct neuron_core *c)
{
	lockdep_assert_held(&c->lock);
	if (c->state == NEURON_CORE_RESETTING || c->state == NEURON_CORE_GONE)
		return false;
	WRITE_ONCE(c->state, NEURON_CORE_RESETTING);
	c->epoch++;
	return true;
}

/**
 * neuron_core_reset_request() - neuron_core_reset_mark() for one who asked for a reset
 * @c: core, locked
 *
 * The request is counted, and joins a reset that is under way.
 *
 * Return: as neuron_core_reset_mark().
 */
bool neuron_core_reset_request(struct neuron_core *c)
{
	atomic64_inc(&c->reset_req);
	c->requested = true;
	return neuron_core_reset_mark(c);
}

/* The reset has ended.  Return: it has to be run again. */
static bool neuron_core_reset_end(struct neuron_core *c, int err)
{
	struct neuron_device *nd = c->nd;
	u32 index = neuron_core_index(c);
	LIST_HEAD(done);
	bool again;
	u32 ended;

	if (!err)
		neuron_core_let_go(c);
	mutex_lock(&c->lock);
	if (c->state != NEURON_CORE_RESETTING) {
		/* The device went meanwhile. */
		mutex_unlock(&c->lock);
		return false;
	}
	again = c->again && !err;
	c->again = false;
	ended = c->epoch;
	if (again) {
		c->epoch++;
	} else {
		neuron_core_enter(c, err ? NEURON_CORE_WEDGED : NEURON_CORE_READY, &done);
		if (err)
			neuron_core_count_named(c);
		else
			nd->ops->core_bind(nd, index, c->owner ? &c->owner->space : NULL);
	}
	WRITE_ONCE(c->reset_err, err);
	/* Who sees the end sees the state and the error. */
	smp_store_release(&c->ended, ended);
	if (c->requested && err)
		atomic64_inc(&c->reset_fail);
	if (c->requested && !err)
		neuron_crwl_reset(&c->crwl);
	c->requested = false;
	trace_neuron_reset(nd->dev.id, index, err);
	/* Signalled last, so that the listener finds a core that works. */
	if (c->reset_eventfd)
		neuron_eventfd_signal(c->reset_eventfd);
	mutex_unlock(&c->lock);

	if (err && err != -ENODEV)
		dev_err(&nd->dev, "core %u does not reset (%d)\n", index, err);
	neuron_held_release(&done);
	wake_up_all(&c->reset_wait);
	return again;
}

/* Have the work item look again later, unless there is no time left.  Return: it will. */
static bool neuron_core_reset_later(struct neuron_core *c)
{
	bool later;

	mutex_lock(&c->lock);
	later = c->state == NEURON_CORE_RESETTING &&
		(!c->nd->geo->reset_msec || time_before(jiffies, c->reset_until));
	/* Under the lock: removal cancels the work after it has set the state. */
	if (later) {
		neuron_queue_work_later(&c->reset_work, msecs_to_jiffies(c->reset_pause));
		c->reset_pause = min(c->reset_pause * 2, NEURON_RESET_PAUSE_MAX);
	}
	mutex_unlock(&c->lock);
	return later;
}

/* Clear a core's state buffer, while it is RESETTING.  Return: as neuron_device.core_clear(). */
static int neuron_core_clear(struct neuron_core *c)
{
	int err = c->nd->core_clear(c->nd, neuron_core_index(c));

	mutex_lock(&c->lock);
	/* If its owner has gone, what it wrote meanwhile came too late. */
	WRITE_ONCE(c->dirty, err || c->again);
	mutex_unlock(&c->lock);
	return err;
}

/*
 * A reset has succeeded.  If the core has an owner who came before its state buffer was cleared
 * (neuron_core_acquire_now()), and that failed, it is cleared now: READY without that, it would
 * show what another program had there.  Return: 0; -EINPROGRESS this process is being killed;
 * -EIO; -ENOMEM.
 */
static int neuron_core_clear_again(struct neuron_core *c)
{
	bool dirty;
	int err;

	mutex_lock(&c->lock);
	dirty = c->state == NEURON_CORE_RESETTING && c->owner && c->dirty &&
		c->nd->isolation == NEURON_ISOLATION_CHECKED;
	mutex_unlock(&c->lock);
	err = dirty ? neuron_core_clear(c) : 0;
	return err == -EINTR ? -EINPROGRESS : err;
}

/* Look at a reset.  @err: it could not be begun. */
static void neuron_core_reset_look(struct neuron_core *c, int err)
{
	if (!err)
		err = c->nd->ops->core_reset_poll(c->nd, BIT(neuron_core_index(c))) ?:
		      neuron_core_clear_again(c);
	if (err == -EINPROGRESS) {
		if (neuron_core_reset_later(c))
			return;
		err = -ETIMEDOUT;
	}
	if (neuron_core_reset_end(c, err))
		neuron_core_reset_run(c->nd, BIT(neuron_core_index(c)));
}

/**
 * neuron_core_clear_mark() - a core's state buffer is to be cleared
 * @c: core, locked; READY
 *
 * Until that is done it is RESETTING, and waited for like a reset; a reset that is asked for
 * meanwhile follows.  The caller has to call neuron_core_clear_run() or, if it cannot wait,
 * neuron_core_clear_later().
 *
 * Context: any.
 */
void neuron_core_clear_mark(struct neuron_core *c)
{
	lockdep_assert_held(&c->lock);
	WRITE_ONCE(c->state, NEURON_CORE_RESETTING);
	c->epoch++;
	c->clearing = true;
}

/**
 * neuron_core_clear_later() - have a work item do what neuron_core_clear_run() does
 * @c: core, locked since neuron_core_clear_mark(): removal cancels it
 *
 * Context: any.
 */
void neuron_core_clear_later(struct neuron_core *c)
{
	lockdep_assert_held(&c->lock);
	neuron_queue_work_later(&c->reset_work, 0);
}

/**
 * neuron_core_clear_run() - clear a core's state buffer
 * @c: core; neuron_core_clear_mark() was called
 *
 * What the core holds stays, because no reset has ended.
 *
 * Context: may sleep; no lock of a core held.
 * Return: 0; -EIO; -ENODEV; -EINTR the core is as before; else it is WEDGED.
 */
int neuron_core_clear_run(struct neuron_core *c)
{
	u32 index = neuron_core_index(c);
	int err = neuron_core_clear(c);
	bool reset = false;

	mutex_lock(&c->lock);
	c->clearing = false;
	if (c->state == NEURON_CORE_RESETTING) {
		reset = c->requested || c->again;
		c->again = false;
	}
	if (c->state == NEURON_CORE_RESETTING && !reset) {
		bool wedged = err && err != -EINTR;

		WRITE_ONCE(c->reset_err, wedged ? err : 0);
		/* As in neuron_core_enter(): who finds it READY finds it cleared. */
		smp_store_release(&c->state, wedged ? NEURON_CORE_WEDGED : NEURON_CORE_READY);
		/* Who sees the end sees the state and the error. */
		smp_store_release(&c->ended, c->epoch);
	}
	mutex_unlock(&c->lock);
	if (err && err != -ENODEV && err != -EINTR)
		dev_err(&c->nd->dev, "the state buffer of core %u is not cleared (%d)\n", index,
			err);
	wake_up_all(&c->reset_wait);
	if (reset)
		neuron_core_reset_run(c->nd, BIT(index));
	return err && err != -ENODEV && err != -EINTR ? -EIO : err;
}

static void neuron_core_reset_work(struct work_struct *work)
{
	struct neuron_core *c = container_of(work, struct neuron_core, reset_work.work);

	/* It changes only while the core is not RESETTING, and here. */
	if (READ_ONCE(c->clearing))
		neuron_core_clear_run(c);
	else
		neuron_core_reset_look(c, 0);
}

/**
 * neuron_core_reset_run() - reset cores
 * @nd: device
 * @cores: bit by number; neuron_core_reset_mark() said true for each
 *
 * Hardware that is done at once is done when this returns; a work item looks after the
 * rest.
 *
 * Context: may sleep; no lock of a core held.
 */
void neuron_core_reset_run(struct neuron_device *nd, unsigned long cores)
{
	u32 i;
	int err;

	if (!cores)
		return;
	/* No fault brings a page back in before the state is READY. */
	for_each_set_bit(i, &cores, NEURON_HW_MAX_CORES)
		unmap_mapping_range(nd->inode->i_mapping, neuron_core_window(nd, i),
				    NEURON_RESOURCE_SBUF, 1);
	err = nd->ops->core_reset_begin(nd, cores);
	for_each_set_bit(i, &cores, NEURON_HW_MAX_CORES) {
		struct neuron_core *c = &nd->core[i];

		c->reset_until = jiffies + msecs_to_jiffies(nd->geo->reset_msec);
		c->reset_pause = NEURON_RESET_PAUSE_MIN;
		neuron_core_reset_look(c, err);
	}
}

static bool neuron_core_reset_ended(struct neuron_core *c, u32 epoch)
{
	/* Pairs with neuron_core_reset_end(). */
	return (s32)(smp_load_acquire(&c->ended) - epoch) >= 0;
}

/**
 * neuron_core_reset_wait() - wait for the end of a reset
 * @c: core
 * @epoch: core.epoch after the reset was marked
 *
 * Context: sleeps; no lock held.
 * Return: 0; -EIO it failed or took too long; -ENODEV; -EINTR.
 */
int neuron_core_reset_wait(struct neuron_core *c, u32 epoch)
{
	int err = wait_event_killable(c->reset_wait, neuron_core_reset_ended(c, epoch));

	if (err)
		return -EINTR;
	err = READ_ONCE(c->reset_err);
	return err && err != -ENODEV ? -EIO : err;
}

/**
 * neuron_core_reset_init() - a core that is new, and clean
 * @nd: device
 * @core: core number
 *
 * Context: any.
 */
void neuron_core_reset_init(struct neuron_device *nd, u32 core)
{
	struct neuron_core *c = &nd->core[core];

	c->nd = nd;
	c->dirty = true;
	spin_lock_init(&c->held_lock);
	INIT_LIST_HEAD(&c->held);
	init_waitqueue_head(&c->reset_wait);
	INIT_DELAYED_WORK(&c->reset_work, neuron_core_reset_work);
}

/**
 * neuron_cores_gone() - the device makes no access any more, for good
 * @nd: device; dead
 *
 * What its cores held is released, and no reset is waited for any more.
 *
 * Context: may sleep.
 */
void neuron_cores_gone(struct neuron_device *nd)
{
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++) {
		struct neuron_core *c = &nd->core[i];
		LIST_HEAD(done);

		mutex_lock(&c->lock);
		neuron_core_enter(c, NEURON_CORE_GONE, &done);
		WRITE_ONCE(c->reset_err, -ENODEV);
		/* As in neuron_core_reset_end(). */
		smp_store_release(&c->ended, c->epoch);
		/* There will be no other reset that signals it. */
		if (c->reset_eventfd)
			neuron_eventfd_signal(c->reset_eventfd);
		mutex_unlock(&c->lock);
		cancel_delayed_work_sync(&c->reset_work);
		wake_up_all(&c->reset_wait);
		neuron_held_release(&done);
	}
}
