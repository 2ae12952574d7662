# SPDX-License-Identifier: GPL-2.0-only
SRCS_lib_group = $(LIB_SRCS)
CFLAGS_lib_group = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_lib_group = -Wl,--wrap=inflateInit2_,--wrap=strcmp,--wrap=make_copies -ldl -larchive -ljansson -lz -lnettle -pthread
