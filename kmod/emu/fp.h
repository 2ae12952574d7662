/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * IEEE 754 arithmetic in integers, for the software device.
 *
 * All values are bit patterns.  Every operation rounds to nearest, ties to
 * even; subnormals are kept; every result that is a NaN is the canonical quiet
 * NaN of its format, whichever NaN was an operand.  There are no exception flags.  The
 * results are those of an ordinary FPU, NaN payloads apart.
 *
 * Pure functions without locks or memory allocation: any context will do.
 */
#ifndef EMU_FP_H
#define EMU_FP_H

#include "shim.h"
#include "../../uapi/neuron_isa.h"

#define EMU_F32_NAN		0x7fc00000u
#define EMU_F32_INF		0x7f800000u
#define EMU_F32_SIGN		0x80000000u
#define EMU_F32_ONE		0x3f800000u

static inline bool emu_f32_is_nan(u32 x)
{
	return (x & ~EMU_F32_SIGN) > EMU_F32_INF;
}

u32 emu_f32_add(u32 a, u32 b);
u32 emu_f32_sub(u32 a, u32 b);
u32 emu_f32_mul(u32 a, u32 b);
u32 emu_f32_div(u32 a, u32 b);
u32 emu_f32_max(u32 a, u32 b);
u32 emu_f32_min(u32 a, u32 b);

/* False when either is a NaN; -0 equals +0. */
bool emu_f32_lt(u32 a, u32 b);

/* Functions of one operand, defined operation by operation in ISA.md. */
u32 emu_f32_relu(u32 x);
u32 emu_f32_exp(u32 x);
u32 emu_f32_sigmoid(u32 x);
u32 emu_f32_tanh(u32 x);
u32 emu_f32_reciprocal(u32 x);
u32 emu_f32_rsqrt(u32 x);

/* To integers: round to nearest even, saturate, NaN gives 0. */
s32 emu_f32_to_s32(u32 x);
u32 emu_f32_to_u32(u32 x);
s64 emu_f32_to_s64(u32 x);
u64 emu_f32_to_u64(u32 x);
u32 emu_s64_to_f32(s64 x);
u32 emu_u64_to_f32(u64 x);

/*
 * Narrow formats, all of the IEEE kind (largest exponent: infinity and NaN):
 *
 *            sign exponent fraction  bias  largest   NaN
 *   bf16        1        8        7   127  3.39e38   0x7fc0
 *   fp16        1        5       10    15  65504     0x7e00
 *   fp8 e3      1        3        4     3  15.5      0x78
 *   fp8 e4      1        4        3     7  240       0x7c
 *   fp8 e5      1        5        2    15  57344     0x7e
 *
 * Widening is exact.  A number that rounds beyond the largest value becomes infinity.
 */
u16 emu_f32_to_bf16(u32 x);
u32 emu_bf16_to_f32(u16 x);
u16 emu_f32_to_f16(u32 x);
u32 emu_f16_to_f32(u16 x);
u8 emu_f32_to_f8e3(u32 x);
u32 emu_f8e3_to_f32(u8 x);
u8 emu_f32_to_f8e4(u32 x);
u32 emu_f8e4_to_f32(u8 x);
u8 emu_f32_to_f8e5(u32 x);
u32 emu_f8e5_to_f32(u8 x);

/*
 * The inner loops of mac(acc, a, b) = rn(acc + rn(a * b)), two roundings.  @b advances by
 * @bstep bytes from element to element.
 * vmac: acc[j] = mac(acc[j], a, b[j]) for j = 0 .. n-1.
 * dot:  acc = mac(acc, a[k], b[k]) for k = 0 .. n-1 in that order; a is contiguous.
 */
void emu_f32_vmac(u32 *acc, u32 a, const u8 *b, size_t bstep, u32 n);
void emu_bf16_vmac(u32 *acc, u16 a, const u8 *b, size_t bstep, u32 n);
void emu_f16_vmac(u32 *acc, u16 a, const u8 *b, size_t bstep, u32 n);
void emu_s8_vmac(u32 *acc, s8 a, const u8 *b, size_t bstep, u32 n);
u32 emu_f32_dot(u32 acc, const u8 *a, const u8 *b, size_t bstep, u32 n);
u32 emu_bf16_dot(u32 acc, const u8 *a, const u8 *b, size_t bstep, u32 n);
u32 emu_f16_dot(u32 acc, const u8 *a, const u8 *b, size_t bstep, u32 n);
u32 emu_s8_dot(u32 acc, const u8 *a, const u8 *b, size_t bstep, u32 n);

/*
 * Streams of elements of the types that the engines know.  An element is worked
 * on in one of three 32-bit forms.  (compute.h adds the other types of DMA.)
 */
enum emu_class {
	EMU_CLASS_NONE,		/* not an element type */
	EMU_CLASS_FLOAT,	/* bits of an fp32: fp32, bf16, fp16, fp8 */
	EMU_CLASS_SINT,		/* int32: int8, uint8, int16, uint16, int32 */
	EMU_CLASS_UINT		/* uint32 */
};

u32 emu_dtype_size(u8 dtype);
enum emu_class emu_dtype_class(u8 dtype);
void emu_elems_load(u32 *out, const void *src, u8 dtype, u32 n);
void emu_elems_store(void *dst, u8 dtype, const u32 *in, enum emu_class cls, u32 n);
void emu_elems_convert(u32 *v, enum emu_class to, enum emu_class from, u32 n);
void emu_elems_alu(u32 *dst, const u32 *a, const u32 *b, enum emu_class cls, u8 alu, u32 n);
u32 emu_elems_fold(u32 acc, const u32 *v, enum emu_class cls, u8 alu, u32 n);
void emu_elems_act(u32 *v, u8 act, u32 n);

#endif /* EMU_FP_H */
