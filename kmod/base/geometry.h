/* SPDX-License-Identifier: GPL-2.0-only */
/* Check of the geometry that a back end reports. */
#ifndef NEURON_GEOMETRY_H
#define NEURON_GEOMETRY_H

#include "neuron_hw.h"

bool neuron_geometry_valid(const struct neuron_geometry *geo);
bool neuron_geometry_window(const struct neuron_geometry *geo, u64 off, u64 len);

#endif
