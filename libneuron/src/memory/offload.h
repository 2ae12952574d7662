/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Movable memory that went to host memory comes back when it is used (offload.c). */
#ifndef NEURON_LIB_OFFLOAD_H
#define NEURON_LIB_OFFLOAD_H

#include "image.h"

/* Under mem->lock: it is on the device afterwards, or nothing changed. @failure may be NULL. */
int offload_return_locked(struct neuron_mem *mem, struct neuron_mem_failure *failure);
/* It is on the device, and stays there until offload_drop(). Other than movable memory is always. */
int offload_hold(struct neuron_mem *mem);
void offload_drop(struct neuron_mem *mem);

#endif
