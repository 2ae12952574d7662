// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every fact of abi-values.txt inside the kernel: compiles only when all hold.
 * The native headers are included to see that they compile here, too.
 */
#include <linux/types.h>
#include <linux/ioctl.h>

/* The kernel's check of a size is no constant for clang, and an assertion needs one. */
#ifdef __clang__
#undef _IOC_TYPECHECK
#define _IOC_TYPECHECK(t) sizeof(t)
#endif

#include "neuron_ioctl.h"
#include "neuron_native.h"
#include "neuron_isa.h"
#include "abi_asserts.h"
