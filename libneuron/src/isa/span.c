// SPDX-License-Identifier: LGPL-2.1-or-later
#include <neuron/neuron.h>

#include "../../common/util.h"
#include "span.h"

static void span_add(struct span *s, uint64_t size, uint64_t step)
{
	uint32_t last = s->ndim - 1;

	if (size == 1)
		return;
	/* Rows that lie end to end are one longer row. */
	if (step == s->step[last] * s->size[last]) {
		s->size[last] *= size;
		return;
	}
	s->size[s->ndim] = size;
	s->step[s->ndim] = step;
	s->ndim++;
}

struct span span_of(const struct neuron_neff_side *side, uint64_t base)
{
	struct span s = { .base = base, .ndim = 1 };
	uint64_t run = neuron_neff_side_run(side);

	s.size[0] = run;
	s.step[0] = 1;
	span_add(&s, side->size[0] / run, side->step[0]);
	for (uint32_t i = 1; i < side->ndim; i++)
		span_add(&s, side->size[i], side->step[i]);
	return s;
}

uint64_t span_end(const struct neuron_neff_side *side)
{
	uint64_t run = neuron_neff_side_run(side);
	uint64_t end = side->off + run + (side->size[0] / run - 1) * side->step[0];

	for (uint32_t i = 1; i < side->ndim; i++)
		end += (side->size[i] - 1) * side->step[i];
	return end;
}

void span_start(struct span_iter *it, const struct span *span)
{
	*it = (struct span_iter){
		.span = *span,
		.address = span->base,
		.left = span->size[0],
	};
}

void span_advance(struct span_iter *it, uint64_t bytes)
{
	uint64_t address = it->span.base;

	it->address += bytes;
	it->left -= bytes;
	if (it->left)
		return;
	for (uint32_t i = 1; i < it->span.ndim; i++) {
		if (++it->index[i] < it->span.size[i]) {
			for (uint32_t k = i; k < it->span.ndim; k++)
				address += it->index[k] * it->span.step[k];
			it->address = address;
			it->left = it->span.size[0];
			return;
		}
		it->index[i] = 0;
	}
	it->done = true;
}

void piece_start(struct piece_iter *it, const struct span *dst, const struct span *src)
{
	span_start(&it->dst, dst);
	span_start(&it->src, src);
}

bool piece_next(struct piece_iter *it, struct piece *piece)
{
	uint64_t bytes = MIN(MIN(it->dst.left, it->src.left), NEURON_DESC_MAX_BYTES);

	if (it->dst.done || it->src.done)
		return false;
	piece->dst = it->dst.address;
	piece->src = it->src.address;
	piece->bytes = (uint32_t)bytes;
	span_advance(&it->dst, bytes);
	span_advance(&it->src, bytes);
	return true;
}

uint64_t piece_count(const struct span *dst, const struct span *src, uint64_t limit)
{
	struct piece_iter it;
	struct piece piece;
	uint64_t count = 0;

	/* Long plain transfers need not be walked. */
	if (dst->ndim == 1 && src->ndim == 1) {
		count = (dst->size[0] - 1) / NEURON_DESC_MAX_BYTES + 1;
		return count > limit ? limit + 1 : count;
	}
	piece_start(&it, dst, src);
	while (piece_next(&it, &piece))
		if (++count > limit)
			break;
	return count;
}
