// SPDX-License-Identifier: GPL-2.0-only
/* Matrix products on vector registers: tasks, and the sections that the FPU is used for. */
#include "matmul.h"

/* Tasks for each worker, so that one that is slow does not make the others wait. */
#define EMU_TASKS_EACH	4u

/**
 * emu_matmul_plan() - divide a matrix product into tasks
 * @mm: product; @mm->task_rows and @mm->tasks are set
 * @workers: how many will share it
 */
void emu_matmul_plan(struct emu_matmul *mm, u32 workers)
{
	u64 columns = DIV_ROUND_UP(mm->cols, EMU_TILE_COLS);
	u64 rows = EMU_TILE_ROWS;

	/* Every task packs its columns of b again: one worker takes as many rows as it can. */
	if (workers > 1)
		rows = mm->rows * columns / (EMU_TASKS_EACH * workers) & ~7ULL;
	mm->task_rows = (u32)min_t(u64, max_t(u64, rows, 8), EMU_TILE_ROWS);
	mm->tasks = columns * DIV_ROUND_UP(mm->rows, mm->task_rows);
}

/**
 * emu_part_take() - begin a task
 * @part: idle
 * @mm: product
 * @task: number of the task, less than @mm->tasks
 */
void emu_part_take(struct emu_part *part, const struct emu_matmul *mm, u64 task)
{
	u32 columns = DIV_ROUND_UP(mm->cols, EMU_TILE_COLS), column;

	/* Neighbours share rows of a. */
	part->row = (u32)div_u64_rem(task, columns, &column) * mm->task_rows;
	part->col = column * EMU_TILE_COLS;
	part->rows = min_t(u32, mm->rows - part->row, mm->task_rows);
	part->cols = min_t(u32, mm->cols - part->col, EMU_TILE_COLS);
	part->done = 0;
	part->k = 0;
	part->busy = true;
}

/**
 * emu_part_step() - go on with a task for one section of the FPU
 * @part: has a task; it is idle again when that is complete
 * @mm: product
 *
 * Return: multiply-accumulates done.
 */
u32 emu_part_step(struct emu_part *part, const struct emu_matmul *mm)
{
	u32 most = mm->a.dtype == NEURON_ISA_DT_INT8 ? 2 * EMU_TILE_UNITS : EMU_TILE_UNITS;
	u32 k = min_t(u32, mm->depth - part->k, most);
	u32 row = part->row + part->done, es = mm->a.esize;
	/* A packed part of b is worth some rows. */
	u32 rows = max_t(u32, mm->simd->section / (k * EMU_TILE_COLS), EMU_TILE_PACKED);
	struct emu_tile t = {
		.mem = &part->mem,
		.a = mm->base + mm->a.off + (size_t)row * mm->a.stride + (size_t)part->k * es,
		.c = mm->base + mm->d.off + (size_t)row * mm->d.stride +
		     (size_t)part->col * mm->d.esize,
		.a_stride = mm->a.stride,
		.b_stride = mm->b.stride,
		.c_stride = mm->d.stride,
		.row = part->done,
		.rows = min_t(u32, part->rows - part->done, rows),
		.cols = part->cols,
		.k = k,
		.src = mm->a.dtype,
		.dst = mm->d.dtype,
		.trans = mm->trans,
		.pack = !part->done,
		.load = !part->k && mm->accumulate,
		.store = part->k + k == mm->depth,
	};

	if (mm->trans)
		t.b = mm->base + mm->b.off + (size_t)part->col * mm->b.stride +
		      (size_t)part->k * es;
	else
		t.b = mm->base + mm->b.off + (size_t)part->k * mm->b.stride +
		      (size_t)part->col * es;
	if (!part->k && !mm->accumulate)
		memset(part->mem.acc + t.row * EMU_TILE_COLS, 0,
		       t.rows * EMU_TILE_COLS * sizeof(u32));
	emu_fpu_begin();
	mm->simd->tile(&t);
	emu_fpu_end();
	part->done += t.rows;
	if (part->done == part->rows) {
		part->done = 0;
		part->k += k;
		part->busy = part->k < mm->depth;
	}
	return t.rows * t.cols * k;
}
