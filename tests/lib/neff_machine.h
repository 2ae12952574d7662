/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A core reduced to what a packed program needs, following
 * libneuron/docs/loading.md: engines, semaphores, DMA entries of a queue that copy one
 * after the other.  Which engine or queue goes on is drawn from a seed, so that an order which
 * nothing in the program makes is not kept.  Compute instructions are executed by the very code
 * of the software device (kmod/emu/exec.c).  Include after cmocka.h.
 */
#ifndef NEFF_MACHINE_H
#define NEFF_MACHINE_H

#include <stdlib.h>
#include <string.h>

#include <neuron/neff.h>

#include "emu/exec.h"
#include "../kunit/exec_run.h"

#define SBUF_SIZE	(1u << 20)
#define MACHINE_QUEUES	8
#define MACHINE_ENTRIES	256

/* Triggered, and not done. */
struct machine_queue {
	const struct neuron_neff_dma *entry[MACHINE_ENTRIES];
	size_t first, end;
};

struct machine {
	const struct neuron_neff_subgraph *sg;
	struct emu_sbuf sbuf;
	/* Contents of inputs and outputs, by var_id. */
	uint8_t *io[16];
	uint32_t sem[NEURON_NEFF_MAX_SEMAPHORES];
	size_t pc[NEURON_NEFF_NR_ENGINES];
	struct machine_queue queue[MACHINE_QUEUES];
	unsigned int triggered, pieces;
	bool notified;
	uint32_t seed;
};

static uint8_t *machine_address(struct machine *m, const struct neuron_neff_side *s)
{
	const struct neuron_neff_var *v = s->var;

	switch (v->type) {
	case NEURON_NEFF_VAR_STATE_BUFFER:
		assert_true(v->backing_off + v->size <= m->sbuf.size);
		return (uint8_t *)m->sbuf.base + v->backing_off + s->off;
	case NEURON_NEFF_VAR_INPUT:
	case NEURON_NEFF_VAR_OUTPUT:
		assert_true(v->var_id < 16);
		return m->io[v->var_id] + s->off;
	case NEURON_NEFF_VAR_FILE:
		assert_int_equal(v->data_size, v->size);
		return (uint8_t *)(uintptr_t)v->data + s->off;
	default:
		fail_msg("unexpected variable %s", v->name);
		return NULL;
	}
}

static void machine_trigger(struct machine *m, const struct neuron_neff_engine *eng, uint32_t id)
{
	const struct neuron_neff_dma *dma = neuron_neff_find_dma(eng, id);
	struct machine_queue *q;

	assert_non_null(dma);
	assert_in_range(dma->queue - m->sg->queues, 0, MACHINE_QUEUES - 1);
	q = &m->queue[dma->queue - m->sg->queues];
	assert_true(q->end < MACHINE_ENTRIES);
	q->entry[q->end++] = dma;
	m->triggered++;
}

/* The next entry of a queue; false if there is none. */
static bool machine_transfer(struct machine *m, struct machine_queue *q)
{
	const struct neuron_neff_dma *dma;

	if (q->first == q->end)
		return false;
	dma = q->entry[q->first++];
	for (size_t i = 0; i < dma->nr_desc; i++) {
		const struct neuron_neff_desc *d = &dma->desc[i];

		assert_int_equal(d->op, NEURON_NEFF_OP_COPY);
		assert_int_equal(d->nr_from, 1);
		assert_int_equal(d->to.ndim, 1);
		assert_int_equal(d->from[0].ndim, 1);
		memcpy(machine_address(m, &d->to), machine_address(m, &d->from[0]), d->to.bytes);
	}
	assert_true(dma->semaphore >= 0);
	m->sem[dma->semaphore]++;
	m->pieces += !strcmp(dma->queue->name, "qSPStream0");
	return true;
}

