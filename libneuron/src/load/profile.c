// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which buffers a profile has on a core (profile.h). */
#include <errno.h>

#include "../device/opts.h"
#include "../isa/names.h"
#include "profile.h"

#define MIN_BUFFER 4096u
#define MAX_BUFFER (1ull << 30)

/* Sizes that together give the 2 GB of the device memory document, "Profile Buffers". */
static const uint64_t default_bytes[NEURON_PROFILE_NR_BUFFERS] = {
	[NEURON_PROFILE_EVENT] = 128 * MIB,
	[NEURON_PROFILE_DMA] = 64 * MIB,
	[NEURON_PROFILE_THROTTLE] = 64 * MIB,
	[NEURON_PROFILE_CC_CORE_INSTRUCTION] = 64 * MIB,
	[NEURON_PROFILE_CC_CORE_EVENT] = 64 * MIB,
};

int profile_sizes(struct neuron_profile_opts *o)
{
	for (int i = 0; i < NEURON_PROFILE_NR_BUFFERS; i++) {
		uint64_t *bytes = &o->bytes[i];

		if (!*bytes)
			*bytes = default_bytes[i];
		if (*bytes & (*bytes - 1) || *bytes < MIN_BUFFER || *bytes > MAX_BUFFER)
			return -EINVAL;
	}
	for (int i = NEURON_PROFILE_NR_BUFFERS; i < NEURON_PROFILE_MAX_KINDS; i++)
		if (o->bytes[i])
			return -EINVAL;
	return 0;
}

static void add_buffer(struct profile_buffer *list, size_t *nr, uint32_t type, uint32_t engine,
		       uint64_t bytes)
{
	list[(*nr)++] = (struct profile_buffer){ .type = type, .engine = engine, .bytes = bytes };
}

size_t profile_list(const struct neuron_geometry *g, const struct neuron_profile_opts *o,
		    struct profile_buffer list[PROFILE_MAX_BUFFERS])
{
	const uint64_t *bytes = o->bytes;
	size_t nr = 0;

	for (uint32_t e = 0; e < NR_ENGINES && e < g->nr_nq_engines; e++)
		add_buffer(list, &nr, NQ_TYPE_TRACE, e, bytes[NEURON_PROFILE_EVENT]);
	add_buffer(list, &nr, NQ_TYPE_EVENT, 0, bytes[NEURON_PROFILE_EVENT]);
	for (uint32_t e = 0; g->nr_nq_types > NQ_TYPE_TRACE_DMA && e < g->engines_per_core &&
			     e < g->nr_nq_engines && e < 16; e++)
		add_buffer(list, &nr, NQ_TYPE_TRACE_DMA, e, bytes[NEURON_PROFILE_DMA]);
	for (int i = NEURON_PROFILE_THROTTLE; i < NEURON_PROFILE_NR_BUFFERS; i++)
		add_buffer(list, &nr, PROFILE_NO_QUEUE, 0, bytes[i]);
	return nr;
}

NEURON_EXPORT uint64_t neuron_profile_memory(const struct neuron_geometry *geometry,
					     const struct neuron_profile_opts *opts)
{
	struct profile_buffer list[PROFILE_MAX_BUFFERS];
	struct neuron_profile_opts o;
	uint64_t sum = 0;
	size_t nr;

	if (opts_copy(&o, sizeof(o), opts) || profile_sizes(&o))
		return 0;
	nr = profile_list(geometry, &o, list);
	for (size_t i = 0; i < nr; i++)
		sum += round_up(list[i].bytes, host_page());
	return sum;
}
