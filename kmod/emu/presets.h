/* SPDX-License-Identifier: GPL-2.0-only */
/* Whole instances. */
#ifndef EMU_PRESETS_H
#define EMU_PRESETS_H

#include "../base/neuron_hw.h"

struct emu_slot;

/**
 * struct emu_preset - an instance type
 * @name: name that users give
 * @arch: kind of its devices
 * @nr_devices: how many it has
 * @slots: where each of them is plugged in; NULL: not published
 */
struct emu_preset {
	const char *name;
	const char *arch;
	u32 nr_devices;
	const struct emu_slot *slots;
};

const struct emu_preset *emu_find_preset(const char *name);
struct neuron_location emu_preset_location(const struct emu_preset *p, u32 i);

#endif /* EMU_PRESETS_H */
