// SPDX-License-Identifier: LGPL-2.1-or-later
/* A core's part in a communicator: exchanges with the others, and its end; join.c is before. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "../base/log.h"
#include "../base/process.h"
#include "../object/storage.h"
#include "hub.h"
#include "job.h"
#include "member.h"

struct comm_state comm_state = { .root = PTHREAD_MUTEX_INITIALIZER };

NRT_STATUS member_get(uint32_t vnc, struct member **out)
{
	GUARD(&comm_lock);
	if (comm_state.closing)
		return NRT_CLOSED;
	if (!comm_state.members) {
		comm_state.members = calloc(nrt_process.nr_vncs, sizeof(*comm_state.members));
		if (!comm_state.members)
			return NRT_RESOURCE;
		comm_state.nr = nrt_process.nr_vncs;
		for (uint32_t i = 0; i < comm_state.nr; i++)
			for (uint32_t c = 0; c < COMM_CHANNELS; c++) {
				pthread_mutex_init(&comm_state.members[i].far[c], NULL);
				pthread_mutex_init(&comm_state.members[i].busy[c], NULL);
				comm_state.members[i].fd[c] = -1;
			}
	}
	*out = &comm_state.members[vnc];
	return NRT_SUCCESS;
}

struct comm_hello member_hello(uint32_t rank, uint32_t count, uint32_t channel)
{
	return (struct comm_hello){
		.type = COMM_HELLO,
		.magic = COMM_MAGIC,
		.version = COMM_VERSION,
		.rank = rank,
		.count = count,
		.channel = channel,
	};
}

/* ---- sockets ----------------------------------------------------------------------- */

void member_hang_up(struct member *m, uint32_t channel)
{
	GUARD(&comm_lock);
	comm_close_fds(&m->fd[channel], 1);
}

bool nrt_comm_closing(void)
{
	GUARD(&comm_lock);
	return comm_state.closing;
}

/* Only one thread at a time is in a channel, so that its number stays. */
static NRT_STATUS await(const struct member *m, uint32_t channel, const struct deadline *deadline,
			struct comm_reply *reply, int *fds, uint32_t nr_fds)
{
	struct pollfd pfd = { .fd = m->fd[channel], .events = POLLIN };
	ssize_t n;
	int ret;

	do {
		ret = poll(&pfd, 1, deadline_left(deadline));
		n = ret > 0 ? comm_receive(pfd.fd, reply, sizeof(*reply), fds, nr_fds) : -EAGAIN;
	} while ((ret < 0 && errno == EINTR) || (ret > 0 && (n == -EAGAIN || n == -EINTR)));
	if (nrt_comm_closing())
		return NRT_CLOSED;
	if (!ret)
		return NRT_TIMEOUT;
	/* The hub has gone. */
	if (n == 0 || n == -ECONNRESET)
		return NRT_COLL_PENDING;
	if (n == -EMFILE)
		return NRT_RESOURCE;
	if (ret < 0 || n < (ssize_t)offsetof(struct comm_reply, data) ||
	    reply->type != COMM_REPLY || reply->nr > COMM_MAX_RANKS ||
	    (size_t)n != offsetof(struct comm_reply, data) + reply->nr * COMM_DATA)
		return NRT_FAILURE;
	return (NRT_STATUS)reply->status;
}

/* Without its first channel a core has nobody to open another one to. */
static bool hub_lost(const struct member *m)
{
	struct pollfd pfd = { .events = 0 };

	GUARD(&comm_lock);
	pfd.fd = m->fd[0];
	return pfd.fd < 0 || poll(&pfd, 1, 0) > 0;
}

static NRT_STATUS make_socket(struct member *m, uint32_t channel)
{
	GUARD(&comm_lock);
	if (comm_state.closing)
		return NRT_CLOSED;
	m->fd[channel] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return m->fd[channel] < 0 ? NRT_RESOURCE : NRT_SUCCESS;
}

/* As soon as there is somebody to connect to. */
static NRT_STATUS connect_place(struct member *m, uint32_t channel,
				const struct comm_place *place, const struct deadline *deadline)
{
	struct sockaddr_un address;
	NRT_STATUS status = make_socket(m, channel);

	if (status != NRT_SUCCESS)
		return status;
	comm_place_address(place, &address);
	while (connect(m->fd[channel], (const struct sockaddr *)&address, sizeof(address))) {
		/* Not there yet, or not through with those before us. */
		if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
			return NRT_FAILURE;
		if (channel && hub_lost(m))
			return NRT_FAILURE;
		if (!deadline_left(deadline)) {
			if (!channel && !m->why.kind)
				m->why.kind = REASON_UNREACHED;
			return NRT_TIMEOUT;
		}
		if (nrt_comm_closing())
			return NRT_CLOSED;
		usleep(5000);
	}
	return NRT_SUCCESS;
}

