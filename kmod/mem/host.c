// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory of chunks: its pages, its device addresses, and access from the kernel.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "../base/device.h"
#include "failure.h"
#include "host.h"
#include "limit.h"

/*
 * Find room in the device's view of host memory. mtree_alloc_range() of 6.1
 * gives wrong ranges; this is what later kernels do.  Storing may drop the tree's lock,
 * so a mutex serialises the searches for room.
 */
int neuron_host_map(struct neuron_device *nd, struct neuron_chunk *chunk,
		    unsigned long n, unsigned long *start)
{
	MA_STATE(mas, &nd->host_pages, 0, 0);
	int err;

	mutex_lock(&nd->host_lock);
	mas_lock(&mas);
	err = mas_empty_area(&mas, 1, NEURON_HOST_PAGES_MAX, n);
	if (!err) {
		*start = mas.index;
		mas_set_range(&mas, *start, *start + n - 1);
		err = mas_store_gfp(&mas, chunk, GFP_KERNEL);
	}
	mas_unlock(&mas);
	mutex_unlock(&nd->host_lock);
	return err;
}

void neuron_host_free(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long index = (chunk->addr & ~nd->geo->host_window) >> PAGE_SHIFT;
	unsigned long i, n = chunk->size >> PAGE_SHIFT;
	bool pinned =
		chunk->kind == NEURON_CHUNK_PINNED || chunk->kind == NEURON_CHUNK_PINNED_DIRTY;

	/* On older kernels this can fail for want of memory. */
	do
		mtree_erase(&nd->host_pages, index);
	while (mtree_load(&nd->host_pages, index) == chunk);
	if (pinned)
		unpin_user_pages_dirty_lock(chunk->pages, n,
					    chunk->kind == NEURON_CHUNK_PINNED_DIRTY);
	for (i = 0; !pinned && i < n; i++) {
		__free_page(chunk->pages[i]);
		cond_resched();
	}
	kvfree(chunk->pages);
}

static int neuron_host_pages(struct neuron_device *nd, struct neuron_chunk *chunk)
{
	unsigned long i, n = chunk->size >> PAGE_SHIFT, start;
	gfp_t gfp = neuron_chunk_gfp(chunk->client) | __GFP_ZERO | __GFP_NOWARN |
		    __GFP_RETRY_MAYFAIL;
	int err = -ENOMEM;

	/* Fail, rather than reclaim memory that others use until the OOM killer runs. */
	if (n > (unsigned long)max(si_mem_available(), 0L))
		return -ENOMEM;
	chunk->pages = kvcalloc(n, sizeof(*chunk->pages), gfp);
	if (!chunk->pages)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		/* A large request must not keep a killed process alive. */
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			goto free;
		}
		chunk->pages[i] = alloc_page(gfp);
		if (!chunk->pages[i])
			goto free;
		cond_resched();
	}

	/*
	 * The device sees the pages as one range.  Offsets start at 1 so that
	 * no chunk has the address of the window itself.
	 */
	err = neuron_host_map(nd, chunk, n, &start);
	if (err)
		goto free;
	chunk->addr = nd->geo->host_window | ((u64)start << PAGE_SHIFT);
	return 0;

free:
	while (i--)
		__free_page(chunk->pages[i]);
	kvfree(chunk->pages);
	return err == -EBUSY ? -ENOMEM : err;
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
