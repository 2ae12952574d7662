// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver through raw ioctls on the software device: memory, accounting,
 * mappings, rings, protection, notifications, ownership, death of processes.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "check.h"
#include "device.h"
#include "neuron_isa.h"

#define MIB	(1ULL << 20)

static struct neuron_native_geometry geo = { .size = sizeof(geo) };
static uint32_t eng = 3;	/* of core 0 */

static int err_of(int ret)
{
	return ret < 0 ? errno : 0;
}

static uint64_t sysfs_u64(const char *path)
{
	char name[256], buf[64] = "";
	int fd;

	snprintf(name, sizeof(name), SYSFS "%s", path);
	fd = open(name, O_RDONLY);
	if (fd < 0 || read(fd, buf, sizeof(buf) - 1) <= 0) {
		perror(name);
		exit(1);
	}
	close(fd);
	return strtoull(buf, NULL, 10);
}

static int alloc_native(int fd, uint64_t bytes, int host, uint32_t type, uint32_t nc,
			struct neuron_native_mem_alloc *a)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->bytes = bytes;
	a->flags = host ? NEURON_NATIVE_ALLOC_HOST : 0;
	a->mem_type = type;
	a->nc_id = nc;
	return ioctl(fd, NEURON_NATIVE_MEM_ALLOC, a);
}

static int buf_copy(int fd, uint64_t handle, void *buf, uint64_t size, uint64_t off, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = size, .offset = off,
		.copy_to_mem_handle = to,
	};

	return ioctl(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

/* The books balance at any moment. */
static int balanced(int fd, uint32_t hbm)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = hbm };
	uint64_t cat = 0, core = 0, orders = 0;
	int i;

	if (ioctl(fd, NEURON_NATIVE_HBM_STATS, &s))
		return 0;
	for (i = 0; i < NEURON_NATIVE_MAX_CATEGORIES; i++)
		cat += s.by_category[i];
	for (i = 0; i < NEURON_NATIVE_MAX_CORES; i++)
		core += s.by_core[i];
	for (i = 0; i < NEURON_NATIVE_MAX_ORDERS; i++)
		orders += s.free_by_order[i];
	return s.used == cat && s.used == core && s.used >= s.own_process + s.driver &&
	       s.free == s.total - s.used - s.reserved && orders == s.free;
}

static void test_info(int fd)
{
	struct neuron_ioctl_device_basic_info basic = { 0 };
	struct neuron_ioctl_device_info info;
	struct neuron_ioctl_device_driver_info drv = { 0 };
	unsigned char longer[64];
	struct neuron_ioctl_compatible_version ver = { 0 };
	int wr;

	CHECK(!ioctl(fd, NEURON_NATIVE_GET_GEOMETRY, &geo), "geometry");
	if (geo.engines_per_core <= eng)
		eng = 1;
	CHECK(geo.nr_cores && geo.nr_hbms && geo.isa_version == NEURON_ISA_VERSION,
	      "geometry is filled in: %u cores, %u HBMs", geo.nr_cores, geo.nr_hbms);
	memset(&info, 0xff, sizeof(info));
	CHECK(!ioctl(fd, NEURON_IOCTL_DEVICE_INFO, &info) && info.architecture == geo.arch &&
	      !(info.bar_address[0] >> 62), "device info without a kernel address");
	CHECK(info.bar_size[geo.arch == 1 ? 1 : 0] >= geo.nr_cores * geo.tpb_size &&
	      !info.bar_size[geo.arch == 1 ? 0 : 1], "size of the BAR with the cores");
	CHECK(!ioctl(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &basic) && basic.architecture == geo.arch,
	      "basic info");
	CHECK(!ioctl(fd, NEURON_IOCTL_DRIVER_INFO_GET, &drv) && drv.size == 24, "driver info");
	memset(longer, 0xee, sizeof(longer));
	CHECK(!ioctl(fd, _IOC(_IOC_READ, 'N', 110, sizeof(longer)), longer) &&
	      !memcmp(longer, &drv, sizeof(drv)) && longer[24] == 0xee,
	      "driver info for who knows a longer structure");
	CHECK(err_of(ioctl(fd, _IOC(_IOC_READ, 'N', 110, 23), longer)) == ENOTTY &&
	      err_of(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'N', 110, 24), longer)) == ENOTTY &&
	      err_of(ioctl(fd, _IOC(_IOC_READ, 'O', 110, 24), longer)) == ENOTTY,
	      "but nothing else is");
	CHECK(err_of(ioctl(fd, _IOC(_IOC_WRITE, 'N', 110, 64), longer)) == EOPNOTSUPP,
	      "nor can it be set");
	CHECK(!ioctl(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &ver) && ver.min <= ver.max && ver.max,
	      "compatible version %u..%u", ver.min, ver.max);
	wr = open_node(O_WRONLY);
	CHECK(!ioctl(wr, NEURON_IOCTL_DEVICE_BASIC_INFO, &basic), "basic info, write-only");
	CHECK(err_of(ioctl(wr, NEURON_IOCTL_DEVICE_INFO, &info)) == EACCES,
	      "device info, write-only: EACCES");
	close(wr);
	CHECK(err_of(ioctl(fd, _IO('N', 191), 0)) == ENOTTY, "unknown command: ENOTTY");
	CHECK(sysfs_u64("core_count") == geo.nr_cores, "sysfs core_count");
}

