// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/emu/exec.c: every compute instruction against a plain implementation
 * with the host's FPU, bit for bit and byte for byte over the whole buffer;
 * every kind of bad input; and slices of any size giving the same result.
 *
 * EXEC_SEED in the environment sets the seed, which is printed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <time.h>
#include <cmocka.h>

#include "../../kmod/emu/exec.h"
#include "fp_ref.h"
#include "simd_paths.h"
#include "../kunit/exec_run.h"
#include "../kunit/fp_sweep.h"

#define SIZE		8192u

#define PE	NEURON_ISA_ENGINE_PE
#define ACT	NEURON_ISA_ENGINE_ACT
#define POOL	NEURON_ISA_ENGINE_POOL
#define DVE	NEURON_ISA_ENGINE_DVE
#define SP	NEURON_ISA_ENGINE_SP

#define ILLEGAL	NEURON_ISA_ERR_ILLEGAL
#define ENGINE	NEURON_ISA_ERR_ENGINE
#define BOUNDS	NEURON_ISA_ERR_BOUNDS
#define INDEX	NEURON_ISA_ERR_INDEX

static u64 rng = 88172645463325252ULL;
static u8 *mem, *want;		/* exactly SIZE bytes: ASan sees the ends */
static struct emu_sbuf sb;

static const struct emu_isa_limits limits = {
	.sbuf_size = SIZE,
	.nr_semaphores = 256,
	.nr_events = 256,
	.engines_per_core = 16,
	.nr_queues = 16,
};

static const u8 dtypes[] = {
	NEURON_ISA_DT_INT8, NEURON_ISA_DT_UINT8, NEURON_ISA_DT_INT16,
	NEURON_ISA_DT_UINT16, NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP16,
	NEURON_ISA_DT_INT32, NEURON_ISA_DT_UINT32, NEURON_ISA_DT_FP32,
	NEURON_ISA_DT_FP8_E3, NEURON_ISA_DT_FP8_E4, NEURON_ISA_DT_FP8_E5,
};

static u32 rnd(u32 n)
{
	return (u32)(fp_sweep_next(&rng) >> 20) % n;
}

/* ------------------------------------------------------------------ */
/* The reference: elements are doubles or floats, types are a table.    */

struct ref_type {
	u8 dtype, size;
	bool is_float, is_signed;
	int eb, mb;
};

static const struct ref_type ref_types[] = {
	{ NEURON_ISA_DT_INT8, 1, false, true, 0, 0 },
	{ NEURON_ISA_DT_UINT8, 1, false, false, 0, 0 },
	{ NEURON_ISA_DT_INT16, 2, false, true, 0, 0 },
	{ NEURON_ISA_DT_UINT16, 2, false, false, 0, 0 },
	{ NEURON_ISA_DT_BF16, 2, true, true, 8, 7 },
	{ NEURON_ISA_DT_FP16, 2, true, true, 5, 10 },
	{ NEURON_ISA_DT_INT32, 4, false, true, 0, 0 },
	{ NEURON_ISA_DT_UINT32, 4, false, false, 0, 0 },
	{ NEURON_ISA_DT_FP32, 4, true, true, 8, 23 },
	{ NEURON_ISA_DT_FP8_E3, 1, true, true, 3, 4 },
	{ NEURON_ISA_DT_FP8_E4, 1, true, true, 4, 3 },
	{ NEURON_ISA_DT_FP8_E5, 1, true, true, 5, 2 },
};

static const struct ref_type *ref_type(u8 dtype)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ref_types); i++)
		if (ref_types[i].dtype == dtype)
			return &ref_types[i];
	fail_msg("type %u", dtype);
	return NULL;
}

/* A value: a float, or an integer in an int64 that holds both kinds. */
struct val {
	bool is_float, is_unsigned;
	float f;
	int64_t i;
};

static u32 raw_get(const u8 *p, u32 size)
{
	u32 i, v = 0;

	for (i = 0; i < size; i++)
		v |= (u32)p[i] << 8 * i;
	return v;
}

static void raw_put(u8 *p, u32 size, u32 v)
{
	u32 i;

	for (i = 0; i < size; i++)
		p[i] = (u8)(v >> 8 * i);
}

static struct val val_of(u32 raw, u8 dtype)
{
	const struct ref_type *t = ref_type(dtype);
	struct val v = { .is_float = t->is_float };

	if (t->is_float) {
		v.f = t->mb == 23 ? ref_float(raw) :
				    ref_widen(raw, t->eb, t->mb);
	} else {
		v.i = raw;
		if (t->is_signed && raw >> (8 * t->size - 1))
			v.i -= (int64_t)1 << 8 * t->size;
		v.is_unsigned = dtype == NEURON_ISA_DT_UINT32;
	}
	return v;
}

static struct val ref_load(const u8 *p, u8 dtype)
{
	return val_of(raw_get(p, ref_type(dtype)->size), dtype);
}

static void ref_store(u8 *p, u8 dtype, struct val v)
{
	const struct ref_type *t = ref_type(dtype);
	double lo, hi;

	if (t->is_float) {
		float f = v.is_float ? v.f : (float)v.i;

		raw_put(p, t->size, t->mb == 23 ? ref_bits(f) :
			ref_narrow(f, t->eb, t->mb));
		return;
	}
	lo = t->is_signed ? -ldexp(1, 8 * t->size - 1) : 0;
	hi = ldexp(1, 8 * t->size - t->is_signed) - 1;
	raw_put(p, t->size, (u32)(int64_t)
		ref_to_int(v.is_float ? v.f : (double)v.i, lo, hi));
}

/* Back into 32 bits of the right kind */
static struct val wrap(struct val v)
{
	if (v.is_float)
		return v;
	v.i = v.is_unsigned ? (int64_t)(u32)v.i : (int64_t)(s32)(u32)v.i;
	return v;
}

static struct val ref_alu(struct val a, struct val b, u8 op)
{
	switch (op) {
	case NEURON_ISA_ALU_ADD:
		a.f = a.f + b.f;
		a.i = a.i + b.i;
		break;
	case NEURON_ISA_ALU_SUB:
		a.f = a.f - b.f;
		a.i = a.i - b.i;
		break;
	case NEURON_ISA_ALU_MUL:
		a.f = a.f * b.f;
		a.i = (int64_t)((u64)a.i * (u64)b.i);
		break;
	case NEURON_ISA_ALU_MAX:
		a.f = ref_max(a.f, b.f);
		a.i = a.i > b.i ? a.i : b.i;
		break;
	case NEURON_ISA_ALU_SELECT:
		if (b.is_float ? b.f == 0 : !b.i) {
			a.f = 0;
			a.i = 0;
		}
		break;
	case NEURON_ISA_ALU_MIN:
		a.f = ref_min(a.f, b.f);
		a.i = a.i < b.i ? a.i : b.i;
		break;
	}
	return wrap(a);
}

static struct val ref_act(struct val v, u8 op)
{
	float x = v.is_float ? v.f : (float)v.i;

	switch (op) {
	case NEURON_ISA_ACT_RELU:
		x = ref_relu(x);
		break;
	case NEURON_ISA_ACT_SIGMOID:
		x = ref_sigmoid(x);
		break;
	case NEURON_ISA_ACT_TANH:
		x = ref_tanh(x);
		break;
	case NEURON_ISA_ACT_EXP:
		x = ref_exp(x);
		break;
	case NEURON_ISA_ACT_RECIPROCAL:
		x = ref_reciprocal(x);
		break;
	case NEURON_ISA_ACT_RSQRT:
		x = ref_rsqrt(x);
		break;
	}
	return (struct val){ .is_float = true, .f = x };
}

