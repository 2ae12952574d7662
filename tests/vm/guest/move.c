// SPDX-License-Identifier: GPL-2.0-only
/*
 * Movable memory: what MEM_COMPACT moves, what it never moves, and that contents stay as they
 * are, whatever happens meanwhile.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "device.h"
#include "emu.h"

#define MIB	(1ull << 20)
#define CHUNKS	64u
#define SPEEDS	5

static int fd, second;
static uint64_t filler, region;		/* all but this many bytes of HBM 0 is not to be had */

static uint64_t take(int at, uint64_t bytes, uint32_t flags)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .flags = flags,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	return call(at, NEURON_NATIVE_MEM_ALLOC, &a) ? 0 : a.mem_handle;
}

static uint64_t movable(uint64_t bytes)
{
	return take(fd, bytes, NEURON_NATIVE_ALLOC_MOVABLE);
}

static int pin(uint64_t handle, uint64_t *pa)
{
	struct neuron_native_mem_pin p = { .size = sizeof(p), .mem_handle = handle };
	int err = call(fd, NEURON_NATIVE_MEM_PIN, &p);

	if (!err && pa)
		*pa = p.pa;
	return err ?: p.pa == p.mmap_offset ? err : EINVAL;
}

static int unpin(uint64_t handle)
{
	struct neuron_native_mem_unpin p = { .size = sizeof(p), .mem_handle = handle };

	return call(fd, NEURON_NATIVE_MEM_UNPIN, &p);
}

/* Where it is now. */
static uint64_t where(uint64_t handle)
{
	uint64_t pa = 0;

	return pin(handle, &pa) || unpin(handle) ? 0 : pa;
}

static struct neuron_native_mem_compact compact(uint64_t bytes, uint64_t budget)
{
	struct neuron_native_mem_compact c = { .size = sizeof(c), .bytes = bytes, .budget = budget };

	if (call(fd, NEURON_NATIVE_MEM_COMPACT, &c))
		c.largest = 0;
	return c;
}

static struct neuron_native_hbm_stats stats(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	if (call(fd, NEURON_NATIVE_HBM_STATS, &s))
		CHECK(0, "statistics");
	return s;
}

static int get_pa(uint64_t handle, uint64_t *pa)
{
	struct neuron_ioctl_mem_get_pa g = { .mem_handle = handle, .pa = (__u64 *)pa };

	return call(fd, NEURON_IOCTL_MEM_GET_PA, &g);
}

static int buf_copy(uint64_t handle, uint64_t off, void *buf, uint64_t size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static int mem_copy(uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct neuron_ioctl_mem_copy64 c = {
		.src_mem_handle = src, .dst_mem_handle = dst, .size = bytes,
	};

	return call(fd, NEURON_IOCTL_MEM_COPY64, &c);
}

/* Contents that no two places, chunks or versions have in common. */
static void pattern(uint64_t *buf, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes / sizeof(*buf); i++)
		buf[i] = (seed << 32 | i) * 0x9e3779b97f4a7c15ull;
}

static bool fill(uint64_t handle, uint64_t bytes, uint64_t seed)
{
	uint64_t *buf = malloc(bytes);
	bool ok;

	pattern(buf, bytes, seed);
	ok = !buf_copy(handle, 0, buf, bytes, 1);
	free(buf);
	return ok;
}

static bool holds(uint64_t handle, uint64_t bytes, uint64_t seed)
{
	uint64_t *want = malloc(bytes), *got = malloc(bytes);
	bool ok;

	pattern(want, bytes, seed);
	ok = !buf_copy(handle, 0, got, bytes, 0) && !memcmp(want, got, bytes);
	free(want);
	free(got);
	return ok;
}

/* Chunks of one length fill the region; every other one goes. */
struct board {
	uint64_t handle[CHUNKS], bytes;
};

static void board_begin(struct board *b, unsigned int n)
{
	unsigned int i, bad = 0;

	memset(b, 0, sizeof(*b));
	b->bytes = region / n / PAGE * PAGE;
	for (i = 0; i < n; i++) {
		b->handle[i] = movable(b->bytes);
		bad += !b->handle[i] || !fill(b->handle[i], b->bytes, i);
	}
	for (i = 1; i < n; i += 2) {
		bad += mem_free(fd, b->handle[i]) != 0;
		b->handle[i] = 0;
	}
	CHECK(!bad, "a checkerboard of %u x %llu KiB", n, (unsigned long long)b->bytes >> 10);
}

