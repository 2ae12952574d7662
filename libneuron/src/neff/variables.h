/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Variables of a subgraph. */
#ifndef NEURON_LIB_VARIABLES_H
#define NEURON_LIB_VARIABLES_H

#include "json.h"

int parse_vars(struct neff_reader *r, const struct jpath *at, json_t *vars,
	       struct neuron_neff_subgraph *sg);
/* When the members that it names were fetched. */
int load_constant(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
		  struct neuron_neff_var *var);

#endif
