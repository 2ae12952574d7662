// SPDX-License-Identifier: LGPL-2.1-or-later
/* A core's part in a communicator: joining, and exchanges with the others. */
#include <arpa/inet.h>
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
#include "comm.h"
#include "hub.h"
#include "job.h"

struct member {
	/* Held while messages go to other hosts, all of them for joining; outside of busy. */
	pthread_mutex_t far[COMM_CHANNELS];
	/* Held for an exchange, all of them for joining; outside of comm_lock. */
	pthread_mutex_t busy[COMM_CHANNELS];
	int fd[COMM_CHANNELS];		/* -1 none; changes under busy and comm_lock */
	atomic_bool broken;		/* somebody is missing */
	/* Change under all far and busy and comm_lock: */
	bool joined;
	bool opening;			/* as the first of several: the hub is this one's */
	uint32_t rank;
	uint32_t count;
	uint32_t place;			/* among those of this host, who have numbers of their own */
	uint32_t nr_here;
	uint8_t key[COMM_KEY];		/* for channels after the first */
	uint32_t devices[COMM_MAX_RANKS];	/* of those */
	uint32_t places[WORLD_MAX_RANKS];	/* of each rank, NOT_HERE if it is elsewhere */
	struct reason why;		/* it could not join */
	int fabric_error;		/* why there is none */
	/* To other hosts; NULL: there are none. */
	struct world *world;
	struct fabric *fabric;
	uint64_t *peers;
	/* Under far: */
	struct neuron_mem *mem[COMM_CHANNELS];
	struct fabric_memory memory[COMM_CHANNELS];
};

#define NOT_HERE UINT32_MAX

static struct {
	struct member *members;		/* of each core; comm_lock */
	uint32_t nr;
	bool closing;			/* comm_lock */
	pthread_mutex_t root;		/* starting and stopping the hub; outside of comm_lock */
	struct registry *registry;	/* root, as is the next */
	const struct member *registrar;	/* whose it is */
} comm = { .root = PTHREAD_MUTEX_INITIALIZER };

static NRT_STATUS members_get(uint32_t vnc, struct member **out)
{
	GUARD(&comm_lock);
	if (comm.closing)
		return NRT_CLOSED;
	if (!comm.members) {
		comm.members = calloc(nrt_process.nr_vncs, sizeof(*comm.members));
		if (!comm.members)
			return NRT_RESOURCE;
		comm.nr = nrt_process.nr_vncs;
		for (uint32_t i = 0; i < comm.nr; i++)
			for (uint32_t c = 0; c < COMM_CHANNELS; c++) {
				pthread_mutex_init(&comm.members[i].far[c], NULL);
				pthread_mutex_init(&comm.members[i].busy[c], NULL);
				comm.members[i].fd[c] = -1;
			}
	}
	*out = &comm.members[vnc];
	return NRT_SUCCESS;
}

static struct comm_hello hello_of(uint32_t rank, uint32_t count, uint32_t channel)
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

static void hang_up(struct member *m, uint32_t channel)
{
	GUARD(&comm_lock);
	comm_close_fds(&m->fd[channel], 1);
}

bool nrt_comm_closing(void)
{
	GUARD(&comm_lock);
	return comm.closing;
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
	if (comm.closing)
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
		hang_up(m, channel);
	comm_place_close(&place);
	return status;
}

/* Those who met before may still be there, or just going; rank 0 comes again. */
static NRT_STATUS open_channel(const char *func, struct member *m, struct comm_hello *hello,
			       const struct deadline *deadline, struct comm_reply *reply)
{
	NRT_STATUS status = connect_channel(func, m, hello, deadline, reply);

	while (status == NRT_COLL_PENDING && deadline_left(deadline)) {
		usleep(5000);
		status = connect_channel(func, m, hello, deadline, reply);
	}
	return status;
}

/* ---- joining ----------------------------------------------------------------------- */

/* Under comm_lock: another core of the process is rank 0 of several, or becomes it. */
static bool is_root(const struct member *except)
{
	for (uint32_t i = 0; i < comm.nr; i++) {
		const struct member *m = &comm.members[i];

		if (m != except && (m->opening ||
				    (m->joined && !m->broken && !m->place && m->nr_here > 1)))
			return true;
	}
	return false;
}