static void board_end(struct board *b)
{
	unsigned int i, bad = 0;

	for (i = 0; i < CHUNKS; i++) {
		if (!b->handle[i])
			continue;
		bad += !holds(b->handle[i], b->bytes, i);
		mem_free(fd, b->handle[i]);
	}
	CHECK(!bad, "all contents are as they were");
}

static void rules(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = MIB, .flags = NEURON_NATIVE_ALLOC_MOVABLE,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	struct neuron_native_mem_compact c = { .size = sizeof(c), .align = 3 };
	struct neuron_ioctl_mem_get_extended_info i = { 0 };
	struct neuron_native_mem_import im = { .size = sizeof(im) };
	struct neuron_native_mem_export e = { .size = sizeof(e) };
	uint64_t pa = 0, again = 0, plain;
	void *map;

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a) && !a.pa && !a.mmap_offset,
	      "movable memory has no address");
	CHECK(get_pa(a.mem_handle, &pa) == EOPNOTSUPP, "nor does it tell one");
	i.mem_handle = a.mem_handle;
	CHECK(!call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &i) && !i.pa && !i.mmap_offset &&
	      i.size == MIB, "what else there is to know is told");
	CHECK(!pin(a.mem_handle, &pa) && pa && !pin(a.mem_handle, &again) && pa == again,
	      "pinned, twice: it has one");
	CHECK(!get_pa(a.mem_handle, &again) && again == pa, "and tells it");
	CHECK(!unpin(a.mem_handle) && !get_pa(a.mem_handle, &again), "once less: still");
	map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)pa);
	CHECK(map != MAP_FAILED, "it is mapped there");
	CHECK(!unpin(a.mem_handle) && get_pa(a.mem_handle, &again) == EOPNOTSUPP,
	      "twice less: no more");
	CHECK(unpin(a.mem_handle) == EINVAL, "a third time is one too many");
	if (map != MAP_FAILED)
		munmap(map, MIB);
	map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)pa);
	CHECK(map == MAP_FAILED, "now there is nothing to map");

	e.mem_handle = a.mem_handle;
	CHECK(!call(fd, NEURON_NATIVE_MEM_EXPORT, &e), "export");
	im.fd = e.fd;
	CHECK(!call(fd, NEURON_NATIVE_MEM_IMPORT, &im) && im.pa, "import: it has an address");
	CHECK(!get_pa(im.mem_handle, &again) && again == im.pa, "which that handle tells");
	CHECK(pin(im.mem_handle, NULL) == EPERM, "but cannot pin");
	close(e.fd);
	CHECK(!mem_free(fd, im.mem_handle) && !mem_free(fd, a.mem_handle), "gone");
	CHECK(pin(a.mem_handle, NULL) == ENOENT && unpin(a.mem_handle) == ENOENT, "so no pin");

	plain = take(fd, MIB, 0);
	CHECK(!get_pa(plain, &pa) && !pin(plain, &again) && pa == again && !unpin(plain),
	      "other memory always has its address");
	mem_free(fd, plain);
	a.align = 1ull << 60;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == EINVAL, "an alignment beyond all memory");
	a.align = 0;
	a.flags |= NEURON_NATIVE_ALLOC_HOST;
	a.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST;
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == EINVAL, "host memory does not move");
	CHECK(call(fd, NEURON_NATIVE_MEM_COMPACT, &c) == EINVAL, "an alignment that is none");
	c.align = 0;
	c.hbm = 100;
	CHECK(call(fd, NEURON_NATIVE_MEM_COMPACT, &c) == EINVAL, "a memory that is none");
}

/* Moves that the flight recorder knows of; *@to: where the last one led. */
static unsigned int recorded(uint64_t *to)
{
	static struct neuron_native_event list[2048];
	struct neuron_native_events e = {
		.size = sizeof(e), .entries = (uintptr_t)list, .entry_size = sizeof(list[0]),
		.count = 2048,
	};
	unsigned int i, n = 0;

	if (call(fd, NEURON_NATIVE_EVENTS, &e))
		return 0;
	for (i = 0; i < e.count; i++) {
		if (list[i].kind != NEURON_NATIVE_EVENT_MOVE || list[i].pid != getpid() ||
		    list[i].free == list[i].address)
			continue;
		*to = list[i].address;
		n++;
	}
	return n;
}

