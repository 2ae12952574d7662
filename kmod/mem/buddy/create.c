// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a zone.
 */
#include "bits.h"
#include "extents.h"
#include "placement.h"
#include "pool.h"
#include "trees.h"

static void *meta_alloc(struct neuron_buddy *zone, u32 n, u32 size)
{
	zone->st.metadata += (u64)n * size;
	return kvcalloc(n, size, GFP_KERNEL);
}

int neuron_buddy_create(struct neuron_buddy **out, u64 size)
{
	static u32 last_id;
	struct neuron_buddy *zone;
	u32 words, obits, i;
	struct ext *e;

	if (!size || size & (NEURON_BUDDY_GRANULE - 1) || size > NEURON_BUDDY_MAX_SIZE)
		return -EINVAL;
	zone = kvzalloc(sizeof(*zone), GFP_KERNEL);
	if (!zone)
		return -ENOMEM;
	zone->st.metadata = sizeof(*zone);
	zone->len = (u32)(size >> SHIFT);
	zone->cells = (u32)(((size >> SHIFT) + FRAME_LEN - 1) >> FRAME_ORDER);
	/* Only to tell zones apart; a tie between racing creators is harmless. */
	zone->id = READ_ONCE(last_id) + 1;
	WRITE_ONCE(last_id, zone->id);
	zone->want = NEED_EXTENTS;
	words = (zone->cells + 63) / 64;
	for (obits = OBITS_MIN; obits < OBITS_MAX && obits < zone->len >> 10; )
		obits *= 2;
	zone->obit_shift = 32 - log2_floor(obits);

	zone->map = meta_alloc(zone, zone->cells, sizeof(*zone->map));
	zone->starts = meta_alloc(zone, words, sizeof(u64));
	zone->clean = meta_alloc(zone, zone->cells, sizeof(u64));
	zone->clean_cell = meta_alloc(zone, words, sizeof(u64));
	zone->clean_mixed = meta_alloc(zone, words, sizeof(u64));
	zone->obits = meta_alloc(zone, obits, sizeof(*zone->obits));
	if (!zone->map || !zone->starts || !zone->clean || !zone->clean_cell ||
	    !zone->clean_mixed || !zone->obits || tree_create(zone, &zone->longest) ||
	    tree_create(zone, &zone->whole) || tree_create(zone, &zone->joined) ||
	    neuron_buddy_prepare(zone)) {
		neuron_buddy_destroy(zone);
		return -ENOMEM;
	}
	refill(zone, NEED_EXTENTS);
	for (i = 0; i < obits; i++)
		zone->obits[i].start = NONE;

	e = ext_get(zone);
	e->start = 0;
	e->len = zone->len;
	e->prev = NULL;
	e->next = NULL;
	zone->first = e;
	map_add(zone, e);
	bin_add(zone, e);
	trees_update(zone, 0);
	zone->st.total = size;
	zone->st.free = size;
	*out = zone;
	return 0;
}

void neuron_buddy_destroy(struct neuron_buddy *zone)
{
	struct page_head *page;

	if (!zone)
		return;
	refill(zone, 0);
	while (zone->pages) {
		page = zone->pages;
		zone->pages = page->all;
		free_page((unsigned long)page);
	}
	kvfree(zone->joined.level[0]);
	kvfree(zone->whole.level[0]);
	kvfree(zone->longest.level[0]);
	kvfree(zone->obits);
	kvfree(zone->clean_mixed);
	kvfree(zone->clean_cell);
	kvfree(zone->clean);
	kvfree(zone->starts);
	kvfree(zone->map);
	kvfree(zone);
}
