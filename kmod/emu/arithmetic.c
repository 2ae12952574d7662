// SPDX-License-Identifier: GPL-2.0-only
/*
 * The choice of arithmetic.  All kinds give the same bits, so the fastest one is used, as a
 * small matrix product shows when the module is loaded.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/slab.h>

#include "arithmetic.h"
#include "exec.h"

#ifdef CONFIG_X86_64
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

/*
 * Does the kernel save these registers?  User Mode Linux leaves that to its host.  KMSAN does
 * not see what such code writes, and would take it for memory that nobody wrote.
 */
static bool emu_saves_avx(void)
{
#if defined(CONFIG_UML)
	return true;
#elif defined(CONFIG_KMSAN)
	return false;
#else
	return cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
#endif
}

static bool emu_saves_avx512(void)
{
#ifdef CONFIG_UML
	return true;
#else
	return emu_saves_avx() && cpu_has_xfeatures(XFEATURE_MASK_AVX512, NULL);
#endif
}

static bool emu_has_avx2(void)
{
	return boot_cpu_has(X86_FEATURE_AVX2) && emu_saves_avx();
}

static bool emu_has_avx512(void)
{
	return boot_cpu_has(X86_FEATURE_AVX512F) && boot_cpu_has(X86_FEATURE_AVX512BW) &&
	       boot_cpu_has(X86_FEATURE_AVX512VL) && boot_cpu_has(X86_FEATURE_AVX512DQ) &&
	       emu_saves_avx512();
}

static const struct {
	struct emu_simd *simd;
	bool (*usable)(void);
} emu_paths[] = {
	{ &emu_simd_avx2, emu_has_avx2 },
	{ &emu_simd_avx512, emu_has_avx512 },
};

/**
 * emu_arithmetic_path() - a kind of vector registers that this machine has
 * @i: number, from 0
 *
 * Return: NULL: there are not that many.
 */
struct emu_simd *emu_arithmetic_path(unsigned int i)
{
	u32 p;

	for (p = 0; p < ARRAY_SIZE(emu_paths); p++)
		if (emu_paths[p].usable() && !i--)
			return emu_paths[p].simd;
	return NULL;
}
#else
struct emu_simd *emu_arithmetic_path(unsigned int i)
{
	return NULL;
}
#endif

/* The product that is timed: long enough to see, short enough for an emulated processor. */
#define TIMED_ROWS	16u
#define TIMED_COLS	64u
#define TIMED_DEPTH	256u
#define TIMED_MACS	(TIMED_ROWS * TIMED_COLS * TIMED_DEPTH)
#define TIMED_RUNS	3

struct emu_timed {
	struct emu_part part;
	struct emu_exec exec;
	u8 sbuf[2 * (TIMED_ROWS * TIMED_DEPTH + TIMED_DEPTH * TIMED_COLS) +
		4 * TIMED_ROWS * TIMED_COLS];
};

/* Nanoseconds of the product, the best of some runs. */
static u64 emu_arithmetic_time(struct emu_timed *t, const struct emu_simd *simd)
{
	const struct neuron_isa_inst inst = {
		.opcode = NEURON_ISA_OP_MATMUL,
		.magic = NEURON_ISA_MAGIC,
		.src_dtype = NEURON_ISA_DT_BF16,
		.dst_dtype = NEURON_ISA_DT_FP32,
		.u.matmul = {
			.a = cpu_to_le32(0),
			.b = cpu_to_le32(2 * TIMED_ROWS * TIMED_DEPTH),
			.c = cpu_to_le32(sizeof(t->sbuf) - 4 * TIMED_ROWS * TIMED_COLS),
			.a_stride = cpu_to_le32(2 * TIMED_DEPTH),
			.b_stride = cpu_to_le32(2 * TIMED_COLS),
			.c_stride = cpu_to_le32(4 * TIMED_COLS),
			.m = cpu_to_le32(TIMED_ROWS),
			.n = cpu_to_le32(TIMED_COLS),
			.k = cpu_to_le32(TIMED_DEPTH),
		},
	};
	const struct emu_sbuf sb = { t->sbuf, sizeof(t->sbuf), simd, &t->part };
	u64 best = U64_MAX, start;
	u32 i;

	/* 1 and a bit, all of them */
	memset(t->sbuf, 0x3f, sizeof(t->sbuf));
	for (i = 0; i < TIMED_RUNS; i++) {
		start = ktime_get_ns();
		if (emu_exec_start(&t->exec, &inst, NEURON_ISA_ENGINE_PE, &sb))
			break;
		while (emu_exec_step(&t->exec, emu_exec_budget(&t->exec)))
			cond_resched();
		best = min_t(u64, best, max_t(u64, ktime_get_ns() - start, 1));
	}
	return best;
}

/* Written when the module is loaded, before there are devices. */
static const struct emu_simd *emu_chosen;

/** emu_arithmetic() - what was chosen; NULL: integers */
const struct emu_simd *emu_arithmetic(void)
{
	return emu_chosen;
}

/** emu_arithmetic_name() - its name, as in the module parameter */
const char *emu_arithmetic_name(void)
{
	return emu_chosen ? emu_chosen->name : "integers";
}

static u32 emu_arithmetic_speed(u64 ns)
{
	return (u32)div64_u64(TIMED_MACS * 1000ULL, ns);
}

/**
 * emu_arithmetic_choose() - choose how the software devices compute
 * @wish: "auto" or the name of a kind
 *
 * Sets how much each kind does in a section of the FPU, and tells what was chosen in the
 * kernel log.
 *
 * Context: module initialisation, may sleep.
 * Return: 0; -ENOMEM; -EINVAL @wish is not known, or this machine does not have it.
 */
int emu_arithmetic_choose(const char *wish)
{
	bool any = !strcmp(wish, "auto"), found = any || !strcmp(wish, "integers");
	struct emu_timed *t = kvzalloc(sizeof(*t), GFP_KERNEL);
	u64 ns, best, integers;
	struct emu_simd *simd;
	u32 i;

	if (!t)
		return -ENOMEM;
	best = emu_arithmetic_time(t, NULL);
	integers = best;
	for (i = 0; (simd = emu_arithmetic_path(i)); i++) {
		ns = emu_arithmetic_time(t, simd);
		simd->section = (u32)min_t(u64, S32_MAX,
			div64_u64((u64)TIMED_MACS * EMU_SIMD_SECTION_US * 1000, ns)) | 1;
		if (any ? ns < best : !strcmp(wish, simd->name)) {
			found = true;
			emu_chosen = simd;
			best = ns;
		}
	}
	kvfree(t);
	if (!found)
		return -EINVAL;
	pr_info("neuron_emu: computes with %s, %u million multiply-adds a second (integers %u)\n",
		emu_arithmetic_name(), emu_arithmetic_speed(best),
		emu_arithmetic_speed(integers));
	return 0;
}
