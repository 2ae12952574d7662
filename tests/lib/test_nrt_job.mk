# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_job = $(NRT_SRCS)
CFLAGS_nrt_job = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_COMPUTE \
	-ffp-contract=off
LIBS_nrt_job = -larchive -ljansson -lz -lnettle -pthread -lm
