// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver costs, seen by a process: every figure next to an empty ioctl
 * (COMPATIBLE_VERSION) and getppid() of the same machine. One JSON object per
 * line; ../driver.py makes the table.
 *
 * usage: driver-bench [WORK...]: heap checkerboard churn close copy move rest ring sysfs
 *	  processes; all of them if none is named. card: the software device and a card, one
 *	  after the other; only if it is named
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>

#include "../../vm/guest/check.h"
#include "neuron_isa.h"
#include "../trace.h"

#define CALLS	2000	/* of one kind; their median counts */
#define FEW	50	/* of slow ones */

static double tick_ns;		/* of the time stamp counter */
static double empty_ns, getppid_ns;
static u64 overhead;

static u64 now(void)
{
	return __builtin_ia32_rdtsc();
}

static double clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static double median(u64 *v, u32 n)
{
	u64 t;

	qsort(v, n, sizeof(*v), by_value);
	t = v[n / 2] > overhead ? v[n / 2] - overhead : 0;
	return t * tick_ns;
}

/* What it takes when the machine does nothing else: one in twenty is faster. */
static double best(u64 *v, u32 n)
{
	median(v, n);
	return (v[n / 20] > overhead ? v[n / 20] - overhead : 0) * tick_ns;
}

static void report(const char *work, const char *what, double ns)
{
	printf("{\"work\":\"%s\",\"what\":\"%s\",\"ns\":%.0f,\"empty\":%.3f,\"getppid\":%.3f}\n",
	       work, what, ns, ns / empty_ns, ns / getppid_ns);
	fflush(stdout);
}

static void value(const char *work, const char *what, double v)
{
	printf("{\"work\":\"%s\",\"what\":\"%s\",\"value\":%.4f}\n", work, what, v);
	fflush(stdout);
}

static void __attribute__((noreturn)) give_up(const char *what)
{
	printf("not ok - %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_device(u32 i)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/dev/neuron%u", i);
	fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		give_up(name);
	return fd;
}

static int mem_alloc(int fd, u64 size, u64 *handle)
{
	struct neuron_ioctl_mem_alloc a = {
		.size = size, .mem_handle = (void *)handle,
	};

	return ioctl(fd, NEURON_IOCTL_MEM_ALLOC, &a);
}

static void must_alloc(int fd, u64 size, u64 *handle)
{
	if (mem_alloc(fd, size, handle))
		give_up("allocation");
}

static void must_free(int fd, u64 handle)
{
	if (mem_free(fd, handle))
		give_up("free");
}

/*
 * The units of everything else. Calls are compared with units that were measured among them: a
 * machine that has neighbours can change its speed by half from one second to the next.
 */
static struct {
	u64 getppid[CALLS], empty[CALLS];
	u32 n;
} unit;

/*
 * One more of each, the last of a few: what came before has taken the processor's caches, and a
 * unit that pays for that would flatter what is compared with it.
 */
static void unit_sample(int fd)
{
	struct neuron_ioctl_compatible_version v;
	u64 t[2] = { };
	u32 i;

	if (unit.n == CALLS)
		return;
	for (i = 0; i < 5; i++) {
		t[0] = now();
		getppid();
		t[0] = now() - t[0];
	}
	for (i = 0; i < 5; i++) {
		t[1] = now();
		ioctl(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &v);
		t[1] = now() - t[1];
	}
	unit.getppid[unit.n] = t[0];
	unit.empty[unit.n++] = t[1];
}

/* What is reported from here on is compared with the samples since the last time. */
static void unit_take(void)
{
	getppid_ns = median(unit.getppid, unit.n);
	empty_ns = median(unit.empty, unit.n);
	unit.n = 0;
}

static void unit_measure(int fd)
{
	u32 i;

	for (i = 0; i < CALLS; i++)
		unit_sample(fd);
	unit_take();
}

