/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compiles only when every fact of abi-values.txt holds; run, it checks the
 * datastore address macros. Valid C and C++.
 */
#include "neuron_ioctl.h"
#include "abi_asserts.h"

int main(void)
{
	static char datastore[262144] __attribute__((aligned(8)));

	return neuron_abi_bad_addresses(datastore);
}
