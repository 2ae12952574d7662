/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Matrix products on vector registers.  A product consists of tasks, some rows and
 * columns of the result each, which do not depend on each other.  A part is who does one
 * task after the other, with memory of its own.
 *
 * No locks: the caller serialises the users of a part and gives each task to one of them.
 */
#ifndef EMU_MATMUL_H
#define EMU_MATMUL_H

#include "fp.h"
#include "simd.h"

/**
 * struct emu_operand - a two-dimensional operand in the state buffer
 * @off: byte offset of the first element
 * @stride: bytes between the starts of two rows
 * @rows: number of rows
 * @len: bytes of a row
 * @dtype: element type
 * @esize: bytes of an element
 */
struct emu_operand {
	u32 off, stride, rows, len;
	u8 dtype, esize;
};

/**
 * struct emu_matmul - a matrix product
 * @simd: arithmetic
 * @base: state buffer
 * @a: first source
 * @b: second source
 * @d: result
 * @rows: of the result
 * @cols: of the result
 * @depth: columns of @a
 * @trans: @b is stored by columns
 * @accumulate: the sums begin with what is in @d
 * @task_rows: rows of a task
 * @tasks: how many there are
 */
struct emu_matmul {
	const struct emu_simd *simd;
	u8 *base;
	struct emu_operand a, b, d;
	u32 rows, cols, depth;
	bool trans, accumulate;
	u32 task_rows;
	u64 tasks;
};

/**
 * struct emu_part - a task under way
 * @mem: of the product
 * @mm: the product of an instruction that was given this part; others may share it
 * @next: the next task of it, if nobody does
 * @busy: there is one
 * @row: first row of the task
 * @col: first column of it
 * @rows: rows of it
 * @cols: columns of it
 * @done: rows for which @k is done
 * @k: the part of k that is under way
 */
struct emu_part {
	struct emu_tile_memory mem;
	struct emu_matmul mm;
	u64 next;
	bool busy;
	u32 row, col, rows, cols;
	u32 done, k;
};

void emu_matmul_plan(struct emu_matmul *mm, u32 workers);
void emu_part_take(struct emu_part *part, const struct emu_matmul *mm, u64 task);
u32 emu_part_step(struct emu_part *part, const struct emu_matmul *mm);

#endif /* EMU_MATMUL_H */
