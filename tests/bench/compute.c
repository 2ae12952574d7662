// SPDX-License-Identifier: GPL-2.0-only
/*
 * How fast the software device computes: with integers, on vector registers, with
 * threads that share a matrix product as workers of the kernel do; and OpenBLAS in the same
 * run.  Each figure is the best of some rounds, in which all of them take turns; processor
 * time but for those of several threads.
 *
 * usage: compute [ROUNDS]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../kmod/emu/exec.h"
#include "../lib/simd_paths.h"

#define N		512u	/* rows, columns and depth of a matrix product */
#define ROWS		64u	/* of elementwise work, which stays in the caches */
#define ELEMENTS	(1u << 16)
#define SBUF		(24u << 20)
#define MAX_THREADS	64

/* Columns of the table. */
enum { INTEGERS, AVX2, AVX512, THREADS, BLAS, BLAS_THREADS, NR_COLUMNS };
static const char *const columns[NR_COLUMNS] = {
	"integers", "avx2", "avx512", "threads", "OpenBLAS", "OpenBLAS, threads",
};

static u8 *sbuf;
static struct emu_part *parts[MAX_THREADS];
static u32 nr_threads;
static struct emu_simd *best;

/* Processor time of one thread, which others on the machine do not add to, or time. */
static double now(bool one)
{
	struct timespec t;

	clock_gettime(one ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double run(const struct neuron_isa_inst *inst, u32 engine, struct emu_simd *simd)
{
	struct emu_sbuf sb = { sbuf, SBUF, simd, simd ? parts[0] : NULL, 1 };
	static struct emu_exec x;
	double start = now(true);

	if (emu_exec_start(&x, inst, engine, &sb))
		abort();
	while (emu_exec_step(&x, emu_exec_budget(&x)))
		;
	return now(true) - start;
}

static struct {
	const struct emu_matmul *mm;
	u64 next;
} shared;

static void *work(void *arg)
{
	struct emu_part *part = arg;
	u64 task;

	while ((task = __atomic_fetch_add(&shared.next, 1, __ATOMIC_RELAXED)) < shared.mm->tasks) {
		emu_part_take(part, shared.mm, task);
		while (part->busy)
			emu_part_step(part, shared.mm);
	}
	return NULL;
}

static double run_threads(const struct neuron_isa_inst *inst, u32 engine)
{
	struct emu_sbuf sb = { sbuf, SBUF, best, parts[0], nr_threads };
	pthread_t thread[MAX_THREADS];
	static struct emu_exec x;
	double start = now(false);
	u32 i;

	if (emu_exec_start(&x, inst, engine, &sb))
		abort();
	shared.mm = emu_exec_matmul(&x);
	shared.next = 0;
	for (i = 1; i < nr_threads; i++)
		if (pthread_create(&thread[i], NULL, work, parts[i]))
			abort();
	work(parts[0]);
	for (i = 1; i < nr_threads; i++)
		pthread_join(thread[i], NULL);
	return now(false) - start;
}

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
		      int lda, const float *b, int ldb, float beta, float *c, int ldc);
static sgemm_fn *sgemm;
static void (*set_threads)(int n);

static void blas_open(void)
{
	void *lib = dlopen("libopenblas.so.0", RTLD_NOW);

	if (!lib) {
		puts("(no OpenBLAS: apt-get install libopenblas0-pthread)\n");
		return;
	}
	sgemm = (sgemm_fn *)dlsym(lib, "cblas_sgemm");
	set_threads = (void (*)(int))dlsym(lib, "openblas_set_num_threads");
	if (!sgemm || !set_threads)
		abort();
}

static double run_blas(u32 threads)
{
	float *m = (float *)sbuf;
	double start;

	set_threads((int)threads);
	start = now(threads == 1);
	sgemm(101, 111, 111, N, N, N, 1, m, N, m + N * N, N, 0, m + 2 * N * N, N);
	return now(threads == 1) - start;
}

struct job {
	const char *name;
	u8 opcode, op, src, dst, flags;
};

static const struct job jobs[] = {
	{ "matmul fp32", NEURON_ISA_OP_MATMUL, 0, NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP32, 0 },
	{ "matmul bf16", NEURON_ISA_OP_MATMUL, 0, NEURON_ISA_DT_BF16, NEURON_ISA_DT_BF16, 0 },
	{ "matmul bf16, b by columns", NEURON_ISA_OP_MATMUL, 0, NEURON_ISA_DT_BF16,
	  NEURON_ISA_DT_BF16, NEURON_ISA_F_B_TRANSPOSED },
	{ "matmul fp16", NEURON_ISA_OP_MATMUL, 0, NEURON_ISA_DT_FP16, NEURON_ISA_DT_FP32, 0 },
	{ "matmul int8", NEURON_ISA_OP_MATMUL, 0, NEURON_ISA_DT_INT8, NEURON_ISA_DT_INT32, 0 },
	{ "matmul int8, b by columns", NEURON_ISA_OP_MATMUL, 0, NEURON_ISA_DT_INT8,
	  NEURON_ISA_DT_INT32, NEURON_ISA_F_B_TRANSPOSED },
	{ "matmul bf16, one row", NEURON_ISA_OP_MATMUL, 1, NEURON_ISA_DT_BF16,
	  NEURON_ISA_DT_BF16, 0 },
	{ "exp fp32", NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_EXP, NEURON_ISA_DT_FP32,
	  NEURON_ISA_DT_FP32, 0 },
	{ "sigmoid fp32", NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_SIGMOID, NEURON_ISA_DT_FP32,
	  NEURON_ISA_DT_FP32, 0 },
	{ "tanh fp32", NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_TANH, NEURON_ISA_DT_FP32,
	  NEURON_ISA_DT_FP32, 0 },
	{ "exp bf16", NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_EXP, NEURON_ISA_DT_BF16,
	  NEURON_ISA_DT_BF16, 0 },
	{ "relu fp32", NEURON_ISA_OP_ACTIVATE, NEURON_ISA_ACT_RELU, NEURON_ISA_DT_FP32,
	  NEURON_ISA_DT_FP32, 0 },
	{ "add fp32", NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_ADD, NEURON_ISA_DT_FP32,
	  NEURON_ISA_DT_FP32, 0 },
	{ "mul bf16", NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_MUL, NEURON_ISA_DT_BF16,
	  NEURON_ISA_DT_BF16, 0 },
	{ "max int8", NEURON_ISA_OP_TENSOR, NEURON_ISA_ALU_MAX, NEURON_ISA_DT_INT8,
	  NEURON_ISA_DT_INT8, 0 },
	{ "cast fp32 to fp16", NEURON_ISA_OP_CAST, 0, NEURON_ISA_DT_FP32, NEURON_ISA_DT_FP16, 0 },
	{ "cast fp8 e4 to bf16", NEURON_ISA_OP_CAST, 0, NEURON_ISA_DT_FP8_E4, NEURON_ISA_DT_BF16,
	  0 },
	{ "sum of rows fp32", NEURON_ISA_OP_REDUCE, NEURON_ISA_ALU_ADD, NEURON_ISA_DT_FP32,
	  NEURON_ISA_DT_FP32, 0 },
};

/* Numbers between 1/256 and 2 of the type, of both signs. */
static void fill(u8 dtype)
{
	u32 i, v, seed = 1;

	for (i = 0; i < SBUF / 2; i += emu_dtype_size(dtype)) {
		seed = seed * 1664525 + 1013904223;
		v = (seed >> 8 & 0x83ffffff) | (seed & 0x80000000) | 0x3c000000;
		if (emu_dtype_class(dtype) == EMU_CLASS_FLOAT)
			emu_elems_store(sbuf + i, dtype, &v, EMU_CLASS_FLOAT, 1);
		else
			sbuf[i] = (u8)(seed >> 16);
	}
}

/* Return: multiply-accumulates or elements. */
static double make(struct neuron_isa_inst *in, u32 *engine, const struct job *j)
{
	u32 ss = emu_dtype_size(j->src), ds = emu_dtype_size(j->dst), rows = N;

	*in = (struct neuron_isa_inst) {
		.opcode = j->opcode, .magic = NEURON_ISA_MAGIC, .op = j->op, .flags = j->flags,
		.src_dtype = j->src, .dst_dtype = j->dst,
	};
	if (j->opcode == NEURON_ISA_OP_MATMUL) {
		*engine = NEURON_ISA_ENGINE_PE;
		rows = j->op ? 1 : N;
		in->op = 0;
		in->u.matmul = (__typeof__(in->u.matmul)) {
			0, N * N * ss, SBUF / 2, N * ss, N * ss, N * ds, rows, N, N,
		};
		return (double)rows * N * N;
	}
	*engine = j->opcode == NEURON_ISA_OP_ACTIVATE ? NEURON_ISA_ENGINE_ACT :
							NEURON_ISA_ENGINE_DVE;
	in->u.tensor = (__typeof__(in->u.tensor)) {
		0, 0, 2 * 4 * ELEMENTS, ELEMENTS / ROWS * ss, 0, ELEMENTS / ROWS * ds, ROWS,
		ELEMENTS / ROWS, 0,
	};
	if (j->opcode == NEURON_ISA_OP_TENSOR) {
		in->u.tensor.src1 = 4 * ELEMENTS;
		in->u.tensor.src1_stride = in->u.tensor.src0_stride;
	}
	return ELEMENTS;
}

static void measure(double *t, const struct job *j, struct simd_path *paths, u32 nr_paths,
		    int rounds)
{
	struct neuron_isa_inst in;
	u32 engine, c, i;

	make(&in, &engine, j);
	fill(j->src);
	for (c = 0; c < NR_COLUMNS; c++)
		t[c] = 1e9;
	for (; rounds; rounds--) {
		for (c = 0; c < NR_COLUMNS; c++) {
			double s = 1e9;

			if (c == INTEGERS)
				s = run(&in, engine, NULL);
			else if (c == THREADS && best && j->opcode == NEURON_ISA_OP_MATMUL)
				s = run_threads(&in, engine);
			else if (c >= BLAS && sgemm && j == jobs)
				s = run_blas(c == BLAS ? 1 : nr_threads);
			for (i = 0; i < nr_paths; i++)
				if (!strcmp(columns[c], paths[i].name))
					s = run(&in, engine, paths[i].simd);
			if (s < t[c])
				t[c] = s;
		}
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	struct simd_path paths[SIMD_MAX_PATHS];
	u32 nr_paths = simd_paths(paths), i, c, engine;
	struct neuron_isa_inst in;

	nr_threads = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	nr_threads = nr_threads > MAX_THREADS ? MAX_THREADS : nr_threads;
	sbuf = aligned_alloc(4096, SBUF);
	for (i = 0; i < nr_threads; i++)
		parts[i] = aligned_alloc(64, sizeof(struct emu_part));
	if (!sbuf || !parts[nr_threads - 1])
		return 1;
	memset(sbuf, 0, SBUF);
	for (i = 0; i < nr_threads; i++)
		memset(parts[i], 0, sizeof(*parts[i]));
	for (i = 0; i < nr_paths; i++)
		paths[i].simd->section = 1u << 21;
	best = nr_paths ? paths[nr_paths - 1].simd : NULL;
	blas_open();
	printf("Millions a second, and times the integers; %u processors\n\n| |", nr_threads);
	for (c = 0; c < NR_COLUMNS; c++)
		printf(" %s |", columns[c]);
	printf("\n|---|---:|---:|---:|---:|---:|---:|\n");
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		double t[NR_COLUMNS], n = make(&in, &engine, &jobs[i]);

		measure(t, &jobs[i], paths, nr_paths, rounds);
		printf("| %s |", jobs[i].name);
		for (c = 0; c < NR_COLUMNS; c++) {
			if (t[c] >= 1e9)
				printf(" |");
			else if (c == INTEGERS)
				printf(" %.0f |", n / t[c] * 1e-6);
			else
				printf(" %.0f (%.1f) |", n / t[c] * 1e-6, t[0] / t[c]);
		}
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
