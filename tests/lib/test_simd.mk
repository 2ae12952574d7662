# SPDX-License-Identifier: GPL-2.0-only
# The code for vector registers, with the flags that Kbuild compiles it with.
SIMD_OBJS = $(if $(filter x86_64,$(shell uname -m)),$(patsubst %,$(BUILD)/simd_%.o,avx2 avx512))
SIMD_avx2 = -mavx2
SIMD_avx512 = -mavx512f -mavx512bw -mavx512vl -mavx512dq

$(BUILD)/simd_%.o: $(ROOT)/kmod/emu/simd_%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_all) -O2 -ffp-contract=off -fno-strict-aliasing $(SIMD_$*) -MMD -MP -c -o $@ $<

SRCS_simd = kmod/emu/exec.c kmod/emu/matmul.c kmod/emu/fp.c
CFLAGS_simd = -O2 -ffp-contract=off
LIBS_simd = -lm $(SIMD_OBJS)
$(BUILD)/test_simd: $(SIMD_OBJS)
