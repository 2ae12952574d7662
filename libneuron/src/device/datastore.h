/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statistics: what a process counts in its datastore of a device. The driver adds it up
 * over all processes and shows it in sysfs (stats/status, stats/other_info). Without a
 * datastore - there are as many as processes can have a device open - nothing is counted.
 */
#ifndef NEURON_LIB_DATASTORE_H
#define NEURON_LIB_DATASTORE_H

#include "device.h"

/* Handles of one device share the datastore of the process; any number of times. */
void stats_open(struct neuron_device *device);
/* The driver keeps it until the process has closed the device. */
void stats_close(struct neuron_device *device);

/* @counter: NDS_NC_COUNTER_* or NDS_EXT_NC_COUNTER_* */
void stats_add(const struct neuron_device *device, uint32_t nc, unsigned int counter, uint64_t n);
void stats_set(const struct neuron_device *device, uint32_t nc, unsigned int counter, uint64_t n);
/* @counter: NDS_ND_COUNTER_*, of the device and not of a core */
void stats_add_host(const struct neuron_device *device, unsigned int counter, uint64_t n);

#endif
