// SPDX-License-Identifier: GPL-2.0-only
/*
 * The compute operations of DMA (kmod/emu/compute.c) against dma_ref.h, which
 * does them with the FPU and 128-bit integers: every operation with every pair
 * of types, edge values, odd numbers of elements.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../kmod/emu/compute.h"
#include "dma_ref.h"

static uint64_t rng = 88172645463325252ULL;

static uint64_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* Elements that hit limits, ties, NaNs, infinities and subnormals often. */
static void fill(uint8_t *p, uint8_t dtype, size_t n)
{
	size_t size = ref_dtype_size(dtype);

	for (size_t i = 0; i < n; i++) {
		uint64_t v = rnd();

		switch (rnd() % 8) {
		case 0:
			v = 0 - (v & 7);
			break;
		case 1:
			v &= 0xff;
			break;
		case 2:
			v = (1ull << (v % 64)) - (v >> 63);
			break;
		case 3:	/* all bits of the exponent, few of the fraction */
			v = 0x7f80000000007f80ull | (v & 0x8001000180018181ull);
			break;
		case 4:
			v &= 0x8000000780078783ull;
			break;
		case 5:	/* around one */
			v = 0x3f803c0038383f80ull ^ (v & 0x8000ffff80ff8787ull);
			break;
		}
		memcpy(p + i * size, &v, size);
	}
}

/* As packet.c does it, for sources that lie in @src one after the other. */
static void compute(const struct emu_compute *c, uint8_t *dst, uint8_t *const *src, uint32_t n)
{
	struct emu_lane lane;

	for (uint32_t at = 0, now; at < n; at += now) {
		now = n - at < EMU_COMPUTE_STEP ? n - at : EMU_COMPUTE_STEP;
		for (uint32_t k = 0; k < c->nr_src; k++) {
			size_t size = emu_dma_dtype_size(c->src_dtype[k]);

			memcpy(lane.raw, src[k] + at * size, now * size);
			emu_compute_source(c, &lane, k, now);
		}
		emu_compute_result(c, &lane, dst + at * emu_dma_dtype_size(c->dst_dtype), now);
	}
}

#define N_MAX 200

static void check(const struct emu_compute *c, uint32_t n)
{
	static uint8_t buf[NEURON_ISA_DMA_MAX_SOURCES][8 * N_MAX];
	static uint8_t got[8 * N_MAX + 1], want[8 * N_MAX + 1];
	uint8_t *src[NEURON_ISA_DMA_MAX_SOURCES];
	size_t size = ref_dtype_size(c->dst_dtype);

	for (uint32_t k = 0; k < c->nr_src; k++) {
		src[k] = buf[k];
		fill(src[k], c->src_dtype[k], n);
	}
	memset(got, 0xaa, sizeof(got));
	memset(want, 0xaa, sizeof(want));
	compute(c, got, src, n);
	ref_compute(want, c->op, c->dst_dtype, src, c->src_dtype, c->nr_src, c->arg_type, c->arg, n);
	for (size_t i = 0; i < sizeof(got); i++)
		if (got[i] != want[i])
			fail_msg("op %u, %u sources of type %x %x to %x, argument %u %08x: element %zu of %u is %02x, not %02x; source %02x %02x %02x %02x %02x %02x %02x %02x",
				 c->op, c->nr_src, c->src_dtype[0], c->src_dtype[1], c->dst_dtype,
				 c->arg_type, c->arg, i / size, n, got[i], want[i],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0])],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0]) + 1],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0]) + 2],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0]) + 3],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0]) + 4],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0]) + 5],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0]) + 6],
				 src[0][i / size * ref_dtype_size(c->src_dtype[0]) + 7]);
}

static void test_casts(void **state)
{
	(void)state;
	for (uint8_t from = 1; from < 16; from++) {
		for (uint8_t to = 1; to < 16; to++) {
			struct emu_compute c = {
				.op = NEURON_ISA_DMA_CAST, .dst_dtype = to, .nr_src = 1,
				.src_dtype = { from },
			};

			assert_int_equal(emu_compute_check(&c), 0);
			for (uint32_t n = 1; n <= N_MAX; n += 1 + n / 3)
				for (int again = 0; again < 20; again++)
					check(&c, n);
		}
	}
}

