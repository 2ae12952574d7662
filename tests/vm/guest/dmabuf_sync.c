// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fences of exported memory: what waits for the driver's copies, and what these wait for.
 * The other device is neuron_importer.
 */
#define _GNU_SOURCE
#include <linux/dma-buf.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"
#include "device.h"
#include "../importer/importer.h"

#define SIZE	(32u << 20)
#define TRIES	20

static int fd, im;

/* Memory that is exported, and as its dma-buf shows it. */
struct shared {
	uint64_t handle;
	int db;
	uint8_t *map;
};

static struct shared make(uint64_t size)
{
	struct shared s = { .handle = alloc(fd, size, 0, 0) };
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = s.handle };

	CHECK(!call(fd, NEURON_NATIVE_MEM_EXPORT, &e), "export");
	s.db = e.fd;
	s.map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s.db, 0);
	CHECK(s.map != MAP_FAILED, "map the export");
	return s;
}

static void drop(struct shared *s, uint64_t size)
{
	munmap(s->map, size);
	close(s->db);
	CHECK(!mem_free(fd, s->handle), "free");
}

static int fill(const struct shared *s, uint8_t value)
{
	struct neuron_ioctl_memset64 m = { .mem_handle = s->handle, .value = value, .size = SIZE };

	return call(fd, NEURON_IOCTL_MEMSET64, &m);
}

static int copy(const struct shared *src, const struct shared *dst, uint64_t size)
{
	struct neuron_ioctl_mem_copy64 c = {
		.src_mem_handle = src->handle, .dst_mem_handle = dst->handle, .size = size,
	};

	return call(fd, NEURON_IOCTL_MEM_COPY64, &c);
}

static int start(const struct shared *src, const struct shared *dst, uint32_t *token)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = src->handle, .dst_mem_handle = dst->handle, .size = SIZE,
		.pwait_handle = ~0u,
	};
	int err = call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);

	*token = c.wait_handle;
	return err;
}

static int finish(const struct shared *src, const struct shared *dst, uint32_t token)
{
	struct neuron_ioctl_mem_copy_async_wait w = {
		.src_mem_handle = src->handle, .dst_mem_handle = dst->handle,
		.pwait_handle = token,
	};

	return call(fd, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w);
}

/* A sync file of what a reader or a writer would have to wait for. */
static int sync_file(const struct shared *s, uint32_t access)
{
	struct dma_buf_export_sync_file e = { .flags = access, .fd = -1 };

	return ioctl(s->db, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &e) ? -1 : e.fd;
}

/* Within so many milliseconds. */
static int ready(int file, short events, int ms)
{
	struct pollfd p = { .fd = file, .events = events };

	return poll(&p, 1, ms) == 1 && p.revents & events;
}

static uint64_t ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/*
 * A copy can be over before anybody looks.  What is seen while it is under way must be right
 * once; what is there when poll() says so, each time.
 */
static void others_wait(struct shared *a, struct shared *b)
{
	int under_way = 0, bad = 0;
	uint32_t token;

	for (int i = 0; i < TRIES; i++) {
		int written, read_too, busy;

		if (fill(a, (uint8_t)(i + 1)) || start(a, b, &token)) {
			bad++;
			break;
		}
		written = sync_file(b, DMA_BUF_SYNC_READ);
		read_too = sync_file(a, DMA_BUF_SYNC_WRITE);
		/* A reader of the source need not wait; a writer must, and who reads the rest. */
		busy = !ready(b->db, POLLIN, 0) && !ready(a->db, POLLOUT, 0) &&
		       ready(a->db, POLLIN, 0) && !ready(read_too, POLLIN, 0);
		under_way += busy && !ready(written, POLLIN, 0);
		bad += !ready(written, POLLIN, 60000) || b->map[SIZE - 1] != i + 1;
		bad += !ready(b->db, POLLIN, 60000) || !ready(read_too, POLLIN, 60000);
		close(written);
		close(read_too);
		bad += !!finish(a, b, token);
	}
	CHECK(under_way, "poll() of sync files and dma-bufs waits for copies (%d of %d)", under_way,
	      TRIES);
	CHECK(!bad, "and everything is there when it returns");
}

static void cpu_waits(struct shared *a, struct shared *b)
{
	struct dma_buf_sync s = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ };
	uint32_t token;
	int bad = 0;

	for (int i = 0; i < TRIES; i++) {
		bad += fill(a, (uint8_t)(i + 100)) || start(a, b, &token);
		bad += call(b->db, DMA_BUF_IOCTL_SYNC, &s) || b->map[SIZE - 1] != i + 100;
		bad += !!finish(a, b, token);
	}
	CHECK(!bad, "DMA_BUF_IOCTL_SYNC waits for copies");
}

/* ---- the other device ---------------------------------------------------------------------- */

static int uses(const struct shared *s, uint32_t write)
{
	struct importer_fence f = { .fd = s->db, .write = write };

	return call(im, IMPORTER_FENCE, &f);
}

static volatile int over;

static void *ends_later(void *arg)
{
	(void)arg;
	usleep(200000);
	over = 1;
	ioctl(im, IMPORTER_SIGNAL);
	return NULL;
}

