// SPDX-License-Identifier: GPL-2.0-only
/* ioctls about the host's devices and processes, and those that are not supported. */
#include <linux/pid.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/devices.h"

#define NEURON_PRINTK_MAX	512	/* uapi/FACTS.md 2 */
#define NEURON_NC_MAP_CORES	8	/* of a device in the logical map */

/* ---- where devices are ---- */

static struct neuron_location neuron_location(struct neuron_device *nd)
{
	struct neuron_location at = nd->desc.location;

	if (!at.known) {
		at.bus = neuron_device_index(nd);
		at.rid = at.bus;
	}
	return at;
}

int neuron_do_device_bdf(struct neuron_call *call)
{
	struct neuron_ioctl_device_bdf *a = call->arg;
	struct neuron_location at = neuron_location(call->nd);

	a->bus_number = at.bus;
	a->slot = at.slot;
	a->func = at.func;
	return 0;
}

int neuron_do_device_bdf_ext(struct neuron_call *call)
{
	struct neuron_ioctl_device_bdf_ext *a = call->arg;
	u32 index = a->nd_index;
	struct neuron_location at;
	struct neuron_device *nd;

	if (index >= NEURON_MAX_DEVICES)
		return -EINVAL;
	mutex_lock(&neuron_devices_lock);
	nd = neuron_device_lookup(neuron_device_index(call->nd) + index);
	if (nd)
		at = neuron_location(nd);
	mutex_unlock(&neuron_devices_lock);
	if (!nd)
		return -EINVAL;
	memset(a, 0, sizeof(*a));
	a->nd_index = index;
	a->domain = at.domain;
	a->bus_number = at.bus;
	a->slot = at.slot;
	a->func = at.func;
	return 0;
}

int neuron_do_host_device_id_to_rid_map(struct neuron_call *call)
{
	struct neuron_ioctl_host_device_id_to_rid_map *a = call->arg;
	struct neuron_device *nd;
	u32 i;

	mutex_lock(&neuron_devices_lock);
	for (i = 0; i < ARRAY_SIZE(a->host_did_to_rid_map); i++) {
		nd = neuron_device_lookup(i);
		a->host_did_to_rid_map[i] = nd ? neuron_location(nd).rid : U32_MAX;
		a->count += !!nd;
	}
	mutex_unlock(&neuron_devices_lock);
	return 0;
}

/* Physical core of each logical one, by kind of position (uapi/FACTS.md 6). */
static const u8 neuron_nc_map_orders[][NEURON_NC_MAP_CORES] = {
	{ 4, 5, 6, 7, 2, 3, 0, 1 },
	{ 2, 3, 0, 1, 4, 5, 6, 7 },
	{ 0, 1, 2, 3, 6, 7, 4, 5 },
	{ 6, 7, 4, 5, 0, 1, 2, 3 },
};

static const u8 neuron_nc_map_devices[NEURON_NC_MAP_MAX_ENTRIES / NEURON_NC_MAP_CORES] = {
	0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3,
};

int neuron_do_get_logical_to_physical_nc_map(struct neuron_call *call)
{
	struct neuron_ioctl_get_logical_to_physical_nc_map *a = call->arg;
	struct neuron_ioctl_nc_map __user *map = (struct neuron_ioctl_nc_map __user *)a->map;
	struct neuron_ioctl_nc_map_entry entry;
	u32 i;

	if (call->nd->geo->arch < NEURON_ARCH_V3)
		return -EOPNOTSUPP;
	if (!a->max_map_entries || a->max_map_entries > NEURON_NC_MAP_MAX_ENTRIES ||
	    a->mapping_version != NEURON_IOCTL_NC_MAPPING_TYPE_V0)
		return -EINVAL;
	for (i = 0; i < a->max_map_entries; i++) {
		u32 dev = i / NEURON_NC_MAP_CORES;

		entry.device_id = dev;
		entry.device_nc_idx = neuron_nc_map_orders[neuron_nc_map_devices[dev]]
							  [i % NEURON_NC_MAP_CORES];
		if (copy_to_user(&map->mappings[i], &entry, sizeof(entry)))
			return -EFAULT;
	}
	return put_user(a->max_map_entries, &map->num_entries);
}

/* ---- the log ---- */

