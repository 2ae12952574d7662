// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of allocations that were refused: a line in the kernel log that
 * operators can act on, and a record of the last ones that programs can fetch.
 */
#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../core/neuron.h"

#define NEURON_TOP	NEURON_NATIVE_FAILURE_TOP

/**
 * struct neuron_refusal - an allocation that was refused
 * @seq: number, from 1; 0 = unused
 * @time: CLOCK_REALTIME, ns
 * @pid: who asked
 * @req: what for
 * @why: what there was
 * @category: who holds most, by category; most first
 * @process: same by process, with a reference
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
 * struct neuron_failures - the last refusals of a device
 * @lock: the rest
 * @seq: number of the last one
 * @ring: by number
 */
struct neuron_failures {
	spinlock_t lock;
	u64 seq;
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

/**
 * neuron_failures_init() - prepare the record of a device
 * @nd: device
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM.
 */
int neuron_failures_init(struct neuron_device *nd)
{
	nd->failures = kzalloc(sizeof(*nd->failures), GFP_KERNEL);
	if (!nd->failures)
		return -ENOMEM;
	spin_lock_init(&nd->failures->lock);
	return 0;
}

/**
 * neuron_failures_exit() - release what neuron_failures_init() made
 * @nd: device that nobody uses
 *
 * Context: may sleep.
 */
void neuron_failures_exit(struct neuron_device *nd)
{
	u32 i;

	for (i = 0; nd->failures && i < NEURON_NATIVE_FAILURES_MAX; i++)
		neuron_refusal_put(&nd->failures->ring[i]);
	kfree(nd->failures);
}

/* The largest first. */
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

/* One line; its start is what tools look for (uapi/FACTS.md 9). */
static void neuron_failure_log(struct neuron_device *nd, const struct neuron_refusal *r)
{
	static const char * const reasons[] = {
		[NEURON_NATIVE_REASON_NONE] = "invalid",
		[NEURON_NATIVE_REASON_FULL] = "full",
		[NEURON_NATIVE_REASON_FRAGMENTED] = "fragmented",
		[NEURON_NATIVE_REASON_ALIGNMENT] = "alignment",
		[NEURON_NATIVE_REASON_CAPPED] = "capped",
		[NEURON_NATIVE_REASON_HOST] = "no host memory",
	};
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);
	const struct neuron_failure *why = &r->why;
	char categories[160] = "", processes[128] = "", cap[24] = "none";
	int n, i;

	if (!__ratelimit(&limit))
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
			 "neuron:mc_alloc: host memory: needed %llu for nc %u category %s pid %d: %s; processes: %s\n",
			 r->req.size, r->req.core,
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
 * @why: what neuron_zone_alloc() said
 *
 * Context: may sleep; none of the device's locks held.
 */
void neuron_failure_record(struct neuron_client *client, const struct neuron_chunk_request *req,
			   const struct neuron_failure *why)
{
	struct neuron_device *nd = client->nd;
	struct neuron_failures *f = nd->failures;
	struct neuron_refusal r = {
		.time = ktime_get_real_ns(),
		.pid = client->pid,
		.req = *req,
		.why = *why,
	};
	struct neuron_refusal *slot;

	get_pid(r.pid);
	neuron_top_categories(&r);
	neuron_top_processes(nd, &r);
	neuron_failure_log(nd, &r);

	spin_lock(&f->lock);
	r.seq = ++f->seq;
	slot = &f->ring[r.seq % NEURON_NATIVE_FAILURES_MAX];
	swap(r, *slot);
	spin_unlock(&f->lock);
	neuron_refusal_put(&r);
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
 * A process sees its own refusals.  Those of others tell what they asked for,
 * which, like the list of their allocations, takes CAP_SYS_ADMIN.  How much
 * each process holds is no secret: DEVICE_GET_ALL_APPS_INFO tells it, too.
 */
int neuron_native_failures_ioctl(struct neuron_file *nf, void *arg, void __user *uarg)
{
	struct neuron_native_failures *a = arg;
	struct neuron_failures *f = nf->nd->failures;
	struct neuron_native_failure __user *out = (void __user *)(uintptr_t)a->entries;
	bool all = capable(CAP_SYS_ADMIN);
	u32 room = a->count, count = 0;
	struct neuron_native_failure *shown;
	struct neuron_refusal r;
	u64 seq, last;
	int err = 0;

	if (a->__reserved || a->last || a->entry_size != sizeof(*shown))
		return -EINVAL;
	shown = kmalloc(sizeof(*shown), GFP_KERNEL_ACCOUNT);
	if (!shown)
		return -ENOMEM;
	spin_lock(&f->lock);
	last = f->seq;
	spin_unlock(&f->lock);

	seq = last > NEURON_NATIVE_FAILURES_MAX ? last - NEURON_NATIVE_FAILURES_MAX : 0;
	for (seq = max(seq, a->since); seq < last && count < room && !err; seq++) {
		spin_lock(&f->lock);
		r = f->ring[(seq + 1) % NEURON_NATIVE_FAILURES_MAX];
		neuron_refusal_get(&r);
		spin_unlock(&f->lock);
		/* A newer one may have taken its place. */
		if (r.seq == seq + 1 && (all || r.pid == task_tgid(current))) {
			neuron_refusal_show(&r, shown);
			if (copy_to_user(&out[count++], shown, sizeof(*shown)))
				err = -EFAULT;
		}
		neuron_refusal_put(&r);
	}
	kfree(shown);
	a->count = count;
	a->last = seq;
	return err;
}
