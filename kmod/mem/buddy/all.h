/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole allocator as part of one source: for tests, which choose its constants
 * before this and look at everything after it. Not part of the module.
 */
#ifndef NEURON_BUDDY_ALL_H
#define NEURON_BUDDY_ALL_H

#include "pool.c"
#include "trees.c"
#include "extents.c"
#include "frames.c"
#include "clear.c"
#include "sizes.c"
#include "placement.c"
#include "api.c"
#include "create.c"
#include "check.c"

#endif
