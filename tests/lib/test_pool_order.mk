# SPDX-License-Identifier: GPL-2.0-only
SRCS_pool_order = $(LIB_SRCS)
CFLAGS_pool_order = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_CHUNKS=32768
LIBS_pool_order = -larchive -ljansson -lz -lnettle -pthread -Wl,--wrap=calloc