/* 95 % of what is free becomes one run; a request for it is served. */
static void checkerboard(void)
{
	struct neuron_native_mem_compact c;
	struct neuron_native_hbm_stats s, t;
	struct board b;
	uint64_t big, to = 0;
	unsigned int i, known;

	board_begin(&b, CHUNKS);
	known = recorded(&to);
	s = stats();
	CHECK(s.largest_free < s.free / 4, "%llu of %llu free KiB in one run",
	      (unsigned long long)s.largest_free >> 10, (unsigned long long)s.free >> 10);
	CHECK(!movable(s.free / 2), "half of it is refused");
	c = compact(2 * s.largest_free, 0);
	CHECK(c.largest >= 2 * s.largest_free && c.moves && c.moved_bytes <= s.largest_free + b.bytes,
	      "twice the run: %llu moves", (unsigned long long)c.moves);
	c = compact(0, b.bytes);
	CHECK(c.moved_bytes <= b.bytes, "no more than the budget");
	c = compact(0, 0);
	CHECK(c.largest >= s.free / 100 * 95, "%llu KiB after %llu moves: %llu %% of what is free",
	      (unsigned long long)c.largest >> 10, (unsigned long long)c.moves,
	      (unsigned long long)(c.largest * 100 / s.free));
	CHECK(c.moved_bytes <= s.used - filler, "nothing was moved twice");
	t = stats();
	CHECK(t.free == s.free && t.used == s.used && t.nr_allocs == s.nr_allocs &&
	      t.own_process == s.own_process && t.driver == s.driver &&
	      !memcmp(t.by_category, s.by_category, sizeof(s.by_category)), "nothing is charged");
	CHECK(t.moves > s.moves && t.moved_bytes >= s.moved_bytes + c.moved_bytes, "but counted");
	known = recorded(&to) - known;
	for (i = 0; i < CHUNKS && (!b.handle[i] || where(b.handle[i]) != to); i++)
		;
	CHECK(known == t.moves - s.moves && i < CHUNKS, "the flight recorder has %u moves", known);
	big = movable(s.free / 100 * 95);
	CHECK(big, "now it is to be had");
	mem_free(fd, big);
	board_end(&b);
}

static int ring_of(uint64_t handle)
{
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 1, .qid = 2, .tx_handle = handle, .rx_handle = handle,
		.tx_desc_count = 64, .rx_desc_count = 64,
	};

	if (!handle)
		q.tx_desc_count = q.rx_desc_count = 0;
	return call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q);
}

enum hold { PIN, MAP, MAP_READ, EXPORT, IMPORT, RING, HOLDS };

static const char *const holds_name[] = { "pin", "mapping", "mapping to read", "export", "import",
					  "ring" };

/* Have something that keeps the memory where it is, or give it back. */
static bool hold(enum hold what, uint64_t handle, uint64_t bytes, bool on)
{
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = handle };
	static struct neuron_native_mem_import im = { .size = sizeof(im) };
	static void *map;
	static int buf;
	uint64_t pa;

	switch (what) {
	case PIN:
		return !(on ? pin(handle, NULL) : unpin(handle));
	case MAP:
	case MAP_READ:
		if (!on)
			return !munmap(map, bytes);
		if (pin(handle, &pa))
			return false;
		map = mmap(NULL, bytes, PROT_READ | (what == MAP ? PROT_WRITE : 0), MAP_SHARED, fd,
			   (off_t)pa);
		return !unpin(handle) && map != MAP_FAILED;
	case EXPORT:
		if (!on)
			return !close(buf);
		if (call(fd, NEURON_NATIVE_MEM_EXPORT, &e))
			return false;
		buf = e.fd;
		return true;
	case IMPORT:
		if (!on)
			return !mem_free(second, im.mem_handle);
		if (call(fd, NEURON_NATIVE_MEM_EXPORT, &e))
			return false;
		im.fd = e.fd;
		on = !call(second, NEURON_NATIVE_MEM_IMPORT, &im);
		close(e.fd);
		return on;
	default:
		return !ring_of(on ? handle : 0);
	}
}

