/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays in files of numpy. */
#ifndef NEURON_LIB_NPY_H
#define NEURON_LIB_NPY_H

#include "object.h"

struct neff_npy {
	const void *data;
	size_t size;
	enum neuron_neff_dtype dtype;
	uint32_t ndim;			/* 0: not representable, use the default */
	uint32_t shape[NEURON_NEFF_MAX_SHAPE];
};

int neff_npy_parse(struct neff_reader *r, const char *where, const void *data, size_t size,
		   struct neff_npy *npy);

#endif
