// SPDX-License-Identifier: GPL-2.0-only
/*
 * More calls that leak from, crash or hang the vendor's driver, named by their
 * rows in tables 10.1 to 10.3 of the interface facts; the others are in the
 * programs of what they are about.  Where the design makes a row impossible, the
 * same calls must give the documented answer and leave everything as it was.
 */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "check.h"
#include "device.h"

#define MIB	(1ull << 20)
#define KIB64	65536ull

static struct neuron_native_geometry geo;

static __u64 host_alloc(int fd, __u64 size)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a), "allocate host memory");
	return a.mem_handle;
}

static __u64 address(int fd, __u64 handle)
{
	__u64 pa = 0;
	struct neuron_ioctl_mem_get_pa g = { .mem_handle = handle, .pa = &pa };

	CHECK(!call(fd, NEURON_IOCTL_MEM_GET_PA, &g), "address");
	return pa;
}

static int buf(int fd, __u64 handle, void *p, __u64 size, __u64 off, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = p, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static struct neuron_native_hbm_stats stats(int fd)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	CHECK(!call(fd, NEURON_NATIVE_HBM_STATS, &s), "statistics");
	return s;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* ---- rings ---- */

#define RING	64u

static __u64 tx, rx, marks;

static int queue_init(int fd, uint32_t eng, uint32_t q, __u64 t, uint32_t nt, __u64 r,
		      uint32_t nr)
{
	struct neuron_ioctl_dma_queue_init i = {
		.eng_id = eng, .qid = q, .tx_desc_count = nt, .rx_desc_count = nr,
		.tx_handle = t, .rx_handle = r,
	};
	static struct neuron_ioctl_dma_queue_init has;

	/* A ring that the driver checks is of one queue at a time. */
	if (t == tx && has.tx_desc_count && (has.eng_id != eng || has.qid != q)) {
		has.tx_desc_count = 0;
		queue_init(fd, has.eng_id, has.qid, 0, 0, 0, 0);
	}
	if (t == tx) {
		has.eng_id = eng;
		has.qid = q;
		has.tx_desc_count = nt;
	}
	return call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &i);
}

static int put_desc(int fd, __u64 ring, uint32_t index, int is_rx, __u64 addr, uint32_t len)
{
	struct {
		uint32_t ctrl, meta;
		__u64 addr;
	} d = {
		.ctrl = (len & 0xffff) | 1u << 24 | (is_rx ? 0 : 3u << 26),
		.meta = is_rx ? 0 : 0x01080003,
		.addr = addr,
	};
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring, .buffer = &d, .num_descs = 1, .offset = index * sizeof(d),
		.queue_type = is_rx,
	};

	return call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c);
}

static int queue_start(int fd, uint32_t eng, uint32_t q, uint32_t nt, uint32_t nr)
{
	struct neuron_ioctl_dma_queue_copy_start s = {
		.eng_id = eng, .qid = q, .tx_desc_count = nt, .rx_desc_count = nr,
	};

	return call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s);
}

static int queue_state(int fd, uint32_t eng, uint32_t q, struct neuron_dma_queue_state *t,
		       struct neuron_dma_queue_state *r)
{
	struct neuron_ioctl_dma_queue_get_state g = { .eng_id = eng, .qid = q, .tx = t, .rx = r };

	return call(fd, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &g);
}

/*
 * Copy with a ring of its own; the status of the queue afterwards: 2 = good, 3 = aborted, or
 * the descriptor was refused when it was written. The heads move when descriptors are taken.
 * That the first is complete shows what the second writes.
 */
static uint32_t ring_copy(int fd, uint32_t eng, uint32_t q, __u64 dst, __u64 src,
			  uint32_t len)
{
	struct neuron_dma_queue_state t, r;
	uint32_t mark = 0xd0e, seen = 0;
	int i, err;

	if (queue_init(fd, eng, q, tx, RING, rx, RING))
		return 0;
	err = put_desc(fd, tx, 0, 0, src, len);
	err = err ? err : put_desc(fd, rx, 0, 1, dst, len);
	if (err)
		return err == EACCES && is_checked() ? 3 : 0;
	if (put_desc(fd, tx, 1, 0, address(fd, marks), sizeof(mark)) ||
	    put_desc(fd, rx, 1, 1, address(fd, marks) + 64, sizeof(mark)) ||
	    buf(fd, marks, &seen, sizeof(seen), 64, 1) ||
	    buf(fd, marks, &mark, sizeof(mark), 0, 1) || queue_start(fd, eng, q, 2, 2))
		return 0;
	for (i = 0; i < 3000; i++) {
		if (queue_state(fd, eng, q, &t, &r) ||
		    buf(fd, marks, &seen, sizeof(seen), 64, 0))
			return 0;
		if (t.sw_status == 3 || r.sw_status == 3)
			return 3;
		if (seen == mark)
			return 2;
		usleep(10000);
	}
	return 1;
}

