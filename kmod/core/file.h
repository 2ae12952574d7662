/* SPDX-License-Identifier: GPL-2.0-only */
/* The character device. */
#ifndef NEURON_CORE_FILE_H
#define NEURON_CORE_FILE_H

#include <linux/types.h>

struct neuron_device;

extern const struct file_operations neuron_fops;
int neuron_inode_get(struct neuron_device *nd);
void neuron_inode_put(struct neuron_device *nd);

#endif
