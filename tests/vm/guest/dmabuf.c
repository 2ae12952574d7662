// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs of device and host memory: other devices, other processes, and what
 * is left of them when handle, process and device are gone.
 */
#define _GNU_SOURCE
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"
#include "device.h"
#include "../importer/importer.h"

#define IMPORTER	"/dev/neuron_importer"
#define SIZE		(3u << 20)

static int fd;
static uint8_t buf[SIZE], back[SIZE];

static uint64_t used(void)
{
	struct neuron_native_hbm_stats s = { .size = sizeof(s) };

	return ioctl(fd, NEURON_NATIVE_HBM_STATS, &s) ? ~0ull : s.used;
}

static int export(int dev, uint64_t handle, uint64_t off, uint64_t bytes, uint32_t flags, int *out)
{
	struct neuron_native_mem_export e = {
		.size = sizeof(e), .flags = flags, .mem_handle = handle, .offset = off,
		.bytes = bytes, .fd = -7,
	};
	int err = call(dev, NEURON_NATIVE_MEM_EXPORT, &e);

	*out = e.fd;
	return err;
}

static int import(int dev, int dmabuf, struct neuron_native_mem_import *i)
{
	*i = (struct neuron_native_mem_import){ .size = sizeof(*i), .fd = dmabuf };
	return call(dev, NEURON_NATIVE_MEM_IMPORT, i);
}

static int copy(int dev, uint64_t handle, uint8_t *p, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = p, .size = SIZE, .copy_to_mem_handle = to,
	};

	return call(dev, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static void pattern(uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < SIZE; i++)
		buf[i] = i * 7 + (i >> 12) * 13 + seed;
}

static int importer(void)
{
	return open(IMPORTER, O_RDWR | O_CLOEXEC);
}

static int attach(int im, int dmabuf)
{
	int32_t n = dmabuf;

	return call(im, IMPORTER_ATTACH, &n);
}

static int rw(int im, uint32_t via, uint64_t off, uint8_t *p, uint64_t len, int write)
{
	struct importer_rw a = {
		.off = off, .len = len, .buf = (uintptr_t)p, .write = write, .via = via,
	};

	return call(im, IMPORTER_RW, &a);
}

static int holds(int im, uint32_t via, uint64_t off, uint64_t len)
{
	memset(back, 0, sizeof(back));
	return !rw(im, via, 0, back, len, 0) && !memcmp(back, buf + off, len);
}

static sigjmp_buf jump;

static void on_bus(int sig)
{
	siglongjmp(jump, sig);
}

/* Does reading there end in SIGBUS? */
static int faults(volatile uint8_t *p)
{
	struct sigaction sa = { .sa_handler = on_bus }, old;
	volatile int hit = 1;

	sigaction(SIGBUS, &sa, &old);
	if (!sigsetjmp(jump, 1)) {
		(void)*p;
		hit = 0;
	}
	sigaction(SIGBUS, &old, NULL);
	return hit;
}

static uint64_t alloc_host(int dev, uint64_t size)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .bytes = size, .flags = NEURON_NATIVE_ALLOC_HOST,
		.mem_type = NEURON_MEMALLOC_TYPE_TENSORS_HOST,
	};

	CHECK(!call(dev, NEURON_NATIVE_MEM_ALLOC, &a), "allocate host memory");
	return a.mem_handle;
}

