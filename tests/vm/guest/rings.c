// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings on a device that does not check addresses (kmod/dma/RINGS.md): the driver does when
 * descriptors are written, and nobody changes them afterwards.  The software device checks
 * all the same, and counts what the driver missed.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>

#include "plug.h"
#include "neuron_isa.h"

#define KIB	1024u
#define RING	(64 * KIB)
#define SLOTS	64u
#define WHOLE	(3u << 26)
#define COPY	0x01080003u
#define TX	NEURON_DMA_QUEUE_TYPE_TX
#define RX	NEURON_DMA_QUEUE_TYPE_RX
#define Q	1u

struct mem {
	uint64_t h, pa;
};

static int number;		/* of the device */
static int fd;
static struct neuron_native_geometry geo;

static struct mem mem_new_of(uint32_t core, uint64_t bytes, int host)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .nc_id = core,
		.flags = host ? NEURON_NATIVE_ALLOC_HOST : 0,
		.mem_type = host ? NEURON_MEMALLOC_TYPE_UNKNOWN_HOST :
				   NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	int err = call(fd, NEURON_NATIVE_MEM_ALLOC, &a);

	if (err)
		CHECK(!err, "memory: %d", err);
	return (struct mem){ a.mem_handle, a.pa };
}

static struct mem mem_new(uint64_t bytes, int host)
{
	return mem_new_of(0, bytes, host);
}

static int buf_copy(uint64_t h, void *buf, uint64_t size, uint64_t off, int in)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = h, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = in,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static int put(uint64_t h, int type, uint32_t slot, uint32_t ctrl, uint64_t addr)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } d = {
		type == TX ? ctrl | WHOLE : ctrl, type == TX ? COPY : 0, addr,
	};
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = h, .buffer = &d, .num_descs = 1, .offset = slot * 16,
		.queue_type = type,
	};

	return call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c);
}

static int queue(uint32_t eng, uint64_t tx, uint64_t rx)
{
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = eng, .qid = Q, .tx_desc_count = tx ? SLOTS : 0,
		.rx_desc_count = rx ? SLOTS : 0, .tx_handle = tx, .rx_handle = rx,
	};

	return call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q);
}

static int bell(uint32_t tx, uint32_t rx)
{
	struct neuron_ioctl_dma_queue_copy_start s = {
		.qid = Q, .tx_desc_count = tx, .rx_desc_count = rx,
	};

	return call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s);
}

static int take(uint32_t core)
{
	struct neuron_ioctl_semaphore s = { .nc_id = core, .semaphore_index = 1, .value = 7 };

	return call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s);
}

/* Does the word of @h come to @want? */
static int comes(uint64_t h, uint32_t want)
{
	uint32_t word = ~want;
	int i;

	for (i = 0; i < 500 && !buf_copy(h, &word, 4, 0, 0) && word != want; i++)
		usleep(10000);
	return word == want;
}

/* A card would complain, and so fail the run. */
static unsigned long long missed(void)
{
	if (is_card())
		return 0;
	return strtoull(text_read(emu_knob(number, "missed")), NULL, 10);
}

static unsigned long long used(void)
{
	return emu_value(number, "neuron_core0/stats/memory_usage/device_mem/total");
}

static void opened(void)
{
	fd = emu_open(number, O_RDWR);
	geo = geometry(fd);
}

/* When all is back: a card's cores are reset first. */
static void closed(void)
{
	close(fd);
	CHECK(emu_comes_to(number, "reset", 1) && !used(), "nothing is in use: %llu", used());
}

static void plug(const char *reset_msec)
{
	number = plug_device("rings", reset_msec, "0");
	opened();
}

static void unplug(void)
{
	close(fd);
	CHECK(!missed(), "nothing was missed: %llu", missed());
	unplug_device("rings");
}

/* A queue whose slot 0 copies the first word of @src to @dst. */
static void make_copy(struct mem *tx, struct mem *rx, uint64_t src, uint64_t dst)
{
	*tx = mem_new(RING, 0);
	*rx = mem_new(RING, 1);
	CHECK(!put(tx->h, TX, 0, 4, src) && !put(rx->h, RX, 0, 4, dst) && !queue(0, tx->h, rx->h),
	      "a queue with a ring in device memory and one in host memory");
}

