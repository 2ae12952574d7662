// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sequences of a pool of keys and values (kv.h). */
#include <errno.h>
#include <stdlib.h>

#include "../../common/lock.h"
#include "../device/device.h"
#include "kv.h"

static uint64_t blocks_of(const struct neuron_kv_seq *seq, uint64_t tokens)
{
	uint32_t block = seq->pool->opts.block_tokens;

	return tokens / block + (tokens % block != 0);
}

/* Room for so many pages in the tables. */
static int tables_grow(struct neuron_kv_seq *seq, uint64_t nr)
{
	size_t max = MAX(seq->max * 2, 16);
	uint64_t *address;
	uint32_t *page;

	if (nr <= seq->max)
		return 0;
	max = MAX(max, nr);
	page = reallocarray(seq->page, max, sizeof(*page));
	if (!page)
		return -ENOMEM;
	seq->page = page;
	address = reallocarray(seq->address, max, sizeof(*address));
	if (!address)
		return -ENOMEM;
	seq->address = address;
	seq->max = max;
	return 0;
}

static void push(struct neuron_kv_seq *seq, uint32_t page)
{
	seq->page[seq->nr] = page;
	seq->address[seq->nr++] = kv_address(seq->pool, page);
}

static void pop(struct neuron_kv_seq *seq)
{
	kv_page_put(seq->pool, seq->page[--seq->nr], seq->pinned);
}

static int seq_new(struct neuron_kv_pool *pool, uint32_t priority, struct neuron_kv_seq **seq)
{
	struct neuron_kv_seq *s;

	if (priority > NEURON_KV_MAX_PRIORITY)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->pool = pool;
	s->priority = (uint8_t)priority;
	s->pinned = true;
	*seq = s;
	return 0;
}

NEURON_EXPORT int neuron_kv_seq_open(struct neuron_kv_pool *pool, uint32_t priority,
				     struct neuron_kv_seq **seq)
{
	int ret = seq ? seq_new(pool, priority, seq) : -EINVAL;

	if (ret)
		return ret;
	GUARD(&pool->lock);
	pool->nr_users++;
	return 0;
}

NEURON_EXPORT int neuron_kv_seq_fork(struct neuron_kv_seq *seq, uint64_t tokens, uint32_t priority,
				     struct neuron_kv_seq **child)
{
	struct neuron_kv_pool *pool = seq->pool;
	uint64_t nr = blocks_of(seq, tokens);
	struct neuron_kv_seq *c;
	int ret;

	if (!child || tokens > seq->tokens)
		return -EINVAL;
	if (!seq->pinned)
		return -EAGAIN;
	ret = seq_new(pool, priority, &c);
	if (ret)
		return ret;
	if (tables_grow(c, nr)) {
		free(c->page);
		free(c);
		return -ENOMEM;
	}
	GUARD(&pool->lock);
	pool->nr_users++;
	for (uint64_t i = 0; i < nr; i++) {
		kv_page_get(pool, seq->page[i]);
		push(c, seq->page[i]);
	}
	c->tokens = tokens;
	*child = c;
	return 0;
}

NEURON_EXPORT void neuron_kv_seq_close(struct neuron_kv_seq *seq)
{
	struct neuron_kv_pool *pool;

	if (!seq)
		return;
	pool = seq->pool;
	/* In a child its tables may be half changed, too. */
	if (device_inherited(pool->device))
		return;
	pthread_mutex_lock(&pool->lock);
	/* A copy under way is of one that is not pinned; its outcome does not matter. */
	if (!seq->pinned)
		kv_settle(pool);
	while (seq->nr)
		pop(seq);
	pthread_mutex_unlock(&pool->lock);
	free(seq->page);
	free(seq->address);
	free(seq);
	kv_leave(pool);
}

/* The last page becomes one that nobody else has. */
static int own_last(struct neuron_kv_seq *seq)
{
	uint32_t copy;
	int ret = kv_duplicate(seq->pool, seq->page[seq->nr - 1], &copy);

	if (ret)
		return ret;
	pop(seq);
	push(seq, copy);
	return 0;
}

static int append(struct neuron_kv_seq *seq, uint64_t tokens)
{
	struct neuron_kv_pool *pool = seq->pool;
	uint64_t nr = blocks_of(seq, seq->tokens + tokens), need = nr - seq->nr;
	bool shared = seq->tokens % pool->opts.block_tokens && tokens &&
		      pool->page[seq->page[seq->nr - 1]].refs > 1;
	int ret;

	need += shared;
	if (need > kv_device_room(pool)) {
		ret = kv_settle(pool);
		if (!ret)
			ret = kv_make_room(pool, need);
		if (!ret)
			ret = kv_settle(pool);
		if (ret)
			return ret == -ENOBUFS ? kv_refuse(pool) : ret;
	}
	ret = tables_grow(seq, nr);
	if (!ret && shared)
		ret = own_last(seq);
	if (ret)
		return ret;
	while (seq->nr < nr)
		push(seq, kv_page_new(pool));
	seq->tokens += tokens;
	return 0;
}

