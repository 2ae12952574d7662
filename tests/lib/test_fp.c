// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/emu/fp.c against the FPU of the host, bit for bit.
 *
 * FP_PAIRS in the environment sets the number of random pairs (10 million),
 * FP_SEED the seed, which is printed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../kmod/emu/fp.h"
#include "fp_ref.h"
#include "../kunit/fp_sweep.h"


static u64 rng = 88172645463325252ULL;

static u32 rnd(void)
{
	return (u32)(fp_sweep_next(&rng) >> 16);
}

/* Every sign with every interesting exponent and fraction. */
static u32 edges[4096];
static size_t nr_edges;

static void make_edges(void)
{
	static const u8 exps[] = {
		0, 1, 2, 23, 24, 25, 63, 64, 65, 102, 103, 104, 105, 111, 112,
		113, 119, 120, 121, 125, 126, 127, 128, 129, 130, 133, 134, 135,
		141, 142, 143, 149, 150, 151, 157, 158, 159, 160, 190, 191, 192,
		230, 252, 253, 254, 255,
	};
	static const u32 fracs[] = {
		0, 1, 2, 3, 0x400, 0x7fff, 0x8000, 0x8001, 0x3fffff, 0x400000,
		0x400001, 0x2aaaaa, 0x7f8000, 0x7ffffe, 0x7fffff,
	};
	size_t e, f;

	for (e = 0; e < ARRAY_SIZE(exps); e++) {
		for (f = 0; f < ARRAY_SIZE(fracs); f++) {
			u32 x = (u32)exps[e] << 23 | fracs[f];

			edges[nr_edges++] = x;
			edges[nr_edges++] = x | EMU_F32_SIGN;
		}
	}
}

#define CHECK(name, got, want, a, b) do {				\
	u32 got_ = (got), want_ = (want);				\
									\
	if (got_ != want_)						\
		fail_msg("%s(%08x, %08x) = %08x, FPU: %08x", name,	\
			 (u32)(a), (u32)(b), got_, want_);		\
} while (0)

static void check_pair(u32 a, u32 b)
{
	float x = ref_float(a), y = ref_float(b);

	CHECK("add", emu_f32_add(a, b), ref_bits(x + y), a, b);
	CHECK("sub", emu_f32_sub(a, b), ref_bits(x - y), a, b);
	CHECK("mul", emu_f32_mul(a, b), ref_bits(x * y), a, b);
	CHECK("div", emu_f32_div(a, b), ref_bits(x / y), a, b);
	CHECK("max", emu_f32_max(a, b), ref_bits(ref_max(x, y)), a, b);
	CHECK("min", emu_f32_min(a, b), ref_bits(ref_min(x, y)), a, b);
	CHECK("lt", emu_f32_lt(a, b), x < y, a, b);
}

static void check_mac(u32 c, u32 a, u32 b)
{
	u32 got = fp_sweep_mac(c, a, b);
	u32 want = ref_bits(ref_mac(ref_float(c), ref_float(a), ref_float(b)));

	if (got != want)
		fail_msg("mac(%08x, %08x, %08x) = %08x, FPU: %08x", c, a, b,
			 got, want);
}

/* bf16 operands take the path without rounding of the product. */
static void check_mac_bf16(u32 c, u32 a, u32 b)
{
	u8 x[2], y[2];
	u32 got = c, want;

	emu_put16(x, a >> 16);
	emu_put16(y, b >> 16);
	got = emu_bf16_dot(c, x, y, 2, 1);
	want = ref_bits(ref_mac(ref_float(c), ref_float(a & 0xffff0000),
				ref_float(b & 0xffff0000)));
	if (got != want)
		fail_msg("bf16 mac(%08x, %04x, %04x) = %08x, FPU: %08x", c,
			 a >> 16, b >> 16, got, want);
	emu_bf16_vmac(&c, a >> 16, y, 2, 1);
	assert_int_equal(c, want);
}

static void test_edge_pairs(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < nr_edges; i++)
		for (j = 0; j < nr_edges; j++)
			check_pair(edges[i], edges[j]);
}

