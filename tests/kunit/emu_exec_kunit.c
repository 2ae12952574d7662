// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic and the compute instructions of the software device, in the
 * kernel: without an FPU, with the kernel's compiler flags.  tests/lib does the
 * exhaustive comparison with the FPU; here its fingerprint has to come out.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../../kmod/emu/fp.c"
#include "../../kmod/emu/matmul.c"
#include "../../kmod/emu/exec.c"
#include "../../kmod/emu/arithmetic.c"
#include "exec_run.h"
#include "fp_sweep.h"

#define SBUF_SIZE	16384

static void fp_sweep_matches_fpu(struct kunit *test)
{
	u64 seq = 1;
	u32 sum = 0, i;

	for (i = 0; i < FP_SWEEP_STEPS; i++) {
		u32 a = fp_sweep_operand(&seq), b = fp_sweep_operand(&seq);

		sum = fp_sweep_add(sum, emu_f32_add(a, b));
		sum = fp_sweep_add(sum, emu_f32_mul(a, b));
		sum = fp_sweep_add(sum, emu_f32_div(a, b));
		sum = fp_sweep_add(sum, fp_sweep_mac(b, a, b));
		sum = fp_sweep_add(sum, emu_f32_tanh(a));
		sum = fp_sweep_add(sum, emu_f32_sigmoid(b));
	}
	KUNIT_EXPECT_EQ(test, sum, FP_SWEEP_SUM);
}

static void fp_known_values(struct kunit *test)
{
	/* 1 + 2^-24 is a tie, 1 + 3 * 2^-24 too: to even both times */
	KUNIT_EXPECT_EQ(test, emu_f32_add(0x3f800000, 0x33800000), 0x3f800000u);
	KUNIT_EXPECT_EQ(test, emu_f32_add(0x3f800001, 0x33800000), 0x3f800002u);
	/* 1 / 3, 0 / 0, inf - inf, largest * 2, smallest / 2 */
	KUNIT_EXPECT_EQ(test, emu_f32_div(0x3f800000, 0x40400000), 0x3eaaaaabu);
	KUNIT_EXPECT_EQ(test, emu_f32_div(0, 0x80000000), EMU_F32_NAN);
	KUNIT_EXPECT_EQ(test, emu_f32_sub(EMU_F32_INF, EMU_F32_INF),
			EMU_F32_NAN);
	KUNIT_EXPECT_EQ(test, emu_f32_mul(0x7f7fffff, 0x40000000), EMU_F32_INF);
	KUNIT_EXPECT_EQ(test, emu_f32_mul(0x00000001, 0x3f000000), 0u);
	KUNIT_EXPECT_EQ(test, emu_f32_mul(0x00000003, 0x3f000000), 2u);
	KUNIT_EXPECT_EQ(test, emu_f32_max(0x80000000, 0), 0u);
	KUNIT_EXPECT_EQ(test, emu_f32_min(0xffffffff, 0), EMU_F32_NAN);
	KUNIT_EXPECT_EQ(test, emu_f32_exp(0x3f800000), 0x402df854u);	/* e */
	/* 1 / 3, 1 / -0; roots of 2, of the smallest, of -1 */
	KUNIT_EXPECT_EQ(test, emu_f32_reciprocal(0x40400000), 0x3eaaaaabu);
	KUNIT_EXPECT_EQ(test, emu_f32_rsqrt(0x80000000), EMU_F32_SIGN | EMU_F32_INF);
	KUNIT_EXPECT_EQ(test, emu_f32_rsqrt(0x40000000), 0x3f3504f3u);
	KUNIT_EXPECT_EQ(test, emu_f32_rsqrt(0x00000001), 0x64b504f3u);
	KUNIT_EXPECT_EQ(test, emu_f32_rsqrt(0xbf800000), EMU_F32_NAN);
	/* 2.5, -1e10, NaN to integers; 2^24 + 1 back */
	KUNIT_EXPECT_EQ(test, emu_f32_to_s32(0x40200000), 2);
	KUNIT_EXPECT_EQ(test, emu_f32_to_s32(0xd01502f9), S32_MIN);
	KUNIT_EXPECT_EQ(test, emu_f32_to_u32(0xd01502f9), 0u);
	KUNIT_EXPECT_EQ(test, emu_f32_to_s32(0x7f800001), 0);
	KUNIT_EXPECT_EQ(test, emu_s64_to_f32(0x01000001), 0x4b800000u);
	/* narrow formats: overflow, subnormals, NaN */
	KUNIT_EXPECT_EQ(test, emu_f32_to_f16(0x477ff000), 0x7c00);
	KUNIT_EXPECT_EQ(test, emu_f32_to_f16(0x33800000), 0x0001);
	KUNIT_EXPECT_EQ(test, emu_f32_to_bf16(0x3f808000), 0x3f80);
	KUNIT_EXPECT_EQ(test, emu_f32_to_f8e4(0x43700000), 0x77);	/* 240 */
	KUNIT_EXPECT_EQ(test, emu_f32_to_f8e3(0xffffffff), 0x78);
}

