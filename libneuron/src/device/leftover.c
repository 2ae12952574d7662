// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory given back to the driver, which can refuse it for the moment. */
#include <errno.h>
#include <stdlib.h>

#include "../../common/lock.h"
#include "device.h"
#include "sys.h"

/* Not 0: the driver still has it. */
static int give_back(struct neuron_device *device, const struct leftover *what)
{
	struct neuron_ioctl_mem_get_extended_info e = { .mem_handle = what->handle };
	struct neuron_ioctl_mem_free f = { .mem_handle = what->handle };
	int ret = what->va ? device_ioctl(device, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &e) : 0;

	if (!ret && (!what->va || e.mmap_offset == what->mmap_offset))
		ret = device_ioctl(device, NEURON_IOCTL_MEM_FREE, &f);
	if (ret && ret != -ENOENT && ret != -EINVAL)
		return ret;
	if (what->va)
		neuron_sys_munmap(what->va, what->mapped);
	return 0;
}

static struct leftover *take_first(struct neuron_device *device)
{
	struct leftover *first;

	/* There hardly ever is one. */
	if (!atomic_load_explicit(&device->left, memory_order_relaxed))
		return NULL;
	GUARD(&device->left_lock);
	first = atomic_load(&device->left);
	if (first)
		atomic_store(&device->left, first->next);
	return first;
}

static void keep(struct neuron_device *device, struct leftover *left)
{
	left->next = NULL;
	GUARD(&device->left_lock);
	if (atomic_load(&device->left))
		device->left_last->next = left;
	else
		atomic_store(&device->left, left);
	device->left_last = left;
}

/*
 * What was kept before, up to one that the driver still refuses: with a device that is gone
 * it refuses all of them each time.  The next attempt begins with another one.
 */
static void give_back_again(struct neuron_device *device)
{
	struct leftover *left;

	while ((left = take_first(device))) {
		if (give_back(device, left)) {
			keep(device, left);
			return;
		}
		free(left);
	}
}

static void keep_copy(struct neuron_device *device, const struct leftover *what)
{
	struct leftover *left = malloc(sizeof(*left));

	/* Without host memory for it, it stays until the device is closed. */
	if (!left)
		return;
	*left = *what;
	keep(device, left);
}

void device_give_back_many(struct neuron_device *device, const uint64_t *handles, uint32_t n)
{
	struct neuron_native_mem_free_bulk f = {
		.size = sizeof(f), .count = n, .handles = (uintptr_t)handles,
	};
	int ret = 0;

	/* A child has nothing of it. */
	if (device_inherited(device))
		return;
	give_back_again(device);
	if (n > 1) {
		ret = device_ioctl(device, NEURON_NATIVE_MEM_FREE_BULK, &f);
		if (!ret)
			return;
	}
	/*
	 * Of several, none is freed if one is refused: now all others are, unless the device is
	 * gone and refuses each of them.
	 */
	for (uint32_t i = 0; i < n; i++) {
		const struct leftover what = { .handle = handles[i] };

		if (ret != -ENODEV)
			ret = give_back(device, &what);
		if (ret)
			keep_copy(device, &what);
	}
}

void device_give_back(struct neuron_device *device, const struct leftover *what)
{
	if (device_inherited(device))
		return;
	give_back_again(device);
	if (give_back(device, what))
		keep_copy(device, what);
}

/* Nobody else has the device.  A child leaves the lock alone. */
void device_forget_leftovers(struct neuron_device *device)
{
	struct leftover *left = atomic_load(&device->left), *next;
	bool inherited = device_inherited(device);
	int ret = 0;

	for (; left; left = next) {
		next = left->next;
		if (!inherited && ret != -ENODEV)
			ret = give_back(device, left);
		if (!inherited && ret && left->va)
			neuron_sys_munmap(left->va, left->mapped);
		free(left);
	}
	atomic_store(&device->left, NULL);
}
