# SPDX-License-Identifier: GPL-2.0-only
SRCS_compact = kmod/mem/compact.c $(ROOM_SRCS)
OWN_compact = -fsanitize-coverage=trace-pc
OWN_FILES_compact = $(ROOM_SRCS)