/* The list of ranges in debugfs tiles the HBM and agrees with the books. */
static void test_walk(int fd)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s), .hbm = 1 };
	struct neuron_native_mem_alloc a[3];
	unsigned long long addr, size, at = geo.hbm[1].base, sum[3] = { 0, 0, 0 };
	char state[16], line[128];
	int i, tiles = 1;
	FILE *f;

	mkdir("/sys/kernel/debug", 0700);
	mount("none", "/sys/kernel/debug", "debugfs", 0, NULL);
	for (i = 0; i < 3; i++) {
		memset(&a[i], 0, sizeof(a[i]));
		a[i].size = sizeof(a[i]);
		a[i].bytes = i == 1 ? 4096 : 40 * MIB + 4096 * i;
		a[i].hbm = 1;
		a[i].mem_type = NEURON_MEMALLOC_TYPE_TENSORS_DEVICE;
		ioctl(fd, NEURON_NATIVE_MEM_ALLOC, &a[i]);
	}
	mem_free(fd, a[0].mem_handle);
	ioctl(fd, NEURON_NATIVE_HBM_STATS, &s);
	for (i = 0; i <= (int)geo.nr_hbms; i++) {
		snprintf(line, sizeof(line), "/sys/kernel/debug/neuron/neuron0/hbm%d", i);
		tiles &= !access(line, F_OK) == (i < (int)geo.nr_hbms);
	}
	CHECK(tiles, "debugfs has a file for each HBM and no more");
	f = fopen("/sys/kernel/debug/neuron/neuron0/hbm1", "r");
	CHECK(f, "debugfs file of an HBM");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %llu %15s", &addr, &size, state) != 3 || addr != at)
			tiles = 0;
		at = addr + size;
		sum[*state == 'f' ? 0 : *state == 'u' ? 1 : 2] += size;
	}
	if (f)
		fclose(f);
	CHECK(tiles && at == geo.hbm[1].base + geo.hbm[1].size, "its ranges tile the HBM");
	CHECK(sum[0] == s.free && sum[1] == s.used && sum[2] == s.reserved,
	      "free %llu, used %llu, reserved %llu as in the statistics", sum[0], sum[1], sum[2]);
	mem_free(fd, a[1].mem_handle);
	mem_free(fd, a[2].mem_handle);
}

#define TENSORS	"neuron_core1/stats/memory_usage/device_mem/tensors/total"
/* Not more than a card can have of host memory without an IOMMU. */
#define SIZE	(4 * MIB - 3973)

static uint8_t in[SIZE], out[SIZE];

/* Is all of the memory zero? */
static bool reads_as_zero(int fd, uint64_t handle)
{
	uint64_t i;

	memset(out, 0xee, SIZE);
	if (buf_copy(fd, handle, out, SIZE, 0, 0))
		return false;
	for (i = 0; i < SIZE && !out[i]; i++)
		;
	return i == SIZE;
}

static void test_copies(int fd, const struct neuron_native_mem_alloc *a)
{
	struct neuron_ioctl_memset64 set = {
		.mem_handle = a->mem_handle, .offset = 77, .value = 0xa5, .size = 3 * MIB,
	};
	struct neuron_ioctl_mem_copy64 copy = {
		.src_mem_handle = a->mem_handle, .size = SIZE - 4097, .src_offset = 4097,
		.dst_offset = 1,
	};
	struct neuron_native_mem_alloc b;

	CHECK(!alloc_native(fd, SIZE, 1, NEURON_MEMALLOC_TYPE_TENSORS_HOST, 0, &b),
	      "allocate host memory");
	copy.dst_mem_handle = b.mem_handle;
	CHECK(!ioctl(fd, NEURON_IOCTL_MEM_COPY64, &copy), "device to host copy, odd offsets");
	CHECK(!buf_copy(fd, b.mem_handle, out, SIZE - 4097, 1, 0) &&
	      !memcmp(in + 4097, out, SIZE - 4097), "it arrived");
	CHECK(!ioctl(fd, NEURON_IOCTL_MEMSET64, &set), "memset");
	memset(in + 77, 0xa5, 3 * MIB);
	CHECK(!buf_copy(fd, a->mem_handle, out, SIZE, 0, 0) && !memcmp(in, out, SIZE),
	      "memset touched just that");

	copy.size = 0;
	CHECK(err_of(ioctl(fd, NEURON_IOCTL_MEM_COPY64, &copy)) == EINVAL, "size 0: EINVAL");
	copy.size = 4096;
	copy.src_offset = -4096ULL;
	CHECK(err_of(ioctl(fd, NEURON_IOCTL_MEM_COPY64, &copy)) == EOVERFLOW, "wrap: EOVERFLOW");
	copy.src_offset = SIZE;
	CHECK(err_of(ioctl(fd, NEURON_IOCTL_MEM_COPY64, &copy)) == EINVAL, "beyond the end: EINVAL");
	CHECK(err_of(buf_copy(fd, a->mem_handle, (void *)8, 4096, 0, 1)) == EFAULT,
	      "bad buffer: EFAULT");
	CHECK(!mem_free(fd, b.mem_handle), "free the host memory");
}

