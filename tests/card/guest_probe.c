// SPDX-License-Identifier: GPL-2.0-only
/*
 * In a virtual machine: a card behind real PCI can be found, reset and started, and moves
 * bytes between the machine's memory and its own. No driver is involved; the accesses are made
 * through the resource files of sysfs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "card.h"

#define PAGE		4096
#define RING_LEN	64u
#define MARKER		0xabcdef01u

static int failed;

#define CHECK(c, ...) do {							\
	bool c_ = (c);								\
										\
	printf("%sok - ", c_ ? "" : "not ");					\
	printf(__VA_ARGS__);							\
	putchar('\n');								\
	failed += !c_;								\
} while (0)

/* A Trainium2 as the guest sees it; only the generation of @tables is set. */
static struct card tables = { .gen = 3 };
static volatile u32 *bar0;
static u8 *bar4;
static char path[300];

static u64 text_number(const char *dir, const char *name)
{
	char file[400], text[64] = "";
	int fd;

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	fd = open(file, O_RDONLY);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		close(fd);
	return strtoull(text, NULL, 0);
}

static bool find_card(void)
{
	DIR *d = opendir("/sys/bus/pci/devices");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.200s", e->d_name);
		if (text_number(path, "vendor") == 0x1d0f && text_number(path, "device") == 0x7364)
			return true;
	}
	return false;
}

static void *map_resource(const char *name, u64 len)
{
	char file[400];
	void *p;
	int fd;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	fd = open(file, O_RDWR);
	p = fd < 0 ? MAP_FAILED : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Memory decoding and bus mastering on. */
static bool enable(void)
{
	u16 command = 0x6;
	char file[400];
	int fd;

	snprintf(file, sizeof(file), "%s/config", path);
	fd = open(file, O_RDWR);
	return fd >= 0 && pwrite(fd, &command, 2, 4) == 2 && !close(fd);
}

static u32 reg_read(u64 off)
{
	return bar0[off / 4];
}

static void reg_write(u64 off, u32 val)
{
	bar0[off / 4] = val;
}

/* The bus address of a page of this process; there is no IOMMU. */
static u64 bus_address(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	u64 entry = 0;

	if (fd < 0 || pread(fd, &entry, 8, (uintptr_t)p / PAGE * 8) != 8)
		return 0;
	close(fd);
	return (entry & ((1ULL << 55) - 1)) * PAGE;
}

static bool reset_device(void)
{
	u32 i;

	reg_write(0x6c841ec, 1);
	reg_write(0x6c84800, 1);
	for (i = 0; i < 500 && reg_read(0x6c841ec); i++)
		usleep(10000);
	return !reg_read(0x6c841ec) && !(reg_read(0x6c84808) & 8);
}

/* Engine 128 is at 0x6800000 and has no user-interrupt block. */
static void start_engine(u64 base)
{
	struct card_step steps[CARD_MAX_STEPS];
	u32 nr = card_engine_steps(&tables, 128, false, steps), i, val;
	u64 at;

	for (i = 0; i < nr; i++) {
		at = base + (steps[i].block == CARD_APP ? 0x40000 : 0) + steps[i].off;
		val = steps[i].value;
		if (steps[i].rmw)
			val |= reg_read(at) & ~steps[i].clear;
		reg_write(at, val);
	}
}

static void start_side(u64 base, bool rx, u64 ring)
{
	const struct card_step *steps;
	u32 nr = card_queue_steps(rx, &steps), i;

	base += rx ? NEURON_DMA_RX(0) : NEURON_DMA_TX(0);
	for (i = 0; i < nr; i++)
		reg_write(base + steps[i].off, steps[i].off == 0x28 ? lower_32_bits(ring) :
			  steps[i].off == 0x2c ? upper_32_bits(ring) :
			  steps[i].off == 0x30 ? RING_LEN : steps[i].value);
}

static void describe(struct neuron_desc *tx, struct neuron_desc *rx, u64 dst, u64 src, u32 len)
{
	*tx = (struct neuron_desc){
		.ctrl = cpu_to_le32(len | 1u << 24 | NEURON_DESC_FIRST | NEURON_DESC_LAST),
		.meta = cpu_to_le32(NEURON_DESC_META_COPY),
		.addr = cpu_to_le64(src),
	};
	*rx = (struct neuron_desc){ .ctrl = cpu_to_le32(len | 1u << 24), .addr = cpu_to_le64(dst) };
}

/* To the card and back, and a marker at the end. */
static void test_copies(void)
{
	const u64 window = 1ULL << 46, hbm1 = 0x4000000000 + PAGE, engine = 0x6800000;
	u8 *page[4];
	u64 addr[4];
	struct neuron_desc *tx, *rx;
	volatile u32 *marker;
	u32 i;

	for (i = 0; i < 4; i++) {
		page[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED | MAP_POPULATE, -1, 0);
		memset(page[i], 0x11 * i, PAGE);
		addr[i] = bus_address(page[i]) | window;
	}
	CHECK(addr[0] != window, "bus addresses are known");
	start_engine(engine);
	start_side(engine, false, addr[0]);
	start_side(engine, true, addr[1]);
	for (i = 0; i < PAGE; i++)
		page[2][i] = i * 7;
	tx = (struct neuron_desc *)page[0];
	rx = (struct neuron_desc *)page[1];
	marker = (u32 *)(page[3] + PAGE - 8);
	marker[0] = MARKER;
	marker[1] = 0;
	describe(tx, rx, hbm1, addr[2], 2048);
	describe(tx + 1, rx + 1, addr[3], hbm1, 2048);
	describe(tx + 2, rx + 2, addr[3] + PAGE - 4, addr[3] + PAGE - 8, 4);
	reg_write(engine + NEURON_DMA_RX(0) + 0x38, 3);
	reg_write(engine + NEURON_DMA_TX(0) + 0x38, 3);
	for (i = 0; i < 500 && marker[1] != MARKER; i++)
		usleep(10000);
	CHECK(marker[1] == MARKER, "the marker is written");
	CHECK(!memcmp(page[3], page[2], 2048), "the bytes came back");
	CHECK(!memcmp(bar4 + (64ULL << 30) + PAGE, page[2], 2048), "BAR 4 shows them in HBM 1");
	bar4[(64ULL << 30) + PAGE] = 0x5a;
	describe(tx + 3, rx + 3, addr[3], hbm1, 64);
	reg_write(engine + NEURON_DMA_RX(0) + 0x38, 1);
	reg_write(engine + NEURON_DMA_TX(0) + 0x38, 1);
	for (i = 0; i < 500 && *(volatile u8 *)page[3] != 0x5a; i++)
		usleep(10000);
	CHECK(page[3][0] == 0x5a, "what the processor writes to BAR 4, the card reads");
}

int main(void)
{
	CHECK(find_card(), "there is a card");
	CHECK(enable(), "it can be enabled");
	bar0 = map_resource("resource0", 4ULL << 30);
	bar4 = map_resource("resource4", 256ULL << 30);
	CHECK(bar0 && bar4, "its BARs can be mapped");
	if (failed)
		return 1;
	CHECK(reg_read(0x6c84024) == 0, "the routing id");
	CHECK(reset_device(), "reset ends");
	reg_write(0xd0000000 + 0x2701400, 7);
	reg_write(0xd0000000 + 0x2701800, 3);
	reg_write(0xd0000000 + 0x2701c00, 2);
	CHECK(reg_read(0xd0000000 + 0x2701000) == 8, "semaphores count");
	test_copies();
	return failed != 0;
}
