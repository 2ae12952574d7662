// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matrix products that the processors of the host share.
 *
 * The worker of the core calls emu_rows_step() for a slice of a product.  It and some work
 * items take one task after the other, until there is none left or the slice is over; a
 * task that is not complete then stays with its helper.  When the slice is over, no work item
 * is queued any more, so that a product can be given up between two slices.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "rows.h"

/* A slice: the other engines of the core wait for its end. */
#define EMU_ROWS_SLICE_NS	(4 * NSEC_PER_MSEC)
#define EMU_ROWS_ALONE_NS	NSEC_PER_MSEC

/* Below so many sections of the FPU, waking others takes longer than they help. */
#define EMU_ROWS_MIN_SECTIONS	4

#define EMU_ROWS_MAX		64u

struct emu_helper {
	struct work_struct work;
	struct emu_rows *rows;
	struct emu_part *part;
};

/**
 * struct emu_rows - who shares the matrix products of an engine
 * @wq: where the work items are queued
 * @mm: the product
 * @next: task that the next one takes
 * @end: of the slice (work items read it)
 * @used: helpers for @mm, with the first one
 * @nr: helpers
 * @helper: the first one is the caller of emu_rows_step(); memory is made at the first use
 */
struct emu_rows {
	struct workqueue_struct *wq;
	const struct emu_matmul *mm;
	atomic64_t next;
	u64 end;
	u32 used, nr;
	struct emu_helper helper[];
};

static void emu_helper_run(struct emu_helper *h)
{
	struct emu_rows *rows = h->rows;
	u64 task;

	do {
		if (!h->part->busy) {
			task = (u64)atomic64_inc_return(&rows->next) - 1;
			if (task >= rows->mm->tasks)
				return;
			emu_part_take(h->part, rows->mm, task);
		}
		emu_part_step(h->part, rows->mm);
		cond_resched();
	} while (ktime_get_ns() < rows->end);
}

static void emu_helper_work(struct work_struct *work)
{
	emu_helper_run(container_of(work, struct emu_helper, work));
}

static bool emu_helper_ready(struct emu_helper *h)
{
	if (!h->part)
		h->part = kvzalloc(sizeof(*h->part), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	return h->part;
}

/**
 * emu_rows_new() - for the matrix products of an engine
 * @wq: unbound workqueue
 * @workers: processors that may share one, with that of the engine
 *
 * Return: NULL without memory.
 */
struct emu_rows *emu_rows_new(struct workqueue_struct *wq, u32 workers)
{
	u32 nr = min_t(u32, workers, EMU_ROWS_MAX), i;
	struct emu_rows *rows = kzalloc(struct_size(rows, helper, nr), GFP_KERNEL);

	if (!rows)
		return NULL;
	rows->wq = wq;
	rows->nr = nr;
	for (i = 0; i < nr; i++) {
		INIT_WORK(&rows->helper[i].work, emu_helper_work);
		rows->helper[i].rows = rows;
	}
	if (emu_helper_ready(&rows->helper[0]))
		return rows;
	kfree(rows);
	return NULL;
}

/**
 * emu_rows_free() - undo emu_rows_new()
 * @rows: not in a slice; NULL is allowed
 */
void emu_rows_free(struct emu_rows *rows)
{
	u32 i;

	if (!rows)
		return;
	for (i = 0; i < rows->nr; i++)
		kvfree(rows->helper[i].part);
	kfree(rows);
}

/** emu_rows_part() - the memory of the engine itself */
struct emu_part *emu_rows_part(struct emu_rows *rows)
{
	return rows->helper[0].part;
}

/** emu_rows_workers() - how many can share a product */
u32 emu_rows_workers(const struct emu_rows *rows)
{
	return rows->nr;
}

/**
 * emu_rows_start() - begin a matrix product
 * @rows: no slice is under way; an earlier product may be incomplete
 * @mm: product, stays until it is complete or another one begins
 */
void emu_rows_start(struct emu_rows *rows, const struct emu_matmul *mm)
{
	u64 work = (u64)mm->rows * mm->cols, enough = mm->simd->section;
	u32 workers = (u32)min_t(u64, rows->nr, mm->tasks), i;

	enough = div_u64(enough * EMU_ROWS_MIN_SECTIONS, mm->depth);
	rows->mm = mm;
	atomic64_set(&rows->next, 0);
	for (i = 1; i < workers && work > enough; i++)
		if (!emu_helper_ready(&rows->helper[i]))
			break;
	rows->used = i;
	for (i = 0; i < rows->used; i++)
		rows->helper[i].part->busy = false;
}

/**
 * emu_rows_step() - go on with a matrix product for a slice
 * @rows: started
 *
 * Context: may sleep.
 * Return: true if it is complete.
 */
bool emu_rows_step(struct emu_rows *rows)
{
	bool busy = false;
	u32 i;

	rows->end = ktime_get_ns() + (rows->used > 1 ? EMU_ROWS_SLICE_NS : EMU_ROWS_ALONE_NS);
	for (i = 1; i < rows->used; i++)
		queue_work(rows->wq, &rows->helper[i].work);
	emu_helper_run(&rows->helper[0]);
	for (i = 1; i < rows->used; i++)
		/* What nobody began is done here: there may be no idle processor. */
		if (cancel_work_sync(&rows->helper[i].work) && rows->helper[i].part->busy)
			emu_helper_run(&rows->helper[i]);
	for (i = 0; i < rows->used; i++)
		busy |= rows->helper[i].part->busy;
	return !busy && (u64)atomic64_read(&rows->next) >= rows->mm->tasks;
}
