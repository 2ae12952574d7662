// SPDX-License-Identifier: GPL-2.0-only
/* neuron_emu: Neuron devices in software, for machines without one.  README.md has examples. */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "../compat/compat.h"
#include "arithmetic.h"
#include "configfs.h"
#include "debugfs.h"
#include "device.h"
#include "presets.h"
#include "shuffle.h"

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

static unsigned int reset_msec;
module_param(reset_msec, uint, 0444);
MODULE_PARM_DESC(reset_msec,
		 "ms after which the reset of a core has failed (default 0: as for a card)");

static unsigned int host_memory;
module_param(host_memory, uint, 0444);
MODULE_PARM_DESC(host_memory,
		 "MiB of host memory that all device memories may use (default 0: half of it)");

static char *arithmetic = "auto";
module_param(arithmetic, charp, 0444);
MODULE_PARM_DESC(arithmetic,
		 "how cores compute: auto (default, the fastest), integers, avx2 or avx512; same results");

module_param_named(shuffle, emu_shuffle_seed, uint, 0644);
MODULE_PARM_DESC(shuffle,
		 "seed of the order of engines, queues and their work, 0 (default): as they come");

static bool card_like;
module_param(card_like, bool, 0444);
MODULE_PARM_DESC(card_like,
		 "no interrupts, dirty device memory, host memory by DMA address, like a card (default 0)");

static bool checks = true;
module_param(checks, bool, 0444);
MODULE_PARM_DESC(checks, "the device checks accesses; 0: the driver has to (default 1)");

/* Not the device's: what libraries may make of programs that it cannot run. */
static const char * const emu_pretend_names[] = { "none", "zero", "copy", "hash", NULL };
char *emu_pretend = "none";
module_param_named(pretend, emu_pretend, charp, 0444);
MODULE_PARM_DESC(pretend,
		 "what libraries pretend that programs computed which this device cannot run: none (default), zero, copy or hash");

static struct emu_device *emu_devices[EMU_MAX_DEVICES];

/* What the parameters say, for all devices; @preset: an instance, or NULL. */
static int __init emu_parameters(struct emu_config *cfg, const struct emu_preset **preset)
{
	int c = sysfs_match_string(emu_completion_names, completion);
	const char *kind = arch;

	if (c < 0) {
		pr_err("neuron_emu: completion=%s is not one of worker, inline, timer\n",
		       completion);
		return -EINVAL;
	}
	if (sysfs_match_string(emu_pretend_names, emu_pretend) < 0) {
		pr_err("neuron_emu: pretend=%s is not one of none, zero, copy, hash\n",
		       emu_pretend);
		return -EINVAL;
	}
	*preset = NULL;
	if (instance) {
		*preset = emu_find_preset(instance);
		if (!*preset) {
			pr_err("neuron_emu: instance=%s is not known\n", instance);
			return -EINVAL;
		}
		kind = (*preset)->arch;
		nr_devices = (*preset)->nr_devices;
	}
	*cfg = (struct emu_config){
		.arch = emu_find_arch(kind),
		.hbm_size = (u64)hbm_size << 20,
		.reset_msec = reset_msec,
		.completion = c,
		.completion_nsec = completion_nsec,
		.card_like = card_like,
		.checks = checks,
	};
	if (!cfg->arch) {
		pr_err("neuron_emu: arch=%s is not one of inf1, trn1, inf2, trn2, trn3\n", arch);
		return -EINVAL;
	}
	if (nr_devices > EMU_MAX_DEVICES) {
		pr_err("neuron_emu: nr_devices=%u is not in 0..%u\n", nr_devices,
		       EMU_MAX_DEVICES);
		return -EINVAL;
	}
	if (!emu_hbm_size_valid(cfg->arch, hbm_size)) {
		pr_err("neuron_emu: hbm_size=%u is not in %u..%llu MiB\n", hbm_size,
		       EMU_MIN_HBM_MIB, cfg->arch->geo.hbm[0].size >> 20);
		return -EINVAL;
	}
	return 0;
}

static int __init emu_init(void)
{
	const struct emu_preset *preset;
	struct emu_config all;
	int err = emu_parameters(&all, &preset);
	u32 i;

	if (err)
		return err;
	err = emu_arithmetic_choose(arithmetic);
	if (err) {
		pr_err("neuron_emu: arithmetic=%s: not known, or not on this processor\n",
		       arithmetic);
		return err;
	}
	emu_max_pages = host_memory ? (unsigned long)host_memory << (20 - PAGE_SHIFT) :
				      totalram_pages() / 2;
	emu_debugfs_init();
	for (i = 0; i < nr_devices && !err; i++) {
		struct emu_config cfg = all;
		struct emu_device *ed;

		cfg.serial = EMU_SERIAL(i);
		cfg.nr_neighbours = emu_neighbours(cfg.arch, i, nr_devices, cfg.neighbours);
		/* neighbours refer to devices by number */
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
	 * configfs comes last, so that devices made there take no number from the others,
	 * and none exists if the module fails to load.
	 */
	if (!err || emu_devices[0])
		err = emu_configfs_init();
	/* The first devices may be open already, so they stay. */
	if (!err || emu_devices[0])
		return 0;
	emu_debugfs_exit();
	return err;
}
module_init(emu_init);

static void __exit emu_exit(void)
{
	u32 i;

	emu_configfs_exit();
	for (i = 0; i < EMU_MAX_DEVICES; i++)
		if (emu_devices[i])
			emu_device_free(emu_devices[i]);
	/* every page of every device memory must have been given back */
	WARN_ON(atomic_long_read(&emu_total_pages));
	emu_debugfs_exit();
}
module_exit(emu_exit);

MODULE_AUTHOR("The neuron-driver developers");
MODULE_DESCRIPTION("AWS Neuron device in software");
MODULE_LICENSE("GPL");
MODULE_VERSION(NEURON_VERSION);
NEURON_IMPORT_NS();
