// SPDX-License-Identifier: GPL-2.0-only
/*
 * Orders that are drawn from a seed.  Each core and each DMA engine has numbers of its own, which
 * start over when the core is reset: so the order is the same each time, but for what threads
 * make of it.
 */
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/kernel.h>

#include "shuffle.h"

unsigned int emu_shuffle_seed;

/**
 * emu_shuffle_start() - begin with the numbers of the present seed
 * @s: numbers
 * @part: number of the part of the device, another one for each
 *
 * Context: any; the caller has what protects @s.
 */
void emu_shuffle_start(struct emu_shuffle *s, u32 part)
{
	u32 seed = READ_ONCE(emu_shuffle_seed);

	/* First numbers of seeds that are close are close, too. */
	prandom_seed_state(&s->numbers, hash_64((u64)seed << 32 | (part + 1), 32));
	WRITE_ONCE(s->on, seed);
}

/**
 * emu_shuffle_draw() - draw a number
 * @s: numbers
 * @n: how many there are
 *
 * Context: any; the caller has what protects @s.
 * Return: 0 to @n - 1.
 */
u32 emu_shuffle_draw(struct emu_shuffle *s, u32 n)
{
	return reciprocal_scale(prandom_u32_state(&s->numbers), n);
}
