// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory that costs host memory only where it was written.
 *
 * A page is allocated when it is first written (or mapped), and freed when neuron.ko
 * releases its range. neuron.ko does so only when no pin, mapping or ring holds the
 * range, so the holder of a pin may use a page without taking a reference to it.
 */
#include <linux/highmem.h>
#include <linux/sched.h>

#include "hbm.h"

/* Pages of all devices, including state buffers; must be 0 at module exit. */
atomic_long_t emu_total_pages = ATOMIC_LONG_INIT(0);

/*
 * An application can write to more device memory than the machine has memory, and the OOM
 * killer could not tell which application that is.
 */
unsigned long emu_max_pages = ULONG_MAX;

/**
 * emu_pages_charge() - charge host memory to the devices, if the limit allows it
 * @n: pages; given back with emu_pages_uncharge()
 */
bool emu_pages_charge(long n)
{
	long total = atomic_long_read(&emu_total_pages);

	/* What is refused never counts: it could make others fail. */
	do {
		if (total + n > emu_max_pages)
			return false;
	} while (!atomic_long_try_cmpxchg(&emu_total_pages, &total, total + n));
	return true;
}

void emu_pages_uncharge(long n)
{
	atomic_long_sub(n, &emu_total_pages);
}

/* Pages freed at a time; then the CPU and the lock are offered to others. */
#define EMU_HBM_BATCH	64

/**
 * emu_hbm_init() - make a memory, empty
 * @hbm: zeroed
 * @size: bytes
 */
void emu_hbm_init(struct emu_hbm *hbm, u64 size)
{
	xa_init(&hbm->pages);
	hbm->size = size;
}

static void emu_pages_free(struct emu_hbm *hbm, struct page **pages, unsigned int n)
{
	release_pages(pages, n);
	atomic_long_sub(n, &hbm->nr_pages);
	emu_pages_uncharge(n);
}

/* Drop the pages with index first to last. */
static void emu_hbm_drop(struct emu_hbm *hbm, unsigned long first,
			 unsigned long last)
{
	XA_STATE(xas, &hbm->pages, first);
	struct page *pages[EMU_HBM_BATCH], *page;
	unsigned int n = 0;

	xas_lock(&xas);
	xas_for_each(&xas, page, last) {
		xas_store(&xas, NULL);
		pages[n++] = page;
		if (n < EMU_HBM_BATCH)
			continue;
		/* xas_pause() would skip the range that the emptied node's parent covers. */
		xas_set(&xas, xas.xa_index + 1);
		xas_unlock(&xas);
		emu_pages_free(hbm, pages, n);
		n = 0;
		cond_resched();
		xas_lock(&xas);
	}
	xas_unlock(&xas);
	emu_pages_free(hbm, pages, n);
}

/**
 * emu_hbm_destroy() - free all pages of a memory
 * @hbm: memory; nothing accesses it any more
 */
void emu_hbm_destroy(struct emu_hbm *hbm)
{
	emu_hbm_drop(hbm, 0, ULONG_MAX);
	xa_destroy(&hbm->pages);
	WARN_ON(atomic_long_read(&hbm->nr_pages));
}

/* Get the page at @off, allocating it if needed.  May sleep. */
struct page *emu_hbm_page(struct emu_hbm *hbm, u64 off)
{
	struct xarray *xa = &hbm->pages;
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
	atomic_long_inc(&hbm->nr_pages);
	return page;
}

/**
 * emu_hbm_soil() - leave something in memory, as a card's users and its firmware do
 * @hbm: memory, new
 *
 * A page of each EMU_SOIL_STEP at the lower end is enough to notice who does not clear.
 *
 * Return: 0, -ENOMEM.
 */
int emu_hbm_soil(struct emu_hbm *hbm)
{
	u64 off, end = min_t(u64, hbm->size, EMU_SOIL_END);
	struct page *page;

	for (off = 0; off < end; off += EMU_SOIL_STEP) {
		page = emu_hbm_page(hbm, off);
		if (IS_ERR(page))
			return PTR_ERR(page);
		memset_page(page, 0, EMU_SOIL, PAGE_SIZE);
	}
	return 0;
}

static bool emu_hbm_valid(struct emu_hbm *hbm, u64 off, u64 len)
{
	return hbm && len <= hbm->size &&
	       off <= hbm->size - len;
}

static void emu_hbm_zero_part(struct emu_hbm *hbm, u64 off, u32 len)
{
	struct page *page = xa_load(&hbm->pages, off >> PAGE_SHIFT);

	if (page)
		memzero_page(page, offset_in_page(off), len);
}

/**
 * emu_hbm_zero() - make a range read as zero
 * @hbm: memory, NULL: there is no such
 * @off: first byte
 * @len: bytes
 * @drop: nobody maps the range, so that its pages can be freed
 *
 * Return: 0, -EINVAL not inside the memory.
 */
int emu_hbm_zero(struct emu_hbm *hbm, u64 off, u64 len, bool drop)
{
	unsigned long index, first, last;
	struct page *page;
	u64 end;

	if (!emu_hbm_valid(hbm, off, len))
		return -EINVAL;
	/* Nobody else uses the range, so no page of it is being added. */
	if (data_race(xa_empty(&hbm->pages)))
		return 0;
	end = off + len;
	if (offset_in_page(off)) {
		u32 n = min_t(u64, PAGE_SIZE - offset_in_page(off), len);

		emu_hbm_zero_part(hbm, off, n);
		off += n;
	}
	if (off < end && offset_in_page(end)) {
		u32 n = offset_in_page(end);

		emu_hbm_zero_part(hbm, end - n, n);
		end -= n;
	}
	if (off >= end)
		return 0;
	first = off >> PAGE_SHIFT;
	last = (end >> PAGE_SHIFT) - 1;
	if (drop) {
		emu_hbm_drop(hbm, first, last);
		return 0;
	}
	xa_for_each_range(&hbm->pages, index, page, first, last) {
		clear_highpage(page);
		cond_resched();
	}
	return 0;
}

/**
 * emu_hbm_frame() - page frame behind an offset, allocated if needed
 * @hbm: memory, NULL: there is no such
 * @off: offset
 * @pfn: the result
 *
 * Return: 0, -ENOMEM, -EINVAL not inside the memory.
 */
int emu_hbm_frame(struct emu_hbm *hbm, u64 off, unsigned long *pfn)
{
	struct page *page;

	if (!emu_hbm_valid(hbm, off, 1))
		return -EINVAL;
	page = emu_hbm_page(hbm, off);
	if (IS_ERR(page))
		return PTR_ERR(page);
	*pfn = page_to_pfn(page);
	return 0;
}

/* Allocate 2^@order pages as single pages, not cleared; NULL without memory. */
struct page *emu_pages_alloc(unsigned int order)
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

/* Insert @n pages where there are none.  Return: how many were inserted, from the first on. */
unsigned int emu_hbm_store(struct emu_hbm *hbm, unsigned long index,
				    struct page *page, unsigned int n)
{
	XA_STATE(xas, &hbm->pages, index);
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
	atomic_long_add(i, &hbm->nr_pages);
	return i;
}
