# SPDX-License-Identifier: GPL-2.0-only
# udev is the test itself.
SRCS_discover = libneuron/src/device/discover.c libneuron/src/device/sys.c
CFLAGS_discover = -D_GNU_SOURCE
LIBS_discover = -Wl,--wrap=calloc,--wrap=reallocarray
