/* SPDX-License-Identifier: GPL-2.0-only */
/* Work that sleeps for long. */
#ifndef NEURON_BASE_WORKQUEUE_H
#define NEURON_BASE_WORKQUEUE_H

#include <linux/workqueue.h>

int neuron_workqueue_init(void);
void neuron_queue_work(struct work_struct *work);
void neuron_queue_work_later(struct delayed_work *work, unsigned long delay);
void neuron_queue_work_now(struct delayed_work *work);
void neuron_workqueue_exit(void);

#endif
