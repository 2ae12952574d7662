# SPDX-License-Identifier: GPL-2.0-only
SRCS_mem_replay = libneuron/src/memory/snapshot.c libneuron/src/memory/dump.c \
	libneuron/src/memory/names.c libneuron/src/memory/report.c libneuron/src/device/opts.c
CFLAGS_mem_replay = -D_GNU_SOURCE
LIBS_mem_replay = -ljansson
