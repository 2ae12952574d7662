// SPDX-License-Identifier: GPL-2.0-only
/*
 * Places of buffers: instances that are hard, a checker of overlaps that knows nothing of the
 * search, and for small ones the best placement there is.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <neuron/buffers.h>

#include "draw.h"

#define MAX_BUFFERS 10000u

static struct neuron_buffer buffers[MAX_BUFFERS];
static size_t nr;

static void start(unsigned int seed)
{
	state = seed * 7919ull + 1;
	nr = 0;
	draw(0, 1);
}

static void add(uint32_t first, uint32_t last, uint64_t bytes)
{
	assert_true(nr < MAX_BUFFERS);
	buffers[nr++] = (struct neuron_buffer){ .bytes = bytes, .first = first, .last = last };
}

/* ---- what a result has to be ------------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
	const struct neuron_buffer *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* No two overlap, the end is where it is said to be. */
static void check_places(const struct neuron_buffers_result *r)
{
	static struct neuron_buffer sorted[MAX_BUFFERS];
	uint64_t end = 0;

	memcpy(sorted, buffers, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), by_offset);
	for (size_t i = 0; i < nr; i++) {
		const struct neuron_buffer *a = &sorted[i];

		assert_true(!a->align || a->offset % a->align == 0);
		if (a->bytes && a->offset + a->bytes > end)
			end = a->offset + a->bytes;
		for (size_t k = i + 1; k < nr && sorted[k].offset < a->offset + a->bytes; k++)
			assert_false(sorted[k].bytes && a->bytes && a->first <= sorted[k].last &&
				     sorted[k].first <= a->last);
	}
	assert_int_equal(end, r->bytes);
}

/* The most that is in use at a step, by asking at each start. */
static uint64_t most_in_use(void)
{
	uint64_t most = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < nr; k++)
			if (buffers[k].first <= buffers[i].first &&
			    buffers[i].first <= buffers[k].last)
				sum += buffers[k].bytes;
		most = sum > most ? sum : most;
	}
	return most;
}

/* First fit as simply as it can be, in an order. */
static uint64_t first_fit(const size_t *order)
{
	uint64_t offset[MAX_BUFFERS], end = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct neuron_buffer *b = &buffers[order ? order[i] : i];
		uint64_t align = b->align ? b->align : 1, at = 0;
		bool moved = b->bytes != 0;

		while (moved) {
			moved = false;
			for (size_t k = 0; k < i; k++) {
				const struct neuron_buffer *o = &buffers[order ? order[k] : k];

				if (!o->bytes || o->first > b->last || b->first > o->last ||
				    at >= offset[k] + o->bytes || at + b->bytes <= offset[k])
					continue;
				at = (offset[k] + o->bytes + align - 1) / align * align;
				moved = true;
			}
		}
		offset[i] = at;
		if (b->bytes && at + b->bytes > end)
			end = at + b->bytes;
	}
	return end;
}

static struct neuron_buffers_result place(void)
{
	struct neuron_buffers_result r = { .size = sizeof(r) };

	assert_int_equal(neuron_buffers_place(buffers, nr, &r), 0);
	check_places(&r);
	assert_true(r.bound <= r.bytes);
	assert_true(r.bytes <= r.first_fit);
	assert_true(r.bound >= most_in_use());
	return r;
}

/* ---- instances --------------------------------------------------------------------- */

struct tile {
	uint32_t from, to;
	uint64_t low, high;
};

/*
 * A full rectangle cut into tiles again and again: at every step all of the memory is in use,
 * so that a single gap is too much.
 */
static void tiles(size_t count, uint32_t times)
{
	static struct tile t[MAX_BUFFERS];
	size_t n = 1;

	t[0] = (struct tile){ 0, times, 0, 1u << 30 };
	while (n < count) {
		struct tile *x = &t[draw(0, n - 1)];

		for (int i = 0; i < 3; i++) {
			struct tile *y = &t[draw(0, n - 1)];

			if ((double)(y->to - y->from) * (double)(y->high - y->low) >
			    (double)(x->to - x->from) * (double)(x->high - x->low))
				x = y;
		}
		if (draw(0, 1) && x->to - x->from > 1) {
			uint32_t at = x->from + (uint32_t)draw(1, x->to - x->from - 1);

			t[n++] = (struct tile){ at, x->to, x->low, x->high };
			x->to = at;
		} else if (x->high - x->low > 1) {
			uint64_t at = x->low + draw(1, x->high - x->low - 1);

			t[n++] = (struct tile){ x->from, x->to, at, x->high };
			x->high = at;
		}
	}
	/* In any order. */
	for (size_t i = 0; i < n; i++) {
		size_t k = draw(i, n - 1);
		struct tile x = t[k];

		t[k] = t[i];
		add(x.from, x.to - 1, x.high - x.low);
	}
}

