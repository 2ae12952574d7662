// SPDX-License-Identifier: LGPL-2.1-or-later
/* How a core comes to be a rank: with those of its host, and of others. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "../base/log.h"
#include "../base/process.h"
#include "hub.h"
#include "job.h"
#include "member.h"

/* ---- those of this host --------------------------------------------------------------- */

/* Under comm_lock: another core of the process is rank 0 of several, or becomes it. */
static bool is_root(const struct member *except)
{
	for (uint32_t i = 0; i < comm_state.nr; i++) {
		const struct member *m = &comm_state.members[i];

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
	pthread_mutex_lock(&comm_state.root);
	for (;;) {
		pthread_mutex_lock(&comm_lock);
		ret = is_root(m) ? -EALREADY : 0;
		if (!ret) {
			m->opening = true;
			hub_stop();
			ret = comm_state.closing ? -ESHUTDOWN : hub_start(&place, count);
		}
		pthread_mutex_unlock(&comm_lock);
		if (ret != -EADDRINUSE || !deadline_left(deadline))
			break;
		usleep(5000);
	}
	pthread_mutex_unlock(&comm_state.root);
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

	GUARD(&comm_state.root);
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

/* ---- those of other hosts ------------------------------------------------------------- */

/* Under root: another core of the process is rank 0 of several hosts, or becomes it. */
static bool registry_used(const struct member *except)
{
	const struct member *m = comm_state.registrar;

	GUARD(&comm_lock);
	return comm_state.registry && m != except && m->world && (!m->joined || !m->broken);
}

static void stop_registry(struct member *m, uint32_t count)
{
	bool missing[WORLD_MAX_RANKS] = { false };

	GUARD(&comm_state.root);
	if (comm_state.registrar != m)
		return;
	world_stop(member_swap_registry(NULL), missing);
	comm_state.registrar = NULL;
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
	GUARD(&comm_state.root);
	if (registry_used(m)) {
		LOG_AS(ENC, ERROR, func, "another core of this process is rank 0");
		return NRT_INVALID;
	}
	world_stop(member_swap_registry(NULL), NULL);
	comm_state.registrar = m;
	while ((ret = world_start(&place->root, count, &registry)) == -EADDRINUSE &&
	       deadline_left(deadline) && !nrt_comm_closing()) {
		if (!told)
			LOG_AS(ENC, WARN, func, "another process listens at NEURON_RT_ROOT_COMM_ID=%s: rank 0 waits for its end",
			       job_root_text());
		told = true;
		usleep(5000);
	}
	if (!ret) {
		member_swap_registry(registry);
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
	    !inet_ntop(own.any.sa_family, world_address_ip(&own), text, sizeof(text)))
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
	if (comm_state.closing)
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
		member_leave_world(m);
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

/* ---- all of them ---------------------------------------------------------------------- */

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
		status = member_open_channel(func, m, hello, deadline, reply);
	if (status != NRT_SUCCESS && m->world && m->world->why.kind)
		m->why = m->world->why;
	if (root && status != NRT_SUCCESS)
		stop_root(m, count);
	if (status != NRT_SUCCESS) {
		/* Before we leave: then we were missing, too. */
		stop_registry(m, count);
		member_leave_world(m);
	}
	return status == NRT_COLL_PENDING ? NRT_TIMEOUT : status;
}

/* One that has just lost the others has nothing any more. */
static bool has_rank(uint32_t rank, uint32_t count)
{
	GUARD(&comm_lock);
	for (uint32_t i = 0; i < comm_state.nr; i++) {
		const struct member *m = &comm_state.members[i];
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
	struct comm_hello hello = member_hello(rank, count, 0);
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
		member_hang_up(m, c);
	pthread_mutex_lock(&comm_lock);
	m->joined = false;
	pthread_mutex_unlock(&comm_lock);
	member_leave_world(m);
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
	NRT_STATUS status = member_get(vnc, &m);

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