/* What is used stays, and moves when it is not used any more. */
static void kept(void)
{
	struct neuron_native_mem_compact c;
	uint64_t from, rest;
	unsigned int what;
	struct board b;

	for (what = PIN; what < HOLDS; what++) {
		if (what == RING && is_checked())
			continue;	/* it does not become one */
		board_begin(&b, 4);
		rest = stats().free;
		from = where(b.handle[2]);
		CHECK(hold(what, b.handle[2], b.bytes, true), "a %s", holds_name[what]);
		/* All of it in one run needs this chunk to go, or the other one. */
		CHECK(hold(PIN, b.handle[0], b.bytes, true), "and the other chunk is pinned");
		c = compact(rest, 0);
		CHECK(!c.moves && c.largest && where(b.handle[2]) == from, "it stays");
		CHECK(hold(what, b.handle[2], b.bytes, false), "no %s any more", holds_name[what]);
		c = compact(rest, 0);
		CHECK(c.moves == 1 && c.largest >= rest - b.bytes / 2 && where(b.handle[2]) != from,
		      "it moves");
		hold(PIN, b.handle[0], b.bytes, false);
		board_end(&b);
	}
}

static bool shows(uint64_t handle, uint64_t bytes, uint64_t seed)
{
	uint64_t *want = malloc(bytes), pa, *map;
	bool ok = false;

	pattern(want, bytes, seed);
	if (!pin(handle, &pa)) {
		map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)pa);
		ok = !unpin(handle) && map != MAP_FAILED && !memcmp(map, want, bytes);
		munmap(map, bytes);
	}
	free(want);
	return ok;
}

/* What moves is placed next to room whose length is no multiple of a page. */
static void whole_pages(void)
{
	uint64_t handle[6], hole[6], unit = region / 6 / 4 / PAGE * PAGE;
	unsigned int i, bad = 0;

	for (i = 0; i < 6; i++) {
		handle[i] = movable(unit);
		hole[i] = take(fd, 3 * unit, 0);
		bad += !handle[i] || !hole[i] || !fill(handle[i], unit, i);
	}
	for (i = 0; i < 6; i++)
		bad += mem_free(fd, hole[i]) != 0;
	CHECK(!bad && stats().largest_free < 4 * unit && compact(4 * unit + 4096, 0).moves,
	      "a run becomes longer than a hole and what is beside it");
	for (i = 0; i < 6; i++) {
		bad += where(handle[i]) % PAGE || !shows(handle[i], unit, i);
		mem_free(fd, handle[i]);
	}
	CHECK(!bad, "what moves is in pages of its own");
}

/* Plain memory is in the way: what can be had is had. */
static void half(void)
{
	struct neuron_native_hbm_stats s;
	struct neuron_native_mem_compact c;
	uint64_t handle[CHUNKS], bytes = region / CHUNKS / PAGE * PAGE, at = 0, now = 0;
	unsigned int i, bad = 0;

	for (i = 0; i < CHUNKS; i++) {
		handle[i] = i % 8 == 3 ? take(fd, bytes, 0) : movable(bytes);
		bad += !handle[i] || !fill(handle[i], bytes, i);
	}
	bad += get_pa(handle[CHUNKS / 2 + 3], &at) != 0;
	for (i = 0; i < CHUNKS; i += 2)
		bad += mem_free(fd, handle[i]) != 0;
	s = stats();
	c = compact(7 * bytes, 0);
	CHECK(!bad && s.largest_free < 3 * bytes && c.largest >= 7 * bytes,
	      "between what does not move: %llu KiB in one run, %llu before",
	      (unsigned long long)c.largest >> 10, (unsigned long long)s.largest_free >> 10);
	for (i = 1; i < CHUNKS; i += 2) {
		bad += !holds(handle[i], bytes, i);
		if (i == CHUNKS / 2 + 3)
			bad += get_pa(handle[i], &now) || now != at;
		mem_free(fd, handle[i]);
	}
	CHECK(!bad, "contents, and the address of what does not move");
}

/* ---- what happens meanwhile --------------------------------------------------------- */

static atomic_bool stop;
static atomic_uint wrong, refused, moved, gave_up;

