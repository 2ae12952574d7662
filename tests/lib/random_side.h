/* SPDX-License-Identifier: GPL-2.0-only */
/* Random sides of transfers (struct neuron_neff_side), and where their elements are. */
#ifndef RANDOM_SIDE_H
#define RANDOM_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <neuron/neff.h>
#include "dma_ref.h"

#define SIDE_BYTES	(1u << 18)	/* of one side; more than any of them needs */

static uint64_t rng = 88172645463325252ULL;

static inline uint64_t rnd(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

/* Where element @i of a side is. */
static inline uint64_t element(const struct neuron_neff_side *s, uint64_t i, uint32_t size)
{
	uint64_t inner = s->size[0] / size, address = s->off;

	address += i % inner * (s->step[0] == 1 ? size : s->step[0]);
	i /= inner;
	for (uint32_t k = 1; k < s->ndim; k++) {
		address += i % s->size[k] * s->step[k];
		i /= s->size[k];
	}
	return address;
}

/* @n elements of @size bytes in up to four dimensions; elements do not overlap. */
static inline void random_side(struct neuron_neff_side *s, enum neuron_neff_dtype dtype, uint64_t n,
			       uint32_t size, bool source)
{
	uint64_t span;

	memset(s, 0, sizeof(*s));
	s->dtype = dtype;
	s->bytes = n * size;
	s->off = rnd(50);
	s->ndim = 1 + (uint32_t)rnd(4);
	for (uint32_t i = s->ndim - 1; i > 0; i--) {
		s->size[i] = 1;
		/* a divisor of what is left */
		for (uint64_t d = 1 + rnd(8); d > 1; d--)
			if (n % d == 0) {
				s->size[i] = d;
				break;
			}
		n /= s->size[i];
	}
	s->size[0] = n * size;
	s->step[0] = size == ref_dtype_size((uint8_t)dtype) && rnd(4) == 0 ? size + rnd(5) : 1;
	span = s->step[0] == 1 ? n * size : n * (s->step[0] > size ? s->step[0] : size);
	for (uint32_t i = 1; i < s->ndim; i++) {
		s->step[i] = source && rnd(6) == 0 ? 0 : span + (rnd(2) ? rnd(20) : 0);
		span += (s->size[i] - 1) * s->step[i];
	}
}

#endif /* RANDOM_SIDE_H */
