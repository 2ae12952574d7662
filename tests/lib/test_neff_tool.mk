# SPDX-License-Identifier: GPL-2.0-only
# neuron-neff.c is included by the test.
SRCS_neff_tool = $(NEFF_SRCS) libneuron/src/memory/buffers.c \
	libneuron/src/memory/skyline.c libneuron/src/device/opts.c
CFLAGS_neff_tool = -D_GNU_SOURCE -DNEURON_VERSION='"test"'
LIBS_neff_tool = -larchive -ljansson -lz -lnettle
