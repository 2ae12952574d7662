/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code of simd_*.c.  Such a file defines LANES, numbers in a vector; KERNEL_ROWS(M),
 * which calls M for the rows of a that its registers take beside two vectors of b, and
 * NR_KERNEL_ROWS, how many these are; LINE_VECTORS(M), the vectors of a line; SIMD, the
 * name of its structure; ANY_REGISTER, the constraint of an operand of asm; and madd16(), sums
 * of products of pairs of int16.
 *
 * Nothing may be contracted (-ffp-contract=off) or reordered: every operation rounds once,
 * as ISA.md has it.  MXCSR is as kernel_fpu_begin() leaves it: to nearest, without
 * flushing of subnormals.  NaNs have any payload until they are stored.
 */
#include "../../uapi/neuron_isa.h"

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef u32 vu __attribute__((vector_size(4 * LANES)));
typedef s32 vi __attribute__((vector_size(4 * LANES)));
typedef u16 vu16 __attribute__((vector_size(2 * LANES)));
typedef s16 vs16 __attribute__((vector_size(2 * LANES)));
typedef u8 vu8 __attribute__((vector_size(LANES)));
typedef s8 vs8 __attribute__((vector_size(LANES)));

/* The same in the state buffer: any alignment, and whatever type was stored. */
#define ANYWHERE	__attribute__((aligned(1), may_alias))
typedef vu vu_any ANYWHERE;
typedef vu16 vu16_any ANYWHERE;
typedef vs16 vs16_any ANYWHERE;
typedef vu8 vu8_any ANYWHERE;
typedef vs8 vs8_any ANYWHERE;

/* In memory of our own, which is of u32. */
typedef vf vf_own __attribute__((may_alias));
typedef vu vu_own __attribute__((may_alias));

#define inline_always	inline __attribute__((__always_inline__))

#define SIGN	0x80000000u
#define INF	0x7f800000u
#define NAN32	0x7fc00000u

/* Elements of a row worked on at a time, and vectors of them. */
#define ROW_STEP	64u
#define ROW_VECTORS	(ROW_STEP / LANES)

static inline_always vu all(u32 x)
{
	return (vu){} + x;
}

/* Not for -0: 0 is added. */
static inline_always vf number(float x)
{
	return (vf){} + x;
}

static inline_always vu select(vu mask, vu yes, vu no)
{
	return (mask & yes) | (~mask & no);
}

static inline_always vu is_nan(vu x)
{
	return (vu)((vi)(x & ~SIGN) > (s32)INF);
}

static inline_always vu canonical(vu x)
{
	return select(is_nan(x), all(NAN32), x);
}

static inline_always vu smaller(vu a, vu b)
{
	return select((vu)(a < b), a, b);
}

/* From a format of @eb exponent and @mb fraction bits. */
static inline_always vu widen(vu x, u32 eb, u32 mb)
{
	u32 max = (1u << eb) - 1, bias = max >> 1;
	vu sign = x >> (eb + mb) << 31, e = (x >> mb) & max, frac = x & ((1u << mb) - 1);
	vu normal = ((e + (127 - bias)) << 23) | (frac << (23 - mb));
	/* 2^(1 - bias - mb) */
	vf unit = (vf)all((127 + 1 - bias - mb) << 23);
	vu sub = (vu)(__builtin_convertvector((vi)frac, vf) * unit);

	normal = select((vu)(e == max), (frac << (23 - mb)) | INF, normal);
	return sign | select((vu)(e == 0), sub, normal);
}

