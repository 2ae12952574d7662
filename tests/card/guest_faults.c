// SPDX-License-Identifier: GPL-2.0-only
/* neuron_pci on a card that does wrong: each fault ends in bounded time, and can be left. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest_cards.h"
#include "neuron_isa.h"

#define ENG_ABORT	3	/* state of an engine, as DMA_ENG_GET_STATE tells it */

static struct card *card = &cards[2];

static bool there(void)
{
	char path[64];

	return !node(card, path, sizeof(path));
}

/* Load, and see in how many seconds that the device is there or not. */
static void try(const char *fault, const char *options, bool good, double min, double max)
{
	double start = seconds(), took;

	CHECK(load(options), "%s: load", fault);
	took = seconds() - start;
	CHECK(there() == good, "%s: the device is %sthere", fault, good ? "" : "not ");
	CHECK(took >= min && took < max, "%s: that took %.1f s", fault, took);
	CHECK(unload() && !there(), "%s: unload", fault);
}

/* A fault for which the driver leaves the card alone, and says why. */
static void left_alone(const char *fault, const char *options, double min, double max,
		       const char *line)
{
	try(fault, options, false, min, max);
	CHECK(logged(card, line), "%s: the log has \"%s\"", fault, line);
}

/* 0: the reset of a core was asked for, and has ended well. */
static int reset_core(int fd, unsigned int core)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = 1u << core };
	struct neuron_ioctl_device_ready ready = { .result = -1 };
	int err = call(fd, NEURON_IOCTL_NC_RESET, &reset);

	ready.request_id = reset.request_id;
	return err ?: call(fd, NEURON_IOCTL_NC_RESET_READY, &ready) ?: ready.result;
}

/* Memory that cannot be cleared is not handed out, and the next request does better. */
static void test_clear(const char *fault, int want, const char *line)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 1 << 20, .hbm = 2,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	double start, took;
	int fd;

	CHECK(load(""), "clearing, %s: load", fault);
	fd = open_card(card);
	tell(card, fault);
	start = seconds();
	CHECK(call(fd, NEURON_NATIVE_MEM_ALLOC, &a) == want, "clearing, %s: %d", fault, want);
	took = seconds() - start;
	CHECK(took < 15, "clearing, %s: after %.1f s", fault, took);
	CHECK(logged(card, line), "clearing, %s: the log has \"%s\"", fault, line);
	tell(card, "aborts 0");
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "clearing, %s: the next request works", fault);
	close(fd);
	CHECK(unload(), "clearing, %s: unload", fault);
}

/* Who is killed does not wait until all is clear. */
static void test_clear_killed(void)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 20ull << 30,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	double start;
	pid_t child;
	int err;

	CHECK(load(""), "clearing, killed: load");
	child = fork();
	if (!child)
		_exit(call(open_card(card), NEURON_NATIVE_MEM_ALLOC, &a));
	usleep(200000);
	CHECK(!waitpid(child, &err, WNOHANG), "clearing, killed: 20 GiB take longer than 0.2 s");
	kill(child, SIGKILL);
	start = seconds();
	CHECK(waitpid(child, &err, 0) == child && WIFSIGNALED(err) && seconds() - start < 1,
	      "clearing, killed: after %.2f s", seconds() - start);
	CHECK(unload(), "clearing, killed: unload");
}

/*
 * A copy that is not heard of, or at which its engine stops, fails in time; the ring starts anew,
 * and the next copy works.
 */
static void test_copy(const char *fault, int want, double max)
{
	struct neuron_ioctl_mem_buf_copy64 copy = { .size = 1 << 20, .copy_to_mem_handle = 1 };
	uint8_t *out = malloc(copy.size), *in = calloc(1, copy.size);
	double start, took;
	int fd, err;

	CHECK(load("hbm_limit=64"), "copy, %s: load", fault);
	fd = open_card(card);
	copy.mem_handle = alloc(fd, copy.size, 0, 0);
	memset(out, 0x6b, copy.size);
	copy.buffer = out;
	CHECK(!call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy), "copy, %s: it works before", fault);
	copy.copy_to_mem_handle = 0;
	copy.buffer = in;
	tell(card, fault);
	start = seconds();
	err = call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
	took = seconds() - start;
	CHECK(err == want && took < max, "copy, %s: %d after %.1f s", fault, err, took);
	tell(card, "aborts 0");
	memset(out, 0x5c, copy.size);
	copy.copy_to_mem_handle = 1;
	copy.buffer = out;
	err = call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
	copy.copy_to_mem_handle = 0;
	copy.buffer = in;
	CHECK(!err && !call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy) &&
	      !memcmp(out, in, copy.size), "copy, %s: the next ones work", fault);
	free(out);
	free(in);
	close(fd);
	CHECK(unload(), "copy, %s: unload", fault);
}

