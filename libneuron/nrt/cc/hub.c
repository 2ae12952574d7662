// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where the ranks of a host meet: a thread of the process with rank 0, which passes on
 * what the members of a group say when it has heard all of them.  It waits for nobody.
 */
#include <errno.h>
#include <nettle/memops.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/thread.h"
#include "../../common/wait.h"
#include "hub.h"
#include "reason.h"

/* Connections that have not said hello yet, and how long one may take for that. */
#define MAX_SILENT 64u
#define HELLO_MS 2000
#define MAX_PEERS (COMM_MAX_RANKS * COMM_CHANNELS + MAX_SILENT)

struct peer {
	int fd;				/* -1: none */
	uint64_t since;			/* when it came */
	bool seated;
	bool pending;			/* has a request that is not answered */
	bool lost;			/* does not take answers, to be dropped */
	uint32_t rank;
	uint32_t channel;
	int request_fd;
	struct delivery *delivery;	/* its answer that could not be sent yet, or NULL */
	struct comm_request request;
	uint8_t hello[COMM_DATA];
};

/* An answer on its way to a group. */
struct delivery {
	uint32_t users;
	int fds[COMM_MAX_RANKS];	/* reply.fds of them */
	struct comm_reply reply;
};

struct hub {
	pthread_t thread;
	struct comm_place place;
	int lock;			/* of it */
	int listener;
	int stop;			/* eventfd */
	uint32_t count;
	uint8_t secret[COMM_KEY];	/* of the job */
	uint8_t keys[COMM_MAX_RANKS][COMM_KEY];
	bool complete;			/* all ranks have been there */
	bool gone[COMM_MAX_RANKS][COMM_CHANNELS];
	struct peer *seat[COMM_MAX_RANKS][COMM_CHANNELS];
	struct peer peers[MAX_PEERS];
};

pthread_mutex_t comm_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hub *hub;			/* comm_lock, as everything in it */

/* ---- requests ---------------------------------------------------------------------- */

static size_t reply_size(const struct comm_reply *reply)
{
	return offsetof(struct comm_reply, data) + reply->nr * COMM_DATA;
}

/* Without descriptors.  Whom it does not reach reap() drops. */
static void answer(struct peer *p, const struct comm_reply *reply)
{
	p->pending = false;
	comm_close_fds(&p->request_fd, 1);
	if (comm_send(p->fd, reply, reply_size(reply), NULL, 0))
		p->lost = true;
}

static void refuse(struct peer *p, NRT_STATUS status)
{
	const struct comm_reply reply = { .type = COMM_REPLY, .status = status };

	answer(p, &reply);
}

static void delivery_put(struct delivery *d)
{
	if (--d->users)
		return;
	comm_close_fds(d->fds, d->reply.fds);
	free(d);
}

/* As many descriptors can be on their way as a process may have open: others go first. */
static void deliver(struct peer *p)
{
	struct delivery *d = p->delivery;
	int ret = comm_send(p->fd, &d->reply, reply_size(&d->reply), d->fds, d->reply.fds);

	if (ret == -ETOOMANYREFS)
		return;
	p->delivery = NULL;
	delivery_put(d);
	if (ret)
		p->lost = true;
}

static bool in_group(const struct comm_request *r, uint32_t rank)
{
	for (uint32_t i = 0; i < r->nr; i++)
		if (r->ranks[i] == rank)
			return true;
	return false;
}

static bool same_group(const struct comm_request *a, const struct comm_request *b)
{
	return a->nr == b->nr && !memcmp(a->ranks, b->ranks, a->nr * sizeof(a->ranks[0]));
}

/* Its part in all that goes on is over, and nobody has to wait for it. */
static void drop(struct peer *p)
{
	bool seated = p->seated;

	comm_close_fds(&p->fd, 1);
	comm_close_fds(&p->request_fd, 1);
	if (p->delivery)
		delivery_put(p->delivery);
	p->delivery = NULL;
	p->seated = false;
	p->pending = false;
	p->lost = false;
	if (!seated)
		return;
	hub->seat[p->rank][p->channel] = NULL;
	if (!hub->complete)
		return;
	/* Channel 0 is there as long as the core takes part. */
	for (uint32_t c = 0; c < COMM_CHANNELS; c++)
		if (c == p->channel || !p->channel)
			hub->gone[p->rank][c] = true;
	for (uint32_t i = 0; i < MAX_PEERS; i++) {
		struct peer *q = &hub->peers[i];

		if (q->pending && hub->gone[p->rank][q->channel] && in_group(&q->request, p->rank))
			refuse(q, NRT_FAILURE);
	}
}

