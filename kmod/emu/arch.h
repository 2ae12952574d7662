/* SPDX-License-Identifier: GPL-2.0-only */
/* Kinds of devices. */
#ifndef EMU_ARCH_H
#define EMU_ARCH_H

#include "../base/neuron_hw.h"

#define EMU_MIN_HBM_MIB		64	/* the reserved part and something to use */

/**
 * struct emu_arch - a kind of device
 * @name: value of the parameter arch
 * @geo: geometry
 * @links: neighbours on a host with 16 of them; NULL: inf1, chains of 4 and 16,
 *         and inf2, a ring of 12 or a chain of 6
 */
struct emu_arch {
	const char *name;
	struct neuron_geometry geo;
	const u8 (*links)[4];
};

const struct emu_arch *emu_find_arch(const char *name);
bool emu_hbm_size_valid(const struct emu_arch *a, u64 mib);
u32 emu_neighbours(const struct emu_arch *a, u32 i, u32 n, u32 *list);

#endif /* EMU_ARCH_H */
