// SPDX-License-Identifier: GPL-2.0-only
/* Arithmetic of the software device with AVX2.  See simd.h. */
#include "simd.h"

#define SIMD		emu_simd_avx2
#define SIMD_NAME	"avx2"
#define ANY_REGISTER	"x"
#define LANES		8
#define NR_KERNEL_ROWS	4u
#define KERNEL_ROWS(M, x)	M(0, x) M(1, x) M(2, x) M(3, x)
#define LINE_VECTORS(M, x)	M(0, x) M(1, x) M(2, x) M(3, x) M(4, x) M(5, x) M(6, x) M(7, x)

typedef u32 madd_vector __attribute__((vector_size(4 * LANES)));

static inline __attribute__((__always_inline__)) madd_vector madd16(madd_vector a, madd_vector b)
{
	madd_vector sum;

	asm("vpmaddwd %2, %1, %0" : "=" ANY_REGISTER (sum) : ANY_REGISTER (a), ANY_REGISTER (b));
	return sum;
}

#include "simd_code.h"
