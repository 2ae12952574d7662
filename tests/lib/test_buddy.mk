# SPDX-License-Identifier: GPL-2.0-only
# buddy_model.h includes the allocator itself: no sources here.
