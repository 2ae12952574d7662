// SPDX-License-Identifier: LGPL-2.1-or-later
/* A pool of device memory in the order of queues (pool.h). */
#include <errno.h>
#include <stdlib.h>

#include "../../common/lock.h"
#include "../device/opts.h"
#include "mem.h"
#include "pool.h"

#define POOL_QUEUES	16u
#define POOL_INCREASE	(2ull << 30)
/*
 * Of recorded blocks, of which a random half goes, trim returns 99.9 % with this length, 99.6 %
 * with 4 MiB and 97.8 % with 8 MiB: a used block keeps the short ones beside it.
 */
#define POOL_SEGMENT	(1ull << 20)
/* Segments for short blocks that are reserved, or stay, although long ones are unused. */
#define POOL_FEW	16u
#define POOL_ALIGN	512u
/* No device is that large, and lengths can be added without a thought. */
#define POOL_MAX	(1ull << 48)

static int options(struct neuron_mem_pool_opts *o, const struct neuron_mem_pool_opts *opts)
{
	int ret = opts_copy(o, sizeof(*o), opts);

	if (ret)
		return ret;
	if (o->queues > NEURON_POOL_MAX_QUEUES || o->align & (o->align - 1) ||
	    o->align > POOL_MAX || o->init > POOL_MAX || (o->max && o->init > o->max))
		return -EINVAL;
	o->category = o->category ? o->category : NEURON_MEM_TENSORS;
	o->queues = o->queues ? o->queues : POOL_QUEUES;
	o->increase = o->increase ? MIN(o->increase, POOL_MAX) : POOL_INCREASE;
	o->max = o->max && o->max < POOL_MAX ? o->max : POOL_MAX;
	o->align = o->align ? o->align : POOL_ALIGN;
	return 0;
}

