# SPDX-License-Identifier: GPL-2.0-only
SRCS_report = $(NRT_SRCS)
CFLAGS_report = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_report = -larchive -ljansson -lz -lnettle -pthread -Wl,--wrap=strcmp
