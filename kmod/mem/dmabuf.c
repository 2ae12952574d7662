// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory as dma-bufs: for other devices, and for other processes.
 *
 * An export holds its chunk, and so outlives the handle, the mapping and the
 * process that it was made from.  Once the device is gone, its operations fail with
 * -ENODEV and accesses to its mappings raise SIGBUS.  Memory that importers and the
 * kernel have mapped by then stays valid until they unmap it, because they hold the
 * pages.  Memory of a bus has none: bus.c.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/iosys-map.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../base/call.h"
#include "../base/hw.h"
#include "bus.h"
#include "dmabuf.h"
#include "handle.h"
#include "map.h"
#include "sync.h"
#include "watch.h"

#define NEURON_EXPORT_BATCH	256

/**
 * struct neuron_export_map - memory as an importer sees it
 * @table: one entry for each physically contiguous run
 * @dev: the importer
 * @node: in neuron_export.maps
 */
struct neuron_export_map {
	struct sg_append_table table;
	struct device *dev;
	struct list_head node;
};

/**
 * neuron_chunk_has_pages() - are there struct pages behind the frames of a chunk?
 * @chunk: the chunk
 *
 * Memory of a bus has none: nobody can hold it, and it goes with its device.
 *
 * Context: any.
 */
bool neuron_chunk_has_pages(const struct neuron_chunk *chunk)
{
	return chunk->host || !chunk->client->nd->geo->hbm_io;
}

/**
 * neuron_chunk_frame() - page frame of a chunk as the CPU sees it
 * @chunk: held by the caller
 * @off: bytes from its start, inside of it
 * @pfn: the frame; stays as long as the chunk and the device do
 *
 * Context: may sleep.  Inside of neuron_device_enter().
 * Return: 0; -ENOMEM; -ENXIO the CPU does not see it, or the offset is beyond the end.
 */
int neuron_chunk_frame(struct neuron_chunk *chunk, u64 off, unsigned long *pfn)
{
	struct neuron_device *nd = chunk->client->nd;
	int err;

	if (neuron_chunk_range(chunk, off, PAGE_SIZE))
		return -ENXIO;
	if (chunk->host) {
		*pfn = page_to_pfn(chunk->pages[off >> PAGE_SHIFT]);
		return 0;
	}
	err = nd->ops->hbm_pfn(nd, chunk->hbm, chunk->block.addr + off, pfn);
	if (err)
		return err;
	return neuron_chunk_has_pages(chunk) && !pfn_valid(*pfn) ? -ENXIO : 0;
}

/* Pages @from to @from + @n of an export that has pages.  Inside of neuron_device_enter(). */
static int neuron_export_pages(struct neuron_export *export, u64 from, u32 n,
			       struct page **pages)
{
	unsigned long pfn;
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		err = neuron_chunk_frame(export->chunk,
					 export->off + ((from + i) << PAGE_SHIFT), &pfn);
		if (err)
			return err;
		pages[i] = pfn_to_page(pfn);
	}
	if (fatal_signal_pending(current))
		return -EINTR;
	cond_resched();
	return 0;
}

static int neuron_export_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct neuron_export *export = buf->priv;

	return neuron_device_gone(export->nd) ? -ENODEV : 0;
}

/* Inside of neuron_device_enter(). */
static int neuron_export_table(struct neuron_export *export, struct neuron_export_map *map)
{
	unsigned int max = ALIGN_DOWN(min_t(size_t, dma_get_max_seg_size(map->dev), UINT_MAX),
				      PAGE_SIZE);
	u64 i, n, count = export->size >> PAGE_SHIFT;
	struct page **pages;
	int err = -ENOMEM;

	if (!max)
		return -EINVAL;
	pages = kmalloc_array(NEURON_EXPORT_BATCH, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < count; i += n) {
		n = min_t(u64, count - i, NEURON_EXPORT_BATCH);
		err = neuron_export_pages(export, i, n, pages);
		if (!err)
			err = sg_alloc_append_table_from_pages(&map->table, pages, n, 0,
							       n << PAGE_SHIFT, max,
							       count - i - n, GFP_KERNEL_ACCOUNT);
		if (err)
			break;
	}
	kfree(pages);
	if (err)
		sg_free_append_table(&map->table);
	return err;
}

/* Take or drop the table's own references to its pages. */
static void neuron_table_hold(struct sg_table *sgt, bool hold)
{
	struct sg_page_iter iter;
	unsigned int n = 0;

	for_each_sgtable_page(sgt, &iter, 0) {
		if (hold)
			get_page(sg_page_iter_page(&iter));
		else
			put_page(sg_page_iter_page(&iter));
		if (!(++n % NEURON_EXPORT_BATCH))
			cond_resched();
	}
}

static struct sg_table *neuron_export_map(struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	struct neuron_export *export = attach->dmabuf->priv;
	struct neuron_export_map *map;
	int idx, err = -ENODEV;

	if (dir != DMA_TO_DEVICE && !neuron_export_writable(attach->dmabuf))
		return ERR_PTR(-EACCES);
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->dev = attach->dev;

	if (!neuron_device_enter(export->nd, &idx))
		goto free;
	err = neuron_export_table(export, map);
	if (!err)
		neuron_table_hold(&map->table.sgt, true);
	neuron_device_exit(export->nd, idx);
	if (err)
		goto free;
	/* Attachments and exports may overlap, so the caches are not the mapping's business. */
	err = dma_map_sgtable(map->dev, &map->table.sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	if (err)
		goto put;
	dma_sync_sgtable_for_device(map->dev, &map->table.sgt, dir);
	mutex_lock(&export->lock);
	list_add(&map->node, &export->maps);
	mutex_unlock(&export->lock);
	return &map->table.sgt;

put:
	neuron_table_hold(&map->table.sgt, false);
	sg_free_append_table(&map->table);
free:
	kfree(map);
	return ERR_PTR(err);
}

static void neuron_export_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
				enum dma_data_direction dir)
{
	struct neuron_export_map *map = container_of(sgt, struct neuron_export_map, table.sgt);
	struct neuron_export *export = attach->dmabuf->priv;

	mutex_lock(&export->lock);
	list_del(&map->node);
	mutex_unlock(&export->lock);
	dma_sync_sgtable_for_cpu(map->dev, sgt, dir);
	dma_unmap_sgtable(map->dev, sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	neuron_table_hold(sgt, false);
	sg_free_append_table(&map->table);
	kfree(map);
}

static int neuron_export_begin_cpu(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct neuron_export *export = buf->priv;
	struct neuron_export_map *map;

	mutex_lock(&export->lock);
	list_for_each_entry(map, &export->maps, node)
		dma_sync_sgtable_for_cpu(map->dev, &map->table.sgt, dir);
	mutex_unlock(&export->lock);
	return neuron_device_gone(export->nd) ? -ENODEV : 0;
}

static int neuron_export_end_cpu(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct neuron_export *export = buf->priv;
	struct neuron_export_map *map;

	mutex_lock(&export->lock);
	list_for_each_entry(map, &export->maps, node)
		dma_sync_sgtable_for_device(map->dev, &map->table.sgt, dir);
	mutex_unlock(&export->lock);
	return 0;
}

static vm_fault_t neuron_export_fault(struct vm_fault *vmf)
{
	struct neuron_export *export = vmf->vma->vm_private_data;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	unsigned long pfn;
	int idx;

	/* The frame must stay until removal of the device can find the mapping. */
	if (!neuron_device_enter(export->nd, &idx))
		return ret;
	if (!neuron_chunk_frame(export->chunk, export->off + ((u64)vmf->pgoff << PAGE_SHIFT), &pfn))
		ret = vmf_insert_pfn(vmf->vma, vmf->address, pfn);
	neuron_device_exit(export->nd, idx);
	return ret;
}

/* The file of the dma-buf keeps the export while it is mapped. */
static const struct vm_operations_struct neuron_export_vm = {
	.fault = neuron_export_fault,
};

static int neuron_export_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct neuron_export *export = buf->priv;

	/* VM_SHARED is not set for read-only descriptors. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (neuron_device_gone(export->nd))
		return -ENODEV;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	if (!export->chunk->host)
		neuron_vma_device(export->nd, vma);
	vma->vm_private_data = export;
	vma->vm_ops = &neuron_export_vm;
	return 0;
}

static int neuron_export_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct neuron_export *export = buf->priv;
	u64 i, n, count = export->size >> PAGE_SHIFT;
	struct page **pages;
	int idx, err = -ENODEV;
	void *va;

	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	if (!neuron_device_enter(export->nd, &idx))
		goto free;
	for (i = 0; i < count; i += n) {
		n = min_t(u64, count - i, NEURON_EXPORT_BATCH);
		err = neuron_export_pages(export, i, n, &pages[i]);
		if (err)
			break;
	}
	for (i = 0; !err && i < count; i++)
		get_page(pages[i]);
	neuron_device_exit(export->nd, idx);
	if (err)
		goto free;
	va = vmap(pages, count, VM_MAP, neuron_export_writable(buf) ? PAGE_KERNEL : PAGE_KERNEL_RO);
	if (!va) {
		err = -ENOMEM;
		goto put;
	}
	export->vmap_pages = pages;
	iosys_map_set_vaddr(map, va);
	return 0;

put:
	for (i = 0; i < count; i++)
		put_page(pages[i]);
free:
	kvfree(pages);
	return err;
}

static void neuron_export_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct neuron_export *export = buf->priv;
	u64 i;

	vunmap(map->vaddr);
	for (i = 0; i < export->size >> PAGE_SHIFT; i++)
		put_page(export->vmap_pages[i]);
	kvfree(export->vmap_pages);
	export->vmap_pages = NULL;
}

static void neuron_export_release(struct dma_buf *buf)
{
	struct neuron_export *export = buf->priv;
	struct neuron_device *nd = export->nd;

	neuron_bus_del(export);
	neuron_unwatch(export->watch);
	neuron_chunk_unuse(export->chunk, NEURON_USER_EXPORT);
	kfree(export);
	put_device(&nd->dev);
}

static const struct dma_buf_ops neuron_export_ops = {
	.attach = neuron_export_attach,
	.map_dma_buf = neuron_export_map,
	.unmap_dma_buf = neuron_export_unmap,
	.begin_cpu_access = neuron_export_begin_cpu,
	.end_cpu_access = neuron_export_end_cpu,
	.mmap = neuron_export_mmap,
	.vmap = neuron_export_vmap,
	.vunmap = neuron_export_vunmap,
	.release = neuron_export_release,
};

/*
 * For memory without pages.  Who has it is told when the device goes.  The kernel, which is
 * not, cannot map it; dma_buf_vmap() would warn of a function that refuses.
 */
static const struct dma_buf_ops neuron_export_bus_ops = {
	.attach = neuron_bus_attach,
	.pin = neuron_bus_pin,
	.unpin = neuron_bus_unpin,
	.map_dma_buf = neuron_bus_map,
	.unmap_dma_buf = neuron_bus_unmap,
	.begin_cpu_access = neuron_export_begin_cpu,
	.end_cpu_access = neuron_export_end_cpu,
	.mmap = neuron_export_mmap,
	.release = neuron_export_release,
};

/*
 * Make a dma-buf of a part of a chunk and a descriptor for it, without
 * installing it.  The caller is a user of the chunk and has checked the range.
 * @write: the descriptor is for writing, too.
 */
static int neuron_export_new(struct neuron_chunk *chunk, u64 off, u64 size, bool write,
			     struct dma_buf **buf)
{
	struct neuron_device *nd = chunk->client->nd;
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct neuron_export *export;
	int fd;

