// SPDX-License-Identifier: GPL-2.0-only
/*
 * State buffers, and copies between all kinds of memory that a device address can refer
 * to: device memory, pinned host memory, state buffers.
 */
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "mem.h"

/**
 * emu_pin() - check and resolve an address in a ring or descriptor
 * @ed: device
 * @space: space of the queue
 * @addr: device address
 * @len: bytes, not 0
 * @write: it will be written
 * @pin: filled in; put with neuron_pin_put()
 *
 * If neuron.ko is to check, each access that it let pass is checked all the same.
 *
 * Return: 0, -EACCES, -EOVERFLOW.
 */
int emu_pin(struct emu_device *ed, struct neuron_space *space, u64 addr, u64 len, bool write,
	    struct neuron_pin *pin)
{
	int err = neuron_space_pin(space, addr, len, write, pin);

	if (likely(!err || ed->checks))
		return err;
	err = neuron_ring_pin(space, addr, len, write, pin);
	if (err)
		ed->missed++;
	WARN(err, "neuron_emu: nobody checked %s of %llu bytes at %llx\n",
	     write ? "a write" : "a read", len, addr);
	return err;
}

/**
 * emu_pin_check() - may a space still access a range that is pinned for it?
 * @ed: device; emu_device.window_lock is held until the access has ended
 * @space: as for emu_pin()
 * @pin: from emu_pin()
 * @off: offset from the start of the pin
 * @len: bytes, not 0
 * @write: it will be written
 *
 * A pin does not hold a core.  Its owner may have gone since, and a reset may have cleared it for
 * the next one.  If neuron.ko is to check, nobody gets a core before all who reach it are reset.
 *
 * Return: 0, -EACCES.
 */
int emu_pin_check(struct emu_device *ed, struct neuron_space *space,
		  const struct neuron_pin *pin, u64 off, u64 len, bool write)
{
	struct neuron_pin now;

	if (pin->kind != NEURON_TARGET_CORE || !ed->checks)
		return 0;
	off += ed->geo.tpb_base[pin->index] + pin->off;
	if (neuron_space_pin(space, off, len, write, &now))
		return -EACCES;
	neuron_pin_put(&now);
	return 0;
}

/**
 * emu_sbuf_has() - does a range of a core window lie in the state buffer?
 * @ed: device
 * @off: first byte
 * @len: bytes
 */
bool emu_sbuf_has(const struct emu_device *ed, u64 off, u64 len)
{
	off -= NEURON_ISA_SBUF_OFF;
	return len <= ed->geo.sbuf_size && off <= ed->geo.sbuf_size - len;
}

/**
 * emu_sbuf_free() - give a state buffer back
 * @ed: device
 * @sbuf: buffer, or NULL
 */
void emu_sbuf_free(struct emu_device *ed, u8 *sbuf)
{
	if (sbuf)
		emu_pages_uncharge(PFN_UP(ed->geo.sbuf_size));
	kvfree(sbuf);
}

