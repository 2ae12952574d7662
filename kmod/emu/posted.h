/* SPDX-License-Identifier: GPL-2.0-only */
/* Register writes on their way to a device that is like a card. */
#ifndef EMU_POSTED_H
#define EMU_POSTED_H

#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "../base/neuron_hw.h"

struct emu_device;

/**
 * struct emu_posted - the last register write of a processor, until it takes effect
 * @ed: device
 * @lock: guards @pending and what follows it, and is held while the write takes effect, so that
 *	  nothing overtakes it
 * @work: it takes effect at last
 * @delay: jiffies until then
 * @pending: there is one
 * @block: block of registers, NEURON_BLOCK_CORE or NEURON_BLOCK_CORE_NQ
 * @index: core
 * @off: offset
 * @val: value
 */
struct emu_posted {
	struct emu_device *ed;
	struct mutex lock;	/* see above */
	struct delayed_work work;
	unsigned long delay;
	bool pending;
	enum neuron_block block;
	u32 index;
	u32 off;
	u32 val;
};

int emu_posted_new(struct emu_device *ed);
void emu_posted_free(struct emu_device *ed);
int emu_posted_write(struct emu_device *ed, enum neuron_block block, u32 index, u32 off, u32 val);
void emu_posted_land(struct emu_device *ed);

#endif /* EMU_POSTED_H */
