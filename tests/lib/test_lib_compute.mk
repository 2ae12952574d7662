# SPDX-License-Identifier: GPL-2.0-only
# The DMA of fake_driver.h computes.
SRCS_lib_compute = $(LIB_SRCS)
CFLAGS_lib_compute = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"' -DFAKE_COMPUTE \
	-ffp-contract=off
LIBS_lib_compute = -larchive -ljansson -lz -lnettle -pthread -lm
