// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trees of maxima over the frames of a zone.
 */
#include "trees.h"

/* Maximum of siblings, of which one has @value. */
static u32 tree_max(const u32 *child, u32 value)
{
	u32 all = 0, c;

	/* No value exceeds the OR of all values, and usually only one of them is not 0. */
	for (c = 0; c < TREE_FAN; c += 2)
		all |= child[c] | child[c + 1];
	for (c = 0; c < TREE_FAN && value != all; c++)
		value = max(value, child[c]);
	return value;
}

void tree_set(struct tree *t, u32 i, u32 value)
{
	u32 l, old;

	for (l = 0; ; l++) {
		old = t->level[l][i];
		if (old == value)
			return;
		t->level[l][i] = value;
		if (l == t->levels - 1)
			return;
		if (value < old) {
			/* The parent only changes if this child was its maximum. */
			if (t->level[l + 1][i >> TREE_SHIFT] != old)
				return;
			value = tree_max(&t->level[l][i & ~(TREE_FAN - 1)], value);
		} else if (t->level[l + 1][i >> TREE_SHIFT] >= value) {
			return;
		}
		i >>= TREE_SHIFT;
	}
}

/* Lowest index at or above @i whose value is at least @need, or NONE. */
u32 tree_next(const struct tree *t, u32 i, u32 need)
{
	u32 l = 0, end;

	/* From the start, the way goes down only. */
	if (!i)
		l = t->levels - 1;
	for (;;) {
		if (i >= t->count[l])
			return NONE;
		end = min((i | (TREE_FAN - 1)) + 1, t->count[l]);
		while (i < end && t->level[l][i] < need)
			i++;
		if (i < end)
			break;
		if (++l == t->levels)
			return NONE;
		i = ((end - 1) >> TREE_SHIFT) + 1;
	}
	while (l--) {
		i <<= TREE_SHIFT;
		while (t->level[l][i] < need)
			i++;
	}
	return i;
}

/* Highest index below @i whose value is at least @need, or NONE. */
u32 tree_prev(const struct tree *t, u32 i, u32 need)
{
	u32 l = 0, begin;

	/* From the end, the way goes down only. */
	if (i >= t->count[0]) {
		if (tree_top(t) < need)
			return NONE;
		l = t->levels - 1;
		i = 1;
	}
	for (;; l++) {
		/* The top has one value, above which the way ends here, too. */
		if (!i)
			return NONE;
		begin = (i - 1) & ~(TREE_FAN - 1);
		while (i > begin && t->level[l][i - 1] < need)
			i--;
		if (i > begin)
			break;
		i = begin >> TREE_SHIFT;
	}
	i--;
	while (l--) {
		i = (i << TREE_SHIFT) + TREE_FAN - 1;
		i = min(i, t->count[l] - 1);
		while (t->level[l][i] < need)
			i--;
	}
	return i;
}

int tree_create(struct neuron_buddy *zone, struct tree *t)
{
	u32 count = zone->cells, l, total = 0;
	u32 *mem;

	/* Every level is padded to whole groups, which stay 0. */
	for (l = 0; ; l++) {
		t->count[l] = count;
		total += (count + TREE_FAN - 1) & ~(TREE_FAN - 1);
		if (count == 1)
			break;
		count = (count + TREE_FAN - 1) >> TREE_SHIFT;
	}
	t->levels = l + 1;
	mem = kvcalloc(total, sizeof(*mem), GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	zone->st.metadata += total * sizeof(*mem);
	for (l = 0; l < t->levels; l++) {
		t->level[l] = mem;
		mem += (t->count[l] + TREE_FAN - 1) & ~(TREE_FAN - 1);
	}
	return 0;
}
