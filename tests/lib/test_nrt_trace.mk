# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_trace = $(NRT_SRCS)
CFLAGS_nrt_trace = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_trace = -larchive -ljansson -lz -lnettle -pthread
