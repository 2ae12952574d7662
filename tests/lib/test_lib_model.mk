# SPDX-License-Identifier: GPL-2.0-only
SRCS_lib_model = $(LIB_SRCS)
CFLAGS_lib_model = -D_GNU_SOURCE -pthread -DNEURON_VERSION='"test"'
LIBS_lib_model = -larchive -ljansson -lz -lnettle -pthread -Wl,--wrap=neuron_nq_read
# Loading has pointers into programs that are not there.
UBSAN_CC_lib_model = clang
