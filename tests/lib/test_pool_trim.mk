# SPDX-License-Identifier: GPL-2.0-only
SRCS_pool_trim = $(LIB_SRCS)
CFLAGS_pool_trim = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_CHUNKS=32768 -DFAKE_BUDDY
LIBS_pool_trim = -larchive -ljansson -lz -lnettle -pthread
