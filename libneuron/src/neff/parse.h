/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files that parse a subgraph give each other, the lowest first. */
#ifndef NEURON_LIB_PARSE_H
#define NEURON_LIB_PARSE_H

#include "json.h"

/* A name by which DMA entries find a queue set. */
struct neff_queue_name {
	const char *name;
	const struct neuron_neff_queue *queue;
	int instance;			/* -1: @name is that of the set */
};

/* Into @r->queue_names. */
int index_queues(struct neff_reader *r, const struct jpath *at,
		 const struct neuron_neff_subgraph *sg);
/* The first of that name; NULL: none. */
const struct neff_queue_name *find_queue_name(const struct neff_reader *r,
					      const char *name, bool instance);
/* @queues can be NULL: there are none. */
int parse_queues(struct neff_reader *r, const struct jpath *at, json_t *queues,
		 struct neuron_neff_subgraph *sg);

int parse_vars(struct neff_reader *r, const struct jpath *at, json_t *vars,
	       struct neuron_neff_subgraph *sg);
/* When the members that it names were fetched. */
int load_constant(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
		  struct neuron_neff_var *var);

int parse_dma_list(struct neff_reader *r, const struct jpath *at, const json_t *list,
		   const struct neuron_neff_subgraph *sg, struct neuron_neff_engine *eng);

/* From the definition of the subgraph: the files of an engine. */
int name_engine(struct neff_reader *r, const struct jpath *at, const json_t *def,
		struct neuron_neff_subgraph *sg, unsigned int id);
int parse_engines(struct neff_reader *r, struct neuron_neff_subgraph *sg);
/* When the members that it names were fetched. */
int load_code(struct neff_reader *r, const struct neuron_neff_subgraph *sg,
	      struct neuron_neff_engine *eng, unsigned int id);

int parse_neff_json(struct neff_reader *r);
/* Are inputs and outputs of a node those of its program, which is what was parsed, and as large? */
int check_nodes(struct neff_reader *r);
/* When they were fetched. */
int load_objects(struct neff_reader *r);

#endif
