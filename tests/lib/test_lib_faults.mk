# SPDX-License-Identifier: GPL-2.0-only
SRCS_lib_faults = $(NRT_SRCS)
CFLAGS_lib_faults = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_COMPUTE \
	-ffp-contract=off
LIBS_lib_faults = -larchive -ljansson -lz -lnettle -pthread -lm \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup
