# SPDX-License-Identifier: GPL-2.0-only
SRCS_neff_model = $(NEFF_SRCS) tests/models/host_ref.c tests/models/heldout.c
CFLAGS_neff_model = -D_GNU_SOURCE -O2 -ffp-contract=off -I$(ROOT)/tests/models \
	-DMODELS='"$(ROOT)/tests/models"'
LIBS_neff_model = $(EMU_OBJS) -larchive -ljansson -lz -lnettle -lm