/* As f32_narrow() of fp.c. */
static inline_always vu narrow(vu x, u32 eb, u32 mb)
{
	u32 inf = ((1u << eb) - 1) << mb;
	vu sign = x >> 31 << (eb + mb), exp = (x >> 23) & 0xff;
	vi e = (vi)exp - 127 + (s32)((1u << (eb - 1)) - 1);
	vu sig = (x & 0x7fffff) | ((vu)(exp != 0) & 0x800000);
	vu normal = (vu)(e >= 1);
	vu base = normal & ((vu)(e - 1) << mb);
	vu shift = smaller((vu)(1 - e) + (23 - mb), all(25));

	shift = select(normal, all(23 - mb), shift);
	sig += ((all(1) << (shift - 1)) - 1) + ((sig >> shift) & 1);
	return select(is_nan(x), all(inf | 1u << (mb - 1)),
		      sign | smaller(base + (sig >> shift), all(inf)));
}

/* To int32: nearest even, saturating, NaN becomes 0. */
static inline_always vu to_s32(vu x)
{
	vf f = (vf)x, magic = (vf)((x & SIGN) | 0x4b000000);	/* 2^23 with its sign */
	vu mag = x & ~SIGN;
	vf rounded = (f + magic) - magic;
	vu whole = (vu)((vi)mag >= 0x4b000000), huge = (vu)((vi)mag >= 0x4f000000);
	/* 2^31 and more would give the smallest of all. */
	vf in = (vf)select(huge, all(0), select(whole, x, (vu)rounded));
	vu limit = ~SIGN + (x >> 31);
	vu r = select(huge, limit, (vu)__builtin_convertvector(in, vi));

	return select(is_nan(x), all(0), r);
}

static inline_always vu clamp(vu x, s32 lo, s32 hi)
{
	vi v = (vi)x;

	v = (vi)select((vu)(v < lo), all((u32)lo), (vu)v);
	return select((vu)(v > hi), all((u32)hi), (vu)v);
}

static inline_always u32 size_of(u8 dtype)
{
	switch (dtype) {
	case NEURON_ISA_DT_INT32:
	case NEURON_ISA_DT_FP32:
		return 4;
	case NEURON_ISA_DT_INT16:
	case NEURON_ISA_DT_UINT16:
	case NEURON_ISA_DT_BF16:
	case NEURON_ISA_DT_FP16:
		return 2;
	default:
		return 1;
	}
}

static inline_always bool is_int(u8 dtype)
{
	return dtype == NEURON_ISA_DT_INT8 || dtype == NEURON_ISA_DT_UINT8 ||
	       dtype == NEURON_ISA_DT_INT16 || dtype == NEURON_ISA_DT_UINT16 ||
	       dtype == NEURON_ISA_DT_INT32;
}

/* A vector of elements as fp32 or int32. */
static inline_always vu load_vector(const u8 *p, u8 dtype)
{
	switch (dtype) {
	case NEURON_ISA_DT_INT8:
		return (vu)__builtin_convertvector(*(const vs8_any *)p, vi);
	case NEURON_ISA_DT_UINT8:
		return __builtin_convertvector(*(const vu8_any *)p, vu);
	case NEURON_ISA_DT_INT16:
		return (vu)__builtin_convertvector(*(const vs16_any *)p, vi);
	case NEURON_ISA_DT_UINT16:
		return __builtin_convertvector(*(const vu16_any *)p, vu);
	case NEURON_ISA_DT_BF16:
		return __builtin_convertvector(*(const vu16_any *)p, vu) << 16;
	case NEURON_ISA_DT_FP16:
		return widen(__builtin_convertvector(*(const vu16_any *)p, vu), 5, 10);
	case NEURON_ISA_DT_FP8_E3:
		return widen(__builtin_convertvector(*(const vu8_any *)p, vu), 3, 4);
	case NEURON_ISA_DT_FP8_E4:
		return widen(__builtin_convertvector(*(const vu8_any *)p, vu), 4, 3);
	case NEURON_ISA_DT_FP8_E5:
		return widen(__builtin_convertvector(*(const vu8_any *)p, vu), 5, 2);
	default:	/* NEURON_ISA_DT_FP32, NEURON_ISA_DT_INT32 */
		return *(const vu_any *)p;
	}
}