static void test_copies(void)
{
	struct mem tx, rx, a = mem_new(RING, 0), b = mem_new(RING, 1);
	uint32_t word = 0x12345678;

	CHECK(!strcmp(text_read(emu_file(number, "isolation")), "checked"), "isolation: checked");
	make_copy(&tx, &rx, a.pa, b.pa);
	CHECK(!buf_copy(a.h, &word, 4, 0, 1) && !bell(1, 1) && comes(b.h, word), "it copies");
	CHECK(bell(1, 1) == EINVAL, "no doorbell over empty slots");
	CHECK(!queue(0, tx.h, rx.h), "set up again, with contents");
	word = 0x55667788;
	CHECK(!buf_copy(a.h, &word, 4, 0, 1) && !bell(1, 1) && comes(b.h, word), "it copies again");
	CHECK(!put(rx.h, RX, 1, 4, geo.tpb_base[0]) && !put(tx.h, TX, 1, 4, a.pa) && !bell(1, 1),
	      "to its state buffer");
	CHECK(!queue(0, 0, 0), "release the queue");
}

static int engine(uint32_t state)
{
	struct neuron_ioctl_dma_eng_set_state s = { .state = state };

	return call(fd, NEURON_IOCTL_DMA_ENG_SET_STATE, &s);
}

/* The engine is paused, so that it has still to fetch what it was told of. */
static void test_in_flight(void)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };
	struct mem tx, rx, a = mem_new(RING, 0), b = mem_new(RING, 0);
	uint32_t word = 0x2468ace;

	make_copy(&tx, &rx, a.pa, b.pa);
	CHECK(queue(1, tx.h, rx.h) == EBUSY, "a ring of another queue: EBUSY");
	CHECK(!buf_copy(a.h, &word, 4, 0, 1) && !engine(0) && !bell(1, 1), "it waits");
	CHECK(put(tx.h, TX, 0, 4, b.pa) == EBUSY && put(rx.h, RX, 0, 4, a.pa) == EBUSY,
	      "what it has to fetch: EBUSY");
	CHECK(!put(tx.h, TX, 1, 4, a.pa) && !put(rx.h, RX, 1, 4, a.pa), "slots behind it");
	CHECK(!engine(2) && comes(b.h, word), "it goes on");
	CHECK(!put(tx.h, TX, 0, 4, b.pa), "and has fetched it");
	CHECK(!engine(3) && engine(2) == EPERM, "an engine that was aborted does not: EPERM");
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset), "a reset ends that");
	CHECK(!queue(0, tx.h, rx.h) && !put(rx.h, RX, 0, 4, b.pa) && !bell(1, 1),
	      "and descriptors stay");
	CHECK(comes(b.h, word), "it copies");
	CHECK(!queue(0, 0, 0), "release the queue");
}

/* ---- what may become a ring ---- */

/* An empty slot is written. */
static int becomes(uint64_t h)
{
	return put(h, RX, 0, 0, 0);
}

/* What is refused as a descriptor is still memory, with its contents. */
static void test_stays_memory(void)
{
	struct mem m = mem_new(RING, 0), named = mem_new(RING, 0);
	uint64_t one = 0x1122334455667788, got = 0;

	CHECK(!buf_copy(m.h, &one, 8, 64, 1), "write");
	CHECK(put(m.h, TX, 0, 4, 0) == EACCES && put(m.h, RX, 0, 4, m.pa) == EACCES,
	      "it names what is not the caller's, or itself: EACCES");
	CHECK(put(m.h, TX, 0, 0x80000004u, named.pa) == EINVAL, "an unknown bit: EINVAL");
	CHECK(put(m.h, TX, RING / 16, 4, named.pa) == EINVAL, "behind its end: EINVAL");
	CHECK(!buf_copy(m.h, &got, 8, 64, 0) && got == one, "its contents are still there");
	CHECK(!buf_copy(m.h, &one, 8, 0, 1), "and it can be written");
	CHECK(!put(m.h, TX, 0, 4, named.pa) && buf_copy(m.h, &one, 8, 0, 1) == EPERM,
	      "what passes makes it a ring: EPERM");
	CHECK(!buf_copy(m.h, &got, 8, 64, 0) && !got, "and its contents are gone");
	mem_free(fd, m.h);
	mem_free(fd, named.h);
}

static void *map(struct mem m, int prot)
{
	return mmap(NULL, RING, prot, MAP_SHARED, fd, m.pa);
}

