# SPDX-License-Identifier: GPL-2.0-only
SRCS_buffers = libneuron/src/memory/buffers.c libneuron/src/memory/skyline.c \
	libneuron/src/device/opts.c
CFLAGS_buffers = -D_GNU_SOURCE