/* Caller holds ed->alloc: a second buffer of the core may exceed the limit, where one does not. */
static u8 *emu_sbuf_make(struct emu_device *ed, u32 core)
{
	u8 *sbuf;

	if (!emu_pages_charge(PFN_UP(ed->geo.sbuf_size)))
		return NULL;
	/* The OOM killer must not end other processes for a user of the device. */
	sbuf = kvzalloc(ed->geo.sbuf_size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (sbuf)
		/* pairs with the acquire in emu_sbuf_get() */
		smp_store_release(&ed->sbuf[core], sbuf);
	else
		emu_pages_uncharge(PFN_UP(ed->geo.sbuf_size));
	return sbuf;
}

/**
 * emu_sbuf_get() - state buffer of a core
 * @ed: device
 * @core: number of the core; emu_device.window_lock is held, or the caller is the worker
 *	of the core
 * @alloc: make the buffer if it does not exist
 *
 * Return: the buffer; NULL if nothing was written yet, or without memory.
 */
u8 *emu_sbuf_get(struct emu_device *ed, u32 core, bool alloc)
{
	/* pairs with the release in emu_sbuf_make() */
	u8 *sbuf = smp_load_acquire(&ed->sbuf[core]);

	if (sbuf || !alloc)
		return sbuf;
	mutex_lock(&ed->alloc);
	sbuf = ed->sbuf[core] ?: emu_sbuf_make(ed, core);
	mutex_unlock(&ed->alloc);
	return sbuf;
}

/**
 * struct emu_piece - part of a pinned range that the CPU can touch as a whole
 * @p: address; NULL = nothing was written there, it reads as zero
 * @len: bytes, at most those asked for
 * @mapped: @p came from kmap_local_page()
 */
struct emu_piece {
	u8 *p;
	u32 len;
	bool mapped;
};

/* Pages of device memory looked up at a time, enough for a long descriptor. */
#define EMU_LOOK_PAGES		16

/**
 * struct emu_look - pages of a pinned range of device memory that were looked up together
 * @first: index of the first one
 * @nr: their number, 0 = none
 * @page: NULL = there was none
 */
struct emu_look {
	unsigned long first;
	unsigned int nr;
	struct page *page[EMU_LOOK_PAGES];
};

static void emu_look_init(struct emu_look *look)
{
	look->first = 0;
	look->nr = 0;
}

/* Find the page at @index; pages up to @last are looked up with it. */
static struct page *emu_look(struct xarray *xa, struct emu_look *look, unsigned long index,
			     unsigned long last)
{
	XA_STATE(xas, xa, index);
	struct page *page;

	if (index - look->first >= look->nr) {
		look->first = index;
		look->nr = min_t(unsigned long, last - index + 1, EMU_LOOK_PAGES);
		memset(look->page, 0, look->nr * sizeof(page));
		rcu_read_lock();
		xas_for_each(&xas, page, index + look->nr - 1)
			if (!xas_retry(&xas, page))
				look->page[xas.xa_index - index] = page;
		rcu_read_unlock();
	}
	/* A page that was found stays; one that was missing may have been made meanwhile. */
	return look->page[index - look->first] ?: xa_load(xa, index);
}

static bool emu_seen(const struct emu_look *look, unsigned long index)
{
	return index - look->first < look->nr && look->page[index - look->first];
}

/* Lengthen a piece by the pages after its first one, as far as they are neighbours. */
static void emu_piece_extend(struct emu_piece *pc, struct page *const *page, u32 nr, u32 len)
{
	unsigned long pfn = page_to_pfn(*page);
	u32 i;

	/* Other kernels map pages one by one. */
	if (IS_ENABLED(CONFIG_KMAP_LOCAL))
		return;
	for (i = 1; i < nr && pc->len < len && page[i] && page_to_pfn(page[i]) == pfn + i; i++)
		pc->len = min_t(u32, len, pc->len + PAGE_SIZE);
}

/*
 * Get the piece at @off of a pinned range.  @make: the caller will write there.  @look:
 * pages of this range.  Core windows: state buffer only, emu_device.window_lock is held.
 */
static int emu_piece_get(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
			 u32 len, bool make, struct emu_look *look, struct emu_piece *pc)
{
	unsigned long index;
	struct page *page;

	off += pin->off;
	index = off >> PAGE_SHIFT;
	if (pin->kind == NEURON_TARGET_CORE) {
		u8 *sbuf;

		if (!emu_sbuf_has(ed, off, len))
			return -EACCES;
		sbuf = emu_sbuf_get(ed, pin->index, make);
		if (make && !sbuf)
			return -ENOMEM;
		*pc = (struct emu_piece){ sbuf ? sbuf + off : NULL, len, false };
		return 0;
	}
	pc->len = min_t(u32, len, PAGE_SIZE - offset_in_page(off));
	if (pin->kind == NEURON_TARGET_HOST)
		page = pin->pages[index];
	else
		page = emu_look(&ed->hbm[pin->index].pages, look, index,
				(off + len - 1) >> PAGE_SHIFT);
	if (!page && make)
		page = emu_hbm_page(&ed->hbm[pin->index], off);
	if (IS_ERR(page))
		return PTR_ERR(page);
	pc->mapped = page;
	pc->p = page ? (u8 *)kmap_local_page(page) + offset_in_page(off) : NULL;
	if (pin->kind == NEURON_TARGET_HOST)
		emu_piece_extend(pc, pin->pages + index, U32_MAX, len);
	else if (emu_seen(look, index))
		emu_piece_extend(pc, look->page + (index - look->first),
				 look->nr - (index - look->first), len);
	return 0;
}

static void emu_piece_put(struct emu_piece *pc)
{
	if (pc->mapped)
		kunmap_local(pc->p);
}

/*
 * Store in one access where possible: a host thread that polls for a marker of 4 or 8
 * bytes sees all of it or nothing, as with a bus write.
 */
static void emu_store(u8 *dst, const u8 *src, u32 len)
{
	if (len == 4 && IS_ALIGNED((unsigned long)dst, 4)) {
		u32 v;

		memcpy(&v, src, sizeof(v));
		WRITE_ONCE(*(u32 *)dst, v);
	} else if (len == 8 && IS_ALIGNED((unsigned long)dst, 8)) {
		u64 v;

		memcpy(&v, src, sizeof(v));
		WRITE_ONCE(*(u64 *)dst, v);
	} else {
		/* source and destination may overlap */
		memmove(dst, src, len);
	}
}

/**
 * emu_mem_read() - read pinned memory
 * @ed: device
 * @pin: where
 * @off: offset from the start of the pin
 * @buf: destination
 * @len: bytes, all inside the pin
 *
 * Return: 0, -EACCES if it is not memory.
 */
int emu_mem_read(struct emu_device *ed, const struct neuron_pin *pin, u64 off, void *buf,
		 u32 len)
{
	struct emu_look look;
	struct emu_piece pc;
	int err;

	emu_look_init(&look);
	for (; len; len -= pc.len, off += pc.len, buf += pc.len) {
		err = emu_piece_get(ed, pin, off, len, false, &look, &pc);
		if (err)
			return err;
		if (pc.p)
			memcpy(buf, pc.p, pc.len);
		else
			memset(buf, 0, pc.len);
		emu_piece_put(&pc);
	}
	return 0;
}

/**
 * emu_mem_write() - write pinned memory
 * @ed: device
 * @pin: where
 * @off: offset from the start of the pin
 * @buf: source
 * @len: bytes, all inside the pin
 *
 * Return: 0, -EACCES if it is not memory, -ENOMEM.
 */
int emu_mem_write(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
		  const void *buf, u32 len)
{
	struct emu_look look;
	struct emu_piece pc;
	int err;

	emu_look_init(&look);
	for (; len; len -= pc.len, off += pc.len, buf += pc.len) {
		err = emu_piece_get(ed, pin, off, len, true, &look, &pc);
		if (err)
			return err;
		emu_store(pc.p, buf, pc.len);
		emu_piece_put(&pc);
	}
	return 0;
}

/* Pages that are filled together: as many as a descriptor can write. */
#define EMU_FILL_ORDER	get_order(SZ_64K)

/*
 * Fill whole pages of device memory, which do not exist yet, from host memory before
 * anybody can see them.  They need no clearing and are allocated many at a time.  Returns
 * the bytes done; 0 if this is not such a range or memory is short, and the caller has to
 * go page by page.
 */
static u32 emu_pages_fill(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
			  const struct neuron_pin *src, u64 src_off, u32 len)
{
	struct emu_hbm *hbm;
	unsigned long index = (dst->off + dst_off) >> PAGE_SHIFT, found = index;
	unsigned int order, n, i, stored = 0;
	struct page *page;
	void *p;

	if (len < PAGE_SIZE || offset_in_page(dst->off + dst_off) ||
	    dst->kind != NEURON_TARGET_HBM || src->kind != NEURON_TARGET_HOST)
		return 0;
	hbm = &ed->hbm[dst->index];
	order = min_t(unsigned int, ilog2(len >> PAGE_SHIFT), EMU_FILL_ORDER);
	n = 1U << order;
	if (xa_find(&hbm->pages, &found, index + n - 1, XA_PRESENT))
		return 0;
	page = emu_pages_alloc(order);
	if (!page)
		return 0;
	for (i = 0; i < n; i++) {
		p = kmap_local_page(page + i);
		/* Cannot fail, because the source is host memory. */
		emu_mem_read(ed, src, src_off + i * PAGE_SIZE, p, PAGE_SIZE);
		kunmap_local(p);
	}
	stored = emu_hbm_store(hbm, index, page, n);
	for (i = stored; i < n; i++)
		__free_page(page + i);
	emu_pages_uncharge(n - stored);
	return stored * PAGE_SIZE;
}

/**
 * emu_mem_copy() - copy between pinned memories
 * @ed: device
 * @dst: destination
 * @dst_off: offset from the start of that pin
 * @src: source
 * @src_off: offset from the start of that pin
 * @len: bytes, all inside both
 *
 * Device memory that was never written stays that way when zeros from other
 * such memory are copied to it.
 *
 * Return: 0, -EACCES one of them is not memory, -ENOMEM; on error a part may have been
 * copied.
 */
int emu_mem_copy(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
		 const struct neuron_pin *src, u64 src_off, u32 len)
{
	struct emu_look from, to;
	struct emu_piece s, d;
	int err;
	u32 n;

	emu_look_init(&from);
	emu_look_init(&to);
	while (len) {
		u32 filled = 0;

		if (!emu_seen(&to, (dst->off + dst_off) >> PAGE_SHIFT))
			filled = emu_pages_fill(ed, dst, dst_off, src, src_off, len);
		if (filled) {
			len -= filled;
			src_off += filled;
			dst_off += filled;
			continue;
		}
		err = emu_piece_get(ed, src, src_off, len, false, &from, &s);
		if (err)
			return err;
		err = emu_piece_get(ed, dst, dst_off, len, s.p, &to, &d);
		if (err) {
			emu_piece_put(&s);
			return err;
		}
		n = min(s.len, d.len);
		if (s.p)
			emu_store(d.p, s.p, n);
		else if (d.p)
			memset(d.p, 0, n);
		/* kmap_local_page() wants the last one back first */
		emu_piece_put(&d);
		emu_piece_put(&s);
		len -= n;
		src_off += n;
		dst_off += n;
	}
	return 0;
}

/**
 * emu_mem_post() - write a notification queue entry
 * @ed: device
 * @pin: the 16 bytes, aligned to 16
 * @n: the entry
 *
 * The half with the phase bit is written last, in one access.
 *
 * Return: 0, -EACCES not memory, -ENOMEM.
 */
int emu_mem_post(struct emu_device *ed, const struct neuron_pin *pin,
		 const struct neuron_isa_notice *n)
{
	struct emu_look look;
	struct emu_piece pc;
	u64 half[2];
	int err;

	BUILD_BUG_ON(sizeof(*n) != sizeof(half));
	if (pin->kind == NEURON_TARGET_CORE || pin->off % sizeof(*n))
		return -EACCES;
	emu_look_init(&look);
	err = emu_piece_get(ed, pin, 0, sizeof(*n), true, &look, &pc);
	if (err)
		return err;
	memcpy(half, n, sizeof(half));
	WRITE_ONCE(((u64 *)pc.p)[1], half[1]);
	/* pairs with the reader's check of the phase bit */
	smp_store_release((u64 *)pc.p, half[0]);
	emu_piece_put(&pc);
	return 0;
}
