// SPDX-License-Identifier: GPL-2.0-only
/* Module entry, device class and numbers. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>

#include "../base/neuron.h"

#define CREATE_TRACE_POINTS
#include "../base/trace.h"

static dev_t neuron_base;
static DEFINE_IDA(neuron_minors);

/* devtmpfs makes the nodes 0600; udev rules open them to a group. */
struct class neuron_class = {
	.name = "neuron_device",
};

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

static int __init neuron_init(void)
{
	int err;

	err = neuron_ioctl_init();
	if (err)
		return err;
	neuron_sysfs_init();
	err = neuron_chunk_cache_init();
	if (err)
		return err;
	err = neuron_async_init();
	if (err)
		goto cache;
	err = neuron_clients_init();
	if (err)
		goto async;
	err = class_register(&neuron_class);
	if (err)
		goto clients;
	/* Clients look for the name in /proc/devices (uapi/FACTS.md 9). */
	err = alloc_chrdev_region(&neuron_base, 0, NEURON_MAX_DEVICES, "neuron");
	if (err)
		goto class;
	neuron_debugfs_init();
	pr_info("Neuron Driver Started with Version:%s\n", NEURON_VERSION);
	return 0;

class:
	class_unregister(&neuron_class);
clients:
	neuron_clients_destroy();
async:
	neuron_async_destroy();
cache:
	neuron_chunk_cache_exit();
	return err;
}

static void __exit neuron_exit(void)
{
	neuron_debugfs_exit();
	unregister_chrdev_region(neuron_base, NEURON_MAX_DEVICES);
	class_unregister(&neuron_class);
	neuron_clients_destroy();
	neuron_async_destroy();
	neuron_chunk_cache_exit();
	ida_destroy(&neuron_minors);
}

module_init(neuron_init);
module_exit(neuron_exit);

MODULE_DESCRIPTION("Driver core for AWS Neuron accelerators");
MODULE_AUTHOR("Neuron open driver developers");
MODULE_LICENSE("GPL");
NEURON_IMPORT_NS_DMA_BUF();
MODULE_VERSION(NEURON_VERSION);
