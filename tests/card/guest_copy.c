// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron_pci on cards of all kinds: device memory that held a pattern reads as zero, copies in
 * all directions are equal bit by bit, rings of a process run, semaphores count, cores reset.
 */
#include <sys/mman.h>

#include "guest_cards.h"

#define KIB		1024u
#define MIB		(1024u * KIB)
/* Of each HBM 64 MiB are used, 16 of them by firmware. */
#define WHOLE		(40 * MIB)
#define PART		(2 * MIB + 12 * KIB)
#define RING		64u

static unsigned char *out, *in;

static int buf_copy(int fd, uint64_t handle, void *buf, uint64_t size, uint64_t off, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static uint64_t host_alloc(int fd, uint64_t size, uint64_t *pa)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_NCDEV_HOST,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "%llu KiB of host memory",
	      (unsigned long long)size >> 10);
	*pa = a.pa;
	return a.mem_handle;
}

static void pattern(unsigned int seed)
{
	unsigned int i;

	for (i = 0; i < PART; i++) {
		seed = seed * 1664525 + 1013904223;
		out[i] = seed >> 24;
	}
	memset(in, 0x5a, PART);
}

/* What the model filled with a pattern; the allocation is too large to miss it. */
static void test_zero(const struct card *c, int fd, unsigned int hbm)
{
	uint64_t handle = alloc(fd, WHOLE, hbm, 0);
	unsigned int at, i, bad = 0;

	for (at = 0; at < WHOLE; at += 2 * MIB) {
		memset(in, 0x5a, 2 * MIB);
		bad += buf_copy(fd, handle, in, 2 * MIB, at, 0) != 0;
		for (i = 0; i < 2 * MIB; i++)
			bad += in[i] != 0;
	}
	CHECK(!bad, "%s: fresh memory of HBM %u reads as zero", c->name, hbm);
	mem_free(fd, handle);
}

static void test_copies(const struct card *c, int fd, unsigned int hbm)
{
	uint64_t a = alloc(fd, PART, hbm, 0), b, h, pa;
	struct neuron_ioctl_mem_copy64 copy = { .src_mem_handle = a, .size = PART };
	struct neuron_ioctl_memset64 set = { .offset = 4097, .value = 0xc3, .size = MIB + 5 };

	b = alloc(fd, PART, (hbm + 1) % c->hbms, c->cores - 1);
	h = host_alloc(fd, PART, &pa);
	pattern(hbm + c->id);
	CHECK(!buf_copy(fd, a, out, PART, 0, 1) && !buf_copy(fd, a, in, PART, 0, 0) &&
	      !memcmp(out, in, PART), "%s: HBM %u gives back what it got", c->name, hbm);
	copy.dst_mem_handle = b;
	CHECK(!call(fd, NEURON_IOCTL_MEM_COPY64, &copy) && !buf_copy(fd, b, in, PART, 0, 0) &&
	      !memcmp(out, in, PART), "%s: a copy from HBM %u to the next", c->name, hbm);
	copy.src_mem_handle = b;
	copy.dst_mem_handle = h;
	memset(in, 0, PART);
	CHECK(!call(fd, NEURON_IOCTL_MEM_COPY64, &copy) && !buf_copy(fd, h, in, PART, 0, 0) &&
	      !memcmp(out, in, PART), "%s: a copy from there to host memory", c->name);
	set.mem_handle = a;
	memset(out + set.offset, set.value, set.size);
	CHECK(!call(fd, NEURON_IOCTL_MEMSET64, &set) && !buf_copy(fd, a, in, PART, 0, 0) &&
	      !memcmp(out, in, PART), "%s: memset", c->name);
	CHECK(!buf_copy(fd, a, out + 7, 100001, 33333, 1) &&
	      !buf_copy(fd, a, in + 3, 100001, 33333, 0) && !memcmp(out + 7, in + 3, 100001),
	      "%s: at odd places", c->name);
	CHECK(!mem_free(fd, a) && !mem_free(fd, b) && !mem_free(fd, h), "%s: all freed", c->name);
}

