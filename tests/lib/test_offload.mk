# SPDX-License-Identifier: GPL-2.0-only
SRCS_offload = $(LIB_SRCS)
CFLAGS_offload = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_offload = -larchive -ljansson -lz -lnettle -pthread -Wl,--wrap=malloc,--wrap=calloc
