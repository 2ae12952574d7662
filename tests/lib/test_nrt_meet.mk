# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_meet = $(NRT_SRCS)
CFLAGS_nrt_meet = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_COMPUTE \
	-ffp-contract=off
LIBS_nrt_meet = -larchive -ljansson -lz -lnettle -pthread -lm
