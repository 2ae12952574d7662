/* SPDX-License-Identifier: GPL-2.0-only */
/* Long copies, which the processors of the host share. */
#ifndef EMU_SHARE_H
#define EMU_SHARE_H

#include "emu.h"

/* More processors than this gain little: memory is what limits a copy. */
#define EMU_SHARE_HELPERS	3

struct emu_share;

/**
 * struct emu_sharer - a work item that helps with a copy
 * @work: queued for the time of a copy only
 * @share: the copy
 */
struct emu_sharer {
	struct work_struct work;
	struct emu_share *share;
};

/**
 * struct emu_share - a copy that is under way
 * @ed: device
 * @to: destination
 * @from: source
 * @len: bytes
 * @next: piece that the next one takes
 * @err: a piece was not copied (READ_ONCE)
 * @helper: those that share it with the caller
 */
struct emu_share {
	struct emu_device *ed;
	const struct neuron_pin *to;
	const struct neuron_pin *from;
	u32 len;
	atomic_t next;
	int err;
	struct emu_sharer helper[EMU_SHARE_HELPERS];
};

void emu_share_init(struct emu_share *share, struct emu_device *ed);
int emu_share_copy(struct emu_share *share, const struct neuron_pin *to,
		   const struct neuron_pin *from, u32 len);

#endif /* EMU_SHARE_H */