static void importers(uint64_t handle, const char *what)
{
	struct importer_map m = { 0 };
	int db, im[3], i;
	uint8_t *p;

	pattern(1);
	CHECK(!copy(fd, handle, buf, 1), "%s: fill", what);
	CHECK(!export(fd, handle, 0, 0, 0, &db) && db >= 0, "%s: export", what);
	CHECK(fcntl(db, F_GETFD) == FD_CLOEXEC, "%s: closed on exec", what);
	CHECK(lseek(db, 0, SEEK_END) == SIZE, "%s: its length is that of the memory", what);
	/* Without pages it is for importers that can do DMA from device to device. */
	if (*what == 'd' && has_no_pages()) {
		im[0] = importer();
		CHECK(attach(im[0], db) == EOPNOTSUPP, "%s: an importer of pages: EOPNOTSUPP", what);
		close(im[0]);
		p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, db, 0);
		close(db);
		CHECK(!mem_free(fd, handle), "%s: free while mapped", what);
		CHECK(p != MAP_FAILED && !memcmp(p, buf, SIZE), "%s: a mapping still sees it", what);
		munmap(p, SIZE);
		return;
	}
	for (i = 0; i < 3; i++) {
		im[i] = importer();
		CHECK(!attach(im[i], db), "%s: attachment %d", what, i);
		CHECK(!call(im[i], IMPORTER_MAP, &m), "%s: mapped", what);
		CHECK(m.bytes == SIZE, "%s: vendor A15: an importer gets the length of the memory", what);
		CHECK(m.entries && m.entries == m.runs, "%s: one entry for each run: %u, %u runs",
		      what, m.entries, m.runs);
		CHECK(holds(im[i], IMPORTER_SG, 0, SIZE), "%s: it sees what was written", what);
	}
	CHECK(rw(im[0], IMPORTER_SG, SIZE - 1, back, 2, 0) == ENXIO,
	      "%s: vendor A15: nothing behind the end", what);
	CHECK(!call(im[1], IMPORTER_VMAP, NULL), "%s: mapped by the kernel", what);
	CHECK(!call(im[2], IMPORTER_VMAP, NULL), "%s: twice", what);
	CHECK(holds(im[1], IMPORTER_VMAP, 0, SIZE), "%s: it sees the same", what);
	pattern(2);
	CHECK(!call(im[1], IMPORTER_SYNC, NULL) && !rw(im[1], IMPORTER_VMAP, 0, buf, SIZE, 1),
	      "%s: the kernel writes", what);
	CHECK(!copy(fd, handle, back, 0) && !memcmp(buf, back, SIZE), "%s: the device sees it",
	      what);
	pattern(3);
	CHECK(!rw(im[0], IMPORTER_SG, 0, buf, SIZE, 1), "%s: the importer writes", what);
	CHECK(!copy(fd, handle, back, 0) && !memcmp(buf, back, SIZE), "%s: the device sees it",
	      what);
	close(db);
	CHECK(!mem_free(fd, handle), "%s: free while attached", what);
	for (i = 0; i < 3; i++) {
		CHECK(holds(im[i], IMPORTER_SG, 0, SIZE), "%s: importer %d still sees it", what, i);
		close(im[i]);
	}
}

static void mapped(void)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	uint64_t before = used(), handle = alloc(fd, SIZE, 0, 0);
	struct importer_map m = { 0 };
	uint8_t *p, *q;
	int db, ro, im;

	pattern(4);
	CHECK(!copy(fd, handle, buf, 1) && !export(fd, handle, 0, 0, 0, &db), "export");
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, db, 0);
	CHECK(p != MAP_FAILED && !memcmp(p, buf, SIZE), "mmap of a dma-buf");
	CHECK(!ioctl(db, DMA_BUF_IOCTL_SYNC, &sync), "CPU access begins");
	pattern(5);
	memcpy(p, buf, SIZE);
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	CHECK(!ioctl(db, DMA_BUF_IOCTL_SYNC, &sync), "and ends");
	CHECK(!copy(fd, handle, back, 0) && !memcmp(buf, back, SIZE), "the device sees it");
	q = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, db, SIZE - PAGE);
	CHECK(q != MAP_FAILED && !memcmp(q, buf + SIZE - PAGE, PAGE), "a part of it");
	munmap(q, PAGE);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, db, SIZE) == MAP_FAILED && errno == EINVAL,
	      "not behind its end");
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, db, 0) == MAP_FAILED &&
	      errno == EINVAL, "not as a private copy");

	CHECK(!export(fd, handle, 0, 0, NEURON_NATIVE_EXPORT_RDONLY, &ro), "read-only export");
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0) == MAP_FAILED &&
	      errno == EACCES, "is not mapped for writing");
	q = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ro, 0);
	CHECK(q != MAP_FAILED && !memcmp(q, buf, PAGE), "but for reading");
	CHECK(mprotect(q, PAGE, PROT_READ | PROT_WRITE) && errno == EACCES,
	      "A13: which mprotect does not change");
	munmap(q, PAGE);
	im = importer();
	if (has_no_pages()) {
		CHECK(attach(im, ro) == EOPNOTSUPP, "an importer of pages: EOPNOTSUPP");
	} else {
		CHECK(!attach(im, ro) && call(im, IMPORTER_MAP, &m) == EACCES,
		      "A14: another device cannot map it for writing");
		CHECK(!call(im, IMPORTER_VMAP, NULL) && holds(im, IMPORTER_VMAP, 0, SIZE),
		      "A14: the kernel can, for reading");
	}
	close(im);
	close(ro);

	CHECK(!mem_free(fd, handle), "free while mapped");
	close(db);
	CHECK(!memcmp(p, buf, SIZE), "the mapping keeps the memory");
	CHECK(used() == before + SIZE, "which is charged as before");
	munmap(p, SIZE);
	CHECK(used() == before, "until the mapping is gone");
}

