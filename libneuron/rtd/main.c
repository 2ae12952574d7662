// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-rtd: this thread accepts, takes memory, and notices who has gone. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <syslog.h>

#include "../common/lock.h"
#include "../common/thread.h"
#include "../common/util.h"
#include "client.h"
#include "config.h"
#include "cores.h"
#include "infer.h"
#include "listen.h"
#include "server.h"
#include "service.h"

/* A process may have several. */
#define MAX_CONNECTIONS 256u
/* How long connections wait when there is nothing to take them with. */
#define PAUSE_MS 100

/* A descriptor of the loop. */
struct watch {
	void (*ready)(struct watch *watch);
	int fd;
	struct client *client;		/* with a reference; NULL: of no client */
	int socket;			/* gRPC's, of which fd is a duplicate */
	uint64_t serial;
	bool paused;			/* a listener that is not listened to */
	bool removed;			/* freed after the events at hand */
	TAILQ_ENTRY(watch) link;
};

static TAILQ_HEAD(watch_list, watch) watches = TAILQ_HEAD_INITIALIZER(watches);
static unsigned int nr_connections;
static int loop = -1;
static bool quit, paused;		/* paused: some listener is */

static int watch_add(int fd, uint32_t events, void (*ready)(struct watch *),
		     struct client *client, struct watch **out)
{
	struct watch *w = calloc(1, sizeof(*w));
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (!w)
		return -ENOMEM;
	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &e)) {
		free(w);
		return -errno;
	}
	w->ready = ready;
	w->fd = fd;
	w->client = client;
	TAILQ_INSERT_TAIL(&watches, w, link);
	if (out)
		*out = w;
	return 0;
}

static void watch_remove(struct watch *w)
{
	epoll_ctl(loop, EPOLL_CTL_DEL, w->fd, NULL);
	w->removed = true;
}

static void free_removed(void)
{
	struct watch *w, *next;

	for (w = TAILQ_FIRST(&watches); w; w = next) {
		next = TAILQ_NEXT(w, link);
		if (w->removed) {
			TAILQ_REMOVE(&watches, w, link);
			free(w);
		}
	}
}

/* ---- clients --------------------------------------------------------------------------- */

static void end_client(struct client *client)
{
	struct watch *w;

	/* A child that has inherited a connection is not the client. */
	TAILQ_FOREACH(w, &watches, link)
		if (w->client == client && !w->removed && w->fd != client->pidfd)
			shutdown(w->fd, SHUT_RDWR);
	service_end_client(client);
}

static void on_process_end(struct watch *w)
{
	watch_remove(w);
	end_client(w->client);
}

/* A client with a pidfd ends with that, another one with its connection. */
static void drop_connection(struct watch *w)
{
	bool ends = w->client->pidfd < 0;

	watch_remove(w);
	close(w->fd);
	nr_connections--;
	if (w->socket >= 0)
		server_forget(w->socket, w->serial);
	if (ends)
		end_client(w->client);
	else
		client_put(w->client);
}

static void on_connection_end(struct watch *w)
{
	drop_connection(w);
}

/* Its connection holds a new client without a pidfd, its pidfd any other. 0 or -errno. */
static int find_client(int fd, bool known, struct client **client)
{
	bool is_new;
	int ret = client_of(fd, known, client, &is_new);

	if (ret || !is_new)
		return ret;
	if ((*client)->pidfd < 0)
		return 0;
	pthread_mutex_lock(&rtd_lock);
	client_hold(*client);
	pthread_mutex_unlock(&rtd_lock);
	ret = watch_add((*client)->pidfd, EPOLLIN, on_process_end, *client, NULL);
	if (ret) {
		client_end(*client);
		client_put(*client);
		client_put(*client);
	}
	return ret;
}

static void listen_to(struct watch *listener, bool listening)
{
	struct epoll_event e = { .events = listening ? EPOLLIN : 0, .data.ptr = listener };

	epoll_ctl(loop, EPOLL_CTL_MOD, listener->fd, &e);
	listener->paused = !listening;
}