static void baseline(void)
{
	static u64 t[CALLS];
	double ns = clock_ns();
	u64 ticks = now();
	int fd = open_device(0);
	u32 i;

	while (clock_ns() - ns < 2e8)
		;
	tick_ns = (clock_ns() - ns) / (now() - ticks);
	for (i = 0; i < CALLS; i++) {
		t[i] = now();
		t[i] = now() - t[i];
	}
	median(t, CALLS);
	overhead = t[CALLS / 2];
	unit_measure(fd);
	report("baseline", "getppid", getppid_ns);
	report("baseline", "empty ioctl", empty_ns);
	close(fd);
}

/* Pairs of alloc and free; what is live stays live. */
static void pairs(int fd, const char *work, u64 size, u32 n)
{
	static u64 a[CALLS], f[CALLS];
	char what[64];
	u64 handle;
	u32 i;

	for (i = 0; i < n; i++) {
		a[i] = now();
		must_alloc(fd, size, &handle);
		a[i] = now() - a[i];
		f[i] = now();
		must_free(fd, handle);
		f[i] = now() - f[i];
		unit_sample(fd);
	}
	unit_take();
	snprintf(what, sizeof(what), "alloc %llu KiB", (unsigned long long)size >> 10);
	report(work, what, median(a, n));
	report(work, "free", median(f, n));
}

/* Sum of the figures behind @name in a file. */
static double figures(const char *file, const char *name)
{
	size_t len = strlen(name);
	double sum = 0, v;
	char line[128];
	FILE *f = fopen(file, "r");

	while (f && fgets(line, sizeof(line), f)) {
		char *p = line + strspn(line, " ");

		if (!strncmp(p, name, len) && sscanf(p + len, "%lf", &v) == 1)
			sum += v;
	}
	if (f)
		fclose(f);
	return sum;
}

/*
 * Kernel memory in use that belongs to nobody's address space; bytes. Processors have free
 * pages of their own, some MiB.
 */
static double kernel_memory(void)
{
	return -1024 * figures("/proc/meminfo", "MemFree:") -
	       (double)sysconf(_SC_PAGESIZE) * figures("/proc/zoneinfo", "count:");
}

/* A random victim goes and another one comes; then all go in the order in which they came. */
static void victims(int fd, u64 *handle, u32 n)
{
	static u64 a[CALLS], f[CALLS];
	struct rng r;
	u32 i, k;
	u64 t = 0;

	rng_seed(&r, 1);
	for (i = 0; i < CALLS; i++) {
		k = rng_below(&r, n);
		f[i] = now();
		must_free(fd, handle[k]);
		f[i] = now() - f[i];
		a[i] = now();
		must_alloc(fd, 4 * KIB, &handle[k]);
		a[i] = now() - a[i];
		unit_sample(fd);
	}
	unit_take();
	report("random victim", "free", median(f, CALLS));
	report("random victim", "alloc 4 KiB", median(a, CALLS));
	for (i = 0; i < n; i += n / CALLS) {
		t -= now();
		for (k = i; k < i + n / CALLS; k++)
			must_free(fd, handle[k]);
		t += now();
		unit_sample(fd);
	}
	unit_take();
	report("free in order", "mean", t * tick_ns / n);
}

static void work_heap(void)
{
	const u32 n = 1000000;
	u64 *handle = malloc(n * sizeof(*handle));
	int fd = open_device(0);
	double before;
	u32 i;

	pairs(fd, "empty heap", 4 * KIB, CALLS);
	memset(handle, 1, n * sizeof(*handle));
	before = kernel_memory();
	for (i = 0; i < n; i++)
		must_alloc(fd, 4 * KIB, &handle[i]);
	value("memory", "bytes per live allocation", (kernel_memory() - before) / n);
	pairs(fd, "1000000 live", 4 * KIB, CALLS);
	victims(fd, handle, n);
	close(fd);
	free(handle);
}

static void work_checkerboard(void)
{
	static const u32 chunks[] = { 100000, 1000000 };
	u64 *handle = malloc(2 * chunks[1] * sizeof(*handle));
	char work[64];
	u32 c, i, n;

	for (c = 0; c < 2; c++) {
		int fd = open_device(0);

		n = chunks[c];
		for (i = 0; i < 2 * n; i++)
			must_alloc(fd, 4 * KIB, &handle[i]);
		for (i = 0; i < 2 * n; i += 2)
			must_free(fd, handle[i]);
		snprintf(work, sizeof(work), "checkerboard of %u", n);
		pairs(fd, work, 8 * KIB, CALLS);
		close(fd);
	}
	free(handle);
}

