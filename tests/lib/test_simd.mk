# SPDX-License-Identifier: GPL-2.0-only
CFLAGS_simd = -O2 -ffp-contract=off
LIBS_simd = $(EMU_OBJS) $(SIMD_OBJS) -lm
