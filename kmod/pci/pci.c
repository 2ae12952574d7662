// SPDX-License-Identifier: GPL-2.0-only
/*
 * neuron_pci: Neuron cards on the PCI bus, from probe to removal, and the operations that
 * neuron.ko calls in between.  README.md has what is known of the cards, and how well.
 *
 * A card may master the bus from the end of its reset until everything that it could still
 * reach is about to be given back, and not a moment longer.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>

#include "../../uapi/neuron_isa.h"
#include "../compat/compat.h"
#include "card.h"
#include "clear.h"
#include "firmware.h"
#include "mailbox.h"
#include "notify.h"
#include "udma.h"

#define NPCI_NAME		"neuron_pci"
#define NPCI_REGISTERS		0
#define NPCI_MEMORY		4
/* Revisions that are no cards: the vendor's simulator and hardware emulator. */
#define NPCI_REV_EMULATOR	240
#define NPCI_REV_SIMULATOR	255
#define NPCI_MIN_HBM_MIB	64

static unsigned int hbm_limit;

static int npci_set_hbm_limit(const char *text, const struct kernel_param *kp)
{
	unsigned int mib;
	int err = kstrtouint(text, 0, &mib);

	if (!err && mib && mib < NPCI_MIN_HBM_MIB)
		err = -EINVAL;
	if (!err)
		*(unsigned int *)kp->arg = mib;
	return err;
}

static const struct kernel_param_ops npci_hbm_limit_ops = {
	.set = npci_set_hbm_limit,
	.get = param_get_uint,
};

module_param_cb(hbm_limit, &npci_hbm_limit_ops, &hbm_limit, 0444);
__MODULE_PARM_TYPE(hbm_limit, "uint");
MODULE_PARM_DESC(hbm_limit,
		 "MiB of each device memory that are used, 64 or more (default 0: all)");

/* Which devices can do DMA to a card's memory. */
enum { NPCI_P2P_NONE, NPCI_P2P_KNOWN, NPCI_P2P_ALL };

static unsigned int p2p = NPCI_P2P_KNOWN;

static int npci_set_p2p(const char *text, const struct kernel_param *kp)
{
	return param_set_uint_minmax(text, kp, NPCI_P2P_NONE, NPCI_P2P_ALL);
}

static const struct kernel_param_ops npci_p2p_ops = {
	.set = npci_set_p2p,
	.get = param_get_uint,
};

module_param_cb(p2p, &npci_p2p_ops, &p2p, 0444);
__MODULE_PARM_TYPE(p2p, "uint");
MODULE_PARM_DESC(p2p,
		 "Devices that may do DMA to a card's memory: 0 none, 1 those that the kernel knows to reach it (default), 2 all");

static bool model_isa;
module_param(model_isa, bool, 0444);
MODULE_PARM_DESC(model_isa,
		 "cards are models that execute the instruction set of the software device (default 0)");

/* ---- operations -------------------------------------------------------------------- */

static int npci_op_reg_read(struct neuron_device *nd, enum neuron_block block, u32 index,
			    u32 off, u32 *val)
{
	struct npci_card *card = neuron_device_priv(nd);

	if (off % 4)
		return -EINVAL;
	if (block == NEURON_BLOCK_DMA)
		return npci_dma_read(card, index, off, val);
	if (index >= card->geo.nr_cores)
		return -EINVAL;
	if (block == NEURON_BLOCK_CORE_NQ)
		return npci_nq_read(card, index, off, val);
	if (block != NEURON_BLOCK_CORE || off >= card->geo.tpb_size)
		return -EINVAL;
	*val = npci_read(card, card->core[index].window + off);
	return READ_ONCE(card->gone) ? -EIO : 0;
}

static int npci_op_reg_write(struct neuron_device *nd, enum neuron_block block, u32 index,
			     u32 off, u32 val)
{
	struct npci_card *card = neuron_device_priv(nd);

	if (off % 4)
		return -EINVAL;
	if (block == NEURON_BLOCK_DMA)
		return npci_dma_write(card, index, off, val);
	if (index >= card->geo.nr_cores)
		return -EINVAL;
	if (block == NEURON_BLOCK_CORE_NQ)
		return npci_nq_write(card, index, off, val);
	if (block != NEURON_BLOCK_CORE || off >= card->geo.tpb_size)
		return -EINVAL;
	npci_write(card->core[index].window + off, val);
	return READ_ONCE(card->gone) ? -EIO : 0;
}

