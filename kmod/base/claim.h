/* SPDX-License-Identifier: GPL-2.0-only */
/* Claims: cores that a process has reserved. */
#ifndef NEURON_BASE_CLAIM_H
#define NEURON_BASE_CLAIM_H

#include <linux/types.h>

struct neuron_core;
struct neuron_device;
struct pid;

bool neuron_core_reserved(struct neuron_device *nd, struct neuron_core *core,
			  const struct pid *pid);
void neuron_claims_drop(const void *via, const struct pid *pid);
void neuron_claims_drop_device(struct neuron_device *nd);

#endif
