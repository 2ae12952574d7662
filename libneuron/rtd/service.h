/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The methods of neuron-rtd.proto. */
#ifndef NEURON_RTD_SERVICE_H
#define NEURON_RTD_SERVICE_H

#include "call.h"

struct method {
	const char *path;
	const ProtobufCMessageDescriptor *request;
	void (*run)(struct call *call);
	call_undo_fn undo;		/* of what makes something */
	bool slow;			/* waits for devices: not for the threads of gRPC */
	unsigned int at_a_time;		/* calls that are accepted before they are read */
};

extern const struct method service_methods[];
extern const unsigned int service_nr_methods;

/* Threads for what is slow. 0 or -errno. */
int service_start(void);
/* When all clients have ended: unloads what they shared, after all that was queued. */
void service_stop(void);

/* The message of a call has arrived. */
void service_run(struct call *call);
/* A client has ended: unloads what it leaves, and drops its reference. */
void service_end_client(struct client *client);

#endif