/* Lengths and sizes from 1 to 1000 times as much, all as frequent. */
static void mixture(size_t count, uint32_t times)
{
	while (nr < count) {
		uint32_t length = 1u << draw(0, 9), first = (uint32_t)draw(0, times);
		uint64_t bytes = 64ull << draw(0, 13);

		length = (uint32_t)draw(length, 2 * length);
		add(first, first + length, draw(bytes, 2 * bytes));
	}
}

/* One and two pages, which is where first fit is at its worst. */
static void two_sizes(size_t count)
{
	while (nr < count) {
		uint32_t first = (uint32_t)draw(0, count / 2);

		add(first, first + (uint32_t)draw(0, 40), 4096 * draw(1, 2));
	}
}

/* Layers down and up again, each of which is needed once more on the way up. */
static void hourglass(uint32_t layers)
{
	uint64_t bytes[1000], size = 1 << 20;

	for (uint32_t i = 0; i < layers; i++) {
		bytes[i] = size + 64 * draw(0, 1000);
		add(2 * i, 2 * i + 2, bytes[i] * draw(1, 3));
		add(2 * i, 4 * layers - 2 * i, bytes[i]);
		size = i % 3 == 2 ? size * 3 / 4 : size;
	}
	for (uint32_t i = layers; i-- > 0;)
		add(4 * layers - 2 * i - 1, 4 * layers - 2 * i + 1, 2 * bytes[i]);
}

/* ---- tests ------------------------------------------------------------------------- */

/* At most 5 % above the lower bound, and never above first fit. */
static void hard(const char *name, size_t count, void (*make)(size_t count))
{
	double worst = 1;

	for (unsigned int seed = 1; seed <= (count < 1000 ? 10 : 2); seed++) {
		struct neuron_buffers_result r;
		uint64_t simple;

		start(seed);
		make(count);
		simple = first_fit(NULL);
		r = place();
		assert_int_equal(r.first_fit, simple);
		if ((double)r.bytes / (double)r.bound > worst)
			worst = (double)r.bytes / (double)r.bound;
		if (r.bytes * 100 > r.bound * 105)
			fail_msg("%s %zu, seed %u: %llu bytes, bound %llu, first fit %llu", name,
				 count, seed, (unsigned long long)r.bytes,
				 (unsigned long long)r.bound, (unsigned long long)simple);
	}
	print_message("# %s %zu: at most %.3f of the bound\n", name, count, worst);
}

static void make_tiles(size_t count)
{
	tiles(count, (uint32_t)count * 200);
}

static void make_mixture(size_t count)
{
	mixture(count, (uint32_t)count);
}

static void make_hourglass(size_t count)
{
	hourglass((uint32_t)count / 3);
}

static void test_tiles(void **unused)
{
	(void)unused;
	hard("tiles", 30, make_tiles);
	hard("tiles", 100, make_tiles);
	hard("tiles", 1000, make_tiles);
}

static void test_mixture(void **unused)
{
	(void)unused;
	hard("mixture", 30, make_mixture);
	hard("mixture", 100, make_mixture);
	hard("mixture", 1000, make_mixture);
}

static void test_two_sizes(void **unused)
{
	(void)unused;
	hard("two sizes", 30, two_sizes);
	hard("two sizes", 200, two_sizes);
	hard("two sizes", 1000, two_sizes);
}

static void test_hourglass(void **unused)
{
	(void)unused;
	hard("hourglass", 30, make_hourglass);
	hard("hourglass", 300, make_hourglass);
}

/* So many are not searched through: tiles without any gap stay out of reach. */
static void test_many(void **unused)
{
	struct neuron_buffers_result r;

	(void)unused;
	hard("mixture", MAX_BUFFERS, make_mixture);
	start(1);
	make_tiles(MAX_BUFFERS);
	r = place();
	assert_true(r.bytes * 5 <= r.bound * 6);
}

