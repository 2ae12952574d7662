// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the NEFF reader.
 *
 * An input that starts with "=== " describes an archive as text (text.h).  Any other input
 * starts with a byte that says what it is: even, the payload behind a header that fits; odd,
 * a whole file.
 *
 * What the reader accepts must keep every promise of neff.h.
 */
#include <errno.h>

#include "../text.h"

#define MAX_PAYLOAD (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

static void touch(const void *data, size_t size)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < size; i++)
		sink = p[i];
}

static void touch_text(const char *s)
{
	must(s);
	touch(s, strlen(s));
}

static bool in_list(const void *p, const void *base, size_t nr, size_t size)
{
	uintptr_t d = (uintptr_t)p - (uintptr_t)base;

	return nr && d / size < nr && d % size == 0;
}

static void check_var(const struct neuron_neff_subgraph *sg, const struct neuron_neff_var *v)
{
	touch_text(v->name);
	must(neuron_neff_find_var(sg, v->name) == v);
	must(v->type < NEURON_NEFF_NR_VAR_TYPES);
	must(v->size && v->size <= INT64_MAX && v->backing_off <= INT64_MAX - v->size);
	must(!(v->alignment & (v->alignment - 1)));
	must(v->data_size <= v->size);
	must(v->type == NEURON_NEFF_VAR_FILE || !v->data);
	must(v->ndim >= 1 || v->type == NEURON_NEFF_VAR_FILE);
	must(v->ndim <= NEURON_NEFF_MAX_SHAPE);
	touch(v->data, v->data_size);
	if (v->type == NEURON_NEFF_VAR_POINTER)
		must(in_list(v->referenced, sg->vars, sg->nr_vars, sizeof(*v)));
	for (size_t i = 0; i < v->nr_list; i++)
		must(in_list(v->list[i], sg->vars, sg->nr_vars, sizeof(*v)));
	must(v->nr_list <= v->size / 8);
}

/* Every byte of a side lies in its variable; 128 bits cannot overflow here. */
static void check_side(const struct neuron_neff_subgraph *sg, const struct neuron_neff_side *s)
{
	uint64_t unit = neuron_neff_dtype_size(s->dtype);
	unsigned __int128 end = s->off, bytes = 1;

	must(in_list(s->var, sg->vars, sg->nr_vars, sizeof(*s->var)));
	must(s->ndim >= 1 && s->ndim <= NEURON_NEFF_MAX_DIMS);
	must(unit);
	for (uint32_t i = 0; i < s->ndim; i++) {
		must(s->size[i]);
		bytes *= s->size[i];
		/* The innermost step is between bytes if it is 1, else between elements. */
		if (i || s->step[0] == 1)
			end += (unsigned __int128)(s->size[i] - 1) * s->step[i];
		else
			end += (unsigned __int128)(s->size[0] / unit - 1) * s->step[0] + unit - 1;
	}
	must(end < s->var->size);
	must(bytes == s->bytes);
	must(s->size[0] % unit == 0);
}

static void check_dma(const struct neuron_neff_subgraph *sg, const struct neuron_neff_engine *e,
		      const struct neuron_neff_dma *dma)
{
	must(neuron_neff_find_dma(e, dma->id)->id == dma->id);
	must(in_list(dma->queue, sg->queues, sg->nr_queues, sizeof(*dma->queue)));
	must(dma->instance < (int)dma->queue->nr_instances);
	must(dma->semaphore >= -1 && dma->semaphore < (int)NEURON_NEFF_MAX_SEMAPHORES);
	must(dma->event >= -1 && dma->event < (int)NEURON_NEFF_MAX_EVENTS);
	must(dma->nr_desc);
	for (size_t i = 0; i < dma->nr_remote_semaphores; i++)
		must(dma->remote_semaphores[i] < NEURON_NEFF_MAX_SEMAPHORES);
	for (size_t i = 0; i < dma->nr_desc; i++) {
		const struct neuron_neff_desc *d = &dma->desc[i];
		uint64_t n = d->to.bytes / neuron_neff_dtype_size(d->to.dtype);

		must(d->nr_from >= 1 && d->nr_from <= NEURON_NEFF_MAX_SOURCES);
		check_side(sg, &d->to);
		for (size_t s = 0; s < d->nr_from; s++) {
			const struct neuron_neff_side *f = &d->from[s];

			check_side(sg, f);
			must(d->op == NEURON_NEFF_OP_UNKNOWN ? true :
			     d->op == NEURON_NEFF_OP_COPY ? f->bytes == d->to.bytes :
			     f->bytes / neuron_neff_dtype_size(f->dtype) == n);
		}
	}
}

