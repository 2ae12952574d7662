// SPDX-License-Identifier: GPL-2.0-only
/*
 * Knowledge about cleared memory.
 */
#include "bits.h"
#include "clear.h"

/*
 * One bit per unit says that its free granules are zero. The bits never influence how
 * ranges are kept or merged. A cell whose units all have the same bit needs no word.
 */
#define UNIT		(FRAME_ORDER >= 6 ? FRAME_LEN / 64 : 1)
#define UNITS		(FRAME_LEN / UNIT)
#define ALL_UNITS	(~0ULL >> (64 - UNITS))

static u64 clean_word(const struct neuron_buddy *zone, u32 f)
{
	if (bit_test(zone->clean_mixed, f))
		return zone->clean[f];
	return bit_test(zone->clean_cell, f) ? ALL_UNITS : 0;
}

/* Units of cell @f touched by, or (@inside) lying within, [lo, hi) of it. */
static u64 clean_mask(u32 lo, u32 hi, bool inside)
{
	if (inside)
		lo += UNIT - 1;
	else
		hi += UNIT - 1;
	lo /= UNIT;
	hi /= UNIT;
	if (hi <= lo)
		return 0;
	return (~0ULL >> (64 - (hi - lo))) << lo;
}

void clean_set_units(struct neuron_buddy *zone, u32 start, u32 n, bool clean)
{
	u32 f = cell_of(start), end = start + n;

	while (start < end) {
		u32 lo = start & (FRAME_LEN - 1);
		u32 hi = min(end - (start - lo), FRAME_LEN);

		if (lo == 0 && hi == FRAME_LEN) {
			u32 cells = (end - start) >> FRAME_ORDER;

			bits_assign(zone->clean_mixed, f, cells, false);
			bits_assign(zone->clean_cell, f, cells, clean);
			f += cells;
			start += cells << FRAME_ORDER;
			continue;
		}
		if (clean != bit_test(zone->clean_cell, f) || bit_test(zone->clean_mixed, f)) {
			u64 word = clean_word(zone, f);
			bool mixed;

			if (clean)
				word |= clean_mask(lo, hi, true);
			else
				word &= ~clean_mask(lo, hi, false);
			mixed = word && word != ALL_UNITS;
			zone->clean[f] = word;
			bits_assign(zone->clean_mixed, f, 1, mixed);
			bits_assign(zone->clean_cell, f, 1, word == ALL_UNITS);
		}
		start += hi - lo;
		f++;
	}
}

bool clean_test_units(const struct neuron_buddy *zone, u32 start, u32 n)
{
	u32 f = cell_of(start), end = start + n;

	while (start < end) {
		u32 lo = start & (FRAME_LEN - 1);
		u32 hi = min(end - (start - lo), FRAME_LEN);

		if (lo == 0 && hi == FRAME_LEN) {
			u32 cells = (end - start) >> FRAME_ORDER;

			if (!bits_all(zone->clean_cell, f, cells, true))
				return false;
			f += cells;
			start += cells << FRAME_ORDER;
			continue;
		}
		if (clean_mask(lo, hi, false) & ~clean_word(zone, f))
			return false;
		start += hi - lo;
		f++;
	}
	return true;
}