static void test_mapped(void)
{
	struct mem d = mem_new(RING, 0), h = mem_new(RING, 1), r = mem_new(RING, 1);
	uint8_t bytes[64] = { 1 };
	void *p;

	p = map(d, PROT_READ | PROT_WRITE);
	CHECK(becomes(d.h) == EBUSY && queue(0, d.h, 0) == EBUSY, "mapped for writing: EBUSY");
	memset(p, 0xee, RING);
	munmap(p, RING);
	p = map(d, PROT_READ);
	CHECK(becomes(d.h) == EBUSY, "mapped, and mprotect() could make it writable: EBUSY");
	munmap(p, RING);
	CHECK(!becomes(d.h) && !buf_copy(d.h, bytes, 64, 128, 0) && !bytes[0] && !bytes[63],
	      "not mapped any more: a ring, and its contents are gone");
	p = map(h, PROT_READ | PROT_WRITE);
	munmap(p, RING);
	CHECK(becomes(h.h) == EBUSY, "host memory that was mapped: pages may be pinned: EBUSY");
	CHECK(!becomes(r.h), "host memory that was not");
	p = map(r, PROT_READ | PROT_WRITE);
	CHECK(p == MAP_FAILED, "a ring cannot be mapped for writing");
	p = map(r, PROT_READ);
	CHECK(p != MAP_FAILED && !*(char *)p, "but for reading");
	CHECK(mprotect(p, RING, PROT_READ | PROT_WRITE), "and cannot be made writable");
	munmap(p, RING);
}

static void test_used(void)
{
	struct neuron_ioctl_notifications_init_v2 n = { .nq_type = NQ_TYPE_NOTIFY, .size = RING };
	struct mem e = mem_new(RING, 0), t = mem_new(RING, 0), ring = mem_new(RING, 0);
	struct neuron_native_mem_export x = { .size = sizeof(x), .mem_handle = e.h };
	struct neuron_native_mem_import i = { .size = sizeof(i) };

	CHECK(!call(fd, NEURON_NATIVE_MEM_EXPORT, &x) && becomes(e.h) == EBUSY, "exported: EBUSY");
	i.fd = x.fd;
	CHECK(!call(fd, NEURON_NATIVE_MEM_IMPORT, &i), "import it");
	close(x.fd);
	CHECK(becomes(e.h) == EBUSY && becomes(i.mem_handle) == EBUSY, "imported: EBUSY");
	CHECK(!put(ring.h, RX, 0, 4, i.pa), "an import can be named");
	CHECK(!mem_free(fd, i.mem_handle) && becomes(e.h) == EBUSY, "named by a slot: EBUSY");
	CHECK(!put(ring.h, RX, 0, 4, t.pa) && !becomes(e.h), "no user any more: a ring");
	CHECK(put(ring.h, RX, 0, 4, e.pa) == EACCES, "which nobody names");
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &n) && becomes(n.mem_handle) == EBUSY,
	      "a notification queue: EBUSY");
	mem_free(fd, e.h);
	mem_free(fd, t.h);
	mem_free(fd, ring.h);
}

/* ---- what may be done to a ring ---- */

static int mem_copy(uint64_t src, uint64_t dst, uint32_t async)
{
	struct neuron_ioctl_mem_copy64 c = {
		.src_mem_handle = src, .dst_mem_handle = dst, .size = 4096,
	};
	struct neuron_ioctl_mem_copy_async64 a = {
		.src_mem_handle = src, .dst_mem_handle = dst, .size = 4096, .pwait_handle = ~0u,
	};

	return async ? call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &a) :
		       call(fd, NEURON_IOCTL_MEM_COPY64, &c);
}

