/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * DMA queues of a core that models can have.  They are handed out by slot: consecutive
 * slots are on different DMA engines.  The first ones fetch the instructions of the
 * engines.
 */
#ifndef NEURON_LIB_SLOTS_H
#define NEURON_LIB_SLOTS_H

#include <neuron/neuron.h>

/* Queues 14 and 15 have conventional users (sequencers, collectives; uapi/FACTS.md 5). */
#define QUEUES_PER_ENGINE 14u

static inline uint32_t slot_engine(const struct neuron_geometry *g, uint32_t slot)
{
	return slot % g->engines_per_core;
}

static inline uint32_t slot_queue(const struct neuron_geometry *g, uint32_t slot)
{
	return slot / g->engines_per_core;
}

static inline uint32_t core_slots(const struct neuron_geometry *g)
{
	return (g->nr_queues < QUEUES_PER_ENGINE ? g->nr_queues : QUEUES_PER_ENGINE) *
	       g->engines_per_core;
}

#endif
