// SPDX-License-Identifier: GPL-2.0-only
/* Memory counters, and the wake-up of their pollers. */
#include <linux/sysfs.h>

#include "counter.h"
#include "device.h"
#include "hw.h"

DEFINE_STATIC_KEY_FALSE(neuron_notify);

/**
 * neuron_counter_tell() - wake the pollers of a counter's files
 * @c: the counter; its directory stays during the call
 *
 * Context: may sleep.
 */
void neuron_counter_tell(struct neuron_counter *c)
{
	static const char * const files[] = { "total", "present", "peak" };
	struct kernfs_node *dir = READ_ONCE(c->dir), *file;
	u32 i;

	for (i = 0; dir && i < ARRAY_SIZE(files); i++) {
		file = sysfs_get_dirent(dir, files[i]);
		if (file)
			sysfs_notify_dirent(file);
		sysfs_put(file);
	}
}

/**
 * neuron_counter_changed() - wake the pollers of a counter, if its directory exists
 * @nd: device
 * @c: the counter
 *
 * Context: may sleep.
 */
void neuron_counter_changed(struct neuron_device *nd, struct neuron_counter *c)
{
	int idx;

	/* The directories are removed only after the device is gone. */
	if (!neuron_device_enter(nd, &idx))
		return;
	neuron_counter_tell(c);
	neuron_device_exit(nd, idx);
}
