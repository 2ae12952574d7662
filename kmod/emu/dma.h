/* SPDX-License-Identifier: GPL-2.0-only */
/* DMA engines: registers, including doorbells. */
#ifndef EMU_DMA_H
#define EMU_DMA_H

#include "queue.h"

void emu_dma_init(struct emu_device *ed);
void emu_dma_destroy(struct emu_device *ed);
int emu_dma_bind(struct emu_device *ed, u32 eng, u32 q, const struct neuron_queue_setup *setup);
void emu_dma_stop(struct emu_device *ed, u32 eng, u32 q);
void emu_dma_reset(struct emu_device *ed, u32 core);
int emu_dma_start(struct emu_device *ed, u32 eng, u32 q, u32 n);
bool emu_dma_poll(struct emu_device *ed, u32 eng, u32 q);
bool emu_dma_rw(struct emu_device *ed, u32 eng, u32 q, u64 addr, void *buf, u32 len, bool write);
bool emu_dma_trigger(struct emu_device *ed, u32 eng, u32 q, struct neuron_space *space,
		     u32 tx, u32 rx);
void emu_dma_kick(struct emu_device *ed);
void emu_dma_core_idle(struct emu_device *ed, u32 core);
int emu_dma_reg_read(struct emu_device *ed, u32 eng, u32 off, u32 *val);
int emu_dma_reg_write(struct emu_device *ed, u32 eng, u32 off, u32 val);

#endif /* EMU_DMA_H */