static int dmabuf_fd(int dev, void *va, uint64_t size, int32_t *out)
{
	struct neuron_ioctl_dmabuf_fd d = { .va = (uintptr_t)va, .size = size, .fd = out };

	return call(dev, NEURON_IOCTL_DMABUF_FD, &d);
}

/* By importer @im, or where there are no pages, through a mapping. */
static int seen(int im, int db, uint64_t off, uint64_t len)
{
	uint8_t *p;
	int same;

	if (im >= 0)
		return holds(im, IMPORTER_SG, off, len);
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, db, 0);
	same = p != MAP_FAILED && !memcmp(p, buf + off, len);
	munmap(p, len);
	return same;
}

static void by_address(void)
{
	uint64_t before = used(), handle = alloc(fd, SIZE, 0, 0);
	struct neuron_ioctl_mem_get_info info;
	struct importer_map m = { 0 };
	__u64 pa, off;
	int32_t db = -7;
	int im, wo, i;
	uint8_t *p;
	void *anon;

	info = (struct neuron_ioctl_mem_get_info){
		.mem_handle = handle, .pa = &pa, .mmap_offset = &off,
	};
	CHECK(!call(fd, NEURON_IOCTL_MEM_GET_INFO, &info), "where to map");
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);
	CHECK(p != MAP_FAILED, "map the memory");
	pattern(6);
	memcpy(p, buf, SIZE);

	CHECK(dmabuf_fd(fd, p, SIZE + 1, &db) == EINVAL, "vendor A15: longer than the mapping");
	CHECK(dmabuf_fd(fd, p + PAGE, SIZE, &db) == EINVAL, "vendor A15: past its end");
	CHECK(dmabuf_fd(fd, p, ~0ull, &db) == EOVERFLOW, "vendor A15: as long as can be");
	CHECK(dmabuf_fd(fd, p, 1ull << 63, &db) == EINVAL, "vendor A15: half of that");
	CHECK(dmabuf_fd(fd, p, 0, &db) == EINVAL, "nothing at all");
	CHECK(dmabuf_fd(fd, p + 1, PAGE, &db) == EINVAL, "vendor C2: not at a page border");
	CHECK(dmabuf_fd(fd, NULL, PAGE, &db) == EINVAL, "not mapped");
	anon = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(dmabuf_fd(fd, anon, PAGE, &db) == EINVAL, "memory of another kind");
	munmap(anon, SIZE);
	CHECK(db == -7, "and no descriptor was stored");
	for (i = 0; i < 2000; i++)
		if (dmabuf_fd(fd, p, SIZE, NULL) != EFAULT)
			break;
	CHECK(i == 2000, "vendor C3: a descriptor that cannot be stored, often");

	wo = open_node(O_WRONLY);
	CHECK(!dmabuf_fd(wo, p + PAGE, 2 * PAGE - 5, &db) && db >= 0,
	      "a part of it, through a write-only descriptor");
	close(wo);
	im = has_no_pages() ? -1 : importer();
	if (im >= 0) {
		CHECK(!attach(im, db) && !call(im, IMPORTER_MAP, &m), "an importer maps it");
		CHECK(m.bytes == 2 * PAGE, "vendor A15: whole pages, and not more than that");
		CHECK(rw(im, IMPORTER_SG, 2 * PAGE, back, 1, 0) == ENXIO, "vendor A15: nothing else");
	}
	CHECK(lseek(db, 0, SEEK_END) == 2 * (off_t)PAGE && seen(im, db, PAGE, 2 * PAGE),
	      "it has that part");
	munmap(p, SIZE);
	mem_free(fd, handle);
	CHECK(dmabuf_fd(fd, p, PAGE, &i) == EINVAL, "what was unmapped is not exported");
	CHECK(seen(im, db, PAGE, 2 * PAGE), "but what was exported stays");
	close(db);
	close(im);
	CHECK(used() == before, "all of it comes back");
}

