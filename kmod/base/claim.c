// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims: a process reserves cores, across all devices, before it uses them
 * (uapi/FACTS.md 2).
 *
 * A claim ends with the client of its process.  A claim that was made through a
 * write-only descriptor, or through one that another process opened, ends with that
 * descriptor or with the process.
 *
 * A claimed core is refused to every other claim.  A process that only uses cores is kept
 * from owning it while the claiming process is attached to the device and, for the time
 * that a program may take from its claim to its last open(), while the device cgroup of
 * the claiming process lets it open the device.  So no process reserves a device for long
 * without using it, and none reserves a device that its cgroup denies.  The driver cannot
 * know by which path, and so with which file mode, a process would open another device:
 * modes are not checked.
 */
#include <linux/bitmap.h>
#include <linux/device_cgroup.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/sched.h>

#include "call.h"
#include "claim.h"
#include "client.h"
#include "core.h"
#include "devices.h"

/* Runtimes claim, then open up to 64 devices one after the other: seconds at most. */
static uint claim_seconds = 30;
module_param(claim_seconds, uint, 0644);
MODULE_PARM_DESC(claim_seconds, "How long a claim of cores holds on devices that its process has not opened yet");

/*
 * Find core @i, counted from the first core of *@nd, and set *@nd to its device.  Devices
 * with different numbers of cores do not form one array.
 */
static struct neuron_core *neuron_claim_core(struct neuron_device **nd, u32 i)
{
	u32 n = (*nd)->geo->nr_cores;
	struct neuron_device *at = neuron_device_lookup(neuron_device_index(*nd) + i / n);

	if (!at || at->geo->nr_cores != n)
		return NULL;
	*nd = at;
	return &at->core[i % n];
}

/*
 * Has a living process claimed a core?  A process that claimed through a descriptor which
 * it had inherited, and closed that, dies without a call that would drop the claim.
 */
static bool neuron_core_claimed(const struct neuron_core *core)
{
	return neuron_process_alive(core->claim);
}

/**
 * neuron_core_reserved() - does a claim keep a process away from a core?
 * @nd: device
 * @core: the core, locked
 * @pid: thread group of the process; NULL stands for any process but the claiming one
 */
bool neuron_core_reserved(struct neuron_device *nd, struct neuron_core *core,
			  const struct pid *pid)
{
	return core->claim != pid && neuron_core_claimed(core) &&
	       (time_before64(get_jiffies_64(), core->claim_until) ||
		neuron_process_attached(nd, core->claim));
}

/* The time at which a claim of the caller expires if the caller does not open the device. */
static u64 neuron_claim_until(struct neuron_device *nd)
{
	u64 now = get_jiffies_64();

	if (devcgroup_check_permission(DEVCG_DEV_CHAR, MAJOR(nd->dev.devt), MINOR(nd->dev.devt),
				       DEVCG_ACC_READ))
		return now;
	return now + (u64)READ_ONCE(claim_seconds) * HZ;
}

/* Under neuron_devices_lock and core.lock. */
static void neuron_claim_end(struct neuron_core *core)
{
	put_pid(core->claim);
	core->claim = NULL;
	core->claim_via = NULL;
}

/* Is a core neither claimed nor in use by another process?  If so, and @via is given, claim it. */
static bool neuron_claim_one(struct neuron_device *nd, u32 i, const void *via)
{
	struct neuron_core *core = neuron_claim_core(&nd, i);
	struct pid *pid = task_tgid(current);
	bool good;

	if (!core)
		return false;
	mutex_lock(&core->lock);
	good = !neuron_core_claimed(core) && (!core->owner || core->owner->pid == pid ||
					      !neuron_process_alive(core->owner->pid));
	if (good && via) {
		neuron_claim_end(core);
		core->claim = get_pid(pid);
		core->claim_via = via;
		core->claim_until = neuron_claim_until(nd);
		if (neuron_core_reserved(nd, core, NULL))
			neuron_crwl_evict(&core->crwl, pid);
	}
	mutex_unlock(&core->lock);
	return good;
}

static void neuron_unclaim_one(struct neuron_core *core)
{
	mutex_lock(&core->lock);
	neuron_claim_end(core);
	mutex_unlock(&core->lock);
}

/* Claim @count cores from @first; all or none. */
static bool neuron_claim_run(struct neuron_device *nd, u32 first, u32 count, const void *via)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (!neuron_claim_one(nd, first + i, via))
			break;
	if (i == count)
		return true;
	while (i--) {
		struct neuron_device *at = nd;

		neuron_unclaim_one(neuron_claim_core(&at, first + i));
	}
	return false;
}

