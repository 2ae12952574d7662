// SPDX-License-Identifier: GPL-2.0-only
/* MEM_GROW: longer and shorter in place, clear, accounted; refused without a trace; against everything else. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "check.h"

#define MIB	(1ull << 20)
#define STEP	(64 * MIB)

static int fd;

static uint64_t take(uint64_t bytes, uint32_t flags, uint64_t *pa)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .flags = flags, .align = flags ? MIB : 0,
		.mem_type = NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE,
	};

	if (call(fd, NEURON_NATIVE_MEM_ALLOC, &a))
		return 0;
	if (pa)
		*pa = a.pa;
	return a.mem_handle;
}

static int grow(uint64_t handle, uint64_t bytes, struct neuron_native_mem_grow *out)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .mem_handle = handle, .bytes = bytes,
	};
	int err = call(fd, NEURON_NATIVE_MEM_GROW, &g);

	if (out)
		*out = g;
	return err;
}

static int copy(uint64_t handle, uint64_t off, void *buf, uint64_t size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static uint64_t length(uint64_t handle)
{
	struct neuron_ioctl_mem_get_extended_info i = { .mem_handle = handle };

	return call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &i) ? 0 : i.size;
}

static struct neuron_native_hbm_stats stats(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s), "statistics");
	return s;
}

static uint64_t sysfs(const char *file)
{
	char path[256], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), SYSFS "neuron_core0/stats/memory_usage/%s", file);
	f = fopen(path, "r");
	if (!f)
		return ~0ull;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return strtoull(text, NULL, 10);
}

/* A chunk of STEP bytes at the bottom with a dirty free STEP behind it. */
static uint64_t with_room(uint64_t *pa)
{
	uint64_t first = take(STEP, NEURON_NATIVE_ALLOC_LOW, pa), second, at = 0;
	struct neuron_ioctl_memset64 set = { .value = 0xee, .size = STEP };

	second = take(STEP, NEURON_NATIVE_ALLOC_LOW, &at);
	set.mem_handle = second;
	CHECK(first && second && at == *pa + STEP && !call(fd, NEURON_IOCTL_MEMSET64, &set),
	      "two neighbours, the second one dirty");
	CHECK(!mem_free(fd, second), "the second goes");
	return first;
}

static void grows(void)
{
	static uint8_t buf[4096], pattern[4096];
	struct neuron_native_hbm_stats before = stats(), after;
	const char *shown = "device_mem/model_shared_scratchpad/total";
	uint64_t pa, handle, seen = sysfs(shown);
	struct neuron_native_mem_grow g;
	uint8_t *old, *whole;
	unsigned int bad = 0;

	memset(pattern, 0x5a, sizeof(pattern));
	handle = with_room(&pa);
	CHECK(!copy(handle, STEP - 4096, pattern, 4096, 1), "the last page gets a pattern");
	old = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)pa);
	CHECK(old != MAP_FAILED && old[STEP - 1] == 0x5a, "and is mapped");

	CHECK(!grow(handle, STEP, &g) && g.bytes == STEP, "to the length it has: nothing happens");
	CHECK(!grow(handle, 2 * STEP - 100, &g) && g.bytes == 2 * STEP && !g.reason,
	      "to twice the length, rounded up");
	CHECK(length(handle) == 2 * STEP, "it is that long");
	CHECK(!copy(handle, STEP - 4096, buf, 4096, 0) && !memcmp(buf, pattern, 4096),
	      "what was there still is");
	for (uint64_t off = STEP; off < 2 * STEP; off += MIB) {
		memset(buf, 1, sizeof(buf));
		if (copy(handle, off, buf, 4096, 0))
			bad++;
		for (unsigned int i = 0; i < sizeof(buf); i++)
			bad += buf[i] != 0;
	}
	CHECK(!bad, "what was added is zero");
	CHECK(copy(handle, 2 * STEP - 1, buf, 2, 0) == EINVAL, "and ends there");

	whole = mmap(NULL, 2 * STEP, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)pa);
	CHECK(whole != MAP_FAILED, "all of it can be mapped");
	if (whole != MAP_FAILED) {
		whole[2 * STEP - 1] = 7;
		whole[0] = 9;
		CHECK(old[0] == 9 && old[STEP - 1] == 0x5a, "beside the mapping from before");
		CHECK(!copy(handle, 2 * STEP - 1, buf, 1, 0) && buf[0] == 7, "it is the same memory");
		munmap(whole, 2 * STEP);
	}

	after = stats();
	CHECK(after.used == before.used + 2 * STEP && after.own_process == before.own_process + 2 * STEP &&
	      after.by_category[NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE] ==
	      before.by_category[NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE] + 2 * STEP &&
	      after.nr_allocs == before.nr_allocs + 1, "it is accounted to the byte, as one allocation");
	CHECK(sysfs(shown) == seen + 2 * STEP, "sysfs agrees");
	CHECK(!mem_free(fd, handle), "free");
	CHECK(stats().used == before.used + 2 * STEP, "the mapping keeps all of it");
	munmap(old, STEP);
	after = stats();
	CHECK(after.used == before.used && after.own_process == before.own_process &&
	      sysfs(shown) == seen, "then everything is back");
}

