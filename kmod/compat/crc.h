/* SPDX-License-Identifier: GPL-2.0-only */
/* CRC-32C, without a module of its own. */
#ifndef NEURON_COMPAT_CRC_H
#define NEURON_COMPAT_CRC_H

#include <linux/crc32.h>
#include <linux/version.h>

/* 6.15: crc32c() is what __crc32c_le() was. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define neuron_crc32c(p, n)	__crc32c_le(~0, (const u8 *)(p), n)
#else
#define neuron_crc32c(p, n)	crc32c(~0, p, n)
#endif

#endif
