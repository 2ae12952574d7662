// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arithmetic on vector registers against the integer routines, bit for bit, for each
 * instruction set that this machine has.
 *
 * SIMD_UNARY=1 in the environment takes all 2^32 numbers for each function of one operand
 * (3,001 makes it every 3,001st number, which is the default), SIMD_PAIRS=100000000 sets the
 * number of pairs for functions of two, SIMD_TEST="test_p*" chooses tests; make -C tests/lib
 * simd-long does all of it, without sanitizers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../kmod/emu/exec.h"
#include "../kunit/exec_run.h"
#include "../kunit/fp_sweep.h"
#include "simd_paths.h"

#define BATCH	4096u

static u64 rng = 88172645463325252ULL;
static struct simd_path paths[SIMD_MAX_PATHS];
static unsigned int nr_paths;

static u32 rnd(u32 n)
{
	return (u32)(fp_sweep_next(&rng) >> 20) % n;
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *env = getenv(name);

	return env ? strtoul(env, NULL, 0) : otherwise;
}

/* What a piece of a row gives with integers. */
static void integers(const struct emu_row *r, u8 *d)
{
	static u32 v[BATCH], w[BATCH];
	enum emu_class cls = emu_dtype_class(r->src);

	emu_elems_load(v, r->a, r->src, r->n);
	if (r->opcode == NEURON_ISA_OP_TENSOR) {
		emu_elems_load(w, r->b, r->src, r->n);
		emu_elems_alu(v, v, w, cls, r->op, r->n);
	} else if (r->opcode == NEURON_ISA_OP_ACTIVATE) {
		emu_elems_convert(v, EMU_CLASS_FLOAT, cls, r->n);
		cls = EMU_CLASS_FLOAT;
		emu_elems_act(v, r->op, r->n);
	}
	emu_elems_store(d, r->dst, v, cls, r->n);
}

static void check_row(struct emu_row *r)
{
	static u8 want[4 * BATCH], got[4 * BATCH];
	u32 size = emu_dtype_size(r->dst), p, i;

	integers(r, want);
	r->d = got;
	for (p = 0; p < nr_paths; p++) {
		memset(got, 0xa5, sizeof(got));
		paths[p].simd->row(r);
		if (!memcmp(got, want, r->n * size))
			continue;
		for (i = 0; !memcmp(got + i * size, want + i * size, size); i++)
			;
		fail_msg("%s: op %02x/%u types %u->%u: element %08x is %08x, should be %08x",
			 paths[p].name, r->opcode, r->op, r->src, r->dst,
			 emu_get32(r->a + i * emu_dtype_size(r->src)),
			 emu_get32(got + i * size), emu_get32(want + i * size));
	}
}

/* Numbers of 32 bits, every @step-th, and those next to the limits of the functions. */
static void check_all(u8 opcode, u8 op, u8 src, u8 dst, u64 step)
{
	static const u32 limits[] = {
		0, 0x3ecccccd, 0x42b20000, 0x42b17218, 0x42aeac50, 0xc2d00000, 0x4b000000,
		0x4f000000, 0x7f800000, 0x7f7fffff, 0x477fefff, 0x33000000, 0x38800000,
	};
	static u32 in[BATCH];
	struct emu_row r = { .opcode = opcode, .op = op, .src = src, .dst = dst,
			     .a = (const u8 *)in };
	u64 x;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		for (r.n = 0; r.n < BATCH; r.n++)
			in[r.n] = (limits[i] + r.n / 2 - BATCH / 4) ^ (r.n & 1) << 31;
		check_row(&r);
	}
	for (x = 0; x < 1ULL << 32;) {
		for (r.n = 0; r.n < BATCH && x < 1ULL << 32; x += step)
			in[r.n++] = (u32)x;
		check_row(&r);
	}
}

static void test_functions(void **state)
{
	u64 step = setting("SIMD_UNARY", 3001);
	u8 op;

	(void)state;
	for (op = NEURON_ISA_ACT_IDENTITY; op <= NEURON_ISA_ACT_RSQRT; op++)
		check_all(NEURON_ISA_OP_ACTIVATE, op, NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32, step);
	check_all(NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_TANH, NEURON_ISA_DT_INT32,
		  NEURON_ISA_DT_FP32, step > 3001 ? step : 3001);
}

static const u8 dtypes[] = {
	NEURON_ISA_DT_INT8, NEURON_ISA_DT_UINT8, NEURON_ISA_DT_INT16, NEURON_ISA_DT_UINT16,
	NEURON_ISA_DT_INT32, NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP32,
	NEURON_ISA_DT_FP8_E3, NEURON_ISA_DT_FP8_E4, NEURON_ISA_DT_FP8_E5,
};

static void test_conversions(void **state)
{
	u64 step = setting("SIMD_UNARY", 3001);
	u32 s, d;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
		for (d = 0; d < ARRAY_SIZE(dtypes); d++) {
			u32 size = emu_dtype_size(dtypes[s]);

			if (s == d)
				continue;
			/* a batch of narrow ones: all of them, in two or four places */
			check_all(NEURON_ISA_OP_CAST, 0, dtypes[s], dtypes[d],
				  size == 4 ? step : step > 3001 ? step : 3001);
		}
	}
}

/* All elements of 8 and 16 bits, as fp32. */
static void test_narrow_sources(void **state)
{
	static u16 in[1 << 16];
	struct emu_row r = { .opcode = NEURON_ISA_OP_ACTIVATE, .op = NEURON_ISA_ACT_RELU,
			     .dst = NEURON_ISA_DT_FP32 };
	u32 s, i;

	(void)state;
	for (i = 0; i < 1 << 16; i++)
		in[i] = (u16)i;
	for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
		u32 size = emu_dtype_size(dtypes[s]);

		r.src = dtypes[s];
		r.n = BATCH;
		for (i = 0; i < sizeof(in); i += BATCH * size) {
			r.a = (const u8 *)in + i;
			check_row(&r);
		}
	}
}

static void test_pairs(void **state)
{
	unsigned long pairs = setting("SIMD_PAIRS", 500000), done;
	static u32 a[BATCH], b[BATCH];
	struct emu_row r = { .opcode = NEURON_ISA_OP_TENSOR, .a = (u8 *)a, .b = (u8 *)b,
			     .n = BATCH };
	u32 i, s;

	(void)state;
	for (done = 0; done < pairs; done += BATCH) {
		for (i = 0; i < BATCH; i++) {
			a[i] = fp_sweep_operand(&rng);
			b[i] = fp_sweep_operand(&rng);
		}
		for (i = 0; i < BATCH; i++)
			if (!rnd(8))
				b[i] &= rnd(2) ? 0x80000000 : 0x8000;
		for (r.op = 0; r.op <= NEURON_ISA_ALU_SELECT; r.op++) {
			r.src = NEURON_ISA_DT_FP32;
			r.dst = NEURON_ISA_DT_FP32;
			check_row(&r);
			if (done > 20 * BATCH)
				continue;
			for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
				r.src = dtypes[s];
				r.dst = dtypes[rnd(ARRAY_SIZE(dtypes))];
				check_row(&r);
			}
		}
	}
}

/* Any length and alignment: nothing beyond the end is read or written (ASan). */
static void test_lengths(void **state)
{
	struct emu_row r = { .opcode = NEURON_ISA_OP_CAST };
	u32 n, s, p, i;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
		for (n = 1; n < 300; n += n < 70 ? 1 : 13) {
			u32 d = rnd(ARRAY_SIZE(dtypes)), size, dsize;
			u8 *a, *got, want[4 * 300];

			r.src = dtypes[s];
			r.dst = dtypes[d];
			size = emu_dtype_size(r.src);
			dsize = emu_dtype_size(r.dst);
			r.n = n;
			a = malloc(n * size);
			got = malloc(n * dsize);
			for (i = 0; i < n * size; i++)
				a[i] = (u8)rnd(256);
			r.a = a;
			r.d = got;
			integers(&r, want);
			for (p = 0; p < nr_paths; p++) {
				memset(got, 0, n * dsize);
				paths[p].simd->row(&r);
				assert_memory_equal(got, want, n * dsize);
			}
			free(a);
			free(got);
		}
	}
}

struct product {
	struct neuron_isa_inst in;
	u32 end;		/* bytes of the buffer that it uses */
};

/* Counts at the borders of tiles, panels and vectors, and others. */
static u32 count(u32 most)
{
	static const u32 borders[] = {
		1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256,
		257, 511, 512, 513,
	};
	u32 n = rnd(2) ? borders[rnd(ARRAY_SIZE(borders))] : 1 + rnd(most);

	return n > most ? 1 + rnd(most) : n;
}

static struct product product(u8 src, u8 dst, u8 flags, u32 m, u32 n, u32 k)
{
	u32 ss = emu_dtype_size(src), ds = emu_dtype_size(dst);
	bool trans = flags & NEURON_ISA_F_B_TRANSPOSED;
	u32 as = k * ss + rnd(9), bs = (trans ? k : n) * ss + rnd(9), cs = n * ds + rnd(9);
	u32 b = m * as + rnd(7), c = b + (trans ? n : k) * bs + rnd(7);

	return (struct product) {
		.in = {
			.opcode = NEURON_ISA_OP_MATMUL, .magic = NEURON_ISA_MAGIC, .flags = flags,
			.src_dtype = src, .dst_dtype = dst,
			.u.matmul = { .b = b, .c = c, .a_stride = as, .b_stride = bs,
				      .c_stride = cs, .m = m, .n = n, .k = k },
		},
		.end = c + (m - 1) * cs + n * ds,
	};
}

/* Numbers around 1 of every type, anything at all now and then. */
static void fill(u8 *m, u32 size, u8 dtype, bool wild)
{
	u32 i, x;

	for (i = 0; i + 4 <= size; i += 4) {
		x = fp_sweep_operand(&rng);
		if (dtype == NEURON_ISA_DT_FP32 && !wild)
			x = (x & 0x83ffffff) | 0x3c000000;
		else if (dtype != NEURON_ISA_DT_INT8 && !wild)
			x = (x & 0x83ff83ff) | 0x3c003c00;
		emu_put32(m + i, x);
	}
	for (; i < size; i++)
		m[i] = 0x3c;
}

static void check_product(const struct product *p, bool wild, u32 workers)
{
	struct emu_part *part = aligned_alloc(64, sizeof(*part));
	u8 *in = malloc(p->end), *want = malloc(p->end), *got = malloc(p->end);
	struct emu_sbuf sb = { .base = want, .size = p->end };
	u32 i, j;

	memset(part, 0x55, sizeof(*part));
	fill(in, p->end, p->in.src_dtype, wild);
	memcpy(want, in, p->end);
	assert_int_equal(exec_run(&p->in, NEURON_ISA_ENGINE_PE, &sb), 0);
	sb.base = got;
	sb.part = part;
	sb.workers = workers;
	for (i = 0; i < nr_paths; i++) {
		memcpy(got, in, p->end);
		paths[i].simd->section = 1u << rnd(22);
		sb.simd = paths[i].simd;
		assert_int_equal(exec_run(&p->in, NEURON_ISA_ENGINE_PE, &sb), 0);
		if (!memcmp(got, want, p->end))
			continue;
		for (j = 0; got[j] == want[j]; j++)
			;
		fail_msg("%s: types %u->%u flags %u, %u x %u x %u: byte %u of c is %02x, not %02x",
			 paths[i].name, p->in.src_dtype, p->in.dst_dtype, p->in.flags,
			 p->in.u.matmul.m, p->in.u.matmul.n, p->in.u.matmul.k,
			 j - p->in.u.matmul.c, got[j], want[j]);
	}
	free(part);
	free(in);
	free(want);
	free(got);
}

static const u8 products[][2] = {
	{ NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32 }, { NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP32 },
	{ NEURON_ISA_DT_BF16, NEURON_ISA_DT_BF16 }, { NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP32 },
	{ NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP16 }, { NEURON_ISA_DT_INT8, NEURON_ISA_DT_INT32 },
};

static void test_products(void **state)
{
	u32 t, round;
	u8 flags;

	(void)state;
	for (t = 0; t < ARRAY_SIZE(products); t++) {
		for (flags = 0; flags < 4; flags++) {
			for (round = 0; round < 24; round++) {
				u32 m = count(200), n = count(150), k = count(600);
				struct product p;

				/* one of them small, lest it takes minutes */
				if (round % 3 == 0)
					m = 1 + rnd(10);
				else if (round % 3 == 1)
					n = 1 + rnd(10);
				else
					k = 1 + rnd(10);
				p = product(products[t][0], products[t][1], flags, m, n, k);
				check_product(&p, !rnd(4), rnd(4));
			}
		}
	}
}

/* One step of each sum, with whatever operands: c + a b, rounded twice. */
static void test_triples(void **state)
{
	unsigned long left = setting("SIMD_PAIRS", 500000);
	u32 t;

	(void)state;
	for (; left > 128 * 128; left -= 128 * 128) {
		for (t = 0; t < ARRAY_SIZE(products) - 1; t++) {
			struct product p = product(products[t][0], products[t][1],
						   NEURON_ISA_F_ACCUMULATE, 128, 128, 1);

			check_product(&p, true, 1);
		}
	}
}

static u32 longest;

static void note_row(struct emu_row *r)
{
	longest = r->n > longest ? r->n : longest;
}

/* An element of REDUCE takes longer, and so a section has fewer of them. */
static void test_sections(void **state)
{
	static const struct emu_simd simd = { "noted", NULL, note_row, 1u << 16 };
	static u8 mem[1 << 18];
	struct emu_sbuf sb = { .base = mem, .size = sizeof(mem), .simd = &simd };
	struct neuron_isa_inst in = {
		.opcode = NEURON_ISA_OP_TENSOR, .magic = NEURON_ISA_MAGIC,
		.op = NEURON_ISA_ALU_ADD, .flags = NEURON_ISA_F_IMMEDIATE,
		.src_dtype = NEURON_ISA_DT_FP32, .dst_dtype = NEURON_ISA_DT_FP32,
		.u.tensor = { .rows = 1, .cols = 20000, .dst = 100000 },
	};

	(void)state;
	assert_int_equal(exec_run(&in, NEURON_ISA_ENGINE_DVE, &sb), 0);
	assert_int_equal(longest, simd.section / EMU_SIMD_ELEMENT);
	longest = 0;
	in.opcode = NEURON_ISA_OP_REDUCE;
	in.flags = 0;
	assert_int_equal(exec_run(&in, NEURON_ISA_ENGINE_DVE, &sb), 0);
	assert_int_equal(longest, simd.section / EMU_SIMD_CHAINED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_narrow_sources),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_triples),
		cmocka_unit_test(test_sections),
	};
	u32 i;

	if (getenv("SIMD_TEST"))
		cmocka_set_test_filter(getenv("SIMD_TEST"));
	nr_paths = simd_paths(paths);
	for (i = 0; i < nr_paths; i++)
		print_message("# %s\n", paths[i].name);
	if (!nr_paths) {
		puts("1..0 # SKIP this processor has neither AVX2 nor AVX-512");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
