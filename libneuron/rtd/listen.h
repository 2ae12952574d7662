/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sockets: made here, or by systemd. */
#ifndef NEURON_RTD_LISTEN_H
#define NEURON_RTD_LISTEN_H

/* The suffix of the socket that takes memory (SOCK_SEQPACKET). */
#define MEMORY_SUFFIX ".memory"

struct listeners {
	int calls;
	int memory;		/* -1: none, on TCP */
};

/* 0, or -errno after a line in the log. */
int listen_open(struct listeners *listeners);
/* Their names go; they are closed when the process ends. */
void listen_remove(void);

/*
 * From Linux 6.16 on nobody can send descriptors to it: gRPC's threads would release what comes
 * with calls, and wait for that. Connections have it from their listener.
 */
void listen_without_rights(int fd);

/* Tell systemd. */
void listen_notify(const char *state);

#endif
