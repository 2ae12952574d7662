// SPDX-License-Identifier: LGPL-2.1-or-later
/* neuron-rtd: the main thread accepts, and notices who has gone. */
#include <semaphore.h>
#include <signal.h>
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
/* That send memory: of a client, and of all. */
#define MAX_SENDERS_CLIENT 64u
#define MAX_SENDERS 512u
/* How long connections wait when there is nothing to take them with. */
#define PAUSE_MS 100

/* A descriptor of the loop. */
struct watch {
	void (*ready)(struct watch *watch);
	int fd;
	struct client *client;		/* with a reference; NULL: of no client */
	int socket;			/* of a connection: gRPC's, of which fd is a duplicate */
	uint64_t serial;
	bool paused;			/* a listener that is not listened to */
	bool removed;			/* freed after the events at hand */
	TAILQ_ENTRY(watch) link;
};

static TAILQ_HEAD(watch_list, watch) watches = TAILQ_HEAD_INITIALIZER(watches);
static unsigned int nr_connections;
static int loop = -1;
static bool quit, paused;		/* paused: some listener is */

/*
 * A connection that sends memory. Closing what a client has sent takes as long as the client
 * likes, for a file system in user space is asked and a socket lingers; the kernel closes, too,
 * what a message has too much of, and what nobody has received. So each connection has a thread,
 * in which all of that happens, and which no other waits for.
 */
struct sender {
	int fd;				/* -1: none, or it is being closed */
	struct client *client;		/* NULL: refused, or ended */
	sem_t accepted;
	TAILQ_ENTRY(sender) link;
};

/* Under rtd_lock, until their threads have closed everything. */
static TAILQ_HEAD(sender_list, sender) senders = TAILQ_HEAD_INITIALIZER(senders);
static unsigned int nr_senders;

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
	struct sender *s;

	/* A child that has inherited a connection is not the client. */
	TAILQ_FOREACH(w, &watches, link)
		if (w->client == client && !w->removed && w->fd != client->pidfd)
			shutdown(w->fd, SHUT_RDWR);
	pthread_mutex_lock(&rtd_lock);
	TAILQ_FOREACH(s, &senders, link)
		if (s->client == client) {
			s->client = NULL;
			shutdown(s->fd, SHUT_RDWR);
		}
	pthread_mutex_unlock(&rtd_lock);
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
	/* Who sends memory without one could never use it: there is nothing to watch, an error. */
	if ((*client)->pidfd < 0 && !known)
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

static bool told;			/* that connections wait */

/* Without descriptors the listener would stay readable, and this thread never sleep. */
static void let_wait(struct watch *listener, int error)
{
	if (!told)
		syslog(LOG_WARNING, "connections have to wait: %s", strerror(error));
	told = true;
	listen_to(listener, false);
	paused = true;
}

static int accept_on(struct watch *listener, int flags)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | flags);

	if (fd >= 0)
		told = false;
	else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		let_wait(listener, errno);
	return fd;
}

static void resume_listeners(void)
{
	struct watch *w;

	TAILQ_FOREACH(w, &watches, link)
		if (w->paused)
			listen_to(w, true);
	paused = false;
}

static void close_apart(int fd);

static void tell_refused(int error)
{
	syslog(LOG_WARNING, "a connection is refused: %s", strerror(-error));
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
	int fd = accept_on(w, SOCK_NONBLOCK), ret;
	struct client *client;

	if (fd < 0)
		return;
	/* If the listener was given, it may have been connected to before. */
	listen_without_rights(fd);
	ret = nr_connections == MAX_CONNECTIONS ? -EUSERS : find_client(fd, false, &client);
	if (!ret) {
		ret = add_calls(fd, client);
		if (ret)
			client_put(client);
	}
	if (ret) {
		tell_refused(ret);
		close_apart(fd);
	}
}

/* ---- memory ---------------------------------------------------------------------------- */

