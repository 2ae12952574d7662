// SPDX-License-Identifier: GPL-2.0-only
/* Handles of chunks without the rest of neuron.ko: numbers, addresses, users, teardown. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sizes.h>

#define neuron_chunk_admit	handle_chunk_admit
#define neuron_isolation_refused	handle_isolation_refused
#define neuron_chunk_unuse	handle_chunk_unuse
#define neuron_chunk_put	handle_chunk_put
#define neuron_chunk_range	handle_chunk_range
#define neuron_chunks_free	handle_chunks_free
#define neuron_hbm_note_move	handle_note_move
#define neuron_chunk_alloc	handle_chunk_alloc
#define neuron_limit_core	handle_limit_core

#include "../../kmod/mem/handle.c"

#define NR	600u
#define BASE	0x100000000ULL
#define ADDR(i)	(BASE + (i) * (u64)SZ_64K)

/* Chunk i has 32 KiB at ADDR(i): as much again is free behind it. */
static struct {
	struct neuron_chunk chunk[NR];
	struct neuron_client client, other;
	u32 puts, batches, largest, freed;
	bool refuse;
	struct neuron_device nd;
	struct neuron_geometry geo;
	u64 from;
	int core_err, alloc_err;
} state;

bool neuron_chunk_admit(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1] += !state.refuse;
	return !state.refuse;
}

void neuron_isolation_refused(struct neuron_device *nd, const char *what)
{
}

void neuron_chunk_put(struct neuron_chunk *chunk)
{
	if (!chunk)
		return;
	state.puts++;
	if (!refcount_dec_and_test(&chunk->ref.refcount))
		return;
	chunk->kind = NEURON_CHUNK_PLAIN;
}

void neuron_chunk_unuse(struct neuron_chunk *chunk, enum neuron_user as)
{
	chunk->users[as - 1]--;
	neuron_chunk_put(chunk);
}

int neuron_limit_core(const struct neuron_client *client, u32 core)
{
	return state.core_err;
}

int neuron_chunk_alloc(struct neuron_client *client, const struct neuron_chunk_request *req,
		       struct neuron_chunk **out, struct neuron_failure *why)
{
	*out = &state.chunk[3];
	return state.alloc_err;
}

int neuron_chunk_range(const struct neuron_chunk *chunk, u64 off, u64 len)
{
	return len && off + len <= chunk->size ? 0 : -EINVAL;
}

/* Before anybody can free it. */
void neuron_hbm_note_move(struct neuron_hbm *hbm, const struct neuron_chunk *chunk, u64 from)
{
	lockdep_assert_held(&chunk->client->handles.xa_lock);
	state.from = from;
}

void neuron_chunks_free(struct neuron_client *client, struct neuron_chunk **chunks, u32 n)
{
	state.batches++;
	state.largest = max(state.largest, n);
	state.freed += n;
	while (n--)
		chunks[n]->size = 0;
}

static void client_init(struct neuron_client *client)
{
	xa_init_flags(&client->handles, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&client->unindexed);
}

static int handle_init(struct kunit *test)
{
	u32 i;

	memset(&state, 0, sizeof(state));
	client_init(&state.client);
	state.client.nd = &state.nd;
	state.nd.geo = &state.geo;
	client_init(&state.other);
	for (i = 0; i < NR; i++) {
		struct neuron_chunk *chunk = &state.chunk[i];

		kref_init(&chunk->ref);
		chunk->client = &state.client;
		chunk->own.chunk = chunk;
		chunk->size = SZ_32K;
		chunk->addr = ADDR(i);
		chunk->category = i % 7;
	}
	return 0;
}

static void handle_exit(struct kunit *test)
{
	u32 i, k;

	for (i = 0; i < NR; i++)
		state.chunk[i].host = true;
	neuron_chunk_unpublish_all(&state.client);
	neuron_chunk_unpublish_all(&state.other);
	for (i = 0; i < NR; i++)
		for (k = 0; k < ARRAY_SIZE(state.chunk[i].users); k++)
			KUNIT_EXPECT_EQ(test, state.chunk[i].users[k], 0);
}

