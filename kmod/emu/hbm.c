// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory that costs host memory only where it was written, and copies
 * between everything that a device address can lead to.
 *
 * Pages appear when they are first written (or mapped) and go when neuron.ko
 * says that nobody uses them any more.  It says so only when no pin, mapping or
 * ring holds them, so who holds a pin may use a page without taking a
 * reference to it.
 */
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/sizes.h>

#include "emu.h"

/* Of all devices, state buffers included; must be 0 when the module goes. */
atomic_long_t emu_total_pages = ATOMIC_LONG_INIT(0);

/*
 * An application can write to more device memory than the machine has memory,
 * and the OOM killer would not see who did it.
 */
unsigned long emu_max_pages = ULONG_MAX;

/**
 * emu_pages_charge() - may memory of the machine be used for a device?
 * @n: pages; given back with emu_pages_uncharge()
 */
bool emu_pages_charge(long n)
{
	if (atomic_long_add_return(n, &emu_total_pages) <= emu_max_pages)
		return true;
	emu_pages_uncharge(n);
	return false;
}

void emu_pages_uncharge(long n)
{
	atomic_long_sub(n, &emu_total_pages);
}

/* Steps between two offers to give up the CPU or a lock. */
#define EMU_HBM_BATCH	256

/**
 * emu_hbm_init() - make the memories of a device, empty
 * @ed: device; the geometry is set
 */
void emu_hbm_init(struct emu_device *ed)
{
	u32 i;

	atomic_long_set(&ed->nr_pages, 0);
	for (i = 0; i < ed->geo.nr_hbms; i++) {
		xa_init(&ed->hbm[i].pages);
		ed->hbm[i].size = ed->geo.hbm[i].size;
	}
}

static void emu_page_free(struct emu_device *ed, struct page *page)
{
	__free_page(page);
	atomic_long_dec(&ed->nr_pages);
	emu_pages_uncharge(1);
}

/* Drop the pages with index first to last. */
static void emu_hbm_drop(struct emu_device *ed, u32 hbm, unsigned long first,
			 unsigned long last)
{
	XA_STATE(xas, &ed->hbm[hbm].pages, first);
	unsigned int n = 0;
	struct page *page;

	xas_lock(&xas);
	xas_for_each(&xas, page, last) {
		xas_store(&xas, NULL);
		emu_page_free(ed, page);
		if (++n % EMU_HBM_BATCH)
			continue;
		/* xas_pause() would skip what the emptied node's parent covers. */
		xas_set(&xas, xas.xa_index + 1);
		xas_unlock(&xas);
		cond_resched();
		xas_lock(&xas);
	}
	xas_unlock(&xas);
}

/**
 * emu_hbm_destroy() - give all memory back
 * @ed: device; nothing accesses it any more
 */
void emu_hbm_destroy(struct emu_device *ed)
{
	u32 i;

	for (i = 0; i < ed->geo.nr_hbms; i++) {
		emu_hbm_drop(ed, i, 0, ULONG_MAX);
		xa_destroy(&ed->hbm[i].pages);
	}
	WARN_ON(atomic_long_read(&ed->nr_pages));
}

/* The page, made if it is not there.  May sleep. */
static struct page *emu_hbm_page(struct emu_device *ed, u32 hbm, u64 off)
{
	struct xarray *xa = &ed->hbm[hbm].pages;
	unsigned long index = off >> PAGE_SHIFT;
	struct page *page, *old;

	page = xa_load(xa, index);
	if (likely(page))
		return page;
	/*
	 * Zeroed before anybody can see it.  An application can ask for more
	 * memory than the machine has: fail rather than call the OOM killer.
	 */
	if (!emu_pages_charge(1))
		return ERR_PTR(-ENOMEM);
	page = alloc_page(GFP_HIGHUSER | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!page) {
		emu_pages_uncharge(1);
		return ERR_PTR(-ENOMEM);
	}
	old = xa_cmpxchg(xa, index, NULL, page, GFP_KERNEL);
	if (old) {
		__free_page(page);
		emu_pages_uncharge(1);
		return xa_is_err(old) ? ERR_PTR(xa_err(old)) : old;
	}
	atomic_long_inc(&ed->nr_pages);
	return page;
}

