// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a model needs of device memory: which allocations there are, and where in
 * them everything lies.  Pure arithmetic; loading and preflight share it.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "loader.h"

/* Variables below this size share an allocation, each allocation about that long. */
#define ARENA_VAR (1ull << 20)
#define ARENA_BYTES (16ull << 20)
#define VAR_ALIGN 64u
/* Into which a tensor with more elements than a dimension can have is split. */
#define MAX_ROWS (1ull << 20)
/* Numbers of rows that are tried for all tensors of a core. */
#define MAX_TRIES (16ull << 20)

/* Small variables of a category share an allocation. */
struct arena {
	enum neuron_mem_category category;
	uint64_t *account;
	size_t alloc;			/* index + 1 of the one that is being filled */
};

static int alloc_new(struct loader *l, uint64_t bytes, uint64_t align,
		     enum neuron_mem_category category, uint64_t *account, size_t *alloc)
{
	if (array_grow((void **)&l->allocs, l->nr_allocs, &l->max_allocs, sizeof(*l->allocs)))
		return error_no_memory(l->error);
	l->allocs[l->nr_allocs++] = (struct plan_alloc){
		.category = category,
		.account = account,
		.bytes = bytes,
		.align = align,
	};
	*alloc = l->nr_allocs;
	return 0;
}

static int item_add(struct loader *l, const struct place *place, const void *data, size_t size)
{
	struct plan_alloc *a = &l->allocs[place->alloc - 1];

	if (!size)
		return 0;
	if (array_grow((void **)&l->items, l->nr_items, &l->max_items, sizeof(*l->items)))
		return error_no_memory(l->error);
	l->items[l->nr_items++] = (struct plan_item){
		.offset = place->offset,
		.data = data,
		.size = size,
	};
	if (a->last)
		l->items[a->last - 1].next = l->nr_items;
	else
		a->first = l->nr_items;
	a->last = l->nr_items;
	return 0;
}

/* Device memory reads as zero, so what @data does not cover is zero. */
static int arena_add(struct loader *l, struct arena *arena, struct place *place, uint64_t bytes,
		     uint64_t align, const void *data, size_t size)
{
	struct plan_alloc *a;
	int ret;

	if (!bytes)
		bytes = 1;
	align = MAX(align, VAR_ALIGN);
	if (bytes >= ARENA_VAR || align > ARENA_VAR)
		return alloc_new(l, bytes, align, arena->category, arena->account,
				 &place->alloc) ?: item_add(l, place, data, size);
	if (arena->alloc && l->allocs[arena->alloc - 1].bytes + bytes > ARENA_BYTES)
		arena->alloc = 0;
	if (!arena->alloc) {
		ret = alloc_new(l, 0, 0, arena->category, arena->account, &arena->alloc);
		if (ret)
			return ret;
	}
	a = &l->allocs[arena->alloc - 1];
	place->alloc = arena->alloc;
	place->offset = round_up(a->bytes, align);
	a->bytes = place->offset + bytes;
	a->align = MAX(a->align, align);
	return item_add(l, place, data, size);
}

/* ---- scratchpad -------------------------------------------------------------------- */

/* A variable that does not fit into the shared scratchpad gets memory of its own. */
static int plan_virtual(struct loader *l, size_t i)
{
	const struct neuron_neff_var *v = &l->sg->vars[i];

	if (v->size && scratchpad_placed(&l->layout, scratch_offset(v), v->size) &&
	    v->alignment <= SCRATCHPAD_ALIGN &&
	    (!v->alignment || !(scratch_offset(v) % SCRATCHPAD_ALIGN & (v->alignment - 1))))
		return 0;
	return alloc_new(l, v->size ? v->size : 1, v->alignment, NEURON_MEM_SCRATCHPAD_PRIVATE,
			 &l->model->usage.scratchpad, &l->places[i].alloc);
}

/* ---- variables --------------------------------------------------------------------- */

/*
 * The public shape has 32-bit dimensions.  A larger tensor is so many rows as make them
 * short enough, and has no shape if none do, or if others took all the tries.
 */
static void set_shape(struct loader *l, struct neuron_tensor_info *t,
		      const struct neuron_neff_var *v)
{
	uint64_t rows = v->size / UINT32_MAX + 1;

	t->ndim = v->ndim;
	for (uint32_t i = 0; i < v->ndim; i++)
		t->shape[i] = (uint32_t)v->shape[i];
	if (v->ndim != 1 || v->shape[0] <= UINT32_MAX)
		return;
	for (; rows < MAX_ROWS && l->tries < MAX_TRIES && v->size % rows; l->tries++)
		rows++;
	t->ndim = rows < MAX_ROWS && !(v->size % rows) ? 2 : 0;
	t->shape[0] = (uint32_t)rows;
	t->shape[1] = (uint32_t)(v->size / rows);
}

static int add_io(struct loader *l, const struct neuron_neff_var *v)
{
	struct neuron_tensor_info *t = &l->model->io[l->model->nr_io].info;

	t->name = strdup(v->name);
	if (!t->name)
		return error_no_memory(l->error);
	t->usage = v->type == NEURON_NEFF_VAR_INPUT ? NEURON_TENSOR_INPUT : NEURON_TENSOR_OUTPUT;
	t->bytes = v->size;
	t->dtype = v->dtype;
	set_shape(l, t, v);
	l->model->nr_io++;
	l->io_of_var[v - l->sg->vars] = (uint32_t)l->model->nr_io;
	return 0;
}

static int check_pointers(struct loader *l, const struct neuron_neff_var *v)
{
	size_t n = pointer_count(v);

	if (n <= v->size / 8)
		return 0;
	return error_note(l->error, -EINVAL,
			  "%s/def.json: var.%.200s: %zu addresses do not fit into %llu bytes",
			  l->sg->dir, v->name, n, (unsigned long long)v->size);
}