/* Publish chunks @from up to, not including, @to; their numbers follow @from. */
static void publish(struct kunit *test, u32 from, u32 to)
{
	u32 i, number;

	for (i = from; i < to; i++) {
		KUNIT_ASSERT_EQ(test, neuron_chunk_publish(&state.chunk[i], &number), 0);
		KUNIT_ASSERT_EQ(test, number, i + 1);
	}
}

static void handle_numbers(struct kunit *test)
{
	struct neuron_client *client = &state.client;
	const u64 one = 1;
	u32 number;

	publish(test, 0, 5);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 6), -ENOENT);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 1ULL << 32 | 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 2), 0);
	KUNIT_EXPECT_EQ(test, state.puts, 1u);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 2), -ENOENT);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 4), 0);
	KUNIT_EXPECT_EQ(test, state.puts, 2u);

	/* The number that was freed first was kept, the other one is free. */
	KUNIT_EXPECT_EQ(test, client->spare.xa_index, 2ul);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_get(client, 2), (struct neuron_chunk *)NULL);
	kref_init(&state.chunk[1].ref);
	KUNIT_EXPECT_EQ(test, neuron_chunk_publish(&state.chunk[1], &number), 0);
	KUNIT_EXPECT_EQ(test, number, 2u);
	KUNIT_EXPECT_EQ(test, client->spare.xa_index, 0ul);
	KUNIT_EXPECT_EQ(test, neuron_chunk_publish(&state.chunk[5], &number), 0);
	KUNIT_EXPECT_EQ(test, number, 4u);

	/* Who takes a handle away to look at the chunk has it until it is put. */
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_unpublish_hold(client, 7, false),
			    (struct neuron_chunk *)NULL);
	/* One that was marked may be gone, and its number another chunk's. */
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_unpublish_hold(client, 1, true),
			    (struct neuron_chunk *)NULL);
	KUNIT_EXPECT_EQ(test, neuron_chunks_mark(client, &one, 1), 0);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_unpublish_hold(client, 1, true), &state.chunk[0]);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_get(client, 1), (struct neuron_chunk *)NULL);
	KUNIT_EXPECT_EQ(test, kref_read(&state.chunk[0].ref), 1u);
	KUNIT_EXPECT_EQ(test, state.puts, 3u);
	neuron_chunk_put(&state.chunk[0]);
	KUNIT_EXPECT_EQ(test, state.puts, 4u);
}

/* Where the kept number is stays known, whatever else comes and goes in the table. */
static void handle_spare(struct kunit *test)
{
	static struct neuron_native_mem_bulk_entry entries[100];
	static struct neuron_chunk *chunks[100];
	struct neuron_client *client = &state.client;
	u32 i, number;

	publish(test, 0, 400);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 130), 0);
	/* All that is left is what is kept, */
	for (i = 1; i <= 400; i++)
		if (i != 130)
			KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, i), 0);
	KUNIT_EXPECT_EQ(test, client->spare.xa_index, 130ul);
	kref_init(&state.chunk[1].ref);
	KUNIT_EXPECT_EQ(test, neuron_chunk_publish(&state.chunk[1], &number), 0);
	KUNIT_EXPECT_EQ(test, number, 130u);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_get(client, 130), &state.chunk[1]);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 130), 0);
	/* and then the table gets two levels more, above what is kept. */
	client->top = 300000;
	for (i = 0; i < ARRAY_SIZE(chunks); i++)
		chunks[i] = &state.chunk[400 + i];
	KUNIT_EXPECT_EQ(test,
			neuron_chunks_publish(client, chunks, ARRAY_SIZE(chunks), entries), 0);
	KUNIT_EXPECT_EQ(test, entries[0].mem_handle, 300001ull);
	kref_init(&state.chunk[1].ref);
	KUNIT_EXPECT_EQ(test, neuron_chunk_publish(&state.chunk[1], &number), 0);
	KUNIT_EXPECT_EQ(test, number, 130u);
	KUNIT_EXPECT_PTR_EQ(test, xa_load(&client->handles, 130), (void *)&state.chunk[1].own);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 130), 0);
	for (i = 0; i < ARRAY_SIZE(chunks); i++)
		KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, entries[i].mem_handle), 0);
	kref_init(&state.chunk[2].ref);
	KUNIT_EXPECT_EQ(test, neuron_chunk_publish(&state.chunk[2], &number), 0);
	KUNIT_EXPECT_EQ(test, number, 130u);
	KUNIT_EXPECT_PTR_EQ(test, xa_load(&client->handles, 130), (void *)&state.chunk[2].own);
}

