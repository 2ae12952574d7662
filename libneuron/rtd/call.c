// SPDX-License-Identifier: LGPL-2.1-or-later
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <syslog.h>

#include "../common/lock.h"
#include "../common/util.h"
#include "call.h"
#include "config.h"

/* Messages as long as they may be that a client may have waiting, in either direction. */
#define MAX_MESSAGES 4u
/* What structures of a message may take, beside twice its length. */
#define SLACK 65536u

static unsigned int nr_calls;
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t calls_changed = PTHREAD_COND_INITIALIZER;

static void count_call(int change)
{
	GUARD(&calls_lock);
	nr_calls += (unsigned int)change;
	pthread_cond_broadcast(&calls_changed);
}

void call_wait_all(void)
{
	GUARD(&calls_lock);
	while (nr_calls)
		pthread_cond_wait(&calls_changed, &calls_lock);
}

static void unref(struct call *call)
{
	if (atomic_fetch_sub(&call->refs, 1) == 1)
		call_free(call);
}

static void on_sent(struct call *call, bool ok)
{
	(void)ok;
	unref(call);
}

static void on_closed(struct call *call, bool ok)
{
	(void)ok;
	/* Looks the call up where it waits; it may have been answered. */
	if (call->was_cancelled)
		call->cancelled(call);
	unref(call);
}

struct call *call_new(const struct method *method)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->arrived.call = call->sent.call = call->closed.call = call;
	call->sent.done = on_sent;
	call->closed.done = on_closed;
	call->method = method;
	call->refs = 1;
	grpc_metadata_array_init(&call->metadata);
	grpc_call_details_init(&call->details);
	count_call(1);
	return call;
}

void call_free(struct call *call)
{
	if (call->message)
		protobuf_c_message_free_unpacked(call->message, &call->allocator);
	if (call->payload)
		grpc_byte_buffer_destroy(call->payload);
	if (call->response)
		grpc_byte_buffer_destroy(call->response);
	if (call->grpc)
		grpc_call_unref(call->grpc);
	grpc_metadata_array_destroy(&call->metadata);
	grpc_call_details_destroy(&call->details);
	if (call->client) {
		GUARD(&rtd_lock);
		call->client->held -= call->held;
		call->client->received -= call->received;
		call->client->nr_slow -= call->slow;
		client_drop(call->client);
	}
	free(call);
	count_call(-1);
}

/* Many empty fields are short in the message and long in memory. */
static void *allocate(void *data, size_t bytes)
{
	struct call *call = data;

	if (bytes > call->budget)
		return NULL;
	call->budget -= bytes;
	return malloc(bytes);
}

static void release(void *data, void *p)
{
	(void)data;
	free(p);
}

static uint64_t most_bytes(void)
{
	return MAX_MESSAGES * (uint64_t)config.max_message * MIB;
}

/* Requests that wait keep their messages, whose number alone would be no limit. */
static bool count_received(struct call *call, uint64_t bytes)
{
	GUARD(&rtd_lock);
	if (bytes > most_bytes() || call->client->received > most_bytes() - bytes)
		return false;
	call->client->received += bytes;
	call->received = bytes;
	return true;
}

