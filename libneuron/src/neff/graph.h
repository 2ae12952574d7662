/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the members of a NEFF to what it describes. */
#ifndef NEURON_LIB_GRAPH_H
#define NEURON_LIB_GRAPH_H

#include "object.h"

/* The reader's object has the header and the archive, and gets the rest. */
int neff_parse(struct neff_reader *r);

#endif
