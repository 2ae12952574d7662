// SPDX-License-Identifier: GPL-2.0-only
/*
 * Extents: the list of ranges that tile the zone, and the bins of the free ones.
 */
#include "bits.h"
#include "extents.h"
#include "pool.h"
#include "trees.h"

/* Recompute the values that the trees hold for the extents that start in cell @f. */
void trees_update(struct neuron_buddy *zone, u32 f)
{
	const struct ext *e;
	u32 len = 0, whole = 0, joined = 0;

	for (e = zone->map[f]; e && cell_of(e->start) == f; e = e->next) {
		if (e->type == EXT_FREE) {
			len = max(len, e->len);
			whole = max(whole, ext_whole(e));
		}
		joined = max(joined, ext_joined(e));
	}
	tree_set(&zone->longest, f, len);
	tree_set(&zone->whole, f, whole);
	tree_set(&zone->joined, f, joined);
}

void map_add(struct neuron_buddy *zone, struct ext *e)
{
	u32 f = cell_of(e->start);

	if (!zone->map[f] || zone->map[f]->start >= e->start) {
		zone->map[f] = e;
		zone->starts[f >> 6] |= 1ULL << (f & 63);
	}
}

void map_del(struct neuron_buddy *zone, struct ext *e)
{
	u32 f = cell_of(e->start);

	if (zone->map[f] != e)
		return;
	if (e->next && cell_of(e->next->start) == f) {
		zone->map[f] = e->next;
	} else {
		zone->map[f] = NULL;
		zone->starts[f >> 6] &= ~(1ULL << (f & 63));
	}
}

void ext_link_after(struct neuron_buddy *zone, struct ext *prev, struct ext *e)
{
	e->prev = prev;
	e->next = prev->next;
	if (e->next)
		e->next->prev = e;
	prev->next = e;
	map_add(zone, e);
}

/* Never called for the lowest extent, because a merge removes its upper part. */
void ext_unlink(struct neuron_buddy *zone, struct ext *e)
{
	map_del(zone, e);
	e->prev->next = e->next;
	if (e->next)
		e->next->prev = e->prev;
}

/* Put @e in the place of @old, which covers the same range. */
void ext_replace(struct neuron_buddy *zone, struct ext *old, struct ext *e)
{
	e->start = old->start;
	e->len = old->len;
	e->prev = old->prev;
	e->next = old->next;
	if (e->prev)
		e->prev->next = e;
	else
		zone->first = e;
	if (e->next)
		e->next->prev = e;
	if (zone->map[cell_of(e->start)] == old)
		zone->map[cell_of(e->start)] = e;
}

/* The extent that contains @granule. */
static inline struct ext *ext_find(struct neuron_buddy *zone, u32 granule)
{
	u32 f = cell_of(granule);
	struct ext *e = zone->map[f];

	if (!e || e->start > granule) {
		/* Extent 0 starts in cell 0: there always is a lower one. */
		f = bits_prev(zone->starts, f - 1);
		e = zone->map[f];
	}
	while (ext_end(e) <= granule)
		e = e->next;
	return e;
}

void bin_of(u32 len, u32 *row, u32 *col)
{
	u32 log = log2_floor(len);

	if (log < 5) {
		*row = 0;
		*col = len;
	} else {
		*row = log - 4;
		*col = (len >> (log - 5)) & (BIN_COLS - 1);
	}
}

void bin_add(struct neuron_buddy *zone, struct ext *e)
{
	u32 row, col;

	bin_of(e->len, &row, &col);
	e->type = EXT_FREE;
	e->bprev = NULL;
	e->bnext = zone->bin[row][col];
	if (e->bnext)
		e->bnext->bprev = e;
	zone->bin[row][col] = e;
	zone->bin_cols[row] |= 1u << col;
	zone->bin_rows |= 1u << row;
	order_add(zone, e->len);
}

static void bin_del(struct neuron_buddy *zone, struct ext *e)
{
	u32 row, col;

	bin_of(e->len, &row, &col);
	if (e->bnext)
		e->bnext->bprev = e->bprev;
	if (e->bprev) {
		e->bprev->bnext = e->bnext;
	} else {
		zone->bin[row][col] = e->bnext;
		if (!e->bnext) {
			zone->bin_cols[row] &= ~(1u << col);
			if (!zone->bin_cols[row])
				zone->bin_rows &= ~(1u << row);
		}
	}
	order_sub(zone, e->len);
}

/* First non-empty bin at or after (row, col). */
bool bin_next(const struct neuron_buddy *zone, u32 *row, u32 *col)
{
	u32 bits = 0;

	if (*col < BIN_COLS)
		bits = zone->bin_cols[*row] & (~0u << *col);
	if (!bits) {
		bits = zone->bin_rows & (~0u << *row) & ~(1u << *row);
		if (!bits)
			return false;
		*row = __ffs64(bits);
		bits = zone->bin_cols[*row];
	}
	*col = __ffs64(bits);
	return true;
}

/* Turn the free range @e (not in a bin, not in the trees) into free memory. */
struct ext *ext_release(struct neuron_buddy *zone, struct ext *e)
{
	struct ext *prev = e->prev, *next = e->next;

	if (next && next->type == EXT_FREE) {
		u32 f = cell_of(next->start);

		bin_del(zone, next);
		e->len += next->len;
		ext_unlink(zone, next);
		ext_put(zone, next);
		if (f != cell_of(e->start))
			trees_update(zone, f);
	}
	if (prev && prev->type == EXT_FREE) {
		u32 f = cell_of(e->start);

		bin_del(zone, prev);
		prev->len += e->len;
		ext_unlink(zone, e);
		ext_put(zone, e);
		if (f != cell_of(prev->start))
			trees_update(zone, f);
		e = prev;
	}
	bin_add(zone, e);
	trees_update(zone, cell_of(e->start));
	/* A frame above it no longer touches what is below. */
	if (e->next && e->next->type == EXT_FRAME &&
	    cell_of(e->next->start) != cell_of(e->start))
		trees_update(zone, cell_of(e->next->start));
	return e;
}

/* Cut [pos, pos + n) out of the free extent @e. Needs up to two extents. */
struct ext *ext_take(struct neuron_buddy *zone, struct ext *e, u32 pos, u32 n)
{
	u32 head = pos - e->start;
	u32 tail = e->len - head - n;
	u32 f = cell_of(e->start);
	struct ext *used = e, *rest;

	bin_del(zone, e);
	if (head) {
		used = ext_get(zone);
		used->start = pos;
		ext_link_after(zone, e, used);
		e->len = head;
		bin_add(zone, e);
	}
	used->len = n;
	used->type = EXT_USED;
	if (tail) {
		rest = ext_get(zone);
		rest->start = pos + n;
		rest->len = tail;
		ext_link_after(zone, used, rest);
		bin_add(zone, rest);
		if (cell_of(rest->start) != f)
			trees_update(zone, cell_of(rest->start));
	}
	trees_update(zone, f);
	return used;
}
