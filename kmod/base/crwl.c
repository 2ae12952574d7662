// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cooperative lock of a core and the handshake that initialises it
 * (uapi/FACTS.md 2).
 *
 * Both serve threads and processes that want to cooperate.  They protect nothing in the
 * driver.
 */
#include <linux/pid.h>
#include <linux/sched.h>

#include "client.h"
#include "core.h"
#include "crwl.h"

#define NEURON_CINIT_TIMEOUT	(5 * HZ)

/* ---- the lock ---- */

void neuron_crwl_init(struct neuron_crwl *crwl)
{
	spin_lock_init(&crwl->lock);
	init_waitqueue_head(&crwl->wait);
	crwl->cinit = NEURON_CINIT_STATE_INVALID;
}

/* Under crwl.lock. */
static void neuron_crwl_clear(struct neuron_crwl *crwl)
{
	crwl->owner = NULL;
	crwl->writer = false;
	crwl->readers = 0;
	memset(&crwl->uuid, 0, sizeof(crwl->uuid));
}

/* Drop what a process holds of a core's lock. */
void neuron_crwl_drop(struct neuron_crwl *crwl, const struct neuron_client *client)
{
	spin_lock(&crwl->lock);
	if (crwl->owner == client)
		neuron_crwl_clear(crwl);
	spin_unlock(&crwl->lock);
	wake_up_all(&crwl->wait);
}

/**
 * neuron_crwl_evict() - a core has a new owner: all others lose its lock
 * @crwl: of the core
 * @pid: the new owner
 *
 * Context: process.
 */
void neuron_crwl_evict(struct neuron_crwl *crwl, const struct pid *pid)
{
	spin_lock(&crwl->lock);
	if (crwl->owner && crwl->owner->pid != pid)
		neuron_crwl_clear(crwl);
	spin_unlock(&crwl->lock);
	wake_up_all(&crwl->wait);
}

/**
 * neuron_crwl_exit() - drop what a process holds of the cores' locks
 * @client: being torn down
 *
 * Context: process.
 */
void neuron_crwl_exit(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++)
		neuron_crwl_drop(&nd->core[i].crwl, client);
}

/* Under crwl.lock. */
static bool neuron_crwl_mine(const struct neuron_crwl *crwl, const struct neuron_client *client,
			     const struct neuron_uuid *uuid)
{
	return crwl->owner == client && !memcmp(&crwl->uuid, uuid, sizeof(*uuid));
}

int neuron_crwl_read(struct neuron_crwl *crwl, const struct neuron_client *client,
		     const struct neuron_uuid *uuid)
{
	if (crwl->writer || crwl->readers == U32_MAX)
		return -EAGAIN;
	if (!neuron_crwl_mine(crwl, client, uuid))
		return -ENOENT;
	crwl->readers++;
	return 0;
}

int neuron_crwl_write(struct neuron_crwl *crwl, const struct neuron_client *client,
		      const struct neuron_uuid *uuid)
{
	/* The vendor's driver takes the lock and returns this (uapi/FACTS.md 2). */
	if (neuron_crwl_mine(crwl, client, uuid))
		return -EALREADY;
	if (crwl->writer || crwl->readers)
		return -EAGAIN;
	crwl->writer = true;
	crwl->owner = client;
	crwl->uuid = *uuid;
	return 0;
}

int neuron_crwl_read_end(struct neuron_crwl *crwl, const struct neuron_client *client,
			 const struct neuron_uuid *uuid)
{
	if (!neuron_crwl_mine(crwl, client, uuid) || !crwl->readers)
		return -ENOENT;
	crwl->readers--;
	return 0;
}

int neuron_crwl_downgrade(struct neuron_crwl *crwl, const struct neuron_client *client,
			  const struct neuron_uuid *uuid)
{
	if (!neuron_crwl_mine(crwl, client, uuid) || !crwl->writer)
		return -ENOENT;
	crwl->writer = false;
	crwl->readers = 1;
	return 0;
}

static bool neuron_crwl_try(struct neuron_crwl *crwl, neuron_crwl_fn fn,
			    const struct neuron_client *client, const struct neuron_uuid *uuid,
			    int *err)
{
	spin_lock(&crwl->lock);
	*err = neuron_device_gone(client->nd) ? -ENODEV : fn(crwl, client, uuid);
	spin_unlock(&crwl->lock);
	return *err != -EAGAIN;
}

