/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices by number. */
#ifndef NEURON_BASE_DEVICES_H
#define NEURON_BASE_DEVICES_H

#include <linux/device.h>
#include <linux/mutex.h>

struct neuron_device;

extern struct class neuron_class;
int neuron_devices_init(void);
void neuron_devices_exit(void);
int neuron_minor_get(int wanted);
void neuron_minor_put(int minor);
dev_t neuron_devt(int minor);
extern struct mutex neuron_devices_lock;
struct neuron_device *neuron_device_lookup(u32 index);
void neuron_device_set(u32 index, struct neuron_device *nd);
int neuron_devices_reap(u32 seen);

#endif
