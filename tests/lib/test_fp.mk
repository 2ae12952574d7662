# SPDX-License-Identifier: GPL-2.0-only
SRCS_fp = kmod/emu/fp.c
CFLAGS_fp = -O2 -ffp-contract=off
LIBS_fp = -lm
