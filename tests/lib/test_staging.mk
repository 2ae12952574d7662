# SPDX-License-Identifier: GPL-2.0-only
SRCS_staging = $(LIB_SRCS)
OWN_staging = -include counted.h
OWN_FILES_staging = $(LIB_SRCS)
CFLAGS_staging = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_staging = -larchive -ljansson -lz -lnettle -pthread
