# SPDX-License-Identifier: GPL-2.0-only
SRCS_transfer = libneuron/src/isa/transfer.c libneuron/src/isa/span.c $(NEFF_SRCS) \
	kmod/emu/compute.c kmod/emu/fp.c
CFLAGS_transfer = -D_GNU_SOURCE -pthread -ffp-contract=off
LIBS_transfer = -larchive -ljansson -lz -lnettle -lm
