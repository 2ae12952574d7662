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
		if (room.count != after.count || room.nr_movable != after.nr_movable ||
		    memcmp(room.hole, after.hole, room.count * sizeof(*room.hole)) ||
		    memcmp(room.movable, after.movable, room.nr_movable * sizeof(*room.movable)))
			fail_msg("seed %u: something is elsewhere", seed);
		room_free(&room);
		room_free(&after);
	}
	assert_in_range(moved, MEMORIES / 16, MEMORIES / 4 - 1);
	neuron_compact_free(c);
}

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

/* With ten times as many it takes less than 13 times as long: n log n is 12.5 times as much. */
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
		unsigned long long few = work(all[i], 10000), many = work(all[i], 100000);

		print_message("# 10000 movable: %llu blocks, 100000: %llu\n", few, many);
		assert_true(few > 10000 && many < 13 * few);
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
		cmocka_unit_test(many_take_no_square),
		cmocka_unit_test(a_checkerboard_moves_half_of_it),
		cmocka_unit_test(the_budget_is_kept),
		cmocka_unit_test(a_full_picture_is_used),
		cmocka_unit_test(a_full_picture_ends_with_what_stays),
	};

	return cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}
