/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of collective operations, as neuron-preflight is asked for it. */
#ifndef NEURON_TOOLS_COLLECTIVE_H
#define NEURON_TOOLS_COLLECTIVE_H

#include <stdio.h>
#include <string.h>

#include <neuron/neuron.h>

#include "../common/sums.h"
#include "options.h"

struct collective {
	uint64_t bytes;				/* that were given, or an operation: */
	struct neuron_collective operation;
	bool reduces;
	enum neuron_neff_dtype type;
};

/* What may follow an operation, in any order. */
static inline void collective_detail(struct collective *c, const char *word, const char *arg,
				     struct argp_state *state)
{
	enum neuron_neff_dtype type = neuron_neff_dtype_parse(word);

	if (!strcmp(word, "in-place"))
		c->operation.in_place = true;
	else if (type != NEURON_NEFF_DT_UNKNOWN)
		c->type = type;
	else
		argp_error(state, "%s is not MIB, nor all-gather, all-reduce or reduce-scatter:SIZE:RANKS[:TYPE][:in-place]",
			   arg);
}

/* "512" MiB, "all-reduce:64M:16", or that with ":int8" or ":in-place" or both. */
static inline void collective_read(struct collective *c, const char *arg, struct argp_state *state)
{
	char name[16] = "", size[24], ranks[8], details[2][16];
	struct neuron_collective *o = &c->operation;
	int n = sscanf(arg, "%15[^:]:%23[^:]:%7[^:]:%15[^:]:%15s", name, size, ranks, details[0],
		       details[1]);
	bool gathers = !strcmp(name, "all-gather"), scatters = !strcmp(name, "reduce-scatter");

	*c = (struct collective){ .reduces = !gathers, .type = NEURON_NEFF_DT_FLOAT32 };
	if (n == 1 && !strchr(arg, ':')) {
		c->bytes = number(arg, 0, 1ul << 30, state) << 20;
		return;
	}
	if (n < 3 || (!gathers && !scatters && strcmp(name, "all-reduce")))
		collective_detail(c, "", arg, state);
	for (int i = 3; i < n; i++)
		collective_detail(c, details[i - 3], arg, state);
	o->size = sizeof(*o);
	o->in = size_of(size, state);
	o->ranks = (uint32_t)number(ranks, 1, 1024, state);
	o->out = scatters ? o->in / o->ranks : o->in;
	if (gathers && __builtin_mul_overflow(o->in, o->ranks, &o->out))
		o->out = UINT64_MAX;
	if (c->reduces && !sums_fit(c->type))
		o->sums = o->out / neuron_neff_dtype_size(c->type) * sizeof(float);
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
