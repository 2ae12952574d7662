// SPDX-License-Identifier: LGPL-2.1-or-later
/* Segments of a pool: reserved, and returned (pool.h). */
#include <errno.h>
#include <stdlib.h>

#include "mem.h"
#include "pool.h"

/* Of a request, more than any device has. */
#define SEGMENTS_MOST (1u << 18)

uint64_t segment_unit(const struct neuron_mem_pool *pool)
{
	return MAX(pool->opts.align, host_page());
}

static uint64_t room_left(const struct neuron_mem_pool *pool)
{
	uint64_t reserved = pool->stats.reserved_bytes.current;

	return pool->opts.max > reserved ? (pool->opts.max - reserved) & -segment_unit(pool) : 0;
}

/* Of the driver's memory, a segment of the pool with a free block; false: no host memory. */
static bool segment_new(struct neuron_mem_pool *pool, struct neuron_mem *mem, bool own)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	struct neuron_mem_block *block = segment ? block_new(pool) : NULL;

	if (!block) {
		free(segment);
		return false;
	}
	segment->pool = pool;
	segment->mem = mem;
	segment->address = neuron_mem_address(mem);
	segment->bytes = neuron_mem_bytes(mem);
	segment->first = segment->last = block;
	segment->own = own;
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
	return true;
}

/* @total bytes in segments of @each: all of them, or if not @all those that are free now. */
static int reserve(struct neuron_mem_pool *pool, uint64_t each, uint64_t total, bool all,
		   struct neuron_mem_failure *failure)
{
	const struct neuron_mem_opts opts = {
		.size = sizeof(opts), .hbm = pool->opts.hbm, .nc = pool->opts.nc,
		.category = pool->opts.category, .align = pool->opts.align,
		.owner = pool->opts.owner,
	};
	size_t wanted = (total + each - 1) / each, n = 0, got = 0, used = 0;
	struct neuron_mem **mem = calloc(wanted, sizeof(*mem));
	int ret = -ENOMEM;

	while (mem && n < wanted &&
	       (mem[n] = mem_new(pool->device, MIN(each, total - n * each), &opts)))
		n++;
	if (n == wanted && all)
		ret = mem_obtain(mem, n, &got, failure);
	else if (n == wanted)
		got = mem_obtain_free(mem, n);
	while (n > got)
		mem_drop(mem[--n]);
	/* What is told is of one of them, beside those before it, which go back. */
	if (ret && failure) {
		failure->bytes = total;
		if (failure->reason != NEURON_MEM_REASON_HOST)
			failure->free += got * each;
	}
	while (used < got && (!all || !ret) &&
	       segment_new(pool, mem[used], each > pool->segment))
		used++;
	if (used < got)
		mem_free_all(mem + used, got - used);
	free(mem);
	return used && (!all || used == wanted) ? 0 : ret ? ret : -ENOMEM;
}

static bool has_free(struct neuron_mem_pool *pool, uint64_t bytes)
{
	struct neuron_hbm_stats stats = { .size = sizeof(stats) };

	return neuron_hbm_get_stats(pool->device, pool->opts.hbm, &stats) || stats.free >= bytes;
}

/*
 * In pieces, a request for more than is free would take all of that from others until a piece is
 * refused.  Such a one is asked for at once, and the driver says why not.
 */
static bool in_one(struct neuron_mem_pool *pool, const struct step *step)
{
	if (step->least <= step->each)
		return false;
	if (step->least / step->each > SEGMENTS_MOST)
		return true;
	/* Other pools have more than they use. */
	return !has_free(pool, step->least) &&
	       !(device_reclaim(pool->device, pool->opts.hbm) && has_free(pool, step->least));
}

/* As much of it as there is, so that the driver has not to refuse. */
static uint64_t length_of(struct neuron_mem_pool *pool, const struct step *step)
{
	struct neuron_hbm_stats stats = { .size = sizeof(stats) };
	uint64_t most = MIN(step->most, room_left(pool));

	if (most > step->least)
		most = MIN(most, neuron_hbm_get_stats(pool->device, pool->opts.hbm, &stats) ?
				 NEURON_NATIVE_BULK_MAX * step->each : stats.free);
	/* What is too short for a block is left. */
	most -= step->each > pool->segment ? most % step->each : most % segment_unit(pool);
	return MAX(most, step->least);
}