static void refused(void)
{
	struct neuron_native_hbm_stats before = stats(), after;
	struct neuron_native_mem_grow g = { .size = sizeof(g) };
	struct neuron_native_mem_alloc host = {
		.size = sizeof(host), .bytes = 8192, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
	};
	uint64_t pa, at, handle = with_room(&pa), wall = take(STEP, NEURON_NATIVE_ALLOC_LOW, &at);

	CHECK(wall && at == pa + STEP, "a neighbour");
	CHECK(grow(handle, STEP + 4096, &g) == ENOMEM && g.reason == NEURON_NATIVE_REASON_FRAGMENTED &&
	      g.total == before.total && g.free == before.free - 2 * STEP && g.largest_free >= STEP,
	      "no room behind: fragmented, with the figures");
	CHECK(grow(handle, 1ull << 45, &g) == ENOMEM && g.reason == NEURON_NATIVE_REASON_FULL,
	      "more than there is: full");
	CHECK(grow(handle, ~0ull, NULL) == EOVERFLOW, "a length that wraps");
	CHECK(grow(handle, STEP - PAGE, NULL) == EINVAL, "shorter");
	CHECK(grow(handle, 0, NULL) == EINVAL, "nothing");
	CHECK(grow(~0ull, STEP, NULL) == ENOENT, "no such handle");
	g = (struct neuron_native_mem_grow){ .size = sizeof(g), .mem_handle = handle, .bytes = STEP,
					     .flags = 2 };
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &g) == EINVAL, "an unknown flag");
	g.flags = 0;
	g.__reserved = 1;
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &g) == EINVAL, "a reserved field");
	g.__reserved = 0;
	g.size = 8;
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &g) == EINVAL, "a structure too short");
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &host) && grow(host.mem_handle, 16384, NULL) == EINVAL,
	      "host memory");
	mem_free(fd, host.mem_handle);
	after = stats();
	CHECK(length(handle) == STEP && after.used == before.used + 2 * STEP, "nothing changed");
	CHECK(!mem_free(fd, wall) && !grow(handle, 2 * STEP, NULL), "without the neighbour it grows");
	mem_free(fd, handle);

	/* Small ones share frames and stay inside. */
	handle = take(PAGE, 0, NULL);
	CHECK(handle && grow(handle, 64 * MIB, &g) == ENOMEM, "a page does not become 64 MiB");
	CHECK(length(handle) == PAGE, "and is a page still");
	mem_free(fd, handle);
	CHECK(stats().used == before.used, "all of it is back");
}

static int shrink(uint64_t handle, uint64_t bytes)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .mem_handle = handle, .bytes = bytes,
		.flags = NEURON_NATIVE_GROW_SHRINK,
	};

	return call(fd, NEURON_NATIVE_MEM_GROW, &g);
}

static void shrinks(void)
{
	const char *shown = "device_mem/model_shared_scratchpad/total";
	struct neuron_native_hbm_stats before = stats();
	struct neuron_native_mem_alloc host = {
		.size = sizeof(host), .bytes = 8192, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
	};
	static uint8_t buf[4096], pattern[4096];
	uint64_t pa, at = 0, handle, small, wall, seen = sysfs(shown);
	uint8_t *map;

	memset(pattern, 0x5a, sizeof(pattern));
	handle = take(3 * STEP, NEURON_NATIVE_ALLOC_LOW, &pa);
	CHECK(handle && !copy(handle, STEP - 4096, pattern, 4096, 1) &&
	      !copy(handle, STEP, pattern, 4096, 1), "a pattern on both sides of where it will end");
	CHECK(shrink(handle, 0) == EINVAL, "to nothing: EINVAL");
	CHECK(shrink(handle, 3 * STEP + 1) == EINVAL && shrink(handle, ~0ull) == EINVAL, "longer: EINVAL");
	CHECK(shrink(~0ull, 4096) == ENOENT, "no such handle");
	CHECK(!shrink(handle, 3 * STEP) && length(handle) == 3 * STEP, "as long as it is");
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)pa);
	CHECK(map != MAP_FAILED && shrink(handle, STEP) == EBUSY && length(handle) == 3 * STEP,
	      "mapped: EBUSY");
	munmap(map, 4096);
	CHECK(stats().used == before.used + 3 * STEP, "nothing changed");
	CHECK(!shrink(handle, STEP - 1) && length(handle) == STEP, "shorter, to whole pages");
	CHECK(stats().used == before.used + STEP && sysfs(shown) == seen + STEP,
	      "accounted to the byte");
	CHECK(!copy(handle, STEP - 4096, buf, 4096, 0) && !memcmp(buf, pattern, 4096),
	      "what is left is as it was");
	CHECK(copy(handle, STEP, buf, 4096, 0) == EINVAL, "what is gone cannot be reached");
	wall = take(STEP, NEURON_NATIVE_ALLOC_LOW, &at);
	CHECK(wall && at == pa + STEP && !copy(wall, 0, buf, 4096, 0) && !buf[0] && !buf[4095],
	      "another allocation gets it, clear");
	CHECK(grow(handle, 2 * STEP, NULL) == ENOMEM, "and it cannot grow again");
	mem_free(fd, wall);
	CHECK(!grow(handle, 2 * STEP, NULL) && !copy(handle, STEP, buf, 4096, 0) && !buf[0],
	      "now it can, and what is new is clear");
	CHECK(!shrink(handle, PAGE) && !shrink(handle, 1) && length(handle) == PAGE, "to one page");
	mem_free(fd, handle);
	small = take(2 * PAGE, 0, NULL);
	CHECK(small && shrink(small, PAGE) == EOPNOTSUPP && length(small) == 2 * PAGE,
	      "one that shares 2 MiB with others: EOPNOTSUPP");
	mem_free(fd, small);
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &host) && shrink(host.mem_handle, 4096) == EINVAL,
	      "host memory: EINVAL");
	mem_free(fd, host.mem_handle);
	CHECK(stats().used == before.used && stats().nr_allocs == before.nr_allocs, "all is back");
}

static atomic_int stop;
static atomic_uint grown, busy, shrunk;

/* Back to 2 MiB whenever nobody looks. */
static void *shrinker(void *arg)
{
	while (!atomic_load(&stop)) {
		int err = shrink(*(uint64_t *)arg, 2 * MIB);

		if (!err)
			atomic_fetch_add(&shrunk, 1);
		else if (err != EBUSY && err != EINVAL)
			return arg;
		usleep(1000);
	}
	return NULL;
}

/* Reads and maps what there is, which can be less by then. */
static void *looker(void *arg)
{
	uint64_t handle = ((uint64_t *)arg)[0], pa = ((uint64_t *)arg)[1];
	static uint8_t buf[4096];
	uintptr_t bad = 0;

	while (!atomic_load(&stop)) {
		uint64_t size = length(handle);
		uint8_t *p;
		int err = copy(handle, size - 4096, buf, 4096, 0);

		bad += err && err != EINVAL;
		p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)pa);
		if (p == MAP_FAILED)
			continue;
		/* As long as it is mapped it stays this long. */
		bad += p[size - 1] != 0 || length(handle) < size;
		munmap(p, size);
		usleep(500);
	}
	return (void *)bad;
}

static void *regrower(void *arg)
{
	uint64_t bytes = 2 * MIB;

	while (!atomic_load(&stop)) {
		bytes = bytes > 8 * MIB ? 2 * MIB : bytes + 64 * 1024;
		if (!grow(*(uint64_t *)arg, bytes, NULL))
			atomic_fetch_add(&grown, 1);
	}
	return NULL;
}