static void ref_matmul(const struct neuron_isa_inst *in, u8 *m)
{
	u32 ss = ref_type(in->src_dtype)->size;
	u32 ds = ref_type(in->dst_dtype)->size;
	bool is_float = ref_type(in->src_dtype)->is_float;
	u32 i, j, k;

	for (i = 0; i < in->u.matmul.m; i++) {
		for (j = 0; j < in->u.matmul.n; j++) {
			u8 *c = m + in->u.matmul.c +
				i * in->u.matmul.c_stride + j * ds;
			struct val acc = { .is_float = is_float };

			if (in->flags & NEURON_ISA_F_ACCUMULATE)
				acc = ref_load(c, in->dst_dtype);
			for (k = 0; k < in->u.matmul.k; k++) {
				u32 row = k, col = j;
				struct val a, b;

				if (in->flags & NEURON_ISA_F_B_TRANSPOSED) {
					row = j;
					col = k;
				}
				a = ref_load(m + in->u.matmul.a +
					     i * in->u.matmul.a_stride + k * ss,
					     in->src_dtype);
				b = ref_load(m + in->u.matmul.b +
					     row * in->u.matmul.b_stride +
					     col * ss, in->src_dtype);
				acc.f = ref_mac(acc.f, a.f, b.f);
				acc.i += a.i * b.i;
				acc = wrap(acc);
			}
			ref_store(c, in->dst_dtype, acc);
		}
	}
}

static void ref_tensor(const struct neuron_isa_inst *in, u8 *m)
{
	u32 ds = ref_type(in->dst_dtype)->size, ss = 0, i, j;

	if (in->opcode != NEURON_ISA_OP_MEMSET)
		ss = ref_type(in->src_dtype)->size;
	for (i = 0; i < in->u.tensor.rows; i++) {
		u8 *dst = m + in->u.tensor.dst + i * in->u.tensor.dst_stride;
		u8 *s0 = m + in->u.tensor.src0 + i * in->u.tensor.src0_stride;
		u8 *s1 = m + in->u.tensor.src1 + i * in->u.tensor.src1_stride;
		struct val v, w;

		if (in->opcode == NEURON_ISA_OP_GATHER) {
			u32 index = raw_get(s1, 4);

			index = index < in->u.tensor.imm ? index : in->u.tensor.imm - 1;
			s0 = m + in->u.tensor.src0 + index * in->u.tensor.src0_stride;
		}
		if (in->opcode == NEURON_ISA_OP_REDUCE) {
			v = ref_load(s0, in->src_dtype);
			for (j = 1; j < in->u.tensor.cols; j++)
				v = ref_alu(v, ref_load(s0 + j * ss,
							in->src_dtype),
					    in->op);
			ref_store(dst, in->dst_dtype, v);
			continue;
		}
		for (j = 0; j < in->u.tensor.cols; j++, dst += ds, s0 += ss) {
			switch (in->opcode) {
			case NEURON_ISA_OP_MEMSET:
				raw_put(dst, ds, in->u.tensor.imm);
				break;
			case NEURON_ISA_OP_CAST:
			case NEURON_ISA_OP_GATHER:
				if (in->src_dtype == in->dst_dtype)
					raw_put(dst, ds, raw_get(s0, ss));
				else
					ref_store(dst, in->dst_dtype,
						  ref_load(s0, in->src_dtype));
				break;
			case NEURON_ISA_OP_ACTIVATE:
				ref_store(dst, in->dst_dtype,
					  ref_act(ref_load(s0, in->src_dtype),
						  in->op));
				break;
			case NEURON_ISA_OP_TENSOR:
				v = ref_load(s0, in->src_dtype);
				if (in->flags & NEURON_ISA_F_IMMEDIATE)
					w = val_of(in->u.tensor.imm,
						   in->src_dtype);
				else if (in->flags & NEURON_ISA_F_SRC1_COLUMN)
					w = ref_load(s1, in->src_dtype);
				else
					w = ref_load(s1 + j * ss,
						     in->src_dtype);
				ref_store(dst, in->dst_dtype,
					  ref_alu(v, w, in->op));
				break;
			}
		}
	}
}

/* ------------------------------------------------------------------ */

/* Numbers that make sense as floats in most places, anything in some. */
static void fill(u8 *m, u32 size)
{
	u32 kind = rnd(4), i;

	for (i = 0; i + 4 <= size; i += 4) {
		u32 x = fp_sweep_operand(&rng);

		if (kind == 0)		/* fp32 around 1 */
			x = (x & 0x83ffffff) | 0x3c000000;
		else if (kind == 1)	/* bf16 and fp16 around 1 */
			x = (x & 0x83ff83ff) | 0x3c003c00;
		else if (kind == 2 && rnd(2))
			x &= rnd(2) ? 0 : 0x80000000;
		raw_put(m + i, 4, x);
	}
}

static const u8 any_engine[] = {
	[NEURON_ISA_OP_MATMUL] = PE,
	[NEURON_ISA_OP_TENSOR] = DVE,
	[NEURON_ISA_OP_ACTIVATE] = ACT,
	[NEURON_ISA_OP_REDUCE] = POOL,
	[NEURON_ISA_OP_CAST] = DVE,
	[NEURON_ISA_OP_MEMSET] = POOL,
	[NEURON_ISA_OP_GATHER] = DVE,
};

/* Execute and compare with the reference; sometimes in random slices. */
static void check_exec(const struct neuron_isa_inst *in)
{
	enum neuron_isa_engine engine = any_engine[in->opcode];
	static const u32 budgets[] = { 0, 1, 7, 64, 500, 100000 };
	struct emu_exec x;
	u32 i, steps = 0;
	int ret;

	memcpy(want, mem, SIZE);
	if (in->opcode == NEURON_ISA_OP_MATMUL)
		ref_matmul(in, want);
	else
		ref_tensor(in, want);

	assert_int_equal(emu_isa_check(in, engine, &limits), 0);
	if (rnd(2)) {
		ret = exec_run(in, engine, &sb);
	} else {
		memset(&x, 0xa5, sizeof(x));
		assert_int_equal(emu_exec_start(&x, in, engine, &sb), 0);
		do {
			ret = emu_exec_step(&x, budgets[rnd(6)]);
			assert_true(steps++ < 10000000);
		} while (ret == -EAGAIN);
	}
	assert_int_equal(ret, 0);
	if (!memcmp(mem, want, SIZE))
		return;
	for (i = 0; mem[i] == want[i]; i++)
		;
	print_message("# op %02x/%u flags %x types %u->%u\n", in->opcode, in->op,
		      in->flags, in->src_dtype, in->dst_dtype);
	for (ret = 0; ret < 9; ret++)
		print_message(" %x", raw_get(in->u.bytes + 4 * ret, 4));
	fail_msg("byte 0x%x is %02x, should be %02x", i, mem[i], want[i]);
}

