/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a model is: on its core or in host memory (offload.c). */
#ifndef NEURON_LIB_RUN_OFFLOAD_H
#define NEURON_LIB_RUN_OFFLOAD_H

#include "core.h"

/* Of a model that was loaded; 0 or -ENOMEM. */
int residence_new(struct neuron_model *model);
/* Before the model is freed: waits for a prefetch, forgets what is in host memory. */
void residence_end(struct neuron_model *model);
/* For a run: it is on its core, and stays there until model_leave(). 0 or -errno. */
int model_enter(struct neuron_model *model, struct neuron_mem_failure *failure);
void model_leave(struct neuron_model *model);
/* Has somebody waited for it so long that nobody else takes it first? */
bool model_awaited(const struct neuron_model *model);

#endif
