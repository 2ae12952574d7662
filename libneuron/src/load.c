// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loading: a parsed NEFF into device memory (docs/loading.md).
 *
 * Order: variables get addresses, programs are looked through for the transfers
 * they trigger, rings are built from those, the triggers get their queue and
 * counts, programs are written, rings that fetch them are built.
 */
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

/* Variables below this size share a chunk, each chunk about that long. */
#define ARENA_VAR (1ull << 20)
#define ARENA_BYTES (16ull << 20)
#define VAR_ALIGN 64u

/* Instructions fetched by one descriptor. */
#define FETCH_BYTES 4096u

/* Descriptors of a model: 1 GiB of rings a side. */
#define MAX_DESCRIPTORS (1ull << 26)

/* Semaphores from here up belong to the loader (docs/loading.md). */
#define LOADER_SEMAPHORES 250u

/* Scratch areas of a model; they are looked up one by one. */
#define MAX_AREAS 64u

#define WHERE(sg, e) (sg)->dir, (e)->code_name ? (e)->code_name : (e)->json_name

struct place {
	uint64_t address;
	struct neuron_mem *mem;		/* NULL: not in memory of the model */
	uint64_t offset;		/* in @mem */
};

struct arena_item {
	struct place *place;
	uint64_t offset;
	const void *data;
	size_t size;
};

struct arena {
	enum neuron_mem_category category;
	uint64_t *account;
	uint64_t used;
	uint64_t align;
	struct arena_item *items;
	size_t nr;
	size_t max;
};

/* A transfer that a program starts. */
struct trigger {
	uint32_t engine;
	size_t inst;			/* in the program; unused if generated */
	const struct neuron_neff_dma *dma;
	uint32_t ring;			/* index in loader.ring_of_queue */
	uint32_t count;			/* descriptors */
	uint32_t semaphore;		/* generated: to wait for */
	bool own_semaphore;
};

struct loader {
	struct neuron_core *core;
	const struct neuron_geometry *g;
	struct neuron_model *model;
	struct neuron_neff *neff;
	const struct neuron_neff_subgraph *sg;
	struct neuron_error *error;

	struct place *places;		/* by variable */
	struct place ones;		/* the numbers 1 to 16, to add to semaphores */
	uint32_t *io_of_var;		/* index in model->io + 1 */

	/* What all programs add less what they take away. */
	int64_t semaphores[NEURON_NEFF_MAX_SEMAPHORES];
	int64_t events[NEURON_NEFF_MAX_EVENTS];
	size_t nr_notify;		/* of SP */

	bool generated;			/* the SP program is ours */
	bool vendor;
	void *code[NR_ENGINES];
	size_t code_size[NR_ENGINES];
	struct trigger *triggers;
	size_t nr_triggers;
	size_t max_triggers;
	uint32_t *ring_of_queue;	/* index in model->rings, or 0 (a fetch ring) */
};

static int __attribute__((format(printf, 4, 5)))
fail(struct loader *l, enum neuron_error_kind kind, int ret, const char *fmt, ...)
{
	va_list ap;

	if (l->error->kind == NEURON_ERROR_NONE) {
		l->error->kind = kind;
		va_start(ap, fmt);
		vsnprintf(l->error->text, sizeof(l->error->text), fmt, ap);
		va_end(ap);
		neuron_neff_printable(l->error->text);
	}
	return ret;
}

static int no_memory(struct loader *l)
{
	return fail(l, NEURON_ERROR_MEMORY, -ENOMEM, "out of host memory");
}

static int device_error(struct loader *l, const char *what, int ret)
{
	if (ret == -ENOMEM)
		return fail(l, NEURON_ERROR_MEMORY, ret, "%s: out of memory", what);
	return fail(l, NEURON_ERROR_DEVICE, ret, "%s: %s", what, strerror(-ret));
}

static void __attribute__((format(printf, 2, 3)))
obstacle(struct loader *l, const char *fmt, ...)
{
	va_list ap;

	if (l->model->obstacle[0])
		return;
	va_start(ap, fmt);
	vsnprintf(l->model->obstacle, sizeof(l->model->obstacle), fmt, ap);
	va_end(ap);
	neuron_neff_printable(l->model->obstacle);
}

/* Room for one more element of an array that doubles. */
static int grow(void **array, size_t nr, size_t *max, size_t size)
{
	size_t more = *max ? *max * 2 : 16;
	void *p;

	if (nr < *max)
		return 0;
	p = reallocarray(*array, more, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*max = more;
	return 0;
}

static const char *memory_reason(const struct neuron_mem_failure *f, char *text, size_t size)
{
	snprintf(text, size, "HBM %u: %s, %llu bytes free, longest run %llu, aligned %llu", f->hbm,
		 neuron_mem_reason_name(f->reason), (unsigned long long)f->free,
		 (unsigned long long)f->largest_free, (unsigned long long)f->largest_aligned);
	return text;
}

static int alloc(struct loader *l, uint64_t bytes, uint64_t align,
		 enum neuron_mem_category category, uint64_t *account, struct neuron_mem **mem)
{
	struct neuron_model *m = l->model;
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.hbm = l->core->hbm,
		.nc = l->core->nc,
		.category = category,
		.align = align > NEURON_PAGE ? align : 0,
		.failure = &l->error->memory,
	};
	struct neuron_mem **grown;
	char text[160];
	int ret;

	grown = reallocarray(m->mems, m->nr_mems + 1, sizeof(*grown));
	if (!grown)
		return no_memory(l);
	m->mems = grown;
	ret = neuron_mem_alloc(l->core->device, bytes, &opts, mem);
	if (ret == -ENOMEM)
		return fail(l, NEURON_ERROR_MEMORY, ret, "no room for %llu bytes of %s in %s",
			    (unsigned long long)bytes, neuron_mem_category_name(category),
			    memory_reason(&l->error->memory, text, sizeof(text)));
	if (ret)
		return device_error(l, "memory allocation", ret);
	m->mems[m->nr_mems++] = *mem;
	*account += round_up(bytes, NEURON_PAGE);
	return 0;
}