/* Somewhere in the third @part of the buffer, at any alignment. */
static u32 place(u32 part, u32 rows, u32 len, u32 *stride)
{
	u32 room = SIZE / 3 - rows * len, gap = rows > 1 ? room / rows : 0;

	*stride = len + rnd(gap < 20 ? gap + 1 : 20);
	room = SIZE / 3 - (rows - 1) * *stride - len;
	return part * (SIZE / 3) + rnd(room + 1);
}

static void test_matmul(void **state)
{
	static const u8 types[][2] = {
		{ NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_BF16, NEURON_ISA_DT_BF16 },
		{ NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP16 },
		{ NEURON_ISA_DT_INT8, NEURON_ISA_DT_INT32 },
	};
	u32 t, flags, round;

	(void)state;
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (flags = 0; flags < 4; flags++) {
			for (round = 0; round < 250; round++) {
				struct neuron_isa_inst in = {
					.opcode = NEURON_ISA_OP_MATMUL,
					.magic = NEURON_ISA_MAGIC,
					.flags = (u8)flags,
					.src_dtype = types[t][0],
					.dst_dtype = types[t][1],
				};
				u32 ss = ref_type(in.src_dtype)->size;
				u32 ds = ref_type(in.dst_dtype)->size;
				u32 m = 1 + rnd(5), k = 1 + rnd(20);
				/* at times more than one block of columns */
				u32 n = 1 + (rnd(3) ? rnd(20) : rnd(130 / m));
				u32 s;

				fill(mem, SIZE);
				if (n * k * ss > SIZE / 3)
					k = 1 + rnd(3);
				in.u.matmul.m = m;
				in.u.matmul.n = n;
				in.u.matmul.k = k;
				in.u.matmul.a = place(0, m, k * ss, &s);
				in.u.matmul.a_stride = s;
				if (flags & NEURON_ISA_F_B_TRANSPOSED)
					in.u.matmul.b = place(1, n, k * ss, &s);
				else
					in.u.matmul.b = place(1, k, n * ss, &s);
				in.u.matmul.b_stride = s;
				in.u.matmul.c = place(2, m, n * ds, &s);
				in.u.matmul.c_stride = s;
				if (!rnd(8))
					in.u.matmul.a_stride = 0;
				if (!rnd(8))
					in.u.matmul.b_stride = rnd(ss * k);
				check_exec(&in);
			}
		}
	}
}

/* One instruction of each form, with operands apart from each other. */
static void make_tensor(struct neuron_isa_inst *in, u8 opcode, u8 src, u8 dst)
{
	u32 ds = ref_type(dst)->size, ss = ref_type(src)->size;
	u32 rows = 1 + rnd(6), cols = 1 + rnd(rnd(4) ? 20 : 100), s;
	bool reduce = opcode == NEURON_ISA_OP_REDUCE;

	memset(in, 0, sizeof(*in));
	in->opcode = opcode;
	in->magic = NEURON_ISA_MAGIC;
	in->src_dtype = src;
	in->dst_dtype = dst;
	in->u.tensor.rows = rows;
	in->u.tensor.cols = cols;
	in->u.tensor.dst = place(2, rows, (reduce ? 1 : cols) * ds, &s);
	in->u.tensor.dst_stride = s;
	if (opcode == NEURON_ISA_OP_MEMSET) {
		in->src_dtype = 0;
		in->u.tensor.imm = fp_sweep_operand(&rng) >> (32 - 8 * ds);
		return;
	}
	if (opcode == NEURON_ISA_OP_GATHER) {
		in->u.tensor.src1 = place(1, rows, 4, &s);
		in->u.tensor.src1_stride = rnd(6) ? s : rnd(4);
		/* Some indexes lie behind the table. */
		for (u32 i = 0; i < rows && rnd(8); i++)
			raw_put(mem + in->u.tensor.src1 + i * in->u.tensor.src1_stride, 4, rnd(8));
		rows = in->u.tensor.imm = 1 + rnd(6);
	}
	in->u.tensor.src0 = place(0, rows, cols * ss, &s);
	in->u.tensor.src0_stride = rnd(6) ? s : rnd(cols * ss);
	if (opcode == NEURON_ISA_OP_TENSOR) {
		switch (rnd(3)) {
		case 0:
			in->flags = NEURON_ISA_F_IMMEDIATE;
			in->u.tensor.imm = fp_sweep_operand(&rng) >>
					   (32 - 8 * ss);
			break;
		case 1:
			in->flags = NEURON_ISA_F_SRC1_COLUMN;
			in->u.tensor.src1 = place(1, rows, ss, &s);
			in->u.tensor.src1_stride = s;
			break;
		default:
			in->u.tensor.src1 = place(1, rows, cols * ss, &s);
			in->u.tensor.src1_stride = rnd(4) ? s : 0;
			break;
		}
	}
}

static void test_tensor_like(void **state)
{
	static const struct {
		u8 opcode, nr_ops;
	} ops[] = {
		{ NEURON_ISA_OP_TENSOR, 6 }, { NEURON_ISA_OP_ACTIVATE, 7 },
		{ NEURON_ISA_OP_REDUCE, 5 }, { NEURON_ISA_OP_CAST, 1 },
		{ NEURON_ISA_OP_MEMSET, 1 }, { NEURON_ISA_OP_GATHER, 1 },
	};
	struct neuron_isa_inst in;
	u32 o, op, s, d, round;

	(void)state;
	for (o = 0; o < ARRAY_SIZE(ops); o++) {
		for (op = 0; op < ops[o].nr_ops; op++) {
			for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
				for (d = 0; d < ARRAY_SIZE(dtypes); d++) {
					for (round = 0; round < 10; round++) {
						fill(mem, SIZE);
						make_tensor(&in, ops[o].opcode,
							    dtypes[s],
							    dtypes[d]);
						in.op = (u8)op;
						check_exec(&in);
					}
				}
			}
		}
	}
}

/* In place, with a second operand at the same place, and side by side. */
static void test_in_place(void **state)
{
	struct neuron_isa_inst in;
	u32 s, round;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
		for (round = 0; round < 60; round++) {
			fill(mem, SIZE);
			make_tensor(&in, NEURON_ISA_OP_TENSOR, dtypes[s],
				    dtypes[s]);
			in.op = (u8)rnd(6);
			if (in.flags || rnd(2)) {
				in.u.tensor.src0 = in.u.tensor.dst;
				in.u.tensor.src0_stride = in.u.tensor.dst_stride;
			} else {
				in.u.tensor.src1 = in.u.tensor.dst;
				in.u.tensor.src1_stride = in.u.tensor.dst_stride;
				if (rnd(2)) {
					in.u.tensor.src0 = in.u.tensor.dst;
					in.u.tensor.src0_stride =
						in.u.tensor.dst_stride;
				}
			}
			check_exec(&in);
		}
	}
	/* Columns 8..15 of a matrix from columns 0..7: same stride */
	memset(&in, 0, sizeof(in));
	in.opcode = NEURON_ISA_OP_CAST;
	in.magic = NEURON_ISA_MAGIC;
	in.src_dtype = NEURON_ISA_DT_BF16;
	in.dst_dtype = NEURON_ISA_DT_FP16;
	in.u.tensor.rows = 10;
	in.u.tensor.cols = 8;
	in.u.tensor.src0_stride = 32;
	in.u.tensor.dst_stride = 32;
	in.u.tensor.src0 = 100;
	in.u.tensor.dst = 116;
	fill(mem, SIZE);
	check_exec(&in);
	in.u.tensor.dst = 100 - 16;
	check_exec(&in);
	in.u.tensor.dst = 100 + 5 * 32 + 16;	/* rows interleave further down */
	check_exec(&in);
}

