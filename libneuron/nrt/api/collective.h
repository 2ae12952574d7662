/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Collective operations. */
#ifndef NRT_COLLECTIVE_H
#define NRT_COLLECTIVE_H

/* Under the life lock for writing; in a child. */
void nrt_cc_close(void);
void nrt_cc_forget(void);

#endif