/* The bits of elements, from fp32, or from int32 for an integer type. */
static inline_always vu element_bits(vu v, u8 dtype)
{
	switch (dtype) {
	case NEURON_ISA_DT_INT8:
		return clamp(v, -128, 127);
	case NEURON_ISA_DT_UINT8:
		return clamp(v, 0, 255);
	case NEURON_ISA_DT_INT16:
		return clamp(v, -32768, 32767);
	case NEURON_ISA_DT_UINT16:
		return clamp(v, 0, 65535);
	case NEURON_ISA_DT_FP32:
		return canonical(v);
	case NEURON_ISA_DT_BF16:
		return select(is_nan(v), all(NAN32), v + 0x7fff + ((v >> 16) & 1)) >> 16;
	case NEURON_ISA_DT_FP16:
		return narrow(v, 5, 10);
	case NEURON_ISA_DT_FP8_E3:
		return narrow(v, 3, 4);
	case NEURON_ISA_DT_FP8_E4:
		return narrow(v, 4, 3);
	case NEURON_ISA_DT_FP8_E5:
		return narrow(v, 5, 2);
	default:	/* NEURON_ISA_DT_INT32 */
		return v;
	}
}

static inline_always void store_vector(u8 *p, vu v, u8 dtype)
{
	v = element_bits(v, dtype);
	if (size_of(dtype) == 4)
		*(vu_any *)p = v;
	else if (size_of(dtype) == 2)
		*(vu16_any *)p = __builtin_convertvector(v, vu16);
	else
		*(vu8_any *)p = __builtin_convertvector(v, vu8);
}

static inline_always void copy_bytes(u8 *to, const u8 *from, u32 n)
{
	for (; n; n--)
		*to++ = *from++;
}

/* @n elements, fewer than a vector; the others are 0. */
static inline_always vu load_few(const u8 *p, u8 dtype, u32 n)
{
	union {
		vu v;
		u8 byte[4 * LANES];
	} few = { .v = (vu){} };

	copy_bytes(few.byte, p, n * size_of(dtype));
	return load_vector(few.byte, dtype);
}

static inline_always void load_as(vu *v, const u8 *p, u8 dtype, u32 n)
{
	u32 size = size_of(dtype);

	for (; n >= LANES; n -= LANES, p += LANES * size)
		*v++ = load_vector(p, dtype);
	if (n)
		*v = load_few(p, dtype, n);
}

static inline_always void store_as(u8 *p, const vu *v, u8 dtype, u32 n)
{
	u32 size = size_of(dtype);
	union {
		vu v;
		u8 byte[4 * LANES];
	} few;

	for (; n >= LANES; n -= LANES, p += LANES * size)
		store_vector(p, *v++, dtype);
	if (!n)
		return;
	store_vector(few.byte, *v, dtype);
	copy_bytes(p, few.byte, n * size);
}

/* One loop for each type: @call(type). */
#define BY_DTYPE(dtype, call)							\
	switch (dtype) {							\
	case NEURON_ISA_DT_INT8: call(NEURON_ISA_DT_INT8); break;		\
	case NEURON_ISA_DT_UINT8: call(NEURON_ISA_DT_UINT8); break;		\
	case NEURON_ISA_DT_INT16: call(NEURON_ISA_DT_INT16); break;		\
	case NEURON_ISA_DT_UINT16: call(NEURON_ISA_DT_UINT16); break;		\
	case NEURON_ISA_DT_INT32: call(NEURON_ISA_DT_INT32); break;		\
	case NEURON_ISA_DT_BF16: call(NEURON_ISA_DT_BF16); break;		\
	case NEURON_ISA_DT_FP16: call(NEURON_ISA_DT_FP16); break;		\
	case NEURON_ISA_DT_FP32: call(NEURON_ISA_DT_FP32); break;		\
	case NEURON_ISA_DT_FP8_E3: call(NEURON_ISA_DT_FP8_E3); break;		\
	case NEURON_ISA_DT_FP8_E4: call(NEURON_ISA_DT_FP8_E4); break;		\
	case NEURON_ISA_DT_FP8_E5: call(NEURON_ISA_DT_FP8_E5); break;		\
	}

