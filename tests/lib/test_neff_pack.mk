# SPDX-License-Identifier: GPL-2.0-only
# neuron-pack.c is included by the test.
SRCS_neff_pack = libneuron/src/memory/buffers.c libneuron/src/memory/skyline.c \
	libneuron/src/device/opts.c $(NEFF_SRCS)
CFLAGS_neff_pack = -D_GNU_SOURCE -ffp-contract=off -DNEURON_VERSION='"test"'
LIBS_neff_pack = $(EMU_OBJS) -larchive -ljansson -lz -lnettle -lm
