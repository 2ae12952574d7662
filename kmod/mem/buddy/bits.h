/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words of bits.
 */
#ifndef NEURON_BUDDY_BITS_H
#define NEURON_BUDDY_BITS_H

#include "zone.h"

static inline u32 log2_floor(u64 x)
{
	return (u32)fls64(x) - 1;
}

static inline void bits_assign(u64 *w, u32 from, u32 n, bool value)
{
	while (n) {
		u32 bit = from & 63;
		u32 take = min(n, 64 - bit);
		u64 mask = (~0ULL >> (64 - take)) << bit;

		if (value)
			w[from >> 6] |= mask;
		else
			w[from >> 6] &= ~mask;
		from += take;
		n -= take;
	}
}

/* True if bits [from, from + n) of @w all equal @value. */
static inline bool bits_all(const u64 *w, u32 from, u32 n, bool value)
{
	while (n) {
		u32 bit = from & 63;
		u32 take = min(n, 64 - bit);
		u64 mask = (~0ULL >> (64 - take)) << bit;

		if ((w[from >> 6] & mask) != (value ? mask : 0))
			return false;
		from += take;
		n -= take;
	}
	return true;
}

/* Highest set bit of @w at or below @from, or NONE. */
static inline u32 bits_prev(const u64 *w, u32 from)
{
	u32 i = from >> 6;
	u64 x = w[i] & (~0ULL >> (63 - (from & 63)));

	while (!x) {
		if (!i)
			return NONE;
		x = w[--i];
	}
	return i * 64 + log2_floor(x);
}

static inline bool bit_test(const u64 *w, u32 i)
{
	return w[i >> 6] >> (i & 63) & 1;
}

static inline u64 to_granules(u64 bytes)
{
	return (bytes >> SHIFT) + !!(bytes & (NEURON_BUDDY_GRANULE - 1));
}

#endif