struct neuron_mem_failure segments_capped(const struct neuron_mem_pool *pool, uint64_t bytes)
{
	return (struct neuron_mem_failure){
		.reason = NEURON_MEM_REASON_CAPPED,
		.category = pool->opts.category,
		.hbm = pool->opts.hbm,
		.nc = pool->opts.nc,
		.bytes = bytes,
		.align = pool->opts.align,
		.total = pool->opts.max,
		.free = room_left(pool),
	};
}

int segments_add(struct neuron_mem_pool *pool, const struct step *step,
		 struct neuron_mem_failure *failure)
{
	struct neuron_mem_failure why = segments_capped(pool, step->least);
	uint64_t length = length_of(pool, step), each = step->each;
	int ret = -ENOMEM;

	if (step->least <= room_left(pool)) {
		if (in_one(pool, step))
			each = step->least;
		mem_no_host(step->least, &why);
		if (length > step->least)
			ret = reserve(pool, step->each, length, false, NULL);
		/* Somebody was quicker, or it is a limit: what is needed may be there still. */
		if (ret)
			ret = reserve(pool, each, step->least, true, &why);
	}
	if (ret == -ENOMEM && failure)
		*failure = why;
	return ret;
}

/* What goes back to the driver, with few calls. */
struct batch {
	size_t n;
	struct neuron_mem *mem[NEURON_NATIVE_BULK_MAX];
};

static void flush(struct batch *batch)
{
	mem_free_all(batch->mem, batch->n);
	batch->n = 0;
}

static void segment_free(struct neuron_mem_pool *pool, struct segment *segment,
			 struct batch *batch)
{
	*(segment->prev ? &segment->prev->next : &pool->segments) = segment->next;
	if (segment->next)
		segment->next->prev = segment->prev;
	figure_sub(&pool->stats.segment, 1);
	figure_sub(&pool->stats.reserved_bytes, segment->bytes);
	if (batch->n == NEURON_NATIVE_BULK_MAX)
		flush(batch);
	batch->mem[batch->n++] = segment->mem;
	free(segment);
}

/* Return the free end of a segment, up to @most bytes of it. */
static void segment_cut(struct neuron_mem_pool *pool, struct segment *segment, uint64_t most,
			struct batch *batch)
{
	struct neuron_mem_block *last = segment->last;
	uint64_t bytes;

	if (last->state != BLOCK_READY)
		return;
	bytes = round_up(segment->bytes - MIN(last->bytes, most), segment_unit(pool));
	if (!bytes) {
		block_take(pool, last);
		block_drop(pool, last);
		segment_free(pool, segment, batch);
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

void segments_return(struct neuron_mem_pool *pool, bool own, uint64_t bytes)
{
	const struct fit *fit = own ? &pool->ready.own : &pool->ready.shared;
	uint64_t before = pool->stats.reserved_bytes.current;
	struct batch batch = { .n = 0 };

	while (before - pool->stats.reserved_bytes.current < bytes) {
		struct neuron_mem_block *last = fit_last(fit);

		if (!last || last->bytes != last->segment->bytes)
			break;
		segment_cut(pool, last->segment, last->bytes, &batch);
	}
	flush(&batch);
}

uint64_t segments_trim(struct neuron_mem_pool *pool, uint64_t keep)
{
	uint64_t before = pool->stats.reserved_bytes.current;
	struct segment *segment, *next;
	struct batch batch = { .n = 0 };

	for (segment = pool->segments; segment; segment = next) {
		uint64_t now = pool->stats.reserved_bytes.current;

		next = segment->next;
		if (now <= keep)
			break;
		segment_cut(pool, segment, now - keep, &batch);
	}
	flush(&batch);
	return before - pool->stats.reserved_bytes.current;
}

void segments_free(struct neuron_mem_pool *pool)
{
	struct batch batch = { .n = 0 };

	while (pool->segments)
		segment_free(pool, pool->segments, &batch);
	flush(&batch);
}
