// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rings of a model: how long they get, and the descriptors in them. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "../device/slots.h"
#include "../isa/transfer.h"
#include "loader.h"

/* Descriptors of a model, if nobody wants fewer: 1 GiB of rings a side. */
#define MAX_DESCRIPTORS (1ull << 26)
/* What is wrong with the entry of a trigger. */
#define ENTRY(text) "%s/%s: DMA entry %u: " text
#define WHERE(l, t) (l)->sg->dir, (l)->sg->engines[(t)->engine].json_name, (t)->dma->id

static bool is_io(const struct loader *l, const struct neuron_neff_side *side)
{
	return l->io_of_var[side->var - l->sg->vars] != 0;
}

static bool moves_io(const struct loader *l, const struct neuron_neff_desc *d)
{
	for (size_t i = 0; i < d->nr_from; i++)
		if (is_io(l, &d->from[i]))
			return true;
	return is_io(l, &d->to);
}

/* For an input or output the base is the offset in the tensor. */
static struct span side_span(const struct loader *l, const struct neuron_neff_side *side)
{
	return span_of(side, l->places[side->var - l->sg->vars].address + side->off);
}

static int check_side(struct loader *l, const struct trigger *t,
		      const struct neuron_neff_side *side)
{
	uint64_t end;

	if (side->var->type != NEURON_NEFF_VAR_STATE_BUFFER)
		return 0;
	if (!__builtin_add_overflow(span_end(side), side->var->backing_off, &end) &&
	    end <= l->g->sbuf_size)
		return 0;
	return error_note(l->error, -EINVAL,
			  ENTRY("%.200s lies outside the state buffer of %llu bytes"), WHERE(l, t),
			  side->var->name, (unsigned long long)l->g->sbuf_size);
}

/* NULL, or why the transfer cannot be built. */
static const char *side_spans(const struct loader *l, const struct neuron_neff_desc *d,
			      struct transfer *transfer)
{
	struct span src[NEURON_NEFF_MAX_SOURCES], dst = side_span(l, &d->to);

	for (size_t i = 0; i < d->nr_from; i++)
		src[i] = side_span(l, &d->from[i]);
	return transfer_start(transfer, d, &dst, src);
}

/* Descriptors of a transfer that computes. */
static void count_compute(struct loader *l, const struct trigger *t,
			  const struct neuron_neff_desc *d, uint64_t limit, uint64_t *tx,
			  uint64_t *rx)
{
	struct transfer transfer;
	const char *why = d->op == NEURON_NEFF_OP_UNKNOWN ? "unknown operation" :
			  l->g->isa_version ? side_spans(l, d, &transfer) :
			  "this library only builds copies for real devices";
	struct span dst;

	if (!why) {
		transfer_count(transfer, limit, tx, rx);
		return;
	}
	/* The reader named what it does not know. */
	if (d->op != NEURON_NEFF_OP_UNKNOWN)
		obstacle_add(&l->model->obstacles, ENTRY("%s"), WHERE(l, t), why);
	/* For the accounting: what a copy of the destination takes. */
	dst = side_span(l, &d->to);
	*tx = piece_count(&dst, &dst, limit);
	*rx = *tx;
}

/* Descriptors of one entry, the writes at its end included. */
static int count_entry(struct loader *l, struct trigger *t)
{
	const struct neuron_neff_dma *dma = t->dma;
	const uint64_t limit = NEURON_RING_MAX_SLOTS;
	uint64_t count[2] = { 0, 0 }, tx, rx;
	int ret = 0;

	for (size_t i = 0; i < dma->nr_desc && count[0] <= limit && count[1] <= limit; i++) {
		const struct neuron_neff_desc *d = &dma->desc[i];

		ret = check_side(l, t, &d->to);
		for (size_t k = 0; k < d->nr_from && !ret; k++)
			ret = check_side(l, t, &d->from[k]);
		if (ret)
			return ret;
		if (d->op == NEURON_NEFF_OP_COPY) {
			struct span dst = side_span(l, &d->to), src = side_span(l, &d->from[0]);

			tx = piece_count(&dst, &src, limit);
			rx = tx;
		} else {
			count_compute(l, t, d, limit, &tx, &rx);
		}
		count[NEURON_RING_TX] += tx;
		count[NEURON_RING_RX] += rx;
		t->moves += tx + rx;
		t->io_moves += moves_io(l, d) ? tx + rx : 0;
	}
	for (size_t i = 0; i < 2; i++) {
		count[i] += (dma->semaphore >= 0) + t->own_semaphore + (dma->event >= 0) +
			    (l->programs.other ? dma->nr_remote_semaphores : 0);
		if (count[i] > limit)
			return error_note(l->error, -E2BIG, ENTRY("more than %u descriptors"),
					  WHERE(l, t), NEURON_RING_MAX_SLOTS);
		t->count[i] = (uint32_t)count[i];
	}
	return 0;
}