/* ---- variables --------------------------------------------------------------------- */

static int arena_flush(struct loader *l, struct arena *a)
{
	struct neuron_mem *mem;
	unsigned char *staging = NULL;
	uint64_t first = UINT64_MAX, end = 0;
	int ret;

	if (!a->nr)
		return 0;
	ret = alloc(l, a->used, a->align, a->category, a->account, &mem);
	if (ret)
		return ret;
	for (size_t i = 0; i < a->nr; i++) {
		struct arena_item *item = &a->items[i];

		item->place->mem = mem;
		item->place->offset = item->offset;
		item->place->address = neuron_mem_address(mem) + item->offset;
		if (!item->size)
			continue;
		if (item->offset < first)
			first = item->offset;
		if (item->offset + item->size > end)
			end = item->offset + item->size;
	}
	if (end) {
		staging = calloc(1, end - first);
		if (!staging)
			return no_memory(l);
		for (size_t i = 0; i < a->nr; i++)
			if (a->items[i].size)
				memcpy(staging + (a->items[i].offset - first), a->items[i].data,
				       a->items[i].size);
		ret = neuron_mem_write(mem, first, staging, end - first);
		free(staging);
		if (ret)
			return device_error(l, "writing constants", ret);
	}
	a->nr = 0;
	a->used = 0;
	a->align = 0;
	return 0;
}

/* Device memory reads as zero, so what @data does not cover is zero. */
static int arena_add(struct loader *l, struct arena *a, struct place *place, uint64_t bytes,
		     uint64_t align, const void *data, size_t data_size)
{
	int ret;

	if (!bytes)
		bytes = 1;
	if (align < VAR_ALIGN)
		align = VAR_ALIGN;
	if (bytes >= ARENA_VAR || align > ARENA_VAR) {
		ret = alloc(l, bytes, align, a->category, a->account, &place->mem);
		if (ret)
			return ret;
		place->address = neuron_mem_address(place->mem);
		ret = neuron_mem_write(place->mem, 0, data, data_size);
		return ret ? device_error(l, "writing constants", ret) : 0;
	}
	if (a->used + bytes > ARENA_BYTES) {
		ret = arena_flush(l, a);
		if (ret)
			return ret;
	}
	if (grow((void **)&a->items, a->nr, &a->max, sizeof(*a->items)))
		return no_memory(l);
	a->used = round_up(a->used, align);
	if (align > a->align)
		a->align = align;
	a->items[a->nr++] = (struct arena_item){
		.place = place,
		.offset = a->used,
		.data = data,
		.size = data_size,
	};
	a->used += bytes;
	return 0;
}

/* Where each scratch area starts in the scratchpad of the model; need over all of them. */
struct areas {
	struct {
		const char *name;
		uint64_t need;
		uint64_t base;
	} *list;
	size_t nr;
	size_t max;
};

static int areas_add(struct loader *l, struct areas *areas, const struct neuron_neff_var *v)
{
	uint64_t end = v->backing_off + v->size;
	size_t i;

	for (i = 0; i < areas->nr; i++)
		if (!strcmp(areas->list[i].name, v->backing_buf))
			break;
	if (i == areas->nr) {
		if (i == MAX_AREAS)
			return fail(l, NEURON_ERROR_LIMIT, -E2BIG,
				    "%s/def.json: var.%.200s: more than %u scratch areas",
				    l->sg->dir, v->name, MAX_AREAS);
		if (grow((void **)&areas->list, areas->nr, &areas->max, sizeof(*areas->list)))
			return no_memory(l);
		areas->list[areas->nr++].name = v->backing_buf;
		areas->list[i].need = 0;
	}
	if (end > areas->list[i].need)
		areas->list[i].need = end;
	return 0;
}

static uint64_t areas_base(const struct areas *areas, const char *name)
{
	for (size_t i = 0; i < areas->nr; i++)
		if (!strcmp(areas->list[i].name, name))
			return areas->list[i].base;
	return 0;
}

