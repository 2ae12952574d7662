/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of what pretended runs give: in the environment, and in the device's marker. */
#ifndef NEURON_COMMON_PRETEND_H
#define NEURON_COMMON_PRETEND_H

#include <neuron/model.h>

static const char *const pretend_names[] = {
	[NEURON_PRETEND_NONE] = "none",
	[NEURON_PRETEND_ZERO] = "zero",
	[NEURON_PRETEND_COPY] = "copy",
	[NEURON_PRETEND_HASH] = "hash",
};

#endif
