/* SPDX-License-Identifier: GPL-2.0-only */
/* The operations of a device, as long as it is there. */
#ifndef NEURON_BASE_HW_H
#define NEURON_BASE_HW_H

#include <linux/types.h>

struct neuron_device;
struct neuron_hw_ops;

extern const struct neuron_hw_ops neuron_hw_ops;
bool neuron_device_enter(struct neuron_device *nd, int *idx);
void neuron_device_exit(struct neuron_device *nd, int idx);
void neuron_hw_synchronize(struct neuron_device *nd);

#endif
