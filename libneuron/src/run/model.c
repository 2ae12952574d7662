// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models: loading, what they are, unloading; and the plan of one without a device.
 * A NEFF for logical cores of two has a subgraph for each of them; the first one is
 * the model that callers see, the other is its peer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../load/loader.h"
#include "../device/stats.h"
#include "../../common/wait.h"

#define MAX_PARTS 2u

void load_lap(struct stopwatch *watch, uint64_t *sum)
{
	uint64_t now;

	if (!watch->on)
		return;
	now = now_ns();
	*sum += now - watch->last;
	watch->last = now;
}

/* What the model needs, short of the scratchpad; nothing here asks a device. */
static int plan_programs(struct loader *l)
{
	size_t nr_vars = l->sg->nr_vars;
	int ret;

	l->places = calloc(nr_vars + 1, sizeof(*l->places));
	l->scratch = calloc(nr_vars + 1, sizeof(*l->scratch));
	l->io_of_var = calloc(nr_vars + 1, sizeof(*l->io_of_var));
	l->model->io = calloc(nr_vars + 1, sizeof(*l->model->io));
	if (!l->places || !l->scratch || !l->io_of_var || !l->model->io)
		return load_no_memory(l);
	ret = load_scan_programs(l);
	if (!ret)
		load_plan_need(l);
	return ret;
}

/* The rest, when it is known which parts of the scratchpad there are in one piece. */
static int plan_memory(struct loader *l)
{
	int ret = load_plan_variables(l);

	if (!ret)
		ret = load_plan_rings(l);
	if (!ret)
		ret = load_plan_ring_memory(l);
	if (!ret && l->generated)
		ret = load_generate_program(l);
	if (!ret && !l->vendor)
		load_patch_programs(l);
	if (!ret)
		ret = load_plan_programs(l);
	if (!ret)
		ret = load_account(l, false);
	return ret;
}

static int apply(struct loader *l)
{
	struct neuron_load_stats *stats = &l->watch->stats;
	struct neuron_model *m = l->model;
	/* Obstacles of the file are listed with the first part, and are those of both. */
	bool runs = !l->vendor && !m->nr_obstacles;
	int ret = load_apply_memory(l);

	load_lap(l->watch, &stats->memory_ns);
	if (!ret)
		ret = load_apply_contents(l);
	load_lap(l->watch, &stats->copy_ns);
	/* A model that cannot be run has its rings for the accounting only. */
	if (!ret && runs)
		ret = load_fill_rings(l);
	for (size_t i = 0; i < m->nr_fetch && !ret && runs; i++)
		ret = load_fill_fetch(l, &m->rings[i]);
	if (!ret)
		ret = load_plan_setup(l);
	for (size_t i = 0; i < m->nr_rings && runs; i++)
		stats->descriptors += 2ull * m->rings[i].count;
	load_lap(l->watch, &stats->rings_ns);
	return ret;
}

static void free_loader(struct loader *l)
{
	for (uint32_t i = 0; i < NR_ENGINES; i++)
		free(l->code[i]);
	free(l->allocs);
	free(l->items);
	free(l->places);
	free(l->scratch);
	free(l->io_of_var);
	free(l->triggers);
	free(l->ring_of_queue);
}

static void free_model(struct neuron_model *model)
{
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
	labels_put(model->labels);
	free(model->io);
	free(model->tensors);
	free(model->mems);
	free(model->rings);
	free(model->setup);
	free(model->name);
	free(model);
}

