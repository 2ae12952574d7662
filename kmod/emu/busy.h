/* SPDX-License-Identifier: GPL-2.0-only */
/* The share of time that a device is at work. */
#ifndef EMU_BUSY_H
#define EMU_BUSY_H

#include <linux/spinlock.h>

#include "../base/neuron_hw.h"

#define EMU_BUSY_SLOTS		64

/**
 * struct emu_busy - when a device was at work
 * @lock: guards the other fields
 * @active: engines at work
 * @now: the last time that was read
 * @since: time up to which work is accounted, nanoseconds
 * @first: first whole second of the device
 * @sec: second that an entry is about
 * @busy: nanoseconds of work in that second
 */
struct emu_busy {
	spinlock_t lock;	/* see above */
	u32 active;
	u64 now;
	u64 since;
	u64 first;
	u64 sec[EMU_BUSY_SLOTS];
	u64 busy[EMU_BUSY_SLOTS];
};

void emu_busy_init(struct emu_busy *b);
void emu_busy_begin(struct emu_busy *b);
void emu_busy_end(struct emu_busy *b);
int emu_busy_read(struct emu_busy *b, struct neuron_power *p);

#endif /* EMU_BUSY_H */
