/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Figures of pools over time. */
#ifndef NEURON_LIB_FIGURE_H
#define NEURON_LIB_FIGURE_H

#include <neuron/pool.h>

static inline void figure_add(struct neuron_pool_figure *f, uint64_t n)
{
	f->current += n;
	f->allocated += n;
	if (f->current > f->peak)
		f->peak = f->current;
}

static inline void figure_sub(struct neuron_pool_figure *f, uint64_t n)
{
	f->current -= n;
	f->freed += n;
}

#endif
