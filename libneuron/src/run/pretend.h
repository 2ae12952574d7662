/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pretended runs (pretend.c). */
#ifndef NEURON_LIB_PRETEND_H
#define NEURON_LIB_PRETEND_H

#include <stddef.h>

#include <neuron/model.h>

/* A model that cannot be run, just loaded, is to pretend.  0, -EINVAL, -EPERM on a card. */
int pretend_setup(struct neuron_model *model, enum neuron_pretend how);
/* Cores locked, tensors checked.  As neuron_model_run(). */
int pretend_run(const struct neuron_model *model, const struct neuron_io *io, size_t nr_io,
		int timeout_ms, struct neuron_run_result *result);

#endif