/* As capped_churn() of ../bench.c, through the driver. */
static void work_churn(void)
{
	static u64 handle[100000], size_of[100000];
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };
	struct capped_run run;
	u64 bytes, size, limit, zone;
	u32 seed, i, k, n;

	for (seed = 0; seed < CAPPED_SEEDS; seed++) {
		int fd = open_device(0);
		struct rng r;

		if (ioctl(fd, NEURON_NATIVE_HBM_STATS, &s))
			give_up("statistics");
		zone = s.total - s.reserved;
		limit = zone / 100 * CAPPED_PERCENT;
		memset(&run, 0, sizeof(run));
		rng_seed(&r, seed);
		for (i = 0, n = 0, bytes = 0; run.filled == 0; i++) {
			size = capped_size(&r);
			while (i < CAPPED_REQUESTS && bytes + size > limit) {
				k = rng_below(&r, n);
				must_free(fd, handle[k]);
				bytes -= size_of[k];
				handle[k] = handle[--n];
				size_of[k] = size_of[n];
			}
			if (!mem_alloc(fd, size, &handle[n])) {
				size_of[n++] = size;
				bytes += size;
			} else {
				capped_refused(&run, i, bytes, zone);
			}
		}
		printf("{\"work\":\"churn\",\"seed\":%u,\"refused\":%u,\"first_permille\":%u,\"filled_permille\":%u}\n",
		       seed, run.refused, run.first, run.filled);
		fflush(stdout);
		close(fd);
	}
}

static void opens(const char *work)
{
	u64 o[FEW], c[FEW];
	u32 i;
	int fd;

	for (i = 0; i < FEW; i++) {
		o[i] = now();
		fd = open_device(0);
		o[i] = now() - o[i];
		c[i] = now();
		close(fd);
		c[i] = now() - c[i];
	}
	report(work, "open and attach", median(o, FEW));
	report(work, "close, and detach", median(c, FEW));
}