static void test_random_pairs(void **state)
{
	const char *env = getenv("FP_PAIRS");
	unsigned long n = env ? strtoul(env, NULL, 0) : 10000000;
	u32 c = 0;

	(void)state;
	while (n--) {
		u32 a = fp_sweep_operand(&rng), b = fp_sweep_operand(&rng);

		check_pair(a, b);
		check_mac(c, a, b);
		check_mac_bf16(c, a, b);
		c = emu_f32_sub(a, b) ^ (u32)n;
	}
}

/*
 * The sum is exactly halfway between two numbers, or as little off as can be:
 * b is half a unit of the last place of a, shifted around.
 */
static void test_ties(void **state)
{
	unsigned int i;
	int d;

	(void)state;
	for (i = 0; i < 300000; i++) {
		u32 a = (rnd() & 0x807fffff) | (30 + rnd() % 190) << 23;
		u32 e = ((a >> 23) & 0xff) - 24;
		u32 b = e << 23 | (rnd() & EMU_F32_SIGN);

		for (d = -3; d <= 3; d++) {
			check_pair(a, b + (u32)d);
			check_mac(a, b + (u32)d, EMU_F32_ONE);
			check_mac_bf16(a, b, EMU_F32_ONE);
		}
	}
	/* Products that end in the subnormals, around each halfway point */
	for (i = 0; i < 300000; i++) {
		u32 a = (rnd() & 0x807fffff) | (1 + rnd() % 60) << 23;
		u32 e = 127 - 23 + rnd() % 30 - ((a >> 23) & 0xff);
		u32 b = e << 23 | (rnd() & 0x700000);

		check_pair(a, b);
		check_mac(rnd() & 0x807fffff, a, b);
		check_mac_bf16(rnd() & 0x807fffff, a, b);
	}
}

/* The number sig * 2^exp, exact in a double and rounded to none in a float. */
static u32 scaled(u64 sig, int exp)
{
	return ref_bits((float)ldexp((double)sig, exp));
}

/*
 * Products next to the middle of two subnormals: the bit that decides is the
 * last of 48.  Found by looking for m * n close to a round number.
 */
static void test_far_sticky(void **state)
{
	unsigned int i, found = 0;

	(void)state;
	for (i = 0; i < 4000000; i++) {
		u64 round = (1ULL + 2 * (i % 4)) << (44 + (i & 2) / 2);
		u64 m = 0x800000 | (rnd() & 0x7fffff);
		u64 n = (round + m / 2) / m;
		s64 off = (s64)(m * n - round);
		int bit = __builtin_ctzll(round), e;

		if (n >> 24 || !off || off >= 256 || off <= -256)
			continue;
		/* bit of the round number to 2^-150, half of the smallest */
		e = -150 - bit;
		check_pair(scaled(m, e / 2), scaled(n, e - e / 2));
		check_mac(0, scaled(m, e / 2), scaled(n, e - e / 2));
		found++;
	}
	assert_true(found > 20);
}

static void test_edge_triples(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < nr_edges; i++) {
		for (j = 0; j < nr_edges; j++) {
			u32 c = edges[rnd() % nr_edges];

			check_mac(c, edges[i], edges[j]);
			check_mac(EMU_F32_SIGN, edges[i], edges[j]);
			/* cancels, if anything does */
			c = emu_f32_mul(edges[i], edges[j]) ^ EMU_F32_SIGN;
			check_mac(c, edges[i], edges[j]);
			check_mac(c + 1, edges[i], edges[j]);
			check_mac_bf16(c, edges[i], edges[j]);
			check_mac_bf16(EMU_F32_SIGN, edges[i], edges[j]);
		}
	}
}

static void check_to_int(u32 a)
{
	double x = ref_float(a);

	CHECK("s32", (u32)emu_f32_to_s32(a),
	      (u32)(s32)ref_to_int(x, S32_MIN, S32_MAX), a, 0);
	CHECK("u32", emu_f32_to_u32(a), (u32)ref_to_int(x, 0, U32_MAX), a, 0);
}

static void test_to_int(void **state)
{
	unsigned int i;
	int k;

	(void)state;
	for (i = 0; i < nr_edges; i++)
		check_to_int(edges[i]);
	for (i = 0; i < 1000000; i++) {
		check_to_int(fp_sweep_operand(&rng));
		check_to_int((rnd() & 0x807fffff) | (100 + rnd() % 64) << 23);
	}
	/* Every halfway point and its neighbours */
	for (k = -70000; k <= 70000; k++) {
		u32 a = ref_bits((float)k + 0.5f);

		check_to_int(a - 1);
		check_to_int(a);
		check_to_int(a + 1);
		check_to_int(ref_bits((float)k));
	}
}

