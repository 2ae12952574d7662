// SPDX-License-Identifier: LGPL-2.1-or-later
/* A plan onto a device: memory, addresses, contents. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../memory/mem.h"
#include "loader.h"

static const char *memory_reason(const struct neuron_mem_failure *f, char *text, size_t size)
{
	snprintf(text, size, "HBM %u: %s, %llu bytes free, longest run %llu, aligned %llu", f->hbm,
		 neuron_mem_reason_name(f->reason), (unsigned long long)f->free,
		 (unsigned long long)f->largest_free, (unsigned long long)f->largest_aligned);
	return text;
}

int load_apply_scratchpad(struct loader *l)
{
	uint64_t need = l->model->usage.shared_scratchpad;
	char text[160];
	int ret;

	l->model->scratchpad.need = need;
	ret = scratchpad_join(l->scratchpad, &l->model->scratchpad, l->spots, &l->layout,
			      &l->error->memory);
	if (ret == -ENOMEM)
		return error_note(l->error, ret, "no room for a scratchpad of %llu bytes in %s",
				  (unsigned long long)need,
				  memory_reason(&l->error->memory, text, sizeof(text)));
	return ret ? error_device(l->error, "scratchpad", ret) : 0;
}

/* One of the allocations, without its memory. NULL: it has no place, or the host no memory. */
static struct neuron_mem *prepare(struct loader *l, const struct plan_alloc *a)
{
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = l->scratchpad->contiguous ? NEURON_MEM_F_HIGH : 0,
		.hbm = l->scratchpad->hbm,
		.nc = l->nc,
		.category = a->category,
		.align = a->align > NEURON_PAGE ? a->align : 0,
		.owner = l->model->owner,
	};

	return spots_next(l->spots, &opts) ? mem_new(l->scratchpad->device, a->bytes, &opts) :
					     NULL;
}

/* All of the plan, or those before the first one that is refused. */
static int obtain_all(struct loader *l)
{
	struct neuron_model *m = l->model;
	const struct plan_alloc *a;
	size_t n = 0;
	char text[160];
	int ret;

	while (n < l->nr_allocs && (m->mems[n] = prepare(l, &l->allocs[n])))
		n++;
	ret = mem_obtain(m->mems, n, &m->nr_mems, &l->error->memory);
	for (size_t i = 0; i < m->nr_mems; i++)
		l->allocs[i].mem = m->mems[i];
	while (n > m->nr_mems)
		mem_drop(m->mems[--n]);
	a = &l->allocs[n];
	if (ret && ret != -ENOMEM)
		return error_device(l->error, "memory allocation", ret);
	if (n < l->nr_allocs)
		return error_note(l->error, -ENOMEM, "no room for %llu bytes of %s in %s",
				  (unsigned long long)a->bytes,
				  neuron_mem_category_name(a->category),
				  memory_reason(&l->error->memory, text, sizeof(text)));
	return 0;
}

static void set_address(const struct loader *l, struct place *place)
{
	if (place->alloc)
		place->address = neuron_mem_address(l->allocs[place->alloc - 1].mem) + place->offset;
}

int load_apply_memory(struct loader *l)
{
	struct neuron_model *m = l->model;
	int ret;

	m->mems = calloc(l->nr_allocs + 1, sizeof(*m->mems));
	if (!m->mems)
		return error_no_memory(l->error);
	ret = obtain_all(l);
	if (ret)
		return ret;
	set_address(l, &l->ones);
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		set_address(l, &l->code[i]);
	for (size_t i = 0; i < l->sg->nr_vars; i++) {
		const struct neuron_neff_var *v = &l->sg->vars[i];

		if (v->type == NEURON_NEFF_VAR_VIRTUAL && !l->places[i].alloc)
			l->places[i].address = scratchpad_address(l->scratchpad, scratch_offset(v));
		else
			set_address(l, &l->places[i]);
	}
	for (size_t i = 0; i < m->nr_rings; i++) {
		if (!m->rings[i].alloc)
			continue;
		m->rings[i].tx = l->allocs[m->rings[i].alloc - 1].mem;
		m->rings[i].rx = l->allocs[m->rings[i].alloc].mem;
	}
	return 0;
}

/* What is to be written into an allocation: at once if it is one thing, else joined. */
static int write_items(struct loader *l, const struct plan_alloc *a)
{
	const struct plan_item *item = &l->items[a->first - 1];
	uint64_t first = item->offset, end = 0;
	unsigned char *staging;
	int ret;

	for (size_t i = a->first; i; i = l->items[i - 1].next) {
		end = l->items[i - 1].offset + l->items[i - 1].size;
		l->watch->stats.copy_bytes += l->items[i - 1].size;
	}
	if (a->first == a->last)
		return neuron_mem_write(a->mem, item->offset, item->data, item->size);
	staging = calloc(1, end - first);
	if (!staging)
		return -ENOMEM;
	for (size_t i = a->first; i; i = l->items[i - 1].next) {
		item = &l->items[i - 1];
		memcpy(staging + (item->offset - first), item->data, item->size);
	}
	ret = neuron_mem_write(a->mem, first, staging, end - first);
	free(staging);
	return ret;
}

static int write_pointer(struct loader *l, const struct place *table, uint64_t index,
			 const struct neuron_neff_var *target)
{
	struct neuron_mem *mem = l->allocs[table->alloc - 1].mem;
	uint32_t io = l->io_of_var[target - l->sg->vars];
	uint64_t offset = table->offset + index * 8;
	struct pointer_word *w;
	uint64_t word;
	int ret;

	if (io) {
		struct io_tensor *t = &l->model->io[io - 1];
		struct pointer_fixup *p =
			reallocarray(t->pointers, t->nr_pointers + 1, sizeof(*p));

		if (!p)
			return error_no_memory(l->error);
		t->pointers = p;
		p[t->nr_pointers++] = (struct pointer_fixup){ mem, offset };
		return 0;
	}
	w = reallocarray(l->model->words, l->model->nr_words + 1, sizeof(*w));
	if (!w)
		return error_no_memory(l->error);
	l->model->words = w;
	w += l->model->nr_words++;
	*w = (struct pointer_word){ mem, offset, l->places[target - l->sg->vars].address };
	word = htole64(w->address);
	l->watch->stats.copy_bytes += sizeof(word);
	ret = neuron_mem_write(mem, offset, &word, sizeof(word));
	return ret ? error_device(l->error, "writing pointers", ret) : 0;
}

int load_apply_contents(struct loader *l)
{
	int ret = 0;

	for (size_t i = 0; i < l->nr_allocs && !ret; i++) {
		if (!l->allocs[i].first)
			continue;
		ret = write_items(l, &l->allocs[i]);
		if (ret)
			error_device(l->error, "writing constants", ret);
	}
	for (size_t i = 0; i < l->sg->nr_vars && !ret; i++) {
		const struct neuron_neff_var *v = &l->sg->vars[i];
		size_t n = pointer_count(v);

		for (size_t k = 0; k < n && !ret; k++)
			ret = write_pointer(l, &l->places[i], k,
					    v->type == NEURON_NEFF_VAR_POINTER ? v->referenced :
										 v->list[k]);
	}
	return ret;
}