static void work_close(void)
{
	static u64 c[CALLS];
	const u32 live = 100000;
	int fd, second, go[2], status;
	u64 t, handle;
	u32 i;

	opens("close");
	fd = open_device(0);
	for (i = 0; i < CALLS; i++) {
		second = open_device(0);
		c[i] = now();
		close(second);
		c[i] = now() - c[i];
	}
	report("close", "close of one of two", median(c, CALLS));
	close(fd);

	for (i = 0; i < 5; i++) {
		pid_t pid;

		if (pipe(go))
			give_up("pipe");
		pid = fork();
		if (!pid) {
			u32 k;

			fd = open_device(0);
			for (k = 0; k < live; k++)
				must_alloc(fd, 4 * KIB, &handle);
			if (write(go[1], "x", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		if (read(go[0], &status, 1) != 1)
			give_up("child");
		t = now();
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		c[i] = now() - t;
		close(go[0]);
		close(go[1]);
	}
	report("exit", "100000 live allocations", best(c, 5));
}

static int buf_copy(int fd, u64 handle, void *buf, u64 size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .copy_to_mem_handle = to,
	};

	return ioctl(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

/*
 * The yardstick: memcpy() between blocks that have been used before.  How far they are from each
 * other matters, above all to an emulated processor, whose table of translations is indexed by
 * low bits of the page: the best of these distances counts.
 */
static const u64 apart[] = { 0, 1, 2, 5, 16, 67, 256, 1031 };	/* pages, besides COPY_MAX */

#define COUNT_OF(a)	(sizeof(a) / sizeof((a)[0]))

#define COPY_MAX	(64 * MIB)
#define COPY_SPAN	(2 * COPY_MAX + 2048 * 4 * KIB)
#define COPY_BUSY_NS	5e8	/* processor time is read from a clock of 10 ms */

/* A copy of @size in one of three ways. */
enum { TO_DEVICE, FROM_DEVICE, MEMCPY };

struct copier {
	int fd;
	u64 handle;
	char *data;	/* COPY_SPAN bytes */
};

static u64 copy_once(const struct copier *c, int way, u64 size, u64 distance)
{
	u64 t = now();

	if (way == MEMCPY)
		memcpy(c->data, c->data + COPY_MAX + distance, size);
	else if (buf_copy(c->fd, c->handle, c->data, size, way == TO_DEVICE))
		give_up("copy");
	return now() - t;
}

/* Seconds that all processors together were idle. */
static double idle(void)
{
	double up = 0, idle = 0;
	FILE *f = fopen("/proc/uptime", "r");

	if (!f || fscanf(f, "%lf %lf", &up, &idle) != 2)
		give_up("/proc/uptime");
	fclose(f);
	return idle;
}

/* Processor time of a copy, whoever makes it, ns. */
static double copy_busy(const struct copier *c, int way, u64 size)
{
	double start, ns, rest;
	u32 n = 0;

	rest = idle();
	start = clock_ns();
	do {
		copy_once(c, way, size, 0);
		n++;
		ns = clock_ns() - start;
	} while (ns < COPY_BUSY_NS);
	ns = sysconf(_SC_NPROCESSORS_ONLN) * ns - (idle() - rest) * 1e9;
	return ns / n;
}

static void copies_of(const char *work, const struct copier *c, u64 size)
{
	static const char *const name[] = { "to", "from" };
	u64 t, best[3] = { ~0ULL, ~0ULL, ~0ULL };
	double busy = copy_busy(c, MEMCPY, size);
	char what[64];
	u32 rep, k;

	/* All three in turns, and often enough that each has a quiet moment. */
	for (rep = 0; rep < 16 + 256 * MIB / size; rep++) {
		for (k = 0; k < 3; k++) {
			t = copy_once(c, k, size, apart[rep % COUNT_OF(apart)] * 4 * KIB);
			best[k] = t < best[k] ? t : best[k];
		}
	}
	for (k = 0; k < 2; k++) {
		snprintf(what, sizeof(what), "%llu MiB %s the device", size / MIB, name[k]);
		value(work, what, (double)best[MEMCPY] / best[k]);
		snprintf(what, sizeof(what), "%llu MiB %s the device, processor time", size / MIB,
			 name[k]);
		value(work, what, copy_busy(c, k, size) / busy);
	}
	snprintf(what, sizeof(what), "%llu MiB memcpy, MB/s", size / MIB);
	value(work, what, size * 1e3 / (best[MEMCPY] * tick_ns));
}

static void copies(const char *work)
{
	static const u64 sizes[] = { MIB, 4 * MIB, 16 * MIB, 64 * MIB };
	struct copier c = { .fd = open_device(0), .data = malloc(COPY_SPAN) };
	static u64 t[2][CALLS];
	u32 i;

	memset(c.data, 1, COPY_SPAN);
	must_alloc(c.fd, COPY_MAX, &c.handle);
	for (i = 0; i < COUNT_OF(sizes); i++)
		copies_of(work, &c, sizes[i]);
	for (i = 0; i < CALLS; i++) {
		t[0][i] = copy_once(&c, TO_DEVICE, 4 * KIB, 0);
		t[1][i] = copy_once(&c, FROM_DEVICE, 4 * KIB, 0);
	}
	report(work, "4 KiB to the device", median(t[0], CALLS));
	report(work, "4 KiB from the device", median(t[1], CALLS));
	free(c.data);
	close(c.fd);
}

static void work_copy(void)
{
	copies("copy");
}

static void reload(const char *options)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "rmmod neuron_emu 2>/dev/null; modprobe neuron_emu %s", options);
	if (system(command))
		give_up(command);
}

static double settled_memory(void)
{
	double least = 0, m;
	u32 i;

	for (i = 0; i < 5; i++) {
		/* What was freed is not always given back at once. */
		if (system("for s in /sys/kernel/slab/*/shrink; do echo 1 >$s; done 2>/dev/null;"
			   "echo 3 >/proc/sys/vm/drop_caches;"
			   "echo 1 2>/dev/null >/proc/sys/vm/compact_memory; true"))
			give_up("shrink");
		usleep(100000);
		m = kernel_memory();
		if (!i || m < least)
			least = m;
	}
	return least;
}

static double host_mem(void)
{
	double sum = 0, v;
	char line[64];
	FILE *f = popen("cat /sys/devices/virtual/neuron_device/neuron*/neuron_core*/stats/memory_usage/host_mem/total",
			"r");

	while (f && fgets(line, sizeof(line), f)) {
		v = atof(line);
		sum += v;
	}
	if (f)
		pclose(f);
	return sum;
}

/* A device that nobody uses: what 63 more of them take. */
static void work_rest(void)
{
	static const char *const arch[] = { "trn1", "trn2" };
	char options[64], what[64];
	double one, many;
	u32 i;

	for (i = 0; i < 2; i++) {
		/* The first time leaves caches behind that stay. */
		snprintf(options, sizeof(options), "arch=%s nr_devices=64", arch[i]);
		reload(options);
		many = host_mem();
		snprintf(options, sizeof(options), "arch=%s nr_devices=1", arch[i]);
		reload(options);
		one = settled_memory();
		snprintf(options, sizeof(options), "arch=%s nr_devices=64", arch[i]);
		reload(options);
		snprintf(what, sizeof(what), "KiB per device at rest, %s", arch[i]);
		value("memory", what, (settled_memory() - one) / 63 / 1024);
		snprintf(what, sizeof(what), "host memory reserved by 64 devices, %s", arch[i]);
		value("memory", what, many);
	}
	reload("arch=trn1");
}

struct desc {
	__u32 ctrl, meta;
	__u64 addr;
};

static struct neuron_native_mem_alloc native(int fd, u64 size, int host)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = host ? NEURON_NATIVE_ALLOC_HOST : 0,
		.mem_type = host ? NEURON_MEMALLOC_TYPE_TENSORS_HOST :
				   NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	if (ioctl(fd, NEURON_NATIVE_MEM_ALLOC, &a))
		give_up("native allocation");
	return a;
}

static void write_descs(int fd, u64 ring, int rx, u32 n, u64 addr, u32 len, u64 last, u32 last_len)
{
	struct desc *d = calloc(n, sizeof(*d));
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring, .buffer = d, .num_descs = n,
		.queue_type = rx ? NEURON_DMA_QUEUE_TYPE_RX : NEURON_DMA_QUEUE_TYPE_TX,
	};
	u32 i;

	for (i = 0; i < n; i++) {
		u32 l = i == n - 1 ? last_len : len;

		d[i].ctrl = (l & 0xffff) | 1u << 24 | (rx ? 0 : 3u << 26);
		d[i].meta = rx ? 0 : 0x01080003;
		d[i].addr = i == n - 1 ? last : addr;
	}
	if (ioctl(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c))
		give_up("descriptors");
	free(d);
}

