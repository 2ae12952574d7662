/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The DMA triggers of an engine. */
#ifndef NEURON_LIB_TRANSFERS_H
#define NEURON_LIB_TRANSFERS_H

#include "json.h"

int parse_dma_list(struct neff_reader *r, const struct jpath *at, const json_t *list,
		   const struct neuron_neff_subgraph *sg, struct neuron_neff_engine *eng);

#endif
