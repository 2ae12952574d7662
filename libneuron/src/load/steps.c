// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loading: a parsed NEFF into device memory (docs/loading.md).
 *
 * First a plan: programs are looked through for the transfers they trigger, variables and
 * rings get their place.  Then memory, and with it addresses; then descriptors, constants
 * and programs are written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/wait.h"
#include "../device/slots.h"
#include "loader.h"
#include "steps.h"

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

	l->places = calloc(nr_vars + 1, sizeof(*l->places));
	l->io_of_var = calloc(nr_vars + 1, sizeof(*l->io_of_var));
	l->model->io = calloc(nr_vars + 1, sizeof(*l->model->io));
	if (!l->places || !l->io_of_var || !l->model->io)
		return error_no_memory(l->error);
	l->model->usage.shared_scratchpad = l->sg->scratchpad;
	return programs_scan(&l->programs, l->g->isa_version);
}

int load_plan_memory(struct loader *l)
{
	int ret = load_check_resident(l) ?: load_plan_variables(l) ?: load_plan_rings(l);

	if (!ret && l->programs.generated)
		ret = programs_generate(&l->programs);
	if (ret)
		return ret;
	if (!l->programs.vendor)
		programs_patch(&l->programs, l->g);
	return load_plan_programs(l) ?: load_account(l, false);
}

int load_apply(struct loader *l)
{
	struct neuron_load_stats *stats = &l->watch->stats;
	struct neuron_model *m = l->model;
	/* Obstacles of the file are listed with the first part, and are those of both. */
	bool runs = !l->programs.vendor && !m->obstacles.nr;
	int ret = load_apply_contents(l);

	load_lap(l->watch, &stats->copy_ns);
	/* A model that cannot be run has its rings for the accounting only. */
	if (!ret && runs)
		ret = load_fill_rings(l);
	for (size_t i = 0; i < m->nr_fetch && !ret && runs; i++)
		ret = load_fill_fetch(l, &m->rings[i]);
	if (!ret && runs)
		ret = load_resident(l);
	ret = ret ?: load_plan_setup(l);
	for (size_t i = 0; i < m->nr_rings && runs; i++)
		stats->descriptors += 2ull * m->rings[i].count;
	load_lap(l->watch, &stats->rings_ns);
	return ret;
}

void load_free(struct loader *l)
{
	for (size_t k = 0; k < MAX_PARTS; k++) {
		programs_free(&l[k].programs);
		free(l[k].allocs);
		free(l[k].items);
		free(l[k].places);
		free(l[k].io_of_var);
		free(l[k].ring_of_queue);
	}
}

int load_check_cores(struct loader *l, const struct neuron_neff *neff, uint32_t node,
		     uint32_t lnc, uint32_t cores)
{
	uint32_t want = neuron_neff_cores(neff, node);
	uint32_t made = MAX((uint32_t)neff->nr_subgraphs, neff->header.lnc_size);

	if (made > lnc)
		return error_note(l->error, -EOPNOTSUPP,
				  "header: made for logical cores of %u physical cores", made);
	if (want > cores)
		return error_note(l->error, -ERANGE,
				  "header: node %u is made for %u cores, it gets %u", node, want,
				  cores);
	if (!neff->nr_subgraphs)
		return error_note(l->error, -EINVAL, "header: no subgraph");
	return 0;
}

int load_check_whole(struct loader *l, const struct neuron_neff *neff, uint32_t node)
{
	size_t host = 0;

	if (neff_alone(neff, node))
		return 0;
	for (size_t i = 0; i < neff->nr_nodes; i++)
		host += neff->nodes[i].cpu;
	return error_note(l->error, -EOPNOTSUPP,
			  "neff.json: nodes: a network of %zu, %zu of them on the host: only neuron_net_load() runs all",
			  neff->nr_nodes, host);
}

static struct neuron_neff_opts neff_opts(const struct neuron_model_opts *o,
					 struct neuron_neff_error *error)
{
	return (struct neuron_neff_opts){
		.size = sizeof(struct neuron_neff_opts),
		.error = error,
		.node = o->node,
		.borrow = true,
		.max_total = o->max_unpacked,
		.short_constants = o->short_constants,
	};
}