/* a: 3 x 50 fp32 around 1, b: 50 x 70, c: 3 x 70 */
static struct neuron_isa_inst matmul(u8 src, u8 dst)
{
	u32 size = emu_dtype_size(src);

	return (struct neuron_isa_inst) {
		.opcode = NEURON_ISA_OP_MATMUL,
		.magic = NEURON_ISA_MAGIC,
		.src_dtype = src,
		.dst_dtype = dst,
		.u.matmul = {
			.a = cpu_to_le32(0), .b = cpu_to_le32(601),
			.c = cpu_to_le32(15001),
			.a_stride = cpu_to_le32(50 * size),
			.b_stride = cpu_to_le32(70 * size),
			.c_stride = cpu_to_le32(70 * 4),
			.m = cpu_to_le32(3), .n = cpu_to_le32(70),
			.k = cpu_to_le32(50),
		},
	};
}

static void exec_fill(u8 *mem)
{
	u64 seq = 3;
	u32 i;

	for (i = 0; i < SBUF_SIZE; i += 4)
		emu_put32(mem + i, (fp_sweep_operand(&seq) & 0x83ff83ff) |
				   0x3c003c00);
}

static u32 step(u32 acc, u32 a, u32 b)
{
	return emu_f32_add(acc, emu_f32_mul(a, b));
}

/* The fast loops against one operation after the other. */
static void exec_matmul(struct kunit *test)
{
	static const u8 types[][2] = {
		{ NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_BF16, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_INT8, NEURON_ISA_DT_INT32 },
	};
	u8 *mem = kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL);
	struct emu_sbuf sb = { mem, SBUF_SIZE };
	u32 t, i, j, k;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		struct neuron_isa_inst in = matmul(types[t][0], types[t][1]);
		u32 size = emu_dtype_size(types[t][0]);

		exec_fill(mem);
		KUNIT_ASSERT_EQ(test, 0,
				exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
		for (i = 0; i < 3; i++) {
			for (j = 0; j < 70; j++) {
				u32 acc = 0, a, b;

				for (k = 0; k < 50; k++) {
					emu_elems_load(&a, mem + (i * 50 + k) *
						       size, types[t][0], 1);
					emu_elems_load(&b, mem + 601 +
						       (k * 70 + j) * size,
						       types[t][0], 1);
					if (t == 3)
						acc += a * b;
					else
						acc = step(acc, a, b);
				}
				KUNIT_EXPECT_EQ(test, acc,
						emu_get32(mem + 15001 +
							  (i * 70 + j) * 4));
			}
		}
	}
}

