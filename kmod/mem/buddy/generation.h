/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generations and obituaries, which detect stale blocks.
 */
#ifndef NEURON_BUDDY_GENERATION_H
#define NEURON_BUDDY_GENERATION_H

#include "zone.h"

static inline struct obit *obit_of(struct neuron_buddy *zone, u32 start)
{
	return &zone->obits[(start * 0x9e3779b1u) >> zone->obit_shift];
}

static inline u32 gen_next(struct neuron_buddy *zone, u32 start)
{
	const struct obit *o = obit_of(zone, start);

	do {
		zone->gen = (zone->gen + 1) & GEN_MASK;
	} while (!zone->gen || (o->start == start && o->gen == zone->gen));
	return zone->gen;
}

static inline void obit_add(struct neuron_buddy *zone, const struct neuron_buddy_block *block)
{
	u32 start = (u32)(block->addr >> SHIFT);
	struct obit *o = obit_of(zone, start);

	o->start = start;
	o->gen = block->gen;
}

#endif
