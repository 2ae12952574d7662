/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ranks of a job that are on several hosts: which rank is on which host, the address of
 * each in the fabric, and who is gone.
 *
 * All of them connect to the process with rank 0, at the root of the job, by TCP.  It
 * tells all of them the same: the table of ranks, as soon as everybody is there, then the
 * ranks whose connections have ended.
 */
#ifndef NRT_WORLD_H
#define NRT_WORLD_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt.h>

#include "../../common/wait.h"
#include "reason.h"

#define WORLD_MAGIC	0x6e727477u	/* of this order of bytes */
#define WORLD_VERSION	2u
#define WORLD_MAX_RANKS	1024u
#define WORLD_NAME	64u		/* of an address in the fabric */
#define WORLD_HOST	64u

struct world_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t rank;
	uint32_t count;
	uint32_t device;
	uint32_t name_size;		/* 0: no fabric */
	uint8_t host[WORLD_HOST];	/* the same of all who can meet in one directory */
	uint8_t name[WORLD_NAME];
};

/*
 * First of all; @count ranks follow if @status is NRT_SUCCESS, then numbers of ranks. Otherwise
 * it is an enum reason_kind.
 */
struct world_head {
	uint32_t magic;
	uint32_t status;
	uint32_t count;
};

struct world_rank {
	uint32_t host;			/* the lowest rank there */
	uint32_t device;
	uint32_t name_size;
	uint8_t name[WORLD_NAME];
};

/* A core's view. */
struct world {
	int fd;				/* -1: none any more */
	struct reason why;		/* while it joins: of what has not been done */
	pthread_mutex_t lock;		/* @gone, @lost and what is read from @fd */
	bool lost;			/* rank 0 is gone */
	size_t partial;			/* bytes of @next that are there */
	uint32_t next;
	uint32_t count;
	bool gone[WORLD_MAX_RANKS];
	struct world_rank ranks[WORLD_MAX_RANKS];
};

/* The address and port of the root. */
union world_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static inline socklen_t world_address_size(const union world_address *a)
{
	return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

/* What inet_ntop() takes. */
static inline const void *world_address_ip(const union world_address *a)
{
	return a->any.sa_family == AF_INET6 ? (const void *)&a->v6.sin6_addr : &a->v4.sin_addr;
}

struct registry;

/* As rank 0.  0 or -errno. */
int world_start(const union world_address *root, uint32_t count, struct registry **out);
/* @missing, or NULL: is set for those of all ranks that have not come, unless all had. */
void world_stop(struct registry *r, bool *missing);
/* In a child, where its thread is not. */
void world_forget(struct registry *r);

/* NRT_COLL_PENDING: again.  @fd is -1 or a socket of this function, which the caller closes. */
NRT_STATUS world_connect(const union world_address *root, const struct deadline *deadline, int *fd,
			 struct reason *why);
/* Say hello on @w->fd, and hear who is there. */
NRT_STATUS world_meet(struct world *w, const struct world_hello *hello,
		      const struct deadline *deadline);
/* Hear what there is to hear, without waiting: one of @ranks (NULL: of all, up to @nr) is gone, or rank 0. */
bool world_broken(struct world *w, const uint32_t *ranks, uint32_t nr);

#endif
