// SPDX-License-Identifier: LGPL-2.1-or-later
/* The debug stream of a core: somebody can connect and wait; there is nothing to read. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <nrt/ndebug_stream.h>

#include "nrt_internal.h"

/* nrt-api 4.7 */
SIZE(ndebug_stream_event_header_t, 64);
LAYOUT(ndebug_stream_event_header_t, type, 8);
LAYOUT(ndebug_stream_event_header_t, reserved, 12);
SIZE(ndebug_stream_payload_debug_tensor_read_t, 1024);
LAYOUT(ndebug_stream_payload_debug_tensor_read_t, logical_nc_id, 512);
LAYOUT(ndebug_stream_payload_debug_tensor_read_t, pipe, 516);
LAYOUT(ndebug_stream_payload_debug_tensor_read_t, tensor_dtype, 520);
LAYOUT(ndebug_stream_payload_debug_tensor_read_t, tensor_shape, 536);
LAYOUT(ndebug_stream_payload_debug_tensor_read_t, tensor_data_size, 600);
LAYOUT(ndebug_stream_payload_debug_tensor_read_t, reserved, 608);

/* A connection; the descriptor is an eventfd that nobody writes to. */
struct client {
	struct client *next;
	uint32_t vnc;
	int fd;
};

static pthread_mutex_t clients_lock = PTHREAD_MUTEX_INITIALIZER;
static struct client *clients;		/* clients_lock */

/* Under clients_lock: where the client of this core, or with this descriptor, hangs. */
static struct client **find(int64_t vnc, int fd)
{
	struct client **at = &clients;

	while (*at && (*at)->vnc != vnc && (*at)->fd != fd)
		at = &(*at)->next;
	return at;
}

/* Under clients_lock, takes *@at out. */
static void disconnect(struct client **at)
{
	struct client *c = *at;

	*at = c->next;
	close(c->fd);
	free(c);
}

static NRT_STATUS connect_client(uint32_t vnc, int *stream_fd)
{
	struct client *c;

	if (*find(vnc, -1)) {
		LOG_AS(NRT, ERROR, "nrt_debug_client_connect", "core %u has a client", vnc);
		return NRT_INVALID;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NRT_RESOURCE;
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->fd < 0) {
		free(c);
		return NRT_RESOURCE;
	}
	c->vnc = vnc;
	c->next = clients;
	clients = c;
	*stream_fd = c->fd;
	return NRT_SUCCESS;
}

NRT_EXPORT NRT_STATUS nrt_debug_client_connect(int logical_nc_idx, int *stream_fd)
{
	NRT_STATUS status = nrt_enter();
	struct nrt_vnc *v;

	if (status != NRT_SUCCESS)
		return status;
	if (!stream_fd || nrt_vnc_get(logical_nc_idx, &v) != NRT_SUCCESS) {
		status = NRT_INVALID;
	} else {
		pthread_mutex_lock(&clients_lock);
		status = connect_client((uint32_t)logical_nc_idx, stream_fd);
		pthread_mutex_unlock(&clients_lock);
	}
	nrt_leave();
	return status;
}

NRT_EXPORT void nrt_debug_client_connect_close(int stream_fd)
{
	struct client **at;

	if (stream_fd < 0)
		return;
	pthread_mutex_lock(&clients_lock);
	at = find(-1, stream_fd);
	if (*at)
		disconnect(at);
	pthread_mutex_unlock(&clients_lock);
}

NRT_EXPORT NRT_STATUS nrt_debug_client_read_one_event(int stream_fd,
						      ndebug_stream_event_header_t *header,
						      void **payload)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	pthread_mutex_lock(&clients_lock);
	status = header && payload && stream_fd >= 0 && *find(-1, stream_fd) ? NRT_QUEUE_EMPTY :
									      NRT_INVALID;
	pthread_mutex_unlock(&clients_lock);
	nrt_leave();
	return status;
}

/* nrt_debug_client_connect_close() does without the life lock. */
void nrt_debug_close(void)
{
	pthread_mutex_lock(&clients_lock);
	while (clients)
		disconnect(&clients);
	pthread_mutex_unlock(&clients_lock);
}

/* In a child: the connections are the parent's. */
void nrt_debug_forget(void)
{
	pthread_mutex_init(&clients_lock, NULL);
	clients = NULL;
}
