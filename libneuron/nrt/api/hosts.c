// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collective operations of ranks that are on several hosts.
 *
 * In each host the leader takes the inputs of the others there, combines them by DMA, does
 * the rest with the leaders of other hosts, and puts the results of the others into memory
 * that they read.  What is short all leaders tell all, and each combines it in the order of
 * the hosts; what is long goes around a ring (ring.c).  Both ways everybody has the same
 * bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cc/ring.h"
#include "../object/model.h"
#include "hosts.h"

/* All that leaders tell each other of an operation; more goes around the ring. */
#define TOLD_MAX 65536u
/* Shares of the ring end at multiples of this: the elements of all types fit. */
#define SHARE_ALIGN 64u

/* ---- within the host ------------------------------------------------------------------ */

/* What the leader and the others here give each other. */
struct here {
	struct across *x;
	int fds[COMM_MAX_RANKS];	/* of each, the leader's has the results */
	uint64_t offsets[COMM_MAX_RANKS];
	uint8_t *shared;		/* the results, or NULL */
	uint64_t shared_size;
};

/* Memory of so many bytes, which the leader can still write to. */
static int make_shared(struct here *h, uint64_t size)
{
	int fd = cc_make_memfd();
	void *map;

	if (fd < 0)
		return -1;
	map = ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) ?
	      MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		close(fd);
		return -1;
	}
	h->shared = map;
	h->shared_size = size;
	return fd;
}

/* The results, as the leader has left them. */
static NRT_STATUS open_shared(struct here *h, uint64_t size)
{
	int fd = h->fds[0], seals = fcntl(fd, F_GET_SEALS);
	void *map;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || lseek(fd, 0, SEEK_END) != (off_t)size)
		return NRT_FAILURE;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return NRT_RESOURCE;
	h->shared = map;
	h->shared_size = size;
	return NRT_SUCCESS;
}

static void close_here(struct here *h)
{
	if (h->shared)
		munmap(h->shared, h->shared_size);
	comm_close_fds(h->fds, COMM_MAX_RANKS);
}

/* Those of this host; @fd is closed, -1 if @status is why there is none. */
static NRT_STATUS meet_here(struct here *h, const struct params *params, int fd, bool with_fds,
			    uint64_t offset, NRT_STATUS own)
{
	const struct across *x = h->x;
	uint8_t all[COMM_MAX_RANKS][COMM_DATA];
	struct nrt_exchange e = {
		.func = x->func, .channel = x->channel, .ranks = x->locals, .nr = x->nr_here,
		.failed = own != NRT_SUCCESS, .part = true, .params = params, .params_size = sizeof(*params),
		.data = &offset, .data_size = sizeof(offset), .fd = fd, .all = all,
		.fds = with_fds ? h->fds : NULL,
	};
	NRT_STATUS status = nrt_comm_exchange(x->vnc, &e);

	if (fd >= 0)
		close(fd);
	for (uint32_t i = 0; i < x->nr_here && status == NRT_SUCCESS; i++)
		memcpy(&h->offsets[i], all[i], sizeof(offset));
	return own != NRT_SUCCESS && status == NRT_EXEC_COMPLETED_WITH_ERR ? own : status;
}

/* The leaders are told, too, why this host does not take part; unless it is gone for them. */
static bool goes_on(NRT_STATUS status)
{
	return status != NRT_TIMEOUT && status != NRT_FAILURE && status != NRT_CLOSED &&
	       status != NRT_NETWORK_PROXY_FAILURE;
}

/* ---- an operation on tensors, as its leader does it ------------------------------------- */