static void test_memory(int fd)
{
	struct neuron_native_mem_alloc a;
	struct neuron_ioctl_mem_get_extended_info ext = { 0 };
	uint64_t i, base = sysfs_u64(TENSORS);

	for (i = 0; i < SIZE; i++)
		in[i] = i * 7 + (i >> 12);
	CHECK(!alloc_native(fd, SIZE, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 1, &a),
	      "allocate 5 MiB + 123");
	CHECK(sysfs_u64(TENSORS) == base + ((SIZE + 4095) & ~4095ULL), "sysfs counts what was used, rounded to 4 KiB");
	CHECK(balanced(fd, 0), "books balance");
	CHECK(reads_as_zero(fd, a.mem_handle), "new memory is zero");
	CHECK(!buf_copy(fd, a.mem_handle, in, SIZE, 0, 1), "write it");
	CHECK(!buf_copy(fd, a.mem_handle, out, SIZE, 0, 0) && !memcmp(in, out, SIZE),
	      "read it back");
	ext.mem_handle = a.mem_handle;
	CHECK(!ioctl(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext) &&
	      ext.mem_handle == a.mem_handle && ext.pa == a.pa && (pid_t)ext.pid == getpid() &&
	      !ext.host_memory, "extended info, without a kernel address");
	test_copies(fd, &a);
	CHECK(!mem_free(fd, a.mem_handle), "free");
	CHECK(mem_free(fd, a.mem_handle) == ENOENT, "free again: ENOENT");
	CHECK(sysfs_u64(TENSORS) == base, "sysfs is back");

	CHECK(!alloc_native(fd, SIZE, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 1, &a),
	      "allocate again");
	CHECK(reads_as_zero(fd, a.mem_handle), "nothing of the previous content is left");
	mem_free(fd, a.mem_handle);
	CHECK(balanced(fd, 0), "books balance");
}

static void test_refused_memory(int fd)
{
	struct neuron_native_mem_alloc a;

	/* One page more than there is: not every device keeps memory for its firmware. */
	CHECK(err_of(alloc_native(fd, geo.hbm[0].size + 4096, 0,
				  NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a)) == ENOMEM &&
	      a.reason == NEURON_NATIVE_REASON_FULL &&
	      a.total == geo.hbm[0].size && a.largest_free && a.largest_free <= a.total,
	      "more than there is: ENOMEM, full, with figures");
	CHECK(err_of(alloc_native(fd, 0, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a)) == EINVAL,
	      "size 0: EINVAL");
	CHECK(err_of(alloc_native(fd, -1ULL, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a)) ==
	      EOVERFLOW, "size 2^64 - 1: EOVERFLOW");
	CHECK(err_of(alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_TENSORS_HOST, 0, &a)) == EINVAL,
	      "category of the other kind: EINVAL");
	CHECK(err_of(alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, geo.nr_cores,
				  &a)) == EINVAL, "no such core: EINVAL");
	CHECK(balanced(fd, 0), "books balance");
}

static void test_mmap(int fd)
{
	struct neuron_native_mem_alloc a, b;
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };
	uint64_t before;
	uint32_t *map, word = 0;
	int host;

	ioctl(fd, NEURON_NATIVE_HBM_STATS, &s);
	before = s.used;
	for (host = 0; host < 2; host++) {
		const char *what = host ? "host" : "device";

		CHECK(!alloc_native(fd, MIB, host, host ? NEURON_MEMALLOC_TYPE_TENSORS_HOST :
				    NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a), "allocate, %s",
		      what);
		map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, a.mmap_offset);
		CHECK(map != MAP_FAILED, "map, %s", what);
		if (map == MAP_FAILED)
			continue;
		map[1000] = 0x12345678;
		CHECK(!buf_copy(fd, a.mem_handle, &word, 4, 4000, 0) && word == 0x12345678,
		      "written through the mapping, read through the device, %s", what);
		word = 0x87654321;
		CHECK(!buf_copy(fd, a.mem_handle, &word, 4, MIB - 4, 1) &&
		      map[MIB / 4 - 1] == word, "and the other way, %s", what);
		CHECK(mmap(NULL, 2 * MIB, PROT_READ, MAP_SHARED, fd, a.mmap_offset) == MAP_FAILED &&
		      errno == EINVAL, "longer than the chunk: EINVAL, %s", what);
		CHECK(mmap(NULL, MIB, PROT_READ, MAP_PRIVATE, fd, a.mmap_offset) == MAP_FAILED &&
		      errno == EINVAL, "private: EINVAL, %s", what);
		CHECK(!mem_free(fd, a.mem_handle), "free it while it is mapped, %s", what);
		CHECK(map[1000] == 0x12345678, "the mapping keeps the memory, %s", what);
		CHECK(mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, a.mmap_offset) == MAP_FAILED &&
		      errno == EPERM, "but its address is nobody's any more, %s", what);
		if (!host) {
			ioctl(fd, NEURON_NATIVE_HBM_STATS, &s);
			CHECK(s.used == before + MIB, "and it is still accounted");
		}
		munmap(map, MIB / 2);
		map[MIB / 4 - 1] = 1;
		munmap((char *)map + MIB / 2, MIB / 2);
	}
	ioctl(fd, NEURON_NATIVE_HBM_STATS, &s);
	CHECK(s.used == before, "unmapping gives it back");
	CHECK(!alloc_native(fd, MIB, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &b) &&
	      !buf_copy(fd, b.mem_handle, &word, 4, 4000, 0) && word == 0,
	      "and its content does not come back");
	mem_free(fd, b.mem_handle);
}

struct desc {
	uint32_t ctrl, meta;
	uint64_t addr;
};

