# SPDX-License-Identifier: GPL-2.0-only
SRCS_lib_bulk = $(LIB_SRCS)
CFLAGS_lib_bulk = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_lib_bulk = -larchive -ljansson -lz -lnettle -pthread