static int npci_op_queue_start(struct neuron_device *nd, u32 eng, u32 q,
			       const struct neuron_queue_setup *setup)
{
	return npci_queue_start(neuron_device_priv(nd), eng, q, setup->addr, setup->length);
}

static int npci_op_queue_stop(struct neuron_device *nd, u32 eng, u32 q)
{
	struct npci_card *card = neuron_device_priv(nd);

	if (eng < card->geo.nr_cores * card->geo.engines_per_core)
		return npci_queue_stop(card, eng, q);
	npci_host_queue_stop(card, eng, q, true);
	return 0;
}

static void npci_op_queue_abort(struct neuron_device *nd, u32 eng, u32 q)
{
	npci_host_queue_stop(neuron_device_priv(nd), eng, q, false);
}

static int npci_op_reset_begin(struct neuron_device *nd, unsigned long cores)
{
	return npci_reset_begin(neuron_device_priv(nd), cores);
}

static int npci_op_reset_poll(struct neuron_device *nd, unsigned long cores)
{
	return npci_reset_poll(neuron_device_priv(nd), cores);
}

static void npci_op_flush(struct neuron_device *nd)
{
	npci_flush(neuron_device_priv(nd));
}

static void npci_op_stop(struct neuron_device *nd)
{
	struct npci_card *card = neuron_device_priv(nd);
	u32 i;

	npci_queues_stop(card);
	for (i = 0; i < card->geo.nr_cores; i++)
		npci_nqs_off(card, i);
	npci_master_off(card);
}

static int npci_op_hbm_clear(struct neuron_device *nd, u32 hbm, u64 off, u64 len)
{
	return npci_hbm_clear(nd, hbm, off, len);
}

static int npci_op_hbm_pfn(struct neuron_device *nd, u32 hbm, u64 off, unsigned long *pfn)
{
	struct npci_card *card = neuron_device_priv(nd);

	if (!card->bar4 || hbm >= card->geo.nr_hbms || off >= card->geo.hbm[hbm].size)
		return -ENXIO;
	*pfn = PHYS_PFN(card->bar4 + hbm * card->gen->hbm_stride + off);
	return 0;
}

/* Devices are given the address that the CPU sees. */
static bool npci_same_address(struct npci_card *card)
{
	return pci_bus_address(card->pdev, NPCI_MEMORY) == card->bar4;
}

static bool npci_has_bits(struct npci_card *card, struct device *peer)
{
	u64 end = card->bar4 + pci_resource_len(card->pdev, NPCI_MEMORY) - 1;

	return device_iommu_mapped(peer) || dma_get_mask(peer) >= end;
}

/* Kernels without CONFIG_PCI_P2PDMA know of none. */
static int npci_op_peer_dma(struct neuron_device *nd, struct device *peer)
{
	struct npci_card *card = neuron_device_priv(nd);

	if (!card->bar4 || p2p == NPCI_P2P_NONE || !npci_same_address(card) ||
	    !npci_has_bits(card, peer))
		return -EOPNOTSUPP;
	if (p2p == NPCI_P2P_ALL || pci_p2pdma_distance(card->pdev, peer, false) >= 0)
		return 0;
	dev_info_ratelimited(&card->pdev->dev,
			     "%s is not known to reach its memory: see the parameter p2p\n",
			     dev_name(peer));
	return -EOPNOTSUPP;
}

/* State buffers only: what else is in the window are registers. */
static int npci_op_core_pfn(struct neuron_device *nd, u32 core, u64 off, unsigned long *pfn)
{
	struct npci_card *card = neuron_device_priv(nd);

	if (core >= card->geo.nr_cores || off >= card->geo.sbuf_size)
		return -ENXIO;
	*pfn = PHYS_PFN(pci_resource_start(card->pdev, NPCI_REGISTERS) + card->gen->core +
			core * card->geo.tpb_size + off);
	return 0;
}

static int npci_op_ecc_count(struct neuron_device *nd, enum neuron_event event, u64 *count)
{
	return npci_ecc_count(neuron_device_priv(nd), event, count);
}

static int npci_op_power(struct neuron_device *nd, struct neuron_power *power)
{
	return npci_power_read(neuron_device_priv(nd), power);
}

static int npci_op_metric(struct neuron_device *nd, const u32 *words)
{
	return npci_metric(neuron_device_priv(nd), words);
}