struct lead {
	struct across *x;
	struct here *here;
	const struct nrt_cc_context *c;
	nrt_tensor_t *in, *out;
	struct source sources[COMM_MAX_RANKS];	/* inputs of the ranks here */
	struct source part;			/* all of them combined */
	struct source result;			/* of this rank */
	struct source memory;			/* for messages, with the type of what is in them */
	size_t scratch;				/* there: for what is put into the tensors' type */
	/* Places of the group by host: those of @h are from @first[h] on. */
	uint32_t order[WORLD_MAX_RANKS], first[WORLD_MAX_RANKS + 1];
	/*
	 * What goes around the ring at a time: bytes of the tensor, or of each part of it. They are
	 * counted as in messages, where elements may have another size.
	 */
	uint64_t from, size;
	uint64_t shares[WORLD_MAX_RANKS], bounds[WORLD_MAX_RANKS];
};

static void order_places(struct lead *l)
{
	const struct across *x = l->x;
	uint32_t n = 0;

	for (uint32_t h = 0; h < x->nr_hosts; h++) {
		l->first[h] = n;
		for (uint32_t i = 0; i < x->nr; i++)
			if (x->host_of[i] == h)
				l->order[n++] = i;
	}
	l->first[x->nr_hosts] = n;
}

/* Bytes in messages of those of a tensor, and the other way round. */
static uint64_t in_messages(const struct lead *l, uint64_t bytes)
{
	return bytes / cc_element_size(l->c->dtype) * cc_element_size(l->memory.dtype);
}

static uint64_t in_tensor(const struct lead *l, uint64_t bytes)
{
	return bytes / cc_element_size(l->memory.dtype) * cc_element_size(l->c->dtype);
}

static NRT_STATUS copy(const struct source *to, uint64_t to_at, const struct source *from,
		       uint64_t from_at, uint64_t size)
{
	return nrt_status_of(neuron_mem_copy(to->mem, to->offset + to_at, from->mem,
					     from->offset + from_at, size));
}

/* @bytes of what the ranks here are together, from byte @at on, both as in messages. */
static NRT_STATUS load_part(struct lead *l, size_t to_at, uint64_t at, uint64_t bytes)
{
	uint32_t size = cc_element_size(l->memory.dtype);
	struct source to = l->memory;

	if (l->part.dtype == l->memory.dtype)
		return copy(&l->memory, to_at, &l->part, at, bytes);
	to.offset += to_at;
	return cc_reduce(l->c, &l->part, 1, at / size, bytes / size, &to);
}

/* @bytes of results that have come, in the tensors' type: where they are then. */
static NRT_STATUS to_type(struct lead *l, size_t *at, uint64_t bytes)
{
	struct source from = l->memory, to = l->memory;

	if (l->memory.dtype == l->c->dtype)
		return NRT_SUCCESS;
	from.offset += *at;
	to.offset += l->scratch;
	to.dtype = l->c->dtype;
	*at = l->scratch;
	return cc_reduce(l->c, &from, 1, 0, bytes / cc_element_size(from.dtype), &to);
}

/* Of bytes that have come: to the tensor of this rank, and to those of the others here. */
static NRT_STATUS put(struct lead *l, bool mine, uint64_t at, bool others, uint64_t shared_at,
		      size_t memory_at, uint64_t size)
{
	NRT_STATUS status = NRT_SUCCESS;

	if (others && l->here->shared)
		status = nrt_status_of(neuron_mem_read(l->memory.mem, memory_at,
						       l->here->shared + shared_at, size));
	return mine ? status ?: copy(&l->result, at, &l->memory, memory_at, size) : status;
}

/* The bytes of a piece that lie side by side: of which rank's part, and where in it. */
static uint64_t run_of(const struct lead *l, const struct ring_piece *p, uint64_t done,
		       uint32_t *index, uint64_t *at)
{
	uint64_t left = p->bytes - done, whole = p->at + done;

	*index = 0;
	*at = l->from;
	if (l->c->cc_op == NRT_CC_ALLREDUCE) {
		*at += l->bounds[p->host] + whole;
		return left;
	}
	*index = (uint32_t)(whole / l->size);
	*at += whole % l->size;
	whole = l->size - whole % l->size;
	return left < whole ? left : whole;
}

