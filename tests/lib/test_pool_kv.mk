# SPDX-License-Identifier: GPL-2.0-only
# A device as large as that of the example that users know.
SRCS_pool_kv = $(LIB_SRCS)
CFLAGS_pool_kv = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_HBM_SIZE='(84934656000ull)'
LIBS_pool_kv = -larchive -ljansson -lz -lnettle -pthread
