/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The archive in a NEFF: its members, in memory once something wants them. */
#ifndef NEURON_LIB_ARCHIVE_H
#define NEURON_LIB_ARCHIVE_H

#include "object.h"

/* List the members of the payload in @r->obj->members; small ones are there then. */
int neff_unpack(struct neff_reader *r, const uint8_t *payload, size_t size);
/* Unpack the wanted ones that are not there. */
int neff_fetch(struct neff_reader *r);

#endif