/* ---- table 10.1 ---- */

static __u64 other_handle, other_addr;
static int other_fd;

static void a5_child(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_ioctl_mem_get_mc_mmap_info_v2 mc = { .pa = other_addr };
	__u64 h;
	int bad = 0;

	for (h = 0; h < 64; h++)
		bad += mem_free(fd, h) != ENOENT;
	CHECK(!bad && mem_free(fd, other_handle) == ENOENT,
	      "vendor A5: handles of others cannot be guessed: ENOENT");
	CHECK(call(fd, NEURON_IOCTL_MEM_MC_GET_INFO_V2, &mc) == ENOENT,
	      "vendor A5: nor had by address: ENOENT");
}

static void a4_mapped_memory(int fd)
{
	__u64 used = stats(fd).used, a = alloc(fd, KIB64, 0, 0), b, off, pa;
	struct neuron_ioctl_mem_get_info info = { .mem_handle = a };
	volatile uint32_t *map;
	uint32_t word = 0, i;
	int bad = 0;

	info.mmap_offset = &off;
	info.pa = &pa;
	CHECK(!call(fd, NEURON_IOCTL_MEM_GET_INFO, &info), "mmap offset");
	map = mmap(NULL, KIB64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);
	CHECK(map != MAP_FAILED && !mem_free(fd, a), "map, free");
	map[0] = 0x600d;
	for (i = 0; i < 32; i++) {
		b = alloc(fd, KIB64, 0, 0);
		bad += address(fd, b) == pa || buf(fd, b, &word, 4, 0, 0) || word;
		mem_free(fd, b);
	}
	CHECK(!bad && map[0] == 0x600d && stats(fd).used == used + KIB64,
	      "vendor A4: mapped memory is nobody else's after MEM_FREE");
	munmap((void *)map, KIB64);
	CHECK(stats(fd).used == used, "vendor A4: and goes with the mapping");
}

static void a5_strangers(int fd)
{
	__u64 a = alloc(fd, KIB64, 0, 0);
	uint32_t word = 0;

	other_handle = a;
	other_addr = address(fd, a);
	in_child(a5_child);
	CHECK(!buf(fd, a, &word, 4, 0, 1), "vendor A5: it is still there");
	mem_free(fd, a);
}

static void a7_wrong_events(int fd)
{
	const struct {
		uint32_t core, event;
		int err;
	} wrong[] = {
		{ geo.nr_cores, 0, E2BIG }, { 255, 0, E2BIG }, { 256, 0, E2BIG }, { ~0u, 0, E2BIG },
		{ 0, geo.nr_events, EINVAL },
	};
	uint32_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct neuron_ioctl_event get = {
			.nc_id = wrong[i].core, .event_index = wrong[i].event,
		}, set = get;

		CHECK(call(fd, NEURON_IOCTL_EVENT_GET, &get) == wrong[i].err &&
		      call(fd, NEURON_IOCTL_EVENT_SET, &set) == wrong[i].err,
		      "vendor A7: event %u of core %#x: %s", wrong[i].event, wrong[i].core,
		      strerror(wrong[i].err));
	}
}

static void a8_wrong_queues(int fd)
{
	static const uint32_t wrong[][3] = {	/* core, type, engine */
		{ 0, 0, 16 }, { 0, 5, 31 }, { 0, 16, 0 }, { 0, 256, 0 }, { 256, 0, 0 },
		{ 0, 0, 256 },
	};
	uint32_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct neuron_ioctl_notifications_init_v1 v1 = {
			.nc_id = wrong[i][0], .nq_type = wrong[i][1],
			.engine_index = wrong[i][2], .size = 4096,
		};
		struct neuron_ioctl_notifications_init_v2 v2 = {
			.nq_dev_id = wrong[i][0], .nq_type = wrong[i][1],
			.engine_index = wrong[i][2], .size = 4096, .on_host_memory = 1,
		};

		CHECK(call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V1, &v1) == EINVAL &&
		      call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &v2) == EINVAL,
		      "vendor A8: notification queue of core %u, type %u, engine %u: EINVAL",
		      wrong[i][0], wrong[i][1], wrong[i][2]);
	}
}

static void a9_wrong_states(int fd)
{
	struct neuron_dma_queue_state t, r;

	CHECK(queue_state(fd, ~0u, 0, &t, &r) == EINVAL &&
	      queue_state(fd, geo.nr_dma_engines, 0, &t, &r) == EINVAL &&
	      queue_state(fd, 0, 16, &t, &r) == EINVAL &&
	      queue_state(fd, 0, ~0u, &t, &r) == EINVAL &&
	      queue_state(fd, 0, 9, &t, &r) == ENOENT,
	      "vendor A9: state of queues that do not exist: EINVAL, ENOENT");
}