static void rewrite(struct mem m, const char *what)
{
	struct neuron_ioctl_memset64 s = { .mem_handle = m.h, .size = 4096, .value = 7 };
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = m.h };
	struct neuron_native_mem_grow g = {
		.size = sizeof(g), .mem_handle = m.h, .bytes = 2 * 512 * KIB,
	};
	static uint8_t page[256 * KIB];
	struct mem other = mem_new(RING, 0);
	struct neuron_ioctl_dmabuf_fd d;
	void *p = map(m, PROT_READ);
	int db = -1;

	d = (struct neuron_ioctl_dmabuf_fd){ (uintptr_t)p, 4096, &db };
	CHECK(buf_copy(m.h, page, 4096, 0, 1) == EPERM, "%s: BUF_COPY: EPERM", what);
	CHECK(buf_copy(m.h, page, sizeof(page), 0, 1) == EPERM, "%s: of pinned pages: EPERM", what);
	CHECK(mem_copy(other.h, m.h, 0) == EPERM, "%s: MEM_COPY: EPERM", what);
	CHECK(mem_copy(other.h, m.h, 1) == EPERM, "%s: an asynchronous one: EPERM", what);
	CHECK(call(fd, NEURON_IOCTL_MEMSET64, &s) == EPERM, "%s: MEMSET: EPERM", what);
	CHECK(call(fd, NEURON_NATIVE_MEM_EXPORT, &e) == EPERM, "%s: export: EPERM", what);
	CHECK(call(fd, NEURON_IOCTL_DMABUF_FD, &d) == EPERM, "%s: of a mapping: EPERM", what);
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &g), "%s: it does not grow", what);
	g.bytes = 4096;
	g.flags = NEURON_NATIVE_GROW_SHRINK;
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &g), "%s: or shrink", what);
	/* A copy to user memory that is the mapping. */
	CHECK(buf_copy(other.h, p, 4096, 0, 0) == EFAULT, "%s: through its mapping: EFAULT", what);
	CHECK(buf_copy(other.h, p, RING, 0, 0) == EFAULT, "%s: all of it: EFAULT", what);
	CHECK(put(m.h, RX, 0, 4, other.pa) == EINVAL, "%s: other side: EINVAL", what);
	CHECK(!mem_copy(m.h, other.h, 0) && !buf_copy(m.h, page, 4096, 0, 0), "%s: read it", what);
	munmap(p, RING);
	mem_free(fd, other.h);
}

static void test_rewriting(void)
{
	struct mem tx = mem_new(512 * KIB, 0), rx = mem_new(RING, 0), a = mem_new(RING, 0);
	struct mem host = mem_new(512 * KIB, 1);
	uint8_t before[1024], after[1024];

	CHECK(!put(tx.h, TX, 3, 4, a.pa) && !put(rx.h, RX, 0, 4, a.pa), "two rings");
	CHECK(!buf_copy(tx.h, before, 1024, 0, 0), "read one");
	rewrite(tx, "a ring");
	CHECK(!queue(0, tx.h, rx.h), "a queue");
	rewrite(tx, "a ring of a queue");
	CHECK(!buf_copy(tx.h, after, 1024, 0, 0) && !memcmp(before, after, 1024), "as it was");
	CHECK(!put(host.h, TX, 3, 4, a.pa), "one in host memory");
	rewrite(host, "a ring in host memory");
	CHECK(!buf_copy(host.h, after, 1024, 0, 0) && !memcmp(before, after, 1024), "as it was");
	CHECK(!queue(0, 0, 0), "release the queue");
	CHECK(buf_copy(tx.h, before, 4, 0, 1) == EPERM, "it stays a ring: EPERM");
	mem_free(fd, tx.h);
	mem_free(fd, rx.h);
	mem_free(fd, host.h);
	CHECK(!buf_copy(a.h, before, 4, 0, 1), "other memory can be written");
	mem_free(fd, a.h);
}

/* ---- what descriptors may name ---- */

static int go[2], come[2];

/* Another process, with memory and core 1. */
static void neighbour(void)
{
	struct mem m;
	char c;

	opened();
	m = mem_new_of(1, RING, 0);
	CHECK(!take(1), "another process has core 1");
	fflush(stdout);
	if (write(come[1], &m, sizeof(m)) != sizeof(m) || read(go[0], &c, 1) != 1)
		_exit(1);
}

static pid_t neighbour_starts(struct mem *theirs)
{
	pid_t pid;

	if (pipe(go) || pipe(come))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		neighbour();
		fflush(stdout);
		_exit(failed);
	}
	CHECK(read(come[0], theirs, sizeof(*theirs)) == sizeof(*theirs), "its memory");
	return pid;
}

static void neighbour_ends(pid_t pid)
{
	int status = -1, i;

	CHECK(write(go[1], "", 1) == 1 && waitpid(pid, &status, 0) == pid && !status, "it ends");
	for (i = 0; i < 2; i++) {
		close(go[i]);
		close(come[i]);
	}
}

