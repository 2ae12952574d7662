/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of a part of the ranks of a collective operation. */
#ifndef NEURON_SUMS_H
#define NEURON_SUMS_H

#include <stdbool.h>

#include <neuron/neff.h>

/* They are kept in the type itself, which reaches as far as fp32; those of others in fp32. */
static inline bool sums_fit(enum neuron_neff_dtype type)
{
	return type == NEURON_NEFF_DT_FLOAT32 || type == NEURON_NEFF_DT_FP32R ||
	       type == NEURON_NEFF_DT_BFLOAT16;
}

#endif