/* Of a thread: chunks that nobody else knows. */
#define OWN	6

struct racer {
	pthread_t thread;
	unsigned int number, seed;
	uint64_t handle[OWN], bytes[OWN], version[OWN];
	int (*act)(struct racer *r, unsigned int i);
};

static uint64_t racer_seed(const struct racer *r, unsigned int i)
{
	return (uint64_t)r->number << 16 | i << 12 | (r->version[i] & 0xfff);
}

static int act_write(struct racer *r, unsigned int i)
{
	r->version[i]++;
	return !fill(r->handle[i], r->bytes[i], racer_seed(r, i));
}

static int act_read(struct racer *r, unsigned int i)
{
	return !holds(r->handle[i], r->bytes[i], racer_seed(r, i));
}

/* A copy within the device; the versions become the same, too. */
static int act_copy(struct racer *r, unsigned int i)
{
	unsigned int to = (i + 1) % OWN;
	uint64_t bytes = r->bytes[i] < r->bytes[to] ? r->bytes[i] : r->bytes[to];
	uint64_t *want = malloc(bytes), *got = malloc(bytes);
	int bad;

	pattern(want, bytes, racer_seed(r, i));
	bad = mem_copy(r->handle[to], r->handle[i], bytes) ||
	      buf_copy(r->handle[to], 0, got, bytes, 0) || memcmp(want, got, bytes);
	free(want);
	free(got);
	return bad || act_write(r, to);
}

/* Through a mapping: at an address that is kept by a pin, then by the mapping alone. */
static int act_map(struct racer *r, unsigned int i)
{
	uint64_t pa, *map;

	if (pin(r->handle[i], &pa))
		return 1;
	map = mmap(NULL, r->bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)pa);
	if (unpin(r->handle[i]) || map == MAP_FAILED)
		return 1;
	r->version[i]++;
	pattern(map, r->bytes[i], racer_seed(r, i));
	munmap(map, r->bytes[i]);
	return 0;
}

static int act_export(struct racer *r, unsigned int i)
{
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = r->handle[i] };
	struct neuron_native_mem_import im = { .size = sizeof(im) };
	uint64_t keep = r->handle[i], word = 0, *map;
	int bad;

	if (call(fd, NEURON_NATIVE_MEM_EXPORT, &e))
		return 1;
	im.fd = e.fd;
	if (call(fd, NEURON_NATIVE_MEM_IMPORT, &im))
		return 1;
	close(e.fd);
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)im.mmap_offset);
	if (map == MAP_FAILED)
		return 1;
	pattern(&word, sizeof(word), racer_seed(r, i));
	bad = *map != word;
	munmap(map, PAGE);
	r->handle[i] = im.mem_handle;
	bad |= act_write(r, i);
	r->handle[i] = keep;
	return bad || mem_free(fd, im.mem_handle);
}

/* The others may have all of the region for a moment. */
static uint64_t renewed(uint64_t bytes)
{
	uint64_t handle;
	unsigned int i;

	for (i = 0; !(handle = movable(bytes)) && i < 5000; i++) {
		refused++;
		usleep(1000);
	}
	return handle;
}

/* What stays of one that is cut while it may be on its way. */
static int act_cut(struct racer *r, unsigned int i)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .flags = NEURON_NATIVE_GROW_SHRINK,
	};

	mem_free(fd, r->handle[i]);
	/* 2 MiB where there are 24: what is shorter shares them with others. */
	r->bytes[i] = region / 12 / PAGE * PAGE;
	r->handle[i] = renewed(r->bytes[i]);
	if (!r->handle[i] || act_write(r, i))
		return 1;
	usleep(rand_r(&r->seed) % 3000);
	g.mem_handle = r->handle[i];
	g.bytes = r->bytes[i] / 8 / PAGE * PAGE;
	r->bytes[i] = g.bytes;
	return call(fd, NEURON_NATIVE_MEM_GROW, &g) || act_read(r, i);
}

static int act_renew(struct racer *r, unsigned int i)
{
	mem_free(fd, r->handle[i]);
	r->bytes[i] = (1 + rand_r(&r->seed) % (region / CHUNKS / 2 / PAGE)) * PAGE;
	r->handle[i] = renewed(r->bytes[i]);
	return !r->handle[i] || act_write(r, i);
}