NEURON_EXPORT int neuron_kv_seq_append(struct neuron_kv_seq *seq, uint64_t tokens)
{
	uint64_t max = seq->pool->opts.max_seq_tokens;

	if (!seq->pinned)
		return -EAGAIN;
	if (tokens > (max ? max : UINT64_MAX) - seq->tokens)
		return -EFBIG;
	GUARD(&seq->pool->lock);
	return append(seq, tokens);
}

NEURON_EXPORT int neuron_kv_seq_truncate(struct neuron_kv_seq *seq, uint64_t tokens)
{
	if (tokens > seq->tokens)
		return -EINVAL;
	GUARD(&seq->pool->lock);
	if (!seq->pinned)
		kv_settle(seq->pool);
	while (seq->nr > blocks_of(seq, tokens))
		pop(seq);
	seq->tokens = tokens;
	return 0;
}

/* Pages are evicted from the end: what sequences share is at the beginning. */
static void unpin(struct neuron_kv_seq *seq)
{
	seq->pinned = false;
	for (size_t i = seq->nr; i-- > 0;)
		kv_unpin(seq->pool, seq->page[i], seq->priority);
}

static int pin(struct neuron_kv_seq *seq)
{
	struct neuron_kv_pool *pool = seq->pool;
	uint64_t missing = 0, own = 0;
	int ret = kv_settle(pool);

	if (ret)
		return ret;
	for (size_t i = 0; i < seq->nr; i++) {
		const struct kv_page *p = &pool->page[seq->page[i]];

		missing += p->side == KV_HOST;
		own += p->side == KV_DEVICE && !p->pins;
	}
	/* Before any of them loses its place in the order of eviction. */
	if (missing > (uint64_t)pool->tier[KV_DEVICE].nr_free + pool->nr_evictable - own)
		return kv_refuse(pool);
	/* First: none of them is to be evicted for another one. */
	seq->pinned = true;
	for (size_t i = 0; i < seq->nr; i++)
		kv_pin(pool, seq->page[i]);
	for (size_t i = 0; missing && i < seq->nr && !ret; i++)
		if (pool->page[seq->page[i]].side == KV_HOST)
			ret = kv_onboard(pool, seq->page[i]);
	if (!ret)
		ret = kv_settle(pool);
	if (ret) {
		unpin(seq);
		return ret;
	}
	for (size_t i = 0; i < seq->nr; i++)
		seq->address[i] = kv_address(pool, seq->page[i]);
	return 0;
}

NEURON_EXPORT int neuron_kv_seq_pin(struct neuron_kv_seq *seq)
{
	if (seq->pinned)
		return -EALREADY;
	GUARD(&seq->pool->lock);
	return pin(seq);
}

NEURON_EXPORT int neuron_kv_seq_unpin(struct neuron_kv_seq *seq)
{
	if (!seq->pinned)
		return -EALREADY;
	GUARD(&seq->pool->lock);
	unpin(seq);
	return 0;
}

NEURON_EXPORT int neuron_kv_seq_prefetch(struct neuron_kv_seq *seq, uint64_t *left)
{
	struct neuron_kv_pool *pool = seq->pool;
	uint32_t next = KV_NONE;
	uint64_t missing = 0;
	int ret;

	if (seq->pinned)
		return -EALREADY;
	GUARD(&pool->lock);
	ret = kv_settle(pool);
	for (size_t i = seq->nr; i-- > 0 && !ret;)
		if (pool->page[seq->page[i]].side == KV_HOST) {
			next = seq->page[i];
			missing++;
		}
	if (!ret && missing)
		ret = pool->tier[KV_DEVICE].nr_free ? kv_onboard(pool, next) : -ENOBUFS;
	if (!ret && left)
		*left = missing;
	return ret;
}

NEURON_EXPORT uint64_t neuron_kv_seq_tokens(const struct neuron_kv_seq *seq)
{
	return seq->tokens;
}

NEURON_EXPORT int neuron_kv_seq_blocks(struct neuron_kv_seq *seq, const uint64_t **addresses,
				       size_t *n)
{
	if (!addresses || !n)
		return -EINVAL;
	if (!seq->pinned)
		return -EAGAIN;
	*addresses = seq->address;
	*n = seq->nr;
	return 0;
}

NEURON_EXPORT int neuron_kv_seq_locate(struct neuron_kv_seq *seq, uint64_t token,
				       struct neuron_mem **mem, uint64_t *offset, uint64_t *tokens)
{
	const struct neuron_kv_opts *o = &seq->pool->opts;
	uint64_t inside = token % o->block_tokens;

	if (!mem || !offset)
		return -EINVAL;
	if (!seq->pinned)
		return -EAGAIN;
	if (token >= seq->tokens)
		return -EINVAL;
	GUARD(&seq->pool->lock);
	*mem = kv_locate(seq->pool, seq->page[token / o->block_tokens], offset);
	*offset += inside * o->token_bytes;
	if (tokens)
		*tokens = MIN(o->block_tokens - inside, seq->tokens - token);
	return 0;
}
