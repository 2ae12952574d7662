/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of ioctls. */
#ifndef NEURON_CORE_IOCTL_H
#define NEURON_CORE_IOCTL_H

#include <linux/types.h>

struct file;

int neuron_ioctl_init(void);
long neuron_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

#endif
