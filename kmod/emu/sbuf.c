// SPDX-License-Identifier: GPL-2.0-only
/*
 * State buffers.  One costs host memory from its first write until its core is
 * reset.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "sbuf.h"

/**
 * emu_sbuf_has() - does a range of a core window lie in the state buffer?
 * @ed: device
 * @off: first byte
 * @len: bytes
 */
bool emu_sbuf_has(const struct emu_device *ed, u64 off, u64 len)
{
	off -= NEURON_ISA_SBUF_OFF;
	return len <= ed->geo.sbuf_size && off <= ed->geo.sbuf_size - len;
}

/**
 * emu_sbuf_free() - give a state buffer back
 * @ed: device
 * @sbuf: buffer, or NULL
 */
void emu_sbuf_free(struct emu_device *ed, u8 *sbuf)
{
	if (sbuf)
		emu_pages_uncharge(PFN_UP(ed->geo.sbuf_size));
	kvfree(sbuf);
}

/**
 * emu_sbuf_get() - state buffer of a core
 * @ed: device
 * @core: number of the core; emu_device.window_lock is held, or it is the work of the core
 * @alloc: make it if it is not there
 *
 * Return: the buffer; NULL: nothing was written yet, or no memory.
 */
u8 *emu_sbuf_get(struct emu_device *ed, u32 core, bool alloc)
{
	u8 *sbuf = READ_ONCE(ed->sbuf[core]), *old;

	if (sbuf || !alloc)
		return sbuf;
	if (!emu_pages_charge(PFN_UP(ed->geo.sbuf_size)))
		return NULL;
	/* Somebody who uses the device must not cost others their lives. */
	sbuf = kvzalloc(ed->geo.sbuf_size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!sbuf) {
		emu_pages_uncharge(PFN_UP(ed->geo.sbuf_size));
		return NULL;
	}
	old = cmpxchg(&ed->sbuf[core], NULL, sbuf);
	if (old) {
		emu_sbuf_free(ed, sbuf);
		return old;
	}
	return sbuf;
}
