// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocks of a pool: cut, joined, and from one index to the other (pool.h). */
#include <errno.h>
#include <stdlib.h>

#include "pool.h"

#define SLAB_BLOCKS 64u

struct slab {
	struct slab *next;
	struct neuron_mem_block block[SLAB_BLOCKS];
};

struct neuron_mem_block *block_new(struct neuron_mem_pool *pool)
{
	struct neuron_mem_block *block = pool->spare;

	if (!block) {
		struct slab *slab = calloc(1, sizeof(*slab));

		if (!slab)
			return NULL;
		slab->next = pool->slabs;
		pool->slabs = slab;
		for (unsigned int i = 0; i < SLAB_BLOCKS; i++)
			block_drop(pool, &slab->block[i]);
		block = pool->spare;
	}
	pool->spare = block->next;
	return block;
}

void block_drop(struct neuron_mem_pool *pool, struct neuron_mem_block *block)
{
	block->state = BLOCK_SPARE;
	block->next = pool->spare;
	pool->spare = block;
}

void blocks_free(struct neuron_mem_pool *pool)
{
	struct slab *next;

	for (; pool->slabs; pool->slabs = next) {
		next = pool->slabs->next;
		free(pool->slabs);
	}
}

static struct fit *index_of(struct neuron_mem_pool *pool, const struct neuron_mem_block *block)
{
	struct fits *fits = block->state == BLOCK_READY ? &pool->ready :
							  &pool->queue[block->queue].fits;

	return block->segment->own ? &fits->own : &fits->shared;
}

/* An unused segment? */
static bool whole(const struct neuron_mem_block *block)
{
	return block->state == BLOCK_READY && block->bytes == block->segment->bytes;
}

static uint64_t *idle_of(struct neuron_mem_pool *pool, const struct neuron_mem_block *block)
{
	return block->segment->own ? &pool->idle.own : &pool->idle.shared;
}

static void index_add(struct neuron_mem_pool *pool, struct neuron_mem_block *block)
{
	fit_add(index_of(pool, block), block);
	if (whole(block))
		*idle_of(pool, block) += block->bytes;
}

static void index_remove(struct neuron_mem_pool *pool, struct neuron_mem_block *block)
{
	fit_remove(index_of(pool, block), block);
	if (whole(block))
		*idle_of(pool, block) -= block->bytes;
}

void segment_share(struct neuron_mem_pool *pool, struct segment *segment)
{
	index_remove(pool, segment->first);
	segment->own = false;
	index_add(pool, segment->first);
}

void block_take(struct neuron_mem_pool *pool, struct neuron_mem_block *block)
{
	struct pool_queue *queue = &pool->queue[block->queue];

	index_remove(pool, block);
	if (block->state != BLOCK_PENDING)
		return;
	*(block->older ? &block->older->newer : &queue->oldest) = block->newer;
	*(block->newer ? &block->newer->older : &queue->newest) = block->older;
	queue->pending -= block->bytes;
}

/* A neighbour that is in no index any more becomes a part of @block, which is in none, too. */
static void absorb(struct neuron_mem_pool *pool, struct neuron_mem_block *block,
		   struct neuron_mem_block *gone)
{
	struct segment *segment = block->segment;

	block->bytes += gone->bytes;
	if (gone == block->prev) {
		block->address = gone->address;
		block->prev = gone->prev;
		*(gone->prev ? &gone->prev->next : &segment->first) = block;
	} else {
		block->next = gone->next;
		*(gone->next ? &gone->next->prev : &segment->last) = block;
	}
	block_drop(pool, gone);
}

static bool alike(const struct neuron_mem_block *a, const struct neuron_mem_block *b)
{
	return a && a->state == b->state && (a->state == BLOCK_READY || a->queue == b->queue);
}

void block_put(struct neuron_mem_pool *pool, struct neuron_mem_block *block)
{
	struct pool_queue *queue = &pool->queue[block->queue];
	struct neuron_mem_block *beside[] = { block->prev, block->next };

	for (int i = 0; i < 2; i++) {
		if (!alike(beside[i], block))
			continue;
		block_take(pool, beside[i]);
		absorb(pool, block, beside[i]);
	}
	/* One that was cut up is for a long block again. */
	if (block->bytes == block->segment->bytes && block->bytes > pool->segment)
		block->segment->own = true;
	index_add(pool, block);
	if (block->state != BLOCK_PENDING)
		return;
	/* Its point is the latest: it was freed just now, and all that it has taken before. */
	block->older = queue->newest;
	block->newer = NULL;
	*(queue->newest ? &queue->newest->newer : &queue->oldest) = block;
	queue->newest = block;
	queue->pending += block->bytes;
}

int block_split(struct neuron_mem_pool *pool, struct neuron_mem_block *block, uint64_t bytes,
		struct neuron_mem_block **used)
{
	struct neuron_mem_block *front;

	if (block->bytes == bytes) {
		block_take(pool, block);
		block->state = BLOCK_USED;
		*used = block;
		return 0;
	}
	front = block_new(pool);
	if (!front)
		return -ENOMEM;
	/* The rest stays where it is among the pending ones. */
	index_remove(pool, block);
	if (block->state == BLOCK_PENDING)
		pool->queue[block->queue].pending -= bytes;
	front->address = block->address;
	front->bytes = bytes;
	front->segment = block->segment;
	front->state = BLOCK_USED;
	front->prev = block->prev;
	front->next = block;
	*(front->prev ? &front->prev->next : &front->segment->first) = front;
	block->prev = front;
	block->address += bytes;
	block->bytes -= bytes;
	index_add(pool, block);
	*used = front;
	return 0;
}

void blocks_harvest(struct neuron_mem_pool *pool)
{
	for (uint32_t i = 0; i < pool->nr_queues; i++) {
		struct pool_queue *queue = &pool->queue[i];
		/* With it, the program's accesses before neuron_mem_pool_complete(). */
		uint64_t completed = atomic_load_explicit(&queue->completed, memory_order_acquire);

		while (queue->oldest && queue->oldest->point <= completed) {
			struct neuron_mem_block *block = queue->oldest;

			block_take(pool, block);
			block->state = BLOCK_READY;
			block_put(pool, block);
		}
	}
}

/* A neighbour becomes a part of a pending block, which keeps its place in its queue's list. */
static void annex(struct neuron_mem_pool *pool, struct neuron_mem_block *block,
		  struct neuron_mem_block *beside)
{
	struct pool_queue *queue = &pool->queue[block->queue];

	block_take(pool, beside);
	fit_remove(&queue->fits.shared, block);
	queue->pending += beside->bytes;
	absorb(pool, block, beside);
	fit_add(&queue->fits.shared, block);
}

void blocks_join(struct neuron_mem_pool *pool, struct pool_queue *queue)
{
	struct neuron_mem_block *block, *newer;

	for (block = queue->oldest; block; block = newer) {
		newer = block->newer;
		if (block->prev && block->prev->state == BLOCK_READY)
			annex(pool, block, block->prev);
		if (block->next && block->next->state == BLOCK_READY)
			annex(pool, block, block->next);
		/* That may have closed a gap.  Of two pending ones the later one stays. */
		for (int i = 0; i < 2; i++) {
			struct neuron_mem_block *other = i ? block->next : block->prev;

			if (!alike(other, block))
				continue;
			if (other->point >= block->point) {
				annex(pool, other, block);
				break;
			}
			annex(pool, block, other);
		}
	}
}
