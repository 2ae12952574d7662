// SPDX-License-Identifier: GPL-2.0-only
/* What is where in an HBM: DUMP_MEM_CHUNKS lists allocations, HBM_RANGES holes, too. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/device.h"
#include "chunk.h"
#include "handle.h"
#include "hbm.h"

/**
 * struct neuron_dump_source - allocations of one process
 * @client: the process, with a reference
 * @next: its next allocation
 * @valid: @next is filled in
 */
struct neuron_dump_source {
	struct neuron_client *client;
	struct neuron_native_range next;
	bool valid;
};

static void neuron_dump_next(struct neuron_dump_source *s, u64 from, u64 end)
{
	s->valid = neuron_chunk_next(s->client, from, &s->next) && s->next.address < end;
}

/* A process of the caller's user, in the caller's pid namespace. */
static bool neuron_dump_same_user(const struct neuron_client *client)
{
	struct task_struct *task;
	bool same;

	rcu_read_lock();
	task = pid_task(client->pid, PIDTYPE_TGID);
	same = task && uid_eq(__task_cred(task)->euid, current_euid()) && pid_vnr(client->pid);
	rcu_read_unlock();
	return same;
}

/*
 * The processes whose allocations the caller may see, each with its first one from @from on;
 * all of them with CAP_SYS_ADMIN.  @users: those of the same user, else the caller.  NULL: no
 * memory for the list.
 */
static struct neuron_dump_source *neuron_dump_begin(struct neuron_call *call, bool users, u64 from,
						    u64 end, u32 *nr)
{
	bool all = capable(CAP_SYS_ADMIN);
	struct neuron_dump_source *src;
	struct neuron_client *client;
	u32 n = 0, i;

	src = kcalloc(NEURON_MAX_CLIENTS, sizeof(*src), GFP_KERNEL_ACCOUNT);
	if (!src)
		return NULL;
	mutex_lock(&call->nd->clients_lock);
	list_for_each_entry(client, &call->nd->clients, node) {
		if (!all && client != call->client && !(users && neuron_dump_same_user(client)))
			continue;
		if (n == NEURON_MAX_CLIENTS)
			break;
		kref_get(&client->ref);
		src[n++].client = client;
	}
	mutex_unlock(&call->nd->clients_lock);
	for (i = 0; i < n; i++)
		neuron_dump_next(&src[i], from, end);
	*nr = n;
	return src;
}

static void neuron_dump_end(struct neuron_dump_source *src, u32 n)
{
	while (n--)
		neuron_client_put(src[n].client);
	kfree(src);
}

static int neuron_dump(struct neuron_dump_source *src, u32 n, u64 end,
		       struct neuron_ioctl_mem_chunk_info __user *data, u32 room, u32 *count)
{
	struct neuron_ioctl_mem_chunk_info info;
	struct neuron_dump_source *s;
	u32 i;

	memset(&info, 0, sizeof(info));
	for (;;) {
		s = NULL;
		for (i = 0; i < n; i++)
			if (src[i].valid && (!s || src[i].next.address < s->next.address))
				s = &src[i];
		if (!s || *count == U32_MAX)
			break;
		info.pa = s->next.address;
		info.size = s->next.bytes;
		info.mem_type = s->next.mem_type;
		/* No lock is held: other threads may free and allocate meanwhile. */
		if (*count < room && copy_to_user(&data[*count], &info, sizeof(info)))
			return -EFAULT;
		++*count;
		neuron_dump_next(s, s->next.address + 1, end);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return *count > room ? -EAGAIN : 0;
}

int neuron_do_dump_mem_chunks(struct neuron_call *call)
{
	struct neuron_ioctl_dump_mem_chunks *a = call->arg;
	const struct neuron_hbm_geometry *hbm;
	struct neuron_dump_source *src;
	u32 n;
	int err;

	if (!neuron_index_valid(&a->hbm_index, call->nd->geo->nr_hbms))
		return -EINVAL;
	hbm = &call->nd->geo->hbm[a->hbm_index];
	a->num_entries_out = 0;
	src = neuron_dump_begin(call, false, hbm->base, hbm->base + hbm->size, &n);
	if (!src)
		return -ENOMEM;
	err = neuron_dump(src, n, hbm->base + hbm->size,
			  (struct neuron_ioctl_mem_chunk_info __user *)a->data,
			  a->num_entries_in, &a->num_entries_out);
	neuron_dump_end(src, n);
	return err;
}

/* The owner of a used range, if the caller may know it. */
static void neuron_range_owner(struct neuron_dump_source *src, u32 n, u64 end,
			       struct neuron_native_range *range)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct neuron_dump_source *s = &src[i];

		if (s->valid && s->next.address < range->address)
			neuron_dump_next(s, range->address, end);
		if (!s->valid || s->next.address != range->address)
			continue;
		range->state = NEURON_NATIVE_RANGE_OWNED;
		range->pid = pid_vnr(s->client->pid);
		range->nc_id = s->next.nc_id;
		range->mem_type = s->next.mem_type;
		return;
	}
}

/* The range of an HBM at @pos, which moves behind it; false at the end. */
static bool neuron_range_next(struct neuron_hbm *hbm, u64 *pos, struct neuron_native_range *range)
{
	static const u32 states[] = {
		[NEURON_BUDDY_RANGE_FREE] = NEURON_NATIVE_RANGE_FREE,
		[NEURON_BUDDY_RANGE_USED] = NEURON_NATIVE_RANGE_USED,
		[NEURON_BUDDY_RANGE_RESERVED] = NEURON_NATIVE_RANGE_RESERVED,
	};
	struct neuron_buddy_range r;
	unsigned int n;

	spin_lock(&hbm->lock);
	n = neuron_buddy_walk(hbm->buddy, pos, &r, 1);
	spin_unlock(&hbm->lock);
	if (!n)
		return false;
	memset(range, 0, sizeof(*range));
	range->address = hbm->base + r.addr;
	range->bytes = r.size;
	range->state = states[r.state];
	return true;
}

int neuron_do_native_hbm_ranges(struct neuron_call *call)
{
	struct neuron_native_hbm_ranges *a = call->arg;
	struct neuron_native_range __user *out = (void __user *)(uintptr_t)a->entries;
	struct neuron_dump_source *src;
	struct neuron_native_range range;
	struct neuron_hbm *hbm;
	u32 room = a->count, n;
	u64 pos, end;
	int err;

	if (!neuron_index_valid(&a->hbm, call->nd->geo->nr_hbms) ||
	    a->entry_size != sizeof(range))
		return -EINVAL;
	hbm = &call->nd->hbm[a->hbm];
	err = neuron_hbm_ready(hbm);
	if (err)
		return err;
	pos = a->from > hbm->base ? a->from - hbm->base : 0;
	end = hbm->base + call->nd->geo->hbm[a->hbm].size;
	src = neuron_dump_begin(call, true, hbm->base + pos, end, &n);
	if (!src)
		return -ENOMEM;
	/* A range that is freed while it is looked up has no owner. */
	for (a->count = 0; a->count < room && neuron_range_next(hbm, &pos, &range); a->count++) {
		if (range.state == NEURON_NATIVE_RANGE_USED)
			neuron_range_owner(src, n, end, &range);
		if (copy_to_user(&out[a->count], &range, sizeof(range)))
			err = -EFAULT;
		else if (fatal_signal_pending(current))
			err = -EINTR;
		if (err)
			break;
		cond_resched();
	}
	neuron_dump_end(src, n);
	a->from = hbm->base + pos;
	return err;
}
