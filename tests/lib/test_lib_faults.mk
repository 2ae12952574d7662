# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c.
SRCS_lib_faults = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(wildcard $(ROOT)/libneuron/src/*.c)))
CFLAGS_lib_faults = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_COMPUTE \
	-ffp-contract=off
LIBS_lib_faults = -larchive -ljansson -lz -lnettle -pthread -lm \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup
