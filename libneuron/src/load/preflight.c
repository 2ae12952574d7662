// SPDX-License-Identifier: LGPL-2.1-or-later
/* What models would take of a device, without one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../device/opts.h"
#include "../isa/transfer.h"
#include "../neff/object.h"
#include "steps.h"

NEURON_EXPORT uint64_t neuron_plan_scratchpad(const struct neuron_plan_opts *opts, uint64_t need)
{
	uint64_t page = opts && opts->contiguous ? SCRATCHPAD_STEP :
			opts && opts->scratchpad_page ? opts->scratchpad_page : SCRATCHPAD_PAGE;

	return need > UINT64_MAX - page ? UINT64_MAX : round_up(need, page);
}

static bool add(uint64_t *sum, uint64_t times, uint64_t bytes)
{
	return __builtin_mul_overflow(times, bytes, &bytes) ||
	       __builtin_add_overflow(*sum, bytes, sum);
}

static bool add_part(uint64_t *bytes, const struct neuron_model_usage *u)
{
	const struct {
		enum neuron_mem_category to;
		uint64_t bytes;
	} parts[] = {
		{ NEURON_MEM_CODE, u->code },
		{ NEURON_MEM_CONSTANTS, u->constants },
		{ NEURON_MEM_SCRATCHPAD_PRIVATE, u->scratchpad },
		{ NEURON_MEM_MISC, u->runtime },
		{ NEURON_MEM_RINGS, u->rings_io },
		{ NEURON_MEM_RINGS, u->rings_spill },
		{ NEURON_MEM_RINGS, u->rings_collectives },
		{ NEURON_MEM_RINGS, u->rings_runtime },
		{ NEURON_MEM_COLLECTIVES, u->collectives },
	};
	bool over = false;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		over |= add(&bytes[parts[i].to], 1, parts[i].bytes);
	return over;
}

struct neuron_plan load_plan_at(const struct neuron_plan *plans, size_t i)
{
	size_t size = result_valid(plans) ? plans->size : sizeof(*plans);
	struct neuron_plan plan = { .nr_parts = 0 };

	memcpy(&plan, (const char *)plans + i * size, size < sizeof(plan) ? size : sizeof(plan));
	return plan;
}

NEURON_EXPORT int neuron_plan_sum(const struct neuron_plan *plans, size_t nr_plans,
				  const struct neuron_plan_opts *opts, uint64_t microcode,
				  struct neuron_report_core *core)
{
	uint64_t *bytes = core->device_bytes, need[MAX_PARTS] = { 0 }, sum = 0;
	struct neuron_plan_opts o;
	uint64_t cores;
	bool over;

	/* The caller's may be shorter.  One that is not valid made no plan. */
	opts_copy(&o, sizeof(o), opts);
	cores = o.lnc == 2 ? 2 : 1;
	memset(bytes, 0, sizeof(core->device_bytes));
	over = microcode > UINT64_MAX - host_page() ||
	       add(&bytes[NEURON_MEM_CODE], cores, round_up(microcode, host_page())) ||
	       add(&bytes[NEURON_MEM_NOTIFICATION], cores, o.profile) ||
	       /* The first core of a logical one does it. */
	       add(&bytes[NEURON_MEM_COLLECTIVES], 1, o.collectives) ||
	       add(&bytes[NEURON_MEM_RINGS], o.computes != 0, COMPUTE_RINGS);
	core->rings_collectives = o.computes ? COMPUTE_RINGS : 0;
	for (size_t i = 0; i < nr_plans; i++) {
		const struct neuron_plan plan = load_plan_at(plans, i);

		over |= add(&bytes[NEURON_MEM_TENSORS], o.io_sets,
			    o.io_single ? plan.io_longest : plan.io);
		over |= add(&bytes[NEURON_MEM_TENSORS], 1, plan.edges);
		for (uint32_t k = 0; k < plan.nr_parts; k++) {
			over |= add_part(bytes, &plan.parts[k]);
			need[k] = MAX(need[k], plan.parts[k].shared_scratchpad);
		}
	}
	for (uint32_t k = 0; k < MAX_PARTS; k++)
		over |= add(&bytes[o.contiguous ? NEURON_MEM_SCRATCHPAD_CONTIGUOUS :
						  NEURON_MEM_SCRATCHPAD], 1,
			    neuron_plan_scratchpad(&o, need[k]));
	for (size_t i = 0; i < NEURON_MAX_CATEGORIES; i++)
		over |= add(&sum, 1, bytes[i]);
	return over ? -E2BIG : 0;
}

NEURON_EXPORT uint64_t neuron_collective_staging(const struct neuron_collective *operation)
{
	struct neuron_collective o;
	uint64_t bytes = 0;

	if (opts_copy(&o, sizeof(o), operation) || !o.ranks)
		return 0;
	if (o.ranks <= NEURON_COMPUTE_MAX_SOURCES)
		o.sums = 0;
	if (o.in > UINT64_MAX - host_page() || o.out > UINT64_MAX - host_page() ||
	    (o.devices && add(&bytes, o.ranks - 1, round_up(o.in, host_page()))) ||
	    (o.in_place && add(&bytes, 1, round_up(o.out, host_page()))) ||
	    add(&bytes, 1, round_up(MIN(o.sums, NEURON_COLLECTIVE_SUMS), host_page())))
		return UINT64_MAX;
	return bytes;
}

/* As the runtime allocates them. */
static int plan_io(struct loader *l, struct neuron_plan *plan)
{
	const struct neuron_model *m = l->model;

	for (size_t i = 0; i < m->nr_tensors; i++) {
		uint64_t bytes = m->tensors[i]->info.bytes;

		if (bytes > UINT64_MAX - host_page() ||
		    add(&plan->io, 1, round_up(bytes, host_page())))
			return error_note(l->error, -E2BIG,
					  "%s/def.json: inputs and outputs have more than 2^64 bytes",
					  l->sg->dir);
		plan->io_longest = MAX(plan->io_longest, round_up(bytes, host_page()));
	}
	return 0;
}

/* What write_items() joins at a time. */
static uint64_t joined(const struct loader *l)
{
	uint64_t most = 0;

	for (size_t i = 0; i < l->nr_allocs; i++) {
		const struct plan_alloc *a = &l->allocs[i];
		const struct plan_item *last = a->first ? &l->items[a->last - 1] : NULL;

		if (a->first != a->last)
			most = MAX(most, last->offset + last->size - l->items[a->first - 1].offset);
	}
	return most;
}

/* Parts are written one after the other; descriptors of tensors stay, to be written again. */
static void plan_host(const struct loader *l, const struct neuron_neff *neff,
		      struct neuron_plan *plan)
{
	uint64_t held = neff_unpacked(neff), most = 0;

	for (size_t k = 0; k < neff->nr_subgraphs; k++) {
		const struct neuron_model *m = l[k].model;
		bool runs = !l[k].programs.vendor && !m->obstacles.nr;
		uint64_t descriptors = 0, kept = 0;

		for (uint32_t i = 0; i < NR_ENGINES; i++)
			held += l[k].programs.code_size[i];
		for (size_t i = m->nr_fetch; i < m->nr_rings && runs; i++) {
			const struct ring *ring = &m->rings[i];
			uint64_t bytes = sizeof(struct neuron_descriptor) *
					 ((uint64_t)ring->side_count[0] + ring->side_count[1]);

			descriptors += bytes;
			kept += ring->io ? bytes : 0;
		}
		most = MAX(most, plan->host_kept + MAX(descriptors, joined(&l[k])));
		plan->host_kept += kept;
	}
	plan->host_peak = held + most;
}

/* All that loading does short of asking a device. */
static int plan_all(struct loader *l, const struct neuron_neff *neff,
		    const struct neuron_geometry *geometry, const struct neuron_plan_opts *o,
		    struct neuron_plan *out)
{
	const struct neuron_model *m;
	const char *text;
	int ret;

	out->cores = neuron_neff_cores(neff, o->node);
	out->node = o->node;
	ret = load_check_cores(l, neff, o->node, o->lnc ? o->lnc : 1, out->cores) ?:
	      load_plan_parts(l, neff, geometry, l->error);
	for (size_t k = 0; !ret && k < neff->nr_subgraphs; k++) {
		l[k].layout.region = o->contiguous ? UINT64_MAX : 0;
		l[k].layout.page = o->scratchpad_page;
		ret = load_plan_memory(&l[k]);
		if (!ret)
			out->parts[out->nr_parts++] = l[k].model->usage;
	}
	m = l[0].model;
	ret = ret ?: load_join_tensors(l, l[0].model) ?: plan_io(l, out);
	if (ret)
		return ret;
	plan_host(l, neff, out);
	snprintf(out->name, sizeof(out->name), "%s", m->name);
	while (out->nr_obstacles < NEURON_MAX_OBSTACLES &&
	       (text = neuron_model_obstacles(m, out->nr_obstacles)))
		snprintf(out->obstacles[out->nr_obstacles++], sizeof(out->obstacles[0]), "%s", text);
	return 0;
}

/* Without the models, which are only on paper. */
static int plan_program(const struct neuron_neff *neff, const struct neuron_geometry *geometry,
			const struct neuron_plan_opts *o, struct neuron_error *error,
			struct neuron_plan *out)
{
	struct loader l[MAX_PARTS] = { { .error = error } };
	int ret = plan_all(l, neff, geometry, o, out);

	load_free(l);
	for (size_t k = 0; k < MAX_PARTS; k++)
		if (l[k].model)
			model_free(l[k].model);
	return ret;
}

static struct neuron_model_opts file_opts(const struct neuron_plan_opts *o)
{
	return (struct neuron_model_opts){
		.verify_hash = o->verify_hash,
		.node = o->node,
		.max_unpacked = o->max_unpacked,
		.short_constants = o->short_constants,
	};
}

/* Defaults, too. */
static int read_opts(const struct neuron_geometry *geometry, const void *bytes,
		     const struct neuron_plan_opts *opts, const struct neuron_plan *plan,
		     struct neuron_plan_opts *o)
{
	int ret = opts_copy(o, sizeof(*o), opts);

	if (ret)
		return ret;
	if (!o->scratchpad_page)
		o->scratchpad_page = SCRATCHPAD_PAGE;
	return !geometry || !bytes || !result_valid(plan) || o->lnc > MAX_PARTS ||
	       !scratchpad_page_valid(o->scratchpad_page) ? -EINVAL : 0;
}

NEURON_EXPORT int neuron_model_plan(const struct neuron_geometry *geometry, const void *bytes,
				    size_t size, const struct neuron_plan_opts *opts,
				    struct neuron_plan *plan)
{
	struct neuron_plan_opts o;
	struct neuron_plan out = { 0 };
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts mo;
	struct neuron_neff *neff = NULL;
	int ret = read_opts(geometry, bytes, opts, plan, &o);

	if (ret)
		return ret;
	mo = file_opts(&o);
	ret = load_open_neff(&(struct loader){ .error = &error }, bytes, size, &mo, false, &neff,
			     NULL) ?:
	      plan_program(neff, geometry, &o, &error, &out);
	neuron_neff_close(neff);
	if (!ret)
		result_copy(plan, &out, sizeof(out));
	else if (result_valid(o.error))
		result_copy(o.error, &error, sizeof(error));
	return ret;
}

/* ---- networks ---------------------------------------------------------------------- */

/* A network, and what its nodes take so far. */
struct network {
	const struct neuron_geometry *geometry;
	const struct neuron_plan_opts *o;
	struct neuron_error *error;
	struct neuron_neff *file;
	struct neuron_plan *plan;	/* of each node on a core */
	size_t nr;
	uint32_t cores;			/* physical ones of all of them */
	struct neuron_plan all;		/* what is not of a node */
};

static int plan_node(struct network *n, const struct neuron_neff_node *node)
{
	struct neuron_plan_opts o = *n->o;
	struct neuron_plan *plan = &n->plan[n->nr];
	struct neuron_model_opts mo;
	struct neuron_neff *neff;
	uint32_t lnc = o.lnc ? o.lnc : 1;
	int ret;

	o.node = node->kelf;
	mo = file_opts(&o);
	ret = load_open_node(&(struct loader){ .error = n->error }, n->file, &mo, &neff);
	if (ret)
		return ret;
	ret = plan_program(neff, n->geometry, &o, n->error, plan);
	if (neff != n->file)
		neuron_neff_close(neff);
	if (!ret && plan->nr_obstacles)
		ret = error_note(n->error, -EOPNOTSUPP, "node %s: %s", node->name,
				 plan->obstacles[0]);
	if (ret)
		return ret;
	snprintf(plan->name, sizeof(plan->name), "%.128s/%.127s", n->file->header.name,
		 node->name);
	plan->first = n->cores;
	plan->io = plan->io_longest = 0;
	n->cores += (plan->cores + lnc - 1) / lnc * lnc;
	/* Parameters and copies of other nodes are there, too. */
	n->all.host_peak = MAX(n->all.host_peak, n->all.host_kept + plan->host_peak);
	n->all.host_kept += plan->host_kept;
	plan->host_peak = plan->host_kept = 0;
	n->nr++;
	return 0;
}

/* What the caller has, and what each request has of its own. */
static int plan_edges(struct network *n)
{
	const struct neuron_neff *neff = n->file;
	uint64_t depth = neff->nr_nodes + 1;

	for (size_t i = 0; i < neff->nr_edges; i++) {
		uint64_t bytes = round_up(neff->edges[i].bytes, host_page());
		bool over;

		if (neff->edges[i].use != NEURON_NEFF_EDGE_INTERNAL) {
			over = add(&n->all.io, 1, bytes);
			n->all.io_longest = MAX(n->all.io_longest, bytes);
		} else if (neff_on_host(neff, neff->edges[i].name)) {
			over = add(&n->all.host_kept, depth, bytes);
		} else {
			over = add(&n->all.edges, depth, bytes);
		}
		if (over)
			return error_note(n->error, -E2BIG,
					  "neff.json: edges have more than 2^64 bytes");
	}
	n->all.host_peak = MAX(n->all.host_peak, n->all.host_kept);
	return 0;
}

/* What neuron_net_load() does, short of asking a device. */
static int plan_network(struct network *n)
{
	const struct neuron_neff *neff = n->file;
	int ret = 0;

	for (size_t i = 0; i < neff->nr_nodes && !ret; i++) {
		const struct neuron_neff_node *node = &neff->nodes[i];

		for (size_t k = 0; k < node->nr_params; k++)
			n->all.host_kept += node->params[k].size;
		if (!node->cpu)
			ret = plan_node(n, node);
	}
	if (!ret && !n->nr) {
		/* Its inputs and outputs need a place. */
		n->plan[n->nr++].cores = 1;
		snprintf(n->plan->name, sizeof(n->plan->name), "%s", neff->header.name);
	}
	ret = ret ?: plan_edges(n);
	n->plan->io = n->all.io;
	n->plan->io_longest = n->all.io_longest;
	n->plan->edges = n->all.edges;
	n->plan->host_peak = n->all.host_peak;
	n->plan->host_kept = n->all.host_kept;
	return ret;
}

static int give_plans(const struct network *n, struct neuron_plan *plans, size_t *nr)
{
	const size_t size = plans->size;

	if (*nr < n->nr)
		return error_note(n->error, -ENOSPC, "%zu nodes are on cores, more than %zu", n->nr,
				  *nr);
	for (size_t i = 0; i < n->nr; i++) {
		struct neuron_plan *to = (struct neuron_plan *)((char *)plans + i * size);

		to->size = size;
		result_copy(to, &n->plan[i], sizeof(n->plan[i]));
	}
	*nr = n->nr;
	return 0;
}

NEURON_EXPORT int neuron_net_plan(const struct neuron_geometry *geometry, const void *bytes,
				  size_t size, const struct neuron_plan_opts *opts,
				  struct neuron_plan *plans, size_t *nr)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan_opts o;
	struct network n = { .geometry = geometry, .o = &o, .error = &error };
	struct neuron_model_opts mo;
	int ret = read_opts(geometry, bytes, opts, plans, &o);

	if (!ret && !nr)
		ret = -EINVAL;
	if (ret)
		return ret;
	o.node = 0;
	mo = file_opts(&o);
	ret = load_open_neff(&(struct loader){ .error = &error }, bytes, size, &mo, true, &n.file,
			     NULL);
	if (!ret) {
		n.plan = calloc(n.file->nr_nodes + 1, sizeof(*n.plan));
		ret = !n.plan ? error_no_memory(&error) : !neff_alone(n.file, 0) ? plan_network(&n) :
		      plan_program(n.file, geometry, &o, &error, n.plan);
	}
	if (!ret) {
		n.nr = MAX(n.nr, 1);
		ret = give_plans(&n, plans, nr);
	}
	free(n.plan);
	neuron_neff_close(n.file);
	if (ret && result_valid(o.error))
		result_copy(o.error, &error, sizeof(error));
	return ret;
}
