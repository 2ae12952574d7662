/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gRPC: connections that were accepted go in, calls come out and are served. */
#ifndef NEURON_RTD_SERVER_H
#define NEURON_RTD_SERVER_H

#include "client.h"

/* 0 or -errno. */
int server_start(void);
/* Calls that are under way are cancelled, others not accepted. */
void server_stop(void);
/* Afterwards, when all of them can be answered. */
void server_end(void);

/*
 * A duplicate of a socket whose number no call has that may still arrive. For one thread;
 * -errno: there is none.
 */
int server_number(int socket);
/*
 * Hands a connected socket, which does not block, over to gRPC: its calls are those of the
 * client until server_forget(), which takes the number of the connection. 0 or -errno.
 */
int server_add(int socket, struct client *client, uint64_t *serial);
void server_forget(int socket, uint64_t serial);

#endif
