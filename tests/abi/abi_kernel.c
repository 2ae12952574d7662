// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every fact of abi-values.txt inside the kernel: compiles only when all hold.
 * The native headers are included to see that they compile here, too.
 */
#include <linux/types.h>
#include "neuron_ioctl.h"
#include "neuron_native.h"
#include "neuron_isa.h"
#include "abi_asserts.h"