static void a12_end_of_memory(int fd)
{
	struct neuron_native_mem_alloc high = {
		.size = sizeof(high),
		.mem_type = NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE,
	};
	volatile uint32_t *map;
	uint32_t word = 0, i;
	__u64 all[16];

	/* Everything, until one is at the end. */
	for (i = 0; i < 16; i++) {
		high.bytes = stats(fd).largest_free;
		if (!high.bytes || call(fd, NEURON_NATIVE_MEM_ALLOC, &high))
			break;
		all[i] = high.mem_handle;
		if (high.pa + high.bytes == geo.hbm[0].base + geo.hbm[0].size)
			break;
	}
	CHECK(i < 16 && high.pa + high.bytes == geo.hbm[0].base + geo.hbm[0].size,
	      "an allocation that ends where its device memory ends (%#llx + %#llx)",
	      (unsigned long long)high.pa, (unsigned long long)high.bytes);
	while (i-- > 0)
		mem_free(fd, all[i]);
	map = mmap(NULL, KIB64, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   high.mmap_offset + high.bytes - KIB64);
	CHECK(map != MAP_FAILED, "vendor A12: it can be mapped");
	if (map != MAP_FAILED) {
		map[KIB64 / 4 - 1] = 0xa12;
		CHECK(!buf(fd, high.mem_handle, &word, 4, high.bytes - 4, 0) && word == 0xa12,
		      "vendor A12: to its own last bytes");
		munmap((void *)map, KIB64);
	}
	mem_free(fd, high.mem_handle);
}

static void a22_end_of_scratchpad(int fd)
{
	struct neuron_native_mem_alloc high = {
		.size = sizeof(high), .bytes = KIB64, .flags = NEURON_NATIVE_ALLOC_HIGH,
		.mem_type = NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE,
	};
	uint32_t word = 0;

	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &high) &&
	      buf(fd, high.mem_handle, &word, 4, KIB64, 0) == EINVAL &&
	      buf(fd, high.mem_handle, &word, 8, KIB64 - 4, 0) == EINVAL,
	      "vendor A22: a piece of the scratchpad ends at its end: EINVAL");
	mem_free(fd, high.mem_handle);
}

/* Not seen by a check of the first byte only, or before the ring is changed. */
static void a16_long_descriptors(int fd)
{
	__u64 a = alloc(fd, KIB64, 0, 0), host = host_alloc(fd, KIB64), pa = address(fd, a);
	uint32_t word = 0x5afe;

	CHECK(!buf(fd, a, &word, 4, KIB64 - 4, 1), "mark");
	CHECK(ring_copy(fd, 0, 1, address(fd, host), pa + KIB64 - 4, 4096) == 3,
	      "vendor A16: a descriptor that goes over the end stops the queue");
	CHECK(ring_copy(fd, 0, 1, pa + KIB64 - 4, address(fd, host), 4096) == 3 &&
	      !buf(fd, a, &word, 4, KIB64 - 4, 0) && word == 0x5afe,
	      "vendor A16: nothing is written");
	mem_free(fd, a);
	mem_free(fd, host);
}

static void a17_long_rings(int fd)
{
	CHECK(queue_init(fd, 0, 1, tx, PAGE / 16 + 16, rx, RING) == EINVAL &&
	      queue_init(fd, 0, 1, tx, RING, rx, PAGE / 16 + 16) == EINVAL &&
	      queue_init(fd, 0, 1, tx, 16777200, rx, RING) == EINVAL,
	      "vendor A17: a ring longer than its memory: EINVAL");
}

static void a19_kernel_addresses(int fd)
{
	__u64 a = alloc(fd, KIB64, 0, 0);
	struct neuron_ioctl_mem_get_extended_info ext = { .mem_handle = a };
	struct neuron_ioctl_device_info dev;
	uint32_t i;
	int bad = 0;

	CHECK(!call(fd, NEURON_IOCTL_DEVICE_INFO, &dev), "device info");
	for (i = 0; i < NEURON_MAX_BARS; i++)
		bad += (int64_t)dev.bar_address[i] < 0;
	CHECK(!bad && !call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext) &&
	      ext.mem_handle == a, "vendor A19: no kernel address in what the driver tells");
	mem_free(fd, a);
}

static void a23_host_addresses(int fd)
{
	__u64 a = alloc(fd, KIB64, 0, 0), host = host_alloc(fd, KIB64), pa = address(fd, a);

	CHECK(!(address(fd, host) & ~(geo.host_window | (geo.host_window - 1))) &&
	      address(fd, host) & geo.host_window,
	      "vendor A23: host memory has a device address of its own");
	CHECK(ring_copy(fd, 0, 1, pa, address(fd, host), 64) == 2, "which the device understands");
	CHECK(ring_copy(fd, 0, 1, pa, address(fd, host) & ~geo.host_window, 64) == 3 &&
	      ring_copy(fd, 0, 1, pa, 0x100000, 64) == 3 &&
	      ring_copy(fd, 0, 1, geo.host_window | 0x100000000000000, pa, 64) == 3,
	      "vendor A23: it understands no physical address");
	mem_free(fd, a);
	mem_free(fd, host);
}