/* Elements of one type stored as another: any length and alignment. */
static void test_cast_stream(void **state)
{
	u32 s, d, i, round;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
		for (d = 0; d < ARRAY_SIZE(dtypes); d++) {
			u32 ss = ref_type(dtypes[s])->size;
			u32 ds = ref_type(dtypes[d])->size;

			/* The device copies bytes then. */
			if (s == d)
				continue;
			for (round = 0; round < 10; round++) {
				u32 n = rnd(200), from = rnd(100);
				u32 to = ss == ds && rnd(2) ? from :
					 4000 + rnd(100);
				u32 v[200];

				fill(mem, SIZE);
				memcpy(want, mem, SIZE);
				for (i = 0; i < n; i++)
					ref_store(want + to + i * ds, dtypes[d],
						  ref_load(mem + from + i * ss, dtypes[s]));
				emu_elems_load(v, mem + from, dtypes[s], n);
				emu_elems_store(mem + to, dtypes[d], v,
						emu_dtype_class(dtypes[s]), n);
				assert_memory_equal(mem, want, SIZE);
			}
		}
	}
}

/* Refused with @error; checks and executor agree; no byte changes. */
static void check_refused(const struct neuron_isa_inst *in, u32 engine,
			  int error)
{
	struct neuron_isa_inst copy = *in;
	struct emu_exec x;

	memcpy(want, mem, SIZE);
	assert_int_equal(emu_isa_check(in, engine, &limits), error);
	if (emu_isa_is_compute(in) || in->magic != NEURON_ISA_MAGIC) {
		assert_int_equal(exec_run(in, engine, &sb), error);
		assert_int_equal(emu_exec_start(&x, in, engine, &sb), error);
	} else {
		assert_true(exec_run(in, engine, &sb) > 0);
	}
	assert_memory_equal(mem, want, SIZE);
	assert_memory_equal(&copy, in, sizeof(copy));
}

static struct neuron_isa_inst good_matmul(void)
{
	struct neuron_isa_inst in = {
		.opcode = NEURON_ISA_OP_MATMUL,
		.magic = NEURON_ISA_MAGIC,
		.src_dtype = NEURON_ISA_DT_FP32,
		.dst_dtype = NEURON_ISA_DT_FP32,
		.u.matmul = {
			.a = 0, .b = 1000, .c = 3000,
			.a_stride = 40, .b_stride = 80, .c_stride = 80,
			.m = 4, .n = 20, .k = 10,
		},
	};

	return in;
}

static struct neuron_isa_inst good_tensor(u8 opcode)
{
	struct neuron_isa_inst in = {
		.opcode = opcode,
		.magic = NEURON_ISA_MAGIC,
		.src_dtype = NEURON_ISA_DT_FP32,
		.dst_dtype = NEURON_ISA_DT_FP32,
		.u.tensor = {
			.src0 = 0, .src1 = 1000, .dst = 3000,
			.src0_stride = 40, .src1_stride = 40, .dst_stride = 40,
			.rows = 4, .cols = 10,
		},
	};

	if (opcode == NEURON_ISA_OP_GATHER) {
		in.u.tensor.imm = 4;
	} else if (opcode != NEURON_ISA_OP_TENSOR) {
		in.u.tensor.src1 = 0;
		in.u.tensor.src1_stride = 0;
	}
	if (opcode == NEURON_ISA_OP_MEMSET) {
		in.u.tensor.src0_stride = 0;
		in.src_dtype = 0;
	}
	return in;
}

static struct neuron_isa_inst good(u8 opcode)
{
	struct neuron_isa_inst in = {
		.opcode = opcode,
		.magic = NEURON_ISA_MAGIC,
	};

	if (opcode == NEURON_ISA_OP_MATMUL)
		return good_matmul();
	if (opcode > NEURON_ISA_OP_MATMUL)
		return good_tensor(opcode);
	if (opcode == NEURON_ISA_OP_PROLOGUE) {
		in.u.prologue.signature = NEURON_ISA_SIGNATURE;
		in.u.prologue.version = NEURON_ISA_VERSION;
	} else if (opcode != NEURON_ISA_OP_NOP) {
		in.u.sem.index = 1;
	}
	return in;
}

/* What may run where, and everything that the header can get wrong. */
static const struct {
	u8 opcode, engines, flags, ops, used;
} forms[] = {
	{ NEURON_ISA_OP_NOP, 0x1f, 0, 1, 0 },
	{ NEURON_ISA_OP_PROLOGUE, 0x1f, 0, 1, 8 },
	{ NEURON_ISA_OP_SEM_WAIT, 0x1f, 1, 2, 8 },
	{ NEURON_ISA_OP_SEM_POST, 0x1f, 0, 3, 8 },
	{ NEURON_ISA_OP_EVENT_WAIT, 0x1f, 1, 1, 8 },
	{ NEURON_ISA_OP_EVENT_SET, 0x1f, 0, 1, 8 },
	{ NEURON_ISA_OP_DMA_TRIGGER, 0x1f, 0, 1, 12 },
	{ NEURON_ISA_OP_NOTIFY, 0x1f, 0, 1, 16 },
	{ NEURON_ISA_OP_MATMUL, 0x01, 3, 1, 36 },
	{ NEURON_ISA_OP_TENSOR, 0x0c, 3, 6, 36 },
	{ NEURON_ISA_OP_ACTIVATE, 0x02, 0, 7, 36 },
	{ NEURON_ISA_OP_REDUCE, 0x0c, 0, 5, 36 },
	{ NEURON_ISA_OP_CAST, 0x0e, 0, 1, 36 },
	{ NEURON_ISA_OP_MEMSET, 0x0e, 0, 1, 36 },
	{ NEURON_ISA_OP_GATHER, 0x0c, 0, 1, 36 },
};

