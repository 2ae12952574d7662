/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the control group of this process allows of a device memory. */
#ifndef NEURON_CGROUP_H
#define NEURON_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

struct cgroup_limit {
	char path[256];			/* the group, as this process sees it */
	uint64_t bytes, used;		/* by all processes in it */
};

/*
 * Of the limits of its group and of those above, the one that leaves least.  False: there is
 * none, or none that this process can see.
 */
bool cgroup_limit(unsigned int device, uint32_t hbm, struct cgroup_limit *limit);

#endif
