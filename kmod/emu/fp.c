// SPDX-License-Identifier: GPL-2.0-only
/*
 * IEEE 754 arithmetic in integers.  See fp.h for the rules that hold for every
 * function here, and ISA.md for the sequences behind exp, sigmoid and tanh.
 *
 * A significand is worked on in a u64 with its leading one at bit 62 and the
 * 24 bits of the result above bit 39; what lies below decides the rounding.
 */
#include "fp.h"

#define SIG_SHIFT	39
#define SIG_HALF_LESS	((1ULL << (SIG_SHIFT - 1)) - 1)

static __always_inline u32 f32_exp(u32 x)
{
	return (x >> 23) & 0xff;
}

static __always_inline u32 f32_mag(u32 x)
{
	return x & ~EMU_F32_SIGN;
}

/*
 * Round @sig (leading one at bit 62, or lower when @e is 1) and put it
 * together with exponent @e >= 1.  A carry out of the fraction runs into the
 * exponent, which is the right result, up to and including infinity.
 */
static __always_inline u32 f32_pack(int e, u64 sig)
{
	u32 mag;

	sig += SIG_HALF_LESS + ((sig >> SIG_SHIFT) & 1);
	mag = ((u32)(e - 1) << 23) + (u32)(sig >> SIG_SHIFT);
	return min_t(u32, mag, EMU_F32_INF);
}

/* As f32_pack() for any exponent; one that is too small makes a subnormal. */
static u32 f32_pack_any(int e, u64 sig)
{
	if (e >= 0xff)
		return EMU_F32_INF;
	if (e < 1) {
		u32 shift = 1 - e;

		/* Keep what is shifted out as one sticky bit. */
		if (shift > 62)
			sig = !!sig;
		else
			sig = (sig >> shift) | (sig << (64 - shift) ? 1 : 0);
		e = 1;
	}
	return f32_pack(e, sig);
}

/* The sum of two finite numbers. */
static __always_inline u32 f32_add_finite(u32 a, u32 b)
{
	bool swap = f32_mag(a) < f32_mag(b);
	u32 big = swap ? b : a, small = swap ? a : b;
	u32 eb = f32_exp(big), es = f32_exp(small);
	u64 hi, lo, neg, sum;
	int shift;

	hi = (big & 0x7fffff) | (u32)!!eb << 23;
	lo = (small & 0x7fffff) | (u32)!!es << 23;
	eb += !eb;
	es += !es;
	/*
	 * 32 guard bits lose nothing up to a distance of 32.  Beyond that the
	 * smaller one is far below half a unit and only has to stay nonzero.
	 */
	hi <<= 32;
	lo = (lo << 32) >> min_t(u32, eb - es, 32);
	neg = 0 - (u64)((a ^ b) >> 31);
	sum = hi + ((lo ^ neg) - neg);
	if (unlikely(!sum))
		return a & b & EMU_F32_SIGN;
	/* Normalise, but not below the smallest exponent. */
	shift = min_t(int, __builtin_clzll(sum) - 1, (int)eb + 6);
	return f32_pack((int)eb + 7 - shift, sum << shift) | (big & EMU_F32_SIGN);
}

/**
 * emu_f32_add() - fp32 addition
 * @a: bits of the first operand
 * @b: bits of the second operand
 *
 * Return: the bits of rn(a + b).  x + -x is +0.
 */
u32 emu_f32_add(u32 a, u32 b)
{
	if (unlikely(f32_exp(a) == 0xff || f32_exp(b) == 0xff)) {
		if (emu_f32_is_nan(a) || emu_f32_is_nan(b))
			return EMU_F32_NAN;
		if (f32_exp(a) != 0xff)
			return b;
		if (f32_exp(b) == 0xff && a != b)
			return EMU_F32_NAN;
		return a;
	}
	return f32_add_finite(a, b);
}

/** emu_f32_sub() - fp32 subtraction, rn(a - b) */
u32 emu_f32_sub(u32 a, u32 b)
{
	return emu_f32_add(a, b ^ EMU_F32_SIGN);
}

