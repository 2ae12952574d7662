/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Profiles of cores: one, those that a program asked for, and inspection (nrt_profile(3)). */
#ifndef NRT_PROFILE_OF_H
#define NRT_PROFILE_OF_H

#include "../base/process.h"

/* Under the life lock; says in the log what went wrong. */
NRT_STATUS nrt_core_profile_start(struct nrt_vnc *vnc, struct neuron_model *model, bool last_only,
				  struct neuron_profile **profile);
/* Closes @fd, which may be the -errno of opening @name. */
NRT_STATUS nrt_core_profile_write(struct neuron_profile *profile, int fd, const char *name);

/* Under the life lock for writing: give all cores back. */
void nrt_profiles_close(void);
/* In a child, where they are the parent's. */
void nrt_profiles_forget(void);

/* Begin if NEURON_RT_INSPECT_ENABLE or _ON_FAIL asks for it; at the end of nrt_init(). */
void nrt_inspect_init(void);
/* An execution failed. */
void nrt_inspect_failure(void);
/* Under the life lock for writing: write the files, and give all cores back. */
void nrt_inspect_close(void);
/* In a child, where they are the parent's. */
void nrt_inspect_forget(void);

#endif