/* Where that is in an input of a reduction. */
static uint64_t input_at(const struct lead *l, uint32_t host, uint32_t index, uint64_t at)
{
	return l->c->cc_op == NRT_CC_ALLREDUCE ? at :
	       l->order[l->first[host] + index] * in_messages(l, l->out->size) + at;
}

static NRT_STATUS load_piece(void *arg, const struct ring_piece *p)
{
	struct lead *l = arg;
	NRT_STATUS status = NRT_SUCCESS;
	uint32_t index;
	uint64_t at, n;

	for (uint64_t done = 0; done < p->bytes && status == NRT_SUCCESS; done += n) {
		n = run_of(l, p, done, &index, &at);
		if (l->c->cc_op == NRT_CC_ALLGATHER)
			status = copy(&l->memory, p->to + done, &l->sources[index], at, n);
		else
			status = load_part(l, p->to + done, input_at(l, p->host, index, at), n);
	}
	return status;
}

static NRT_STATUS combine_piece(void *arg, const struct ring_piece *p)
{
	struct lead *l = arg;
	uint32_t size = cc_element_size(l->memory.dtype);
	NRT_STATUS status = NRT_SUCCESS;
	uint32_t index;
	uint64_t at, n;

	for (uint64_t done = 0; done < p->bytes && status == NRT_SUCCESS; done += n) {
		struct source both[2] = { l->memory, l->part };

		n = run_of(l, p, done, &index, &at);
		both[0].offset += p->to + done;
		both[1].offset += input_at(l, p->host, index, at) / size *
				  cc_element_size(l->part.dtype);
		status = cc_reduce(l->c, both, 2, 0, n / size, &both[0]);
	}
	return status;
}

static NRT_STATUS store_piece(void *arg, const struct ring_piece *p)
{
	struct lead *l = arg;
	NRT_STATUS status = NRT_SUCCESS;
	uint32_t index, place;
	uint64_t at, n;

	for (uint64_t done = 0; done < p->bytes && status == NRT_SUCCESS; done += n) {
		size_t from = p->to + done;
		uint64_t bytes;

		n = run_of(l, p, done, &index, &at);
		bytes = in_tensor(l, n);
		at = in_tensor(l, at);
		place = l->order[l->first[p->host] + index];
		status = to_type(l, &from, n);
		if (status != NRT_SUCCESS)
			break;
		if (l->c->cc_op == NRT_CC_REDUCESCATTER) {
			status = put(l, place == l->c->rank, at, place != l->c->rank,
				     index * l->out->size + at, from, bytes);
			continue;
		}
		if (l->c->cc_op == NRT_CC_ALLGATHER)
			at += place * l->in->size;
		status = put(l, true, at, true, at, from, bytes);
	}
	return status;
}

/* Shares of what goes around at a time. */
static void share_out(struct lead *l)
{
	uint32_t hosts = l->x->nr_hosts;

	for (uint32_t h = 0; h < hosts; h++) {
		if (l->c->cc_op == NRT_CC_ALLREDUCE) {
			uint64_t end = (l->size * (h + 1) / hosts) & ~(uint64_t)(SHARE_ALIGN - 1);

			l->bounds[h] = h ? l->bounds[h - 1] + l->shares[h - 1] : 0;
			l->shares[h] = (h + 1 == hosts ? l->size : end) - l->bounds[h];
		} else {
			l->shares[h] = (l->first[h + 1] - l->first[h]) * l->size;
		}
	}
}

