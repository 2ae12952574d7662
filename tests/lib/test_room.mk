# SPDX-License-Identifier: GPL-2.0-only
SRCS_room = libneuron/src/memory/room.c libneuron/src/memory/room_own.c libneuron/src/memory/room_move.c
CFLAGS_room = -D_GNU_SOURCE
