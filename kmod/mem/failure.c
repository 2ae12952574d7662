// SPDX-License-Identifier: GPL-2.0-only
/*
 * Refused allocations: a line in the kernel log that operators can act on, and a record
 * of the last refusals that programs can fetch.
 *
 * Each process has its own record and its own share of the log, so that many refusals of
 * one process do not push out the explanation that another one needs.  The device keeps
 * the last refusals of ended processes for the administrator.
 */
#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "account.h"
#include "chunk.h"
#include "failure.h"

#define NEURON_TOP	NEURON_NATIVE_FAILURE_TOP

/* Refusals that the device keeps of an ended process, which leaves room for other ended ones. */
#define NEURON_BURIED	4

/**
 * struct neuron_refusal - an allocation that was refused
 * @seq: number, from 1; 0 = unused
 * @time: CLOCK_REALTIME, ns
 * @pid: the process that asked
 * @req: what it asked for
 * @why: what it could have had
 * @category: the categories that hold most, largest first
 * @process: the processes that hold most, with a reference
 */
struct neuron_refusal {
	u64 seq;
	u64 time;
	struct pid *pid;
	struct neuron_chunk_request req;
	struct neuron_failure why;
	struct {
		u32 type;
		u64 bytes;
	} category[NEURON_TOP];
	struct {
		struct pid *pid;
		u64 bytes;
	} process[NEURON_TOP];
};

/**
 * struct neuron_failures - the last refusals of a process, or of those that are gone
 * @limit: lines in the kernel log
 * @ring: in no order; a new one takes the place of the oldest
 */
struct neuron_failures {
	struct ratelimit_state limit;
	struct neuron_refusal ring[NEURON_NATIVE_FAILURES_MAX];
};

static void neuron_refusal_put(struct neuron_refusal *r)
{
	u32 i;

	put_pid(r->pid);
	for (i = 0; i < NEURON_TOP; i++)
		put_pid(r->process[i].pid);
}

static void neuron_refusal_get(const struct neuron_refusal *r)
{
	u32 i;

	get_pid(r->pid);
	for (i = 0; i < NEURON_TOP; i++)
		get_pid(r->process[i].pid);
}

static struct neuron_failures *neuron_failures_new(gfp_t gfp)
{
	struct neuron_failures *f = kzalloc(sizeof(*f), gfp);

	if (f)
		ratelimit_state_init(&f->limit, DEFAULT_RATELIMIT_INTERVAL,
				     DEFAULT_RATELIMIT_BURST);
	return f;
}

/**
 * neuron_failures_init() - a process comes: the device has a record from then on
 * @nd: device
 *
 * Context: may sleep; device.clients_lock is held.
 * Return: 0, -ENOMEM.
 */
int neuron_failures_init(struct neuron_device *nd)
{
	if (!nd->failures)
		nd->failures = neuron_failures_new(GFP_KERNEL);
	return nd->failures ? 0 : -ENOMEM;
}

/**
 * neuron_failures_exit() - release a record
 * @f: of a device that nobody uses, or NULL
 *
 * Context: may sleep.
 */
void neuron_failures_exit(struct neuron_failures *f)
{
	u32 i;

	for (i = 0; f && i < NEURON_NATIVE_FAILURES_MAX; i++)
		neuron_refusal_put(&f->ring[i]);
	kfree(f);
}

/* Exchange *@r with the oldest refusal of a record.  Under failures_lock. */
static void neuron_refusal_store(struct neuron_failures *f, struct neuron_refusal *r)
{
	struct neuron_refusal *slot = f->ring;
	u32 i;

	for (i = 1; i < NEURON_NATIVE_FAILURES_MAX; i++)
		if (f->ring[i].seq < slot->seq)
			slot = &f->ring[i];
	if (slot->seq < r->seq)
		swap(*r, *slot);
}

/**
 * neuron_failures_bury() - a process goes: the device keeps its last refusals
 * @client: the process
 *
 * Context: may sleep.
 */