static void check_from_int(u32 a)
{
	CHECK("from s32", emu_s64_to_f32((s32)a), ref_bits((float)(s32)a), a,
	      0);
	CHECK("from u32", emu_u64_to_f32(a), ref_bits((float)a), a, 0);
}

static void test_from_int(void **state)
{
	unsigned int i;
	int b, d;

	(void)state;
	for (i = 0; i < 0x20000; i++) {
		check_from_int(i);
		check_from_int(0 - i);
		check_from_int(0x1000000 + i);	/* first ties */
		check_from_int(0x7fff0000 + i);	/* around 2^31 */
	}
	for (i = 0; i < 1000000; i++)
		check_from_int(rnd() >> rnd() % 32);
	for (b = 0; b < 32; b++)
		for (d = -300; d <= 300; d++)
			check_from_int((1u << b) + (u32)d);
}

struct narrow {
	const char *name;
	int eb, mb;
	u32 nan;
};

static const struct narrow narrows[] = {
	{ "bf16", 8, 7, 0x7fc0 },
	{ "fp16", 5, 10, 0x7e00 },
	{ "fp8 e3", 3, 4, 0x78 },
	{ "fp8 e4", 4, 3, 0x7c },
	{ "fp8 e5", 5, 2, 0x7e },
};

static u32 narrow_from(const struct narrow *f, u32 x)
{
	switch (f->mb) {
	case 7:
		return emu_f32_to_bf16(x);
	case 10:
		return emu_f32_to_f16(x);
	case 4:
		return emu_f32_to_f8e3(x);
	case 3:
		return emu_f32_to_f8e4(x);
	default:
		return emu_f32_to_f8e5(x);
	}
}

static u32 narrow_to(const struct narrow *f, u32 x)
{
	switch (f->mb) {
	case 7:
		return emu_bf16_to_f32((u16)x);
	case 10:
		return emu_f16_to_f32((u16)x);
	case 4:
		return emu_f8e3_to_f32((u8)x);
	case 3:
		return emu_f8e4_to_f32((u8)x);
	default:
		return emu_f8e5_to_f32((u8)x);
	}
}

static void check_narrow(const struct narrow *f, u32 x)
{
	CHECK(f->name, narrow_from(f, x),
	      ref_narrow(ref_float(x), f->eb, f->mb), x, 0);
}

static void test_narrow(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(narrows); i++) {
		const struct narrow *f = &narrows[i];
		u32 codes = 2u << (f->eb + f->mb), c, n;
		u32 inf = ((1u << f->eb) - 1) << f->mb;

		assert_int_equal(narrow_from(f, 0xffffffff), f->nan);
		/* Each code, and each border between two codes */
		for (c = 0; c < codes; c++) {
			u32 wide = narrow_to(f, c), mid, d;

			CHECK(f->name, wide,
			      ref_bits(ref_widen(c, f->eb, f->mb)), c, 0);
			CHECK(f->name, narrow_from(f, wide),
			      (c & (codes / 2 - 1)) > inf ? f->nan : c, c, 0);
			if ((c & (codes / 2 - 1)) >= inf)
				continue;
			if ((c & (codes / 2 - 1)) == inf - 1)
				/* where the next number would have been */
				mid = ref_bits(ref_float(wide) * 1.0f +
					       ldexpf(ref_float(wide) < 0 ?
						      -0.5f : 0.5f,
						      (1 << (f->eb - 1)) - 1 -
						      f->mb));
			else
				mid = ref_bits(ref_float(wide) / 2 +
					       ref_float(narrow_to(f, c + 1)) /
					       2);
			for (d = 0; d < 5; d++) {
				check_narrow(f, mid + d - 2);
				check_narrow(f, wide + d - 2);
			}
		}
		for (n = 0; n < 500000; n++)
			check_narrow(f, fp_sweep_operand(&rng));
		for (n = 0; n < nr_edges; n++)
			check_narrow(f, edges[n]);
	}
}