static int place_virtual(struct loader *l)
{
	struct neuron_core *core = l->core;
	struct neuron_model *m = l->model;
	struct areas areas = { 0 };
	uint64_t need = 0;
	char text[160];
	int ret = 0;

	for (size_t i = 0; i < l->sg->nr_vars && !ret; i++)
		if (l->sg->vars[i].type == NEURON_NEFF_VAR_VIRTUAL)
			ret = areas_add(l, &areas, &l->sg->vars[i]);
	if (ret)
		goto out;
	for (size_t i = 0; i < areas.nr; i++) {
		areas.list[i].base = need;
		if (__builtin_add_overflow(need, areas.list[i].need, &need) ||
		    need > UINT64_MAX / 2) {
			ret = fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				   "%s/def.json: scratchpad of more than 2^63 bytes", l->sg->dir);
			goto out;
		}
		if (i + 1 < areas.nr)
			need = round_up(need, 1u << 16);
	}
	m->usage.shared_scratchpad = need;
	if (!need)
		goto out;

	pthread_mutex_lock(&core->lock);
	ret = core_scratchpad_grow(core, need, &l->error->memory);
	if (!ret) {
		m->next = core->models;
		core->models = m;
	}
	pthread_mutex_unlock(&core->lock);
	if (ret == -ENOMEM)
		fail(l, NEURON_ERROR_MEMORY, ret, "no room for a scratchpad of %llu bytes in %s",
		     (unsigned long long)need,
		     memory_reason(&l->error->memory, text, sizeof(text)));
	else if (ret)
		device_error(l, "scratchpad", ret);
	/* From here on the pages stay, because the model counts for them. */
	for (size_t i = 0; i < l->sg->nr_vars && !ret; i++) {
		const struct neuron_neff_var *v = &l->sg->vars[i];
		struct place *place = &l->places[i];
		uint64_t off;

		if (v->type != NEURON_NEFF_VAR_VIRTUAL)
			continue;
		off = areas_base(&areas, v->backing_buf) + v->backing_off;
		if (scratchpad_fits(off, v->size, core->page) && v->size) {
			struct neuron_mem *page;

			pthread_mutex_lock(&core->lock);
			page = core->pages[off / core->page];
			pthread_mutex_unlock(&core->lock);
			place->address = neuron_mem_address(page) + off % core->page;
			if (!v->alignment || !(place->address & (v->alignment - 1)))
				continue;
		}
		ret = alloc(l, v->size ? v->size : 1, v->alignment, NEURON_MEM_SCRATCHPAD_PRIVATE,
			    &m->usage.scratchpad, &place->mem);
		if (!ret)
			place->address = neuron_mem_address(place->mem);
	}
out:
	free(areas.list);
	return ret;
}

static int add_io(struct loader *l, const struct neuron_neff_var *v)
{
	struct io_tensor *t = &l->model->io[l->model->nr_io];

	t->name = strdup(v->name);
	if (!t->name)
		return no_memory(l);
	t->usage = v->type == NEURON_NEFF_VAR_INPUT ? NEURON_TENSOR_INPUT : NEURON_TENSOR_OUTPUT;
	t->bytes = v->size;
	t->dtype = v->dtype;
	t->ndim = v->ndim;
	memcpy(t->shape, v->shape, sizeof(t->shape));
	l->model->nr_io++;
	l->io_of_var[v - l->sg->vars] = (uint32_t)l->model->nr_io;
	return 0;
}

static int place_variables(struct loader *l)
{
	static const uint32_t ones[NEURON_NEFF_MAX_QUEUES] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	};
	struct neuron_model_usage *u = &l->model->usage;
	struct arena constants = { NEURON_MEM_CONSTANTS, &u->constants, 0, 0, NULL, 0, 0 };
	struct arena private = { NEURON_MEM_SCRATCHPAD_PRIVATE, &u->scratchpad, 0, 0, NULL, 0, 0 };
	struct arena runtime = { NEURON_MEM_MISC, &u->runtime, 0, 0, NULL, 0, 0 };
	uint32_t le_ones[NEURON_NEFF_MAX_QUEUES];
	int ret;

	for (size_t i = 0; i < NEURON_NEFF_MAX_QUEUES; i++)
		le_ones[i] = htole32(ones[i]);
	ret = arena_add(l, &runtime, &l->ones, sizeof(le_ones), 0, le_ones, sizeof(le_ones));
	for (size_t i = 0; i < l->sg->nr_vars && !ret; i++) {
		const struct neuron_neff_var *v = &l->sg->vars[i];
		struct place *place = &l->places[i];

		switch (v->type) {
		case NEURON_NEFF_VAR_STATE_BUFFER:
			place->address = l->g->tpb_base[l->core->nc] + NEURON_ISA_SBUF_OFF +
					 v->backing_off;
			break;
		case NEURON_NEFF_VAR_INPUT:
		case NEURON_NEFF_VAR_OUTPUT:
			ret = add_io(l, v);
			break;
		case NEURON_NEFF_VAR_FILE:
			ret = arena_add(l, &constants, place, v->size, v->alignment, v->data,
					v->data_size);
			break;
		case NEURON_NEFF_VAR_TMP_BUF:
			ret = arena_add(l, &private, place, v->size, v->alignment, NULL, 0);
			break;
		case NEURON_NEFF_VAR_POINTER:
		case NEURON_NEFF_VAR_DGE_TABLE:
			ret = arena_add(l, &runtime, place, v->size, v->alignment, NULL, 0);
			break;
		case NEURON_NEFF_VAR_VIRTUAL:
		case NEURON_NEFF_NR_VAR_TYPES:
			break;
		}
	}
	if (!ret)
		ret = arena_flush(l, &constants);
	if (!ret)
		ret = arena_flush(l, &private);
	if (!ret)
		ret = arena_flush(l, &runtime);
	free(constants.items);
	free(private.items);
	free(runtime.items);
	return ret ? ret : place_virtual(l);
}

static int write_pointer(struct loader *l, const struct place *table, uint64_t index,
			 const struct neuron_neff_var *target)
{
	uint32_t io = l->io_of_var[target - l->sg->vars];
	uint64_t offset = table->offset + index * 8;
	uint64_t word;
	int ret;

	if (io) {
		struct io_tensor *t = &l->model->io[io - 1];
		struct pointer_fixup *p =
			reallocarray(t->pointers, t->nr_pointers + 1, sizeof(*p));

		if (!p)
			return no_memory(l);
		t->pointers = p;
		p[t->nr_pointers++] = (struct pointer_fixup){ table->mem, offset };
		return 0;
	}
	word = htole64(l->places[target - l->sg->vars].address);
	ret = neuron_mem_write(table->mem, offset, &word, sizeof(word));
	return ret ? device_error(l, "writing pointers", ret) : 0;
}

