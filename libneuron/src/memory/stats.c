// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the driver counts of device memory. */
#include <errno.h>
#include <stdlib.h>

#include "../../common/util.h"
#include "../device/device.h"
#include "../device/opts.h"

_Static_assert(NEURON_MAX_CATEGORIES == NEURON_NATIVE_MAX_CATEGORIES, "limits of the driver");
_Static_assert(NEURON_MAX_ORDERS == NEURON_NATIVE_MAX_ORDERS, "limits of the driver");
_Static_assert(NEURON_MAX_CORES == NEURON_NATIVE_MAX_CORES, "limits of the driver");

NEURON_EXPORT int neuron_hbm_get_stats(struct neuron_device *device, uint32_t hbm,
				       struct neuron_hbm_stats *stats)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = hbm };
	struct neuron_hbm_stats out = { 0 };
	int ret;

	if (!result_valid(stats))
		return -EINVAL;
	ret = device_ioctl(device, NEURON_NATIVE_HBM_STATS, &s);
	if (ret)
		return ret;
	out.total = s.total;
	out.used = s.used;
	out.reserved = s.reserved;
	out.free = s.free;
	out.largest_free = s.largest_free;
	out.high_water = s.high_water;
	out.nr_allocs = s.nr_allocs;
	out.own_process = s.own_process;
	out.driver = s.driver;
	out.metadata = s.metadata;
	out.fail_full = s.fail_full;
	out.fail_fragmented = s.fail_fragmented;
	out.fail_alignment = s.fail_alignment;
	out.fail_capped = s.fail_capped;
	memcpy(out.free_by_order, s.free_by_order, sizeof(out.free_by_order));
	memcpy(out.by_category, s.by_category, sizeof(out.by_category));
	memcpy(out.by_core, s.by_core, sizeof(out.by_core));
	out.moves = s.moves;
	out.moved_bytes = s.moved_bytes;
	out.move_failures = s.move_failures;
	result_copy(stats, &out, sizeof(out));
	return 0;
}

_Static_assert(sizeof(struct neuron_range) == sizeof(struct neuron_native_range) &&
	       offsetof(struct neuron_range, category) ==
	       offsetof(struct neuron_native_range, mem_type) &&
	       (int)NEURON_RANGE_OWNED == (int)NEURON_NATIVE_RANGE_OWNED, "the driver fills it in");

NEURON_EXPORT int neuron_hbm_get_ranges(struct neuron_device *device, uint32_t hbm,
					struct neuron_range **list, size_t *n)
{
	struct neuron_native_hbm_ranges a = { .size = sizeof(a), .hbm = hbm,
					      .entry_size = sizeof(**list) };
	struct neuron_range *all = NULL, *more;
	size_t count = 0, room = 256;
	int ret = 0;

	if (!list || !n)
		return -EINVAL;
	do {
		/* Twice as many each time. */
		room *= 2;
		more = realloc(all, room * sizeof(*all));
		ret = more ? 0 : -ENOMEM;
		if (!more)
			break;
		all = more;
		a.entries = (uintptr_t)(all + count);
		a.count = (uint32_t)(room - count);
		ret = device_ioctl(device, NEURON_NATIVE_HBM_RANGES, &a);
		count += ret ? 0 : a.count;
	} while (!ret && count == room);
	if (ret) {
		free(all);
		return ret;
	}
	*list = all;
	*n = count;
	return 0;
}

NEURON_EXPORT int neuron_core_get_stats(struct neuron_device *device, uint32_t nc,
					struct neuron_core_stats *stats)
{
	struct neuron_native_core_stats s = { .size = sizeof(s), .nc_id = nc };
	struct neuron_core_stats out = { 0 };
	int ret;

	if (!result_valid(stats))
		return -EINVAL;
	ret = device_ioctl(device, NEURON_NATIVE_CORE_STATS, &s);
	if (ret)
		return ret;
	out.owner = s.owner;
	memcpy(out.device_bytes, s.device_bytes, sizeof(out.device_bytes));
	out.host_bytes = s.host_bytes;
	result_copy(stats, &out, sizeof(out));
	return 0;
}
