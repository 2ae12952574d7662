// SPDX-License-Identifier: GPL-2.0-only
/*
 * A software device, from neuron_device_add() to neuron_device_del(), and the operations
 * that neuron.ko calls in between.
 */
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "arithmetic.h"
#include "core.h"
#include "debugfs.h"
#include "device.h"
#include "dma.h"
#include "mem.h"
#include "posted.h"

/*
 * Applications may open the device before neuron_device_add() returns.  All work is
 * started by an operation, so it finds @nd set.
 */
static struct emu_device *emu_of(struct neuron_device *nd)
{
	struct emu_device *ed = neuron_device_priv(nd);

	if (unlikely(!READ_ONCE(ed->nd)))
		WRITE_ONCE(ed->nd, nd);
	return ed;
}

static int emu_reg_read(struct neuron_device *nd, enum neuron_block block, u32 index, u32 off,
			u32 *val)
{
	struct emu_device *ed = emu_of(nd);

	if (off % 4)
		return -EINVAL;
	/* Those of DMA engines are read while their caller waits, and must not wait themselves. */
	if (block == NEURON_BLOCK_DMA)
		return emu_dma_reg_read(ed, index, off, val);
	if (index >= ed->geo.nr_cores)
		return -EINVAL;
	emu_posted_land(ed);
	switch (block) {
	case NEURON_BLOCK_CORE:
		return emu_window_read(ed->window[index], off, val);
	case NEURON_BLOCK_CORE_NQ:
		return emu_nq_reg_read(ed->notify[index], off, val);
	default:
		return -EINVAL;
	}
}

static int emu_reg_write(struct neuron_device *nd, enum neuron_block block, u32 index, u32 off,
			 u32 val)
{
	struct emu_device *ed = emu_of(nd);

	if (off % 4)
		return -EINVAL;
	if (block == NEURON_BLOCK_DMA) {
		emu_posted_land(ed);
		return emu_dma_reg_write(ed, index, off, val);
	}
	if (index >= ed->geo.nr_cores)
		return -EINVAL;
	return emu_posted_write(ed, block, index, off, val);
}

static int emu_op_queue_start(struct neuron_device *nd, u32 eng, u32 q,
			      const struct neuron_queue_setup *setup)
{
	struct emu_device *ed = emu_of(nd);

	emu_posted_land(ed);
	return emu_dma_bind(ed, eng, q, setup);
}

static int emu_op_queue_stop(struct neuron_device *nd, u32 eng, u32 q)
{
	struct emu_device *ed = emu_of(nd);

	emu_posted_land(ed);
	emu_dma_stop(ed, eng, q);
	return 0;
}

static int emu_op_queue_ring(struct neuron_device *nd, u32 eng, u32 q, u32 count)
{
	struct emu_device *ed = emu_of(nd);

	emu_posted_land(ed);
	return emu_dma_start(ed, eng, q, count);
}

static bool emu_op_queue_poll(struct neuron_device *nd, u32 eng, u32 q)
{
	struct emu_device *ed = emu_of(nd);

	return !ed->parent && emu_dma_poll(ed, eng, q);
}

static bool emu_op_queue_rw(struct neuron_device *nd, u32 eng, u32 q, u64 addr, void *buf, u32 len,
			    bool write)
{
	struct emu_device *ed = emu_of(nd);

	return !ed->parent && emu_dma_rw(ed, eng, q, addr, buf, len, write);
}

static void emu_op_core_bind(struct neuron_device *nd, u32 core, struct neuron_space *space)
{
	struct emu_device *ed = emu_of(nd);

	emu_posted_land(ed);
	if (core < ed->geo.nr_cores)
		emu_core_bind(ed->core[core], space);
}

static int emu_op_core_reset_begin(struct neuron_device *nd, unsigned long cores)
{
	struct emu_device *ed = emu_of(nd);

	emu_posted_land(ed);
	emu_core_reset_begin(ed, cores);
	return 0;
}

static int emu_op_core_reset_poll(struct neuron_device *nd, unsigned long cores)
{
	struct emu_device *ed = emu_of(nd);
	int err = 0, one;
	u32 i;

	/* One that goes on counts more than one that failed. */
	for_each_set_bit(i, &cores, ed->geo.nr_cores) {
		one = emu_core_reset_poll(ed->core[i]);
		if (err != -EINPROGRESS)
			err = one ?: err;
	}
	return err;
}

static void emu_op_flush(struct neuron_device *nd)
{
	emu_posted_land(emu_of(nd));
}