static int write_pointers(struct loader *l)
{
	int ret = 0;

	for (size_t i = 0; i < l->sg->nr_vars && !ret; i++) {
		const struct neuron_neff_var *v = &l->sg->vars[i];
		size_t n = v->type == NEURON_NEFF_VAR_POINTER ? v->referenced != NULL :
			   v->type == NEURON_NEFF_VAR_DGE_TABLE ? v->nr_list : 0;

		if (n > v->size / 8)
			return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				    "%s/def.json: var.%.200s: %zu addresses do not fit into %llu bytes",
				    l->sg->dir, v->name, n, (unsigned long long)v->size);
		for (size_t k = 0; k < n && !ret; k++)
			ret = write_pointer(l, &l->places[i], k,
					    v->type == NEURON_NEFF_VAR_POINTER ? v->referenced :
										 v->list[k]);
	}
	return ret;
}

/* ---- programs ---------------------------------------------------------------------- */

static int add_trigger(struct loader *l, uint32_t engine, size_t inst,
		       const struct neuron_neff_dma *dma)
{
	if (grow((void **)&l->triggers, l->nr_triggers, &l->max_triggers, sizeof(*l->triggers)))
		return no_memory(l);
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
		return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
			    "%s/%s: instruction %zu: NOTIFY %u before the last instruction",
			    WHERE(l->sg, e), i, NOTIFY_DONE);
	if (last && !done)
		return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
			    "%s/%s: the last instruction is not NOTIFY %u, so that nothing ends a run",
			    WHERE(l->sg, e), NOTIFY_DONE);
	l->nr_notify += notify;
	if (l->nr_notify >= NQ_ENTRIES)
		return fail(l, NEURON_ERROR_LIMIT, -E2BIG, "%s/%s: more than %u NOTIFY",
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
			return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				    "%s/%s: instruction %zu: semaphore %u is reserved",
				    WHERE(l->sg, e), i, le32toh(inst->u.sem.index));
		balance(l, engine, inst);
		if (inst->opcode != NEURON_ISA_OP_DMA_TRIGGER)
			continue;
		id = le32toh(inst->u.dma.tx_count);
		if (inst->u.dma.engine != 0xffff || inst->u.dma.queue != 0xffff ||
		    inst->u.dma.rx_count)
			return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				    "%s/%s: instruction %zu: DMA trigger is not symbolic",
				    WHERE(l->sg, e), i);
		dma = neuron_neff_find_dma(e, id);
		if (!dma)
			return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				    "%s/%s: instruction %zu: no DMA entry has id %u",
				    WHERE(l->sg, e), i, id);
		if (last && dma <= last)
			return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
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

