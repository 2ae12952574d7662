# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_offload = $(NRT_SRCS)
CFLAGS_nrt_offload = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_offload = -larchive -ljansson -lz -lnettle -pthread
