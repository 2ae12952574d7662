/* SPDX-License-Identifier: GPL-2.0-only */
/* DMA engines: who gets a turn, doorbells and registers. */
#ifndef EMU_DMA_H
#define EMU_DMA_H

#include "queue.h"

void emu_dma_init(struct emu_device *ed);
void emu_dma_destroy(struct emu_device *ed);
struct emu_dma *emu_dma_find(struct emu_device *ed, u32 eng);
struct emu_dma *emu_dma_get(struct emu_device *ed, u32 eng);
int emu_dma_bind(struct emu_device *ed, u32 eng, u32 q, struct neuron_space *space);
void emu_dma_stop(struct emu_device *ed, u32 eng, u32 q);
bool emu_dma_poll(struct emu_device *ed, u32 eng, u32 q);
int emu_dma_ring(struct emu_dma *dma, u32 i, bool rx, u32 n);
bool emu_dma_trigger(struct emu_device *ed, u32 eng, u32 q, struct neuron_space *space,
		     u32 tx, u32 rx);
void emu_dma_check(struct emu_dma *dma, u32 i);
void emu_dma_kick(struct emu_device *ed);

/* dma_regs.c */
int emu_dma_reg_read(struct emu_device *ed, u32 eng, u32 off, u32 *val);
int emu_dma_reg_write(struct emu_device *ed, u32 eng, u32 off, u32 val);

#endif /* EMU_DMA_H */
