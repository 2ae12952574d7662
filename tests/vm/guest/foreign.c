// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sequences of calls as other runtimes make them, and what becomes of each in every mode
 * (kmod/dma/RINGS.md): where the device checks addresses, where the driver does, and where
 * nobody does because programs are trusted.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <sys/mman.h>

#include "check.h"
#include "device.h"

#define SLOTS	64u
#define BYTES	4096u
#define COPY	0x01080003u
#define WHOLE	(3u << 26)
#define TX	NEURON_DMA_QUEUE_TYPE_TX
#define RX	NEURON_DMA_QUEUE_TYPE_RX
#define WORD	0x5eed1234u

enum mode { DEVICE, CHECKED, TRUSTED, MODES };

static const char *const mode_names[MODES] = { "device", "checked", "trusted" };

struct mem {
	uint64_t h, pa;
};

/* Rings, and what is copied from where to where. */
static struct setup {
	int fd;
	struct neuron_native_geometry geo;
	struct mem tx, rx, from, to;
} s;

static char outcome[64];

/* The call that was refused, and why. */
static int refused(const char *what, int err)
{
	if (err)
		snprintf(outcome, sizeof(outcome), "%s %s", what, strerrorname_np(err));
	return err;
}

static struct mem host(uint64_t bytes)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = bytes, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_UNKNOWN_HOST,
	};

	refused("alloc", call(s.fd, NEURON_NATIVE_MEM_ALLOC, &a));
	return (struct mem){ a.mem_handle, a.pa };
}

static int word(uint64_t h, uint32_t *val, int in)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = h, .buffer = val, .size = 4, .copy_to_mem_handle = in,
	};

	return call(s.fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static int put(struct mem ring, int type, uint64_t addr)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } d = {
		BYTES | 1u << 24 | (type == TX ? WHOLE : 0), type == TX ? COPY : 0, addr,
	};
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring.h, .buffer = &d, .num_descs = 1, .queue_type = type,
	};

	return refused("copy", call(s.fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c));
}

static int put_both(void)
{
	return put(s.tx, TX, s.from.pa) ?: put(s.rx, RX, s.to.pa);
}

static int init(void)
{
	struct neuron_ioctl_dma_queue_init q = {
		.qid = 1, .tx_desc_count = SLOTS, .rx_desc_count = SLOTS,
		.tx_handle = s.tx.h, .rx_handle = s.rx.h,
	};

	return refused("init", call(s.fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q));
}

static int start(void)
{
	struct neuron_ioctl_dma_queue_copy_start c = {
		.qid = 1, .tx_desc_count = 1, .rx_desc_count = 1,
	};

	return refused("start", call(s.fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &c));
}

/* Start, and see what @h gets. */
static void run(uint64_t h)
{
	uint32_t val = 0;
	int i;

	word(h, &val, 1);
	if (start())
		return;
	for (i = 0; i < 100 && (word(h, &val, 0) || val != WORD); i++)
		usleep(10000);
	strcpy(outcome, val == WORD ? "done" : "stopped");
}

static void copy_before_init(void)
{
	if (!put_both() && !init())
		run(s.to.h);
}

static void init_before_copy(void)
{
	if (!init() && !put_both())
		run(s.to.h);
}

static void init_again(void)
{
	copy_before_init();
	if (!strcmp(outcome, "done") && !init())
		run(s.to.h);
}

/* The ring is written through a mapping, without a call. */
static void mapped_ring(void)
{
	uint64_t *tx = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, s.tx.pa);
	uint64_t *rx = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, s.rx.pa);

	if (tx == MAP_FAILED || rx == MAP_FAILED) {
		refused("map", errno);
		return;
	}
	tx[0] = (BYTES | 1u << 24 | WHOLE) | (uint64_t)COPY << 32;
	tx[1] = s.from.pa;
	rx[0] = BYTES | 1u << 24;
	rx[1] = s.to.pa;
	if (!init())
		run(s.to.h);
	munmap(tx, BYTES);
	munmap(rx, BYTES);
}