static void emu_op_stop(struct neuron_device *nd)
{
	struct emu_device *ed = emu_of(nd);
	u32 i, q;

	emu_posted_land(ed);
	for (i = 0; i < ed->geo.nr_dma_engines; i++)
		for (q = 0; q < NEURON_HW_QUEUES_PER_ENGINE; q++)
			emu_dma_stop(ed, i, q);
	for (i = 0; i < ed->geo.nr_cores; i++) {
		emu_core_reset(ed->core[i]);
		emu_core_bind(ed->core[i], NULL);
	}
}

static bool emu_op_hbm_release(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	struct emu_device *ed = emu_of(nd);

	return !ed->parent && !emu_hbm_zero(emu_hbm(ed, hbm), off, len, true);
}

static int emu_op_hbm_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	struct emu_device *ed = emu_of(nd);

	/* What was not dropped when it was released can go now: nobody maps it yet. */
	return emu_hbm_zero(emu_hbm(ed, hbm), off, len, ed->parent) ? -EIO : 0;
}

static int emu_op_hbm_pfn(struct neuron_device *nd, u32 hbm, u64 off, unsigned long *pfn)
{
	int err = emu_hbm_frame(emu_hbm(emu_of(nd), hbm), off, pfn);

	return err == -EINVAL ? -ENXIO : err;
}

/* State buffers only: accesses to registers must be seen. */
static int emu_op_core_pfn(struct neuron_device *nd, u32 core, u64 off, unsigned long *pfn)
{
	struct emu_device *ed = emu_of(nd);
	u8 *sbuf;

	if (core >= ed->geo.nr_cores || !emu_sbuf_has(ed, off, PAGE_SIZE))
		return -ENXIO;
	down_read(&ed->window_lock);
	sbuf = emu_sbuf_get(ed, core, true);
	if (sbuf)
		*pfn = is_vmalloc_addr(sbuf) ? vmalloc_to_pfn(sbuf + off) :
					       page_to_pfn(virt_to_page(sbuf + off));
	up_read(&ed->window_lock);
	return sbuf ? 0 : -ENOMEM;
}

static int emu_op_ecc_count(struct neuron_device *nd, enum neuron_event event, u64 *count)
{
	*count = atomic64_read(&emu_of(nd)->faults.ecc[event]);
	return 0;
}

static int emu_op_power(struct neuron_device *nd, struct neuron_power *power)
{
	return emu_busy_read(&emu_of(nd)->busy, power);
}

static const struct neuron_hw_ops emu_ops = {
	.owner = THIS_MODULE,
	.reg_read = emu_reg_read,
	.reg_write = emu_reg_write,
	.queue_start = emu_op_queue_start,
	.queue_stop = emu_op_queue_stop,
	.queue_ring = emu_op_queue_ring,
	.queue_poll = emu_op_queue_poll,
	.queue_rw = emu_op_queue_rw,
	.core_bind = emu_op_core_bind,
	.core_reset_begin = emu_op_core_reset_begin,
	.core_reset_poll = emu_op_core_reset_poll,
	.flush = emu_op_flush,
	.stop = emu_op_stop,
	.hbm_release = emu_op_hbm_release,
	.hbm_clear = emu_op_hbm_clear,
	.hbm_pfn = emu_op_hbm_pfn,
	.core_pfn = emu_op_core_pfn,
	.ecc_count = emu_op_ecc_count,
	.power = emu_op_power,
};

/* The file exists on software devices only, to tell them from cards. */
static ssize_t emulated_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "1\n");
}
static DEVICE_ATTR_RO(emulated);

/* For libraries: what they may make of programs that the device cannot run. */
static ssize_t pretend_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", emu_pretend);
}
static DEVICE_ATTR_RO(pretend);

static struct attribute *emu_attrs[] = {
	&dev_attr_emulated.attr,
	&dev_attr_pretend.attr,
	NULL,
};
ATTRIBUTE_GROUPS(emu);

static void emu_unplug(struct emu_device *ed)
{
	mutex_lock(&ed->unplug_lock);
	if (ed->added)
		neuron_device_del(ed->nd);
	ed->added = false;
	mutex_unlock(&ed->unplug_lock);
}

static void emu_unplug_work(struct work_struct *work)
{
	struct emu_device *ed = container_of(work, struct emu_device, unplug);

	/* Another device may soon get its number, and with it the name of the directory. */
	emu_debugfs_del(ed);
	emu_unplug(ed);
}

/* The devices by serial number: udev names nodes by it. */
static DEFINE_XARRAY(emu_by_serial);

static int emu_take_serial(struct emu_device *ed, u64 serial)
{
	int err = xa_insert(&emu_by_serial, serial, ed, GFP_KERNEL);

	ed->serial = serial;
	return err == -EBUSY ? -EEXIST : err;
}

/**
 * emu_device_free() - remove a device, even if it is in use
 * @ed: from emu_device_new()
 *
 * Context: may sleep.
 */
