// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs of a NEFF: which transfers they trigger, whether they leave a core clean,
 * and the one that is made for a NEFF without any (docs/loading.md).
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/util.h"
#include "../device/slots.h"
#include "program.h"

#define WHERE(sg, e) (sg)->dir, (e)->code_name ? (e)->code_name : (e)->json_name
#define bad_inst(p, e, i, text, ...) \
	error_note((p)->error, -EINVAL, "%s/%s: instruction %zu: " text, WHERE((p)->sg, e), \
		   (size_t)(i), ##__VA_ARGS__)

static int add_trigger(struct programs *p, uint32_t engine, size_t inst,
		       const struct neuron_neff_dma *dma)
{
	if (array_grow((void **)&p->triggers, p->nr_triggers, &p->max_triggers,
		      sizeof(*p->triggers)))
		return error_no_memory(p->error);
	for (size_t i = 0; p->other && i < dma->nr_remote_semaphores; i++)
		p->other->semaphores[dma->remote_semaphores[i] % NEURON_NEFF_MAX_SEMAPHORES] +=
			dma->queue->num_queues;
	p->triggers[p->nr_triggers++] = (struct trigger){
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
static void balance(struct programs *p, uint32_t engine, const struct neuron_isa_inst *inst)
{
	uint32_t index = le32toh(inst->u.sem.index), value = le32toh(inst->u.sem.value);
	bool consume = inst->flags & NEURON_ISA_F_CONSUME;

	switch (inst->opcode) {
	case NEURON_ISA_OP_SEM_WAIT:
		if (consume)
			p->semaphores[index] -= value;
		/* The run can end while another engine still waits here. */
		if (engine != NEURON_ISA_ENGINE_SP && (!consume || inst->op != NEURON_ISA_WAIT_GE))
			p->dirty = true;
		break;
	case NEURON_ISA_OP_SEM_POST:
		if (inst->op == NEURON_ISA_POST_INC)
			p->semaphores[index] += value;
		else if (inst->op == NEURON_ISA_POST_DEC)
			p->semaphores[index] -= value;
		else if (value)
			p->dirty = true;
		break;
	case NEURON_ISA_OP_EVENT_WAIT:
		if (index < NEURON_NEFF_MAX_EVENTS && consume)
			p->events[index]--;
		if (engine != NEURON_ISA_ENGINE_SP && !consume)
			p->dirty = true;
		break;
	case NEURON_ISA_OP_EVENT_SET:
		if (index < NEURON_NEFF_MAX_EVENTS && value)
			p->events[index]++;
		break;
	case NEURON_ISA_OP_MATMUL:
		p->macs += (uint64_t)le32toh(inst->u.matmul.m) *
				  le32toh(inst->u.matmul.n) * le32toh(inst->u.matmul.k);
		break;
	default:
		break;
	}
}

/* SP ends a run, once, when nothing of its program is left. */
static int check_notify(struct programs *p, size_t i, size_t nr)
{
	const struct neuron_neff_engine *e = &p->sg->engines[NEURON_ISA_ENGINE_SP];
	const struct neuron_isa_inst *insts = p->code[NEURON_ISA_ENGINE_SP];
	bool notify = insts[i].opcode == NEURON_ISA_OP_NOTIFY;
	bool done = notify && le32toh(insts[i].u.notify.id) == NOTIFY_DONE;
	bool last = i + 1 == nr;

	if (done && !last)
		return bad_inst(p, e, i, "NOTIFY %u before the last instruction", NOTIFY_DONE);
	if (last && !done)
		return error_note(p->error, -EINVAL,
				  "%s/%s: the last instruction is not NOTIFY %u, so that nothing ends a run",
				  WHERE(p->sg, e), NOTIFY_DONE);
	p->nr_notify += notify;
	if (p->nr_notify >= NQ_ENTRIES)
		return error_note(p->error, -E2BIG, "%s/%s: more than %u NOTIFY", WHERE(p->sg, e),
				  NQ_ENTRIES - 1);
	return 0;
}

/* Find what a NISA program triggers; docs/loading.md, "Instructions and DMA". */
static int scan_program(struct programs *p, uint32_t engine)
{
	const struct neuron_neff_engine *e = &p->sg->engines[engine];
	const struct neuron_isa_inst *insts = p->code[engine];
	const struct neuron_neff_dma *last = NULL;
	size_t nr = p->code_size[engine] / sizeof(*insts);

	for (size_t i = 0; i < nr; i++) {
		const struct neuron_isa_inst *inst = &insts[i];
		const struct neuron_neff_dma *dma;
		uint32_t id;
		int ret;

		ret = engine == NEURON_ISA_ENGINE_SP ? check_notify(p, i, nr) : 0;
		if (ret)
			return ret;
		if ((inst->opcode == NEURON_ISA_OP_SEM_WAIT ||
		     inst->opcode == NEURON_ISA_OP_SEM_POST) &&
		    le32toh(inst->u.sem.index) >= LOADER_SEMAPHORES)
			return bad_inst(p, e, i, "semaphore %u is reserved",
					le32toh(inst->u.sem.index));
		balance(p, engine, inst);
		if (inst->opcode != NEURON_ISA_OP_DMA_TRIGGER)
			continue;
		id = le32toh(inst->u.dma.tx_count);
		if (inst->u.dma.engine != 0xffff || inst->u.dma.queue != 0xffff ||
		    inst->u.dma.rx_count)
			return bad_inst(p, e, i, "DMA trigger is not symbolic");
		dma = neuron_neff_find_dma(e, id);
		if (!dma)
			return bad_inst(p, e, i, "no DMA entry has id %u", id);
		if (last && dma <= last)
			return bad_inst(p, e, i, "DMA entry %u is triggered %s", id,
					dma == last ? "twice" : "twice or out of order");
		last = dma;
		if (dma->semaphore >= 0)
			p->semaphores[dma->semaphore % NEURON_NEFF_MAX_SEMAPHORES] +=
				dma->queue->num_queues;
		if (dma->event >= 0)
			p->events[dma->event % NEURON_NEFF_MAX_EVENTS]++;
		ret = add_trigger(p, engine, i, dma);
		if (ret)
			return ret;
	}
	return 0;
}

int programs_scan(struct programs *p, uint32_t isa_version)
{
	bool nisa = false;
	int ret = 0;

	for (uint32_t i = 0; i < NR_ENGINES; i++) {
		const struct neuron_neff_engine *e = &p->sg->engines[i];

		if (e->code_kind == NEURON_NEFF_CODE_VENDOR) {
			p->vendor = true;
			obstacle_add(p->obstacles,
				     "%s/%s: instructions of a real device, which this device does not execute",
				     WHERE(p->sg, e));
		}
		nisa |= e->code_kind == NEURON_NEFF_CODE_NISA;
	}
	if (nisa && !isa_version)
		obstacle_add(p->obstacles,
			     "%s: instructions of the software device, which this device does not execute",
			     p->sg->dir);
	p->generated = !nisa && !p->vendor;
	if (nisa && !p->vendor &&
	    p->sg->engines[NEURON_NEFF_SP].code_kind != NEURON_NEFF_CODE_NISA)
		return error_note(p->error, -EINVAL,
				  "%s: SP has no program, so that nothing ends a run", p->sg->dir);

	for (uint32_t i = 0; i < NR_ENGINES && !ret; i++) {
		const struct neuron_neff_engine *e = &p->sg->engines[i];

		if (e->code_size && e->code_kind != NEURON_NEFF_CODE_NONE) {
			p->code[i] = malloc(e->code_size);
			if (!p->code[i])
				return error_no_memory(p->error);
			memcpy(p->code[i], e->code, e->code_size);
			p->code_size[i] = e->code_size;
		}
		if (!p->vendor && !p->generated) {
			ret = scan_program(p, i);
			continue;
		}
		for (size_t k = 0; k < e->nr_dma && !ret; k++)
			ret = add_trigger(p, i, 0, &e->dma[k]);
	}
	return ret;
}

void programs_check_balance(struct programs *p)
{
	for (size_t i = 0; i < NEURON_NEFF_MAX_SEMAPHORES; i++)
		p->dirty |= p->semaphores[i] != 0;
	for (size_t i = 0; i < NEURON_NEFF_MAX_EVENTS; i++)
		p->dirty |= p->events[i] != 0;
}

static struct neuron_isa_inst instruction(enum neuron_isa_opcode opcode)
{
	return (struct neuron_isa_inst){
		.opcode = (__u8)opcode,
		.magic = NEURON_ISA_MAGIC,
	};
}

/* A NEFF without instructions: one transfer after the other, then notify. */
int programs_generate(struct programs *p)
{
	size_t max = 2 + p->nr_triggers * 3;
	struct neuron_isa_inst *inst;
	size_t n = 0;

	inst = calloc(max, sizeof(*inst));
	if (!inst)
		return error_no_memory(p->error);
	p->code[NEURON_ISA_ENGINE_SP] = inst;
	inst[n] = instruction(NEURON_ISA_OP_PROLOGUE);
	inst[n].u.prologue.signature = htole32(NEURON_ISA_SIGNATURE);
	inst[n].u.prologue.version = htole16(NEURON_ISA_VERSION);
	inst[n++].u.prologue.engine = htole16(NEURON_ISA_ENGINE_SP);
	for (size_t i = 0; i < p->nr_triggers; i++) {
		const struct trigger *t = &p->triggers[i];

		p->triggers[i].inst = n;
		inst[n++] = instruction(NEURON_ISA_OP_DMA_TRIGGER);
		inst[n] = instruction(NEURON_ISA_OP_SEM_WAIT);
		inst[n].op = NEURON_ISA_WAIT_GE;
		inst[n].flags = NEURON_ISA_F_CONSUME;
		inst[n].u.sem.index = htole32(t->semaphore);
		inst[n++].u.sem.value = htole32(t->own_semaphore ? 1 : t->dma->queue->num_queues);
		if (t->dma->event >= 0) {
			inst[n] = instruction(NEURON_ISA_OP_EVENT_SET);
			inst[n++].u.sem.index = htole32((uint32_t)t->dma->event);
		}
	}
	inst[n] = instruction(NEURON_ISA_OP_NOTIFY);
	inst[n++].u.notify.id = htole32(NOTIFY_DONE);
	p->code_size[NEURON_ISA_ENGINE_SP] = n * sizeof(*inst);
	return 0;
}

void programs_patch(struct programs *p, const struct neuron_geometry *g)
{
	for (size_t i = 0; i < p->nr_triggers; i++) {
		const struct trigger *t = &p->triggers[i];
		/* A generated program is SP's, whatever engine the transfer is listed for. */
		uint32_t engine = p->generated ? NEURON_ISA_ENGINE_SP : t->engine;
		struct neuron_isa_inst *inst = (struct neuron_isa_inst *)p->code[engine] + t->inst;

		inst->u.dma.engine = htole16((uint16_t)slot_engine(g, t->slot));
		inst->u.dma.queue = htole16((uint16_t)slot_queue(g, t->slot));
		inst->u.dma.tx_count = htole32(t->count[NEURON_RING_TX]);
		inst->u.dma.rx_count = htole32(t->count[NEURON_RING_RX]);
	}
}

void programs_free(struct programs *p)
{
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		free(p->code[i]);
	free(p->triggers);
}
