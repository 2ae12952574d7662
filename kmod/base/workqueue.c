// SPDX-License-Identifier: GPL-2.0-only
/* Work that sleeps for long has a queue of its own. */
#include <linux/workqueue.h>

#include "workqueue.h"

static struct workqueue_struct *neuron_long_wq;

int neuron_workqueue_init(void)
{
	/* Other devices may wait for a copy while they look for memory. */
	neuron_long_wq = alloc_workqueue("neuron_copy", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return neuron_long_wq ? 0 : -ENOMEM;
}

/**
 * neuron_queue_work() - queue work that takes long
 * @work: the teardown of its process waits for it
 *
 * Context: any.
 */
void neuron_queue_work(struct work_struct *work)
{
	queue_work(neuron_long_wq, work);
}

/**
 * neuron_queue_work_later() - queue work for some time, unless it is queued already
 * @work: the work
 * @delay: jiffies
 *
 * Context: any.
 */
void neuron_queue_work_later(struct delayed_work *work, unsigned long delay)
{
	queue_delayed_work(neuron_long_wq, work, delay);
}

/**
 * neuron_queue_work_now() - queue work, also if it is queued for later
 * @work: the work
 *
 * Context: any.
 */
void neuron_queue_work_now(struct delayed_work *work)
{
	mod_delayed_work(neuron_long_wq, work, 0);
}

void neuron_workqueue_exit(void)
{
	destroy_workqueue(neuron_long_wq);
}
