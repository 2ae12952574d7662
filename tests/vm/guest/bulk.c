// SPDX-License-Identifier: GPL-2.0-only
/* MEM_ALLOC_BULK and MEM_FREE_BULK: all of what is asked for, or nothing, whatever others do. */
#include <pthread.h>
#include <sys/mman.h>

#include "check.h"
#include "device.h"

#define MAX	NEURON_NATIVE_BULK_MAX
#define TYPE	NEURON_MEMALLOC_TYPE_TENSORS_DEVICE

typedef struct neuron_native_mem_bulk_entry entry;

static int fd;
static entry entries[MAX + 1];
static uint64_t handles[MAX + 1];

static struct neuron_native_hbm_stats stats(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	if (call(fd, NEURON_NATIVE_HBM_STATS, &s))
		memset(&s, 0, sizeof(s));
	return s;
}

static struct neuron_native_mem_alloc_bulk request(entry *e, uint32_t n)
{
	return (struct neuron_native_mem_alloc_bulk){
		.size = sizeof(struct neuron_native_mem_alloc_bulk), .mem_type = TYPE, .count = n,
		.entry_size = sizeof(entry), .entries = (uintptr_t)e,
	};
}

static int alloc_bulk(entry *e, uint32_t n)
{
	struct neuron_native_mem_alloc_bulk a = request(e, n);

	return call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a);
}

static int free_bulk(const uint64_t *h, uint32_t n)
{
	struct neuron_native_mem_free_bulk f = {
		.size = sizeof(f), .count = n, .handles = (uintptr_t)h,
	};

	return call(fd, NEURON_NATIVE_MEM_FREE_BULK, &f);
}

static void fill(uint32_t n, uint64_t bytes)
{
	memset(entries, 0, sizeof(entries));
	for (uint32_t i = 0; i < n; i++)
		entries[i].bytes = bytes;
}

static void take_handles(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		handles[i] = entries[i].mem_handle;
}

/* Handles and addresses of all are different, and each handle has the address that was told. */
static int distinct(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		__u64 pa = 0;
		struct neuron_ioctl_mem_get_pa p = { .mem_handle = entries[i].mem_handle, .pa = &pa };

		if (call(fd, NEURON_IOCTL_MEM_GET_PA, &p) || pa != entries[i].pa || !pa)
			return 0;
		for (uint32_t j = 0; j < i; j++)
			if (entries[j].mem_handle == entries[i].mem_handle ||
			    entries[j].pa == entries[i].pa)
				return 0;
	}
	return 1;
}

static int reads_zero(uint64_t handle)
{
	char buf[4096];
	struct neuron_ioctl_mem_buf_copy c = {
		.mem_handle = handle, .buffer = buf, .size = sizeof(buf),
	};

	memset(buf, 1, sizeof(buf));
	if (call(fd, NEURON_IOCTL_MEM_BUF_COPY, &c))
		return 0;
	for (size_t i = 0; i < sizeof(buf); i++)
		if (buf[i])
			return 0;
	return 1;
}

static int dirty(uint64_t handle)
{
	struct neuron_ioctl_memset m = { .mem_handle = handle, .value = 0xa5, .size = 4096 };

	return call(fd, NEURON_IOCTL_MEMSET, &m);
}

static void works(void)
{
	uint64_t used = stats().used, allocs = stats().nr_allocs;
	uint32_t i, bad = 0;

	for (int round = 0; round < 2; round++) {
		fill(MAX, PAGE);
		for (i = 0; i < MAX; i += 7)
			entries[i].align = 65536;
		CHECK(!alloc_bulk(entries, MAX), "%u chunks in one call", MAX);
		CHECK(distinct(MAX), "their handles and addresses");
		for (i = 0; i < MAX; i += 7)
			bad += entries[i].pa % 65536 != 0;
		CHECK(!bad, "aligned");
		CHECK(stats().used == used + MAX * PAGE && stats().nr_allocs == allocs + MAX,
		      "charged");
		for (i = 0; i < MAX; i += 100)
			bad += !reads_zero(entries[i].mem_handle) || dirty(entries[i].mem_handle);
		CHECK(!bad, "they read as zero, also the second time");
		take_handles(MAX);
		CHECK(!free_bulk(handles, MAX), "freed in one call");
		CHECK(stats().used == used && stats().nr_allocs == allocs, "given back");
		CHECK(call(fd, NEURON_IOCTL_MEM_FREE,
			   &(struct neuron_ioctl_mem_free){ .mem_handle = handles[5] }) == ENOENT,
		      "the handles are gone");
	}
}

