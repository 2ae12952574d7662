// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages of keys and values: taken, shared, and moved from one memory to the other (kv.h). */
#include <errno.h>

#include "kv.h"

uint32_t kv_frame_take(struct kv_tier *tier)
{
	uint32_t frame = tier->free;

	tier->free = tier->frame[frame].next;
	tier->nr_free--;
	return frame;
}

void kv_frame_put(struct kv_tier *tier, uint32_t frame)
{
	tier->frame[frame].next = tier->free;
	tier->free = frame;
	tier->nr_free++;
}

uint64_t kv_address(const struct neuron_kv_pool *pool, uint32_t page)
{
	return pool->tier[KV_DEVICE].frame[pool->page[page].frame].address;
}

/* As the newest one of its priority. */
static void evictable_add(struct neuron_kv_pool *pool, uint32_t page)
{
	struct kv_page *p = &pool->page[page];
	struct kv_queue *queue = &pool->evictable[p->priority];

	p->prev = queue->newest;
	p->next = KV_NONE;
	*(p->prev == KV_NONE ? &queue->oldest : &pool->page[p->prev].next) = page;
	queue->newest = page;
	pool->some[p->priority / 64] |= 1ull << p->priority % 64;
	pool->nr_evictable++;
}

static void evictable_remove(struct neuron_kv_pool *pool, uint32_t page)
{
	struct kv_page *p = &pool->page[page];
	struct kv_queue *queue = &pool->evictable[p->priority];

	*(p->prev == KV_NONE ? &queue->oldest : &pool->page[p->prev].next) = p->next;
	*(p->next == KV_NONE ? &queue->newest : &pool->page[p->next].prev) = p->prev;
	if (queue->oldest == KV_NONE)
		pool->some[p->priority / 64] &= ~(1ull << p->priority % 64);
	pool->nr_evictable--;
}

/* Take the one that goes first out of its list. There must be one. */
static uint32_t evictable_take(struct neuron_kv_pool *pool)
{
	int word = pool->some[0] ? 0 : 1;
	uint32_t page = pool->evictable[word * 64 + __builtin_ctzll(pool->some[word])].oldest;

	evictable_remove(pool, page);
	return page;
}

uint32_t kv_page_new(struct neuron_kv_pool *pool)
{
	uint32_t page = pool->free_page;
	struct kv_page *p = &pool->page[page];

	pool->free_page = p->next;
	p->side = KV_DEVICE;
	p->frame = kv_frame_take(&pool->tier[KV_DEVICE]);
	p->refs = p->pins = 1;
	p->priority = 0;
	figure_add(&pool->stats.allocated_blocks, 1);
	return page;
}

void kv_page_get(struct neuron_kv_pool *pool, uint32_t page)
{
	pool->nr_shared += pool->page[page].refs++ == 1;
	kv_pin(pool, page);
}

void kv_page_put(struct neuron_kv_pool *pool, uint32_t page, bool pinned)
{
	struct kv_page *p = &pool->page[page];

	/* With the priority that those who stay have given it. */
	if (pinned)
		kv_unpin(pool, page, p->priority);
	pool->nr_shared -= p->refs-- == 2;
	if (p->refs)
		return;
	if (p->side == KV_DEVICE)
		evictable_remove(pool, page);
	kv_frame_put(&pool->tier[p->side], p->frame);
	p->next = pool->free_page;
	pool->free_page = page;
	figure_sub(&pool->stats.allocated_blocks, 1);
}

void kv_pin(struct neuron_kv_pool *pool, uint32_t page)
{
	struct kv_page *p = &pool->page[page];

	if (!p->pins++ && p->side == KV_DEVICE)
		evictable_remove(pool, page);
}

void kv_unpin(struct neuron_kv_pool *pool, uint32_t page, uint8_t priority)
{
	struct kv_page *p = &pool->page[page];

	p->priority = p->refs > 1 ? MAX(p->priority, priority) : priority;
	if (--p->pins)
		return;
	if (p->side == KV_DEVICE)
		evictable_add(pool, page);
}

struct place {
	struct neuron_mem *mem;
	uint64_t offset;
};

static struct place place_of(const struct neuron_kv_pool *pool, enum kv_side side, uint32_t frame)
{
	const struct kv_tier *tier = &pool->tier[side];
	const struct kv_frame *f = &tier->frame[frame];
	const struct kv_segment *segment = &tier->segment[f->segment];

