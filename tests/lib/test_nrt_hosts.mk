# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_hosts = $(NRT_SRCS)
CFLAGS_nrt_hosts = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_COMPUTE \
	-ffp-contract=off
LIBS_nrt_hosts = -larchive -ljansson -lz -lnettle -pthread -lm
