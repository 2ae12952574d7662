// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron_emu: Neuron devices in software, for machines without one.
 *
 *   modprobe neuron_emu [arch=inf1|trn1|inf2|trn2|trn3] [nr_devices=N] [hbm_size=MIB]
 *   modprobe neuron_emu instance=trn2.48xlarge [hbm_size=MIB]
 */
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "../compat/compat.h"
#include "emu.h"

#define EMU_MIN_HBM_MIB		64	/* the reserved part and something to use */

static char *arch = "trn2";
module_param(arch, charp, 0444);
MODULE_PARM_DESC(arch, "kind of device: inf1, trn1, inf2, trn2 (default) or trn3");

static char *instance;
module_param(instance, charp, 0444);
MODULE_PARM_DESC(instance, "whole instance, such as trn2.48xlarge, instead of arch and nr_devices");

static unsigned int nr_devices = 1;
module_param(nr_devices, uint, 0444);
MODULE_PARM_DESC(nr_devices, "number of devices to start with, 0 to 64 (default 1)");

static unsigned int hbm_size;
module_param(hbm_size, uint, 0444);
MODULE_PARM_DESC(hbm_size,
		 "MiB of each device memory, 64 up to the real size (default 0: the real size)");

static char *completion = "worker";
module_param(completion, charp, 0444);
MODULE_PARM_DESC(completion,
		 "when DMA work is done: worker (default), inline or timer");

static unsigned long completion_nsec = EMU_COMPLETION_NSEC;
module_param(completion_nsec, ulong, 0444);
MODULE_PARM_DESC(completion_nsec, "latency of completion=timer in ns (default 10000)");

static unsigned int host_memory;
module_param(host_memory, uint, 0444);
MODULE_PARM_DESC(host_memory,
		 "MiB of host memory that all device memories may use (default 0: half of it)");

/* ---- geometries ---- */

/* uapi/FACTS.md 4, 5, 6 and 10 */
#define EMU_GEOMETRY_V2							\
	.nr_cores = 2,							\
	.nr_hbms = 2,							\
	.hbm = {							\
		{ 0x0, 16ULL << 30, 16 << 20 },				\
		{ 0x1000000000, 16ULL << 30, 16 << 20 },		\
	},								\
	.nr_dma_engines = 34,						\
	.engines_per_core = 16,						\
	.nr_semaphores = 256,						\
	.sem_block = 0x400,						\
	.nr_events = 256,						\
	.nr_topsp = 6,							\
	.nr_nq_types = 6,						\
	.nr_nq_engines = 16,						\
	.copy_engine = { 32, 33 },					\
	.copy_queue = { 0, 0 },						\
	.host_window = 1ULL << 44,					\
	.tpb_base = { 0xfffc0000000, 0xfffc4000000 },			\
	.tpb_size = 0x4000000,						\
	.sbuf_size = 24 << 20,						\
	.isa_version = NEURON_ISA_VERSION,				\
	.hbm_clear_at_start = true,					\
	.compat_min = 5,						\
	.compat_max = 7

#define EMU_GEOMETRY_V3(hbm_gib, sbuf_mib)				\
	.nr_cores = 8,							\
	.nr_hbms = 4,							\
	.hbm = {							\
		{ 0x0, (hbm_gib) << 30, 16 << 20 },			\
		{ 0x4000000000, (hbm_gib) << 30, 16 << 20 },		\
		{ 0x800000000000, (hbm_gib) << 30, 16 << 20 },		\
		{ 0x804000000000, (hbm_gib) << 30, 16 << 20 },		\
	},								\
	.nr_dma_engines = 132,						\
	.engines_per_core = 16,						\
	.nr_semaphores = 256,						\
	.sem_block = 0x400,						\
	.nr_events = 256,						\
	.nr_topsp = 16,							\
	.nr_nq_types = 5,						\
	.nr_nq_engines = 16,						\
	.copy_engine = { 128, 128, 129, 129, 130, 130, 131, 131 },	\
	.copy_queue = { 0, 1, 0, 1, 0, 1, 0, 1 },			\
	.host_window = 1ULL << 46,					\
	.tpb_base = {							\
		0x2000000000, 0x3000000000,				\
		0x6000000000, 0x7000000000,				\
		0x802000000000, 0x803000000000,				\
		0x806000000000, 0x807000000000,				\
	},								\
	.tpb_size = 0x4000000,						\
	.sbuf_size = (sbuf_mib) << 20,					\
	.isa_version = NEURON_ISA_VERSION,				\
	.hbm_clear_at_start = true,					\
	.compat_min = 10,						\
	.compat_max = 11