static void check_neff(const struct neuron_neff *neff)
{
	bool vendor = false;

	must(neff->nr_subgraphs >= 1 && neff->nr_subgraphs <= 2);
	must(neff->header.lnc_size == neff->nr_subgraphs);
	touch_text(neff->header.name);
	touch_text(neff->graph_version);
	for (size_t g = 0; g < neff->nr_subgraphs; g++) {
		const struct neuron_neff_subgraph *sg = &neff->subgraphs[g];

		touch_text(sg->name);
		touch_text(sg->dir);
		for (size_t i = 0; i < sg->nr_vars; i++)
			check_var(sg, &sg->vars[i]);
		for (size_t i = 0; i < sg->nr_queues; i++) {
			touch_text(sg->queues[i].name);
			must(sg->queues[i].num_queues >= 1 && sg->queues[i].num_queues <= 16);
			for (size_t k = 0; k < sg->queues[i].nr_instances; k++)
				touch_text(sg->queues[i].instances[k]);
		}
		for (int e = 0; e < NEURON_NEFF_NR_ENGINES; e++) {
			const struct neuron_neff_engine *eng = &sg->engines[e];

			touch(eng->code, eng->code_size);
			must(!eng->code_size == (eng->code_kind == NEURON_NEFF_CODE_NONE));
			must(eng->code_kind != NEURON_NEFF_CODE_NISA || eng->code_size % 64 == 0);
			vendor |= eng->code_kind == NEURON_NEFF_CODE_VENDOR;
			for (size_t i = 0; i < eng->nr_dma; i++)
				check_dma(sg, eng, &eng->dma[i]);
			for (size_t i = 0; i < eng->nr_act_sets; i++)
				touch_text(eng->act_sets[i]);
			for (size_t i = 0; i < eng->nr_tables; i++)
				touch(eng->tables[i].data, eng->tables[i].size);
		}
	}
	must(neff->executable == (!vendor && !neff->nr_obstacles));
}

static int open_with(const void *bytes, size_t size, bool short_constants)
{
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct neuron_neff_opts o = {
		.size = sizeof(o), .max_total = 1 << 24,
		.max_json = 1 << 20, .error = &e, .borrow = size % 2,
		.short_constants = short_constants,
	};
	struct neuron_neff *neff = NULL;
	int err = neuron_neff_open(bytes, size, &o, &neff);

	if (!err) {
		must(e.kind == NEURON_NEFF_OK);
		check_neff(neff);
		neuron_neff_close(neff);
		return 0;
	}
	must(!neff);
	must(err == -EINVAL || err == -EOPNOTSUPP || err == -E2BIG);
	must(e.kind == (err == -EINVAL ? NEURON_NEFF_INVALID : err == -E2BIG ?
			 NEURON_NEFF_RESOURCE : NEURON_NEFF_UNSUPPORTED));
	must(strstr(e.text, ": "));
	for (const char *p = e.text; *p; p++)
		must(*p >= ' ' && *p < 0x7f);
	return err;
}

/* What is refused may only have constants that are too short, and have more behind them. */
static void open_and_check(const void *bytes, size_t size)
{
	if (open_with(bytes, size, false))
		open_with(bytes, size, true);
}

static void fuzz_text(const uint8_t *data, size_t size)
{
	static const struct neuron_neff_header header = { .size = sizeof(header), .version_major = 1 };
	size_t n;
	void *bytes = pack_text(data, size, &header, &n);

	if (bytes)
		open_and_check(bytes, n);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes;

	if (!size || size > MAX_PAYLOAD)
		return 0;
	if (size > 4 && !memcmp(data, "=== ", 4)) {
		fuzz_text(data, size);
		return 0;
	}
	if (data[0] & 1) {
		open_and_check(data + 1, size - 1);
		return 0;
	}
	bytes = calloc(1, NEURON_NEFF_HEADER_SIZE + size - 1);
	must(bytes);
	bytes[0] = 2;
	bytes[9] = 4;
	for (int i = 0; i < 8; i++)
		bytes[16 + i] = (uint8_t)((uint64_t)(size - 1) >> 8 * i);
	memcpy(bytes + NEURON_NEFF_HEADER_SIZE, data + 1, size - 1);
	open_and_check(bytes, NEURON_NEFF_HEADER_SIZE + size - 1);
	free(bytes);
	return 0;
}