static void queue(int fd, u64 tx, u64 rx, u32 n)
{
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = 3, .qid = 5, .tx_handle = tx, .rx_handle = rx,
		.tx_desc_count = n, .rx_desc_count = n,
	};

	if (ioctl(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init))
		give_up("queue");
}

static void start(int fd, u32 n)
{
	struct neuron_ioctl_dma_queue_copy_start s = {
		.eng_id = 3, .qid = 5, .tx_desc_count = n, .rx_desc_count = n,
	};

	if (ioctl(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s))
		give_up("start");
}

/* From the doorbell until a marker arrives, which is the last of @n descriptors: ns. */
static double ring_time(int fd, u32 n, u32 len)
{
	const u32 ring = 1024;
	struct neuron_native_mem_alloc tx = native(fd, ring * 16, 1), rx = native(fd, ring * 16, 1);
	struct neuron_native_mem_alloc src = native(fd, 64 * KIB, 0), dst = native(fd, 64 * KIB, 0);
	struct neuron_native_mem_alloc from = native(fd, 4 * KIB, 1), to = native(fd, 4 * KIB, 1);
	volatile u32 *word, *marker;
	u64 best = ~0ULL, t;
	u32 rep;

	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, from.mmap_offset);
	marker = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, to.mmap_offset);
	if (word == MAP_FAILED || marker == MAP_FAILED)
		give_up("mmap");
	for (rep = 1; rep < 10; rep++) {
		queue(fd, tx.mem_handle, rx.mem_handle, ring);
		write_descs(fd, tx.mem_handle, 0, n, src.pa, len, from.pa, 4);
		write_descs(fd, rx.mem_handle, 1, n, dst.pa, len, to.pa, 4);
		*word = rep;
		t = now();
		start(fd, n);
		while (*marker != rep)
			;
		t = now() - t;
		best = t < best ? t : best;
	}
	munmap((void *)word, 4096);
	munmap((void *)marker, 4096);
	mem_free(fd, tx.mem_handle);
	mem_free(fd, rx.mem_handle);
	mem_free(fd, src.mem_handle);
	mem_free(fd, dst.mem_handle);
	mem_free(fd, from.mem_handle);
	mem_free(fd, to.mem_handle);
	return best * tick_ns;
}