/* The other device uses @s for a while: does a call wait for its end? */
static int waits(const struct shared *s, uint32_t write, int (*fn)(void))
{
	pthread_t thread;
	int waited;

	if (uses(s, write))
		return 0;
	over = 0;
	pthread_create(&thread, NULL, ends_later, NULL);
	waited = !fn() && over;
	pthread_join(thread, NULL);
	return waited;
}

/* It reads @s and does not end: a call that waits for it fails. */
static int passes(const struct shared *s, int (*fn)(void))
{
	int passed = !uses(s, 0) && !fn();

	return !call(im, IMPORTER_SIGNAL, NULL) && passed;
}

static struct shared from, to;

static int whole_copy(void)
{
	return copy(&from, &to, 4096);
}

static int async_copy(void)
{
	uint32_t token;

	return start(&from, &to, &token) ?: finish(&from, &to, token);
}

static int set(void)
{
	return fill(&to, 7);
}

static int user_copy(uint64_t handle, int to_device)
{
	static uint8_t page[4096];
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = page, .size = sizeof(page),
		.copy_to_mem_handle = to_device,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static int user_read(void)
{
	return user_copy(from.handle, 0);
}

static int user_write(void)
{
	return user_copy(to.handle, 1);
}

static void copies_wait(void)
{
	static const struct {
		const char *name;
		int (*fn)(void);
		int reads, writes;
	} calls[] = {
		{ "MEM_COPY", whole_copy, 1, 1 }, { "MEM_COPY_ASYNC", async_copy, 1, 1 },
		{ "MEMSET", set, 0, 1 }, { "MEM_BUF_COPY to the host", user_read, 1, 0 },
		{ "MEM_BUF_COPY to the device", user_write, 0, 1 },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].reads) {
			CHECK(waits(&from, 1, calls[i].fn),
			      "%s waits until its source is written", calls[i].name);
			CHECK(passes(&from, calls[i].fn),
			      "%s does not wait for a reader of its source", calls[i].name);
		}
		if (calls[i].writes)
			CHECK(waits(&to, 0, calls[i].fn),
			      "%s waits for a reader of its destination", calls[i].name);
	}
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void wait_ends(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	uint32_t token;
	uint64_t began;

	sigaction(SIGALRM, &sa, NULL);
	CHECK(!uses(&to, 1), "the other device writes and does not end");
	began = ms_now();
	alarm(1);
	CHECK(whole_copy() == EINTR, "a signal ends the wait of MEM_COPY");
	alarm(1);
	CHECK(start(&from, &to, &token) == EINTR, "of MEM_COPY_ASYNC");
	alarm(1);
	CHECK(user_write() == EINTR, "and of MEM_BUF_COPY");
	CHECK(ms_now() - began < 20000, "at once");
	began = ms_now();
	CHECK(set() == ETIMEDOUT, "without a signal it ends by itself");
	CHECK(ms_now() - began >= 29000, "after half a minute");
	CHECK(!call(im, IMPORTER_SIGNAL, NULL) && !set(), "then the device has ended");
	CHECK(!start(&from, &to, &token) && !finish(&from, &to, token), "and copies go on");
}

/* Two objects are locked in either order. */
static void *back_and_forth(void *arg)
{
	long forth = (long)arg, bad = 0;

	for (int i = 0; i < 500; i++)
		bad += !!(forth ? copy(&from, &to, 64) : copy(&to, &from, 64));
	return (void *)bad;
}

static void crossing(void)
{
	pthread_t thread;
	void *bad;

	pthread_create(&thread, NULL, back_and_forth, (void *)1);
	CHECK(!back_and_forth(NULL), "copies from one to the other");
	pthread_join(thread, &bad);
	CHECK(!bad, "and back at the same time");
}

/* A sync file keeps the code of its fence. */
static void outlives(int card)
{
	int file = -1, under_way = 0, bad = 0;
	uint32_t token;

	/* One that is made when the copy is over has no fence. */
	for (int i = 0; i < TRIES && !under_way; i++) {
		close(file);
		bad += !!start(&from, &to, &token);
		file = sync_file(&to, DMA_BUF_SYNC_READ);
		under_way = !ready(file, POLLIN, 0);
		bad += !!finish(&from, &to, token);
	}
	CHECK(!bad && under_way && ready(file, POLLIN, 0), "a sync file of a copy");
	drop(&from, SIZE);
	drop(&to, SIZE);
	close(im);
	close(fd);
	CHECK(!system("rmmod neuron_importer") && !device_unload(card), "unload what uses neuron.ko");
	CHECK(system("rmmod neuron 2>/dev/null"), "neuron.ko stays as long as the sync file");
	CHECK(ready(file, POLLIN, 0), "which is still ready");
	close(file);
	CHECK(!system("rmmod neuron"), "then it goes");
	CHECK(!device_load(card), "load for the tests that follow");
}

int main(void)
{
	int card = is_card();

	CHECK(!system("modprobe neuron_importer"), "load the importer");
	fd = open_node(O_RDWR);
	im = open("/dev/neuron_importer", O_RDWR | O_CLOEXEC);
	from = make(SIZE);
	to = make(SIZE);
	others_wait(&from, &to);
	cpu_waits(&from, &to);
	copies_wait();
	wait_ends();
	crossing();
	outlives(card);
	return failed != 0;
}
