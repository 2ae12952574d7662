// SPDX-License-Identifier: GPL-2.0-only
/* The devices that exist, by number. */
#include <linux/fs.h>
#include <linux/idr.h>

#include "../compat/compat.h"
#include "client.h"
#include "device.h"
#include "devices.h"

/* Devices that exist, by number; under neuron_devices_lock. */
static struct neuron_device *neuron_devices[NEURON_MAX_DEVICES];
DEFINE_MUTEX(neuron_devices_lock);

static dev_t neuron_base;
static DEFINE_IDA(neuron_minors);

/* devtmpfs makes the nodes 0600; udev rules open them to a group. */
struct class neuron_class = {
	.name = "neuron_device",
};

int __init neuron_devices_init(void)
{
	int err = class_register(&neuron_class);

	if (err)
		return err;
	/* Clients look for the name in /proc/devices (uapi/FACTS.md 9). */
	err = alloc_chrdev_region(&neuron_base, 0, NEURON_MAX_DEVICES, "neuron");
	if (err)
		class_unregister(&neuron_class);
	return err;
}

void neuron_devices_exit(void)
{
	unregister_chrdev_region(neuron_base, NEURON_MAX_DEVICES);
	class_unregister(&neuron_class);
	ida_destroy(&neuron_minors);
}

dev_t neuron_devt(int minor)
{
	return MKDEV(MAJOR(neuron_base), minor);
}

int neuron_minor_get(int wanted)
{
	int minor;

	if (wanted >= NEURON_MAX_DEVICES)
		return -EINVAL;
	if (wanted < 0)
		return ida_alloc_max(&neuron_minors, NEURON_MAX_DEVICES - 1, GFP_KERNEL);
	minor = ida_alloc_range(&neuron_minors, wanted, wanted, GFP_KERNEL);
	return minor == -ENOSPC ? -EBUSY : minor;
}

void neuron_minor_put(int minor)
{
	ida_free(&neuron_minors, minor);
}

/**
 * neuron_device_set() - make a device known, or forget it
 * @index: its number
 * @nd: the device, or NULL
 *
 * Context: neuron_devices_lock is held.
 */
void neuron_device_set(u32 index, struct neuron_device *nd)
{
	lockdep_assert_held(&neuron_devices_lock);
	neuron_devices[index] = nd;
}

/**
 * neuron_device_lookup() - device of a number
 * @index: any number
 *
 * Context: neuron_devices_lock is held, and keeps the device.
 * Return: the device or NULL.
 */
struct neuron_device *neuron_device_lookup(u32 index)
{
	lockdep_assert_held(&neuron_devices_lock);
	return neuron_index_valid(&index, NEURON_MAX_DEVICES) ? neuron_devices[index] : NULL;
}

/**
 * neuron_devices_reap() - neuron_clients_reap() of all devices
 * @seen: as for that
 *
 * Context: may sleep; none of the devices' locks held.
 * Return: 0 a process has given back what it owned; -ENOENT no process is dead; -EINTR.
 */
int neuron_devices_reap(u32 seen)
{
	struct neuron_device *nd;
	int err, ret = -ENOENT;
	u32 i;

	for (i = 0; i < NEURON_MAX_DEVICES && ret != -EINTR; i++) {
		mutex_lock(&neuron_devices_lock);
		nd = neuron_device_lookup(i);
		if (nd)
			get_device(&nd->dev);
		mutex_unlock(&neuron_devices_lock);
		if (!nd)
			continue;
		err = neuron_clients_reap(nd, seen);
		if (err != -ENOENT)
			ret = err;
		put_device(&nd->dev);
	}
	return ret;
}

/**
 * neuron_device_priv() - what the backend put into its description
 * @nd: device
 */
void *neuron_device_priv(struct neuron_device *nd)
{
	return nd->desc.priv;
}
NEURON_EXPORT_SYMBOL(neuron_device_priv);

/**
 * neuron_device_index() - number of a device
 * @nd: device
 */
u32 neuron_device_index(struct neuron_device *nd)
{
	return MINOR(nd->dev.devt);
}
NEURON_EXPORT_SYMBOL(neuron_device_index);
