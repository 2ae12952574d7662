// SPDX-License-Identifier: LGPL-2.1-or-later
#include <endian.h>
#include <string.h>

#include "../memory/mem.h"
#include "transfer.h"

/* Rows and columns of a tile of a transpose: the largest that one packet can hold. */
#define TILE NEURON_ISA_DMA_MAX_DESCS

static uint32_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* Of min and max. */
static const char *set_constant(struct transfer *t, const struct neuron_neff_desc *d)
{
	bool is_signed = d->constant_dtype == NEURON_NEFF_DT_INT32;

	if (d->constant_dtype == NEURON_NEFF_DT_UNKNOWN)
		return NULL;
	if (d->constant_dtype == NEURON_NEFF_DT_FLOAT32) {
		t->arg = float_bits((float)d->constant);
		t->meta |= NEURON_ISA_DMA_ARG(NEURON_ISA_DMA_ARG_FP32);
		return NULL;
	}
	if (!(d->constant >= (is_signed ? INT32_MIN : 0) &&
	      d->constant <= (is_signed ? INT32_MAX : UINT32_MAX)) ||
	    d->constant != (double)(int64_t)d->constant)
		return is_signed ? "constant is not an int32" : "constant is not a uint32";
	t->arg = (uint32_t)(int64_t)d->constant;
	t->meta |= NEURON_ISA_DMA_ARG(is_signed ? NEURON_ISA_DMA_ARG_INT32 :
						  NEURON_ISA_DMA_ARG_UINT32);
	return NULL;
}

/* Runs of contiguous bytes that @bytes of a span can touch. */
static uint64_t runs(const struct span *span, uint64_t bytes)
{
	return span->ndim == 1 ? 1 : (bytes + span->size[0] - 2) / span->size[0] + 1;
}

static const char *start_transpose(struct transfer *t, const struct neuron_neff_desc *d)
{
	uint32_t size = d->transpose_element_size;

	if (d->from[0].bytes != d->to.bytes)
		return "transpose between different sizes";
	t->rows = TILE;
	t->cols = TILE;
	while (t->rows * runs(&t->src[0].span, (uint64_t)t->cols * size) > TILE ||
	       t->cols * runs(&t->dst.span, (uint64_t)t->rows * size) > TILE) {
		if (t->rows >= t->cols)
			t->rows /= 2;
		else
			t->cols /= 2;
	}
	return NULL;
}

const char *transfer_start(struct transfer *t, const struct neuron_neff_desc *d,
			   const struct span *dst, const struct span *src)
{
	static const uint8_t ops[] = {
		[NEURON_NEFF_OP_CAST] = NEURON_ISA_DMA_CAST,
		[NEURON_NEFF_OP_FMA] = NEURON_ISA_DMA_FMA,
		[NEURON_NEFF_OP_ADD] = NEURON_ISA_DMA_ADD,
		[NEURON_NEFF_OP_MIN] = NEURON_ISA_DMA_MIN,
		[NEURON_NEFF_OP_MAX] = NEURON_ISA_DMA_MAX,
		[NEURON_NEFF_OP_TRANSPOSE] = NEURON_ISA_DMA_TRANSPOSE,
	};

	memset(t, 0, sizeof(*t));
	t->desc = d;
	t->meta = NEURON_ISA_DMA_COMPUTE | NEURON_ISA_DMA_OP(ops[d->op]);
	span_start(&t->dst, dst);
	for (size_t i = 0; i < d->nr_from; i++)
		span_start(&t->src[i], &src[i]);
	if (d->op == NEURON_NEFF_OP_TRANSPOSE)
		return start_transpose(t, d);

	t->meta |= NEURON_ISA_DMA_DST(d->to.dtype);
	if (d->op == NEURON_NEFF_OP_FMA) {
		if (d->scale_dtype != NEURON_NEFF_DT_FLOAT32 &&
		    d->scale_dtype != NEURON_NEFF_DT_FP32R)
			return "scale is not a float32";
		t->arg = float_bits((float)d->scale);
		t->meta |= NEURON_ISA_DMA_ARG(NEURON_ISA_DMA_ARG_FP32);
	}
	return set_constant(t, d);
}

