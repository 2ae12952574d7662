# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_api = $(NRT_SRCS)
CFLAGS_nrt_api = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_api = -larchive -ljansson -lz -lnettle -pthread
