// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is where in an HBM: DUMP_MEM_CHUNKS lists allocations, HBM_RANGES holes, too.  Whose it
 * is: OWNERS.  What happened to it last: EVENTS.
 */
#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/device.h"
#include "chunk.h"
#include "dump.h"
#include "handle.h"
#include "hbm.h"
#include "recorder.h"

/* The caller's own: not that of who opened a descriptor that it was given. */
static bool neuron_dump_own(const struct neuron_call *call, const struct neuron_client *client)
{
	return client == call->client && neuron_file_allowed(call->nf);
}

static void neuron_dump_next(struct neuron_dump_source *s, u64 from, u64 end)
{
	s->valid = neuron_chunk_next(s->client, from, &s->next) && s->next.address < end;
}

/**
 * neuron_dump_begin() - the processes whose allocations the caller may see
 * @call: the call
 * @users: those of the same user, else the caller; all of them with CAP_SYS_ADMIN
 * @from: each with its first allocation from this device address on
 * @end: device address where the last one begins before
 * @nr: their number
 *
 * Context: may sleep.
 * Return: for neuron_dump_end(); NULL: no memory for the list.
 */
struct neuron_dump_source *neuron_dump_begin(struct neuron_call *call, bool users, u64 from,
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
		if (!all && !neuron_dump_own(call, client) &&
		    !(users && neuron_client_same_user(client)))
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

/**
 * neuron_dump_end() - release what neuron_dump_begin() returned
 * @src: it
 * @n: the number
 *
 * Context: may sleep.
 */
void neuron_dump_end(struct neuron_dump_source *src, u32 n)
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

/* Entries of the first edition. */
#define NEURON_RANGE_SHORT	offsetof(struct neuron_native_range, owner)

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
		range->owner = s->next.owner;
		range->movable = s->next.movable;
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
	void __user *out = (void __user *)(uintptr_t)a->entries;
	struct neuron_dump_source *src;
	struct neuron_native_range range;
	struct neuron_hbm *hbm;
	u32 room = a->count, n;
	u64 pos, end;
	int err;

	if (!neuron_index_valid(&a->hbm, call->nd->geo->nr_hbms) ||
	    (a->entry_size != sizeof(range) && a->entry_size != NEURON_RANGE_SHORT))
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
		if (copy_to_user(out + (u64)a->count * a->entry_size, &range, a->entry_size))
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

/* May the caller know whose this is?  @all: he has CAP_SYS_ADMIN. */
static bool neuron_dump_known(const struct neuron_call *call, const struct neuron_client *client,
			      bool all)
{
	return all || neuron_dump_own(call, client) || neuron_client_same_user(client);
}

/* Owners of a process, from *@n on.  Under the lock of the HBM, as figures change under it. */
static void neuron_owners_read(struct neuron_client *client, u32 hbm, u64 now,
			       struct neuron_native_owner_entry *out, u32 room, u32 *n)
{
	struct neuron_owner *owner;
	unsigned long id;

	neuron_for_each_owner(client, id, owner) {
		if (*n < room)
			neuron_owner_show(owner, hbm, now, &out[*n]);
		++*n;
	}
}

/* What the caller may see, at one instant. */
static void neuron_owners_snapshot(struct neuron_call *call, struct neuron_native_owners *a,
				   struct neuron_native_owner_entry *out, u32 room)
{
	struct neuron_hbm *hbm = &call->nd->hbm[a->hbm];
	bool all = capable(CAP_SYS_ADMIN);
	struct neuron_client *client;
	u32 core, cat;
	u64 now;

	rcu_read_lock();
	spin_lock(&hbm->lock);
	now = neuron_hbm_now(hbm);
	list_for_each_entry_rcu(client, &call->nd->clients, node) {
		if (neuron_dump_known(call, client, all))
			neuron_owners_read(client, a->hbm, now, out, room, &a->total);
	}
	for (core = 0; core < NEURON_HW_MAX_CORES; core++)
		for (cat = 0; cat < NEURON_NR_CATEGORIES; cat++)
			a->used += hbm->used[core][cat];
	a->driver = hbm->driver;
	spin_unlock(&hbm->lock);
	rcu_read_unlock();
}

static void neuron_owners_clear(struct neuron_client *client, struct neuron_hbm *hbm)
{
	struct neuron_owner *owner;
	unsigned long id;
	u64 now;

	rcu_read_lock();
	spin_lock(&hbm->lock);
	now = neuron_hbm_now(hbm);
	neuron_for_each_owner(client, id, owner)
		neuron_owner_clear(&owner->use[hbm->index], now);
	spin_unlock(&hbm->lock);
	rcu_read_unlock();
}

int neuron_do_native_owners(struct neuron_call *call)
{
	struct neuron_native_owners __user *result = call->uarg;
	struct neuron_native_owners *a = call->arg;
	u32 room = min_t(u32, a->count, NEURON_MAX_CLIENTS * (NEURON_NATIVE_OWNERS_MAX + 1));
	bool clear = a->flags & NEURON_NATIVE_OWNERS_CLEAR;
	struct neuron_native_owner_entry *out;
	int err = 0;

	if (!neuron_index_valid(&a->hbm, call->nd->geo->nr_hbms) ||
	    a->flags & ~NEURON_NATIVE_OWNERS_CLEAR || a->entry_size != sizeof(*out) ||
	    a->total || a->used || a->driver || (clear && !call->client))
		return -EINVAL;
	if (clear && !neuron_file_allowed(call->nf))
		return -EACCES;
	/* Figures that are cleared cannot be restored if a later copy to the caller fails. */
	if (put_user(a->count, &result->count))
		return -EFAULT;
	out = kvmalloc_array(room ?: 1, sizeof(*out), GFP_KERNEL_ACCOUNT);
	if (!out)
		return -ENOMEM;
	neuron_owners_snapshot(call, a, out, room);
	a->count = min(room, a->total);
	if (copy_to_user((void __user *)(uintptr_t)a->entries, out, a->count * sizeof(*out)))
		err = -EFAULT;
	else if (clear)
		neuron_owners_clear(call->client, &call->nd->hbm[a->hbm]);
	kvfree(out);
	return err;
}

/**
 * struct neuron_event_reader - who may know what of the events of an HBM
 * @seq: number of the last event that was read
 * @clock: what CLOCK_MONOTONIC is ahead of local_clock(), ns
 * @all: the caller may know the processes of all of them
 * @nr: processes that are known
 * @known: their numbers, and the numbers in the caller's namespace
 * @batch: records that were read
 */
struct neuron_event_reader {
	u64 seq;
	u64 clock;
	bool all;
	u32 nr;
	struct {
		u32 client;
		s32 pid;
	} known[NEURON_MAX_CLIENTS];
	struct neuron_record batch[64];
};

static void neuron_event_reader_init(struct neuron_event_reader *reader, struct neuron_call *call,
				     u64 since)
{
	struct neuron_client *client;

	reader->seq = since;
	reader->clock = ktime_get_ns() - local_clock();
	reader->all = capable(CAP_SYS_ADMIN);
	reader->nr = 0;
	rcu_read_lock();
	list_for_each_entry_rcu(client, &call->nd->clients, node) {
		if (!neuron_dump_known(call, client, reader->all))
			continue;
		if (reader->nr == NEURON_MAX_CLIENTS)
			break;
		reader->known[reader->nr].client = client->id;
		reader->known[reader->nr++].pid = pid_vnr(client->pid);
	}
	rcu_read_unlock();
}

static void neuron_event_show(const struct neuron_event_reader *reader,
			      const struct neuron_hbm *hbm, const struct neuron_record *r,
			      struct neuron_native_event *out)
{
	u32 place = r->ask >> 6, i;

	memset(out, 0, sizeof(*out));
	out->time = r->time + reader->clock;
	out->kind = r->what & 0xf;
	out->reason = r->what >> 4;
	out->bytes = (u64)r->pages << PAGE_SHIFT;
	if (out->kind != NEURON_NATIVE_EVENT_REFUSE || place == NEURON_RECORD_AT)
		out->address = hbm->base + ((u64)r->page << PAGE_SHIFT);
	if (out->kind == NEURON_NATIVE_EVENT_MOVE)
		out->free = hbm->base + ((u64)r->free << PAGE_SHIFT);
	for (i = 0; i < reader->nr && reader->known[i].client != r->client; i++)
		;
	if (!reader->all && i == reader->nr)
		return;
	out->client = r->client;
	out->pid = i < reader->nr ? reader->known[i].pid : 0;
	out->owner = r->owner;
	out->nc_id = r->core;
	out->mem_type = r->category;
	out->align = r->ask & 63 ? 1ULL << (r->ask & 63) : 0;
	out->flags = place == NEURON_RECORD_AT ? NEURON_NATIVE_ALLOC_AT : place << 1;
	if (out->kind != NEURON_NATIVE_EVENT_MOVE)
		out->free = (u64)r->free << PAGE_SHIFT;
}

/*
 * Copy up to @room events to the caller, and count them.  Return: -ENODATA none is left;
 * -EFAULT.
 */
static int neuron_events_copy(struct neuron_event_reader *reader, struct neuron_hbm *hbm,
			      struct neuron_native_event __user *out, u32 room, u32 *count)
{
	struct neuron_native_event event;
	u32 n, i;

	spin_lock(&hbm->lock);
	n = neuron_recorder_read(hbm->recorder, &reader->seq, reader->batch,
				 min_t(u32, room - *count, ARRAY_SIZE(reader->batch)));
	spin_unlock(&hbm->lock);
	for (i = 0; i < n; i++) {
		neuron_event_show(reader, hbm, &reader->batch[i], &event);
		event.seq = reader->seq - n + i + 1;
		if (copy_to_user(&out[(*count)++], &event, sizeof(event)))
			return -EFAULT;
	}
	return n ? 0 : -ENODATA;
}

int neuron_do_native_events(struct neuron_call *call)
{
	struct neuron_native_events *a = call->arg;
	struct neuron_event_reader *reader;
	struct neuron_hbm *hbm;
	/* Others may add events all the time: no more than are kept. */
	u32 room = min_t(u32, a->count, NEURON_RECORDS);
	int err;

	if (!neuron_index_valid(&a->hbm, call->nd->geo->nr_hbms) ||
	    a->entry_size != sizeof(struct neuron_native_event) || a->last)
		return -EINVAL;
	hbm = &call->nd->hbm[a->hbm];
	err = neuron_hbm_ready(hbm);
	if (err)
		return err;
	reader = kmalloc(sizeof(*reader), GFP_KERNEL_ACCOUNT);
	if (!reader)
		return -ENOMEM;
	neuron_event_reader_init(reader, call, a->since);
	a->count = 0;
	do {
		err = neuron_events_copy(reader, hbm, (void __user *)(uintptr_t)a->entries, room,
					 &a->count);
		cond_resched();
	} while (!err && a->count < room && !fatal_signal_pending(current));
	a->last = reader->seq;
	kfree(reader);
	return err == -ENODATA ? 0 : err;
}
