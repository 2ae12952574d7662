/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of a file whose results are to be those of the device bit for bit: each operation rounds once.
 * To be included after all other headers.
 */
#ifndef EXACT_FLOAT_H
#define EXACT_FLOAT_H

#ifdef __FAST_MATH__
#error "bit for bit needs ordinary floating point"
#endif

/* No fused multiply-add, whatever the command line says. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#endif