static const struct neuron_hw_ops npci_ops = {
	.owner = THIS_MODULE,
	.reg_read = npci_op_reg_read,
	.reg_write = npci_op_reg_write,
	.queue_start = npci_op_queue_start,
	.queue_stop = npci_op_queue_stop,
	.queue_abort = npci_op_queue_abort,
	.core_reset_begin = npci_op_reset_begin,
	.core_reset_poll = npci_op_reset_poll,
	.flush = npci_op_flush,
	.stop = npci_op_stop,
	.hbm_clear = npci_op_hbm_clear,
	.hbm_pfn = npci_op_hbm_pfn,
	.peer_dma = npci_op_peer_dma,
	.core_pfn = npci_op_core_pfn,
	.ecc_count = npci_op_ecc_count,
	.power = npci_op_power,
	.metric = npci_op_metric,
};

/* ---- probe ------------------------------------------------------------------------- */

/* An address in a window that is mapped; NULL: there is none. */
static void __iomem *npci_at(struct npci_card *card, u64 off)
{
	const struct npci_window *w = card->gen->windows;
	u32 i;

	for (i = 0; w[i].size; i++)
		if (off >= w[i].base && off - w[i].base < w[i].size)
			return card->map[i] + (off - w[i].base);
	return NULL;
}

/* Only what is used of the register BAR is mapped: all of it would be 4 GiB. */
static int npci_map_windows(struct npci_card *card)
{
	const struct npci_window *w = card->gen->windows;
	struct pci_dev *pdev = card->pdev;
	u64 len = pci_resource_len(pdev, NPCI_REGISTERS);
	u32 i;

	for (i = 0; w[i].size; i++) {
		if (w[i].base + w[i].size > len) {
			dev_err(&pdev->dev, "BAR 0 is too short: %#llx\n", len);
			return -ENODEV;
		}
		card->map[i] = devm_ioremap(&pdev->dev,
					    pci_resource_start(pdev, NPCI_REGISTERS) + w[i].base,
					    w[i].size);
		if (!card->map[i])
			return -ENOMEM;
	}
	return 0;
}

/* Where everything is.  Windows hold all of it. */
static void npci_find(struct npci_card *card)
{
	const struct npci_gen *gen = card->gen;
	u32 i;

	card->misc = npci_at(card, gen->misc);
	for (i = 0; i < card->geo.nr_cores; i++) {
		card->core[i].window = npci_at(card, gen->core + i * card->geo.tpb_size);
		card->core[i].notify = npci_at(card, gen->core_nq(i));
	}
	for (i = 0; i < card->geo.nr_dma_engines; i++) {
		struct npci_place at = gen->place(i);

		card->engine[i].regs = npci_at(card, at.regs);
		card->engine[i].app = npci_at(card, at.app);
		card->engine[i].user = at.user ? npci_at(card, at.user) : NULL;
	}
}

static bool npci_claim(struct pci_dev *pdev, int bar)
{
	return devm_request_mem_region(&pdev->dev, pci_resource_start(pdev, bar),
				       pci_resource_len(pdev, bar), NPCI_NAME);
}

static int npci_map(struct npci_card *card)
{
	struct pci_dev *pdev = card->pdev;
	u64 last, len = pci_resource_len(pdev, NPCI_MEMORY);
	int err;

	if (!npci_claim(pdev, NPCI_REGISTERS) || (len && !npci_claim(pdev, NPCI_MEMORY))) {
		dev_err(&pdev->dev, "BAR 0 or BAR 4 is in use\n");
		return -EBUSY;
	}
	last = (card->geo.nr_hbms - 1) * card->gen->hbm_stride;
	if (len > last && len - last >= card->geo.hbm[0].size) {
		card->bar4 = pci_resource_start(pdev, NPCI_MEMORY);
		/* Mappings of programs are write-combining only then. */
		if (devm_arch_io_reserve_memtype_wc(&pdev->dev, card->bar4, len))
			dev_warn(&pdev->dev, "device memory is mapped without write-combining\n");
	} else {
		dev_warn(&pdev->dev, "BAR 4 is too short for device memory: %#llx\n", len);
		if (card->gen->needs_hbm_bar)
			return -ENODEV;
	}
	err = npci_map_windows(card);
	if (!err)
		npci_find(card);
	return err;
}

