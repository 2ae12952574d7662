/* SPDX-License-Identifier: GPL-2.0-only */
/* What keeps the programs on a device apart. */
#ifndef NEURON_BASE_ISOLATION_H
#define NEURON_BASE_ISOLATION_H

#include <linux/types.h>

struct neuron_device;

void neuron_isolation_init(struct neuron_device *nd);
const char *neuron_isolation_name(const struct neuron_device *nd);
void neuron_isolation_refused(struct neuron_device *nd, const char *what);
int neuron_domain_check(struct neuron_device *nd);
void neuron_domain_enter(struct neuron_device *nd);
void neuron_domain_exit(struct neuron_device *nd);
bool neuron_isolation_window(struct neuron_device *nd, u64 off, u64 len);

#endif