/* The memory of a process that is dead by the time that this one uses it. */
/* Its process could be any: the length that it was given does not change. */
static void import_alone(void)
{
	uint64_t handle = alloc(fd, 2 * SIZE, 0, 0);
	struct neuron_native_mem_grow grow = {
		.size = sizeof(grow), .mem_handle = handle, .bytes = SIZE,
		.flags = NEURON_NATIVE_GROW_SHRINK,
	};
	struct neuron_native_mem_import i;
	int db;

	/* Memory behind it is free then, whatever earlier tests left where. */
	CHECK(!call(fd, NEURON_NATIVE_MEM_GROW, &grow), "a chunk is cut to half its length");
	grow.bytes = 2 * SIZE;
	grow.flags = 0;
	CHECK(!export(fd, handle, 0, 0, 0, &db) && !import(fd, db, &i), "an import of its own");
	close(db);
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &grow) == EBUSY, "without the export: no growth");
	CHECK(!mem_free(fd, i.mem_handle) && !call(fd, NEURON_NATIVE_MEM_GROW, &grow),
	      "without the import: growth");
	mem_free(fd, handle);
}

static void shared(int host)
{
	struct neuron_ioctl_mem_get_extended_info info = { 0 };
	struct neuron_ioctl_mem_get_mc_mmap_info_v2 mc = { 0 };
	struct neuron_native_mem_grow grow = { .size = sizeof(grow), .bytes = 2 * SIZE };
	struct neuron_ioctl_mem_copy64 c = { .size = SIZE };
	const char *what = host ? "host memory" : "device memory";
	struct neuron_native_mem_import i, twice;
	uint64_t before = used(), other;
	int sock[2], db, status;
	uint8_t *p;
	pid_t pid;

	pattern(7 + host);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int dev = open_node(O_RDWR);
		uint64_t handle;

		/* Test points of a child would be counted as the parent's. */
		freopen("/dev/null", "w", stdout);
		handle = host ? alloc_host(dev, SIZE) : alloc(dev, SIZE, 0, 0);
		if (copy(dev, handle, buf, 1) || export(dev, handle, 0, 0, 0, &db))
			_exit(1);
		if (pass_fd(sock[0], db))
			_exit(1);
		_exit(0);
	}
	close(sock[0]);
	db = take_fd(sock[1]);
	close(sock[1]);
	waitpid(pid, &status, 0);
	CHECK(!status && db >= 0, "%s: a process exports it and dies", what);
	CHECK(used() == before + (host ? 0 : SIZE), "%s: it stays charged", what);
	CHECK(!import(fd, db, &i) && i.mem_handle && i.bytes == SIZE && i.host == (unsigned)host,
	      "%s: another one imports it", what);
	CHECK(!import(fd, db, &twice) && twice.mem_handle != i.mem_handle && twice.pa == i.pa,
	      "%s: twice", what);
	close(db);
	mc.pa = i.pa;
	CHECK(!call(fd, NEURON_IOCTL_MEM_MC_GET_INFO_V2, &mc) && mc.mem_handle == i.mem_handle,
	      "%s: of two handles the older one is found", what);
	grow.mem_handle = i.mem_handle;
	CHECK(call(fd, NEURON_NATIVE_MEM_GROW, &grow) == (host ? EINVAL : EBUSY),
	      "%s: it cannot grow", what);
	CHECK(!copy(fd, i.mem_handle, back, 0) && !memcmp(buf, back, SIZE), "%s: same bytes", what);
	CHECK(!mem_free(fd, twice.mem_handle), "%s: one handle is freed", what);
	CHECK(mem_free(fd, twice.mem_handle) == ENOENT, "%s: once", what);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, i.mmap_offset);
	CHECK(p != MAP_FAILED && !memcmp(p, buf, SIZE), "%s: mapped", what);
	pattern(9);
	memcpy(p, buf, SIZE);
	munmap(p, SIZE);
	info.mem_handle = i.mem_handle;
	CHECK(!call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &info) && info.size == SIZE &&
	      info.pa == i.pa && info.pid != (unsigned)getpid(), "%s: described", what);
	mc.pa = i.pa + PAGE;
	CHECK(!call(fd, NEURON_IOCTL_MEM_MC_GET_INFO_V2, &mc) && mc.mem_handle == i.mem_handle,
	      "%s: found by its address", what);
	other = alloc(fd, SIZE, 0, 0);
	c.src_mem_handle = i.mem_handle;
	c.dst_mem_handle = other;
	CHECK(!call(fd, NEURON_IOCTL_MEM_COPY64, &c) && !copy(fd, other, back, 0) &&
	      !memcmp(buf, back, SIZE), "%s: the device copies from it", what);
	mem_free(fd, other);
	CHECK(!export(fd, i.mem_handle, 0, 0, 0, &db), "%s: exported again", what);
	CHECK(!mem_free(fd, i.mem_handle), "%s: free", what);
	CHECK(copy(fd, i.mem_handle, back, 0) == ENOENT, "%s: the handle is gone", what);
	CHECK(used() == before + (host ? 0 : SIZE), "%s: the export keeps the memory", what);
	close(db);
	CHECK(used() == before, "%s: all of it comes back", what);
}

