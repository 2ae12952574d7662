// SPDX-License-Identifier: GPL-2.0-only
/* The code of neuron_emu.ko once more, for the module of the tests. */
#include "../../kmod/emu/simd_avx2.c"