#ifdef __FLT16_MANT_DIG__
/* A second opinion on fp16: the compiler's. */
static void test_f16_compiler(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 3000000; i++) {
		u32 x = (rnd() & 0x807fffff) | (95 + rnd() % 55) << 23;
		_Float16 h = (_Float16)ref_float(x);
		u16 want;

		memcpy(&want, &h, sizeof(want));
		CHECK("fp16", emu_f32_to_f16(x), want, x, 0);
	}
}
#endif

static void check_functions(u32 a)
{
	float x = ref_float(a);

	CHECK("relu", emu_f32_relu(a), ref_bits(ref_relu(x)), a, 0);
	CHECK("exp", emu_f32_exp(a), ref_bits(ref_exp(x)), a, 0);
	CHECK("sigmoid", emu_f32_sigmoid(a), ref_bits(ref_sigmoid(x)), a, 0);
	CHECK("tanh", emu_f32_tanh(a), ref_bits(ref_tanh(x)), a, 0);
	CHECK("reciprocal", emu_f32_reciprocal(a), ref_bits(ref_reciprocal(x)), a, 0);
	CHECK("rsqrt", emu_f32_rsqrt(a), ref_bits(ref_rsqrt(x)), a, 0);
}

static void test_functions(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 0x10000; i++) {
		check_functions(i << 16);
		check_functions(i << 16 | (rnd() & 0xffff));
	}
	for (i = 0; i < nr_edges; i++)
		check_functions(edges[i]);
	/* Squares and their neighbours: roots that are exact, and those next to a rounding */
	for (i = 0; i < 200000; i++) {
		u32 x = (rnd() & 0x7fffff) | 0x3f800000;

		x = emu_f32_mul(x, x) + rnd() % 3 - 1;
		check_functions(x);
		check_functions(x - 0x20000000);
		check_functions(rnd() >> rnd() % 32);
	}
	for (i = 0; i < 500000; i++)
		check_functions(ref_bits(((float)rnd() / 4294967296.0f - 0.5f) *
					 240));
	/* The limits of the ranges, and 400 numbers to each side */
	for (i = 0; i < 800; i++) {
		check_functions(ref_bits(89.0f) + i - 400);
		check_functions(ref_bits(-104.0f) + i - 400);
		check_functions(ref_bits(0.4f) + i - 400);
		check_functions(ref_bits(-0.4f) + i - 400);
		check_functions(ref_bits(88.7228f) + i - 400);
		check_functions(ref_bits(-87.3365f) + i - 400);
	}
}

static double ulps(u32 got, double want)
{
	int e;

	frexp(want, &e);
	if (e < -125)
		e = -125;
	return fabs((double)ref_float(got) - want) / ldexp(1, e - 24);
}

/* Not only the same bits everywhere, but good ones. */
static void test_accuracy(void **state)
{
	double e = 0, s = 0, t = 0, d;
	u32 i;

	(void)state;
	for (i = 0; i < 1000000; i++) {
		u32 a = ref_bits((float)((int)(rnd() >> 8) - (1 << 23)) *
				 (87.0f / (1 << 23)));
		double x;

		if (i & 1)
			a = ref_bits(ref_float(a) / 32);
		x = ref_float(a);
		d = ulps(emu_f32_exp(a), exp(x));
		e = d > e ? d : e;
		d = ulps(emu_f32_sigmoid(a), 1 / (1 + exp(-x)));
		s = d > s ? d : s;
		d = ulps(emu_f32_tanh(a), tanh(x));
		t = d > t ? d : t;
	}
	print_message("# largest error in ulp: exp %.2f, sigmoid %.2f, tanh %.2f\n",
		      e, s, t);
	assert_true(e < 2 && s < 4 && t < 4);
}

