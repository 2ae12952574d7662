// SPDX-License-Identifier: GPL-2.0-only
/* Tracepoints: enabled through tracefs, they show what a program did, with the right values. */
#include <stdarg.h>
#include <sys/mount.h>

#include "check.h"
#include "device.h"

#define TRACEFS	"/sys/kernel/tracing/"

static char buf[1 << 20];

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	int err = fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text);

	close(fd);
	return err;
}

static void get(void)
{
	int fd = open(TRACEFS "trace", O_RDONLY);
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(buf) - 1 && (n = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0)
		len += n;
	buf[len] = 0;
	close(fd);
}

/* How often the lines since the last clear() have this text; it must start with the event. */
static int seen(const char *fmt, ...)
{
	char want[256];
	const char *p;
	va_list ap;
	int n = 0;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	get();
	for (p = buf; (p = strstr(p, want)); p++)
		n++;
	return n;
}

static void clear(void)
{
	CHECK(!put(TRACEFS "trace", " "), "clear the trace");
}

/* Completions come from the device, a little later. */
static int seen_soon(const char *text)
{
	int i;

	for (i = 0; i < 500 && !seen("%s", text); i++)
		usleep(10000);
	return seen("%s", text);
}

/* A reset of a core is over at once, but that of a card's. */
static int seen_reset(const char *text)
{
	return is_card() ? seen_soon(text) : seen("%s", text);
}

static void memory(int fd)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = 1 << 20, .align = 8192, .hbm = 1, .nc_id = 2,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	struct neuron_native_mem_alloc big = a;

	clear();
	big.bytes = 1ull << 42;
	CHECK(!call(fd, NEURON_NATIVE_MEM_ALLOC, &a) &&
	      call(fd, NEURON_NATIVE_MEM_ALLOC, &big) == ENOMEM && !mem_free(fd, a.mem_handle),
	      "one allocation, one that fails, one free");
	CHECK(seen("neuron_alloc: nd=0 host=0 hbm=1 nc=2 category=tensors addr=%#llx size=1048576 "
		   "align=8192 reason=none\n", (unsigned long long)a.pa) == 1,
	      "neuron_alloc");
	CHECK(seen("neuron_alloc_fail: nd=0 host=0 hbm=1 nc=2 category=tensors addr=0x0 size=%llu "
		   "align=8192 reason=full\n", 1ull << 42) == 1, "neuron_alloc_fail");
	CHECK(seen("neuron_free: nd=0 host=0 hbm=1 nc=2 category=tensors addr=%#llx size=1048576 "
		   "align=0 reason=none\n", (unsigned long long)a.pa) == 1,
	      "neuron_free");
}

static int put_desc(int fd, uint64_t ring, int rx, uint64_t addr, uint32_t flags)
{
	struct { uint32_t ctrl, meta; uint64_t addr; } d = {
		.ctrl = 64 | 1u << 24 | (rx ? 0 : 3u << 26) | flags,
		.meta = rx ? 0 : 0x01080003,
		.addr = addr,
	};
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring, .buffer = &d, .num_descs = 1,
		.queue_type = rx ? NEURON_DMA_QUEUE_TYPE_RX : NEURON_DMA_QUEUE_TYPE_TX,
	};

	return call(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c);
}

static uint64_t address(int fd, uint64_t handle)
{
	__u64 pa = 0;
	struct neuron_ioctl_mem_get_pa p = { .mem_handle = handle, .pa = &pa };

	CHECK(!call(fd, NEURON_IOCTL_MEM_GET_PA, &p), "address");
	return pa;
}

/* The device stops at a descriptor, and says so. */
static void fault(int fd, struct neuron_ioctl_dma_queue_copy_start *start)
{
	char text[128];

	clear();
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, start), "start what is not allowed");
	snprintf(text, sizeof(text), "neuron_fault: nd=0 nc=1 kind=dma eng=%u queue=7\n",
		 start->eng_id);
	CHECK(seen_soon(text) == 1, "neuron_fault");
	CHECK(seen("neuron_ring_done: nd=0 nc=1 eng=%u queue=7 status=aborted\n",
		   start->eng_id) == 1, "neuron_ring_done: aborted");
	CHECK(seen("neuron_notify: nd=0 nc=1 type=error engine=0\n") == 1 &&
	      seen("neuron_fault: nd=0 nc=1 kind=notice eng=0 queue=0\n") == 1,
	      "neuron_notify, neuron_fault");
}