/* A refusal says why, and leaves nothing behind. */
static void handle_alloc(struct kunit *test)
{
	struct neuron_chunk_request req = { .core = 1 };
	struct neuron_client *client = &state.client;
	struct neuron_failure why;
	u32 number = 0;
	u64 addr;

	state.geo.nr_cores = 1;
	memset(&why, 1, sizeof(why));
	KUNIT_EXPECT_EQ(test, neuron_chunk_alloc_handle(client, &req, &number, &addr, &why),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, why.reason, 0u);
	req.core = 0;
	state.core_err = -EBUSY;
	KUNIT_EXPECT_EQ(test, neuron_chunk_alloc_handle(client, &req, &number, &addr, &why),
			-EBUSY);
	state.core_err = 0;
	state.alloc_err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, neuron_chunk_alloc_handle(client, &req, &number, &addr, &why),
			-ENOMEM);
	KUNIT_EXPECT_EQ(test, number, 0u);
	KUNIT_EXPECT_TRUE(test, xa_empty(&client->handles));

	state.alloc_err = 0;
	KUNIT_EXPECT_EQ(test, neuron_chunk_alloc_handle(client, &req, &number, &addr, &why), 0);
	KUNIT_EXPECT_EQ(test, number, 1u);
	KUNIT_EXPECT_EQ(test, addr, ADDR(3));
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, number), 0);
	kref_init(&state.chunk[3].ref);
	req.movable = true;
	KUNIT_EXPECT_EQ(test, neuron_chunk_alloc_handle(client, &req, &number, &addr, &why), 0);
	KUNIT_EXPECT_EQ(test, addr, 0u);
}

/* Handles only enter the tree at the next lookup. */
static void handle_lazy_index(struct kunit *test)
{
	struct neuron_client *client = &state.client;
	u32 i;

	publish(test, 0, 300);
	KUNIT_EXPECT_EQ(test, client->nr_unindexed, 300u);
	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&client->by_addr[0]));
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 300), 0);
	KUNIT_EXPECT_EQ(test, client->nr_unindexed, 299u);
	KUNIT_EXPECT_EQ(test, (int)state.chunk[299].own.place, (int)NEURON_PLACE_NONE);
	KUNIT_EXPECT_EQ(test, neuron_chunk_handle(client, &state.chunk[200]), 201u);
	KUNIT_EXPECT_EQ(test, client->nr_unindexed, 0u);
	for (i = 0; i < 299; i++)
		KUNIT_EXPECT_EQ(test, (int)state.chunk[i].own.place, (int)NEURON_PLACE_TREE);
	/* From the tree. */
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 1), 0);
	KUNIT_EXPECT_EQ(test, client->nr_unindexed, 0u);
	KUNIT_EXPECT_EQ(test, neuron_chunk_handle(client, &state.chunk[299]), 0u);
	KUNIT_EXPECT_EQ(test, neuron_chunk_handle(client, &state.chunk[0]), 0u);
}

