# SPDX-License-Identifier: GPL-2.0-only
CFLAGS_turn = -D_GNU_SOURCE -pthread
LIBS_turn = -pthread