/* The loops are the single step repeated, at any stride. */
static void test_loops(void **state)
{
	static u8 a[64 * 4], b[64 * 12];
	u32 acc[64], want[64], i, n, round;

	(void)state;
	for (round = 0; round < 20000; round++) {
		size_t step = 4 + rnd() % 9;
		u32 one, av;

		n = 1 + rnd() % 64;
		for (i = 0; i < n; i++) {
			u32 x = fp_sweep_operand(&rng);
			u32 y = fp_sweep_operand(&rng);

			/* mostly plain numbers, lest all become NaN */
			if (round % 4) {
				x = (x & 0x83ffffff) | 0x3c000000;
				y = (y & 0x83ffffff) | 0x3c000000;
			}
			emu_put32(a + 4 * i, x);
			emu_put32(b + step * i, y);
			acc[i] = want[i] = y ^ 0x00400000;
		}
		av = emu_get32(a);
		for (i = 0; i < n; i++)
			want[i] = ref_bits(ref_mac(ref_float(want[i]),
						   ref_float(av),
						   ref_float(emu_get32(b + step * i))));
		emu_f32_vmac(acc, av, b, step, n);
		assert_memory_equal(acc, want, n * 4);

		one = 0;
		for (i = 0; i < n; i++)
			one = ref_bits(ref_mac(ref_float(one),
					       ref_float(emu_get32(a + 4 * i)),
					       ref_float(emu_get32(b + step * i))));
		assert_int_equal(emu_f32_dot(0, a, b, step, n), one);

		one = 0;
		for (i = 0; i < n; i++)
			one = ref_bits(ref_mac(ref_float(one),
					       ref_widen(emu_get16(a + 2 * i), 5, 10),
					       ref_widen(emu_get16(b + step * i), 5, 10)));
		assert_int_equal(emu_f16_dot(0, a, b, step, n), one);
		for (i = 0; i < n; i++) {
			acc[i] = i * 0x01234567;
			want[i] = ref_bits(ref_mac(ref_float(acc[i]),
						   ref_widen(emu_get16(a), 5, 10),
						   ref_widen(emu_get16(b + step * i), 5, 10)));
		}
		emu_f16_vmac(acc, emu_get16(a), b, step, n);
		assert_memory_equal(acc, want, n * 4);

		one = 0x7fffff00;
		for (i = 0; i < n; i++) {
			one += (u32)((int)(s8)a[i] * (s8)b[step * i]);
			acc[i] = i << 28;
			want[i] = acc[i] + (u32)((s8)a[0] * (s8)b[step * i]);
		}
		assert_int_equal(emu_s8_dot(0x7fffff00, a, b, step, n), one);
		emu_s8_vmac(acc, (s8)a[0], b, step, n);
		assert_memory_equal(acc, want, n * 4);
	}
}

/* What the KUnit test compares with: here with the FPU. */
static void test_sweep(void **state)
{
	u64 seq = 1;
	u32 fpu = 0, ours = 0, i;

	(void)state;
	for (i = 0; i < FP_SWEEP_STEPS; i++) {
		u32 a = fp_sweep_operand(&seq), b = fp_sweep_operand(&seq);
		float x = ref_float(a), y = ref_float(b);

		fpu = fp_sweep_add(fpu, ref_bits(x + y));
		fpu = fp_sweep_add(fpu, ref_bits(x * y));
		fpu = fp_sweep_add(fpu, ref_bits(x / y));
		fpu = fp_sweep_add(fpu, ref_bits(ref_mac(y, x, y)));
		fpu = fp_sweep_add(fpu, ref_bits(ref_tanh(x)));
		fpu = fp_sweep_add(fpu, ref_bits(ref_sigmoid(y)));
		ours = fp_sweep_add(ours, emu_f32_add(a, b));
		ours = fp_sweep_add(ours, emu_f32_mul(a, b));
		ours = fp_sweep_add(ours, emu_f32_div(a, b));
		ours = fp_sweep_add(ours, fp_sweep_mac(b, a, b));
		ours = fp_sweep_add(ours, emu_f32_tanh(a));
		ours = fp_sweep_add(ours, emu_f32_sigmoid(b));
	}
	assert_int_equal(ours, fpu);
	assert_int_equal(fpu, FP_SWEEP_SUM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edge_pairs),
		cmocka_unit_test(test_edge_triples),
		cmocka_unit_test(test_random_pairs),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_far_sticky),
		cmocka_unit_test(test_to_int),
		cmocka_unit_test(test_from_int),
		cmocka_unit_test(test_narrow),
#ifdef __FLT16_MANT_DIG__
		cmocka_unit_test(test_f16_compiler),
#endif
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_accuracy),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_sweep),
	};
	const char *seed = getenv("FP_SEED");

	if (seed)
		rng = strtoull(seed, NULL, 0) | 1;
	print_message("# FP_SEED=%llu\n", (unsigned long long)rng);
	make_edges();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
