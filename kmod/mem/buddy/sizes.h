/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sizes in use, which decide what requests are small in this zone.
 */
#ifndef NEURON_BUDDY_SIZES_H
#define NEURON_BUDDY_SIZES_H

#include "zone.h"

static void sizes_add(struct neuron_buddy *zone, u32 n);
static void sizes_sub(struct neuron_buddy *zone, u32 n);
static u32 sizes_cut(struct neuron_buddy *zone);

#endif
