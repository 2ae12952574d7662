// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a bus in dma-bufs: other devices reach it by its address, without struct pages.
 *
 * Nobody can hold such memory when its device goes.  So importers are told by then, and have
 * to unmap it.  Those that have pinned it and cannot be told, such as network cards without
 * on-demand paging, keep their addresses until their process gives them up; until then no
 * device is added whose memory is at these addresses.
 */
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/pfn.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "../base/device.h"
#include "../base/hw.h"
#include "../compat/compat.h"
#include "bus.h"
#include "sync.h"

/**
 * struct neuron_bus_map - memory as an importer sees it
 * @sgt: DMA addresses only
 * @node: in neuron_bus_maps
 * @phys: where the memory is
 * @dma: where it is for the importer, one range
 * @size: bytes
 */
struct neuron_bus_map {
	struct sg_table sgt;
	struct list_head node;
	phys_addr_t phys;
	dma_addr_t dma;
	u64 size;
};

static DEFINE_SPINLOCK(neuron_bus_lock);
/* What importers have mapped, also of devices that are gone. */
static LIST_HEAD(neuron_bus_maps);

/* Importers that expect pages, or cannot be told anything, are refused. */
int neuron_bus_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct neuron_export *export = buf->priv;

	if (neuron_device_gone(export->nd))
		return -ENODEV;
	if (!attach->peer2peer)
		return -EOPNOTSUPP;
	return export->nd->ops->peer_dma(export->nd, attach->dev);
}

/* Exported memory does not move. */
int neuron_bus_pin(struct dma_buf_attachment *attach)
{
	struct neuron_export *export = attach->dmabuf->priv;

	return export->revoked ? -ENODEV : 0;
}

void neuron_bus_unpin(struct dma_buf_attachment *attach)
{
}

/* Of one range, as many entries as the importer's largest segment makes necessary. */
static int neuron_bus_table(struct neuron_bus_map *map, struct device *dev)
{
	u64 max = ALIGN_DOWN(min_t(size_t, dma_get_max_seg_size(dev), UINT_MAX), PAGE_SIZE);
	struct scatterlist *sg;
	u64 done = 0, n;
	unsigned int i;
	int err;

	if (!max)
		return -EINVAL;
	n = DIV_ROUND_UP_ULL(map->size, max);
	err = n > UINT_MAX ? -EOVERFLOW : sg_alloc_table(&map->sgt, n, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	for_each_sgtable_sg(&map->sgt, sg, i) {
		sg_set_page(sg, NULL, 0, 0);
		sg_dma_address(sg) = map->dma + done;
		sg_dma_len(sg) = min(max, map->size - done);
		done += sg_dma_len(sg);
	}
	return 0;
}

/* Under the reservation lock, which removal of the device takes after this. */
struct sg_table *neuron_bus_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct neuron_export *export = attach->dmabuf->priv;
	struct neuron_device *nd = export->nd;
	struct neuron_chunk *chunk = export->chunk;
	struct neuron_bus_map *map;
	unsigned long pfn;
	int err;

	if (export->revoked)
		return ERR_PTR(-ENODEV);
	if (dir != DMA_TO_DEVICE && !neuron_export_writable(attach->dmabuf))
		return ERR_PTR(-EACCES);
	err = nd->ops->hbm_pfn(nd, chunk->hbm, chunk->block.addr + export->off, &pfn);
	if (err)
		return ERR_PTR(err);
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->phys = PFN_PHYS(pfn);
	map->size = export->size;
	map->dma = dma_map_resource(attach->dev, map->phys, map->size, dir, 0);
	if (dma_mapping_error(attach->dev, map->dma)) {
		err = -EIO;
		goto free;
	}
	err = neuron_bus_table(map, attach->dev);
	if (err)
		goto unmap;
	spin_lock(&neuron_bus_lock);
	list_add(&map->node, &neuron_bus_maps);
	spin_unlock(&neuron_bus_lock);
	return &map->sgt;

unmap:
	dma_unmap_resource(attach->dev, map->dma, map->size, dir, 0);
free:
	kfree(map);
	return ERR_PTR(err);
}

