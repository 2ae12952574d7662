// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a device address refers to, and the accesses of the device code to it: HBM, state
 * buffers, and host memory behind the window. There is no check of whose memory it is: a
 * card has none.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "card.h"

#include "../../kmod/emu/mem.h"

#define CARD_PAGE	4096

static struct card *card_of(struct emu_device *ed)
{
	return container_of(ed, struct card, ed);
}

/* The bytes that make memory which nobody has cleared easy to see. */
static void card_dirty(u8 *p, size_t len)
{
	u64 i, *word = (u64 *)p;

	for (i = 0; i < len / sizeof(*word); i++)
		word[i] = 0xdadadadaULL << 32 | (u32)i;
}

/**
 * card_memory_init() - make the HBMs
 * @card: geometry and BAR4 are set
 * @dirty_mib: so much at the start of each is filled with a pattern
 *
 * Return: 0, -errno.
 */
int card_memory_init(struct card *card, u32 dirty_mib)
{
	u32 i;

	pthread_rwlock_init(&card->host_lock, NULL);
	card->host = mmap(NULL, CARD_HOST_LEN, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	card->page = calloc(CARD_HOST_LEN / CARD_PAGE, 1);
	if (card->host == MAP_FAILED || !card->page)
		return -ENOMEM;
	card->bar4_fd = memfd_create("neuron-card", MFD_CLOEXEC);
	if (card->bar4_fd < 0 || ftruncate(card->bar4_fd, card->bar4_len))
		return -errno;
	card->bar4 = mmap(NULL, card->bar4_len, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, card->bar4_fd, 0);
	if (card->bar4 == MAP_FAILED)
		return -errno;
	for (i = 0; i < card->ed.geo.nr_cores; i++) {
		card->sbuf[i] = calloc(1, card->ed.geo.sbuf_size);
		if (!card->sbuf[i])
			return -ENOMEM;
	}
	for (i = 0; i < card->ed.geo.nr_hbms; i++)
		card_dirty(card->bar4 + i * card->hbm_stride, (size_t)dirty_mib << 20);
	return 0;
}

/**
 * card_memory_exit() - give everything back
 * @card: the card
 */
void card_memory_exit(struct card *card)
{
	u32 i;

	free(card->page);
	if (card->host && card->host != MAP_FAILED)
		munmap(card->host, CARD_HOST_LEN);
	for (i = 0; i < NEURON_HW_MAX_CORES; i++)
		free(card->sbuf[i]);
	if (card->bar4 && card->bar4 != MAP_FAILED)
		munmap(card->bar4, card->bar4_len);
	if (card->bar4_fd >= 0)
		close(card->bar4_fd);
	pthread_rwlock_destroy(&card->host_lock);
}

/* ---- host memory ---- */

/**
 * card_range_add() - the card can reach a range of host memory from now on
 * @card: the card
 * @addr: bus address
 * @len: bytes
 * @fd: file that has it; stays the caller's
 * @offset: where in the file
 * @write: the card may write
 *
 * Return: 0, -errno.
 */
int card_range_add(struct card *card, u64 addr, u64 len, int fd, u64 offset, bool write)
{
	int err = 0;

	if (addr % CARD_PAGE || len % CARD_PAGE || !len || len > CARD_HOST_LEN ||
	    addr > CARD_HOST_LEN - len)
		return -EINVAL;
	pthread_rwlock_wrlock(&card->host_lock);
	if (mmap(card->host + addr, len, write ? PROT_READ | PROT_WRITE : PROT_READ,
		 MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED)
		err = -errno;
	else
		memset(card->page + addr / CARD_PAGE, write ? CARD_PAGE_WRITE : CARD_PAGE_READ,
		       len / CARD_PAGE);
	pthread_rwlock_unlock(&card->host_lock);
	return err;
}

/**
 * card_range_del() - the card cannot reach a range of host memory any more
 * @card: the card; returns when it is not at it
 * @addr: start, a multiple of a page
 * @len: bytes; what is behind all host memory does not matter
 */
void card_range_del(struct card *card, u64 addr, u64 len)
{
	if (addr >= CARD_HOST_LEN || addr % CARD_PAGE)
		return;
	len = min(len, CARD_HOST_LEN - addr);
	pthread_rwlock_wrlock(&card->host_lock);
	if (mmap(card->host + addr, len, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		card_complain(card, "host memory at %#llx: %s", addr, strerror(errno));
	memset(card->page + addr / CARD_PAGE, CARD_PAGE_NONE, len / CARD_PAGE);
	pthread_rwlock_unlock(&card->host_lock);
}

/* Under host_lock. */
static u8 *card_host(struct card *card, u64 addr, u64 len, bool write)
{
	u64 page = addr / CARD_PAGE;

	if (!len || len > CARD_HOST_LEN || addr > CARD_HOST_LEN - len)
		return NULL;
	for (; page <= (addr + len - 1) / CARD_PAGE; page++)
		if (card->page[page] < (write ? CARD_PAGE_WRITE : CARD_PAGE_READ))
			return NULL;
	return card->host + addr;
}

/* ---- device addresses ---- */

static bool card_in(u64 base, u64 size, u64 addr, u64 len)
{
	return addr >= base && len <= size && addr - base <= size - len;
}

/**
 * card_core_at() - the core whose window contains a range of addresses
 * @card: the card
 * @addr: device address
 * @len: bytes
 *
 * Return: core number; nr_cores if there is none.
 */
u32 card_core_at(const struct card *card, u64 addr, u64 len)
{
	const struct neuron_geometry *geo = &card->ed.geo;
	u32 i;

	for (i = 0; i < geo->nr_cores; i++)
		if (card_in(geo->tpb_base[i], geo->tpb_size, addr, len))
			break;
	return i;
}

/*
 * Host memory is pinned with host_lock held for reading, which neuron_pin_put() drops. Its
 * bytes are in pin->pages, which the device code only hands on.
 */
static int card_pin(struct card *card, u64 addr, u64 len, bool write, struct neuron_pin *pin)
{
	const struct neuron_geometry *geo = &card->ed.geo;
	u32 i;

	memset(pin, 0, sizeof(*pin));
	for (i = 0; i < geo->nr_hbms; i++) {
		if (card_in(geo->hbm[i].base, geo->hbm[i].size, addr, len)) {
			pin->kind = NEURON_TARGET_HBM;
			pin->index = i;
			pin->off = addr - geo->hbm[i].base;
			return 0;
		}
	}
	i = card_core_at(card, addr, len);
	if (i < geo->nr_cores) {
		pin->kind = NEURON_TARGET_CORE;
		pin->index = i;
		pin->off = addr - geo->tpb_base[i];
		return 0;
	}
	if (addr & geo->host_window && addr < 2 * geo->host_window) {
		pthread_rwlock_rdlock(&card->host_lock);
		pin->kind = NEURON_TARGET_HOST;
		pin->pages = (struct page **)card_host(card, addr - geo->host_window, len, write);
		pin->chunk = (struct neuron_chunk *)card;
		if (pin->pages && card->command & BIT(2))
			return 0;
		pthread_rwlock_unlock(&card->host_lock);
		if (pin->pages)
			card_complain(card, "%s %#llx with bus mastering off",
				      write ? "write to" : "read of", addr);
	}
	return -EACCES;
}

int neuron_space_pin(struct neuron_space *space, u64 addr, u64 len, bool write,
		     struct neuron_pin *pin)
{
	struct card *card = (struct card *)space;
	int err = card_pin(card, addr, len, write, pin);

	if (err && !READ_ONCE(card->faults.nowhere))
		card_complain(card, "%s %#llx, %llu bytes: nothing is there",
			      write ? "write to" : "read of", addr, len);
	return err;
}

int neuron_device_pin(struct neuron_device *nd, u64 addr, u64 len, bool write,
		      struct neuron_pin *pin)
{
	return neuron_space_pin((struct neuron_space *)nd, addr, len, write, pin);
}

void neuron_pin_put(struct neuron_pin *pin)
{
	if (pin->kind == NEURON_TARGET_HOST)
		pthread_rwlock_unlock(&((struct card *)pin->chunk)->host_lock);
}

/* ---- what the device code calls ---- */

int emu_pin(struct emu_device *ed, struct neuron_space *space, u64 addr, u64 len, bool write,
	    struct neuron_pin *pin)
{
	(void)ed;
	return neuron_space_pin(space, addr, len, write, pin);
}

/* A card knows no owners: it accesses what its address maps have. */
int emu_pin_check(struct emu_device *ed, struct neuron_space *space,
		  const struct neuron_pin *pin, u64 off, u64 len, bool write)
{
	(void)ed, (void)space, (void)pin, (void)off, (void)len, (void)write;
	return 0;
}

bool emu_sbuf_has(const struct emu_device *ed, u64 off, u64 len)
{
	off -= NEURON_ISA_SBUF_OFF;
	return len <= ed->geo.sbuf_size && off <= ed->geo.sbuf_size - len;
}

/* A reset takes the buffer away from the core, but its bytes stay. */
u8 *emu_sbuf_get(struct emu_device *ed, u32 core, bool alloc)
{
	struct card *card = card_of(ed);

	if (!READ_ONCE(ed->sbuf[core]) && alloc)
		WRITE_ONCE(ed->sbuf[core], card->sbuf[core]);
	return card->sbuf[core];
}

void emu_sbuf_free(struct emu_device *ed, u8 *sbuf)
{
	(void)ed;
	(void)sbuf;
}

/* The bytes at @off of a pin; NULL if it is not memory. */
static u8 *card_bytes(struct emu_device *ed, const struct neuron_pin *pin, u64 off, u64 len)
{
	struct card *card = card_of(ed);

	switch (pin->kind) {
	case NEURON_TARGET_HBM:
		return card->bar4 + pin->index * card->hbm_stride + pin->off + off;
	case NEURON_TARGET_HOST:
		return (u8 *)pin->pages + off;
	default:
		return emu_sbuf_has(ed, pin->off + off, len) ?
		       card->sbuf[pin->index] + pin->off + off : NULL;
	}
}

/* Markers are seen whole or not at all, and after what was written before them. */
static void card_store(u8 *dst, const u8 *src, u32 len)
{
	if (len == 4 && (uintptr_t)dst % 4 == 0)
		smp_store_release((u32 *)dst, emu_get32(src));
	else if (len == 8 && (uintptr_t)dst % 8 == 0)
		smp_store_release((u64 *)dst, emu_get64(src));
	else
		memmove(dst, src, len);
}

/* HBMs are larger than this machine: a descriptor's worth of zeros takes no memory. */
static bool card_punch(u8 *to, const u8 *from, u32 len)
{
	return len == NEURON_DESC_MAX_LEN && (uintptr_t)to % CARD_PAGE == 0 && !from[0] &&
	       !memcmp(from, from + 1, len - 1) && !madvise(to, len, MADV_REMOVE);
}

int emu_mem_copy(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
		 const struct neuron_pin *src, u64 src_off, u32 len)
{
	u8 *from = card_bytes(ed, src, src_off, len), *to = card_bytes(ed, dst, dst_off, len);

	if (!from || !to)
		return -EACCES;
	if (dst->kind != NEURON_TARGET_HBM || !card_punch(to, from, len))
		card_store(to, from, len);
	return 0;
}

int emu_mem_read(struct emu_device *ed, const struct neuron_pin *pin, u64 off, void *buf,
		 u32 len)
{
	u8 *p = card_bytes(ed, pin, off, len);

	if (!p)
		return -EACCES;
	memcpy(buf, p, len);
	return 0;
}

int emu_mem_write(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
		  const void *buf, u32 len)
{
	u8 *p = card_bytes(ed, pin, off, len);

	if (!p)
		return -EACCES;
	card_store(p, buf, len);
	return 0;
}

int emu_mem_post(struct emu_device *ed, const struct neuron_pin *pin,
		 const struct neuron_isa_notice *n)
{
	u8 *p = card_bytes(ed, pin, 0, sizeof(*n));
	u64 half[2];

	if (!p || pin->kind == NEURON_TARGET_CORE || pin->off % sizeof(*n))
		return -EACCES;
	memcpy(half, n, sizeof(half));
	WRITE_ONCE(((u64 *)p)[1], half[1]);
	/* The half with the phase bit comes last. */
	smp_store_release((u64 *)p, half[0]);
	return 0;
}

/* ---- for the firmware and the checks ---- */

static int card_access(struct card *card, u64 addr, void *buf, u32 len, bool write)
{
	struct neuron_pin pin;
	int err = card_pin(card, addr, len, write, &pin);

	if (err)
		return err;
	err = write ? emu_mem_write(&card->ed, &pin, 0, buf, len) :
		      emu_mem_read(&card->ed, &pin, 0, buf, len);
	neuron_pin_put(&pin);
	return err;
}

/**
 * card_memory_read() - read memory at a device address
 * @card: the card
 * @addr: device address
 * @buf: filled in
 * @len: bytes
 *
 * Return: 0, -EACCES.
 */
int card_memory_read(struct card *card, u64 addr, void *buf, u32 len)
{
	return card_access(card, addr, buf, len, false);
}

/**
 * card_memory_fetch() - a queue that is off fetches a descriptor
 * @card: the card
 * @addr: device address; only host memory counts
 *
 * Return: true if it can do so again: the memory is there, and the card may master the bus.
 */
bool card_memory_fetch(struct card *card, u64 addr)
{
	u64 window = card->ed.geo.host_window;
	volatile u8 *p = NULL;
	bool master;

	if (!(addr & window) || addr >= 2 * window)
		return false;
	/* Who takes memory away from the card waits for this lock, after bus mastering is off. */
	pthread_rwlock_rdlock(&card->host_lock);
	master = READ_ONCE(card->command) & BIT(2);
	if (master)
		p = card_host(card, addr - window, sizeof(struct neuron_desc), false);
	if (p)
		(void)*p;
	pthread_rwlock_unlock(&card->host_lock);
	if (master && !p)
		card_complain(card, "a queue that is off reads %#llx: nothing is there", addr);
	WRITE_ONCE(card->stats.fetches, card->stats.fetches + !!p);
	return p;
}

/**
 * card_memory_write() - write memory at a device address
 * @card: the card
 * @addr: device address
 * @buf: the bytes
 * @len: their number
 *
 * Return: 0, -EACCES.
 */
int card_memory_write(struct card *card, u64 addr, const void *buf, u32 len)
{
	return card_access(card, addr, (void *)buf, len, true);
}
