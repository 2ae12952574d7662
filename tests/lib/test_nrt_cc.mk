# SPDX-License-Identifier: GPL-2.0-only
# fake_driver.h is in the place of sys.c and discover.c, its DMA computes.
SRCS_nrt_cc = $(patsubst $(ROOT)/%,%,$(filter-out %/sys.c %/discover.c, \
	$(wildcard $(ROOT)/libneuron/src/*.c)))
CFLAGS_nrt_cc = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' \
	-DFAKE_COMPUTE -ffp-contract=off -Wl,--wrap=sendmsg,--wrap=recvmsg,--wrap=getsockopt
LIBS_nrt_cc = -larchive -ljansson -lz -lnettle -pthread -lm
