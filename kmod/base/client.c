// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that have a device open, and the cores they hold.
 *
 * A process attaches with its first descriptor and detaches with its last
 * one, or when it dies, whichever comes first.
 *
 * A process is dead when the last thread of its thread group has begun to exit;
 * what it called has returned by then.  A first thread that ends before the
 * others is no death, nor is exec().  At its death everything that it owns
 * comes back: queues, cores, claims, memory and its place among the clients,
 * whatever happened to its descriptors.  A child that inherited one, a process
 * that got one in a message and one that shares the table of descriptors keep
 * a file that says EACCES.  Memory that is mapped or exported goes back with
 * the last mapping or export, as after MEM_FREE.
 *
 * Three find out.  A process that has a descriptor itself closes it while it
 * exits, so that all is back before wait() returns (neuron_flush()).  For any
 * other one the kernel wakes the wait queue of its struct pid, as it does for
 * pidfds, before wait() returns; a work item does the rest.  And what is about
 * to be refused for want of anything looks for the dead first
 * (neuron_clients_reap()), so that no timing decides whether it succeeds.
 */
#include <linux/eventfd.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "neuron.h"
#include "trace.h"

/* Of its own: teardown waits for work on others. */
static struct workqueue_struct *neuron_reap_wq;

int neuron_clients_init(void)
{
	neuron_reap_wq = alloc_workqueue("neuron_reap", WQ_UNBOUND, 0);
	return neuron_reap_wq ? 0 : -ENOMEM;
}

void neuron_clients_destroy(void)
{
	destroy_workqueue(neuron_reap_wq);
}

/* Processes that have a device open. */
static LIST_HEAD(neuron_processes);
static DEFINE_MUTEX(neuron_processes_lock);

static struct neuron_process *neuron_process_get(struct pid *pid)
{
	struct neuron_process *p;

	mutex_lock(&neuron_processes_lock);
	list_for_each_entry(p, &neuron_processes, node) {
		if (p->pid != pid)
			continue;
		kref_get(&p->ref);
		goto unlock;
	}
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (p) {
		kref_init(&p->ref);
		p->pid = get_pid(pid);
		list_add(&p->node, &neuron_processes);
	}
unlock:
	mutex_unlock(&neuron_processes_lock);
	return p;
}

/* From kref_put_mutex(): the lock is held. */
static void neuron_process_release(struct kref *ref)
{
	struct neuron_process *p = container_of(ref, struct neuron_process, ref);

	list_del(&p->node);
	mutex_unlock(&neuron_processes_lock);
	WARN_ON_ONCE(atomic64_read(&p->host_bytes));
	put_pid(p->pid);
	kfree(p);
}

/**
 * neuron_process_alive() - has a process threads that do not exit?
 * @pid: its thread group, or NULL
 *
 * Context: any.
 */
bool neuron_process_alive(struct pid *pid)
{
	struct task_struct *task;
	bool alive;

	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_TGID);
	alive = task && atomic_read(&task->signal->live);
	rcu_read_unlock();
	return alive;
}

/**
 * neuron_process_attached() - does a process have a device open?
 * @nd: device
 * @pid: its thread group
 *
 * Context: any.
 */
bool neuron_process_attached(struct neuron_device *nd, const struct pid *pid)
{
	const struct neuron_client *client;
	bool found = false;

	rcu_read_lock();
	list_for_each_entry_rcu(client, &nd->clients, node)
		found |= client->pid == pid && !READ_ONCE(client->dead);
	rcu_read_unlock();
	return found;
}

static void neuron_client_reap(struct work_struct *work)
{
	struct neuron_client *client = container_of(work, struct neuron_client, reap);

	/* Older kernels wake for a traced thread, too. */
	if (!neuron_process_alive(client->pid))
		neuron_client_exit(client);
	neuron_client_put(client);
}

/* Somebody else has a reference. */
static void neuron_client_reap_later(struct neuron_client *client)
{
	kref_get(&client->ref);
	if (!queue_work(neuron_reap_wq, &client->reap))
		neuron_client_put_some(client, 1);
}

/*
 * Runs with locks of the kernel held.  An open file, or whoever does the teardown,
 * has a reference: teardown takes the entry away, and waits for this function.
 */
static int neuron_client_woken(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	neuron_client_reap_later(container_of(entry, struct neuron_client, death));
	return 0;
}

/**
 * neuron_client_new() - make a client
 * @nd: device
 * @pid: thread group, NULL for the driver itself
 *
 * Context: may sleep.
 * Return: the client with one reference, NULL without memory.
 */
struct neuron_client *neuron_client_new(struct neuron_device *nd, struct pid *pid)
{
	static atomic64_t ids;
	struct neuron_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);

	if (!client)
		return NULL;
	if (pid) {
		client->process = neuron_process_get(pid);
		if (!client->process) {
			kfree(client);
			return NULL;
		}
	}
	kref_init(&client->ref);
	client->nd = nd;
	client->space.client = client;
	client->kernel = !pid;
	client->id = atomic64_inc_return(&ids);
	client->pid = get_pid(pid);
	INIT_LIST_HEAD(&client->node);
	init_waitqueue_func_entry(&client->death, neuron_client_woken);
	INIT_WORK(&client->reap, neuron_client_reap);
	mutex_init(&client->async_lock);
	init_completion(&client->done);
	xa_init_flags(&client->handles, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	client->chunks = RB_ROOT;
	INIT_LIST_HEAD(&client->fresh);
	client->imports = RB_ROOT;
	client->limit = NEURON_NO_LIMIT;
	client->own_limit = NEURON_NO_LIMIT;
	/* The driver's own client lives inside the device. */
	if (pid)
		get_device(&nd->dev);
	return client;
}

static void neuron_client_release(struct kref *ref)
{
	struct neuron_client *client = container_of(ref, struct neuron_client, ref);
	struct neuron_device *nd = client->nd;
	bool kernel = client->kernel;

	WARN_ON_ONCE(!RB_EMPTY_ROOT(&client->chunks) || !RB_EMPTY_ROOT(&client->imports) ||
		     !list_empty(&client->fresh));
	xa_destroy(&client->handles);
	if (client->process)
		kref_put_mutex(&client->process->ref, neuron_process_release,
			       &neuron_processes_lock);
	put_pid(client->pid);
	kfree_rcu(client, rcu);
	if (!kernel)
		put_device(&nd->dev);
}

void neuron_client_put(struct neuron_client *client)
{
	kref_put(&client->ref, neuron_client_release);
}

/* The same for @n references, when the caller has another one. */
void neuron_client_put_some(struct neuron_client *client, u32 n)
{
	WARN_ON_ONCE(refcount_sub_and_test(n, &client->ref.refcount));
}

/**
 * neuron_client_attach() - the current process opens a device
 * @nd: device
 * @out: its client, with a reference for the new file
 *
 * Context: may sleep.
 * Return: 0; -ENODEV device gone; -EBUSY 16 processes have it open; -ENOMEM; -EINTR.
 */
int neuron_client_attach(struct neuron_device *nd, struct neuron_client **out)
{
	struct pid *pid = task_tgid(current);
	struct neuron_client *client;
	bool reaped = false;
	int err = 0;

again:
	mutex_lock(&nd->clients_lock);
	if (neuron_device_gone(nd)) {
		err = -ENODEV;
		goto unlock;
	}
	list_for_each_entry(client, &nd->clients, node) {
		if (client->pid != pid)
			continue;
		kref_get(&client->ref);
		if (!client->dead) {
			client->nr_files++;
			*out = client;
			goto unlock;
		}
		/* Another thread just closed the last descriptor: start anew after that. */
		mutex_unlock(&nd->clients_lock);
		err = wait_for_completion_killable(&client->done);
		neuron_client_put(client);
		if (err)
			return -EINTR;
		goto again;
	}
	if (nd->nr_clients >= NEURON_MAX_CLIENTS) {
		mutex_unlock(&nd->clients_lock);
		/* Once: others could come and die for ever. */
		err = reaped ? -ENOENT : neuron_clients_reap(nd);
		reaped = true;
		if (!err)
			goto again;
		return err == -ENOENT ? -EBUSY : err;
	}
	client = neuron_client_new(nd, pid);
	if (!client) {
		err = -ENOMEM;
		goto unlock;
	}
	client->nr_files = 1;
	/* The process lives: it is the caller.  So its death is still to come. */
	add_wait_queue(&pid->wait_pidfd, &client->death);
	list_add_tail_rcu(&client->node, &nd->clients);
	nd->nr_clients++;
	*out = client;
unlock:
	mutex_unlock(&nd->clients_lock);
	return err;
}

/**
 * neuron_core_reset_eventfd() - tell another eventfd of resets
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
 * neuron_core_release() - end a process's ownership of a core
 * @nd: device
 * @core: core number
 * @client: the process; nothing happens if it is not the owner
 *
 * Context: may sleep.  When it returns, the core makes no access.
 */
void neuron_core_release(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	struct neuron_core *c = &nd->core[core];

	if (READ_ONCE(c->owner) != client)
		return;
	mutex_lock(&c->lock);
	if (c->owner == client) {
		if (neuron_core_clean(nd, core) && !neuron_device_gone(nd))
			dev_err(&nd->dev, "core %u does not reset\n", core);
		neuron_nqs_release(nd, core);
		neuron_core_reset_eventfd(c, NULL);
		neuron_crwl_reset(&c->crwl);
		nd->ops->core_bind(nd, core, NULL);
		WRITE_ONCE(c->owner, NULL);
	}
	mutex_unlock(&c->lock);
}

/*
 * Give back everything a process owns.  First its queues and engines are
 * stopped, so that nothing moves data on its behalf, then its memory goes.
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
	neuron_queues_release(client);
	for (i = 0; i < nd->geo->nr_cores; i++)
		neuron_core_release(nd, i, client);
	neuron_crwl_exit(client);
	if (client->claims)
		neuron_claims_drop(client, NULL);
	neuron_datastore_release(client);
	neuron_chunk_unpublish_all(client);
	neuron_failures_bury(client);

	mutex_lock(&nd->clients_lock);
	list_del_rcu(&client->node);
	last = !--nd->nr_clients;
	mutex_unlock(&nd->clients_lock);

	/* An idle device holds no host memory; a process that comes now makes it anew. */
	for (i = 0; last && i < nd->geo->nr_cores; i++)
		neuron_copy_exit(nd, i);
	complete_all(&client->done);
}

/**
 * neuron_client_exit() - give back everything a dying process owns
 * @client: all threads of its process are past their ioctls; calling it twice is fine
 *
 * All of it is back when this returns, whoever did it.
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
 * neuron_clients_reap() - have dead processes give back what they own
 * @nd: device
 *
 * For what would be refused otherwise, once more if this returns 0.  Looks for no
 * more than there can be: others could come and die for ever.
 *
 * Context: may sleep; none of the device's locks held.
 * Return: 0 something came back; -ENOENT nobody is dead; -EINTR.
 */
int neuron_clients_reap(struct neuron_device *nd)
{
	struct neuron_client *client;
	int n = 0, err = -ENOENT;

again:
	mutex_lock(&nd->clients_lock);
	list_for_each_entry(client, &nd->clients, node) {
		if (n == NEURON_MAX_CLIENTS)
			break;
		if (!client->dead && neuron_process_alive(client->pid))
			continue;
		kref_get(&client->ref);
		mutex_unlock(&nd->clients_lock);
		neuron_client_reap_later(client);
		err = wait_for_completion_killable(&client->done);
		neuron_client_put(client);
		if (err)
			return -EINTR;
		n++;
		goto again;
	}
	mutex_unlock(&nd->clients_lock);
	return err;
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

	/* Decided under the lock, or an open() could attach to what is going. */
	mutex_lock(&nd->clients_lock);
	last = !--client->nr_files && !client->dead;
	if (last)
		WRITE_ONCE(client->dead, true);
	mutex_unlock(&nd->clients_lock);
	if (last)
		neuron_client_teardown(client);
	neuron_client_put(client);
}

/*
 * Reset a core and bring its DMA engines back to normal: a state that the last
 * owner set must not stop the next one.  Under core->lock.
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
	/* Whatever the engines said; and a device that goes can still be stopped. */
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
	/* Who took the cooperative lock when the core was free has nothing to lock. */
	neuron_crwl_evict(&c->crwl, client->pid);
}

/**
 * neuron_cores_acquire() - make a process the owner of cores
 * @nd: device
 * @map: bit by core number; all of them exist
 * @client: the process
 *
 * The first process that changes anything of a core owns it until it
 * detaches.  A new owner gets it reset.  Either all of @map are the process's
 * afterwards, or none is that was not before.
 *
 * Context: may sleep.
 * Return: 0; -EBUSY another process owns or has claimed one; -EIO reset failed.
 */
int neuron_cores_acquire(struct neuron_device *nd, unsigned long map,
			 struct neuron_client *client)
{
	unsigned int i;
	int err = 0;

	/* lockdep knows no more levels. */
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
 * neuron_core_reset() - reset a core for its owner
 * @nd: device
 * @core: core number
 * @client: caller; owns the core, or nobody does
 *
 * Its DMA queues and notification queues are gone afterwards.
 *
 * Context: may sleep.
 * Return: 0; -EINVAL; -EBUSY another process owns or has claimed it; -EIO reset failed.
 */
int neuron_core_reset(struct neuron_device *nd, u32 core, struct neuron_client *client)
{
	struct neuron_core *c;
	u32 eng, first;
	int err;

	if (!neuron_index_valid(&core, nd->geo->nr_cores))
		return -EINVAL;
	first = core * nd->geo->engines_per_core;
	c = &nd->core[core];
	mutex_lock(&c->lock);
	err = neuron_core_check(c, client);
	if (err)
		goto unlock;
	atomic64_inc(&c->reset_req);
	for (eng = first; eng < first + nd->geo->engines_per_core; eng++)
		neuron_engine_release(client, eng);
	err = neuron_core_clean(nd, core);
	c->reset_failed = err;
	if (err) {
		atomic64_inc(&c->reset_fail);
		goto tell;
	}
	neuron_nqs_release(nd, core);
	neuron_crwl_reset(&c->crwl);
	nd->ops->core_bind(nd, core, c->owner ? &client->space : NULL);
tell:
	/* Whoever hears of it finds a core that works. */
	if (c->reset_eventfd)
		neuron_eventfd_signal(c->reset_eventfd);
unlock:
	mutex_unlock(&c->lock);
	return err;
}
