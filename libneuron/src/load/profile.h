/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The buffers of a profile, in the order in which they are made: recording and plans share it. */
#ifndef NEURON_LIB_LOAD_PROFILE_H
#define NEURON_LIB_LOAD_PROFILE_H

#include "../device/device.h"

/* Notification queues and the other buffers of a core. */
#define PROFILE_MAX_BUFFERS 32u
#define PROFILE_NO_QUEUE UINT32_MAX

struct profile_buffer {
	uint32_t type;			/* NQ_TYPE_*, PROFILE_NO_QUEUE: just memory */
	uint32_t engine;
	uint64_t bytes;
	struct neuron_mem *mem;
};

/* Fills in the default sizes.  0; -EINVAL one of them cannot be */
int profile_sizes(struct neuron_profile_opts *o);
/* Of a core; to those of the sequencers and of throttling nothing writes yet.  Their number */
size_t profile_list(const struct neuron_geometry *g, const struct neuron_profile_opts *o,
		    struct profile_buffer list[PROFILE_MAX_BUFFERS]);

#endif
