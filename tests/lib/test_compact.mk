# SPDX-License-Identifier: GPL-2.0-only
SRCS_compact = kmod/mem/compact.c
