// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory of chunks: its pages, its device addresses, and access from the kernel.
 */
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../base/device.h"
#include "../base/hw.h"
#include "failure.h"
#include "host.h"
#include "limit.h"

/*
 * Find room in the device's view of host memory. mtree_alloc_range() of 6.1
 * gives wrong ranges; this is what later kernels do.  Storing may drop the tree's lock,
 * so a mutex serialises the searches for room.
 */
static int neuron_host_place(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	MA_STATE(mas, &nd->host_pages, 0, 0);
	unsigned long n = chunk->size >> PAGE_SHIFT, start;
	int err;

	mutex_lock(&nd->host_lock);
	mas_lock(&mas);
	/*
	 * The device sees the pages as one range.  Offsets start at 1 so that
	 * no chunk has the address of the window itself.
	 */
	err = mas_empty_area(&mas, 1, NEURON_HOST_PAGES_MAX, n);
	if (!err) {
		start = mas.index;
		mas_set_range(&mas, start, start + n - 1);
		err = mas_store_gfp(&mas, chunk, GFP_KERNEL);
	}
	mas_unlock(&mas);
	mutex_unlock(&nd->host_lock);
	if (!err)
		chunk->addr = nd->geo->host_window | ((u64)start << PAGE_SHIFT);
	return err;
}

/* Can the device's view of memory join pages that are not neighbours?  It is there. */
static bool neuron_host_joins(struct device *parent)
{
	unsigned long boundary = dma_get_merge_boundary(parent);

	return boundary && boundary < PAGE_SIZE;
}

/*
 * Are mapped pages one range that the device can address?  Memory in a bounce buffer
 * would not be what the CPU sees.
 */
static int neuron_host_one_range(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	struct device *parent = nd->desc.parent;
	u64 addr = sg_dma_address(chunk->dma->sgl), end = addr;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(chunk->dma, sg, i) {
		if (sg_dma_address(sg) != end)
			return -ENOMEM;
		end += sg_dma_len(sg);
	}
	if (addr < end && end <= nd->geo->host_window &&
	    (neuron_host_joins(parent) || !dma_need_sync(parent, addr)))
		return 0;
	dev_err_once(&nd->dev, "host memory at %#llx cannot be shared with the device\n", addr);
	return -EIO;
}

/*
 * Only memory that never needs a sync is given to a device.  Two copies of a program may have the
 * same page mapped, which CONFIG_DMA_API_DEBUG takes for a fault if each mapping is one.
 */
#define NEURON_HOST_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

/* Inside of neuron_device_enter(). */
static int neuron_host_dma(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long n = chunk->size >> PAGE_SHIFT, start;
	gfp_t gfp = neuron_chunk_gfp(chunk->client);
	struct device *parent = nd->desc.parent;
	struct sg_table *dma;
	int err;

	dma = kzalloc(sizeof(*dma), gfp);
	if (!dma)
		return -ENOMEM;
	err = sg_alloc_table_from_pages(dma, chunk->pages, n, 0, chunk->size, gfp);
	if (err)
		goto free;
	err = -ENOMEM;
	if (dma->orig_nents > 1 && !neuron_host_joins(parent))
		goto table;
	if (dma_map_sgtable(parent, dma, DMA_BIDIRECTIONAL, NEURON_HOST_ATTRS | DMA_ATTR_NO_WARN))
		goto table;
	chunk->dma = dma;
	err = neuron_host_one_range(nd, chunk);
	if (err)
		goto unmap;
	chunk->addr = nd->geo->host_window | sg_dma_address(dma->sgl);
	start = sg_dma_address(dma->sgl) >> PAGE_SHIFT;
	mutex_lock(&nd->host_lock);
	err = mtree_insert_range(&nd->host_pages, start, start + n - 1, chunk, GFP_KERNEL);
	mutex_unlock(&nd->host_lock);
	if (!err)
		return 0;
unmap:
	chunk->dma = NULL;
	dma_unmap_sgtable(parent, dma, DMA_BIDIRECTIONAL, NEURON_HOST_ATTRS);
table:
	sg_free_table(dma);
free:
	kfree(dma);
	return err;
}

