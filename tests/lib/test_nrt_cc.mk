# SPDX-License-Identifier: GPL-2.0-only
# The DMA of fake_driver.h computes.
SRCS_nrt_cc = $(NRT_SRCS)
CFLAGS_nrt_cc = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' \
	-DFAKE_COMPUTE -ffp-contract=off -Wl,--wrap=sendmsg,--wrap=recvmsg,--wrap=getsockopt
LIBS_nrt_cc = -larchive -ljansson -lz -lnettle -pthread -lm
