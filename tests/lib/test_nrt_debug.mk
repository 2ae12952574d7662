# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_debug = $(NRT_SRCS)
CFLAGS_nrt_debug = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_debug = -larchive -ljansson -lz -lnettle -pthread
