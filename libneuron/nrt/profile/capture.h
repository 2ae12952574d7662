/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device profiles of a core. */
#ifndef NRT_CAPTURE_H
#define NRT_CAPTURE_H

#include "../base/process.h"

/* Under the life lock; says in the log what went wrong. */
NRT_STATUS nrt_core_profile_start(struct nrt_vnc *vnc, struct neuron_model *model, bool last_only,
				  struct neuron_profile **profile);
/* Closes @fd, which may be the -errno of opening @name. */
NRT_STATUS nrt_core_profile_write(struct neuron_profile *profile, int fd, const char *name);

#endif
