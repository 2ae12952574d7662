/* SPDX-License-Identifier: GPL-2.0-only */
/* Orders that are drawn from a seed, to find programs that rely on another one. */
#ifndef EMU_SHUFFLE_H
#define EMU_SHUFFLE_H

#include <linux/prandom.h>

/* The parameter; 0: nothing is shuffled. */
extern unsigned int emu_shuffle_seed;

/**
 * struct emu_shuffle - where a part of a device is in its numbers
 * @on: it shuffles
 * @numbers: the next ones
 */
struct emu_shuffle {
	bool on;
	struct rnd_state numbers;
};

void emu_shuffle_start(struct emu_shuffle *s, u32 part);
u32 emu_shuffle_draw(struct emu_shuffle *s, u32 n);

#endif /* EMU_SHUFFLE_H */
