// SPDX-License-Identifier: LGPL-2.1-or-later
/* Limits of device memory, and what the driver remembers of allocations it refused. */
#include <errno.h>

#include "../device/device.h"

_Static_assert((int)NEURON_LIMIT_CORE == (int)NEURON_NATIVE_LIMIT_CORE &&
	       (int)NEURON_LIMIT_PROCESS == (int)NEURON_NATIVE_LIMIT_PROCESS &&
	       (int)NEURON_LIMIT_DEFAULT == (int)NEURON_NATIVE_LIMIT_DEFAULT, "kinds");
_Static_assert(NEURON_LIMIT_NONE == NEURON_NATIVE_LIMIT_NONE, "no limit");
_Static_assert(NEURON_REFUSALS_MAX == NEURON_NATIVE_FAILURES_MAX &&
	       NEURON_REFUSAL_TOP == NEURON_NATIVE_FAILURE_TOP, "limits of the driver");

NEURON_EXPORT int neuron_limit_get(struct neuron_device *device, enum neuron_limit_kind kind,
				   int32_t index, uint64_t *bytes, uint64_t *used)
{
	struct neuron_native_limit l = {
		.size = sizeof(l), .what = (uint32_t)kind, .index = index,
	};
	int ret = device_ioctl(device, NEURON_NATIVE_LIMIT, &l);

	if (!ret && bytes)
		*bytes = l.bytes;
	if (!ret && used)
		*used = l.used;
	return ret;
}

NEURON_EXPORT int neuron_limit_set(struct neuron_device *device, enum neuron_limit_kind kind,
				   int32_t index, uint64_t bytes)
{
	struct neuron_native_limit l = {
		.size = sizeof(l), .flags = NEURON_NATIVE_LIMIT_SET, .what = (uint32_t)kind,
		.index = index, .bytes = bytes,
	};

	return device_ioctl(device, NEURON_NATIVE_LIMIT, &l);
}

static void refusal(struct neuron_mem_refusal *out, const struct neuron_native_failure *f)
{
	*out = (struct neuron_mem_refusal){
		.number = f->seq,
		.time = f->time,
		.pid = f->pid,
		.host = f->flags & NEURON_NATIVE_ALLOC_HOST,
		.limit = f->limit,
		.failure = {
			.reason = (enum neuron_mem_reason)f->reason,
			.category = (enum neuron_mem_category)f->mem_type,
			.hbm = f->hbm,
			.nc = f->nc_id,
			.bytes = f->bytes,
			.align = f->align,
			.total = f->total,
			.free = f->free,
			.largest_free = f->largest_free,
			.largest_aligned = f->largest_aligned,
		},
	};
	for (int i = 0; i < NEURON_REFUSAL_TOP; i++) {
		out->categories[i].category = (enum neuron_mem_category)f->category[i].mem_type;
		out->categories[i].bytes = f->category[i].bytes;
		out->processes[i].pid = f->process[i].pid;
		out->processes[i].bytes = f->process[i].bytes;
	}
}

NEURON_EXPORT int neuron_mem_get_refusals(struct neuron_device *device, uint64_t *since,
					  struct neuron_mem_refusal *list, size_t *n)
{
	struct neuron_native_failure f[NEURON_NATIVE_FAILURES_MAX];
	struct neuron_native_failures a = {
		.size = sizeof(a), .entries = (uintptr_t)f, .entry_size = sizeof(f[0]),
	};
	int ret;

	if (!since || !n || (!list && *n))
		return -EINVAL;
	a.since = *since;
	a.count = (uint32_t)(*n < NEURON_NATIVE_FAILURES_MAX ? *n : NEURON_NATIVE_FAILURES_MAX);
	ret = device_ioctl(device, NEURON_NATIVE_FAILURES, &a);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < a.count; i++)
		refusal(&list[i], &f[i]);
	*n = a.count;
	*since = a.last;
	return 0;
}
