/* SPDX-License-Identifier: GPL-2.0-only */
/* NeuronCores. */
#ifndef EMU_CORE_H
#define EMU_CORE_H

#include "engine.h"
#include "notify.h"
#include "shuffle.h"

/**
 * struct emu_core - a NeuronCore
 * @reset: one reset at a time
 * @reset_slow: a slow reset is under way
 * @reset_end: when it does its work, nanoseconds of the monotonic clock
 * @reset_err: how the last reset ended
 * @window: what DMA and register accesses see
 * @notify: notification queues
 * @shuffle: order of their turns (the worker, or a reset)
 */
struct emu_core {
	struct mutex reset;	/* see emu.h */
	bool reset_slow;
	u64 reset_end;
	int reset_err;
	struct emu_window window;
	struct emu_notify notify;
	struct emu_shuffle shuffle;
};

int emu_core_init(struct emu_device *ed);
void emu_core_destroy(struct emu_device *ed);
void emu_core_bind(struct emu_core *core, struct neuron_space *space);
int emu_core_reset(struct emu_core *core);
void emu_core_reset_begin(struct emu_device *ed, unsigned long cores);
int emu_core_reset_poll(struct emu_core *core);

#endif /* EMU_CORE_H */