static void npci_geometry(struct npci_card *card)
{
	u64 limit = (u64)hbm_limit << 20;
	u32 i;

	card->geo = card->kind->geo;
	card->geo.revision = card->pdev->revision;
	card->geo.hbm_io = true;
	card->geo.isa_version = model_isa ? NEURON_ISA_VERSION : 0;
	for (i = 0; hbm_limit && i < card->geo.nr_hbms; i++)
		card->geo.hbm[i].size = min(card->geo.hbm[i].size, limit);
}

/* How many cards of the same kind there are: that says how they are linked. */
static u32 npci_count(struct npci_card *card)
{
	struct pci_dev *pdev = NULL;
	u32 n = 0;

	while ((pdev = pci_get_device(card->pdev->vendor, card->pdev->device, pdev)))
		n++;
	return n;
}

static int npci_add(struct npci_card *card, u32 id)
{
	struct pci_dev *pdev = card->pdev;
	u32 number = npci_device_number(card, id);
	struct neuron_device_desc desc = {
		.geometry = &card->geo,
		.ops = &npci_ops,
		.priv = card,
		.parent = &pdev->dev,
		.polled = true,
		.index = number,
		.serial = npci_serial(card),
		.location = {
			.known = true,
			.domain = pci_domain_nr(pdev->bus),
			.bus = pdev->bus->number,
			.slot = PCI_SLOT(pdev->devfn),
			.func = PCI_FUNC(pdev->devfn),
			.rid = id,
		},
	};
	struct neuron_device *nd;

	desc.nr_neighbours = card->kind->neighbours(number, npci_count(card), desc.neighbours);
	nd = neuron_device_add(&desc);
	if (IS_ERR(nd) && PTR_ERR(nd) == -EBUSY) {
		dev_warn(&pdev->dev, "number %u of routing id %u is taken\n", number, id);
		desc.index = -1;
		nd = neuron_device_add(&desc);
	}
	if (IS_ERR(nd))
		return PTR_ERR(nd);
	mutex_lock(&card->lock);
	card->nd = nd;
	card->added = true;
	mutex_unlock(&card->lock);
	/* It may have gone before there was something to be removed. */
	if (READ_ONCE(card->gone))
		schedule_work(&card->unplug);
	return 0;
}

static void npci_unplug(struct npci_card *card)
{
	mutex_lock(&card->lock);
	if (card->added)
		neuron_device_del(card->nd);
	card->added = false;
	mutex_unlock(&card->lock);
}

static void npci_unplug_work(struct work_struct *work)
{
	npci_unplug(container_of(work, struct npci_card, unplug));
}

static struct npci_card *npci_card_new(struct pci_dev *pdev, const struct npci_kind *kind)
{
	struct npci_card *card = devm_kzalloc(&pdev->dev, sizeof(*card), GFP_KERNEL);

	if (!card)
		return NULL;
	card->pdev = pdev;
	card->kind = kind;
	card->gen = kind->gen;
	mutex_init(&card->lock);
	INIT_WORK(&card->unplug, npci_unplug_work);
	npci_firmware_init(card);
	npci_mailbox_init(card);
	npci_nq_init(card);
	npci_clear_init(card);
	npci_udma_init(card);
	npci_geometry(card);
	pci_set_drvdata(pdev, card);
	return card;
}

/* From here on the card's registers can be read, and the work item may run. */
static int npci_start(struct npci_card *card)
{
	struct device *dev = &card->pdev->dev;
	u32 id;
	int err;

	err = npci_routing_id(card, &id) ?: npci_reset_device(card);
	if (err)
		return err;
	/* Queues of a former driver are off now. */
	pci_set_master(card->pdev);
	npci_engines_start(card, BIT(card->geo.nr_cores) - 1, true);
	err = READ_ONCE(card->gone) ? -ENODEV : npci_add(card, id);
	if (err) {
		npci_master_off(card);
		if (err != -ENODEV)
			dev_err(dev, "the device cannot be added: %d\n", err);
	}
	return err;
}