/* No address of a device memory but its start, which is not handed out, is so even. */
static int check_alignment(struct loader *l, const struct neuron_neff_var *v)
{
	uint64_t room = l->g->hbm[l->g->core_hbm[l->nc]].size;

	if (v->alignment < room || v->type == NEURON_NEFF_VAR_STATE_BUFFER)
		return 0;
	return error_note(l->error, -EINVAL,
			  "%s/def.json: var.%.200s: an alignment of %llu, the device memory has %llu bytes",
			  l->sg->dir, v->name, (unsigned long long)v->alignment,
			  (unsigned long long)room);
}

int load_plan_variables(struct loader *l)
{
	struct neuron_model_usage *u = &l->model->usage;
	struct arena constants = { NEURON_MEM_CONSTANTS, &u->constants, 0 };
	struct arena private = { NEURON_MEM_SCRATCHPAD_PRIVATE, &u->scratchpad, 0 };
	struct arena runtime = { NEURON_MEM_MISC, &u->runtime, 0 };
	int ret;

	for (uint32_t i = 0; i < NEURON_NEFF_MAX_QUEUES; i++)
		l->le_ones[i] = htole32(i + 1);
	ret = arena_add(l, &runtime, &l->ones, sizeof(l->le_ones), 0, l->le_ones,
			sizeof(l->le_ones));
	for (size_t i = 0; i < l->sg->nr_vars && !ret; i++) {
		const struct neuron_neff_var *v = &l->sg->vars[i];
		struct place *place = &l->places[i];

		ret = check_alignment(l, v);
		if (ret)
			return ret;
		switch (v->type) {
		case NEURON_NEFF_VAR_STATE_BUFFER:
			place->address = l->g->tpb_base[l->nc] + NEURON_ISA_SBUF_OFF + v->backing_off;
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
			ret = check_pointers(l, v) ?:
			      arena_add(l, &runtime, place, v->size, v->alignment, NULL, 0);
			break;
		case NEURON_NEFF_VAR_VIRTUAL:
			ret = plan_virtual(l, i);
			break;
		case NEURON_NEFF_NR_VAR_TYPES:
			break;
		}
	}
	return ret;
}

/* ---- rings and programs ------------------------------------------------------------ */

/* The two sides of a ring, one behind the other in loader.allocs. */
int load_plan_ring(struct loader *l, struct ring *ring, uint64_t *account)
{
	uint64_t bytes;
	size_t rx;

	ring->slots = neuron_ring_slots(ring->count);
	l->model->usage.descriptors += ring->count;
	bytes = (uint64_t)ring->slots * sizeof(struct neuron_descriptor);
	return alloc_new(l, bytes, 0, NEURON_MEM_RINGS, account, &ring->alloc) ?:
	       alloc_new(l, bytes, 0, NEURON_MEM_RINGS, account, &rx);
}

/* Programs, and the rings that fetch them. */
int load_plan_programs(struct loader *l)
{
	struct neuron_model *m = l->model;
	const struct programs *p = &l->programs;
	struct arena code = { NEURON_MEM_CODE, &m->usage.code, 0 };
	int ret = 0;

	for (uint32_t i = 0; i < NR_ENGINES && !ret; i++)
		if (p->code_size[i])
			ret = arena_add(l, &code, &l->code[i], p->code_size[i], 0, p->code[i],
					p->code_size[i]);
	for (size_t i = 0; i < m->nr_fetch && !ret; i++) {
		struct ring *ring = &m->rings[i];
		size_t size = p->code_size[ring->slot];

		if (size > (uint64_t)FETCH_BYTES *
			   (NEURON_RING_MAX_SLOTS - NEURON_RING_UNUSED_SLOTS))
			return error_note(l->error, -E2BIG, "%s: program of %zu bytes", l->sg->dir,
					  size);
		ring->count = (uint32_t)((size + FETCH_BYTES - 1) / FETCH_BYTES);
		ret = load_plan_ring(l, ring, &m->usage.rings_runtime);
	}
	return ret;
}

static uint64_t counted(const struct plan_alloc *a, bool held)
{
	return held && !a->mem ? 0 : round_up(a->bytes, host_page());
}

/*
 * Rings that have descriptors for inputs or outputs and others: the memory of each kind is
 * in proportion.  Writes to semaphores and slots that are left over belong to neither.
 */
static void divide_rings(struct loader *l, bool held)
{
	struct neuron_model *m = l->model;

	m->usage.rings_io = 0;
	for (size_t i = m->nr_fetch; i < m->nr_rings; i++) {
		const struct ring *ring = &m->rings[i];
		uint64_t io;

		if (!ring->io_moves || !ring->alloc)
			continue;
		io = (counted(&l->allocs[ring->alloc - 1], held) +
		      counted(&l->allocs[ring->alloc], held)) * ring->io_moves / ring->moves;
		m->usage.rings_spill -= io;
		m->usage.rings_io += io;
	}
}

int load_account(struct loader *l, bool held)
{
	uint64_t sum = l->model->usage.shared_scratchpad;

	for (size_t i = 0; i < l->nr_allocs; i++)
		*l->allocs[i].account = 0;
	for (size_t i = 0; i < l->nr_allocs; i++) {
		const struct plan_alloc *a = &l->allocs[i];

		if (a->bytes > UINT64_MAX - host_page() ||
		    __builtin_add_overflow(sum, counted(a, held), &sum))
			return error_note(l->error, -E2BIG,
					  "%s/def.json: the variables have more than 2^64 bytes",
					  l->sg->dir);
		*a->account += counted(a, held);
	}
	divide_rings(l, held);
	return 0;
}