/* A copy of the driver: on an engine that is no core's. */
static void driver_copy(int fd, uint64_t data, uint32_t eng)
{
	char text[64] = "";
	struct neuron_ioctl_mem_buf_copy64 copy = {
		.mem_handle = data, .buffer = text, .size = 64, .copy_to_mem_handle = 1,
	};

	clear();
	CHECK(!call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy), "copy to the device");
	CHECK(seen("neuron_ring_start: nd=0 nc=1 ") == 1 &&
	      seen("neuron_ring_start: nd=0 nc=1 eng=%u queue=", eng) == 0 &&
	      seen_soon("neuron_ring_done: nd=0 nc=1 ") == 1, "the driver's ring shows, too");
}

static void rings(int fd, const struct neuron_native_geometry *geo)
{
	uint32_t core = 1, eng = core * geo->engines_per_core + 3;
	uint64_t tx = alloc(fd, 4096, 0, core), rx = alloc(fd, 4096, 0, core);
	uint64_t data = alloc(fd, 4096, 0, core), pa = address(fd, data);
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = eng, .qid = 7, .tx_handle = tx, .rx_handle = rx,
		.tx_desc_count = 64, .rx_desc_count = 64,
	};
	struct neuron_ioctl_dma_queue_copy_start start = {
		.eng_id = eng, .qid = 7, .tx_desc_count = 1, .rx_desc_count = 1,
	};
	struct neuron_ioctl_dma_ack_completed ack = { .eng_id = eng, .qid = 7, .count = 1 };
	struct neuron_ioctl_notifications_init_v1 nq = {
		.nc_id = core, .nq_type = NQ_TYPE_ERROR, .size = 4096,
	};
	char text[128];
	int err;

	clear();
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init), "queue");
	CHECK(!seen("neuron_reset"), "a core that is clean is not reset for its owner");
	CHECK(!call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V1, &nq), "error queue");
	/* A device that never interrupts does not say when it is done. */
	CHECK(!put_desc(fd, tx, 0, pa, 0) &&
	      !put_desc(fd, rx, 1, pa + 64, is_silent() ? 0 : 1u << 28), "write descriptors");
	clear();
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start), "start");
	snprintf(text, sizeof(text), "neuron_ring_done: nd=0 nc=1 eng=%u queue=7 status=enabled\n",
		 eng);
	CHECK(is_silent() || seen_soon(text) == 1, "neuron_ring_done");
	CHECK(seen("neuron_ring_start: nd=0 nc=1 eng=%u queue=7 tx=1 rx=1\n", eng) == 1,
	      "neuron_ring_start");
	CHECK(!call(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack) &&
	      seen("neuron_ring_ack: nd=0 nc=1 eng=%u queue=7 tx=1 rx=1\n", eng) == 1,
	      "neuron_ring_ack");
	CHECK(!seen("neuron_fault:"), "no fault so far");

	/* Firmware's memory is nobody's. */
	CHECK(!call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init), "the queue anew");
	err = put_desc(fd, tx, 0, geo->hbm[0].base, 0);
	CHECK(err == (is_checked() ? EACCES : 0), "a source that is not allowed: %d", err);
	if (!is_checked() && !is_silent())
		fault(fd, &start);
	mem_free(fd, tx);
	mem_free(fd, rx);
	driver_copy(fd, data, eng);
	mem_free(fd, data);
}

/* How many batches of descriptors the driver's ring has had: so many data, and a marker. */
static int batches(unsigned int descs)
{
	char text[64];

	snprintf(text, sizeof(text), " tx=%u rx=%u\n", descs + 1, descs + 1);
	return seen("%s", text);
}