/**
 * neuron_crwl() - change the lock of a core when that is possible
 * @client: the caller
 * @nc: core number, below the device's number of cores
 * @uuid: the model
 * @fn: one attempt
 * @timeout: jiffies to wait at most
 *
 * Context: may sleep.
 * Return: 0; -EBUSY it was not possible in that time; -EINTR; -ENODEV; what @fn returns.
 */
int neuron_crwl(struct neuron_client *client, u32 nc, const struct neuron_uuid *uuid,
		neuron_crwl_fn fn, long timeout)
{
	struct neuron_crwl *crwl = &client->nd->core[nc].crwl;
	long left;
	int err;

	left = wait_event_interruptible_timeout(crwl->wait,
						neuron_crwl_try(crwl, fn, client, uuid, &err),
						timeout);
	if (left <= 0)
		return left ? -EINTR : -EBUSY;
	if (!err)
		wake_up_all(&crwl->wait);
	return err;
}

/* ---- initialisation ---- */

/* Under crwl.lock. */
static void neuron_cinit_set(struct neuron_crwl *crwl, u32 state)
{
	crwl->cinit = state;
	put_pid(crwl->starter);
	crwl->starter = NULL;
}

/**
 * neuron_crwl_reset() - a core was reset and has to be initialised again
 * @crwl: of the core
 *
 * Context: process.
 */
void neuron_crwl_reset(struct neuron_crwl *crwl)
{
	spin_lock(&crwl->lock);
	neuron_cinit_set(crwl, NEURON_CINIT_STATE_INVALID);
	spin_unlock(&crwl->lock);
	wake_up_all(&crwl->wait);
}

/* Is the thread that initialises the core alive?  Under crwl.lock. */
static bool neuron_cinit_alive(const struct neuron_crwl *crwl)
{
	struct task_struct *task;
	bool alive;

	rcu_read_lock();
	task = pid_task(crwl->starter, PIDTYPE_PID);
	alive = task && !(READ_ONCE(task->flags) & PF_EXITING);
	rcu_read_unlock();
	return alive;
}

/*
 * A thread that is told STARTED has to initialise the core.  That is the first thread
 * that asks or, if it has died, the next one.  All others wait for it.
 */
static bool neuron_cinit_start(struct neuron_crwl *crwl)
{
	bool done = true;

	spin_lock(&crwl->lock);
	if (crwl->cinit == NEURON_CINIT_STATE_STARTED)
		done = crwl->starter == task_pid(current) || !neuron_cinit_alive(crwl);
	if (done && crwl->cinit != NEURON_CINIT_STATE_COMPLETED) {
		neuron_cinit_set(crwl, NEURON_CINIT_STATE_STARTED);
		crwl->starter = get_pid(task_pid(current));
	}
	spin_unlock(&crwl->lock);
	return done;
}

/**
 * neuron_cinit() - a thread initialises a core, or has done so
 * @client: owner of the core
 * @nc: core number
 * @state: NEURON_CINIT_STATE_STARTED: wait until it is this thread's turn or it is
 *	   done; NEURON_CINIT_STATE_COMPLETED
 * @out: the state now
 *
 * Context: may sleep.
 * Return: 0; -EBUSY another thread takes too long; -EINTR; -ENODEV.
 */
int neuron_cinit(struct neuron_client *client, u32 nc, u32 state, u32 *out)
{
	struct neuron_device *nd = client->nd;
	struct neuron_crwl *crwl = &nd->core[nc].crwl;
	long left;

	if (state == NEURON_CINIT_STATE_STARTED) {
		left = wait_event_interruptible_timeout(crwl->wait, neuron_device_gone(nd) ||
							neuron_cinit_start(crwl),
							NEURON_CINIT_TIMEOUT);
		if (left <= 0)
			return left ? -EINTR : -EBUSY;
	}
	if (neuron_device_gone(nd))
		return -ENODEV;

	spin_lock(&crwl->lock);
	if (state == NEURON_CINIT_STATE_COMPLETED && crwl->cinit == NEURON_CINIT_STATE_STARTED)
		neuron_cinit_set(crwl, NEURON_CINIT_STATE_COMPLETED);
	*out = crwl->cinit;
	spin_unlock(&crwl->lock);
	wake_up_all(&crwl->wait);
	return 0;
}
