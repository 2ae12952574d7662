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
void listen_close(struct listeners *listeners);

/* Tell systemd. */
void listen_notify(const char *state);

#endif
