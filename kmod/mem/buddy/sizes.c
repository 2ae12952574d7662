// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sizes in use. Used extents are counted by size; other used granules are in frames
 * and count as the smallest size.
 */
#include "bits.h"
#include "sizes.h"

static u32 class_of(u32 n)
{
	u32 log = log2_floor(n);
	u32 step = log < CLASS_BITS ? n << (CLASS_BITS - log) : n >> (log - CLASS_BITS);

	return log << CLASS_BITS | (step & ((1u << CLASS_BITS) - 1));
}

/* The smallest size of a class. */
static u32 class_low(u32 class)
{
	u32 log = class >> CLASS_BITS;
	u32 step = (1u << CLASS_BITS) + (class & ((1u << CLASS_BITS) - 1));

	return log < CLASS_BITS ? step >> (CLASS_BITS - log) : step << (log - CLASS_BITS);
}

/* An extent of @n granules is in use now. */
void sizes_add(struct neuron_buddy *zone, u32 n)
{
	u32 class = class_of(n);

	zone->class_used[class] += n;
	zone->extents_used += n;
	if (class < zone->cut)
		zone->cut_below += n;
}

void sizes_sub(struct neuron_buddy *zone, u32 n)
{
	u32 class = class_of(n);

	zone->class_used[class] -= n;
	zone->extents_used -= n;
	if (class < zone->cut)
		zone->cut_below -= n;
}

/*
 * The size below which requests are small: they make at most one part in SHARE of the
 * granules in use. Allocations and frees rarely move the boundary.
 */
u32 sizes_cut(struct neuron_buddy *zone)
{
	u64 used = zone->st.used >> SHIFT, most = used / SHARE;
	u64 frames = used - zone->extents_used;

	while (zone->cut && frames + zone->cut_below > most)
		zone->cut_below -= zone->class_used[--zone->cut];
	while (zone->cut_below < zone->extents_used &&
	       frames + zone->cut_below + zone->class_used[zone->cut] <= most)
		zone->cut_below += zone->class_used[zone->cut++];
	return class_low(zone->cut);
}