static void bad(void)
{
	uint64_t before = used(), handle = alloc(fd, SIZE, 0, 0);
	struct neuron_native_mem_export e;
	struct neuron_native_mem_import i;
	int db, other, udma, memfd;

	CHECK(export(fd, handle + 1000, 0, 0, 0, &db) == ENOENT, "export: no such handle");
	CHECK(export(fd, handle, SIZE, 0, 0, &db) == EINVAL, "export: from its end");
	CHECK(export(fd, handle, 1, PAGE, 0, &db) == EINVAL, "export: from the middle of a page");
	CHECK(export(fd, handle, 0, PAGE + 1, 0, &db) == EINVAL, "export: half a page");
	CHECK(export(fd, handle, PAGE, SIZE, 0, &db) == EINVAL, "export: past its end");
	CHECK(export(fd, handle, PAGE, -PAGE, 0, &db) == EOVERFLOW, "export: around");
	CHECK(export(fd, handle, 0, 0, 2, &db) == EINVAL, "export: unknown flag");
	e = (struct neuron_native_mem_export){
		.size = sizeof(e), .mem_handle = handle, .__reserved = 1,
	};
	CHECK(call(fd, NEURON_NATIVE_MEM_EXPORT, &e) == EINVAL, "export: reserved field");
	other = open_node(O_WRONLY);
	CHECK(export(other, handle, 0, 0, 0, &db) == EACCES, "export: write-only descriptor");
	close(other);

	CHECK(import(fd, -1, &i) == EBADF, "import: no descriptor");
	other = open("/dev/null", O_RDWR);
	CHECK(import(fd, other, &i) == EINVAL, "import: no dma-buf");
	CHECK(import(fd, fd, &i) == EINVAL, "import: a device");
	close(other);
	CHECK(!export(fd, handle, 0, PAGE, 0, &db) && import(fd, db, &i) == EINVAL,
	      "import: only a part of an allocation");
	close(db);
	CHECK(!export(fd, handle, 0, 0, NEURON_NATIVE_EXPORT_RDONLY, &db) &&
	      import(fd, db, &i) == EPERM, "import: read-only");
	close(db);
	CHECK(!export(fd, handle, 0, 0, 0, &db), "export");
	i = (struct neuron_native_mem_import){ .size = sizeof(i), .fd = db, .flags = 1 };
	CHECK(call(fd, NEURON_NATIVE_MEM_IMPORT, &i) == EINVAL, "import: unknown flag");
	close(db);

	udma = open("/dev/udmabuf", O_RDWR);
	if (udma >= 0) {
		struct udmabuf_create u = { .size = SIZE };

		memfd = memfd_create("foreign", MFD_ALLOW_SEALING);
		if (ftruncate(memfd, SIZE) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
			CHECK(0, "foreign memory");
		u.memfd = memfd;
		db = ioctl(udma, UDMABUF_CREATE, &u);
		CHECK(db >= 0 && import(fd, db, &i) == EINVAL, "import: somebody else's dma-buf");
		close(db);
		close(memfd);
		close(udma);
	}
	mem_free(fd, handle);
	CHECK(used() == before, "nothing is left");
}

static void peers(void)
{
	uint64_t before = used(), handle = alloc(fd, SIZE, 0, 0);
	struct neuron_native_mem_import i;
	struct importer_peer r = { 0 };
	uint32_t calls = 9;
	int db, im;
	uint8_t *p;

	/* Its offset is found as an import tells it. */
	CHECK(!export(fd, handle, 0, 0, 0, &db) && !import(fd, db, &i), "where to map");
	close(db);
	mem_free(fd, i.mem_handle);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, i.mmap_offset);
	CHECK(p != MAP_FAILED, "map");
	pattern(11);
	memcpy(p, buf, SIZE);
	im = importer();
	r.va = (uintptr_t)p;
	r.len = SIZE;
	CHECK(!call(im, IMPORTER_REGISTER, &r), "peer: register");
	CHECK(r.bytes == SIZE && r.entries && 1u << r.shift == PAGE && !r.device, "peer: %u runs",
	      r.entries);
	/* Of a card it gets addresses in a BAR, for DMA. */
	if (!has_no_pages())
		CHECK(holds(im, IMPORTER_PEER, 0, SIZE), "peer: it sees what was written");
	CHECK(!call(im, IMPORTER_UNREGISTER, NULL), "peer: unregister");
	CHECK(!call(im, IMPORTER_CALLBACKS, &calls) && !calls, "peer: no callback");
	r.va += PAGE;
	CHECK(call(im, IMPORTER_REGISTER, &r) == EINVAL, "peer: past the end of the mapping");
	r.len = PAGE;
	r.va += 1;
	CHECK(call(im, IMPORTER_REGISTER, &r) == EINVAL, "peer: not at a page border");
	r.va -= 1;
	r.len = 0;
	CHECK(call(im, IMPORTER_REGISTER, &r) == EINVAL, "peer: nothing");
	r.va = (uintptr_t)buf & -PAGE;
	r.len = PAGE;
	CHECK(call(im, IMPORTER_REGISTER, &r) == EINVAL, "peer: other memory");

	r.va = (uintptr_t)p + PAGE;
	r.len = 3 * PAGE;
	CHECK(!call(im, IMPORTER_REGISTER, &r) && r.bytes == 3 * PAGE, "peer: a part");
	mem_free(fd, handle);
	munmap(p, PAGE);
	CHECK(!call(im, IMPORTER_CALLBACKS, &calls) && !calls, "peer: most is still mapped");
	if (!has_no_pages())
		CHECK(holds(im, IMPORTER_PEER, PAGE, 3 * PAGE), "peer: after the handle was freed");
	CHECK(used() == before + SIZE, "peer: the memory stays");
	munmap(p + PAGE, SIZE - PAGE);
	CHECK(!call(im, IMPORTER_CALLBACKS, &calls) && calls == 1, "peer: told to forget it");
	CHECK(used() == before, "peer: the memory is back");
	CHECK(!call(im, IMPORTER_UNREGISTER, NULL), "peer: unregister after that");

	handle = alloc(fd, SIZE, 0, 0);
	CHECK(!export(fd, handle, 0, 0, 0, &db) && !import(fd, db, &i), "where to map");
	close(db);
	mem_free(fd, i.mem_handle);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, i.mmap_offset);
	r.va = (uintptr_t)p;
	r.from_callback = 1;
	CHECK(!call(im, IMPORTER_REGISTER, &r), "peer: register");
	munmap(p, SIZE);
	mem_free(fd, handle);
	CHECK(!call(im, IMPORTER_CALLBACKS, &calls) && calls == 1, "peer: callback unregisters");
	CHECK(call(im, IMPORTER_UNREGISTER, NULL) == EINVAL, "peer: so that nothing is left");
	close(im);
	CHECK(used() == before, "peer: all of it comes back");
}

