// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owners: the parts of a process among which it divides its memory.
 *
 * An owner has a number until the process releases it, and stays in the table as long as a
 * chunk is charged to it, so that the sum over all owners is the memory of the process.
 */
#include <linux/ctype.h>
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "call.h"
#include "client.h"
#include "owner.h"

/* Numbers are used again as late as possible: a number in an old record means one owner. */
#define NEURON_OWNER_LAST	U16_MAX

/**
 * neuron_owner_init() - start the figures of an owner
 * @owner: all zero
 * @client: the process
 *
 * Context: any.
 */
void neuron_owner_init(struct neuron_owner *owner, struct neuron_client *client)
{
	u64 now = local_clock();
	u32 i;

	kref_init(&owner->ref);
	owner->client = client;
	for (i = 0; i < NEURON_HW_MAX_HBMS; i++)
		neuron_owner_clear(&owner->use[i], now);
}

/* The last reference is gone: from neuron_owner_put() only. */
void neuron_owner_free(struct kref *ref)
{
	struct neuron_owner *owner = container_of(ref, struct neuron_owner, ref);
	struct neuron_client *client = owner->client;

	xa_erase(&client->owners, owner->id);
	atomic_dec(&client->nr_owners);
	kfree_rcu(owner, rcu);
}

/*
 * The owner with a number that was not released; 0 = the process itself.  NULL: there is none.
 * Under the lock of client.owners.
 */
static struct neuron_owner *neuron_owner_find(struct neuron_client *client, u32 id)
{
	struct neuron_owner *owner = id ? xa_load(&client->owners, id) : &client->owner;

	return owner && !owner->released ? owner : NULL;
}

/**
 * neuron_owner_get() - the owner of a new chunk
 * @client: the process
 * @id: number of the owner, not 0
 *
 * Context: any.
 * Return: for neuron_owner_put(); NULL: there is none.
 */
struct neuron_owner *neuron_owner_get(struct neuron_client *client, u32 id)
{
	struct neuron_owner *owner;

	xa_lock(&client->owners);
	owner = neuron_owner_find(client, id);
	/* One that was not released has a reference for its number. */
	if (owner)
		kref_get(&owner->ref);
	xa_unlock(&client->owners);
	return owner;
}

/* Without a product that is longer than 64 bits. */
static u64 neuron_owner_byte_seconds(s64 page_ticks)
{
	const u64 ns = (u64)PAGE_SIZE << NEURON_OWNER_TICK_SHIFT;
	u64 whole;
	u32 rest;

	/* A clock that went back a little. */
	if (page_ticks < 0)
		return 0;
	whole = div_u64_rem(page_ticks, NSEC_PER_SEC, &rest);
	return whole * ns + div_u64(rest * ns, NSEC_PER_SEC);
}

/**
 * neuron_owner_show() - the figures of an owner for user space
 * @owner: the owner
 * @hbm: HBM number; its lock is held
 * @now: local_clock(), ns
 * @out: filled in
 */
void neuron_owner_show(const struct neuron_owner *owner, u32 hbm, u64 now,
		       struct neuron_native_owner_entry *out)
{
	struct neuron_owner_use use = owner->use[hbm];

	neuron_owner_count(&use, now);
	memset(out, 0, sizeof(*out));
	out->owner = owner->id;
	out->pid = pid_vnr(owner->client->pid);
	xa_lock(&owner->client->owners);
	out->flags = owner->released ? NEURON_NATIVE_OWNER_RELEASED : 0;
	memcpy(out->label, owner->label, sizeof(out->label));
	xa_unlock(&owner->client->owners);
	out->bytes = use.bytes;
	out->peak = use.peak;
	out->steady = use.low;
	out->byte_seconds = neuron_owner_byte_seconds(use.page_ticks);
	out->time = max_t(s64, now - use.since, 0);
	out->allocs = use.allocs;
	out->host_bytes = atomic64_read(&owner->host_bytes);
}

static int neuron_owner_release(struct neuron_client *client, u32 id)
{
	struct neuron_owner *owner;

	xa_lock(&client->owners);
	/* The process itself has no number to give back. */
	owner = id ? neuron_owner_find(client, id) : NULL;
	if (owner)
		owner->released = true;
	xa_unlock(&client->owners);
	if (!owner)
		return -ENOENT;
	neuron_owner_put(owner);
	return 0;
}

