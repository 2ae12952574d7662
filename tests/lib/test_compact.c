// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is to be moved so that a request fits: kmod/mem/compact.c against a model, and what the
 * library expects of it (libneuron/src/memory/room_move.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../kunit/compact_model.h"
#include "src/memory/room.h"

#define MEMORIES	20000

static void every_plan_holds(void **state)
{
	static struct compact_model m, scratch;
	struct neuron_compact *c = neuron_compact_new(2 * MODEL_LEN);
	unsigned int i;
	int line;

	(void)state;
	assert_non_null(c);
	for (i = 0; i < MEMORIES; i++) {
		m.seed = i;
		line = compact_model_step(&m, &scratch, c);
		if (line)
			fail_msg("seed %u: compact_model.h:%d", i, line);
	}
	neuron_compact_free(c);
}

/* What is where after a plan was carried out. */
static void picture(struct neuron_compact *c, const struct compact_model *m)
{
	u32 pos, n;

	neuron_compact_clear(c, ~0u);
	for (pos = 0; pos < MODEL_LEN; pos += n) {
		u8 what = m->at[pos];

		for (n = 0; pos + n < MODEL_LEN && m->at[pos + n] == what; n++)
			;
		if (what > MODEL_FIXED)
			neuron_compact_add(c, n, NEURON_COMPACT_MOVABLE, m->align[what - 2]);
		else
			neuron_compact_add(c, n, what == MODEL_FREE ? NEURON_COMPACT_FREE :
						 NEURON_COMPACT_FIXED, 0);
	}
}

/* As neuron_compact_run() does it.  Return: whether something moved. */
static bool carry_out(struct compact_model *m, struct neuron_compact *c, u32 want, u8 align)
{
	unsigned int i, k;

	for (i = 0; i < 64 && neuron_compact_plan(c, want, align); i++) {
		assert_true(model_run(m, c) != ~0u);
		for (k = 0; k < m->nr; k++)
			m->moved[k] = false;
		picture(c, m);
	}
	return i;
}

static void room_of(struct room *room, const struct neuron_compact *c)
{
	const struct neuron_compact_range *end = &c->range[c->nr - 1];

	room->memory.bytes = (u64)(end->start + end->len) << 12;
	for (u32 i = 0; i < c->nr; i++) {
		u64 at = (u64)c->range[i].start << 12, bytes = (u64)c->range[i].len << 12;

		if (c->range[i].state == NEURON_COMPACT_FREE)
			assert_int_equal(room_add(room, at, bytes), 0);
		else if (c->range[i].state == NEURON_COMPACT_MOVABLE)
			assert_int_equal(room_add_movable(room, at, bytes,
							  4096ull << c->range[i].align), 0);
	}
}

/* Of which the driver's code knows nothing. */
static void assert_same(const struct room *room, const struct room *after, unsigned int seed)
{
	if (room->count != after->count || room->nr_movable != after->nr_movable ||
	    memcmp(room->hole, after->hole, room->count * sizeof(*room->hole)) ||
	    memcmp(room->movable, after->movable, room->nr_movable * sizeof(*room->movable)))
		fail_msg("seed %u: something is elsewhere", seed);
}

static void the_library_foresees_it(void **state)
{
	struct neuron_compact *c = neuron_compact_new(2 * MODEL_LEN);
	static struct compact_model m;
	unsigned int moved = 0;

	(void)state;
	for (unsigned int seed = 0; seed < MEMORIES / 4; seed++) {
		struct room room = { .count = 0 }, after = { .count = 0 };
		u32 want;
		u8 align;

		m.seed = seed;
		model_make(&m, c, 2 + model_random(&m, 40), model_random(&m, 3) * 30);
		want = 1 + model_random(&m, MODEL_LEN / 2);
		align = (u8)model_random(&m, 4);
		picture(c, &m);
		room_of(&room, c);
		moved += carry_out(&m, c, want, align);
		room_of(&after, c);
		assert_int_equal(room_move(&room, (u64)want << 12, 4096ull << align), 0);
		assert_same(&room, &after, seed);
		room_free(&room);
		room_free(&after);
	}
	assert_in_range(moved, MEMORIES / 16, MEMORIES / 4 - 1);
	neuron_compact_free(c);
}

/* ---- memories with many ranges ------------------------------------------------------ */

/* More than windows, than the ranges of one, and than a picture has: kmod/dma/move.c. */
#define PICTURE	(1u << 18)

struct many {
	struct neuron_compact_range *range;	/* by address; what is in between is free */
	u32 nr, len;
	struct neuron_compact *picture, *whole;
	uint64_t seed;
};

static u32 many_random(struct many *m, u32 n)
{
	m->seed = m->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (u32)(((m->seed >> 33) * n) >> 31);
}

static void many_new(struct many *m, u32 room)
{
	*m = (struct many){
		.range = calloc(room, sizeof(*m->range)),
		.picture = neuron_compact_new(PICTURE), .whole = neuron_compact_new(2 * room + 1),
	};
	assert_true(m->range && m->picture && m->whole);
}

static void many_free(struct many *m)
{
	neuron_compact_free(m->picture);
	neuron_compact_free(m->whole);
	free(m->range);
}

/* Behind the last one and so much that is free. */
static void many_add(struct many *m, u32 free, u32 len, enum neuron_compact_state state, u8 align)
{
	u32 start = m->len + free;

	m->range[m->nr++] = (struct neuron_compact_range){
		.start = start, .len = len, .state = (u8)state, .align = align,
	};
	m->len = start + len;
}

/* As the driver has it, or without an end. */
static void many_draw(const struct many *m, struct neuron_compact *c)
{
	u32 at = 0;

	neuron_compact_clear(c, ~0u);
	for (u32 i = 0; i < m->nr; i++) {
		if (m->range[i].start > at)
			neuron_compact_add(c, m->range[i].start - at, NEURON_COMPACT_FREE, 0);
		neuron_compact_add(c, m->range[i].len, m->range[i].state, m->range[i].align);
		at = m->range[i].start + m->range[i].len;
	}
	if (m->len > at)
		neuron_compact_add(c, m->len - at, NEURON_COMPACT_FREE, 0);
}

static int by_start(const void *a, const void *b)
{
	const struct neuron_compact_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* One plan of the driver.  Return: whether there was one. */
static bool many_move(struct many *m, u32 want, u8 align)
{
	struct neuron_compact *c = m->picture;

	many_draw(m, c);
	if (!neuron_compact_plan(c, want, align))
		return false;
	for (u32 i = 0; i < c->nr_moves; i++) {
		struct neuron_compact_range key = { .start = c->move[i].from }, *r;

		/* Those of later moves are where they were, as nothing moves twice. */
		r = bsearch(&key, m->range, m->nr, sizeof(*r), by_start);
		assert_true(r && r->state == NEURON_COMPACT_MOVABLE && r->len == c->move[i].len);
		r->used = c->move[i].to + 1;
	}
	for (u32 i = 0; i < m->nr; i++)
		if (m->range[i].used) {
			m->range[i].start = m->range[i].used - 1;
			m->range[i].used = 0;
		}
	qsort(m->range, m->nr, sizeof(*m->range), by_start);
	return true;
}

/* The driver moves, and the library says where everything is then.  Return: plans. */
static unsigned int many_compare(struct many *m, u32 want, u8 align, unsigned int seed)
{
	struct room room = { .count = 0 }, after = { .count = 0 };
	unsigned int plans = 0;

	many_draw(m, m->whole);
	room_of(&room, m->whole);
	while (plans < 64 && many_move(m, want, align))
		plans++;
	many_draw(m, m->whole);
	room_of(&after, m->whole);
	assert_int_equal(room_move(&room, (u64)want << 12, 4096ull << align), 0);
	assert_same(&room, &after, seed);
	room_free(&room);
	room_free(&after);
	return plans;
}

/*
 * So many that cost the same that the cheapest windows are not all of them, and with an
 * alignment several begin at the same place.
 */
static void the_library_knows_the_cheapest_windows(void **state)
{
	unsigned int moved = 0;

	(void)state;
	for (unsigned int seed = 0; seed < 60; seed++) {
		struct many m;
		u32 longest, fixed;

		many_new(&m, 4096);
		m.seed = seed;
		longest = 1 + many_random(&m, 6);
		fixed = 1 + many_random(&m, 12);
		for (u32 n = 200 + many_random(&m, 2000); n; n--) {
			u8 align = !many_random(&m, 4) * 2;
			u32 at = m.len + many_random(&m, longest);

			if (align)
				at = (at + 3) & ~3u;
			many_add(&m, at - m.len, 1 + many_random(&m, longest),
				 many_random(&m, 100) < fixed ? NEURON_COMPACT_FIXED :
								NEURON_COMPACT_MOVABLE, align);
		}
		moved += many_compare(&m, 1 + many_random(&m, 200), (u8)many_random(&m, 7), seed) != 0;
		many_free(&m);
	}
	assert_in_range(moved, 20, 59);
}

/* A window of 16385 ranges is one that the driver does not plan for. */
static void the_library_knows_the_longest_window(void **state)
{
	static const u32 wants[] = { 28672, 28673, 28679, 35000 };
	unsigned int plans[4];

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct many m;

		many_new(&m, 20001);
		for (u32 n = 0; n < 20000; n++)
			many_add(&m, 2, 1 + (n & 1), NEURON_COMPACT_MOVABLE, 0);
		plans[i] = many_compare(&m, wants[i], 0, i);
		many_free(&m);
	}
	assert_true(plans[0] == 1 && plans[1] > 1 && plans[3] > 1);
}

/* Of what could move, all or a part is behind the end of the driver's picture. */
static void the_library_knows_where_the_picture_ends(void **state)
{
	unsigned int moved = 0;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct many m;

		many_new(&m, PICTURE);
		/* What stays, and a hole of each. */
		for (u32 n = 0; n < PICTURE / 2 - 3 + i / 2; n++)
			many_add(&m, n || i & 1, 1, NEURON_COMPACT_FIXED, 0);
		for (u32 n = 0; n < 6; n++)
			many_add(&m, n & 1, 1, NEURON_COMPACT_MOVABLE, 0);
		m.len += 1;
		moved += many_compare(&m, 3, 0, i) != 0;
		many_free(&m);
	}
	print_message("# something moves in %u of 8\n", moved);
	assert_in_range(moved, 2, 6);
}