	return (struct place){ .mem = segment->mem, .offset = f->address - segment->address };
}

struct neuron_mem *kv_locate(const struct neuron_kv_pool *pool, uint32_t page, uint64_t *offset)
{
	struct place place = place_of(pool, KV_DEVICE, pool->page[page].frame);

	*offset = place.offset;
	return place.mem;
}

/* The copy has ended: who has which frame? */
static void moved(struct neuron_kv_pool *pool, int ret)
{
	struct kv_page *p = &pool->page[pool->copy.page];
	enum kv_side to = p->side == KV_DEVICE ? KV_HOST : KV_DEVICE;

	if (ret) {
		kv_frame_put(&pool->tier[to], pool->copy.frame);
	} else {
		kv_frame_put(&pool->tier[p->side], p->frame);
		p->frame = pool->copy.frame;
		p->side = (uint8_t)to;
		*(to == KV_HOST ? &pool->stats.evictions : &pool->stats.onboards) += 1;
	}
	if (p->side == KV_DEVICE && !p->pins)
		evictable_add(pool, pool->copy.page);
	pool->copy.page = KV_NONE;
}

int kv_settle(struct neuron_kv_pool *pool)
{
	struct kv_page *p = &pool->page[pool->copy.page];
	struct place from, to;
	int ret;

	if (pool->copy.page == KV_NONE)
		return 0;
	from = place_of(pool, p->side, p->frame);
	to = place_of(pool, p->side == KV_DEVICE ? KV_HOST : KV_DEVICE, pool->copy.frame);
	ret = neuron_mem_copy_finish(to.mem, from.mem);
	moved(pool, ret);
	return ret;
}

/* A page of no list, which is not pinned if it leaves the device. */
static int move(struct neuron_kv_pool *pool, uint32_t page)
{
	struct kv_page *p = &pool->page[page];
	enum kv_side side = p->side == KV_DEVICE ? KV_HOST : KV_DEVICE;
	struct place from = place_of(pool, p->side, p->frame), to;
	int ret;

	pool->copy.page = page;
	pool->copy.frame = kv_frame_take(&pool->tier[side]);
	to = place_of(pool, side, pool->copy.frame);
	ret = neuron_mem_copy_start(to.mem, to.offset, from.mem, from.offset, pool->block_bytes,
				    -1);
	if (!ret)
		return 0;
	/* The core has one such copy at a time, and the program has it now. */
	if (ret == -EBUSY)
		ret = neuron_mem_copy(to.mem, to.offset, from.mem, from.offset,
				      pool->block_bytes);
	moved(pool, ret);
	return ret;
}

int kv_make_room(struct neuron_kv_pool *pool, uint64_t frames)
{
	uint64_t nr = kv_device_room(pool);
	int ret = 0;

	if (nr >= frames)
		return 0;
	nr = frames - nr;
	if (nr > MIN(pool->nr_evictable, kv_host_room(pool)))
		return -ENOBUFS;
	while (nr-- && !ret) {
		ret = kv_settle(pool);
		if (!ret)
			ret = move(pool, evictable_take(pool));
	}
	return ret;
}

int kv_onboard(struct neuron_kv_pool *pool, uint32_t page)
{
	int ret = kv_settle(pool);

	if (!ret && !pool->tier[KV_DEVICE].nr_free) {
		if (!pool->nr_evictable || !pool->tier[KV_HOST].nr_free)
			return -ENOBUFS;
		ret = move(pool, evictable_take(pool));
		if (!ret)
			ret = kv_settle(pool);
	}
	return ret ? ret : move(pool, page);
}

int kv_duplicate(struct neuron_kv_pool *pool, uint32_t page, uint32_t *copy)
{
	struct place from = place_of(pool, KV_DEVICE, pool->page[page].frame), to;
	int ret;

	*copy = kv_page_new(pool);
	to = place_of(pool, KV_DEVICE, pool->page[*copy].frame);
	ret = neuron_mem_copy(to.mem, to.offset, from.mem, from.offset, pool->block_bytes);
	if (ret)
		kv_page_put(pool, *copy, true);
	else
		pool->stats.copies_on_write++;
	return ret;
}
