/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tensors and sets that have not been freed: what a program gives may be anything, and is
 * looked at only if it is one of these.  A set says nothing of its tensors, which may have
 * been freed since.
 */
#ifndef NRT_HANDLES_H
#define NRT_HANDLES_H

#include <stdbool.h>

enum nrt_handles {
	NRT_HANDLES_TENSORS,
	NRT_HANDLES_SETS,
	NRT_HANDLES_NR,
};

/* False: no memory. */
bool nrt_handle_add(enum nrt_handles kind, const void *handle);
/* Of two threads that free the same, one does. */
bool nrt_handle_remove(enum nrt_handles kind, const void *handle);
bool nrt_handle_live(enum nrt_handles kind, const void *handle);
/* Before and after fork(). */
void nrt_handles_lock(void);
void nrt_handles_unlock(void);

#endif
