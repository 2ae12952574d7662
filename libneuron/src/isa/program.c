// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs of a NEFF: which transfers they trigger, whether they leave a core clean,
 * and the one that is made for a NEFF without any (docs/loading.md).
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "../load/loader.h"

static int add_trigger(struct loader *l, uint32_t engine, size_t inst,
		       const struct neuron_neff_dma *dma)
{
	if (load_grow((void **)&l->triggers, l->nr_triggers, &l->max_triggers,
		      sizeof(*l->triggers)))
		return load_no_memory(l);
	for (size_t i = 0; l->other && i < dma->nr_remote_semaphores; i++)
		l->other->semaphores[dma->remote_semaphores[i] % NEURON_NEFF_MAX_SEMAPHORES] +=
			dma->queue->num_queues;
	l->triggers[l->nr_triggers++] = (struct trigger){
		.engine = engine,
		.inst = inst,
		.dma = dma,
	};
	return 0;
}

/*
 * Programs have no branches: every instruction is executed once.  What a run puts
 * into semaphores and events and takes out again can be added up, and a model for
 * which it does not come out even gets a reset behind each run.
 */
static void balance(struct loader *l, uint32_t engine, const struct neuron_isa_inst *inst)
{
	uint32_t index = le32toh(inst->u.sem.index), value = le32toh(inst->u.sem.value);
	bool consume = inst->flags & NEURON_ISA_F_CONSUME;

	switch (inst->opcode) {
	case NEURON_ISA_OP_SEM_WAIT:
		if (consume)
			l->semaphores[index] -= value;
		/* The run can end while another engine still waits here. */
		if (engine != NEURON_ISA_ENGINE_SP && (!consume || inst->op != NEURON_ISA_WAIT_GE))
			l->model->dirty = true;
		break;
	case NEURON_ISA_OP_SEM_POST:
		if (inst->op == NEURON_ISA_POST_INC)
			l->semaphores[index] += value;
		else if (inst->op == NEURON_ISA_POST_DEC)
			l->semaphores[index] -= value;
		else if (value)
			l->model->dirty = true;
		break;
	case NEURON_ISA_OP_EVENT_WAIT:
		if (index < NEURON_NEFF_MAX_EVENTS && consume)
			l->events[index]--;
		if (engine != NEURON_ISA_ENGINE_SP && !consume)
			l->model->dirty = true;
		break;
	case NEURON_ISA_OP_EVENT_SET:
		if (index < NEURON_NEFF_MAX_EVENTS && value)
			l->events[index]++;
		break;
	case NEURON_ISA_OP_MATMUL:
		l->model->macs += (uint64_t)le32toh(inst->u.matmul.m) *
				  le32toh(inst->u.matmul.n) * le32toh(inst->u.matmul.k);
		break;
	default:
		break;
	}
}

/* SP ends a run, once, when nothing of its program is left. */
static int check_notify(struct loader *l, size_t i, size_t nr)
{
	const struct neuron_neff_engine *e = &l->sg->engines[NEURON_ISA_ENGINE_SP];
	const struct neuron_isa_inst *insts = l->code[NEURON_ISA_ENGINE_SP];
	bool notify = insts[i].opcode == NEURON_ISA_OP_NOTIFY;
	bool done = notify && le32toh(insts[i].u.notify.id) == NOTIFY_DONE;
	bool last = i + 1 == nr;

	if (done && !last)
		return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				 "%s/%s: instruction %zu: NOTIFY %u before the last instruction",
				 WHERE(l->sg, e), i, NOTIFY_DONE);
	if (last && !done)
		return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				 "%s/%s: the last instruction is not NOTIFY %u, so that nothing ends a run",
				 WHERE(l->sg, e), NOTIFY_DONE);
	l->nr_notify += notify;
	if (l->nr_notify >= NQ_ENTRIES)
		return load_fail(l, NEURON_ERROR_LIMIT, -E2BIG, "%s/%s: more than %u NOTIFY",
				 WHERE(l->sg, e), NQ_ENTRIES - 1);
	return 0;
}

/* Find what a NISA program triggers; docs/loading.md, "Instructions and DMA". */
static int scan_program(struct loader *l, uint32_t engine)
{
	const struct neuron_neff_engine *e = &l->sg->engines[engine];
	const struct neuron_isa_inst *insts = l->code[engine];
	const struct neuron_neff_dma *last = NULL;
	size_t nr = l->code_size[engine] / sizeof(*insts);

	for (size_t i = 0; i < nr; i++) {
		const struct neuron_isa_inst *inst = &insts[i];
		const struct neuron_neff_dma *dma;
		uint32_t id;
		int ret;

		ret = engine == NEURON_ISA_ENGINE_SP ? check_notify(l, i, nr) : 0;
		if (ret)
			return ret;
		if ((inst->opcode == NEURON_ISA_OP_SEM_WAIT ||
		     inst->opcode == NEURON_ISA_OP_SEM_POST) &&
		    le32toh(inst->u.sem.index) >= LOADER_SEMAPHORES)
			return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
					 "%s/%s: instruction %zu: semaphore %u is reserved",
					 WHERE(l->sg, e), i, le32toh(inst->u.sem.index));
		balance(l, engine, inst);
		if (inst->opcode != NEURON_ISA_OP_DMA_TRIGGER)
			continue;
		id = le32toh(inst->u.dma.tx_count);
		if (inst->u.dma.engine != 0xffff || inst->u.dma.queue != 0xffff ||
		    inst->u.dma.rx_count)
			return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
					 "%s/%s: instruction %zu: DMA trigger is not symbolic",
					 WHERE(l->sg, e), i);
		dma = neuron_neff_find_dma(e, id);
		if (!dma)
			return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
					 "%s/%s: instruction %zu: no DMA entry has id %u",
					 WHERE(l->sg, e), i, id);
		if (last && dma <= last)
			return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
					 "%s/%s: instruction %zu: DMA entry %u is triggered %s",
					 WHERE(l->sg, e), i, id,
					 dma == last ? "twice" : "twice or out of order");
		last = dma;
		if (dma->semaphore >= 0)
			l->semaphores[dma->semaphore % NEURON_NEFF_MAX_SEMAPHORES] +=
				dma->queue->num_queues;
		if (dma->event >= 0)
			l->events[dma->event % NEURON_NEFF_MAX_EVENTS]++;
		ret = add_trigger(l, engine, i, dma);
		if (ret)
			return ret;
	}
	return 0;
}

