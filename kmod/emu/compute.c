// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arithmetic of the compute operations of DMA.  ISA.md section 11 defines it;
 * packet.c brings the operands.
 */
#include "compute.h"

/**
 * emu_dma_dtype_size() - bytes of one element
 * @dtype: enum neuron_isa_dtype
 *
 * Return: the size, 0 if @dtype is not an element type of DMA.
 */
u32 emu_dma_dtype_size(u8 dtype)
{
	switch (dtype) {
	case NEURON_ISA_DT_UINT64:
	case NEURON_ISA_DT_INT64:
		return 8;
	case NEURON_ISA_DT_FP32R:
		return 4;
	default:
		return emu_dtype_size(dtype);
	}
}

/* The type of 32 bits or less that stands for @dtype; 64-bit types are their own. */
static u8 base_dtype(u8 dtype)
{
	return dtype == NEURON_ISA_DT_FP32R ? NEURON_ISA_DT_FP32 : dtype;
}

static enum emu_form form_of(u8 dtype)
{
	switch (dtype) {
	case NEURON_ISA_DT_UINT8:
	case NEURON_ISA_DT_UINT16:
	case NEURON_ISA_DT_UINT32:
	case NEURON_ISA_DT_UINT64:
		return EMU_FORM_UINT;
	case NEURON_ISA_DT_INT8:
	case NEURON_ISA_DT_INT16:
	case NEURON_ISA_DT_INT32:
	case NEURON_ISA_DT_INT64:
		return EMU_FORM_SINT;
	default:
		return EMU_FORM_FLOAT;
	}
}

/* The form in which an operation computes. */
static enum emu_form compute_form(const struct emu_compute *c)
{
	enum emu_form form = EMU_FORM_UINT, f;
	u32 i;

	if (c->op == NEURON_ISA_DMA_ADD || c->op == NEURON_ISA_DMA_FMA ||
	    c->arg_type == NEURON_ISA_DMA_ARG_FP32)
		return EMU_FORM_FLOAT;
	if (c->arg_type == NEURON_ISA_DMA_ARG_INT32)
		form = EMU_FORM_SINT;
	for (i = 0; i < c->nr_src; i++) {
		f = form_of(c->src_dtype[i]);
		/* floats before signed before unsigned numbers */
		form = min_t(u32, form, f);
	}
	return form;
}

/* A number in another form; integers saturate. */
static u64 convert(u64 v, enum emu_form to, enum emu_form from)
{
	if (to == from)
		return v;
	if (from == EMU_FORM_FLOAT)
		return to == EMU_FORM_SINT ? (u64)emu_f32_to_s64((u32)v) : emu_f32_to_u64((u32)v);
	if (to == EMU_FORM_FLOAT)
		return from == EMU_FORM_SINT ? emu_s64_to_f32((s64)v) : emu_u64_to_f32(v);
	if (to == EMU_FORM_SINT)
		return min_t(u64, v, S64_MAX);
	return (s64)v < 0 ? 0 : v;
}

/* Elements of memory as numbers in @form. */
static void load(u64 *out, const u8 *src, u8 dtype, enum emu_form form, u32 n)
{
	enum emu_form from = form_of(dtype);
	u32 v[EMU_COMPUTE_STEP], i;

	if (emu_dma_dtype_size(dtype) == 8) {
		for (i = 0; i < n; i++)
			out[i] = convert(emu_get64(src + 8 * (size_t)i), form, from);
		return;
	}
	emu_elems_load(v, src, base_dtype(dtype), n);
	for (i = 0; i < n; i++)
		out[i] = convert(from == EMU_FORM_SINT ? (u64)(s64)(s32)v[i] : v[i], form, from);
}

/* An integer limited to @bits, signed or not. */
static u64 saturate(u64 v, enum emu_form form, u32 bits)
{
	s64 max;

	if (form == EMU_FORM_UINT)
		return min_t(u64, v, (1ULL << bits) - 1);
	max = (1LL << (bits - 1)) - 1;
	return (u64)((s64)v > max ? max : (s64)v < -max - 1 ? -max - 1 : (s64)v);
}

/* Numbers in @form to memory. */
static void store(u8 *dst, u8 dtype, const u64 *in, enum emu_form form, u32 n)
{
	enum emu_form to = form_of(dtype);
	u32 size = emu_dma_dtype_size(dtype), v[EMU_COMPUTE_STEP], i;
	enum emu_class cls = to == EMU_FORM_FLOAT ? EMU_CLASS_FLOAT : EMU_CLASS_UINT;

	if (size == 8) {
		for (i = 0; i < n; i++)
			emu_put64(dst + 8 * (size_t)i, convert(in[i], to, form));
		return;
	}
	for (i = 0; i < n; i++) {
		u64 x = convert(in[i], to, form);

		v[i] = (u32)(to == EMU_FORM_FLOAT ? x : saturate(x, to, 8 * size));
	}
	/* Integers fit already, so that only their bits are left to be stored. */
	if (to == EMU_FORM_SINT)
		cls = EMU_CLASS_SINT;
	else if (to == EMU_FORM_UINT && size < 4)
		cls = EMU_CLASS_SINT;
	emu_elems_store(dst, base_dtype(dtype), v, cls, n);
}

static u64 argument(const struct emu_compute *c, enum emu_form form)
{
	switch (c->arg_type) {
	case NEURON_ISA_DMA_ARG_INT32:
		return convert((u64)(s64)(s32)c->arg, form, EMU_FORM_SINT);
	case NEURON_ISA_DMA_ARG_UINT32:
		return convert(c->arg, form, EMU_FORM_UINT);
	default:
		return c->arg;
	}
}

