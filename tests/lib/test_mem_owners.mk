# SPDX-License-Identifier: GPL-2.0-only
CFLAGS_mem_owners = -D_GNU_SOURCE
