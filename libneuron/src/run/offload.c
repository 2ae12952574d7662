// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models to host memory and back. A model comes back to other addresses, so whatever has an
 * address of its own memory is written anew: descriptors, and tables of addresses. Programs have
 * none. Descriptors for inputs and outputs are written by the next run anyway.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <neuron/offload.h>

#include "../../common/lock.h"
#include "../../common/thread.h"
#include "../../common/turn.h"
#include "../../common/wait.h"
#include "../memory/image.h"
#include "../memory/resolve.h"
#include "offload.h"

/*
 * Who has a model. As with a struct turn, which only the thread that took it can give back, whoever
 * has just had it may take it again at once, unless somebody has waited for long.
 */
struct residence {
	pthread_mutex_t next;		/* who is the first to wait for it */
	_Atomic uint64_t since;		/* when, microseconds; 0: nobody does */
	pthread_mutex_t lock;		/* the rest */
	pthread_cond_t changed;		/* nobody has it any more; only the first one waits */
	bool taken;			/* somebody runs or moves the model, and has model->away */
	bool coming;			/* a thread brings it back */
	bool started;			/* @thread is to be joined, by who takes it next */
	pthread_t thread;
	_Atomic uint64_t bytes;		/* of device memory that it does not take */
};

/* Where memory of a part was. */
struct piece {
	uint64_t address;
	uint64_t bytes;
	struct neuron_mem *mem;		/* of the part; NULL: the scratchpad's */
	uint64_t offset;		/* in the scratchpad */
};

/* What a part has in host memory. Descriptors are in its rings. */
struct away {
	struct mem_image **images;	/* by number in model->mems; NULL: a ring */
	struct piece *pieces;		/* by address */
	size_t nr_pieces;
	struct symbols *symbols;	/* a copy */
	struct symbols *again;		/* of the device, while it comes back */
};

/* ---- out --------------------------------------------------------------------------- */

static bool kept(const struct ring *ring)
{
	return ring->tx_desc && ring->io;
}

/* Descriptors that only the device had. */
static void forget_descriptors(struct neuron_model *m)
{
	for (size_t i = 0; i < m->nr_rings; i++) {
		struct ring *ring = &m->rings[i];

		if (kept(ring))
			continue;
		free(TAKE_OUT(ring->tx_desc));
		free(TAKE_OUT(ring->rx_desc));
	}
}

static int take_ring(struct ring *ring)
{
	uint64_t bytes = (uint64_t)ring->count * sizeof(*ring->tx_desc);

	if (kept(ring) || !bytes)
		return 0;
	ring->tx_desc = malloc(bytes);
	ring->rx_desc = malloc(bytes);
	if (!ring->tx_desc || !ring->rx_desc)
		return -ENOMEM;
	return mem_transfer(ring->tx, 0, ring->tx_desc, bytes, false) ?:
	       mem_transfer(ring->rx, 0, ring->rx_desc, bytes, false);
}

static int by_address(const void *a, const void *b)
{
	const struct piece *p = a, *q = b;

	return p->address < q->address ? -1 : p->address > q->address;
}

static int take_pieces(struct neuron_model *m, struct away *away)
{
	struct scratchpad *s = &m->core->scratchpad;
	size_t nr = 0, n = 0;
	uint64_t offset;
	struct neuron_mem *mem;

	/* What is behind the part's need may go at any time. */
	while (scratchpad_piece(s, nr, &offset) && offset < m->scratchpad.need)
		nr++;
	away->pieces = calloc(m->nr_mems + nr + 1, sizeof(*away->pieces));
	if (!away->pieces)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_mems; i++)
		away->pieces[n++] = (struct piece){ neuron_mem_address(m->mems[i]),
						    neuron_mem_bytes(m->mems[i]), m->mems[i], 0 };
	for (size_t i = 0; i < nr; i++) {
		mem = scratchpad_piece(s, i, &offset);
		if (mem)
			away->pieces[n++] = (struct piece){ neuron_mem_address(mem),
							    neuron_mem_bytes(mem), NULL, offset };
	}
	away->nr_pieces = n;
	qsort(away->pieces, n, sizeof(*away->pieces), by_address);
	return 0;
}

static int take_symbols(const struct symbols *symbols, struct symbols **copy)
{
	*copy = malloc(symbols->size);
	if (!*copy)
		return -ENOMEM;
	memcpy(*copy, symbols, symbols->size);
	(*copy)->names = (const char *)&(*copy)->list[symbols->count];
	return 0;
}

