// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a device says of itself, resets, semaphores and events. */
#include <errno.h>
#include <stdio.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "device.h"
#include "opts.h"

_Static_assert(NEURON_MAX_DEVICES == NEURON_IOCTL_MAX_DEVICES, "limits of the driver");

NEURON_EXPORT int neuron_device_get_info(struct neuron_device *device,
					 struct neuron_device_info *info)
{
	struct neuron_ioctl_device_info di = { 0 };
	struct neuron_ioctl_compatible_version cv = { 0 };
	struct neuron_ioctl_device_driver_info dr = { .size = sizeof(dr) };
	struct neuron_device_info out = { 0 };
	int ret;

	if (!result_valid(info))
		return -EINVAL;
	ret = device_ioctl(device, NEURON_IOCTL_DEVICE_INFO, &di) ?:
	      device_ioctl(device, NEURON_IOCTL_COMPATIBLE_VERSION, &cv) ?:
	      device_ioctl(device, NEURON_IOCTL_DRIVER_INFO_GET, &dr);
	if (ret)
		return ret;
	if (di.connected_device_count > NEURON_IOCTL_MAX_CONNECTED_DEVICES)
		return -EPROTO;
	out.arch = di.architecture;
	out.revision = di.revision;
	out.nr_connected = di.connected_device_count;
	memcpy(out.connected, di.connected_devices, sizeof(out.connected));
	out.compat_min = cv.min;
	out.compat_max = cv.max;
	out.features = dr.feature_flags1;
	result_copy(info, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT int neuron_device_bdf(struct neuron_device *device, char bdf[NEURON_BDF_SIZE])
{
	struct neuron_ioctl_device_bdf_ext d = { 0 };
	int ret = device_ioctl(device, NEURON_IOCTL_DEVICE_BDF_EXT, &d);

	if (!ret)
		snprintf(bdf, NEURON_BDF_SIZE, "%04x:%02x:%02x.%x", d.domain & 0xffff,
			 d.bus_number & 0xff, d.slot & 0x1f, d.func & 7);
	return ret;
}

NEURON_EXPORT int neuron_device_routing_ids(struct neuron_device *device,
					    uint32_t ids[NEURON_MAX_DEVICES], uint32_t *nr)
{
	struct neuron_ioctl_host_device_id_to_rid_map m = { 0 };
	int ret = device_ioctl(device, NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP, &m);

	if (ret)
		return ret;
	/* Numbers can have gaps. */
	*nr = NEURON_MAX_DEVICES;
	while (*nr && m.host_did_to_rid_map[*nr - 1] == UINT32_MAX)
		(*nr)--;
	memcpy(ids, m.host_did_to_rid_map, *nr * sizeof(*ids));
	return 0;
}

NEURON_EXPORT int neuron_device_set_reset_eventfd(struct neuron_device *device, uint32_t nc, int fd)
{
	struct neuron_native_reset_eventfd e = {
		.size = sizeof(e),
		.nc_id = nc,
		.eventfd = fd < 0 ? -1 : fd,
	};

	return device_ioctl(device, NEURON_NATIVE_RESET_EVENTFD, &e);
}

void device_add_watch(struct neuron_device *device, struct reset_watch *watch)
{
	GUARD(&device->watches_lock);
	watch->next = device->watches;
	device->watches = watch;
}

void device_remove_watch(struct neuron_device *device, struct reset_watch *watch)
{
	struct reset_watch **p = &device->watches;

	GUARD(&device->watches_lock);
	while (*p != watch)
		p = &(*p)->next;
	*p = watch->next;
}

static void tell_watches(struct neuron_device *device, uint32_t nc_map)
{
	GUARD(&device->watches_lock);
	for (struct reset_watch *w = device->watches; w; w = w->next)
		if (nc_map >> w->nc & 1) {
			atomic_store(&w->reset, true);
			tell_eventfd(w->eventfd);
		}
}

NEURON_EXPORT int neuron_device_reset(struct neuron_device *device, uint32_t nc_map)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = nc_map };
	struct neuron_ioctl_device_ready ready = { 0 };
	int ret;

	if (!nc_map)
		return -EINVAL;
	ret = device_ioctl(device, NEURON_IOCTL_NC_RESET, &reset);
	if (ret)
		return ret;
	do {
		ready.request_id = reset.request_id;
		ready.result = 0;
		ret = device_ioctl(device, NEURON_IOCTL_NC_RESET_READY, &ready);
	} while (!ret && ready.result == -EINTR);
	/* Also of one that failed: what it left of the queues nobody knows. */
	tell_watches(device, nc_map);
	return ret ?: ready.result ? -EIO : 0;
}

static int semaphore(struct neuron_device *device, unsigned long cmd, uint32_t nc,
		     uint32_t index, uint32_t *value)
{
	struct neuron_ioctl_semaphore s = {
		.nc_id = nc, .semaphore_index = index, .value = *value,
	};
	int ret = device_ioctl(device, cmd, &s);

	if (!ret)
		*value = s.value;
	return ret;
}

NEURON_EXPORT int neuron_semaphore_read(struct neuron_device *device, uint32_t nc,
					uint32_t index, uint32_t *value)
{
	uint32_t v = 0;
	int ret = semaphore(device, NEURON_IOCTL_SEMAPHORE_READ, nc, index, &v);

	if (!ret)
		*value = v;
	return ret;
}

NEURON_EXPORT int neuron_semaphore_set(struct neuron_device *device, uint32_t nc,
				       uint32_t index, uint32_t value)
{
	return semaphore(device, NEURON_IOCTL_SEMAPHORE_WRITE, nc, index, &value);
}

NEURON_EXPORT int neuron_semaphore_add(struct neuron_device *device, uint32_t nc,
				       uint32_t index, uint32_t value)
{
	return semaphore(device, NEURON_IOCTL_SEMAPHORE_INCREMENT, nc, index, &value);
}

NEURON_EXPORT int neuron_semaphore_subtract(struct neuron_device *device, uint32_t nc,
					    uint32_t index, uint32_t value)
{
	return semaphore(device, NEURON_IOCTL_SEMAPHORE_DECREMENT, nc, index, &value);
}

NEURON_EXPORT int neuron_event_read(struct neuron_device *device, uint32_t nc, uint32_t index,
				    uint32_t *value)
{
	struct neuron_ioctl_event e = { .nc_id = nc, .event_index = index };
	int ret = device_ioctl(device, NEURON_IOCTL_EVENT_GET, &e);

	if (!ret)
		*value = e.value;
	return ret;
}

NEURON_EXPORT int neuron_event_set(struct neuron_device *device, uint32_t nc, uint32_t index,
				   uint32_t value)
{
	struct neuron_ioctl_event e = { .nc_id = nc, .event_index = index, .value = value };

	return device_ioctl(device, NEURON_IOCTL_EVENT_SET, &e);
}