static void load_row(vu *v, const u8 *p, u8 dtype, u32 n)
{
#define LOAD(dt)	load_as(v, p, dt, n)
	BY_DTYPE(dtype, LOAD)
#undef LOAD
}

static void store_row(u8 *p, const vu *v, u8 dtype, u32 n)
{
#define STORE(dt)	store_as(p, v, dt, n)
	BY_DTYPE(dtype, STORE)
#undef STORE
}

static inline_always vu f_exp(vu bits)
{
	vf x = (vf)bits, magic = number(0x1.8p+23f);
	vf n = (x * number(0x1.715476p+0f) + magic) - magic;
	vf r = (x - n * number(0x1.62e4p-1f)) - n * number(0x1.7f7d1cp-20f);
	vf p = number(0x1.a01a02p-13f);
	vu result;
	vi i, half;

	p = p * r + number(0x1.6c16c2p-10f);
	p = p * r + number(0x1.111112p-7f);
	p = p * r + number(0x1.555556p-5f);
	p = p * r + number(0x1.555556p-3f);
	p = p * r + number(0.5f);
	p = p * r + number(1.0f);
	p = p * r + number(1.0f);
	i = __builtin_convertvector(n, vi);
	half = (i + (vi)((vu)i >> 31)) >> 1;		/* towards zero */
	p = p * (vf)((half + 127) << 23);
	result = (vu)(p * (vf)((i - half + 127) << 23));
	result = select((vu)(x > 89.0f), all(INF), result);
	result = select((vu)(x < -104.0f), all(0), result);
	return select(is_nan(bits), all(NAN32), result);
}

static inline_always vu f_sigmoid(vu x)
{
	return canonical((vu)(number(1.0f) / (number(1.0f) + (vf)f_exp(x ^ SIGN))));
}

static inline_always vu f_tanh(vu bits)
{
	vf x = (vf)bits, a = (vf)(bits & ~SIGN), z = x * x;
	vf p = number(0x1.d6d3dp-9f), t;
	vu small;

	p = p * z + number(-0x1.226e36p-7f);
	p = p * z + number(0x1.664f48p-6f);
	p = p * z + number(-0x1.ba1ba2p-5f);
	p = p * z + number(0x1.111112p-3f);
	p = p * z + number(-0x1.555556p-2f);
	small = (vu)(p * z * x + x);
	t = number(1.0f) - number(2.0f) / ((vf)f_exp((vu)(a + a)) + number(1.0f));
	small = select((vu)(a < 0x1.99999ap-2f), small, (vu)t | (bits & SIGN));
	return select(is_nan(bits), all(NAN32), small);
}

static inline_always vu f_reciprocal(vu x)
{
	return canonical((vu)(number(1.0f) / (vf)x));
}

static inline_always vu f_rsqrt(vu x)
{
	vf root;

	asm("vsqrtps %1, %0" : "=" ANY_REGISTER (root) : ANY_REGISTER ((vf)x));
	return f_reciprocal((vu)root);
}

/* maximum(x, +0) */
static inline_always vu f_relu(vu x)
{
	return select(is_nan(x), all(NAN32), x & ~(vu)((vi)x >> 31));
}

/* The numbers in order, -0 below +0. */
static inline_always vi order(vu x)
{
	return (vi)(x ^ ((vu)((vi)x >> 31) >> 1));
}

static inline_always vu f_choose(vu a, vu b, bool max)
{
	vu greater = (vu)(order(a) > order(b));
	vu v = max ? select(greater, a, b) : select(greater, b, a);

	return select(is_nan(a) | is_nan(b), all(NAN32), v);
}

