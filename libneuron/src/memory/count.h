/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Allocations in the statistics of the process. */
#ifndef NEURON_LIB_COUNT_H
#define NEURON_LIB_COUNT_H

#include "mem.h"

/* @mem has so many bytes now; under its lock, or when nobody else knows it. */
void mem_count(struct neuron_mem *mem, uint64_t bytes);

#endif