/* Without descriptors the listener would stay readable, and this thread never sleep. */
static void note_accept(struct watch *listener, int error)
{
	static bool told;

	if (!error) {
		told = false;
		return;
	}
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	if (!told)
		syslog(LOG_WARNING, "connections have to wait: %s", strerror(error));
	told = true;
	listen_to(listener, false);
	paused = true;
}

static void resume_listeners(void)
{
	struct watch *w;

	TAILQ_FOREACH(w, &watches, link)
		if (w->paused)
			listen_to(w, true);
	paused = false;
}

static void accept_on(struct watch *listener, bool memory,
		      int (*add)(int fd, struct client *client))
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), ret;
	struct client *client;

	note_accept(listener, fd < 0 ? errno : 0);
	if (fd < 0)
		return;
	ret = nr_connections == MAX_CONNECTIONS ? -EUSERS : find_client(fd, memory, &client);
	if (!ret) {
		ret = add(fd, client);
		if (ret)
			client_put(client);
	}
	if (ret) {
		syslog(LOG_WARNING, "a connection is refused: %s", strerror(-ret));
		close(fd);
	}
}

/* gRPC owns the socket; a duplicate tells when the other end is closed. */
static int add_calls(int fd, struct client *client)
{
	int calls = server_number(fd);
	struct watch *w = NULL;
	int ret = calls < 0 ? calls : watch_add(fd, EPOLLRDHUP, on_connection_end, client, &w);

	if (!ret) {
		w->socket = calls;
		nr_connections++;
		ret = server_add(calls, client, &w->serial);
		if (ret) {
			nr_connections--;
			watch_remove(w);
		}
	}
	if (ret && calls >= 0)
		close(calls);
	return ret;
}

static void on_calls(struct watch *w)
{
	accept_on(w, false, add_calls);
}

/* ---- memory ---------------------------------------------------------------------------- */

struct memory_answer {
	int64_t status;			/* 0 or -errno */
	uint64_t id;
};

/*
 * Closing what a client has sent can take as long as the client likes: a file system in user
 * space is asked, a socket may linger.  A thread does it, which nobody waits for, not at the
 * end either.  Memory that was mapped is neither of the two.
 */
#define MAX_CLOSING 64u

static atomic_uint nr_closing;
static int to_close[2];			/* a pipe of descriptors */

static void *close_all(void *arg)
{
	int fd;

	(void)arg;
	while (read(to_close[0], &fd, sizeof(fd)) == sizeof(fd)) {
		close(fd);
		atomic_fetch_sub(&nr_closing, 1);
	}
	return NULL;
}

static int start_closing(void)
{
	pthread_t thread;

	return pipe2(to_close, O_CLOEXEC) ? -errno : thread_start(&thread, close_all, NULL);
}

static void close_later(int fd)
{
	atomic_fetch_add(&nr_closing, 1);
	/* There is room for more than MAX_CLOSING. */
	if (write(to_close[1], &fd, sizeof(fd)) != sizeof(fd))
		syslog(LOG_ERR, "a descriptor stays open: %m");
}

/* One descriptor with each message. -1: there is none, or more. */
static int take_descriptor(int socket, ssize_t *bytes)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	/* Not the whole room, in which a second one would fit that nobody closes. */
	const size_t room = CMSG_LEN(sizeof(int));
	char byte;
	struct iovec data = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = room,
	};
	struct cmsghdr *c;
	int fd = -1;

	*bytes = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	c = *bytes >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == room)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	/* A message without data ends the connection, one with more descriptors is refused. */
	if (fd >= 0 && (!*bytes || m.msg_flags & MSG_CTRUNC)) {
		close_later(fd);
		fd = -1;
	}
	return fd;
}

