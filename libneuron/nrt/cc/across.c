// SPDX-License-Identifier: LGPL-2.1-or-later
/* Leaders of hosts: who they are, and what each says to all. */
#include <errno.h>
#include <string.h>

#include "../base/log.h"
#include "../base/process.h"
#include "../object/storage.h"
#include "across.h"

#define GRACE_MS 1000

/* The channel is its own, and so is the kind of message. */
#define TAG(channel, hash) ((uint64_t)(channel) << 32 | (hash))

bool across_needed(uint32_t vnc, const uint32_t *ranks, uint32_t nr)
{
	for (uint32_t i = 1; i < nr; i++)
		if (nrt_comm_host(vnc, ranks[i]) != nrt_comm_host(vnc, ranks[0]))
			return true;
	return false;
}

/* Groups that have ranks in common must not hear each other. */
static uint32_t hash_of(const uint32_t *ranks, uint32_t nr)
{
	uint32_t hash = 2166136261u;

	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t shift = 0; shift < 32; shift += 8)
			hash = (hash ^ (ranks[i] >> shift & 0xff)) * 16777619u;
	return hash;
}

/* In the order in which they appear in the group: the same everywhere. */
static NRT_STATUS find_hosts(struct across *x)
{
	const struct world *w = x->links.world;
	uint32_t sizes[WORLD_MAX_RANKS] = { 0 };

	for (uint32_t i = 0; i < x->nr; i++) {
		uint32_t host = w->ranks[x->ranks[i]].host, h = 0;

		while (h < x->nr_hosts && w->ranks[x->leaders[h]].host != host)
			h++;
		if (h == x->nr_hosts)
			x->leaders[x->nr_hosts++] = x->ranks[i];
		x->host_of[i] = h;
		if (++sizes[h] > COMM_MAX_RANKS)
			return NRT_INVALID;
		x->most = sizes[h] > x->most ? sizes[h] : x->most;
		if (host != w->ranks[x->links.rank].host)
			continue;
		x->host = h;
		x->here[x->nr_here] = i;
		x->locals[x->nr_here++] = x->ranks[i];
	}
	return NRT_SUCCESS;
}

/*
 * One that is gone may have done its part, and what is left of it is on its way or comes
 * from others.
 */
static bool interrupted(void *arg)
{
	struct across *x = arg;

	if (nrt_comm_closing())
		return true;
	if (!x->broken) {
		if (!world_broken(x->links.world, x->ranks, x->nr))
			return false;
		x->broken = now_ms();
		/* It would tell of this for ever. */
		x->watch.fd = -1;
	}
	return now_ms() - x->broken > GRACE_MS;
}

NRT_STATUS across_begin(struct across *x, const char *func, uint32_t vnc, uint32_t channel,
			const uint32_t *ranks, uint32_t nr)
{
	NRT_STATUS status;

	*x = (struct across){
		.func = func, .vnc = vnc, .channel = channel, .ranks = ranks, .nr = nr,
		.tag = TAG(channel, hash_of(ranks, nr)),
	};
	status = nrt_comm_take_links(vnc, channel, &x->links);
	if (status != NRT_SUCCESS)
		return status;
	/* It may have joined again, as something else, since somebody looked. */
	status = x->links.world ? NRT_SUCCESS : NRT_FAILURE;
	for (uint32_t i = 0; i < nr; i++)
		if (ranks[i] >= x->links.count)
			status = NRT_FAILURE;
	status = status ?: find_hosts(x);
	if (status == NRT_SUCCESS && !x->nr_here)
		status = NRT_INVALID;
	/* Without our part nobody is through. */
	if (status == NRT_SUCCESS && world_broken(x->links.world, ranks, nr))
		status = NRT_FAILURE;
	if (status != NRT_SUCCESS) {
		across_end(x, status);
		return status;
	}
	x->watch = (struct fabric_watch){
		.deadline = deadline_in(nrt_process.timeout_ms),
		.fd = x->links.world->fd,
		.broken = interrupted,
		.arg = x,
	};
	return NRT_SUCCESS;
}

/* After these everybody goes on. */
static void log_failed(const struct across *x, NRT_STATUS status)
{
	switch (status) {
	case NRT_SUCCESS:
	case NRT_CLOSED:
		break;
	case NRT_INVALID:
		LOG_AS(ENC, ERROR, x->func, "rank %u: the %u ranks on %u hosts do not ask for the same",
		       x->links.rank, x->nr, x->nr_hosts);
		break;
	case NRT_EXEC_COMPLETED_WITH_ERR:
		LOG_AS(ENC, ERROR, x->func, "rank %u: another of %u ranks on %u hosts has failed",
		       x->links.rank, x->nr, x->nr_hosts);
		break;
	default:
		LOG_AS(ENC, ERROR, x->func, "rank %u, with %u ranks on %u hosts: %s", x->links.rank,
		       x->nr, x->nr_hosts, nrt_get_status_as_str(status));
	}
}

