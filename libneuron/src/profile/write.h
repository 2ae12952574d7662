/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A profile as a file. */
#ifndef NEURON_LIB_WRITE_H
#define NEURON_LIB_WRITE_H

#include "part.h"

/* One file of all parts, which nobody changes meanwhile. */
int profile_write(const struct neuron_profile *profile, int fd);

#endif