/* As much at a time as is a share of one host, so that memory for messages is bounded. */
static NRT_STATUS go_around(struct lead *l)
{
	struct across *x = l->x;
	bool whole = l->c->cc_op == NRT_CC_ALLREDUCE, gather = l->c->cc_op == NRT_CC_ALLGATHER;
	uint64_t all = in_messages(l, whole || gather ? l->in->size : l->out->size);
	uint64_t most = (uint64_t)RING_PIECE * RING_PIECES / (whole ? 1 : x->nr);
	struct ring r = {
		.shares = l->shares, .load = load_piece,
		.combine = gather ? NULL : combine_piece, .store = store_piece,
		.spread = l->c->cc_op != NRT_CC_REDUCESCATTER, .arg = l,
	};
	struct across_word word = { .magic = WORLD_MAGIC };
	struct params params = cc_params_of(l->c, KIND_DONE, 0);
	NRT_STATUS status = NRT_SUCCESS;

	most &= ~(uint64_t)(SHARE_ALIGN - 1);
	for (l->from = 0; l->from < all && status == NRT_SUCCESS; l->from += l->size) {
		l->size = all - l->from < most ? all - l->from : most;
		share_out(l);
		status = ring_run(x, &r);
	}
	if (status != NRT_SUCCESS)
		return status;
	memcpy(word.params, &params, sizeof(params));
	word.failed = r.own != NRT_SUCCESS;
	status = across_agree(x, &word);
	return r.own != NRT_SUCCESS && status == NRT_EXEC_COMPLETED_WITH_ERR ? r.own : status;
}

/* What rank @i of those here gets of what all hosts have said; others than this one by the scratch. */
static NRT_STATUS put_reduced(struct lead *l, const struct source *said, uint32_t i)
{
	const struct across *x = l->x;
	bool whole = l->c->cc_op == NRT_CC_ALLREDUCE, mine = x->here[i] == l->c->rank;
	struct source to = mine ? l->result :
				  (struct source){ l->memory.mem, l->scratch, l->c->dtype, false };
	uint64_t size = l->out->size, elements = size / cc_element_size(l->c->dtype);
	NRT_STATUS status;

	/* The same for all: the leader, who is the first, has it for the others. */
	if (whole && !mine)
		return NRT_SUCCESS;
	status = cc_reduce(l->c, said, x->nr_hosts, whole ? 0 : x->here[i] * elements, elements,
			   &to);
	if (status == NRT_SUCCESS && l->here->shared && (whole || !mine))
		status = nrt_status_of(neuron_mem_read(to.mem, to.offset, l->here->shared +
						       (whole ? 0 : i * size), size));
	return status;
}

/* What each host has said, @size bytes apart or in words, put together. */
static NRT_STATUS put_together(struct lead *l, size_t at, size_t size)
{
	const struct across *x = l->x;
	struct source said[WORLD_MAX_RANKS];
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t h = 0; h < x->nr_hosts; h++)
		said[h] = (struct source){ l->memory.mem, across_part(x, at, size, h),
					    l->memory.dtype, false };
	if (l->c->cc_op == NRT_CC_ALLGATHER) {
		for (uint32_t h = 0; h < x->nr_hosts && status == NRT_SUCCESS; h++)
			for (uint32_t i = l->first[h]; i < l->first[h + 1] && !status; i++) {
				uint64_t to = l->order[i] * l->in->size;

				status = put(l, true, to, true, to, said[h].offset +
					     (i - l->first[h]) * l->in->size, l->in->size);
			}
		return status;
	}
	l->scratch = at + x->nr_hosts * size;
	for (uint32_t i = 0; i < x->nr_here && status == NRT_SUCCESS; i++)
		status = put_reduced(l, said, i);
	return status;
}

/* Of this host, to memory at @at. */
static NRT_STATUS say(struct lead *l, size_t at)
{
	NRT_STATUS status = NRT_SUCCESS;

	if (l->c->cc_op != NRT_CC_ALLGATHER)
		return load_part(l, at, 0, in_messages(l, l->in->size));
	for (uint32_t i = 0; i < l->x->nr_here && status == NRT_SUCCESS; i++)
		status = copy(&l->memory, at + i * l->in->size, &l->sources[i], 0, l->in->size);
	return status;
}

