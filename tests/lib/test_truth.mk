# SPDX-License-Identifier: GPL-2.0-only
SRCS_truth = $(LIB_SRCS)
CFLAGS_truth = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_BUDDY
LIBS_truth = -larchive -ljansson -lz -lnettle -pthread