/* ---- work --------------------------------------------------------------------------- */

/* Basic blocks of the library's code that have run: the same on each machine. */
static unsigned long long blocks;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	blocks++;
}

struct piece {
	uint64_t pages;
	bool movable;
	unsigned int align;
};

/* So many movable allocations. */
static void repeat(struct room *room, const struct piece *pieces, unsigned int movable)
{
	const struct piece *p = pieces;
	uint64_t at = 0;

	while (movable) {
		assert_int_equal(p->movable ? room_add_movable(room, at << 12, p->pages << 12,
							       4096ull << p->align) :
				 room_add(room, at << 12, p->pages << 12), 0);
		movable -= p->movable;
		at += p->pages;
		p = p[1].pages ? p + 1 : pieces;
	}
}

/* Blocks until two fifths of all, and of what is free most, are free in one piece. */
static unsigned long long work(const struct piece *pieces, unsigned int movable)
{
	struct room room = { .count = 0 };
	uint64_t want, longest = 0;

	repeat(&room, pieces, movable);
	want = (room.movable[movable - 1].at >> 12) * 2 / 5;
	blocks = 0;
	assert_int_equal(room_move(&room, want << 12, 4096), 0);
	for (size_t i = 0; i < room.count; i++)
		longest = room.hole[i].bytes > longest ? room.hole[i].bytes : longest;
	assert_true(longest >= want << 12);
	room_free(&room);
	return blocks;
}

