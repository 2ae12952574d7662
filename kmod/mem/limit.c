// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of device memory: how much may be charged to a core, and how much a
 * process may hold, over all HBMs of the device.
 *
 * Limits of host memory, which is in no process's resident set: how much one process and
 * all processes together may hold, over all devices, as shares of the machine's memory.
 * Cgroups set finer limits.
 *
 * The sums only grow through neuron_limit_charge() and neuron_limit_charge_host(),
 * which never take them beyond the limit.  A limit that is lowered takes nothing
 * away: it refuses requests until enough was given back.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "chunk.h"
#include "limit.h"

static u64 neuron_limit_of(const struct neuron_client *client)
{
	u64 limit = READ_ONCE(client->limit);

	if (client->kernel)
		return NEURON_NO_LIMIT;
	if (limit == NEURON_NO_LIMIT)
		limit = READ_ONCE(client->nd->process_limit);
	return min(limit, READ_ONCE(client->own_limit));
}

static bool neuron_limit_add(atomic64_t *used, u64 bytes, u64 limit)
{
	s64 old = atomic64_read(used);

	do {
		if (bytes > limit || old > limit - bytes)
			return false;
	} while (!atomic64_try_cmpxchg(used, &old, old + bytes));
	return true;
}

/**
 * neuron_limit_core() - may a process have memory charged to a core?
 * @client: the process
 * @core: core number
 *
 * No memory may be charged to a core that another process owns or has claimed.  Earlier
 * charges to the core stay, but do not count for the limit of its new owner.
 *
 * Context: may sleep.
 * Return: 0, -EBUSY.
 */
int neuron_limit_core(const struct neuron_client *client, u32 core)
{
	struct neuron_core *c = &client->nd->core[core];
	const struct neuron_client *owner = READ_ONCE(c->owner);
	const struct pid *claim = READ_ONCE(c->claim);
	int err;

	/* Usually the answer is clear without the lock. */
	if (owner == client || (!owner && (!claim || claim == client->pid)))
		return 0;
	mutex_lock(&c->lock);
	err = neuron_core_check(c, client);
	mutex_unlock(&c->lock);
	return err;
}

/**
 * neuron_limit_charge() - charge device memory if the limits allow it
 * @chunk: client and core are set
 * @bytes: how much
 * @limit: set to the limit that refuses it
 *
 * Context: any; the caller charges and allocates under the lock of one hbm, so that no
 *	    other request of that hbm sees a charge that is taken back.
 * Return: false refused.
 */
bool neuron_limit_charge(struct neuron_chunk *chunk, u64 bytes, u64 *limit)
{
	struct neuron_client *client = chunk->client;
	struct neuron_core *core = &client->nd->core[chunk->core];
	u64 process = neuron_limit_of(client);
	u64 percore = client->kernel ? NEURON_NO_LIMIT : READ_ONCE(core->limit);
	atomic64_t *own = &client->core_bytes[chunk->core], *all = &core->device_bytes;
	bool owner = READ_ONCE(core->owner) == client;

	/* No hbm has that much.  A charge until the refusal could make the sums wrap. */
	if (bytes > NEURON_BUDDY_MAX_SIZE) {
		process = min(process, percore);
		if (bytes > process)
			*limit = process;
		return bytes <= process;
	}
	if (!neuron_limit_add(&client->device_bytes, bytes, process)) {
		*limit = process;
		return false;
	}
	/* Charges of others from before the owner took the core do not count for it. */
	if (!neuron_limit_add(owner ? own : all, bytes, percore)) {
		atomic64_sub(bytes, &client->device_bytes);
		*limit = percore;
		return false;
	}
	atomic64_add(bytes, owner ? all : own);
	return true;
}

/**
 * neuron_limit_uncharge() - take a charge back
 * @chunk: as it was charged
 * @bytes: how much
 *
 * Context: any.
 */
void neuron_limit_uncharge(struct neuron_chunk *chunk, u64 bytes)
{
	struct neuron_client *client = chunk->client;

	if (bytes > NEURON_BUDDY_MAX_SIZE)
		return;
	atomic64_sub(bytes, &client->nd->core[chunk->core].device_bytes);
	atomic64_sub(bytes, &client->core_bytes[chunk->core]);
	atomic64_sub(bytes, &client->device_bytes);
}

/* ---- host memory ---- */

/* Host memory is pinned: the rest is left to everything else on the machine. */
static uint host_percent = 75;
module_param(host_percent, uint, 0644);
MODULE_PARM_DESC(host_percent, "Share of the machine's memory that all processes together may hold as host memory of devices, in percent");

static uint process_host_percent = 50;
module_param(process_host_percent, uint, 0644);
MODULE_PARM_DESC(process_host_percent, "Share that one process may hold, in percent");

static atomic64_t neuron_host_used;

/**
 * neuron_host_limit() - how much host memory may be held
 * @process: by one process; else by all together
 *
 * Context: any.
 * Return: bytes.
 */