int load_scan_programs(struct loader *l)
{
	bool nisa = false;
	int ret = 0;

	for (uint32_t i = 0; i < NR_ENGINES; i++) {
		const struct neuron_neff_engine *e = &l->sg->engines[i];

		if (e->code_kind == NEURON_NEFF_CODE_VENDOR) {
			l->vendor = true;
			load_obstacle(l,
				      "%s/%s: instructions of a real device, which this device does not execute",
				      WHERE(l->sg, e));
		}
		nisa |= e->code_kind == NEURON_NEFF_CODE_NISA;
	}
	if (nisa && !l->g->isa_version)
		load_obstacle(l,
			      "%s: instructions of the software device, which this device does not execute",
			      l->sg->dir);
	l->generated = !nisa && !l->vendor;
	if (nisa && !l->vendor &&
	    l->sg->engines[NEURON_NEFF_SP].code_kind != NEURON_NEFF_CODE_NISA)
		return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				 "%s: SP has no program, so that nothing ends a run", l->sg->dir);

	for (uint32_t i = 0; i < NR_ENGINES && !ret; i++) {
		const struct neuron_neff_engine *e = &l->sg->engines[i];

		if (e->code_size && e->code_kind != NEURON_NEFF_CODE_NONE) {
			l->code[i] = malloc(e->code_size);
			if (!l->code[i])
				return load_no_memory(l);
			memcpy(l->code[i], e->code, e->code_size);
			l->code_size[i] = e->code_size;
		}
		if (!l->vendor && !l->generated) {
			ret = scan_program(l, i);
			continue;
		}
		for (size_t k = 0; k < e->nr_dma && !ret; k++)
			ret = add_trigger(l, i, 0, &e->dma[k]);
	}
	return ret;
}

void load_check_balance(struct loader *l)
{
	for (size_t i = 0; i < NEURON_NEFF_MAX_SEMAPHORES; i++)
		l->model->dirty |= l->semaphores[i] != 0;
	for (size_t i = 0; i < NEURON_NEFF_MAX_EVENTS; i++)
		l->model->dirty |= l->events[i] != 0;
}

static struct neuron_isa_inst instruction(enum neuron_isa_opcode opcode)
{
	return (struct neuron_isa_inst){
		.opcode = (__u8)opcode,
		.magic = NEURON_ISA_MAGIC,
	};
}

/* A NEFF without instructions: one transfer after the other, then notify. */
int load_generate_program(struct loader *l)
{
	size_t max = 2 + l->nr_triggers * 3;
	struct neuron_isa_inst *p;
	size_t n = 0;

	p = calloc(max, sizeof(*p));
	if (!p)
		return load_no_memory(l);
	l->code[NEURON_ISA_ENGINE_SP] = p;
	p[n] = instruction(NEURON_ISA_OP_PROLOGUE);
	p[n].u.prologue.signature = htole32(NEURON_ISA_SIGNATURE);
	p[n].u.prologue.version = htole16(NEURON_ISA_VERSION);
	p[n++].u.prologue.engine = htole16(NEURON_ISA_ENGINE_SP);
	for (size_t i = 0; i < l->nr_triggers; i++) {
		const struct trigger *t = &l->triggers[i];

		l->triggers[i].inst = n;
		p[n++] = instruction(NEURON_ISA_OP_DMA_TRIGGER);
		p[n] = instruction(NEURON_ISA_OP_SEM_WAIT);
		p[n].op = NEURON_ISA_WAIT_GE;
		p[n].flags = NEURON_ISA_F_CONSUME;
		p[n].u.sem.index = htole32(t->semaphore);
		p[n++].u.sem.value = htole32(t->own_semaphore ? 1 : t->dma->queue->num_queues);
		if (t->dma->event >= 0) {
			p[n] = instruction(NEURON_ISA_OP_EVENT_SET);
			p[n++].u.sem.index = htole32((uint32_t)t->dma->event);
		}
	}
	p[n] = instruction(NEURON_ISA_OP_NOTIFY);
	p[n++].u.notify.id = htole32(NOTIFY_DONE);
	l->code_size[NEURON_ISA_ENGINE_SP] = n * sizeof(*p);
	return 0;
}

void load_patch_programs(struct loader *l)
{
	for (size_t i = 0; i < l->nr_triggers; i++) {
		const struct trigger *t = &l->triggers[i];
		/* A generated program is SP's, whatever engine the transfer is listed for. */
		uint32_t engine = l->generated ? NEURON_ISA_ENGINE_SP : t->engine;
		struct neuron_isa_inst *inst = (struct neuron_isa_inst *)l->code[engine] + t->inst;
		const struct ring *ring = &l->model->rings[t->ring];

		inst->u.dma.engine = htole16((uint16_t)slot_engine(l->g, ring->slot));
		inst->u.dma.queue = htole16((uint16_t)slot_queue(l->g, ring->slot));
		inst->u.dma.tx_count = htole32(t->count[NEURON_RING_TX]);
		inst->u.dma.rx_count = htole32(t->count[NEURON_RING_RX]);
	}
}