static int npci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	const struct npci_kind *kind = (const struct npci_kind *)id->driver_data;
	struct npci_card *card;
	int err;

	if (pdev->revision == NPCI_REV_EMULATOR || pdev->revision == NPCI_REV_SIMULATOR) {
		dev_err(&pdev->dev, "revision %u is not a card\n", pdev->revision);
		return -ENODEV;
	}
	card = npci_card_new(pdev, kind);
	if (!card)
		return -ENOMEM;
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	pci_clear_master(pdev);
	err = npci_map(card);
	if (err)
		return err;
	/* Host addresses are below the window's bit. */
	err = dma_set_mask_and_coherent(&pdev->dev, card->geo.host_window - 1);
	if (err) {
		dev_err(&pdev->dev, "no DMA with %u bits\n", fls64(card->geo.host_window) - 1);
		return err;
	}
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	/* An IOMMU leaves no hole in a range that crosses 4 GiB. */
	dma_set_seg_boundary(&pdev->dev, ULONG_MAX);
	err = npci_start(card);
	if (err) {
		WRITE_ONCE(card->stopping, true);
		npci_firmware_exit(card);
		cancel_work_sync(&card->unplug);
	}
	return err;
}

/* ---- the end ----------------------------------------------------------------------- */

static void npci_remove(struct pci_dev *pdev)
{
	struct npci_card *card = pci_get_drvdata(pdev);

	/* What waits for the card does not hold up its removal. */
	WRITE_ONCE(card->stopping, true);
	npci_unplug(card);
	npci_firmware_exit(card);
	cancel_work_sync(&card->unplug);
	npci_master_off(card);
	npci_clear_exit(card);
}

/* The next kernel's memory must not be written to. */
static void npci_shutdown(struct pci_dev *pdev)
{
	npci_master_off(pci_get_drvdata(pdev));
}

/*
 * Sleep would take the memory of all processes from the card, and nobody could tell them.  So
 * the machine does not sleep while this driver has a card.
 */
static int npci_sleep(struct device *dev)
{
	dev_warn(dev, "no sleep: the card would lose its memory; unload %s before\n", NPCI_NAME);
	return -EBUSY;
}

static const struct dev_pm_ops npci_pm_ops = {
	.prepare = npci_sleep,
};

/* Nothing is known of how a card comes back from an error of the bus. */
static pci_ers_result_t npci_error(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct npci_card *card = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	if (!xchg(&card->gone, true)) {
		dev_err(&pdev->dev, "the card is given up after an error of the bus\n");
		schedule_work(&card->unplug);
	}
	return PCI_ERS_RESULT_DISCONNECT;
}

/* A reset that somebody else asks for takes all that the card holds. */
static void npci_reset_prepare(struct pci_dev *pdev)
{
	struct npci_card *card = pci_get_drvdata(pdev);

	if (!xchg(&card->gone, true))
		dev_err(&pdev->dev, "the card is given up: it is reset\n");
	npci_unplug(card);
	/* Its registers are out of reach for a while. */
	npci_firmware_exit(card);
}

/* Whatever has come back of the registers of the bus: nobody waits for the card. */
static void npci_reset_done(struct pci_dev *pdev)
{
	npci_master_off(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers npci_errors = {
	.error_detected = npci_error,
	.reset_prepare = npci_reset_prepare,
	.reset_done = npci_reset_done,
};

static const struct pci_device_id npci_ids[] = {
	{ PCI_VDEVICE(AMAZON, 0x7164), .driver_data = (kernel_ulong_t)&npci_trn1 },
	{ PCI_VDEVICE(AMAZON, 0x7264), .driver_data = (kernel_ulong_t)&npci_inf2 },
	{ PCI_VDEVICE(AMAZON, 0x7364), .driver_data = (kernel_ulong_t)&npci_trn2 },
	{ PCI_VDEVICE(AMAZON, 0x7564), .driver_data = (kernel_ulong_t)&npci_trn3 },
	{ PCI_VDEVICE(AMAZON, 0x7565), .driver_data = (kernel_ulong_t)&npci_trn3 },
	{ }
};
MODULE_DEVICE_TABLE(pci, npci_ids);

static struct pci_driver npci_driver = {
	.name = NPCI_NAME,
	.id_table = npci_ids,
	.probe = npci_probe,
	.remove = npci_remove,
	.shutdown = npci_shutdown,
	.err_handler = &npci_errors,
	.driver.probe_type = PROBE_PREFER_ASYNCHRONOUS,
	.driver.pm = &npci_pm_ops,
};
module_pci_driver(npci_driver);

MODULE_AUTHOR("The neuron-driver developers");
MODULE_DESCRIPTION("AWS Inferentia2 and Trainium cards");
MODULE_LICENSE("GPL");
MODULE_VERSION(NEURON_VERSION);
NEURON_IMPORT_NS();