static unsigned long counter(const char *name)
{
	char dir[100];

	snprintf(dir, sizeof(dir), "/sys/devices/virtual/neuron_device/neuron%u/stats/hardware",
		 card->number);
	return strtoul(text_of(dir, name), NULL, 10);
}

/* What the firmware counts is shown, in either layout of its words. */
static void test_ecc(void)
{
	static const struct {
		const char *version, *word, *repair;
		unsigned long corrected, uncorrected, repairable;
	} rows[] = {
		{ "version 3", "ecc-word 0x00070005", "repair 0", 7, 5, 0 },
		{ "version 3", "ecc-word 0x00070005", "repair 1", 7, 0, 5 },
		{ "version 3", "ecc-word 0x00070005", "repair 2", 7, 5, 0 },
		{ "version 6", "ecc-word 0x30020005", "repair 0", 0, 5, 2 },
		{ "version 3", "ecc-word 0xdeadbeef", "repair 0", 0, 0, 0 },
		{ "version 3", "ecc-word 0", "repair 0", 0, 0, 0 },
	};
	unsigned long c, u, r;
	unsigned int i;

	CHECK(load(""), "ECC: load");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		tell(card, rows[i].version);
		tell(card, rows[i].word);
		tell(card, rows[i].repair);
		c = counter("mem_ecc_corrected");
		u = counter("mem_ecc_uncorrected");
		r = counter("mem_ecc_repairable_uncorrected");
		CHECK(c == rows[i].corrected && u == rows[i].uncorrected && r == rows[i].repairable,
		      "ECC: %s, %s, %s: %lu, %lu, %lu", rows[i].version, rows[i].word,
		      rows[i].repair, c, u, r);
	}
	CHECK(unload(), "ECC: unload");
}

static uint64_t host_alloc(int fd, uint64_t size, uint64_t *pa)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_NCDEV_HOST,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "%llu bytes of host memory",
	      (unsigned long long)size);
	*pa = a.pa;
	return a.mem_handle;
}

/* A descriptor from one address to another, on engine 16 of core 1.  Return: is it done? */
static bool transfer(int fd, uint64_t to, uint64_t from, const volatile uint8_t *done)
{
	const uint64_t ctrl = 4096 | 1u << 24;
	uint64_t tx[2] = { ctrl | 3u << 26 | 0x01080003ULL << 32, from }, rx[2] = { ctrl, to }, pa;
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 16, .tx_desc_count = 64, .rx_desc_count = 64,
	};
	struct neuron_ioctl_dma_queue_copy_start start = {
		.eng_id = 16, .tx_desc_count = 1, .rx_desc_count = 1,
	};
	struct neuron_ioctl_dma_copy_descriptors d[2] = {
		{ .buffer = tx, .num_descs = 1, .queue_type = NEURON_DMA_QUEUE_TYPE_TX },
		{ .buffer = rx, .num_descs = 1, .queue_type = NEURON_DMA_QUEUE_TYPE_RX },
	};
	double end = seconds() + 5;

	d[0].mem_handle = q.tx_handle = host_alloc(fd, 1024, &pa);
	d[1].mem_handle = q.rx_handle = host_alloc(fd, 1024, &pa);
	CHECK(!call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &d[0]) &&
	      !call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &d[1]) &&
	      !call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q) &&
	      !call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start), "a ring starts");
	while (!*done && seconds() < end)
		usleep(1000);
	return *done;
}

/* Bytes that core 1 may still reach. */
static unsigned long quarantine(void)
{
	char dir[100];

	snprintf(dir, sizeof(dir), "/sys/devices/virtual/neuron_device/neuron%u/neuron_core1",
		 card->number);
	return strtoul(text_of(dir, "quarantine"), NULL, 10);
}