/*
 * With five times as many it takes less than 6.2 times as long: n log n is 6.0 times as much. Of
 * more the driver moves a part at a time.
 */
static void many_take_no_square(void **state)
{
	static const struct piece board[] = { { 16, true, 0 }, { 16, false, 0 }, { 0 } };
	/* Holes as long as most allocations, but where the alignment leaves a page of them. */
	static const struct piece uneven[] = {
		{ 8, true, 3 }, { 1, true, 0 }, { 8, false, 0 }, { 1, true, 0 }, { 22, false, 0 }, { 0 },
	};
	const struct piece *const all[] = { board, uneven };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		unsigned long long few = work(all[i], 4000), many = work(all[i], 20000);

		print_message("# 4000 movable: %llu blocks, 20000: %llu\n", few, many);
		assert_true(few > 4000 && 5 * many < 31 * few);
	}
}

/* Half of the zone in one run, by copying a quarter of what there is. */
static void a_checkerboard_moves_half_of_it(void **state)
{
	struct neuron_compact *c = neuron_compact_new(256);
	u32 i;

	(void)state;
	neuron_compact_clear(c, ~0u);
	for (i = 0; i < 128; i++)
		neuron_compact_add(c, 10, i & 1 ? NEURON_COMPACT_MOVABLE : NEURON_COMPACT_FREE, 0);
	assert_int_equal(neuron_compact_plan(c, 0, 0), 32);
	assert_int_equal(c->cost, 320);
	neuron_compact_free(c);
}

