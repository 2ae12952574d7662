/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory counters, as sysfs shows them. */
#ifndef NEURON_BASE_COUNTER_H
#define NEURON_BASE_COUNTER_H

#include <linux/atomic.h>
#include <linux/jump_label.h>

struct kernfs_node;
struct neuron_device;

/**
 * struct neuron_counter - one memory counter as sysfs shows it; bytes
 * @total: now in use
 * @present: size of the last change
 * @peak: highest @total
 * @dir: its directory in sysfs, or NULL
 */
struct neuron_counter {
	atomic64_t total;
	atomic64_t present;
	atomic64_t peak;
	struct kernfs_node *dir;
};

/* info/notify_delay: 0 = tell pollers of changes; one switch for all devices. */
DECLARE_STATIC_KEY_FALSE(neuron_notify);
void neuron_counter_tell(struct neuron_counter *c);
void neuron_counter_changed(struct neuron_device *nd, struct neuron_counter *c);

/**
 * neuron_counter_change() - count memory that was allocated or freed
 * @nd: device
 * @c: counter
 * @bytes: how much
 * @last: size of the last allocation in @bytes
 * @add: it was allocated
 *
 * Pollers cost nothing unless info/notify_delay is 0.
 *
 * Context: may sleep.
 */
static inline void neuron_counter_change(struct neuron_device *nd, struct neuron_counter *c,
					 u64 bytes, u64 last, bool add)
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

#endif