/* The processor sees device memory through BAR 4. */
static void test_map(const struct card *c, int fd)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = MIB, .hbm = 1,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	unsigned char *p;

	if (call(fd, NEURON_NATIVE_MEM_ALLOC, &a)) {
		CHECK(0, "%s: memory to map", c->name);
		return;
	}
	pattern(c->id);
	p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, a.mmap_offset);
	CHECK(p != MAP_FAILED, "%s: HBM 1 can be mapped", c->name);
	if (p == MAP_FAILED)
		return;
	CHECK(!buf_copy(fd, a.mem_handle, out, MIB, 0, 1) && !memcmp(p, out, 64 * KIB),
	      "%s: the processor sees what DMA wrote", c->name);
	memset(p, 0x77, 4096);
	CHECK(!buf_copy(fd, a.mem_handle, in, 4096, 0, 0) && in[0] == 0x77 && in[4095] == 0x77,
	      "%s: DMA sees what the processor wrote", c->name);
	munmap(p, MIB);
	mem_free(fd, a.mem_handle);
}

static bool ring_write(int fd, uint64_t ring, const uint64_t *desc, unsigned int n, int type)
{
	struct neuron_ioctl_dma_copy_descriptors d = {
		.mem_handle = ring, .buffer = (void *)desc, .num_descs = n, .queue_type = type,
	};

	return !call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &d);
}

/* A copy reads no register, and nothing is looked at while nobody waits. */
static void test_registers(const struct card *c, int fd)
{
	uint64_t handle = alloc(fd, MIB, 0, 0);
	unsigned long reads, accesses;
	int i, err = buf_copy(fd, handle, out, 4096, 0, 1);

	reads = tell(c, "reads");
	for (i = 0; !err && i < 200; i++)
		err = buf_copy(fd, handle, i % 2 ? out : in, 4096, 4096 * i, i % 2);
	reads = tell(c, "reads") - reads;
	CHECK(!err && !reads, "%s: %d copies read %lu registers", c->name, i, reads);
	accesses = tell(c, "accesses");
	sleep(1);
	accesses = tell(c, "accesses") - accesses;
	CHECK(!accesses, "%s: %lu accesses in a second in which nobody waits", c->name, accesses);
	mem_free(fd, handle);
}

/* Host memory to host memory on a queue of an engine of the last core. */
static void test_ring(const struct card *c, int fd)
{
	const uint64_t ctrl = 4096 | 1u << 24, tx_bits = 3u << 26, meta = 0x01080003ULL << 32;
	uint64_t tx, rx, src, dst, pa[4];
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 16 * c->cores - 3, .qid = 5, .tx_desc_count = RING, .rx_desc_count = RING,
	};
	struct neuron_ioctl_dma_queue_copy_start start = {
		.eng_id = q.eng_id, .qid = q.qid, .tx_desc_count = 2, .rx_desc_count = 2,
	};
	unsigned int i;

	tx = host_alloc(fd, RING * 16, &pa[0]);
	rx = host_alloc(fd, RING * 16, &pa[1]);
	src = host_alloc(fd, 8192, &pa[2]);
	dst = host_alloc(fd, 8192, &pa[3]);
	pattern(c->id + 1);
	uint64_t txd[4] = { ctrl | tx_bits | meta, pa[2], ctrl | tx_bits | meta, pa[2] + 4096 };
	uint64_t rxd[4] = { ctrl, pa[3] + 4096, ctrl, pa[3] };

	q.tx_handle = tx;
	q.rx_handle = rx;
	CHECK(!buf_copy(fd, src, out, 8192, 0, 1) &&
	      ring_write(fd, tx, txd, 2, NEURON_DMA_QUEUE_TYPE_TX) &&
	      ring_write(fd, rx, rxd, 2, NEURON_DMA_QUEUE_TYPE_RX), "%s: descriptors of a ring", c->name);
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q) &&
	      !call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start), "%s: a ring starts", c->name);
	for (i = 0; i < 200; i++) {
		if (!buf_copy(fd, dst, in, 8192, 0, 0) && !memcmp(in, out + 4096, 4096))
			break;
		usleep(10000);
	}
	CHECK(!memcmp(in, out + 4096, 4096) && !memcmp(in + 4096, out, 4096),
	      "%s: its descriptors were done", c->name);
}

static void test_core(const struct card *c, int fd)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9, .value = 7 };
	struct neuron_ioctl_notifications_init_v2 nq = {
		.nq_dev_id = 1, .nq_type = 1, .engine_index = 2, .size = 4096, .on_host_memory = 1,
	};
	struct neuron_ioctl_notifications_init_v2 other = nq;
	struct neuron_ioctl_device_reset reset = { .nc_map = 2 };
	struct neuron_ioctl_device_ready ready = { .result = -1 };
	unsigned long asked = tell(c, "resets");

	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "%s: semaphore set", c->name);
	s.value = 3;
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_INCREMENT, &s), "%s: incremented", c->name);
	s.value = 2;
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_DECREMENT, &s), "%s: decremented", c->name);
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) && s.value == 8, "%s: it is %u", c->name,
	      s.value);
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &nq), "%s: notification queue", c->name);
	/* The card has one queue of an engine, which must be off when another type gets it. */
	other.nq_type = 2;
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &other), "%s: one of another type",
	      c->name);
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset), "%s: reset of a core", c->name);
	ready.request_id = reset.request_id;
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET_READY, &ready) && !ready.result, "%s: it ends: %d",
	      c->name, ready.result);
	CHECK(tell(c, "resets") > asked, "%s: the card was asked for it", c->name);
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) && !s.value,
	      "%s: the semaphore is %u after it", c->name, s.value);
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &nq), "%s: and another queue", c->name);
}

