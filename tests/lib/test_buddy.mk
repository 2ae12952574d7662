# SPDX-License-Identifier: GPL-2.0-only
# buddy_model.h includes buddy.c itself: no sources here.
