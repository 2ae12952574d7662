// SPDX-License-Identifier: GPL-2.0-only
/*
 * HBM_RANGES: everything is in the list, and owners are told to who may know them.  MEM_ALLOC
 * at an address that was seen there.
 */
#define _GNU_SOURCE
#include <signal.h>

#include "check.h"

#define ROOM	4096

static struct neuron_native_range list[ROOM];
static struct neuron_native_geometry geo;
static uint32_t count;

/* The whole list of an HBM, @step ranges a call. */
static int ranges(int fd, uint32_t hbm, uint32_t step)
{
	struct neuron_native_hbm_ranges a = {
		.size = sizeof(a), .hbm = hbm, .entry_size = sizeof(list[0]),
	};
	int err;

	for (count = 0; count + step <= ROOM; count += a.count) {
		a.entries = (uintptr_t)&list[count];
		a.count = step;
		err = call(fd, NEURON_NATIVE_HBM_RANGES, &a);
		if (err)
			return err;
		if (a.count < step) {
			count += a.count;
			return 0;
		}
	}
	return E2BIG;
}

static uint64_t sum(uint32_t state)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		if (list[i].state == state)
			bytes += list[i].bytes;
	return bytes;
}

/* Owned ranges of this length that are exactly what was asked for. */
static unsigned int owned(pid_t pid, uint64_t bytes, uint32_t nc)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < count; i++)
		n += list[i].state == NEURON_NATIVE_RANGE_OWNED && list[i].pid == pid &&
		     list[i].bytes == bytes && list[i].nc_id == nc &&
		     list[i].mem_type == NEURON_MEMALLOC_TYPE_TENSORS_DEVICE;
	return n;
}

static int complete(uint32_t hbm)
{
	uint64_t at = geo.hbm[hbm].base;

	for (uint32_t i = 0; i < count; at += list[i++].bytes)
		if (list[i].address != at || !list[i].bytes)
			return 0;
	return at == geo.hbm[hbm].base + geo.hbm[hbm].size;
}

static void everything(int fd)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = 1 };
	uint64_t handle[20], large;
	uint32_t all;

	for (int i = 0; i < 20; i++)
		handle[i] = alloc(fd, 4 * PAGE, 1, 2);
	large = alloc(fd, 8 << 20, 1, 3);
	CHECK(!ranges(fd, 1, ROOM) && complete(1), "all of the HBM, in order and without gaps");
	CHECK(owned(getpid(), 4 * PAGE, 2) == 20 && owned(getpid(), 8 << 20, 3) == 1,
	      "each allocation with its process, core, category and length");
	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s) && s.free == sum(NEURON_NATIVE_RANGE_FREE) &&
	      s.reserved == sum(NEURON_NATIVE_RANGE_RESERVED) &&
	      s.used == sum(NEURON_NATIVE_RANGE_OWNED) + sum(NEURON_NATIVE_RANGE_USED),
	      "the sums are those of the statistics");
	all = count;
	CHECK(!ranges(fd, 1, 1) && count == all && complete(1), "one at a time: the same");

	for (int i = 0; i < 20; i += 2)
		CHECK(!mem_free(fd, handle[i]), "free");
	CHECK(!ranges(fd, 1, 7) && complete(1) && owned(getpid(), 4 * PAGE, 2) == 10 && count > all - 10,
	      "what was freed is a hole");
	for (int i = 1; i < 20; i += 2)
		mem_free(fd, handle[i]);
	mem_free(fd, large);
	CHECK(!ranges(fd, 1, ROOM) && !sum(NEURON_NATIVE_RANGE_OWNED), "nothing is left");
}

static void bad(int fd)
{
	struct neuron_native_hbm_ranges a = {
		.size = sizeof(a), .entry_size = sizeof(list[0]), .count = 1, .entries = 8,
	};

	CHECK(call(fd, NEURON_NATIVE_HBM_RANGES, &a) == EFAULT, "no memory there");
	a.count = 0;
	CHECK(!call(fd, NEURON_NATIVE_HBM_RANGES, &a) && !a.count, "no room, no ranges");
	a.hbm = geo.nr_hbms;
	CHECK(call(fd, NEURON_NATIVE_HBM_RANGES, &a) == EINVAL, "an HBM that is not there");
	a.hbm = 0;
	a.entry_size--;
	CHECK(call(fd, NEURON_NATIVE_HBM_RANGES, &a) == EINVAL, "entries of another length");
	a.entry_size++;
	a.from = ~0ull;
	a.count = 1;
	CHECK(!call(fd, NEURON_NATIVE_HBM_RANGES, &a) && !a.count, "nothing behind the end");
}