/* Split a finite nonzero magnitude: leading one at bit 23, exponent any. */
static __always_inline u32 f32_norm(u32 mag, int *e)
{
	u32 shift;

	*e = mag >> 23;
	if (likely(*e))
		return (mag & 0x7fffff) | 0x800000;
	shift = __builtin_clz(mag) - 8;
	*e = 1 - (int)shift;
	return mag << shift;
}

/** emu_f32_mul() - fp32 multiplication, rn(a * b) */
u32 emu_f32_mul(u32 a, u32 b)
{
	u32 sign = (a ^ b) & EMU_F32_SIGN;
	u32 ma = f32_mag(a), mb = f32_mag(b);
	int ea, eb, shift;
	u64 sig;

	if (unlikely(ma >= EMU_F32_INF || mb >= EMU_F32_INF)) {
		if (ma > EMU_F32_INF || mb > EMU_F32_INF || !ma || !mb)
			return EMU_F32_NAN;
		return sign | EMU_F32_INF;
	}
	if (!ma || !mb)
		return sign;
	sig = (u64)f32_norm(ma, &ea) * f32_norm(mb, &eb);
	/* 47 or 48 bits, exact; the shift is 15 or 16. */
	shift = __builtin_clzll(sig) - 1;
	return sign | f32_pack_any(ea + eb - 127 + 16 - shift, sig << shift);
}

/** emu_f32_div() - fp32 division, rn(a / b); x / 0 is infinite, 0 / 0 NaN */
u32 emu_f32_div(u32 a, u32 b)
{
	u32 sign = (a ^ b) & EMU_F32_SIGN;
	u32 ma = f32_mag(a), mb = f32_mag(b);
	int ea, eb, shift;
	u64 sig, rem;

	if (ma > EMU_F32_INF || mb > EMU_F32_INF)
		return EMU_F32_NAN;
	if (ma == mb && (ma == 0 || ma == EMU_F32_INF))
		return EMU_F32_NAN;
	if (ma == EMU_F32_INF || !mb)
		return sign | EMU_F32_INF;
	if (!ma || mb == EMU_F32_INF)
		return sign;
	sig = (u64)f32_norm(ma, &ea) << SIG_SHIFT;
	/* 39 or 40 bits of quotient, the rest only as a sticky bit */
	sig = div64_u64_rem(sig, f32_norm(mb, &eb), &rem);
	sig |= !!rem;
	shift = __builtin_clzll(sig) - 1;
	return sign | f32_pack_any(ea - eb + 127 + 23 - shift, sig << shift);
}

/* Maps the order of numbers (-0 below +0) to the order of s32. */
static __always_inline s32 f32_order(u32 x)
{
	return (s32)(x ^ (u32)((s32)x >> 31) >> 1);
}

/**
 * emu_f32_max() - the larger of two numbers
 * @a: bits of the first operand
 * @b: bits of the second operand
 *
 * IEEE 754-2019 maximum: NaN if either is a NaN, and +0 is above -0.
 *
 * Return: the bits of the larger.
 */
u32 emu_f32_max(u32 a, u32 b)
{
	if (emu_f32_is_nan(a) || emu_f32_is_nan(b))
		return EMU_F32_NAN;
	return f32_order(a) > f32_order(b) ? a : b;
}

/** emu_f32_min() - the smaller of two numbers, as emu_f32_max() */
u32 emu_f32_min(u32 a, u32 b)
{
	if (emu_f32_is_nan(a) || emu_f32_is_nan(b))
		return EMU_F32_NAN;
	return f32_order(a) < f32_order(b) ? a : b;
}

bool emu_f32_lt(u32 a, u32 b)
{
	if (emu_f32_is_nan(a) || emu_f32_is_nan(b) || !f32_mag(a | b))
		return false;
	return f32_order(a) < f32_order(b);
}

/* Round the magnitude of @x to an integer; the caller excludes >= 2^32. */
static __always_inline u32 f32_round_mag(u32 x)
{
	u32 e = f32_exp(x), sig = (x & 0x7fffff) | 0x800000, shift;

	if (e >= 150)
		return sig << (e - 150);
	/* 25 or more leaves at most a quarter, which rounds to 0. */
	shift = min_t(u32, 150 - e, 25);
	if (!e)
		return 0;
	return (sig + (1u << (shift - 1)) - 1 + ((sig >> shift) & 1)) >> shift;
}

