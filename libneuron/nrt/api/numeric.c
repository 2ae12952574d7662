// SPDX-License-Identifier: LGPL-2.1-or-later
/* Outputs that are not numbers. */
#include <stdlib.h>

#include <nrt/nrt_experimental.h>

#include "../base/log.h"
#include "execute.h"

#define PIECE (1u << 20)

/* Exponent all ones, and a fraction.  0: a type that has none, or is not known to. */
static size_t float_bits(uint32_t dtype, uint32_t *exponent, uint32_t *fraction)
{
	switch (dtype) {
	case NRT_DTYPE_FLOAT32:
	case NRT_DTYPE_FP32R:
		*exponent = 0x7f800000;
		*fraction = 0x007fffff;
		return 4;
	case NRT_DTYPE_BFLOAT16:
		*exponent = 0x7f80;
		*fraction = 0x007f;
		return 2;
	case NRT_DTYPE_FLOAT16:
		*exponent = 0x7c00;
		*fraction = 0x03ff;
		return 2;
	default:
		return 0;
	}
}

/* *@index: the first one. */
static NRT_STATUS look(const nrt_tensor_t *t, uint64_t bytes, uint32_t dtype, uint64_t *index)
{
	uint32_t exponent = 0, fraction = 0;
	size_t width = float_bits(dtype, &exponent, &fraction);
	uint8_t *piece;
	NRT_STATUS status = NRT_SUCCESS;

	if (!width)
		return NRT_SUCCESS;
	piece = malloc(PIECE);
	if (!piece)
		return NRT_RESOURCE;
	for (uint64_t at = 0; at < bytes && status == NRT_SUCCESS; at += PIECE) {
		uint64_t n = bytes - at < PIECE ? bytes - at : PIECE;

		status = nrt_tensor_transfer("nrt_execute", t, piece, at, n, false);
		for (uint64_t i = 0; i + width <= n && status == NRT_SUCCESS; i += width) {
			uint32_t word = 0;

			for (size_t b = 0; b < width; b++)
				word |= (uint32_t)piece[i + b] << 8 * b;
			if ((word & exponent) == exponent && word & fraction) {
				*index = (at + i) / width;
				status = NRT_EXEC_COMPLETED_WITH_NUM_ERR;
			}
		}
	}
	free(piece);
	return status;
}

NRT_STATUS nrt_numeric_check(const struct nrt_model *m, const struct nrt_set *out)
{
	NRT_STATUS status = NRT_SUCCESS;
	uint64_t index = 0;

	if (!nrt_process.env.find_nan)
		return NRT_SUCCESS;
	for (size_t i = 0; i < m->nr_io && status == NRT_SUCCESS; i++) {
		if (m->info[i].usage != NEURON_TENSOR_OUTPUT)
			continue;
		status = look(nrt_set_find(out, m->info[i].name, 0), m->info[i].bytes,
			      m->info[i].dtype, &index);
		if (status == NRT_EXEC_COMPLETED_WITH_NUM_ERR)
			LOG_AS(NMGR, ERROR, "nrt_execute",
			       "output %s of %s: element %llu is not a number", m->info[i].name,
			       neuron_model_name(m->model), (unsigned long long)index);
	}
	return status;
}
