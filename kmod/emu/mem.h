/* SPDX-License-Identifier: GPL-2.0-only */
/* State buffers; reads, writes and copies of any memory that a device address refers to. */
#ifndef EMU_MEM_H
#define EMU_MEM_H

#include "emu.h"

bool emu_sbuf_has(const struct emu_device *ed, u64 off, u64 len);
u8 *emu_sbuf_get(struct emu_device *ed, u32 core, bool alloc);
void emu_sbuf_free(struct emu_device *ed, u8 *sbuf);
int emu_pin(struct emu_device *ed, struct neuron_space *space, u64 addr, u64 len, bool write,
	    struct neuron_pin *pin);
int emu_pin_check(struct emu_device *ed, struct neuron_space *space,
		  const struct neuron_pin *pin, u64 off, u64 len, bool write);
int emu_mem_read(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
		 void *buf, u32 len);
int emu_mem_write(struct emu_device *ed, const struct neuron_pin *pin, u64 off,
		  const void *buf, u32 len);
int emu_mem_copy(struct emu_device *ed, const struct neuron_pin *dst, u64 dst_off,
		 const struct neuron_pin *src, u64 src_off, u32 len);
int emu_mem_post(struct emu_device *ed, const struct neuron_pin *pin,
		 const struct neuron_isa_notice *n);

#endif /* EMU_MEM_H */
