/* SPDX-License-Identifier: GPL-2.0-only */
/* Matrix products that the processors of the host share. */
#ifndef EMU_ROWS_H
#define EMU_ROWS_H

#include <linux/workqueue.h>

#include "matmul.h"

struct emu_rows;

struct emu_rows *emu_rows_new(struct workqueue_struct *wq, u32 workers);
void emu_rows_free(struct emu_rows *rows);
struct emu_part *emu_rows_part(struct emu_rows *rows);
u32 emu_rows_workers(const struct emu_rows *rows);
void emu_rows_start(struct emu_rows *rows, const struct emu_matmul *mm);
bool emu_rows_step(struct emu_rows *rows);

#endif /* EMU_ROWS_H */
