/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A core's part in a communicator, to the two files that make it. */
#ifndef NRT_MEMBER_H
#define NRT_MEMBER_H

#include <stdatomic.h>

#include "comm.h"

struct member {
	/* Held while messages go to other hosts, all of them for joining; outside of busy. */
	pthread_mutex_t far[COMM_CHANNELS];
	/* Held for an exchange, all of them for joining; outside of comm_lock. */
	pthread_mutex_t busy[COMM_CHANNELS];
	int fd[COMM_CHANNELS];		/* -1 none; changes under busy and comm_lock */
	atomic_bool broken;		/* somebody is missing */
	/* Change under all far and busy and comm_lock: */
	bool joined;
	bool opening;			/* as the first of several: the hub is this one's */
	uint32_t rank;
	uint32_t count;
	uint32_t place;			/* among those of this host, who have numbers of their own */
	uint32_t nr_here;
	uint8_t key[COMM_KEY];		/* for channels after the first */
	uint32_t devices[COMM_MAX_RANKS];	/* of those */
	uint32_t places[WORLD_MAX_RANKS];	/* of each rank, NOT_HERE if it is elsewhere */
	struct reason why;		/* it could not join */
	int fabric_error;		/* why there is none */
	/* To other hosts; NULL: there are none. */
	struct world *world;
	struct fabric *fabric;
	uint64_t *peers;
	/* Under far: */
	struct message_memory words[COMM_CHANNELS], pieces[COMM_CHANNELS];
};

#define NOT_HERE UINT32_MAX

extern struct comm_state {
	struct member *members;		/* of each core; comm_lock */
	uint32_t nr;
	bool closing;			/* comm_lock */
	pthread_mutex_t root;		/* starting and stopping the hub; outside of comm_lock */
	struct registry *registry;	/* root, as is the next */
	const struct member *registrar;	/* whose it is */
} comm_state;

NRT_STATUS member_get(uint32_t vnc, struct member **out);
struct comm_hello member_hello(uint32_t rank, uint32_t count, uint32_t channel);
/*
 * Connect a channel, say @hello and hear the reply.  Under busy[hello->channel].  Those who met
 * before may still be there: NRT_COLL_PENDING the time is over.
 */
NRT_STATUS member_open_channel(const char *func, struct member *m, struct comm_hello *hello,
			       const struct deadline *deadline, struct comm_reply *reply);
void member_hang_up(struct member *m, uint32_t channel);
/* Nobody else is in a channel. */
void member_leave_world(struct member *m);
/* The one before.  fork() has comm_lock: a child never sees one that is being freed. */
struct registry *member_swap_registry(struct registry *registry);

#endif
