# SPDX-License-Identifier: GPL-2.0-only
SRCS_exec = kmod/emu/exec.c kmod/emu/fp.c
CFLAGS_exec = -O2 -ffp-contract=off
LIBS_exec = -lm