/* The inputs of the ranks here, and for a reduction what they are together. */
static NRT_STATUS take_inputs(struct lead *l)
{
	const struct across *x = l->x;
	NRT_STATUS status = NRT_SUCCESS;

	l->sources[0] = (struct source){ l->in->storage->mem, l->in->offset, l->c->dtype, false };
	for (uint32_t i = 1; i < x->nr_here && status == NRT_SUCCESS; i++)
		status = cc_fetch(l->c, l->here->fds[i], l->here->offsets[i], l->in->size,
				  &l->sources[i]);
	l->part = l->sources[0];
	if (status != NRT_SUCCESS || x->nr_here == 1 || l->c->cc_op == NRT_CC_ALLGATHER)
		return status;
	l->part = (struct source){ .dtype = l->memory.dtype, .own = true };
	status = nrt_status_of(cc_alloc_staging(l->c, in_messages(l, l->in->size), &l->part.mem));
	return status ?: cc_reduce(l->c, l->sources, x->nr_here, 0,
				   l->in->size / cc_element_size(l->c->dtype), &l->part);
}

/* Results may not overwrite what has not been read. */
static NRT_STATUS choose_result(struct lead *l)
{
	l->result = (struct source){ l->out->storage->mem, l->out->offset, l->c->dtype, false };
	if (!cc_overlap(l->in, l->out) ||
	    (l->c->cc_op == NRT_CC_ALLREDUCE && l->in->offset == l->out->offset))
		return NRT_SUCCESS;
	l->result = (struct source){ .dtype = l->c->dtype, .own = true };
	return nrt_status_of(cc_alloc_staging(l->c, l->out->size, &l->result.mem));
}

/* Room for words and what is told, or for words and what goes around at a time. */
static NRT_STATUS choose_memory(struct lead *l, uint64_t said, bool told)
{
	uint64_t all = in_messages(l, l->in->size > l->out->size ? l->in->size : l->out->size);
	uint64_t most = (uint64_t)RING_PIECE * RING_PIECES;
	struct across *x = l->x;
	size_t words = across_words(x);
	NRT_STATUS status;

	if (told) {
		/* Behind it, or the words, is room for what others here get of it. */
		status = across_words_memory(x, words + x->nr_hosts * said + l->out->size +
					      offsetof(struct across_word, data));
		if (status == NRT_SUCCESS)
			l->memory.mem = x->links.words->storage->mem;
		return status;
	}
	/* Behind it is room for a piece of it in the tensors' type. */
	l->scratch = all < most ? all : most;
	status = across_words_memory(x, words) ?:
		 across_pieces_memory(x, l->scratch + (l->memory.dtype == l->c->dtype ? 0 :
						     in_tensor(l, RING_PIECE)));
	if (status == NRT_SUCCESS)
		l->memory.mem = x->links.pieces->storage->mem;
	return status;
}

static NRT_STATUS do_lead(struct lead *l, const struct params *params, NRT_STATUS own)
{
	struct across *x = l->x;
	struct across_word word = { .magic = WORLD_MAGIC };
	uint64_t said = in_messages(l, l->in->size) * (l->c->cc_op == NRT_CC_ALLGATHER ? x->most : 1);
	bool inside = said <= ACROSS_DATA, told = inside || said <= TOLD_MAX / x->nr_hosts;
	size_t base = across_words(x);
	NRT_STATUS status = choose_memory(l, said, told);

	if (status != NRT_SUCCESS)
		return status;
	own = own ?: take_inputs(l) ?: choose_result(l);
	if (told && own == NRT_SUCCESS)
		own = say(l, base);
	if (inside && own == NRT_SUCCESS)
		memcpy(word.data, x->links.words->fabric.bytes + base, said);
	memcpy(word.params, params, sizeof(*params));
	word.failed = own != NRT_SUCCESS;
	status = across_agree(x, &word);
	if (status != NRT_SUCCESS)
		return own != NRT_SUCCESS && status == NRT_EXEC_COMPLETED_WITH_ERR ? own : status;
	if (inside)
		return put_together(l, offsetof(struct across_word, data), sizeof(word));
	if (!told)
		return go_around(l);
	return across_gather(x, base, said) ?: put_together(l, base, said);
}