static void away_free(struct neuron_model *m, struct away *away)
{
	for (size_t i = 0; away->images && i < m->nr_mems; i++)
		mem_image_free(away->images[i]);
	free(away->images);
	free(away->pieces);
	free(away->symbols);
	free(away);
}

/* All that is needed to come back; the part is not touched. */
static int take_part(struct neuron_model *m, struct away **out)
{
	struct away *away = calloc(1, sizeof(*away));
	int ret;

	if (!away)
		return -ENOMEM;
	away->images = calloc(m->nr_mems + 1, sizeof(struct mem_image *));
	ret = away->images ? take_pieces(m, away) ?: take_symbols(m->symbols, &away->symbols) :
			     -ENOMEM;
	for (size_t i = 0; i < m->nr_mems && !ret; i++)
		if (m->mems[i]->category != NEURON_MEM_RINGS)
			ret = mem_image_take(m->mems[i], &away->images[i]);
	/* Rings of a model that cannot run are empty. */
	for (size_t i = 0; i < m->nr_rings && m->labels && !ret; i++)
		ret = take_ring(&m->rings[i]);
	if (ret) {
		forget_descriptors(m);
		away_free(m, away);
		return ret;
	}
	*out = away;
	return 0;
}

/* Queues that had the part's rings last still have them. */
static int stop_queues(struct neuron_model *m)
{
	struct neuron_core *core = m->core;

	TURN(&core->turn);
	core_release_queues(core, m);
	return core->held ? core_reset_locked(core) : 0;
}

static void leave_device(struct neuron_model *m)
{
	mem_give_up(m->mems, m->nr_mems);
	scratchpad_leave(&m->core->scratchpad, &m->scratchpad);
}

static int move_out(struct neuron_model *model)
{
	struct away *away[2] = { NULL };
	uint64_t bytes = 0;
	size_t k = 0;
	int ret = 0;

	for (struct neuron_model *m = model; m && !ret; m = m->peer)
		ret = take_part(m, &away[k++]);
	for (struct neuron_model *m = model; m && !ret; m = m->peer)
		ret = stop_queues(m);
	k = 0;
	for (struct neuron_model *m = model; m; m = m->peer, k++) {
		if (ret && away[k]) {
			forget_descriptors(m);
			away_free(m, away[k]);
		}
		if (ret)
			continue;
		for (size_t i = 0; i < m->nr_mems; i++)
			bytes += mem_pages(m->mems[i]);
		leave_device(m);
		symbols_retire(m->core->device, m->symbols);
		m->symbols = NULL;
		m->away = away[k];
	}
	if (ret)
		return ret;
	atomic_store(&model->residence->bytes, bytes);
	offload_count_out(model->core->device, bytes);
	return 0;
}

/* ---- and back ---------------------------------------------------------------------- */

