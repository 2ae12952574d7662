/* SPDX-License-Identifier: GPL-2.0-only */
/* Scrubbing of an HBM. */
#ifndef NEURON_MEM_SCRUB_H
#define NEURON_MEM_SCRUB_H

#include <linux/types.h>

struct neuron_client;

void neuron_scrub_exit(struct neuron_client *client);

#endif