static bool emu_hbm_valid(struct emu_device *ed, u32 hbm, u64 off, u64 len)
{
	return hbm < ed->geo.nr_hbms && len <= ed->hbm[hbm].size &&
	       off <= ed->hbm[hbm].size - len;
}

static void emu_hbm_zero_part(struct emu_device *ed, u32 hbm, u64 off, u32 len)
{
	struct page *page = xa_load(&ed->hbm[hbm].pages, off >> PAGE_SHIFT);

	if (page)
		memzero_page(page, offset_in_page(off), len);
}

/**
 * emu_hbm_zero() - make a range read as zero
 * @ed: device
 * @hbm: memory
 * @off: first byte
 * @len: bytes
 * @drop: nobody maps the range, give its pages back
 *
 * Return: 0, -EINVAL not inside the memory.
 */
int emu_hbm_zero(struct emu_device *ed, u32 hbm, u64 off, u64 len, bool drop)
{
	unsigned long index, first, last;
	struct page *page;
	u64 end;

	if (!emu_hbm_valid(ed, hbm, off, len))
		return -EINVAL;
	/* Nobody else uses the range, so no page of it appears. */
	if (data_race(xa_empty(&ed->hbm[hbm].pages)))
		return 0;
	end = off + len;
	if (offset_in_page(off)) {
		u32 n = min_t(u64, PAGE_SIZE - offset_in_page(off), len);

		emu_hbm_zero_part(ed, hbm, off, n);
		off += n;
	}
	if (off < end && offset_in_page(end)) {
		u32 n = offset_in_page(end);

		emu_hbm_zero_part(ed, hbm, end - n, n);
		end -= n;
	}
	if (off >= end)
		return 0;
	first = off >> PAGE_SHIFT;
	last = (end >> PAGE_SHIFT) - 1;
	if (drop) {
		emu_hbm_drop(ed, hbm, first, last);
		return 0;
	}
	xa_for_each_range(&ed->hbm[hbm].pages, index, page, first, last) {
		clear_highpage(page);
		cond_resched();
	}
	return 0;
}

/**
 * emu_hbm_frame() - page frame behind an offset, made if there is none
 * @ed: device
 * @hbm: memory
 * @off: offset
 * @pfn: the result
 *
 * Return: 0, -ENOMEM, -EINVAL not inside the memory.
 */
int emu_hbm_frame(struct emu_device *ed, u32 hbm, u64 off, unsigned long *pfn)
{
	struct page *page;

	if (!emu_hbm_valid(ed, hbm, off, 1))
		return -EINVAL;
	page = emu_hbm_page(ed, hbm, off);
	if (IS_ERR(page))
		return PTR_ERR(page);
	*pfn = page_to_pfn(page);
	return 0;
}

/**
 * struct emu_piece - part of a pinned range that the CPU can touch as a whole
 * @p: address, NULL = reads as zero and nothing is there
 * @len: bytes, as far as asked for
 * @mapped: @p came from kmap_local_page()
 */
struct emu_piece {
	u8 *p;
	u32 len;
	bool mapped;
};

/* Pages of a device memory that are looked up at a time: those of a long descriptor. */
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

/* The page at @index; those up to @last are looked up on the way. */
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
	/* What is there stays; what was not may have been made meanwhile. */
	return look->page[index - look->first] ?: xa_load(xa, index);
}

static bool emu_seen(const struct emu_look *look, unsigned long index)
{
	return index - look->first < look->nr && look->page[index - look->first];
}

/*
 * Get the piece at @off of a pinned range.  @make: something is going to be
 * written there.  @look: of this range.  Core windows: state buffer only,
 * emu_device.window is held.
 */