static inline_always vu i_choose(vu a, vu b, bool max)
{
	vu greater = (vu)((vi)a > (vi)b);

	return max ? select(greater, a, b) : select(greater, b, a);
}

static void act_row(vu *v, u8 act, u32 n)
{
	u32 i;

	switch (act) {
	case NEURON_ISA_ACT_RELU:
		for (i = 0; i < n; i++)
			v[i] = f_relu(v[i]);
		break;
	case NEURON_ISA_ACT_SIGMOID:
		for (i = 0; i < n; i++)
			v[i] = f_sigmoid(v[i]);
		break;
	case NEURON_ISA_ACT_TANH:
		for (i = 0; i < n; i++)
			v[i] = f_tanh(v[i]);
		break;
	case NEURON_ISA_ACT_EXP:
		for (i = 0; i < n; i++)
			v[i] = f_exp(v[i]);
		break;
	case NEURON_ISA_ACT_RECIPROCAL:
		for (i = 0; i < n; i++)
			v[i] = f_reciprocal(v[i]);
		break;
	case NEURON_ISA_ACT_RSQRT:
		for (i = 0; i < n; i++)
			v[i] = f_rsqrt(v[i]);
		break;
	}
}

static inline_always vu alu_vector(vu a, vu b, u8 alu, bool ints)
{
	switch (alu) {
	case NEURON_ISA_ALU_ADD:
		return ints ? a + b : canonical((vu)((vf)a + (vf)b));
	case NEURON_ISA_ALU_SUB:
		return ints ? a - b : canonical((vu)((vf)a - (vf)b));
	case NEURON_ISA_ALU_MUL:
		return ints ? a * b : canonical((vu)((vf)a * (vf)b));
	case NEURON_ISA_ALU_SELECT:
		return (vu)((ints ? b : b & ~SIGN) != 0) & a;
	default:	/* NEURON_ISA_ALU_MAX, NEURON_ISA_ALU_MIN */
		return ints ? i_choose(a, b, alu == NEURON_ISA_ALU_MAX) :
			      f_choose(a, b, alu == NEURON_ISA_ALU_MAX);
	}
}

/* One loop for each operation: @call(operation, integers). */
#define BY_ALU(alu, ints, call)							\
	switch (alu) {								\
	case NEURON_ISA_ALU_ADD:						\
		if (ints) { call(NEURON_ISA_ALU_ADD, true); }			\
		else { call(NEURON_ISA_ALU_ADD, false); }			\
		break;								\
	case NEURON_ISA_ALU_SUB:						\
		if (ints) { call(NEURON_ISA_ALU_SUB, true); }			\
		else { call(NEURON_ISA_ALU_SUB, false); }			\
		break;								\
	case NEURON_ISA_ALU_MUL:						\
		if (ints) { call(NEURON_ISA_ALU_MUL, true); }			\
		else { call(NEURON_ISA_ALU_MUL, false); }			\
		break;								\
	case NEURON_ISA_ALU_MAX:						\
		if (ints) { call(NEURON_ISA_ALU_MAX, true); }			\
		else { call(NEURON_ISA_ALU_MAX, false); }			\
		break;								\
	case NEURON_ISA_ALU_MIN:						\
		if (ints) { call(NEURON_ISA_ALU_MIN, true); }			\
		else { call(NEURON_ISA_ALU_MIN, false); }			\
		break;								\
	case NEURON_ISA_ALU_SELECT:						\
		if (ints) { call(NEURON_ISA_ALU_SELECT, true); }		\
		else { call(NEURON_ISA_ALU_SELECT, false); }			\
		break;								\
	}

static void alu_row(vu *v, const vu *w, u8 alu, bool ints, u32 n)
{
	u32 i;

#define LOOP(op, is_ints)						\
	for (i = 0; i < n; i++)						\
		v[i] = alu_vector(v[i], w[i], op, is_ints)
	BY_ALU(alu, ints, LOOP)
#undef LOOP
}

