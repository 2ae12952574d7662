# SPDX-License-Identifier: GPL-2.0-only
SRCS_neff = $(NEFF_SRCS)
CFLAGS_neff = -D_GNU_SOURCE
# The reader's own allocations can be made to fail.
LIBS_neff = -larchive -ljansson -lz -lnettle \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=inflateInit2_,--wrap=neff_is_json,--wrap=memmem