static int write_desc(int fd, uint64_t ring, int rx, uint32_t index, uint64_t addr, uint32_t len)
{
	struct desc d = {
		.ctrl = (len & 0xffff) | 1u << 24 | (rx ? 0 : 3u << 26),
		.meta = rx ? 0 : 0x01080003,
		.addr = addr,
	};
	struct neuron_ioctl_dma_copy_descriptors64 c = {
		.mem_handle = ring, .buffer = &d, .num_descs = 1, .offset = index * 16,
		.queue_type = rx ? NEURON_DMA_QUEUE_TYPE_RX : NEURON_DMA_QUEUE_TYPE_TX,
	};

	return ioctl(fd, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &c);
}

static int start(int fd, uint32_t eng, uint32_t q, uint32_t n)
{
	struct neuron_ioctl_dma_queue_copy_start s = {
		.eng_id = eng, .qid = q, .tx_desc_count = n, .rx_desc_count = n,
	};

	return ioctl(fd, NEURON_IOCTL_DMA_QUEUE_COPY_START, &s);
}

static struct neuron_isa_notice *nq_map(int fd, uint32_t core, uint32_t type, uint32_t engine,
					uint32_t size, int *evfd)
{
	struct neuron_ioctl_notifications_init_with_realloc_v2 nq = {
		.nq_dev_id = core, .nq_type = type, .engine_index = engine, .size = size,
		.on_host_memory = 1, .force_alloc_mem = 1,
	};
	struct neuron_native_nq_eventfd ev = {
		.size = sizeof(ev), .nq_dev_id = core, .nq_type = type, .engine_index = engine,
	};
	void *map;

	if (ioctl(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &nq))
		return NULL;
	*evfd = ev.eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ioctl(fd, NEURON_NATIVE_NQ_EVENTFD, &ev))
		return NULL;
	map = mmap(NULL, size < 4096 ? 4096 : size, PROT_READ, MAP_SHARED, fd, nq.mmap_offset);
	return map == MAP_FAILED ? NULL : map;
}

static int wait_event(int evfd)
{
	struct pollfd p = { .fd = evfd, .events = POLLIN };
	uint64_t n;

	return poll(&p, 1, 30000) == 1 && read(evfd, &n, 8) == 8;
}

/* uapi/FACTS.md 6: types that an architecture has not. */
static void test_nq_types(int fd)
{
	uint32_t type, engine;
	int ev;

	for (type = geo.nr_nq_types; type < geo.nr_nq_types + 4; type++) {
		errno = 0;
		CHECK(!nq_map(fd, 0, type, 0, 4096, &ev) && errno == EINVAL,
		      "B10: notification queue type %u: EINVAL", type);
	}
	for (engine = geo.nr_nq_engines; engine < geo.nr_nq_engines + 2; engine++) {
		errno = 0;
		CHECK(!nq_map(fd, 0, NQ_TYPE_NOTIFY, engine, 4096, &ev) && errno == EINVAL,
		      "notification queue of engine %u: EINVAL", engine);
	}
}

static uint32_t sem_read(int fd, uint32_t core, uint32_t index)
{
	struct neuron_ioctl_semaphore s = { .nc_id = core, .semaphore_index = index };

	return ioctl(fd, NEURON_IOCTL_SEMAPHORE_READ, &s) ? ~0u : s.value;
}

static int sem_wait_value(int fd, uint32_t core, uint32_t index, uint32_t value)
{
	int i;

	for (i = 0; i < 3000 && sem_read(fd, core, index) != value; i++)
		usleep(10000);
	return sem_read(fd, core, index) == value;
}

static uint32_t hole(const struct neuron_dma_queue_state *s, size_t off)
{
	uint32_t value;

	memcpy(&value, (const char *)s + off, sizeof(value));
	return value;
}

/* Bytes from one place to another, by a queue of a core. */
static int move(int fd, uint32_t core, uint64_t to, uint64_t from, uint32_t len)
{
	struct neuron_native_mem_alloc ring[2];
	struct neuron_ioctl_dma_queue_init init = {
		.eng_id = core * geo.engines_per_core + eng, .qid = 6,
		.tx_desc_count = 32, .rx_desc_count = 32,
	};
	struct neuron_dma_queue_state s[2] = { 0 };
	struct neuron_ioctl_dma_queue_get_state get = {
		.eng_id = init.eng_id, .qid = 6, .tx = &s[0], .rx = &s[1],
	};
	int i, bad;

	if (alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, core, &ring[0]) ||
	    alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, core, &ring[1]))
		return -1;
	init.tx_handle = ring[0].mem_handle;
	init.rx_handle = ring[1].mem_handle;
	bad = ioctl(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init) ||
	      write_desc(fd, init.tx_handle, 0, 0, from, len) ||
	      write_desc(fd, init.rx_handle, 1, 0, to, len) || start(fd, init.eng_id, 6, 1);
	for (i = 0; i < 3000 && !bad && s[1].head_pointer != 1; i++) {
		bad = ioctl(fd, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &get);
		usleep(1000);
	}
	mem_free(fd, init.tx_handle);
	mem_free(fd, init.rx_handle);
	return bad || s[1].head_pointer != 1;
}