static void test_targets(void)
{
	struct mem tx = mem_new(RING, 0), rx = mem_new(RING, 0), a = mem_new(RING, 0);
	struct mem freed = mem_new(RING, 0), theirs = { 0 };
	uint64_t core = geo.tpb_base[0];
	pid_t pid = neighbour_starts(&theirs);

	mem_free(fd, freed.h);
	CHECK(!queue(0, tx.h, rx.h), "a queue");
	{
		const struct {
			uint64_t addr;
			uint32_t len;
			int err;
			const char *what;
		} rows[] = {
			{ a.pa, 4, 0, "its memory" },
			{ a.pa, 0, 0, "64 KiB of it" },
			{ a.pa + 4, 0, EACCES, "64 KiB that end behind it" },
			{ theirs.pa, 4, EACCES, "memory of another process" },
			{ freed.pa, 4, EACCES, "freed memory" },
			{ geo.hbm[0].base, 4, EACCES, "the firmware's memory" },
			{ tx.pa, 4, EACCES, "a ring" },
			{ rx.pa + RING - 4, 4, EACCES, "the ring itself" },
			{ ~0ull - 1, 4, EACCES, "around the end" },
			{ ~0ull, 0, EACCES, "64 KiB around the end" },
			{ core, 4, 0, "its state buffer" },
			{ core + NEURON_ISA_SEM_INC_OFF(3), 4, 0, "its semaphores" },
			{ core + NEURON_ISA_EVENT_OFF(3), 4, 0, "its events" },
			{ core + NEURON_ISA_FIFO_OFF(2), 64, 0, "a FIFO" },
			{ core + 0x2600000, 4, EACCES, "registers of its core" },
			{ core + geo.tpb_size - 4, 4, EACCES, "the end of its window" },
			{ geo.tpb_base[1], 4, EACCES, "a core of another process" },
			{ geo.tpb_base[2], 4, EACCES, "a core of nobody" },
		};
		uint32_t i;

		for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			int w = put(rx.h, RX, 0, rows[i].len, rows[i].addr);
			int r = put(tx.h, TX, 0, rows[i].len, rows[i].addr);

			CHECK(w == rows[i].err && r == rows[i].err, "%s: %d, %d", rows[i].what, w, r);
		}
	}
	neighbour_ends(pid);
	CHECK(!queue(0, 0, 0), "release the queue");
}

/* A queue that is refused for another reason leaves the memory of its first ring alone. */
static void test_refused(void)
{
	struct mem tx = mem_new(RING, 0), rx = mem_new(RING, 0), theirs;
	struct neuron_ioctl_dma_queue_init q = {
		.qid = Q, .tx_desc_count = SLOTS, .tx_handle = tx.h, .rx_handle = rx.h,
		.rx_desc_count = SLOTS + 1,
	};
	uint32_t word = 0x13579bd, seen = 0;
	pid_t pid = neighbour_starts(&theirs);

	CHECK(!buf_copy(tx.h, &word, 4, 0, 1) && !buf_copy(rx.h, &word, 4, 0, 1), "contents");
	CHECK(call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q) == EINVAL, "a wrong count: EINVAL");
	q.rx_desc_count = SLOTS;
	q.rx_handle = 0x7ffffff;
	CHECK(call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q) == ENOENT, "a wrong handle: ENOENT");
	CHECK(queue(0, tx.h, tx.h) == EINVAL, "one ring for both sides: EINVAL");
	CHECK(queue(geo.engines_per_core, tx.h, rx.h) == EBUSY, "a core of another process: EBUSY");
	CHECK(!buf_copy(tx.h, &seen, 4, 0, 0) && seen == word, "the contents are there: %#x", seen);
	CHECK(!buf_copy(tx.h, &word, 4, 0, 1) && !buf_copy(rx.h, &word, 4, 0, 1),
	      "and can be written: they are no rings");
	neighbour_ends(pid);
	CHECK(!queue(0, tx.h, rx.h) && !buf_copy(tx.h, &seen, 4, 0, 0) && !seen,
	      "a queue that is not refused makes rings of them");
	CHECK(!queue(0, 0, 0) && !mem_free(fd, tx.h) && !mem_free(fd, rx.h), "free them");
}

/* ---- cores that come later, memory that goes ---- */

