# SPDX-License-Identifier: GPL-2.0-only
SRCS_profile = $(NRT_SRCS)
CFLAGS_profile = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
OWN_profile = -DPROFILE_MAX_ITEMS=2048 -DPROFILE_MAX_RUNS=32
OWN_FILES_profile = libneuron/src/profile/record.c
LIBS_profile = -larchive -ljansson -lz -lnettle -pthread