/* The smaller or larger of two numbers. */
static u64 choose(u64 a, u64 b, enum emu_form form, u8 op)
{
	bool less;

	if (form == EMU_FORM_FLOAT)
		return op == NEURON_ISA_DMA_MIN ? emu_f32_min((u32)a, (u32)b) :
						  emu_f32_max((u32)a, (u32)b);
	less = form == EMU_FORM_SINT ? (s64)a < (s64)b : a < b;
	return less == (op == NEURON_ISA_DMA_MIN) ? a : b;
}

/**
 * emu_compute_check() - may this be computed?
 * @c: operation; @c->nr_src is the number of sources so far
 *
 * Return: 0, -EINVAL operation, types, number of sources or argument.
 */
int emu_compute_check(const struct emu_compute *c)
{
	bool choice = c->op == NEURON_ISA_DMA_MIN || c->op == NEURON_ISA_DMA_MAX;
	u32 i;

	if (c->op > NEURON_ISA_DMA_MAX || !emu_dma_dtype_size(c->dst_dtype))
		return -EINVAL;
	if (!c->nr_src || c->nr_src > NEURON_ISA_DMA_MAX_SOURCES ||
	    (c->op == NEURON_ISA_DMA_CAST && c->nr_src > 1))
		return -EINVAL;
	for (i = 0; i < c->nr_src; i++)
		if (!emu_dma_dtype_size(c->src_dtype[i]))
			return -EINVAL;
	if (c->arg_type > NEURON_ISA_DMA_ARG_UINT32)
		return -EINVAL;
	if (c->op == NEURON_ISA_DMA_FMA)
		return c->arg_type == NEURON_ISA_DMA_ARG_FP32 ? 0 : -EINVAL;
	return c->arg_type == NEURON_ISA_DMA_ARG_NONE || choice ? 0 : -EINVAL;
}

/**
 * emu_compute_source() - take in elements of a source
 * @c: operation, checked
 * @lane: @lane->raw has the elements
 * @src: number of the source; 0, 1, ... one after the other
 * @n: elements, at most EMU_COMPUTE_STEP
 */
void emu_compute_source(const struct emu_compute *c, struct emu_lane *lane, u32 src, u32 n)
{
	enum emu_form form = compute_form(c);
	u64 *acc = lane->acc, *v = lane->v;
	u32 i;

	load(v, lane->raw, c->src_dtype[src], form, n);
	if (c->op == NEURON_ISA_DMA_FMA)
		for (i = 0; i < n; i++)
			v[i] = emu_f32_mul((u32)v[i], c->arg);
	if (!src) {
		memcpy(acc, v, n * sizeof(*acc));
		return;
	}
	for (i = 0; i < n; i++) {
		if (c->op == NEURON_ISA_DMA_ADD || c->op == NEURON_ISA_DMA_FMA)
			acc[i] = emu_f32_add((u32)acc[i], (u32)v[i]);
		else
			acc[i] = choose(acc[i], v[i], form, c->op);
	}
}

/**
 * emu_compute_result() - store the result of all sources
 * @c: operation, checked
 * @lane: has seen all sources
 * @dst: destination, @n elements
 * @n: elements
 */
void emu_compute_result(const struct emu_compute *c, struct emu_lane *lane, void *dst, u32 n)
{
	enum emu_form form = compute_form(c);
	u64 arg;
	u32 i;

	if (c->op == NEURON_ISA_DMA_CAST && c->src_dtype[0] == c->dst_dtype) {
		memcpy(dst, lane->raw, (size_t)n * emu_dma_dtype_size(c->dst_dtype));
		return;
	}
	if (c->arg_type != NEURON_ISA_DMA_ARG_NONE && c->op != NEURON_ISA_DMA_FMA) {
		arg = argument(c, form);
		for (i = 0; i < n; i++)
			lane->acc[i] = choose(lane->acc[i], arg, form, c->op);
	}
	store(dst, c->dst_dtype, lane->acc, form, n);
}

/**
 * emu_transpose_shape() - what a transpose does
 * @c: operation; types and number of sources are not looked at
 * @bytes: of the source
 * @rows: rows of the source
 * @cols: columns of the source
 * @size: bytes of an element
 *
 * Return: 0, -EINVAL the argument does not describe @bytes.
 */
int emu_transpose_shape(const struct emu_compute *c, u32 bytes, u32 *rows, u32 *cols, u32 *size)
{
	*rows = c->arg & 0xffffff;
	*size = c->arg >> 24;
	if (!*rows || !*size || *size > NEURON_ISA_DMA_MAX_ELEMENT ||
	    bytes > NEURON_ISA_DMA_MAX_BYTES || bytes % *size || bytes / *size % *rows)
		return -EINVAL;
	*cols = bytes / *size / *rows;
	return 0;
}

/**
 * emu_transpose() - @dst[col][row] = @src[row][col]
 * @dst: destination, does not overlap @src
 * @src: source
 * @rows: of the source
 * @cols: of the source
 * @size: bytes of an element
 */
void emu_transpose(void *dst, const void *src, u32 rows, u32 cols, u32 size)
{
	u8 *d = dst;
	u32 r, k;

	for (k = 0; k < cols; k++)
		for (r = 0; r < rows; r++, d += size)
			memcpy(d, (const u8 *)src + ((size_t)r * cols + k) * size, size);
}
