// SPDX-License-Identifier: GPL-2.0-only
/* Module entry. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "../base/client.h"
#include "../base/devices.h"
#include "../base/workqueue.h"
#include "../mem/chunk.h"
#include "../mem/debugfs.h"
#include "../sysfs/tree.h"
#include "ioctl.h"

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
	err = neuron_workqueue_init();
	if (err)
		goto cache;
	err = neuron_clients_init();
	if (err)
		goto workqueue;
	err = neuron_devices_init();
	if (err)
		goto clients;
	neuron_debugfs_init();
	pr_info("Neuron Driver Started with Version:%s\n", NEURON_VERSION);
	return 0;

clients:
	neuron_clients_destroy();
workqueue:
	neuron_workqueue_exit();
cache:
	neuron_chunk_cache_exit();
	return err;
}

static void __exit neuron_exit(void)
{
	neuron_debugfs_exit();
	/* The last process that is torn down may have the last reference to a device. */
	neuron_clients_destroy();
	neuron_devices_exit();
	neuron_workqueue_exit();
	neuron_chunk_cache_exit();
}

module_init(neuron_init);
module_exit(neuron_exit);

MODULE_DESCRIPTION("Driver core for AWS Neuron accelerators");
MODULE_AUTHOR("Neuron open driver developers");
MODULE_LICENSE("GPL");
NEURON_IMPORT_NS_DMA_BUF();
MODULE_VERSION(NEURON_VERSION);