/* @lnc: physical cores of the logical one; @cores: that the caller has for it. */
static int check_cores(struct loader *l, const struct neuron_neff *neff, uint32_t node,
		       uint32_t lnc, uint32_t cores)
{
	uint32_t want = neuron_neff_cores(neff, node);

	if (neff->nr_subgraphs > lnc || neff->header.lnc_size > lnc)
		return load_fail(l, NEURON_ERROR_NEFF_UNSUPPORTED, -EOPNOTSUPP,
				 "header: made for logical cores of %u physical cores",
				 neff->header.lnc_size > neff->nr_subgraphs ?
				 neff->header.lnc_size : (unsigned int)neff->nr_subgraphs);
	if (want > cores)
		return load_fail(l, NEURON_ERROR_CORES, -ERANGE,
				 "header: node %u is made for %u cores, it gets %u", node, want,
				 cores);
	if (!neff->nr_subgraphs)
		return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL, "header: no subgraph");
	return 0;
}

static int open_neff(struct loader *l, const void *bytes, size_t size,
		     const struct neuron_model_opts *o, struct neuron_neff **neff,
		     uint64_t *unpacked)
{
	struct neuron_neff_error error = { .class = NEURON_NEFF_OK };
	struct neuron_neff_opts opts = {
		.size = sizeof(opts),
		.verify_hash = o->verify_hash,
		.error = &error,
		.node = o->node,
		.borrow = true,
		.unpacked = unpacked,
		.max_total = o->max_unpacked,
		.short_constants = o->short_constants,
	};
	int ret = neuron_neff_open(bytes, size, &opts, neff);

	memcpy(l->error->name, error.name, sizeof(error.name));
	if (!ret)
		return 0;
	return load_fail(l, error.class == NEURON_NEFF_UNSUPPORTED ?
			 NEURON_ERROR_NEFF_UNSUPPORTED :
			 ret == -ENOMEM ? NEURON_ERROR_MEMORY :
			 error.class == NEURON_NEFF_RESOURCE ? NEURON_ERROR_LIMIT :
			 NEURON_ERROR_NEFF_INVALID, ret, "%s", error.text);
}

/* What both parts need to know of the file: programs, and semaphores of each other. */
static int plan_parts(struct loader *l, const struct neuron_neff *neff,
		      const struct neuron_geometry *g, struct neuron_error *error)
{
	struct neuron_model **next = &l[0].model;
	int ret = 0;

	for (size_t k = 0; k < neff->nr_subgraphs; k++) {
		l[k].g = g;
		l[k].nr_slots = core_slots(g);
		l[k].error = error;
		l[k].sg = &neff->subgraphs[k];
		l[k].other = neff->nr_subgraphs > 1 ? &l[1 - k] : NULL;
		l[k].model = calloc(1, sizeof(*l[k].model));
		if (!l[k].model)
			return load_no_memory(&l[0]);
		*next = l[k].model;
		next = &l[k].model->peer;
		for (size_t i = 0; i < sizeof(neff->header.uuid); i++)
			snprintf(l[k].model->uuid + 2 * i, 3, "%02x", neff->header.uuid[i]);
		l[k].model->name = strdup(neff->header.name);
		if (!l[k].model->name)
			return load_no_memory(&l[0]);
	}
	for (size_t i = 0; i < neff->nr_obstacles; i++)
		load_obstacle(&l[0], "%s", neff->obstacles[i]);
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++) {
		l[k].vendor = neff->nr_obstacles;
		ret = plan_programs(&l[k]);
	}
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++)
		load_check_balance(&l[k]);
	return ret;
}

/* Inputs and outputs by name; both parts may have the same one. */
static int join_tensors(struct loader *l, struct neuron_model *m)
{
	m->tensors = calloc(m->nr_io + (m->peer ? m->peer->nr_io : 0) + 1, sizeof(*m->tensors));
	if (!m->tensors)
		return load_no_memory(l);
	for (size_t i = 0; i < m->nr_io; i++)
		m->tensors[m->nr_tensors++] = &m->io[i];
	for (size_t i = 0; m->peer && i < m->peer->nr_io; i++) {
		struct io_tensor *t = &m->peer->io[i];
		size_t k;

		for (k = 0; k < m->nr_io && strcmp(m->io[k].name, t->name); k++)
			;
		if (k == m->nr_io)
			m->tensors[m->nr_tensors++] = t;
		else if (m->io[k].bytes != t->bytes || m->io[k].usage != t->usage)
			return load_fail(l, NEURON_ERROR_NEFF_INVALID, -EINVAL,
					 "%s/def.json: var.%.200s is different in the other subgraph",
					 l[1].sg->dir, t->name);
	}
	return 0;
}