static int scan_programs(struct loader *l)
{
	bool nisa = false;
	int ret = 0;

	for (uint32_t i = 0; i < NR_ENGINES; i++) {
		const struct neuron_neff_engine *e = &l->sg->engines[i];

		if (e->code_kind == NEURON_NEFF_CODE_VENDOR) {
			l->vendor = true;
			obstacle(l, "%s/%s: instructions of a real device, which this device does not execute",
				 WHERE(l->sg, e));
		}
		nisa |= e->code_kind == NEURON_NEFF_CODE_NISA;
	}
	if (nisa && !l->g->isa_version)
		obstacle(l, "%s: instructions of the software device, which this device does not execute",
			 l->sg->dir);
	l->generated = !nisa && !l->vendor;
	if (nisa && !l->vendor &&
	    l->sg->engines[NEURON_NEFF_SP].code_kind != NEURON_NEFF_CODE_NISA)
		return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
			    "%s: SP has no program, so that nothing ends a run", l->sg->dir);

	for (uint32_t i = 0; i < NR_ENGINES && !ret; i++) {
		const struct neuron_neff_engine *e = &l->sg->engines[i];

		if (e->code_size && e->code_kind != NEURON_NEFF_CODE_NONE) {
			l->code[i] = malloc(e->code_size);
			if (!l->code[i])
				return no_memory(l);
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
	for (size_t i = 0; i < NEURON_NEFF_MAX_SEMAPHORES; i++)
		l->model->dirty |= l->semaphores[i] != 0;
	for (size_t i = 0; i < NEURON_NEFF_MAX_EVENTS; i++)
		l->model->dirty |= l->events[i] != 0;
	return ret;
}

static struct neuron_isa_inst instruction(enum neuron_isa_opcode opcode)
{
	return (struct neuron_isa_inst){
		.opcode = (__u8)opcode,
		.magic = NEURON_ISA_MAGIC,
	};
}

/* A NEFF without instructions: one transfer after the other, then notify. */
static int generate_program(struct loader *l)
{
	size_t max = 2 + l->nr_triggers * 3;
	struct neuron_isa_inst *p;
	size_t n = 0;

	p = calloc(max, sizeof(*p));
	if (!p)
		return no_memory(l);
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

static void patch_programs(struct loader *l)
{
	for (size_t i = 0; i < l->nr_triggers; i++) {
		const struct trigger *t = &l->triggers[i];
		struct neuron_isa_inst *inst = (struct neuron_isa_inst *)l->code[t->engine] + t->inst;
		const struct ring *ring = &l->model->rings[t->ring];

		if (l->generated)
			inst = (struct neuron_isa_inst *)l->code[NEURON_ISA_ENGINE_SP] + t->inst;
		inst->u.dma.engine = htole16((uint16_t)slot_engine(l->g, ring->slot));
		inst->u.dma.queue = htole16((uint16_t)slot_queue(l->g, ring->slot));
		inst->u.dma.tx_count = htole32(t->count);
		inst->u.dma.rx_count = htole32(t->count);
	}
}

/* ---- rings ------------------------------------------------------------------------- */

static bool is_io(const struct loader *l, const struct neuron_neff_side *side)
{
	return l->io_of_var[side->var - l->sg->vars] != 0;
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
	return fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
		    "%s/%s: DMA entry %u: %.200s lies outside the state buffer of %llu bytes",
		    l->sg->dir, l->sg->engines[t->engine].json_name, t->dma->id, side->var->name,
		    (unsigned long long)l->g->sbuf_size);
}

/* Descriptors of one entry, the writes at its end included. */
static int count_entry(struct loader *l, struct trigger *t)
{
	const struct neuron_neff_dma *dma = t->dma;
	uint64_t limit = NEURON_RING_MAX_SLOTS;
	uint64_t count = 0;
	int ret = 0;

	for (size_t i = 0; i < dma->nr_desc && count <= limit; i++) {
		const struct neuron_neff_desc *d = &dma->desc[i];
		struct span dst = side_span(l, &d->to), src = side_span(l, &d->from[0]);

		ret = check_side(l, t, &d->to);
		for (size_t k = 0; k < d->nr_from && !ret; k++)
			ret = check_side(l, t, &d->from[k]);
		if (ret)
			return ret;
		if (d->op == NEURON_NEFF_OP_COPY) {
			count += piece_count(&dst, &src, limit - count);
			continue;
		}
		obstacle(l, "%s/%s: DMA entry %u: this library only builds copies",
			 l->sg->dir, l->sg->engines[t->engine].json_name, dma->id);
		/* For the accounting: what a copy of the destination takes. */
		count += piece_count(&dst, &dst, limit - count);
	}
	count += dma->semaphore >= 0;
	count += t->own_semaphore;
	count += dma->event >= 0;
	if (count > limit)
		return fail(l, NEURON_ERROR_LIMIT, -E2BIG,
			    "%s/%s: DMA entry %u: more than %u descriptors", l->sg->dir,
			    l->sg->engines[t->engine].json_name, dma->id, NEURON_RING_MAX_SLOTS);
	t->count = (uint32_t)count;
	return 0;
}

static int check_semaphores(struct loader *l, const struct trigger *t)
{
	const struct neuron_neff_dma *dma = t->dma;
	const char *json = l->sg->engines[t->engine].json_name;

	if (dma->nr_remote_semaphores)
		obstacle(l, "%s/%s: DMA entry %u: semaphores of another core", l->sg->dir, json,
			 dma->id);
	if (dma->semaphore >= 0 && (uint32_t)dma->semaphore >= l->g->nr_semaphores)
		return fail(l, NEURON_ERROR_LIMIT, -E2BIG,
			    "%s/%s: DMA entry %u: semaphore %d, the core has %u", l->sg->dir, json,
			    dma->id, dma->semaphore, l->g->nr_semaphores);
	if (dma->event >= 0 && (uint32_t)dma->event >= l->g->nr_events)
		return fail(l, NEURON_ERROR_LIMIT, -E2BIG,
			    "%s/%s: DMA entry %u: event %d, the core has %u", l->sg->dir, json,
			    dma->id, dma->event, l->g->nr_events);
	return 0;
}

/* A semaphore for generated programs that no entry uses. */
static int own_semaphore(struct loader *l, uint32_t *index)
{
	bool used[NEURON_NEFF_MAX_SEMAPHORES] = { false };

	for (size_t i = 0; i < l->nr_triggers; i++)
		if (l->triggers[i].dma->semaphore >= 0)
			used[l->triggers[i].dma->semaphore % NEURON_NEFF_MAX_SEMAPHORES] = true;
	for (uint32_t i = l->g->nr_semaphores; i-- > 0;)
		if (i < NEURON_NEFF_MAX_SEMAPHORES && !used[i]) {
			*index = i;
			return 0;
		}
	return fail(l, NEURON_ERROR_LIMIT, -E2BIG, "%s: no semaphore is left", l->sg->dir);
}

/* Decide which rings there are and how long they get. */
static int plan_rings(struct loader *l)
{
	struct neuron_model *m = l->model;
	uint32_t *user;			/* engine + 1 that triggers a queue set */
	uint64_t total = 0;
	uint32_t own = 0;
	int ret = 0;

	if (l->generated)
		ret = own_semaphore(l, &own);
	if (ret)
		return ret;
	m->rings = calloc(NR_ENGINES + l->sg->nr_queues, sizeof(*m->rings));
	l->ring_of_queue = calloc(l->sg->nr_queues + 1, sizeof(*l->ring_of_queue));
	user = calloc(l->sg->nr_queues + 1, sizeof(*user));
	if (!m->rings || !l->ring_of_queue || !user) {
		ret = no_memory(l);
		goto out;
	}
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		if (l->code_size[i] || (l->generated && i == NEURON_ISA_ENGINE_SP))
			m->rings[m->nr_rings++].slot = i;
	m->nr_fetch = m->nr_rings;

	for (size_t i = 0; i < l->nr_triggers; i++) {
		struct trigger *t = &l->triggers[i];
		size_t queue = (size_t)(t->dma->queue - l->sg->queues);
		struct ring *ring;

		/* Their descriptors are made on the device. */
		if (l->vendor && t->dma->queue->type == NEURON_NEFF_QUEUE_DYNAMIC)
			continue;
		if (!user[queue]) {
			uint32_t slot = NR_ENGINES + (uint32_t)(m->nr_rings - m->nr_fetch);

			if (slot >= l->core->nr_slots) {
				ret = fail(l, NEURON_ERROR_LIMIT, -E2BIG,
					   "%s/def.json: more than %u queue sets in use", l->sg->dir,
					   l->core->nr_slots - NR_ENGINES);
				goto out;
			}
			m->rings[m->nr_rings].slot = slot;
			l->ring_of_queue[queue] = (uint32_t)m->nr_rings++;
			user[queue] = t->engine + 1;
		} else if (user[queue] != t->engine + 1 && !l->generated && !l->vendor) {
			/* Which engine is first would decide what a trigger starts. */
			ret = fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
				   "%s/def.json: dma_queue.%.200s is triggered by two engines",
				   l->sg->dir, t->dma->queue->name);
			goto out;
		}
		t->ring = l->ring_of_queue[queue];
		t->own_semaphore = l->generated && t->dma->semaphore < 0;
		t->semaphore = t->own_semaphore ? own : (uint32_t)t->dma->semaphore;
		ret = check_semaphores(l, t);
		if (!ret)
			ret = count_entry(l, t);
		if (ret)
			goto out;
		ring = &m->rings[t->ring];
		total += t->count;
		if ((uint64_t)ring->count + t->count >
		    NEURON_RING_MAX_SLOTS - NEURON_RING_UNUSED_SLOTS || total > MAX_DESCRIPTORS) {
			ret = fail(l, NEURON_ERROR_LIMIT, -E2BIG,
				   "%s/def.json: dma_queue.%.200s: more descriptors than a ring or a model can have",
				   l->sg->dir, t->dma->queue->name);
			goto out;
		}
		ring->count += t->count;
	}
out:
	free(user);
	return ret;
}

