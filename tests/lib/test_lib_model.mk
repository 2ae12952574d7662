# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c.
SRCS_lib_model = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(filter-out $(wildcard $(ROOT)/libneuron/src/nrt_*.c),$(wildcard $(ROOT)/libneuron/src/*.c))))
CFLAGS_lib_model = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_lib_model = -larchive -ljansson -lz -lnettle -pthread -Wl,--wrap=neuron_nq_read
# Loading has pointers into programs that are not there.
UBSAN_CC_lib_model = clang
