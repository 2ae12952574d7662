# SPDX-License-Identifier: GPL-2.0-only
CFLAGS_history = -D_GNU_SOURCE