static void handle_find(struct kunit *test)
{
	static const struct {
		u64 addr, len;
		int found;	/* chunk, -1: none */
	} rows[] = {
		{ ADDR(0), 1, 0 }, { ADDR(0) - 1, 2, -1 }, { ADDR(7), SZ_32K, 7 },
		{ ADDR(7), SZ_32K + 1, -1 }, { ADDR(7) + SZ_32K - 1, 1, 7 },
		{ ADDR(7) + SZ_32K, 1, -1 }, { ADDR(7) + SZ_4K, SZ_4K, 7 },
		{ ADDR(299), 1, 299 }, { ADDR(300), 1, -1 }, { 0, 1, -1 }, { U64_MAX, 1, -1 },
	};
	u32 i;

	publish(test, 0, 300);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neuron_chunk *chunk, *want = rows[i].found < 0 ? NULL :
							    &state.chunk[rows[i].found];

		chunk = neuron_chunk_find(&state.client, rows[i].addr, rows[i].len,
					  NEURON_USER_RING);
		KUNIT_EXPECT_PTR_EQ(test, chunk, want);
		if (!chunk)
			continue;
		KUNIT_EXPECT_EQ(test, chunk->users[NEURON_USER_RING - 1], 1u);
		KUNIT_EXPECT_EQ(test, kref_read(&chunk->ref), 2u);
		neuron_chunk_unuse(chunk, NEURON_USER_RING);
	}
	for (i = 0; i < 300; i++)
		KUNIT_EXPECT_EQ(test, kref_read(&state.chunk[i].ref), 1u);
}

static void handle_next(struct kunit *test)
{
	struct neuron_native_range info = { };
	u32 i;

	KUNIT_EXPECT_FALSE(test, neuron_chunk_next(&state.client, 0, &info));
	publish(test, 0, 300);
	for (i = 0; i < 300; i++) {
		u64 from = i ? ADDR(i - 1) + 1 : 0;

		KUNIT_EXPECT_TRUE(test, neuron_chunk_next(&state.client, from, &info));
		KUNIT_EXPECT_EQ(test, info.address, ADDR(i));
		KUNIT_EXPECT_EQ(test, info.bytes, (u64)SZ_32K);
		KUNIT_EXPECT_EQ(test, (u32)info.mem_type, i % 7);
		KUNIT_EXPECT_TRUE(test, neuron_chunk_next(&state.client, ADDR(i), &info));
		KUNIT_EXPECT_EQ(test, info.address, ADDR(i));
	}
	KUNIT_EXPECT_FALSE(test, neuron_chunk_next(&state.client, ADDR(299) + 1, &info));
}

static void handle_import(struct kunit *test)
{
	struct neuron_chunk *chunk = &state.chunk[1], *found;
	struct neuron_client *other = &state.other;
	u32 own, a, b;

	KUNIT_ASSERT_EQ(test, neuron_chunk_publish(chunk, &own), 0);
	KUNIT_ASSERT_EQ(test, neuron_chunk_import(other, chunk, &a), 0);
	KUNIT_ASSERT_EQ(test, neuron_chunk_import(other, chunk, &b), 0);
	KUNIT_EXPECT_NE(test, a, b);
	KUNIT_EXPECT_EQ(test, chunk->users[NEURON_USER_IMPORT - 1], 2u);
	KUNIT_EXPECT_EQ(test, kref_read(&chunk->ref), 3u);
	KUNIT_EXPECT_EQ(test, neuron_chunk_handle(other, chunk), a);
	KUNIT_EXPECT_EQ(test, neuron_chunk_handle(&state.client, chunk), own);

	/* A user of the import is one of the chunk. */
	found = neuron_chunk_use(other, b, NEURON_USER_MAPPING);
	KUNIT_EXPECT_PTR_EQ(test, found, chunk);
	KUNIT_EXPECT_EQ(test, chunk->users[NEURON_USER_MAPPING - 1], 1u);
	neuron_chunk_unuse(chunk, NEURON_USER_MAPPING);
	/* It has become a ring since the import was found. */
	state.refuse = true;
	KUNIT_EXPECT_NULL(test, neuron_chunk_use(other, b, NEURON_USER_TRANSFER));
	KUNIT_EXPECT_NULL(test, neuron_chunk_find(other, ADDR(1), 1, NEURON_USER_TRANSFER));
	state.refuse = false;
	KUNIT_EXPECT_EQ(test, chunk->users[NEURON_USER_TRANSFER - 1], 0u);
	KUNIT_EXPECT_EQ(test, kref_read(&chunk->ref), 3u);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(other, a), 0);
	KUNIT_EXPECT_EQ(test, chunk->users[NEURON_USER_IMPORT - 1], 1u);
	KUNIT_EXPECT_EQ(test, neuron_chunk_handle(other, chunk), b);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(other, b), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_handle(other, chunk), 0u);
	KUNIT_EXPECT_EQ(test, kref_read(&chunk->ref), 1u);
}

