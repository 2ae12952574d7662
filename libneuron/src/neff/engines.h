/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engines of a subgraph run. */
#ifndef NEURON_LIB_ENGINES_H
#define NEURON_LIB_ENGINES_H

#include "json.h"

/* From the definition of the subgraph: the files of an engine. */
int name_engine(struct neff_reader *r, const struct jpath *at, const json_t *def,
		struct neuron_neff_subgraph *sg, unsigned int id);
int parse_engines(struct neff_reader *r, struct neuron_neff_subgraph *sg);
/* When the members that it names were fetched. */
int load_code(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
	      struct neuron_neff_engine *eng, unsigned int id);

#endif
