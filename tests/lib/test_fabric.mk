# SPDX-License-Identifier: GPL-2.0-only
# fabric.c is included by the test.
CFLAGS_fabric = -D_GNU_SOURCE -pthread $(if $(FABRIC),-DNRT_FABRIC)
