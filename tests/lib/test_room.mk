# SPDX-License-Identifier: GPL-2.0-only
SRCS_room = $(ROOM_SRCS)
CFLAGS_room = -D_GNU_SOURCE
