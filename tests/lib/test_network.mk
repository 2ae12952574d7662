# SPDX-License-Identifier: GPL-2.0-only
SRCS_network = $(LIB_SRCS)
CFLAGS_network = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_BUDDY
LIBS_network = -ldl -larchive -ljansson -lz -lnettle -pthread