/* Say who we are to who listens at the place. */
static NRT_STATUS introduce(const char *func, struct member *m,
			    const struct comm_place *place, struct comm_hello *hello,
			    const struct deadline *deadline, struct comm_reply *reply)
{
	int fd = m->fd[hello->channel];
	NRT_STATUS status;
	bool tells;

	if (!comm_peer_is_us(fd)) {
		LOG_AS(ENC, ERROR, func, "another user listens at the place of rank 0");
		return NRT_FAILURE;
	}
	/* The secret is of the one who listens, who wrote it before. */
	if ((!hello->channel && comm_place_secret(place, hello->key)) ||
	    comm_send(fd, hello, sizeof(*hello), NULL, 0))
		return NRT_COLL_PENDING;
	reply->reason = REASON_NONE;
	tells = !hello->channel && reason_tells(&m->why, deadline_left(deadline));
	status = await(m, hello->channel, deadline, reply, NULL, 0);
	if (tells && status != NRT_SUCCESS)
		m->why.kind = status == NRT_TIMEOUT ? REASON_WAITS : (enum reason_kind)reply->reason;
	return status == NRT_SUCCESS && reply->nr != hello->count ? NRT_FAILURE : status;
}

/* Connect and say who we are.  NRT_COLL_PENDING: again. */
static NRT_STATUS connect_channel(const char *func, struct member *m, struct comm_hello *hello,
				  const struct deadline *deadline, struct comm_reply *reply)
{
	uint32_t channel = hello->channel;
	struct comm_place place;
	NRT_STATUS status = comm_place_open(func, &place) ?:
			    connect_place(m, channel, &place, deadline) ?:
			    introduce(func, m, &place, hello, deadline, reply);

	if (status != NRT_SUCCESS)
		member_hang_up(m, channel);
	comm_place_close(&place);
	return status;
}

/* Those who met before may still be there, or just going; rank 0 comes again. */
NRT_STATUS member_open_channel(const char *func, struct member *m, struct comm_hello *hello,
			       const struct deadline *deadline, struct comm_reply *reply)
{
	NRT_STATUS status = connect_channel(func, m, hello, deadline, reply);

	while (status == NRT_COLL_PENDING && deadline_left(deadline)) {
		usleep(5000);
		status = connect_channel(func, m, hello, deadline, reply);
	}
	return status;
}

void message_memory_free(struct fabric *f, struct message_memory *memory)
{
	fabric_unregister(f, &memory->fabric);
	nrt_storage_put(memory->storage);
	*memory = (struct message_memory){ 0 };
}

void member_leave_world(struct member *m)
{
	struct world *w = m->world;

	/* What may still be under way is over with the end; then its memory can go. */
	fabric_stop(m->fabric);
	for (uint32_t c = 0; c < COMM_CHANNELS; c++) {
		message_memory_free(m->fabric, &m->words[c]);
		message_memory_free(m->fabric, &m->pieces[c]);
	}
	fabric_close(m->fabric);
	m->fabric = NULL;
	free(m->peers);
	m->peers = NULL;
	pthread_mutex_lock(&comm_lock);
	m->world = NULL;
	if (w)
		comm_close_fds(&w->fd, 1);
	pthread_mutex_unlock(&comm_lock);
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w);
}

struct registry *member_swap_registry(struct registry *registry)
{
	GUARD(&comm_lock);
	struct registry *before = comm_state.registry;

	comm_state.registry = registry;
	return before;
}

NRT_STATUS nrt_comm_check(uint32_t vnc, uint32_t rank, uint32_t count)
{
	struct member *m;
	NRT_STATUS status = member_get(vnc, &m);

	if (status != NRT_SUCCESS)
		return status;
	GUARD(&comm_lock);
	if (!m->joined || m->broken || m->rank != rank || m->count != count)
		status = NRT_FAILURE;
	return status;
}

uint32_t nrt_comm_device(uint32_t vnc, uint32_t rank)
{
	const struct member *m = &comm_state.members[vnc];

	GUARD(&comm_lock);
	return m->devices[m->places[rank] % COMM_MAX_RANKS];
}

uint32_t nrt_comm_host(uint32_t vnc, uint32_t rank)
{
	const struct member *m = &comm_state.members[vnc];

	GUARD(&comm_lock);
	return m->world ? m->world->ranks[rank].host : 0;
}

/* ---- what goes to other hosts ------------------------------------------------------ */