/**
 * neuron_host_map() - give the pages of a chunk one range of device addresses
 * @nd: device
 * @chunk: its pages and size are set; addr is filled in
 *
 * Context: may sleep.
 * Return: 0; -ENOMEM, -EBUSY, -EEXIST no such range can be had; -EIO the device cannot use
 *	   the address; -ENODEV device gone.
 */
int neuron_host_map(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	int err, idx;

	if (!nd->desc.parent)
		return neuron_host_place(nd, chunk);
	/* Removal must find what is mapped here. */
	if (!neuron_device_enter(nd, &idx))
		return -ENODEV;
	err = neuron_host_dma(nd, chunk);
	neuron_device_exit(nd, idx);
	return err;
}

/* Under host_lock. */
static void neuron_host_unmap(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	if (!chunk->dma)
		return;
	dma_unmap_sgtable(nd->desc.parent, chunk->dma, DMA_BIDIRECTIONAL, NEURON_HOST_ATTRS);
	sg_free_table(chunk->dma);
	kfree(chunk->dma);
	chunk->dma = NULL;
}

/**
 * neuron_host_detach() - end the device's view of host memory
 * @nd: device; makes no access any more, and nothing calls its operations
 *
 * Chunks keep their pages, which their processes still use.
 *
 * Context: may sleep.
 */
void neuron_host_detach(struct neuron_device *nd)
{
	struct neuron_chunk *chunk;
	unsigned long index = 0;

	if (!nd->desc.parent)
		return;
	mutex_lock(&nd->host_lock);
	mt_for_each(&nd->host_pages, chunk, index, ULONG_MAX)
		neuron_host_unmap(nd, chunk);
	mutex_unlock(&nd->host_lock);
}

static void neuron_host_forget(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long index = (chunk->addr & ~nd->geo->host_window) >> PAGE_SHIFT;

	/* On older kernels this can fail for want of memory. */
	do
		mtree_erase(&nd->host_pages, index);
	while (mtree_load(&nd->host_pages, index) == chunk);
}

void neuron_host_free(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long i, n = chunk->size >> PAGE_SHIFT;
	bool pinned =
		chunk->kind == NEURON_CHUNK_PINNED || chunk->kind == NEURON_CHUNK_PINNED_DIRTY;

	if (nd->desc.parent) {
		/* Removal finds the chunk in the tree, or its memory unmapped. */
		mutex_lock(&nd->host_lock);
		neuron_host_forget(nd, chunk);
		neuron_host_unmap(nd, chunk);
		mutex_unlock(&nd->host_lock);
	} else {
		neuron_host_forget(nd, chunk);
	}
	if (pinned)
		unpin_user_pages_dirty_lock(chunk->pages, n,
					    chunk->kind == NEURON_CHUNK_PINNED_DIRTY);
	for (i = 0; !pinned && i < n; i++) {
		__free_page(chunk->pages[i]);
		cond_resched();
	}
	kvfree(chunk->pages);
}

/*
 * A block of 2^@order pages at a time.  Each page has a reference count of its own, because
 * user space maps and pins single pages.
 */
static int neuron_host_take(struct neuron_chunk *chunk, unsigned int order, gfp_t gfp)
{
	unsigned long i, k, n = chunk->size >> PAGE_SHIFT;
	struct page *page;
	int err;

	for (i = 0; i < n; i += 1UL << order) {
		/* A large request must not keep a killed process alive. */
		err = fatal_signal_pending(current) ? -EINTR : -ENOMEM;
		page = err == -EINTR ? NULL : alloc_pages(gfp, order);
		if (!page)
			goto free;
		if (order)
			split_page(page, order);
		for (k = 0; k < 1UL << order; k++) {
			if (i + k < n)
				chunk->pages[i + k] = page + k;
			else
				__free_page(page + k);
		}
		cond_resched();
	}
	return 0;

free:
	while (i--)
		__free_page(chunk->pages[i]);
	return err;
}

/* @apart: need the pages of a chunk not be neighbours?  Return: 0; -ENODEV the device is gone. */
static int neuron_host_apart(struct neuron_device *nd, bool *apart)
{
	int idx;

	*apart = true;
	if (!nd->desc.parent)
		return 0;
	if (!neuron_device_enter(nd, &idx))
		return -ENODEV;
	*apart = neuron_host_joins(nd->desc.parent);
	neuron_device_exit(nd, idx);
	return 0;
}

