// SPDX-License-Identifier: GPL-2.0-only
/* EVENTS: the flight recorder tells what happened, in order, to who may know it. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "check.h"
#include "device.h"

#define MIB	(1ull << 20)
#define ROOM	4096

static struct neuron_native_event list[ROOM];
static uint32_t count;

/* Events of an HBM after @since, @step a call; returns the number of the last, or 0. */
static uint64_t events(int fd, uint32_t hbm, uint64_t since, uint32_t step)
{
	struct neuron_native_events a = {
		.size = sizeof(a), .hbm = hbm, .since = since, .entry_size = sizeof(list[0]),
	};

	for (count = 0; count + step <= ROOM;) {
		a.entries = (uintptr_t)&list[count];
		a.count = step;
		a.last = 0;
		if (call(fd, NEURON_NATIVE_EVENTS, &a))
			return 0;
		count += a.count;
		if (a.count < step)
			return a.last;
		a.since = a.last;
	}
	return 0;
}

static int is(const struct neuron_native_event *e, uint32_t kind, uint64_t bytes)
{
	return e->kind == kind && e->bytes == bytes && e->pid == getpid();
}

static void story(int fd)
{
	struct neuron_native_owner o = { .size = sizeof(o), .label = "story" };
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 4 * MIB, .hbm = 1, .nc_id = 2, .align = MIB,
		.flags = NEURON_NATIVE_ALLOC_HIGH, .mem_type = NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE,
	};
	struct neuron_native_mem_grow grow = { .size = sizeof(grow), .bytes = 2 * MIB };
	struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = 1 };
	uint64_t since, pa, huge;

	since = events(fd, 1, 0, ROOM);
	CHECK(!call(fd, NEURON_NATIVE_OWNER, &o), "an owner");
	a.owner = o.owner;
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "allocate");
	pa = a.pa;
	grow.mem_handle = a.mem_handle;
	grow.flags = NEURON_NATIVE_GROW_SHRINK;
	CHECK(!call(fd, NEURON_NATIVE_MEM_GROW, &grow), "shrink");
	grow.flags = 0;
	grow.bytes = 3 * MIB;
	CHECK(!call(fd, NEURON_NATIVE_MEM_GROW, &grow), "grow");
	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s), "figures");
	huge = s.free + MIB;
	a.bytes = huge;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == ENOMEM, "too much");
	CHECK(!mem_free(fd, grow.mem_handle), "free");

	CHECK(events(fd, 1, since, ROOM) == since + count, "numbers go up by one");
	CHECK(count == 5, "%u events", count);
	CHECK(is(&list[0], NEURON_NATIVE_EVENT_ALLOC, 4 * MIB) && list[0].address == pa &&
	      list[0].align == MIB && list[0].flags == NEURON_NATIVE_ALLOC_HIGH &&
	      list[0].nc_id == 2 && list[0].owner == o.owner &&
	      list[0].mem_type == NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE, "the allocation");
	CHECK(is(&list[1], NEURON_NATIVE_EVENT_SHRINK, 2 * MIB) &&
	      list[1].address == pa + 2 * MIB, "what was cut off");
	CHECK(is(&list[2], NEURON_NATIVE_EVENT_GROW, MIB) && list[2].address == pa + 2 * MIB,
	      "what was added");
	CHECK(is(&list[3], NEURON_NATIVE_EVENT_REFUSE, huge) && !list[3].address &&
	      list[3].reason == NEURON_NATIVE_REASON_FULL && list[3].free == s.free,
	      "what was refused, and how much was free");
	CHECK(is(&list[4], NEURON_NATIVE_EVENT_FREE, 3 * MIB) && list[4].address == pa &&
	      list[4].owner == o.owner, "the end");
	for (uint32_t i = 1; i < count; i++)
		CHECK(list[i].time >= list[i - 1].time && list[i].seq == list[i - 1].seq + 1,
		      "event %u in order", i);
	o.flags = NEURON_NATIVE_OWNER_RELEASE;
	memset(o.label, 0, sizeof(o.label));
	CHECK(!call(fd, NEURON_NATIVE_OWNER, &o), "release");
}

/* More than fits: the last ones are known, also in small steps. */
static void wraps(int fd)
{
	uint64_t since = events(fd, 0, 0, ROOM), last;
	uint32_t all, wrong = 0;

	for (int i = 0; i < 1500; i++) {
		struct neuron_native_mem_alloc a = {
			.size = sizeof(a), .bytes = 4096,
			.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
		};

		wrong += call(fd, NEURON_NATIVE_MEM_ALLOC, &a) || mem_free(fd, a.mem_handle);
	}
	CHECK(!wrong, "3000 events");
	last = events(fd, 0, since, ROOM);
	CHECK(last == since + 3000 && count >= 1500 && count < 3000 && list[count - 1].seq == last,
	      "the last %u are known", count);
	all = count;
	CHECK(events(fd, 0, since, 100) == last && count == all, "in small steps: the same");
	CHECK(events(fd, 0, last, ROOM) == last && !count, "and nothing later");
}