/* Programs of the first edition know entries without the last two members. */
static void short_entries(int fd)
{
	const size_t size = offsetof(struct neuron_native_range, owner);
	struct neuron_native_hbm_ranges a = {
		.size = sizeof(a), .hbm = 1, .entry_size = (uint32_t)size, .count = ROOM,
		.entries = (uintptr_t)list,
	};
	uint64_t handle = alloc(fd, 4 * PAGE, 1, 2), at = geo.hbm[1].base;
	uint8_t *entry = (uint8_t *)list;

	memset(list, 0xff, sizeof(list));
	CHECK(!call(fd, NEURON_NATIVE_HBM_RANGES, &a), "a list of short entries");
	for (uint32_t i = 0; i < a.count; i++, entry += size) {
		struct neuron_native_range r;

		memcpy(&r, entry, size);
		if (r.address != at)
			break;
		at += r.bytes;
	}
	CHECK(at == geo.hbm[1].base + geo.hbm[1].size && entry[0] == 0xff,
	      "one behind the other, and no byte more");
	mem_free(fd, handle);
}

static void parts(int fd)
{
	struct neuron_native_owner o = { .size = sizeof(o), .label = "part" };
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 1 << 20, .hbm = 1, .nc_id = 2,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	unsigned int n = 0;

	CHECK(!call(fd, NEURON_NATIVE_OWNER, &o), "an owner");
	a.owner = o.owner;
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a) && !ranges(fd, 1, ROOM), "memory of it");
	for (uint32_t i = 0; i < count; i++)
		n += list[i].address == a.pa && list[i].owner == o.owner && !list[i].movable;
	CHECK(n == 1 && owned(getpid(), 1 << 20, 2) == 1, "the list names it");
	mem_free(fd, a.mem_handle);
	o.flags = NEURON_NATIVE_OWNER_RELEASE;
	memset(o.label, 0, sizeof(o.label));
	CHECK(!call(fd, NEURON_NATIVE_OWNER, &o), "the owner goes");
}

/* That of a range, or UINT32_MAX. */
static uint32_t movable_at(int fd, uint64_t pa)
{
	CHECK(!ranges(fd, 1, ROOM), "the list");
	for (uint32_t i = 0; i < count; i++)
		if (list[i].address == pa)
			return list[i].movable;
	return UINT32_MAX;
}

static void movable(int fd)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .flags = NEURON_NATIVE_ALLOC_MOVABLE, .bytes = 1 << 20,
		.align = 1 << 21, .hbm = 1, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	struct neuron_native_mem_pin pin = { .size = sizeof(pin) };
	struct neuron_native_mem_unpin unpin = { .size = sizeof(unpin) };

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "movable memory");
	pin.mem_handle = unpin.mem_handle = a.mem_handle;
	CHECK(!call(fd, NEURON_NATIVE_MEM_PIN, &pin) && movable_at(fd, pin.pa) == 0,
	      "stays as long as it is pinned");
	CHECK(!call(fd, NEURON_NATIVE_MEM_UNPIN, &unpin) && movable_at(fd, pin.pa) == 21,
	      "then it could move, to multiples of 2^21");
	mem_free(fd, a.mem_handle);
}

/* With an address; the errno. */
static int take_at(int fd, uint64_t pa, uint64_t bytes, uint64_t align, uint64_t *handle)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .flags = NEURON_NATIVE_ALLOC_AT, .bytes = bytes, .align = align,
		.hbm = 1, .nc_id = 2, .mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, .pa = pa,
	};
	int err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);

	*handle = err ? 0 : a.mem_handle;
	if (!err)
		CHECK(a.pa == pa && a.mmap_offset == pa, "it is there");
	if (err == ENOMEM)
		CHECK(a.reason == NEURON_NATIVE_REASON_FRAGMENTED && a.free > bytes,
		      "not because memory is full");
	return err;
}

