/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers drawn from a seed, the same on each machine. */
#ifndef NEURON_TEST_DRAW_H
#define NEURON_TEST_DRAW_H

#include <stdint.h>

static uint64_t state;	/* the seed at first */

static inline uint64_t draw(uint64_t from, uint64_t to)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return from + (state >> 33) % (to - from + 1);
}

#endif
