/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From strided transfers to runs of contiguous bytes.  Pure arithmetic. */
#ifndef NEURON_RING_H
#define NEURON_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <neuron/neff.h>

/* Those of a transfer, and one more for elements that lie apart. */
#define SPAN_DIMS (NEURON_NEFF_MAX_DIMS + 1)

/* One side of a transfer: innermost dimension first, size[0] contiguous bytes. */
struct span {
	uint64_t base;		/* address, or offset in a tensor not yet bound */
	uint32_t ndim;
	uint64_t size[SPAN_DIMS];
	uint64_t step[SPAN_DIMS];
};

struct span_iter {
	struct span span;
	uint64_t index[SPAN_DIMS];
	uint64_t address;	/* of the next byte */
	uint64_t left;		/* contiguous bytes from there */
	bool done;
};

/* Contiguous on both sides, at most 65536 bytes. */
struct piece {
	uint64_t dst;
	uint64_t src;
	uint32_t bytes;
};

struct piece_iter {
	struct span_iter dst;
	struct span_iter src;
};

/* The bytes of @side, which starts at @base. */
struct span span_of(const struct neuron_neff_side *side, uint64_t base);

/* First byte after the last one that @side touches, from the start of its variable. */
uint64_t span_end(const struct neuron_neff_side *side);

/* Step through the contiguous runs of a span; @bytes is at most @it->left. */
void span_start(struct span_iter *it, const struct span *span);
void span_advance(struct span_iter *it, uint64_t bytes);

/* Both sides must have the same number of bytes, not 0. */
void piece_start(struct piece_iter *it, const struct span *dst, const struct span *src);
bool piece_next(struct piece_iter *it, struct piece *piece);

/* Number of pieces; gives up beyond @limit and returns @limit + 1. */
uint64_t piece_count(const struct span *dst, const struct span *src, uint64_t limit);

#endif
