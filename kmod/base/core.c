// SPDX-License-Identifier: GPL-2.0-only
/* Who owns which core. */
#include <linux/eventfd.h>
#include <linux/mm.h>

#include "claim.h"
#include "client.h"
#include "core.h"
#include "trace.h"

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

/*
 * Reset a core and bring its DMA engines back to normal: a state that the last
 * owner set must not stop the next one.  Mappings of its state buffer lose their
 * pages; the next access shows the buffer as the reset left it.  Under core->lock.
 */
int neuron_core_clean(struct neuron_device *nd, u32 core)
{
	u32 eng = core * nd->geo->engines_per_core, end = eng + nd->geo->engines_per_core, state;
	int err = 0, reset;

	for (; eng < end && !err; eng++) {
		err = nd->ops->reg_read(nd, NEURON_BLOCK_DMA, eng, NEURON_DMA_COMMON, &state);
		if (!err && state != NEURON_DMA_ENG_NORMAL && state != NEURON_DMA_ENG_IDLE)
			err = nd->ops->reg_write(nd, NEURON_BLOCK_DMA, eng, NEURON_DMA_COMMON,
						 NEURON_DMA_ENG_NORMAL);
	}
	unmap_mapping_range(nd->inode->i_mapping, neuron_core_window(nd, core),
			    NEURON_RESOURCE_SBUF, 1);
	/* Reset even if the engines failed, and even if the device is being removed. */
	reset = nd->ops->core_reset(nd, core);
	if (!err || err == -ENODEV)
		err = reset;
	trace_neuron_reset(nd->dev.id, core, err);
	nd->core[core].dirty = err;
	if (!err)
		WRITE_ONCE(nd->core[core].reset_failed, false);
	return err;
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
	WRITE_ONCE(c->owner, client);
	/* Another process may have taken the cooperative lock of the free core. */
	neuron_crwl_evict(&c->crwl, client->pid);
}

/**
 * neuron_cores_acquire() - make a process the owner of cores
 * @nd: device
 * @map: bit by core number; all of them exist
 * @client: the process
 *
 * The first process that changes anything of a core owns it until it
 * detaches.  The core is reset for its new owner.  Afterwards the process owns all cores
 * of @map or, on error, only those that it owned before.
 *
 * Context: may sleep.
 * Return: 0; -EBUSY another process owns or has claimed one; -EIO reset failed.
 */
int neuron_cores_acquire(struct neuron_device *nd, unsigned long map,
			 struct neuron_client *client)
{
	unsigned int i;
	int err = 0;

	/* lockdep has no more subclasses. */
	BUILD_BUG_ON(NEURON_HW_MAX_CORES > MAX_LOCKDEP_SUBCLASSES);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		mutex_lock_nested(&nd->core[i].lock, i);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		err = err ?: neuron_core_check(&nd->core[i], client);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		if (!err && !nd->core[i].owner)
			err = neuron_core_clean(nd, i);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		if (!err && !nd->core[i].owner)
			neuron_core_take(nd, i, client);
	for_each_set_bit(i, &map, NEURON_HW_MAX_CORES)
		mutex_unlock(&nd->core[i].lock);
	return err;
}

/**
 * neuron_core_acquire() - make a process the owner of a core
 * @nd: device
 * @core: core number
 * @client: the process
 *
 * Context: may sleep.
 * Return: 0; -EINVAL no such core; else as neuron_cores_acquire().
 */
int neuron_core_acquire(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	if (!neuron_index_valid(&core, nd->geo->nr_cores))
		return -EINVAL;
	if (READ_ONCE(nd->core[core].owner) == client)
		return 0;
	return neuron_cores_acquire(nd, BIT(core), client);
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
 * Return: 0; -EBUSY another process owns or has claimed the core; -EINVAL no
 *	   such register; -EIO.
 */
int neuron_core_read(struct neuron_device *nd, u32 core, const struct neuron_client *client,
		     u32 off, u32 *val)
{
	struct neuron_core *c = &nd->core[core];
	int err;

	mutex_lock(&c->lock);
	err = neuron_core_check(c, client);
	if (!err && !c->owner && c->dirty)
		err = -EIO;
	if (!err)
		err = nd->ops->reg_read(nd, NEURON_BLOCK_CORE, core, off, val);
	mutex_unlock(&c->lock);
	return err;
}

/**
 * neuron_core_try_reset() - reset a core on request
 * @nd: device
 * @core: core number
 *
 * Context: may sleep, core.lock is held.
 * Return: 0; -EIO the reset failed; -ENODEV.
 */
int neuron_core_try_reset(struct neuron_device *nd, u32 core)
{
	struct neuron_core *c = &nd->core[core];
	int err;

	atomic64_inc(&c->reset_req);
	err = neuron_core_clean(nd, core);
	c->reset_failed = err;
	if (err)
		atomic64_inc(&c->reset_fail);
	else
		neuron_crwl_reset(&c->crwl);
	return err;
}

/**
 * neuron_device_reset() - reset all cores of a device that nobody uses
 * @nd: device
 *
 * Context: may sleep; nobody can open the device before it is done.
 * Return: 0; -EBUSY a process has it open; -EIO a core does not reset; -ENODEV.
 */
int neuron_device_reset(struct neuron_device *nd)
{
	int err = 0;
	u32 i;

	mutex_lock(&nd->clients_lock);
	if (nd->nr_clients)
		err = -EBUSY;
	else if (neuron_device_gone(nd))
		err = -ENODEV;
	for (i = 0; i < nd->geo->nr_cores && (!err || err == -EIO); i++) {
		struct neuron_core *core = &nd->core[i];

		mutex_lock(&core->lock);
		err = neuron_core_try_reset(nd, i) ?: err;
		mutex_unlock(&core->lock);
	}
	mutex_unlock(&nd->clients_lock);
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