static NRT_STATUS lead(struct lead *l, const struct params *params, NRT_STATUS own)
{
	NRT_STATUS status;

	order_places(l);
	status = do_lead(l, params, own);
	if (status == NRT_SUCCESS && l->result.own)
		status = nrt_status_of(neuron_mem_copy(l->out->storage->mem, l->out->offset,
						       l->result.mem, 0, l->out->size));
	cc_put_sources(l->sources, l->x->nr_here);
	cc_put_sources(&l->part, 1);
	cc_put_sources(&l->result, 1);
	return status;
}

/* What the leader has for the others here. */
static NRT_STATUS take_result(struct here *h, const struct nrt_cc_context *c, size_t i)
{
	const nrt_tensor_t *out = c->out[i];
	uint64_t at = 0, size = out->size;
	NRT_STATUS status;

	if (c->cc_op == NRT_CC_REDUCESCATTER) {
		while (h->x->here[at] != c->rank)
			at++;
		at *= out->size;
		size *= h->x->nr_here;
	}
	status = open_shared(h, size);
	return status ?: nrt_status_of(neuron_mem_write(out->storage->mem, out->offset,
							h->shared + at, out->size));
}

/* Those here hear how it ended; if the leader is gone for others, it is for them. */
static NRT_STATUS part_here(struct here *h, struct params *params, NRT_STATUS status)
{
	NRT_STATUS all;

	if (!goes_on(status))
		return status;
	params->kind = KIND_DONE;
	/* The hosts do not ask for the same: nor does their leader, for those here. */
	if (status == NRT_INVALID)
		params->kind = KIND_UNLIKE;
	all = meet_here(h, params, -1, false, 0, status == NRT_INVALID ? NRT_SUCCESS : status);
	return status != NRT_SUCCESS && goes_on(all) ? status : all;
}

static NRT_STATUS run_across(struct across *x, const struct nrt_cc_context *c, size_t i)
{
	struct params params = cc_params_of(c, KIND_OPERATION, i);
	struct here here = { .x = x };
	struct lead *l = NULL;
	bool leads = across_leads(x), several = x->nr_here > 1, met;
	NRT_STATUS own = NRT_SUCCESS, status;
	int fd = -1;

	memset(here.fds, 0xff, sizeof(here.fds));
	if (leads) {
		l = calloc(1, sizeof(*l));
		if (several)
			fd = make_shared(&here, c->out[i]->size * (c->cc_op == NRT_CC_REDUCESCATTER ?
								   x->nr_here : 1));
		own = !l || (several && fd < 0) ? NRT_RESOURCE : NRT_SUCCESS;
	} else {
		fd = cc_offer(c, c->in[i], &own);
	}
	status = meet_here(&here, &params, fd, several, c->in[i]->offset, own);
	met = status == NRT_SUCCESS;
	if (leads && !l) {
		/* The other hosts cannot be told in another way. */
		status = NRT_NETWORK_PROXY_FAILURE;
	} else if (leads && goes_on(status)) {
		*l = (struct lead){ .x = x, .here = &here, .c = c, .in = c->in[i], .out = c->out[i],
				    .memory.dtype = cc_partial_type(c) };
		status = lead(l, &params, status);
	}
	free(l);
	if (met)
		status = part_here(&here, &params, status);
	if (status == NRT_SUCCESS && !leads)
		status = take_result(&here, c, i);
	close_here(&here);
	return status;
}

NRT_STATUS hosts_run(const struct nrt_cc_context *c, uint32_t channel, size_t i)
{
	struct across x;
	NRT_STATUS status = across_begin(&x, "nrta_cc_schedule", c->vnc, channel, c->ranks, c->nr);

	if (status != NRT_SUCCESS)
		return status;
	status = run_across(&x, c, i);
	across_end(&x, status);
	return status;
}

/* ---- memory of the host ----------------------------------------------------------------- */

/* What the ranks here have, to @to, @size bytes of each. */
static bool collect(const struct here *h, const void *in, uint32_t size, uint8_t *to)
{
	memcpy(to, in, size);
	for (uint32_t i = 1; i < h->x->nr_here; i++)
		if (!cc_sealed(h->fds[i], size) ||
		    !cc_read_all(h->fds[i], (char *)to + (size_t)i * size, size))
			return false;
	return true;
}