/* All of one chain, in ascending order: one element at a time, though in a vector. */
static void fold_row(struct emu_row *r, const vu *v, u32 n)
{
	const u32 *x = (const u32 *)v;
	bool ints = is_int(r->src);
	u32 i = 0;
	vu acc;

	if (r->first)
		r->value = x[i++];
	r->first = false;
	acc = (vu){ r->value };
#define LOOP(op, is_ints)						\
	for (; i < n; i++)						\
		acc = alu_vector(acc, (vu){ x[i] }, op, is_ints)
	BY_ALU(r->op, ints, LOOP)
#undef LOOP
	r->value = acc[0];
}

static void convert_row(vu *v, bool to_int, u32 n)
{
	u32 i;

	if (to_int)
		for (i = 0; i < n; i++)
			v[i] = to_s32(v[i]);
	else
		for (i = 0; i < n; i++)
			v[i] = (vu)__builtin_convertvector((vi)v[i], vf);
}

static void simd_row(struct emu_row *r)
{
	bool ints = is_int(r->src), now = ints;
	u32 size = size_of(r->src), dsize = size_of(r->dst), done, n, nv, i;
	vu v[ROW_VECTORS], w[ROW_VECTORS];

	for (i = 0; i < ROW_VECTORS; i++)
		w[i] = all(r->value);
	for (done = 0; done < r->n; done += n) {
		n = r->n - done < ROW_STEP ? r->n - done : ROW_STEP;
		nv = (n + LANES - 1) / LANES;
		now = ints;
		load_row(v, r->a + (size_t)done * size, r->src, n);
		switch (r->opcode) {
		case NEURON_ISA_OP_TENSOR:
			if (r->b)
				load_row(w, r->b + (size_t)done * size, r->src, n);
			alu_row(v, w, r->op, ints, nv);
			break;
		case NEURON_ISA_OP_ACTIVATE:
			if (ints)
				convert_row(v, false, nv);
			now = false;
			act_row(v, r->op, nv);
			break;
		case NEURON_ISA_OP_REDUCE:
			fold_row(r, v, n);
			continue;
		}
		if (now != is_int(r->dst))
			convert_row(v, !now, nv);
		store_row(r->d + (size_t)done * dsize, v, r->dst, n);
	}
}

/* Columns of the packed b that one kernel takes. */
#define PANEL		(2 * LANES)

/* A vector of packed units: an fp32, or a pair of int16, each. */
static inline_always vu load_units(const u8 *p, u8 dtype)
{
	typedef s16 pairs __attribute__((vector_size(4 * LANES)));
	typedef s8 narrow_pairs __attribute__((vector_size(2 * LANES)));
	typedef narrow_pairs narrow_pairs_any ANYWHERE;

	if (dtype != NEURON_ISA_DT_INT8)
		return load_vector(p, dtype);
	return (vu)__builtin_convertvector(*(const narrow_pairs_any *)p, pairs);
}

/* @k elements that lie in a row, as units; those beyond the end are 0. */
static inline_always vu load_units_some(const u8 *p, u8 dtype, u32 k)
{
	const u32 per = dtype == NEURON_ISA_DT_INT8 ? 2 : 1;
	union {
		vu v;
		u8 byte[4 * LANES];
	} few = { .v = (vu){} };

	if (k >= LANES * per)
		return load_units(p, dtype);
	copy_bytes(few.byte, p, k * size_of(dtype));
	return load_units(few.byte, dtype);
}

static inline_always void pack_a(const struct emu_tile *t, u32 row, u32 nr, u32 units,
				 const u8 dtype)
{
	const u32 per = dtype == NEURON_ISA_DT_INT8 ? 2 : 1;
	u32 r, u;

	for (r = 0; r < nr; r++) {
		const u8 *p = t->a + (row + r) * t->a_stride;
		u32 *to = t->mem->a + r * EMU_TILE_UNITS;

		for (u = 0; u < units; u += LANES)
			*(vu_own *)(to + u) = load_units_some(p + u * per * size_of(dtype), dtype,
							      t->k - u * per);
	}
}

