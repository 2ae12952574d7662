/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All programs of a NEFF: a network has one for each node that is on cores. */
#ifndef NEURON_TOOLS_NODES_H
#define NEURON_TOOLS_NODES_H

#include <neuron/neff.h>

struct programs {
	/* By the N of kelf-N.json; 0 is that of the file, which has header and nodes. */
	struct neuron_neff *neff[NEURON_NEFF_MAX_NODES];
};

static inline void programs_close(struct programs *p)
{
	/* The file is closed last: the others point into it. */
	for (size_t i = NEURON_NEFF_MAX_NODES; i-- > 0;)
		neuron_neff_close(p->neff[i]);
}

/* Parse and check all of them; returns and fills in what neuron_neff_open() does. */
static inline int programs_open(const void *bytes, size_t size, bool verify,
				struct neuron_neff_error *e, struct programs *p)
{
	struct neuron_neff_opts o = {
		.size = sizeof(o), .verify_hash = verify, .error = e, .keep = true,
	};
	int ret;

	*p = (struct programs){ 0 };
	ret = neuron_neff_open(bytes, size, &o, &p->neff[0]);
	o.verify_hash = false;
	for (size_t i = 0; !ret && i < p->neff[0]->nr_nodes; i++) {
		const struct neuron_neff_node *node = &p->neff[0]->nodes[i];

		o.node = node->kelf;
		if (!node->cpu && !p->neff[o.node])
			ret = neuron_neff_open_node(p->neff[0], &o, &p->neff[o.node]);
	}
	if (ret)
		programs_close(p);
	return ret;
}

#endif
