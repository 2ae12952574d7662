/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reference arithmetic with the host's FPU and libm, written without a look at
 * how kmod/emu/fp.c does it.  Compile with -ffp-contract=off.
 */
#ifndef FP_REF_H
#define FP_REF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define REF_NAN	0x7fc00000u

static inline float ref_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Bits of a result: all NaNs are one. */
static inline uint32_t ref_bits(float f)
{
	uint32_t bits;

	if (f != f)
		return REF_NAN;
	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline float ref_max(float a, float b)
{
	if (a != a || b != b)
		return NAN;
	if (a == b)
		return signbit(a) ? b : a;
	return a > b ? a : b;
}

static inline float ref_min(float a, float b)
{
	if (a != a || b != b)
		return NAN;
	if (a == b)
		return signbit(a) ? a : b;
	return a < b ? a : b;
}

static inline float ref_mac(float acc, float a, float b)
{
	float p = a * b;

	return acc + p;
}

/* Round to an integer between @lo and @hi; a double holds all of them. */
static inline double ref_to_int(double x, double lo, double hi)
{
	if (x != x)
		return 0;
	x = rint(x);
	return x < lo ? lo : x > hi ? hi : x;
}

/* The value of the code @x of an IEEE format with @eb and @mb bits. */
static inline float ref_widen(uint32_t x, int eb, int mb)
{
	int bias = (1 << (eb - 1)) - 1, emax = (1 << eb) - 1;
	int e = (int)(x >> mb) & emax, frac = (int)(x & ((1u << mb) - 1));
	double v;

	if (e == emax)
		v = frac ? NAN : INFINITY;
	else if (e == 0)
		v = ldexp(frac, 1 - bias - mb);
	else
		v = ldexp(frac + (1 << mb), e - bias - mb);
	return (float)(x >> (eb + mb) & 1 ? -v : v);
}

/* The code nearest to @f, ties to even. */
static inline uint32_t ref_narrow(float f, int eb, int mb)
{
	int bias = (1 << (eb - 1)) - 1, emax = (1 << eb) - 1, e;
	uint32_t sign = (uint32_t)!!signbit(f) << (eb + mb);
	double x = fabs((double)f), unit;

	if (f != f)
		return ((uint32_t)emax << mb) | 1u << (mb - 1);
	if (x == 0)
		return sign;
	if (isinf(x))
		return sign | (uint32_t)emax << mb;
	frexp(x, &e);			/* x = 0.1... * 2^e */
	e -= 1;
	if (e < 1 - bias)
		e = 1 - bias;
	unit = ldexp(1, e - mb);
	x = rint(x / unit);		/* in units of the last place */
	if (x >= ldexp(1, mb + 1)) {
		x /= 2;
		e++;
	}
	if (e > bias)
		return sign | (uint32_t)emax << mb;
	if (x < ldexp(1, mb))
		return sign | (uint32_t)x;
	return sign | (uint32_t)(e + bias) << mb |
	       ((uint32_t)x - (1u << mb));
}

/* The functions of kmod/emu/ISA.md, as printed there. */
static inline float ref_exp(float x)
{
	float n, r, p;
	int i, h;

	if (x != x)
		return NAN;
	if (x > 89.0f)
		return INFINITY;
	if (x < -104.0f)
		return 0.0f;
	n = (x * 0x1.715476p+0f + 0x1.8p+23f) - 0x1.8p+23f;
	r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
	p = 0x1.a01a02p-13f;
	p = p * r + 0x1.6c16c2p-10f;
	p = p * r + 0x1.111112p-7f;
	p = p * r + 0x1.555556p-5f;
	p = p * r + 0x1.555556p-3f;
	p = p * r + 0.5f;
	p = p * r + 1.0f;
	p = p * r + 1.0f;
	i = (int)n;
	h = i / 2;
	return p * ldexpf(1, h) * ldexpf(1, i - h);
}

static inline float ref_sigmoid(float x)
{
	return 1.0f / (1.0f + ref_exp(-x));
}

static inline float ref_tanh(float x)
{
	float a, t;

	if (x != x)
		return NAN;
	if (fabsf(x) < 0x1.99999ap-2f) {
		float z = x * x;
		float p = 0x1.d6d3dp-9f;

		p = p * z - 0x1.226e36p-7f;
		p = p * z + 0x1.664f48p-6f;
		p = p * z - 0x1.ba1ba2p-5f;
		p = p * z + 0x1.111112p-3f;
		p = p * z - 0x1.555556p-2f;
		return p * z * x + x;
	}
	a = fabsf(x);
	t = 1.0f - 2.0f / (ref_exp(a + a) + 1.0f);
	return copysignf(t, x);
}

static inline float ref_relu(float x)
{
	return x > 0 || x != x ? x : 0.0f;
}

static inline float ref_reciprocal(float x)
{
	return 1.0f / x;
}

static inline float ref_rsqrt(float x)
{
	return 1.0f / sqrtf(x);
}

#endif /* FP_REF_H */
