# SPDX-License-Identifier: GPL-2.0-only
CFLAGS_exec = -O2 -ffp-contract=off
LIBS_exec = $(EMU_OBJS) $(SIMD_OBJS) -lm
