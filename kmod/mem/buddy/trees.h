/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trees of maxima over the frames of a zone.
 */
#ifndef NEURON_BUDDY_TREES_H
#define NEURON_BUDDY_TREES_H

#include "zone.h"

static inline u32 tree_top(const struct tree *t)
{
	return t->level[t->levels - 1][0];
}

static void tree_set(struct tree *t, u32 i, u32 value);
static u32 tree_next(const struct tree *t, u32 i, u32 need);
static u32 tree_prev(const struct tree *t, u32 i, u32 need);
static int tree_create(struct neuron_buddy *zone, struct tree *t);

#endif