static void test_equal(void **unused)
{
	static struct neuron_buffer first[300];

	(void)unused;
	start(1);
	two_sizes(300);
	place();
	memcpy(first, buffers, sizeof(first));
	place();
	assert_memory_equal(first, buffers, sizeof(first));
}

static uint64_t best_of_all(size_t *order, size_t fixed)
{
	uint64_t best = UINT64_MAX;

	if (fixed == nr)
		return first_fit(order);
	for (size_t i = fixed; i < nr; i++) {
		size_t was = order[fixed];
		uint64_t bytes;

		order[fixed] = order[i];
		order[i] = was;
		bytes = best_of_all(order, fixed + 1);
		best = bytes < best ? bytes : best;
		order[i] = order[fixed];
		order[fixed] = was;
	}
	return best;
}

/* Some order of first fit is as good as it gets: with few buffers all of them can be tried. */
static void test_small(void **unused)
{
	(void)unused;
	for (unsigned int seed = 1; seed <= 300; seed++) {
		size_t order[6] = { 0, 1, 2, 3, 4, 5 };
		struct neuron_buffers_result r;
		uint64_t best;

		start(seed);
		while (nr < 6) {
			uint32_t at = (uint32_t)draw(0, 5);

			add(at, at + (uint32_t)draw(0, 3), draw(1, 9));
			buffers[nr - 1].align = 1ull << draw(0, 2);
		}
		best = best_of_all(order, 0);
		r = place();
		assert_true(r.bound <= best);
		assert_int_equal(r.bytes, best);
	}
}

static void test_alignment(void **unused)
{
	struct neuron_buffers_result r;

	(void)unused;
	start(1);
	for (int i = 0; i < 3; i++) {
		add(0, 10, 100);
		buffers[i].align = 64;
	}
	r = place();
	/* Two of them end at a multiple of 64. */
	assert_int_equal(r.bound, 2 * 128 + 100);
	assert_int_equal(r.bytes, 2 * 128 + 100);
	for (unsigned int seed = 1; seed <= 100; seed++) {
		start(seed);
		mixture(40, 60);
		for (size_t i = 0; i < nr; i++)
			buffers[i].align = draw(0, 3) ? 1ull << draw(0, 12) : 0;
		place();
	}
}

static void test_edges(void **unused)
{
	struct neuron_buffers_result r = { .size = sizeof(r), .bytes = 5 };
	struct neuron_buffers_result old = { .size = sizeof(size_t) + sizeof(uint64_t), .bound = 7 };

	(void)unused;
	assert_int_equal(neuron_buffers_place(NULL, 0, &r), 0);
	assert_int_equal(r.bytes, 0);
	assert_int_equal(neuron_buffers_place(NULL, 1, &r), -EINVAL);
	start(1);
	add(0, UINT32_MAX, 64);
	add(UINT32_MAX, UINT32_MAX, 0);
	add(UINT32_MAX, UINT32_MAX, 64);
	assert_int_equal(place().bytes, 128);
	assert_int_equal(neuron_buffers_place(buffers, nr, NULL), 0);
	assert_int_equal(neuron_buffers_place(buffers, nr, &old), 0);
	assert_int_equal(old.bytes, 128);
	assert_int_equal(old.bound, 7);
	buffers[0].first = 2;
	buffers[0].last = 1;
	assert_int_equal(neuron_buffers_place(buffers, nr, &r), -EINVAL);
	buffers[0].last = 2;
	buffers[0].align = 48;
	assert_int_equal(neuron_buffers_place(buffers, nr, &r), -EINVAL);
	buffers[0].align = 1ull << 63;
	assert_int_equal(neuron_buffers_place(buffers, nr, &r), -E2BIG);
	buffers[0].align = 0;
	buffers[0].bytes = 3ull << 61;
	assert_int_equal(neuron_buffers_place(buffers, nr, &r), -E2BIG);
	buffers[0].bytes = buffers[2].bytes = 1ull << 61;
	assert_int_equal(neuron_buffers_place(buffers, nr, &r), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiles),
		cmocka_unit_test(test_mixture),
		cmocka_unit_test(test_two_sizes),
		cmocka_unit_test(test_hourglass),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests_name("buffers", tests, NULL, NULL);
}
