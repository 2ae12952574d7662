/* SPDX-License-Identifier: GPL-2.0-only */
/* The debugfs directory of a device. */
#ifndef EMU_DEBUGFS_H
#define EMU_DEBUGFS_H

#include "emu.h"

void emu_debugfs_add(struct emu_device *ed);
void emu_debugfs_del(struct emu_device *ed);
void emu_debugfs_init(void);
void emu_debugfs_exit(void);

#endif /* EMU_DEBUGFS_H */
