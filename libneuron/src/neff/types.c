// SPDX-License-Identifier: LGPL-2.1-or-later
/* Types of elements and variables, and looking for things by name or number. */
#include <ctype.h>
#include <string.h>

#include "../../common/util.h"
#include <neuron/neff.h>

NEURON_EXPORT void neuron_neff_printable(char *s)
{
	for (; *s; s++)
		if (!isascii((unsigned char)*s) || iscntrl((unsigned char)*s))
			*s = '?';
}

static int compare_name(const void *name, const void *var)
{
	return strcmp(name, (*(const struct neuron_neff_var *const *)var)->name);
}

NEURON_EXPORT const struct neuron_neff_var *
neuron_neff_find_var(const struct neuron_neff_subgraph *sg, const char *name)
{
	const struct neuron_neff_var *const *var = !sg->nr_vars ? NULL :
		bsearch(name, sg->vars_by_name, sg->nr_vars, sizeof(*var), compare_name);

	return var ? *var : NULL;
}

static int compare_id(const void *id, const void *dma)
{
	uint32_t x = *(const uint32_t *)id, y = (*(const struct neuron_neff_dma *const *)dma)->id;

	return (x > y) - (x < y);
}

NEURON_EXPORT const struct neuron_neff_dma *
neuron_neff_find_dma(const struct neuron_neff_engine *engine, uint32_t id)
{
	const struct neuron_neff_dma *const *dma = !engine->nr_dma ? NULL :
		bsearch(&id, engine->dma_by_id, engine->nr_dma, sizeof(*dma), compare_id);

	return dma ? *dma : NULL;
}

static const struct {
	const char *name;
	uint32_t size;
} dtypes[] = {
	[NEURON_NEFF_DT_UINT64] = { "uint64", 8 },
	[NEURON_NEFF_DT_INT8] = { "int8", 1 },
	[NEURON_NEFF_DT_UINT8] = { "uint8", 1 },
	[NEURON_NEFF_DT_INT16] = { "int16", 2 },
	[NEURON_NEFF_DT_UINT16] = { "uint16", 2 },
	[NEURON_NEFF_DT_BFLOAT16] = { "bfloat16", 2 },
	[NEURON_NEFF_DT_FLOAT16] = { "float16", 2 },
	[NEURON_NEFF_DT_INT32] = { "int32", 4 },
	[NEURON_NEFF_DT_UINT32] = { "uint32", 4 },
	[NEURON_NEFF_DT_FLOAT32] = { "float32", 4 },
	[NEURON_NEFF_DT_FP32R] = { "float32r", 4 },
	[NEURON_NEFF_DT_INT64] = { "int64", 8 },
	[NEURON_NEFF_DT_FP8_E3] = { "float8e3", 1 },
	[NEURON_NEFF_DT_FP8_E4] = { "float8e4", 1 },
	[NEURON_NEFF_DT_FP8_E5] = { "float8e5", 1 },
};

#define NR_DTYPES ARRAY_SIZE(dtypes)

NEURON_EXPORT uint32_t neuron_neff_dtype_size(enum neuron_neff_dtype dtype)
{
	return (size_t)dtype < NR_DTYPES ? dtypes[dtype].size : 0;
}

NEURON_EXPORT const char *neuron_neff_dtype_name(enum neuron_neff_dtype dtype)
{
	if ((size_t)dtype < NR_DTYPES && dtypes[dtype].name)
		return dtypes[dtype].name;
	return "unknown";
}

NEURON_EXPORT enum neuron_neff_dtype neuron_neff_dtype_parse(const char *name)
{
	for (size_t i = 0; i < NR_DTYPES; i++)
		if (dtypes[i].name && !strcmp(dtypes[i].name, name))
			return (enum neuron_neff_dtype)i;
	return NEURON_NEFF_DT_UNKNOWN;
}

NEURON_EXPORT const char *neuron_neff_var_type_name(enum neuron_neff_var_type type)
{
	static const char *const names[] = {
		"state-buffer", "input", "output", "file", "tmp-buf", "virtual",
		"pointer", "dge-table",
	};

	return (size_t)type < NEURON_NEFF_NR_VAR_TYPES ? names[type] : "unknown";
}
