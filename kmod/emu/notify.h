/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification queues of a core. */
#ifndef EMU_NOTIFY_H
#define EMU_NOTIFY_H

#include "emu.h"

/* Types of notification queues (uapi/FACTS.md 3). */
#define EMU_NQ_TRACE		0
#define EMU_NQ_NOTIFY		1
#define EMU_NQ_EVENT		2
#define EMU_NQ_ERROR		3
#define EMU_NQ_TRACE_DMA	4
/* The model of a card, which is made of this, has its own. */
#ifndef EMU_NQ
#define EMU_NQ(kind, engine)	((kind) * NEURON_HW_NQ_ENGINES + (engine))
#endif

/**
 * struct emu_nq - a notification queue
 * @new_base: address registers; take effect with the next write of the size
 * @base: device address in use
 * @size: bytes, 0 = off
 * @head: byte offset of the next entry
 * @lost: entries of a trace that did not fit
 * @phase: phase bit of the next entry
 */
struct emu_nq {
	u64 new_base;
	u64 base;
	u32 size;
	u32 head;
	u64 lost;
	u8 phase;
};

/**
 * struct emu_notify - the notification queues of a core
 * @ed: device
 * @core: number of the core
 * @lock: the queues and their entries
 * @nq: queues, by type * 16 + engine; NULL until one is set up, then there until the end
 */
struct emu_notify {
	struct emu_device *ed;
	u32 core;
	struct mutex lock;	/* see emu.h */
	struct emu_nq *nq;
};

void emu_notify_init(struct emu_notify *nt, struct emu_device *ed, u32 core);
void emu_notify_destroy(struct emu_notify *nt);
void emu_notify_reset(struct emu_notify *nt);
int emu_nq_reg_read(struct emu_notify *nt, u32 off, u32 *val);
int emu_nq_reg_write(struct emu_notify *nt, u32 off, u32 val);
void emu_nq_post(struct emu_notify *nt, u32 nq, const struct neuron_isa_notice *n);
void emu_nq_fill(struct emu_notify *nt, u32 nq, const struct neuron_isa_notice *n, u32 count);

#endif /* EMU_NOTIFY_H */
