# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c.
SRCS_nrt_debug = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(wildcard $(ROOT)/libneuron/src/*.c)))
CFLAGS_nrt_debug = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_nrt_debug = -larchive -ljansson -lz -lnettle -pthread
