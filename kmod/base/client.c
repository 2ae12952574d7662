// SPDX-License-Identifier: GPL-2.0-only
/* Processes that have a device open. */
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "client.h"
#include "device.h"
#include "owner.h"

/* A queue of its own, because teardown waits for work on the others. */
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
 * neuron_process_alive() - does a process have a thread that is not exiting?
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
 * neuron_client_same_user() - is a process one of the caller's user?
 * @client: the process
 *
 * Context: process.
 * Return: false also if it is not in the caller's pid namespace, or has ended.
 */
bool neuron_client_same_user(const struct neuron_client *client)
{
	struct task_struct *task;
	bool same;

	rcu_read_lock();
	task = pid_task(client->pid, PIDTYPE_TGID);
	same = task && uid_eq(__task_cred(task)->euid, current_euid()) && pid_vnr(client->pid);
	rcu_read_unlock();
	return same;
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

/**
 * neuron_client_reap_later() - queue client.reap: is the process dead?
 * @client: kept by another reference during the call
 *
 * Context: any.
 */
void neuron_client_reap_later(struct neuron_client *client)
{
	kref_get(&client->ref);
	if (!queue_work(neuron_reap_wq, &client->reap))
		neuron_client_put_some(client, 1);
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
	static struct lock_class_key owners_key;
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
	client->cred = pid ? get_current_cred() : NULL;
	client->exec_id = current->self_exec_id;
	INIT_LIST_HEAD(&client->node);
	mutex_init(&client->async_lock);
	init_completion(&client->done);
	xa_init_flags(&client->handles, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	client->by_addr[0] = RB_ROOT;
	client->by_addr[1] = RB_ROOT;
	INIT_LIST_HEAD(&client->unindexed);
	INIT_LIST_HEAD(&client->rings);
	neuron_owner_init(&client->owner, client);
	xa_init_flags(&client->owners, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	/* It is taken under the locks of HBMs, which are taken under that of handles. */
	lockdep_set_class(&client->owners.xa_lock, &owners_key);
	client->limit = NEURON_NO_LIMIT;
	client->own_limit = NEURON_NO_LIMIT;
	/* The driver's own client lives inside the device. */
	if (pid)
		get_device(&nd->dev);
	return client;
}

/* Who walks the clients of a device looks at their processes, too. */
static void neuron_client_free_rcu(struct rcu_head *rcu)
{
	struct neuron_client *client = container_of(rcu, struct neuron_client, rcu);

	put_pid(client->pid);
	if (client->cred)
		put_cred(client->cred);
	kfree(client);
}

/* The last reference is gone: from neuron_client_put() only. */
void neuron_client_release(struct kref *ref)
{
	struct neuron_client *client = container_of(ref, struct neuron_client, ref);
	struct neuron_device *nd = client->nd;
	bool kernel = client->kernel;

	WARN_ON_ONCE(!RB_EMPTY_ROOT(&client->by_addr[0]) ||
		     !RB_EMPTY_ROOT(&client->by_addr[1]) || !list_empty(&client->unindexed));
	xa_destroy(&client->handles);
	xa_destroy(&client->owners);
	if (client->process)
		kref_put_mutex(&client->process->ref, neuron_process_release,
			       &neuron_processes_lock);
	call_rcu(&client->rcu, neuron_client_free_rcu);
	if (!kernel)
		put_device(&nd->dev);
}

/* Drop @n references, none of which is the last. */
void neuron_client_put_some(struct neuron_client *client, u32 n)
{
	WARN_ON_ONCE(refcount_sub_and_test(n, &client->ref.refcount));
}

atomic_t neuron_teardowns = ATOMIC_INIT(0);

/**
 * neuron_cred_same_user() - are these credentials of the current process's user?
 * @cred: of whoever opened something
 *
 * Context: process.
 */
bool neuron_cred_same_user(const struct cred *cred)
{
	return cred->user_ns == current_cred()->user_ns && uid_eq(cred->euid, current_euid());
}

/**
 * neuron_client_foreign() - is a client of the current process what another user has left?
 * @client: of its thread group
 *
 * exec() keeps the pid, and a descriptor that somebody else has keeps the client: a set-uid program
 * must not find its memory beside what its caller has, and may still reach.
 *
 * Context: process.
 */
bool neuron_client_foreign(const struct neuron_client *client)
{
	return client->exec_id != current->self_exec_id && !neuron_cred_same_user(client->cred);
}

/**
 * neuron_printable() - text that a process chose, for the kernel log
 * @text: changed: no line breaks, and nothing that a terminal would obey
 *
 * Context: any.
 * Return: @text.
 */
char *neuron_printable(char *text)
{
	char *c;

	for (c = text; *c; c++)
		if (!isascii(*c) || !isprint(*c))
			*c = '?';
	return text;
}

/**
 * neuron_clients_reap() - have dead processes give back what they own
 * @nd: device
 * @seen: neuron_teardowns_read() before the attempt that was refused
 *
 * A request that would be refused is tried once more if this returns 0, which also
 * happens when a teardown that ran beside the first attempt has ended since.  The number
 * of processes waited for is bounded, because others could attach and die for ever.
 *
 * Context: may sleep; none of the device's locks held.
 * Return: 0 a process has given back what it owned; -ENOENT no process is dead; -EINTR.
 */
int neuron_clients_reap(struct neuron_device *nd, u32 seen)
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
	return err == -ENOENT && neuron_teardowns_read() != seen ? 0 : err;
}