/* The place where the others come to; again while an earlier one is being given up. */
static NRT_STATUS start_root(const char *func, struct member *m, uint32_t count,
			     const struct deadline *deadline)
{
	struct comm_place place;
	NRT_STATUS status = comm_place_open(func, &place);
	int ret;

	if (status != NRT_SUCCESS)
		return status;
	pthread_mutex_lock(&comm.root);
	for (;;) {
		pthread_mutex_lock(&comm_lock);
		ret = is_root(m) ? -EALREADY : 0;
		if (!ret) {
			m->opening = true;
			hub_stop();
			ret = comm.closing ? -ESHUTDOWN : hub_start(&place, count);
		}
		pthread_mutex_unlock(&comm_lock);
		if (ret != -EADDRINUSE || !deadline_left(deadline))
			break;
		usleep(5000);
	}
	pthread_mutex_unlock(&comm.root);
	comm_place_close(&place);
	if (!ret)
		return NRT_SUCCESS;
	if (ret == -ESHUTDOWN)
		return NRT_CLOSED;
	if (ret == -EALREADY) {
		LOG_AS(ENC, ERROR, func, "another core of this process is rank 0");
		return NRT_INVALID;
	}
	LOG_AS(ENC, ERROR, func, "rank 0 of NEURON_RT_ROOT_COMM_ID=%s: %s",
	       job_root_text(), strerror(-ret));
	return ret == -ENOMEM || ret == -EAGAIN || ret == -EMFILE ? NRT_RESOURCE : NRT_FAILURE;
}

/* Nobody comes to one that has not joined itself: another process may be rank 0. */
static void stop_root(struct member *m, uint32_t count)
{
	bool places[COMM_MAX_RANKS] = { false }, missing[WORLD_MAX_RANKS] = { false };

	GUARD(&comm.root);
	pthread_mutex_lock(&comm_lock);
	hub_missing(places);
	/* This one has just left. */
	for (uint32_t i = 0; i < count; i++)
		missing[i] = m->places[i] != NOT_HERE && m->places[i] && places[m->places[i]];
	reason_missing(&m->why, missing, count);
	hub_stop();
	pthread_mutex_unlock(&comm_lock);
}

/* More than this host has cores. */
static NRT_STATUS check_count(const char *func, uint32_t count)
{
	uint32_t total = COMM_MAX_RANKS;

	if (nrt_get_total_vnc_count(&total) == NRT_SUCCESS)
		total *= nrt_process.lnc;
	if (count > COMM_MAX_RANKS || count > total) {
		LOG_AS(ENC, ERROR, func, "%u ranks are more than the cores of this host", count);
		return NRT_FAILURE;
	}
	return NRT_SUCCESS;
}

/* ---- joining those of other hosts ---------------------------------------------------- */