bool call_parse(struct call *call, const ProtobufCMessageDescriptor *type)
{
	grpc_byte_buffer_reader reader;
	grpc_slice slice;

	if (call->payload && !count_received(call, grpc_byte_buffer_length(call->payload))) {
		/* Its client may never read the answer. */
		grpc_byte_buffer_destroy(call->payload);
		call->payload = NULL;
		call_fail(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many messages are waiting");
		return false;
	}
	if (!call->payload || !grpc_byte_buffer_reader_init(&reader, call->payload)) {
		call_fail(call, GRPC_STATUS_INVALID_ARGUMENT, "there is no message");
		return false;
	}
	slice = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	call->budget = 2 * GRPC_SLICE_LENGTH(slice) + SLACK;
	call->allocator = (ProtobufCAllocator){ allocate, release, call };
	call->message = protobuf_c_message_unpack(type, &call->allocator, GRPC_SLICE_LENGTH(slice),
						  GRPC_SLICE_START_PTR(slice));
	grpc_slice_unref(slice);
	/* The tensors are in the message now. */
	grpc_byte_buffer_destroy(call->payload);
	call->payload = NULL;
	if (call->message)
		return true;
	call_fail(call, GRPC_STATUS_INVALID_ARGUMENT, "the message is malformed");
	return false;
}

static void answer(struct call *call, grpc_status_code code, const char *text)
{
	grpc_slice details = grpc_slice_from_copied_string(text);
	grpc_op ops[4] = { { .op = GRPC_OP_SEND_INITIAL_METADATA } };
	size_t n = 1;

	if (call->response) {
		ops[n].op = GRPC_OP_SEND_MESSAGE;
		ops[n++].data.send_message.send_message = call->response;
	}
	ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	ops[n].data.send_status_from_server.status = code;
	ops[n++].data.send_status_from_server.status_details = &details;
	/* Else it is received already. */
	if (!call->cancelled) {
		ops[n].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
		ops[n++].data.recv_close_on_server.cancelled = &call->was_cancelled;
	}
	if (grpc_call_start_batch(call->grpc, ops, n, &call->sent, NULL) != GRPC_CALL_OK) {
		syslog(LOG_ERR, "an answer could not be sent");
		unref(call);
	}
	grpc_slice_unref(details);
}

grpc_byte_buffer *call_pack(const ProtobufCMessage *message)
{
	grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
	grpc_byte_buffer *packed;

	protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
	packed = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	return packed;
}

void call_reply_packed(struct call *call, grpc_byte_buffer *packed)
{
	call->response = packed;
	answer(call, GRPC_STATUS_OK, "");
}

void call_reply(struct call *call, const ProtobufCMessage *message)
{
	call_reply_packed(call, call_pack(message));
}

void call_fail(struct call *call, grpc_status_code code, const char *format, ...)
{
	char text[768];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	syslog(LOG_INFO, "pid %d: refused with %d: %s", call->client ? call->client->pid : 0,
	       (int)code, text);
	answer(call, code, text);
}

void call_fail_errno(struct call *call, int error, const char *what)
{
	static const struct {
		int error;
		grpc_status_code code;
	} codes[] = {
		{ EINVAL, GRPC_STATUS_INVALID_ARGUMENT },
		{ ENOENT, GRPC_STATUS_NOT_FOUND },
		{ EPERM, GRPC_STATUS_PERMISSION_DENIED },
		{ EACCES, GRPC_STATUS_PERMISSION_DENIED },
		{ EBUSY, GRPC_STATUS_FAILED_PRECONDITION },
		{ EALREADY, GRPC_STATUS_FAILED_PRECONDITION },
		{ ESHUTDOWN, GRPC_STATUS_FAILED_PRECONDITION },
		{ ERANGE, GRPC_STATUS_FAILED_PRECONDITION },
		{ EOPNOTSUPP, GRPC_STATUS_UNIMPLEMENTED },
		{ ENOMEM, GRPC_STATUS_RESOURCE_EXHAUSTED },
		{ EFBIG, GRPC_STATUS_RESOURCE_EXHAUSTED },
		{ E2BIG, GRPC_STATUS_RESOURCE_EXHAUSTED },
		{ EAGAIN, GRPC_STATUS_RESOURCE_EXHAUSTED },
		{ EDQUOT, GRPC_STATUS_RESOURCE_EXHAUSTED },
		{ ETIMEDOUT, GRPC_STATUS_DEADLINE_EXCEEDED },
		{ ESRCH, GRPC_STATUS_CANCELLED },
		{ ECANCELED, GRPC_STATUS_CANCELLED },
	};
	grpc_status_code code = GRPC_STATUS_INTERNAL;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].error == -error)
			code = codes[i].code;
	call_fail(call, code, "%s", *what ? what : strerror(-error));
}

bool call_hold(struct call *call, uint64_t bytes)
{
	uint64_t most = (uint64_t)config.max_message * MIB;
	bool fits;

	if (bytes > most) {
		call_fail(call, GRPC_STATUS_RESOURCE_EXHAUSTED,
			  "the outputs do not fit a message; give memory for them");
		return false;
	}
	pthread_mutex_lock(&rtd_lock);
	/* A client that does not read its answers has a few of them. */
	fits = call->client->held <= most_bytes() - bytes;
	if (fits) {
		call->client->held += bytes;
		call->held = bytes;
	}
	pthread_mutex_unlock(&rtd_lock);
	if (!fits)
		call_fail(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many answers are not read");
	return fits;
}

void call_watch(struct call *call, call_cancelled_fn cancelled)
{
	grpc_op ops[1] = { { .op = GRPC_OP_RECV_CLOSE_ON_SERVER } };

	ops[0].data.recv_close_on_server.cancelled = &call->was_cancelled;
	call->cancelled = cancelled;
	atomic_fetch_add(&call->refs, 1);
	if (grpc_call_start_batch(call->grpc, ops, 1, &call->closed, NULL) != GRPC_CALL_OK)
		unref(call);
}

bool call_is_gone(struct call *call)
{
	GUARD(&rtd_lock);
	return call->gone;
}

/* The answer may be under way: then the client does not get it any more. */
static void on_given_up(struct call *call)
{
	uint64_t made;

	pthread_mutex_lock(&rtd_lock);
	call->gone = true;
	made = call->made;
	pthread_mutex_unlock(&rtd_lock);
	if (made)
		call->undo(call->client, made);
}

void call_undo_with(struct call *call, call_undo_fn undo)
{
	call->undo = undo;
	call_watch(call, on_given_up);
}

void call_reply_made(struct call *call, uint64_t made, const ProtobufCMessage *message)
{
	bool gone;

	pthread_mutex_lock(&rtd_lock);
	gone = call->gone;
	call->made = made;
	pthread_mutex_unlock(&rtd_lock);
	if (!gone) {
		call_reply(call, message);
		return;
	}
	call->undo(call->client, made);
	call_fail(call, GRPC_STATUS_CANCELLED, "given up");
}