/* Each core has a window of its own. */
static void test_windows(void)
{
	int fd = open_node(O_RDWR);
	struct neuron_native_mem_alloc a;
	uint8_t in[2][256], out[2][256];
	uint32_t i;
	int bad = 0;

	memset(in[0], 0x11, 256);
	memset(in[1], 0x22, 256);
	CHECK(!alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a) &&
	      !buf_copy(fd, a.mem_handle, in, sizeof(in), 0, 1), "memory for two windows");
	for (i = 0; i < 2; i++)
		bad += move(fd, i, geo.tpb_base[i] + NEURON_ISA_SBUF_OFF, a.pa + i * 256, 256);
	CHECK(!bad, "bytes into the windows of two cores");
	for (i = 0; i < 2; i++)
		bad += move(fd, i, a.pa + 1024 + i * 256, geo.tpb_base[i] + NEURON_ISA_SBUF_OFF, 256);
	CHECK(!bad && !buf_copy(fd, a.mem_handle, out, sizeof(out), 1024, 0) &&
	      !memcmp(in, out, sizeof(in)), "each has kept its own");
	close(fd);
}

#define RING_BYTES	65536

/* A queue of the test, its rings and its data. */
static struct {
	struct neuron_native_mem_alloc tx, rx, src, dst, one;
	struct neuron_ioctl_dma_queue_init init;
	struct neuron_dma_queue_state ts, rs;
	volatile struct neuron_isa_notice *err;
	uint32_t nr_err;	/* notifications so far */
	int evfd;
} q5;

static int q5_state(int fd)
{
	struct neuron_ioctl_dma_queue_get_state get = {
		.eng_id = eng, .qid = 5, .tx = &q5.ts, .rx = &q5.rs,
	};

	return ioctl(fd, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &get);
}

static int q5_init(int fd)
{
	return err_of(ioctl(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &q5.init));
}

static bool q5_comes_to(int fd, uint32_t head)
{
	int i;

	for (i = 0; i < 3000 && !q5_state(fd) && q5.rs.head_pointer != head; i++)
		usleep(10000);
	return q5.rs.head_pointer == head;
}

static bool test_queue_init(int fd)
{
	uint32_t i, word = 1;

	for (i = 0; i < RING_BYTES; i++)
		in[i] = i ^ i >> 8;
	CHECK(!alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, 0, &q5.tx) &&
	      !alloc_native(fd, 4096, 1, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST, 0, &q5.rx) &&
	      !alloc_native(fd, RING_BYTES, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &q5.src) &&
	      !alloc_native(fd, RING_BYTES, 1, NEURON_MEMALLOC_TYPE_TENSORS_HOST, 0, &q5.dst) &&
	      !alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_MISC_DEVICE, 0, &q5.one),
	      "memory for rings");
	buf_copy(fd, q5.src.mem_handle, in, RING_BYTES, 0, 1);
	buf_copy(fd, q5.one.mem_handle, &word, 4, 0, 1);

	q5.init = (struct neuron_ioctl_dma_queue_init) {
		.eng_id = eng, .qid = 5, .tx_handle = q5.tx.mem_handle,
		.rx_handle = q5.rx.mem_handle, .tx_desc_count = PAGE / 8, .rx_desc_count = PAGE / 8,
	};
	CHECK(q5_init(fd) == EINVAL, "ring larger than its chunk: EINVAL");
	q5.init.tx_desc_count = q5.init.rx_desc_count = 16;
	CHECK(q5_init(fd) == EINVAL, "16 descriptors: EINVAL");
	q5.init.tx_desc_count = q5.init.rx_desc_count = 48;
	q5.init.rxc_handle = q5.rx.mem_handle;
	CHECK(q5_init(fd) == EINVAL, "completion ring: EINVAL");
	q5.init.rxc_handle = 0;
	CHECK(!q5_init(fd), "queue with a ring of 48, one side in device memory");
	q5.nr_err = 0;
	q5.err = nq_map(fd, 0, NQ_TYPE_ERROR, 0, 4096, &q5.evfd);
	CHECK(q5.err, "error notification queue with an eventfd");
	return q5.err;
}

static void test_queue_copy(int fd, uint32_t sem)
{
	struct neuron_ioctl_dma_ack_completed ack = { .eng_id = eng, .qid = 5, .count = 2 };
	struct neuron_dma_eng_state es;
	struct neuron_ioctl_dma_eng_get_state eget = { .eng_id = eng, .state = &es };
	uint64_t inc = sem_inc_address(&geo, 0, sem);

	CHECK(!write_desc(fd, q5.tx.mem_handle, 0, 0, q5.src.pa, RING_BYTES) &&
	      !write_desc(fd, q5.rx.mem_handle, 1, 0, q5.dst.pa, RING_BYTES) &&
	      !write_desc(fd, q5.tx.mem_handle, 0, 1, q5.one.pa, 4) &&
	      !write_desc(fd, q5.rx.mem_handle, 1, 1, inc, 4), "descriptors: copy, then semaphore");
	CHECK(!start(fd, eng, 5, 2), "start");
	CHECK(sem_wait_value(fd, 0, sem, 1), "the completion semaphore counts");
	CHECK(!buf_copy(fd, q5.dst.mem_handle, out, RING_BYTES, 0, 0) &&
	      !memcmp(in, out, RING_BYTES), "64 KiB arrived");
	memset(&q5.ts, 0xff, sizeof(q5.ts));
	memset(&q5.rs, 0xff, sizeof(q5.rs));
	CHECK(!q5_state(fd) && q5.ts.length == 48 && q5.ts.head_pointer == 2 &&
	      q5.ts.tail_pointer == 2 && q5.ts.base_addr == q5.tx.pa &&
	      q5.rs.base_addr == q5.rx.pa && q5.ts.sw_status == 2, "queue state");
	/* Holes of the structure: they would show what the kernel's stack had. */
	CHECK(!hole(&q5.ts, 28) && !hole(&q5.ts, 44) && !hole(&q5.rs, 28) && !hole(&q5.rs, 44),
	      "and nothing beside it");
	CHECK(!ioctl(fd, NEURON_IOCTL_DMA_ENG_GET_STATE, &eget) && es.max_queues == 16,
	      "engine state");
	CHECK(!ioctl(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack),
	      "acknowledge on a ring that is no power of two");
}