static const char *isolation(const struct card *c)
{
	char dir[100];

	snprintf(dir, sizeof(dir), "/sys/devices/virtual/neuron_device/neuron%u", c->number);
	return text_of(dir, "isolation");
}

/* What makes a card move data is looked at before the card sees it. */
static void test_refused(const struct card *c, int fd)
{
	struct neuron_native_geometry geo = geometry(fd);
	const uint64_t ctrl = 4096 | 1u << 24;
	uint64_t pa, own, ring = host_alloc(fd, RING * 16, &pa), busy = host_alloc(fd, 4096, &own);
	const struct {
		const char *what;
		uint64_t word, addr;
		bool ok;
	} rows[] = {
		{ "its memory", ctrl, own, true },
		{ "more than its memory", ctrl, own + 4, false },
		{ "the ring", ctrl, pa, false },
		{ "the firmware's memory", ctrl, geo.hbm[0].base, false },
		{ "host memory of others", ctrl, geo.host_window | 0x1000, false },
		{ "a core of nobody", ctrl, geo.tpb_base[0], true },
		{ "registers of a core", ctrl, geo.tpb_base[0] + 0x3000000, false },
		{ "an unknown operation", ctrl | 1ULL << 32, own, false },
	};
	struct neuron_ioctl_program_engine_nc program = {
		.dst = geo.tpb_base[0] + 0x3000000, .buffer = out, .size = 64,
	};
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = ring };
	unsigned int i;
	void *p;

	CHECK(!strcmp(isolation(c), "checked"), "%s: isolation %s", c->name, isolation(c));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t d[2] = { rows[i].word, rows[i].addr };

		CHECK(ring_write(fd, ring, d, 1, NEURON_DMA_QUEUE_TYPE_RX) == rows[i].ok,
		      "%s: a descriptor for %s", c->name, rows[i].what);
	}
	CHECK(buf_copy(fd, ring, out, 64, 0, 1) == EPERM, "%s: a ring is not written", c->name);
	CHECK(call(fd, NEURON_NATIVE_MEM_EXPORT, &e) == EPERM, "%s: or exported", c->name);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, pa);
	CHECK(p == MAP_FAILED, "%s: or mapped for writing", c->name);
	CHECK(call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC, &program) == EPERM, "%s: nor are registers",
	      c->name);
	CHECK(!mem_free(fd, ring) && !mem_free(fd, busy), "%s: both are freed", c->name);
}

/* The driver checks what programs tell the card. */
static void checked(const struct card *c, int fd)
{
	unsigned int h;

	for (h = 0; h < c->hbms; h++) {
		test_zero(c, fd, h);
		test_copies(c, fd, h);
	}
	test_registers(c, fd);
	test_map(c, fd);
	test_refused(c, fd);
	test_ring(c, fd);
	test_core(c, fd);
	test_ring(c, fd);
}

static void trusted(const struct card *c, int fd)
{
	CHECK(!strcmp(isolation(c), "trusted"), "%s: isolation %s", c->name, isolation(c));
	test_ring(c, fd);
	test_core(c, fd);
	test_ring(c, fd);
}

static void with_each(void (*test)(const struct card *c, int fd))
{
	struct card *c;
	int fd;

	for (c = next_card(NULL); c && !failed; c = next_card(c)) {
		fd = open_card(c);
		CHECK(fd >= 0, "%s can be opened", c->name);
		if (fd >= 0)
			test(c, fd);
		close(fd);
	}
	CHECK(unload(), "unload");
}

int main(void)
{
	out = malloc(PART + 64);
	in = malloc(PART + 64);
	find_cards();
	CHECK(out && in && load("hbm_limit=64"), "load");
	with_each(checked);
	CHECK(load_trusted("hbm_limit=64"), "load for programs that are trusted");
	with_each(trusted);
	return failed != 0;
}