void neuron_failures_bury(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	struct neuron_refusal *last;
	struct neuron_failures *f;
	u32 i, n;

	spin_lock(&nd->failures_lock);
	f = client->failures;
	client->failures = NULL;
	for (n = 0; f && n < NEURON_BURIED; n++) {
		for (last = f->ring, i = 1; i < NEURON_NATIVE_FAILURES_MAX; i++)
			if (f->ring[i].seq > last->seq)
				last = &f->ring[i];
		neuron_refusal_store(nd->failures, last);
		last->seq = 0;
	}
	spin_unlock(&nd->failures_lock);
	neuron_failures_exit(f);
}

/* The record of a process, made at its first refusal; without memory for it, the device's. */
static struct neuron_failures *neuron_failures_of(struct neuron_client *client)
{
	struct neuron_device *nd = client->nd;
	struct neuron_failures *f = READ_ONCE(client->failures), *new;

	if (f)
		return f;
	new = neuron_failures_new(GFP_KERNEL_ACCOUNT);
	spin_lock(&nd->failures_lock);
	if (!client->failures && new) {
		/* Complete for those who look at it without the lock, as above. */
		smp_store_release(&client->failures, new);
		new = NULL;
	}
	f = client->failures ?: nd->failures;
	spin_unlock(&nd->failures_lock);
	kfree(new);
	return f;
}

/* Sort the categories, largest first. */
static void neuron_top_categories(struct neuron_refusal *r)
{
	u32 cat, i, j;

	for (cat = 0; cat < NEURON_NR_CATEGORIES; cat++) {
		u64 bytes = r->why.used[cat];

		for (i = 0; i < NEURON_TOP && r->category[i].bytes >= bytes; i++)
			;
		if (i == NEURON_TOP)
			continue;
		for (j = NEURON_TOP - 1; j > i; j--)
			r->category[j] = r->category[j - 1];
		r->category[i].type = cat;
		r->category[i].bytes = bytes;
	}
}

static void neuron_top_process(struct neuron_refusal *r, struct pid *pid, u64 bytes)
{
	u32 i, j;

	for (i = 0; i < NEURON_TOP && r->process[i].bytes >= bytes; i++)
		;
	if (i == NEURON_TOP)
		return;
	put_pid(r->process[NEURON_TOP - 1].pid);
	for (j = NEURON_TOP - 1; j > i; j--)
		r->process[j] = r->process[j - 1];
	r->process[i].pid = get_pid(pid);
	r->process[i].bytes = bytes;
}

static void neuron_top_processes(struct neuron_device *nd, struct neuron_refusal *r)
{
	struct neuron_client *client;
	u64 bytes;

	mutex_lock(&nd->clients_lock);
	list_for_each_entry(client, &nd->clients, node) {
		bytes = r->req.host ? atomic64_read(&client->host_bytes) :
				      READ_ONCE(client->hbm_bytes[r->req.hbm]);
		neuron_top_process(r, client->pid, bytes);
	}
	mutex_unlock(&nd->clients_lock);
}

