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

#include <sys/socket.h>
#include <sys/un.h>

#include "../api/internal.h"

#define COMM_MAGIC	0x6e727463u
#define COMM_VERSION	2u
/* Logical cores of the largest host; the descriptors of all fit into one message. */
#define COMM_MAX_RANKS	128u
/* Exchanges of a core that go on at the same time: of a call, and of each queue. */
#define COMM_CHANNELS	4u
#define COMM_DATA	64u
#define COMM_KEY	32

/* All that follows is of one host and one library: no byte order, no padding. */
enum comm_type {
	COMM_HELLO = 1,		/* first, answered by a COMM_REPLY when all are there */
	COMM_REQUEST,
	COMM_REPLY,
};

struct comm_hello {
	uint32_t type;
	uint32_t magic;
	uint32_t version;
	uint32_t rank;
	uint32_t count;
	uint32_t channel;
	uint8_t key[COMM_KEY];		/* channel 0: the secret of the job, others: the rank's own */
	uint8_t data[COMM_DATA];
};

/* @ranks goes as far as @nr. */
struct comm_request {
	uint32_t type;
	uint32_t failed;		/* the others are to give up */
	uint32_t nr;
	uint32_t fds;			/* 1: there is a descriptor */
	uint8_t params[COMM_DATA];	/* the same of all */
	uint8_t data[COMM_DATA];
	uint32_t ranks[COMM_MAX_RANKS];
};

/* @data goes as far as @nr, which is 0 unless @status is NRT_SUCCESS. */
struct comm_reply {
	uint32_t type;
	uint32_t status;
	uint32_t nr;
	uint32_t fds;			/* 0 or @nr */
	uint8_t key[COMM_KEY];		/* to a hello: what this rank opens its channels with */
	uint8_t data[COMM_MAX_RANKS][COMM_DATA];
};

/* place.c */
struct comm_place {
	int dir;
	char name[64];			/* in it: of the file with the secret */
};

NRT_STATUS comm_place_open(const char *func, struct comm_place *place);
void comm_place_close(struct comm_place *place);
void comm_place_address(const struct comm_place *place, struct sockaddr_un *address);
/* What the process with rank 0 has written there.  0 or -errno. */
int comm_place_secret(const struct comm_place *place, uint8_t key[COMM_KEY]);
/* As rank 0, with a new secret: a lock or -errno, -EADDRINUSE somebody else is there. */
int comm_place_take(const struct comm_place *place, uint8_t secret[COMM_KEY]);
void comm_place_leave(const struct comm_place *place, int lock);
int comm_random(uint8_t key[COMM_KEY]);

/* hub.c: both under comm_lock; stopping lets go of it meanwhile */
extern pthread_mutex_t comm_lock;
/* 0 or -errno, -EADDRINUSE somebody else has rank 0; a hub that runs has the place. */
int hub_start(struct comm_place *place, uint32_t count);
void hub_stop(void);
void hub_forget(void);

/* A message with descriptors in it, which stay the sender's.  0 or -errno. */
int comm_send(int sock, const void *message, size_t size, const int *fds, uint32_t nr_fds);
/* Its length, or -errno; all @nr_fds are set, to -1 if fewer came. */
ssize_t comm_receive(int sock, void *message, size_t size, int *fds, uint32_t nr_fds);
void comm_close_fds(int *fds, uint32_t nr);
bool comm_peer_is_us(int sock);

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