static void bad(int fd)
{
	struct neuron_native_events a = {
		.size = sizeof(a), .entry_size = sizeof(list[0]), .count = 1, .entries = 8,
	};

	CHECK(call(fd, NEURON_NATIVE_EVENTS, &a) == EFAULT, "no memory there");
	a.last = 0;
	a.count = 0;
	CHECK(!call(fd, NEURON_NATIVE_EVENTS, &a) && !a.count, "no room");
	a.last = 1;
	CHECK(call(fd, NEURON_NATIVE_EVENTS, &a) == EINVAL, "a result that is not 0");
	a.last = 0;
	a.hbm = 99;
	CHECK(call(fd, NEURON_NATIVE_EVENTS, &a) == EINVAL, "an HBM that is not there");
	a.hbm = 0;
	a.entry_size++;
	CHECK(call(fd, NEURON_NATIVE_EVENTS, &a) == EINVAL, "entries of another length");
	a.entry_size--;
	a.since = ~0ull;
	a.count = 1;
	CHECK(!call(fd, NEURON_NATIVE_EVENTS, &a) && !a.count, "nothing after the last number");
}

/* Several HBMs, cores, owners and categories: what goes together is charged to several. */
static void leaves(void)
{
	struct neuron_native_owner o = { .size = sizeof(o), .label = "leaves" };
	int fd = open_node(O_RDWR), wrong = call(fd, NEURON_NATIVE_OWNER, &o);

	for (int i = 0; i < 700; i++) {
		struct neuron_native_mem_alloc a = {
			.size = sizeof(a), .bytes = (1 + i % 3) * 4096, .hbm = i / 8 % 2,
			.nc_id = i / 4 % 2, .owner = i / 16 % 2 ? o.owner : 0,
			.mem_type = i / 32 % 2 ? NEURON_MEMALLOC_TYPE_TENSORS_DEVICE :
						 NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE,
		};

		wrong += !!call(fd, NEURON_NATIVE_MEM_ALLOC, &a);
		if (i % 7 == 3)
			wrong += mem_free(fd, a.mem_handle);
		/* From then on the driver knows the first half by address. */
		if (i == 350)
			wrong += mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, a.mmap_offset) ==
				 MAP_FAILED;
	}
	CHECK(!wrong, "a process that ends with 600 of 700");
}

/* The @at'th event is an allocation: its end, which is to say the same of it. */
static struct neuron_native_event *end_of(uint32_t at)
{
	const struct neuron_native_event *a = &list[at];

	for (struct neuron_native_event *e = &list[at + 1]; e < &list[count]; e++)
		if (e->kind == NEURON_NATIVE_EVENT_FREE && e->address == a->address)
			return e->bytes == a->bytes && e->owner == a->owner &&
			       e->nc_id == a->nc_id && e->mem_type == a->mem_type &&
			       e->client == a->client && e->time >= a->time ? e : NULL;
	return NULL;
}

static void ends(int fd)
{
	struct neuron_native_hbm_stats s[2], now;
	uint64_t since[2];

	for (uint32_t i = 0; i < 2; i++) {
		s[i] = (struct neuron_native_hbm_stats){ .size = sizeof(s[i]), .hbm = i };
		CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s[i]), "figures");
		since[i] = events(fd, i, 0, ROOM);
	}
	in_child(leaves);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t allocs = 0, frees = 0;

		CHECK(events(fd, i, since[i], ROOM) == since[i] + count, "all of them");
		for (uint32_t k = 0; k < count; k++) {
			allocs += list[k].kind == NEURON_NATIVE_EVENT_ALLOC && end_of(k);
			frees += list[k].kind == NEURON_NATIVE_EVENT_FREE;
		}
		CHECK(count > 650 && allocs == frees && allocs + frees == count,
		      "%u events: each that it had is seen to go", count);
		now = (struct neuron_native_hbm_stats){ .size = sizeof(now), .hbm = i };
		CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &now) && now.used == s[i].used &&
		      now.nr_allocs == s[i].nr_allocs &&
		      !memcmp(now.by_core, s[i].by_core, sizeof(now.by_core)) &&
		      !memcmp(now.by_category, s[i].by_category, sizeof(now.by_category)),
		      "and nothing is charged for it");
	}
}

static uint64_t before;

static void stranger(void)
{
	int fd = open_node(O_RDWR);

	if (setresgid(65533, 65533, 65533) || setresuid(65533, 65533, 65533))
		CHECK(0, "give up privileges");
	events(fd, 0, before, ROOM);
	CHECK(count == 2 && list[0].kind == NEURON_NATIVE_EVENT_ALLOC && list[0].bytes == MIB,
	      "another user sees what happened");
	CHECK(!list[0].pid && !list[0].client && !list[0].owner && !list[0].mem_type,
	      "but not to whom");
}

int main(void)
{
	int fd = open_node(O_RDWR), look = open_node(O_WRONLY);

	/* What earlier programs had is events, too, when it comes back. */
	device_settles();
	story(fd);
	wraps(fd);
	bad(fd);
	ends(fd);
	before = events(fd, 0, 0, ROOM);
	CHECK(!mem_free(fd, alloc(fd, MIB, 0, 0)), "free");
	in_child(stranger);
	CHECK(events(look, 0, before, ROOM) == before + 2, "without being a user of the device");
	return failed != 0;
}
