# SPDX-License-Identifier: GPL-2.0-only
SRCS_isa = $(filter libneuron/src/isa/%,$(LIB_SRCS)) $(NEFF_SRCS)
CFLAGS_isa = -D_GNU_SOURCE
LIBS_isa = -larchive -ljansson -lz -lnettle
