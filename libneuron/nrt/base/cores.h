/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cores of this host, before the process has any. */
#ifndef NRT_CORES_H
#define NRT_CORES_H

#include <stdbool.h>

#include <neuron/neuron.h>

/* Logical cores as in NEURON_RT_VISIBLE_CORES: an ascending run without gaps. */
bool nrt_parse_cores(const char *text, uint32_t *start, uint32_t *count);
/* Two cores of the device can be a logical one. */
bool nrt_has_pairs(const struct neuron_device_entry *entry);
/*
 * Physical cores of all devices, which are listed in any case; each entry has its number of
 * cores afterwards.  0 or -errno.
 */
int nrt_count_cores(uint32_t *total, struct neuron_device_entry **list, size_t *nr);
/*
 * Logical cores, of @lnc physical ones, from *@start on that a process gets without asking for
 * some: those that it may open.  0: it may open none.  Opens each device for a moment.
 */
uint32_t nrt_usable_cores(const struct neuron_device_entry *list, size_t nr, uint32_t lnc,
			  uint32_t *start);

#endif
