# SPDX-License-Identifier: GPL-2.0-only
SRCS_fork = $(LIB_SRCS)
CFLAGS_fork = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_fork = -larchive -ljansson -lz -lnettle -pthread -Wl,--wrap=free,--wrap=realloc,--wrap=reallocarray