/* b is stored by columns: each one is a row of units, of which every one has its place. */
static inline_always void pack_columns(const struct emu_tile *t, u32 units, const u8 dtype)
{
	const u32 per = dtype == NEURON_ISA_DT_INT8 ? 2 : 1;
	u32 c, u, i;

	for (c = 0; c < t->cols; c++) {
		const u8 *p = t->b + c * t->b_stride;
		u32 *to = t->mem->b + c / PANEL * PANEL * units + c % PANEL;

		for (u = 0; u < units; u += LANES) {
			vu v = load_units_some(p + u * per * size_of(dtype), dtype,
					       t->k - u * per);
			u32 n = units - u < LANES ? units - u : LANES;

			for (i = 0; i < n; i++, to += PANEL)
				*to = v[i];
		}
	}
}

static inline_always vu load_some(const u8 *p, u8 dtype, u32 n)
{
	return n >= LANES ? load_vector(p, dtype) : load_few(p, dtype, n);
}

static inline_always void pack_rows(const struct emu_tile *t, u32 units, const u8 dtype)
{
	const u32 per = dtype == NEURON_ISA_DT_INT8 ? 2 : 1;
	u32 c, u;

	for (c = 0; c < t->cols; c += LANES) {
		const u8 *p = t->b + c * size_of(dtype);
		u32 *to = t->mem->b + c / PANEL * PANEL * units + c % PANEL;
		u32 n = t->cols - c;

		for (u = 0; u < units; u++, to += PANEL, p += per * t->b_stride) {
			vu v = load_some(p, dtype, n);

			if (dtype == NEURON_ISA_DT_INT8) {
				v &= 0xffff;
				if (2 * u + 1 < t->k)
					v |= load_some(p + t->b_stride, dtype, n) << 16;
			}
			*(vu_own *)to = v;
		}
	}
}

#define MUL_ADD_F(acc, x, y)	((acc) + (x) * (y))
#define MUL_ADD_I(acc, x, y)	((acc) + madd16((vu)(x), (vu)(y)))

/* The sums of some rows and a panel, one of one row and all columns of the tile. */
#define KERNELS(name, vec, vec_own, mul_add)						\
static inline_always void name##_panel(u32 *acc, const u32 *a, const u32 *b, u32 units)	\
{											\
	const u32 *x = a;								\
	u32 u;										\
											\
	KERNEL_ROWS(GET_SUMS, vec_own)							\
	for (u = 0; u < units; u++, b += PANEL, x++) {					\
		vec b0 = *(const vec_own *)b, b1 = *(const vec_own *)(b + LANES), f;	\
											\
		KERNEL_ROWS(ADD_PRODUCTS, mul_add)					\
	}										\
	KERNEL_ROWS(PUT_SUMS, vec_own)							\
}											\
											\
static inline_always void name##_line(u32 *acc, const u32 *a, const u32 *b, u32 units)	\
{											\
	const u32 *x = a;								\
	u32 u;										\
											\
	LINE_VECTORS(GET_SUM, vec_own)							\
	for (u = 0; u < units; u++, b += PANEL, x++) {					\
		vec f = (vec)all(*x);							\
											\
		LINE_VECTORS(ADD_PRODUCT, mul_add)					\
	}										\
	LINE_VECTORS(PUT_SUM, vec_own)							\
}

#define GET_SUMS(r, vec_own)							\
	vec_own s##r##0 = *(vec_own *)(acc + (r) * EMU_TILE_COLS);		\
	vec_own s##r##1 = *(vec_own *)(acc + (r) * EMU_TILE_COLS + LANES);
#define ADD_PRODUCTS(r, mul_add)						\
	f = (__typeof__(f))all(x[(r) * EMU_TILE_UNITS]);			\
	s##r##0 = mul_add(s##r##0, f, b0);					\
	s##r##1 = mul_add(s##r##1, f, b1);
