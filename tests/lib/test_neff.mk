# SPDX-License-Identifier: GPL-2.0-only
SRCS_neff = libneuron/src/neff.c libneuron/src/neff_archive.c libneuron/src/neff_json.c \
	libneuron/src/neff_npy.c libneuron/src/neff_write.c
CFLAGS_neff = -D_GNU_SOURCE
# The reader's own allocations can be made to fail.
LIBS_neff = -larchive -ljansson -lz -lnettle \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