NRT_STATUS nrt_comm_take_links(uint32_t vnc, uint32_t channel, struct nrt_links *links)
{
	struct member *m;
	NRT_STATUS status = member_get(vnc, &m);

	if (status != NRT_SUCCESS)
		return status;
	pthread_mutex_lock(&m->far[channel]);
	*links = (struct nrt_links){
		.world = m->world, .fabric = m->fabric, .peers = m->peers,
		.rank = m->rank, .count = m->count,
		.words = &m->words[channel], .pieces = &m->pieces[channel],
	};
	if (m->joined && !m->broken)
		return NRT_SUCCESS;
	pthread_mutex_unlock(&m->far[channel]);
	return NRT_FAILURE;
}

void nrt_comm_give_links(uint32_t vnc, uint32_t channel)
{
	pthread_mutex_unlock(&comm_state.members[vnc].far[channel]);
}

void nrt_comm_break(uint32_t vnc)
{
	struct member *m = &comm_state.members[vnc];

	GUARD(&comm_lock);
	m->broken = true;
	if (m->world && m->world->fd >= 0)
		shutdown(m->world->fd, SHUT_RDWR);
	/* Those of this host hear of it from the hub. */
	for (uint32_t c = 0; c < COMM_CHANNELS; c++)
		if (m->fd[c] >= 0)
			shutdown(m->fd[c], SHUT_RDWR);
}

/* ---- exchanges --------------------------------------------------------------------- */

static void make_request(const struct member *m, const struct nrt_exchange *x,
			 struct comm_request *r)
{
	memset(r, 0, sizeof(*r));
	r->type = COMM_REQUEST;
	r->failed = x->failed;
	r->nr = x->nr;
	r->fds = x->fd >= 0;
	if (x->params_size)
		memcpy(r->params, x->params, x->params_size);
	if (x->data_size)
		memcpy(r->data, x->data, x->data_size);
	for (uint32_t i = 0; i < r->nr; i++)
		r->ranks[i] = x->ranks && x->ranks[i] < m->count ? m->places[x->ranks[i]] :
			      x->ranks ? NOT_HERE : i;
}

/* Another thread may have joined again as something else. */
static bool group_exists(const struct member *m, const struct comm_request *r, bool some)
{
	if (!some)
		return r->nr == m->nr_here;
	for (uint32_t i = 0; i < r->nr; i++)
		if (r->ranks[i] >= m->nr_here)
			return false;
	return true;
}

/* A group of one: what it says is what it hears. */
static NRT_STATUS alone(const struct comm_request *r, const struct nrt_exchange *x)
{
	if (x->failed)
		return NRT_EXEC_COMPLETED_WITH_ERR;
	if (x->all)
		memcpy(x->all[0], r->data, COMM_DATA);
	if (x->fd >= 0) {
		x->fds[0] = fcntl(x->fd, F_DUPFD_CLOEXEC, 0);
		if (x->fds[0] < 0)
			return NRT_RESOURCE;
	}
	return NRT_SUCCESS;
}

/* Under busy[channel]. */
static NRT_STATUS exchange(struct member *m, const struct nrt_exchange *x,
			   const struct comm_request *r, struct comm_reply *reply)
{
	struct comm_hello hello = member_hello(m->place, m->nr_here, x->channel);
	struct deadline deadline = deadline_in(nrt_process.timeout_ms);
	size_t size = offsetof(struct comm_request, ranks) + r->nr * sizeof(r->ranks[0]);
	NRT_STATUS status = NRT_SUCCESS;
	uint32_t nr_fds = r->fds ? r->nr : 0;
	int ret = 0;

	memcpy(hello.key, m->key, COMM_KEY);
	if (m->fd[x->channel] < 0)
		status = member_open_channel(x->func, m, &hello, &deadline, reply);
	/* Those on their way to others arrive soon. */
	while (status == NRT_SUCCESS &&
	       (ret = comm_send(m->fd[x->channel], r, size, &x->fd, r->fds)) == -ETOOMANYREFS &&
	       deadline_left(&deadline) && !nrt_comm_closing())
		usleep(1000);
	if (ret)
		return NRT_FAILURE;
	status = status ?: await(m, x->channel, &deadline, reply, x->fds, nr_fds);
	if (status != NRT_SUCCESS)
		return status == NRT_COLL_PENDING ? NRT_FAILURE : status;
	if (reply->nr != r->nr || (nr_fds && x->fds[nr_fds - 1] < 0))
		return NRT_FAILURE;
	if (x->all)
		memcpy(x->all, reply->data, reply->nr * COMM_DATA);
	return NRT_SUCCESS;
}