static int load_parts(struct loader *l, struct neuron_core *core, const struct neuron_neff *neff,
		      struct stopwatch *watch, struct neuron_error *error)
{
	struct neuron_core *cores[MAX_PARTS] = { core, core->peer };
	int ret = plan_parts(l, neff, &core->device->geometry, error);

	load_lap(watch, &watch->stats.plan_ns);
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++) {
		l[k].core = cores[k];
		l[k].watch = watch;
		l[k].nc = cores[k]->nc;
		l[k].model->core = core_get(cores[k]);
		/* It could be what there is no room for. */
		core_take_back(cores[k]);
		ret = load_apply_scratchpad(&l[k]);
		load_lap(watch, &watch->stats.memory_ns);
		if (!ret)
			ret = plan_memory(&l[k]);
		load_lap(watch, &watch->stats.plan_ns);
		if (!ret)
			ret = apply(&l[k]);
	}
	return ret ? ret : join_tensors(l, l[0].model);
}

/* While it still has what it got. */
static void tell_refusal(struct loader *l, const struct neuron_model_opts *o)
{
	struct neuron_report_model so_far = {
		.name = l[0].model->name, .usage.size = sizeof(so_far.usage),
	};

	for (size_t k = 0; k < MAX_PARTS; k++)
		if (l[k].model)
			load_account(&l[k], true);
	neuron_model_get_usage(l[0].model, &so_far.usage);
	o->refused(o->refused_data, &l->error->memory, &so_far);
}

/*
 * @bytes of a file, or one that was opened already: *@neff is closed unless it came from the
 * caller.
 */
static int load(struct neuron_core *core, const void *bytes, size_t size, struct neuron_neff *neff,
		const struct neuron_model_opts *o, struct neuron_model **model)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct loader l[MAX_PARTS] = { { .error = &error } };
	struct stopwatch watch = { .on = result_valid(o->stats) };
	struct neuron_load_stats *stats = &watch.stats;
	uint32_t lnc = core->peer ? 2 : 1;
	uint64_t began = 0;
	int ret = 0;

	if (watch.on)
		watch.last = began = now_ns();
	if (bytes)
		ret = open_neff(l, bytes, size, o, &neff, watch.on ? &watch.last : NULL);
	if (!ret)
		ret = check_cores(l, neff, o->node, lnc, o->cores ? o->cores : lnc);
	if (!ret) {
		stats->archive_ns = watch.last - began;
		load_lap(&watch, &stats->json_ns);
		ret = load_parts(l, core, neff, &watch, &error);
		if (ret && o->refused && error.memory.reason != NEURON_MEM_REASON_NONE)
			tell_refusal(l, o);
	}
	for (size_t k = 0; k < MAX_PARTS; k++)
		free_loader(&l[k]);
	if (bytes)
		neuron_neff_close(neff);
	if (ret) {
		stats_load(core->device, core->nc, ret);
		neuron_model_unload(l[0].model);
		if (result_valid(o->error))
			result_copy(o->error, &error, sizeof(error));
		return ret;
	}
	for (const struct neuron_model *m = l[0].model; m; m = m->peer)
		stats_load(core->device, m->core->nc, 0);
	if (watch.on) {
		stats->total_ns = now_ns() - began;
		result_copy(o->stats, stats, sizeof(*stats));
	}
	*model = l[0].model;
	return 0;
}

int model_load_opened(struct neuron_core *core, struct neuron_neff *neff,
		      const struct neuron_model_opts *opts, struct neuron_model **model)
{
	return load(core, NULL, 0, neff, opts, model);
}