static void ring_rate(int fd, u32 len)
{
	const u32 n = 960;
	char what[64];

	snprintf(what, sizeof(what), "descriptor of %u bytes", len);
	report("ring", what, ring_time(fd, n, len) / n);
}

static void wait_for(int evfd)
{
	struct pollfd p = { .fd = evfd, .events = POLLIN };
	u64 n;

	if (poll(&p, 1, 10000) != 1 || read(evfd, &n, 8) != 8)
		give_up("event");
}

static int ping, pong;

static void *echo(void *arg)
{
	u64 one = 1;
	u32 i;

	for (i = 0; i < CALLS; i++) {
		wait_for(ping);
		if (write(pong, &one, 8) != 8)
			give_up("eventfd");
	}
	return arg;
}

/*
 * From a doorbell to the process that waits for the notification: a descriptor
 * that is refused is reported at once. Two changes of context, as in the ping-pong
 * of two threads beside it.
 */
static void wake_up(int fd)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 nq = {
		.nq_type = NQ_TYPE_ERROR, .size = 4096, .on_host_memory = 1, .force_alloc_mem = 1,
	};
	struct neuron_native_nq_eventfd ev = { .size = sizeof(ev), .nq_type = NQ_TYPE_ERROR };
	struct neuron_native_mem_alloc tx = native(fd, 4 * KIB, 1), rx = native(fd, 4 * KIB, 1);
	static u64 t[CALLS];
	pthread_t thread;
	u64 one = 1;
	u32 i;

	if (ioctl(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &nq))
		give_up("notification queue");
	ev.eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ioctl(fd, NEURON_NATIVE_NQ_EVENTFD, &ev))
		give_up("eventfd of a notification queue");
	for (i = 0; i < CALLS / 4; i++) {
		queue(fd, tx.mem_handle, rx.mem_handle, 64);
		/* an address of nobody */
		write_descs(fd, tx.mem_handle, 0, 1, 0, 64, 4096, 64);
		write_descs(fd, rx.mem_handle, 1, 1, 0, 64, 4096, 64);
		t[i] = now();
		start(fd, 1);
		wait_for(ev.eventfd);
		t[i] = now() - t[i];
	}
	report("wake-up", "doorbell, notification, process", best(t, CALLS / 4));

	ping = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pong = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_create(&thread, NULL, echo, NULL);
	for (i = 0; i < CALLS; i++) {
		t[i] = now();
		if (write(ping, &one, 8) != 8)
			give_up("eventfd");
		wait_for(pong);
		t[i] = now() - t[i];
	}
	pthread_join(thread, NULL);
	report("wake-up", "ping-pong of two threads over eventfds", best(t, CALLS));
	close(ev.eventfd);
	close(ping);
	close(pong);
}

