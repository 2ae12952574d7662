// SPDX-License-Identifier: LGPL-2.1-or-later
/* Free blocks of a pool by length (fit.h). */
#include "fit.h"

static unsigned int bin_of(uint64_t bytes)
{
	unsigned int log = 63u - (unsigned int)__builtin_clzll(bytes | 4);

	return log << 2 | (bytes >> (log - 2) & 3);
}

static bool before(const struct neuron_mem_block *a, const struct neuron_mem_block *b)
{
	return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
}

/* Place in the heap: any number that has nothing to do with the order of lengths. */
static uint64_t rank(const struct neuron_mem_block *block)
{
	return block->address * 0x9e3779b97f4a7c15ull;
}

void fit_add(struct fit *fit, struct neuron_mem_block *block)
{
	unsigned int bin = bin_of(block->bytes);
	struct neuron_mem_block **link = &fit->root[bin], *rest;
	struct neuron_mem_block **left = &block->left, **right = &block->right;

	fit->some[bin / 64] |= 1ull << bin % 64;
	while (*link && rank(*link) >= rank(block))
		link = before(block, *link) ? &(*link)->left : &(*link)->right;
	rest = *link;
	*link = block;
	/* What was there comes below, on either side. */
	while (rest) {
		if (before(rest, block)) {
			*left = rest;
			left = &rest->right;
			rest = rest->right;
		} else {
			*right = rest;
			right = &rest->left;
			rest = rest->left;
		}
	}
	*left = *right = NULL;
}

void fit_remove(struct fit *fit, struct neuron_mem_block *block)
{
	unsigned int bin = bin_of(block->bytes);
	struct neuron_mem_block **link = &fit->root[bin];
	struct neuron_mem_block *left = block->left, *right = block->right;

	while (*link != block)
		link = before(block, *link) ? &(*link)->left : &(*link)->right;
	while (left && right) {
		if (rank(left) >= rank(right)) {
			*link = left;
			link = &left->right;
			left = left->right;
		} else {
			*link = right;
			link = &right->left;
			right = right->left;
		}
	}
	*link = left ? left : right;
	if (!fit->root[bin])
		fit->some[bin / 64] &= ~(1ull << bin % 64);
}

/* The first bin from @bin on that has a block, or FIT_BINS. */
static unsigned int bin_from(const struct fit *fit, unsigned int bin)
{
	for (unsigned int word = bin / 64; word < FIT_BINS / 64; word++) {
		uint64_t some = fit->some[word];

		if (word == bin / 64)
			some &= ~0ull << bin % 64;
		if (some)
			return word * 64 + (unsigned int)__builtin_ctzll(some);
	}
	return FIT_BINS;
}

struct neuron_mem_block *fit_find(const struct fit *fit, uint64_t bytes)
{
	unsigned int bin = bin_of(bytes);
	struct neuron_mem_block *found = NULL;

	for (struct neuron_mem_block *b = fit->root[bin]; b;) {
		if (b->bytes >= bytes) {
			found = b;
			b = b->left;
		} else {
			b = b->right;
		}
	}
	/* All of a later bin are long enough. */
	bin = found || bin == FIT_BINS - 1 ? FIT_BINS : bin_from(fit, bin + 1);
	if (bin < FIT_BINS)
		for (found = fit->root[bin]; found->left; found = found->left)
			;
	return found;
}

struct neuron_mem_block *fit_last(const struct fit *fit)
{
	for (unsigned int word = FIT_BINS / 64; word-- > 0;) {
		struct neuron_mem_block *b;

		if (!fit->some[word])
			continue;
		b = fit->root[word * 64 + 63 - (unsigned int)__builtin_clzll(fit->some[word])];
		while (b->right)
			b = b->right;
		return b;
	}
	return NULL;
}
