/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clients: processes that have a connection, and the memory that they share.
 *
 * A client is a process, not a connection, because gRPC closes and opens these as it likes.
 * It ends when its process does, which its pidfd tells; a peer without one (TCP, a process
 * of a pid name space that cannot be seen here) ends with its connection.
 */
#ifndef NEURON_RTD_CLIENT_H
#define NEURON_RTD_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "job.h"

#define CLIENT_MAX		128u	/* and as many connections */
#define CLIENT_MAX_BUFFERS	64u
#define CLIENT_MAX_MODELS	64u
#define CLIENT_MAX_GROUPS	64u
#define CLIENT_MAX_POSTED	1024u
#define CLIENT_MAX_SLOW		64u	/* calls that load, unload, start or stop */

/* Guards clients, groups, models and requests; not held over work on a device. Outermost. */
extern pthread_mutex_t rtd_lock;

/* Shared memory of a client, mapped here. It stays while a request uses it, and counts. */
struct buffer {
	unsigned int refs;
	struct client *client;		/* NULL: it has ended */
	struct job *released;		/* answers that nobody uses it; no request finds it */
	uint64_t id;
	uint8_t *map;
	bool read_only;
	uint64_t bytes;
	TAILQ_ENTRY(buffer) link;
};

struct client {
	unsigned int refs;
	pid_t pid;		/* 0: cannot be seen */
	uid_t uid;		/* CLIENT_NOBODY: cannot be known */
	int pidfd;		/* or -1 */
	bool gone;
	struct turn *turn;
	TAILQ_HEAD(buffer_list, buffer) buffers;
	unsigned int nr_buffers, nr_models, nr_groups, nr_posted, nr_slow;
	uint64_t held;		/* bytes of responses that are not sent yet */
	uint64_t received;	/* bytes of messages whose calls are not over */
	TAILQ_ENTRY(client) link;
};

#define CLIENT_NOBODY ((uid_t)-1)

/*
 * A number that no other object of the daemon has, nor one of a daemon before it: the first is
 * random. Below 2^53; under rtd_lock.
 */
uint64_t new_id(void);

/*
 * The client at the other end of a socket, with a reference; *is_new if it has to be watched.
 * 0, -EUSERS too many, -ESRCH it is not there any more, -EPERM @known and it cannot be known,
 * -ENOMEM.
 */
int client_of(int socket, bool known, struct client **client, bool *is_new);
void client_put(struct client *client);
/* The same under rtd_lock. */
struct client *client_hold(struct client *client);
void client_drop(struct client *client);
unsigned int client_count(void);

/* No further request is taken, memory that no request uses is unmapped. */
void client_end(struct client *client);

/* Maps memory that a client has sent. 0 or -errno. */
int buffer_add(struct client *client, int fd, uint64_t *id);
/* No request finds it any more; adds the job once none uses it. 0, -ENOENT */
int buffer_remove(struct client *client, uint64_t id, struct job *job);
/* A range of it, with a reference; under rtd_lock. 0, -ENOENT no memory, -EINVAL it is shorter. */
int buffer_find(struct client *client, uint64_t id, uint64_t offset, uint64_t bytes,
		struct buffer **buffer);
void buffer_drop(struct buffer *buffer);

#endif
