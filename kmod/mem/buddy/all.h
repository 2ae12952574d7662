/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole allocator as part of one source: for tests, which choose its constants
 * before this and look at everything after it. Not part of the module.
 */
#ifndef NEURON_BUDDY_ALL_H
#define NEURON_BUDDY_ALL_H

#include "build.c"
#include "check.c"

#endif
