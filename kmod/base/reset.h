/* SPDX-License-Identifier: GPL-2.0-only */
/* Resets of cores, which take as long as the hardware takes: core/RESET.md. */
#ifndef NEURON_BASE_RESET_H
#define NEURON_BASE_RESET_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct neuron_core;
struct neuron_device;

/**
 * struct neuron_held - memory that the hardware of a core was told about
 * @node: in neuron_core.held
 * @bytes: of device and host memory
 * @release: gives it back; may sleep
 * @named: bytes of other memory that it keeps, but for what is in @seen, where it is added;
 *	   may sleep; NULL: none
 */
struct neuron_held {
	struct list_head node;
	u64 bytes;
	void (*release)(struct neuron_held *held);
	u64 (*named)(struct neuron_held *held, struct xarray *seen);
};

void neuron_core_hold(struct neuron_core *core, struct neuron_held *held);
u64 neuron_core_held(struct neuron_core *core);
bool neuron_core_reset_mark(struct neuron_core *core);
bool neuron_core_reset_request(struct neuron_core *core);
void neuron_core_reset_run(struct neuron_device *nd, unsigned long cores);
int neuron_core_reset_wait(struct neuron_core *core, u32 epoch);
void neuron_core_clear_mark(struct neuron_core *core);
void neuron_core_clear_later(struct neuron_core *core);
int neuron_core_clear_run(struct neuron_core *core);
void neuron_core_reset_init(struct neuron_device *nd, u32 core);
void neuron_cores_gone(struct neuron_device *nd);

#endif
