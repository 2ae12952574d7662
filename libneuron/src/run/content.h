/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the state buffer of a core has: constants of the last model, which need not be copied. */
#ifndef NEURON_LIB_CONTENT_H
#define NEURON_LIB_CONTENT_H

#include "../load/model.h"

/*
 * Before a part of a model starts, behind neuron_queue_init(): a core that is reset from then on
 * has no queues.  Its program is made to bring its constants unless they are there.  0 or -errno,
 * then the core is to be reset.
 */
int content_begin(struct neuron_model *m);
/* The run has ended as it should. */
void content_keep(const struct neuron_model *m);

#endif
