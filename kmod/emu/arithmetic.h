/* SPDX-License-Identifier: GPL-2.0-only */
/* Which arithmetic the software devices use: integers, or one of the kinds of vector registers. */
#ifndef EMU_ARITHMETIC_H
#define EMU_ARITHMETIC_H

#include "simd.h"

struct emu_simd *emu_arithmetic_path(unsigned int i);
int emu_arithmetic_choose(const char *wish);
const struct emu_simd *emu_arithmetic(void);
const char *emu_arithmetic_name(void);

#endif /* EMU_ARITHMETIC_H */