/* A descriptor moves 64 KiB; pages of the caller are used 2 MiB at a time. */
static void batch_sizes(int fd)
{
	const uint64_t size = 64ull << 20;
	uint64_t data = alloc(fd, size, 0, 1);
	uint8_t *user = aligned_alloc(4096, 5 << 20);
	struct neuron_ioctl_memset64 fill = { .mem_handle = data, .value = 1, .size = size };
	struct neuron_ioctl_mem_buf_copy64 copy = {
		.mem_handle = data, .buffer = user, .size = 4 << 20, .copy_to_mem_handle = 1,
	};

	memset(user, 7, 5 << 20);
	clear();
	CHECK(!call(fd, NEURON_IOCTL_MEMSET64, &fill) && batches(1007) == 1 && batches(17) == 1 &&
	      seen("neuron_ring_start:") == 2, "64 MiB are filled in two batches");
	/* Without an IOMMU, a card does not see the caller's pages as one range. */
	if (is_silent())
		goto free;
	clear();
	CHECK(!call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy) && batches(32) == 2 &&
	      seen("neuron_ring_start:") == 2, "4 MiB go from the caller's pages in two batches");
	copy.copy_to_mem_handle = 0;
	clear();
	CHECK(!call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy) && batches(32) == 2 &&
	      seen("neuron_ring_start:") == 2, "and back in two");
	/* What is left is less than what pinning pays for: 127 KiB in one piece. */
	copy.size = (2 << 20) + (127 << 10);
	clear();
	CHECK(!call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &copy) && batches(32) == 1 &&
	      batches(2) == 1 && seen("neuron_ring_start:") == 2, "2 MiB, and the rest");
free:
	free(user);
	mem_free(fd, data);
}

static void owns_core_2(void)
{
	struct neuron_ioctl_semaphore sem = { .nc_id = 2 };

	CHECK(!call(open_node(O_RDWR), NEURON_IOCTL_SEMAPHORE_WRITE, &sem), "take core 2");
}

static void execution(int fd)
{
	struct neuron_ioctl_crwl lock = { .nc_id = 3, .uuid.value = "model" };
	struct neuron_ioctl_device_reset reset = { .nc_map = 1 << 3 };
	int pid = getpid();

	clear();
	CHECK(!call(fd, NEURON_IOCTL_CRWL_WRITER_ENTER, &lock) && !seen("neuron_exec"),
	      "loading is no execution");
	CHECK(!call(fd, NEURON_IOCTL_CRWL_WRITER_DOWNGRADE, &lock) &&
	      !call(fd, NEURON_IOCTL_CRWL_READER_EXIT, &lock) &&
	      !call(fd, NEURON_IOCTL_CRWL_READER_ENTER, &lock) &&
	      !call(fd, NEURON_IOCTL_CRWL_READER_EXIT, &lock) &&
	      call(fd, NEURON_IOCTL_CRWL_READER_EXIT, &lock) == ENOENT, "two executions");
	CHECK(seen("neuron_exec_start: nd=0 nc=3 tgid=%d\n", pid) == 2 &&
	      seen("neuron_exec_finish: nd=0 nc=3 tgid=%d\n", pid) == 2,
	      "neuron_exec_start, neuron_exec_finish");
	CHECK(!call(fd, NEURON_IOCTL_NC_RESET, &reset) &&
	      seen_reset("neuron_reset: nd=0 nc=3 err=0\n") == 1, "neuron_reset");
	clear();
	in_child(owns_core_2);
	CHECK(seen_reset("neuron_reset: nd=0 nc=2 err=0\n") == 1,
	      "neuron_reset when the owner has gone");
}

int main(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_native_geometry geo = geometry(fd);

	/* The cores of earlier programs are reset when these are gone. */
	device_settles();
	if (mount("tracefs", TRACEFS, "tracefs", 0, NULL) && errno != EBUSY)
		CHECK(0, "mount tracefs");
	CHECK(!put(TRACEFS "tracing_on", "1") && !put(TRACEFS "events/neuron/enable", "1"),
	      "enable the events of the driver");
	memory(fd);
	rings(fd, &geo);
	batch_sizes(fd);
	execution(fd);
	clear();
	close(fd);
	CHECK(seen_reset("neuron_reset: nd=0 nc=1 err=0\n") == 1,
	      "neuron_reset at the end of the owner");
	CHECK(!put(TRACEFS "events/neuron/enable", "0"), "disable");
	clear();
	fd = open_node(O_RDWR);
	mem_free(fd, alloc(fd, 4096, 0, 0));
	close(fd);
	CHECK(!seen("neuron_"), "nothing is recorded any more");
	return failed != 0;
}