static void test_queue_start_refused(int fd)
{
	CHECK(err_of(start(fd, eng, 5, 33)) == EINVAL, "more than the ring holds: EINVAL");
	CHECK(err_of(start(fd, eng, 5, 0)) == EINVAL, "nothing: EINVAL");
	CHECK(err_of(start(fd, eng, 6, 1)) == ENOENT, "queue that was not set up: ENOENT");
	CHECK(err_of(start(fd, geo.nr_dma_engines, 0, 1)) == EINVAL, "no such engine: EINVAL");
	CHECK(err_of(geo.arch == 1 ? start(fd, 2, 15, 1) :
		     start(fd, geo.nr_cores * geo.engines_per_core, 0, 1)) == EPERM,
	      "a queue of the driver: EPERM");
}

/* Around the ring many times; two descriptors were done before. */
static void test_queue_wraps(int fd, uint32_t sem)
{
	uint64_t inc = sem_inc_address(&geo, 0, sem);
	uint32_t i;

	for (i = 2; i < 300; i++) {
		uint32_t slot = i % 48;

		if (write_desc(fd, q5.tx.mem_handle, 0, slot, q5.one.pa, 4) ||
		    write_desc(fd, q5.rx.mem_handle, 1, slot, inc, 4) || start(fd, eng, 5, 1))
			break;
		if (!sem_wait_value(fd, 0, sem, i))
			break;
	}
	CHECK(i == 300, "298 rounds on a ring of 48 (%u)", i);
}

static void test_stopped(int fd, const char *what, uint64_t src, uint64_t dst, uint32_t len)
{
	volatile struct neuron_isa_notice *err = &q5.err[q5.nr_err];

	memset(out, 0x5a, 64);
	buf_copy(fd, q5.dst.mem_handle, out, 64, 0, 1);
	q5_init(fd);
	if (is_checked()) {
		CHECK(err_of(write_desc(fd, q5.tx.mem_handle, 0, 0, src, len)) == EACCES ||
		      err_of(write_desc(fd, q5.rx.mem_handle, 1, 0, dst, len)) == EACCES,
		      "%s: EACCES", what);
		CHECK(!q5_state(fd) && q5.ts.sw_status == 2, "%s: the queue goes on", what);
		return;
	}
	q5.nr_err++;
	write_desc(fd, q5.tx.mem_handle, 0, 0, src, len);
	write_desc(fd, q5.rx.mem_handle, 1, 0, dst, len);
	CHECK(!start(fd, eng, 5, 1) && wait_event(q5.evfd) &&
	      err->kind == NEURON_ISA_NOTICE_DMA_ERROR && err->code == NEURON_ISA_ERR_DMA_ACCESS,
	      "%s: DMA error notification (kind %u code %u)", what, err->kind, err->code);
	memset(out, 0, 64);
	buf_copy(fd, q5.dst.mem_handle, out, 64, 0, 0);
	CHECK(out[0] == 0x5a && out[63] == 0x5a, "%s: nothing was touched", what);
	CHECK(!q5_state(fd) && q5.ts.sw_status == 3, "%s: the queue stopped", what);
}

/* Memory that the owner of the queue may not touch. */
static void test_protection(int fd)
{
	uint64_t src = q5.src.pa, dst = q5.dst.pa;

	/* Inferentia keeps none (uapi/FACTS.md 4). */
	if (geo.arch != 1)
		test_stopped(fd, "firmware's memory", geo.hbm[0].base + 4096, dst, 64);
	test_stopped(fd, "memory nobody allocated", geo.hbm[0].base + geo.hbm[0].size - 4096, dst,
		     64);
	test_stopped(fd, "host memory of nobody", src, geo.host_window | 0x7fffffff000, 64);
	test_stopped(fd, "host RAM by its physical address", src, geo.host_window | 0x100000, 64);
	test_stopped(fd, "the end of a chunk and more", src + RING_BYTES - 32, dst, 64);
	test_stopped(fd, "the window of a core of nobody", src, geo.tpb_base[1], 64);
	test_stopped(fd, "the top of the address space", -32ULL, dst, 64);
}

static void test_freed_ring(int fd)
{
	volatile struct neuron_isa_notice *err = &q5.err[q5.nr_err];

	q5_init(fd);
	write_desc(fd, q5.tx.mem_handle, 0, 0, q5.src.pa, 64);
	write_desc(fd, q5.rx.mem_handle, 1, 0, q5.dst.pa, 64);
	mem_free(fd, q5.rx.mem_handle);
	if (is_checked()) {
		CHECK(!start(fd, eng, 5, 1) && q5_comes_to(fd, 1),
		      "freed ring: its queue keeps it and goes on");
		return;
	}
	CHECK(!start(fd, eng, 5, 1) && wait_event(q5.evfd) && err->code == NEURON_ISA_ERR_DMA_RING,
	      "freed ring: DMA error notification (code %u)", err->code);
}

