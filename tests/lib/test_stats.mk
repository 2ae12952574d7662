# SPDX-License-Identifier: GPL-2.0-only
SRCS_stats = $(NRT_SRCS)
CFLAGS_stats = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_stats = -larchive -ljansson -lz -lnettle -pthread
