/* SPDX-License-Identifier: GPL-2.0-only */
/* State buffers of the cores. */
#ifndef EMU_SBUF_H
#define EMU_SBUF_H

#include "emu.h"

bool emu_sbuf_has(const struct emu_device *ed, u64 off, u64 len);
u8 *emu_sbuf_get(struct emu_device *ed, u32 core, bool alloc);
void emu_sbuf_free(struct emu_device *ed, u8 *sbuf);

#endif /* EMU_SBUF_H */