static void test_staged(void)
{
	struct mem tx = mem_new(RING, 0), rx = mem_new(RING, 0), a = mem_new(RING, 0);
	const uint32_t word = 9;

	CHECK(!put(tx.h, TX, 0, 4, a.pa) && !put(rx.h, RX, 0, 4, geo.tpb_base[2]) &&
	      !put(rx.h, RX, 1, 4, geo.tpb_base[3]), "descriptors for cores of nobody wait");
	CHECK(queue(0, tx.h, rx.h) == EACCES, "QUEUE_INIT does not: EACCES");
	CHECK(!take(2) && queue(0, tx.h, rx.h) == EACCES, "with one of them: EACCES");
	CHECK(bell(1, 1), "there is no queue to start");
	CHECK(!take(3) && !queue(0, tx.h, rx.h), "with both of them it starts");
	CHECK(!buf_copy(a.h, (void *)&word, 4, 0, 1) && !bell(1, 1), "it runs");
	CHECK(put(rx.h, RX, 1, 4, geo.tpb_base[4]) == EACCES, "nothing waits any more: EACCES");
	CHECK(!queue(0, 0, 0), "release the queue");
}

static void test_freed(void)
{
	struct mem tx, rx, a = mem_new(RING, 0), b = mem_new(RING, 0), c;
	unsigned long long before = used();
	uint32_t word = 0xabcd;

	make_copy(&tx, &rx, a.pa, b.pa);
	CHECK(!mem_free(fd, b.h) && used() == before + RING, "a queue names it: it is kept");
	c = mem_new(RING, 0);
	CHECK(c.pa != b.pa && !buf_copy(a.h, &word, 4, 0, 1) && !bell(1, 1), "and still copied to");
	usleep(100000);
	word = 1;
	CHECK(!buf_copy(c.h, &word, 4, 0, 0) && !word, "which nobody sees");
	CHECK(!mem_free(fd, c.h) && !queue(0, 0, 0) && used() == before + RING, "also afterwards");
	CHECK(!put(rx.h, RX, 0, 4, a.pa) && used() == before, "until the slot names other memory");
	CHECK(!mem_free(fd, a.h) && used() == before - RING, "no queue: it is free at once");
	CHECK(!queue(0, tx.h, rx.h) && bell(1, 1) == EINVAL, "and the slots are empty: EINVAL");
	CHECK(!buf_copy(tx.h, &word, 4, 0, 0) && !word, "in the ring, too");
	CHECK(!mem_free(fd, tx.h) && !mem_free(fd, rx.h) && !queue(0, 0, 0) &&
	      used() == before - 2 * RING, "rings can be freed");
}

/* Of a copy that is under way nobody knows whether it has ended. */
static void test_rewritten(void)
{
	struct mem tx, rx, a = mem_new(RING, 0), b = mem_new(RING, 0);
	unsigned long long before = used();

	make_copy(&tx, &rx, a.pa, b.pa);
	CHECK(!put(rx.h, RX, 0, 4, a.pa) && !mem_free(fd, b.h) && used() == before + RING,
	      "what a slot has named is kept");
	CHECK(!queue(0, 0, 0) && used() == before, "until the queue is released");
	CHECK(!mem_free(fd, a.h) && !mem_free(fd, tx.h) && !mem_free(fd, rx.h), "free the rest");
}

static void test_ring_freed(void)
{
	struct mem tx, rx, a = mem_new(RING, 0), b = mem_new(RING, 0);
	unsigned long long before = used();
	uint32_t word = 0xbcde;

	make_copy(&tx, &rx, a.pa, b.pa);
	CHECK(!mem_free(fd, tx.h) && !mem_free(fd, rx.h) && used() == before + RING,
	      "rings of a queue are kept");
	CHECK(!buf_copy(a.h, &word, 4, 0, 1) && !bell(1, 1) && comes(b.h, word), "and go on");
	CHECK(!mem_free(fd, a.h) && !mem_free(fd, b.h) && used() == before + RING,
	      "with what they name");
	CHECK(!queue(0, 0, 0) && used() == before - 2 * RING, "until the queue is released");
}

