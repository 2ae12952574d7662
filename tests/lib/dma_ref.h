/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The compute operations of DMA with the host's FPU and 128-bit integers,
 * written from kmod/emu/ISA.md without a look at kmod/emu.  Compile with
 * -ffp-contract=off.
 */
#ifndef DMA_REF_H
#define DMA_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fp_ref.h"
#include "neuron_isa.h"

/* A number is either a float or an integer. */
struct ref_number {
	bool is_float;
	float f;
	__int128 i;
};

static inline size_t ref_dtype_size(uint8_t dtype)
{
	static const uint8_t size[] = { 0, 8, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 8, 1, 1, 1 };

	return dtype < sizeof(size) ? size[dtype] : 0;
}

static inline bool ref_dtype_float(uint8_t dtype)
{
	static const uint8_t yes[] = { 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1 };

	return yes[dtype];
}

static inline bool ref_dtype_signed(uint8_t dtype)
{
	return dtype == NEURON_ISA_DT_INT8 || dtype == NEURON_ISA_DT_INT16 ||
	       dtype == NEURON_ISA_DT_INT32 || dtype == NEURON_ISA_DT_INT64;
}

/* Exponent and fraction bits of the narrow floats. */
static inline void ref_dtype_format(uint8_t dtype, int *eb, int *mb)
{
	static const uint8_t bits[16][2] = {
		[NEURON_ISA_DT_BF16] = { 8, 7 }, [NEURON_ISA_DT_FP16] = { 5, 10 },
		[NEURON_ISA_DT_FP8_E3] = { 3, 4 }, [NEURON_ISA_DT_FP8_E4] = { 4, 3 },
		[NEURON_ISA_DT_FP8_E5] = { 5, 2 },
	};

	*eb = bits[dtype][0];
	*mb = bits[dtype][1];
}

static inline __int128 ref_clamp(__int128 v, __int128 lo, __int128 hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static inline __int128 ref_int_of(float f)
{
	if (f != f)
		return 0;
	if (f >= 0x1p100f)
		return (__int128)1 << 100;
	if (f <= -0x1p100f)
		return -((__int128)1 << 100);
	/* above 2^52 it has no fraction */
	return (__int128)rint((double)f);
}

static inline uint64_t ref_to_u64(float f)
{
	return (uint64_t)ref_clamp(ref_int_of(f), 0, UINT64_MAX);
}

static inline int64_t ref_to_s64(float f)
{
	return (int64_t)ref_clamp(ref_int_of(f), INT64_MIN, INT64_MAX);
}

static inline float ref_float_of(__int128 v)
{
	return v < 0 ? (float)(int64_t)v : (float)(uint64_t)v;
}

static inline struct ref_number ref_load(const uint8_t *p, uint8_t dtype)
{
	size_t size = ref_dtype_size(dtype);
	struct ref_number n = { .is_float = ref_dtype_float(dtype) };
	uint64_t raw = 0;
	int eb, mb;

	memcpy(&raw, p, size);
	if (n.is_float) {
		ref_dtype_format(dtype, &eb, &mb);
		n.f = eb ? ref_widen((uint32_t)raw, eb, mb) : ref_float((uint32_t)raw);
	} else if (ref_dtype_signed(dtype) && raw >> (8 * size - 1)) {
		n.i = (__int128)raw - ((__int128)1 << (8 * size));
	} else {
		n.i = raw;
	}
	return n;
}

static inline void ref_store(uint8_t *p, uint8_t dtype, struct ref_number n)
{
	size_t size = ref_dtype_size(dtype);
	bool is_signed = ref_dtype_signed(dtype);
	__int128 top = (__int128)1 << (8 * size - is_signed);
	uint64_t raw;
	int eb, mb;

	if (ref_dtype_float(dtype)) {
		float f = n.is_float ? n.f : ref_float_of(n.i);

		ref_dtype_format(dtype, &eb, &mb);
		raw = eb ? ref_narrow(f, eb, mb) : ref_bits(f);
	} else {
		__int128 i = n.is_float ? ref_int_of(n.f) : n.i;

		raw = (uint64_t)ref_clamp(i, is_signed ? -top : 0, top - 1);
	}
	memcpy(p, &raw, size);
}

static inline struct ref_number ref_choose(struct ref_number a, struct ref_number b, bool min)
{
	if (a.is_float)
		a.f = min ? ref_min(a.f, b.f) : ref_max(a.f, b.f);
	else if (min ? b.i < a.i : b.i > a.i)
		a = b;
	return a;
}

/* @n elements; the sources lie wherever @src says, contiguous. */
static inline void ref_compute(uint8_t *dst, uint8_t op, uint8_t dst_dtype,
			       uint8_t *const *src, const uint8_t *src_dtype, uint32_t nr_src,
			       uint8_t arg_type, uint32_t arg, size_t n)
{
	bool fp = op == NEURON_ISA_DMA_ADD || op == NEURON_ISA_DMA_FMA ||
		  arg_type == NEURON_ISA_DMA_ARG_FP32;
	bool some_signed = arg_type == NEURON_ISA_DMA_ARG_INT32;

	for (uint32_t k = 0; k < nr_src; k++) {
		fp |= ref_dtype_float(src_dtype[k]);
		some_signed |= ref_dtype_signed(src_dtype[k]);
	}
	for (size_t i = 0; i < n; i++) {
		uint8_t *out = dst + i * ref_dtype_size(dst_dtype);
		struct ref_number acc = { 0 };

		if (op == NEURON_ISA_DMA_CAST && dst_dtype == src_dtype[0]) {
			memcpy(out, src[0] + i * ref_dtype_size(dst_dtype),
			       ref_dtype_size(dst_dtype));
			continue;
		}
		for (uint32_t k = 0; k <= nr_src; k++) {
			struct ref_number v;

			if (k < nr_src) {
				v = ref_load(src[k] + i * ref_dtype_size(src_dtype[k]), src_dtype[k]);
			} else {
				if (arg_type == NEURON_ISA_DMA_ARG_NONE || op == NEURON_ISA_DMA_FMA)
					break;
				v.is_float = arg_type == NEURON_ISA_DMA_ARG_FP32;
				v.f = ref_float(arg);
				v.i = arg_type == NEURON_ISA_DMA_ARG_INT32 ? (__int128)(int32_t)arg :
									     (__int128)arg;
			}
			if (fp && !v.is_float) {
				v.is_float = true;
				v.f = ref_float_of(v.i);
			} else if (some_signed && !v.is_float && v.i > INT64_MAX) {
				v.i = INT64_MAX;
			}
			if (op == NEURON_ISA_DMA_FMA)
				v.f = v.f * ref_float(arg);
			if (!k)
				acc = v;
			else if (op == NEURON_ISA_DMA_ADD || op == NEURON_ISA_DMA_FMA)
				acc.f = acc.f + v.f;
			else
				acc = ref_choose(acc, v, op == NEURON_ISA_DMA_MIN);
		}
		ref_store(out, dst_dtype, acc);
	}
}

#endif /* DMA_REF_H */