static void pool_destroy(struct neuron_mem_pool *pool)
{
	device_remove_reserve(pool->device, &pool->reserve);
	segments_free(pool);
	blocks_free(pool);
	device_put(pool->device);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* For another allocation of the device; not while this pool is in use, it may be its own one. */
static bool pool_give_back(struct reserve *reserve)
{
	struct neuron_mem_pool *pool = (void *)((char *)reserve -
						offsetof(struct neuron_mem_pool, reserve));
	uint64_t bytes;

	if (pthread_mutex_trylock(&pool->lock))
		return false;
	blocks_harvest(pool);
	bytes = segments_trim(pool, 0);
	pthread_mutex_unlock(&pool->lock);
	return bytes != 0;
}

NEURON_EXPORT int neuron_mem_pool_open(struct neuron_device *device,
				       const struct neuron_mem_pool_opts *opts,
				       struct neuron_mem_pool **pool)
{
	struct neuron_mem_pool_opts o;
	struct neuron_mem_pool *p;
	int ret = options(&o, opts);

	if (ret)
		return ret;
	if (!pool)
		return -EINVAL;
	/* The list of pools may be locked for ever. */
	if (device_inherited(device))
		return -EACCES;
	p = calloc(1, sizeof(*p) + o.queues * sizeof(p->queue[0]));
	if (!p)
		return mem_no_host(o.init, o.failure);
	p->device = device_get(device);
	p->opts = o;
	p->nr_queues = o.queues;
	p->segment = round_up(POOL_SEGMENT, segment_unit(p));
	p->ahead = o.increase;
	pthread_mutex_init(&p->lock, NULL);
	p->reserve.hbm = o.hbm;
	p->reserve.give_back = pool_give_back;
	device_add_reserve(device, &p->reserve);
	pthread_mutex_lock(&p->lock);
	ret = segments_add(p, &(struct step){
		.each = p->segment,
		.least = round_up(o.init ? o.init : NEURON_PAGE, segment_unit(p)),
		.most = o.init ? 0 : POOL_INCREASE,
	}, o.failure);
	pthread_mutex_unlock(&p->lock);
	if (ret) {
		pool_destroy(p);
		return ret;
	}
	*pool = p;
	return 0;
}

NEURON_EXPORT void neuron_mem_pool_close(struct neuron_mem_pool *pool)
{
	bool last;

	if (!pool)
		return;
	/*
	 * In a child the lock may be a thread's that is not there, and the pool be half changed.
	 * Its blocks still ask for its device, whose memory keeps that.
	 */
	if (device_inherited(pool->device)) {
		device_put(pool->device);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	pool->closed = true;
	last = !pool->stats.allocation.current;
	pthread_mutex_unlock(&pool->lock);
	if (last)
		pool_destroy(pool);
}

/* A segment of one with just this length: a shortened one would leave a hole with the driver. */
static struct neuron_mem_block *find_own(struct neuron_mem_pool *pool, struct pool_queue *queue,
					 uint64_t bytes)
{
	struct neuron_mem_block *block = fit_find(&queue->fits.own, bytes);

	if (!block || block->bytes != bytes)
		block = fit_find(&pool->ready.own, bytes);
	return block && block->bytes == bytes ? block : NULL;
}

/* The tightest that work of the queue may use now; of its own rather than one for all. */
static struct neuron_mem_block *find(struct neuron_mem_pool *pool, struct pool_queue *queue,
				     uint64_t bytes)
{
	struct neuron_mem_block *own, *ready;

	if (bytes > pool->segment && (own = find_own(pool, queue, bytes)))
		return own;
	own = fit_find(&queue->fits.shared, bytes);
	ready = fit_find(&pool->ready.shared, bytes);
	return own && (!ready || own->bytes <= ready->bytes) ? own : ready;
}

/* Let the program wait for the work that blocks which are free wait for.  Was there any? */
static bool wait_for_queues(struct neuron_mem_pool *pool)
{
	bool some = false;

	for (uint32_t i = 0; pool->opts.wait && i < pool->nr_queues; i++) {
		struct pool_queue *queue = &pool->queue[i];
		uint64_t point;

		if (!queue->newest)
			continue;
		point = queue->newest->point;
		pthread_mutex_unlock(&pool->lock);
		if (!pool->opts.wait(pool->opts.data, i, point)) {
			neuron_mem_pool_complete(pool, i, point);
			some = true;
		}
		pthread_mutex_lock(&pool->lock);
	}
	return some;
}

/* Of what is free in any segment. */
static struct neuron_mem_block *find_free(struct neuron_mem_pool *pool, struct pool_queue *queue,
					  uint64_t bytes)
{
	struct neuron_mem_block *block;

	blocks_harvest(pool);
	block = find(pool, queue, bytes);
	if (block)
		return block;
	blocks_join(pool, queue);
	return find(pool, queue, bytes);
}

/* How many segments of this length, of at most @room bytes together: twice as many each time. */
static uint64_t guess(struct neuron_mem_pool *pool, uint64_t bytes, uint64_t room)
{
	struct guess *g = &pool->guess[(bytes * 0x9e3779b97f4a7c15ull) >> 58];

	g->n = g->bytes == bytes ? MIN(2 * g->n, NEURON_NATIVE_BULK_MAX) : 1;
	g->bytes = bytes;
	return MAX(MIN(g->n, room / bytes), 1u);
}

/*
 * Segments for a long block and for some that may follow. Unused ones stay as far as they are
 * few beside what is used: what was freed is often allocated again. Those beyond go all at once,
 * which leaves the driver longer holes than one at a time.
 */
static void step_long(struct neuron_mem_pool *pool, struct step *step)
{
	uint64_t limit = MIN(pool->ahead, pool->stats.allocated_bytes.current / 8);
	uint64_t few = POOL_FEW * pool->segment;

	step->each = step->least;
	step->most = step->each * guess(pool, step->each, limit / 4);
	if (pool->idle.own && pool->idle.own + step->most > limit)
		segments_return(pool, true, pool->idle.own + step->most - limit);
	else if (pool->idle.shared > few && pool->idle.shared + pool->idle.own > limit)
		segments_return(pool, false, MIN(step->most, pool->idle.shared - few));
}

/* Segments of many, so that as much is unused as is to be reserved in a step. */
static void step_short(struct neuron_mem_pool *pool, struct step *step)
{
	uint64_t few = MIN(pool->ahead, POOL_FEW * pool->segment);
	uint64_t idle = pool->idle.own;

	step->each = pool->segment;
	step->most = MAX(few, pool->ahead - MIN(idle, pool->ahead));
	if (idle + step->most > pool->ahead)
		segments_return(pool, true, idle + step->most - pool->ahead);
}

static int expand(struct neuron_mem_pool *pool, uint64_t bytes, struct neuron_mem_failure *failure)
{
	const uint64_t increase = pool->opts.increase;
	struct step step = { .least = round_up(bytes, segment_unit(pool)) };
	int ret;

	(bytes > pool->segment ? step_long : step_short)(pool, &step);
	ret = segments_add(pool, &step, failure);
	if (ret != -ENOMEM) {
		pool->ahead = MIN(increase, pool->ahead + pool->ahead / 16);
		return ret;
	}
	pool->ahead = MAX(pool->ahead / 2, MIN(increase, POOL_FEW * pool->segment));
	pool->stats.num_alloc_retries++;
	step.most = 0;
	return segments_trim(pool, 0) ? segments_add(pool, &step, failure) : ret;
}

/* No free block is long enough: what can be done before refusing, the cheapest first. */
static int find_hard(struct neuron_mem_pool *pool, struct pool_queue *queue, uint64_t bytes,
		     struct neuron_mem_block **block, struct neuron_mem_failure *failure)
{
	bool waited = false;
	int ret;

	do {
		*block = find_free(pool, queue, bytes);
		if (*block)
			return 0;
		ret = expand(pool, bytes, failure);
		if (!ret) {
			*block = find_free(pool, queue, bytes);
			return 0;
		}
		if (ret != -ENOMEM || waited)
			break;
		waited = true;
	} while (wait_for_queues(pool));
	/* Rather cut up what is for one block than refuse. */
	*block = ret == -ENOMEM ? fit_find(&queue->fits.own, bytes) : NULL;
	if (*block) {
		segment_share(pool, (*block)->segment);
		return 0;
	}
	pool->stats.num_ooms += ret == -ENOMEM;
	return ret;
}

/* What all of the pool would not be enough for is worth neither a wait nor what it has. */
static int refuse(struct neuron_mem_pool *pool, uint64_t bytes, struct neuron_mem_failure *failure)
{
	pool->stats.num_ooms++;
	if (failure)
		*failure = segments_capped(pool, bytes);
	return -ENOMEM;
}

NEURON_EXPORT int neuron_mem_pool_alloc(struct neuron_mem_pool *pool, uint64_t bytes,
					uint32_t queue, struct neuron_mem_block **block,
					struct neuron_mem_failure *failure)
{
	struct neuron_mem_block *b;
	uint64_t length;
	int ret = 0;

	if (!bytes || queue >= pool->nr_queues || !block)
		return -EINVAL;
	/* What is longer than any pool stays that long, and can be rounded up. */
	length = round_up(MIN(bytes, POOL_MAX + 1), pool->opts.align);
	/* All of its segment. */
	if (length > pool->segment)
		length = round_up(length, segment_unit(pool));
	GUARD(&pool->lock);
	b = find(pool, &pool->queue[queue], length);
	if (!b && length > (pool->opts.max & -segment_unit(pool)))
		ret = refuse(pool, bytes, failure);
	else if (!b)
		ret = find_hard(pool, &pool->queue[queue], length, &b, failure);
	if (!ret && block_split(pool, b, length, &b)) {
		pool->stats.num_ooms++;
		ret = mem_no_host(bytes, failure);
	}
	if (ret)
		return ret;
	b->asked = bytes;
	figure_add(&pool->stats.allocation, 1);
	figure_add(&pool->stats.requested_bytes, bytes);
	figure_add(&pool->stats.allocated_bytes, length);
	*block = b;
	return 0;
}

/* Under the lock. 1: that was the end of a pool that nobody else has; -EINVAL it is free. */
static int block_free(struct neuron_mem_pool *pool, struct neuron_mem_block *block, uint32_t queue)
{
	struct pool_queue *q = &pool->queue[queue];

	if (block->state != BLOCK_USED)
		return -EINVAL;
	figure_sub(&pool->stats.allocation, 1);
	figure_sub(&pool->stats.requested_bytes, block->asked);
	figure_sub(&pool->stats.allocated_bytes, block->bytes);
	block->queue = queue;
	block->point = atomic_load_explicit(&q->submitted, memory_order_relaxed);
	block->state = block->point <= atomic_load_explicit(&q->completed, memory_order_acquire) ?
		       BLOCK_READY : BLOCK_PENDING;
	block_put(pool, block);
	return pool->closed && !pool->stats.allocation.current;
}

NEURON_EXPORT int neuron_mem_block_free(struct neuron_mem_block *block, uint32_t queue)
{
	struct neuron_mem_pool *pool;
	int ret;

	if (!block)
		return 0;
	pool = block->segment->pool;
	if (queue >= pool->nr_queues)
		return -EINVAL;
	/* As in neuron_mem_pool_close(). */
	if (device_inherited(pool->device))
		return 0;
	pthread_mutex_lock(&pool->lock);
	ret = block_free(pool, block, queue);
	pthread_mutex_unlock(&pool->lock);
	if (ret > 0)
		pool_destroy(pool);
	return MIN(ret, 0);
}

NEURON_EXPORT uint64_t neuron_mem_block_address(const struct neuron_mem_block *block)
{
	return block->address;
}

NEURON_EXPORT uint64_t neuron_mem_block_bytes(const struct neuron_mem_block *block)
{
	return block->asked;
}

NEURON_EXPORT struct neuron_mem *neuron_mem_block_mem(const struct neuron_mem_block *block)
{
	return block->segment->mem;
}

NEURON_EXPORT uint64_t neuron_mem_block_offset(const struct neuron_mem_block *block)
{
	return block->address - block->segment->address;
}

NEURON_EXPORT uint64_t neuron_mem_pool_submit(struct neuron_mem_pool *pool, uint32_t queue)
{
	if (queue >= pool->nr_queues)
		return 0;
	return 1 + atomic_fetch_add_explicit(&pool->queue[queue].submitted, 1,
					     memory_order_relaxed);
}

NEURON_EXPORT int neuron_mem_pool_complete(struct neuron_mem_pool *pool, uint32_t queue,
					   uint64_t point)
{
	struct pool_queue *q;
	uint64_t now;

	if (queue >= pool->nr_queues)
		return -EINVAL;
	q = &pool->queue[queue];
	if (point > atomic_load_explicit(&q->submitted, memory_order_relaxed))
		return -EINVAL;
	now = atomic_load_explicit(&q->completed, memory_order_relaxed);
	while (now < point &&
	       !atomic_compare_exchange_weak_explicit(&q->completed, &now, point,
						      memory_order_release, memory_order_relaxed))
		;
	return 0;
}

NEURON_EXPORT void neuron_mem_pool_trim(struct neuron_mem_pool *pool, uint64_t keep,
					uint64_t *returned)
{
	uint64_t bytes;

	GUARD(&pool->lock);
	blocks_harvest(pool);
	bytes = segments_trim(pool, keep);
	if (returned)
		*returned = bytes;
}

NEURON_EXPORT int neuron_mem_pool_get_stats(struct neuron_mem_pool *pool,
					    struct neuron_mem_pool_stats *stats)
{
	struct neuron_mem_pool_stats out;

	if (!result_valid(stats))
		return -EINVAL;
	GUARD(&pool->lock);
	blocks_harvest(pool);
	out = pool->stats;
	out.active_bytes = out.allocated_bytes.current;
	for (int i = 0; i < 2; i++) {
		struct fit *fit = i ? &pool->ready.own : &pool->ready.shared;
		const struct neuron_mem_block *last = fit_last(fit);

		out.largest_inactive = MAX(out.largest_inactive, last ? last->bytes : 0);
	}
	for (uint32_t i = 0; i < pool->nr_queues; i++)
		out.active_bytes += pool->queue[i].pending;
	out.inactive_bytes = out.reserved_bytes.current - out.active_bytes;
	out.inactive_split_bytes = out.inactive_bytes;
	for (struct segment *s = pool->segments; s; s = s->next)
		if (s->first == s->last && s->first->state == BLOCK_READY)
			out.inactive_split_bytes -= s->bytes;
	result_copy(stats, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT void neuron_mem_pool_reset_peak(struct neuron_mem_pool *pool)
{
	struct neuron_pool_figure *const figures[] = {
		&pool->stats.allocation, &pool->stats.segment, &pool->stats.requested_bytes,
		&pool->stats.allocated_bytes, &pool->stats.reserved_bytes,
	};

	GUARD(&pool->lock);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		figures[i]->peak = figures[i]->current;
}
