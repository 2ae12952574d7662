// SPDX-License-Identifier: GPL-2.0-only
/*
 * Places that the driver chooses: on paper the library finds the one where the driver's
 * allocator puts a request, or both find none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../kmod/mem/buddy/all.h"
#include "src/memory/room.h"

#include "draw.h"

#define MEMORIES 2000u
#define REQUESTS 400u

static const struct {
	u32 flag;
	enum room_fit fit;
} choices[] = {
	{ 0, ROOM_OWN }, { NEURON_BUDDY_LOW, ROOM_OWN_LOW }, { NEURON_BUDDY_HIGH, ROOM_OWN_HIGH },
};

static uint64_t draw_size(uint64_t total)
{
	uint64_t size = 1ull << draw(12, 28);

	size = draw(size, 2 * size);
	return size > total / 4 ? draw(1, total / 4) : size;
}

/* The same request of both.  Return: whether the answer is the same. */
static bool ask_both(struct neuron_buddy *zone, struct room *room, uint64_t total, bool *refused)
{
	unsigned int choice = (unsigned int)draw(0, 2);
	const struct neuron_buddy_request req = {
		.size = draw_size(total), .flags = choices[choice].flag,
		.align = draw(0, 3) ? 0 : 1ull << draw(12, 22),
	};
	struct neuron_buddy_block block = { 0 };
	uint64_t at = 0;
	int want, ret;

	assert_int_equal(neuron_buddy_prepare(zone), 0);
	want = neuron_buddy_alloc(zone, &req, &block, NULL);
	ret = room_take(room, req.size, req.align, choices[choice].fit, &at);
	*refused = want;
	if (ret == want && at == block.addr)
		return true;
	print_message("# %#llx bytes, aligned %#llx, flags %u: %d at %#llx, the driver %d at %#llx\n",
		      (unsigned long long)req.size, (unsigned long long)req.align, req.flags, ret,
		      (unsigned long long)at, want, (unsigned long long)block.addr);
	return false;
}

/* Until much is refused.  Return: whether all was the same. */
static bool try_memory(unsigned int seed, unsigned int *requests)
{
	struct room room = { .count = 0 };
	unsigned int refusals = 0;
	struct neuron_buddy *zone;
	bool same = true, refused;
	uint64_t total;

	state = seed * 7919ull + 3;
	draw(0, 1);
	total = draw(8, 512) << 22;
	assert_int_equal(neuron_buddy_create(&zone, total), 0);
	assert_int_equal(room_keep_use(&room), 0);
	assert_int_equal(room_add(&room, 0, total), 0);
	for (unsigned int i = 0; i < REQUESTS && refusals < 20 && same; i++) {
		same = ask_both(zone, &room, total, &refused);
		refusals += refused;
		++*requests;
	}
	room_free(&room);
	neuron_buddy_destroy(zone);
	return same;
}

/*
 * Of frames whose longest runs are the same length the driver takes the one for which that
 * became true last, which the library does not follow: then the rest is elsewhere.
 */
static void test_as_the_driver(void **unused)
{
	unsigned int wrong = 0, requests = 0;

	(void)unused;
	for (unsigned int seed = 1; seed <= MEMORIES; seed++)
		wrong += !try_memory(seed, &requests);
	print_message("# %u requests, something is elsewhere in %u of %u memories\n", requests, wrong,
		      MEMORIES);
	assert_true(requests > 50 * MEMORIES);
	assert_true(wrong <= MEMORIES / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_driver),
	};

	return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
