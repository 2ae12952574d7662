# SPDX-License-Identifier: GPL-2.0-only
# neuron-neff.c is included by the test.
SRCS_neff_tool = libneuron/src/neff.c libneuron/src/neff_archive.c libneuron/src/neff_json.c \
	libneuron/src/neff_npy.c libneuron/src/neff_write.c
CFLAGS_neff_tool = -D_GNU_SOURCE
LIBS_neff_tool = -larchive -ljansson -lz -lnettle