static int emu_piece_get(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
			 u32 len, bool make, struct emu_look *look, struct emu_piece *pc)
{
	struct page *page;

	off += pin->off;
	if (pin->kind == NEURON_TARGET_CORE) {
		u8 *sbuf;

		if (!emu_core_is_sbuf(ed, off, len))
			return -EACCES;
		sbuf = emu_core_sbuf(ed->core[pin->index], make);
		if (make && !sbuf)
			return -ENOMEM;
		*pc = (struct emu_piece){ sbuf ? sbuf + off : NULL, len, false };
		return 0;
	}
	pc->len = min_t(u32, len, PAGE_SIZE - offset_in_page(off));
	if (pin->kind == NEURON_TARGET_HOST)
		page = pin->pages[off >> PAGE_SHIFT];
	else
		page = emu_look(&ed->hbm[pin->index].pages, look, off >> PAGE_SHIFT,
				(off + len - 1) >> PAGE_SHIFT);
	if (!page && make)
		page = emu_hbm_page(ed, pin->index, off);
	if (IS_ERR(page))
		return PTR_ERR(page);
	pc->mapped = page;
	pc->p = page ? (u8 *)kmap_local_page(page) + offset_in_page(off) : NULL;
	return 0;
}

static void emu_piece_put(struct emu_piece *pc)
{
	if (pc->mapped)
		kunmap_local(pc->p);
}

/*
 * Whoever polls for a marker of 4 or 8 bytes sees all of it or nothing, as with
 * a bus write.
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

/* Pages that get their contents at once: as many as a descriptor can fill. */
#define EMU_FILL_ORDER	get_order(SZ_64K)

/* 2^@order pages, each on its own, or NULL; with whatever was in them. */
static struct page *emu_pages_alloc(unsigned int order)
{
	struct page *page;

	if (!emu_pages_charge(1L << order))
		return NULL;
	page = alloc_pages(GFP_HIGHUSER | __GFP_NORETRY | __GFP_NOWARN, order);
	if (page && order)
		split_page(page, order);
	if (!page)
		emu_pages_uncharge(1L << order);
	return page;
}

/* Put @n pages where there are none; how many, from the first one on. */
static unsigned int emu_pages_store(struct emu_device *ed, u32 hbm, unsigned long index,
				    struct page *page, unsigned int n)
{
	XA_STATE(xas, &ed->hbm[hbm].pages, index);
	unsigned int i = 0;

	do {
		xas_lock(&xas);
		for (; i < n; i++) {
			xas_set(&xas, index + i);
			if (xas_load(&xas))
				break;
			xas_store(&xas, page + i);
			if (xas_error(&xas))
				break;
		}
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_KERNEL));
	atomic_long_add(i, &ed->nr_pages);
	return i;
}

/*
 * Pages that are written for the first time, as a whole and with memory of the host,
 * get their contents before anybody can see them: nothing has to clear them, and they
 * come many at a time.  Returns the bytes done; 0: it is no such place, or there is no
 * such memory, and one page after the other has to do.
 */
static u32 emu_pages_fill(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
			  const struct neuron_pin *src, u64 src_off, u32 len)
{
	unsigned long index = (dst->off + dst_off) >> PAGE_SHIFT, found = index;
	unsigned int order, n, i, stored = 0;
	struct page *page;
	void *p;

	if (len < PAGE_SIZE || offset_in_page(dst->off + dst_off) ||
	    dst->kind != NEURON_TARGET_HBM || src->kind != NEURON_TARGET_HOST)
		return 0;
	order = min_t(unsigned int, ilog2(len >> PAGE_SHIFT), EMU_FILL_ORDER);
	n = 1U << order;
	if (xa_find(&ed->hbm[dst->index].pages, &found, index + n - 1, XA_PRESENT))
		return 0;
	page = emu_pages_alloc(order);
	if (!page)
		return 0;
	for (i = 0; i < n; i++) {
		p = kmap_local_page(page + i);
		/* Cannot fail: it is memory. */
		emu_mem_read(ed, src, src_off + i * PAGE_SIZE, p, PAGE_SIZE);
		kunmap_local(p);
	}
	stored = emu_pages_store(ed, dst->index, index, page, n);
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
 * Return: 0, -EACCES one of them is not memory, -ENOMEM; something may have
 * been copied then.
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
 * The half with the phase bit is written last and at once.
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
