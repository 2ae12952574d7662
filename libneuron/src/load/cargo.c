// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files that are to be loaded on paper: what each takes, and who has its cores. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../device/device.h"
#include "../device/opts.h"
#include "cargo.h"

static int add_bytes(uint64_t **list, size_t *nr, size_t *max, uint64_t bytes)
{
	if (array_grow((void **)list, *nr, max, sizeof(**list)))
		return -ENOMEM;
	(*list)[(*nr)++] = bytes;
	return 0;
}

/* Both subgraphs may have the same one. */
static int list_tensors(struct cargo_file *f)
{
	const struct neuron_neff *neff = f->neff;
	int ret = 0;

	for (size_t k = 0; k < neff->nr_subgraphs; k++)
		for (size_t i = 0; i < neff->subgraphs[k].nr_vars && !ret; i++) {
			const struct neuron_neff_var *v = &neff->subgraphs[k].vars[i];

			if (is_tensor(v) &&
			    !(k && is_tensor(neuron_neff_find_var(neff->subgraphs, v->name))))
				ret = add_bytes(&f->tensor, &f->nr_tensors, &f->max_tensors, v->size);
		}
	return ret;
}

static int list_edges(struct cargo_file *f)
{
	int ret = 0;

	for (size_t i = 0; i < f->neff->nr_edges && !ret; i++) {
		const struct neuron_neff_edge *e = &f->neff->edges[i];

		if (e->use != NEURON_NEFF_EDGE_INTERNAL)
			ret = add_bytes(&f->tensor, &f->nr_tensors, &f->max_tensors, e->bytes);
		else if (!neff_on_host(f->neff, e->name))
			ret = add_bytes(&f->edge, &f->nr_edges, &f->max_edges, e->bytes);
	}
	return ret;
}

/* Its process has the logical core. */
static int use_core(struct cargo *c, uint32_t first, uint64_t process)
{
	for (uint32_t nc = first; nc < first + c->o.lnc; nc++) {
		if (c->core[nc].used && c->core[nc].process != process)
			return -EINVAL;
		c->core[nc].used = c->core[nc].opened = true;
		c->core[nc].process = process;
		c->processes |= process != c->file[0].process;
	}
	return 0;
}

/* A program of @f by its plan. */
static int open_node(struct cargo *c, struct cargo_file *f, const struct neuron_plan *plan,
		     uint32_t number, struct loader *l)
{
	struct cargo_node *n = &f->node[f->nr_nodes];
	const struct scratchpad *pad[MAX_PARTS];
	uint32_t lnc = c->o.lnc, left = c->g->nr_cores - f->nc;
	int ret;

	if (plan->first % lnc || plan->first >= left || lnc > left - plan->first ||
	    (f->network && plan->cores > left - plan->first))
		return -EINVAL;
	n->nc = f->nc + plan->first;
	n->plan = *plan;
	ret = f->network ? load_open_node(l, f->neff, &(struct neuron_model_opts){
						.node = number,
						.max_unpacked = c->o.max_unpacked,
						.short_constants = c->o.short_constants,
					  }, &n->neff) : 0;
	if (!f->network)
		n->neff = f->neff;
	if (ret)
		return ret;
	f->nr_nodes++;
	c->nr_nodes++;
	ret = load_check_cores(l, n->neff, number, lnc, plan->cores);
	if (ret)
		return ret;
	for (uint32_t k = 0; k < MAX_PARTS; k++)
		pad[k] = k < lnc ? &c->core[n->nc + k].pad : NULL;
	attempt_init(&n->attempt, c->g, n->neff, pad);
	return use_core(c, n->nc, f->process);
}

static int open_file(struct cargo *c, struct cargo_file *f, const struct neuron_fit_file *from,
		     struct neuron_error *error)
{
	struct loader l = { .error = error };
	uint32_t lnc = c->o.lnc;
	size_t nr = MAX(from->nr_plans, 1);
	int ret;

	if (!from->bytes || !result_valid(from->plan) || from->nc % lnc || nr > NEURON_NEFF_MAX_NODES ||
	    from->nc >= c->g->nr_cores || lnc > c->g->nr_cores - from->nc)
		return -EINVAL;
	f->nc = from->nc;
	f->process = from->process;
	f->plan = load_plan_at(from->plan, 0);
	f->node = calloc(nr, sizeof(*f->node));
	if (!f->node)
		return -ENOMEM;
	ret = load_open_neff(&l, from->bytes, from->length, &(struct neuron_model_opts){
				.node = from->nr_plans ? 0 : c->o.node,
				.max_unpacked = c->o.max_unpacked,
				.short_constants = c->o.short_constants,
			}, from->nr_plans, &f->neff, NULL);
	if (ret)
		return ret;
	f->network = from->nr_plans && !neff_alone(f->neff, 0);
	ret = f->network ? list_edges(f) : list_tensors(f);
	for (size_t i = 0; i < nr && !ret; i++) {
		struct neuron_plan plan = load_plan_at(from->plan, i);

		/* That of a network whose nodes are all on the host has no program. */
		if (plan.nr_parts || !f->network)
			ret = open_node(c, f, &plan, from->nr_plans ? plan.node : c->o.node, &l);
	}
	return ret ?: use_core(c, f->nc, f->process);
}