void neuron_bus_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir)
{
	struct neuron_bus_map *map = container_of(sgt, struct neuron_bus_map, sgt);

	dma_unmap_resource(attach->dev, map->dma, map->size, dir, 0);
	spin_lock(&neuron_bus_lock);
	list_del(&map->node);
	spin_unlock(&neuron_bus_lock);
	sg_free_table(sgt);
	kfree(map);
}

/**
 * neuron_bus_add() - removal of the device will find an export
 * @export: of memory without pages; neuron_bus_del() undoes it
 *
 * Context: may sleep, reservation lock not held.
 */
void neuron_bus_add(struct neuron_export *export)
{
	mutex_lock(&export->nd->exports_lock);
	/* The caller may have another device open, which has not gone. */
	if (neuron_device_gone(export->nd))
		export->revoked = true;
	else
		list_add(&export->node, &export->nd->exports);
	mutex_unlock(&export->nd->exports_lock);
}

void neuron_bus_del(struct neuron_export *export)
{
	mutex_lock(&export->nd->exports_lock);
	list_del_init(&export->node);
	mutex_unlock(&export->nd->exports_lock);
}

/* Under neuron_device.exports_lock, which keeps the dma-buf. */
static void neuron_bus_tell(struct neuron_export *export)
{
	dma_resv_lock(export->buf->resv, NULL);
	export->revoked = true;
	dma_buf_invalidate_mappings(export->buf);
	dma_resv_unlock(export->buf->resv);
}

/**
 * neuron_bus_revoke() - importers unmap memory that goes with its device
 * @nd: device; gone, and no operation that began before is under way: nothing more is mapped
 *
 * Waits for the importers' fences, for 30 s in all.
 *
 * Context: may sleep, without locks.
 */
void neuron_bus_revoke(struct neuron_device *nd)
{
	unsigned long deadline = jiffies + NEURON_SYNC_TIMEOUT;
	struct neuron_export *export;
	struct neuron_chunk *chunk;
	bool ended = true;

	mutex_lock(&nd->exports_lock);
	/* All are told before one is waited for: nobody's fence takes the time of others. */
	list_for_each_entry(export, &nd->exports, node)
		neuron_bus_tell(export);
	while (!list_empty(&nd->exports)) {
		export = list_first_entry(&nd->exports, struct neuron_export, node);
		list_del_init(&export->node);
		/* The export may be freed from here on. */
		chunk = neuron_chunk_ref(export->chunk);
		mutex_unlock(&nd->exports_lock);
		ended = neuron_sync_drain(chunk, deadline) && ended;
		neuron_chunk_put(chunk);
		mutex_lock(&nd->exports_lock);
	}
	mutex_unlock(&nd->exports_lock);
	if (!ended)
		dev_warn(&nd->dev, "other devices did not end their use of its memory in time\n");
}

static bool neuron_bus_mapped(phys_addr_t phys, u64 size)
{
	struct neuron_bus_map *map;
	bool found = false;

	spin_lock(&neuron_bus_lock);
	list_for_each_entry(map, &neuron_bus_maps, node)
		found = found || (map->phys < phys + size && phys < map->phys + map->size);
	spin_unlock(&neuron_bus_lock);
	return found;
}

/**
 * neuron_bus_unused() - is memory of a new device still in use as that of an earlier one?
 * @nd: device that nobody knows yet
 *
 * Context: may sleep.
 * Return: 0; -EADDRINUSE other devices would write to it.
 */
int neuron_bus_unused(struct neuron_device *nd)
{
	unsigned long pfn;
	u32 i;

	if (!nd->desc.ops->peer_dma)
		return 0;
	for (i = 0; i < nd->geo->nr_hbms; i++) {
		if (nd->ops->hbm_pfn(nd, i, 0, &pfn) ||
		    !neuron_bus_mapped(PFN_PHYS(pfn), nd->geo->hbm[i].size))
			continue;
		dev_err(&nd->dev, "other devices still use memory of this one from before\n");
		return -EADDRINUSE;
	}
	return 0;
}
