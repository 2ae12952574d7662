# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c.
SRCS_profile = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(wildcard $(ROOT)/libneuron/src/*.c)))
CFLAGS_profile = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' \
	-DPROFILE_MAX_ITEMS=2048 -DPROFILE_MAX_RUNS=32
LIBS_profile = -larchive -ljansson -lz -lnettle -pthread