static void test_forms(void **state)
{
	struct neuron_isa_inst in, bad;
	u32 op, f, e, i, engine;

	(void)state;
	for (op = 0; op < 256; op++) {
		for (f = 0; f < ARRAY_SIZE(forms); f++)
			if (forms[f].opcode == op)
				break;
		in = good((u8)op);
		if (f == ARRAY_SIZE(forms)) {
			for (e = 0; e < 8; e++)
				check_refused(&in, e, ILLEGAL);
			continue;
		}
		for (engine = e = 0; e < 10; e++) {
			if (op == NEURON_ISA_OP_PROLOGUE)
				in.u.prologue.engine = (u16)e;
			if (e < 5 && forms[f].engines >> e & 1) {
				assert_int_equal(emu_isa_check(&in, e, &limits),
						 0);
				engine = e;
			} else {
				check_refused(&in, e, ENGINE);
			}
		}
		check_refused(&in, U32_MAX, ENGINE);
		if (op == NEURON_ISA_OP_PROLOGUE)
			in.u.prologue.engine = (u16)engine;

		for (i = 0; i < 256; i++) {
			bad = in;
			bad.magic = (u8)i;
			if (i != NEURON_ISA_MAGIC)
				check_refused(&bad, engine, ILLEGAL);
			bad = in;
			bad.op = (u8)i;
			if (i >= forms[f].ops)
				check_refused(&bad, engine, ILLEGAL);
			bad = in;
			bad.flags = (u8)i;
			if (i & ~forms[f].flags)
				check_refused(&bad, engine, ILLEGAL);
		}
		for (i = 0; i < 16; i++) {
			bad = in;
			bad.reserved = (u16)(1u << i);
			check_refused(&bad, engine, ILLEGAL);
		}
		for (i = forms[f].used; i < 56; i++) {
			bad = in;
			bad.u.bytes[i] = (u8)(1 + rnd(255));
			check_refused(&bad, engine, ILLEGAL);
		}
		/* types: only the listed ones, none where there is none */
		for (i = 0; i < 256; i++) {
			bool valid = i && i <= 15 && emu_dtype_size((u8)i);
			bool src = op >= NEURON_ISA_OP_MATMUL &&
				   op != NEURON_ISA_OP_MEMSET;
			bool dst = op >= NEURON_ISA_OP_MATMUL;

			bad = in;
			bad.src_dtype = (u8)i;
			if (src ? !valid : i)
				check_refused(&bad, engine, ILLEGAL);
			bad = in;
			bad.dst_dtype = (u8)i;
			if (dst ? !valid : i)
				check_refused(&bad, engine, ILLEGAL);
		}
	}
	for (i = 0; i < 256; i++) {
		bool known = false;

		for (f = 0; f < ARRAY_SIZE(dtypes); f++)
			known |= dtypes[f] == i;
		assert_int_equal(!!emu_dtype_size((u8)i), known);
		assert_int_equal(emu_dtype_class((u8)i) != EMU_CLASS_NONE,
				 known);
	}
}

static void test_control(void **state)
{
	struct neuron_isa_inst in;

	(void)state;
	in = good(NEURON_ISA_OP_PROLOGUE);
	in.u.prologue.signature ^= 1;
	check_refused(&in, PE, ILLEGAL);
	in = good(NEURON_ISA_OP_PROLOGUE);
	in.u.prologue.version++;
	check_refused(&in, PE, ILLEGAL);
	in.u.prologue.version = 0;
	check_refused(&in, PE, ILLEGAL);
	in = good(NEURON_ISA_OP_PROLOGUE);
	check_refused(&in, SP, ENGINE);

	in = good(NEURON_ISA_OP_SEM_WAIT);
	in.u.sem.value = U32_MAX;
	in.u.sem.index = 255;
	assert_int_equal(emu_isa_check(&in, SP, &limits), 0);
	in.u.sem.index = 256;
	check_refused(&in, SP, INDEX);
	in.u.sem.index = U32_MAX;
	check_refused(&in, SP, INDEX);
	in.opcode = NEURON_ISA_OP_SEM_POST;
	check_refused(&in, SP, INDEX);
	in.u.sem.index = 255;
	assert_int_equal(emu_isa_check(&in, SP, &limits), 0);

	in = good(NEURON_ISA_OP_EVENT_WAIT);
	in.u.sem.index = 255;
	assert_int_equal(emu_isa_check(&in, SP, &limits), 0);
	in.flags = NEURON_ISA_F_CONSUME;
	check_refused(&in, SP, ILLEGAL);	/* consume a clear event */
	in.u.sem.value = 1;
	assert_int_equal(emu_isa_check(&in, SP, &limits), 0);
	in.u.sem.value = 2;
	check_refused(&in, SP, ILLEGAL);
	in.u.sem.value = 1;
	in.u.sem.index = 256;
	check_refused(&in, SP, INDEX);
	in.opcode = NEURON_ISA_OP_EVENT_SET;
	in.flags = 0;
	check_refused(&in, SP, INDEX);
	in.u.sem.index = 0;
	assert_int_equal(emu_isa_check(&in, SP, &limits), 0);
	in.u.sem.value = 0x80000000;
	check_refused(&in, SP, ILLEGAL);

	in = good(NEURON_ISA_OP_DMA_TRIGGER);
	in.u.dma.engine = 15;
	in.u.dma.queue = 15;
	in.u.dma.tx_count = U32_MAX;
	assert_int_equal(emu_isa_check(&in, ACT, &limits), 0);
	in.u.dma.engine = 16;
	check_refused(&in, ACT, INDEX);
	in.u.dma.engine = 0;
	in.u.dma.queue = 16;
	check_refused(&in, ACT, INDEX);
	in.u.dma.queue = 0xffff;
	check_refused(&in, ACT, INDEX);

	in = good(NEURON_ISA_OP_NOTIFY);
	in.u.notify.id = U32_MAX;
	in.u.notify.data = ~0ULL;
	assert_int_equal(emu_isa_check(&in, ACT, &limits), 0);
	in.u.notify.reserved = 1;
	check_refused(&in, ACT, ILLEGAL);
}

static void test_types(void **state)
{
	struct neuron_isa_inst in;
	u32 s, d, ok = 0;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(dtypes); s++) {
		for (d = 0; d < ARRAY_SIZE(dtypes); d++) {
			in = good_matmul();
			in.src_dtype = dtypes[s];
			in.dst_dtype = dtypes[d];
			if (!emu_isa_check(&in, PE, &limits))
				ok++;
			else
				check_refused(&in, PE, ILLEGAL);
		}
	}
	assert_int_equal(ok, 6);
}

#define REFUSE(in, engine, field, value, error) do {			\
	struct neuron_isa_inst bad_ = (in);				\
									\
	bad_.u.field = (value);						\
	check_refused(&bad_, engine, error);				\
} while (0)

#define ACCEPT(in, engine, field, value) do {				\
	struct neuron_isa_inst good_ = (in);				\
									\
	good_.u.field = (value);					\
	assert_int_equal(emu_isa_check(&good_, engine, &limits), 0);	\
	assert_int_equal(exec_run(&good_, engine, &sb), 0);		\
} while (0)

/* Offsets, strides and counts that reach beyond the buffer. */
static const u32 far[] = {
	SIZE + 1, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff,
};

static void test_matmul_bounds(void **state)
{
	struct neuron_isa_inst in = good_matmul();
	u32 i;

	(void)state;
	/* a: 4 rows of 40 bytes; b: 10 rows of 80; c: 4 rows of 80 */
	ACCEPT(in, PE, matmul.a, SIZE - 160);
	REFUSE(in, PE, matmul.a, SIZE - 159, BOUNDS);
	ACCEPT(in, PE, matmul.b, SIZE - 800);
	REFUSE(in, PE, matmul.b, SIZE - 799, BOUNDS);
	ACCEPT(in, PE, matmul.c, SIZE - 320);
	REFUSE(in, PE, matmul.c, SIZE - 319, BOUNDS);
	ACCEPT(in, PE, matmul.c_stride, (SIZE - 3000 - 80) / 3);
	REFUSE(in, PE, matmul.c_stride, (SIZE - 3000 - 80) / 3 + 1, BOUNDS);
	for (i = 0; i < ARRAY_SIZE(far); i++) {
		REFUSE(in, PE, matmul.a, far[i], BOUNDS);
		REFUSE(in, PE, matmul.b, far[i], BOUNDS);
		REFUSE(in, PE, matmul.c, far[i], BOUNDS);
		REFUSE(in, PE, matmul.a_stride, far[i], BOUNDS);
		REFUSE(in, PE, matmul.b_stride, far[i], BOUNDS);
		REFUSE(in, PE, matmul.c_stride, far[i], BOUNDS);
		REFUSE(in, PE, matmul.m, far[i], BOUNDS);
		REFUSE(in, PE, matmul.n, far[i], BOUNDS);
		REFUSE(in, PE, matmul.k, far[i], BOUNDS);
	}
}

