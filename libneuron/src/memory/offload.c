// SPDX-License-Identifier: LGPL-2.1-or-later
/* Movable memory to host memory and back. */
#include <errno.h>

#include <neuron/offload.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "../device/opts.h"
#include "offload.h"

int offload_return_locked(struct neuron_mem *mem, struct neuron_mem_failure *failure)
{
	uint64_t began;
	size_t nr;
	int ret;

	if (!mem->image)
		return 0;
	began = now_ns();
	ret = mem_obtain(&mem, 1, &nr, failure);
	if (ret)
		return ret;
	ret = mem_image_put(mem->image, mem);
	if (ret) {
		mem_give_up(&mem, 1);
		return ret;
	}
	mem_image_free(mem->image);
	mem->image = NULL;
	offload_count_in(mem->device, mem_pages(mem));
	offload_count_wait(mem->device, now_ns() - began);
	return 0;
}

int offload_hold(struct neuron_mem *mem)
{
	int ret;

	if (!mem->movable)
		return 0;
	if (device_inherited(mem->device))
		return -EACCES;
	GUARD(&mem->lock);
	ret = offload_return_locked(mem, NULL);
	if (!ret)
		mem->uses++;
	return ret;
}

/*
 * The driver knows of rings and transfers that the library does not: it shortens no memory that
 * they use. What is shorter than a page, or shares one with others, is not asked about.
 */
static int ask_whether_idle(struct neuron_mem *mem)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g),
		.flags = NEURON_NATIVE_GROW_SHRINK,
		.mem_handle = mem->handle,
		.bytes = host_page(),
	};
	int ret;

	if (mem->bytes <= host_page())
		return 0;
	ret = device_ioctl(mem->device, NEURON_NATIVE_MEM_GROW, &g);
	return ret == -EOPNOTSUPP ? 0 : ret;
}

/* Under the lock. */
static int move_out(struct neuron_mem *mem)
{
	struct mem_image *image;
	int ret;

	if (mem->image)
		return -EALREADY;
	if (mem->exported)
		return -EPERM;
	if (atomic_load(&mem->va))
		return -EADDRINUSE;
	if (mem->pins || mem->uses)
		return -EBUSY;
	ret = mem_image_take(mem, &image);
	if (ret)
		return ret;
	ret = ask_whether_idle(mem);
	if (ret) {
		mem_image_free(image);
		return ret;
	}
	mem->image = image;
	mem_give_up(&mem, 1);
	offload_count_out(mem->device, mem_pages(mem));
	return 0;
}

NEURON_EXPORT int neuron_mem_offload(struct neuron_mem *mem)
{
	if (device_inherited(mem->device))
		return -EACCES;
	if (!mem->movable)
		return -EOPNOTSUPP;
	GUARD(&mem->lock);
	return move_out(mem);
}

NEURON_EXPORT int neuron_mem_onload(struct neuron_mem *mem, struct neuron_mem_failure *failure)
{
	if (device_inherited(mem->device))
		return -EACCES;
	GUARD(&mem->lock);
	return offload_return_locked(mem, failure);
}

NEURON_EXPORT int neuron_device_get_offload_stats(struct neuron_device *device,
						  struct neuron_offload_stats *stats)
{
	struct neuron_offload_stats out = {
		.offloaded = atomic_load(&device->offload.now),
		.moved_out = atomic_load(&device->offload.out_bytes),
		.moved_in = atomic_load(&device->offload.in_bytes),
		.offloads = atomic_load(&device->offload.out),
		.onloads = atomic_load(&device->offload.in),
		.waited_ns = atomic_load(&device->offload.wait_ns),
	};

	if (!result_valid(stats))
		return -EINVAL;
	result_copy(stats, &out, sizeof(out));
	return 0;
}