/* Nobody else is in a channel. */
static void leave_world(struct member *m)
{
	struct world *w = m->world;

	/* What may still be under way is over with the end; then its memory can go. */
	fabric_stop(m->fabric);
	for (uint32_t c = 0; c < COMM_CHANNELS; c++) {
		fabric_unregister(m->fabric, &m->memory[c]);
		neuron_mem_free(m->mem[c]);
		m->mem[c] = NULL;
		m->memory[c] = (struct fabric_memory){ 0 };
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

/* Under root: another core of the process is rank 0 of several hosts, or becomes it. */
static bool registry_used(const struct member *except)
{
	const struct member *m = comm.registrar;

	GUARD(&comm_lock);
	return comm.registry && m != except && m->world && (!m->joined || !m->broken);
}

/* fork() has comm_lock: a child never sees one that is being freed. */
static struct registry *swap_registry(struct registry *registry)
{
	GUARD(&comm_lock);
	struct registry *before = comm.registry;

	comm.registry = registry;
	return before;
}

static void stop_registry(struct member *m, uint32_t count)
{
	bool missing[WORLD_MAX_RANKS] = { false };

	GUARD(&comm.root);
	if (comm.registrar != m)
		return;
	world_stop(swap_registry(NULL), missing);
	comm.registrar = NULL;
	reason_missing(&m->why, missing, count < WORLD_MAX_RANKS ? count : WORLD_MAX_RANKS);
}

/* Where all find each other; again while an earlier one is being given up. */
static NRT_STATUS start_registry(const char *func, const struct member *m,
				 const struct comm_place *place, uint32_t count,
				 const struct deadline *deadline)
{
	struct registry *registry;
	bool told = false;
	int ret;

	if (place->reach == COMM_REMOTE) {
		LOG_AS(ENC, ERROR, func, "rank 0 has to be on the host of NEURON_RT_ROOT_COMM_ID=%s",
		       job_root_text());
		return NRT_FAILURE;
	}
	GUARD(&comm.root);
	if (registry_used(m)) {
		LOG_AS(ENC, ERROR, func, "another core of this process is rank 0");
		return NRT_INVALID;
	}
	world_stop(swap_registry(NULL), NULL);
	comm.registrar = m;
	while ((ret = world_start(&place->root, count, &registry)) == -EADDRINUSE &&
	       deadline_left(deadline) && !nrt_comm_closing()) {
		if (!told)
			LOG_AS(ENC, WARN, func, "another process listens at NEURON_RT_ROOT_COMM_ID=%s: rank 0 waits for its end",
			       job_root_text());
		told = true;
		usleep(5000);
	}
	if (!ret) {
		swap_registry(registry);
		return NRT_SUCCESS;
	}
	LOG_AS(ENC, ERROR, func, "rank 0 of NEURON_RT_ROOT_COMM_ID=%s: %s",
	       job_root_text(), strerror(-ret));
	return ret == -ENOMEM || ret == -EMFILE ? NRT_RESOURCE : NRT_FAILURE;
}

/* An end of the fabric, of the interface that rank 0 is reached by.  None: this host alone. */
static void open_fabric(const char *func, struct member *m, struct world_hello *hello)
{
	union world_address own;
	socklen_t length = sizeof(own);
	size_t size = WORLD_NAME;
	char text[INET6_ADDRSTRLEN] = "";
	int ret;

	if (getsockname(m->world->fd, &own.any, &length) ||
	    !inet_ntop(own.any.sa_family, own.any.sa_family == AF_INET ?
		       (void *)&own.v4.sin_addr : (void *)&own.v6.sin6_addr, text, sizeof(text)))
		text[0] = '\0';
	ret = fabric_open(&m->fabric, *text ? text : NULL, hello->name, &size);
	m->fabric_error = ret;
	if (ret)
		LOG_AS(ENC, WARN, func, "no fabric to other hosts: %s", strerror(-ret));
	hello->name_size = ret ? 0 : (uint32_t)size;
}

static NRT_STATUS meet_once(const char *func, struct member *m, const union world_address *root,
			    struct world_hello *hello, const struct deadline *deadline)
{
	int fd = -1;
	NRT_STATUS status = world_connect(root, deadline, &fd, &m->world->why);

	pthread_mutex_lock(&comm_lock);
	comm_close_fds(&m->world->fd, 1);
	m->world->fd = fd;
	if (comm.closing)
		status = NRT_CLOSED;
	pthread_mutex_unlock(&comm_lock);
	if (status == NRT_SUCCESS && !m->fabric)
		open_fabric(func, m, hello);
	status = status ?: world_meet(m->world, hello, deadline);
	return status != NRT_SUCCESS && nrt_comm_closing() ? NRT_CLOSED : status;
}

/* Who is here has the table's device, and a number for the hub of this host. */
static NRT_STATUS take_table(const char *func, struct member *m, uint32_t rank)
{
	const struct world *w = m->world;
	uint32_t host = w->ranks[rank].host;
	bool alone = true;

	m->nr_here = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		alone &= w->ranks[i].host == host;
		m->places[i] = w->ranks[i].host == host ? m->nr_here++ : NOT_HERE;
	}
	m->place = m->places[rank];
	if (alone) {
		leave_world(m);
		return NRT_SUCCESS;
	}
	if (!m->fabric) {
		const char *provider = getenv("NEURON_RT_FABRIC_PROVIDER");

		LOG_AS(ENC, ERROR, func, "no fabric to other hosts, NEURON_RT_FABRIC_PROVIDER=%s: %s",
		       provider ? provider : "", strerror(-m->fabric_error));
		return NRT_NETWORK_PROXY_FAILURE;
	}
	m->peers = calloc(w->count, sizeof(*m->peers));
	if (!m->peers)
		return NRT_RESOURCE;
	for (uint32_t i = 0; i < w->count; i++)
		if (!w->ranks[i].name_size ||
		    fabric_peer(m->fabric, w->ranks[i].name, &m->peers[i])) {
			LOG_AS(ENC, ERROR, func, "rank %u has no address in the fabric of rank %u", i,
			       rank);
			return NRT_NETWORK_PROXY_FAILURE;
		}
	return NRT_SUCCESS;
}

static NRT_STATUS join_world(const char *func, struct member *m, const struct comm_place *place,
			     const struct comm_hello *own, const struct deadline *deadline)
{
	struct world_hello hello = {
		.magic = WORLD_MAGIC, .version = WORLD_VERSION,
		.rank = own->rank, .count = own->count,
	};
	NRT_STATUS status = NRT_SUCCESS;
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return NRT_RESOURCE;
	w->fd = -1;
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_lock(&comm_lock);
	m->world = w;
	pthread_mutex_unlock(&comm_lock);
	memcpy(&hello.device, own->data, sizeof(hello.device));
	if (comm_place_host(place, hello.host))
		return NRT_FAILURE;
	if (!own->rank)
		status = start_registry(func, m, place, own->count, deadline);
	if (status != NRT_SUCCESS)
		return status;
	while ((status = meet_once(func, m, &place->root, &hello, deadline)) == NRT_COLL_PENDING &&
	       deadline_left(deadline))
		usleep(20000);
	return status ?: take_table(func, m, own->rank);
}

/* ---- joining: the whole of it -------------------------------------------------------- */

static void everybody_here(struct member *m, uint32_t rank, uint32_t count)
{
	m->place = rank;
	m->nr_here = count;
	for (uint32_t i = 0; i < count; i++)
		m->places[i] = i;
}

/* Who is on this host?  *own is of a world of all ranks, and then of the host's. */
static NRT_STATUS find_others(const char *func, struct member *m, struct comm_hello *own,
			      const struct deadline *deadline)
{
	/* One that is alone needs no place. */
	struct comm_place place = { .dir = -1, .reach = COMM_LOOPBACK };
	NRT_STATUS status = own->count > 1 ? comm_place_open(func, &place) : NRT_SUCCESS;

	if (status != NRT_SUCCESS)
		return status;
	if (place.reach == COMM_LOOPBACK || fabric_missing()) {
		if (place.reach == COMM_REMOTE) {
			LOG_AS(ENC, ERROR, func,
			       "root %s is not this host, and there is no libfabric (%s): collectives stay within one host",
			       job_root_text(), fabric_missing());
			status = NRT_FAILURE;
		}
		status = status ?: check_count(func, own->count);
		if (status == NRT_SUCCESS)
			everybody_here(m, own->rank, own->count);
	} else if (own->count > WORLD_MAX_RANKS) {
		LOG_AS(ENC, ERROR, func, "%u ranks are more than %u", own->count, WORLD_MAX_RANKS);
		status = NRT_FAILURE;
	} else {
		status = join_world(func, m, &place, own, deadline) ?: check_count(func, m->nr_here);
	}
	comm_place_close(&place);
	own->rank = m->place;
	own->count = m->nr_here;
	return status;
}

/* Under all far and busy. */
static NRT_STATUS meet_all(const char *func, struct member *m, struct comm_hello *hello,
			   const struct deadline *deadline, struct comm_reply *reply)
{
	uint32_t count = hello->count;
	NRT_STATUS status = find_others(func, m, hello, deadline);
	bool root;

	if (status == NRT_SUCCESS && hello->count > 1 && !hello->rank)
		status = start_root(func, m, hello->count, deadline);
	root = hello->count > 1 && !hello->rank && status == NRT_SUCCESS;
	if (hello->count > 1 && status == NRT_SUCCESS)
		status = open_channel(func, m, hello, deadline, reply);
	if (status != NRT_SUCCESS && m->world && m->world->why.kind)
		m->why = m->world->why;
	if (root && status != NRT_SUCCESS)
		stop_root(m, count);
	if (status != NRT_SUCCESS) {
		/* Before we leave: then we were missing, too. */
		stop_registry(m, count);
		leave_world(m);
	}
	return status == NRT_COLL_PENDING ? NRT_TIMEOUT : status;
}

/* One that has just lost the others has nothing any more. */
static bool has_rank(uint32_t rank, uint32_t count)
{
	GUARD(&comm_lock);
	for (uint32_t i = 0; i < comm.nr; i++) {
		const struct member *m = &comm.members[i];
		struct pollfd pfd = { .fd = m->fd[0] };

		if (m->joined && !m->broken && m->rank == rank && m->count == count &&
		    poll(&pfd, 1, 0) <= 0 &&
		    (!m->world || !world_broken(m->world, NULL, m->count)))
			return true;
	}
	return false;
}

static NRT_STATUS join_locked(const char *func, uint32_t vnc, struct member *m, uint32_t rank,
			      uint32_t count)
{
	/* What a core says of itself when it joins. */
	uint32_t device = neuron_device_index(nrt_process.vncs[vnc].device);
	struct comm_hello hello = hello_of(rank, count, 0);
	struct deadline deadline = deadline_in(nrt_process.timeout_ms);
	struct comm_reply *reply;
	NRT_STATUS status;
	char why[200];

	if (m->joined && !m->broken) {
		if (m->rank == rank && m->count == count)
			return NRT_SUCCESS;
		LOG_AS(ENC, ERROR, func, "core %u is rank %u of %u, not rank %u of %u", vnc,
		       m->rank, m->count, rank, count);
		return NRT_INVALID;
	}
	if (!count || rank >= count) {
		LOG_AS(ENC, ERROR, func, "rank %u of %u", rank, count);
		return NRT_INVALID;
	}
	if (count > 1 && has_rank(rank, count)) {
		LOG_AS(ENC, ERROR, func, "another core of this process is rank %u of %u", rank, count);
		return NRT_INVALID;
	}
	m->why = (struct reason){ .kind = REASON_NONE };
	reply = calloc(1, sizeof(*reply));
	if (!reply)
		return NRT_RESOURCE;
	for (uint32_t c = 0; c < COMM_CHANNELS; c++)
		hang_up(m, c);
	pthread_mutex_lock(&comm_lock);
	m->joined = false;
	pthread_mutex_unlock(&comm_lock);
	leave_world(m);
	memcpy(hello.data, &device, sizeof(device));
	memcpy(reply->data[0], &device, sizeof(device));
	status = meet_all(func, m, &hello, &deadline, reply);
	pthread_mutex_lock(&comm_lock);
	m->opening = false;
	if (status == NRT_SUCCESS) {
		m->rank = rank;
		m->count = count;
		memcpy(m->key, reply->key, COMM_KEY);
		for (uint32_t i = 0; i < hello.count; i++)
			memcpy(&m->devices[i], reply->data[i], sizeof(m->devices[i]));
		m->broken = false;
		m->joined = true;
	}
	pthread_mutex_unlock(&comm_lock);
	if (status == NRT_SUCCESS)
		LOG_AS(ENC, INFO, func, "core %u is rank %u of %u, %u of them on this host, fabric %s",
		       vnc, rank, count, hello.count, m->fabric ? fabric_provider(m->fabric) : "none");
	else
		LOG_AS(ENC, ERROR, func, "core %u, rank %u of %u: %s%s", vnc, rank, count,
		       nrt_get_status_as_str(status), reason_text(&m->why, why, sizeof(why)));
	free(reply);
	return status;
}

NRT_STATUS nrt_comm_join(const char *func, uint32_t vnc, uint32_t rank, uint32_t count)
{
	struct member *m;
	NRT_STATUS status = members_get(vnc, &m);

	if (status != NRT_SUCCESS || nrt_comm_check(vnc, rank, count) == NRT_SUCCESS)
		return status;
	/* What goes on in a communicator that is broken ends soon. */
	for (uint32_t c = 0; c < COMM_CHANNELS; c++)
		pthread_mutex_lock(&m->far[c]);
	for (uint32_t c = 0; c < COMM_CHANNELS; c++)
		pthread_mutex_lock(&m->busy[c]);
	status = join_locked(func, vnc, m, rank, count);
	for (uint32_t c = 0; c < COMM_CHANNELS; c++)
		pthread_mutex_unlock(&m->busy[c]);
	for (uint32_t c = 0; c < COMM_CHANNELS; c++)
		pthread_mutex_unlock(&m->far[c]);
	return status;
}

NRT_STATUS nrt_comm_check(uint32_t vnc, uint32_t rank, uint32_t count)
{
	struct member *m;
	NRT_STATUS status = members_get(vnc, &m);

	if (status != NRT_SUCCESS)
		return status;
	GUARD(&comm_lock);
	if (!m->joined || m->broken || m->rank != rank || m->count != count)
		status = NRT_FAILURE;
	return status;
}

uint32_t nrt_comm_device(uint32_t vnc, uint32_t rank)
{
	const struct member *m = &comm.members[vnc];

	GUARD(&comm_lock);
	return m->devices[m->places[rank] % COMM_MAX_RANKS];
}

uint32_t nrt_comm_host(uint32_t vnc, uint32_t rank)
{
	const struct member *m = &comm.members[vnc];

	GUARD(&comm_lock);
	return m->world ? m->world->ranks[rank].host : 0;
}

/* ---- what goes to other hosts ------------------------------------------------------ */

NRT_STATUS nrt_comm_take_links(uint32_t vnc, uint32_t channel, struct nrt_links *links)
{
	struct member *m;
	NRT_STATUS status = members_get(vnc, &m);

	if (status != NRT_SUCCESS)
		return status;
	pthread_mutex_lock(&m->far[channel]);
	*links = (struct nrt_links){
		.world = m->world, .fabric = m->fabric, .peers = m->peers,
		.rank = m->rank, .count = m->count,
		.mem = &m->mem[channel], .memory = &m->memory[channel],
	};
	if (m->joined && !m->broken)
		return NRT_SUCCESS;
	pthread_mutex_unlock(&m->far[channel]);
	return NRT_FAILURE;
}

void nrt_comm_give_links(uint32_t vnc, uint32_t channel)
{
	pthread_mutex_unlock(&comm.members[vnc].far[channel]);
}

void nrt_comm_break(uint32_t vnc)
{
	struct member *m = &comm.members[vnc];

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
	struct comm_hello hello = hello_of(m->place, m->nr_here, x->channel);
	struct deadline deadline = deadline_in(nrt_process.timeout_ms);
	size_t size = offsetof(struct comm_request, ranks) + r->nr * sizeof(r->ranks[0]);
	NRT_STATUS status = NRT_SUCCESS;
	uint32_t nr_fds = r->fds ? r->nr : 0;
	int ret = 0;

	memcpy(hello.key, m->key, COMM_KEY);
	if (m->fd[x->channel] < 0)
		status = open_channel(x->func, m, &hello, &deadline, reply);
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
	NRT_STATUS status = members_get(vnc, &m);

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
		hang_up(m, x->channel);
	}
	return status;
}