/* Devices linked to devices 0 to 15 of a full host (uapi/FACTS.md 6). */
static const u8 emu_links_trn1[16][4] = {
	{ 12, 3, 4, 1 }, { 13, 0, 5, 2 }, { 14, 1, 6, 3 }, { 15, 2, 7, 0 },
	{ 0, 7, 8, 5 }, { 1, 4, 9, 6 }, { 2, 5, 10, 7 }, { 3, 6, 11, 4 },
	{ 4, 11, 12, 9 }, { 5, 8, 13, 10 }, { 6, 9, 14, 11 }, { 7, 10, 15, 8 },
	{ 8, 15, 0, 13 }, { 9, 12, 1, 14 }, { 10, 13, 2, 15 }, { 11, 14, 3, 12 },
};

static const u8 emu_links_trn2[16][4] = {
	{ 12, 1, 3, 4 }, { 0, 13, 5, 2 }, { 14, 3, 1, 6 }, { 2, 15, 7, 0 },
	{ 8, 5, 7, 0 }, { 4, 9, 1, 6 }, { 10, 7, 5, 2 }, { 6, 11, 3, 4 },
	{ 4, 9, 11, 12 }, { 8, 5, 13, 10 }, { 6, 11, 9, 14 }, { 10, 7, 15, 8 },
	{ 0, 13, 15, 8 }, { 12, 1, 9, 14 }, { 2, 15, 13, 10 }, { 14, 3, 11, 12 },
};

/**
 * struct emu_arch - a kind of device
 * @name: value of the parameter arch
 * @geo: geometry
 * @links: neighbours on a host with 16 of them; NULL: inf1, chains of 4 and 16,
 *         and inf2, a ring of 12 or a chain of 6
 */
struct emu_arch {
	const char *name;
	struct neuron_geometry geo;
	const u8 (*links)[4];
};