static void isolation(int fd)
{
	a4_mapped_memory(fd);
	a5_strangers(fd);
	a7_wrong_events(fd);
	a8_wrong_queues(fd);
	a9_wrong_states(fd);
	a12_end_of_memory(fd);
	a22_end_of_scratchpad(fd);
	a16_long_descriptors(fd);
	a17_long_rings(fd);
	a19_kernel_addresses(fd);
	a23_host_addresses(fd);
}

/* ---- table 10.2 ---- */

static void b1_child(void)
{
	struct neuron_ioctl_mem_alloc_v2 v2 = { .size = 4096, .mem_handle = &(__u64){ 0 } };

	CHECK(call(other_fd, NEURON_IOCTL_MEM_ALLOC_V2, &v2) == EACCES,
	      "vendor B1: allocation by a process that is not attached: EACCES");
}

/* Opens the node as soon as it is there. */
static void *opens(void *arg)
{
	volatile int *stop = arg;
	long opened = 0;

	while (!*stop) {
		int fd = open(NODE, O_RDWR | O_CLOEXEC);
		struct neuron_ioctl_device_basic_info info;

		if (fd < 0)
			continue;
		opened += !call(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &info);
		close(fd);
	}
	return (void *)opened;
}

static void b11(int card)
{
	volatile int stop = 0;
	int i, j, bad = 0;
	pthread_t t;
	void *opened;

	pthread_create(&t, NULL, opens, (void *)&stop);
	for (i = 0; i < 5; i++) {
		/* It is busy now and then: the other thread has it open. */
		for (j = 0; j < 500 && device_unload(card); j++)
			;
		bad += j == 500 || device_load(card);
	}
	usleep(200000);
	stop = 1;
	pthread_join(t, &opened);
	CHECK(!bad && opened, "vendor B11: opened while it comes and goes, %ld times",
	      (long)opened);
}

static void b13(int fd)
{
	enum { MANY = 20000 };
	__u64 *h = calloc(MANY, sizeof(*h)), used = stats(fd).used, last = 0;
	struct neuron_ioctl_mem_alloc a = { .size = 4096 };
	int i, n, bad = 0;

	for (n = 0; n < MANY; n++) {
		a.mem_handle = &h[n];
		if (call(fd, NEURON_IOCTL_MEM_ALLOC, &a))
			break;
	}
	CHECK(n == MANY && !buf(fd, h[n - 1], &last, 8, 0, 1), "%d handles", n);
	for (i = 0; i < n; i++)
		bad += mem_free(fd, h[i]) != 0;
	last = alloc(fd, 4096, 0, 0);
	CHECK(!bad && !mem_free(fd, last) && stats(fd).used == used,
	      "vendor B13: handles work after very many of them");
	free(h);
}

static void crashes(int fd)
{
	struct neuron_ioctl_dma_ack_completed ack = { .eng_id = 0, .qid = 2, .count = 47 };
	struct neuron_ioctl_dma_descriptor_copyout out = {
		.eng_id = 256, .qid = 2, .count = 1, .buffer = &(char[16]){ 0 },
	};
	int copy, bad = 0;
	uint32_t type;

	other_fd = fd;
	in_child(b1_child);
	copy = dup(fd);
	close(copy);
	mem_free(fd, alloc(fd, 4096, 0, 0));
	CHECK(stats(fd).total, "vendor B1: close() of a duplicate detaches nobody");

	CHECK(queue_start(fd, 0, 3, 0, 0) == EINVAL && queue_start(fd, 0, 3, 1, 0) == EINVAL,
	      "vendor B2: start of no RX descriptors: EINVAL");
	CHECK(queue_start(fd, 0, 3, 1, 1) == ENOENT && queue_start(fd, 0, 16, 1, 1) == EINVAL &&
	      queue_start(fd, 0, ~0u, 1, 1) == EINVAL, "vendor B3: of no queue: ENOENT, EINVAL");
	CHECK(!queue_init(fd, 0, 3, 0, 0, 0, 0) && queue_start(fd, 0, 3, 1, 1) == EINVAL &&
	      queue_start(fd, 0, 3, 0, 1) == EINVAL, "vendor B3: without rings: EINVAL");
	CHECK(!queue_init(fd, 0, 2, tx, 48, rx, 48) && !call(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack) &&
	      !call(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack), "vendor B4: a ring of 48 descriptors");
	CHECK(call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) == EINVAL,
	      "vendor B8: ring of engine 256: EINVAL");
	for (type = 4; type < 8; type++) {
		struct neuron_ioctl_notifications_init_v1 v1 = { .nq_type = type, .size = 4096 };

		bad += call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V1, &v1) !=
		       (type < geo.nr_nq_types ? 0 : EINVAL);
	}
	CHECK(!bad, "vendor B10: notification queues of type 4 and 5 are like others");
	b13(fd);
}

