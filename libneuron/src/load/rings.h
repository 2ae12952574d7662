/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rings of a model: the first two plan, the others write what needs addresses. */
#ifndef NEURON_LIB_RINGS_H
#define NEURON_LIB_RINGS_H

#include "loader.h"

/* Decide which rings there are and how long they get. */
int load_plan_rings(struct loader *l);
int load_plan_ring_memory(struct loader *l);
int load_fill_rings(struct loader *l);
int load_fill_fetch(struct loader *l, struct ring *ring);
int load_plan_setup(struct loader *l);

#endif