static const struct emu_arch emu_archs[] = {
	{
		/* The size of the state buffer is not published: that of v2 is used. */
		.name = "inf1",
		.geo = {
			.arch = NEURON_ARCH_V1,
			.nd_arch_type = "NDv1",
			.nc_arch_type = "NCv1",
			.instance_type = "Inf1",
			.device_name = "Inferentia",
			.nr_cores = 4,
			.nr_hbms = 2,
			.hbm = {
				{ 0x0, 4ULL << 30, 0 },
				{ 0x1000000000, 4ULL << 30, 0 },
			},
			.nr_dma_engines = 12,
			.engines_per_core = 3,
			.nr_semaphores = 32,
			.sem_block = 0x100,
			.nr_events = 256,
			.nr_nq_types = 4,
			.nr_nq_engines = 4,
			.copy_engine = { 2, 5, 8, 11 },
			.copy_queue = { 15, 15, 15, 15 },
			.host_window = 1ULL << 46,
			.tpb_base = {
				0xfffc0000000, 0xfffc4000000,
				0xfffc8000000, 0xfffcc000000,
			},
			.tpb_size = 0x4000000,
			.sbuf_size = 24 << 20,
			.isa_version = NEURON_ISA_VERSION,
			.hbm_clear_at_start = true,
			.compat_min = 2,
			.compat_max = 7,
		},
	}, {
		.name = "trn1",
		.geo = {
			.arch = NEURON_ARCH_V2,
			.nd_arch_type = "NDv2",
			.nc_arch_type = "NCv2",
			.instance_type = "Trn1",
			.device_name = "Trainium1",
			EMU_GEOMETRY_V2,
		},
		.links = emu_links_trn1,
	}, {
		.name = "inf2",
		.geo = {
			.arch = NEURON_ARCH_V2,
			.nd_arch_type = "NDv3",
			.nc_arch_type = "NCv2",
			.instance_type = "Inf2",
			.device_name = "Inferentia2",
			EMU_GEOMETRY_V2,
		},
	}, {
		.name = "trn2",
		.geo = {
			.arch = NEURON_ARCH_V3,
			.nd_arch_type = "NDv3",
			.nc_arch_type = "NCv3",
			.instance_type = "Trn2",
			.device_name = "Trainium2",
			EMU_GEOMETRY_V3(24ULL, 28),
		},
		.links = emu_links_trn2,
	}, {
		/*
		 * Sizes are published (uapi/FACTS.md 10); addresses, topology and
		 * versions are not: those of trn2 are used.
		 */
		.name = "trn3",
		.geo = {
			.arch = NEURON_ARCH_V4,
			.nd_arch_type = "NDv4",
			.nc_arch_type = "NCv4",
			.instance_type = "Trn3",
			.device_name = "Trainium3",
			EMU_GEOMETRY_V3(36ULL, 32),
		},
		.links = emu_links_trn2,
	},
};

/* Neighbours of device @i of @n.  Return: how many there are. */
static u32 emu_neighbours(const struct emu_arch *a, u32 i, u32 n, u32 *list)
{
	u32 k;

	if (a->links) {
		if (n % 16)
			return 0;
		for (k = 0; k < 4; k++)
			list[k] = (i & ~15u) | a->links[i & 15][k];
		return 4;
	}
	if (a->geo.arch == NEURON_ARCH_V1) {
		/* towards the end of the chain first */
		k = 0;
		if ((n == 4 || n == 16) && i + 1 < n)
			list[k++] = i + 1;
		if ((n == 4 || n == 16) && i > 0)
			list[k++] = i - 1;
		return k;
	}
	if (n == 12) {
		list[0] = (i + 11) % 12;
		list[1] = (i + 1) % 12;
		return 2;
	}
	if (n != 6)
		return 0;
	k = 0;
	if (i > 0)
		list[k++] = i - 1;
	if (i < 5)
		list[k++] = i + 1;
	return k;
}

/* ---- what neuron.ko calls ---- */

/*
 * Applications may come before neuron_device_add() returns; all that runs is
 * started by one of the operations, so it finds @nd set.
 */
static struct emu_device *emu_of(struct neuron_device *nd)
{
	struct emu_device *ed = neuron_device_priv(nd);

	if (unlikely(!READ_ONCE(ed->nd)))
		WRITE_ONCE(ed->nd, nd);
	return ed;
}

/* Core windows through registers: as DMA sees them, but for the FIFOs. */
static int emu_window_read(struct emu_core *core, u32 off, u32 *val)
{
	const u8 *sbuf;
	int err = 0;

	down_read(&core->ed->window);
	if (emu_core_is_sbuf(core->ed, off, 4)) {
		sbuf = emu_core_sbuf(core, false);
		*val = sbuf ? emu_get32(sbuf + off) : 0;
	} else {
		err = emu_core_reg_read(core, off, val);
	}
	up_read(&core->ed->window);
	return err ? -EINVAL : 0;
}