static const struct piece *find_piece(const struct away *away, uint64_t address)
{
	size_t low = 0, high = away->nr_pieces;

	/* The last one that starts at or below the address. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (away->pieces[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || address - away->pieces[low - 1].address >= away->pieces[low - 1].bytes)
		return NULL;
	return &away->pieces[low - 1];
}

/* Where a byte of the part is now; other addresses, as of registers, do not change. */
static uint64_t moved(struct neuron_model *m, uint64_t address)
{
	const struct piece *p = find_piece(m->away, address);

	if (!p)
		return address;
	if (p->mem)
		return neuron_mem_address(p->mem) + (address - p->address);
	return scratchpad_address(&m->core->scratchpad, p->offset + (address - p->address));
}

/* Whether each variable is in one piece again: where pages start depends on the other models. */
static bool fits_layout(const struct neuron_model *m, const struct scratchpad_layout *layout)
{
	const struct symbols *s = m->away->symbols;

	for (size_t i = 0; i < s->count; i++) {
		const struct piece *p = find_piece(m->away, s->list[i].address);

		if (p && !p->mem &&
		    !scratchpad_placed(layout, p->offset + (s->list[i].address - p->address),
				       s->list[i].bytes))
			return false;
	}
	return true;
}

static int get_memory(struct neuron_model *m, struct neuron_mem_failure *failure)
{
	struct scratchpad_layout layout;
	size_t nr;
	int ret = scratchpad_join(&m->core->scratchpad, &m->scratchpad, NULL, &layout, failure);

	if (ret == -ENOMEM && failure->reason == NEURON_MEM_REASON_NONE)
		return mem_no_host(m->scratchpad.need, failure);
	if (ret)
		return ret;
	if (!fits_layout(m, &layout)) {
		/* Nothing was refused; others are in the way. */
		failure->reason = NEURON_MEM_REASON_FRAGMENTED;
		failure->hbm = m->core->hbm;
		return -ENOMEM;
	}
	return mem_obtain(m->mems, m->nr_mems, &nr, failure);
}

static void move_descriptors(struct neuron_model *m, struct neuron_descriptor *d, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		d[i].address = htole64(moved(m, le64toh(d[i].address)));
}

static int put_ring(struct neuron_model *m, struct ring *ring)
{
	uint64_t bytes = (uint64_t)ring->count * sizeof(*ring->tx_desc);
	struct neuron_descriptor *d;
	int ret = 0;

	if (kept(ring) || !ring->tx_desc)
		return 0;
	d = malloc(bytes);
	if (!d)
		return -ENOMEM;
	for (int side = NEURON_RING_TX; side <= NEURON_RING_RX && !ret; side++) {
		memcpy(d, side ? ring->rx_desc : ring->tx_desc, bytes);
		move_descriptors(m, d, ring->count);
		ret = neuron_queue_write(m->core->device, side ? ring->rx : ring->tx, side, 0, d,
					 ring->count);
	}
	free(d);
	return ret;
}

static int put_symbols(struct neuron_model *m)
{
	struct symbols *s = m->away->symbols;
	size_t names = s->size - sizeof(*s) - s->count * sizeof(s->list[0]);
	struct symbol *list = calloc(s->count, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		list[i] = (struct symbol){ moved(m, s->list[i].address), s->list[i].bytes,
					   s->list[i].name };
	m->away->again = symbols_add(m->core->device, s->nc, list, s->count, s->names, names);
	free(list);
	return m->away->again ? 0 : -ENOMEM;
}

static int put_part(struct neuron_model *m)
{
	int ret = 0;

	for (size_t i = 0; i < m->nr_mems && !ret; i++)
		if (m->away->images[i])
			ret = mem_image_put(m->away->images[i], m->mems[i]);
	for (size_t i = 0; i < m->nr_words && !ret; i++) {
		uint64_t word = htole64(moved(m, m->words[i].address));

		ret = mem_transfer(m->words[i].mem, m->words[i].offset, &word, sizeof(word), true);
	}
	for (size_t i = 0; i < m->nr_rings && !ret; i++)
		ret = put_ring(m, &m->rings[i]);
	return ret ?: put_symbols(m);
}

/* It is all there. */
static void settle(struct neuron_model *m)
{
	for (size_t i = 0; i < m->nr_words; i++)
		m->words[i].address = moved(m, m->words[i].address);
	for (size_t i = 0; i < m->nr_rings; i++) {
		struct ring *ring = &m->rings[i];

		if (!kept(ring))
			continue;
		move_descriptors(m, ring->tx_desc, ring->count);
		move_descriptors(m, ring->rx_desc, ring->count);
		ring->dirty_first = 0;
		ring->dirty_end = ring->count;
	}
	/* Their addresses were taken for those of the model, if they were where it was. */
	for (size_t i = 0; i < m->nr_io; i++)
		m->io[i].bound = false;
	forget_descriptors(m);
	m->symbols = m->away->again;
	away_free(m, TAKE_OUT(m->away));
}

static int move_in(struct neuron_model *model, struct neuron_mem_failure *failure)
{
	struct neuron_device *device = model->core->device;
	uint64_t bytes = neuron_model_offloaded(model);
	int ret = 0;

	*failure = (struct neuron_mem_failure){ .reason = NEURON_MEM_REASON_NONE };
	for (struct neuron_model *m = model; m && !ret; m = m->peer)
		ret = get_memory(m, failure);
	for (struct neuron_model *m = model; m && !ret; m = m->peer) {
		ret = put_part(m);
		/* It has all its device memory. */
		if (ret == -ENOMEM)
			mem_no_host(bytes, failure);
	}
	for (struct neuron_model *m = model; m; m = m->peer) {
		if (!ret) {
			settle(m);
			continue;
		}
		symbols_retire(device, m->away->again);
		m->away->again = NULL;
		/* Also if it has not joined: pages that it got before one was refused. */
		leave_device(m);
	}
	if (ret)
		return ret;
	atomic_store(&model->residence->bytes, 0);
	offload_count_in(device, bytes);
	return 0;
}

/* ---- who has the model ------------------------------------------------------------- */

int residence_new(struct neuron_model *model)
{
	struct residence *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->next, NULL);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	model->residence = r;
	return 0;
}

bool model_awaited(const struct neuron_model *model)
{
	return waited_long(&model->residence->since);
}

static bool try_and_take(struct neuron_model *model, bool *came)
{
	struct residence *r = model->residence;

	GUARD(&r->lock);
	*came = r->coming;
	if (r->taken || model_awaited(model))
		return false;
	r->taken = true;
	return true;
}

/* Returns whether a thread was bringing it back. */
static bool wait_and_take(struct neuron_model *model)
{
	struct residence *r = model->residence;
	bool came;

	if (try_and_take(model, &came))
		return came;
	pthread_mutex_lock(&r->next);
	pthread_mutex_lock(&r->lock);
	atomic_store_explicit(&r->since, now_us(), memory_order_relaxed);
	while (r->taken)
		pthread_cond_wait(&r->changed, &r->lock);
	r->taken = true;
	atomic_store_explicit(&r->since, 0, memory_order_relaxed);
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_unlock(&r->next);
	return came;
}

void model_leave(struct neuron_model *model)
{
	struct residence *r = model->residence;

	GUARD(&r->lock);
	r->taken = false;
	r->coming = false;
	pthread_cond_signal(&r->changed);
}

int model_enter(struct neuron_model *model, struct neuron_mem_failure *failure)
{
	uint64_t began = now_ns();
	bool waited = wait_and_take(model);
	int ret = 0;

	if (model->away) {
		waited = true;
		ret = move_in(model, failure);
	}
	if (waited)
		offload_count_wait(model->core->device, now_ns() - began);
	if (ret)
		model_leave(model);
	return ret;
}

/* Under its lock. Threads have left by now, or do not take it any more. */
static void join_thread(struct residence *r)
{
	if (r->started)
		pthread_join(r->thread, NULL);
	r->started = false;
}

void residence_end(struct neuron_model *model)
{
	struct residence *r = model->residence;
	bool inherited = model->core && device_inherited(model->core->device);

	if (r && !inherited) {
		wait_and_take(model);
		join_thread(r);
		pthread_cond_destroy(&r->changed);
		pthread_mutex_destroy(&r->lock);
		pthread_mutex_destroy(&r->next);
	}
	free(r);
	model->residence = NULL;
	for (struct neuron_model *m = model; m; m = m->peer) {
		if (m->away)
			away_free(m, TAKE_OUT(m->away));
	}
}

NEURON_EXPORT int neuron_model_offload(struct neuron_model *model)
{
	struct residence *r = model->residence;
	int ret = 0;

	if (device_inherited(model->core->device))
		return -EACCES;
	pthread_mutex_lock(&r->lock);
	if (r->taken)
		ret = -EBUSY;
	else if (model->away)
		ret = -EALREADY;
	else
		r->taken = true;
	pthread_mutex_unlock(&r->lock);
	if (ret)
		return ret;
	ret = move_out(model);
	model_leave(model);
	return ret;
}

NEURON_EXPORT int neuron_model_onload(struct neuron_model *model,
				      struct neuron_mem_failure *failure)
{
	struct neuron_mem_failure ignored;
	int ret;

	if (device_inherited(model->core->device))
		return -EACCES;
	ret = model_enter(model, failure ? failure : &ignored);
	if (!ret)
		model_leave(model);
	return ret;
}

static void *prefetch(void *arg)
{
	struct neuron_mem_failure ignored;
	struct neuron_model *model = arg;

	move_in(model, &ignored);
	model_leave(model);
	return NULL;
}

NEURON_EXPORT int neuron_model_prefetch(struct neuron_model *model)
{
	struct residence *r = model->residence;
	int ret;

	if (device_inherited(model->core->device))
		return -EACCES;
	GUARD(&r->lock);
	if (r->taken)
		return r->coming ? 0 : -EBUSY;
	if (!model->away)
		return 0;
	join_thread(r);
	ret = thread_start(&r->thread, prefetch, model);
	/* It waits for the lock before it is done. */
	r->started = r->taken = r->coming = !ret;
	return ret;
}

NEURON_EXPORT uint64_t neuron_model_offloaded(const struct neuron_model *model)
{
	return atomic_load(&model->residence->bytes);
}