/* Losing one may lose others, who cannot be told. */
static void reap(void)
{
	bool again;

	do {
		again = false;
		for (uint32_t i = 0; i < MAX_PEERS; i++)
			if (hub->peers[i].lost) {
				drop(&hub->peers[i]);
				again = true;
			}
	} while (again);
}

/* When the last one of a group has spoken. */
static void match(const struct peer *last)
{
	const struct comm_request *r = &last->request;
	struct peer *member[COMM_MAX_RANKS];
	NRT_STATUS status = NRT_SUCCESS;
	struct delivery *d = NULL;
	uint32_t nr = r->nr;

	for (uint32_t i = 0; i < nr; i++) {
		member[i] = hub->seat[r->ranks[i]][last->channel];
		if (!member[i] || !member[i]->pending || !same_group(&member[i]->request, r))
			return;
		if (member[i]->request.failed)
			status = NRT_EXEC_COMPLETED_WITH_ERR;
		else if (status == NRT_SUCCESS &&
			 (memcmp(member[i]->request.params, r->params, COMM_DATA) ||
			  member[i]->request.fds != r->fds))
			status = NRT_INVALID;
	}
	if (status == NRT_SUCCESS) {
		d = malloc(sizeof(*d));
		if (!d)
			status = NRT_RESOURCE;
	}
	if (status != NRT_SUCCESS) {
		for (uint32_t i = 0; i < nr; i++)
			refuse(member[i], status);
		return;
	}
	memset(&d->reply, 0, offsetof(struct comm_reply, data));
	d->users = nr;
	d->reply.type = COMM_REPLY;
	d->reply.nr = nr;
	d->reply.fds = r->fds ? nr : 0;
	for (uint32_t i = 0; i < nr; i++) {
		memcpy(d->reply.data[i], member[i]->request.data, COMM_DATA);
		d->fds[i] = member[i]->request_fd;
		member[i]->request_fd = -1;
		member[i]->pending = false;
		member[i]->delivery = d;
	}
	for (uint32_t i = 0; i < nr; i++)
		deliver(member[i]);
}

static bool request_valid(const struct peer *p, const struct comm_request *r, size_t size)
{
	if (size < offsetof(struct comm_request, ranks) || r->type != COMM_REQUEST || !r->nr ||
	    r->nr > hub->count || size != offsetof(struct comm_request, ranks) +
					  r->nr * sizeof(r->ranks[0]) ||
	    p->pending || !hub->complete || !in_group(r, p->rank))
		return false;
	for (uint32_t i = 0; i < r->nr; i++)
		for (uint32_t k = 0; k <= i; k++)
			if (r->ranks[i] >= hub->count || (k < i && r->ranks[k] == r->ranks[i]))
				return false;
	return (p->request_fd >= 0) == (r->fds == 1) && r->fds <= 1;
}

static void take_request(struct peer *p, size_t size)
{
	if (!request_valid(p, &p->request, size)) {
		drop(p);
		return;
	}
	p->pending = true;
	for (uint32_t i = 0; i < p->request.nr; i++)
		if (hub->gone[p->request.ranks[i]][p->channel]) {
			refuse(p, NRT_FAILURE);
			return;
		}
	match(p);
}

/* What all said in their first hello, to one of them. */
static void welcome(struct peer *p)
{
	static struct comm_reply reply;	/* only this thread comes here */

	memset(&reply, 0, offsetof(struct comm_reply, data));
	reply.type = COMM_REPLY;
	reply.nr = hub->count;
	memcpy(reply.key, hub->keys[p->rank], COMM_KEY);
	for (uint32_t i = 0; i < hub->count; i++)
		if (hub->seat[i][0])
			memcpy(reply.data[i], hub->seat[i][0]->hello, COMM_DATA);
	answer(p, &reply);
}

/* A peer that has hung up leaves its seat before we hear of it; poll() always tells that. */
static bool taken(uint32_t rank, uint32_t channel)
{
	struct peer *p = hub->seat[rank][channel];
	struct pollfd pfd = { .fd = p ? p->fd : -1 };

	if (p && poll(&pfd, 1, 0) > 0)
		drop(p);
	return hub->seat[rank][channel];
}

/* Somebody of this job, and of this rank if it is not the rank's first channel. */
static bool key_right(const struct comm_hello *h)
{
	return memeql_sec(h->key, h->channel ? hub->keys[h->rank] : hub->secret, COMM_KEY);
}

