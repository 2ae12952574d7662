// SPDX-License-Identifier: GPL-2.0-only
/* Who owns which core. */
#include <linux/eventfd.h>

#include "claim.h"
#include "client.h"
#include "core.h"
#include "reset.h"

/**
 * neuron_core_reset_eventfd() - replace the eventfd that is signalled at resets
 * @c: core, locked
 * @eventfd: taken over; NULL = none
 *
 * Context: may sleep.
 */
void neuron_core_reset_eventfd(struct neuron_core *c, struct eventfd_ctx *eventfd)
{
	lockdep_assert_held(&c->lock);
	swap(c->reset_eventfd, eventfd);
	if (eventfd)
		eventfd_ctx_put(eventfd);
}

/**
 * neuron_core_check() - may a process use a core?
 * @c: the core, locked
 * @client: the process
 *
 * A core that another process owns, or reserves by a claim, is refused.
 *
 * Return: 0, -EBUSY.
 */
int neuron_core_check(struct neuron_core *c, const struct neuron_client *client)
{
	if (c->owner)
		return c->owner == client ? 0 : -EBUSY;
	return neuron_core_reserved(client->nd, c, client->pid) ? -EBUSY : 0;
}

/**
 * neuron_core_take() - a process becomes the owner of a core
 * @nd: device
 * @core: core number; reset, nobody owns it
 * @client: the process
 *
 * Context: core.lock is held.
 */
void neuron_core_take(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	struct neuron_core *c = &nd->core[core];

	lockdep_assert_held(&c->lock);
	neuron_crwl_reset(&c->crwl);
	nd->ops->core_bind(nd, core, &client->space);
	/* Who finds an owner finds whether its core is dirty: neuron_core_reaches(). */
	smp_store_release(&c->owner, client);
	/* Another process may have taken the cooperative lock of the free core. */
	neuron_crwl_evict(&c->crwl, client->pid);
}

/**
 * neuron_cores_lock() - take the locks of cores
 * @nd: device
 * @map: bit by core number
 *
 * Context: may sleep.
 */
void neuron_cores_lock(struct neuron_device *nd, unsigned long map)
{
	unsigned int i;

	/* lockdep has no more subclasses. */
	BUILD_BUG_ON(NEURON_HW_MAX_CORES > MAX_LOCKDEP_SUBCLASSES);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		mutex_lock_nested(&nd->core[i].lock, i);
}

/**
 * neuron_cores_unlock() - release the locks of cores
 * @nd: device
 * @map: bit by core number
 */
void neuron_cores_unlock(struct neuron_device *nd, unsigned long map)
{
	unsigned int i;

	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		mutex_unlock(&nd->core[i].lock);
}

/*
 * Before a core that is READY gets an owner: a reset of a card may leave in its state buffer
 * what another program had there.  Under core->lock.  Return: it has to be cleared.
 */
static bool neuron_core_unclean(struct neuron_core *c)
{
	if (c->nd->isolation != NEURON_ISOLATION_CHECKED || c->owner || !c->dirty)
		return false;
	neuron_core_clear_mark(c);
	return true;
}

/*
 * What has to be waited for before cores of @map can be used?  A core whose last reset
 * failed is reset once more for a new owner, but not for one that has it already.
 * @begin: cores whose reset the caller has to run; on entry those that it has run
 * @epoch: by core, what to wait for
 */
static int neuron_cores_busy(struct neuron_device *nd, unsigned long map,
			     unsigned long *busy, unsigned long *begin, u32 *epoch)
{
	unsigned long tried = *begin;
	unsigned int i;

	*busy = 0;
	*begin = 0;
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES) {
		struct neuron_core *c = &nd->core[i];

		if (c->state == NEURON_CORE_READY)
			continue;
		if (c->state == NEURON_CORE_GONE)
			return -ENODEV;
		if (c->state == NEURON_CORE_WEDGED && (c->owner || tried & BIT(i)))
			return -EIO;
		__set_bit(i, busy);
	}
	for_each_set_bit(i, busy, NEURON_HW_MAX_CORES) {
		if (neuron_core_reset_mark(&nd->core[i]))
			__set_bit(i, begin);
		epoch[i] = nd->core[i].epoch;
	}
	return 0;
}

/*
 * Cores with queues of before that descriptors let reach cores of @map that nobody owns:
 * who checked the descriptors did so for the owner of then.
 */
static unsigned long neuron_cores_reaching(struct neuron_device *nd, unsigned long map)
{
	unsigned long reaching = 0;
	unsigned int i;

	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		if (READ_ONCE(nd->core[i].owner))
			__clear_bit(i, &map);
	for (i = 0; i < nd->geo->nr_cores; i++) {
		struct neuron_core *c = &nd->core[i];

		if (READ_ONCE(c->reaches) & map & ~BIT(i) &&
		    READ_ONCE(c->state) != NEURON_CORE_READY)
			__set_bit(i, &reaching);
	}
	return reaching;
}