static void test_rings(int fd)
{
	const uint32_t sem = 9;

	if (!test_queue_init(fd))
		return;
	test_queue_copy(fd, sem);
	test_queue_start_refused(fd);
	test_queue_wraps(fd, sem);
	test_protection(fd);
	test_freed_ring(fd);
	munmap((void *)q5.err, 4096);
	mem_free(fd, q5.tx.mem_handle);
	mem_free(fd, q5.src.mem_handle);
	mem_free(fd, q5.dst.mem_handle);
	mem_free(fd, q5.one.mem_handle);
	close(q5.evfd);
}

static void test_core(int fd)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 0, .semaphore_index = 3, .value = 40 };
	struct neuron_ioctl_event e = { .nc_id = 0, .event_index = 255, .value = 1 };
	struct neuron_ioctl_device_reset r = { .nc_map = 1 };
	struct neuron_ioctl_device_ready ready = { 0 };

	CHECK(!ioctl(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s), "semaphore write");
	s.value = 3;
	CHECK(!ioctl(fd, NEURON_IOCTL_SEMAPHORE_INCREMENT, &s), "increment");
	s.value = 1;
	CHECK(!ioctl(fd, NEURON_IOCTL_SEMAPHORE_DECREMENT, &s) && sem_read(fd, 0, 3) == 42,
	      "decrement: 42");
	s.semaphore_index = geo.nr_semaphores;
	CHECK(err_of(ioctl(fd, NEURON_IOCTL_SEMAPHORE_READ, &s)) == EINVAL, "index: EINVAL");
	s.nc_id = geo.nr_cores;
	CHECK(err_of(ioctl(fd, NEURON_IOCTL_SEMAPHORE_READ, &s)) == E2BIG, "core: E2BIG");
	CHECK(!ioctl(fd, NEURON_IOCTL_EVENT_SET, &e), "event set");
	e.value = 0;
	CHECK(!ioctl(fd, NEURON_IOCTL_EVENT_GET, &e) && e.value == 1, "event get");
	e.event_index = geo.nr_events;
	CHECK(err_of(ioctl(fd, NEURON_IOCTL_EVENT_GET, &e)) == EINVAL, "event index: EINVAL");
	CHECK(!ioctl(fd, NEURON_IOCTL_NC_RESET, &r), "reset of core 0");
	ready.request_id = r.request_id;
	CHECK(!ioctl(fd, NEURON_IOCTL_NC_RESET_READY, &ready) && !ready.result, "reset is done");
	CHECK(sem_read(fd, 0, 3) == 0, "semaphores are 0 after a reset");
	r.nc_map = 1u << geo.nr_cores;
	CHECK(err_of(ioctl(fd, NEURON_IOCTL_NC_RESET, &r)) == EINVAL, "reset of no core: EINVAL");
}

/* Another process: exits with the number of failures. */
static int in_process(int (*fn)(int), int arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(fn(arg));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int child_inherited(int fd)
{
	struct neuron_native_mem_alloc a;
	struct neuron_ioctl_device_basic_info basic;

	if (err_of(alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a)) != EACCES)
		return 1;
	if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, geo.hbm[0].base + 16 * MIB) != MAP_FAILED ||
	    errno != EACCES)
		return 2;
	return ioctl(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &basic) ? 3 : 0;
}

static uint64_t foreign_pa;

static int child_other(int handle)
{
	struct neuron_ioctl_semaphore s = { .nc_id = 0, .value = 1 };
	struct neuron_ioctl_mem_get_mc_mmap_info_v2 mc = { .pa = foreign_pa };
	struct neuron_ioctl_device_reset r = { .nc_map = 1 };
	struct neuron_ioctl_dma_queue_init init = { .eng_id = eng, .qid = 5 };
	int fd = open_node(O_RDWR);

	if (mem_free(fd, handle) != ENOENT)
		return 1;
	if (err_of(ioctl(fd, NEURON_IOCTL_MEM_MC_GET_INFO_V2, &mc)) != ENOENT)
		return 2;
	if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, foreign_pa) != MAP_FAILED || errno != EPERM)
		return 3;
	if (err_of(ioctl(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s)) != EBUSY)
		return 4;
	if (err_of(ioctl(fd, NEURON_IOCTL_NC_RESET, &r)) != EBUSY)
		return 5;
	if (err_of(ioctl(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &init)) != EBUSY)
		return 6;
	s.nc_id = 1;
	return ioctl(fd, NEURON_IOCTL_SEMAPHORE_WRITE, &s) ? 7 : 0;
}

static int child_count(int n)
{
	int i, pipefd[2], ok = 0;
	pid_t pids[20];
	char c;

	if (pipe(pipefd))
		return 99;
	for (i = 0; i < n; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			int fd = open(NODE, O_RDWR);

			c = fd >= 0 ? 'y' : errno == EBUSY ? 'n' : '?';
			if (write(pipefd[1], &c, 1) != 1)
				_exit(1);
			pause();
			_exit(0);
		}
	}
	for (i = 0; i < n; i++)
		if (read(pipefd[0], &c, 1) == 1)
			ok += c == 'y' ? 1 : c == 'n' ? 0 : 100;
	for (i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
	return ok;
}

