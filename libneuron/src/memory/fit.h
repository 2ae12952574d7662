/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Free blocks of a pool by length, to find the tightest.  Four bins for each power of two,
 * so that a search meets few blocks; each bin is a search tree that is also a heap of
 * numbers drawn from addresses, and so has a depth of O(log n) whatever comes and goes.
 */
#ifndef NEURON_LIB_FIT_H
#define NEURON_LIB_FIT_H

#include "block.h"

#define FIT_BINS 256u

struct fit {
	uint64_t some[FIT_BINS / 64];	/* bins that have a block */
	struct neuron_mem_block *root[FIT_BINS];
};

void fit_add(struct fit *fit, struct neuron_mem_block *block);
void fit_remove(struct fit *fit, struct neuron_mem_block *block);
/* The shortest of at least so many bytes, of these the one with the lowest address; or NULL. */
struct neuron_mem_block *fit_find(const struct fit *fit, uint64_t bytes);
/* The longest, or NULL. */
struct neuron_mem_block *fit_last(const struct fit *fit);

#endif
