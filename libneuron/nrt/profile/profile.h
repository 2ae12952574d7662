/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Profiles that a program asked for (nrt_profile(3)). */
#ifndef NRT_PROFILE_OF_H
#define NRT_PROFILE_OF_H

/* Under the life lock for writing: give all cores back. */
void nrt_profiles_close(void);
/* In a child, where they are the parent's. */
void nrt_profiles_forget(void);

#endif