	info.resv = neuron_sync_resv(chunk);
	if (!info.resv)
		return -ENOMEM;
	export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	if (!export)
		return -ENOMEM;
	if (!neuron_chunk_admit(neuron_chunk_ref(chunk), NEURON_USER_EXPORT)) {
		neuron_chunk_put(chunk);
		kfree(export);
		return -EPERM;
	}
	mutex_init(&export->lock);
	INIT_LIST_HEAD(&export->maps);
	INIT_LIST_HEAD(&export->node);
	export->nd = nd;
	export->chunk = chunk;
	export->off = off;
	export->size = size;
	info.ops = neuron_chunk_has_pages(chunk) ? &neuron_export_ops : &neuron_export_bus_ops;
	info.size = size;
	info.flags = write ? O_RDWR : O_RDONLY;
	info.priv = export;
	*buf = dma_buf_export(&info);
	if (IS_ERR(*buf)) {
		neuron_chunk_unuse(chunk, NEURON_USER_EXPORT);
		kfree(export);
		return PTR_ERR(*buf);
	}
	/* From here on the release of the dma-buf frees everything. */
	export->buf = *buf;
	export->watch = neuron_watch_chunk(chunk, off, size, NEURON_USER_EXPORT);
	get_device(&nd->dev);
	/* Removal of the device must find these mappings, too. */
	(*buf)->file->f_mapping = nd->inode->i_mapping;
	if (info.ops == &neuron_export_bus_ops)
		neuron_bus_add(export);

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(*buf);
	return fd;
}

/* Tell the caller its descriptor, then install it. */
static int neuron_export_install(struct dma_buf *buf, int fd, s32 __user *uaddr)
{
	if (put_user(fd, uaddr)) {
		put_unused_fd(fd);
		dma_buf_put(buf);
		return -EFAULT;
	}
	fd_install(fd, buf->file);
	return 0;
}

int neuron_do_dmabuf_fd(struct neuron_call *call)
{
	struct neuron_ioctl_dmabuf_fd *a = call->arg;
	struct neuron_mapping *mapping;
	struct dma_buf *buf;
	u64 off, size;
	bool write;
	int fd;

	if (!PAGE_ALIGNED(a->va) || !a->size)
		return -EINVAL;
	if (check_add_overflow(a->size, (u64)PAGE_SIZE - 1, &size))
		return -EOVERFLOW;
	size &= PAGE_MASK;
	mapping = neuron_mapping_get(a->va, size, &off, &write);
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	fd = neuron_export_new(mapping->chunk, off, size, write, &buf);
	neuron_mapping_put(mapping);
	return fd < 0 ? fd : neuron_export_install(buf, fd, (s32 __user *)a->fd);
}

int neuron_do_native_mem_export(struct neuron_call *call)
{
	struct neuron_native_mem_export __user *result = call->uarg;
	struct neuron_native_mem_export *a = call->arg;
	struct neuron_chunk *chunk;
	struct dma_buf *buf;
	int err, fd;
	u64 bytes;

	if (a->flags & ~NEURON_NATIVE_EXPORT_RDONLY || a->__reserved)
		return -EINVAL;
	/* As a user, the export keeps the chunk from getting shorter. */
	chunk = neuron_chunk_use(call->client, a->mem_handle, NEURON_USER_EXPORT);
	if (!chunk)
		return neuron_chunk_missing(call->client, a->mem_handle);
	bytes = a->bytes;
	if (!bytes && a->offset < READ_ONCE(chunk->size))
		bytes = READ_ONCE(chunk->size) - a->offset;
	err = PAGE_ALIGNED(a->offset) && PAGE_ALIGNED(bytes) ?
	      neuron_chunk_range(chunk, a->offset, bytes) : -EINVAL;
	fd = err ?: neuron_export_new(chunk, a->offset, bytes,
				      !(a->flags & NEURON_NATIVE_EXPORT_RDONLY), &buf);
	neuron_chunk_unuse(chunk, NEURON_USER_EXPORT);
	return fd < 0 ? fd : neuron_export_install(buf, fd, &result->fd);
}

/*
 * A handle is for the whole chunk, so the export must cover it; under grow_lock the chunk
 * does not grow.
 */
static int neuron_import_whole(struct neuron_client *client, struct neuron_export *export,
			       u32 *handle)
{
	struct neuron_chunk *chunk = export->chunk;
	int err = -EINVAL;

	if (mutex_lock_killable(&client->nd->grow_lock))
		return -EINTR;
	if (export->size == chunk->size)
		err = neuron_chunk_import(client, chunk, handle);
	mutex_unlock(&client->nd->grow_lock);
	return err;
}

int neuron_do_native_mem_import(struct neuron_call *call)
{
	struct neuron_native_mem_import *a = call->arg;
	struct neuron_export *export;
	struct neuron_chunk *chunk;
	struct dma_buf *buf;
	u32 handle;
	int err;

	if (a->flags || a->__reserved)
		return -EINVAL;
	buf = dma_buf_get(a->fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = -EINVAL;
	if (buf->ops != &neuron_export_ops && buf->ops != &neuron_export_bus_ops)
		goto put;
	export = buf->priv;
	chunk = export->chunk;
	/* A handle gives write access, too. */
	if (export->nd != call->nd)
		err = -EXDEV;
	else if (!neuron_export_writable(buf))
		err = -EPERM;
	else
		err = neuron_import_whole(call->client, export, &handle);
	if (err)
		goto put;
	a->mem_handle = handle;
	a->pa = chunk->addr;
	a->mmap_offset = chunk->addr;
	a->bytes = export->size;
	a->host = chunk->host;
put:
	dma_buf_put(buf);
	return err;
}

/* The caller did not learn its handle: free it. */
void neuron_undo_native_mem_import(struct neuron_call *call)
{
	struct neuron_native_mem_import *a = call->arg;

	neuron_chunk_unpublish(call->client, a->mem_handle);
}