static void work_ring(void)
{
	int fd = open_device(0);

	ring_rate(fd, 64);
	ring_rate(fd, 4096);
	ring_rate(fd, 65536);
	wake_up(fd);
	close(fd);
}

static u32 tree_files, tree_bytes;

static int read_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static char buf[65536];
	ssize_t n;
	int fd;

	(void)ftw;
	if (type != FTW_F || !(st->st_mode & 0444))
		return 0;
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	tree_files++;
	tree_bytes += n > 0 ? (u32)n : 0;
	return 0;
}

static void work_sysfs(void)
{
	static u64 t[FEW];
	u32 i;

	reload("arch=trn1 nr_devices=16");
	for (i = 0; i < 3; i++) {
		tree_files = tree_bytes = 0;
		t[i] = now();
		if (nftw("/sys/devices/virtual/neuron_device", read_file, 16, FTW_PHYS))
			give_up("sysfs");
		t[i] = now() - t[i];
	}
	report("sysfs", "tree of 16 devices", median(t, 3));
	value("sysfs", "files of 16 devices", tree_files);
	for (i = 0; i < FEW; i++) {
		struct stat st = { .st_mode = 0444 };

		t[i] = now();
		read_file("/sys/module/neuron/version", &st, FTW_F, NULL);
		t[i] = now() - t[i];
	}
	report("sysfs", "one file of the kernel itself", median(t, FEW));
	reload("arch=trn1");
}

