/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knowledge about cleared memory.
 */
#ifndef NEURON_BUDDY_CLEAR_H
#define NEURON_BUDDY_CLEAR_H

#include "zone.h"

static void clean_set(struct neuron_buddy *zone, u32 start, u32 n, bool clean);
static bool clean_test(const struct neuron_buddy *zone, u32 start, u32 n);

#endif