void across_end(struct across *x, NRT_STATUS status)
{
	switch (status) {
	case NRT_TIMEOUT:
		LOG_AS(ENC, ERROR, x->func, "rank %u: not all of %u hosts came in %d ms",
		       x->links.rank, x->nr_hosts, nrt_process.timeout_ms);
		break;
	case NRT_FAILURE:
		LOG_AS(ENC, ERROR, x->func, "rank %u: one of %u ranks on %u hosts is gone, or rank 0",
		       x->links.rank, x->nr, x->nr_hosts);
		break;
	case NRT_NETWORK_PROXY_FAILURE:
		LOG_AS(ENC, ERROR, x->func, "rank %u: the fabric has failed, or what came is not what has to come",
		       x->links.rank);
		break;
	default:
		log_failed(x, status);
		nrt_comm_give_links(x->vnc, x->channel);
		return;
	}
	nrt_comm_break(x->vnc);
	nrt_comm_give_links(x->vnc, x->channel);
}

/* ---- memory ------------------------------------------------------------------------ */

static bool make_memory(struct across *x, struct message_memory *memory, size_t size, bool on_device)
{
	const struct nrt_vnc *vnc = &nrt_process.vncs[x->vnc];
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = !on_device ? NEURON_MEM_F_HOST : nrt_process.contiguous ? NEURON_MEM_F_HIGH : 0,
		.hbm = neuron_device_geometry(vnc->device)->core_hbm[vnc->nc],
		.nc = vnc->nc,
		.category = on_device ? NEURON_MEM_COLLECTIVES : NEURON_MEM_HOST_MISC,
	};
	struct neuron_mem *mem;
	void *bytes;

	/* Whole pages: what the fabric makes of it is a dma-buf. */
	size = round_up(size, host_page());
	if (neuron_mem_alloc(vnc->device, size, &opts, &mem))
		return false;
	/* A storage: a provider that copies calls nrt_memcpy_to_device(). */
	memory->storage = neuron_mem_map(mem, &bytes) ? NULL :
			  nrt_storage_of(on_device ? NRT_STORAGE_DEVICE : NRT_STORAGE_HOST,
					 vnc->device, mem, bytes);
	if (!memory->storage) {
		neuron_mem_free(mem);
		return false;
	}
	memory->fabric = (struct fabric_memory){
		.bytes = bytes, .size = size,
		.on_device = on_device, .device = neuron_device_index(vnc->device),
	};
	if (!fabric_register(x->links.fabric, &memory->fabric))
		return true;
	message_memory_free(x->links.fabric, memory);
	return false;
}

static NRT_STATUS grow(struct across *x, struct message_memory *memory, size_t size, bool on_device)
{
	if (memory->fabric.size >= size)
		return NRT_SUCCESS;
	message_memory_free(x->links.fabric, memory);
	if (on_device && make_memory(x, memory, size, true))
		return NRT_SUCCESS;
	/* Without memory nothing can be said, not even that: the others are to see the end. */
	return make_memory(x, memory, size, false) ? NRT_SUCCESS : NRT_NETWORK_PROXY_FAILURE;
}

NRT_STATUS across_words_memory(struct across *x, size_t size)
{
	return grow(x, x->links.words, size, false);
}

NRT_STATUS across_pieces_memory(struct across *x, size_t size)
{
	return grow(x, x->links.pieces, size, fabric_takes_devices(x->links.fabric));
}

/* ---- what each says to all --------------------------------------------------------- */

size_t across_part(const struct across *x, size_t at, size_t size, uint32_t host)
{
	return at + (host + x->nr_hosts - x->host) % x->nr_hosts * size;
}

NRT_STATUS across_gather(struct across *x, size_t at, size_t size)
{
	const struct fabric_memory *m = &x->links.words->fabric;
	uint32_t hosts = x->nr_hosts;

	/* What has come so far, of us and those after us, goes to one that far before us. */
	for (uint32_t have = 1; have < hosts; have *= 2) {
		size_t part = size * (have < hosts - have ? have : hosts - have);
		uint32_t to = x->leaders[(x->host + hosts - have) % hosts];
		uint32_t from = x->leaders[(x->host + have) % hosts];
		struct fabric_request *in, *out;
		NRT_STATUS status;

		status = fabric_receive(x->links.fabric, x->links.peers[from], x->tag, m,
					at + have * size, part, &x->watch, &in) ?:
			 fabric_send(x->links.fabric, x->links.peers[to], x->tag, m, at, part,
				     &x->watch, &out) ?:
			 fabric_wait(x->links.fabric, in, &x->watch) ?:
			 fabric_wait(x->links.fabric, out, &x->watch);
		if (status != NRT_SUCCESS)
			return nrt_comm_closing() ? NRT_CLOSED : status;
	}
	return NRT_SUCCESS;
}

NRT_STATUS across_check(const struct across_word *first, const struct across_word *word)
{
	if (word->magic != WORLD_MAGIC || word->failed > 1)
		return NRT_NETWORK_PROXY_FAILURE;
	return memcmp(first->params, word->params, COMM_DATA) ? NRT_INVALID : NRT_SUCCESS;
}

NRT_STATUS across_agree(struct across *x, const struct across_word *word)
{
	struct fabric_memory *m = &x->links.words->fabric;
	const struct across_word *words = (const void *)m->bytes;
	NRT_STATUS status;
	bool failed = false;

	memcpy(m->bytes, word, sizeof(*word));
	status = across_gather(x, 0, sizeof(*word));
	/* All see the same words: they come to the same end. */
	for (uint32_t i = 0; i < x->nr_hosts && status == NRT_SUCCESS; i++) {
		status = across_check(&words[0], &words[i]);
		failed |= words[i].failed;
	}
	if (failed && (status == NRT_SUCCESS || status == NRT_INVALID))
		return NRT_EXEC_COMPLETED_WITH_ERR;
	return status;
}