/* What a rank is told of why it is refused, if it is one of this job. */
static enum reason_kind why_not(const struct comm_hello *h, size_t size)
{
	if (size < offsetof(struct comm_hello, key) || h->type != COMM_HELLO ||
	    h->magic != COMM_MAGIC || h->channel)
		return REASON_NONE;
	if (h->version != COMM_VERSION || size != sizeof(*h))
		return REASON_VERSION;
	if (!key_right(h))
		return REASON_NONE;
	if (h->count != hub->count)
		return REASON_COUNT;
	if (h->rank < hub->count && taken(h->rank, 0))
		return REASON_TAKEN;
	return hub->complete ? REASON_MET : REASON_NONE;
}

static void take_hello(struct peer *p, const struct comm_hello *h, size_t size)
{
	struct comm_reply no = { .type = COMM_REPLY };
	NRT_STATUS status = NRT_SUCCESS;

	if (size != sizeof(*h) || h->type != COMM_HELLO || h->magic != COMM_MAGIC ||
	    h->version != COMM_VERSION || h->count > COMM_MAX_RANKS || h->rank >= h->count ||
	    h->channel >= COMM_CHANNELS || p->request_fd >= 0)
		status = NRT_INVALID;
	else if (!key_right(h))
		/* The secret may be an earlier one: who knows this place reads it again. */
		status = h->channel ? NRT_FAILURE : NRT_COLL_PENDING;
	else if (hub->complete && !h->channel)
		/* These are all there; who comes now waits for the next ones. */
		status = NRT_COLL_PENDING;
	else if (h->count != hub->count || taken(h->rank, h->channel))
		status = NRT_INVALID;
	else if (h->channel && (!hub->complete || hub->gone[h->rank][h->channel]))
		status = NRT_FAILURE;
	if (status != NRT_SUCCESS) {
		no.status = status;
		no.reason = why_not(h, size);
		answer(p, &no);
		drop(p);
		return;
	}
	p->seated = true;
	p->rank = h->rank;
	p->channel = h->channel;
	memcpy(p->hello, h->data, COMM_DATA);
	hub->seat[p->rank][p->channel] = p;
	if (p->channel) {
		welcome(p);
		return;
	}
	for (uint32_t i = 0; i < hub->count; i++)
		if (!hub->seat[i][0])
			return;
	hub->complete = true;
	for (uint32_t i = 0; i < hub->count; i++)
		if (hub->seat[i][0])
			welcome(hub->seat[i][0]);
}

static void take_message(struct peer *p)
{
	union {
		struct comm_hello hello;
		struct comm_request request;
	} message;
	int fd;
	ssize_t n = comm_receive(p->fd, &message, sizeof(message), &fd, 1);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n > 0 && !p->pending && !p->delivery) {
		p->request_fd = fd;
		fd = -1;
		if (p->seated)
			memcpy(&p->request, &message.request, (size_t)n);
		if (p->seated)
			take_request(p, (size_t)n);
		else
			take_hello(p, &message.hello, (size_t)n);
	} else {
		/* The end, or one who does not wait for his answer. */
		comm_close_fds(&fd, 1);
		drop(p);
	}
}

/* Too many that are silent cost the oldest of them its place: a rank comes again. */
static void add_peer(int fd)
{
	struct peer *oldest = NULL, *empty = NULL;
	uint32_t silent = 0;

	for (uint32_t i = 0; i < MAX_PEERS; i++) {
		struct peer *p = &hub->peers[i];

		if (p->fd < 0) {
			empty = empty ? empty : p;
		} else if (!p->seated) {
			silent++;
			if (!oldest || p->since < oldest->since)
				oldest = p;
		}
	}
	if (silent >= MAX_SILENT) {
		drop(oldest);
		empty = oldest;
	}
	/* Never: there are seats for all others. */
	if (!empty) {
		close(fd);
		return;
	}
	empty->fd = fd;
	empty->since = now_ns();
}

/* False: there are no descriptors left. */
static bool take_peer(void)
{
	int fd = accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno != EMFILE && errno != ENFILE;
	if (comm_peer_is_us(fd))
		add_peer(fd);
	else
		close(fd);
	return true;
}

/* ---- the thread -------------------------------------------------------------------- */

/*
 * What is due without a message: answers that there was no room for, which nobody tells
 * of, and the end of silent ones.  How long to wait for the next, in ms, -1 for ever.
 */
static int do_due(void)
{
	uint64_t now = now_ns();
	bool silent = false, rest = false;

	for (uint32_t i = 0; i < MAX_PEERS; i++) {
		struct peer *p = &hub->peers[i];

		if (p->delivery)
			deliver(p);
		rest |= p->delivery != NULL;
		if (p->fd < 0 || p->seated)
			continue;
		if (now - p->since >= HELLO_MS * 1000000ull)
			drop(p);
		else
			silent = true;
	}
	return rest ? 1 : silent ? HELLO_MS / 4 : -1;
}