/* As many elements as lie contiguously everywhere. */
static bool next_elements(struct transfer *t, struct transfer_packet *p)
{
	const struct neuron_neff_desc *d = t->desc;
	uint32_t size = neuron_neff_dtype_size(d->to.dtype);
	uint64_t n;

	if (t->dst.done)
		return false;
	n = MIN(NEURON_DESC_MAX_BYTES / size, t->dst.left / size);
	for (size_t i = 0; i < d->nr_from; i++) {
		size = neuron_neff_dtype_size(d->from[i].dtype);
		n = MIN(n, MIN(t->src[i].left, NEURON_DESC_MAX_BYTES) / size);
	}
	p->nr_tx = (uint32_t)d->nr_from;
	p->nr_rx = 1;
	for (uint32_t i = 0; i < p->nr_tx; i++) {
		uint32_t bytes = (uint32_t)n * neuron_neff_dtype_size(d->from[i].dtype);

		p->tx[i] = (struct transfer_part){
			.address = t->src[i].address,
			.bytes = bytes,
			.meta = t->meta | NEURON_ISA_DMA_SRC(d->from[i].dtype),
			.source = i,
		};
		span_advance(&t->src[i], bytes);
	}
	p->rx[0] = (struct transfer_part){
		.address = t->dst.address,
		.bytes = (uint32_t)n * neuron_neff_dtype_size(d->to.dtype),
		.meta = t->arg,
	};
	span_advance(&t->dst, p->rx[0].bytes);
	return true;
}

/* Add the @bytes from byte @off of a span. */
static void add_runs(struct transfer_part *parts, uint32_t *nr, const struct span *span,
		     uint64_t off, uint64_t bytes, uint32_t meta)
{
	while (bytes) {
		uint64_t row = off / span->size[0], in = off % span->size[0];
		uint64_t now = MIN(span->size[0] - in, bytes), address = span->base + in;

		for (uint32_t i = 1; i < span->ndim; i++) {
			address += row % span->size[i] * span->step[i];
			row /= span->size[i];
		}
		parts[(*nr)++] = (struct transfer_part){
			.address = address, .bytes = (uint32_t)now, .meta = meta,
		};
		off += now;
		bytes -= now;
	}
}

/*
 * out[d3][d1][d2][d0] = in[d0][d1][d2][d3]: for each pair of d1 and d2 a matrix of
 * d0 rows and d3 columns, done in tiles.
 */
static bool next_tile(struct transfer *t, struct transfer_packet *p)
{
	const struct neuron_neff_desc *d = t->desc;
	const uint64_t *shape = d->transpose_shape;
	uint64_t nr_outer = shape[1] * shape[2], size = d->transpose_element_size;
	uint64_t rows = MIN(shape[0] - t->row, t->rows), cols = MIN(shape[3] - t->col, t->cols);

	if (t->outer == nr_outer)
		return false;
	p->nr_tx = 0;
	p->nr_rx = 0;
	for (uint64_t i = t->row; i < t->row + rows; i++)
		add_runs(p->tx, &p->nr_tx, &t->src[0].span,
			 ((i * nr_outer + t->outer) * shape[3] + t->col) * size, cols * size,
			 t->meta);
	for (uint64_t i = t->col; i < t->col + cols; i++)
		add_runs(p->rx, &p->nr_rx, &t->dst.span,
			 ((i * nr_outer + t->outer) * shape[0] + t->row) * size, rows * size, 0);
	p->rx[0].meta = NEURON_ISA_DMA_TRANSPOSED(rows, size);

	t->col += cols;
	if (t->col < shape[3])
		return true;
	t->col = 0;
	t->row += rows;
	if (t->row < shape[0])
		return true;
	t->row = 0;
	t->outer++;
	return true;
}

bool transfer_next(struct transfer *t, struct transfer_packet *packet)
{
	return t->desc->op == NEURON_NEFF_OP_TRANSPOSE ? next_tile(t, packet) :
							  next_elements(t, packet);
}

void transfer_descriptor(struct neuron_descriptor *d, const struct transfer_part *part,
			 bool first, bool last)
{
	d->control = htole32((part->bytes & 0xffff) | DESC_RING_ID_1 | (first ? DESC_FIRST : 0) |
			     (last ? DESC_LAST : 0));
	d->meta = htole32(part->meta);
	d->address = htole64(part->address);
}

void transfer_count(struct transfer t, uint64_t limit, uint64_t *tx, uint64_t *rx)
{
	struct transfer_packet packet;

	*tx = 0;
	*rx = 0;
	while (*tx <= limit && *rx <= limit && transfer_next(&t, &packet)) {
		*tx += packet.nr_tx;
		*rx += packet.nr_rx;
	}
}