/* ---- table 10.3 ---- */

struct racer {
	pthread_t thread;
	int fd;
	volatile int *stop;
	volatile __u64 *handle;
	long good, odd;
};

static void *looks_up(void *arg)
{
	struct racer *r = arg;

	while (!*r->stop) {
		__u64 pa, off;
		struct neuron_ioctl_mem_get_info g = {
			.mem_handle = *r->handle, .pa = &pa, .mmap_offset = &off,
		};
		uint32_t word = 1;
		int unknown = call(r->fd, NEURON_IOCTL_MEM_GET_INFO, &g), err;
		void *p;

		r->good += !unknown;
		r->odd += unknown && unknown != ENOENT;
		err = buf(r->fd, *r->handle, &word, 4, 0, 1);
		r->odd += err && err != ENOENT;
		if (unknown || err)
			continue;
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, off);
		if (p != MAP_FAILED) {
			*(volatile uint32_t *)p = 2;
			munmap(p, 4096);
		} else {
			r->odd += errno != EPERM;
		}
	}
	return NULL;
}

static void races(int fd)
{
	volatile __u64 handle = 0;
	volatile int stop = 0;
	__u64 used = stats(fd).used;
	struct racer r[3];
	struct neuron_ioctl_mem_alloc a = { .size = 4096, .mem_handle = (__u64 *)&handle };
	double end = now() + 5;
	int i, bad = 0, n = 0;

	for (i = 0; i < 3; i++) {
		r[i] = (struct racer){ .fd = fd, .stop = &stop, .handle = &handle };
		pthread_create(&r[i].thread, NULL, looks_up, &r[i]);
	}
	while (now() < end) {
		bad += call(fd, NEURON_IOCTL_MEM_ALLOC, &a) != 0;
		if (n++ % 8 == 0)
			usleep(500);
		bad += mem_free(fd, handle) != 0;
	}
	stop = 1;
	for (i = 0; i < 3; i++) {
		pthread_join(r[i].thread, NULL);
		bad += r[i].odd != 0;
	}
	CHECK(!bad, "vendor C7: lookup and use against MEM_FREE, %d times", n);
	CHECK(stats(fd).used == used, "vendor C8: mmap against MEM_FREE, nothing is left");
}

static void *waits_for_reset(void *arg)
{
	int fd = *(int *)arg, i, bad = 0;

	for (i = 0; i < 2000; i++) {
		struct neuron_ioctl_device_ready w = { .request_id = getpid(), .result = 9 };

		bad += call(fd, NEURON_IOCTL_NC_RESET_READY, &w) || w.result;
		w.request_id = i;
		bad += call(fd, NEURON_IOCTL_NC_RESET_READY, &w) ||
		       w.result != (i == getpid() ? 0 : 1);
	}
	return (void *)(long)bad;
}

static void c9(int fd)
{
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };
	pthread_t t[3];
	void *res;
	int i, bad = 0;

	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, waits_for_reset, &fd);
	for (i = 0; i < 20; i++)
		bad += call(fd, NEURON_IOCTL_NC_RESET, &reset) != 0;
	for (i = 0; i < 3; i++) {
		pthread_join(t[i], &res);
		bad += res != NULL;
	}
	CHECK(!bad, "vendor C9: three wait for one reset, with any token");
}

static unsigned long long available(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void *sync_copies(void *arg)
{
	struct racer *r = arg;
	__u64 a = *r->handle;
	struct neuron_ioctl_mem_copy64 c = {
		.src_mem_handle = a, .dst_mem_handle = a, .size = 4096, .dst_offset = 8192,
	};

	while (!*r->stop)
		r->odd += call(r->fd, NEURON_IOCTL_MEM_COPY64, &c) != 0;
	return NULL;
}

static void copies(int fd)
{
	__u64 a = alloc(fd, MIB, 0, 0), b = alloc(fd, MIB, 0, geo.nr_cores - 1);
	volatile __u64 handle = a;
	volatile int stop = 0;
	struct racer r = { .fd = fd, .stop = &stop, .handle = &handle };
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = a, .dst_mem_handle = b, .size = MIB, .pwait_handle = ~0u,
	};
	struct neuron_ioctl_mem_copy_async_wait w = {
		.src_mem_handle = a, .dst_mem_handle = b, .pwait_handle = 1,
	};
	char *page = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct neuron_ioctl_mem_buf_copy64 zero = {
		.mem_handle = a, .buffer = page + MIB / 2, .size = MIB, .copy_to_mem_handle = 1,
	};
	struct neuron_ioctl_mem_copy64 s = { .src_mem_handle = b, .dst_mem_handle = a, .size = MIB };
	int i, bad = 0;

	munmap(page + MIB, MIB);
	for (i = 0; i < 20; i++)
		bad += call(fd, NEURON_IOCTL_MEM_BUF_ZEROCOPY64, &zero) != EFAULT;
	zero.buffer = page;
	CHECK(!bad && !call(fd, NEURON_IOCTL_MEM_BUF_ZEROCOPY64, &zero),
	      "vendor C10: a copy that fails half-way does not harm the next one");

	pthread_create(&r.thread, NULL, sync_copies, &r);
	for (i = 0; i < 50; i++)
		bad += call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c) ||
		       call(fd, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w);
	stop = 1;
	pthread_join(r.thread, NULL);
	CHECK(!bad && !r.odd, "vendor C11: synchronous copies while asynchronous ones are waited for");

	memset(page, 0x24, MIB);
	CHECK(!buf(fd, a, page, MIB, 0, 1) && !call(fd, NEURON_IOCTL_MEM_COPY_ASYNC64, &c) &&
	      !call(fd, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w), "asynchronous copy to another core");
	memset(page, 0, MIB);
	CHECK(!buf(fd, a, page, MIB, 0, 1) && !call(fd, NEURON_IOCTL_MEM_COPY64, &s) &&
	      !buf(fd, a, page, MIB, 0, 0) && page[0] == 0x24 && page[MIB - 1] == 0x24,
	      "vendor C24: and back, whichever ring does it");

	/* 2^32 bytes are not 0 bytes. */
	CHECK(buf(fd, a, page, 1ull << 32, 0, 1) == EINVAL && buf(fd, a, page, 1ull << 32, 0, 0) == EINVAL,
	      "vendor C22: 4 GiB from 1 MiB: EINVAL");
	munmap(page, MIB);
	mem_free(fd, a);
	mem_free(fd, b);
}

