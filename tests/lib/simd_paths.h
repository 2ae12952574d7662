/* SPDX-License-Identifier: GPL-2.0-only */
/* The vector registers that this machine has, for tests of what computes on them. */
#ifndef SIMD_PATHS_H
#define SIMD_PATHS_H

#include "../../kmod/emu/simd.h"

struct simd_path {
	const char *name;
	struct emu_simd *simd;
};

/* The paths this machine can take; @paths has room for all. */
static inline unsigned int simd_paths(struct simd_path *paths)
{
	unsigned int n = 0;

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		paths[n++] = (struct simd_path){ "avx2", &emu_simd_avx2 };
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
		paths[n++] = (struct simd_path){ "avx512", &emu_simd_avx512 };
#else
	(void)paths;
#endif
	return n;
}

#define SIMD_MAX_PATHS	2

#endif /* SIMD_PATHS_H */
