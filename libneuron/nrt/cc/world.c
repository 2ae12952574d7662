// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where the ranks of several hosts find each other, and hear who is gone. */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../common/thread.h"
#include "message.h"
#include "world.h"

/* Connections that have not said hello yet, and how long one may take for that. */
#define MAX_SILENT 64u
#define HELLO_MS 2000
/*
 * A connection that is idle is asked every second. It has ended when SILENCE_MS have passed since
 * the last answer. An interruption of half of that always leaves a question, or a message that
 * is sent again after twice the time of the one before, enough to arrive behind it.
 */
#define IDLE 1
#define INTERVAL 1
#define SILENCE_MS 10000

struct guest {
	int fd;				/* -1: none */
	bool seated;
	bool refused;			/* has been told @head, is to be closed */
	uint64_t since;			/* when it came */
	size_t got;			/* of @hello */
	size_t sent;			/* of the stream */
	struct world_hello hello;
};

/* Only its thread touches it while that runs. */
struct registry {
	pthread_t thread;
	int listener;
	int stop;			/* eventfd */
	uint32_t count;
	uint32_t nr_guests;
	uint32_t seated;		/* before the table was written */
	bool gone[WORLD_MAX_RANKS];
	struct guest *seats[WORLD_MAX_RANKS];
	struct guest *guests;
	struct pollfd *pfd;
	/* What everybody is told, from its beginning on. */
	size_t size;			/* 0: not all have come */
	uint8_t *stream;
};

/* ---- sockets ----------------------------------------------------------------------- */

/* Small messages leave at once, and a host that is silent is noticed. */
static int tune(int fd)
{
	static const struct { int level, name, value; } options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, IDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, SILENCE_MS },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			       sizeof(options[i].value)))
			return -errno;
	return 0;
}

static int make_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- the registry ------------------------------------------------------------------ */