static void queues(int fd)
{
	struct neuron_ioctl_dma_descriptor_copyout out = {
		.eng_id = 0, .qid = 4, .count = 1, .type = NEURON_DMA_QUEUE_TYPE_TX,
	};
	__u64 host = host_alloc(fd, KIB64), dev = alloc(fd, 4096, 0, 0);
	__u64 hbm_ring = alloc(fd, 4096, 0, 0), hbm_rx = alloc(fd, 4096, 0, 0);
	struct neuron_dma_queue_state t, r, t2, r2;
	static struct neuron_ioctl_dma_queue_init_batch *batch;
	unsigned long long before;
	__u64 desc[2] = { 0, 0 }, pattern[2];
	struct neuron_native_core_stats core = { .size = sizeof(core) }, core2 = { .size = sizeof(core) };
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 };
	uint32_t e = geo.engines_per_core > 5 ? 5 : geo.engines_per_core - 1;
	/* One of a card takes half a second. */
	int i, bad = 0, resets = is_card() ? 20 : 200;

	CHECK(!queue_init(fd, 0, 4, hbm_ring, RING, hbm_rx, RING), "a ring in device memory");
	out.buffer = desc;
	out.start_index = RING;
	bad += call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) != EINVAL;
	out.start_index = 0;
	out.count = 0;
	bad += call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) != EINVAL;
	out.count = RING + 1;
	bad += call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) != EINVAL;
	out.count = 1;
	out.buffer = (void *)8;
	bad += call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) != EFAULT;
	out.qid = 16;
	bad += call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) != EINVAL;
	out.qid = 11;
	bad += call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) != ENOENT;
	out.qid = 4;
	out.buffer = desc;
	CHECK(!bad && !call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) &&
	      !queue_state(fd, 0, 4, &t, &r), "vendor C1: the engine works after six refused requests");

	CHECK(!put_desc(fd, hbm_ring, 7, 0, address(fd, dev) + 64, 7) &&
	      !buf(fd, hbm_ring, pattern, sizeof(pattern), 7 * 16, 0), "contents");
	out.start_index = 7;
	CHECK(!call(fd, NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT, &out) && desc[0] &&
	      desc[0] == pattern[0] && desc[1] == address(fd, dev) + 64, "vendor C23: the start index counts for a ring in device memory");

	/* 12 KiB for each would be 48 MiB. */
	batch = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap((char *)batch + PAGE, PAGE);
	batch->count = 200;
	for (i = 0; i < 200 && (char *)&batch->entries[i + 1] <= (char *)batch + PAGE; i++)
		batch->entries[i] = (struct neuron_ioctl_dma_queue_init){ .eng_id = ~0u };
	before = available();
	for (i = 0; i < 4000; i++)
		bad += call(fd, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, batch) != EINVAL;
	batch = (void *)((char *)batch + PAGE - 8);
	batch->count = 200;
	for (i = 0; i < 4000; i++)
		bad += call(fd, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, batch) != EFAULT;
	CHECK(!bad && available() + (24 << 10) > before,
	      "vendor C5: 8000 batches that are refused keep no memory");

	CHECK(ring_copy(fd, e, 5, address(fd, dev), address(fd, host), 64) == 2 &&
	      !queue_state(fd, e, 5, &t, &r) && r.head_pointer == 2 && r.tail_pointer == 2 &&
	      !queue_state(fd, 0, 4, &t2, &r2) && !r2.tail_pointer && !t2.tail_pointer,
	      "vendor C30: both rings of a queue are of its engine, %u", e);

	CHECK(!call(fd, NEURON_NATIVE_CORE_STATS, &core), "memory of core 0");
	for (i = 0; i < resets; i++)
		bad += call(fd, NEURON_IOCTL_NC_RESET, &reset) != 0;
	CHECK(!bad && !call(fd, NEURON_NATIVE_CORE_STATS, &core2) &&
	      core2.host_bytes == core.host_bytes, "vendor C6: %d resets keep no memory", resets);
	mem_free(fd, host);
	mem_free(fd, dev);
	CHECK(!queue_init(fd, 0, 4, 0, 0, 0, 0), "release the queue");
	mem_free(fd, hbm_ring);
	mem_free(fd, hbm_rx);
}