static int add_fixup(struct loader *l, const struct neuron_neff_side *side, uint32_t ring,
		     uint32_t index, uint64_t offset, bool rx)
{
	struct io_tensor *t = &l->model->io[l->io_of_var[side->var - l->sg->vars] - 1];

	if (grow((void **)&t->fixups, t->nr_fixups, &t->max_fixups, sizeof(*t->fixups)))
		return no_memory(l);
	t->fixups[t->nr_fixups++] = (struct fixup){ ring, index, offset, rx };
	return 0;
}

/* Offset of semaphore increment registers; v1 has its blocks closer together (ISA.md 2). */
static uint64_t semaphore_register(const struct loader *l, uint32_t index)
{
	uint64_t off = l->g->arch == 1 ? 0x2701200u + 4u * index : NEURON_ISA_SEM_INC_OFF(index);

	return l->g->tpb_base[l->core->nc] + off;
}

static void write_word(struct loader *l, struct ring *ring, uint32_t index, uint64_t to,
		       uint32_t value)
{
	neuron_descriptor_copy(&ring->tx_desc[index], &ring->rx_desc[index], to,
			       l->ones.address + 4ull * (value - 1), 4, true);
	/* v1 has a barrier bit of its own (uapi spec 5.3). */
	if (l->g->arch == 1)
		ring->tx_desc[index].control |= htole32(1u << 30);
}

static int fill_entry(struct loader *l, struct trigger *t, uint32_t index)
{
	struct ring *ring = &l->model->rings[t->ring];
	const struct neuron_neff_dma *dma = t->dma;

	for (size_t i = 0; i < dma->nr_desc; i++) {
		const struct neuron_neff_desc *d = &dma->desc[i];
		struct span dst = side_span(l, &d->to), src = side_span(l, &d->from[0]);
		struct piece_iter it;
		struct piece p;

		piece_start(&it, &dst, &src);
		while (piece_next(&it, &p)) {
			int ret = 0;

			if (is_io(l, &d->to))
				ret = add_fixup(l, &d->to, t->ring, index, p.dst, true);
			if (!ret && is_io(l, &d->from[0]))
				ret = add_fixup(l, &d->from[0], t->ring, index, p.src, false);
			if (ret)
				return ret;
			neuron_descriptor_copy(&ring->tx_desc[index], &ring->rx_desc[index],
					       p.dst, p.src, p.bytes, false);
			index++;
		}
	}
	if (dma->event >= 0)
		write_word(l, ring, index++,
			   l->g->tpb_base[l->core->nc] + NEURON_ISA_EVENT_OFF((uint32_t)dma->event),
			   1);
	if (dma->semaphore >= 0)
		write_word(l, ring, index++, semaphore_register(l, (uint32_t)dma->semaphore),
			   dma->queue->num_queues);
	if (t->own_semaphore)
		write_word(l, ring, index++, semaphore_register(l, t->semaphore), 1);
	return 0;
}

static int alloc_ring(struct loader *l, struct ring *ring, uint64_t *account)
{
	int ret;

	ring->slots = neuron_ring_slots(ring->count);
	l->model->usage.descriptors += ring->count;
	ret = alloc(l, (uint64_t)ring->slots * sizeof(struct neuron_descriptor), 0,
		    NEURON_MEM_RINGS, account, &ring->tx);
	if (!ret)
		ret = alloc(l, (uint64_t)ring->slots * sizeof(struct neuron_descriptor), 0,
			    NEURON_MEM_RINGS, account, &ring->rx);
	return ret;
}

static int ring_buffers(struct loader *l, struct ring *ring)
{
	ring->tx_desc = calloc(ring->count, sizeof(*ring->tx_desc));
	ring->rx_desc = calloc(ring->count, sizeof(*ring->rx_desc));
	return ring->count && (!ring->tx_desc || !ring->rx_desc) ? no_memory(l) : 0;
}