static NRT_STATUS lead_gather(struct here *h, const struct params *params, const void *in,
			      uint8_t *out, NRT_STATUS own)
{
	struct across *x = h->x;
	struct across_word word = { .magic = WORLD_MAGIC };
	uint32_t size = (uint32_t)params->size, seen[WORLD_MAX_RANKS] = { 0 };
	size_t base = across_words(x), said = (size_t)x->most * size, at;
	bool inside = said <= ACROSS_DATA;
	NRT_STATUS status = across_words_memory(x, base + (inside ? 0 : x->nr_hosts * said));
	uint8_t *words;

	if (status != NRT_SUCCESS)
		return status;
	words = x->links.words->fabric.bytes;
	if (own == NRT_SUCCESS && size &&
	    !collect(h, in, size, inside ? word.data : words + base))
		own = NRT_FAILURE;
	memcpy(word.params, params, sizeof(*params));
	word.failed = own != NRT_SUCCESS;
	status = across_agree(x, &word);
	if (status == NRT_SUCCESS && !inside)
		status = across_gather(x, base, said);
	for (uint32_t i = 0; i < x->nr && status == NRT_SUCCESS && size; i++) {
		uint32_t host = x->host_of[i];

		at = inside ? across_part(x, offsetof(struct across_word, data), sizeof(word), host) :
			      across_part(x, base, said, host);
		at += (size_t)seen[host]++ * size;
		memcpy(out + (size_t)i * size, words + at, size);
	}
	if (status == NRT_SUCCESS && h->shared)
		memcpy(h->shared, out, (size_t)x->nr * size);
	return own != NRT_SUCCESS && status == NRT_EXEC_COMPLETED_WITH_ERR ? own : status;
}

static int offer_bytes(const void *bytes, uint32_t size, NRT_STATUS *status)
{
	int fd = cc_make_memfd();

	if (fd >= 0 && !write_bytes(fd, bytes, size) && cc_seal(fd))
		return fd;
	comm_close_fds(&fd, 1);
	*status = NRT_RESOURCE;
	return -1;
}

static NRT_STATUS gather_across(struct across *x, struct params *params, const void *in, void *out)
{
	struct here here = { .x = x };
	uint64_t all = x->nr * params->size;
	bool leads = across_leads(x), fds = x->nr_here > 1 && params->size, met;
	NRT_STATUS own = NRT_SUCCESS, status;
	int fd = -1;

	memset(here.fds, 0xff, sizeof(here.fds));
	if (fds)
		fd = leads ? make_shared(&here, all) :
			     offer_bytes(in, (uint32_t)params->size, &own);
	if (fds && leads && fd < 0)
		own = NRT_RESOURCE;
	status = meet_here(&here, params, fd, fds, 0, own);
	met = status == NRT_SUCCESS;
	if (leads && goes_on(status))
		status = lead_gather(&here, params, in, out, status);
	if (met)
		status = part_here(&here, params, status);
	if (status == NRT_SUCCESS && !leads && fds) {
		status = open_shared(&here, all);
		if (status == NRT_SUCCESS)
			memcpy(out, here.shared, all);
	}
	close_here(&here);
	return status;
}

NRT_STATUS hosts_gather(const char *func, uint32_t vnc, uint32_t count, enum kind kind,
			uint32_t size, const void *in, void *out)
{
	struct params params = { .kind = kind, .size = size };
	uint32_t ranks[WORLD_MAX_RANKS];
	struct across x;
	NRT_STATUS status;

	for (uint32_t i = 0; i < count; i++)
		ranks[i] = i;
	if (!across_needed(vnc, ranks, count))
		return NRT_COLL_PENDING;
	status = across_begin(&x, func, vnc, 0, ranks, count);
	if (status != NRT_SUCCESS)
		return status;
	status = gather_across(&x, &params, in, out);
	across_end(&x, status);
	return status;
}
