/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inspection: traces, profiles and samples of the process in one directory (nrt_profile(3)). */
#ifndef NRT_INSPECT_H
#define NRT_INSPECT_H

/* Begin if NEURON_RT_INSPECT_ENABLE or _ON_FAIL asks for it; at the end of nrt_init(). */
void nrt_inspect_init(void);
/* An execution failed. */
void nrt_inspect_failure(void);
/* Under the life lock for writing: write the files, and give all cores back. */
void nrt_inspect_close(void);
/* In a child, where they are the parent's. */
void nrt_inspect_forget(void);

#endif