static int upload_ring(struct loader *l, struct ring *ring)
{
	int ret;

	ret = neuron_queue_write(l->core->device, ring->tx, NEURON_RING_TX, 0, ring->tx_desc,
				 ring->count);
	if (!ret)
		ret = neuron_queue_write(l->core->device, ring->rx, NEURON_RING_RX, 0,
					 ring->rx_desc, ring->count);
	free(ring->tx_desc);
	free(ring->rx_desc);
	ring->tx_desc = NULL;
	ring->rx_desc = NULL;
	return ret ? device_error(l, "writing descriptors", ret) : 0;
}

static bool entry_has_io(const struct loader *l, const struct neuron_neff_dma *dma)
{
	for (size_t i = 0; i < dma->nr_desc; i++) {
		if (is_io(l, &dma->desc[i].to))
			return true;
		for (size_t k = 0; k < dma->desc[i].nr_from; k++)
			if (is_io(l, &dma->desc[i].from[k]))
				return true;
	}
	return false;
}

static int build_rings(struct loader *l)
{
	struct neuron_model *m = l->model;
	bool *io = calloc(m->nr_rings + 1, sizeof(*io));
	uint32_t *index = calloc(m->nr_rings + 1, sizeof(*index));
	int ret = 0;

	if (!io || !index) {
		ret = no_memory(l);
		goto out;
	}
	for (size_t i = 0; i < l->nr_triggers; i++)
		if (l->triggers[i].count)
			io[l->triggers[i].ring] |= entry_has_io(l, l->triggers[i].dma);
	for (size_t i = m->nr_fetch; i < m->nr_rings && !ret; i++)
		ret = alloc_ring(l, &m->rings[i],
				 io[i] ? &m->usage.rings_io : &m->usage.rings_spill);
	/* A model that cannot be run has its rings for the accounting only. */
	if (ret || m->obstacle[0])
		goto out;
	for (size_t i = m->nr_fetch; i < m->nr_rings && !ret; i++)
		ret = ring_buffers(l, &m->rings[i]);
	for (size_t i = 0; i < l->nr_triggers && !ret; i++) {
		struct trigger *t = &l->triggers[i];

		ret = fill_entry(l, t, index[t->ring]);
		index[t->ring] += t->count;
	}
	for (size_t i = m->nr_fetch; i < m->nr_rings && !ret; i++) {
		/* What depends on tensors is written when they are known. */
		if (io[i])
			m->rings[i].dirty_end = m->rings[i].count;
		else
			ret = upload_ring(l, &m->rings[i]);
	}
out:
	free(io);
	free(index);
	return ret;
}

static int build_fetch(struct loader *l, struct ring *ring, uint64_t code)
{
	uint64_t fifo = l->g->tpb_base[l->core->nc] + NEURON_ISA_FIFO_OFF(ring->slot);
	size_t size = l->code_size[ring->slot];
	int ret;

	if (size > (uint64_t)FETCH_BYTES * (NEURON_RING_MAX_SLOTS - NEURON_RING_UNUSED_SLOTS))
		return fail(l, NEURON_ERROR_LIMIT, -E2BIG, "%s: program of %zu bytes", l->sg->dir,
			    size);
	ring->count = (uint32_t)((size + FETCH_BYTES - 1) / FETCH_BYTES);
	ret = alloc_ring(l, ring, &l->model->usage.rings_runtime);
	if (ret || l->model->obstacle[0])
		return ret;
	ret = ring_buffers(l, ring);
	for (uint32_t i = 0; i < ring->count && !ret; i++) {
		size_t off = (size_t)i * FETCH_BYTES;
		uint32_t bytes = size - off < FETCH_BYTES ? (uint32_t)(size - off) : FETCH_BYTES;

		neuron_descriptor_copy(&ring->tx_desc[i], &ring->rx_desc[i], fifo, code + off,
				       bytes, false);
	}
	return ret ? ret : upload_ring(l, ring);
}

static int write_programs(struct loader *l)
{
	struct arena code = { NEURON_MEM_CODE, &l->model->usage.code, 0, 0, NULL, 0, 0 };
	struct place places[NR_ENGINES] = { { 0, NULL, 0 } };
	int ret = 0;

	for (uint32_t i = 0; i < NR_ENGINES && !ret; i++)
		if (l->code_size[i])
			ret = arena_add(l, &code, &places[i], l->code_size[i], 0, l->code[i],
					l->code_size[i]);
	if (!ret)
		ret = arena_flush(l, &code);
	free(code.items);
	for (size_t i = 0; i < l->model->nr_fetch && !ret; i++)
		ret = build_fetch(l, &l->model->rings[i],
				  places[l->model->rings[i].slot].address);
	return ret;
}