#ifdef CONFIG_PROC_FS
/**
 * neuron_owners_show() - the owners of a process that hold device memory, for fdinfo
 * @m: the file
 * @client: the process
 * @nr_hbms: HBMs of the device
 *
 * Context: any.
 */
void neuron_owners_show(struct seq_file *m, struct neuron_client *client, u32 nr_hbms)
{
	const struct neuron_owner *owner;
	unsigned long id;
	u64 bytes;
	u32 i;

	xa_lock(&client->owners);
	neuron_for_each_owner(client, id, owner) {
		for (i = 0; i < nr_hbms; i++) {
			bytes = READ_ONCE(owner->use[i].bytes);
			if (bytes)
				seq_printf(m, "neuron-owner:\t%u hbm%u %llu KiB peak %llu KiB %s\n",
					   owner->id, i, bytes >> 10,
					   READ_ONCE(owner->use[i].peak) >> 10, owner->label);
		}
	}
	xa_unlock(&client->owners);
}
#endif

/**
 * neuron_owners_release() - a process has ended: its owners have no number any more
 * @client: the process
 *
 * Context: may sleep.
 */
void neuron_owners_release(struct neuron_client *client)
{
	struct neuron_owner *owner;
	unsigned long id;

	xa_for_each(&client->owners, id, owner)
		neuron_owner_release(client, id);
}

static int neuron_owner_make(struct neuron_client *client, const char *label, u32 *id)
{
	struct neuron_owner *owner;
	int err;

	if (!atomic_add_unless(&client->nr_owners, 1, NEURON_NATIVE_OWNERS_MAX))
		return -ENOSPC;
	owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);
	if (!owner) {
		err = -ENOMEM;
		goto uncount;
	}
	neuron_owner_init(owner, client);
	strscpy(owner->label, label, sizeof(owner->label));
	xa_lock(&client->owners);
	err = __xa_alloc_cyclic(&client->owners, &owner->id, owner, XA_LIMIT(1, NEURON_OWNER_LAST),
				&client->last_owner, GFP_KERNEL_ACCOUNT);
	/* Once the lock is dropped, another thread may release it. */
	if (err >= 0)
		*id = owner->id;
	xa_unlock(&client->owners);
	if (err >= 0)
		return 0;
	kfree(owner);
uncount:
	atomic_dec(&client->nr_owners);
	return err;
}

static int neuron_owner_rename(struct neuron_client *client, u32 id, const char *label)
{
	struct neuron_owner *owner;

	xa_lock(&client->owners);
	owner = neuron_owner_find(client, id);
	if (owner)
		strscpy(owner->label, label, sizeof(owner->label));
	xa_unlock(&client->owners);
	return owner ? 0 : -ENOENT;
}

static bool neuron_label_valid(const char *label, bool none)
{
	size_t len = strnlen(label, NEURON_NATIVE_LABEL_MAX), i;

	if (len == NEURON_NATIVE_LABEL_MAX || !len != none ||
	    memchr_inv(label + len, 0, NEURON_NATIVE_LABEL_MAX - len))
		return false;
	for (i = 0; i < len; i++)
		if (!isascii(label[i]) || !isprint(label[i]))
			return false;
	return true;
}

int neuron_do_native_owner(struct neuron_call *call)
{
	struct neuron_native_owner __user *result = call->uarg;
	struct neuron_native_owner *a = call->arg;
	bool release = a->flags == NEURON_NATIVE_OWNER_RELEASE;
	int err;

	if (a->__reserved || !neuron_label_valid(a->label, release))
		return -EINVAL;
	if (release)
		return neuron_owner_release(call->client, a->owner);
	if (a->flags == NEURON_NATIVE_OWNER_RENAME)
		return neuron_owner_rename(call->client, a->owner, a->label);
	if (a->flags || a->owner)
		return -EINVAL;
	err = neuron_owner_make(call->client, a->label, &a->owner);
	if (!err && put_user(a->owner, &result->owner)) {
		neuron_owner_release(call->client, a->owner);
		err = -EFAULT;
	}
	return err;
}
