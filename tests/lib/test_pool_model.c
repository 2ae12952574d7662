// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools in the order of queues: drawn operations against a model of every granule, and queues
 * that run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "fake_driver.h"
#include "random_side.h"
#include "src/memory/pool.h"
#include "test_pools.h"

#define GIB	(1ull << 30)

static int teardown(void **state)
{
	(void)state;
	neuron_device_close(device);
	/* Nothing is left of a pool. */
	return fake.left_bytes || fake.left_handles || fake.dev[0].opens;
}

/* ---- a model of every granule ------------------------------------------------------ */

#define QUEUES		4u
#define LIVE		300u
#define MODEL_MAX	(32 * MIB)
#define GRANULE		512ull

static struct {
	struct neuron_mem_pool *pool;
	struct neuron_mem_block *live[LIVE];
	uint64_t submitted[QUEUES], completed[QUEUES];
	/* By granule of all addresses that there were: who has it, and who freed it when. */
	struct granule {
		uint32_t segment_born;
		bool used;
		uint8_t queue;
		uint64_t point;
	} *map;
	uint64_t base, granules;
	uint64_t longest;	/* a longer block has a segment of its own */
	unsigned int refused;
} m;

static struct granule *at(uint64_t address)
{
	uint64_t index = (address - m.base) / GRANULE;

	assert_true(address >= m.base && index < m.granules);
	return &m.map[index];
}

static bool usable(const struct granule *g, uint32_t queue)
{
	return !g->used && (g->queue == queue || g->point <= m.completed[g->queue]);
}

/* Lists, indexes and sums agree, and no two free neighbours of a kind are apart. */
static void check_pool(void)
{
	uint64_t reserved = 0, used = 0, pending[QUEUES] = { 0 }, found[QUEUES] = { 0 };
	uint64_t idle[2] = { 0, 0 };

	for (struct segment *s = m.pool->segments; s; s = s->next) {
		uint64_t address = s->address;

		assert_null(s->first->prev);
		assert_null(s->last->next);
		for (struct neuron_mem_block *b = s->first; b; b = b->next) {
			assert_true(b->address == address && b->bytes && b->bytes % GRANULE == 0);
			assert_true(b->segment == s && (!b->next || b->next->prev == b));
			address += b->bytes;
			if (b->state == BLOCK_USED)
				used += b->bytes;
			if (b->state == BLOCK_PENDING)
				pending[b->queue] += b->bytes;
			/* Of these, only pending ones of different queues. */
			if (b->state != BLOCK_USED && b->next && b->next->state == b->state) {
				assert_int_equal(b->state, BLOCK_PENDING);
				assert_int_not_equal(b->queue, b->next->queue);
			}
		}
		assert_true(address == s->address + s->bytes);
		reserved += s->bytes;
		if (s->first == s->last && s->first->state == BLOCK_READY)
			idle[s->own] += s->bytes;
	}
	assert_true(idle[0] == m.pool->idle.shared && idle[1] == m.pool->idle.own);
	assert_true(reserved == m.pool->stats.reserved_bytes.current);
	assert_true(used == m.pool->stats.allocated_bytes.current);
	assert_true(reserved <= MODEL_MAX && reserved == fake_used());
	for (unsigned int i = 0; i < QUEUES; i++) {
		uint64_t point = 0;

		for (struct neuron_mem_block *b = m.pool->queue[i].oldest; b; b = b->newer) {
			assert_true(b->state == BLOCK_PENDING && b->queue == i);
			assert_true(b->point >= point);
			point = b->point;
			found[i] += b->bytes;
		}
		assert_true(found[i] == pending[i] && pending[i] == m.pool->queue[i].pending);
	}
}

/*
 * The longest run of blocks, of segments of @own ones too or only of others, from @s on that the queue may use.  Of neighbours that a queue
 * freed, others get none before the last one's point, so blocks count, not granules.
 */
static uint64_t longest(const struct segment *s, bool own, uint32_t queue)
{
	uint64_t most = 0;

	for (; s; s = s->next) {
		uint64_t run = 0;

		for (const struct neuron_mem_block *b = s->first; b && s->own <= own; b = b->next) {
			run = b->state == BLOCK_READY || (b->state == BLOCK_PENDING &&
			      (b->queue == queue || b->point <= m.completed[b->queue])) ?
			      run + b->bytes : 0;
			most = MAX(most, run);
		}
	}
	return most;
}