static int emu_window_write(struct emu_core *core, u32 off, u32 val)
{
	u8 *sbuf;
	int err = 0;

	down_read(&core->ed->window);
	if (emu_core_is_sbuf(core->ed, off, 4)) {
		sbuf = emu_core_sbuf(core, true);
		if (sbuf)
			emu_put32(sbuf + off, val);
		else
			err = -ENOMEM;
	} else if (emu_core_reg_write(core, off, val)) {
		err = -EINVAL;
	}
	up_read(&core->ed->window);
	return err;
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
		return emu_window_read(ed->core[index], off, val);
	case NEURON_BLOCK_CORE_NQ:
		return emu_nq_reg_read(ed->core[index], off, val);
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
		return emu_window_write(ed->core[index], off, val);
	case NEURON_BLOCK_CORE_NQ:
		return emu_nq_reg_write(ed->core[index], off, val);
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
	return !emu_hbm_zero(emu_of(nd), hbm, off, len, true);
}

static int emu_op_hbm_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	return emu_hbm_zero(emu_of(nd), hbm, off, len, false) ? -EIO : 0;
}

static int emu_op_hbm_pfn(struct neuron_device *nd, u32 hbm, u64 off, unsigned long *pfn)
{
	int err = emu_hbm_frame(emu_of(nd), hbm, off, pfn);

	return err == -EINVAL ? -ENXIO : err;
}

/* State buffers only: accesses to registers must be seen. */
static int emu_op_core_pfn(struct neuron_device *nd, u32 core, u64 off, unsigned long *pfn)
{
	struct emu_device *ed = emu_of(nd);
	u8 *sbuf;

	if (core >= ed->geo.nr_cores || !emu_core_is_sbuf(ed, off, PAGE_SIZE))
		return -ENXIO;
	down_read(&ed->window);
	sbuf = emu_core_sbuf(ed->core[core], true);
	if (sbuf)
		*pfn = is_vmalloc_addr(sbuf) ? vmalloc_to_pfn(sbuf + off) :
					       page_to_pfn(virt_to_page(sbuf + off));
	up_read(&ed->window);
	return sbuf ? 0 : -ENOMEM;
}

static int emu_op_ecc_count(struct neuron_device *nd, enum neuron_event event, u64 *count)
{
	*count = atomic64_read(&emu_of(nd)->ecc[event]);
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

/**
 * emulated_show() - the file "emulated" of a device
 * @dev: device
 * @attr: attribute
 * @buf: text
 *
 * The file exists on software devices only and always says 1.  Whoever must
 * not take one for a card checks whether it is there.
 *
 * Return: bytes of text.
 */
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

/* ---- devices ---- */

static struct emu_device *emu_devices[EMU_MAX_DEVICES];

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

	/* Its number, and so the name of the directory, can be another device's soon. */
	emu_faults_del(ed);
	emu_unplug(ed);
}

/**
 * emu_device_free() - remove a device, whoever uses it
 * @ed: from emu_device_new()
 *
 * Context: may sleep.
 */
void emu_device_free(struct emu_device *ed)
{
	emu_faults_del(ed);
	cancel_work_sync(&ed->unplug);
	emu_unplug(ed);
	emu_core_destroy(ed);
	emu_dma_destroy(ed);
	if (ed->wq)
		destroy_workqueue(ed->wq);
	emu_hbm_destroy(ed);
	kfree(ed);
}

/**
 * emu_device_new() - make a device and add it
 * @cfg: what it is like
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
	ed->reset_slow_msec = 2000;
	mutex_init(&ed->unplug_lock);
	INIT_WORK(&ed->unplug, emu_unplug_work);
	emu_busy_init(&ed->busy);
	emu_hbm_init(ed);
	emu_dma_init(ed);
	/*
	 * Its items use the CPU and do not wait for each other: a few threads
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
	emu_faults_add(ed);
	return ed;
err:
	emu_device_free(ed);
	return ERR_PTR(err);
}

static void emu_remove_all(void)
{
	u32 i;

	for (i = 0; i < EMU_MAX_DEVICES; i++) {
		if (emu_devices[i])
			emu_device_free(emu_devices[i]);
		emu_devices[i] = NULL;
	}
	/* every page of every device memory must have been given back */
	WARN_ON(atomic_long_read(&emu_total_pages));
}

/**
 * emu_find_arch() - kind of device of a name
 * @name: text, may end with a newline
 *
 * Return: the kind, NULL: unknown.
 */