static void at_address(int fd)
{
	uint64_t hole = 0, mib = 1 << 20, small, large, none, used, end;
	struct neuron_native_hbm_stats before = { .size = sizeof(before), .hbm = 1 }, after;

	after = before;
	CHECK(!ranges(fd, 1, ROOM), "the holes");
	for (uint32_t i = 0; i < count; i++)
		if (list[i].state == NEURON_NATIVE_RANGE_FREE && list[i].bytes > 64 * mib)
			hole = (list[i].address + mib - 1) & ~(mib - 1);
	end = geo.hbm[1].base + geo.hbm[1].size;
	CHECK(hole && !call(fd, NEURON_NATIVE_HBM_STATS, &before), "one that is long enough");
	CHECK(!take_at(fd, hole + 8 * mib, 4 * mib, mib, &large), "in the middle of a hole");
	CHECK(!take_at(fd, hole + 4 * mib, 4096, 0, &small), "a small one");
	CHECK(take_at(fd, hole + 8 * mib, 4 * mib, 0, &none) == ENOMEM, "twice");
	CHECK(take_at(fd, hole + 3 * mib, 2 * mib, 0, &none) == ENOMEM, "over the small one");
	CHECK(take_at(fd, geo.hbm[1].base, 4096, 0, &none) == ENOMEM, "what is reserved");
	CHECK(take_at(fd, geo.hbm[1].base - 4096, 4096, 0, &none) == EINVAL, "before the memory");
	CHECK(take_at(fd, end, 4096, 0, &none) == EINVAL, "behind it");
	CHECK(take_at(fd, end - 4096, 8192, 0, &none) == EINVAL, "beyond its end");
	CHECK(take_at(fd, hole + PAGE, PAGE, 2 * PAGE, &none) == EINVAL, "not at a multiple");
	CHECK(take_at(fd, hole + PAGE / 2, 4096, 0, &none) == EINVAL, "not at a page");
	CHECK(!mem_free(fd, large) && !take_at(fd, hole + 8 * mib, 4 * mib, 0, &large),
	      "again when it was freed");
	used = sum(NEURON_NATIVE_RANGE_OWNED);
	CHECK(!ranges(fd, 1, ROOM) && complete(1) &&
	      sum(NEURON_NATIVE_RANGE_OWNED) == used + 4 * mib + PAGE, "the list has both");
	mem_free(fd, small);
	mem_free(fd, large);
	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &after) && after.used == before.used &&
	      after.free == before.free, "nothing is left");
}

/* Memory of a child with user @uid; to be killed. */
static pid_t holder(uid_t uid, uint64_t bytes)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	if (pipe(ready))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = open_node(O_RDWR);

		if (setresuid(uid, uid, uid))
			_exit(1);
		alloc(fd, bytes, 0, 1);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1, "a process with memory");
	close(ready[0]);
	return pid;
}

static pid_t mine, other;

static void stranger(void)
{
	int fd = open_node(O_RDWR);

	if (setresgid(65533, 65533, 65533) || setresuid(65533, 65533, 65533))
		CHECK(0, "give up privileges");
	CHECK(!ranges(fd, 0, ROOM) && complete(0) && owned(mine, 12 << 20, 1) == 1,
	      "a user sees what his processes have");
	CHECK(!owned(other, 20 << 20, 1) && sum(NEURON_NATIVE_RANGE_USED) >= 20 << 20,
	      "of others, that it is not free");
}

static void owners(int fd)
{
	mine = holder(65533, 12 << 20);
	other = holder(65534, 20 << 20);
	CHECK(!ranges(fd, 0, ROOM) && owned(mine, 12 << 20, 1) == 1 && owned(other, 20 << 20, 1) == 1,
	      "root sees all");
	in_child(stranger);
	kill(mine, SIGKILL);
	kill(other, SIGKILL);
	waitpid(mine, NULL, 0);
	waitpid(other, NULL, 0);
}

int main(void)
{
	int fd = open_node(O_RDWR);
	int look = open_node(O_WRONLY);

	geo = geometry(fd);
	CHECK(!ranges(look, 0, ROOM) && complete(0), "without being a user of the device");
	everything(fd);
	bad(fd);
	short_entries(fd);
	parts(fd);
	movable(fd);
	at_address(fd);
	owners(fd);
	return failed != 0;
}