/* Length of the tightest free block of a shared segment that the queue may have now, or 0. */
static uint64_t tightest(uint32_t queue, uint64_t bytes)
{
	uint64_t least = UINT64_MAX;

	for (const struct segment *s = m.pool->segments; s; s = s->next)
		for (const struct neuron_mem_block *b = s->first; b && !s->own; b = b->next)
			if (b->bytes >= bytes && (b->state == BLOCK_READY ||
			    (b->state == BLOCK_PENDING && b->queue == queue)))
				least = MIN(least, b->bytes);
	return least < UINT64_MAX ? least : 0;
}

static void model_alloc(unsigned int slot)
{
	uint64_t bytes = 1 + (rnd(8) ? rnd(64 << 10) : rnd(2 * MIB));
	uint32_t queue = (uint32_t)rnd(QUEUES);
	uint64_t length = bytes > m.longest ? round_up(bytes, 4096) : bytes;
	uint64_t tight = tightest(queue, length), segments = m.pool->stats.segment.allocated;
	const struct segment *old;
	struct neuron_mem_block *b;
	int ret = neuron_mem_pool_alloc(m.pool, bytes, queue, &b, NULL);

	if (ret) {
		assert_int_equal(ret, -ENOMEM);
		m.refused++;
		/* Only if nothing that it may use was long enough, and no segment fits any more. */
		assert_true(longest(m.pool->segments, true, queue) < bytes);
		assert_true(MODEL_MAX - m.pool->stats.reserved_bytes.current <
			    round_up(bytes, 4096));
		return;
	}
	/* What was left of it is behind it. */
	assert_true(!tight || b->bytes == tight || b->segment->own ||
		    (b->next->state != BLOCK_USED && b->bytes + b->next->bytes == tight));
	/* A segment more only if nothing was long enough. */
	old = m.pool->segments;
	for (segments = m.pool->stats.segment.allocated - segments; segments; segments--)
		old = old->next;
	if (old != m.pool->segments)
		assert_true(longest(old, false, queue) < length);
	for (uint64_t i = 0; i < bytes; i += GRANULE) {
		struct granule *g = at(neuron_mem_block_address(b) + i);

		assert_true(usable(g, queue));
		g->used = true;
	}
	m.live[slot] = b;
}

static void model_free(unsigned int slot)
{
	struct neuron_mem_block *b = m.live[slot];
	uint64_t address = neuron_mem_block_address(b), bytes = neuron_mem_block_bytes(b);
	uint32_t queue = (uint32_t)rnd(QUEUES);

	m.live[slot] = NULL;
	give(b, queue);
	for (uint64_t i = 0; i < bytes; i += GRANULE) {
		struct granule *g = at(address + i);

		assert_true(g->used);
		*g = (struct granule){ .queue = (uint8_t)queue, .point = m.submitted[queue] };
	}
}

static void model_step(void)
{
	unsigned int slot = (unsigned int)rnd(LIVE);
	uint32_t queue = (uint32_t)rnd(QUEUES);

	switch (rnd(12)) {
	case 0:
	case 1:
	case 2:
		assert_true(neuron_mem_pool_submit(m.pool, queue) == ++m.submitted[queue]);
		break;
	case 3:
		m.completed[queue] += rnd(m.submitted[queue] - m.completed[queue] + 1);
		assert_int_equal(neuron_mem_pool_complete(m.pool, queue, m.completed[queue]), 0);
		break;
	case 4:
		if (!rnd(200))
			neuron_mem_pool_trim(m.pool, rnd(MODEL_MAX), NULL);
		break;
	default:
		if (m.live[slot])
			model_free(slot);
		else
			model_alloc(slot);
	}
}

