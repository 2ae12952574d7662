# SPDX-License-Identifier: GPL-2.0-only
SRCS_compute = kmod/emu/compute.c kmod/emu/fp.c
CFLAGS_compute = -O2 -ffp-contract=off
LIBS_compute = -lm
