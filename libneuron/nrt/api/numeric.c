// SPDX-License-Identifier: LGPL-2.1-or-later
/* Outputs that are not numbers. */
#include <stdlib.h>

#include <nrt/nrt_experimental.h>

#include "../base/log.h"
#include "execute.h"

#define PIECE (1u << 20)

/* A NaN has an exponent of all ones, and a fraction.  No width: a type that has none. */
static const struct {
	size_t width;
	uint32_t exponent, fraction;
} floats[] = {
	[NRT_DTYPE_BFLOAT16] = { 2, 0x7f80, 0x007f },
	[NRT_DTYPE_FLOAT16] = { 2, 0x7c00, 0x03ff },
	[NRT_DTYPE_FLOAT32] = { 4, 0x7f800000, 0x007fffff },
	[NRT_DTYPE_FP32R] = { 4, 0x7f800000, 0x007fffff },
};

/* *@index: the first one. */
static NRT_STATUS look(const nrt_tensor_t *t, uint64_t bytes, uint32_t dtype, uint64_t *index)
{
	size_t width = dtype < ARRAY_SIZE(floats) ? floats[dtype].width : 0;
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
			if (!(~word & floats[dtype].exponent) && word & floats[dtype].fraction) {
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
