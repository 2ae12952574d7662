// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files that are to be loaded on paper: what each takes, and who has its cores. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../device/device.h"
#include "../device/opts.h"
#include "cargo.h"

/* Both subgraphs may have the same one. */
static int list_tensors(struct cargo_file *f)
{
	const struct neuron_neff *neff = f->neff;

	for (size_t k = 0; k < neff->nr_subgraphs; k++)
		for (size_t i = 0; i < neff->subgraphs[k].nr_vars; i++) {
			const struct neuron_neff_var *v = &neff->subgraphs[k].vars[i];

			if (!is_tensor(v) ||
			    (k && is_tensor(neuron_neff_find_var(neff->subgraphs, v->name))))
				continue;
			if (array_grow((void **)&f->tensor, f->nr_tensors, &f->max_tensors,
				       sizeof(*f->tensor)))
				return -ENOMEM;
			f->tensor[f->nr_tensors++] = v->size;
		}
	return 0;
}

static int open_file(struct cargo *c, struct cargo_file *f, const struct neuron_fit_file *from,
		     struct neuron_error *error)
{
	const struct scratchpad *pad[MAX_PARTS];
	struct loader l[MAX_PARTS] = { { .error = error } };
	uint32_t lnc = c->o.lnc;
	int ret;

	if (!from->bytes || !result_valid(from->plan) || from->nc % lnc ||
	    from->nc >= c->g->nr_cores || lnc > c->g->nr_cores - from->nc)
		return -EINVAL;
	f->nc = from->nc;
	f->process = from->process;
	/* The caller's may be shorter. */
	memcpy(&f->plan, from->plan, MIN(from->plan->size, sizeof(f->plan)));
	ret = load_open_neff(l, from->bytes, from->length, &(struct neuron_model_opts){
				.node = c->o.node,
				.max_unpacked = c->o.max_unpacked,
				.short_constants = c->o.short_constants,
			}, &f->neff, NULL);
	ret = ret ?: load_check_cores(l, f->neff, c->o.node, lnc, f->plan.cores) ?:
	      list_tensors(f);
	if (ret)
		return ret;
	for (uint32_t k = 0; k < MAX_PARTS; k++)
		pad[k] = k < lnc ? &c->core[f->nc + k].pad : NULL;
	attempt_init(&f->attempt, c->g, f->neff, pad);
	for (uint32_t nc = f->nc; nc < f->nc + lnc; nc++) {
		if (c->core[nc].used && c->core[nc].process != f->process)
			return -EINVAL;
		c->core[nc].used = c->core[nc].opened = true;
		c->core[nc].process = f->process;
		c->processes |= f->process != c->file[0].process;
	}
	return 0;
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
	struct neuron_plan *part = calloc(c->nr + 1, sizeof(*part));
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

		if (nc < f->nc || nc - f->nc >= f->plan.nr_parts)
			continue;
		part[n] = (struct neuron_plan){ .size = sizeof(*part), .nr_parts = 1,
						.parts = { f->plan.parts[nc - f->nc] } };
		if (nc == f->nc) {
			part[n].io = f->plan.io;
			part[n].io_longest = f->plan.io_longest;
		}
		n++;
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
		attempt_free(&c->file[i].attempt);
		neuron_neff_close(c->file[i].neff);
		free(c->file[i].tensor);
	}
	free(c->file);
	free(c->order);
}
