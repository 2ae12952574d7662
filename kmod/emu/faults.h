/* SPDX-License-Identifier: GPL-2.0-only */
/* Faults of a device, on demand: injected through debugfs. */
#ifndef EMU_FAULTS_H
#define EMU_FAULTS_H

#include "../base/fault.h"
#include "../base/neuron_hw.h"

/* Faults that can be injected. faults.c has their names. */
enum emu_fault_kind {
	EMU_FAULT_DMA_ABORT,
	EMU_FAULT_LOST_NOTICE,
	EMU_FAULT_HANG,
	EMU_FAULT_RESET,
	EMU_FAULT_RESET_SLOW,
	EMU_FAULT_MEM_CORRECTED,	/* this and the rest as in enum neuron_event */
	EMU_FAULT_MEM_UNCORRECTED,
	EMU_FAULT_MEM_REPAIRABLE,
	EMU_FAULT_SRAM_CORRECTED,
	EMU_FAULT_SRAM_UNCORRECTED,
	EMU_NR_FAULTS
};

/**
 * struct emu_faults - the faults of a device
 * @fault: pending faults
 * @reset_slow_msec: how long a slow reset takes
 * @ecc: ECC events so far, by enum neuron_event
 */
struct emu_faults {
	struct neuron_fault fault[EMU_NR_FAULTS];
	u32 reset_slow_msec;
	atomic64_t ecc[NEURON_NR_ECC];
};

static inline bool emu_fault(struct emu_faults *f, enum emu_fault_kind kind)
{
	return neuron_fault_hit(&f->fault[kind]);
}

bool emu_copy_faults(const struct emu_faults *f);
bool emu_ecc(struct emu_faults *f, enum emu_fault_kind kind, struct neuron_device *nd, u32 core);
int emu_mem_ecc(struct emu_faults *f, struct neuron_device *nd, u32 core,
		const struct neuron_pin *from);
void emu_faults_add(struct emu_faults *f, struct dentry *dir);

#endif /* EMU_FAULTS_H */
