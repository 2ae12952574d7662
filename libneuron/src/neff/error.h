/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is said of a file that cannot be loaded, or not be run. */
#ifndef NEURON_LIB_ERROR_H
#define NEURON_LIB_ERROR_H

#include <neuron/neuron.h>

/* Why a model cannot be run; it can be placed all the same. */
struct obstacles {
	size_t nr;
	char text[NEURON_MAX_OBSTACLES][256];
};

/* Note the first error, whose kind follows from @ret.  Returns @ret. */
int error_note(struct neuron_error *e, int ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int error_no_memory(struct neuron_error *e);
/* A caller's error; of one without a line of its own, what @ret says.  Returns @ret. */
int error_tell(struct neuron_error *theirs, struct neuron_error *e, int ret);
/* What the driver said to @what. */
int error_device(struct neuron_error *e, const char *what, int ret);
/* Beyond NEURON_MAX_OBSTACLES there is no room, and no need. */
void obstacle_add(struct obstacles *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