int load_open_neff(struct loader *l, const void *bytes, size_t size,
		   const struct neuron_model_opts *o, bool keep, struct neuron_neff **neff,
		   uint64_t *unpacked)
{
	struct neuron_neff_error error = { .size = sizeof(error) };
	struct neuron_neff_opts opts = neff_opts(o, &error);
	int ret;

	opts.verify_hash = o->verify_hash;
	opts.unpacked = unpacked;
	opts.keep = keep;
	ret = neuron_neff_open(bytes, size, &opts, neff);
	memcpy(l->error->name, error.name, sizeof(error.name));
	return ret ? error_note(l->error, ret, "%s", error.text) : 0;
}

int load_open_node(struct loader *l, struct neuron_neff *file,
		   const struct neuron_model_opts *o, struct neuron_neff **neff)
{
	struct neuron_neff_error error = { .size = sizeof(error) };
	struct neuron_neff_opts opts = neff_opts(o, &error);
	int ret;

	*neff = file;
	ret = o->node ? neuron_neff_open_node(file, &opts, neff) : 0;
	return ret ? error_note(l->error, ret, "%s", error.text) : 0;
}

int load_plan_parts(struct loader *l, const struct neuron_neff *neff,
		    const struct neuron_geometry *g, struct neuron_error *error)
{
	struct neuron_model **next = &l[0].model;
	int ret = 0;

	for (size_t k = 0; k < neff->nr_subgraphs; k++) {
		l[k].g = g;
		l[k].nr_slots = core_slots(g);
		l[k].error = error;
		l[k].max_descriptors = l[0].max_descriptors;
		l[k].sg = &neff->subgraphs[k];
		l[k].model = calloc(1, sizeof(*l[k].model));
		if (!l[k].model)
			return error_no_memory(error);
		l[k].programs.sg = l[k].sg;
		l[k].programs.error = error;
		l[k].programs.obstacles = &l[k].model->obstacles;
		l[k].programs.other = neff->nr_subgraphs > 1 ? &l[1 - k].programs : NULL;
		*next = l[k].model;
		next = &l[k].model->peer;
		for (size_t i = 0; i < sizeof(neff->header.uuid); i++)
			snprintf(l[k].model->uuid + 2 * i, 3, "%02x", neff->header.uuid[i]);
		l[k].model->name = strdup(neff->header.name);
		if (!l[k].model->name)
			return error_no_memory(error);
	}
	for (size_t i = 0; i < neff->nr_obstacles; i++)
		obstacle_add(&l[0].model->obstacles, "%s", neff->obstacles[i]);
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++) {
		l[k].programs.vendor = neff->nr_obstacles;
		ret = plan_programs(&l[k]);
	}
	for (size_t k = 0; k < neff->nr_subgraphs && !ret; k++) {
		programs_check_balance(&l[k].programs);
		l[k].model->dirty = l[k].programs.dirty;
		l[k].model->macs = l[k].programs.macs;
	}
	return ret;
}

int load_join_tensors(struct loader *l, struct neuron_model *m)
{
	m->tensors = calloc(m->nr_io + (m->peer ? m->peer->nr_io : 0) + 1, sizeof(*m->tensors));
	if (!m->tensors)
		return error_no_memory(l->error);
	for (size_t i = 0; i < m->nr_io; i++)
		m->tensors[m->nr_tensors++] = &m->io[i];
	for (size_t i = 0; m->peer && i < m->peer->nr_io; i++) {
		struct io_tensor *t = &m->peer->io[i];
		const struct neuron_neff_var *v = neuron_neff_find_var(l->sg, t->info.name);
		const uint32_t k = v ? l->io_of_var[v - l->sg->vars] : 0;

		if (!k)
			m->tensors[m->nr_tensors++] = t;
		else if (m->io[k - 1].info.bytes != t->info.bytes ||
			 m->io[k - 1].info.usage != t->info.usage)
			return error_note(l->error, -EINVAL,
					  "%s/def.json: var.%.200s is different in the other subgraph",
					  l[1].sg->dir, t->info.name);
	}
	return 0;
}
