// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of a software device.  README.md says what each of them does; this file decides
 * when.
 */
#include <linux/atomic.h>

#include "faults.h"

static const char * const emu_fault_names[EMU_NR_FAULTS] = {
	[EMU_FAULT_DMA_ABORT] = "dma_abort",
	[EMU_FAULT_LOST_NOTICE] = "lost_notification",
	[EMU_FAULT_HANG] = "hang",
	[EMU_FAULT_RESET] = "reset",
	[EMU_FAULT_RESET_SLOW] = "reset_slow",
	[EMU_FAULT_MEM_CORRECTED] = "mem_ecc_corrected",
	[EMU_FAULT_MEM_UNCORRECTED] = "mem_ecc_uncorrected",
	[EMU_FAULT_MEM_REPAIRABLE] = "mem_ecc_repairable",
	[EMU_FAULT_SRAM_CORRECTED] = "sram_ecc_corrected",
	[EMU_FAULT_SRAM_UNCORRECTED] = "sram_ecc_uncorrected",
};

/**
 * emu_copy_faults() - may a descriptor of a copy meet a fault?
 * @f: faults of the device
 */
bool emu_copy_faults(const struct emu_faults *f)
{
	return neuron_fault_armed(&f->fault[EMU_FAULT_DMA_ABORT]) ||
	       neuron_fault_armed(&f->fault[EMU_FAULT_MEM_CORRECTED]) ||
	       neuron_fault_armed(&f->fault[EMU_FAULT_MEM_UNCORRECTED]) ||
	       neuron_fault_armed(&f->fault[EMU_FAULT_MEM_REPAIRABLE]);
}

/**
 * emu_ecc() - does an access meet a flipped bit?
 * @f: faults of the device
 * @kind: one of the ECC faults
 * @nd: device
 * @core: core that the access is for
 *
 * A flipped bit is counted and reported.
 *
 * Return: true if it does.
 */
bool emu_ecc(struct emu_faults *f, enum emu_fault_kind kind, struct neuron_device *nd, u32 core)
{
	const enum neuron_event event = NEURON_EVENT_MEM_CORRECTED + kind - EMU_FAULT_MEM_CORRECTED;

	if (!emu_fault(f, kind))
		return false;
	atomic64_inc(&f->ecc[event]);
	neuron_device_report(nd, event, core);
	return true;
}

/**
 * emu_mem_ecc() - does a read by DMA meet a flipped bit of device memory?
 * @f: faults of the device
 * @nd: device
 * @core: core that the access is for
 * @from: memory that is read
 *
 * Return: 0, -EBADMSG uncorrectable, -EUCLEAN uncorrectable, in memory that can be
 *	repaired.
 */
int emu_mem_ecc(struct emu_faults *f, struct neuron_device *nd, u32 core,
		const struct neuron_pin *from)
{
	if (from->kind != NEURON_TARGET_HBM)
		return 0;
	emu_ecc(f, EMU_FAULT_MEM_CORRECTED, nd, core);
	if (emu_ecc(f, EMU_FAULT_MEM_UNCORRECTED, nd, core))
		return -EBADMSG;
	return emu_ecc(f, EMU_FAULT_MEM_REPAIRABLE, nd, core) ? -EUCLEAN : 0;
}

/**
 * emu_faults_add() - make the files of all faults
 * @f: faults of the device, zeroed
 * @dir: its directory in debugfs
 */
void emu_faults_add(struct emu_faults *f, struct dentry *dir)
{
	u32 i;

	for (i = 0; i < EMU_NR_FAULTS; i++)
		neuron_fault_add(&f->fault[i], emu_fault_names[i], dir);
}
