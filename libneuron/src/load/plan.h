/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a model needs of device memory; nothing of it needs a device. */
#ifndef NEURON_LIB_PLAN_H
#define NEURON_LIB_PLAN_H

#include "loader.h"

/* Instructions fetched by one descriptor. */
#define FETCH_BYTES 4096u

/* Words that a variable has for addresses of others. */
static inline size_t pointer_count(const struct neuron_neff_var *v)
{
	return v->type == NEURON_NEFF_VAR_POINTER ? v->referenced != NULL :
	       v->type == NEURON_NEFF_VAR_DGE_TABLE ? v->nr_list : 0;
}

void load_plan_need(struct loader *l);
int load_plan_variables(struct loader *l);
int load_plan_ring(struct loader *l, struct ring *ring, uint64_t *account);
int load_plan_programs(struct loader *l);
/*
 * After this, usage is what will be allocated, to the byte; or, @held, what was so far.
 */
int load_account(struct loader *l, bool held);

#endif