static void *nq_again(void *arg)
{
	int fd = *(int *)arg, i;
	long bad = 0;

	for (i = 0; i < 300; i++) {
		struct neuron_ioctl_notifications_init_with_realloc_v2 nq = {
			.nq_type = NQ_TYPE_NOTIFY, .size = 4096, .on_host_memory = 1,
			.force_alloc_mem = i & 1,
		};

		bad += call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &nq) != 0;
	}
	return (void *)bad;
}

static void c21(int fd)
{
	struct neuron_native_core_stats before = { .size = sizeof(before) };
	struct neuron_native_core_stats after = { .size = sizeof(after) };
	pthread_t t[3];
	void *res;
	int i, bad = 0;

	bad += nq_again(&fd) != NULL;
	bad += call(fd, NEURON_NATIVE_CORE_STATS, &before);
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, nq_again, &fd);
	for (i = 0; i < 3; i++) {
		pthread_join(t[i], &res);
		bad += res != NULL;
	}
	bad += call(fd, NEURON_NATIVE_CORE_STATS, &after);
	CHECK(!bad && before.host_bytes == after.host_bytes,
	      "vendor C21: a notification queue is replaced by three threads at once");
}

/* ---- processes, sysfs, the module ---- */

static void c12(void)
{
	int fd = open_node(O_RDWR), i;
	__u64 a = alloc(fd, 4096, 0, 0);
	uint32_t word = 0xc12;

	CHECK(!buf(fd, a, &word, 4, 0, 1), "memory");
	for (i = 0; i < 50; i++) {
		close(dup(fd));
		if (!fork()) {
			close(fd);
			_exit(0);
		}
		wait(NULL);
	}
	word = 0;
	CHECK(!buf(fd, a, &word, 4, 0, 0) && word == 0xc12,
	      "vendor C12: close() of duplicates, here and in children, cleans nothing up");
	close(fd);
}

static void c26(void)
{
	int fd = open_node(O_RDWR), p[2], sig;
	struct neuron_ioctl_crwl lock = { .nc_id = 0 };
	double start;
	pid_t pid;
	char c = 0;

	CHECK(!call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &lock), "a lock");
	for (sig = 0; sig < 2; sig++) {
		if (pipe(p))
			exit(1);
		start = now();
		pid = fork();
		if (!pid) {
			struct neuron_ioctl_crwl want = { .nc_id = 0, .uuid = { { 1 } } };
			int own = open_node(O_RDWR);

			if (write(p[1], &c, 1) != 1)
				_exit(1);
			call(own, NEURON_IOCTL_CRWL_WRITER_ENTER, &want);
			_exit(0);
		}
		if (read(p[0], &c, 1) != 1)
			exit(1);
		usleep(200000);
		kill(pid, sig ? SIGKILL : SIGTERM);
		waitpid(pid, NULL, 0);
		/* By itself it ends after 4 s (uapi/FACTS.md 2). */
		CHECK(now() - start < 3.9, "vendor C26: signal %s ends a wait in the driver",
		      sig ? "KILL" : "TERM");
		close(p[0]);
		close(p[1]);
	}
	close(fd);
}

static void c19_child(void)
{
	int fd = open_node(O_RDWR);
	struct {
		struct neuron_ioctl_get_apps_info h;
		struct neuron_app_info app[16];
	} apps = { .h.apps_info_flags = APP_INFO_ALL, .h.capacity = 16 };
	unsigned int i;
	int bad = 1;

	if (!call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &apps))
		for (i = 0; i < apps.h.size; i++)
			if (apps.app[i].pid == getpid())
				bad = apps.app[i].device_mem_size || apps.app[i].host_mem_size;
	CHECK(!bad, "vendor C19: a new process is charged nothing");
	alloc(fd, MIB, 0, 0);
	host_alloc(fd, MIB);
}