/* Every 8- and 16-bit pattern to every type. */
static void test_cast_all_patterns(void **state)
{
	static const uint8_t types[] = {
		NEURON_ISA_DT_INT16, NEURON_ISA_DT_UINT16, NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP16,
		NEURON_ISA_DT_INT8, NEURON_ISA_DT_UINT8, NEURON_ISA_DT_FP8_E3, NEURON_ISA_DT_FP8_E4,
		NEURON_ISA_DT_FP8_E5,
	};
	uint8_t *src = malloc(2 * 65536), *got = malloc(8 * 65536), *want = malloc(8 * 65536);

	(void)state;
	for (uint32_t i = 0; i < 65536; i++)
		emu_put16(src + 2 * i, i);
	for (size_t t = 0; t < sizeof(types); t++) {
		for (uint8_t to = 1; to < 16; to++) {
			struct emu_compute c = {
				.op = NEURON_ISA_DMA_CAST, .dst_dtype = to, .nr_src = 1,
				.src_dtype = { types[t] },
			};
			uint32_t n = 131072 / ref_dtype_size(types[t]);

			n = n > 65536 ? 65536 : n;
			compute(&c, got, &src, n);
			ref_compute(want, c.op, to, &src, c.src_dtype, 1, 0, 0, n);
			assert_memory_equal(got, want, n * ref_dtype_size(to));
		}
	}
	free(src);
	free(got);
	free(want);
}

static uint32_t argument(uint8_t type)
{
	static const uint32_t args[] = {
		0, 1, 0x80000000, 0xffffffff, 0x7fffffff, 0x3f800000, 0xbf800000, 0x7f800000,
		0x7fc00000, 0x00000001, 0x33800000, 0x4f000000, 100,
	};

	if (type == NEURON_ISA_DMA_ARG_NONE)
		return 0;
	return rnd() % 2 ? args[rnd() % (sizeof(args) / sizeof(args[0]))] : (uint32_t)rnd();
}

/* Two sources of each pair of types, into a type that changes. */
static void test_pairs(void **state)
{
	uint8_t to = 1;

	(void)state;
	for (uint8_t op = NEURON_ISA_DMA_ADD; op <= NEURON_ISA_DMA_MAX; op++)
		for (uint8_t a = 1; a < 16; a++)
			for (uint8_t b = 1; b < 16; b++)
				for (uint8_t arg = 0; arg < 4; arg++, to = to % 15 + 1) {
					struct emu_compute c = {
						.op = op, .dst_dtype = to, .nr_src = 2,
						.src_dtype = { a, b }, .arg_type = arg,
					};

					if (emu_compute_check(&c))
						continue;
					for (int again = 0; again < 10; again++) {
						c.arg = argument(arg);
						check(&c, 1 + (uint32_t)(rnd() % N_MAX));
					}
				}
}

/* One type for everything, any number of sources. */
static void test_many_sources(void **state)
{
	(void)state;
	for (int again = 0; again < 20000; again++) {
		struct emu_compute c = {
			.op = (uint8_t)(NEURON_ISA_DMA_ADD + rnd() % 4),
			.dst_dtype = (uint8_t)(1 + rnd() % 15),
			.nr_src = (uint8_t)(1 + rnd() % 16),
			.arg_type = (uint8_t)(rnd() % 4),
		};
		bool same = rnd() % 2;

		for (uint32_t k = 0; k < c.nr_src; k++)
			c.src_dtype[k] = same ? c.dst_dtype : (uint8_t)(1 + rnd() % 15);
		if (c.op == NEURON_ISA_DMA_ADD)
			c.arg_type = NEURON_ISA_DMA_ARG_NONE;
		if (c.op == NEURON_ISA_DMA_FMA)
			c.arg_type = NEURON_ISA_DMA_ARG_FP32;
		c.arg = argument(c.arg_type);
		assert_int_equal(emu_compute_check(&c), 0);
		check(&c, 1 + (uint32_t)(rnd() % 70));
	}
}

static void test_refused(void **state)
{
	const struct emu_compute good = {
		.op = NEURON_ISA_DMA_MIN, .dst_dtype = NEURON_ISA_DT_FP16, .nr_src = 1,
		.src_dtype = { NEURON_ISA_DT_INT64 }, .arg_type = NEURON_ISA_DMA_ARG_INT32,
	};
	struct emu_compute c;

	(void)state;
#define REFUSED(field, value) do {			\
	c = good;					\
	c.field = (value);				\
	assert_int_equal(emu_compute_check(&c), -EINVAL);	\
} while (0)
	assert_int_equal(emu_compute_check(&good), 0);
	REFUSED(op, NEURON_ISA_DMA_TRANSPOSE);
	REFUSED(op, 7);
	REFUSED(op, NEURON_ISA_DMA_ADD);	/* with an argument */
	REFUSED(op, NEURON_ISA_DMA_CAST);
	REFUSED(op, NEURON_ISA_DMA_FMA);	/* whose argument is no float */
	REFUSED(dst_dtype, 0);
	REFUSED(dst_dtype, 16);
	REFUSED(src_dtype[0], 0);
	REFUSED(nr_src, 0);
	REFUSED(nr_src, 2);			/* the second has no type */
	REFUSED(nr_src, 17);
	REFUSED(arg_type, 4);
	c = good;
	c.op = NEURON_ISA_DMA_CAST;
	c.arg_type = 0;
	c.nr_src = 2;
	c.src_dtype[1] = NEURON_ISA_DT_FP32;
	assert_int_equal(emu_compute_check(&c), -EINVAL);
	for (uint32_t t = 0; t < 256; t++)
		assert_int_equal(emu_dma_dtype_size((uint8_t)t), ref_dtype_size((uint8_t)t));
}

