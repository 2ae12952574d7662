/* SPDX-License-Identifier: GPL-2.0-only */
/* What a device reports about itself. */
#ifndef NEURON_BASE_HEALTH_H
#define NEURON_BASE_HEALTH_H

#include <linux/types.h>

#include "neuron_hw.h"

struct neuron_device;

void neuron_health_init(struct neuron_device *nd);
void neuron_health_exit(struct neuron_device *nd);
u64 neuron_health_ecc(struct neuron_device *nd, enum neuron_event event);
void neuron_health_clear(struct neuron_device *nd, enum neuron_event event);
int neuron_health_power(struct neuron_device *nd, struct neuron_power *power);

#endif
