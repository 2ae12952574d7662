# SPDX-License-Identifier: GPL-2.0-only
SRCS_nrt_async = $(NRT_SRCS)
CFLAGS_nrt_async = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' \
	-Wl,--wrap=neuron_sys_close
LIBS_nrt_async = -larchive -ljansson -lz -lnettle -pthread
