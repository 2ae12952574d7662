/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices: creation and configuration. */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

#include "arch.h"
#include "emu.h"

#define EMU_MAX_DEVICES		64	/* uapi/FACTS.md 1 */
/* Default serial numbers: "EMU", then a number. */
#define EMU_SERIAL(i)		(0x454d550000000000ULL | (i))

/**
 * struct emu_config - configuration of a device
 * @arch: kind of device
 * @hbm_size: bytes of each device memory, 0 = the real size
 * @reset_msec: limit of a reset, 0 = that of a card of the kind
 * @index: number, -1 = the first free one
 * @serial: serial number
 * @location: where it is plugged in, if known
 * @nr_neighbours: entries of @neighbours
 * @neighbours: numbers of the devices that it is linked to
 * @completion: when DMA work is done
 * @completion_nsec: latency of EMU_COMPLETE_TIMER
 * @card_like: it does less than a software device can, like a card; see README.md
 * @checks: neuron.ko relies on it to check accesses
 */
struct emu_config {
	const struct emu_arch *arch;
	u64 hbm_size;
	u32 reset_msec;
	int index;
	u64 serial;
	struct neuron_location location;
	u32 nr_neighbours;
	u32 neighbours[NEURON_HW_MAX_NEIGHBOURS];
	enum emu_completion completion;
	u64 completion_nsec;
	bool card_like;
	bool checks;
};

/* Module parameter. */
extern char *emu_pretend;

struct emu_device *emu_device_new(const struct emu_config *cfg);
void emu_device_free(struct emu_device *ed);

#endif /* EMU_DEVICE_H */
