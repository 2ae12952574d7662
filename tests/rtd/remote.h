/* SPDX-License-Identifier: GPL-2.0-only */
/* A client of neuron-rtd, with one connection. */
#ifndef RTD_REMOTE_H
#define RTD_REMOTE_H

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neuron-rtd.pb-c.h"

struct remote {
	grpc_call *call;
	grpc_metadata_array first, last;
	grpc_byte_buffer *request, *response;
	grpc_status_code status;
	grpc_slice details;
};

static grpc_channel *channel;
static grpc_completion_queue *queue;

static inline void remote_open(const char *path)
{
	grpc_channel_credentials *credentials;
	char target[128];

	grpc_init();
	credentials = grpc_insecure_credentials_create();
	snprintf(target, sizeof(target), "unix:%s", path);
	channel = grpc_channel_create(target, credentials, NULL);
	grpc_channel_credentials_release(credentials);
	queue = grpc_completion_queue_create_for_next(NULL);
}

static inline void remote_start(struct remote *r, const char *path, const ProtobufCMessage *message)
{
	grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
	const gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);
	grpc_op ops[6] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA },
		{ .op = GRPC_OP_SEND_MESSAGE },
		{ .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT },
		{ .op = GRPC_OP_RECV_INITIAL_METADATA },
		{ .op = GRPC_OP_RECV_MESSAGE },
		{ .op = GRPC_OP_RECV_STATUS_ON_CLIENT },
	};

	protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
	memset(r, 0, sizeof(*r));
	grpc_metadata_array_init(&r->first);
	grpc_metadata_array_init(&r->last);
	r->request = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	ops[1].data.send_message.send_message = r->request;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &r->first;
	ops[4].data.recv_message.recv_message = &r->response;
	ops[5].data.recv_status_on_client.trailing_metadata = &r->last;
	ops[5].data.recv_status_on_client.status = &r->status;
	ops[5].data.recv_status_on_client.status_details = &r->details;
	r->call = grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
					   grpc_slice_from_static_string(path), NULL, never, NULL);
	if (grpc_call_start_batch(r->call, ops, 6, r, NULL) != GRPC_CALL_OK)
		abort();
}

/* The next call that has ended. */
static inline struct remote *remote_next(void)
{
	return grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).tag;
}

static inline void remote_end(struct remote *r)
{
	grpc_metadata_array_destroy(&r->first);
	grpc_metadata_array_destroy(&r->last);
	grpc_byte_buffer_destroy(r->request);
	grpc_byte_buffer_destroy(r->response);
	grpc_slice_unref(r->details);
	grpc_call_unref(r->call);
}

/* A call and its end: what it answers, NULL: it failed, and says how. */
static inline void *remote_call(const char *path, const ProtobufCMessage *message,
				const ProtobufCMessageDescriptor *type)
{
	grpc_byte_buffer_reader reader;
	void *answer = NULL;
	struct remote r;

	remote_start(&r, path, message);
	remote_next();
	if (r.status == GRPC_STATUS_OK && grpc_byte_buffer_reader_init(&reader, r.response)) {
		grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);

		answer = protobuf_c_message_unpack(type, NULL, GRPC_SLICE_LENGTH(slice),
						   GRPC_SLICE_START_PTR(slice));
		grpc_slice_unref(slice);
		grpc_byte_buffer_reader_destroy(&reader);
	} else {
		fprintf(stderr, "# %s: status %d\n", path, r.status);
	}
	remote_end(&r);
	return answer;
}

#endif
