/* SPDX-License-Identifier: GPL-2.0-only */
/* What debugfs shows of the allocator. */
#ifndef NEURON_MEM_DEBUGFS_H
#define NEURON_MEM_DEBUGFS_H

#include <linux/types.h>

struct neuron_device;

void neuron_debugfs_init(void);
void neuron_debugfs_exit(void);
void neuron_debugfs_add(struct neuron_device *nd);
void neuron_debugfs_del(struct neuron_device *nd);

#endif