static void run_model(uint64_t increase)
{
	unsigned int before;

	memset(&m, 0, sizeof(m));
	m.longest = MIB;
	/* The driver of the test gives out no address twice. */
	m.granules = (256 * GIB) / GRANULE;
	m.map = mmap(NULL, m.granules * sizeof(*m.map), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(m.map != MAP_FAILED);
	m.pool = open_pool(4 * MIB, increase, MODEL_MAX);
	m.base = 1ull << 30;
	for (int i = 0; i < 300000; i++) {
		model_step();
		if (i % 64 == 0)
			check_pool();
	}
	check_pool();
	before = m.refused;
	assert_true(before > 100);
	for (unsigned int i = 0; i < LIVE; i++)
		if (m.live[i])
			model_free(i);
	for (uint32_t i = 0; i < QUEUES; i++)
		neuron_mem_pool_complete(m.pool, i, m.submitted[i]);
	check_pool();
	neuron_mem_pool_trim(m.pool, 0, NULL);
	assert_int_equal(fake_used(), 0);
	neuron_mem_pool_close(m.pool);
	munmap(m.map, m.granules * sizeof(*m.map));
}

static void test_model(void **state)
{
	(void)state;
	run_model(3 * MIB);
}

/* Steps that are shorter than a segment. */
static void test_model_short_steps(void **state)
{
	(void)state;
	run_model(512 << 10);
}

/* ---- queues that run --------------------------------------------------------------- */

#define DEPTH	64u
#define ROUNDS	4000u

/* Work of a queue: fill a block, or look whether it is still as it was filled. */
struct work {
	uint32_t *words;
	size_t nr;
	uint32_t pattern;
	bool look;
	uint64_t point;
};

static struct running {
	struct neuron_mem_pool *pool;
	uint32_t queue;
	uint64_t rng[2];	/* of the program, of the device */
	pthread_t program, device;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct work ring[DEPTH];
	unsigned int head, tail;	/* executed, queued */
	unsigned int wrong;
} running[QUEUES];

static uint64_t random_of(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % n;
}

static void execute(struct running *r, const struct work *w)
{
	for (size_t i = 0; i < w->nr; i++) {
		if (w->look)
			r->wrong += w->words[i] != w->pattern + (uint32_t)i;
		else
			w->words[i] = w->pattern + (uint32_t)i;
		/* Other queues are quicker or slower than this one. */
		if (!random_of(&r->rng[1], 2000))
			sched_yield();
	}
}

static void *device_thread(void *arg)
{
	struct running *r = arg;

	for (;;) {
		struct work w;

		pthread_mutex_lock(&r->lock);
		while (r->head == r->tail)
			pthread_cond_wait(&r->changed, &r->lock);
		w = r->ring[r->head % DEPTH];
		r->head++;
		pthread_cond_broadcast(&r->changed);
		pthread_mutex_unlock(&r->lock);
		if (!w.words)
			return NULL;
		execute(r, &w);
		if (random_of(&r->rng[1], 4))
			neuron_mem_pool_complete(r->pool, r->queue, w.point);
	}
}

static void queue_work(struct running *r, struct work w)
{
	w.point = neuron_mem_pool_submit(r->pool, r->queue);
	pthread_mutex_lock(&r->lock);
	while (r->tail - r->head == DEPTH)
		pthread_cond_wait(&r->changed, &r->lock);
	r->ring[r->tail++ % DEPTH] = w;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static void *program_thread(void *arg)
{
	struct running *r = arg;
	struct { struct neuron_mem_block *block; struct work w; } live[8] = { { NULL } };

	for (unsigned int i = 0; i < ROUNDS; i++) {
		unsigned int k = (unsigned int)random_of(&r->rng[0], 8);
		uint64_t bytes = 4 * (1 + random_of(&r->rng[0], 1000));
		void *va;

		if (live[k].block) {
			/* Freed while the work that looks at it is queued. */
			live[k].w.look = true;
			queue_work(r, live[k].w);
			give(live[k].block, r->queue);
			live[k].block = NULL;
		}
		if (neuron_mem_pool_alloc(r->pool, bytes, r->queue, &live[k].block, NULL)) {
			live[k].block = NULL;
			sched_yield();
			continue;
		}
		if (neuron_mem_map(neuron_mem_block_mem(live[k].block), &va))
			abort();
		live[k].w = (struct work){
			.words = (uint32_t *)((char *)va +
					     neuron_mem_block_offset(live[k].block)),
			.nr = bytes / 4,
			.pattern = (uint32_t)random_of(&r->rng[0], UINT32_MAX),
		};
		queue_work(r, live[k].w);
	}
	for (int k = 0; k < 8; k++)
		give(live[k].block, r->queue);
	queue_work(r, (struct work){ .words = NULL });
	return NULL;
}

/* Tight, so that memory goes from queue to queue all the time. */
static void test_queues(void **state)
{
	struct neuron_mem_pool *pool = open_pool(64 << 10, 4096, 96 << 10);
	unsigned int wrong = 0;

	(void)state;
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct running *r = &running[i];

		*r = (struct running){ .pool = pool, .queue = i, .rng = { 59 + i, 83 + i } };
		pthread_mutex_init(&r->lock, NULL);
		pthread_cond_init(&r->changed, NULL);
		assert_int_equal(pthread_create(&r->device, NULL, device_thread, r), 0);
		assert_int_equal(pthread_create(&r->program, NULL, program_thread, r), 0);
	}
	for (uint32_t i = 0; i < QUEUES; i++) {
		pthread_join(running[i].program, NULL);
		pthread_join(running[i].device, NULL);
		wrong += running[i].wrong;
	}
	assert_int_equal(wrong, 0);
	assert_true(stats_of(pool).allocation.allocated > ROUNDS);
	neuron_mem_pool_close(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_model, setup, teardown),
		cmocka_unit_test_setup_teardown(test_model_short_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queues, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