static void handle_revoke(struct kunit *test)
{
	struct neuron_client *client = &state.client;
	u32 number;

	publish(test, 0, 2);
	neuron_chunk_revoke(&state.chunk[0]);
	KUNIT_EXPECT_EQ(test, state.puts, 1u);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_get(client, 1), (struct neuron_chunk *)NULL);
	neuron_chunk_revoke(&state.chunk[0]);
	KUNIT_EXPECT_EQ(test, state.puts, 1u);

	/* Its number belongs to another chunk by now. */
	KUNIT_EXPECT_EQ(test, neuron_chunk_publish(&state.chunk[2], &number), 0);
	KUNIT_EXPECT_EQ(test, number, 1u);
	neuron_chunk_revoke(&state.chunk[0]);
	KUNIT_EXPECT_EQ(test, state.puts, 1u);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_get(client, 1), &state.chunk[2]);
	neuron_chunk_put(&state.chunk[2]);
}

static void handle_teardown(struct kunit *test)
{
	struct neuron_client *client = &state.client;
	struct neuron_chunk *user;
	u32 i, number, puts;

	/* Some are known by address, others not yet, of both kinds. */
	publish(test, 0, 150);
	for (i = 400; i < 402; i++) {
		state.chunk[i].client = &state.other;
		KUNIT_ASSERT_EQ(test, neuron_chunk_publish(&state.chunk[i], &number), 0);
	}
	KUNIT_ASSERT_EQ(test, neuron_chunk_import(client, &state.chunk[400], &number), 0);
	KUNIT_EXPECT_NE(test, neuron_chunk_handle(client, &state.chunk[400]), 0u);
	KUNIT_EXPECT_EQ(test, client->nr_unindexed, 0u);
	KUNIT_ASSERT_EQ(test, neuron_chunk_import(client, &state.chunk[401], &number), 0);
	for (i = 150; i < 300; i++)
		KUNIT_ASSERT_EQ(test, neuron_chunk_publish(&state.chunk[i], &number), 0);
	state.chunk[20].host = true;
	user = neuron_chunk_get(client, 31);
	user->moving = NEURON_MOVING;
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 5), 0);
	puts = state.puts;
	neuron_chunk_unpublish_all(client);

	/* All but the host chunk, the used one, the freed one; the import is none of ours. */
	KUNIT_EXPECT_EQ(test, state.freed, 297u);
	KUNIT_EXPECT_EQ(test, state.puts, puts + 3);
	KUNIT_EXPECT_LE(test, state.largest, (u32)NEURON_FREE_BATCH);
	KUNIT_EXPECT_LE(test, state.batches, 6u);
	KUNIT_EXPECT_EQ(test, state.chunk[400].users[NEURON_USER_IMPORT - 1], 0u);
	KUNIT_EXPECT_EQ(test, state.chunk[401].users[NEURON_USER_IMPORT - 1], 0u);
	KUNIT_EXPECT_EQ(test, kref_read(&user->ref), 1u);
	KUNIT_EXPECT_EQ(test, user->moving, (u8)NEURON_MOVING_IN_VAIN);
	KUNIT_EXPECT_TRUE(test, xa_empty(&client->handles));
	for (i = 0; i < 300; i++)
		KUNIT_EXPECT_EQ(test, state.chunk[i].size,
				i == 20 || i == 30 || i == 4 ? (u64)SZ_32K : 0);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_get(client, 31), (struct neuron_chunk *)NULL);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 31), -ENOENT);
	neuron_chunk_revoke(user);
	KUNIT_EXPECT_EQ(test, kref_read(&user->ref), 1u);
}

