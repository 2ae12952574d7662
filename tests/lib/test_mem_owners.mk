# SPDX-License-Identifier: GPL-2.0-only
SRCS_mem_owners = libneuron/src/memory/names.c
CFLAGS_mem_owners = -D_GNU_SOURCE
LIBS_mem_owners = -ljansson
