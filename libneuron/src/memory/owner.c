// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owners of device memory, and what happened to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../device/device.h"
#include "../device/opts.h"

_Static_assert(sizeof(struct neuron_owner) == sizeof(struct neuron_native_owner_entry) &&
	       offsetof(struct neuron_owner, host_bytes) ==
	       offsetof(struct neuron_native_owner_entry, host_bytes) &&
	       NEURON_LABEL_MAX == NEURON_NATIVE_LABEL_MAX &&
	       NEURON_OWNERS_MAX == NEURON_NATIVE_OWNERS_MAX &&
	       NEURON_OWNERS_CLEAR == NEURON_NATIVE_OWNERS_CLEAR &&
	       NEURON_OWNER_RELEASED == NEURON_NATIVE_OWNER_RELEASED, "the driver fills it in");
_Static_assert(sizeof(struct neuron_event) == sizeof(struct neuron_native_event) &&
	       offsetof(struct neuron_event, category) ==
	       offsetof(struct neuron_native_event, mem_type) &&
	       (int)NEURON_EVENT_REFUSE == (int)NEURON_NATIVE_EVENT_REFUSE &&
	       (int)NEURON_EVENT_MOVE == (int)NEURON_NATIVE_EVENT_MOVE,
	       "the driver fills it in");

static int owner_call(struct neuron_device *device, uint32_t flags, uint32_t *owner,
		      const char *label)
{
	struct neuron_native_owner a = { .size = sizeof(a), .flags = flags, .owner = *owner };
	int ret;

	for (size_t i = 0; i < sizeof(a.label) - 1 && label[i]; i++)
		a.label[i] = label[i] < ' ' || label[i] > '~' ? '?' : label[i];
	ret = device_ioctl(device, NEURON_NATIVE_OWNER, &a);
	if (!ret)
		*owner = a.owner;
	return ret;
}

NEURON_EXPORT int neuron_owner_create(struct neuron_device *device, const char *label,
				      uint32_t *owner)
{
	uint32_t id = 0;
	int ret = label && owner ? owner_call(device, 0, &id, label) : -EINVAL;

	if (!ret)
		*owner = id;
	return ret;
}

NEURON_EXPORT int neuron_owner_rename(struct neuron_device *device, uint32_t owner,
				      const char *label)
{
	return label ? owner_call(device, NEURON_NATIVE_OWNER_RENAME, &owner, label) : -EINVAL;
}

NEURON_EXPORT int neuron_owner_release(struct neuron_device *device, uint32_t owner)
{
	return owner_call(device, NEURON_NATIVE_OWNER_RELEASE, &owner, "");
}

NEURON_EXPORT int neuron_hbm_get_owners(struct neuron_device *device, uint32_t hbm, uint32_t flags,
					struct neuron_owners *owners)
{
	struct neuron_native_owners a = { .size = sizeof(a), .hbm = hbm,
					  .entry_size = sizeof(struct neuron_owner) };
	struct neuron_owners out = { 0 };
	uint32_t room = 64;
	int ret;

	if (!result_valid(owners))
		return -EINVAL;
	for (;;) {
		free(out.list);
		out.list = calloc(room, sizeof(*out.list));
		if (!out.list)
			return -ENOMEM;
		a.entries = (uintptr_t)out.list;
		a.count = room;
		a.total = 0;
		a.used = 0;
		a.driver = 0;
		ret = device_ioctl(device, NEURON_NATIVE_OWNERS, &a);
		if (ret) {
			free(out.list);
			return ret;
		}
		/* Figures start again only once all of them were told. */
		if (a.total <= room && a.flags == flags)
			break;
		if (a.total <= room)
			a.flags = flags;
		else
			room = a.total * 2;
	}
	out.used = a.used;
	out.driver = a.driver;
	out.count = a.count;
	result_copy(owners, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT int neuron_hbm_get_events(struct neuron_device *device, uint32_t hbm,
					uint64_t *since, struct neuron_event **list, size_t *n)
{
	const uint32_t room = 4096;	/* more than the driver keeps */
	struct neuron_native_events a = { .size = sizeof(a), .hbm = hbm,
					  .entry_size = sizeof(**list), .count = room };
	struct neuron_event *all;
	int ret;

	if (!since || !list || !n)
		return -EINVAL;
	all = calloc(room, sizeof(*all));
	if (!all)
		return -ENOMEM;
	a.since = *since;
	a.entries = (uintptr_t)all;
	ret = device_ioctl(device, NEURON_NATIVE_EVENTS, &a);
	if (ret) {
		free(all);
		return ret;
	}
	*list = all;
	*n = a.count;
	*since = a.last;
	return 0;
}
