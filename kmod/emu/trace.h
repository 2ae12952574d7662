/* SPDX-License-Identifier: GPL-2.0-only */
/* Traces: instructions, DMA packets and semaphores, as entries of notification queues. */
#ifndef EMU_TRACE_H
#define EMU_TRACE_H

#include "notify.h"

void emu_trace_inst(struct emu_notify *nt, u32 e, enum neuron_isa_notice_kind kind, u32 id,
		    u8 opcode);
void emu_trace_sem_prepare(struct emu_notify *nt, u32 i, u32 val, u32 by,
			   struct neuron_isa_notice *n);
void emu_trace_sem_post(struct emu_notify *nt, const struct neuron_isa_notice *n);
u64 emu_trace_dma_begin(struct emu_device *ed, u32 eng);
void emu_trace_dma_end(struct emu_device *ed, u32 eng, u32 q, u64 began, u32 first, u32 bytes);

#endif /* EMU_TRACE_H */
