// SPDX-License-Identifier: GPL-2.0-only
/*
 * Health: what a device reports about itself, in counters, in the log and in sysfs.
 */
#include <linux/dmi.h>
#include <linux/ktime.h>
#include <linux/ratelimit.h>
#include <linux/sysfs.h>
#include <linux/utsname.h>

#include "../compat/compat.h"
#include "core.h"
#include "health.h"
#include "trace.h"

/**
 * struct neuron_event_info - what an event means
 * @name: in the kernel log (uapi/FACTS.md 9); NULL: not logged
 * @action: what an operator should do
 * @counter: status counter of the core, 0 = none
 */
struct neuron_event_info {
	const char *name;
	const char *action;
	u32 counter;
};

static const struct neuron_event_info neuron_events[NEURON_NR_EVENTS] = {
	[NEURON_EVENT_MEM_UNCORRECTED] = {
		"HBM_UNCORRECTABLE_ERROR", "TERMINATE_INSTANCE",
		NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE,
	},
	[NEURON_EVENT_MEM_REPAIRABLE] = {
		"HBM_UNCORRECTABLE_ERROR", "RESET_DEVICE",
		NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE,
	},
	[NEURON_EVENT_SRAM_UNCORRECTED] = {
		"SRAM_UNCORRECTABLE_ERROR", "TERMINATE_INSTANCE",
		NDS_EXT_NC_COUNTER_HW_ERR_NC_UE,
	},
	[NEURON_EVENT_DMA_ABORT] = {
		"DMA_ERROR", "RESTART_APPLICATION",
		NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT,
	},
};

/* Programs that watch the kernel log know this line. */
static void neuron_health_log(struct neuron_device *nd, const struct neuron_event_info *info,
			      u32 core)
{
	const char *instance = dmi_get_system_info(DMI_BOARD_ASSET_TAG);

	dev_err_ratelimited(&nd->dev,
			    "NEURON_HW_ERR=%s instance-id=%s hostname=%s nd-id=%u nc-id=%u serial-num=%016llx action=%s\n",
			    info->name, instance && *instance ? instance : "unknown",
			    init_utsname()->nodename, neuron_device_index(nd), core,
			    nd->desc.serial, info->action);
}

static void neuron_health_work(struct work_struct *work)
{
	struct neuron_device *nd = container_of(work, struct neuron_device, health.work);
	u32 event, core, n, i;

	for (event = 0; event < NEURON_NR_EVENTS; event++) {
		const struct neuron_event_info *info = &neuron_events[event];

		for (core = 0; core < nd->geo->nr_cores; core++) {
			n = atomic_xchg(&nd->health.pending[event][core], 0);
			if (!n || !info->name)
				continue;
			atomic64_add(n, &nd->health.hw_errors);
			neuron_nds_add(nd, core, info->counter, n);
			neuron_health_log(nd, info, core);
		}
	}
	for (i = 0; i < NEURON_HEALTH_FILES; i++)
		if (nd->health.files[i])
			sysfs_notify_dirent(nd->health.files[i]);
}

/**
 * neuron_device_report() - take an event that a device reports
 * @nd: device
 * @event: what happened
 * @core: core that it concerns
 *
 * Called by the device.  Uncorrected errors and failed transfers are counted in the
 * status of the core and logged.  All events wake the pollers of the health files.
 * Waking them may sleep, so a work item does it; it merges events that come faster than
 * it runs.
 *
 * Context: any.
 */
void neuron_device_report(struct neuron_device *nd, enum neuron_event event, u32 core)
{
	if (WARN_ON_ONCE(event >= NEURON_NR_EVENTS || core >= nd->geo->nr_cores))
		return;
	trace_neuron_fault(nd->dev.id, core, NEURON_FAULT_EVENT + event, 0, 0);
	atomic_inc(&nd->health.pending[event][core]);
	schedule_work(&nd->health.work);
}
NEURON_EXPORT_SYMBOL(neuron_device_report);

void neuron_health_init(struct neuron_device *nd)
{
	INIT_WORK(&nd->health.work, neuron_health_work);
}

/**
 * neuron_health_exit() - stop passing events on
 * @nd: device; stopped, so that it reports nothing
 *
 * Context: may sleep.
 */
void neuron_health_exit(struct neuron_device *nd)
{
	flush_work(&nd->health.work);
}

static u64 neuron_health_count(struct neuron_device *nd, enum neuron_event event)
{
	u64 count;

	if (nd->ops->ecc_count(nd, event, &count))
		return 0;
	atomic64_set(&nd->health.heartbeat, ktime_get_real_seconds());
	return count;
}

/**
 * neuron_health_ecc() - ECC events since the count was cleared
 * @nd: device
 * @event: below NEURON_NR_ECC
 *
 * Context: may sleep.
 * Return: the number; 0 also if the device cannot tell.
 */
u64 neuron_health_ecc(struct neuron_device *nd, enum neuron_event event)
{
	u64 cleared = atomic64_read(&nd->health.cleared[event]);
	u64 count = neuron_health_count(nd, event);

	/* A device may forget its counts when it is reset. */
	return count > cleared ? count - cleared : 0;
}

/**
 * neuron_health_clear() - count from 0 again
 * @nd: device
 * @event: below NEURON_NR_ECC
 *
 * The device itself goes on counting.
 *
 * Context: may sleep.
 */
void neuron_health_clear(struct neuron_device *nd, enum neuron_event event)
{
	u64 count;

	/* A count that cannot be read has nothing to clear. */
	if (!nd->ops->ecc_count(nd, event, &count))
		atomic64_set(&nd->health.cleared[event], count);
}

/**
 * neuron_health_power() - power drawn in the last minute
 * @nd: device
 * @power: filled in, with the time only if there are no figures
 *
 * Context: may sleep.
 * Return: 0; -ENODATA no sample yet; any other error: the power is not known.
 */
int neuron_health_power(struct neuron_device *nd, struct neuron_power *power)
{
	int err;

	memset(power, 0, sizeof(*power));
	err = nd->ops->power(nd, power);
	if (err) {
		memset(power, 0, sizeof(*power));
		power->time = ktime_get_real_seconds();
	}
	return err;
}