/** emu_f32_to_s32() - to int32: nearest even, saturating, NaN gives 0 */
s32 emu_f32_to_s32(u32 x)
{
	u32 mag;

	if (emu_f32_is_nan(x))
		return 0;
	if (f32_exp(x) >= 127 + 31)
		return x & EMU_F32_SIGN ? S32_MIN : S32_MAX;
	mag = f32_round_mag(x);
	return (s32)(x & EMU_F32_SIGN ? 0 - mag : mag);
}

/** emu_f32_to_u32() - to uint32; negative numbers give 0 */
u32 emu_f32_to_u32(u32 x)
{
	if (emu_f32_is_nan(x) || x & EMU_F32_SIGN)
		return 0;
	if (f32_exp(x) >= 127 + 32)
		return U32_MAX;
	return f32_round_mag(x);
}

static __always_inline s32 clamp_s32(s32 x, s32 lo, s32 hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

/** emu_f32_to_s64() - to int64: nearest even, saturating, NaN gives 0 */
s64 emu_f32_to_s64(u32 x)
{
	u64 mag;

	if (emu_f32_is_nan(x))
		return 0;
	if (f32_exp(x) >= 127 + 63)
		return x & EMU_F32_SIGN ? S64_MIN : S64_MAX;
	mag = emu_f32_to_u64(f32_mag(x));
	return (s64)(x & EMU_F32_SIGN ? 0 - mag : mag);
}

/** emu_f32_to_u64() - to uint64; negative numbers give 0 */
u64 emu_f32_to_u64(u32 x)
{
	if (emu_f32_is_nan(x) || x & EMU_F32_SIGN)
		return 0;
	if (f32_exp(x) >= 127 + 64)
		return U64_MAX;
	if (f32_exp(x) >= 150)
		return (u64)((x & 0x7fffff) | 0x800000) << (f32_exp(x) - 150);
	return f32_round_mag(x);
}

u32 emu_u64_to_f32(u64 x)
{
	int shift;

	if (!x)
		return 0;
	shift = __builtin_clzll(x);
	/* The lowest bit of the largest numbers only decides the rounding. */
	return f32_pack(127 + 63 - shift, shift ? x << (shift - 1) : x >> 1 | (x & 1));
}

u32 emu_s64_to_f32(s64 x)
{
	if (x < 0)
		return EMU_F32_SIGN | emu_u64_to_f32(0 - (u64)x);
	return emu_u64_to_f32((u64)x);
}

u16 emu_f32_to_bf16(u32 x)
{
	if (emu_f32_is_nan(x))
		return EMU_F32_NAN >> 16;
	return (x + 0x7fff + ((x >> 16) & 1)) >> 16;
}

u32 emu_bf16_to_f32(u16 x)
{
	u32 wide = (u32)x << 16;

	return emu_f32_is_nan(wide) ? EMU_F32_NAN : wide;
}

/* To a format of @eb exponent and @mb fraction bits, fewer than fp32 has. */
static __always_inline u32 f32_narrow(u32 x, int eb, int mb)
{
	u32 inf = ((1u << eb) - 1) << mb;
	u32 sign = x >> 31 << (eb + mb);
	int e = (int)f32_exp(x) - 127 + (1 << (eb - 1)) - 1;
	u32 sig = x & 0x7fffff, base = 0, shift = 23 - mb;

	if (emu_f32_is_nan(x))
		return inf | 1u << (mb - 1);
	if (f32_exp(x))
		sig |= 0x800000;
	if (e >= 1)
		base = (u32)(e - 1) << mb;
	else
		/* 25 or more leaves less than half of the smallest. */
		shift = min_t(u32, shift + 1 - e, 25);
	sig += (1u << (shift - 1)) - 1 + ((sig >> shift) & 1);
	return sign | min_t(u32, base + (sig >> shift), inf);
}

static __always_inline u32 f32_widen(u32 x, int eb, int mb)
{
	u32 sign = x >> (eb + mb) << 31;
	u32 e = (x >> mb) & ((1u << eb) - 1);
	u32 frac = x & ((1u << mb) - 1);
	int rebias = 127 - ((1 << (eb - 1)) - 1), shift;

	if (e == (1u << eb) - 1)
		return frac ? EMU_F32_NAN : sign | EMU_F32_INF;
	if (e)
		return sign | (e + rebias) << 23 | frac << (23 - mb);
	if (!frac)
		return sign;
	/* A subnormal is a normal fp32: move its leading one to bit mb. */
	shift = __builtin_clz(frac) - (31 - mb);
	return sign | (((u32)(rebias - shift) << 23) + (frac << shift << (23 - mb)));
}

/* emu_f32_to_f16(), emu_f16_to_f32() and so on. */
#define NARROW_FORMAT(name, type, eb, mb)		\
type emu_f32_to_##name(u32 x)				\
{							\
	return (type)f32_narrow(x, eb, mb);		\
}							\
							\
u32 emu_##name##_to_f32(type x)				\
{							\
	return f32_widen(x, eb, mb);			\
}

NARROW_FORMAT(f16, u16, 5, 10)
NARROW_FORMAT(f8e3, u8, 3, 4)
NARROW_FORMAT(f8e4, u8, 4, 3)
NARROW_FORMAT(f8e5, u8, 5, 2)

/** emu_f32_relu() - maximum(x, +0) */
u32 emu_f32_relu(u32 x)
{
	return emu_f32_max(x, 0);
}

/* Powers of two as numbers; n in -126 .. 127. */
static u32 f32_pow2(int n)
{
	return (u32)(n + 127) << 23;
}

/**
 * emu_f32_exp() - e to the power x
 * @x: bits of the operand
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2; the Taylor polynomial of degree 7 in r
 * is off by less than 6e-9, far below the roundings on the way.
 *
 * Return: the bits that the sequence of operations in ISA.md gives.
 */
u32 emu_f32_exp(u32 x)
{
	/* 1/7! .. 1/2!, 1, 1 */
	static const u32 coef[] = {
		0x39500d01, 0x3ab60b61, 0x3c088889, 0x3d2aaaab,
		0x3e2aaaab, 0x3f000000, EMU_F32_ONE, EMU_F32_ONE,
	};
	const u32 log2e = 0x3fb8aa3b, magic = 0x4b400000;	/* 1.5 * 2^23 */
	const u32 ln2_hi = 0x3f317200, ln2_lo = 0x35bfbe8e;
	u32 fn, r, p;
	unsigned int i;
	int n;

	if (emu_f32_is_nan(x))
		return EMU_F32_NAN;
	if (emu_f32_lt(0x42b20000, x))			/* 89 */
		return EMU_F32_INF;
	if (emu_f32_lt(x, 0xc2d00000))			/* -104 */
		return 0;
	fn = emu_f32_sub(emu_f32_add(emu_f32_mul(x, log2e), magic), magic);
	r = emu_f32_sub(x, emu_f32_mul(fn, ln2_hi));
	r = emu_f32_sub(r, emu_f32_mul(fn, ln2_lo));
	p = coef[0];
	for (i = 1; i < ARRAY_SIZE(coef); i++)
		p = emu_f32_add(emu_f32_mul(p, r), coef[i]);
	/* In two steps, since 2^n itself may be too large or subnormal. */
	n = emu_f32_to_s32(fn);
	p = emu_f32_mul(p, f32_pow2(n / 2));
	return emu_f32_mul(p, f32_pow2(n - n / 2));
}

/** emu_f32_sigmoid() - 1 / (1 + exp(-x)) */
u32 emu_f32_sigmoid(u32 x)
{
	return emu_f32_div(EMU_F32_ONE, emu_f32_add(EMU_F32_ONE, emu_f32_exp(x ^ EMU_F32_SIGN)));
}

/**
 * emu_f32_tanh() - hyperbolic tangent
 * @x: bits of the operand
 *
 * Below 0.4 the Taylor polynomial, where the other form would cancel.
 *
 * Return: the bits that the sequence of operations in ISA.md gives.
 */
u32 emu_f32_tanh(u32 x)
{
	/* 21844/6081075, -1382/155925, 62/2835, -17/315, 2/15, -1/3 */
	static const u32 coef[] = {
		0x3b6b69e8, 0xbc11371b, 0x3cb327a4, 0xbd5d0dd1,
		0x3e088889, 0xbeaaaaab,
	};
	u32 a = f32_mag(x), p, z;
	unsigned int i;

	if (emu_f32_is_nan(x))
		return EMU_F32_NAN;
	if (a < 0x3ecccccd) {				/* 0.4 */
		z = emu_f32_mul(x, x);
		p = coef[0];
		for (i = 1; i < ARRAY_SIZE(coef); i++)
			p = emu_f32_add(emu_f32_mul(p, z), coef[i]);
		p = emu_f32_mul(p, z);
		return emu_f32_add(emu_f32_mul(p, x), x);
	}
	p = emu_f32_exp(emu_f32_add(a, a));
	p = emu_f32_div(0x40000000, emu_f32_add(p, EMU_F32_ONE));
	return emu_f32_sub(EMU_F32_ONE, p) | (x & EMU_F32_SIGN);
}

/** emu_f32_reciprocal() - rn(1 / x) */
u32 emu_f32_reciprocal(u32 x)
{
	return emu_f32_div(EMU_F32_ONE, x);
}

/* rn(sqrt(x)) */
static u32 f32_sqrt(u32 x)
{
	u64 sig, root = 0, bit, sum;
	int e;

	if (!f32_mag(x) || x == EMU_F32_INF)
		return x;
	if (x & EMU_F32_SIGN || emu_f32_is_nan(x))
		return EMU_F32_NAN;
	/* An even exponent: 2^26 or 2^27 times as much, whose root has 25 bits. */
	sig = f32_norm(x, &e);
	sig <<= e & 1 ? 25 : 26;
	for (bit = 1ULL << 24; bit; bit >>= 1) {
		sum = root + bit;
		if (sum * sum <= sig)
			root = sum;
	}
	/* 24 bits and the one that decides; a tie cannot be, what is left is sticky. */
	root = root << 1 | (root * root != sig);
	return f32_pack((e + 127) >> 1, root << (SIG_SHIFT - 2));
}

/** emu_f32_rsqrt() - rn(1 / rn(sqrt(x))) */
u32 emu_f32_rsqrt(u32 x)
{
	return emu_f32_reciprocal(f32_sqrt(x));
}

/* The rare operands that the fast paths below do not cover. */
static noinline u32 f32_mac_slow(u32 acc, u32 a, u32 b)
{
	return emu_f32_add(acc, emu_f32_mul(a, b));
}

static __always_inline bool f32_is_normal(u32 x)
{
	return f32_exp(x) - 1 < 0xfe;
}

/*
 * rn(acc + rn(a * b)).  Inline and almost without branches: this is where the
 * software device spends its time.  @exact: a and b have at most 12 significant
 * bits, so the product needs no rounding.
 */
static __always_inline u32 f32_mac(u32 acc, u32 a, u32 b, bool exact)
{
	u32 prod, top, e;
	u64 sig;

	if (unlikely(!f32_is_normal(a) || !f32_is_normal(b))) {
		/* Zeros are common: pixels, and the values that ReLU cut off. */
		if ((!f32_mag(a) || !f32_mag(b)) && f32_exp(a) != 0xff &&
		    f32_exp(b) != 0xff && acc != EMU_F32_SIGN)
			return emu_f32_is_nan(acc) ? EMU_F32_NAN : acc;
		return f32_mac_slow(acc, a, b);
	}
	/* 47 or 48 bits; bring the 24 leading ones down. */
	if (exact) {
		u32 small = (((a & 0x7fffff) | 0x800000) >> 12) *
			    (((b & 0x7fffff) | 0x800000) >> 12);

		/* 23 or 24 bits */
		top = small >> 23;
		prod = small << (1 - top);
	} else {
		sig = (u64)((a & 0x7fffff) | 0x800000) * ((b & 0x7fffff) | 0x800000);
		top = (u32)(sig >> 47);
		sig <<= 1 - top;
		/* 48 bits: round at bit 24 */
		sig += 0x7fffff + ((sig >> 24) & 1);
		prod = (u32)(sig >> 24);
	}
	e = f32_exp(a) + f32_exp(b) + top;	/* biased twice */
	/*
	 * The exponent has to end up in 1 .. 253 (254 could still become
	 * infinite by rounding), and acc must be finite.
	 */
	if (unlikely(e - 128 > 252 || f32_exp(acc) == 0xff))
		return f32_mac_slow(acc, a, b);
	prod += (e - 128) << 23;
	return f32_add_finite(acc, prod | ((a ^ b) & EMU_F32_SIGN));
}

static __always_inline u32 f32_wide(u32 x)
{
	return x;
}

/* A product does not depend on the payload of a NaN. */
static __always_inline u32 bf16_wide(u16 x)
{
	return (u32)x << 16;
}

/* Loops over elements of @bits, which @wide() makes fp32; @exact: products need no rounding. */
#define MAC_LOOPS(name, bits, wide, exact)						\
void emu_##name##_vmac(u32 *acc, u##bits a, const u8 *b, size_t bstep, u32 n)		\
{											\
	const u32 factor = wide(a);							\
											\
	for (; n; n--, acc++, b += bstep)						\
		*acc = f32_mac(*acc, factor, wide(emu_get##bits(b)), exact);		\
}											\
											\
u32 emu_##name##_dot(u32 acc, const u8 *a, const u8 *b, size_t bstep, u32 n)		\
{											\
	for (; n; n--, a += (bits) / 8, b += bstep)					\
		acc = f32_mac(acc, wide(emu_get##bits(a)), wide(emu_get##bits(b)), exact); \
	return acc;									\
}

MAC_LOOPS(f32, 32, f32_wide, false)
MAC_LOOPS(bf16, 16, bf16_wide, true)
MAC_LOOPS(f16, 16, emu_f16_to_f32, true)

void emu_s8_vmac(u32 *acc, s8 a, const u8 *b, size_t bstep, u32 n)
{
	for (; n; n--, acc++, b += bstep)
		*acc += (u32)(a * (s8)*b);
}

u32 emu_s8_dot(u32 acc, const u8 *a, const u8 *b, size_t bstep, u32 n)
{
	for (; n; n--, a++, b += bstep)
		acc += (u32)((s8)*a * (s8)*b);
	return acc;
}

/* Bytes of an element, and the form in which it is worked on, by enum neuron_isa_dtype. */
static const struct {
	u8 size;
	u8 cls;
} emu_dtypes[] = {
	[NEURON_ISA_DT_INT8] = { 1, EMU_CLASS_SINT },
	[NEURON_ISA_DT_UINT8] = { 1, EMU_CLASS_SINT },
	[NEURON_ISA_DT_INT16] = { 2, EMU_CLASS_SINT },
	[NEURON_ISA_DT_UINT16] = { 2, EMU_CLASS_SINT },
	[NEURON_ISA_DT_INT32] = { 4, EMU_CLASS_SINT },
	[NEURON_ISA_DT_UINT32] = { 4, EMU_CLASS_UINT },
	[NEURON_ISA_DT_BF16] = { 2, EMU_CLASS_FLOAT },
	[NEURON_ISA_DT_FP16] = { 2, EMU_CLASS_FLOAT },
	[NEURON_ISA_DT_FP32] = { 4, EMU_CLASS_FLOAT },
	[NEURON_ISA_DT_FP8_E3] = { 1, EMU_CLASS_FLOAT },
	[NEURON_ISA_DT_FP8_E4] = { 1, EMU_CLASS_FLOAT },
	[NEURON_ISA_DT_FP8_E5] = { 1, EMU_CLASS_FLOAT },
};

/** emu_dtype_size() - bytes of an element; 0 if it is no type of the software device */
u32 emu_dtype_size(u8 dtype)
{
	return dtype < ARRAY_SIZE(emu_dtypes) ? emu_dtypes[dtype].size : 0;
}

/** emu_dtype_class() - the form in which elements are worked on; EMU_CLASS_NONE if it is no type */
enum emu_class emu_dtype_class(u8 dtype)
{
	return dtype < ARRAY_SIZE(emu_dtypes) ? emu_dtypes[dtype].cls : EMU_CLASS_NONE;
}

/* A case of emu_elems_load(): @value of the element at @p[i]. */
#define LOAD(type, value)			\
	case NEURON_ISA_DT_##type:		\
		for (i = 0; i < n; i++)		\
			out[i] = (value);	\
		break

/**
 * emu_elems_load() - read elements into the form of their class
 * @out: where to put @n values
 * @src: contiguous elements, little endian, any alignment
 * @dtype: their type, a valid one
 * @n: how many
 *
 * fp32 elements come in unchanged, including NaN payloads.
 */
void emu_elems_load(u32 *out, const void *src, u8 dtype, u32 n)
{
	const u8 *p = src;
	u32 i;

	switch (dtype) {
	LOAD(INT8, (u32)(s32)(s8)p[i]);
	LOAD(UINT8, p[i]);
	LOAD(INT16, (u32)(s32)(s16)emu_get16(p + 2 * (size_t)i));
	LOAD(UINT16, emu_get16(p + 2 * (size_t)i));
	LOAD(INT32, emu_get32(p + 4 * (size_t)i));
	LOAD(UINT32, emu_get32(p + 4 * (size_t)i));
	LOAD(FP32, emu_get32(p + 4 * (size_t)i));
	LOAD(BF16, emu_bf16_to_f32(emu_get16(p + 2 * (size_t)i)));
	LOAD(FP16, emu_f16_to_f32(emu_get16(p + 2 * (size_t)i)));
	LOAD(FP8_E3, emu_f8e3_to_f32(p[i]));
	LOAD(FP8_E4, emu_f8e4_to_f32(p[i]));
	LOAD(FP8_E5, emu_f8e5_to_f32(p[i]));
	}
}

/* A value of class @from in class @to; integers saturate. */
static u32 elem_convert(u32 v, enum emu_class to, enum emu_class from)
{
	if (to == from)
		return v;
	if (from == EMU_CLASS_FLOAT)
		return to == EMU_CLASS_SINT ? (u32)emu_f32_to_s32(v) : emu_f32_to_u32(v);
	if (to == EMU_CLASS_FLOAT)
		return from == EMU_CLASS_SINT ? emu_s64_to_f32((s32)v) : emu_u64_to_f32(v);
	/* Between int32 and uint32 the upper half of the range saturates. */
	if (to == EMU_CLASS_SINT)
		return min_t(u32, v, S32_MAX);
	return (u32)max_t(s32, (s32)v, 0);
}

/**
 * emu_elems_convert() - change values from one class to another, in place
 * @v: the values
 * @to: class to convert to
 * @from: class they have
 * @n: how many
 */
void emu_elems_convert(u32 *v, enum emu_class to, enum emu_class from, u32 n)
{
	if (to == from)
		return;
	for (; n; n--, v++)
		*v = elem_convert(*v, to, from);
}

/* The bits of a value of the class of @dtype as an element. */
static __always_inline u32 elem_narrow(u32 v, u8 dtype)
{
	switch (dtype) {
	case NEURON_ISA_DT_INT8:
		return clamp_s32((s32)v, -128, 127);
	case NEURON_ISA_DT_UINT8:
		return clamp_s32((s32)v, 0, 255);
	case NEURON_ISA_DT_INT16:
		return clamp_s32((s32)v, -32768, 32767);
	case NEURON_ISA_DT_UINT16:
		return clamp_s32((s32)v, 0, 65535);
	case NEURON_ISA_DT_FP32:
		return emu_f32_is_nan(v) ? EMU_F32_NAN : v;
	case NEURON_ISA_DT_BF16:
		return emu_f32_to_bf16(v);
	case NEURON_ISA_DT_FP16:
		return emu_f32_to_f16(v);
	case NEURON_ISA_DT_FP8_E3:
		return emu_f32_to_f8e3(v);
	case NEURON_ISA_DT_FP8_E4:
		return emu_f32_to_f8e4(v);
	case NEURON_ISA_DT_FP8_E5:
		return emu_f32_to_f8e5(v);
	default:	/* NEURON_ISA_DT_INT32, NEURON_ISA_DT_UINT32 */
		return v;
	}
}

/**
 * emu_elems_store() - write values as elements of a type
 * @dst: contiguous elements, little endian, any alignment
 * @dtype: their type, a valid one
 * @in: @n values
 * @cls: class of the values
 * @n: how many
 *
 * Rounds to nearest even, integers saturate, NaNs become canonical (0 in an
 * integer).  An integer goes to a narrow float by way of fp32.
 */
void emu_elems_store(void *dst, u8 dtype, const u32 *in, enum emu_class cls, u32 n)
{
	enum emu_class to = emu_dtype_class(dtype);
	u32 size = emu_dtype_size(dtype), v;
	u8 *p = dst;

	for (; n; n--, in++, p += size) {
		v = elem_narrow(elem_convert(*in, to, cls), dtype);
		if (size == 1)
			*p = (u8)v;
		else if (size == 2)
			emu_put16(p, (u16)v);
		else
			emu_put32(p, v);
	}
}

static __always_inline u32 elem_alu(u32 a, u32 b, enum emu_class cls, u8 alu)
{
	switch (alu) {
	case NEURON_ISA_ALU_ADD:
		return cls == EMU_CLASS_FLOAT ? emu_f32_add(a, b) : a + b;
	case NEURON_ISA_ALU_SUB:
		return cls == EMU_CLASS_FLOAT ? emu_f32_sub(a, b) : a - b;
	case NEURON_ISA_ALU_MUL:
		return cls == EMU_CLASS_FLOAT ? emu_f32_mul(a, b) : a * b;
	case NEURON_ISA_ALU_MAX:
		if (cls == EMU_CLASS_FLOAT)
			return emu_f32_max(a, b);
		if (cls == EMU_CLASS_SINT)
			return (u32)max_t(s32, (s32)a, (s32)b);
		return max_t(u32, a, b);
	case NEURON_ISA_ALU_SELECT:
		return (cls == EMU_CLASS_FLOAT ? f32_mag(b) : b) ? a : 0;
	default:	/* NEURON_ISA_ALU_MIN */
		if (cls == EMU_CLASS_FLOAT)
			return emu_f32_min(a, b);
		if (cls == EMU_CLASS_SINT)
			return (u32)min_t(s32, (s32)a, (s32)b);
		return min_t(u32, a, b);
	}
}

/**
 * emu_elems_alu() - dst[i] = a[i] op b[i]
 * @dst: results, may be @a or @b
 * @a: first operands
 * @b: second operands
 * @cls: class of all three; integers wrap around
 * @alu: enum neuron_isa_alu, a valid one
 * @n: how many
 */
void emu_elems_alu(u32 *dst, const u32 *a, const u32 *b, enum emu_class cls, u8 alu, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		dst[i] = elem_alu(a[i], b[i], cls, alu);
}

/**
 * emu_elems_fold() - acc = acc op v[i] for every i, in ascending order
 * @acc: value to start from
 * @v: the values
 * @cls: class of all
 * @alu: enum neuron_isa_alu, a valid one
 * @n: how many
 *
 * Return: the result.
 */
u32 emu_elems_fold(u32 acc, const u32 *v, enum emu_class cls, u8 alu, u32 n)
{
	for (; n; n--, v++)
		acc = elem_alu(acc, *v, cls, alu);
	return acc;
}

/**
 * emu_elems_act() - apply a function to fp32 values, in place
 * @v: the values
 * @act: enum neuron_isa_act, a valid one
 * @n: how many
 */
void emu_elems_act(u32 *v, u8 act, u32 n)
{
	for (; n; n--, v++) {
		switch (act) {
		case NEURON_ISA_ACT_RELU:
			*v = emu_f32_relu(*v);
			break;
		case NEURON_ISA_ACT_SIGMOID:
			*v = emu_f32_sigmoid(*v);
			break;
		case NEURON_ISA_ACT_TANH:
			*v = emu_f32_tanh(*v);
			break;
		case NEURON_ISA_ACT_EXP:
			*v = emu_f32_exp(*v);
			break;
		case NEURON_ISA_ACT_RECIPROCAL:
			*v = emu_f32_reciprocal(*v);
			break;
		case NEURON_ISA_ACT_RSQRT:
			*v = emu_f32_rsqrt(*v);
			break;
		}
	}
}
