# SPDX-License-Identifier: GPL-2.0-only
# neuron-pack.c is included by the test.
SRCS_neff_pack = libneuron/src/neff.c libneuron/src/neff_archive.c libneuron/src/neff_json.c \
	libneuron/src/neff_npy.c libneuron/src/neff_write.c kmod/emu/exec.c kmod/emu/fp.c
CFLAGS_neff_pack = -D_GNU_SOURCE -ffp-contract=off
LIBS_neff_pack = -larchive -ljansson -lz -lnettle -lm