u64 neuron_host_limit(bool process)
{
	u32 percent = process ? READ_ONCE(process_host_percent) : READ_ONCE(host_percent);

	return (u64)totalram_pages() * min(percent, 100u) / 100 << PAGE_SHIFT;
}

/**
 * neuron_limit_charge_host() - charge host memory if the limits allow it
 * @client: the process; the driver has no limit
 * @bytes: how much
 * @limit: set to the limit that refuses it
 *
 * Context: any.
 * Return: false refused.
 */
bool neuron_limit_charge_host(struct neuron_client *client, u64 bytes, u64 *limit)
{
	u64 process = neuron_host_limit(true), all = neuron_host_limit(false);

	if (client->kernel)
		return true;
	if (!neuron_limit_add(&client->process->host_bytes, bytes, process)) {
		*limit = process;
		return false;
	}
	if (!neuron_limit_add(&neuron_host_used, bytes, all)) {
		atomic64_sub(bytes, &client->process->host_bytes);
		*limit = all;
		return false;
	}
	return true;
}

/**
 * neuron_limit_uncharge_host() - take a charge back
 * @client: as it was charged
 * @bytes: how much
 *
 * Context: any.
 */
void neuron_limit_uncharge_host(struct neuron_client *client, u64 bytes)
{
	if (client->kernel)
		return;
	atomic64_sub(bytes, &neuron_host_used);
	atomic64_sub(bytes, &client->process->host_bytes);
}

/* ---- NEURON_NATIVE_LIMIT ---- */

/* Under clients_lock. */
static int neuron_limit_process(struct neuron_device *nd, struct pid *pid, u64 bytes, bool set,
				bool commit, struct neuron_native_limit *a)
{
	struct neuron_client *client;

	list_for_each_entry(client, &nd->clients, node) {
		if (client->pid != pid || client->dead)
			continue;
		a->bytes = neuron_limit_of(client);
		a->used = atomic64_read(&client->device_bytes);
		if (!set)
			return 0;
		if (capable(CAP_SYS_ADMIN)) {
			a->bytes = bytes == NEURON_NO_LIMIT ? READ_ONCE(nd->process_limit) : bytes;
			if (commit) {
				WRITE_ONCE(client->limit, bytes);
				WRITE_ONCE(client->own_limit, NEURON_NO_LIMIT);
			}
			return 0;
		}
		if (pid != task_tgid(current) || bytes > a->bytes)
			return -EPERM;
		a->bytes = bytes;
		if (commit)
			WRITE_ONCE(client->own_limit, bytes);
		return 0;
	}
	return -ENOENT;
}

/* Fill in the limit in force now or, if @set, after the change.  @commit: make the change. */
static int neuron_limit_apply(struct neuron_device *nd, u64 bytes, bool set, bool commit,
			      struct neuron_native_limit *a)
{
	struct pid *pid;
	u64 *limit;
	int err;

	if (a->what == NEURON_NATIVE_LIMIT_PROCESS) {
		pid = a->index ? find_get_pid(a->index) : get_pid(task_tgid(current));
		mutex_lock(&nd->clients_lock);
		err = neuron_limit_process(nd, pid, bytes, set, commit, a);
		mutex_unlock(&nd->clients_lock);
		put_pid(pid);
		return err;
	}

	if (a->what == NEURON_NATIVE_LIMIT_CORE && a->index < nd->geo->nr_cores) {
		struct neuron_core *core;
		u32 index = array_index_nospec(a->index, nd->geo->nr_cores);

		core = &nd->core[index];
		limit = &core->limit;
		mutex_lock(&core->lock);
		a->used = atomic64_read(core->owner ? &core->owner->core_bytes[index] :
						      &core->device_bytes);
		mutex_unlock(&core->lock);
	} else if (a->what == NEURON_NATIVE_LIMIT_DEFAULT && !a->index) {
		limit = &nd->process_limit;
	} else {
		return -EINVAL;
	}
	if (set && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (commit)
		WRITE_ONCE(*limit, bytes);
	a->bytes = set ? bytes : READ_ONCE(*limit);
	return 0;
}

int neuron_do_native_limit(struct neuron_call *call)
{
	struct neuron_native_limit __user *result = call->uarg;
	struct neuron_native_limit *a = call->arg;
	bool set = a->flags & NEURON_NATIVE_LIMIT_SET;
	u64 bytes = a->bytes;
	int err;

	if (a->flags & ~NEURON_NATIVE_LIMIT_SET || a->used || (!set && bytes) || a->index < 0)
		return -EINVAL;
	err = neuron_limit_apply(call->nd, bytes, set, false, a);
	if (err)
		return err;
	/* Tell the caller first: if that fails, nothing was set. */
	if (put_user(a->bytes, &result->bytes) || put_user(a->used, &result->used))
		return -EFAULT;
	return set ? neuron_limit_apply(call->nd, bytes, true, true, a) : 0;
}