NEURON_EXPORT int neuron_model_load(struct neuron_core *core, const void *bytes, size_t size,
				    const struct neuron_model_opts *opts,
				    struct neuron_model **model)
{
	struct neuron_model_opts o;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!model || !bytes)
		return -EINVAL;
	if (device_inherited(core->device))
		return -EACCES;
	return load(core, bytes, size, NULL, &o, model);
}

static void leave_core(struct neuron_core *core, const struct neuron_model *model)
{
	bool held;

	pthread_mutex_lock(&core->lock);
	held = core->held;
	core_release_queues(core, model);
	/* One that was held before would make every model wait for a core that is stuck. */
	if (core->held && !held)
		core_reset_locked(core);
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
	neuron_model_unload(model->peer);
	core = model->core;
	/* A part that loading did not get to has none. */
	if (core && !device_inherited(core->device))
		leave_core(core, model);
	free_model(model);
	if (core)
		core_put(core);
}

/* ---- planning ---------------------------------------------------------------------- */

NEURON_EXPORT uint64_t neuron_plan_scratchpad(const struct neuron_plan_opts *opts, uint64_t need)
{
	uint64_t page = opts->contiguous ? SCRATCHPAD_STEP :
			opts->scratchpad_page ? opts->scratchpad_page : SCRATCHPAD_PAGE;

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

/* Each of the caller's may be shorter. */
static struct neuron_plan plan_at(const struct neuron_plan *plans, size_t i)
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
	over = microcode > UINT64_MAX - NEURON_PAGE ||
	       add(&bytes[NEURON_MEM_CODE], cores, round_up(microcode, NEURON_PAGE)) ||
	       add(&bytes[NEURON_MEM_NOTIFICATION], cores, o.profile) ||
	       add(&bytes[NEURON_MEM_COLLECTIVES], cores, o.collectives);
	for (size_t i = 0; i < nr_plans; i++) {
		const struct neuron_plan plan = plan_at(plans, i);

		over |= add(&bytes[NEURON_MEM_TENSORS], o.io_sets,
			    o.io_single ? plan.io_longest : plan.io);
		for (uint32_t k = 0; k < plan.nr_parts; k++) {
			over |= add_part(bytes, &plan.parts[k]);
			if (plan.parts[k].shared_scratchpad > need[k])
				need[k] = plan.parts[k].shared_scratchpad;
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

/* As the runtime allocates them. */
static int plan_io(struct loader *l, struct neuron_plan *plan)
{
	const struct neuron_model *m = l->model;

	for (size_t i = 0; i < m->nr_tensors; i++) {
		uint64_t bytes = m->tensors[i]->bytes;

		if (bytes > UINT64_MAX - NEURON_PAGE ||
		    add(&plan->io, 1, round_up(bytes, NEURON_PAGE)))
			return load_fail(l, NEURON_ERROR_LIMIT, -E2BIG,
					 "%s/def.json: inputs and outputs have more than 2^64 bytes",
					 l->sg->dir);
		if (round_up(bytes, NEURON_PAGE) > plan->io_longest)
			plan->io_longest = round_up(bytes, NEURON_PAGE);
	}
	return 0;
}

NEURON_EXPORT int neuron_model_plan(const struct neuron_geometry *geometry, const void *bytes,
				    size_t size, const struct neuron_plan_opts *opts,
				    struct neuron_plan *plan)
{
	struct neuron_plan_opts o;
	struct neuron_plan out = { 0 };
	struct neuron_error error = { .size = sizeof(error) };
	struct loader l[MAX_PARTS] = { { .error = &error } };
	struct neuron_neff *neff = NULL;
	int ret;

	ret = opts_copy(&o, sizeof(o), opts);
	if (ret)
		return ret;
	if (!o.scratchpad_page)
		o.scratchpad_page = SCRATCHPAD_PAGE;
	if (!geometry || !bytes || !result_valid(plan) || o.lnc > MAX_PARTS ||
	    !scratchpad_page_valid(o.scratchpad_page))
		return -EINVAL;
	ret = open_neff(l, bytes, size, &(struct neuron_model_opts){
				.node = o.node,
				.max_unpacked = o.max_unpacked,
				.short_constants = o.short_constants,
			}, &neff, NULL);
	if (!ret) {
		out.cores = neuron_neff_cores(neff, o.node);
		ret = check_cores(l, neff, o.node, o.lnc ? o.lnc : 1, out.cores);
	}
	if (!ret)
		ret = plan_parts(l, neff, geometry, &error);
	for (size_t k = 0; !ret && k < neff->nr_subgraphs; k++) {
		l[k].layout.region = o.contiguous ? UINT64_MAX : 0;
		l[k].layout.page = o.scratchpad_page;
		ret = plan_memory(&l[k]);
		if (!ret)
			out.parts[out.nr_parts++] = l[k].model->usage;
	}
	if (!ret)
		ret = join_tensors(l, l[0].model);
	if (!ret)
		ret = plan_io(l, &out);
	if (!ret)
		snprintf(out.name, sizeof(out.name), "%s", l[0].model->name);
	for (const char *text; !ret && out.nr_obstacles < NEURON_MAX_OBSTACLES; out.nr_obstacles++) {
		text = neuron_model_obstacles(l[0].model, out.nr_obstacles);
		if (!text)
			break;
		snprintf(out.obstacles[out.nr_obstacles], sizeof(out.obstacles[0]), "%s", text);
	}
	for (size_t k = 0; k < MAX_PARTS; k++) {
		free_loader(&l[k]);
		if (l[k].model)
			free_model(l[k].model);
	}
	neuron_neff_close(neff);
	if (!ret)
		result_copy(plan, &out, sizeof(out));
	else if (result_valid(o.error))
		result_copy(o.error, &error, sizeof(error));
	return ret;
}

/* ---- what a model is --------------------------------------------------------------- */

NEURON_EXPORT const char *neuron_model_uuid(const struct neuron_model *model)
{
	return model->uuid;
}

NEURON_EXPORT const char *neuron_model_name(const struct neuron_model *model)
{
	return model->name;
}

NEURON_EXPORT size_t neuron_model_tensor_count(const struct neuron_model *model)
{
	return model->nr_tensors;
}

NEURON_EXPORT int neuron_model_tensor_info(const struct neuron_model *model, size_t index,
					   struct neuron_tensor_info *info)
{
	struct neuron_tensor_info out = { 0 };
	const struct io_tensor *t;

	if (index >= model->nr_tensors || !result_valid(info))
		return -EINVAL;
	t = model->tensors[index];
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
	struct neuron_model_usage sum = { 0 };

	if (!result_valid(usage))
		return -EINVAL;
	for (const struct neuron_model *m = model; m; m = m->peer) {
		sum.code += m->usage.code;
		sum.constants += m->usage.constants;
		sum.scratchpad += m->usage.scratchpad;
		sum.runtime += m->usage.runtime;
		sum.rings_io += m->usage.rings_io;
		sum.rings_spill += m->usage.rings_spill;
		sum.rings_runtime += m->usage.rings_runtime;
		sum.rings_collectives += m->usage.rings_collectives;
		sum.collectives += m->usage.collectives;
		sum.shared_scratchpad += m->usage.shared_scratchpad;
		sum.descriptors += m->usage.descriptors;
	}
	result_copy(usage, &sum, sizeof(sum));
	return 0;
}

NEURON_EXPORT const char *neuron_model_obstacles(const struct neuron_model *model, size_t index)
{
	for (; model; model = model->peer) {
		if (index < model->nr_obstacles)
			return model->obstacles[index];
		index -= model->nr_obstacles;
	}
	return NULL;
}

NEURON_EXPORT const char *neuron_model_obstacle(const struct neuron_model *model)
{
	return neuron_model_obstacles(model, 0);
}
