/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A page for Prometheus over HTTP, served by a program of one thread while it waits. */
#ifndef TOOLS_HTTP_H
#define TOOLS_HTTP_H

#include <error.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "../common/env.h"
#include "watch.h"

#define HTTP_ADDRESS "127.0.0.1"
#define HTTP_PLACES 32u

/* Of a connection. */
struct http_place {
	struct MHD_Connection *of;		/* NULL: free */
	unsigned long since;			/* count of http when it came or was answered */
	bool asked;				/* a whole request, which is being answered */
};

struct http {
	struct http_place places[HTTP_PLACES];
	unsigned long count;
	bool closed;				/* a connection, since the library ran */
	struct MHD_Daemon *daemon;		/* NULL: none is served */
	const char *(*page)(size_t *size);	/* text, until the next call */
};

/* NULL: it has none, or another connection has got it. */
static inline struct http_place *http_place(struct MHD_Connection *of)
{
	struct http_place *p = MHD_get_connection_info(
		of, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

	return p && p->of == of ? p : NULL;
}

/* A free one, or that of who has asked for nothing for the longest time, and is sent away. */
static inline struct http_place *http_find_place(struct http *http)
{
	struct http_place *oldest = NULL;

	for (unsigned int i = 0; i < HTTP_PLACES; i++) {
		struct http_place *p = &http->places[i];

		if (!p->of)
			return p;
		if (!p->asked && (!oldest || p->since < oldest->since))
			oldest = p;
	}
	/* The library reads its end, and closes it. */
	if (oldest)
		shutdown(MHD_get_connection_info(oldest->of, MHD_CONNECTION_INFO_CONNECTION_FD)
			 ->connect_fd, SHUT_RDWR);
	return oldest;
}

static inline void http_connected(void *arg, struct MHD_Connection *of, void **context,
				  enum MHD_ConnectionNotificationCode what)
{
	struct http *http = arg;
	struct http_place *p = *context;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (p && p->of == of)
			p->of = NULL;
		http->closed = true;
		return;
	}
	p = http_find_place(http);
	if (p)
		*p = (struct http_place){ .of = of, .since = http->count++ };
	*context = p;
}

static inline void http_answered(void *arg, struct MHD_Connection *of, void **seen,
				 enum MHD_RequestTerminationCode how)
{
	struct http *http = arg;
	struct http_place *p = http_place(of);

	(void)seen;
	(void)how;
	if (p) {
		p->asked = false;
		p->since = http->count++;
	}
}

static inline enum MHD_Result http_answer(struct MHD_Connection *to, unsigned int status,
					  const char *type, const char *text, size_t size)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(size, (void *)(uintptr_t)text,
								 MHD_RESPMEM_MUST_COPY);
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	ret = MHD_queue_response(to, status, r);
	MHD_destroy_response(r);
	return ret;
}

static inline enum MHD_Result http_asked(void *arg, struct MHD_Connection *to, const char *url,
					 const char *method, const char *version, const char *body,
					 size_t *size, void **seen)
{
	static const char there[] = "metrics are at /metrics\n", only[] = "read only\n";
	struct http_place *place = http_place(to);
	struct http *http = arg;
	const char *text;
	size_t len;

	(void)version;
	(void)body;
	/* First come the headers, then what follows them, which does not matter. */
	if (!*seen || *size) {
		*seen = http;
		*size = 0;
		return MHD_YES;
	}
	if (place)
		place->asked = true;
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return http_answer(to, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", only,
				   sizeof(only) - 1);
	if (strcmp(url, "/metrics"))
		return http_answer(to, strcmp(url, "/") ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK,
				   "text/plain", there, sizeof(there) - 1);
	text = http->page(&len);
	return http_answer(to, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text, len);
}

/* "[ADDRESS:]PORT"; an address of IPv6 stands in brackets. */
static inline struct addrinfo *http_address(const char *text)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	char *copy = strdup(text), *port, *host = NULL;
	unsigned long n;
	int ret;

	if (!copy)
		error(1, ENOMEM, "--listen");
	port = strrchr(copy, ':');
	if (port) {
		host = copy;
		*port++ = 0;
		if (*host == '[' && host[strlen(host) - 1] == ']')
			*strchr(++host, ']') = 0;
	}
	if (!env_number(port ? port : copy, 65535, &n) || !n || (host && !*host))
		error(2, 0, "--listen=%s: not [ADDRESS:]PORT", text);
	ret = getaddrinfo(host ? host : HTTP_ADDRESS, port ? port : copy, &hints, &found);
	if (ret)
		error(2, 0, "--listen=%s: %s", text, gai_strerror(ret));
	free(copy);
	return found;
}

static inline void http_start(struct http *http, const char *address,
			      const char *(*page)(size_t *size))
{
	struct addrinfo *at = http_address(address);
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	/* The library's own attempt does not say what was wrong. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, SOMAXCONN))
		error(1, errno, "--listen=%s", address);
	freeaddrinfo(at);
	signal(SIGPIPE, SIG_IGN);
	http->page = page;
	http->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, http_asked, http,
					MHD_OPTION_LISTEN_SOCKET, fd,
					MHD_OPTION_NOTIFY_CONNECTION, http_connected, http,
					MHD_OPTION_NOTIFY_COMPLETED, http_answered, http,
					/* Those that were sent away are still there for a while. */
					MHD_OPTION_CONNECTION_LIMIT, 2 * HTTP_PLACES,
					MHD_OPTION_CONNECTION_TIMEOUT, 15u, MHD_OPTION_END);
	if (!http->daemon)
		error(1, 0, "--listen=%s: no server", address);
}

static inline void http_stop(struct http *http)
{
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
}

/* Until @time or a signal; answers requests meanwhile. */
static inline void http_wait(struct http *http, double time)
{
	const union MHD_DaemonInfo *info = http->daemon ?
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	struct pollfd fd = { .fd = info ? info->epoll_fd : -1, .events = POLLIN };
	MHD_UNSIGNED_LONG_LONG msec;
	sigset_t all, old;
	double left;

	while (!ended && (left = time - now()) > 0) {
		struct timespec t;

		if (info && MHD_get_timeout(http->daemon, &msec) == MHD_YES)
			left = fmin(left, (double)msec / 1000);
		/* At its limit it did not listen, and does so again when it runs. */
		if (http->closed)
			left = 0;
		http->closed = false;
		t = timespec_of(isinf(left) ? 0 : left);
		/* A signal comes before this or ends the wait, not between. */
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, &old);
		if (!ended)
			ppoll(&fd, 1, isinf(left) ? NULL : &t, &old);
		sigprocmask(SIG_SETMASK, &old, NULL);
		if (info && !ended)
			MHD_run(http->daemon);
	}
}

#endif
