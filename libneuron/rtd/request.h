/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One inference: its tensors, and where they come from and go to. */
#ifndef NEURON_RTD_REQUEST_H
#define NEURON_RTD_REQUEST_H

#include "call.h"
#include "model.h"
#include "neuron-rtd.pb-c.h"

struct place {
	uint8_t *data;			/* in the message, shared memory, or allocated */
	uint64_t bytes;
	struct buffer *buffer;		/* the shared memory */
	bool given;
};

struct request {
	struct model *model;		/* NULL: it is done and needs none */
	struct client *client;
	struct call *call;		/* to be answered; NULL: nobody waits now */
	struct slot *slot;
	uint64_t cookie;		/* of the network */
	uint64_t id;			/* of a posted one, counted in client->nr_posted; or 0 */
	uint64_t held;			/* of client->held, while no call has them */
	grpc_byte_buffer *response;	/* once it is done */
	bool done;
	bool unwanted;			/* nobody knows its id */
	uint64_t until;			/* call waits until then, ns; 0: for ever */
	struct neuron_net_result result;
	TAILQ_ENTRY(request) link;	/* of the model */
	TAILQ_ENTRY(request) posted;
	struct place places[];		/* by tensor of the model */
};

/*
 * Checks the message of a call; the request has its model, and the client a reference.
 * NULL: the call has failed.
 */
struct request *request_new(struct call *call, const Rtd__InferRequest *message);
/* Under rtd_lock. */
void request_free(struct request *request);

/* Copies by the device, to and from its slot. 0 or -errno. */
int request_write(struct request *request);
int request_read(struct request *request);

/* Makes the answer of the result; nothing else is read of the model afterwards. */
void request_pack(struct request *request);
/* Gives the model, and memory of tensors, back. Under rtd_lock. */
void request_settle(struct request *request);
/* Answers its call with what was packed. */
void request_answer(struct request *request);

#endif
