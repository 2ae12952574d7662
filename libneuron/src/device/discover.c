// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finding devices, and noticing when they come and go. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <libudev.h>

#include <string.h>

#include <neuron/neuron.h>

#include "../../../uapi/neuron_ioctl.h"
#include "../../common/util.h"
#include "../../common/wait.h"

#define SUBSYSTEM "neuron_device"

struct neuron_monitor {
	struct udev *udev;
	struct udev_monitor *monitor;
};

static void copy_attr(struct udev_device *dev, const char *attr, char *out, size_t size)
{
	const char *value = udev_device_get_sysattr_value(dev, attr);

	snprintf(out, size, "%s", value ? value : "");
}

/* -ENOENT if it is something else of this subsystem. */
static int fill_entry(struct udev_device *dev, struct neuron_device_entry *entry)
{
	const char *name = udev_device_get_sysname(dev);
	const char *node = udev_device_get_devnode(dev);
	const char *path = udev_device_get_syspath(dev);
	const char *cores = NULL;
	char *end;
	unsigned long index;

	if (!name || strncmp(name, "neuron", 6) || !isdigit((unsigned char)name[6]))
		return -ENOENT;
	index = strtoul(name + 6, &end, 10);
	if (*end || index > NEURON_IOCTL_MAX_DEVICES)
		return -ENOENT;
	memset(entry, 0, sizeof(*entry));
	entry->index = (unsigned int)index;
	if (node)
		snprintf(entry->path, sizeof(entry->path), "%s", node);
	else
		snprintf(entry->path, sizeof(entry->path), "/dev/neuron%u", entry->index);
	snprintf(entry->syspath, sizeof(entry->syspath), "%s", path ? path : "");
	cores = udev_device_get_sysattr_value(dev, "core_count");
	if (cores)
		entry->nr_cores = (unsigned int)strtoul(cores, NULL, 10);
	copy_attr(dev, "info/architecture/arch_type", entry->arch, sizeof(entry->arch));
	copy_attr(dev, "info/architecture/instance_type", entry->instance,
		  sizeof(entry->instance));
	copy_attr(dev, "info/architecture/device_name", entry->name, sizeof(entry->name));
	return 0;
}

static int by_index(const void *a, const void *b)
{
	const struct neuron_device_entry *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

NEURON_EXPORT int neuron_device_list(struct neuron_device_entry **list, size_t *count)
{
	struct neuron_device_entry *entries = NULL;
	struct udev_enumerate *e = NULL;
	struct udev_list_entry *item;
	struct udev *udev;
	size_t n = 0, max = 0;
	int ret = -ENOMEM;

	if (!list || !count)
		return -EINVAL;
	udev = udev_new();
	if (!udev)
		return -ENOMEM;
	e = udev_enumerate_new(udev);
	if (!e)
		goto out;
	ret = udev_enumerate_add_match_subsystem(e, SUBSYSTEM);
	if (ret >= 0)
		ret = udev_enumerate_scan_devices(e);
	if (ret < 0)
		goto out;
	ret = 0;
	udev_list_entry_foreach(item, udev_enumerate_get_list_entry(e)) {
		struct udev_device *dev =
			udev_device_new_from_syspath(udev, udev_list_entry_get_name(item));

		if (!dev)
			continue;	/* gone meanwhile */
		ret = array_grow((void **)&entries, n, &max, sizeof(*entries));
		if (!ret && !fill_entry(dev, &entries[n]))
			n++;
		udev_device_unref(dev);
		if (ret)
			goto out;
	}
	if (n)
		qsort(entries, n, sizeof(*entries), by_index);
	*list = n ? entries : NULL;
	*count = n;
out:
	if (ret || !n)
		free(entries);
	udev_enumerate_unref(e);
	udev_unref(udev);
	return ret;
}

NEURON_EXPORT void neuron_device_list_free(struct neuron_device_entry *list)
{
	free(list);
}

NEURON_EXPORT int neuron_monitor_open(struct neuron_monitor **monitor)
{
	/* With a udev daemon its events come once the node has its permissions. */
	const char *source = access("/run/udev/control", F_OK) ? "kernel" : "udev";
	struct neuron_monitor *m;
	int ret;

	if (!monitor)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->udev = udev_new();
	m->monitor = m->udev ? udev_monitor_new_from_netlink(m->udev, source) : NULL;
	if (!m->monitor) {
		ret = errno ? -errno : -ENOMEM;
		goto fail;
	}
	ret = udev_monitor_filter_add_match_subsystem_devtype(m->monitor, SUBSYSTEM, NULL);
	if (ret >= 0)
		ret = udev_monitor_enable_receiving(m->monitor);
	if (ret < 0)
		goto fail;
	*monitor = m;
	return 0;
fail:
	neuron_monitor_close(m);
	return ret;
}

NEURON_EXPORT void neuron_monitor_close(struct neuron_monitor *monitor)
{
	if (!monitor)
		return;
	udev_monitor_unref(monitor->monitor);
	udev_unref(monitor->udev);
	free(monitor);
}

NEURON_EXPORT int neuron_monitor_fd(const struct neuron_monitor *monitor)
{
	return udev_monitor_get_fd(monitor->monitor);
}

NEURON_EXPORT int neuron_monitor_read(struct neuron_monitor *monitor,
				      struct neuron_monitor_event *event, int timeout_ms)
{
	struct deadline deadline = deadline_in(timeout_ms);
	struct pollfd pfd = { .fd = neuron_monitor_fd(monitor), .events = POLLIN };

	for (;;) {
		struct udev_device *dev = udev_monitor_receive_device(monitor->monitor);
		int ret;

		if (dev) {
			const char *action = udev_device_get_action(dev);

			ret = fill_entry(dev, &event->entry);
			event->action = action && !strcmp(action, "add") ? NEURON_DEVICE_ADDED :
					action && !strcmp(action, "remove") ? NEURON_DEVICE_REMOVED :
					NEURON_DEVICE_CHANGED;
			udev_device_unref(dev);
			if (!ret)
				return 0;
			continue;
		}
		ret = poll(&pfd, 1, deadline_left(&deadline));
		if (ret < 0 && errno != EINTR)
			return -errno;
		if (!ret)
			return -ETIMEDOUT;
	}
}