static int neuron_host_pages(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long i, n = chunk->size >> PAGE_SHIFT;
	gfp_t gfp = neuron_chunk_gfp(chunk->client) | __GFP_ZERO | __GFP_NOWARN |
		    __GFP_RETRY_MAYFAIL;
	bool apart;
	int err;

	/* The device sees one range: without help, the pages must be one. */
	err = neuron_host_apart(nd, &apart);
	if (err)
		return err;
	/* Fail, rather than reclaim memory that others use until the OOM killer runs. */
	if (n > (unsigned long)max(si_mem_available(), 0L))
		return -ENOMEM;
	chunk->pages = kvcalloc(n, sizeof(*chunk->pages), gfp);
	if (!chunk->pages)
		return -ENOMEM;
	err = neuron_host_take(chunk, apart ? 0 : get_order(chunk->size), gfp);
	if (err)
		goto free;
	err = neuron_host_map(nd, chunk);
	if (!err)
		return 0;
	for (i = 0; i < n; i++)
		__free_page(chunk->pages[i]);
free:
	kvfree(chunk->pages);
	return err == -EBUSY || err == -EEXIST ? -ENOMEM : err;
}

int neuron_host_alloc(struct neuron_device *nd, struct neuron_chunk *chunk,
		      struct neuron_failure *why)
{
	int err;

	if (!neuron_limit_charge_host(chunk->client, chunk->size, &why->limit)) {
		why->reason = NEURON_NATIVE_REASON_CAPPED;
		return -ENOMEM;
	}
	err = neuron_host_pages(nd, chunk);
	if (err)
		neuron_limit_uncharge_host(chunk->client, chunk->size);
	if (err == -ENOMEM)
		why->reason = NEURON_NATIVE_REASON_HOST;
	return err;
}

/**
 * neuron_chunk_rw_host() - read or write host memory of a chunk from the kernel
 * @chunk: host chunk
 * @off: bytes from its start; the range was checked
 * @buf: kernel memory
 * @len: bytes
 * @write: to the chunk
 *
 * Return: 0.
 */
int neuron_chunk_rw_host(struct neuron_chunk *chunk, u64 off, void *buf, u64 len, bool write)
{
	while (len) {
		u32 in = offset_in_page(off);
		u32 n = min_t(u64, len, PAGE_SIZE - in);
		struct page *page = chunk->pages[off >> PAGE_SHIFT];

		if (write)
			memcpy_to_page(page, in, buf, n);
		else
			memcpy_from_page(buf, page, in, n);
		buf += n;
		off += n;
		len -= n;
	}
	return 0;
}

/**
 * neuron_chunk_rw_user() - same, from user space
 * @chunk: host chunk
 * @off: bytes from its start; the range was checked
 * @buf: user memory
 * @len: bytes
 * @write: to the chunk
 *
 * Context: may sleep.
 * Return: 0; -EFAULT, -EINTR (a part may have been copied).
 */
int neuron_chunk_rw_user(struct neuron_chunk *chunk, u64 off, void __user *buf, u64 len,
			 bool write)
{
	while (len) {
		u32 in = offset_in_page(off);
		u32 n = min_t(u64, len, PAGE_SIZE - in);
		void *page = kmap_local_page(chunk->pages[off >> PAGE_SHIFT]);
		unsigned long left;

		left = write ? copy_from_user(page + in, buf, n) :
			       copy_to_user(buf, page + in, n);
		kunmap_local(page);
		if (left)
			return -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		buf += n;
		off += n;
		len -= n;
	}
	return 0;
}

/**
 * neuron_chunk_fill_host() - set bytes of a host chunk
 * @chunk: host chunk
 * @off: bytes from its start; the range was checked
 * @value: byte
 * @len: bytes
 *
 * Context: may sleep.
 * Return: 0, -EINTR.
 */
int neuron_chunk_fill_host(struct neuron_chunk *chunk, u64 off, u8 value, u64 len)
{
	while (len) {
		u32 in = offset_in_page(off);
		u32 n = min_t(u64, len, PAGE_SIZE - in);
		void *page = kmap_local_page(chunk->pages[off >> PAGE_SHIFT]);

		memset(page + in, value, n);
		kunmap_local(page);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		off += n;
		len -= n;
	}
	return 0;
}
