# SPDX-License-Identifier: GPL-2.0-only
SRCS_process = libneuron/src/device/process.c
CFLAGS_process = -D_GNU_SOURCE