static long long counter(const char *path, const char *set)
{
	char name[256], text[64] = "";
	FILE *f;

	snprintf(name, sizeof(name), SYSFS "%s", path);
	if (set) {
		f = fopen(name, "w");
		if (f) {
			fputs(set, f);
			fclose(f);
		}
	}
	f = fopen(name, "r");
	if (!f || !fgets(text, sizeof(text), f))
		CHECK(0, "read %s", name);
	if (f)
		fclose(f);
	return atoll(text);
}

static void accounting(void)
{
	static const char total[] = "neuron_core0/stats/memory_usage/device_mem/tensors/total";
	int fd = open_node(O_RDWR);
	struct neuron_native_hbm_stats s = stats(fd);
	long long before = counter(total, NULL);
	__u64 a = alloc(fd, MIB, 0, 0), sum = 0;
	int i;

	counter(total, "0");
	CHECK(counter(total, NULL) == before + (long long)MIB && !mem_free(fd, a) &&
	      counter(total, NULL) == before, "vendor C18: a write does not change a live counter");
	s = stats(fd);
	for (i = 0; i < NEURON_NATIVE_MAX_CATEGORIES; i++)
		sum += s.by_category[i];
	CHECK(sum == s.used && s.free == s.total - s.used - s.reserved,
	      "vendor C20: what is used, reserved and free adds up");
	for (i = 0; i < 3; i++)
		in_child(c19_child);
	CHECK(stats(fd).used == s.used, "vendor C19: and leaves nothing");
	close(fd);
}

static int held[64], nr_held;

static int hold(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_F && nr_held < 64) {
		held[nr_held] = open(path, O_RDONLY);
		nr_held += held[nr_held] >= 0;
	}
	return 0;
}

/* The module's file has no such word in it: it does not use the function. */
static int imports(const char *function)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "grep -qw %s $(modinfo -n neuron) $(modinfo -n neuron_emu)",
		 function);
	return !system(cmd);
}

static void module(void)
{
	char c[64];
	int fd, i, bad = 0, card = is_card();

	CHECK(imports("neuron_device_add"), "names in a module can be looked for");
	CHECK(!imports("call_usermodehelper"), "vendor C27: the driver starts no program");
	CHECK(!imports("filp_open") && !imports("kernel_read"),
	      "vendor C28: the driver opens no file");

	fd = open_node(O_RDWR);
	CHECK(device_unload(card), "vendor C16: an open device cannot be removed");
	close(fd);
	/* Files of cores that outlive them. */
	nftw(SYSFS, hold, 16, FTW_PHYS);
	CHECK(nr_held == 64 && !device_unload(card), "remove it with open files in sysfs");
	for (i = 0; i < nr_held; i++) {
		bad += read(held[i], c, sizeof(c)) >= 0;
		close(held[i]);
	}
	CHECK(!bad, "vendor C17: they can be read no more");
	CHECK(access(NODE, F_OK) && access("/sys/devices/virtual/neuron_device/neuron0", F_OK),
	      "vendor C16: node and class entry are gone");
	CHECK(system("modprobe neuron_emu nr_devices=65 2>/dev/null") && access(NODE, F_OK) &&
	      system("grep -q neuron_emu /proc/modules"),
	      "vendor C15: a device that does not start leaves nothing");
	CHECK(!device_load(card), "it starts after that");
	b11(card);
}

#define TRACEFS	"/sys/kernel/tracing/"

static void c29(int fd)
{
	int bad;

	mkdir("/sys/kernel/tracing", 0700);
	bad = system("mount -t tracefs none " TRACEFS " 2>/dev/null; echo > " TRACEFS "trace;"
		     "echo 1 > " TRACEFS "events/neuron/neuron_alloc/enable &&"
		     "echo 1 > " TRACEFS "events/neuron/neuron_free/enable");
	CHECK(!bad, "trace allocations");
	mem_free(fd, alloc(fd, 4096, 0, 0));
	CHECK(!system("[ $(grep -c ' neuron_alloc: ' " TRACEFS "trace) = 1 ]") &&
	      !system("[ $(grep -c ' neuron_free: ' " TRACEFS "trace) = 1 ]"),
	      "vendor C29: one event of an allocation, one of a free");
	system("echo 0 > " TRACEFS "events/enable");
}

int main(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_native_hbm_stats s;

	geo = geometry(fd);
	s = stats(fd);
	tx = host_alloc(fd, 4096);
	rx = host_alloc(fd, 4096);
	marks = host_alloc(fd, 4096);
	isolation(fd);
	crashes(fd);
	races(fd);
	c9(fd);
	copies(fd);
	queues(fd);
	c21(fd);
	c29(fd);
	/* What the slots of rings name is in use as long as they do. */
	CHECK(!queue_init(fd, 0, 1, tx, RING, rx, RING) && !queue_init(fd, 0, 1, 0, 0, 0, 0) &&
	      !mem_free(fd, tx) && !mem_free(fd, rx), "free the rings");
	CHECK(stats(fd).used == s.used, "no device memory is left over");
	close(fd);
	in_child(c12);
	in_child(c26);
	accounting();
	module();
	return failed != 0;
}
