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

/* Under the lock: one that is the pair's, or with a @src of NULL from or to @dst. */
static struct started_copy *find(struct neuron_mem *dst, const struct neuron_mem *src)
{
	struct neuron_device *device = dst->device;

	for (size_t i = 0; i < ARRAY_SIZE(device->copies); i++) {
		struct started_copy *c = &device->copies[i];

		if (src ? c->dst == dst && c->src == src : c->dst == dst || c->src == dst)
			return c;
	}
	return NULL;
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

/* Under the lock. */
static void forget(struct neuron_device *device, struct started_copy *c)
{
	*c = (struct started_copy){ NULL };
	device->nr_copies--;
}

int copy_finish(struct neuron_mem *dst, struct neuron_mem *src)
{
	struct neuron_device *device = dst->device;
	struct started_copy *c;

	pthread_mutex_lock(&device->copies_lock);
	c = find(dst, src);
	if (c)
		forget(device, c);
	pthread_mutex_unlock(&device->copies_lock);
	return c ? finish(&(struct started_copy){ dst, src }) : -EINVAL;
}

void copies_end(struct neuron_mem *mem)
{
	struct neuron_device *device = mem->device;
	struct started_copy *c;

	/* There hardly ever is one. */
	if (!device->nr_copies)
		return;
	/* Who frees the other one of the pair must not be done before this. */
	GUARD(&device->copies_lock);
	while ((c = find(mem, NULL))) {
		finish(c);
		forget(device, c);
	}
}
