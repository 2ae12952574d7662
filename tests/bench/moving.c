// SPDX-License-Identifier: GPL-2.0-only
/*
 * The project's allocator with allocations that can be moved, as the driver does it: a request
 * that is refused, although so much is free, moves others out of its way. Only on the host.
 */
#include "bench.h"
#include "../../kmod/mem/buddy/buddy.h"
#include "../../kmod/mem/compact.h"

#define RANGES	(1u << 17)
#define ROUNDS	64

struct moving;

/* What a block keeps in bench_block.priv. */
struct moving_block {
	struct neuron_buddy_block block;
	struct moving *zone;
	bool movable;
};

struct moving {
	struct neuron_buddy *buddy;
	struct neuron_compact *compact;
	struct bench_block **at;	/* by first granule */
	u32 movable;			/* percent */
	u64 seed;
	u64 copied;
};

static u32 granules(u64 bytes)
{
	return (u32)(bytes >> NEURON_BUDDY_GRANULE_SHIFT);
}

static struct moving_block *moving_of(struct bench_block *b)
{
	return (struct moving_block *)b->priv;
}

static void moving_destroy(void *zone)
{
	struct moving *m = zone;

	neuron_buddy_destroy(m->buddy);
	neuron_compact_free(m->compact);
	free(m->at);
	free(m);
}

static void *moving_create(u64 size, u32 movable)
{
	struct moving *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->movable = movable;
	m->at = calloc(granules(size), sizeof(*m->at));
	m->compact = neuron_compact_new(RANGES);
	if (m->at && m->compact && !neuron_buddy_create(&m->buddy, size))
		return m;
	moving_destroy(m);
	return NULL;
}

static void *moving_create_all(u64 size)
{
	return moving_create(size, 100);
}

static void *moving_create_half(u64 size)
{
	return moving_create(size, 50);
}

static int moving_take(struct moving *m, const struct neuron_buddy_request *req,
		       struct neuron_buddy_block *block)
{
	int err;

	do {
		err = neuron_buddy_prepare(m->buddy) ?:
		      neuron_buddy_alloc(m->buddy, req, block, NULL);
	} while (err == -EAGAIN);
	return err;
}

static void moving_picture(struct moving *m)
{
	struct neuron_buddy_range range[64];
	unsigned int i, n;
	u64 pos = 0;

	neuron_compact_clear(m->compact, ~0u);
	while ((n = neuron_buddy_walk(m->buddy, &pos, range, 64))) {
		for (i = 0; i < n; i++) {
			struct bench_block *b = m->at[granules(range[i].addr)];
			bool used = range[i].state != NEURON_BUDDY_RANGE_FREE;

			neuron_compact_add(m->compact, granules(range[i].size),
					   !used ? NEURON_COMPACT_FREE : moving_of(b)->movable ?
					   NEURON_COMPACT_MOVABLE : NEURON_COMPACT_FIXED, 0);
		}
	}
}

static void moving_move(struct moving *m, const struct neuron_compact_move *move)
{
	struct bench_block *b = m->at[move->from];
	struct moving_block *mb = moving_of(b);
	struct neuron_buddy_request req = {
		.size = mb->block.size,
		.addr = (u64)move->to << NEURON_BUDDY_GRANULE_SHIFT,
		.flags = NEURON_BUDDY_EXACT,
	};
	struct neuron_buddy_block to;

	if (moving_take(m, &req, &to) || neuron_buddy_free(m->buddy, &mb->block, false)) {
		fprintf(stderr, "moving: a plan cannot be carried out\n");
		exit(1);
	}
	mb->block = to;
	m->at[move->from] = NULL;
	m->at[move->to] = b;
	m->copied += to.size;
}

static int moving_alloc(void *zone, u64 size, u64 align, struct bench_block *b)
{
	struct neuron_buddy_request req = { .size = size, .align = align };
	struct moving_block *mb = moving_of(b);
	struct moving *m = zone;
	u32 i, round;
	int err;

	for (round = 0; round < ROUNDS; round++) {
		err = moving_take(m, &req, &mb->block);
		if (err != -ENOSPC || neuron_buddy_free_bytes(m->buddy) < size)
			break;
		moving_picture(m);
		if (!neuron_compact_plan(m->compact, granules(size), 0))
			break;
		for (i = 0; i < m->compact->nr_moves; i++)
			moving_move(m, &m->compact->move[i]);
	}
	if (err)
		return err;
	m->seed = m->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	mb->zone = m;
	mb->movable = (m->seed >> 33) % 100 < m->movable;
	m->at[granules(mb->block.addr)] = b;
	return 0;
}

static void moving_free(void *zone, struct bench_block *b)
{
	struct moving_block *mb = moving_of(b);
	struct moving *m = zone;

	m->at[granules(mb->block.addr)] = NULL;
	neuron_buddy_free(m->buddy, &mb->block, false);
}

static u64 moving_metadata(void *zone)
{
	struct neuron_buddy_stats st;

	neuron_buddy_stats(((struct moving *)zone)->buddy, &st);
	return st.metadata;
}

static void moving_moved(struct bench_block *b)
{
	struct moving_block *mb = moving_of(b);

	mb->zone->at[granules(mb->block.addr)] = b;
}

static u64 moving_copied(void *zone)
{
	return ((struct moving *)zone)->copied;
}

const struct bench_peer bench_moving_all = {
	.name = "neuron_buddy-movable",
	.create = moving_create_all,
	.destroy = moving_destroy,
	.alloc = moving_alloc,
	.free = moving_free,
	.moved = moving_moved,
	.metadata = moving_metadata,
	.copied = moving_copied,
};

const struct bench_peer bench_moving_half = {
	.name = "neuron_buddy-half-movable",
	.create = moving_create_half,
	.destroy = moving_destroy,
	.alloc = moving_alloc,
	.free = moving_free,
	.moved = moving_moved,
	.metadata = moving_metadata,
	.copied = moving_copied,
};