static int (*const acts[])(struct racer *, unsigned int) = {
	act_write, act_copy, act_map, act_export, act_renew, act_read, act_cut,
};

#define ACTS	(sizeof(acts) / sizeof(acts[0]))

static void *race(void *arg)
{
	struct racer *r = arg;
	unsigned int i, n;

	for (i = 0; i < OWN; i++)
		wrong += act_renew(r, i);
	for (n = 0; !stop; n++) {
		i = rand_r(&r->seed) % OWN;
		if (act_read(r, i) || (n % 3 && (r->act ?: acts[rand_r(&r->seed) % ACTS])(r, i)))
			wrong++;
	}
	for (i = 0; i < OWN; i++) {
		wrong += act_read(r, i);
		mem_free(fd, r->handle[i]);
	}
	return NULL;
}

/* Make holes, and move what lies between them. */
static void *push(void *arg)
{
	uint64_t handle[CHUNKS / 2] = { 0 }, bytes = region / CHUNKS / PAGE * PAGE;
	struct neuron_native_mem_compact c;
	unsigned int seed = 77, i;

	(void)arg;
	while (!stop) {
		i = rand_r(&seed) % (CHUNKS / 2);
		if (handle[i])
			mem_free(fd, handle[i]);
		handle[i] = rand_r(&seed) % 3 ? movable(bytes * (1 + i % 3) / PAGE * PAGE) : 0;
		c = compact(rand_r(&seed) % 4 ? rand_r(&seed) % region : 0, 0);
		moved += c.moves;
	}
	for (i = 0; i < CHUNKS / 2; i++)
		if (handle[i])
			mem_free(fd, handle[i]);
	return NULL;
}