/* A core whose reset does not end fails in time, and can be reset once the card does it. */
static void test_core_reset(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9, .value = 7 };
	struct neuron_ioctl_dma_eng_get_state get = { .eng_id = 16 };
	struct neuron_dma_eng_state state;
	double start, took;
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 16, .tx_desc_count = 64, .rx_desc_count = 64,
	};
	uint64_t pa;
	int fd;

	get.state = &state;
	CHECK(load_trusted("reset_seconds=2"), "reset of a core: load");
	fd = open_card(card);
	q.tx_handle = host_alloc(fd, 1024, &pa);
	q.rx_handle = host_alloc(fd, 1024, &pa);
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q), "reset of a core: it has a queue");
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "reset of a core: it works before");
	tell(card, "reset never");
	start = seconds();
	CHECK(reset_core(fd, 1), "reset of a core: it does not end");
	took = seconds() - start;
	CHECK(took >= 2 && took < 20, "reset of a core: that took %.1f s", took);
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "reset of a core: it does not work");
	CHECK(call(fd, NEURON_IOCTL_DMA_ENG_GET_STATE, &get) == EIO,
	      "reset of a core: its engines are left alone");
	get.eng_id = 0;
	CHECK(!call(fd, NEURON_IOCTL_DMA_ENG_GET_STATE, &get),
	      "reset of a core: those of another are not");
	CHECK(quarantine() >= 2048, "reset of a core: %lu bytes in quarantine", quarantine());
	tell(card, "reset 20");
	usleep(300000);
	CHECK(!reset_core(fd, 1), "reset of a core: the next one ends");
	CHECK(!quarantine(), "reset of a core: %lu bytes in quarantine", quarantine());
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "reset of a core: it works again");
	close(fd);
	start = seconds();
	CHECK(unload(), "reset of a core: unload");
	CHECK(seconds() - start < 20, "reset of a core: that took %.1f s", seconds() - start);
}

/* A core whose state buffer cannot be cleared has no owner, until it can. */
static void test_unclean(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9, .value = 7 };
	struct neuron_native_core_stats stats = { .size = sizeof(stats), .nc_id = 1 };
	double start, took;
	int fd;

	CHECK(load(""), "unclean core: load");
	fd = open_card(card);
	tell(card, "aborts 3");
	start = seconds();
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s) == EIO, "unclean core: EIO");
	took = seconds() - start;
	CHECK(took < 15, "unclean core: after %.1f s", took);
	CHECK(!call(fd, NEURON_NATIVE_CORE_STATS, &stats) && !stats.owner,
	      "unclean core: nobody owns it");
	tell(card, "aborts 0");
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "unclean core: it is cleared the next time");
	CHECK(!call(fd, NEURON_NATIVE_CORE_STATS, &stats) && stats.owner == getpid(),
	      "unclean core: and has an owner");
	close(fd);
	CHECK(unload(), "unclean core: unload");
}

/* Copies to HBMs and back: by the queues of core 0 and of core 1, which share an engine. */
static void test_pair_copies(int fd, const char *when, int cores)
{
	static uint8_t in[NEURON_ISA_FIFO_SIZE];
	struct neuron_ioctl_mem_buf_copy64 copy = { .buffer = in, .size = sizeof(in) };
	int err, i;

	for (i = 0; i < cores; i++) {
		copy.mem_handle = alloc(fd, sizeof(in), i, i);
		memset(in, 0x3b + i, sizeof(in));
		copy.copy_to_mem_handle = 1;
		err = call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
		memset(in, 0, sizeof(in));
		copy.copy_to_mem_handle = 0;
		err = err ?: call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy);
		CHECK(!err && in[0] == 0x3b + i && !memcmp(in, in + 1, sizeof(in) - 1),
		      "%s: core %d copies: %d", when, i, err);
	}
}

/*
 * A FIFO that takes no more, and the driver's own queue waits at it: that costs nobody the card,
 * whose engine takes a moment to abort, and to start again.
 */