/* Sums that are small again modulo 2^32 and 2^64. */
static void test_matmul_wraps(void **state)
{
	struct neuron_isa_inst in = good_matmul();

	(void)state;
	memset(in.u.bytes, 0xff, 36);
	check_refused(&in, PE, BOUNDS);
	in = good_matmul();
	in.u.matmul.m = 0x10001;
	in.u.matmul.a_stride = 0x10000;		/* 2^32 + 40 */
	check_refused(&in, PE, BOUNDS);
	in = good_matmul();
	in.u.matmul.k = 0x40000001;		/* row of 2^32 + 4 bytes */
	check_refused(&in, PE, BOUNDS);
	in.u.matmul = (typeof(in.u.matmul)){	/* a ends at 2^64 */
		.a = 2, .a_stride = U32_MAX, .m = U32_MAX, .k = 0xbfffffff,
		.n = 1,
	};
	check_refused(&in, PE, BOUNDS);
}

static void test_matmul_sizes(void **state)
{
	struct neuron_isa_inst in;

	(void)state;
	REFUSE(good_matmul(), PE, matmul.m, 0, ILLEGAL);
	REFUSE(good_matmul(), PE, matmul.n, 0, ILLEGAL);
	REFUSE(good_matmul(), PE, matmul.k, 0, ILLEGAL);
	/* One row: the stride does not matter */
	in = good_matmul();
	in.u.matmul.m = 1;
	ACCEPT(in, PE, matmul.a_stride, U32_MAX);
	ACCEPT(in, PE, matmul.c_stride, U32_MAX);
	ACCEPT(in, PE, matmul.c_stride, 0);
}

static void tensor_refuses(struct neuron_isa_inst in, u32 wrong)
{
	enum neuron_isa_engine e = any_engine[in.opcode];
	u32 op = in.opcode;

	REFUSE(in, e, tensor.dst, wrong, BOUNDS);
	REFUSE(in, e, tensor.dst_stride, wrong, BOUNDS);
	REFUSE(in, e, tensor.rows, wrong, BOUNDS);
	REFUSE(in, e, tensor.cols, wrong, BOUNDS);
	if (op == NEURON_ISA_OP_MEMSET) {
		REFUSE(in, e, tensor.src0, wrong, ILLEGAL);
		REFUSE(in, e, tensor.src0_stride, 1, ILLEGAL);
	} else {
		REFUSE(in, e, tensor.src0, wrong, BOUNDS);
		REFUSE(in, e, tensor.src0_stride, wrong, BOUNDS);
	}
	if (op == NEURON_ISA_OP_GATHER)
		REFUSE(in, e, tensor.imm, wrong, BOUNDS);
	if (op == NEURON_ISA_OP_TENSOR || op == NEURON_ISA_OP_GATHER) {
		REFUSE(in, e, tensor.src1, wrong, BOUNDS);
		REFUSE(in, e, tensor.src1_stride, wrong, BOUNDS);
	} else {
		REFUSE(in, e, tensor.src1, wrong, ILLEGAL);
		REFUSE(in, e, tensor.src1_stride, 1, ILLEGAL);
	}
}

static void test_tensor_bounds(void **state)
{
	u32 i, op;

	(void)state;
	for (op = NEURON_ISA_OP_TENSOR; op <= NEURON_ISA_OP_GATHER; op++) {
		enum neuron_isa_engine e = any_engine[op];
		u32 len = op == NEURON_ISA_OP_REDUCE ? 124 : 160;
		struct neuron_isa_inst in = good_tensor((u8)op);

		ACCEPT(in, e, tensor.dst, SIZE - len);
		REFUSE(in, e, tensor.dst, SIZE - len + 1, BOUNDS);
		REFUSE(in, e, tensor.rows, 0, ILLEGAL);
		REFUSE(in, e, tensor.cols, 0, ILLEGAL);
		for (i = 0; i < ARRAY_SIZE(far); i++)
			tensor_refuses(in, far[i]);
		if (op != NEURON_ISA_OP_MEMSET) {
			ACCEPT(in, e, tensor.src0, SIZE - 160);
			REFUSE(in, e, tensor.src0, SIZE - 159, BOUNDS);
			REFUSE(in, e, tensor.imm, op == NEURON_ISA_OP_GATHER ? 0 : 1, ILLEGAL);
		}
		in.u.tensor.cols = 0x40000001;
		check_refused(&in, e, BOUNDS);
	}
}

static void test_second_source(void **state)
{
	struct neuron_isa_inst in;

	(void)state;
	in = good_tensor(NEURON_ISA_OP_TENSOR);
	ACCEPT(in, DVE, tensor.src1, SIZE - 160);
	REFUSE(in, DVE, tensor.src1, SIZE - 159, BOUNDS);
	in.flags = NEURON_ISA_F_SRC1_COLUMN;
	ACCEPT(in, DVE, tensor.src1, SIZE - 124);
	REFUSE(in, DVE, tensor.src1, SIZE - 123, BOUNDS);
	in.flags |= NEURON_ISA_F_IMMEDIATE;
	check_refused(&in, DVE, ILLEGAL);
	in.flags = NEURON_ISA_F_IMMEDIATE;
	check_refused(&in, DVE, ILLEGAL);	/* src1 and its stride are set */
	in.u.tensor.src1 = 0;
	check_refused(&in, DVE, ILLEGAL);
	in.u.tensor.src1_stride = 0;
	ACCEPT(in, DVE, tensor.imm, U32_MAX);
	in.src_dtype = NEURON_ISA_DT_BF16;
	ACCEPT(in, DVE, tensor.imm, 0xffff);
	REFUSE(in, DVE, tensor.imm, 0x10000, ILLEGAL);
	in = good_tensor(NEURON_ISA_OP_GATHER);
	ACCEPT(in, DVE, tensor.src1, SIZE - 124);
	REFUSE(in, DVE, tensor.src1, SIZE - 123, BOUNDS);
	in.u.tensor.src0 = 4000;
	ACCEPT(in, DVE, tensor.imm, (SIZE - 4000) / 40);
	REFUSE(in, DVE, tensor.imm, (SIZE - 4000) / 40 + 1, BOUNDS);
	in = good_tensor(NEURON_ISA_OP_MEMSET);
	in.dst_dtype = NEURON_ISA_DT_INT8;
	ACCEPT(in, DVE, tensor.imm, 0xff);
	REFUSE(in, DVE, tensor.imm, 0x100, ILLEGAL);
}

