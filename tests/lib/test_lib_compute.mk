# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c, its DMA computes.
SRCS_lib_compute = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(filter-out $(wildcard $(ROOT)/libneuron/src/nrt_*.c),$(wildcard $(ROOT)/libneuron/src/*.c))))
CFLAGS_lib_compute = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_COMPUTE \
	-ffp-contract=off
LIBS_lib_compute = -larchive -ljansson -lz -lnettle -pthread -lm