/* What one process sees while more and more others have devices open. */
static void work_processes(void)
{
	static pid_t pid[64];
	char work[64];
	u32 n = 1, want, i;
	u64 handle, t[FEW];
	int go[2];
	char c;

	reload("arch=trn1 nr_devices=4");
	if (pipe(go))
		give_up("pipe");
	for (want = 1; want <= 64; want *= 2) {
		int fd = open_device(0);

		/* Number 0 is this process, on device 0. */
		for (; n < want; n++) {
			pid[n] = fork();
			if (pid[n])
				continue;
			close(fd);
			fd = open_device(n % 4);
			for (i = 0; i < 100; i++)
				must_alloc(fd, 64 * KIB, &handle);
			if (write(go[1], "x", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		for (i = want > 1 ? want / 2 : 1; i < want; i++) {
			if (read(go[0], &c, 1) != 1)
				give_up("child");
		}
		snprintf(work, sizeof(work), "%u processes", want);
		pairs(fd, work, 4 * KIB, CALLS);
		report(work, "empty ioctl", empty_ns);
		close(fd);
		for (i = 0; i < FEW; i++) {
			t[i] = now();
			fd = open_device(0);
			t[i] = now() - t[i];
			close(fd);
		}
		report(work, "open and attach", median(t, FEW));
	}
	for (i = 1; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	reload("arch=trn1");
}

static u64 alloc_as(int fd, u64 size, u32 flags)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = flags,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};

	if (ioctl(fd, NEURON_NATIVE_MEM_ALLOC, &a))
		give_up("alloc_as");
	return a.mem_handle;
}

static u64 copy_time(int fd, u64 to, u64 from, u64 size)
{
	struct neuron_ioctl_mem_copy64 c = {
		.src_mem_handle = from, .dst_mem_handle = to, .size = size,
	};
	u64 t = now();

	if (ioctl(fd, NEURON_IOCTL_MEM_COPY64, &c))
		give_up("copy");
	return now() - t;
}

/*
 * A chunk of @size between two holes, in the last four @size of the HBM: a request for two moves
 * it.  Beside it a copy to memory that nobody has had yet, as the new place is, and once more.
 */
static void move_once(int fd, u64 size, u64 *best)
{
	struct neuron_native_mem_compact m = { .size = sizeof(m), .bytes = 2 * size };
	char *data = malloc(size);
	u64 handle[4], to, t[3];
	u32 i;

	memset(data, 1, size);
	for (i = 0; i < 4; i++)
		handle[i] = alloc_as(fd, size, i == 2 ? NEURON_NATIVE_ALLOC_MOVABLE : 0);
	if (buf_copy(fd, handle[2], data, size, 1))
		give_up("fill");
	must_free(fd, handle[1]);
	must_free(fd, handle[3]);
	to = alloc_as(fd, size, 0);
	t[0] = copy_time(fd, to, handle[2], size);
	t[1] = copy_time(fd, to, handle[2], size);
	must_free(fd, to);
	t[2] = now();
	if (ioctl(fd, NEURON_NATIVE_MEM_COMPACT, &m) || m.moves != 1)
		give_up("move");
	t[2] = now() - t[2];
	for (i = 0; i < 3; i++)
		best[i] = t[i] < best[i] ? t[i] : best[i];
	must_free(fd, handle[0]);
	must_free(fd, handle[2]);
	free(data);
}

static void work_move(void)
{
	static const u64 sizes[] = { MIB, 16 * MIB, 64 * MIB };
	int fd = open_device(0);
	char what[64];
	u32 i, rep;

	for (i = 0; i < 3; i++) {
		struct neuron_native_hbm_stats s = { .size = sizeof(s) };
		u64 best[3] = { ~0ULL, ~0ULL, ~0ULL }, filler;

		if (ioctl(fd, NEURON_NATIVE_HBM_STATS, &s))
			give_up("figures");
		filler = alloc_as(fd, s.largest_free - 4 * sizes[i], NEURON_NATIVE_ALLOC_LOW);
		for (rep = 0; rep < 12; rep++)
			move_once(fd, sizes[i], best);
		snprintf(what, sizeof(what), "%llu MiB, against a copy to new memory", sizes[i] / MIB);
		value("move", what, (double)best[0] / best[2]);
		snprintf(what, sizeof(what), "%llu MiB, against a copy to old memory", sizes[i] / MIB);
		value("move", what, (double)best[1] / best[2]);
		must_free(fd, filler);
	}
	close(fd);
}

/* What a card costs beside a software device of its kind. */
static void beside(const char *work, const char *module, const char *options)
{
	char command[160];
	u64 t[5];
	u32 i;
	int fd;

	for (i = 0; i < 5; i++) {
		if (system("rmmod neuron_emu 2>/dev/null; rmmod neuron_pci 2>/dev/null; true"))
			give_up("unload");
		snprintf(command, sizeof(command), "modprobe %s %s", module, options);
		t[i] = now();
		if (system(command))
			give_up(command);
		close(open_device(0));
		t[i] = now() - t[i];
	}
	report(work, "load, probe, first open", median(t, 5));
	fd = open_device(0);
	pairs(fd, work, 4 * KIB, CALLS);
	report(work, "empty ioctl", empty_ns);
	report(work, "doorbell to completion", ring_time(fd, 1, 4));
	report(work, "64 descriptors of 4 KiB", ring_time(fd, 64, 4096));
	close(fd);
	opens(work);
	copies(work);
}

static void work_card(void)
{
	beside("software device", "neuron_emu", "arch=trn2");
	beside("card", "neuron_pci", "");
	if (system("rmmod neuron_pci"))
		give_up("unload");
	reload("arch=trn1");
}

static const struct {
	const char *name;
	void (*run)(void);
} works[] = {
	{ "rest", work_rest },
	{ "heap", work_heap },
	{ "checkerboard", work_checkerboard },
	{ "churn", work_churn },
	{ "close", work_close },
	{ "copy", work_copy },
	{ "move", work_move },
	{ "ring", work_ring },
	{ "sysfs", work_sysfs },
	{ "processes", work_processes },
	{ "card", work_card },
};

int main(int argc, char **argv)
{
	int k, fd;
	u32 i;

	reload("arch=trn1");
	baseline();
	for (i = 0; i < COUNT_OF(works); i++) {
		bool wanted = argc < 2 && works[i].run != work_card;

		for (k = 1; k < argc; k++)
			wanted = wanted || !strcmp(argv[k], works[i].name);
		if (!wanted)
			continue;
		fd = open_device(0);
		unit_measure(fd);
		close(fd);
		works[i].run();
	}
	printf("ok - measured\n");
	return 0;
}
