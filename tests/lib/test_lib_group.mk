# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c.
SRCS_lib_group = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(filter-out $(wildcard $(ROOT)/libneuron/src/nrt_*.c),$(wildcard $(ROOT)/libneuron/src/*.c))))
CFLAGS_lib_group = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_lib_group = -Wl,--wrap=inflateInit2_ -ldl -larchive -ljansson -lz -lnettle -pthread