static void refused(void)
{
	struct neuron_native_hbm_stats before = stats();
	struct neuron_native_mem_alloc_bulk a;
	entry copy[200];

	fill(200, PAGE);
	entries[150].bytes = before.total;
	memcpy(copy, entries, sizeof(copy));
	a = request(entries, 200);
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) == ENOMEM &&
	      a.reason == NEURON_NATIVE_REASON_FULL && a.failed == 150 && a.total == before.total,
	      "one that does not fit: its number, and why (reason %u, number %u)", a.reason, a.failed);
	CHECK(!memcmp(copy, entries, sizeof(copy)) && stats().used == before.used,
	      "and none of the others is there");

	struct neuron_native_limit l = {
		.size = sizeof(l), .flags = NEURON_NATIVE_LIMIT_SET,
		.what = NEURON_NATIVE_LIMIT_PROCESS, .bytes = 100 * PAGE,
	};

	CHECK(!call(fd, NEURON_NATIVE_LIMIT, &l), "a limit of 100 pages");
	fill(200, PAGE);
	a = request(entries, 200);
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) == ENOMEM &&
	      a.reason == NEURON_NATIVE_REASON_CAPPED && a.failed == 100 && a.limit == l.bytes,
	      "refused by it at the hundredth (reason %u, number %u)", a.reason, a.failed);
	CHECK(stats().used == before.used, "and none of the others is there");
	CHECK(!alloc_bulk(entries, 100), "what is within the limit is there");
	take_handles(100);
	CHECK(!free_bulk(handles, 100), "and goes");
	l.used = 0;
	l.bytes = NEURON_NATIVE_LIMIT_NONE;
	CHECK(!call(fd, NEURON_NATIVE_LIMIT, &l), "no limit");
}

static void hostile(void)
{
	uint64_t used = stats().used, kept;
	struct neuron_native_mem_alloc_bulk a;
	struct neuron_native_mem_free_bulk f = { .size = sizeof(f), .handles = (uintptr_t)handles };
	void *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	entry *last = (entry *)((char *)page + PAGE) - 2;

	fill(MAX + 1, PAGE);
	CHECK(alloc_bulk(entries, 0) == EINVAL, "none");
	CHECK(alloc_bulk(entries, MAX + 1) == EINVAL, "too many");
	a = request(entries, 3);
	a.entry_size++;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) == EINVAL, "entries of another length");
	a = request(entries, 3);
	a.hbm = 99;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) == EINVAL, "a memory that is none");
	a = request(entries, 3);
	a.nc_id = ~0u;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) == EINVAL, "a core that is none");
	a = request(entries, 3);
	a.flags = 0x80;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) == EINVAL, "a flag that is none");
	a = request(entries, 3);
	a.owner = 12345;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) == ENOENT, "an owner that is none");
	entries[2].align = 3;
	CHECK(alloc_bulk(entries, 3) == EINVAL, "an alignment that is none");
	entries[2].align = 0;
	entries[2].bytes = 0;
	CHECK(alloc_bulk(entries, 3) == EINVAL, "no bytes");
	entries[2].bytes = ~0ull;
	CHECK(alloc_bulk(entries, 3) == EOVERFLOW, "too many bytes");
	CHECK(alloc_bulk(NULL, 3) == EFAULT, "no entries");
	/* The second entry is on a page that cannot be read; or written. */
	mprotect((char *)page + PAGE, PAGE, PROT_NONE);
	last[0].bytes = 4096;
	last[1].bytes = 4096;
	CHECK(alloc_bulk(last, 3) == EFAULT, "entries that cannot be read");
	mprotect((char *)page + PAGE, PAGE, PROT_READ);
	mprotect(page, PAGE, PROT_READ);
	CHECK(alloc_bulk(last, 2) == EFAULT, "entries that cannot be written");
	CHECK(stats().used == used, "nothing of it is left");

	fill(10, 4096);
	CHECK(!alloc_bulk(entries, 10), "ten");
	kept = stats().used;
	take_handles(10);
	CHECK(free_bulk(handles, 0) == EINVAL && free_bulk(handles, MAX + 1) == EINVAL, "numbers");
	f.count = 10;
	f.flags = 1;
	CHECK(call(fd, NEURON_NATIVE_MEM_FREE_BULK, &f) == EINVAL, "a flag that is none");
	f.flags = 0;
	f.__reserved = 1;
	CHECK(call(fd, NEURON_NATIVE_MEM_FREE_BULK, &f) == EINVAL, "a reserved field");
	CHECK(free_bulk(NULL, 10) == EFAULT, "no handles");
	handles[9] = handles[3];
	CHECK(free_bulk(handles, 10) == EINVAL, "a handle twice");
	handles[9] = 0;
	CHECK(free_bulk(handles, 10) == ENOENT, "a handle that is none");
	handles[9] = 1ull << 40;
	CHECK(free_bulk(handles, 10) == ENOENT, "a handle that cannot be");
	CHECK(stats().used == kept, "none was freed");
	handles[9] = entries[9].mem_handle;
	CHECK(!mem_free(fd, handles[0]) && !free_bulk(handles + 1, 9) && stats().used == used,
	      "then all are");
	munmap(page, 2 * PAGE);
}

