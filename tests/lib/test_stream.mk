# SPDX-License-Identifier: GPL-2.0-only
# neuron-pack.c is included by the test.
SRCS_stream = $(LIB_SRCS)
CFLAGS_stream = -D_GNU_SOURCE -pthread -O2 -ffp-contract=off -DFAKE_EXEC -DNEURON_VERSION='"test"'
LIBS_stream = $(EMU_OBJS) -larchive -ljansson -lz -lnettle -lm -pthread
