/* SPDX-License-Identifier: GPL-2.0-only */
/* What stands behind a dma-buf. */
#ifndef NEURON_MEM_EXPORT_H
#define NEURON_MEM_EXPORT_H

#include <linux/dma-buf.h>

#include "chunk.h"

struct neuron_watch;

/**
 * struct neuron_export - memory behind a dma-buf
 * @nd: its device, held
 * @chunk: held
 * @watch: of @chunk, for watch.c
 * @buf: the dma-buf, which holds this
 * @off: where it begins in the chunk, bytes
 * @size: bytes, whole pages
 * @lock: @maps
 * @maps: tables that importers have mapped, of memory that has pages
 * @vmap_pages: pages that the kernel has mapped; dma_buf_vmap() maps them once only
 * @node: in neuron_device.exports, of memory without pages
 * @revoked: the device is gone, and those who have mapped such memory were told; under
 *	     the reservation lock
 */
struct neuron_export {
	struct neuron_device *nd;
	struct neuron_chunk *chunk;
	struct neuron_watch *watch;
	struct dma_buf *buf;
	u64 off;
	u64 size;
	struct mutex lock;
	struct list_head maps;
	struct page **vmap_pages;
	struct list_head node;
	bool revoked;
};

/* A read-only descriptor gives no write access through another device or the kernel either. */
static inline bool neuron_export_writable(const struct dma_buf *buf)
{
	return buf->file->f_mode & FMODE_WRITE;
}

#endif