const struct emu_arch *emu_find_arch(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(emu_archs); i++)
		if (sysfs_streq(name, emu_archs[i].name))
			return &emu_archs[i];
	return NULL;
}

/**
 * emu_arch_name() - name of a kind of device
 * @a: kind
 */
const char *emu_arch_name(const struct emu_arch *a)
{
	return a->name;
}

/**
 * emu_hbm_size_valid() - can its device memories be that small or large?
 * @a: kind
 * @mib: MiB of each of them; 0 stands for the real size
 */
bool emu_hbm_size_valid(const struct emu_arch *a, u64 mib)
{
	return !mib || (mib >= EMU_MIN_HBM_MIB && mib <= a->geo.hbm[0].size >> 20);
}

static int __init emu_init(void)
{
	const struct emu_preset *preset = NULL;
	const char *kind = arch;
	const struct emu_arch *a;
	int err = 0, c = emu_find_completion(completion);
	u32 i;

	if (c < 0) {
		pr_err("neuron_emu: completion=%s is not one of worker, inline, timer\n",
		       completion);
		return -EINVAL;
	}
	if (instance) {
		preset = emu_find_preset(instance);
		if (!preset) {
			pr_err("neuron_emu: instance=%s is not known\n", instance);
			return -EINVAL;
		}
		kind = preset->arch;
		nr_devices = preset->nr_devices;
	}
	a = emu_find_arch(kind);
	if (!a) {
		pr_err("neuron_emu: arch=%s is not one of inf1, trn1, inf2, trn2, trn3\n", arch);
		return -EINVAL;
	}
	if (nr_devices > EMU_MAX_DEVICES) {
		pr_err("neuron_emu: nr_devices=%u is not in 0..%u\n", nr_devices,
		       EMU_MAX_DEVICES);
		return -EINVAL;
	}
	if (!emu_hbm_size_valid(a, hbm_size)) {
		pr_err("neuron_emu: hbm_size=%u is not in %u..%llu MiB\n", hbm_size,
		       EMU_MIN_HBM_MIB, a->geo.hbm[0].size >> 20);
		return -EINVAL;
	}
	emu_max_pages = host_memory ? (unsigned long)host_memory << (20 - PAGE_SHIFT) :
				      totalram_pages() / 2;
	emu_faults_init();
	for (i = 0; i < nr_devices && !err; i++) {
		struct emu_config cfg = {
			.arch = a,
			.hbm_size = (u64)hbm_size << 20,
			.serial = EMU_SERIAL(i),
			.completion = c,
			.completion_nsec = completion_nsec,
		};
		struct emu_device *ed;

		cfg.nr_neighbours = emu_neighbours(a, i, nr_devices, cfg.neighbours);
		/* neighbours are known by number */
		cfg.index = cfg.nr_neighbours ? (int)i : -1;
		if (preset)
			cfg.location = emu_preset_location(preset, i);
		ed = emu_device_new(&cfg);
		err = PTR_ERR_OR_ZERO(ed);
		if (err)
			pr_err("neuron_emu: device %u of %u: error %d\n", i, nr_devices, err);
		else
			emu_devices[i] = ed;
	}
	/*
	 * Last: what users make there takes no number away, and is not there if the
	 * module has to go again.
	 */
	if (!err || emu_devices[0])
		err = emu_configfs_init();
	/* The first devices may be open already: they stay. */
	if (!err || emu_devices[0])
		return 0;
	emu_faults_exit();
	return err;
}
module_init(emu_init);

static void __exit emu_exit(void)
{
	emu_configfs_exit();
	emu_remove_all();
	emu_faults_exit();
}
module_exit(emu_exit);

MODULE_AUTHOR("The neuron-driver developers");
MODULE_DESCRIPTION("AWS Neuron device in software");
MODULE_LICENSE("GPL");
MODULE_VERSION(NEURON_VERSION);
NEURON_IMPORT_NS();