static void tell(struct guest *g, const struct registry *r)
{
	while (g->sent < r->size) {
		ssize_t n = send(g->fd, r->stream + g->sent, r->size - g->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		/* The rest when there is room; an error is heard of as the end. */
		if (n <= 0)
			return;
		g->sent += (size_t)n;
	}
}

static void append(struct registry *r, const void *bytes, size_t size)
{
	memcpy(r->stream + r->size, bytes, size);
	r->size += size;
}

static void write_table(struct registry *r)
{
	const struct world_head head = {
		.magic = WORLD_MAGIC, .status = NRT_SUCCESS, .count = r->count,
	};

	append(r, &head, sizeof(head));
	for (uint32_t i = 0; i < r->count; i++) {
		const struct world_hello *h = &r->seats[i]->hello;
		struct world_rank rank = { .device = h->device, .name_size = h->name_size };

		while (memcmp(r->seats[rank.host]->hello.host, h->host, WORLD_HOST))
			rank.host++;
		memcpy(rank.name, h->name, WORLD_NAME);
		append(r, &rank, sizeof(rank));
	}
}

static void leave(struct registry *r, struct guest *g)
{
	uint32_t rank = g->hello.rank;

	close(g->fd);
	g->fd = -1;
	if (!g->seated)
		return;
	g->seated = false;
	r->seats[rank] = NULL;
	if (!r->size) {
		r->seated--;
	} else if (!r->gone[rank]) {
		r->gone[rank] = true;
		append(r, &rank, sizeof(rank));
	}
}

/* It is closed when the other side has hung up, or has been too slow with that. */
static void refuse(struct guest *g, NRT_STATUS status, enum reason_kind reason)
{
	const struct world_head head = { .magic = WORLD_MAGIC, .status = status, .count = reason };

	g->refused = true;
	/* Into an empty buffer: it has room. */
	if (send(g->fd, &head, sizeof(head), MSG_NOSIGNAL) == (ssize_t)sizeof(head))
		shutdown(g->fd, SHUT_WR);
}

/* A guest that has hung up leaves its seat before we hear of it. */
static bool taken(struct registry *r, uint32_t rank)
{
	struct guest *g = r->seats[rank];
	struct pollfd pfd = { .fd = g ? g->fd : -1, .events = POLLIN };

	if (g && poll(&pfd, 1, 0) > 0)
		leave(r, g);
	return r->seats[rank];
}

static void take_hello(struct registry *r, struct guest *g)
{
	const struct world_hello *h = &g->hello;

	if (h->magic != WORLD_MAGIC || h->version != WORLD_VERSION || h->count != r->count ||
	    h->rank >= r->count || h->name_size > WORLD_NAME) {
		refuse(g, NRT_INVALID, h->magic != WORLD_MAGIC ? REASON_NONE :
				       h->version != WORLD_VERSION ? REASON_VERSION :
				       h->count != r->count ? REASON_COUNT : REASON_NONE);
		return;
	}
	/* These are all there; who comes now waits for the next ones. */
	if (r->size) {
		refuse(g, NRT_COLL_PENDING, taken(r, h->rank) ? REASON_TAKEN : REASON_MET);
		return;
	}
	if (taken(r, h->rank)) {
		refuse(g, NRT_INVALID, REASON_TAKEN);
		return;
	}
	g->seated = true;
	r->seats[h->rank] = g;
	if (++r->seated == r->count)
		write_table(r);
}

static void hear(struct registry *r, struct guest *g)
{
	uint8_t rest;
	bool deaf = g->seated || g->refused;
	ssize_t n = recv(g->fd, deaf ? &rest : (uint8_t *)&g->hello + g->got,
			 deaf ? 1 : sizeof(g->hello) - g->got, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Nobody says anything after its hello. */
	if (n <= 0 || g->seated) {
		leave(r, g);
		return;
	}
	g->got += deaf ? 0 : (size_t)n;
	if (!deaf && g->got == sizeof(g->hello))
		take_hello(r, g);
}

/* There is room for all ranks; of those who say nothing the oldest has to go. */
static void add_guest(struct registry *r, int fd)
{
	struct guest *empty = NULL, *oldest = NULL;
	uint32_t silent = 0;

	for (uint32_t i = 0; i < r->nr_guests; i++) {
		struct guest *g = &r->guests[i];

		if (g->fd < 0) {
			empty = empty ? empty : g;
		} else if (!g->seated) {
			silent++;
			if (!oldest || g->since < oldest->since)
				oldest = g;
		}
	}
	if (silent >= MAX_SILENT) {
		leave(r, oldest);
		empty = oldest;
	}
	/* Never without room: there are seats for all others. */
	if (!empty || tune(fd)) {
		close(fd);
		return;
	}
	*empty = (struct guest){ .fd = fd, .since = now_ns() };
}

/* How long to wait for the next thing that is due, in ms, -1 for ever. */
static int registry_due(struct registry *r)
{
	uint64_t now = now_ns();
	bool silent = false;

	for (uint32_t i = 0; i < r->nr_guests; i++) {
		struct guest *g = &r->guests[i];

		if (g->fd < 0 || g->seated)
			continue;
		if (now - g->since >= HELLO_MS * 1000000ull)
			leave(r, g);
		else
			silent = true;
	}
	for (uint32_t i = 0; i < r->nr_guests; i++)
		if (r->guests[i].fd >= 0 && r->guests[i].seated)
			tell(&r->guests[i], r);
	return silent ? HELLO_MS / 4 : -1;
}

static bool registry_step(struct registry *r)
{
	nfds_t nr = r->nr_guests + 2;
	int timeout = registry_due(r), fd;

	r->pfd[0] = (struct pollfd){ .fd = r->stop, .events = POLLIN };
	r->pfd[1] = (struct pollfd){ .fd = r->listener, .events = POLLIN };
	for (uint32_t i = 0; i < r->nr_guests; i++) {
		const struct guest *g = &r->guests[i];

		r->pfd[2 + i] = (struct pollfd){
			.fd = g->fd,
			.events = POLLIN | (g->seated && g->sent < r->size ? POLLOUT : 0),
		};
	}
	if (poll(r->pfd, nr, timeout) < 0)
		return errno == EINTR;
	if (r->pfd[0].revents)
		return false;
	for (uint32_t i = 0; i < r->nr_guests; i++)
		if (r->pfd[2 + i].revents & ~POLLOUT && r->guests[i].fd == r->pfd[2 + i].fd)
			hear(r, &r->guests[i]);
	if (r->pfd[1].revents) {
		fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			add_guest(r, fd);
		else if (errno == EMFILE || errno == ENFILE)
			usleep(10000);
	}
	return true;
}

static void *registry_main(void *arg)
{
	while (registry_step(arg))
		;
	return NULL;
}

static void registry_free(struct registry *r)
{
	for (uint32_t i = 0; r->guests && i < r->nr_guests; i++)
		comm_close_fds(&r->guests[i].fd, 1);
	comm_close_fds(&r->listener, 1);
	comm_close_fds(&r->stop, 1);
	free(r->guests);
	free(r->pfd);
	free(r->stream);
	free(r);
}

static struct registry *registry_new(uint32_t count)
{
	struct registry *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->listener = r->stop = -1;
	r->count = count;
	r->nr_guests = count + MAX_SILENT;
	r->guests = calloc(r->nr_guests, sizeof(*r->guests));
	r->pfd = calloc(r->nr_guests + 2, sizeof(*r->pfd));
	/* Each rank is in the table, and is gone once. */
	r->stream = malloc(sizeof(struct world_head) +
			   count * (sizeof(struct world_rank) + sizeof(uint32_t)));
	if (!r->guests || !r->pfd || !r->stream) {
		r->nr_guests = 0;
		registry_free(r);
		return NULL;
	}
	for (uint32_t i = 0; i < r->nr_guests; i++)
		r->guests[i].fd = -1;
	return r;
}

int world_start(const union world_address *root, uint32_t count, struct registry **out)
{
	struct registry *r = registry_new(count);
	static const int one = 1;
	int ret = 0;

	if (!r)
		return -ENOMEM;
	r->stop = eventfd(0, EFD_CLOEXEC);
	r->listener = make_socket(root->any.sa_family);
	if (r->stop < 0 || r->listener < 0 ||
	    setsockopt(r->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(r->listener, &root->any, world_address_size(root)) ||
	    listen(r->listener, (int)(count + MAX_SILENT)))
		ret = -errno;
	ret = ret ?: thread_start(&r->thread, registry_main, r);
	if (ret)
		registry_free(r);
	else
		*out = r;
	return ret;
}

void world_stop(struct registry *r, bool *missing)
{
	static const uint64_t one = 1;

	if (!r)
		return;
	/* A new eventfd takes it. */
	if (write(r->stop, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(r->thread, NULL);
	for (uint32_t i = 0; missing && !r->size && i < r->count; i++)
		missing[i] = !r->seats[i];
	registry_free(r);
}

void world_forget(struct registry *r)
{
	if (r)
		registry_free(r);
}

/* ---- a rank ------------------------------------------------------------------------ */

NRT_STATUS world_connect(const union world_address *root, const struct deadline *deadline, int *fd,
			 struct reason *why)
{
	struct pollfd pfd = { .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = ETIMEDOUT, left = deadline_left(deadline);

	pfd.fd = *fd = make_socket(root->any.sa_family);
	if (*fd < 0)
		return NRT_RESOURCE;
	if (tune(*fd))
		return NRT_FAILURE;
	if (!connect(*fd, &root->any, world_address_size(root)))
		return NRT_SUCCESS;
	/* It, or the way to it, may not be there yet; closing is looked at in between. */
	if (errno != EINPROGRESS)
		error = errno;
	else if (poll(&pfd, 1, left < 0 || left > 200 ? 200 : left) == 1 &&
		 getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (!error)
		return NRT_SUCCESS;
	/* What rank 0 has said before tells more. */
	if (reason_tells(why, left) && (!why->kind || why->kind == REASON_UNREACHED))
		*why = (struct reason){ .kind = REASON_UNREACHED, .error = error };
	return NRT_COLL_PENDING;
}

static NRT_STATUS read_all(int fd, void *to, size_t size, const struct deadline *deadline)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	for (size_t done = 0; done < size;) {
		int ret = poll(&pfd, 1, deadline_left(deadline));
		ssize_t n = ret > 0 ? recv(fd, (uint8_t *)to + done, size - done, 0) : -1;

		if (!ret)
			return NRT_TIMEOUT;
		if (ret > 0 && n < 0 && errno != EAGAIN && errno != EINTR)
			return NRT_COLL_PENDING;
		if (n == 0)
			return NRT_COLL_PENDING;
		done += n > 0 ? (size_t)n : 0;
	}
	return NRT_SUCCESS;
}

/* Hosts are named by their lowest rank, which has that name itself. */
static bool table_valid(const struct world *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->ranks[i].host > i || w->ranks[w->ranks[i].host].host != w->ranks[i].host ||
		    w->ranks[i].name_size > WORLD_NAME)
			return false;
	return true;
}

NRT_STATUS world_meet(struct world *w, const struct world_hello *hello,
		      const struct deadline *deadline)
{
	struct world_head head;
	bool tells = reason_tells(&w->why, deadline_left(deadline));
	NRT_STATUS status;

	/* A new connection takes it. */
	if (send(w->fd, hello, sizeof(*hello), MSG_NOSIGNAL) != (ssize_t)sizeof(*hello))
		return NRT_COLL_PENDING;
	status = read_all(w->fd, &head, sizeof(head), deadline);
	if (status != NRT_SUCCESS) {
		if (tells)
			w->why.kind = status == NRT_TIMEOUT ? REASON_WAITS : REASON_GONE;
		return status;
	}
	w->why.kind = REASON_STRANGER;
	if (head.magic != WORLD_MAGIC)
		return NRT_FAILURE;
	if (head.status != NRT_SUCCESS) {
		w->why.kind = (enum reason_kind)head.count;
		return head.status == NRT_COLL_PENDING ? NRT_COLL_PENDING : NRT_INVALID;
	}
	if (head.count != hello->count)
		return NRT_FAILURE;
	w->why.kind = REASON_NONE;
	w->count = head.count;
	status = read_all(w->fd, w->ranks, head.count * sizeof(w->ranks[0]), deadline);
	return status == NRT_SUCCESS && !table_valid(w) ? NRT_FAILURE : status;
}

/* Under the lock. */
static void listen_to_root(struct world *w)
{
	while (!w->lost) {
		ssize_t n = recv(w->fd, (uint8_t *)&w->next + w->partial,
				 sizeof(w->next) - w->partial, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		w->partial += n > 0 ? (size_t)n : 0;
		if (n <= 0 || (w->partial == sizeof(w->next) && w->next >= w->count)) {
			w->lost = true;
		} else if (w->partial == sizeof(w->next)) {
			w->gone[w->next] = true;
			w->partial = 0;
		}
	}
}

bool world_broken(struct world *w, const uint32_t *ranks, uint32_t nr)
{
	bool broken;

	pthread_mutex_lock(&w->lock);
	listen_to_root(w);
	broken = w->lost;
	for (uint32_t i = 0; i < nr && !broken; i++)
		broken = w->gone[ranks ? ranks[i] : i];
	pthread_mutex_unlock(&w->lock);
	return broken;
}
