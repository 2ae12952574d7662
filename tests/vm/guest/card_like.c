// SPDX-License-Identifier: GPL-2.0-only
/*
 * A software device that does no more than a card: no interrupts, memory that somebody has
 * used, device memory without pages, host memory by DMA address.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../importer/importer.h"
#include "emu.h"

#define MIB	(1ull << 20)
#define SIZE	(3 * MIB + 321)
/* Neighbouring pages that the kernel can give at once. */
#define HOST_MAX	(4 * MIB)

static uint8_t in[8 * MIB], out[8 * MIB];

static int mem_alloc(int fd, uint64_t bytes, int host, struct neuron_native_mem_alloc *a)
{
	*a = (struct neuron_native_mem_alloc){
		.size = sizeof(*a), .bytes = bytes, .flags = host ? NEURON_NATIVE_ALLOC_HOST : 0,
		.mem_type = host ? NEURON_MEMALLOC_TYPE_TENSORS_HOST :
				   NEURON_MEMALLOC_TYPE_TENSORS_DEVICE,
	};
	return call(fd, NEURON_NATIVE_MEM_ALLOC, a);
}

static int buf_copy(int fd, uint64_t handle, void *p, uint64_t size, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = p, .size = size, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static void *map(int fd, const struct neuron_native_mem_alloc *a)
{
	void *p = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, a->mmap_offset);

	CHECK(p != MAP_FAILED, "map %llu KiB", (unsigned long long)a->bytes >> 10);
	return p;
}

static int is(const uint8_t *p, uint8_t value, uint64_t n)
{
	return p[0] == value && !memcmp(p, p + 1, n - 1);
}

static void fill(uint32_t seed)
{
	uint64_t i;

	for (i = 0; i < sizeof(in); i++)
		in[i] = i * 7 + (i >> 12) * 13 + seed;
}

/* What others left in device memory is not seen, by DMA or by the CPU. */
static void cleared(int fd)
{
	struct neuron_native_mem_alloc a;
	int round, seen = 0;
	uint64_t pos;
	uint8_t *p;

	for (round = 0; round < 2; round++) {
		CHECK(!mem_alloc(fd, 192 * MIB, 0, &a), "most of an HBM");
		p = map(fd, &a);
		for (pos = 0; pos < a.bytes; pos += MIB)
			seen += !is(p + pos, 0, PAGE);
		CHECK(!seen, "round %d: mapped memory is clear", round);
		CHECK(!buf_copy(fd, a.mem_handle, out, sizeof(out), 0) && is(out, 0, sizeof(out)),
		      "round %d: so it is by DMA", round);
		for (pos = 0; pos < a.bytes; pos += 8 * MIB)
			memset(p + pos, 0x5a, PAGE);
		munmap(p, a.bytes);
		CHECK(!mem_free(fd, a.mem_handle), "round %d: free", round);
	}
}

/* Copies of user memory, which the device sees through a buffer unless it is one range. */
static void copies(int fd)
{
	uint8_t *huge = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	struct neuron_native_mem_alloc a, b;
	uint8_t *p;

	CHECK(!mem_alloc(fd, SIZE, 0, &a) && !mem_alloc(fd, HOST_MAX, 1, &b), "memory");
	fill(1);
	CHECK(!buf_copy(fd, a.mem_handle, in + 5, SIZE, 1) &&
	      !buf_copy(fd, a.mem_handle, out + 9, SIZE, 0) && !memcmp(in + 5, out + 9, SIZE),
	      "there and back");
	madvise(huge, 8 * MIB, MADV_HUGEPAGE);
	fill(2);
	memcpy(huge + 77, in, SIZE);
	CHECK(!buf_copy(fd, a.mem_handle, huge + 77, SIZE, 1), "from huge pages");
	memset(huge, 0, 8 * MIB);
	CHECK(!buf_copy(fd, a.mem_handle, huge + 3, SIZE, 0) && !memcmp(huge + 3, in, SIZE),
	      "to huge pages");
	/* Pages that the device sees already. */
	p = map(fd, &b);
	fill(3);
	memcpy(p, in, SIZE);
	memset(out, 0, sizeof(out));
	CHECK(!buf_copy(fd, a.mem_handle, p, SIZE, 1) &&
	      !buf_copy(fd, a.mem_handle, out, SIZE, 0) && !memcmp(in, out, SIZE),
	      "from the device's host memory");
	munmap(p, b.bytes);
	munmap(huge, 8 * MIB);
	mem_free(fd, a.mem_handle);
	mem_free(fd, b.mem_handle);
}

