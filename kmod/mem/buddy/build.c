// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator as one object of the module, as kernel/sched/build_policy.c does it: an allocation
 * goes through a dozen short functions of these files, most of which have one caller, and
 * the compiler can only put them together if it sees all of them.
 */
#include "pool.c"
#include "trees.c"
#include "extents.c"
#include "frames.c"
#include "clear.c"
#include "sizes.c"
#include "placement.c"
#include "api.c"
#include "create.c"
