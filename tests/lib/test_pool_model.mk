# SPDX-License-Identifier: GPL-2.0-only
SRCS_pool_model = $(LIB_SRCS)
CFLAGS_pool_model = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_CHUNKS=32768
LIBS_pool_model = -larchive -ljansson -lz -lnettle -pthread