static void kinds(void)
{
	struct neuron_native_mem_alloc_bulk a;

	fill(70, 8192);
	a = request(entries, 70);
	a.flags = NEURON_NATIVE_ALLOC_MOVABLE;
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) && !entries[69].pa, "movable ones");
	take_handles(70);
	CHECK(!free_bulk(handles, 70), "go");
	fill(70, 8192);
	a = request(entries, 70);
	a.flags = NEURON_NATIVE_ALLOC_HOST;
	a.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST;
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC_BULK, &a) && distinct(70), "host memory");
	take_handles(70);
	CHECK(!free_bulk(handles, 70), "goes");
}

/* Threads that allocate and free in both ways, and guess handles of others. */
static void *thread(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	entry own[40];
	uint64_t h[40];

	for (int round = 0; round < 150; round++) {
		uint32_t n = 1 + rand_r(&seed) % 40, i;
		int err;

		memset(own, 0, sizeof(own));
		for (i = 0; i < n; i++)
			own[i].bytes = 4096 << rand_r(&seed) % 4;
		if (alloc_bulk(own, n))
			return (void *)1;
		for (i = 0; i < n; i++)
			h[i] = own[i].mem_handle;
		if (rand_r(&seed) % 2)
			mem_free(fd, 1 + rand_r(&seed) % 200);
		err = free_bulk(h, n);
		/* Somebody guessed one. */
		for (i = 0; err && i < n; i++)
			mem_free(fd, h[i]);
	}
	return NULL;
}

static void races(void)
{
	uint64_t used = stats().used;
	pthread_t t[4];
	void *ret;
	int bad = 0;

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, (void *)(i + 1));
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &ret);
		bad += ret != NULL;
	}
	CHECK(!bad && stats().used == used, "four threads: nothing is left of them");
}

static void dies(void)
{
	fd = open_node(O_RDWR);
	fill(MAX, PAGE);
	CHECK(!alloc_bulk(entries, MAX), "a process that ends with %u", MAX);
}

int main(void)
{
	uint64_t used;

	device_settles();
	fd = open_node(O_RDWR);
	works();
	refused();
	hostile();
	kinds();
	races();
	used = stats().used;
	close(fd);
	in_child(dies);
	fd = open_node(O_RDWR);
	CHECK(stats().used <= used, "gave them back");
	close(fd);
	return failed != 0;
}
