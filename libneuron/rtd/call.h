/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A call of a client: its message, and the one answer that it gets. */
#ifndef NEURON_RTD_CALL_H
#define NEURON_RTD_CALL_H

#include <grpc/grpc.h>
#include <grpc/status.h>
#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#include "client.h"

struct call;
struct model;

/* What a completion queue returns: the function takes whether it succeeded. */
struct tag {
	void (*done)(struct call *call, bool ok);
	struct call *call;
};

/* Runs when the client has given a call up before it was answered. */
typedef void (*call_cancelled_fn)(struct call *call);

/* Does away with what a call has made, whose number the client has not got. */
typedef void (*call_undo_fn)(struct client *client, uint64_t made);

struct call {
	struct job job;			/* of what does not answer at once; the first member */
	struct model *model;		/* that the job is about */
	struct tag arrived, sent, closed;
	grpc_call *grpc;
	grpc_metadata_array metadata;
	grpc_call_details details;
	grpc_byte_buffer *payload;
	gpr_timespec deadline;
	const struct method *method;	/* NULL: unknown */
	struct client *client;
	ProtobufCMessage *message;
	ProtobufCAllocator allocator;
	uint64_t budget;		/* bytes that the message may still take */
	uint64_t held;			/* of client->held */
	uint64_t received;		/* of client->received */
	bool slow;			/* counted in client->nr_slow */
	grpc_byte_buffer *response;
	atomic_uint refs;		/* batches that are under way */
	int was_cancelled;
	call_cancelled_fn cancelled;
	bool gone;			/* given up by the client; rtd_lock, like the next */
	uint64_t made;			/* what is undone in this case; 0: nothing */
	call_undo_fn undo;
};

struct call *call_new(const struct method *method);
/* Of a call that has not arrived, too. */
void call_free(struct call *call);
/* Until there is none, those that have not arrived included. */
void call_wait_all(void);

/*
 * Makes call->message of what has arrived, and counts it for the client. False: the call has
 * failed, because it is malformed or the client has too many.
 */
bool call_parse(struct call *call, const ProtobufCMessageDescriptor *type);
/* Answers a call, which is not to be used afterwards. */
void call_reply(struct call *call, const ProtobufCMessage *message);
/* In two steps, when the answer is made before there is a call; the second takes the buffer. */
grpc_byte_buffer *call_pack(const ProtobufCMessage *message);
void call_reply_packed(struct call *call, grpc_byte_buffer *packed);
void call_fail(struct call *call, grpc_status_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* As call_fail(), with the code for a negative errno value. */
void call_fail_errno(struct call *call, int error, const char *what);

/* Count bytes of a response for the client. False, and the call failed: it has too many. */
bool call_hold(struct call *call, uint64_t bytes);
/* Whether it is not worth while to begin. */
bool call_is_gone(struct call *call);
/* From here on, what the call makes is undone if its client gives it up. */
void call_undo_with(struct call *call, call_undo_fn undo);
/* Answers with the number of something, or undoes it. */
void call_reply_made(struct call *call, uint64_t made, const ProtobufCMessage *message);
/* From here on the client is listened to until the call is answered. */
void call_watch(struct call *call, call_cancelled_fn cancelled);

#endif
