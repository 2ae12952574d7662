# SPDX-License-Identifier: GPL-2.0-only
# udev is the test itself.
SRCS_discover = libneuron/src/discover.c libneuron/src/sys.c
CFLAGS_discover = -D_GNU_SOURCE
LIBS_discover = -Wl,--wrap=calloc,--wrap=realloc