/* The same on vector registers: all kinds that the processor has, in sections of any length. */
static void exec_simd(struct kunit *test)
{
	static const u8 types[][2] = {
		{ NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_BF16, NEURON_ISA_DT_BF16 },
		{ NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP32 },
		{ NEURON_ISA_DT_INT8, NEURON_ISA_DT_INT32 },
	};
	struct emu_part *part = kunit_kzalloc(test, sizeof(*part), GFP_KERNEL);
	u8 *mem = kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL);
	u8 *want = kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL);
	struct emu_sbuf sb = { mem, SBUF_SIZE }, sb_want = { want, SBUF_SIZE };
	u32 t, i, flags;

	KUNIT_ASSERT_NOT_NULL(test, part);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_NOT_NULL(test, want);
	if (!emu_arithmetic_path(0))
		kunit_skip(test, "no vector registers of use");
	sb.part = part;
	for (i = 0; emu_arithmetic_path(i); i++) {
		sb.simd = emu_arithmetic_path(i);
		for (t = 0; t < ARRAY_SIZE(types); t++) {
			for (flags = 0; flags < 4; flags++) {
				struct neuron_isa_inst in = matmul(types[t][0], types[t][1]);

				in.flags = flags;
				if (flags & NEURON_ISA_F_B_TRANSPOSED)
					in.u.matmul.b_stride = in.u.matmul.a_stride;
				exec_fill(mem);
				exec_fill(want);
				KUNIT_ASSERT_EQ(test, 0, exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
				KUNIT_ASSERT_EQ(test, 0,
						exec_run(&in, NEURON_ISA_ENGINE_PE, &sb_want));
				KUNIT_EXPECT_EQ_MSG(test, 0, memcmp(mem, want, SBUF_SIZE),
						    "%s, types %u->%u, flags %u", sb.simd->name,
						    types[t][0], types[t][1], flags);
			}
		}
	}
}

/* Functions and operations of operands that are drawn, subnormals and NaNs among them. */
static void exec_simd_rows(struct kunit *test)
{
	static const u8 ops[][2] = {
		{ NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_IDENTITY },
		{ NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_RELU },
		{ NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_SIGMOID },
		{ NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_TANH },
		{ NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_EXP },
		{ NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_RECIPROCAL },
		{ NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_RSQRT },
		{ NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_ADD },
		{ NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_SUB },
		{ NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_MUL },
		{ NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_MAX },
		{ NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_MIN },
		{ NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_SELECT },
		{ NEURON_ISA_OP_GATHER, 0 },
		{ NEURON_ISA_OP_REDUCE, NEURON_ISA_ALU_ADD },
	};
	u8 *mem = kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL);
	u8 *want = kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL);
	struct emu_sbuf sb = { mem, SBUF_SIZE }, sb_want = { want, SBUF_SIZE };
	u32 i, o, dst, j;
	u64 seq = 5;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_NOT_NULL(test, want);
	if (!emu_arithmetic_path(0))
		kunit_skip(test, "no vector registers of use");
	for (i = 0; (sb.simd = emu_arithmetic_path(i)); i++) {
		for (o = 0; o < 2 * ARRAY_SIZE(ops); o++) {
			u8 opcode = ops[o / 2][0];
			struct neuron_isa_inst in = {
				.opcode = opcode, .magic = NEURON_ISA_MAGIC, .op = ops[o / 2][1],
				.src_dtype = NEURON_ISA_DT_FP32,
				.u.tensor = {
					.dst = cpu_to_le32(2 * SBUF_SIZE / 3),
					.src0_stride = cpu_to_le32(260),
					.dst_stride = cpu_to_le32(260),
					.rows = cpu_to_le32(20), .cols = cpu_to_le32(65),
				},
			};

			dst = o & 1 ? NEURON_ISA_DT_FP16 : NEURON_ISA_DT_FP32;
			in.dst_dtype = (u8)dst;
			if (opcode == NEURON_ISA_OP_GATHER)
				in.u.tensor.imm = cpu_to_le32(7);
			if (opcode == NEURON_ISA_OP_TENSOR || opcode == NEURON_ISA_OP_GATHER) {
				in.u.tensor.src1 = cpu_to_le32(SBUF_SIZE / 3);
				in.u.tensor.src1_stride = cpu_to_le32(260);
			}
			for (j = 0; j < SBUF_SIZE; j += 4)
				emu_put32(mem + j, fp_sweep_operand(&seq));
			memcpy(want, mem, SBUF_SIZE);
			j = opcode == NEURON_ISA_OP_ACTIVATE ? NEURON_ISA_ENGINE_ACT :
							       NEURON_ISA_ENGINE_DVE;
			KUNIT_ASSERT_EQ(test, 0, exec_run(&in, j, &sb));
			KUNIT_ASSERT_EQ(test, 0, exec_run(&in, j, &sb_want));
			KUNIT_EXPECT_EQ_MSG(test, 0, memcmp(mem, want, SBUF_SIZE),
					    "%s, %02x/%u to %u", sb.simd->name, opcode, in.op, dst);
		}
	}
}

