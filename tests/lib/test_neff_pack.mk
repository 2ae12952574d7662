# SPDX-License-Identifier: GPL-2.0-only
# neuron-pack.c is included by the test.
SRCS_neff_pack = libneuron/src/memory/buffers.c libneuron/src/memory/skyline.c \
	libneuron/src/device/opts.c $(NEFF_SRCS) kmod/emu/exec.c kmod/emu/matmul.c kmod/emu/fp.c
CFLAGS_neff_pack = -D_GNU_SOURCE -ffp-contract=off
LIBS_neff_pack = -larchive -ljansson -lz -lnettle -lm
