/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of collective operations, as neuron-preflight is asked for it. */
#ifndef NEURON_TOOLS_COLLECTIVE_H
#define NEURON_TOOLS_COLLECTIVE_H

#include <stdio.h>
#include <string.h>

#include <neuron/neuron.h>

#include "options.h"

struct collective {
	uint64_t bytes;				/* that were given, or an operation: */
	struct neuron_collective operation;
	bool reduces;
};

/* "512" MiB, "all-reduce:64M:16", or that with ":in-place". */
static inline void collective_read(struct collective *c, const char *arg, struct argp_state *state)
{
	char name[16] = "", size[24], ranks[8], place[16];
	struct neuron_collective *o = &c->operation;
	int n = sscanf(arg, "%15[^:]:%23[^:]:%7[^:]:%15s", name, size, ranks, place);
	bool gathers = !strcmp(name, "all-gather"), scatters = !strcmp(name, "reduce-scatter");

	*c = (struct collective){ .reduces = !gathers };
	if (n == 1 && !strchr(arg, ':')) {
		c->bytes = number(arg, 0, 1ul << 30, state) << 20;
		return;
	}
	if (n < 3 || (!gathers && !scatters && strcmp(name, "all-reduce")) ||
	    (n == 4 && strcmp(place, "in-place")))
		argp_error(state, "%s is not MIB, nor all-gather, all-reduce or reduce-scatter:SIZE:RANKS[:in-place]",
			   arg);
	o->size = sizeof(*o);
	o->in = size_of(size, state);
	o->ranks = (uint32_t)number(ranks, 1, 1024, state);
	o->out = scatters ? o->in / o->ranks : o->in;
	if (gathers && __builtin_mul_overflow(o->in, o->ranks, &o->out))
		o->out = UINT64_MAX;
	o->in_place = n == 4;
}

/* For devices with so many logical cores, each of which is a rank. */
static inline void collective_plan(struct collective *c, uint32_t cores,
				   struct neuron_plan_opts *plan)
{
	c->operation.devices = c->operation.ranks > cores;
	plan->collectives = c->operation.ranks ? neuron_collective_staging(&c->operation) : c->bytes;
	plan->computes = c->reduces && (c->bytes || c->operation.ranks);
}

#endif
