/* SPDX-License-Identifier: GPL-2.0-only */
/* The window of a core: state buffer, semaphores, events and instruction FIFOs. */
#ifndef EMU_WINDOW_H
#define EMU_WINDOW_H

#include "emu.h"

struct emu_engine;

#define EMU_MAX_SEMAPHORES	256
#define EMU_MAX_EVENTS		256

/**
 * struct emu_fifo - instruction FIFO of an engine
 * @buf: NEURON_ISA_FIFO_SIZE bytes, made at the first write
 * @engine: the engine, made with it
 * @head: bytes ever taken out, modulo 2^32 (emu_window.lock)
 * @tail: bytes ever put in, modulo 2^32 (emu_window.lock)
 * @stalled: a DMA queue waits for room (emu_window.lock)
 */
struct emu_fifo {
	u8 *buf;
	struct emu_engine *engine;
	u32 head;
	u32 tail;
	bool stalled;
};

/**
 * struct emu_window - what a core shows to DMA and to register accesses
 * @ed: device
 * @core: number of the core
 * @append: one writer to the FIFOs at a time
 * @lock: guards the other fields, but not @late and the contents of the FIFOs
 * @work: runs the engines; queued when an engine may be able to go on
 * @space: space that the core acts for, or NULL
 * @resetting: do not queue @work
 * @broken: do not queue @work, because the last reset failed
 * @late: DMA waits until the core can do nothing else; set before @work is queued
 * @waiting: engines that wait for a semaphore or event, bit mask
 * @sem: semaphores
 * @event: events
 * @fifo: instruction FIFOs
 */
struct emu_window {
	struct emu_device *ed;
	u32 core;
	struct mutex append;	/* see emu.h */
	spinlock_t lock;	/* see emu.h */
	struct work_struct work;
	struct neuron_space *space;
	bool resetting;
	bool broken;
	bool late;
	u8 waiting;
	u32 sem[EMU_MAX_SEMAPHORES];
	DECLARE_BITMAP(event, EMU_MAX_EVENTS);
	struct emu_fifo fifo[NEURON_ISA_NR_ENGINES];
};

void emu_window_init(struct emu_window *w, struct emu_device *ed, u32 core, work_func_t work);
void emu_window_reset(struct emu_window *w, bool broken);
bool emu_window_wake(struct emu_window *w);
int emu_window_read(struct emu_window *w, u32 off, u32 *val);
int emu_window_write(struct emu_window *w, u32 off, u32 val);
int emu_window_copy(struct emu_device *ed, struct neuron_space *space,
		    const struct neuron_pin *dst, u64 dst_off,
		    const struct neuron_pin *src, u64 src_off, u32 len);
int emu_window_reg_read(struct emu_window *w, u64 off, u32 *val);
int emu_window_reg_write(struct emu_window *w, u64 off, u32 val);
int emu_sem_post(struct emu_window *w, u32 i, u32 op, u32 val, u32 by);
bool emu_window_ordered(u64 off);
bool emu_fifo_peek(struct emu_window *w, u32 e, struct neuron_isa_inst *inst);
bool emu_fifo_take(struct emu_window *w, u32 e, u32 n, u32 most);

#endif /* EMU_WINDOW_H */