static int plan_setup(struct loader *l)
{
	struct neuron_model *m = l->model;

	m->setup = calloc(m->nr_rings + 1, sizeof(*m->setup));
	if (!m->setup)
		return no_memory(l);
	for (size_t i = 0; i < m->nr_rings; i++) {
		const struct ring *ring = &m->rings[i];

		m->setup[i] = (struct neuron_queue_setup){
			.engine = l->core->nc * l->g->engines_per_core +
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

/* ---- the model --------------------------------------------------------------------- */

static int load(struct loader *l)
{
	size_t nr_vars = l->sg->nr_vars;
	int ret;

	l->places = calloc(nr_vars + 1, sizeof(*l->places));
	l->io_of_var = calloc(nr_vars + 1, sizeof(*l->io_of_var));
	l->model->io = calloc(nr_vars + 1, sizeof(*l->model->io));
	l->model->name = strdup(l->neff->header.name);
	if (!l->places || !l->io_of_var || !l->model->io || !l->model->name)
		return no_memory(l);
	ret = scan_programs(l);
	if (!ret)
		ret = place_variables(l);
	if (!ret)
		ret = write_pointers(l);
	if (!ret)
		ret = plan_rings(l);
	if (!ret && l->generated)
		ret = generate_program(l);
	if (!ret && !l->vendor)
		patch_programs(l);
	if (!ret)
		ret = build_rings(l);
	if (!ret)
		ret = write_programs(l);
	if (!ret)
		ret = plan_setup(l);
	return ret;
}

static void free_loader(struct loader *l)
{
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		free(l->code[i]);
	free(l->places);
	free(l->io_of_var);
	free(l->triggers);
	free(l->ring_of_queue);
	neuron_neff_close(l->neff);
}

static int open_neff(struct loader *l, const void *bytes, size_t size, bool verify_hash)
{
	struct neuron_neff_error error = { .class = NEURON_NEFF_OK };
	struct neuron_neff_opts opts = {
		.size = sizeof(opts),
		.verify_hash = verify_hash,
		.error = &error,
	};
	int ret = neuron_neff_open(bytes, size, &opts, &l->neff);

	if (ret)
		return fail(l, error.class == NEURON_NEFF_UNSUPPORTED ? NEURON_ERROR_NEFF_UNSUPPORTED :
			    error.class == NEURON_NEFF_RESOURCE ? NEURON_ERROR_LIMIT :
			    NEURON_ERROR_NEFF_INVALID, ret, "%s", error.text);
	if (l->neff->nr_subgraphs != 1 || l->neff->header.lnc_size > 1)
		return fail(l, NEURON_ERROR_NEFF_UNSUPPORTED, -EOPNOTSUPP,
			    "header: made for logical cores of 2 physical cores");
	l->sg = &l->neff->subgraphs[0];
	return 0;
}

NEURON_EXPORT int neuron_model_load(struct neuron_core *core, const void *bytes, size_t size,
				    const struct neuron_model_opts *opts,
				    struct neuron_model **model)
{
	struct neuron_model_opts o;
	struct neuron_error error = { .size = sizeof(error) };
	struct loader l = {
		.core = core,
		.g = &core->device->geometry,
		.error = &error,
	};
	int ret;

	ret = opts_copy(&o, sizeof(o), opts);
	if (ret)
		return ret;
	if (!model || !bytes)
		return -EINVAL;
	if (device_inherited(core->device))
		return -EACCES;
	l.model = calloc(1, sizeof(*l.model));
	if (!l.model) {
		ret = no_memory(&l);
	} else {
		l.model->core = core_get(core);
		ret = open_neff(&l, bytes, size, o.verify_hash);
		if (!ret)
			ret = load(&l);
	}
	free_loader(&l);
	if (ret) {
		neuron_model_unload(l.model);
		if (result_valid(o.error))
			result_copy(o.error, &error, sizeof(error));
		return ret;
	}
	*model = l.model;
	return 0;
}

static void leave_core(struct neuron_core *core, const struct neuron_model *model)
{
	pthread_mutex_lock(&core->lock);
	core_release_queues(core, model);
	for (struct neuron_model **p = &core->models; *p; p = &(*p)->next)
		if (*p == model) {
			*p = model->next;
			break;
		}
	core_scratchpad_shrink(core);
	pthread_mutex_unlock(&core->lock);
}

NEURON_EXPORT void neuron_model_unload(struct neuron_model *model)
{
	struct neuron_core *core;

	if (!model)
		return;
	core = model->core;
	if (!device_inherited(core->device))
		leave_core(core, model);

	while (model->nr_mems)
		neuron_mem_free(model->mems[--model->nr_mems]);
	for (size_t i = 0; i < model->nr_rings; i++) {
		free(model->rings[i].tx_desc);
		free(model->rings[i].rx_desc);
	}
	for (size_t i = 0; i < model->nr_io; i++) {
		free(model->io[i].name);
		free(model->io[i].fixups);
		free(model->io[i].pointers);
	}
	free(model->io);
	free(model->mems);
	free(model->rings);
	free(model->setup);
	free(model->name);
	free(model);
	core_put(core);
}

NEURON_EXPORT const char *neuron_model_name(const struct neuron_model *model)
{
	return model->name;
}

NEURON_EXPORT size_t neuron_model_tensor_count(const struct neuron_model *model)
{
	return model->nr_io;
}

NEURON_EXPORT int neuron_model_tensor_info(const struct neuron_model *model, size_t index,
					   struct neuron_tensor_info *info)
{
	struct neuron_tensor_info out = { 0 };
	const struct io_tensor *t;

	if (index >= model->nr_io || !result_valid(info))
		return -EINVAL;
	t = &model->io[index];
	out.name = t->name;
	out.usage = t->usage;
	out.bytes = t->bytes;
	out.dtype = t->dtype;
	out.ndim = t->ndim;
	memcpy(out.shape, t->shape, sizeof(out.shape));
	result_copy(info, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT int neuron_model_get_usage(const struct neuron_model *model,
					 struct neuron_model_usage *usage)
{
	if (!result_valid(usage))
		return -EINVAL;
	result_copy(usage, &model->usage, sizeof(model->usage));
	return 0;
}

NEURON_EXPORT const char *neuron_model_obstacle(const struct neuron_model *model)
{
	return model->obstacle[0] ? model->obstacle : NULL;
}