static void the_budget_is_kept(void **state)
{
	struct neuron_compact *c = neuron_compact_new(16);
	u32 i, budget;

	(void)state;
	for (budget = 9; budget <= 10; budget++) {
		neuron_compact_clear(c, budget);
		for (i = 0; i < 4; i++)
			neuron_compact_add(c, 10, i & 1 ? NEURON_COMPACT_MOVABLE :
					   NEURON_COMPACT_FREE, 0);
		assert_int_equal(neuron_compact_plan(c, 20, 0), budget == 10);
	}
	neuron_compact_free(c);
}

/* What there is no room for in the picture does not move. */
static void a_full_picture_is_used(void **state)
{
	struct neuron_compact *c = neuron_compact_new(4);
	u32 i;

	(void)state;
	neuron_compact_clear(c, ~0u);
	for (i = 0; i < 8; i++)
		neuron_compact_add(c, 10, i & 1 ? NEURON_COMPACT_MOVABLE : NEURON_COMPACT_FREE, 0);
	assert_int_equal(c->nr, 4);
	assert_int_equal(c->range[3].state, NEURON_COMPACT_FIXED);
	assert_int_equal(c->range[3].len, 50);
	assert_int_equal(neuron_compact_plan(c, 20, 0), 1);
	assert_int_equal(c->move[0].from, 10);
	assert_int_equal(neuron_compact_plan(c, 21, 0), 0);
	neuron_compact_free(c);
}

/* Nor do several that could. */
static void a_full_picture_ends_with_what_stays(void **state)
{
	struct neuron_compact *c = neuron_compact_new(3);
	u32 i;

	(void)state;
	neuron_compact_clear(c, ~0u);
	neuron_compact_add(c, 10, NEURON_COMPACT_FREE, 0);
	for (i = 0; i < 4; i++)
		neuron_compact_add(c, 10, NEURON_COMPACT_MOVABLE, 0);
	assert_int_equal(c->nr, 3);
	assert_int_equal(c->range[1].state, NEURON_COMPACT_MOVABLE);
	assert_int_equal(c->range[2].state, NEURON_COMPACT_FIXED);
	assert_int_equal(c->range[2].len, 30);
	neuron_compact_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_holds),
		cmocka_unit_test(the_library_foresees_it),
		cmocka_unit_test(the_library_knows_the_cheapest_windows),
		cmocka_unit_test(the_library_knows_the_longest_window),
		cmocka_unit_test(the_library_knows_where_the_picture_ends),
		cmocka_unit_test(many_take_no_square),
		cmocka_unit_test(a_checkerboard_moves_half_of_it),
		cmocka_unit_test(the_budget_is_kept),
		cmocka_unit_test(a_full_picture_is_used),
		cmocka_unit_test(a_full_picture_ends_with_what_stays),
	};

	return cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}