/* Mapped only once it is a ring. */
static void ring_mapped_later(void)
{
	void *p;

	if (put_both())
		return;
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, s.tx.pa);
	if (p == MAP_FAILED) {
		refused("map", errno);
		return;
	}
	munmap(p, BYTES);
	if (!init())
		run(s.to.h);
}

/* Memory that is not this process's, such as what it has of another device. */
static void buffer_of_another(void)
{
	if (!put(s.tx, TX, s.geo.host_window | 0x1000) && !put(s.rx, RX, s.to.pa) && !init())
		run(s.to.h);
}

static void target_freed_while_bound(void)
{
	struct mem seen = s.to;

	if (put_both() || init() || refused("free", mem_free(s.fd, s.from.h)))
		return;
	run(seen.h);
}

static void rings_freed_while_bound(void)
{
	if (put_both() || init() || refused("free", mem_free(s.fd, s.tx.h) ?: mem_free(s.fd, s.rx.h)))
		return;
	run(s.to.h);
}

static int take(uint32_t core)
{
	struct neuron_ioctl_semaphore a = { .nc_id = core, .semaphore_index = 1, .value = 7 };

	return refused("take", call(s.fd, NEURON_IOCTL_SEMAPHORE_WRITE, &a));
}

/* The state buffer of core 1, which this process gets only after it was named. */
static void core_acquired_late(void)
{
	if (!put(s.tx, TX, s.from.pa) && !put(s.rx, RX, s.geo.tpb_base[1]) && !take(1) && !init() &&
	    !start())
		strcpy(outcome, "started");
}

static void core_never_acquired(void)
{
	if (!put(s.tx, TX, s.from.pa) && !put(s.rx, RX, s.geo.tpb_base[1]) && !init() && !start())
		strcpy(outcome, "started");
}

/* A queue of one core of a pair, descriptors that name the other one. */
static void pair(void)
{
	if (!take(0) && !take(1) && !put(s.tx, TX, s.from.pa) &&
	    !put(s.rx, RX, s.geo.tpb_base[1]) && !init() && !start())
		strcpy(outcome, "started");
}

/* NULL: it depends on what is there, and nothing is promised. */
static const struct {
	const char *name;
	void (*run)(void);
	const char *want[MODES];
} rows[] = {
	{ "descriptors before the queue", copy_before_init, { "done", "done", "done" } },
	{ "the queue before descriptors", init_before_copy, { "done", "done", "done" } },
	{ "a queue set up again runs its ring", init_again, { "done", "done", "done" } },
	{ "a ring written through a mapping", mapped_ring, { "done", "init EBUSY", "done" } },
	{ "a ring mapped later", ring_mapped_later, { "done", "map EPERM", "done" } },
	{ "a host buffer of another", buffer_of_another, { "stopped", "copy EACCES", NULL } },
	{ "a target freed while bound", target_freed_while_bound, { "stopped", "done", NULL } },
	{ "rings freed while bound", rings_freed_while_bound, { "stopped", "done", NULL } },
	{ "a core acquired late", core_acquired_late, { "started", "started", "started" } },
	{ "a core never acquired", core_never_acquired, { "started", "init EACCES", NULL } },
	{ "a pair of cores", pair, { "started", "started", "started" } },
};

static void try(unsigned int i, enum mode mode)
{
	uint32_t val = WORD;

	memset(outcome, 0, sizeof(outcome));
	s.fd = open_node(O_RDWR);
	s.geo = geometry(s.fd);
	s.tx = host(BYTES);
	s.rx = host(BYTES);
	s.from = host(BYTES);
	s.to = host(BYTES);
	if (!word(s.from.h, &val, 1))
		rows[i].run();
	CHECK(!strcmp(outcome, rows[i].want[mode]), "%s, %s: \"%s\", and that is \"%s\"",
	      mode_names[mode], rows[i].name, outcome, rows[i].want[mode]);
	close(s.fd);
	device_settles();
}

int main(void)
{
	enum mode mode = DEVICE;
	unsigned int i;

	while (mode < MODES && !is_isolation(mode_names[mode]))
		mode++;
	CHECK(mode < MODES, "the mode is known");
	for (i = 0; mode < MODES && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].want[mode])
			try(i, mode);
	return failed != 0;
}
