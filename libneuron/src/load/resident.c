// SPDX-License-Identifier: LGPL-2.1-or-later
/* Constants that stay in the state buffer between runs (docs/loading.md). */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

static bool is_resident(const struct loader *l, const struct trigger *t)
{
	return t->dma->queue->resident && !l->programs.generated && !l->programs.vendor;
}

static bool brings_constant(const struct neuron_neff_desc *d)
{
	return d->op == NEURON_NEFF_OP_COPY && d->to.var->type == NEURON_NEFF_VAR_STATE_BUFFER &&
	       d->from[0].var->type == NEURON_NEFF_VAR_FILE;
}

/* Each of them is left out of later runs, and what it says at its end an instruction says. */
int load_check_resident(struct loader *l)
{
	for (size_t i = 0; i < l->programs.nr_triggers; i++) {
		const struct trigger *t = &l->programs.triggers[i];
		bool good = !t->dma->nr_remote_semaphores &&
			    (t->dma->semaphore < 0 || t->dma->event < 0);

		for (size_t k = 0; k < t->dma->nr_desc; k++)
			good = good && brings_constant(&t->dma->desc[k]);
		if (is_resident(l, t) && !good)
			return error_note(l->error, -EINVAL,
					  "%s/%s: DMA entry %u of a resident queue does more than to bring constants",
					  l->sg->dir, l->sg->engines[t->engine].json_name, t->dma->id);
	}
	return 0;
}

/* Instead of a trigger, when what it brings is there. */
static struct neuron_isa_inst say_it_is_there(const struct neuron_neff_dma *dma)
{
	struct neuron_isa_inst inst = { .opcode = NEURON_ISA_OP_NOP, .magic = NEURON_ISA_MAGIC };

	if (dma->semaphore >= 0) {
		inst.opcode = NEURON_ISA_OP_SEM_POST;
		inst.op = NEURON_ISA_POST_INC;
		inst.u.sem.index = htole32((uint32_t)dma->semaphore);
		inst.u.sem.value = htole32(dma->queue->num_queues);
	} else if (dma->event >= 0) {
		inst.opcode = NEURON_ISA_OP_EVENT_SET;
		inst.u.sem.index = htole32((uint32_t)dma->event);
		inst.u.sem.value = htole32(1);
	}
	return inst;
}

/* Of one engine, whose program has resident transfers from instruction @first to @last. */
static int add_part(struct loader *l, uint32_t engine, size_t first, size_t last)
{
	const struct neuron_isa_inst *code = l->programs.code[engine];
	const struct place *place = &l->code[engine];
	struct resident *r = &l->model->resident[l->model->nr_resident++];

	r->mem = l->allocs[place->alloc - 1].mem;
	r->offset = place->offset + first * sizeof(*code);
	r->bytes = (last - first + 1) * sizeof(*code);
	r->brings = malloc(r->bytes);
	r->has = malloc(r->bytes);
	if (!r->brings || !r->has)
		return error_no_memory(l->error);
	memcpy(r->brings, code + first, r->bytes);
	memcpy(r->has, code + first, r->bytes);
	for (size_t i = 0; i < l->programs.nr_triggers; i++) {
		const struct trigger *t = &l->programs.triggers[i];

		if (t->engine == engine && is_resident(l, t))
			r->has[t->inst - first] = say_it_is_there(t->dma);
	}
	return 0;
}

int load_resident(struct loader *l)
{
	static _Atomic uint64_t last_serial;
	struct neuron_model *m = l->model;
	size_t first[NR_ENGINES], last[NR_ENGINES];
	bool any[NR_ENGINES] = { false };
	int ret = 0;

	/* Small cores have no semaphore for it, and get their constants each time. */
	if (l->g->nr_semaphores <= RESIDENT_SEMAPHORE)
		return 0;
	for (size_t i = 0; i < l->programs.nr_triggers; i++) {
		const struct trigger *t = &l->programs.triggers[i];

		if (!is_resident(l, t))
			continue;
		/* They are in the order of the program. */
		if (!any[t->engine])
			first[t->engine] = t->inst;
		last[t->engine] = t->inst;
		any[t->engine] = true;
	}
	m->resident = calloc(NR_ENGINES, sizeof(*m->resident));
	if (!m->resident)
		return error_no_memory(l->error);
	for (uint32_t e = 0; e < NR_ENGINES && !ret; e++)
		if (any[e])
			ret = add_part(l, e, first[e], last[e]);
	if (!ret && m->nr_resident)
		m->serial = ++last_serial;
	return ret;
}
