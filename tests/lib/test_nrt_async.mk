# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c.
SRCS_nrt_async = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(wildcard $(ROOT)/libneuron/src/*.c)))
CFLAGS_nrt_async = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' \
	-Wl,--wrap=neuron_sys_close
LIBS_nrt_async = -larchive -ljansson -lz -lnettle -pthread