/* Movable memory is found by its address while that is to stay. */
static void handle_pin(struct kunit *test)
{
	struct neuron_client *client = &state.client, *other = &state.other;
	struct neuron_chunk *chunk = &state.chunk[1];
	u32 own, import;
	u64 addr = 0;

	chunk->movable = 1;
	KUNIT_ASSERT_EQ(test, neuron_chunk_publish(chunk, &own), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_address(client, own, &addr), -EOPNOTSUPP);
	KUNIT_EXPECT_NULL(test, neuron_chunk_find(client, ADDR(1), 1, NEURON_USER_RING));
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(client, own, false, &addr), -EINVAL);
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(client, own, true, &addr), 0);
	KUNIT_EXPECT_EQ(test, addr, ADDR(1));
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(client, own, true, &addr), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(client, own, false, NULL), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_address(client, own, &addr), 0);
	KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_find(client, ADDR(1), 1, NEURON_USER_NONE), chunk);
	neuron_chunk_put(chunk);
	chunk->users[NEURON_USER_PIN - 1] = U32_MAX;
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(client, own, true, &addr), -EOVERFLOW);
	chunk->users[NEURON_USER_PIN - 1] = 1;
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(client, own, false, NULL), 0);
	KUNIT_EXPECT_NULL(test, neuron_chunk_find(client, ADDR(1), 1, NEURON_USER_NONE));

	/* An import keeps it, for whoever has one. */
	KUNIT_ASSERT_EQ(test, neuron_chunk_import(other, chunk, &import), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_address(other, import, &addr), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(other, import, true, &addr), -EPERM);
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(other, import + 1, true, &addr), -ENOENT);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(other, import), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, own), 0);
	KUNIT_EXPECT_EQ(test, neuron_chunk_pin(client, own, true, &addr), -ENOENT);
	KUNIT_EXPECT_EQ(test, neuron_chunk_address(client, own, &addr), -ENOENT);
}

/* Only what is movable and has no user of any kind begins to move. */
static void handle_idle(struct kunit *test)
{
	struct neuron_client *client = &state.client;
	struct neuron_chunk *chunk = &state.chunk[0];
	struct neuron_chunk *start;
	u8 align = 0;
	u32 i;

	publish(test, 0, 3);
	KUNIT_EXPECT_FALSE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
	chunk->movable = 4;
	for (i = 0; i < ARRAY_SIZE(chunk->users); i++) {
		chunk->users[i] = 1;
		KUNIT_EXPECT_FALSE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
		chunk->users[i] = 0;
	}
	chunk->kind = NEURON_CHUNK_RING;
	KUNIT_EXPECT_FALSE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
	chunk->kind = NEURON_CHUNK_PLAIN;
	KUNIT_EXPECT_FALSE(test, neuron_chunk_idle_at(client, ADDR(0) + 1, &align, &start));
	KUNIT_EXPECT_TRUE(test, neuron_chunk_idle_at(client, ADDR(0), &align, NULL));
	KUNIT_EXPECT_EQ(test, kref_read(&chunk->ref), 1u);
	KUNIT_EXPECT_EQ(test, chunk->moving, NEURON_MOVING_NOT);
	KUNIT_EXPECT_EQ(test, align, 3);
	KUNIT_EXPECT_TRUE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
	KUNIT_EXPECT_PTR_EQ(test, start, chunk);
	KUNIT_EXPECT_EQ(test, chunk->moving, NEURON_MOVING);
	KUNIT_EXPECT_FALSE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
	neuron_chunk_spoil_move(chunk);
	KUNIT_EXPECT_FALSE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
	KUNIT_EXPECT_EQ(test, kref_read(&chunk->ref), 2u);
	neuron_chunk_put(chunk);
	chunk->moving = NEURON_MOVING_NOT;
}

/* A chunk changes its place if nobody came who may have written to it, or who is still there. */
static void handle_replace(struct kunit *test)
{
	struct neuron_client *client = &state.client;
	struct neuron_chunk *chunk = &state.chunk[0];
	struct neuron_buddy_block block = { .addr = 7 };
	u64 to = ADDR(500);
	struct neuron_chunk *start;
	u8 align;
	u32 i;

	publish(test, 0, 3);
	chunk->movable = 1;
	chunk->block.addr = 5;
	for (i = NEURON_USER_NONE + 1; i < NEURON_NR_USERS; i++) {
		bool reader = i == NEURON_USER_READER;

		KUNIT_ASSERT_TRUE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
		KUNIT_ASSERT_PTR_EQ(test, start, chunk);
		KUNIT_EXPECT_PTR_EQ(test, neuron_chunk_use(client, 1, i), chunk);
		KUNIT_EXPECT_EQ(test, chunk->moving == NEURON_MOVING, reader);
		/* A reader that is still there. */
		if (!reader)
			neuron_chunk_unuse(chunk, i);
		KUNIT_EXPECT_FALSE(test, neuron_chunk_replace(chunk, &block, to));
		if (reader)
			neuron_chunk_unuse(chunk, i);
		neuron_chunk_put(chunk);
		KUNIT_EXPECT_EQ(test, chunk->addr, ADDR(0));
	}

	KUNIT_ASSERT_TRUE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
	KUNIT_ASSERT_PTR_EQ(test, start, chunk);
	neuron_chunk_unuse(neuron_chunk_use(client, 1, NEURON_USER_READER), NEURON_USER_READER);
	KUNIT_EXPECT_TRUE(test, neuron_chunk_replace(chunk, &block, to));
	neuron_chunk_put(chunk);
	KUNIT_EXPECT_EQ(test, chunk->addr, to);
	KUNIT_EXPECT_EQ(test, chunk->block.addr, 7);
	KUNIT_EXPECT_EQ(test, block.addr, 5);
	KUNIT_EXPECT_EQ(test, state.from, 5);
	KUNIT_EXPECT_EQ(test, chunk->own.number, 1u);
	KUNIT_EXPECT_FALSE(test, neuron_chunk_idle_at(client, ADDR(0), &align, &start));
	/* It is found at the new place, among the others, and can go again. */
	KUNIT_EXPECT_TRUE(test, neuron_chunk_idle_at(client, to, &align, &start));
	KUNIT_EXPECT_PTR_EQ(test, start, chunk);
	KUNIT_EXPECT_EQ(test, neuron_chunk_unpublish(client, 1), 0);
	KUNIT_EXPECT_FALSE(test, neuron_chunk_replace(chunk, &block, ADDR(0)));
	KUNIT_EXPECT_EQ(test, kref_read(&chunk->ref), 1u);
}

static struct kunit_case handle_cases[] = {
	KUNIT_CASE(handle_numbers),
	KUNIT_CASE(handle_spare),
	KUNIT_CASE(handle_alloc),
	KUNIT_CASE(handle_lazy_index),
	KUNIT_CASE(handle_find),
	KUNIT_CASE(handle_next),
	KUNIT_CASE(handle_import),
	KUNIT_CASE(handle_revoke),
	KUNIT_CASE(handle_teardown),
	KUNIT_CASE(handle_pin),
	KUNIT_CASE(handle_idle),
	KUNIT_CASE(handle_replace),
	{}
};

static struct kunit_suite handle_suite = {
	.name = "neuron_handles",
	.init = handle_init,
	.exit = handle_exit,
	.test_cases = handle_cases,
};

kunit_test_suite(handle_suite);