/* A process whose memory is moved while it is killed. */
static void victims(void)
{
	uint64_t bytes = region / CHUNKS / 4 / PAGE * PAGE;
	unsigned int i;
	pid_t pid;

	while (!stop) {
		pid = fork();
		if (!pid) {
			int mine = open(NODE, O_RDWR | O_CLOEXEC);
			uint64_t handle[8] = { 0 };

			for (i = 0;; i = (i + 1) % 8) {
				if (handle[i])
					mem_free(mine, handle[i]);
				handle[i] = take(mine, bytes, NEURON_NATIVE_ALLOC_MOVABLE);
			}
		}
		usleep(30000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void *kill_victims(void *arg)
{
	(void)arg;
	victims();
	return NULL;
}

static void races(unsigned int seconds)
{
	struct racer r[3] = { { .number = 1 }, { .number = 2 }, { .number = 3, .act = act_write } };
	struct neuron_native_hbm_stats s = stats(), t;
	pthread_t pusher, killer;
	unsigned int i;

	stop = false;
	for (i = 0; i < 3; i++)
		pthread_create(&r[i].thread, NULL, race, &r[i]);
	pthread_create(&pusher, NULL, push, NULL);
	pthread_create(&killer, NULL, kill_victims, NULL);
	sleep(seconds);
	stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(r[i].thread, NULL);
	pthread_join(pusher, NULL);
	pthread_join(killer, NULL);
	t = stats();
	gave_up = (unsigned int)(t.move_failures - s.move_failures);
	CHECK(!wrong && moved, "races: %u moves, %u given up, %u times something was not what it was, %u refused",
	      moved, gave_up, wrong, refused);
	for (i = 0; i < 100 && stats().used != s.used; i++)
		usleep(100000);
	CHECK(stats().used == s.used, "all is given back");
}

/* ---- the end of the device ---------------------------------------------------------- */

static void *push_until_gone(void *arg)
{
	struct neuron_native_mem_compact c = { .size = sizeof(c) };
	int err;

	(void)arg;
	do {
		c.moves = 0;
		c.moved_bytes = 0;
		c.largest = 0;
		err = call(fd, NEURON_NATIVE_MEM_COMPACT, &c);
		if (!err)
			mem_free(fd, movable(MIB));
	} while (!err);
	return NULL;
}

/* More than is copied at a time: a chunk of 80 MiB, between a hole of 100 and one of 20. */
static void long_chunk(void)
{
	uint64_t all, hole, chunk, bytes = 80 * MIB;
	struct neuron_native_mem_compact c;
	int was = fd;

	fd = emu_open(emu_add("move"), O_RDWR);
	all = take(fd, stats().largest_free - 200 * MIB, NEURON_NATIVE_ALLOC_LOW);
	hole = take(fd, 100 * MIB, NEURON_NATIVE_ALLOC_LOW);
	chunk = take(fd, bytes, NEURON_NATIVE_ALLOC_LOW | NEURON_NATIVE_ALLOC_MOVABLE);
	CHECK(all && hole && chunk && fill(chunk, bytes, 1) && !mem_free(fd, hole),
	      "a chunk of 80 MiB");
	c = compact(120 * MIB, 0);
	CHECK(c.moves == 1 && c.moved_bytes == bytes && c.largest >= 120 * MIB && holds(chunk, bytes, 1),
	      "moves with its contents");
	close(fd);
	emu_del("move");
	fd = was;
}

static void removal(void)
{
	uint64_t handle[CHUNKS], big;
	unsigned int i, round;
	uint64_t before;
	pthread_t thread;
	int was = fd;

	for (round = 0; round < 5; round++) {
		fd = emu_open(emu_add("move"), O_RDWR);
		big = take(fd, stats().largest_free - CHUNKS * MIB, NEURON_NATIVE_ALLOC_LOW);
		for (i = 0; i < CHUNKS; i++)
			handle[i] = movable(MIB);
		for (i = 0; i < CHUNKS; i++)
			if (!(i & 1))
				mem_free(fd, handle[i]);
			else
				fill(handle[i], MIB, i);
		before = stats().moves;
		pthread_create(&thread, NULL, push_until_gone, NULL);
		for (i = 0; i < 10000 && stats().moves < before + 3 * round; i++)
			usleep(100);
		CHECK(big && i < 10000, "a device goes after %u moves", 3 * round);
		emu_del("move");
		pthread_join(thread, NULL);
		close(fd);
	}
	fd = was;
}

/* ---- speed -------------------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One long chunk lies between two holes and moves into one of them; against a copy. */
static void speed(void)
{
	double move = 1e9, copy = 1e9, again = 1e9, t;
	struct neuron_native_mem_compact c = { 0 };
	unsigned int i, bad = 0;
	struct board b;
	uint64_t to;

	for (i = 0; i < SPEEDS; i++) {
		board_begin(&b, 4);
		hold(PIN, b.handle[0], b.bytes, true);
		to = movable(b.bytes);
		t = seconds();
		bad += mem_copy(to, b.handle[2], b.bytes) != 0;
		copy = seconds() - t < copy ? seconds() - t : copy;
		t = seconds();
		bad += mem_copy(to, b.handle[2], b.bytes) != 0;
		again = seconds() - t < again ? seconds() - t : again;
		mem_free(fd, to);
		t = seconds();
		c = compact(2 * b.bytes, 0);
		move = seconds() - t < move ? seconds() - t : move;
		bad += c.moves != 1;
		hold(PIN, b.handle[0], b.bytes, false);
		board_end(&b);
	}
	printf("# %llu MiB: moved at %.0f MB/s, copied at %.0f to new memory (%.2f), %.0f to old (%.2f)\n",
	       (unsigned long long)b.bytes >> 20, (double)b.bytes / move / 1e6,
	       (double)b.bytes / copy / 1e6, copy / move, (double)b.bytes / again / 1e6, again / move);
	CHECK(!bad, "moves of %llu MiB, beside copies of as much", (unsigned long long)b.bytes >> 20);
}

int main(void)
{
	struct neuron_native_hbm_stats s;

	fd = open_node(O_RDWR);
	second = open_node(O_RDWR);
	s = stats();
	region = s.free > 256 * MIB ? 24 * MIB : s.free / 2 / MIB * MIB;
	filler = s.largest_free - region;
	CHECK(take(fd, filler, NEURON_NATIVE_ALLOC_LOW), "all but %llu MiB is taken",
	      (unsigned long long)region / MIB);
	filler += s.used;
	rules();
	checkerboard();
	kept();
	whole_pages();
	half();
	speed();
	races(is_card() ? 8 : 6);
	if (!is_card()) {
		long_chunk();
		removal();
	}
	close(fd);
	close(second);
	return failed != 0;
}