/* Wait for the next thing to happen, and do it.  False: this was the last. */
static bool hub_step(struct hub *h)
{
	struct pollfd pfd[MAX_PEERS + 2] = {
		{ .fd = h->stop, .events = POLLIN },
		{ .fd = h->listener, .events = POLLIN },
	};
	struct peer *of[MAX_PEERS + 2];
	nfds_t nr = 2;
	int timeout;
	bool wait;

	pthread_mutex_lock(&comm_lock);
	timeout = do_due();
	reap();
	for (uint32_t i = 0; i < MAX_PEERS; i++) {
		if (h->peers[i].fd < 0)
			continue;
		of[nr] = &h->peers[i];
		pfd[nr++] = (struct pollfd){ .fd = h->peers[i].fd, .events = POLLIN };
	}
	pthread_mutex_unlock(&comm_lock);
	if (poll(pfd, nr, timeout) < 0 && errno != EINTR)
		return false;
	if (pfd[0].revents)
		return false;
	pthread_mutex_lock(&comm_lock);
	for (nfds_t i = 2; i < nr; i++)
		if (pfd[i].revents && of[i]->fd == pfd[i].fd && !of[i]->lost)
			take_message(of[i]);
	wait = pfd[1].revents && !take_peer();
	pthread_mutex_unlock(&comm_lock);
	if (wait)
		usleep(10000);
	return true;
}

static void *hub_main(void *arg)
{
	while (hub_step(arg))
		;
	return NULL;
}

static void hub_free(struct hub *h)
{
	for (uint32_t i = 0; i < MAX_PEERS; i++) {
		comm_close_fds(&h->peers[i].fd, 1);
		comm_close_fds(&h->peers[i].request_fd, 1);
		if (h->peers[i].delivery)
			delivery_put(h->peers[i].delivery);
	}
	comm_close_fds(&h->place.dir, 1);
	comm_close_fds(&h->lock, 1);
	comm_close_fds(&h->listener, 1);
	comm_close_fds(&h->stop, 1);
	free(h);
}

static int hub_listen(struct hub *h)
{
	struct sockaddr_un address;

	for (uint32_t i = 0; i < h->count; i++)
		if (comm_random(h->keys[i]))
			return -EIO;
	h->lock = comm_place_take(&h->place, h->secret);
	if (h->lock < 0)
		return h->lock;
	comm_place_address(&h->place, &address);
	h->stop = eventfd(0, EFD_CLOEXEC);
	h->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->stop < 0 || h->listener < 0 ||
	    fchmod(h->listener, S_IRUSR | S_IWUSR) ||
	    bind(h->listener, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(h->listener, (int)(COMM_MAX_RANKS * COMM_CHANNELS)))
		return -errno;
	return 0;
}

/* Nobody finds it any more. */
static void hub_leave(struct hub *h)
{
	if (h->lock >= 0)
		comm_place_leave(&h->place, h->lock);
	h->lock = -1;
}

static struct hub *hub_new(uint32_t count)
{
	struct hub *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->count = count;
	for (uint32_t i = 0; i < MAX_PEERS; i++)
		h->peers[i].fd = h->peers[i].request_fd = -1;
	h->place.dir = h->lock = h->listener = h->stop = -1;
	return h;
}

int hub_start(struct comm_place *place, uint32_t count)
{
	struct hub *h = hub_new(count);
	int ret;

	if (!h)
		return -ENOMEM;
	h->place = *place;
	ret = hub_listen(h);
	if (!ret) {
		hub = h;
		ret = thread_start(&h->thread, hub_main, h);
	}
	if (ret) {
		hub = NULL;
		hub_leave(h);
		/* It stays the caller's. */
		h->place.dir = -1;
		hub_free(h);
	} else {
		place->dir = -1;
	}
	return ret;
}

void hub_stop(void)
{
	static const uint64_t one = 1;
	struct hub *h = hub;

	if (!h)
		return;
	pthread_mutex_unlock(&comm_lock);
	/* A new eventfd takes it. */
	if (write(h->stop, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(h->thread, NULL);
	pthread_mutex_lock(&comm_lock);
	hub = NULL;
	hub_leave(h);
	hub_free(h);
}

void hub_missing(bool missing[COMM_MAX_RANKS])
{
	for (uint32_t i = 0; hub && i < hub->count; i++)
		missing[i] = !hub->complete && !hub->seat[i][0];
}

/* In a child: peers are to see when the parent ends. */
void hub_forget(void)
{
	if (hub)
		hub_free(hub);
	hub = NULL;
}
