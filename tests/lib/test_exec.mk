# SPDX-License-Identifier: GPL-2.0-only
SRCS_exec = kmod/emu/exec.c kmod/emu/matmul.c kmod/emu/fp.c
CFLAGS_exec = -O2 -ffp-contract=off
LIBS_exec = -lm
LIBS_exec += $(SIMD_OBJS)
$(BUILD)/test_exec: $(SIMD_OBJS)