static void test_registers(void)
{
	struct neuron_ioctl_device_info info = { 0 };
	uint32_t data[2] = { 1, 1 };
	uint64_t addr[2];
	struct neuron_ioctl_bar_rw rw = { .address = (void *)addr, .data = data, .count = 2 };
	struct neuron_ioctl_program_engine_nc64 p = {
		.dst = geo.tpb_base[0] + (2 << 20), .buffer = data, .size = 8,
	};

	CHECK(!call(fd, NEURON_IOCTL_DEVICE_INFO, &info), "where its registers are");
	addr[0] = info.bar_address[0] + 0xd0000000 + NEURON_ISA_SEM_SET_OFF(3);
	addr[1] = info.bar_address[0] + 0xd0000000 + NEURON_ISA_EVENT_OFF(3);
	CHECK(!call(fd, NEURON_IOCTL_BAR_WRITE, &rw), "write a semaphore and an event");
	addr[1] = info.bar_address[0] + 0xd0000000 + 0x2600000;
	data[0] = 5;
	CHECK(call(fd, NEURON_IOCTL_BAR_WRITE, &rw) == EPERM, "another register: EPERM");
	rw.count = 1;
	addr[0] = info.bar_address[0] + 0xd0000000 + NEURON_ISA_SEM_READ_OFF(3);
	CHECK(!call(fd, NEURON_IOCTL_BAR_READ, &rw) && data[0] == 1, "and nothing was written");
	CHECK(!call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p), "write to the state buffer");
	p.dst = geo.tpb_base[0] + 0x2600000;
	CHECK(call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p) == EPERM, "to registers: EPERM");
	p.dst = geo.tpb_base[0] + geo.sbuf_size - 4;
	CHECK(call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p) == EPERM, "and across the end: EPERM");
}

/* ---- the end of a process ---- */

/* Core 0 makes accesses to memory and to core 1 until it is reset. */
static void owner(void)
{
	struct mem tx, rx, a, b;
	uint32_t i;

	opened();
	a = mem_new(RING, 0);
	b = mem_new(RING, 0);
	make_copy(&tx, &rx, a.pa, b.pa);
	CHECK(!take(1), "another core");
	for (i = 1; i < 40; i++)
		if (put(tx.h, TX, i, 4, a.pa) || put(rx.h, RX, i, 4, i % 2 ? b.pa : geo.tpb_base[1]))
			CHECK(0, "slot %u", i);
	CHECK(!bell(40, 40), "a queue is at work");
}

/* Not before core 0 is reset. */
static void next_owner(void)
{
	opened();
	CHECK(take(1) == EIO, "core 0 may still reach core 1, which nobody gets: EIO");
	CHECK(used() == 3 * RING, "what its rings are and name is held: %llu", used());
	resets_end();
	CHECK(!take(1), "after a reset of core 0 that works, it can be used");
	CHECK(!used(), "and nothing is held");
}

static void test_killed(void)
{
	closed();
	resets_take(number, FOR_EVER, "1");
	in_child(owner);
	CHECK(emu_comes_to(number, "reset", 2), "the owner is gone, and core 0 is not reset");
	resets_take(number, FOR_EVER, "1");
	in_child(next_owner);
	opened();
}

/* ---- users ---- */

#define DOMAIN	"/sys/module/neuron/parameters/domain"

static int opens(void)
{
	int other = emu_open(number, O_RDWR), err = other < 0 ? errno : 0;

	close(other);
	return err;
}

static void another_user(void)
{
	char c;

	/* A copy of a descriptor keeps its process attached. */
	close(fd);
	if (setuid(1000))
		exit(1);
	CHECK(opens() == EBUSY, "a program of another user cannot share the device: EBUSY");
	CHECK(write(come[1], "", 1) == 1 && read(go[0], &c, 1) == 1 && !opens(),
	      "the device is free: it can");
}

/* What a program has left at work reaches memory of whoever comes next. */
static void another_user_later(void)
{
	fflush(stdout);
	/* Root alone can make an end of it. */
	if (!fork()) {
		char c;

		_exit(read(go[0], &c, 1) != 1 || (resets_end(), 0));
	}
	if (setuid(1000))
		exit(1);
	CHECK(opens() == EIO, "a core that does not reset is not passed on: EIO");
	CHECK(write(go[1], "", 1) == 1 && wait(NULL) > 0, "its resets end");
	CHECK(!opens(), "nor must it be: a reset that works is enough");
}

