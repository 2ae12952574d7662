# SPDX-License-Identifier: GPL-2.0-only
SRCS_transfer = libneuron/src/transfer.c libneuron/src/ring.c libneuron/src/neff.c \
	libneuron/src/neff_archive.c libneuron/src/neff_json.c libneuron/src/neff_npy.c \
	kmod/emu/compute.c kmod/emu/fp.c
CFLAGS_transfer = -D_GNU_SOURCE -pthread -ffp-contract=off
LIBS_transfer = -larchive -ljansson -lz -lnettle -lm