static int check_number(struct loader *l, const struct trigger *t, const char *what,
			uint32_t number, const char *whose, uint32_t nr)
{
	return number < nr ? 0 : error_note(l->error, -E2BIG, ENTRY("%s %u, %s core has %u"),
					    WHERE(l, t), what, number, whose, nr);
}

static int check_semaphores(struct loader *l, const struct trigger *t)
{
	const struct neuron_neff_dma *dma = t->dma;
	uint32_t nr = l->g->nr_semaphores;
	int ret = 0;

	if (dma->nr_remote_semaphores && !l->programs.other)
		obstacle_add(&l->model->obstacles, ENTRY("semaphores of another core"),
			     WHERE(l, t));
	if (dma->semaphore >= 0)
		ret = check_number(l, t, "semaphore", (uint32_t)dma->semaphore, "the", nr);
	for (size_t i = 0; i < dma->nr_remote_semaphores && !ret; i++)
		ret = check_number(l, t, "remote semaphore", dma->remote_semaphores[i], "a", nr);
	if (dma->event >= 0 && !ret)
		ret = check_number(l, t, "event", (uint32_t)dma->event, "the", l->g->nr_events);
	return ret;
}

/* A semaphore for generated programs that no entry uses. */
static int own_semaphore(struct loader *l, uint32_t *index)
{
	bool used[NEURON_NEFF_MAX_SEMAPHORES] = { false };

	for (size_t i = 0; i < l->programs.nr_triggers; i++)
		if (l->programs.triggers[i].dma->semaphore >= 0)
			used[l->programs.triggers[i].dma->semaphore % NEURON_NEFF_MAX_SEMAPHORES] = true;
	for (uint32_t i = l->g->nr_semaphores; i-- > 0;)
		if (i < NEURON_NEFF_MAX_SEMAPHORES && !used[i]) {
			*index = i;
			return 0;
		}
	return error_note(l->error, -E2BIG, "%s: no semaphore is left", l->sg->dir);
}

/* The ring of a trigger's queue set, new if it is the first one. */
static int take_ring(struct loader *l, struct trigger *t)
{
	struct neuron_model *m = l->model;
	uint32_t *index = &l->ring_of_queue[t->dma->queue - l->sg->queues];
	uint32_t slot = NR_ENGINES + (uint32_t)(m->nr_rings - m->nr_fetch);

	if (!*index) {
		if (slot >= l->nr_slots)
			return error_note(l->error, -E2BIG,
					  "%s/def.json: more than %u queue sets in use", l->sg->dir,
					  l->nr_slots - NR_ENGINES);
		m->rings[m->nr_rings].slot = slot;
		m->rings[m->nr_rings++].engine = t->engine;
		*index = (uint32_t)m->nr_rings;
	}
	t->ring = *index - 1;
	t->slot = m->rings[t->ring].slot;
	/* Which engine is first would decide what a trigger starts. */
	if (m->rings[t->ring].engine != t->engine && !l->programs.generated && !l->programs.vendor)
		return error_note(l->error, -EINVAL,
				  "%s/def.json: dma_queue.%.200s is triggered by two engines",
				  l->sg->dir, t->dma->queue->name);
	return 0;
}