static void test_domain(void)
{
	char node[64], c;
	int status = -1, observer;
	pid_t pid;

	if (pipe(go) || pipe(come))
		exit(1);
	snprintf(node, sizeof(node), "/dev/neuron%d", number);
	CHECK(!chmod(node, 0666), "anybody may open it");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		another_user();
		fflush(stdout);
		_exit(failed);
	}
	if (read(come[0], &c, 1) != 1)
		exit(1);
	close(fd);
	observer = emu_open(number, O_WRONLY);
	CHECK(write(go[1], "", 1) == 1 && waitpid(pid, &status, 0) == pid && !status, "it ends");
	close(observer);
	opened();
	CHECK(!text_write(DOMAIN, "process"), "domain=process");
	pid = fork();
	if (!pid)
		_exit(opens() != EBUSY);
	CHECK(waitpid(pid, &status, 0) == pid && !status, "no other program: EBUSY");
	CHECK(!opens(), "the same one");
	CHECK(text_write(DOMAIN, "nobody") && !text_write(DOMAIN, "user"), "domain=user");
	closed();
	resets_take(number, FOR_EVER, "1");
	in_child(owner);
	CHECK(emu_comes_to(number, "reset", 2), "the owner is gone, and core 0 is not reset");
	resets_take(number, FOR_EVER, "1");
	in_child(another_user_later);
	opened();
}

/* ---- what the last owner left in a state buffer ---- */

#define SECRET	0x5ec2e7a5u
#define TOP	(geo.sbuf_size - 4096)

static int bound;

static volatile uint32_t *state_buffer(uint32_t core, uint64_t at)
{
	struct neuron_ioctl_resource_mmap_info r = {
		.block = NEURON_DM_BLOCK_TPB, .block_id = core,
		.resource = NEURON_DM_RESOURCE_SBUF,
	};
	void *p = MAP_FAILED;

	if (!call(fd, NEURON_IOCTL_RESOURCE_MMAP_INFO, &r))
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, r.offset + at);
	CHECK(p != MAP_FAILED, "the state buffer of core %u", core);
	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static void leaves(void)
{
	opened();
	*state_buffer(1, TOP) = SECRET;
	*state_buffer(2, TOP) = SECRET;
}

/* mmap() makes an owner at once, and what was there is cleared later, from the bottom. */
static void reaches(void)
{
	struct mem tx, rx, to;
	uint32_t word = 1;
	int err, i;

	opened();
	tx = mem_new(RING, 1);
	rx = mem_new(RING, 1);
	to = mem_new(RING, 0);
	CHECK(!buf_copy(to.h, &word, 4, 0, 1) && !put(rx.h, RX, 0, 4, to.pa) &&
	      !(bound ? queue(0, tx.h, rx.h) : put(tx.h, TX, 0, 4, geo.tpb_base[1] + TOP)),
	      "a queue of core 0, ring %s", bound ? "bound" : "not bound");
	state_buffer(1, 0);
	for (i = 0; i < 5000; i++) {
		err = bound ? put(tx.h, TX, 0, 4, geo.tpb_base[1] + TOP) : queue(0, tx.h, rx.h);
		if (err != EBUSY)
			break;
		usleep(1000);
	}
	CHECK(!err && !bell(1, 1) && comes(to.h, 0), "finds zeros in the one of core 1 (%d, %d)",
	      err, i);
}

static void resets_it(void)
{
	struct neuron_ioctl_device_reset r = { .nc_map = 1 << 2 };
	volatile uint32_t *p;

	opened();
	p = state_buffer(2, TOP);
	CHECK(emu_comes_to(number, "reset", 2), "it cannot be cleared");
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &r) && !*p, "it is when the owner resets the core");
}

static void test_leftovers(void)
{
	closed();
	for (bound = 0; bound < 2; bound++) {
		in_child(leaves);
		CHECK(emu_comes_to(number, "reset", 1), "its owner is gone");
		in_child(reaches);
		CHECK(emu_comes_to(number, "reset", 1), "and the next one");
	}
	if (!is_card()) {
		in_child(leaves);
		CHECK(emu_comes_to(number, "reset", 1) &&
		      !text_write(emu_knob(number, "inject_dma_abort"), "1"), "the next DMA fails");
		in_child(resets_it);
	}
	opened();
}

int main(void)
{
	plug("300");
	test_copies();
	test_in_flight();
	test_stays_memory();
	test_mapped();
	test_used();
	test_rewriting();
	test_targets();
	test_refused();
	test_staged();
	closed();
	opened();
	test_freed();
	test_rewritten();
	test_ring_freed();
	test_registers();
	test_killed();
	test_domain();
	test_leftovers();
	unplug();
	return failed != 0;
}
