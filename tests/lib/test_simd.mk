# SPDX-License-Identifier: GPL-2.0-only
SRCS_simd = kmod/emu/exec.c kmod/emu/matmul.c kmod/emu/fp.c
CFLAGS_simd = -O2 -ffp-contract=off
LIBS_simd = -lm $(SIMD_OBJS)
$(BUILD)/test_simd: $(SIMD_OBJS)
