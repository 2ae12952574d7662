/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cores of this and other processes of the host that work together: who they are, and
 * one way to talk, an exchange.  Everyone of a group says something, which may come
 * with a descriptor, and hears what all of them said, or that one is missing.
 *
 * They meet at the process with rank 0 (hub.c), at a place that only the user can
 * enter (place.c).  A peer that dies closes its sockets; that is how the others learn
 * of it.
 */
#ifndef NRT_COMM_H
#define NRT_COMM_H

#include <nrt/nrt.h>

#include "message.h"

struct nrt_exchange {
	const char *func;		/* for the log */
	uint32_t channel;
	const uint32_t *ranks;		/* @nr of them, NULL: all */
	uint32_t nr;
	bool failed;
	const void *params;
	size_t params_size;
	const void *data;
	size_t data_size;
	int fd;				/* or -1 */
	/* out: of each of the group, in its order; the descriptors are the caller's */
	uint8_t (*all)[COMM_DATA];	/* may be NULL */
	int *fds;			/* NULL if @fd is -1 */
};

/* Take part, once; after nrt_enter(). */
NRT_STATUS nrt_comm_join(const char *func, uint32_t vnc, uint32_t rank, uint32_t count);
/* NRT_FAILURE: @vnc has not joined as this rank of so many. */
NRT_STATUS nrt_comm_check(uint32_t vnc, uint32_t rank, uint32_t count);
/* Device number of a rank, while @vnc takes part. */
uint32_t nrt_comm_device(uint32_t vnc, uint32_t rank);
/*
 * NRT_INVALID: they did not all say the same @params; NRT_EXEC_COMPLETED_WITH_ERR: one of
 * them failed.  After anything else (NRT_TIMEOUT, NRT_FAILURE one is gone) the core has to
 * join again.
 */
NRT_STATUS nrt_comm_exchange(uint32_t vnc, struct nrt_exchange *x);
/* Interrupt what waits, from then on everything is NRT_CLOSED. */
void nrt_comm_stop(void);
/* Under the life lock for writing. */
void nrt_comm_close(void);
/* In a child, with comm_lock, which is given back. */
void nrt_comm_forget(void);

#endif