/* The descriptors of a trigger, in its ring; *@total: those of the model. */
static int add_trigger(struct loader *l, const struct trigger *t, uint64_t *total)
{
	struct ring *ring = &l->model->rings[t->ring];
	uint64_t max = l->max_descriptors ? l->max_descriptors : MAX_DESCRIPTORS;

	for (size_t k = 0; k < 2; k++) {
		ring->side_count[k] += t->count[k];
		ring->count = MAX(ring->count, ring->side_count[k]);
	}
	ring->moves += t->moves;
	ring->io_moves += t->io_moves;
	ring->io |= t->io_moves != 0;
	*total += t->count[t->count[NEURON_RING_TX] < t->count[NEURON_RING_RX]];
	if (ring->count <= NEURON_RING_MAX_SLOTS - NEURON_RING_UNUSED_SLOTS &&
	    *total <= MIN(max, MAX_DESCRIPTORS))
		return 0;
	return error_note(l->error, -E2BIG,
			  "%s/def.json: dma_queue.%.200s: more descriptors than a ring or a model may have",
			  l->sg->dir, t->dma->queue->name);
}

int load_plan_rings(struct loader *l)
{
	struct neuron_model *m = l->model;
	uint64_t total = 0;
	uint32_t own = 0;
	int ret = l->programs.generated ? own_semaphore(l, &own) : 0;

	if (ret)
		return ret;
	m->rings = calloc(NR_ENGINES + l->sg->nr_queues, sizeof(*m->rings));
	l->ring_of_queue = calloc(l->sg->nr_queues + 1, sizeof(*l->ring_of_queue));
	if (!m->rings || !l->ring_of_queue)
		return error_no_memory(l->error);
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		if (l->programs.code_size[i] || (l->programs.generated && i == NEURON_ISA_ENGINE_SP))
			m->rings[m->nr_rings++].slot = i;
	m->nr_fetch = m->nr_rings;

	for (size_t i = 0; i < l->programs.nr_triggers && !ret; i++) {
		struct trigger *t = &l->programs.triggers[i];

		/* Their descriptors are made on a device that can; this one cannot. */
		if (t->dma->queue->type == NEURON_NEFF_QUEUE_DYNAMIC) {
			obstacle_add(&m->obstacles,
				     "%s/def.json: dma_queue.%.200s: descriptors that the device generates",
				     l->sg->dir, t->dma->queue->name);
			continue;
		}
		t->own_semaphore = l->programs.generated && t->dma->semaphore < 0;
		t->semaphore = t->own_semaphore ? own : (uint32_t)t->dma->semaphore;
		ret = take_ring(l, t) ?: check_semaphores(l, t) ?: count_entry(l, t) ?:
		      add_trigger(l, t, &total);
	}
	/* load_account() divides it. */
	for (size_t i = m->nr_fetch; i < m->nr_rings && !ret; i++)
		ret = load_plan_ring(l, &m->rings[i], &m->usage.rings_spill);
	return ret;
}

/* Notes what to write when an input or output gets an address; other sides have theirs. */
static int add_fixup(struct loader *l, const struct neuron_neff_side *side, uint32_t ring,
		     uint32_t index, uint64_t offset, bool rx)
{
	uint32_t io = l->io_of_var[side->var - l->sg->vars];
	struct io_tensor *t;

	if (!io)
		return 0;
	t = &l->model->io[io - 1];
	if (array_grow((void **)&t->fixups, t->nr_fixups, &t->max_fixups, sizeof(*t->fixups)))
		return error_no_memory(l->error);
	t->fixups[t->nr_fixups++] = (struct fixup){ ring, index, offset, rx };
	return 0;
}

/* Offset of semaphore increment registers; v1 has its blocks closer together (ISA.md 2). */
static uint64_t semaphore_register(const struct loader *l, uint32_t nc, uint32_t index)
{
	uint64_t off = l->g->arch == 1 ? 0x2701200u + 4u * index : NEURON_ISA_SEM_INC_OFF(index);

	return l->g->tpb_base[nc] + off;
}

/* @at: next slot of each side, by enum neuron_ring_side. */
static void add_copy(struct ring *ring, uint32_t *at, uint64_t to, uint64_t from, uint32_t bytes)
{
	neuron_descriptor_copy(&ring->tx_desc[at[NEURON_RING_TX]++],
			       &ring->rx_desc[at[NEURON_RING_RX]++], to, from, bytes, false);
}

