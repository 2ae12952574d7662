// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another device that does DMA to a card's memory through a dma-buf: who may attach, what it
 * reaches, and that the card can be removed while it does.
 */
#include "guest_cards.h"
#include "../vm/importer/importer.h"

#define BYTES	(3u << 20)

static uint8_t in[BYTES], out[BYTES];

static void fill(uint32_t seed)
{
	for (uint32_t i = 0; i < BYTES; i++)
		in[i] = i * 7 + (i >> 12) * 13 + seed;
}

static int export(int fd, uint64_t handle, uint64_t off, uint32_t flags)
{
	struct neuron_native_mem_export e = {
		.size = sizeof(e), .flags = flags, .mem_handle = handle, .offset = off, .fd = -1,
	};

	CHECK(!call(fd, NEURON_NATIVE_MEM_EXPORT, &e), "export");
	return e.fd;
}

static int copy(int fd, uint64_t handle, void *buf, int to)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = handle, .buffer = buf, .size = BYTES, .copy_to_mem_handle = to,
	};

	return call(fd, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

static int importer(void)
{
	int im = open("/dev/neuron_importer", O_RDWR | O_CLOEXEC);

	CHECK(im >= 0, "an importer");
	return im;
}

static int attach(int im, int dmabuf, int stubborn)
{
	return call(im, IMPORTER_ATTACH_P2P, &(struct importer_p2p){
		.fd = dmabuf, .stubborn = stubborn });
}

static int rw(int im, uint64_t off, void *buf, uint64_t len, int write)
{
	return call(im, IMPORTER_RW, &(struct importer_rw){
		.off = off, .len = len, .buf = (uintptr_t)buf, .write = write });
}

static uint32_t told(int im)
{
	uint32_t n = ~0u;

	CHECK(!call(im, IMPORTER_TOLD, &n), "how often it was told");
	return n;
}

/* The importer is no PCI device, so nothing is known of its way to a card. */
static void unknown(const struct card *c, const char *parameters)
{
	int fd, db, plain, im = importer();

	CHECK(load(parameters), "load: %s", parameters);
	fd = open_card(c);
	db = export(fd, alloc(fd, BYTES, 0, 0), 0, 0);
	CHECK(attach(im, db, 0) == EOPNOTSUPP, "%s: nobody knows whether it reaches the card",
	      parameters);
	plain = db;
	CHECK(call(im, IMPORTER_ATTACH, &plain) == EOPNOTSUPP, "%s: nor with pages", parameters);
	close(db);
	close(fd);
	close(im);
	CHECK(unload(), "unload");
}

/* Of the card itself it is known, by kernels that know anything. */
static void known(const struct card *c)
{
	bool knows = !system("grep -q ' pci_p2pdma_distance_many$' /proc/kallsyms");
	char command[100];
	int fd, im, db;

	CHECK(!system("rmmod neuron_importer"), "another importer");
	snprintf(command, sizeof(command), "modprobe neuron_importer as=%s",
		 strrchr(c->pci, '/') + 1);
	CHECK(!system(command) && load("hbm_limit=256"), "%s", command);
	fd = open_card(c);
	im = importer();
	db = export(fd, alloc(fd, BYTES, 0, 0), 0, 0);
	CHECK(attach(im, db, 0) == (knows ? 0 : EOPNOTSUPP), "the kernel %s it",
	      knows ? "knows" : "does not know");
	close(im);
	close(db);
	close(fd);
	CHECK(unload() && !system("rmmod neuron_importer && modprobe neuron_importer"), "unload");
}

static void reached(int fd)
{
	uint64_t handle = alloc(fd, BYTES, 0, 0);
	int im = importer(), other = importer(), db = export(fd, handle, 0, 0), part, ro;
	struct importer_map m = { 0 };
	int32_t plain = db;

	fill(1);
	CHECK(!copy(fd, handle, in, 1), "the card has something");
	CHECK(call(im, IMPORTER_ATTACH, &plain) == EOPNOTSUPP, "an importer of pages is refused");
	CHECK(!attach(im, db, 0) && !call(im, IMPORTER_MAP, &m), "one of addresses is not");
	CHECK(m.bytes == BYTES && m.entries == 1 && m.runs == 1, "it gets one range: %u", m.entries);
	CHECK(!rw(im, 0, out, BYTES, 0) && !memcmp(in, out, BYTES), "it reads what the card has");
	fill(2);
	CHECK(!rw(im, 0, in, BYTES, 1), "it writes");
	CHECK(!copy(fd, handle, out, 0) && !memcmp(in, out, BYTES), "the card has it");
	CHECK(rw(im, BYTES - 1, out, 2, 0) == ENXIO, "nothing behind the end");
	CHECK(call(im, IMPORTER_VMAP, NULL) == EINVAL, "not for the kernel's processor");
	CHECK(!call(im, IMPORTER_SYNC, NULL), "an access of the processor");
	part = export(fd, handle, BYTES - 4096, 0);
	CHECK(!attach(other, part, 1) && !call(other, IMPORTER_MAP, &m) && m.bytes == 4096 &&
	      !rw(other, 0, out, 4096, 0) && !memcmp(in + BYTES - 4096, out, 4096),
	      "the last page, pinned");
	CHECK(!call(other, IMPORTER_DETACH, NULL), "and let go");
	ro = export(fd, handle, 0, NEURON_NATIVE_EXPORT_RDONLY);
	CHECK(!attach(other, ro, 0) && call(other, IMPORTER_MAP, &m) == EACCES,
	      "not for writing through a descriptor for reading");
	close(ro);
	close(part);
	close(db);
	CHECK(!mem_free(fd, handle), "freed while it is mapped");
	CHECK(!rw(im, 0, out, BYTES, 0) && !memcmp(in, out, BYTES), "it is still there");
	CHECK(told(im) == 0, "nobody was told anything");
	close(other);
	close(im);
}

/* One that unmaps when it is told, and one that does not. */
static void removal(const struct card *c, int fd)
{
	uint64_t handle = alloc(fd, BYTES, 0, 0), hidden = alloc(fd, BYTES, 0, 0);
	int obeys = importer(), stays = importer(), db = export(fd, handle, 0, 0);
	int kept = export(fd, hidden, 0, 0);
	struct importer_map m = { 0 };

	CHECK(!attach(obeys, db, 0) && !call(obeys, IMPORTER_MAP, &m), "one that can be told");
	CHECK(!attach(stays, kept, 1) && !call(stays, IMPORTER_MAP, &m), "one that pins");
	close(kept);
	close(fd);
	CHECK(unload(), "the card goes");
	CHECK(told(obeys) == 1 && told(stays) == 1, "both were told, once");
	CHECK(rw(obeys, 0, out, 1, 0) == ENXIO, "the first has unmapped it");
	CHECK(call(obeys, IMPORTER_MAP, &m) == ENODEV, "and cannot map it again");
	close(db);
	close(obeys);
	/* The other one could write to the memory of whoever is next. */
	CHECK(load("p2p=2 hbm_limit=256") && open_card(c) < 0 && errno == ENOENT,
	      "the card is not there again meanwhile");
	CHECK(unload(), "unload");
	close(stays);
	CHECK(load("p2p=2 hbm_limit=256"), "load again");
	fd = open_card(c);
	CHECK(fd >= 0, "now it is");
	close(fd);
	CHECK(unload(), "unload");
}

int main(void)
{
	const struct card *c;
	int fd;

	CHECK(!system("modprobe neuron_importer"), "load the importer");
	find_cards();
	c = next_card(NULL);
	unknown(c, "p2p=0 hbm_limit=256");
	unknown(c, "hbm_limit=256");
	known(c);
	CHECK(load("p2p=2 hbm_limit=256"), "load for all devices");
	fd = open_card(c);
	reached(fd);
	removal(c, fd);
	CHECK(system("modprobe neuron_pci p2p=3 2>/dev/null"), "p2p=3 is no value");
	CHECK(!system("rmmod neuron_importer"), "unload the importer");
	return failed != 0;
}
