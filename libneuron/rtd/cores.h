/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cores that this daemon serves. */
#ifndef NEURON_RTD_CORES_H
#define NEURON_RTD_CORES_H

#include <neuron/neuron.h>

/* Claims and opens what the configuration names. 0, or -errno after a line in the log. */
int cores_open(void);
void cores_close(void);

struct neuron_pool *cores_pool(void);
unsigned int cores_count(void);

#endif
