// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory given back to the driver, which can refuse it for the moment. */
#include <errno.h>
#include <stdlib.h>

#include "device.h"
#include "sys.h"

/* False: the driver still has it. */
static bool give_back(struct neuron_device *device, const struct leftover *what)
{
	struct neuron_ioctl_mem_get_extended_info e = { .mem_handle = what->handle };
	struct neuron_ioctl_mem_free f = { .mem_handle = what->handle };
	int ret = what->va ? device_ioctl(device, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &e) : 0;

	if (!ret && (!what->va || e.mmap_offset == what->mmap_offset))
		ret = device_ioctl(device, NEURON_IOCTL_MEM_FREE, &f);
	if (ret && ret != -ENOENT && ret != -EINVAL)
		return false;
	if (what->va)
		neuron_sys_munmap(what->va, what->mapped);
	return true;
}

static void keep(struct neuron_device *device, struct leftover *first, struct leftover *last)
{
	last->next = atomic_load(&device->left);
	while (!atomic_compare_exchange_weak(&device->left, &last->next, first))
		;
}

/*
 * What was kept before, up to one that the driver still refuses: with a device that is gone
 * it refuses all of them each time.
 */
static void give_back_again(struct neuron_device *device)
{
	struct leftover *left = atomic_exchange(&device->left, NULL), *first, *last;

	while (left && give_back(device, left)) {
		first = left->next;
		free(left);
		left = first;
	}
	if (!left)
		return;
	/* The next attempt begins with another one. */
	first = left->next ? left->next : left;
	for (last = left; last->next; last = last->next)
		;
	if (last != left)
		last->next = left;
	keep(device, first, left);
}

void device_give_back_many(struct neuron_device *device, const uint64_t *handles, uint32_t n)
{
	struct neuron_native_mem_free_bulk f = {
		.size = sizeof(f), .count = n, .handles = (uintptr_t)handles,
	};

	/* What is left from before is tried again with each that is given back by itself. */
	if (n > 1 && !atomic_load_explicit(&device->left, memory_order_relaxed) &&
	    !device_ioctl(device, NEURON_NATIVE_MEM_FREE_BULK, &f))
		return;
	/* Of several, none is freed if one is refused: now all others are. */
	for (uint32_t i = 0; i < n; i++)
		device_give_back(device, &(struct leftover){ .handle = handles[i] });
}

void device_give_back(struct neuron_device *device, const struct leftover *what)
{
	struct leftover *left;

	/* A child has nothing of it. */
	if (device_inherited(device))
		return;
	if (atomic_load_explicit(&device->left, memory_order_relaxed))
		give_back_again(device);
	if (give_back(device, what))
		return;
	/* Without host memory for it, it stays until the device is closed. */
	left = malloc(sizeof(*left));
	if (left) {
		*left = *what;
		keep(device, left, left);
	}
}

void device_forget_leftovers(struct neuron_device *device)
{
	struct leftover *left = atomic_exchange(&device->left, NULL), *next;

	for (; left; left = next) {
		next = left->next;
		if (!device_inherited(device) && !give_back(device, left) && left->va)
			neuron_sys_munmap(left->va, left->mapped);
		free(left);
	}
}
