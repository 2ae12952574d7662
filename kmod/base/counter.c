// SPDX-License-Identifier: GPL-2.0-only
/* Memory counters, and who is told that they changed. */
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "counter.h"
#include "device.h"
#include "hw.h"

DEFINE_STATIC_KEY_FALSE(neuron_notify);

/**
 * neuron_counter_tell() - tell those who poll the files of a counter
 * @c: the counter; its directory does not go meanwhile
 *
 * Context: may sleep.
 */
void neuron_counter_tell(struct neuron_counter *c)
{
	static const char * const files[] = { "total", "present", "peak" };
	struct kobject *dir = READ_ONCE(c->dir);
	u32 i;

	for (i = 0; dir && i < ARRAY_SIZE(files); i++)
		sysfs_notify(dir, NULL, files[i]);
}

static noinline void neuron_counter_changed(struct neuron_device *nd, struct neuron_counter *c)
{
	int idx;

	/* The directories go when the device has gone. */
	if (!neuron_device_enter(nd, &idx))
		return;
	neuron_counter_tell(c);
	neuron_device_exit(idx);
}

/**
 * neuron_counter_change() - memory came or goes
 * @nd: device
 * @c: counter
 * @bytes: how much
 * @last: size of the last allocation of these
 * @add: it came
 *
 * Telling pollers costs nothing unless info/notify_delay is 0.
 *
 * Context: may sleep.
 */
void neuron_counter_change(struct neuron_device *nd, struct neuron_counter *c, u64 bytes,
			   u64 last, bool add)
{
	s64 total, peak;

	total = atomic64_add_return(add ? bytes : -bytes, &c->total);
	atomic64_set(&c->present, last);
	peak = atomic64_read(&c->peak);
	while (add && total > peak && !atomic64_try_cmpxchg(&c->peak, &peak, total))
		;
	if (static_branch_unlikely(&neuron_notify))
		neuron_counter_changed(nd, c);
}