struct memory_answer {
	int64_t status;			/* 0 or -errno */
	uint64_t id;
};

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

	*bytes = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	c = *bytes >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == room)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	/* A message without data ends the connection, one with more descriptors is refused. */
	if (fd >= 0 && (!*bytes || m.msg_flags & MSG_CTRUNC)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int add_buffer(struct sender *s, int fd, uint64_t *id)
{
	struct client *client;
	int ret;

	pthread_mutex_lock(&rtd_lock);
	client = s->client ? client_hold(s->client) : NULL;
	pthread_mutex_unlock(&rtd_lock);
	if (!client)
		return -ESRCH;
	ret = buffer_add(client, fd, id);
	client_put(client);
	return ret;
}

/* False: the connection ends. */
static bool take_memory(struct sender *s)
{
	struct memory_answer answer = { .status = -EBADF };
	ssize_t bytes;
	int fd = take_descriptor(s->fd, &bytes);
	bool sent;

	if (bytes <= 0)
		return false;
	if (fd >= 0)
		answer.status = add_buffer(s, fd, &answer.id);
	/* Who does not read answers gets none. */
	sent = send(s->fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
	if (fd >= 0)
		close(fd);
	return sent;
}

static void *serve_sender(void *arg)
{
	struct sender *s = arg;
	int fd;

	while (sem_wait(&s->accepted))
		;
	while (s->fd >= 0 && take_memory(s))
		;
	pthread_mutex_lock(&rtd_lock);
	fd = s->fd;
	s->fd = -1;
	pthread_mutex_unlock(&rtd_lock);
	if (fd >= 0)
		close(fd);
	pthread_mutex_lock(&rtd_lock);
	TAILQ_REMOVE(&senders, s, link);
	nr_senders--;
	pthread_mutex_unlock(&rtd_lock);
	sem_destroy(&s->accepted);
	free(s);
	return NULL;
}

/* With a thread, which waits until it is told whom to serve. 0 or -errno. */
static int new_sender(struct sender **sender)
{
	struct sender *s;
	pthread_t thread;
	int ret;

	GUARD(&rtd_lock);
	if (nr_senders == MAX_SENDERS)
		return -EUSERS;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fd = -1;
	sem_init(&s->accepted, 0, 0);
	ret = thread_start(&thread, serve_sender, s);
	if (ret) {
		sem_destroy(&s->accepted);
		free(s);
		return ret;
	}
	pthread_detach(thread);
	TAILQ_INSERT_TAIL(&senders, s, link);
	nr_senders++;
	*sender = s;
	return 0;
}

/* A connection that is refused may have received descriptors, too. */
static void close_apart(int fd)
{
	struct sender *s;

	if (new_sender(&s)) {
		close(fd);
		return;
	}
	s->fd = fd;
	shutdown(fd, SHUT_RDWR);
	sem_post(&s->accepted);
}

static int set_client(struct sender *s)
{
	struct client *client;
	unsigned int nr = 0;
	struct sender *other;
	int ret = find_client(s->fd, true, &client);

	if (ret)
		return ret;
	GUARD(&rtd_lock);
	TAILQ_FOREACH(other, &senders, link)
		nr += other->client == client;
	if (nr < MAX_SENDERS_CLIENT)
		s->client = client;
	/* It stays until end_client(), and does not stay longer for a thread that hangs. */
	client_drop(client);
	return nr < MAX_SENDERS_CLIENT ? 0 : -EUSERS;
}

static void on_memory(struct watch *w)
{
	struct sender *s;
	/* The thread first: without one nobody could close what is accepted. */
	int ret = new_sender(&s);

	if (ret) {
		let_wait(w, -ret);
		return;
	}
	s->fd = accept_on(w, 0);
	ret = s->fd < 0 ? 0 : set_client(s);
	if (ret) {
		tell_refused(ret);
		shutdown(s->fd, SHUT_RDWR);
	}
	sem_post(&s->accepted);
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

static void signals_to_wait_for(sigset_t *signals)
{
	struct sigaction hangup;

	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	/* Not if the daemon was started with nohup. */
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(signals, SIGHUP);
}

static int prepare(struct listeners *listeners)
{
	sigset_t signals;
	int fd, ret;

	/* In all threads, those of gRPC too. */
	signals_to_wait_for(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	loop = epoll_create1(EPOLL_CLOEXEC);
	fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (loop < 0 || fd < 0)
		return -errno;
	ret = listen_open(listeners) ?: cores_open() ?: infer_start() ?: service_start() ?:
	      server_start() ?: watch_add(fd, EPOLLIN, on_signal, NULL, NULL) ?:
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

/* Clients end as if they had gone, so nothing stays on the devices. */
static void finish(void)
{
	sigset_t signals;
	struct watch *w;

	listen_notify("STOPPING=1");
	listen_remove();
	/* A second one need not wait for what runs: the driver frees what a process leaves. */
	signals_to_wait_for(&signals);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
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
		listen_remove();
		return 1;
	}
	syslog(LOG_NOTICE, "listening on %s", config.endpoint);
	listen_notify("READY=1");
	run();
	syslog(LOG_NOTICE, "ending");
	finish();
	return 0;
}
