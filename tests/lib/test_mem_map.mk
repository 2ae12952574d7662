# SPDX-License-Identifier: GPL-2.0-only
SRCS_mem_map = libneuron/src/memory/names.c libneuron/src/memory/report.c libneuron/src/device/opts.c
CFLAGS_mem_map = -D_GNU_SOURCE
LIBS_mem_map = -ljansson