/*
 * Lock cores, and those that reach them.  What a process had becomes free, and begins to be
 * reset, at one moment; so under the locks the answer holds.
 */
static unsigned long neuron_cores_lock_reaching(struct neuron_device *nd, unsigned long map)
{
	unsigned long all, more = 0;

	do {
		all = map | more;
		neuron_cores_lock(nd, all);
		more = neuron_cores_reaching(nd, map);
		if (more & ~all)
			neuron_cores_unlock(nd, all);
	} while (more & ~all);
	return all;
}

/**
 * neuron_cores_ready() - does nothing run on a device for a program that has gone?
 * @nd: device that no process has open
 *
 * Context: any.
 */
bool neuron_cores_ready(struct neuron_device *nd)
{
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++)
		if (READ_ONCE(nd->core[i].state) != NEURON_CORE_READY)
			return false;
	return true;
}

/* Run the resets of @begin, and wait for those of @busy. */
static int neuron_cores_wait(struct neuron_device *nd, unsigned long busy, unsigned long begin,
			     const u32 *epoch)
{
	unsigned int i;
	int err = 0;

	neuron_core_reset_run(nd, begin);
	for_each_set_bit(i, &busy, NEURON_HW_MAX_CORES)
		err = err ?: neuron_core_reset_wait(&nd->core[i], epoch[i]);
	return err;
}

/**
 * neuron_cores_settle() - make all cores of a device ready
 * @nd: device
 *
 * A core whose last reset failed is reset once more.
 *
 * Context: sleeps until resets have ended.
 * Return: 0; -EIO one does not reset; -ENODEV; -EINTR.
 */
int neuron_cores_settle(struct neuron_device *nd)
{
	unsigned long map = GENMASK(nd->geo->nr_cores - 1, 0), busy = 0, begin = 0;
	u32 epoch[NEURON_HW_MAX_CORES];
	int err;

	do {
		neuron_cores_lock(nd, map);
		err = neuron_cores_busy(nd, map, &busy, &begin, epoch);
		neuron_cores_unlock(nd, map);
		err = err ?: neuron_cores_wait(nd, busy, begin, epoch);
	} while (busy && !err);
	return err;
}

/**
 * neuron_cores_acquire() - make a process the owner of cores
 * @nd: device
 * @map: bit by core number; all of them exist
 * @client: the process
 *
 * The first process that changes anything of a core owns it until it
 * detaches, and its reset for the next owner begins then; it is waited for here.
 * Afterwards the process owns all cores of @map or, on error, only those that it owned before.
 *
 * Context: sleeps until resets have ended.
 * Return: 0; -EBUSY another process owns or has claimed one; -EIO reset failed; -ENODEV;
 *	   -EINTR.
 */
int neuron_cores_acquire(struct neuron_device *nd, unsigned long map,
			 struct neuron_client *client)
{
	unsigned long busy = 0, begin = 0, unclean, all;
	u32 epoch[NEURON_HW_MAX_CORES];
	unsigned int i;
	int err = 0, clear;

	do {
		all = neuron_cores_lock_reaching(nd, map);
		for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
			err = err ?: neuron_core_check(&nd->core[i], client);
		err = err ?: neuron_cores_busy(nd, all, &busy, &begin, epoch);
		unclean = 0;
		for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
			if (!err && !busy && neuron_core_unclean(&nd->core[i]))
				__set_bit(i, &unclean);
		for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
			if (!err && !busy && !unclean && !nd->core[i].owner)
				neuron_core_take(nd, i, client);
		neuron_cores_unlock(nd, all);
		/* Each of them: others wait for it. */
		for_each_set_bit(i, &unclean, NEURON_HW_MAX_CORES) {
			clear = neuron_core_clear_run(&nd->core[i]);
			err = err ?: clear;
		}
		err = err ?: neuron_cores_wait(nd, busy, begin, epoch);
	} while ((busy || unclean) && !err);
	return err;
}

/**
 * neuron_core_acquire() - make a process the owner of a core
 * @nd: device
 * @core: core number
 * @client: the process
 *
 * Context: sleeps until a reset has ended.
 * Return: 0; -EINVAL no such core; else as neuron_cores_acquire().
 */
int neuron_core_acquire(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	struct neuron_core *c;

	if (!neuron_index_valid(&core, nd->geo->nr_cores))
		return -EINVAL;
	c = &nd->core[core];
	if (READ_ONCE(c->owner) == client && READ_ONCE(c->state) == NEURON_CORE_READY)
		return 0;
	return neuron_cores_acquire(nd, BIT(core), client);
}

/**
 * neuron_core_acquire_now() - the same, without waiting for a reset
 * @nd: device
 * @core: core number; it exists
 * @client: the process
 *
 * Its state buffer may still be cleared afterwards; the state of the core says so.
 *
 * Context: may sleep, but not for as long as hardware likes.
 * Return: 0; -EBUSY another process owns or has claimed it, or it is being reset; -EIO its
 *	   last reset failed; -ENODEV.
 */
