// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies that were started and not finished, of which each core has one at most. The driver ends
 * the one of the core when it knows none of the pair that it is asked for, and it may be another's.
 */
#include <errno.h>

#include "offload.h"

void copy_note(struct neuron_mem *dst, struct neuron_mem *src)
{
	struct neuron_device *device = dst->device;

	GUARD(&device->copies_lock);
	for (size_t i = 0; i < ARRAY_SIZE(device->copies); i++) {
		if (device->copies[i].dst)
			continue;
		device->copies[i] = (struct started_copy){ dst, src };
		device->nr_copies++;
		break;
	}
}

/* One that is the pair's, or with a @src of NULL from or to @dst; it is not noted any more. */
static bool take(struct neuron_mem *dst, const struct neuron_mem *src, struct started_copy *copy)
{
	struct neuron_device *device = dst->device;

	/* There hardly ever is one. */
	if (!device->nr_copies)
		return false;
	GUARD(&device->copies_lock);
	for (size_t i = 0; i < ARRAY_SIZE(device->copies); i++) {
		struct started_copy *c = &device->copies[i];

		if (src ? c->dst == dst && c->src == src : c->dst == dst || c->src == dst) {
			*copy = *c;
			c->dst = c->src = NULL;
			device->nr_copies--;
			return true;
		}
	}
	return false;
}

static int finish(const struct started_copy *copy)
{
	struct neuron_ioctl_mem_copy_async_wait w = {
		.src_mem_handle = copy->src->handle,
		.dst_mem_handle = copy->dst->handle,
		.pwait_handle = COPY_TOKEN,
	};
	int ret = device_ioctl(copy->dst->device, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w);

	offload_drop(copy->src);
	offload_drop(copy->dst);
	return ret;
}

int copy_finish(struct neuron_mem *dst, struct neuron_mem *src)
{
	struct started_copy copy;

	return take(dst, src, &copy) ? finish(&copy) : -EINVAL;
}

void copies_end(struct neuron_mem *mem)
{
	struct started_copy copy;

	while (take(mem, NULL, &copy))
		finish(&copy);
}