/* Without a device, one process opens all of its cores. */
static void open_others(struct cargo *c)
{
	for (uint32_t nc = 0; nc < c->g->nr_cores && !c->device && !c->processes; nc++) {
		c->core[nc].opened = true;
		c->core[nc].process = c->file[0].process;
	}
}

/* What the driver will charge to a core. */
static int add_need(struct cargo *c, uint32_t nc)
{
	struct neuron_plan_opts o = c->o;
	struct neuron_report_core sum = { .nc = nc };
	struct neuron_plan *part = calloc(c->nr_nodes + c->nr + 1, sizeof(*part));
	size_t n = 0;
	int ret;

	if (!part)
		return -ENOMEM;
	o.lnc = 1;
	/* Nothing runs on a core without a file, and these on the first of a logical one. */
	if (!c->core[nc].used || nc % c->o.lnc)
		o.collectives = o.computes = 0;
	if (!c->core[nc].used)
		o.profile = 0;
	for (size_t i = 0; i < c->nr; i++) {
		const struct cargo_file *f = &c->file[i];

		for (size_t k = 0; k < f->nr_nodes; k++) {
			const struct cargo_node *node = &f->node[k];

			if (nc < node->nc || nc - node->nc >= node->plan.nr_parts)
				continue;
			part[n].nr_parts = 1;
			part[n++].parts[0] = node->plan.parts[nc - node->nc];
		}
		if (nc != f->nc)
			continue;
		part[n].io = f->plan.io;
		part[n].io_longest = f->plan.io_longest;
		part[n++].edges = f->plan.edges;
	}
	part[0].size = sizeof(*part);
	ret = neuron_plan_sum(part, n, &o, c->microcode, &sum);
	for (size_t i = 0; i < NEURON_MAX_CATEGORIES; i++)
		add_capped(&c->core[nc].need, sum.device_bytes[i]);
	free(part);
	/* Then it is as much as there can be. */
	if (ret == -E2BIG)
		c->core[nc].need = UINT64_MAX;
	return 0;
}

static int read_core(struct cargo *c, uint32_t nc)
{
	struct neuron_core_stats s = { .size = sizeof(s) };
	int ret = c->device ? neuron_core_get_stats(c->device, nc, &s) : 0;

	c->hbms |= 1u << c->g->core_hbm[nc];
	c->core[nc].owner = s.owner == getpid() ? 0 : s.owner;
	c->core[nc].claimed = c->device && !ret && !s.owner && device_core_claimed(c->device, nc);
	return ret ?: add_need(c, nc);
}

int cargo_open(struct cargo *c, const struct neuron_fit_file *files, size_t nr,
	       struct neuron_error *error)
{
	size_t size = nr && result_valid(files) ? files->size : sizeof(*files);
	int ret = 0;

	c->file = calloc(nr + 1, sizeof(*c->file));
	c->order = calloc(nr + 1, sizeof(*c->order));
	if (!c->file || !c->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		c->order[i] = i;
	for (uint32_t nc = 0; nc < c->g->nr_cores; nc++)
		c->core[nc].pad = (struct scratchpad){
			.device = c->device, .nc = nc, .hbm = c->g->core_hbm[nc],
			.page = c->o.scratchpad_page, .contiguous = c->o.contiguous,
		};
	for (; c->nr < nr && !ret; c->nr++) {
		struct neuron_fit_file from = { .size = 0 };

		memcpy(&from, (const char *)files + c->nr * size, MIN(size, sizeof(from)));
		ret = open_file(c, &c->file[c->nr], &from, error);
	}
	open_others(c);
	for (uint32_t nc = 0; nc < c->g->nr_cores && !ret; nc++)
		if (c->core[nc].opened)
			ret = read_core(c, nc);
	return ret;
}

void cargo_close(struct cargo *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		struct cargo_file *f = &c->file[i];

		for (size_t k = 0; k < f->nr_nodes; k++) {
			attempt_free(&f->node[k].attempt);
			if (f->node[k].neff != f->neff)
				neuron_neff_close(f->node[k].neff);
		}
		neuron_neff_close(f->neff);
		free(f->node);
		free(f->tensor);
		free(f->edge);
	}
	free(c->file);
	free(c->order);
}

uint64_t cargo_least(struct cargo_file *f, uint64_t *pieces)
{
	uint64_t sum = 0, n;

	*pieces = 0;
	for (size_t k = 0; k < f->nr_nodes; k++) {
		add_capped(&sum, attempt_least(&f->node[k].attempt, &n));
		*pieces += n;
	}
	return sum;
}