int neuron_core_acquire_now(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	struct neuron_core *c = &nd->core[core];
	int err;

	mutex_lock(&c->lock);
	err = neuron_core_check(c, client) ?: neuron_core_usable(c);
	if (!err && !c->owner && neuron_cores_reaching(nd, BIT(core)))
		err = -EBUSY;
	if (!err && !c->owner) {
		if (neuron_core_unclean(c))
			neuron_core_clear_later(c);
		neuron_core_take(nd, core, client);
	}
	mutex_unlock(&c->lock);
	return err;
}

/**
 * neuron_core_read() - look at a register without becoming the owner
 * @nd: device
 * @core: core number
 * @client: the process; the core is free or its own
 * @off: byte offset in the window of the core, aligned to 4
 * @val: the register
 *
 * Context: may sleep.
 * Return: 0; -EBUSY another process owns or has claimed the core, or it is being reset;
 *	   -EINVAL no such register; -EIO; -ENODEV.
 */
int neuron_core_read(struct neuron_device *nd, u32 core, const struct neuron_client *client,
		     u32 off, u32 *val)
{
	struct neuron_core *c = &nd->core[core];
	int err;

	mutex_lock(&c->lock);
	err = neuron_core_check(c, client) ?: neuron_core_usable(c);
	/* A reset may leave in a state buffer what a program had there. */
	if (!err && off < NEURON_RESOURCE_SBUF && c->owner != client &&
	    nd->isolation == NEURON_ISOLATION_CHECKED)
		err = -EPERM;
	if (!err)
		err = nd->ops->reg_read(nd, NEURON_BLOCK_CORE, core, off, val);
	mutex_unlock(&c->lock);
	return err;
}

/**
 * neuron_core_write() - write a register of a core that the caller has acquired
 * @nd: device
 * @core: core number
 * @client: the process
 * @off: byte offset in the window of the core, aligned to 4
 * @val: for the register
 *
 * A reset that has begun since must not be disturbed.
 *
 * Context: may sleep.
 * Return: 0; -EBUSY the core is being reset, or not the process's any more; -EINVAL no such
 *	   register, or it refuses the value; -EIO; -ENODEV.
 */
int neuron_core_write(struct neuron_device *nd, u32 core, const struct neuron_client *client,
		      u32 off, u32 val)
{
	struct neuron_core *c = &nd->core[core];
	int err;

	mutex_lock(&c->lock);
	err = c->owner == client ? neuron_core_usable(c) : -EBUSY;
	if (!err)
		err = nd->ops->reg_write(nd, NEURON_BLOCK_CORE, core, off, val);
	mutex_unlock(&c->lock);
	return err;
}

/**
 * neuron_device_reset() - reset all cores of a device that nobody uses
 * @nd: device
 *
 * Context: sleeps until the resets have ended; who opens the device meanwhile waits for
 * them when it needs a core.
 * Return: 0; -EBUSY a process has it open; -EIO a core does not reset; -ENODEV; -EINTR.
 */
int neuron_device_reset(struct neuron_device *nd)
{
	u32 epoch[NEURON_HW_MAX_CORES], i;
	unsigned long begin = 0;
	int err = 0;

	mutex_lock(&nd->clients_lock);
	if (nd->nr_clients)
		err = -EBUSY;
	else if (neuron_device_gone(nd))
		err = -ENODEV;
	for (i = 0; i < nd->geo->nr_cores && !err; i++) {
		struct neuron_core *c = &nd->core[i];

		mutex_lock(&c->lock);
		if (neuron_core_reset_request(c))
			__set_bit(i, &begin);
		epoch[i] = c->epoch;
		mutex_unlock(&c->lock);
	}
	mutex_unlock(&nd->clients_lock);
	if (err)
		return err;
	neuron_core_reset_run(nd, begin);
	for (i = 0; i < nd->geo->nr_cores; i++)
		err = neuron_core_reset_wait(&nd->core[i], epoch[i]) ?: err;
	return err;
}

/**
 * neuron_nds_add() - count an event that the device reported
 * @nd: device
 * @core: core number
 * @counter: as for neuron_nds_read()
 * @n: how often
 *
 * A process that publishes counters counts the event itself when its execution ends.
 *
 * Context: may sleep.
 */
void neuron_nds_add(struct neuron_device *nd, u32 core, u32 counter, u32 n)
{
	struct neuron_nds_counter *t = &nd->core[core].nds[counter];
	struct neuron_client *client;

	mutex_lock(&nd->clients_lock);
	list_for_each_entry(client, &nd->clients, node)
		if (client == READ_ONCE(nd->core[core].owner) && client->datastore)
			n = 0;
	t->ended += n;
	if (n)
		t->last = n;
	mutex_unlock(&nd->clients_lock);
}
