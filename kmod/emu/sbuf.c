// SPDX-License-Identifier: GPL-2.0-only
/*
 * State buffers.  One costs host memory from its first write until its core is
 * reset.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "emu.h"

/**
 * emu_core_is_sbuf() - does a range of a core window lie in the state buffer?
 * @ed: device
 * @off: first byte
 * @len: bytes
 */
bool emu_core_is_sbuf(struct emu_device *ed, u64 off, u64 len)
{
	off -= NEURON_ISA_SBUF_OFF;
	return len <= ed->geo.sbuf_size && off <= ed->geo.sbuf_size - len;
}

void emu_sbuf_free(struct emu_core *core, u8 *sbuf)
{
	if (sbuf)
		emu_pages_uncharge(PFN_UP(core->lim.sbuf_size));
	kvfree(sbuf);
}

/**
 * emu_core_sbuf() - state buffer of a core
 * @core: core; emu_device.window is held, or it is the work of the core
 * @alloc: make it if it is not there
 *
 * Return: the buffer; NULL: nothing was written yet, or no memory.
 */
u8 *emu_core_sbuf(struct emu_core *core, bool alloc)
{
	u8 *sbuf = READ_ONCE(core->sbuf), *old;

	if (sbuf || !alloc)
		return sbuf;
	if (!emu_pages_charge(PFN_UP(core->lim.sbuf_size)))
		return NULL;
	/* Somebody who uses the device must not cost others their lives. */
	sbuf = kvzalloc(core->lim.sbuf_size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!sbuf) {
		emu_pages_uncharge(PFN_UP(core->lim.sbuf_size));
		return NULL;
	}
	old = cmpxchg(&core->sbuf, NULL, sbuf);
	if (old) {
		emu_sbuf_free(core, sbuf);
		return old;
	}
	return sbuf;
}