static int neuron_range_mark(struct neuron_file *nf, u32 count, u32 start, u32 end, u32 *longest,
			     unsigned long *map, u32 bits)
{
	const void *via = nf;
	bool *claims = &nf->claims;
	u32 i, run = 0;
	int err = -EBUSY;

	if (!count || count > bits || start > end || start >= bits)
		return -EINVAL;
	if (neuron_file_allowed(nf)) {
		via = nf->client;
		claims = &nf->client->claims;
	}
	bitmap_zero(map, bits);
	*longest = 0;

	mutex_lock(&neuron_devices_lock);
	/* Set before the first claim exists, because readers test it without the lock. */
	WRITE_ONCE(*claims, true);
	for (i = start; i <= min(end, bits - 1); i++) {
		run = neuron_claim_one(nf->nd, i, NULL) ? run + 1 : 0;
		*longest = max(*longest, run);
		if (run < count)
			continue;
		/* A core may have found an owner since it was checked. */
		if (neuron_claim_run(nf->nd, i + 1 - count, count, via)) {
			bitmap_set(map, i + 1 - count, count);
			err = 0;
			break;
		}
		run = 0;
	}
	mutex_unlock(&neuron_devices_lock);
	return err;
}

int neuron_do_crwl_nc_range_mark(struct neuron_call *call)
{
	struct neuron_ioctl_crwl_nc_map *a = call->arg;

	return neuron_range_mark(call->nf, a->nc_count, a->start_nc_index, a->end_nc_index,
				 &a->max_nc_available, (unsigned long *)&a->bitmap,
				 BITS_PER_TYPE(a->bitmap));
}

int neuron_do_crwl_nc_range_mark_ext(struct neuron_call *call)
{
	struct neuron_ioctl_crwl_nc_map_ext *a = call->arg;

	return neuron_range_mark(call->nf, a->nc_count, a->start_nc_index, a->end_nc_index,
				 &a->max_nc_available, a->bitmap, BITS_PER_TYPE(a->bitmap));
}

/* End claims of the caller; cores that it has not claimed are skipped. */
static int neuron_range_unmark(struct neuron_file *nf, const unsigned long *map, u32 bits)
{
	u32 i;

	mutex_lock(&neuron_devices_lock);
	for_each_set_bit(i, map, bits) {
		struct neuron_device *at = nf->nd;
		struct neuron_core *core = neuron_claim_core(&at, i);

		if (core && core->claim == task_tgid(current))
			neuron_unclaim_one(core);
	}
	mutex_unlock(&neuron_devices_lock);
	return 0;
}

/* The caller did not learn what it claimed: end those claims. */
void neuron_undo_crwl_nc_range_mark(struct neuron_call *call)
{
	struct neuron_ioctl_crwl_nc_map *a = call->arg;

	neuron_range_unmark(call->nf, (unsigned long *)&a->bitmap, BITS_PER_TYPE(a->bitmap));
}

void neuron_undo_crwl_nc_range_mark_ext(struct neuron_call *call)
{
	struct neuron_ioctl_crwl_nc_map_ext *a = call->arg;

	neuron_range_unmark(call->nf, a->bitmap, BITS_PER_TYPE(a->bitmap));
}

int neuron_do_crwl_nc_range_unmark(struct neuron_call *call)
{
	struct neuron_ioctl_crwl_nc_map *a = call->arg;

	return neuron_range_unmark(call->nf, (unsigned long *)&a->bitmap, BITS_PER_TYPE(a->bitmap));
}

int neuron_do_crwl_nc_range_unmark_ext(struct neuron_call *call)
{
	struct neuron_ioctl_crwl_nc_map_ext *a = call->arg;

	return neuron_range_unmark(call->nf, a->bitmap, BITS_PER_TYPE(a->bitmap));
}

/**
 * neuron_claims_drop() - end claims
 * @via: client or file that they were made through
 * @pid: only those of this thread group; NULL: all
 *
 * Context: may sleep.
 */
void neuron_claims_drop(const void *via, const struct pid *pid)
{
	struct neuron_device *nd;
	struct neuron_core *core;
	u32 i, n;

	mutex_lock(&neuron_devices_lock);
	for (i = 0; i < NEURON_MAX_DEVICES; i++) {
		nd = neuron_device_lookup(i);
		for (n = 0; nd && n < nd->geo->nr_cores; n++) {
			core = &nd->core[n];
			if (core->claim && core->claim_via == via &&
			    (!pid || core->claim == pid))
				neuron_unclaim_one(core);
		}
	}
	mutex_unlock(&neuron_devices_lock);
}

/**
 * neuron_claims_drop_device() - end all claims of a device's cores
 * @nd: device being removed
 *
 * Context: neuron_devices_lock is held.
 */
void neuron_claims_drop_device(struct neuron_device *nd)
{
	u32 i;

	for (i = 0; i < nd->geo->nr_cores; i++)
		neuron_unclaim_one(&nd->core[i]);
}
