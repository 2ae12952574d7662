/* SPDX-License-Identifier: GPL-2.0-only */
/* The sysfs tree of a device. */
#ifndef NEURON_SYSFS_TREE_H
#define NEURON_SYSFS_TREE_H

#include <linux/types.h>

struct neuron_device;

void neuron_sysfs_init(void);
int neuron_sysfs_add(struct neuron_device *nd);
void neuron_sysfs_del(struct neuron_device *nd);

#endif
