// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pools of cores, and groups of them. */
#include <errno.h>
#include <stdlib.h>

#include "../../common/lock.h"
#include "net.h"

static void pool_put(struct neuron_pool *pool)
{
	if (atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < pool->nr; i++)
		core_put(pool->cores[i]);
	pthread_mutex_destroy(&pool->lock);
	free(pool->cores);
	free(pool->owner);
	free(pool);
}

NEURON_EXPORT int neuron_pool_open(struct neuron_core *const *cores, size_t nr,
				   struct neuron_pool **out)
{
	struct neuron_pool *pool;

	if (!cores || !nr)
		return -EINVAL;
	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k <= i; k++)
			if (!cores[i] || (k < i && cores[i] == cores[k]))
				return -EINVAL;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	atomic_init(&pool->refs, 1);
	pthread_mutex_init(&pool->lock, NULL);
	pool->cores = calloc(nr, sizeof(*pool->cores));
	pool->owner = calloc(nr, sizeof(*pool->owner));
	if (!pool->cores || !pool->owner) {
		pool_put(pool);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++)
		pool->cores[i] = core_get(cores[i]);
	pool->nr = nr;
	*out = pool;
	return 0;
}

NEURON_EXPORT void neuron_pool_close(struct neuron_pool *pool)
{
	if (pool)
		pool_put(pool);
}

NEURON_EXPORT void neuron_pool_isolate(struct neuron_pool *pool)
{
	GUARD(&pool->lock);
	pool->isolated = true;
}

static size_t pool_free_locked(const struct neuron_pool *pool)
{
	size_t n = 0;

	for (size_t i = 0; i < pool->nr; i++)
		n += !pool->owner[i];
	return n;
}

NEURON_EXPORT size_t neuron_pool_free(struct neuron_pool *pool)
{
	GUARD(&pool->lock);
	return pool_free_locked(pool);
}

NEURON_EXPORT int neuron_group_create(struct neuron_pool *pool, size_t nr,
				      struct neuron_group **out)
{
	struct neuron_group *group;

	if (!nr || nr > pool->nr)
		return -EINVAL;
	GUARD(&pool->lock);
	if (pool_free_locked(pool) < nr)
		return -EBUSY;
	group = calloc(1, sizeof(*group) + nr * sizeof(group->cores[0]));
	if (!group)
		return -ENOMEM;
	for (size_t i = 0; group->nr < nr; i++)
		if (!pool->owner[i]) {
			pool->owner[i] = group;
			group->cores[group->nr++] = pool->cores[i];
		}
	atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
	group->pool = pool;
	*out = group;
	return 0;
}

/*
 * What programs have left in the state buffer, semaphores and events of a core.  A reset can take
 * long, and whoever gives a core back need not wait for it: the next run does.
 */
static void forget_content(struct neuron_core *core)
{
	/* In a child the turn may be a thread's that is not there, and it runs nothing. */
	for (; core && !device_inherited(core->device); core = core->peer) {
		TURN(&core->turn);
		core->broken = true;
		core->foreign = true;
	}
}

NEURON_EXPORT int neuron_group_destroy(struct neuron_group *group)
{
	struct neuron_pool *pool;
	bool busy, isolated;

	if (!group)
		return 0;
	pool = group->pool;
	pool_lock(pool);
	busy = group->nr_nets;
	isolated = pool->isolated;
	pool_unlock(pool);
	if (busy)
		return -EBUSY;
	/* Without the lock, as somebody may be running something on a core. */
	for (size_t i = 0; i < group->nr && isolated; i++)
		forget_content(group->cores[i]);
	pool_lock(pool);
	for (size_t i = 0; i < pool->nr; i++)
		if (pool->owner[i] == group)
			pool->owner[i] = NULL;
	pool_unlock(pool);
	free(group);
	pool_put(pool);
	return 0;
}

const struct neuron_core *core_on(const struct neuron_group *group,
				  const struct neuron_device *device)
{
	for (size_t i = 0; i < group->nr; i++)
		if (group->cores[i]->device == device)
			return group->cores[i];
	return NULL;
}
