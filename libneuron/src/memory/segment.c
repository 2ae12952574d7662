// SPDX-License-Identifier: LGPL-2.1-or-later
/* Segments of a pool: reserved, and returned (pool.h). */
#include <errno.h>
#include <stdlib.h>

#include "pool.h"

uint64_t segment_unit(const struct neuron_mem_pool *pool)
{
	return MAX(pool->opts.align, NEURON_PAGE);
}

static uint64_t room_left(const struct neuron_mem_pool *pool)
{
	uint64_t reserved = pool->stats.reserved_bytes.current;

	return pool->opts.max > reserved ? (pool->opts.max - reserved) & -segment_unit(pool) : 0;
}

/* As much of @wish as there is, so that the driver has not to refuse; not less than @bytes. */
static uint64_t length_of(struct neuron_mem_pool *pool, uint64_t bytes, uint64_t wish)
{
	struct neuron_hbm_stats stats = { .size = sizeof(stats) };

	wish = MIN(wish, room_left(pool));
	if (wish > bytes && !neuron_hbm_get_stats(pool->device, pool->opts.hbm, &stats))
		wish = MIN(wish, stats.largest_free & -segment_unit(pool));
	return round_up(MAX(wish, bytes), segment_unit(pool));
}

static int reserve(struct neuron_mem_pool *pool, uint64_t bytes, uint64_t wish,
		   struct neuron_mem_failure *failure, struct neuron_mem **mem)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts), .hbm = pool->opts.hbm, .nc = pool->opts.nc,
		.category = pool->opts.category, .failure = failure, .align = pool->opts.align,
		.owner = pool->opts.owner,
	};
	uint64_t length = length_of(pool, bytes, wish);
	int ret;

	*failure = (struct neuron_mem_failure){
		.reason = NEURON_MEM_REASON_CAPPED,
		.category = pool->opts.category,
		.hbm = pool->opts.hbm,
		.nc = pool->opts.nc,
		.bytes = bytes,
		.align = pool->opts.align,
		.total = pool->opts.max,
		.free = room_left(pool),
	};
	if (length > room_left(pool))
		return -ENOMEM;
	ret = neuron_mem_alloc(pool->device, length, &opts, mem);
	/* Somebody was quicker, or it is a limit: what is needed may be there still. */
	if (ret == -ENOMEM && length > round_up(bytes, segment_unit(pool)))
		ret = neuron_mem_alloc(pool->device, round_up(bytes, segment_unit(pool)), &opts, mem);
	return ret;
}

int segment_add(struct neuron_mem_pool *pool, uint64_t bytes, uint64_t wish,
		struct neuron_mem_failure *failure)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	struct neuron_mem_block *block = segment ? block_new(pool) : NULL;
	struct neuron_mem_failure why = { .reason = NEURON_MEM_REASON_HOST, .bytes = bytes };
	int ret = block ? reserve(pool, bytes, wish, &why, &segment->mem) : -ENOMEM;

	if (ret) {
		if (block)
			block_drop(pool, block);
		free(segment);
		if (ret == -ENOMEM && failure)
			*failure = why;
		return ret;
	}
	segment->pool = pool;
	segment->address = neuron_mem_address(segment->mem);
	segment->bytes = neuron_mem_bytes(segment->mem);
	segment->first = segment->last = block;
	segment->own = bytes > wish;
	segment->next = pool->segments;
	if (segment->next)
		segment->next->prev = segment;
	pool->segments = segment;
	*block = (struct neuron_mem_block){
		.address = segment->address, .bytes = segment->bytes, .segment = segment,
		.state = BLOCK_READY,
	};
	block_put(pool, block);
	figure_add(&pool->stats.segment, 1);
	figure_add(&pool->stats.reserved_bytes, segment->bytes);
	return 0;
}

static void segment_free(struct neuron_mem_pool *pool, struct segment *segment)
{
	*(segment->prev ? &segment->prev->next : &pool->segments) = segment->next;
	if (segment->next)
		segment->next->prev = segment->prev;
	figure_sub(&pool->stats.segment, 1);
	figure_sub(&pool->stats.reserved_bytes, segment->bytes);
	neuron_mem_free(segment->mem);
	free(segment);
}

/* Return the free end of a segment, up to @most bytes of it. */
static void segment_cut(struct neuron_mem_pool *pool, struct segment *segment, uint64_t most)
{
	struct neuron_mem_block *last = segment->last;
	uint64_t bytes;

	if (last->state != BLOCK_READY)
		return;
	bytes = round_up(segment->bytes - MIN(last->bytes, most), segment_unit(pool));
	if (!bytes) {
		block_take(pool, last);
		block_drop(pool, last);
		segment_free(pool, segment);
		return;
	}
	/* The driver does not shorten what is mapped or exported: then it stays. */
	if (bytes >= segment->bytes || neuron_mem_shrink(segment->mem, bytes))
		return;
	block_take(pool, last);
	last->bytes -= segment->bytes - bytes;
	figure_sub(&pool->stats.reserved_bytes, segment->bytes - bytes);
	segment->bytes = bytes;
	if (last->bytes) {
		block_put(pool, last);
		return;
	}
	/* Not the first one: @bytes would be 0. */
	segment->last = last->prev;
	segment->last->next = NULL;
	block_drop(pool, last);
}

void segments_return(struct neuron_mem_pool *pool, uint64_t bytes)
{
	uint64_t before = pool->stats.reserved_bytes.current;

	while (before - pool->stats.reserved_bytes.current < bytes) {
		struct neuron_mem_block *block = fit_last(&pool->ready.own);

		if (!block)
			return;
		segment_cut(pool, block->segment, block->bytes);
	}
}

uint64_t segments_trim(struct neuron_mem_pool *pool, uint64_t keep)
{
	uint64_t before = pool->stats.reserved_bytes.current;
	struct segment *segment, *next;

	for (segment = pool->segments; segment; segment = next) {
		uint64_t now = pool->stats.reserved_bytes.current;

		next = segment->next;
		if (now <= keep)
			break;
		segment_cut(pool, segment, now - keep);
	}
	return before - pool->stats.reserved_bytes.current;
}

void segments_free(struct neuron_mem_pool *pool)
{
	while (pool->segments)
		segment_free(pool, pool->segments);
}
