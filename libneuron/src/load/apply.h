/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan onto a device. */
#ifndef NEURON_LIB_APPLY_H
#define NEURON_LIB_APPLY_H

#include "loader.h"

/* Decides the layout; from here on the model counts for the scratchpad. */
int load_apply_scratchpad(struct loader *l);
/* Everything the plan asks for, and the addresses that come of it. */
int load_apply_memory(struct loader *l);
/* Constants, programs, tables of addresses. */
int load_apply_contents(struct loader *l);

#endif
