/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compute instructions of the software device, and the check that every
 * instruction has to pass before anything is done.
 *
 * No locks, no memory allocation, no sleeping: the caller serialises the users
 * of one struct emu_exec.  The contents of the state buffer may change while an
 * instruction runs (DMA and the other engines of the core do that); this can change the
 * results but never which bytes are touched.
 */
#ifndef EMU_EXEC_H
#define EMU_EXEC_H

#include "matmul.h"

/* Columns of a matrix product, or elements of a row, worked on at a time. */
#define EMU_EXEC_BLOCK	64

/* A budget that takes about a millisecond under pure emulation. */
#define EMU_EXEC_BUDGET	32768

/**
 * struct emu_sbuf - the state buffer of a core, and what it computes with
 * @base: first byte, mapped contiguously
 * @size: bytes
 * @simd: arithmetic on vector registers; NULL: with integers
 * @part: for matrix products with @simd; NULL: with integers
 * @workers: processors that may share a matrix product; 0 is the same as 1
 */
struct emu_sbuf {
	void *base;
	u32 size;
	const struct emu_simd *simd;
	struct emu_part *part;
	u32 workers;
};

/**
 * struct emu_isa_limits - limits of what instructions may refer to
 * @sbuf_size: bytes of state buffer
 * @nr_semaphores: semaphores of the core
 * @nr_events: events of the core
 * @engines_per_core: DMA engines that belong to the core
 * @nr_queues: queues of a DMA engine
 */
struct emu_isa_limits {
	u32 sbuf_size;
	u32 nr_semaphores;
	u32 nr_events;
	u32 engines_per_core;
	u32 nr_queues;
};

/*
 * struct emu_exec - a compute instruction being executed
 *
 * Filled by emu_exec_start(), private to exec.c.
 */
struct emu_exec {
	u8 *base;
	u8 opcode, op, flags;
	enum emu_class cls;		/* in which results are computed */
	struct emu_operand a, b, d;	/* sources, destination */
	u32 imm;
	u32 rows, cols, depth;		/* m, n, k of a matrix product */
	u32 row, col, k;		/* next to do */
	u32 acc[EMU_EXEC_BLOCK];	/* of the column block at row, col */
	const struct emu_simd *simd;	/* NULL: with integers */
	struct emu_part *part;		/* has the matrix product then; NULL: with integers */
};

int emu_isa_check(const struct neuron_isa_inst *inst,
		  enum neuron_isa_engine engine,
		  const struct emu_isa_limits *lim);
bool emu_isa_is_compute(const struct neuron_isa_inst *inst);

int emu_exec_start(struct emu_exec *x, const struct neuron_isa_inst *inst,
		   enum neuron_isa_engine engine, const struct emu_sbuf *sb);
int emu_exec_step(struct emu_exec *x, u32 budget);
const struct emu_matmul *emu_exec_matmul(const struct emu_exec *x);
u32 emu_exec_budget(const struct emu_exec *x);

#endif /* EMU_EXEC_H */
