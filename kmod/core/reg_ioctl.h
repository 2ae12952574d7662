/* SPDX-License-Identifier: GPL-2.0-only */
/* Registers as user space sees them. */
#ifndef NEURON_CORE_REG_IOCTL_H
#define NEURON_CORE_REG_IOCTL_H

#include <linux/types.h>

struct neuron_device;

/*
 * Base of the register addresses that user space forms.  Any value will do as
 * long as base + offset comes back; it must not be a kernel address.
 */
#define NEURON_BAR_COOKIE(i)	((u64)((i) + 1) << 60)

u32 neuron_cores_bar_entry(struct neuron_device *nd);
u64 neuron_bar_size(struct neuron_device *nd);

#endif
