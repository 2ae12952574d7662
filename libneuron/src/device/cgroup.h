/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the control group of this process allows of device memories and of host memory. */
#ifndef NEURON_CGROUP_H
#define NEURON_CGROUP_H

#include <stdbool.h>

#include <neuron/device.h>

struct cgroup_limit {
	char path[256];			/* the group, as this process sees it; "": there is none */
	uint64_t bytes, used;		/* by all processes in it; of host memory, at least */
};

struct cgroup_limits {
	struct cgroup_limit hbm[NEURON_MAX_HBMS], host;
	bool swap;			/* memory of a process can make room for other memory */
};

/*
 * For each of @hbms, a bit each, and for host memory: of the limits of its group and of those above
 * the one that leaves least, if this process can see one.  Each file is read once.
 */
void cgroup_limits(unsigned int device, uint32_t hbms, struct cgroup_limits *limits);

#endif