#define PUT_SUMS(r, vec_own)							\
	*(vec_own *)(acc + (r) * EMU_TILE_COLS) = s##r##0;			\
	*(vec_own *)(acc + (r) * EMU_TILE_COLS + LANES) = s##r##1;

/* Vector @v of a line is in panel @v / 2, which is @units * PANEL further on. */
#define GET_SUM(v, vec_own)							\
	vec_own s##v = *(vec_own *)(acc + (v) * LANES);
#define ADD_PRODUCT(v, mul_add)							\
	s##v = mul_add(s##v, f, *(const __typeof__(s##v) *)(b + (v) / 2 * PANEL * units + \
							     (v) % 2 * LANES));
#define PUT_SUM(v, vec_own)							\
	*(vec_own *)(acc + (v) * LANES) = s##v;

KERNELS(kernel_f, vf, vf_own, MUL_ADD_F)
KERNELS(kernel_i, vu, vu_own, MUL_ADD_I)

static void sum_panels(const struct emu_tile *t, u32 *acc, u32 units, bool ints)
{
	u32 c;

	for (c = 0; c < t->cols; c += PANEL)
		if (ints)
			kernel_i_panel(acc + c, t->mem->a, t->mem->b + c * units, units);
		else
			kernel_f_panel(acc + c, t->mem->a, t->mem->b + c * units, units);
}

static void sum_line(const struct emu_tile *t, u32 *acc, u32 units, bool ints)
{
	if (ints)
		kernel_i_line(acc, t->mem->a, t->mem->b, units);
	else
		kernel_f_line(acc, t->mem->a, t->mem->b, units);
}

static inline_always void tile_of(const struct emu_tile *t, const u8 dtype)
{
	const bool ints = dtype == NEURON_ISA_DT_INT8;
	u32 units = ints ? (t->k + 1) / 2 : t->k, row, nr;
	u32 *acc = t->mem->acc + t->row * EMU_TILE_COLS;

	if (t->pack && t->trans)
		pack_columns(t, units, dtype);
	else if (t->pack)
		pack_rows(t, units, dtype);
	for (row = 0; row < t->rows; row += nr, acc += nr * EMU_TILE_COLS) {
		nr = t->rows - row < NR_KERNEL_ROWS ? 1 : NR_KERNEL_ROWS;
		pack_a(t, row, nr, units, dtype);
		if (nr == 1)
			sum_line(t, acc, units, ints);
		else
			sum_panels(t, acc, units, ints);
	}
}

static void simd_tile(const struct emu_tile *t)
{
	vu_own *acc = (vu_own *)(t->mem->acc + t->row * EMU_TILE_COLS);
	u32 row;

	if (t->load)
		for (row = 0; row < t->rows; row++)
			load_row((vu *)acc + row * (EMU_TILE_COLS / LANES),
				 t->c + row * t->c_stride, t->dst, t->cols);
	switch (t->src) {
	case NEURON_ISA_DT_FP32:
		tile_of(t, NEURON_ISA_DT_FP32);
		break;
	case NEURON_ISA_DT_BF16:
		tile_of(t, NEURON_ISA_DT_BF16);
		break;
	case NEURON_ISA_DT_FP16:
		tile_of(t, NEURON_ISA_DT_FP16);
		break;
	case NEURON_ISA_DT_INT8:
		tile_of(t, NEURON_ISA_DT_INT8);
		break;
	}
	if (t->store)
		for (row = 0; row < t->rows; row++)
			store_row(t->c + row * t->c_stride,
				  (vu *)acc + row * (EMU_TILE_COLS / LANES), t->dst, t->cols);
}

struct emu_simd SIMD = {
	.name = SIMD_NAME,
	.tile = simd_tile,
	.row = simd_row,
	.section = EMU_SIMD_SECTION,
};