static void exec_slices(struct kunit *test)
{
	struct neuron_isa_inst in = matmul(NEURON_ISA_DT_FP32,
					   NEURON_ISA_DT_FP32);
	u8 *mem = kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL);
	u8 *whole = kunit_kzalloc(test, SBUF_SIZE, GFP_KERNEL);
	struct emu_sbuf sb = { mem, SBUF_SIZE }, sb_whole = { whole, SBUF_SIZE };
	struct emu_exec *x = kunit_kzalloc(test, sizeof(*x), GFP_KERNEL);
	u32 steps = 1;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_NOT_NULL(test, whole);
	KUNIT_ASSERT_NOT_NULL(test, x);
	exec_fill(mem);
	exec_fill(whole);
	KUNIT_ASSERT_EQ(test, 0, emu_exec_start(x, &in, NEURON_ISA_ENGINE_PE,
						&sb));
	while (emu_exec_step(x, 128) == -EAGAIN)
		steps++;
	KUNIT_ASSERT_EQ(test, 0, exec_run(&in, NEURON_ISA_ENGINE_PE,
					  &sb_whole));
	KUNIT_EXPECT_EQ(test, 0, memcmp(mem, whole, SBUF_SIZE));
	/* 3 rows of 50 x 70, at most 128 a step and never two blocks */
	KUNIT_EXPECT_GE(test, steps, 3 * 50 * 70 / 128);
}

static void exec_refuses(struct kunit *test)
{
	u8 *mem = kunit_kzalloc(test, 2 * SBUF_SIZE, GFP_KERNEL);
	struct emu_sbuf sb = { mem, SBUF_SIZE };
	struct neuron_isa_inst in;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	exec_fill(mem);
	memcpy(mem + SBUF_SIZE, mem, SBUF_SIZE);

	in = matmul(NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32);
	KUNIT_EXPECT_EQ(test, (int)NEURON_ISA_ERR_ENGINE,
			exec_run(&in, NEURON_ISA_ENGINE_SP, &sb));
	in.magic = 0;
	KUNIT_EXPECT_EQ(test, (int)NEURON_ISA_ERR_ILLEGAL,
			exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
	in = matmul(NEURON_ISA_DT_FP32, NEURON_ISA_DT_BF16);
	KUNIT_EXPECT_EQ(test, (int)NEURON_ISA_ERR_ILLEGAL,
			exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
	in = matmul(NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32);
	in.u.matmul.c = cpu_to_le32(SBUF_SIZE - 839);
	KUNIT_EXPECT_EQ(test, (int)NEURON_ISA_ERR_BOUNDS,
			exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
	/* ends at 2^64 exactly, were it not for the check */
	in.u.matmul.a = cpu_to_le32(2);
	in.u.matmul.a_stride = cpu_to_le32(U32_MAX);
	in.u.matmul.m = cpu_to_le32(U32_MAX);
	in.u.matmul.k = cpu_to_le32(0xbfffffff);
	KUNIT_EXPECT_EQ(test, (int)NEURON_ISA_ERR_BOUNDS,
			exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
	in = matmul(NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32);
	in.u.matmul.c = cpu_to_le32(599);
	KUNIT_EXPECT_EQ(test, (int)NEURON_ISA_ERR_ILLEGAL,
			exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
	in = matmul(NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32);
	in.u.bytes[55] = 1;
	KUNIT_EXPECT_EQ(test, (int)NEURON_ISA_ERR_ILLEGAL,
			exec_run(&in, NEURON_ISA_ENGINE_PE, &sb));
	KUNIT_EXPECT_EQ(test, 0, memcmp(mem, mem + SBUF_SIZE, SBUF_SIZE));
}

static struct kunit_case emu_exec_cases[] = {
	KUNIT_CASE(fp_sweep_matches_fpu),
	KUNIT_CASE(fp_known_values),
	KUNIT_CASE(exec_matmul),
	KUNIT_CASE(exec_simd),
	KUNIT_CASE(exec_simd_rows),
	KUNIT_CASE(exec_slices),
	KUNIT_CASE(exec_refuses),
	{}
};

static struct kunit_suite emu_exec_suite = {
	.name = "neuron_emu_exec",
	.test_cases = emu_exec_cases,
};

kunit_test_suite(emu_exec_suite);

MODULE_LICENSE("GPL");
