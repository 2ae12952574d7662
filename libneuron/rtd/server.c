// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A call says of its connection only the number of the socket ("fd:7"). That is enough: gRPC
 * closes the socket after the last call of the connection is freed, so the number means the
 * same client as long as there is a call that has it. That is how gRPC is made, not what it
 * promises, so a number is not used again before all others (server_number()).
 */
#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <semaphore.h>

#include "../common/lock.h"
#include "../common/thread.h"
#include "../common/util.h"
#include "config.h"
#include "server.h"
#include "service.h"

#define NR_THREADS 2u
#define MAX_STREAMS 64		/* calls of a connection at a time */
#define MAX_METADATA 8192
#define MAX_SOCKETS 4096

static grpc_completion_queue *queue;
static grpc_server *server;
static grpc_server_credentials *credentials;
static void *registered[32];
static pthread_t threads[NR_THREADS];
static unsigned int nr_threads;
static struct {
	struct client *client;
	uint64_t serial;		/* of the connection */
} by_socket[MAX_SOCKETS];		/* rtd_lock */
/* Set before the server is shut down: what it returns then is no call. */
static atomic_bool ending;
static sem_t stopped;

static void on_arrived(struct call *call, bool ok);

/* Wait for the next call of a method, NULL: of any other. */
static void expect(const struct method *method)
{
	struct call *call = atomic_load(&ending) ? NULL : call_new(method);
	grpc_call_error error;

	if (!call)
		return;
	call->arrived.done = on_arrived;
	if (method)
		error = grpc_server_request_registered_call(
			server, registered[method - service_methods], &call->grpc,
			&call->deadline, &call->metadata, &call->payload, queue, queue,
			&call->arrived);
	else
		error = grpc_server_request_call(server, &call->grpc, &call->details,
						 &call->metadata, queue, queue, &call->arrived);
	if (error != GRPC_CALL_OK)
		call_free(call);
}

static struct client *client_of_call(grpc_call *grpc)
{
	char *peer = grpc_call_get_peer(grpc);
	struct client *client = NULL;
	unsigned int number;

	GUARD(&rtd_lock);
	if (sscanf(peer, "fd:%u", &number) == 1 && number < MAX_SOCKETS &&
	    by_socket[number].client)
		client = client_hold(by_socket[number].client);
	gpr_free(peer);
	return client;
}

static void on_arrived(struct call *call, bool ok)
{
	/* The server has shut down. */
	if (!ok) {
		call_free(call);
		return;
	}
	expect(call->method);
	call->client = client_of_call(call->grpc);
	if (!call->client)
		call_fail(call, GRPC_STATUS_UNAUTHENTICATED, "the connection is not known");
	else if (!call->method)
		call_fail(call, GRPC_STATUS_UNIMPLEMENTED, "there is no such method");
	else
		service_run(call);
}

static void *serve(void *arg)
{
	const gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);

	(void)arg;
	for (;;) {
		grpc_event event = grpc_completion_queue_next(queue, never, NULL);
		struct tag *tag = event.tag;

		if (event.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (event.type == GRPC_OP_COMPLETE)
			tag->done(tag->call, event.success);
	}
}

static grpc_arg integer(const char *key, int value)
{
	return (grpc_arg){ .type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value };
}

static grpc_server *make_server(void)
{
	grpc_arg list[] = {
		integer(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)(config.max_message * MIB)),
		integer(GRPC_ARG_MAX_CONCURRENT_STREAMS, MAX_STREAMS),
		integer(GRPC_ARG_MAX_METADATA_SIZE, MAX_METADATA),
	};
	const grpc_channel_args args = { .num_args = ARRAY_SIZE(list), .args = list };

	return grpc_server_create(&args, NULL);
}

int server_start(void)
{
	grpc_init();
	credentials = grpc_insecure_server_credentials_create();
	queue = grpc_completion_queue_create_for_next(NULL);
	server = make_server();
	grpc_server_register_completion_queue(server, queue, NULL);
	for (unsigned int i = 0; i < service_nr_methods; i++)
		registered[i] = grpc_server_register_method(
			server, service_methods[i].path, NULL,
			GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
	grpc_server_start(server);
	for (unsigned int i = 0; i < service_nr_methods; i++)
		for (unsigned int n = 0; n < service_methods[i].at_a_time; n++)
			expect(&service_methods[i]);
	expect(NULL);
	return threads_start(threads, &nr_threads, NR_THREADS, serve);
}

static void on_stopped(struct call *call, bool ok)
{
	(void)call;
	(void)ok;
	sem_post(&stopped);
}

void server_stop(void)
{
	static struct tag tag = { .done = on_stopped };

	sem_init(&stopped, 0, 0);
	atomic_store(&ending, true);
	grpc_server_shutdown_and_notify(server, queue, &tag);
	grpc_server_cancel_all_calls(server);
}

void server_end(void)
{
	while (sem_wait(&stopped))
		;
	/* The server does not wait for cancelled ones, whose answers need the queue. */
	call_wait_all();
	grpc_completion_queue_shutdown(queue);
	threads_join(threads, &nr_threads);
	grpc_server_destroy(server);
	grpc_completion_queue_destroy(queue);
	grpc_server_credentials_release(credentials);
	grpc_shutdown_blocking();
}

int server_number(int socket)
{
	static int next;
	int ret = fcntl(socket, F_DUPFD_CLOEXEC, next);

	/* Above the limit of the process, or of the table. */
	if (next && (ret >= MAX_SOCKETS || (ret < 0 && (errno == EINVAL || errno == EMFILE)))) {
		if (ret >= 0)
			close(ret);
		ret = fcntl(socket, F_DUPFD_CLOEXEC, 0);
	}
	if (ret < 0)
		return -errno;
	next = ret + 1;
	return ret;
}

int server_add(int socket, struct client *client, uint64_t *serial)
{
	if (socket >= MAX_SOCKETS)
		return -EMFILE;
	pthread_mutex_lock(&rtd_lock);
	/* gRPC has closed that one before its end was noticed here. */
	if (by_socket[socket].client)
		client_drop(by_socket[socket].client);
	by_socket[socket].client = client_hold(client);
	by_socket[socket].serial = *serial = new_id();
	pthread_mutex_unlock(&rtd_lock);
	grpc_server_add_channel_from_fd(server, socket, credentials);
	return 0;
}

void server_forget(int socket, uint64_t serial)
{
	GUARD(&rtd_lock);
	if (by_socket[socket].serial != serial)
		return;
	client_drop(by_socket[socket].client);
	by_socket[socket].client = NULL;
	by_socket[socket].serial = 0;
}