/* Log one line; tools look for its start (uapi/FACTS.md 9). */
static void neuron_failure_log(struct neuron_device *nd, struct neuron_failures *f,
			       const struct neuron_refusal *r)
{
	static const char * const reasons[] = {
		[NEURON_NATIVE_REASON_NONE] = "invalid",
		[NEURON_NATIVE_REASON_FULL] = "full",
		[NEURON_NATIVE_REASON_FRAGMENTED] = "fragmented",
		[NEURON_NATIVE_REASON_ALIGNMENT] = "alignment",
		[NEURON_NATIVE_REASON_CAPPED] = "capped",
		[NEURON_NATIVE_REASON_HOST] = "no host memory",
	};
	/*
	 * Limits short-lived processes together; the processes of one device alone cannot
	 * reach it.
	 */
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL,
				      2 * NEURON_MAX_CLIENTS * DEFAULT_RATELIMIT_BURST);
	const struct neuron_failure *why = &r->why;
	char categories[160] = "", processes[128] = "", cap[24] = "none";
	int n, i;

	if (!__ratelimit(&f->limit) || !__ratelimit(&limit))
		return;
	for (n = 0, i = 0; i < NEURON_TOP && r->category[i].bytes; i++)
		n += scnprintf(categories + n, sizeof(categories) - n, "%s%s %llu", i ? ", " : "",
			       neuron_category_name(r->category[i].type), r->category[i].bytes);
	for (n = 0, i = 0; i < NEURON_TOP && r->process[i].bytes; i++)
		n += scnprintf(processes + n, sizeof(processes) - n, "%s%d %llu", i ? ", " : "",
			       pid_nr(r->process[i].pid), r->process[i].bytes);
	if (why->limit != NEURON_NO_LIMIT)
		snprintf(cap, sizeof(cap), "%llu", why->limit);
	else if (why->reason == NEURON_NATIVE_REASON_CAPPED)
		strscpy(cap, "cgroup", sizeof(cap));

	if (r->req.host || why->reason == NEURON_NATIVE_REASON_HOST)
		dev_warn(&nd->dev,
			 "neuron:mc_alloc: host memory: needed %llu cap %s for nc %u category %s pid %d: %s; processes: %s\n",
			 r->req.size, cap, r->req.core,
			 neuron_category_name(neuron_category(r->req.category, r->req.host)),
			 pid_nr(r->pid), reasons[why->reason], processes);
	else
		dev_warn(&nd->dev,
			 "neuron:mc_alloc: device mempool [%u:0] total %llu occupied %llu needed %llu available %llu align %llu largest %llu largest aligned %llu cap %s for nc %u category %s pid %d: %s; categories: %s; processes: %s\n",
			 r->req.hbm, why->total, why->total - why->free, r->req.size, why->free,
			 r->req.align, why->largest_free, why->largest_aligned, cap, r->req.core,
			 neuron_category_name(neuron_category(r->req.category, false)),
			 pid_nr(r->pid), reasons[why->reason], categories, processes);
}

/**
 * neuron_failure_record() - log and remember a refused allocation
 * @client: the process
 * @req: what it asked for
 * @why: what neuron_hbm_alloc() said
 *
 * Context: may sleep; none of the device's locks held.
 */
void neuron_failure_record(struct neuron_client *client, const struct neuron_chunk_request *req,
			   const struct neuron_failure *why)
{
	struct neuron_device *nd = client->nd;
	struct neuron_failures *f = neuron_failures_of(client);
	struct neuron_refusal r = {
		.time = ktime_get_real_ns(),
		.pid = client->pid,
		.req = *req,
		.why = *why,
	};

	get_pid(r.pid);
	neuron_top_categories(&r);
	neuron_top_processes(nd, &r);
	neuron_failure_log(nd, f, &r);

	spin_lock(&nd->failures_lock);
	r.seq = ++nd->failures_seq;
	neuron_refusal_store(f, &r);
	spin_unlock(&nd->failures_lock);
	neuron_refusal_put(&r);
}

/* The oldest refusal after number @since that @pid may see, NULL: all.  Under failures_lock. */
static void neuron_refusal_next(const struct neuron_failures *f, u64 since, const struct pid *pid,
				const struct neuron_refusal **next)
{
	const struct neuron_refusal *r;
	u32 i;

	for (i = 0; f && i < NEURON_NATIVE_FAILURES_MAX; i++) {
		r = &f->ring[i];
		if (r->seq > since && (!pid || r->pid == pid) &&
		    (!*next || r->seq < (*next)->seq))
			*next = r;
	}
}

/* The same among all records of a device.  Sets *@r to a copy with references; false: none. */
static bool neuron_failures_next(struct neuron_device *nd, u64 since, const struct pid *pid,
				 struct neuron_refusal *out)
{
	const struct neuron_refusal *next = NULL;
	struct neuron_client *client;

