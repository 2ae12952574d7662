/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages between ranks of a host, all of one library: no byte order, no padding. */
#ifndef NRT_MESSAGE_H
#define NRT_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define COMM_MAGIC	0x6e727463u
#define COMM_VERSION	3u
/* Logical cores of the largest host; the descriptors of all fit into one message. */
#define COMM_MAX_RANKS	128u
/* Exchanges of a core that go on at the same time: of a call, and of each queue. */
#define COMM_CHANNELS	4u
#define COMM_DATA	64u
#define COMM_KEY	32

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
	uint32_t reason;		/* to a hello that is refused: enum reason_kind */
	uint8_t key[COMM_KEY];		/* to a hello: what this rank opens its channels with */
	uint8_t data[COMM_MAX_RANKS][COMM_DATA];
};

/* A message with descriptors in it, which stay the sender's.  0 or -errno. */
int comm_send(int sock, const void *message, size_t size, const int *fds, uint32_t nr_fds);
/* Its length, or -errno; all @nr_fds are set, to -1 if fewer came. */
ssize_t comm_receive(int sock, void *message, size_t size, int *fds, uint32_t nr_fds);
void comm_close_fds(int *fds, uint32_t nr);
bool comm_peer_is_us(int sock);

#endif
