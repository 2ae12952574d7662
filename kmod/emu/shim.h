/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the arithmetic and instruction code of the software device needs from
 * its surroundings.  fp.c and exec.c include nothing else, so the very same
 * files build into neuron_emu.ko and into the host unit tests.
 */
#ifndef EMU_SHIM_H
#define EMU_SHIM_H

#ifdef __KERNEL__

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include <asm/byteorder.h>

#else /* host */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#define S32_MIN		INT32_MIN
#define S32_MAX		INT32_MAX
#define U32_MAX		UINT32_MAX
#define S64_MIN		INT64_MIN
#define S64_MAX		INT64_MAX
#define U64_MAX		UINT64_MAX

#define le16_to_cpu(x)	le16toh((uint16_t)(x))
#define le32_to_cpu(x)	le32toh((uint32_t)(x))
#define le64_to_cpu(x)	le64toh((uint64_t)(x))
#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)

#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif
#ifndef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#endif
#ifndef noinline
#define noinline	__attribute__((__noinline__))
#endif
#define fallthrough	__attribute__((__fallthrough__))

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define min_t(t, a, b)	((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b)	((t)(a) > (t)(b) ? (t)(a) : (t)(b))

static inline u64 div64_u64_rem(u64 n, u64 d, u64 *rem)
{
	*rem = n % d;
	return n / d;
}

#endif /* __KERNEL__ */

/*
 * State buffer accesses: little endian, any alignment.  memcpy of a constant
 * size is one load or store on every machine this runs on.
 */
static __always_inline u16 emu_get16(const void *p)
{
	__le16 v;

	memcpy(&v, p, sizeof(v));
	return le16_to_cpu(v);
}

static __always_inline u32 emu_get32(const void *p)
{
	__le32 v;

	memcpy(&v, p, sizeof(v));
	return le32_to_cpu(v);
}

static __always_inline u64 emu_get64(const void *p)
{
	__le64 v;

	memcpy(&v, p, sizeof(v));
	return le64_to_cpu(v);
}

static __always_inline void emu_put16(void *p, u16 x)
{
	__le16 v = cpu_to_le16(x);

	memcpy(p, &v, sizeof(v));
}

static __always_inline void emu_put32(void *p, u32 x)
{
	__le32 v = cpu_to_le32(x);

	memcpy(p, &v, sizeof(v));
}

static __always_inline void emu_put64(void *p, u64 x)
{
	__le64 v = cpu_to_le64(x);

	memcpy(p, &v, sizeof(v));
}

#endif /* EMU_SHIM_H */