static void on_memory_message(struct watch *w)
{
	struct memory_answer answer = { .status = -EBADF };
	ssize_t bytes;
	int fd;

	if (atomic_load(&nr_closing) >= MAX_CLOSING) {
		drop_connection(w);
		return;
	}
	fd = take_descriptor(w->fd, &bytes);
	if (bytes < 0 && errno == EAGAIN)
		return;
	if (bytes <= 0) {
		drop_connection(w);
		return;
	}
	if (fd >= 0) {
		answer.status = buffer_add(w->client, fd, &answer.id);
		if (answer.status)
			close_later(fd);
		else
			close(fd);
	}
	/* Who does not read answers gets none. */
	if (send(w->fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		drop_connection(w);
}

static int add_memory(int fd, struct client *client)
{
	struct watch *w;
	int ret = watch_add(fd, EPOLLIN | EPOLLRDHUP, on_memory_message, client, &w);

	if (!ret) {
		w->socket = -1;
		nr_connections++;
	}
	return ret;
}

static void on_memory(struct watch *w)
{
	accept_on(w, true, add_memory);
}

/* ---- from start to end ------------------------------------------------------------------- */

static void on_signal(struct watch *w)
{
	struct signalfd_siginfo info;

	if (read(w->fd, &info, sizeof(info)) == sizeof(info))
		quit = true;
}

static void on_timer(struct watch *w)
{
	(void)w;
	infer_expire();
}

static int prepare(struct listeners *listeners)
{
	sigset_t signals;
	int fd, ret;

	/* In all threads, those of gRPC too. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	loop = epoll_create1(EPOLL_CLOEXEC);
	fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (loop < 0 || fd < 0)
		return -errno;
	ret = listen_open(listeners) ?: cores_open() ?: infer_start() ?: service_start() ?:
	      start_closing() ?: server_start() ?: watch_add(fd, EPOLLIN, on_signal, NULL, NULL) ?:
	      watch_add(infer_timer(), EPOLLIN, on_timer, NULL, NULL) ?:
	      watch_add(listeners->calls, EPOLLIN, on_calls, NULL, NULL);
	if (!ret && listeners->memory >= 0)
		ret = watch_add(listeners->memory, EPOLLIN, on_memory, NULL, NULL);
	return ret;
}

static void run(void)
{
	struct epoll_event events[32];

	while (!quit) {
		int n = epoll_wait(loop, events, ARRAY_SIZE(events), paused ? PAUSE_MS : -1);

		/* Or something has happened that may have closed one. */
		if (paused)
			resume_listeners();
		for (int i = 0; i < n; i++) {
			struct watch *w = events[i].data.ptr;

			if (!w->removed)
				w->ready(w);
		}
		free_removed();
	}
}

static void unload_shared(void)
{
	struct model *m;

	while ((m = TAILQ_FIRST(&models))) {
		pthread_mutex_lock(&rtd_lock);
		model_close(m);
		pthread_mutex_unlock(&rtd_lock);
		infer_refuse(m, NULL);
		model_unload(m);
	}
}

/* Clients end as if they had gone, so nothing stays on the devices. */
static void finish(struct listeners *listeners)
{
	struct watch *w;

	listen_notify("STOPPING=1");
	listen_close(listeners);
	server_stop();
	TAILQ_FOREACH(w, &watches, link) {
		if (w->removed || !w->client)
			continue;
		if (w->fd == w->client->pidfd)
			on_process_end(w);
		else
			drop_connection(w);
	}
	free_removed();
	service_stop();
	unload_shared();
	server_end();
	infer_stop();
	cores_close();
}

int main(int argc, char **argv)
{
	struct listeners listeners;
	int ret;

	config_read(argc, argv);
	setlogmask(LOG_UPTO((int)config.log_level));
	openlog("neuron-rtd", LOG_PID | (config.console ? LOG_PERROR : 0), LOG_DAEMON);
	ret = prepare(&listeners);
	if (ret) {
		syslog(LOG_ERR, "not started: %s", strerror(-ret));
		listen_close(&listeners);
		return 1;
	}
	syslog(LOG_NOTICE, "listening on %s", config.endpoint);
	listen_notify("READY=1");
	run();
	syslog(LOG_NOTICE, "ending");
	finish(&listeners);
	return 0;
}
