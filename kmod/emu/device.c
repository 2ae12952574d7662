// SPDX-License-Identifier: GPL-2.0-only
/*
 * A software device, from neuron_device_add() to neuron_device_del(), and the operations
 * that neuron.ko calls in between.
 */
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "core.h"
#include "debugfs.h"
#include "device.h"
#include "dma.h"
#include "mem.h"

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
	if (block == NEURON_BLOCK_DMA)
		return emu_dma_reg_read(ed, index, off, val);
	if (index >= ed->geo.nr_cores)
		return -EINVAL;
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
	if (block == NEURON_BLOCK_DMA)
		return emu_dma_reg_write(ed, index, off, val);
	if (index >= ed->geo.nr_cores)
		return -EINVAL;
	switch (block) {
	case NEURON_BLOCK_CORE:
		return emu_window_write(ed->window[index], off, val);
	case NEURON_BLOCK_CORE_NQ:
		return emu_nq_reg_write(ed->notify[index], off, val);
	default:
		return -EINVAL;
	}
}

static int emu_op_queue_bind(struct neuron_device *nd, u32 eng, u32 q,
			     struct neuron_space *space)
{
	return emu_dma_bind(emu_of(nd), eng, q, space);
}

static void emu_op_queue_stop(struct neuron_device *nd, u32 eng, u32 q)
{
	emu_dma_stop(emu_of(nd), eng, q);
}

static bool emu_op_queue_poll(struct neuron_device *nd, u32 eng, u32 q)
{
	return emu_dma_poll(emu_of(nd), eng, q);
}

static void emu_op_core_bind(struct neuron_device *nd, u32 core, struct neuron_space *space)
{
	struct emu_device *ed = emu_of(nd);

	if (core < ed->geo.nr_cores)
		emu_core_bind(ed->core[core], space);
}

static int emu_op_core_reset(struct neuron_device *nd, u32 core)
{
	struct emu_device *ed = emu_of(nd);

	return core < ed->geo.nr_cores ? emu_core_reset(ed->core[core]) : -EIO;
}

static bool emu_op_hbm_release(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	return !emu_hbm_zero(emu_hbm(emu_of(nd), hbm), off, len, true);
}

static int emu_op_hbm_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	return emu_hbm_zero(emu_hbm(emu_of(nd), hbm), off, len, false) ? -EIO : 0;
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
	.queue_bind = emu_op_queue_bind,
	.queue_stop = emu_op_queue_stop,
	.queue_poll = emu_op_queue_poll,
	.core_bind = emu_op_core_bind,
	.core_reset = emu_op_core_reset,
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

static struct attribute *emu_attrs[] = {
	&dev_attr_emulated.attr,
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
	emu_core_destroy(ed);
	emu_dma_destroy(ed);
	if (ed->wq)
		destroy_workqueue(ed->wq);
	for (i = 0; i < ed->geo.nr_hbms; i++)
		emu_hbm_destroy(&ed->hbm[i]);
	kfree(ed);
}

/**
 * emu_device_new() - make a device and add it
 * @cfg: its configuration
 *
 * Context: may sleep.
 * Return: the device; ERR_PTR(-ENOMEM), or an error of neuron_device_add().
 */
struct emu_device *emu_device_new(const struct emu_config *cfg)
{
	struct neuron_device_desc desc = {
		.ops = &emu_ops,
		.groups = emu_groups,
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
	 * The work items use the CPU and do not wait for each other.  So a few threads
	 * are enough, and they exist only while there is work.
	 */
	ed->wq = alloc_workqueue("neuron_emu", WQ_UNBOUND, num_possible_cpus() + 2);
	if (!ed->wq)
		goto err;
	err = emu_core_init(ed);
	if (err)
		goto err;

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