/* One instruction of an engine; false if it waits or is at its end. */
static bool machine_advance(struct machine *m, unsigned int e)
{
	static const struct emu_isa_limits limits = {
		.sbuf_size = SBUF_SIZE, .nr_semaphores = 256, .nr_events = 256,
		.engines_per_core = 16, .nr_queues = 16,
	};
	const struct neuron_neff_engine *eng = &m->sg->engines[e];
	struct neuron_isa_inst inst;
	uint32_t index, value;

	if (m->pc[e] * sizeof(inst) >= eng->code_size)
		return false;
	memcpy(&inst, (const char *)eng->code + m->pc[e] * sizeof(inst), sizeof(inst));
	index = le32toh(inst.u.sem.index);
	value = le32toh(inst.u.sem.value);

	if (inst.opcode == NEURON_ISA_OP_DMA_TRIGGER) {
		uint32_t id = le32toh(inst.u.dma.tx_count);

		/* As the loader resolves it. */
		inst.u.dma.engine = inst.u.dma.queue = 0;
		inst.u.dma.tx_count = inst.u.dma.rx_count = htole32(1);
		assert_int_equal(emu_isa_check(&inst, e, &limits), 0);
		machine_trigger(m, eng, id);
		m->pc[e]++;
		return true;
	}
	assert_int_equal(emu_isa_check(&inst, e, &limits), 0);
	switch (inst.opcode) {
	case NEURON_ISA_OP_PROLOGUE:
		assert_int_equal(m->pc[e], 0);
		break;
	case NEURON_ISA_OP_SEM_WAIT:
		assert_int_equal(inst.op, NEURON_ISA_WAIT_GE);
		assert_int_equal(inst.flags, NEURON_ISA_F_CONSUME);
		if (m->sem[index] < value)
			return false;
		m->sem[index] -= value;
		break;
	case NEURON_ISA_OP_SEM_POST:
		assert_int_equal(inst.op, NEURON_ISA_POST_INC);
		m->sem[index] += value;
		break;
	case NEURON_ISA_OP_NOTIFY:
		assert_int_equal(e, NEURON_ISA_ENGINE_SP);
		assert_int_equal(le32toh(inst.u.notify.id), 1);
		m->notified = true;
		break;
	default:
		assert_true(emu_isa_is_compute(&inst));
		assert_int_equal(exec_run(&inst, e, &m->sbuf), 0);
	}
	m->pc[e]++;
	return true;
}

static void machine_run(struct machine *m)
{
	const unsigned int nr = NEURON_NEFF_NR_ENGINES + MACHINE_QUEUES;
	bool moved;

	memset(m->sem, 0, sizeof(m->sem));
	memset(m->pc, 0, sizeof(m->pc));
	memset(m->queue, 0, sizeof(m->queue));
	m->notified = false;
	m->triggered = 0;
	m->pieces = 0;
	do {
		unsigned int first = (m->seed = m->seed * 1103515245 + 12345) >> 16;

		moved = false;
		for (unsigned int i = 0; i < nr && !moved; i++) {
			unsigned int who = (first + i) % nr;

			moved = who < NEURON_NEFF_NR_ENGINES ? machine_advance(m, who) :
				machine_transfer(m, &m->queue[who - NEURON_NEFF_NR_ENGINES]);
		}
	} while (moved);

	/* Nobody is stuck, nothing is left over for the next run. */
	assert_true(m->notified);
	for (unsigned int e = 0; e < NEURON_NEFF_NR_ENGINES; e++)
		assert_int_equal(m->pc[e] * NEURON_ISA_INST_SIZE,
				 m->sg->engines[e].code_size);
	for (unsigned int i = 0; i < NEURON_NEFF_MAX_SEMAPHORES; i++)
		assert_int_equal(m->sem[i], 0);
	assert_int_equal(m->triggered, m->sg->engines[NEURON_NEFF_SP].nr_dma);
}

/* Buffers for the inputs and outputs; the state buffer starts as garbage. */
static void machine_init(struct machine *m, const struct neuron_neff *neff)
{
	memset(m, 0, sizeof(*m));
	m->sg = &neff->subgraphs[0];
	m->sbuf.size = SBUF_SIZE;
	m->sbuf.base = malloc(SBUF_SIZE);
	assert_non_null(m->sbuf.base);
	memset(m->sbuf.base, 0xa5, SBUF_SIZE);
	for (size_t i = 0; i < m->sg->nr_vars; i++) {
		const struct neuron_neff_var *v = &m->sg->vars[i];

		if (v->type != NEURON_NEFF_VAR_INPUT && v->type != NEURON_NEFF_VAR_OUTPUT)
			continue;
		assert_true(v->var_id < 16);
		m->io[v->var_id] = calloc(1, v->size);
		assert_non_null(m->io[v->var_id]);
	}
}

static void *machine_io(struct machine *m, const char *name)
{
	const struct neuron_neff_var *v = neuron_neff_find_var(m->sg, name);

	assert_non_null(v);
	assert_non_null(m->io[v->var_id]);
	return m->io[v->var_id];
}

static void machine_free(struct machine *m)
{
	free(m->sbuf.base);
	for (size_t i = 0; i < 16; i++)
		free(m->io[i]);
}

#endif /* NEFF_MACHINE_H */