static void test_transpose(void **state)
{
	uint8_t *src = malloc(65536), *dst = malloc(65536 + 1);
	struct emu_compute c = { .op = NEURON_ISA_DMA_TRANSPOSE };
	uint32_t r, k, s;

	(void)state;
	for (int again = 0; again < 2000; again++) {
		uint32_t size = 1 + (uint32_t)(rnd() % 16);
		uint32_t rows = 1 + (uint32_t)(rnd() % (rnd() % 8 ? 40 : 4096));
		uint32_t cols = 1 + (uint32_t)(rnd() % (65536 / size / rows));

		c.arg = NEURON_ISA_DMA_TRANSPOSED(rows, size);
		assert_int_equal(emu_transpose_shape(&c, rows * cols * size, &r, &k, &s), 0);
		assert_true(r == rows && k == cols && s == size);
		for (uint32_t i = 0; i < rows * cols * size; i++)
			src[i] = (uint8_t)rnd();
		dst[rows * cols * size] = 0x55;
		emu_transpose(dst, src, rows, cols, size);
		for (uint32_t i = 0; i < rows * cols; i++)
			assert_memory_equal(dst + (i % cols * rows + i / cols) * size,
					    src + i * size, size);
		assert_int_equal(dst[rows * cols * size], 0x55);
	}
	c.arg = NEURON_ISA_DMA_TRANSPOSED(0, 4);
	assert_int_equal(emu_transpose_shape(&c, 64, &r, &k, &s), -EINVAL);
	c.arg = NEURON_ISA_DMA_TRANSPOSED(4, 0);
	assert_int_equal(emu_transpose_shape(&c, 64, &r, &k, &s), -EINVAL);
	c.arg = NEURON_ISA_DMA_TRANSPOSED(4, 17);
	assert_int_equal(emu_transpose_shape(&c, 4 * 17, &r, &k, &s), -EINVAL);
	c.arg = NEURON_ISA_DMA_TRANSPOSED(3, 4);
	assert_int_equal(emu_transpose_shape(&c, 64, &r, &k, &s), -EINVAL);
	c.arg = NEURON_ISA_DMA_TRANSPOSED(4, 4);
	assert_int_equal(emu_transpose_shape(&c, 66, &r, &k, &s), -EINVAL);
	assert_int_equal(emu_transpose_shape(&c, 65536 + 16, &r, &k, &s), -EINVAL);
	c.arg = NEURON_ISA_DMA_TRANSPOSED(0xffffff, 1);
	assert_int_equal(emu_transpose_shape(&c, 64, &r, &k, &s), -EINVAL);
	free(src);
	free(dst);
}

/* 64-bit integers and fp32: every power of two, its neighbours and the ties between. */
static void test_wide_numbers(void **state)
{
	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		for (int d = -600; d <= 600; d++) {
			uint64_t v = (1ull << bit) + (uint64_t)(int64_t)d *
				     (bit > 33 ? 1ull << (bit - 33) : 1);

			assert_int_equal(emu_u64_to_f32(v), ref_bits((float)v));
			assert_int_equal(emu_s64_to_f32((int64_t)v), ref_bits((float)(int64_t)v));
		}
	}
	for (int i = 0; i < 2000000; i++) {
		uint64_t v = rnd() >> rnd() % 64;
		uint32_t f = (uint32_t)rnd();

		assert_int_equal(emu_u64_to_f32(v), ref_bits((float)v));
		assert_int_equal(emu_s64_to_f32((int64_t)v), ref_bits((float)(int64_t)v));
		f = (f & 0x807fffff) | (uint32_t)(120 + rnd() % 80) << 23;
		assert_true(emu_f32_to_u64(f) == ref_to_u64(ref_float(f)));
		assert_true(emu_f32_to_s64(f) == ref_to_s64(ref_float(f)));
	}
	assert_true(emu_f32_to_s64(EMU_F32_NAN) == 0 && emu_f32_to_u64(EMU_F32_NAN) == 0);
	assert_true(emu_f32_to_s64(EMU_F32_INF) == INT64_MAX);
	assert_true(emu_f32_to_s64(EMU_F32_INF | EMU_F32_SIGN) == INT64_MIN);
	assert_true(emu_f32_to_u64(EMU_F32_INF) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wide_numbers),
		cmocka_unit_test(test_casts),
		cmocka_unit_test(test_cast_all_patterns),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_many_sources),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_transpose),
	};

	return cmocka_run_group_tests_name("compute", tests, NULL, NULL);
}
