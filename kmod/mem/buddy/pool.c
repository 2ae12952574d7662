// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metadata: descriptors of extents and frames, and where they come from.
 */
#include "pool.h"

/* Take over what prepare donated, and cut up as many pages as are needed. */
void refill(struct neuron_buddy *zone, u32 want)
{
	struct llist_node *node = llist_del_all(&zone->donated);
	struct page_head *page;
	char *p, *end;

	while (node) {
		/* node is the first member: a batch hangs off its page */
		page = (struct page_head *)node;
		node = node->next;
		while (page) {
			struct page_head *more = page->batch;

			page->all = zone->pages;
			zone->pages = page;
			page->batch = zone->spare;
			zone->spare = page;
			zone->st.metadata += PAGE_SIZE;
			page = more;
		}
	}
	while (zone->spare && (zone->pool_len < want || !zone->frame_pool_len)) {
		page = zone->spare;
		zone->spare = page->batch;
		p = (char *)(page + 1);
		end = (char *)page + PAGE_SIZE;
		if (zone->pool_len < want) {
			for (; p + sizeof(struct ext) <= end; p += sizeof(struct ext))
				ext_put(zone, (struct ext *)p);
		} else {
			for (; p + sizeof(struct frame) <= end; p += sizeof(struct frame)) {
				to_frame(p)->e.embedded = true;
				ext_put(zone, (struct ext *)p);
			}
		}
	}
}

bool reserve_ready(struct neuron_buddy *zone, u32 want)
{
	if (likely(zone->pool_len >= want && zone->frame_pool_len &&
		   zone->want == NEED_EXTENTS))
		return true;
	refill(zone, want);
	if (zone->pool_len < want || !zone->frame_pool_len) {
		WRITE_ONCE(zone->want, want);
		return false;
	}
	WRITE_ONCE(zone->want, NEED_EXTENTS);
	return true;
}

int neuron_buddy_prepare(struct neuron_buddy *zone)
{
	const u32 per_page = (PAGE_SIZE - sizeof(struct page_head)) / sizeof(struct ext);
	u32 want = READ_ONCE(zone->want);
	u32 have = READ_ONCE(zone->pool_len);
	struct page_head *batch = NULL, *page;
	u32 pages = 0;

	if (have < want)
		pages += (want - have + per_page - 1) / per_page;
	if (!READ_ONCE(zone->frame_pool_len))
		pages++;
	/* Donated pages wait to be taken over. If they are too few, the caller comes again. */
	if (likely(!pages) || !llist_empty(&zone->donated))
		return 0;
	while (pages--) {
		page = (struct page_head *)get_zeroed_page(GFP_KERNEL);
		if (!page) {
			while (batch) {
				page = batch;
				batch = page->batch;
				free_page((unsigned long)page);
			}
			return -ENOMEM;
		}
		page->batch = batch;
		batch = page;
	}
	llist_add(&batch->node, &zone->donated);
	return 0;
}