static void test_full_fifo(void)
{
	static uint8_t zeros[NEURON_ISA_FIFO_SIZE];
	struct neuron_native_geometry geo = { .size = sizeof(geo) };
	struct neuron_ioctl_program_engine_nc64 p = {
		.nc_id = 1, .buffer = zeros, .size = sizeof(zeros),
	};
	double start = seconds();
	int fd, err = 0, i;

	CHECK(load("model_isa=1"), "full FIFO: load");
	fd = open_card(card);
	CHECK(!call(fd, NEURON_NATIVE_GET_GEOMETRY, &geo), "full FIFO: where it is");
	p.dst = geo.tpb_base[1] + NEURON_ISA_FIFO_OFF(0);
	test_pair_copies(fd, "full FIFO, before", 2);
	tell(card, "slow-state 20");
	/* What is no instruction stops its engine. */
	for (i = 0; i < 3 && !err; i++)
		err = call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p);
	CHECK(err == ETIMEDOUT && seconds() - start < 60, "full FIFO: ETIMEDOUT (%d) after %.1f s",
	      err, seconds() - start);
	test_pair_copies(fd, "full FIFO", 2);
	tell(card, "slow-state 0");
	close(fd);
	CHECK(unload(), "full FIFO: unload");
}

/* Has the driver write where nothing is, which stops the engine of a pair, until it is killed. */
static void spoil(uint64_t place)
{
	struct neuron_ioctl_program_engine_nc64 p = {
		.nc_id = 1, .buffer = &place, .dst = place, .size = 64,
	};
	int fd = open_card(card);

	for (;;)
		call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p);
}

/* A program that stops the engine of a pair again and again spoils nothing for the other core. */
static void test_bad_place(void)
{
	struct neuron_native_geometry geo = { .size = sizeof(geo) };
	uint32_t one = 1;
	struct neuron_ioctl_program_engine_nc64 p = { .nc_id = 0, .buffer = &one, .size = 4 };
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 256 << 20,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	unsigned int copies = 0;
	double end;
	int fd, err = 0;
	pid_t child;

	CHECK(load_trusted(""), "bad place: load");
	fd = open_card(card);
	tell(card, "programs 1");
	CHECK(!call(fd, NEURON_NATIVE_GET_GEOMETRY, &geo), "bad place: where it is");
	p.dst = geo.tpb_base[0] + NEURON_ISA_EVENT_OFF(0);
	child = fork();
	if (!child)
		spoil(geo.tpb_base[1] + NEURON_ISA_EVENT_OFF(0));
	for (end = seconds() + 8; seconds() < end && !err; copies++) {
		err = call(fd, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &p);
		usleep(1000);
	}
	CHECK(!err && copies > 10, "bad place: a register of core 0 is written, %u times: %d",
	      copies, err);
	test_pair_copies(fd, "bad place", 1);
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "bad place: 256 MiB are cleared");
	kill(child, SIGKILL);
	end = seconds();
	waitpid(child, &err, 0);
	CHECK(seconds() - end < 5, "bad place: who is killed leaves the engine after %.1f s",
	      seconds() - end);
	CHECK(logged(card, "engine .* has stopped with an error"), "bad place: it was spoilt");
	tell(card, "programs 0");
	close(fd);
	CHECK(unload(), "bad place: unload");
}

/* Of a core that does not reset, all memory that its rings name is in quarantine, and shown once. */
static void test_quarantine(void)
{
	const uint64_t ctrl = 4096 | 1u << 24 | 3u << 26, meta = 0x01080003ULL << 32;
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 16, .tx_desc_count = 64, .rx_desc_count = 64,
	};
	struct neuron_ioctl_dma_copy_descriptors d = {
		.num_descs = 4, .queue_type = NEURON_DMA_QUEUE_TYPE_TX,
	};
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9 };
	unsigned long want = 2 * 4096 + (1 << 20) + 8192;	/* whole pages */
	uint64_t pa[4], tx[8];
	unsigned int i;
	int fd;

	CHECK(load("reset_seconds=2"), "quarantine: load");
	fd = open_card(card);
	d.mem_handle = q.tx_handle = host_alloc(fd, 1024, &pa[0]);
	q.rx_handle = host_alloc(fd, 1024, &pa[1]);
	host_alloc(fd, 1 << 20, &pa[2]);
	host_alloc(fd, 8192, &pa[3]);
	/* One before the other, and again. */
	for (i = 0; i < 4; i++) {
		tx[2 * i] = ctrl | meta;
		tx[2 * i + 1] = pa[2 + i % 2];
	}
	d.buffer = tx;
	CHECK(!call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &d) &&
	      !call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q), "quarantine: a ring names memory");
	tell(card, "reset never");
	CHECK(reset_core(fd, 1), "quarantine: its core does not reset");
	CHECK(quarantine() == want, "quarantine: %lu bytes of %lu", quarantine(), want);
	close(fd);
	CHECK(quarantine() == want, "quarantine: %lu bytes when the process is gone", quarantine());
	tell(card, "reset 20");
	usleep(300000);
	fd = open_card(card);
	CHECK(!call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) ||
	      !call(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "quarantine: the next owner has it reset");
	CHECK(!quarantine(), "quarantine: %lu bytes then", quarantine());
	close(fd);
	CHECK(unload(), "quarantine: unload");
}

struct ring_write {
	int fd;
	struct neuron_ioctl_dma_copy_descriptors d;
	int err;
};

static void *write_ring(void *arg)
{
	struct ring_write *w = arg;

	w->err = call(w->fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS, &w->d);
	return NULL;
}

/* Descriptors that do not arrive in a ring in device memory hold up no reset of their core. */
static void test_stuck_ring(void)
{
	const uint64_t ctrl = 4096 | 1u << 24 | 3u << 26, meta = 0x01080003ULL << 32;
	struct neuron_ioctl_dma_queue_init q = {
		.eng_id = 16, .tx_desc_count = 64, .rx_desc_count = 64,
	};
	uint64_t pa, tx[2] = { ctrl | meta };
	struct ring_write w = { 0 };
	pthread_t thread;
	double start;

	CHECK(load("hbm_limit=64"), "stuck ring: load");
	w.fd = open_card(card);
	q.tx_handle = alloc(w.fd, 4096, 0, 1);
	q.rx_handle = host_alloc(w.fd, 4096, &pa);
	host_alloc(w.fd, 4096, &tx[1]);
	w.d = (struct neuron_ioctl_dma_copy_descriptors){
		.mem_handle = q.tx_handle, .buffer = tx, .num_descs = 1,
		.queue_type = NEURON_DMA_QUEUE_TYPE_TX,
	};
	write_ring(&w);
	CHECK(!w.err && !call(w.fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q),
	      "stuck ring: a queue has it (%d)", w.err);
	tell(card, "lost-doorbells 2");
	if (pthread_create(&thread, NULL, write_ring, &w))
		return;
	usleep(300000);
	start = seconds();
	CHECK(!reset_core(w.fd, 1), "stuck ring: its core is reset");
	CHECK(seconds() - start < 10, "stuck ring: that took %.1f s", seconds() - start);
	pthread_join(thread, NULL);
	CHECK(w.err == ETIMEDOUT, "stuck ring: the write was on its way: %d", w.err);
	close(w.fd);
	CHECK(unload(), "stuck ring: unload");
}

/* A trusted program's descriptor that leads nowhere stops its engine, until its core is reset. */
static void test_bad_address(void)
{
	struct neuron_ioctl_dma_eng_get_state get = { .eng_id = 16 };
	struct neuron_dma_eng_state state = { 0 };
	uint64_t src, dst, handle;
	volatile uint8_t *p;
	uint8_t ones[4096];
	struct neuron_ioctl_mem_buf_copy64 copy = {
		.buffer = ones, .size = sizeof(ones), .copy_to_mem_handle = 1,
	};
	int fd;

	get.state = &state;
	memset(ones, 1, sizeof(ones));
	CHECK(load_trusted(""), "bad address: load");
	fd = open_card(card);
	tell(card, "nowhere 1");
	copy.mem_handle = host_alloc(fd, 4096, &src);
	handle = host_alloc(fd, 4096, &dst);
	CHECK(!call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy), "bad address: something to copy");
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, dst);
	CHECK(p != MAP_FAILED, "bad address: memory %llu is mapped", (unsigned long long)handle);
	if (p == MAP_FAILED)
		return;
	CHECK(!transfer(fd, dst, 0x70000000000ULL, p), "bad address: nothing is copied");
	CHECK(!call(fd, NEURON_IOCTL_DMA_ENG_GET_STATE, &get) &&
	      state.tx_state == ENG_ABORT,
	      "bad address: the engine's state is %u", state.tx_state);
	CHECK(!reset_core(fd, 1), "bad address: a reset of the core ends");
	CHECK(transfer(fd, dst, src, p), "bad address: after it the engine copies");
	tell(card, "nowhere 0");
	munmap((void *)p, 4096);
	close(fd);
	CHECK(unload(), "bad address: unload");
}