/* A chunk is one range of DMA addresses: clear, and as large as can be had in one piece. */
static void host_memory(int fd)
{
	const uint64_t pages[] = { 1, 2, 3, 5, 31, 100, 257, 513, HOST_MAX / PAGE };
	struct neuron_native_geometry geo = geometry(fd);
	struct neuron_native_mem_alloc a, b;
	uint32_t i, round;
	uint8_t *p;

	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		for (round = 0; round < 2; round++) {
			if (mem_alloc(fd, pages[i] * PAGE, 1, &a))
				break;
			p = map(fd, &a);
			if (!is(p, 0, a.bytes))
				break;
			memset(p, 0xee, a.bytes);
			munmap(p, a.bytes);
			if (mem_free(fd, a.mem_handle))
				break;
		}
		CHECK(round == 2, "%llu pages are clear, and again", (unsigned long long)pages[i]);
	}
	CHECK(!mem_alloc(fd, HOST_MAX, 1, &a) && !mem_alloc(fd, HOST_MAX, 0, &b), "memory");
	CHECK(a.mmap_offset & geo.host_window && a.mmap_offset % PAGE == 0 &&
	      (a.mmap_offset & ~geo.host_window) < geo.host_window, "a DMA address in the window");
	p = map(fd, &a);
	fill(4);
	memcpy(p, in, HOST_MAX);
	CHECK(!call(fd, NEURON_IOCTL_MEM_COPY64, &(struct neuron_ioctl_mem_copy64){
		.src_mem_handle = a.mem_handle, .dst_mem_handle = b.mem_handle,
		.size = HOST_MAX }), "copy by DMA");
	CHECK(!buf_copy(fd, b.mem_handle, out, HOST_MAX, 0) && !memcmp(in, out, HOST_MAX),
	      "it arrived");
	munmap(p, HOST_MAX);
	mem_free(fd, a.mem_handle);
	mem_free(fd, b.mem_handle);
	/* With larger pages, pieces are longer than what there is. */
	CHECK(PAGE > 4096 || (mem_alloc(fd, 2 * HOST_MAX, 1, &a) == ENOMEM &&
	      a.reason == NEURON_NATIVE_REASON_HOST), "more than one piece: ENOMEM");
}

static int export(int fd, uint64_t handle)
{
	struct neuron_native_mem_export e = { .size = sizeof(e), .mem_handle = handle, .fd = -7 };

	CHECK(!call(fd, NEURON_NATIVE_MEM_EXPORT, &e), "export");
	return e.fd;
}

/* Importers need pages, which only host memory has; a mapping does not. */
static void dmabufs(int fd)
{
	struct neuron_native_mem_alloc a, b;
	struct importer_map m;
	int im = open("/dev/neuron_importer", O_RDWR | O_CLOEXEC), db;
	uint8_t *p;

	CHECK(!mem_alloc(fd, MIB, 0, &a) && !mem_alloc(fd, MIB, 1, &b), "memory");
	fill(5);
	CHECK(!buf_copy(fd, a.mem_handle, in, MIB, 1), "write it");
	db = export(fd, a.mem_handle);
	CHECK(call(im, IMPORTER_ATTACH, &db) == EOPNOTSUPP, "device memory: EOPNOTSUPP");
	p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, db, 0);
	CHECK(p != MAP_FAILED && !memcmp(p, in, MIB), "device memory: it can be mapped");
	munmap(p, MIB);
	close(db);
	db = export(fd, b.mem_handle);
	CHECK(!call(im, IMPORTER_ATTACH, &db) && !call(im, IMPORTER_MAP, &m) && m.bytes == MIB,
	      "host memory: an importer maps it");
	CHECK(!call(im, IMPORTER_UNMAP, NULL) && !call(im, IMPORTER_DETACH, NULL), "and not");
	close(db);
	close(im);
	mem_free(fd, a.mem_handle);
	mem_free(fd, b.mem_handle);
}

/* A card that is pulled out: its peers hear of it, host memory stays. */
static void removal(int fd)
{
	struct neuron_native_mem_alloc a, b;
	struct importer_peer r = { .len = MIB };
	int im = open("/dev/neuron_importer", O_RDWR | O_CLOEXEC);
	uint32_t calls = 9;
	uint8_t *p, *q;

	CHECK(!mem_alloc(fd, MIB, 0, &a) && !mem_alloc(fd, MIB, 1, &b), "memory");
	p = map(fd, &a);
	q = map(fd, &b);
	memset(p, 0x11, MIB);
	memset(q, 0x22, MIB);
	r.va = (uintptr_t)p;
	CHECK(!call(im, IMPORTER_REGISTER, &r) && r.bytes == MIB, "a peer knows device memory");
	CHECK(!call(im, IMPORTER_CALLBACKS, &calls) && !calls, "no callback yet");
	CHECK(!emu_set("card", "live", "0"), "remove the device");
	CHECK(!call(im, IMPORTER_CALLBACKS, &calls) && calls == 1, "the peer was told");
	CHECK(is(q, 0x22, MIB), "host memory is still there");
	CHECK(mem_alloc(fd, MIB, 1, &b) == ENODEV, "no new host memory: ENODEV");
	CHECK(!call(im, IMPORTER_UNREGISTER, NULL), "unregister");
	close(im);
	munmap(p, MIB);
	close(fd);
	CHECK(is(q, 0x22, MIB), "also when the device is closed");
	munmap(q, MIB);
}

int main(void)
{
	char path[64], parent[256] = "";
	int number = -1, fd;

	CHECK(!emu_mkdir("card") && !emu_set("card", "hbm_size", "256") &&
	      !emu_set("card", "card_like", "1") && !emu_set("card", "live", "1"), "make one");
	CHECK(emu_set("card", "card_like", "0") == EBUSY, "which stays as it is");
	CHECK(sscanf(emu_get("card", "dev_name"), "neuron%d", &number) == 1, "its number");
	snprintf(path, sizeof(path), "/sys/class/neuron_device/neuron%d/device", number);
	CHECK(readlink(path, parent, sizeof(parent) - 1) > 0 && strstr(parent, "neuron_emu"),
	      "sysfs shows the device that does its DMA");
	fd = emu_open(number, O_RDWR);
	CHECK(fd >= 0, "open it");
	CHECK(!system("modprobe neuron_importer"), "load the importer");
	cleared(fd);
	copies(fd);
	host_memory(fd);
	dmabufs(fd);
	removal(fd);
	CHECK(!system("rmmod neuron_importer"), "unload the importer");
	CHECK(!rmdir(emu_path("card", "")), "rmdir");
	return !!failed;
}
