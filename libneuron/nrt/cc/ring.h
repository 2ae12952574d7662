/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is long goes around a ring of hosts, in pieces: while one is on its way, others are
 * combined and stored.
 */
#ifndef NRT_RING_H
#define NRT_RING_H

#include "across.h"

#define RING_PIECE (1u << 20)
/* Of a share: all pieces can be on their way before one has come. */
#define RING_PIECES 64u

/* Of the share of a host @at bytes on, @bytes of them, which are or go @to in the room for pieces. */
struct ring_piece {
	uint32_t host;
	uint64_t at, bytes;
	size_t to;
};

struct ring {
	const uint64_t *shares;		/* of each host, up to RING_PIECES of them */
	/* What this host has of it goes to memory, is combined with what is there, or NULL. */
	NRT_STATUS (*load)(void *arg, const struct ring_piece *p);
	NRT_STATUS (*combine)(void *arg, const struct ring_piece *p);
	/* What is in memory is the result.  Each once. */
	NRT_STATUS (*store)(void *arg, const struct ring_piece *p);
	bool spread;			/* all get all results, not only those of their shares */
	void *arg;
	NRT_STATUS own;			/* out: why this host could not do its part */
};

/* Without @combine there is nothing to be added: each has the results of its share. */
NRT_STATUS ring_run(struct across *x, struct ring *r);

#endif
