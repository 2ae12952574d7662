/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loading for others of the library. */
#ifndef NEURON_LIB_RUN_MODEL_H
#define NEURON_LIB_RUN_MODEL_H

#include <neuron/neff.h>
#include "core.h"

/* As neuron_model_load(), of a file that was opened already. */
int model_load_opened(struct neuron_core *core, struct neuron_neff *neff,
		      const struct neuron_model_opts *opts, struct neuron_model **model);

#endif