/* One of two devices, neuron0, is removed under a dma-buf. */
static void outlive(void)
{
	struct neuron_native_mem_import i;
	struct importer_map m = { 0 };
	uint64_t handle;
	int card = is_card(), pages = !has_no_pages(), other, db, im, im2;
	uint8_t *p;

	close(fd);
	CHECK(!(card ? system("modprobe neuron_emu") :
		system("rmmod neuron_emu && modprobe neuron_emu nr_devices=2")), "two devices");
	fd = open_node(O_RDWR);
	handle = alloc(fd, SIZE, 0, 0);
	pattern(12);
	CHECK(!copy(fd, handle, buf, 1) && !export(fd, handle, 0, 0, 0, &db), "vendor B12: export");
	other = open("/dev/neuron1", O_RDWR | O_CLOEXEC);
	CHECK(import(other, db, &i) == EXDEV, "another device cannot import it");
	close(other);
	im = importer();
	im2 = importer();
	if (pages) {
		CHECK(!attach(im, db) && !call(im, IMPORTER_MAP, &m) &&
		      !call(im, IMPORTER_VMAP, NULL), "vendor B12: an importer and the kernel map it");
		CHECK(!attach(im2, db), "vendor B12: another one attaches");
	}
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, db, 0);
	CHECK(p != MAP_FAILED && !memcmp(p, buf, SIZE / 2), "vendor B12: so does this process");
	close(fd);
	CHECK(!system("rmmod neuron_emu") && (!card || !device_unload(card)),
	      "vendor B12: the device is removed");
	CHECK(faults(p), "vendor B12: the mapping is empty");
	CHECK(faults(p + SIZE - 1), "vendor B12: also where it was not touched");
	munmap(p, SIZE);
	CHECK(mmap(NULL, SIZE, PROT_READ, MAP_SHARED, db, 0) == MAP_FAILED && errno == ENODEV,
	      "vendor B12: mmap");
	if (pages) {
		CHECK(call(im2, IMPORTER_MAP, &m) == ENODEV, "vendor B12: map");
		CHECK(call(im2, IMPORTER_SYNC, NULL) == ENODEV, "vendor B12: CPU access");
		CHECK(holds(im, IMPORTER_SG, 0, SIZE),
		      "vendor B12: the importer keeps what it has mapped");
		CHECK(holds(im, IMPORTER_VMAP, 0, SIZE), "vendor B12: so does the kernel");
	}
	close(im2);
	im2 = importer();
	CHECK(attach(im2, db) == ENODEV, "vendor B12: attach");
	close(im2);
	CHECK(!device_load(card), "vendor B12: a new device comes");
	fd = open("/dev/neuron1", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0, "vendor B12: the number of the old one is still in use");
	CHECK(import(fd, db, &i) == EXDEV, "vendor B12: it is another one");
	close(fd);
	close(db);
	close(im);
	CHECK(!device_unload(card) && !device_load(card), "vendor B12: until the last descriptor");
	fd = open_node(O_RDWR);
	handle = alloc(fd, SIZE, 0, 0);
	memset(buf, 0, SIZE);
	CHECK(!copy(fd, handle, back, 0) && !memcmp(buf, back, SIZE), "vendor B12: with its own memory");
	mem_free(fd, handle);
}

/* An export holds the memory and the device, not the module that made the device. */
static void outlive_module(void)
{
	int db, card = is_card();

	fd = open_node(O_RDWR);
	CHECK(!export(fd, alloc(fd, SIZE, 0, 0), 0, 0, 0, &db), "export");
	close(fd);
	CHECK(!device_unload(card), "unload the device's module");
	CHECK(!close(db), "then the export goes");
	CHECK(!device_load(card), "load for the tests that follow");
}

int main(void)
{
	uint64_t before;

	CHECK(!system("modprobe neuron_importer"), "load the importer");
	device_settles();
	fd = open_node(O_RDWR);
	before = used();
	importers(alloc(fd, SIZE, 0, 0), "device memory");
	importers(alloc_host(fd, SIZE), "host memory");
	CHECK(used() == before, "all of it comes back");
	mapped();
	by_address();
	import_alone();
	shared(0);
	shared(1);
	bad();
	peers();
	outlive();
	close(fd);
	outlive_module();
	CHECK(!system("rmmod neuron_importer"), "unload the importer");
	return failed != 0;
}
