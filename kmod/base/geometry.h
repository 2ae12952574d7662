/* SPDX-License-Identifier: GPL-2.0-only */
/* Check of the geometry that a back end reports. */
#ifndef NEURON_GEOMETRY_H
#define NEURON_GEOMETRY_H

#include "neuron_hw.h"

bool neuron_geometry_valid(const struct neuron_geometry *geo);

#endif
