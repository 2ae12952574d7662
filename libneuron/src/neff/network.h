/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* neff.json in the form of neuron-pack: names of tensors, nodes of a network. */
#ifndef NEURON_LIB_NETWORK_H
#define NEURON_LIB_NETWORK_H

#include "json.h"

int parse_neff_json(struct neff_reader *r);
/* When they were fetched. */
void load_objects(struct neff_reader *r);

#endif
