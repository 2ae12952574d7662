# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_env = $(NRT_SRCS)
CFLAGS_nrt_env = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_env = -larchive -ljansson -lz -lnettle -pthread