static void shrink_races(void)
{
	uint64_t before = stats().used, chunk[2];
	pthread_t t[3];
	void *bad[3];
	unsigned int i;

	chunk[0] = take(2 * MIB, NEURON_NATIVE_ALLOC_LOW, &chunk[1]);
	CHECK(chunk[0], "a chunk for all");
	pthread_create(&t[0], NULL, shrinker, chunk);
	pthread_create(&t[1], NULL, looker, chunk);
	pthread_create(&t[2], NULL, regrower, chunk);
	for (i = 0; i < 3 || (i < 60 && (!atomic_load(&grown) || !atomic_load(&shrunk))); i++)
		sleep(1);
	atomic_store(&stop, 1);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], &bad[i]);
	printf("# grown %u times, shrunk %u times\n", atomic_load(&grown), atomic_load(&shrunk));
	CHECK(!bad[0] && !bad[1], "who uses it keeps it as long as it was");
	CHECK(atomic_load(&grown) && atomic_load(&shrunk), "it grew, and got shorter");
	CHECK(stats().used == before + length(chunk[0]), "accounted to the byte");
	mem_free(fd, chunk[0]);
	CHECK(stats().used == before, "nothing is left over");
	atomic_store(&stop, 0);
	atomic_store(&grown, 0);
}

static void *grower(void *arg)
{
	uint64_t handle = *(uint64_t *)arg, bytes = 2 * MIB;

	while (!atomic_load(&stop)) {
		int err = grow(handle, bytes, NULL);

		if (!err)
			atomic_fetch_add(&grown, 1);
		else if (err == ENOMEM)
			atomic_fetch_add(&busy, 1);
		if (!err || err == EINVAL)
			bytes += 64 * 1024;
		if (bytes > 16 * MIB)
			break;
	}
	return NULL;
}

static void *neighbour(void *arg)
{
	while (!atomic_load(&stop)) {
		uint64_t handle = take(MIB, NEURON_NATIVE_ALLOC_LOW, NULL);

		if (handle)
			mem_free(fd, handle);
	}
	return arg;
}

/* Reads to the end that it sees, and maps it. */
static void *reader(void *arg)
{
	uint64_t handle = ((uint64_t *)arg)[0], pa = ((uint64_t *)arg)[1];
	static uint8_t buf[4096];
	uintptr_t bad = 0;

	while (!atomic_load(&stop)) {
		uint64_t size = length(handle);
		uint8_t *p;

		bad += copy(handle, size - 4096, buf, 4096, 0) != 0;
		p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)pa);
		if (p == MAP_FAILED) {
			bad++;
			continue;
		}
		bad += p[size - 1] != 0;
		munmap(p, size);
	}
	return (void *)bad;
}

static void races(void)
{
	uint64_t before = stats().used, chunk[2];
	pthread_t a, b, c, d;
	unsigned int i;
	void *bad;

	chunk[0] = take(2 * MIB, NEURON_NATIVE_ALLOC_LOW, &chunk[1]);
	CHECK(chunk[0], "a chunk for all");
	pthread_create(&c, NULL, neighbour, NULL);
	pthread_create(&d, NULL, reader, chunk);
	pthread_create(&a, NULL, grower, chunk);
	pthread_create(&b, NULL, grower, chunk);
	for (i = 0; i < 3 || (i < 60 && !atomic_load(&grown)); i++)
		sleep(1);
	atomic_store(&stop, 1);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	pthread_join(c, NULL);
	pthread_join(d, &bad);
	printf("# grown %u times, refused %u times, %llu bytes\n", atomic_load(&grown),
	       atomic_load(&busy), (unsigned long long)length(chunk[0]));
	CHECK(!bad, "who reads and maps while it grows sees zeros and no error");
	CHECK(atomic_load(&grown) > 0, "it grew");
	CHECK(stats().used == before + length(chunk[0]), "accounted to the byte");
	mem_free(fd, chunk[0]);
	CHECK(stats().used == before, "nothing is left over");
}

/* Dies with a grown chunk in its hands. */
static void victim(void)
{
	uint64_t pa;

	fd = open_node(O_RDWR);
	CHECK(!grow(with_room(&pa), 2 * STEP, NULL), "a child grows a chunk");
}

int main(void)
{
	uint64_t before;

	fd = open_node(O_RDWR);
	grows();
	refused();
	shrinks();
	shrink_races();
	races();
	before = stats().used;
	in_child(victim);
	CHECK(stats().used == before, "what a dead process had grown is back");
	return failed != 0;
}
