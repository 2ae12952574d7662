/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cores of this and other processes of the host that work together: who they are, and
 * one way to talk on a host, an exchange.  Everyone of a group says something, which may come
 * with a descriptor, and hears what all of them said, or that one is missing.
 *
 * They meet at the process with rank 0 (hub.c), at a place that only the user can
 * enter (place.c).  A peer that dies closes its sockets; that is how the others learn
 * of it.
 *
 * Ranks of several hosts find each other at the process with rank 0 first (world.c), and
 * have ends of a fabric (fabric.c) for what goes between hosts (across.c).  Those of one
 * host then meet as above, with numbers of their own: in each host at the lowest rank.
 */
#ifndef NRT_COMM_H
#define NRT_COMM_H

#include <nrt/nrt.h>

#include "fabric.h"
#include "message.h"
#include "world.h"

struct nrt_exchange {
	const char *func;		/* for the log */
	uint32_t channel;
	const uint32_t *ranks;		/* @nr of them, all of this host; NULL: all that are */
	uint32_t nr;
	bool failed;
	bool part;			/* of what goes between hosts, which has its own line */
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
/* Device number of a rank of this host, while @vnc takes part. */
uint32_t nrt_comm_device(uint32_t vnc, uint32_t rank);

/* Memory for messages; all zero: none. */
struct message_memory {
	struct nrt_storage *storage;
	struct fabric_memory fabric;	/* the same, registered */
};

/* What a channel of a core has for messages to other hosts. */
struct nrt_links {
	struct world *world;		/* NULL: all ranks are on this host */
	struct fabric *fabric;
	const uint64_t *peers;		/* of each rank, in the fabric */
	uint32_t rank, count;
	struct message_memory *words, *pieces;	/* for what is short, and for what is long */
};

/* No message is under way in it. */
void message_memory_free(struct fabric *f, struct message_memory *memory);

/* It stays as it is, and is the caller's, until it is given back. */
NRT_STATUS nrt_comm_take_links(uint32_t vnc, uint32_t channel, struct nrt_links *links);
void nrt_comm_give_links(uint32_t vnc, uint32_t channel);
/* The number of the host of a rank: that of the lowest one there. */
uint32_t nrt_comm_host(uint32_t vnc, uint32_t rank);
/* After an error between hosts: all others hear of it, and the core has to join again. */
void nrt_comm_break(uint32_t vnc);
/* nrt_close() has begun. */
bool nrt_comm_closing(void);
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