static void test_processes(int fd)
{
	struct neuron_native_mem_alloc a;
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };
	uint64_t used, i;
	int pipefd[2], dup1;
	char c = 0;
	pid_t pid;

	CHECK(!alloc_native(fd, MIB, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a), "allocate");
	foreign_pa = a.pa;
	CHECK(in_process(child_inherited, fd) == 0, "a child cannot use the inherited descriptor");
	CHECK(in_process(child_other, a.mem_handle) == 0,
	      "another process reaches neither memory nor core nor queue");
	dup1 = dup(fd);
	close(dup1);
	CHECK(!buf_copy(fd, a.mem_handle, &c, 1, 0, 1), "closing a duplicate changes nothing");
	CHECK(in_process(child_count, 18) == 15, "16 processes at a time, this one included");
	CHECK(in_process(child_count, 15) == 15, "and they can all come again");

	ioctl(fd, NEURON_NATIVE_HBM_STATS, &s);
	used = s.used;
	for (i = 0; i < 5; i++) {
		if (pipe(pipefd))
			exit(1);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			struct neuron_ioctl_semaphore sem = { .nc_id = 1, .value = 1 };
			int n, cfd = open_node(O_RDWR);

			for (n = 0; n < 200; n++)
				if (alloc_native(cfd, MIB + n * 4096, 0,
						 NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 1, &a))
					_exit(1);
			if (ioctl(cfd, NEURON_IOCTL_SEMAPHORE_WRITE, &sem))
				_exit(1);
			/* A grandchild keeps the descriptor: it must not keep the memory. */
			if (!fork()) {
				close(pipefd[0]);
				sleep(1);
				_exit(0);
			}
			if (write(pipefd[1], "x", 1) != 1)
				_exit(1);
			pause();
		}
		close(pipefd[1]);
		if (read(pipefd[0], &c, 1) != 1)
			c = 0;
		ioctl(fd, NEURON_NATIVE_HBM_STATS, &s);
		if (s.used < used + 200 * MIB)
			break;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		ioctl(fd, NEURON_NATIVE_HBM_STATS, &s);
		if (s.used != used)
			break;
		close(pipefd[0]);
	}
	CHECK(i == 5, "kill -9: everything is back before wait() returns (%llu)",
	      (unsigned long long)i);
	struct neuron_ioctl_semaphore sem = { .nc_id = 1 };
	CHECK(!ioctl(fd, NEURON_IOCTL_SEMAPHORE_READ, &sem) && sem.value == 0,
	      "its core is free, and reset");
	CHECK(balanced(fd, 0), "books balance");
}

/* Bytes that cores are charged with. */
static uint64_t counters(void)
{
	uint64_t sum = 0;
	char path[128];
	uint32_t i;

	for (i = 0; i < geo.nr_cores; i++) {
		snprintf(path, sizeof(path),
			 "neuron_core%u/stats/memory_usage/device_mem/total", i);
		sum += sysfs_u64(path);
		snprintf(path, sizeof(path), "neuron_core%u/stats/memory_usage/host_mem/total", i);
		sum += sysfs_u64(path);
	}
	return sum;
}

static int take_one(int fd, uint64_t *handle)
{
	struct neuron_native_mem_alloc a;
	int err = err_of(alloc_native(fd, 4096, 0, NEURON_MEMALLOC_TYPE_TENSORS_DEVICE, 0, &a));

	*handle = err ? 0 : a.mem_handle;
	return err;
}

/* Each has memory of its own, which its handle leads to. */
static int all_own(int fd, uint64_t *handle, uint32_t nr)
{
	uint32_t i, value;

	for (i = 0; i < nr; i++)
		if (buf_copy(fd, handle[i], &handle[i], sizeof(value), 0, 1))
			return 0;
	for (i = 0; i < nr; i++)
		if (buf_copy(fd, handle[i], &value, sizeof(value), 0, 0) || value != (uint32_t)handle[i])
			return 0;
	return 1;
}

/* K14: of a table of three levels only the place of the freed handle is left; then it grows. */
static void test_spare_handle(int fd)
{
	enum { NR = 4200 };
	static uint64_t handle[NR];
	uint64_t spare, again, value = 0;
	uint32_t i;
	int bad = 0;

	for (i = 0; i < NR; i++)
		bad += take_one(fd, &handle[i]);
	CHECK(!bad && all_own(fd, handle, NR), "K14: %u handles", NR);
	spare = handle[NR - 1];
	for (i = NR; i-- > 0;)
		bad += mem_free(fd, handle[i]);
	CHECK(!bad, "K14: all are freed");
	CHECK(buf_copy(fd, spare, &value, 4, 0, 0) && errno == ENOENT && mem_free(fd, spare) == ENOENT,
	      "K14: the one that was freed first is no handle");
	CHECK(!take_one(fd, &again) && again == spare && all_own(fd, &again, 1),
	      "K14: and is the next one");
	CHECK(!mem_free(fd, again), "K14: freed again");
	for (i = 0; i < NR; i++)
		bad += take_one(fd, &handle[i]);
	CHECK(!bad && handle[0] == spare && all_own(fd, handle, NR), "K14: all are there once");
	for (i = 0; i < NR; i++)
		bad += mem_free(fd, handle[i]);
	CHECK(!bad, "K14: each is freed once");
}

int main(void)
{
	int fd = open_node(O_RDWR);
	uint32_t i;

	test_info(fd);
	test_memory(fd);
	test_refused_memory(fd);
	test_spare_handle(fd);
	test_walk(fd);
	test_mmap(fd);
	in_child(test_windows);
	test_rings(fd);
	test_nq_types(fd);
	test_core(fd);
	test_processes(fd);
	close(fd);
	/* Grandchildren still hold the descriptor for a moment. */
	for (i = 0; i < 600 && counters(); i++)
		usleep(100000);
	CHECK(counters() == 0, "all counters are 0 after close");
	return failed != 0;
}