void emu_device_free(struct emu_device *ed)
{
	u32 i;

	emu_debugfs_del(ed);
	cancel_work_sync(&ed->unplug);
	emu_unplug(ed);
	/* Another device may have it, which was first. */
	xa_cmpxchg(&emu_by_serial, ed->serial, ed, NULL, 0);
	emu_posted_free(ed);
	emu_core_destroy(ed);
	emu_dma_destroy(ed);
	if (ed->wq)
		destroy_workqueue(ed->wq);
	platform_device_unregister(ed->parent);
	for (i = 0; i < ed->geo.nr_hbms; i++)
		emu_hbm_destroy(&ed->hbm[i]);
	kfree(ed);
}

/* What reads and writes for the device is the processor: no cache is in the way. */
static void emu_dma_coherent(struct device *parent)
{
#if defined(CONFIG_ARCH_HAS_SYNC_DMA_FOR_DEVICE) || defined(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU) || \
	defined(CONFIG_ARCH_HAS_SYNC_DMA_FOR_CPU_ALL)
	parent->dma_coherent = true;
#endif
}

/* A device whose DMA addresses host memory gets, and memory that somebody has used. */
static int emu_card_like(struct emu_device *ed)
{
	struct platform_device *parent;
	int err;
	u32 i;

	parent = platform_device_register_simple("neuron_emu", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	ed->parent = parent;
	emu_dma_coherent(&parent->dev);
	dma_set_max_seg_size(&parent->dev, UINT_MAX);
	err = dma_set_mask_and_coherent(&parent->dev, ed->geo.host_window - 1);
	ed->geo.hbm_clear_at_start = false;
	ed->geo.hbm_io = true;
	err = err ?: emu_posted_new(ed);
	for (i = 0; i < ed->geo.nr_hbms && !err; i++)
		err = emu_hbm_soil(&ed->hbm[i]);
	return err;
}

/**
 * emu_device_new() - make a device and add it
 * @cfg: its configuration
 *
 * Context: may sleep.
 * Return: the device; ERR_PTR(-ENOMEM), -EIO no DMA on this machine, or an error of
 *	   neuron_device_add().
 */
struct emu_device *emu_device_new(const struct emu_config *cfg)
{
	struct neuron_device_desc desc = {
		.ops = &emu_ops,
		.groups = emu_groups,
		.isolates = cfg->checks,
		.index = cfg->index,
		.serial = cfg->serial,
		.location = cfg->location,
		.nr_neighbours = cfg->nr_neighbours,
	};
	struct neuron_device *nd;
	struct emu_device *ed;
	int err = -ENOMEM;
	u32 k;

	ed = kzalloc(sizeof(*ed), GFP_KERNEL);
	if (!ed)
		return ERR_PTR(-ENOMEM);
	ed->geo = cfg->arch->geo;
	for (k = 0; cfg->hbm_size && k < ed->geo.nr_hbms; k++)
		ed->geo.hbm[k].size = cfg->hbm_size;
	if (cfg->reset_msec)
		ed->geo.reset_msec = cfg->reset_msec;
	ed->checks = cfg->checks;
	ed->simd = emu_arithmetic();
	ed->completion = cfg->completion;
	ed->completion_nsec = cfg->completion_nsec;
	ed->faults.reset_slow_msec = 2000;
	mutex_init(&ed->unplug_lock);
	INIT_WORK(&ed->unplug, emu_unplug_work);
	emu_busy_init(&ed->busy);
	for (k = 0; k < ed->geo.nr_hbms; k++)
		emu_hbm_init(&ed->hbm[k], ed->geo.hbm[k].size);
	emu_dma_init(ed);
	/*
	 * The work items use the CPU and wait for each other only while both run (rows.c).
	 * So a few threads are enough, and they exist only while there is work.
	 */
	ed->wq = alloc_workqueue("neuron_emu", WQ_UNBOUND, num_possible_cpus() + 2);
	if (!ed->wq)
		goto err;
	err = emu_core_init(ed) ?: emu_take_serial(ed, cfg->serial);
	if (!err && cfg->card_like)
		err = emu_card_like(ed);
	if (err)
		goto err;

	desc.parent = ed->parent ? &ed->parent->dev : NULL;
	desc.polled = ed->parent;
	desc.geometry = &ed->geo;
	desc.priv = ed;
	memcpy(desc.neighbours, cfg->neighbours, sizeof(desc.neighbours));
	nd = neuron_device_add(&desc);
	if (IS_ERR(nd)) {
		err = PTR_ERR(nd);
		goto err;
	}
	WRITE_ONCE(ed->nd, nd);
	ed->number = neuron_device_index(nd);
	ed->added = true;
	emu_debugfs_add(ed);
	return ed;
err:
	emu_device_free(ed);
	return ERR_PTR(err);
}