/* What later descriptors write comes after what the last one and those before wrote. */
static void add_barrier(const struct loader *l, struct ring *ring, const uint32_t *at)
{
	struct neuron_descriptor *tx = &ring->tx_desc[at[NEURON_RING_TX] - 1];

	tx->meta |= htole32(META_WRITE_BARRIER);
	if (l->g->arch == 1)
		tx->control |= htole32(DESC_BARRIER);
}

static void write_word(struct loader *l, struct ring *ring, uint32_t *at, uint64_t to,
		       uint32_t value)
{
	add_copy(ring, at, to, l->ones.address + 4ull * (value - 1), 4);
	add_barrier(l, ring, at);
}

static int fill_copy(struct loader *l, const struct trigger *t, const struct neuron_neff_desc *d,
		     uint32_t *at)
{
	struct span dst = side_span(l, &d->to), src = side_span(l, &d->from[0]);
	struct piece_iter it;
	struct piece p;
	int ret = 0;

	piece_start(&it, &dst, &src);
	while (!ret && piece_next(&it, &p)) {
		ret = add_fixup(l, &d->to, t->ring, at[NEURON_RING_RX], p.dst, true) ?:
		      add_fixup(l, &d->from[0], t->ring, at[NEURON_RING_TX], p.src, false);
		if (!ret)
			add_copy(&l->model->rings[t->ring], at, p.dst, p.src, p.bytes);
	}
	return ret;
}

static int fill_compute(struct loader *l, const struct trigger *t,
			const struct neuron_neff_desc *d, uint32_t *at)
{
	struct ring *ring = &l->model->rings[t->ring];
	struct transfer_packet p;
	struct transfer transfer;
	int ret = 0;

	side_spans(l, d, &transfer);
	while (!ret && transfer_next(&transfer, &p)) {
		for (uint32_t i = 0; i < p.nr_tx && !ret; i++) {
			ret = add_fixup(l, &d->from[p.tx[i].source], t->ring, at[NEURON_RING_TX],
					p.tx[i].address, false);
			transfer_descriptor(&ring->tx_desc[at[NEURON_RING_TX]++], &p.tx[i], !i,
					    i == p.nr_tx - 1);
		}
		for (uint32_t i = 0; i < p.nr_rx && !ret; i++) {
			ret = add_fixup(l, &d->to, t->ring, at[NEURON_RING_RX], p.rx[i].address,
					true);
			transfer_descriptor(&ring->rx_desc[at[NEURON_RING_RX]++], &p.rx[i], false,
					    false);
		}
	}
	return ret;
}

static int fill_entry(struct loader *l, struct trigger *t, uint32_t *at)
{
	struct ring *ring = &l->model->rings[t->ring];
	const struct neuron_neff_dma *dma = t->dma;
	const struct neuron_neff_desc *last = NULL;
	uint32_t first = at[NEURON_RING_TX];
	int ret = 0;

	for (size_t i = 0; i < dma->nr_desc && !ret; i++) {
		last = &dma->desc[i];
		ret = last->op == NEURON_NEFF_OP_COPY ? fill_copy(l, t, last, at) :
							fill_compute(l, t, last, at);
	}
	if (ret)
		return ret;
	/* A packet that computes has its place in any case. */
	if (at[NEURON_RING_TX] > first && last->op == NEURON_NEFF_OP_COPY)
		add_barrier(l, ring, at);
	if (dma->event >= 0)
		write_word(l, ring, at,
			   l->g->tpb_base[l->nc] + NEURON_ISA_EVENT_OFF((uint32_t)dma->event),
			   1);
	if (dma->semaphore >= 0)
		write_word(l, ring, at, semaphore_register(l, l->nc, (uint32_t)dma->semaphore),
			   dma->queue->num_queues);
	if (t->own_semaphore)
		write_word(l, ring, at, semaphore_register(l, l->nc, t->semaphore), 1);
	/* The other core of the logical one. */
	for (size_t i = 0; l->programs.other && i < dma->nr_remote_semaphores; i++)
		write_word(l, ring, at,
			   semaphore_register(l, l->nc ^ 1, dma->remote_semaphores[i]),
			   dma->queue->num_queues);
	return 0;
}