/* A card that goes while it has a device, and another one comes. */
static void test_removal(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9 };
	double start;
	int fd;

	CHECK(load_trusted(""), "removal: load");
	fd = open_card(card);
	CHECK(fd >= 0 && !call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s), "removal: a register is read");
	tell(card, "removed 1");
	start = seconds();
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s), "removal: the next read fails");
	while (there() && seconds() - start < 10)
		usleep(10000);
	CHECK(!there(), "removal: the device is gone after %.1f s", seconds() - start);
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) && errno == ENODEV,
	      "removal: who has it open gets ENODEV");
	close(fd);
	CHECK(unload(), "removal: unload");
	tell(card, "removed 0");
	try("after removal", "", true, 0, 30);
}

/* A reset that somebody asks the bus for: the device goes, and comes with its driver. */
static void test_bus_reset(void)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 1, .semaphore_index = 9 };
	char path[400];
	uint16_t command = 0xffff;
	double start;
	int fd, file;

	CHECK(load(""), "reset by the bus: load");
	fd = open_card(card);
	snprintf(path, sizeof(path), "%s/reset", card->pci);
	file = open(path, O_WRONLY);
	start = seconds();
	CHECK(file >= 0 && write(file, "1", 1) == 1, "reset by the bus: it is asked for");
	CHECK(!there(), "reset by the bus: the device is gone after %.1f s", seconds() - start);
	CHECK(call(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) && errno == ENODEV,
	      "reset by the bus: who has it open gets ENODEV");
	CHECK(logged(card, "the card is given up: it is reset"), "reset by the bus: the log says so");
	close(file);
	snprintf(path, sizeof(path), "%s/config", card->pci);
	file = open(path, O_RDONLY);
	CHECK(pread(file, &command, 2, 4) == 2 && !(command & 4),
	      "reset by the bus: the card does not master it (command %#x)", command);
	close(file);
	close(fd);
	CHECK(unload(), "reset by the bus: unload");
	try("after a reset by the bus", "", true, 0, 30);
}

int main(void)
{
	find_cards();
	CHECK(card->pci[0], "there is a %s", card->name);
	if (failed)
		return 1;
	tell(card, "dead 3000");
	try("firmware late", "", true, 2, 30);
	tell(card, "dead forever");
	left_alone("no firmware", "firmware_seconds=1", 1, 10,
		   "the firmware has not answered for 1 s");
	tell(card, "dead 0");
	tell(card, "reset 2000");
	try("slow reset", "", true, 2, 40);
	tell(card, "reset never");
	left_alone("endless reset", "reset_seconds=1", 1, 10,
		   "the reset of the device has not ended in time");
	tell(card, "reset 20");
	tell(card, "not-ready 3");
	try("not ready for a moment", "", true, 0.6, 30);
	tell(card, "not-ready 1000");
	left_alone("never ready", "", 1, 10, "the reset of the device ended, but the card is not");
	tell(card, "not-ready 0");
	tell(card, "removed 1");
	left_alone("a card that is not there", "", 0, 10, "the card is gone");
	tell(card, "removed 0");
	tell(card, "routing-id 64");
	left_alone("a routing id that is too high", "", 0, 10, "routing id 0x40 is not below 64");
	tell(card, "routing-id 0");
	/* Bus mastering goes on only after the reset: else the card complains. */
	tell(card, "leftover 1");
	try("queues run from before", "", true, 0, 30);
	test_ecc();
	test_clear("lost-doorbells 2", EIO, "clearing of device memory has not ended in time");
	/* The copy of somebody else may be what has stopped the engine. */
	test_clear("aborts 1", 0, "engine .* has stopped with an error, and is started again");
	test_clear("aborts 3", EIO, "engine .* has stopped with an error, and is started again");
	test_clear_killed();
	/* One that was lost cannot be told from one that is slow. */
	test_copy("lost-doorbells 2", ETIMEDOUT, 45);
	test_copy("aborts 2", 0, 15);
	test_copy("aborts 3", EIO, 15);
	test_copy("ecc 3", EIO, 15);
	test_bad_address();
	test_unclean();
	test_quarantine();
	test_full_fifo();
	test_stuck_ring();
	test_bad_place();
	test_core_reset();
	test_removal();
	test_bus_reset();
	return failed != 0;
}
