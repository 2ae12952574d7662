// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each allocation and each free goes through, as one object of the module, as
 * kernel/sched/build_policy.c does it: most of these functions are short and have one caller,
 * and the compiler can only put them together if it sees all of them.
 */
#include "limit.c"
#include "account.c"
#include "hbm.c"
#include "chunk.c"
#include "handle.c"
