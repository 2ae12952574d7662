/* SPDX-License-Identifier: GPL-2.0-only */
/* NeuronCores. */
#ifndef EMU_CORE_H
#define EMU_CORE_H

#include "engine.h"
#include "notify.h"

/**
 * struct emu_core - a NeuronCore
 * @reset: one reset at a time
 * @window: what DMA and register accesses see
 * @notify: notification queues
 * @engine: engines
 */
struct emu_core {
	struct mutex reset;	/* see emu.h */
	struct emu_window window;
	struct emu_notify notify;
	struct emu_engine engine[NEURON_ISA_NR_ENGINES];
};

int emu_core_init(struct emu_device *ed);
void emu_core_destroy(struct emu_device *ed);
void emu_core_bind(struct emu_core *core, struct neuron_space *space);
int emu_core_reset(struct emu_core *core);

#endif /* EMU_CORE_H */
