/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices that are made at run time. */
#ifndef EMU_CONFIGFS_H
#define EMU_CONFIGFS_H

#if IS_REACHABLE(CONFIG_CONFIGFS_FS)
int emu_configfs_init(void);
void emu_configfs_exit(void);
#else
static inline int emu_configfs_init(void)
{
	return 0;
}

static inline void emu_configfs_exit(void)
{
}
#endif

#endif /* EMU_CONFIGFS_H */
