/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays in files of numpy. */
#ifndef NEURON_LIB_NPY_H
#define NEURON_LIB_NPY_H

#include "object.h"

int neff_npy_parse(struct neff_reader *r, const char *where, const void *data, size_t size,
		   struct neuron_neff_npy *npy);

#endif