	mutex_lock(&nd->clients_lock);
	spin_lock(&nd->failures_lock);
	neuron_refusal_next(nd->failures, since, pid, &next);
	list_for_each_entry(client, &nd->clients, node)
		neuron_refusal_next(client->failures, since, pid, &next);
	if (next) {
		*out = *next;
		neuron_refusal_get(out);
	}
	spin_unlock(&nd->failures_lock);
	mutex_unlock(&nd->clients_lock);
	return next;
}

/* The number after which to begin, to show the last @max refusals up to @last that @pid may see. */
static u64 neuron_failures_start(struct neuron_device *nd, const struct pid *pid, u64 last, u32 max)
{
	struct neuron_refusal r;
	u64 since = 0;
	u32 n = 0;

	while (since < last && neuron_failures_next(nd, since, pid, &r)) {
		since = r.seq;
		neuron_refusal_put(&r);
		n++;
	}
	for (since = 0; n > max && neuron_failures_next(nd, since, pid, &r); n--) {
		since = r.seq;
		neuron_refusal_put(&r);
	}
	return since;
}

static void neuron_refusal_show(const struct neuron_refusal *r, struct neuron_native_failure *out)
{
	u32 i;

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->seq = r->seq;
	out->time = r->time;
	out->pid = pid_vnr(r->pid);
	out->reason = r->why.reason;
	out->flags = r->req.host ? NEURON_NATIVE_ALLOC_HOST : 0;
	out->hbm = r->req.host ? 0 : r->req.hbm;
	out->nc_id = r->req.core;
	out->mem_type = neuron_category(r->req.category, r->req.host);
	out->bytes = r->req.size;
	out->align = r->req.align;
	out->total = r->why.total;
	out->free = r->why.free;
	out->largest_free = r->why.largest_free;
	out->largest_aligned = r->why.largest_aligned;
	out->limit = r->why.limit;
	for (i = 0; i < NEURON_TOP; i++) {
		out->category[i].mem_type = r->category[i].type;
		out->category[i].bytes = r->category[i].bytes;
		out->process[i].pid = pid_vnr(r->process[i].pid);
		out->process[i].bytes = r->process[i].bytes;
	}
}

/*
 * A process sees its own refusals.  Refusals of other processes show what these asked
 * for.  To see them takes CAP_SYS_ADMIN, like the list of their allocations.  How much
 * each process holds is no secret: DEVICE_GET_ALL_APPS_INFO tells it, too.
 */
int neuron_do_native_failures(struct neuron_call *call)
{
	struct neuron_native_failures *a = call->arg;
	struct neuron_device *nd = call->nd;
	struct neuron_native_failure __user *out = (void __user *)(uintptr_t)a->entries;
	const struct pid *pid = capable(CAP_SYS_ADMIN) ? NULL : task_tgid(current);
	u32 room = a->count, count = 0;
	struct neuron_native_failure *shown;
	struct neuron_refusal r;
	u64 since, last;
	int err = 0;

	if (a->__reserved || a->last || a->entry_size != sizeof(*shown))
		return -EINVAL;
	shown = kmalloc(sizeof(*shown), GFP_KERNEL_ACCOUNT);
	if (!shown)
		return -ENOMEM;
	spin_lock(&nd->failures_lock);
	last = nd->failures_seq;
	spin_unlock(&nd->failures_lock);

	since = a->since ?: neuron_failures_start(nd, pid, last,
						  max_t(u32, room, NEURON_NATIVE_FAILURES_MAX));
	/* New refusals may come all the time: they are left to the next call. */
	while (count < room && since < last && !err && neuron_failures_next(nd, since, pid, &r)) {
		since = r.seq;
		neuron_refusal_show(&r, shown);
		if (copy_to_user(&out[count++], shown, sizeof(*shown)))
			err = -EFAULT;
		neuron_refusal_put(&r);
	}
	kfree(shown);
	a->last = count < room ? max(since, last) : since;
	a->count = count;
	return err;
}
