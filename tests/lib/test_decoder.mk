# SPDX-License-Identifier: GPL-2.0-only
SRCS_decoder = $(LIB_SRCS) tests/models/decoder.c tests/models/decoder_ref.c
CFLAGS_decoder = -D_GNU_SOURCE -pthread -O2 -ffp-contract=off -DFAKE_EXEC \
	-DNEURON_VERSION='"test"' -I$(ROOT)/tests/models \
	-DMODELS='"$(ROOT)/tests/models"'
LIBS_decoder = $(EMU_OBJS) -larchive -ljansson -lz -lnettle -lm -pthread