static int ring_buffers(struct loader *l, struct ring *ring)
{
	ring->tx_desc = calloc(ring->count, sizeof(*ring->tx_desc));
	ring->rx_desc = calloc(ring->count, sizeof(*ring->rx_desc));
	return ring->count && (!ring->tx_desc || !ring->rx_desc) ? error_no_memory(l->error) : 0;
}

static int upload_ring(struct loader *l, struct ring *ring)
{
	struct neuron_device *device = l->scratchpad->device;
	int ret = neuron_queue_write(device, ring->tx, NEURON_RING_TX, 0, ring->tx_desc,
				     ring->count) ?:
		  neuron_queue_write(device, ring->rx, NEURON_RING_RX, 0, ring->rx_desc,
				     ring->count);

	free(ring->tx_desc);
	free(ring->rx_desc);
	ring->tx_desc = NULL;
	ring->rx_desc = NULL;
	return ret ? error_device(l->error, "writing descriptors", ret) : 0;
}

int load_fill_rings(struct loader *l)
{
	struct neuron_model *m = l->model;
	/* next slot of each side */
	uint32_t (*at)[2] = calloc(m->nr_rings + 1, sizeof(*at));
	int ret = 0;

	m->labels = labels_new(m->name, &l->programs, m->nr_rings);
	if (!at || !m->labels)
		ret = error_no_memory(l->error);
	for (size_t i = 0; i < m->nr_rings && !ret; i++)
		m->labels->rings[i].slot = m->rings[i].slot;
	for (size_t i = m->nr_fetch; i < m->nr_rings && !ret; i++)
		ret = ring_buffers(l, &m->rings[i]);
	for (size_t i = 0; i < l->programs.nr_triggers && !ret; i++) {
		struct trigger *t = &l->programs.triggers[i];

		/* A generated program is SP's, whatever engine the transfer is listed for. */
		ret = labels_add(m->labels, t,
				 l->programs.generated ? NEURON_ISA_ENGINE_SP : t->engine,
				 at[t->ring][NEURON_RING_TX]);
		ret = ret ? error_no_memory(l->error) : fill_entry(l, t, at[t->ring]);
	}
	if (!ret)
		labels_sort(m->labels);
	for (size_t i = m->nr_fetch; i < m->nr_rings && !ret; i++) {
		/* What depends on tensors is written when they are known. */
		if (m->rings[i].io)
			m->rings[i].dirty_end = m->rings[i].count;
		else
			ret = upload_ring(l, &m->rings[i]);
	}
	free(at);
	return ret;
}

int load_fill_fetch(struct loader *l, struct ring *ring)
{
	uint64_t fifo = l->g->tpb_base[l->nc] + NEURON_ISA_FIFO_OFF(ring->slot);
	uint64_t code = l->code[ring->slot].address;
	size_t size = l->programs.code_size[ring->slot];
	int ret = ring_buffers(l, ring);

	for (uint32_t i = 0; i < ring->count && !ret; i++) {
		size_t off = (size_t)i * FETCH_BYTES;
		uint32_t bytes = size - off < FETCH_BYTES ? (uint32_t)(size - off) : FETCH_BYTES;

		neuron_descriptor_copy(&ring->tx_desc[i], &ring->rx_desc[i], fifo, code + off,
				       bytes, false);
	}
	return ret ? ret : upload_ring(l, ring);
}

int load_plan_setup(struct loader *l)
{
	struct neuron_model *m = l->model;

	m->setup = calloc(m->nr_rings + 1, sizeof(*m->setup));
	if (!m->setup)
		return error_no_memory(l->error);
	for (size_t i = 0; i < m->nr_rings; i++) {
		const struct ring *ring = &m->rings[i];

		m->setup[i] = (struct neuron_queue_setup){
			.engine = l->nc * l->g->engines_per_core +
				  slot_engine(l->g, ring->slot),
			.queue = slot_queue(l->g, ring->slot),
			.tx = ring->tx,
			.rx = ring->rx,
			.tx_slots = ring->slots,
			.rx_slots = ring->slots,
		};
	}
	return 0;
}
