/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel functions that the arithmetic and instruction code of the software device
 * needs. fp.c and exec.c include nothing else, so the very same files build into
 * neuron_emu.ko and into the host unit tests.
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

#ifdef CONFIG_X86_64
#include <asm/fpu/api.h>
#endif

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
#define __aligned(n)	__attribute__((__aligned__(n)))
#define fallthrough	__attribute__((__fallthrough__))
#define OPTIMIZER_HIDE_VAR(v)	__asm__("" : "=r"(v) : "0"(v))

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define min_t(t, a, b)	((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b)	((t)(a) > (t)(b) ? (t)(a) : (t)(b))

static inline u64 div64_u64_rem(u64 n, u64 d, u64 *rem)
{
	*rem = n % d;
	return n / d;
}

static inline u64 div_u64_rem(u64 n, u32 d, u32 *rem)
{
	*rem = (u32)(n % d);
	return n / d;
}

#endif /* __KERNEL__ */

/*
 * Around code that uses the vector registers.  Between the two nobody else gets the
 * processor, and nothing may sleep or fault.
 */
static inline void emu_fpu_begin(void)
{
#if defined(__KERNEL__) && defined(CONFIG_X86_64)
	kernel_fpu_begin();
#endif
}

static inline void emu_fpu_end(void)
{
#if defined(__KERNEL__) && defined(CONFIG_X86_64)
	kernel_fpu_end();
#endif
}

/*
 * emu_get16(), emu_put16() and so on: accesses to the state buffer, little endian, of any
 * alignment.  memcpy of a constant size is one load or store on every machine this runs on.
 */
#define EMU_ACCESS(bits)							\
static __always_inline u##bits emu_get##bits(const void *p)			\
{										\
	__le##bits v;								\
										\
	memcpy(&v, p, sizeof(v));						\
	return le##bits##_to_cpu(v);						\
}										\
										\
static __always_inline void emu_put##bits(void *p, u##bits x)			\
{										\
	__le##bits v = cpu_to_le##bits(x);					\
										\
	memcpy(p, &v, sizeof(v));						\
}

EMU_ACCESS(16)
EMU_ACCESS(32)
EMU_ACCESS(64)

#endif /* EMU_SHIM_H */
