// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process attaches to a device, detaches from it, and is torn down in a stated
 * order.
 *
 * A process attaches with its first descriptor and detaches with its last
 * one, or when it dies, whichever comes first.
 *
 * A process is dead when the last thread of its thread group has begun to exit;
 * its system calls have returned by then.  The exit of the first thread alone is no
 * death, nor is exec().  At its death the process gives back everything that it owns:
 * queues, cores, claims, memory and its place among the clients, whatever happened to its
 * descriptors.  A child that inherited a descriptor, a process that received one in a
 * message and one that shares the descriptor table keep a file whose calls fail with
 * EACCES.  Memory that is mapped or exported is freed with the last mapping or export, as
 * after MEM_FREE.
 *
 * A death is noticed in three ways.  A process with a descriptor of its own closes it
 * while it exits, so that everything is given back before wait() returns
 * (neuron_flush()).  For any other process the kernel wakes the wait queue of its struct
 * pid, as for pidfds, before wait() returns; a work item does the rest.  And a request
 * that is about to be refused for a shortage first reaps dead processes
 * (neuron_clients_reap()), so that its success does not depend on timing.
 */
#include <linux/pid.h>

#include "../base/claim.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/crwl.h"
#include "../base/isolation.h"
#include "../base/owner.h"
#include "../dma/async.h"
#include "../dma/copy.h"
#include "../mem/chunk.h"
#include "../mem/datastore.h"
#include "../mem/failure.h"
#include "../mem/handle.h"
#include "../mem/scrub.h"
#include "attach.h"
#include "reset.h"

static void neuron_client_reap(struct work_struct *work)
{
	struct neuron_client *client = container_of(work, struct neuron_client, reap);

	/* Older kernels also wake when a traced thread exits. */
	if (!neuron_process_alive(client->pid))
		neuron_client_exit(client);
	neuron_client_put(client);
}

/*
 * Runs under locks of the kernel.  An open file or the teardown holds a reference:
 * teardown removes the entry, which waits for this function.
 */
static int neuron_client_woken(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	neuron_client_reap_later(container_of(entry, struct neuron_client, death));
	return 0;
}

/**
 * neuron_client_attach() - the current process opens a device
 * @nd: device
 * @out: its client, with a reference for the new file
 *
 * Context: may sleep.
 * Return: 0; -ENODEV device gone; -EBUSY 16 processes have it open, or one of another
 *	   domain, or this one has from before it became another user's by exec(); -EIO a core
 *	   that another domain used does not reset; -ENOMEM; -EINTR.
 */
int neuron_client_attach(struct neuron_device *nd, struct neuron_client **out)
{
	struct pid *pid = task_tgid(current);
	struct neuron_client *client;
	bool reaped = false;
	int err = 0;
	u32 seen;

again:
	mutex_lock(&nd->clients_lock);
	if (neuron_device_gone(nd)) {
		err = -ENODEV;
		goto unlock;
	}
	list_for_each_entry(client, &nd->clients, node) {
		if (client->pid != pid)
			continue;
		if (!client->dead && neuron_client_foreign(client)) {
			err = -EBUSY;
			goto unlock;
		}
		kref_get(&client->ref);
		if (!client->dead) {
			client->nr_files++;
			*out = client;
			goto unlock;
		}
		/* Another thread just closed the last descriptor: try again after the teardown. */
		mutex_unlock(&nd->clients_lock);
		err = wait_for_completion_killable(&client->done);
		neuron_client_put(client);
		if (err)
			return -EINTR;
		goto again;
	}
	err = neuron_domain_check(nd);
	if (err == -EAGAIN) {
		mutex_unlock(&nd->clients_lock);
		err = neuron_cores_settle(nd);
		if (err)
			return err;
		goto again;
	}
	if (err || nd->nr_clients >= NEURON_MAX_CLIENTS) {
		seen = neuron_teardowns_read();
		mutex_unlock(&nd->clients_lock);
		/* Only once: other processes could attach and die for ever. */
		err = reaped ? -ENOENT : neuron_clients_reap(nd, seen);
		reaped = true;
		if (!err)
			goto again;
		return err == -ENOENT ? -EBUSY : err;
	}
	err = neuron_failures_init(nd);
	if (err)
		goto unlock;
	client = neuron_client_new(nd, pid);
	if (!client) {
		err = -ENOMEM;
		goto unlock;
	}
	client->nr_files = 1;
	init_waitqueue_func_entry(&client->death, neuron_client_woken);
	INIT_WORK(&client->reap, neuron_client_reap);
	/* The process is the caller, so its death is still to come. */
	add_wait_queue(&pid->wait_pidfd, &client->death);
	list_add_tail_rcu(&client->node, &nd->clients);
	WRITE_ONCE(nd->nr_clients, nd->nr_clients + 1);
	neuron_domain_enter(nd);
	*out = client;
unlock:
	mutex_unlock(&nd->clients_lock);
	return err;
}

/*
 * Give back everything a process owns.  First its cores are reset with their queues; what
 * they may touch until that has ended is held (../base/reset.c).  Then its memory goes.
 * client->dead is set: nobody attaches to it and no ioctl of it is running.
 */
static void neuron_client_teardown(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	bool last;
	u32 i;

	remove_wait_queue(&client->pid->wait_pidfd, &client->death);
	neuron_async_exit(client);
	neuron_scrub_exit(client);
	neuron_cores_release(client);
	neuron_crwl_exit(client);
	if (client->claims)
		neuron_claims_drop(client, NULL);
	neuron_datastore_release(client);
	neuron_chunk_unpublish_all(client);
	neuron_owners_release(client);
	neuron_failures_bury(client);

	mutex_lock(&nd->clients_lock);
	list_del_rcu(&client->node);
	WRITE_ONCE(nd->nr_clients, nd->nr_clients - 1);
	last = !nd->nr_clients;
	neuron_teardown_ended();
	mutex_unlock(&nd->clients_lock);

	/* An idle device holds no host memory; the next process makes the copy rings again. */
	for (i = 0; last && i < nd->geo->nr_cores; i++)
		neuron_copy_exit(nd, i);
	complete_all(&client->done);
}

/**
 * neuron_client_exit() - give back everything a dying process owns
 * @client: all threads of its process are past their ioctls; calling it twice is fine
 *
 * Everything is given back when this returns, even if another caller did the work.
 *
 * Context: may sleep.
 */
void neuron_client_exit(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	bool first;

	mutex_lock(&nd->clients_lock);
	first = !client->dead;
	WRITE_ONCE(client->dead, true);
	mutex_unlock(&nd->clients_lock);
	if (first)
		neuron_client_teardown(client);
	else
		wait_for_completion(&client->done);
}

/**
 * neuron_client_detach() - a file of a process was closed for good
 * @client: its reference is dropped
 *
 * Context: may sleep.
 */
void neuron_client_detach(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	bool last;

	/* Decided under the lock, or an open() could attach to a client that is torn down. */
	mutex_lock(&nd->clients_lock);
	last = !--client->nr_files && !client->dead;
	if (last)
		WRITE_ONCE(client->dead, true);
	mutex_unlock(&nd->clients_lock);
	if (last)
		neuron_client_teardown(client);
	neuron_client_put(client);
}