static void log_failure(const struct nrt_exchange *x, const struct comm_request *r,
			const struct member *m, NRT_STATUS status)
{
	if (x->part && (status == NRT_INVALID || status == NRT_EXEC_COMPLETED_WITH_ERR))
		return;
	switch (status) {
	case NRT_TIMEOUT:
		LOG_AS(ENC, ERROR, x->func, "rank %u: not all of %u ranks came in %d ms", m->rank,
		       r->nr, nrt_process.timeout_ms);
		break;
	case NRT_INVALID:
		LOG_AS(ENC, ERROR, x->func, "rank %u: the %u ranks do not ask for the same", m->rank,
		       r->nr);
		break;
	case NRT_FAILURE:
		LOG_AS(ENC, ERROR, x->func, "rank %u: one of %u ranks is gone", m->rank, r->nr);
		break;
	case NRT_RESOURCE:
		LOG_AS(ENC, ERROR, x->func,
		       "rank %u: out of memory, or of descriptors: each of the cores of this process needs %u (ulimit -n)",
		       m->rank, r->nr);
		break;
	default:
		LOG_AS(ENC, ERROR, x->func, "rank %u, with %u ranks: %s", m->rank, r->nr,
		       nrt_get_status_as_str(status));
	}
}

NRT_STATUS nrt_comm_exchange(uint32_t vnc, struct nrt_exchange *x)
{
	/* Not allocated: the others would wait for one that has no memory. */
	struct comm_reply reply;
	struct comm_request r;
	struct member *m;
	NRT_STATUS status = member_get(vnc, &m);

	if (status != NRT_SUCCESS)
		return status;
	/* Of all hosts, because another thread has just left them. */
	if (x->nr > COMM_MAX_RANKS)
		return NRT_FAILURE;
	GUARD(&m->busy[x->channel]);
	make_request(m, x, &r);
	if (x->fds)
		memset(x->fds, 0xff, r.nr * sizeof(*x->fds));
	if (!m->joined || m->broken || !group_exists(m, &r, x->ranks != NULL))
		status = NRT_FAILURE;
	else if (r.nr == 1)
		status = alone(&r, x);
	else
		status = exchange(m, x, &r, &reply);
	if (status != NRT_SUCCESS) {
		log_failure(x, &r, m, status);
		if (x->fds)
			comm_close_fds(x->fds, r.nr);
	}
	/* Of these the others know, and everything goes on. */
	if (status != NRT_SUCCESS && status != NRT_INVALID &&
	    status != NRT_EXEC_COMPLETED_WITH_ERR && r.nr > 1) {
		m->broken = true;
		member_hang_up(m, x->channel);
	}
	return status;
}

/* ---- the end ----------------------------------------------------------------------- */

void nrt_comm_stop(void)
{
	GUARD(&comm_lock);
	comm_state.closing = true;
	job_closing(true);
	for (uint32_t i = 0; i < comm_state.nr; i++) {
		const struct member *m = &comm_state.members[i];

		for (uint32_t c = 0; c < COMM_CHANNELS; c++)
			if (m->fd[c] >= 0)
				shutdown(m->fd[c], SHUT_RDWR);
		if (m->world && m->world->fd >= 0)
			shutdown(m->world->fd, SHUT_RDWR);
	}
}

static void close_members(void)
{
	for (uint32_t i = 0; i < comm_state.nr; i++) {
		comm_close_fds(comm_state.members[i].fd, COMM_CHANNELS);
		if (comm_state.members[i].world)
			comm_close_fds(&comm_state.members[i].world->fd, 1);
	}
	comm_state.nr = 0;
	comm_state.closing = false;
	job_closing(false);
}

/* Nobody is in it any more. */
static void member_close(struct member *m)
{
	member_leave_world(m);
	for (uint32_t c = 0; c < COMM_CHANNELS; c++) {
		pthread_mutex_destroy(&m->far[c]);
		pthread_mutex_destroy(&m->busy[c]);
	}
}

void nrt_comm_close(void)
{
	for (uint32_t i = 0; i < comm_state.nr; i++)
		member_close(&comm_state.members[i]);
	world_stop(member_swap_registry(NULL), NULL);
	comm_state.registrar = NULL;
	GUARD(&comm_lock);
	hub_stop();
	close_members();
	free(comm_state.members);
	comm_state.members = NULL;
}

void nrt_comm_forget(void)
{
	hub_forget();
	job_forget();
	world_forget(comm_state.registry);
	comm_state.registry = NULL;
	comm_state.registrar = NULL;
	close_members();
	/* Not freed: mutexes that another thread of the parent may have had. */
	comm_state.members = NULL;
	pthread_mutex_init(&comm_state.root, NULL);
	/* This thread had it at fork(). */
	pthread_mutex_unlock(&comm_lock);
}
