/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queue sets of a subgraph. */
#ifndef NEURON_LIB_QUEUES_H
#define NEURON_LIB_QUEUES_H

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
int parse_queues(struct neff_reader *r, const struct jpath *at, json_t *queues,
		 struct neuron_neff_subgraph *sg);

#endif
