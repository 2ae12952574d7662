# SPDX-License-Identifier: GPL-2.0-only
SRCS_lib_device = $(LIB_SRCS)
CFLAGS_lib_device = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_lib_device = -larchive -ljansson -lz -lnettle -pthread