static void test_overlap(void **state)
{
	struct neuron_isa_inst in = good_matmul();

	(void)state;
	/* c is 320 bytes at 3000, a 160 at 0, b 800 at 1000 */
	ACCEPT(in, PE, matmul.c, 160);
	REFUSE(in, PE, matmul.c, 159, ILLEGAL);
	REFUSE(in, PE, matmul.c, 0, ILLEGAL);
	ACCEPT(in, PE, matmul.c, 680);
	REFUSE(in, PE, matmul.c, 681, ILLEGAL);
	ACCEPT(in, PE, matmul.c, 1800);
	REFUSE(in, PE, matmul.c, 1799, ILLEGAL);
	REFUSE(in, PE, matmul.c_stride, 79, ILLEGAL);
	REFUSE(in, PE, matmul.c_stride, 0, ILLEGAL);
	in.u.matmul.a = in.u.matmul.b;		/* sources may overlap */
	ACCEPT(in, PE, matmul.c_stride, 80);

	in = good_tensor(NEURON_ISA_OP_CAST);
	ACCEPT(in, DVE, tensor.dst, 0);
	REFUSE(in, DVE, tensor.dst, 4, ILLEGAL);
	REFUSE(in, DVE, tensor.dst, 40, ILLEGAL);
	REFUSE(in, DVE, tensor.dst, 159, ILLEGAL);
	ACCEPT(in, DVE, tensor.dst, 160);
	REFUSE(in, DVE, tensor.dst_stride, 39, ILLEGAL);
	in.u.tensor.dst = 0;
	REFUSE(in, DVE, tensor.dst_stride, 44, ILLEGAL);
	REFUSE(in, DVE, tensor.src0_stride, 0, ILLEGAL);
	in.dst_dtype = NEURON_ISA_DT_BF16;	/* other size: not in place */
	check_refused(&in, DVE, ILLEGAL);
	in.dst_dtype = NEURON_ISA_DT_INT32;
	ACCEPT(in, DVE, tensor.dst, 0);

	/* Side by side in rows of 80 bytes, 40 each */
	in.u.tensor.src0_stride = 80;
	in.u.tensor.dst_stride = 80;
	ACCEPT(in, DVE, tensor.dst, 40);
	ACCEPT(in, DVE, tensor.dst, 120);
	REFUSE(in, DVE, tensor.dst, 39, ILLEGAL);
	REFUSE(in, DVE, tensor.dst, 41, ILLEGAL);
	REFUSE(in, DVE, tensor.dst, 80, ILLEGAL);
	in.u.tensor.src0 = 200;
	ACCEPT(in, DVE, tensor.dst, 160);
	REFUSE(in, DVE, tensor.dst, 159, ILLEGAL);
	REFUSE(in, DVE, tensor.dst, 161, ILLEGAL);
	/* One row each in the gaps of the other: still refused */
	in.u.tensor.dst_stride = 120;
	REFUSE(in, DVE, tensor.dst, 240, ILLEGAL);

	in = good_tensor(NEURON_ISA_OP_REDUCE);
	REFUSE(in, DVE, tensor.dst, 0, ILLEGAL);
	REFUSE(in, DVE, tensor.dst_stride, 3, ILLEGAL);
	ACCEPT(in, DVE, tensor.dst_stride, 4);
	in.u.tensor.src0_stride = 44;
	in.u.tensor.dst_stride = 44;
	ACCEPT(in, DVE, tensor.dst, 40);	/* behind each row */
	REFUSE(in, DVE, tensor.dst, 36, ILLEGAL);
	in.u.tensor.cols = 1;			/* never in place */
	REFUSE(in, DVE, tensor.dst, 0, ILLEGAL);

	in = good_tensor(NEURON_ISA_OP_GATHER);
	REFUSE(in, DVE, tensor.dst, 0, ILLEGAL);	/* never in place */
	REFUSE(in, DVE, tensor.dst, 159, ILLEGAL);
	REFUSE(in, DVE, tensor.dst, 1123, ILLEGAL);
	ACCEPT(in, DVE, tensor.dst, 1124);
	in.u.tensor.imm = 10;				/* the table is longer than dst */
	REFUSE(in, DVE, tensor.dst, 399, ILLEGAL);
	ACCEPT(in, DVE, tensor.dst, 400);

	in = good_tensor(NEURON_ISA_OP_TENSOR);
	ACCEPT(in, DVE, tensor.dst, 1000);
	REFUSE(in, DVE, tensor.dst, 1001, ILLEGAL);
	in.flags = NEURON_ISA_F_SRC1_COLUMN;
	in.u.tensor.rows = 1;
	REFUSE(in, DVE, tensor.dst, 1000, ILLEGAL);
	in.u.tensor.cols = 1;
	REFUSE(in, DVE, tensor.dst, 1000, ILLEGAL);
}

/*
 * Anything at all: mostly valid headers, operands of any size.  Under ASan no
 * byte outside the buffer is touched, and what is refused changes nothing.
 */
static void test_random(void **state)
{
	u32 round, ran = 0, i;

	(void)state;
	fill(mem, SIZE);
	for (round = 0; round < 400000; round++) {
		struct neuron_isa_inst in = good(NEURON_ISA_OP_MATMUL + rnd(7));
		struct emu_sbuf small = { mem + SIZE - 256, 256, sb.simd, sb.part, 1 };
		struct emu_isa_limits lim = limits;
		u32 engine = any_engine[in.opcode];
		int check, ret;

		lim.sbuf_size = small.size;
		for (i = 0; i < 9; i++) {
			/* three addresses, then strides and counts */
			u32 v = rnd(i < 3 ? 270 : 20);

			if (in.opcode != NEURON_ISA_OP_MATMUL && rnd(40) &&
			    !raw_get(in.u.bytes + 4 * i, 4))
				continue;
			if (!rnd(60))
				v = (u32)fp_sweep_next(&rng);
			raw_put(in.u.bytes + 4 * i, 4, v);
		}
		if (in.opcode != NEURON_ISA_OP_MEMSET)
			in.src_dtype = dtypes[rnd(ARRAY_SIZE(dtypes))];
		in.dst_dtype = dtypes[rnd(ARRAY_SIZE(dtypes))];
		if (in.opcode == NEURON_ISA_OP_MATMUL && rnd(4))
			in.dst_dtype = in.src_dtype;
		in.flags = (u8)(rnd(2) ? 0 : rnd(5));
		in.op = (u8)(rnd(2) ? 0 : rnd(6));
		if (!rnd(20))
			((u8 *)&in)[rnd(64)] ^= (u8)(1u << rnd(8));
		check = emu_isa_check(&in, engine, &lim);
		if (check && round % 8 == 0)
			memcpy(want, mem, SIZE);
		/* A changed opcode may be a control instruction. */
		ret = exec_run(&in, engine, &small);
		if (emu_isa_is_compute(&in))
			assert_int_equal(ret, check);
		else
			assert_true(ret > 0);
		if (check && round % 8 == 0)
			assert_memory_equal(want, mem, SIZE);
		ran += !ret;
	}
	print_message("# %u of %u random instructions ran\n", ran, round);
	assert_true(ran > round / 100);
}