/* ---- the end ----------------------------------------------------------------------- */

void nrt_comm_stop(void)
{
	GUARD(&comm_lock);
	comm.closing = true;
	job_closing(true);
	for (uint32_t i = 0; i < comm.nr; i++) {
		const struct member *m = &comm.members[i];

		for (uint32_t c = 0; c < COMM_CHANNELS; c++)
			if (m->fd[c] >= 0)
				shutdown(m->fd[c], SHUT_RDWR);
		if (m->world && m->world->fd >= 0)
			shutdown(m->world->fd, SHUT_RDWR);
	}
}

static void close_members(void)
{
	for (uint32_t i = 0; i < comm.nr; i++) {
		comm_close_fds(comm.members[i].fd, COMM_CHANNELS);
		if (comm.members[i].world)
			comm_close_fds(&comm.members[i].world->fd, 1);
	}
	comm.nr = 0;
	comm.closing = false;
	job_closing(false);
}

/* Nobody is in it any more. */
static void member_close(struct member *m)
{
	leave_world(m);
	for (uint32_t c = 0; c < COMM_CHANNELS; c++) {
		pthread_mutex_destroy(&m->far[c]);
		pthread_mutex_destroy(&m->busy[c]);
	}
}

void nrt_comm_close(void)
{
	for (uint32_t i = 0; i < comm.nr; i++)
		member_close(&comm.members[i]);
	world_stop(swap_registry(NULL), NULL);
	comm.registrar = NULL;
	GUARD(&comm_lock);
	hub_stop();
	close_members();
	free(comm.members);
	comm.members = NULL;
}

void nrt_comm_forget(void)
{
	hub_forget();
	job_forget();
	world_forget(comm.registry);
	comm.registry = NULL;
	comm.registrar = NULL;
	close_members();
	/* Not freed: mutexes that another thread of the parent may have had. */
	comm.members = NULL;
	pthread_mutex_init(&comm.root, NULL);
	/* This thread had it at fork(). */
	pthread_mutex_unlock(&comm_lock);
}
