# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_profile = $(NRT_SRCS)
CFLAGS_nrt_profile = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_profile = -larchive -ljansson -lz -lnettle -pthread