/* A step never does much more than its budget. */
static void test_bounded(void **state)
{
	struct neuron_isa_inst in = good_matmul();
	struct emu_exec x;
	u32 steps;

	(void)state;
	in.src_dtype = NEURON_ISA_DT_INT8;
	in.dst_dtype = NEURON_ISA_DT_INT32;
	in.u.matmul.m = 10;
	in.u.matmul.n = 100;
	in.u.matmul.k = 1000;
	in.u.matmul.a_stride = 0;
	in.u.matmul.b = 0;
	in.u.matmul.b_stride = 2;
	in.u.matmul.c = 4000;
	in.u.matmul.c_stride = 400;
	assert_int_equal(emu_exec_start(&x, &in, PE, &sb), 0);
	for (steps = 1; emu_exec_step(&x, 1000) == -EAGAIN; steps++)
		;
	/* a million operations, blocks of 64 and 36 columns */
	assert_in_range(steps, 900, 1200);

	/* the same buffer read over and over: still in slices */
	in = good_tensor(NEURON_ISA_OP_REDUCE);
	in.src_dtype = NEURON_ISA_DT_INT8;
	in.dst_dtype = NEURON_ISA_DT_INT8;
	in.u.tensor.src0_stride = 0;
	in.u.tensor.cols = 3000;
	in.u.tensor.rows = 5000;
	in.u.tensor.dst_stride = 1;
	assert_int_equal(emu_exec_start(&x, &in, DVE, &sb), 0);
	for (steps = 1; emu_exec_step(&x, EMU_EXEC_BUDGET) == -EAGAIN; steps++)
		;
	assert_in_range(steps, 15000000 / EMU_EXEC_BUDGET - 10,
			15000000 / EMU_EXEC_BUDGET + 10);
}

/* The programs at the end of ISA.md, with their state buffer. */
static void test_example(void **state)
{
	enum { X = 0x1000, Y = 0x2000, Z = 0x3000, W = 0x10000, B = 0x80000 };
	struct emu_isa_limits lim = limits;
	struct neuron_isa_inst in;
	struct emu_sbuf big = { .size = 0x90000 };
	u32 i, j, negative = 0;
	u8 *m = calloc(1, big.size);

	(void)state;
	assert_non_null(m);
	big.base = m;
	lim.sbuf_size = big.size;
	for (i = 0; i < big.size; i += 4)
		raw_put(m + i, 4, ref_bits((float)((int)rnd(2001) - 1000) /
					   1000.0f));

	in = (struct neuron_isa_inst){
		.opcode = 0x20, .magic = 0x4e, .src_dtype = 10, .dst_dtype = 10,
		.u.matmul = { .a = X, .b = W, .c = Y, .a_stride = 3136, .b_stride = 512,
			      .c_stride = 512, .m = 1, .n = 128, .k = 784 },
	};
	assert_int_equal(emu_isa_check(&in, PE, &lim), 0);
	assert_int_equal(exec_run(&in, PE, &big), 0);
	in = (struct neuron_isa_inst){
		.opcode = 0x21, .magic = 0x4e, .src_dtype = 10, .dst_dtype = 10,
		.u.tensor = { .src0 = Y, .src1 = B, .dst = Y, .src0_stride = 512,
			      .dst_stride = 512, .rows = 1, .cols = 128 },
	};
	assert_int_equal(emu_isa_check(&in, DVE, &lim), 0);
	assert_int_equal(exec_run(&in, DVE, &big), 0);
	in = (struct neuron_isa_inst){
		.opcode = 0x22, .magic = 0x4e, .op = 1, .src_dtype = 10,
		.dst_dtype = 10,
		.u.tensor = { .src0 = Y, .dst = Z, .src0_stride = 512, .dst_stride = 512,
			      .rows = 1, .cols = 128 },
	};
	assert_int_equal(emu_isa_check(&in, ACT, &lim), 0);
	assert_int_equal(exec_run(&in, ACT, &big), 0);

	for (j = 0; j < 128; j++) {
		float y = 0;

		for (i = 0; i < 784; i++)
			y = ref_mac(y, ref_float(raw_get(m + X + 4 * i, 4)),
				    ref_float(raw_get(m + W + 512 * i + 4 * j,
						      4)));
		y += ref_float(raw_get(m + B + 4 * j, 4));
		negative += y < 0;
		assert_int_equal(raw_get(m + Z + 4 * j, 4),
				 ref_bits(y < 0 ? 0 : y));
	}
	assert_in_range(negative, 20, 108);
	free(m);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* How long a multiply-accumulate takes here; informative. */
static void test_speed(void **state)
{
	static const struct {
		const char *name;
		u8 src, dst, size;
	} cases[] = {
		{ "fp32", NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32, 4 },
		{ "bf16", NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP32, 2 },
		{ "fp16", NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP32, 2 },
		{ "int8", NEURON_ISA_DT_INT8, NEURON_ISA_DT_INT32, 1 },
	};
	const u32 m = 8, n = 128, k = 784, b = 0x10000, c = 0x80000;
	struct emu_sbuf big = { .size = 0x90000 };
	u8 *buf = malloc(big.size);
	u32 i, j, t;

	(void)state;
	assert_non_null(buf);
	big.base = buf;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (t = 0; t < 2; t++) {
			struct neuron_isa_inst in = {
				.opcode = NEURON_ISA_OP_MATMUL,
				.magic = NEURON_ISA_MAGIC,
				.flags = t ? NEURON_ISA_F_B_TRANSPOSED : 0,
				.src_dtype = cases[i].src,
				.dst_dtype = cases[i].dst,
			};
			double start;

			for (j = 0; j < c; j += cases[i].size) {
				struct val v = {
					.is_float = true,
					.f = (float)rnd(1 << 20) / (1 << 20) -
					     0.5f,
				};

				if (cases[i].size == 1)
					v.f *= 250;
				ref_store(buf + j, cases[i].src, v);
			}
			in.u.matmul.a = 0;
			in.u.matmul.a_stride = k * cases[i].size;
			in.u.matmul.b = b;
			in.u.matmul.b_stride = (t ? k : n) * cases[i].size;
			in.u.matmul.c = c;
			in.u.matmul.c_stride = n * 4;
			in.u.matmul.m = m;
			in.u.matmul.n = n;
			in.u.matmul.k = k;
			start = seconds();
			assert_int_equal(exec_run(&in, PE, &big), 0);
			print_message("# %s%s: %.1f ns per multiply-accumulate\n",
				      cases[i].name, t ? " transposed" : "",
				      (seconds() - start) * 1e9 / (m * n * k));
		}
	}
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matmul),
		cmocka_unit_test(test_tensor_like),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_cast_stream),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_control),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_matmul_bounds),
		cmocka_unit_test(test_matmul_wraps),
		cmocka_unit_test(test_matmul_sizes),
		cmocka_unit_test(test_tensor_bounds),
		cmocka_unit_test(test_second_source),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_speed),
	};
	/* what does not depend on the arithmetic is tested once */
	const struct CMUnitTest simd_tests[] = {
		cmocka_unit_test(test_matmul),
		cmocka_unit_test(test_tensor_like),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_cast_stream),
		cmocka_unit_test(test_random),
	};
	struct simd_path paths[SIMD_MAX_PATHS];
	const char *seed = getenv("EXEC_SEED");
	unsigned int i, n = simd_paths(paths);
	int ret;

	if (seed)
		rng = strtoull(seed, NULL, 0) | 1;
	print_message("# EXEC_SEED=%llu\n", (unsigned long long)rng);
	mem = malloc(SIZE);
	want = malloc(SIZE);
	if (!mem || !want)
		return 1;
	sb.base = mem;
	sb.size = SIZE;
	fill(mem, SIZE);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	sb.part = aligned_alloc(64, sizeof(*sb.part));
	if (!sb.part)
		return 1;
	for (i = 0; i < n; i++) {
		sb.simd = paths[i].simd;
		paths[i].simd->section = 1000;
		ret |= cmocka_run_group_tests_name(paths[i].name, simd_tests, NULL, NULL);
	}
	free(sb.part);
	free(mem);
	free(want);
	return ret;
}
