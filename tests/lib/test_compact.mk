# SPDX-License-Identifier: GPL-2.0-only
SRCS_compact = kmod/mem/compact.c libneuron/src/memory/room.c libneuron/src/memory/room_own.c libneuron/src/memory/room_move.c