int neuron_do_printk(struct neuron_call *call)
{
	struct neuron_ioctl_printk *a = call->arg;
	char *text;
	u32 len;

	if (!a->size || a->size > NEURON_PRINTK_MAX)
		return -EINVAL;
	text = memdup_user((void __user *)a->buffer, a->size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	if (text[a->size - 1]) {
		kfree(text);
		return -EBADMSG;
	}
	len = strlen(text);
	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	dev_notice_ratelimited(&call->nd->dev, "pid %d: %s\n", task_tgid_nr(current),
			       neuron_printable(text));
	kfree(text);
	return 0;
}

int neuron_do_nc_pid_state_dump(struct neuron_call *call)
{
	struct neuron_ioctl_nc_pid_state_dump *a = call->arg;
	u32 n = call->nd->geo->nr_cores;
	struct neuron_device *nd;
	struct task_struct *task;
	struct pid *pid = NULL;
	char comm[TASK_COMM_LEN];

	mutex_lock(&neuron_devices_lock);
	nd = neuron_device_lookup(a->nc_id / n);
	if (nd && nd->geo->nr_cores == n) {
		struct neuron_core *core = &nd->core[a->nc_id % n];

		mutex_lock(&core->lock);
		if (core->owner)
			pid = get_pid(core->owner->pid);
		mutex_unlock(&core->lock);
	}
	mutex_unlock(&neuron_devices_lock);
	if (!pid)
		return -ENOENT;

	task = get_pid_task(pid, PIDTYPE_TGID);
	if (task) {
		dev_notice_ratelimited(&call->nd->dev, "core %u: pid %d (%s), state %c\n", a->nc_id,
				       pid_nr(pid), neuron_printable(get_task_comm(comm, task)),
				       task_state_to_char(task));
		put_task_struct(task);
	}
	put_pid(pid);
	return task ? 0 : -ENOENT;
}

/* ---- processes ---- */

/* Under clients_lock. */
static void neuron_app_info(struct neuron_client *client, u32 flags, struct neuron_app_info *info)
{
	struct neuron_device *nd = client->nd;
	u32 i;

	info->pid = pid_vnr(client->pid);
	if (flags & APP_INFO_PID_NC_LOCK_INFO) {
		u32 n = min_t(u32, nd->geo->nr_cores, APP_INFO_MAX_MODELS_PER_DEVICE);

		for (i = 0; i < n; i++) {
			struct neuron_crwl *crwl = &nd->core[i].crwl;

			spin_lock(&crwl->lock);
			if (crwl->owner == client && (crwl->writer || crwl->readers)) {
				info->nc_lock_map |= BIT(i);
				info->uuid_data[i] = crwl->uuid;
			}
			spin_unlock(&crwl->lock);
		}
	}
	if (flags & APP_INFO_PID_MEM_USAGE) {
		info->host_mem_size = atomic64_read(&client->host_bytes);
		for (i = 0; i < nd->geo->nr_hbms; i++)
			info->device_mem_size += READ_ONCE(client->hbm_bytes[i]);
	}
}

int neuron_do_device_get_all_apps_info(struct neuron_call *call)
{
	struct neuron_ioctl_get_apps_info __user *out = call->uarg;
	struct neuron_ioctl_get_apps_info *a = call->arg;
	struct neuron_client *client;
	struct neuron_app_info *info;
	int err = 0;

	if (a->apps_info_flags & ~APP_INFO_ALL)
		return -EINVAL;
	info = kcalloc(NEURON_MAX_CLIENTS, sizeof(*info), GFP_KERNEL_ACCOUNT);
	if (!info)
		return -ENOMEM;
	a->size = 0;
	mutex_lock(&call->nd->clients_lock);
	list_for_each_entry(client, &call->nd->clients, node) {
		if (a->size >= min_t(u32, a->capacity, NEURON_MAX_CLIENTS))
			break;
		neuron_app_info(client, a->apps_info_flags, &info[a->size++]);
	}
	mutex_unlock(&call->nd->clients_lock);
	if (copy_to_user(out->app_data, info, a->size * sizeof(*info)))
		err = -EFAULT;
	kfree(info);
	return err;
}

/* ---- always the same answer ---- */

int neuron_do_enotty(struct neuron_call *call)
{
	return -ENOTTY;
}

int neuron_do_eperm(struct neuron_call *call)
{
	return -EPERM;
}

int neuron_do_eopnotsupp(struct neuron_call *call)
{
	return -EOPNOTSUPP;
}
