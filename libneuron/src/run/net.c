// SPDX-License-Identifier: LGPL-2.1-or-later
/* Networks: loading and unloading, and what they consist of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../device/opts.h"
#include "../load/steps.h"
#include "net.h"

#define MAX_DEPTH 1024u
#define DEFAULT_TIMEOUT_MS 30000

static void add_tensor(struct neuron_net *net, const struct neuron_neff_var *v)
{
	struct neuron_neff_node *node = &net->single;
	bool in = v->type == NEURON_NEFF_VAR_INPUT;

	net->edges[net->nr_edges++] = (struct neuron_neff_edge){
		.name = v->name,
		.use = in ? NEURON_NEFF_EDGE_INPUT : NEURON_NEFF_EDGE_OUTPUT,
		.bytes = v->size,
	};
	if (in)
		node->inputs[node->nr_inputs++] = v->name;
	else
		node->outputs[node->nr_outputs++] = v->name;
}

/*
 * A NEFF without nodes is a network of one, whose edges are its inputs and outputs, in the
 * order of its model.  Both subgraphs may have the same one.
 */
static int make_single(struct neuron_net *net)
{
	const struct neuron_neff_subgraph *sg = net->neff->subgraphs;
	struct neuron_neff_node *node = &net->single;
	size_t most = 1;

	for (size_t k = 0; k < net->neff->nr_subgraphs; k++)
		most += sg[k].nr_vars;
	net->edges = calloc(most, sizeof(*net->edges));
	net->own_edges = true;
	node->inputs = calloc(most, sizeof(*node->inputs));
	node->outputs = calloc(most, sizeof(*node->outputs));
	if (!net->edges || !node->inputs || !node->outputs)
		return -ENOMEM;
	node->name = sg->name;
	for (size_t k = 0; k < net->neff->nr_subgraphs; k++)
		for (size_t i = 0; i < sg[k].nr_vars; i++) {
			const struct neuron_neff_var *v = &sg[k].vars[i];

			if (is_tensor(v) &&
			    !(k && is_tensor(neuron_neff_find_var(sg, v->name))))
				add_tensor(net, v);
		}
	return 0;
}

/*
 * Dtype and shape come from the node that has the tensor; if there is one node, it has that
 * of an edge at the same place.
 */
static void describe(const struct neuron_net *net, uint32_t e, struct neuron_tensor_info *info)
{
	for (size_t s = 0; s < net->nr_stages; s++) {
		const struct neuron_model *m = net->stages[s].model;

		for (size_t i = 0; m && i < m->nr_tensors; i++) {
			const struct neuron_tensor_info *t =
				&m->tensors[(e + i) % m->nr_tensors]->info;

			if (strcmp(t->name, net->edges[e].name))
				continue;
			info->dtype = t->dtype;
			info->ndim = t->ndim;
			memcpy(info->shape, t->shape, sizeof(info->shape));
			return;
		}
	}
	info->dtype = NEURON_NEFF_DT_UINT8;
	info->ndim = 1;
	info->shape[0] = (uint32_t)net->edges[e].bytes;
}

static int list_io(struct neuron_net *net)
{
	net->io_edges = calloc(net->nr_edges + 1, sizeof(*net->io_edges));
	net->info = calloc(net->nr_edges + 1, sizeof(*net->info));
	if (!net->io_edges || !net->info)
		return -ENOMEM;
	for (uint32_t e = 0; e < net->nr_edges; e++) {
		struct neuron_tensor_info *info = &net->info[net->nr_io];

		if (net->edges[e].use == NEURON_NEFF_EDGE_INTERNAL)
			continue;
		info->name = net->edges[e].name;
		info->usage = net->edges[e].use == NEURON_NEFF_EDGE_INPUT ? NEURON_TENSOR_INPUT :
									    NEURON_TENSOR_OUTPUT;
		info->bytes = net->edges[e].bytes;
		describe(net, e, info);
		net->io_edges[net->nr_io++] = e;
	}
	return 0;
}

static void net_free(struct neuron_net *net)
{
	struct neuron_pool *pool = net->group ? net->group->pool : NULL;
	bool inherited = pool && device_inherited(pool->cores[0]->device);

	free_slots(net);
	free_stages(net);
	if (pool) {
		pool_lock(pool);
		net->group->nr_nets--;
		pool_unlock(pool);
		if (net->implicit)
			neuron_group_destroy(net->group);
	}
	if (net->own_edges)
		free(net->edges);
	free(net->single.inputs);
	free(net->single.outputs);
	neuron_neff_close(net->neff);
	if (net->eventfd >= 0)
		close(net->eventfd);
	/* In a child it would wait for ever for threads that waited for it in the parent. */
	if (!inherited) {
		pthread_mutex_destroy(&net->lock);
		pthread_cond_destroy(&net->progress);
	}
	free(net->io_edges);
	free(net->info);
	free(net);
}

static int open_neff(struct neuron_net *net, const void *bytes, size_t size,
		     const struct neuron_net_opts *o, struct neuron_error *error)
{
	struct loader l = { .error = error };
	int ret = load_open_neff(&l, bytes, size, &(struct neuron_model_opts){
					.verify_hash = o->verify_hash,
					.max_unpacked = o->max_unpacked,
					.short_constants = o->short_constants,
				}, true, &net->neff, NULL);
	size_t nr = 0;

	if (ret)
		return ret;
	if (net->neff->nr_nodes) {
		net->edges = net->neff->edges;
		net->nr_edges = net->neff->nr_edges;
		nr = net->neff->nr_nodes;
	} else {
		ret = make_single(net);
		nr = 1;
	}
	net->stages = calloc(nr, sizeof(*net->stages));
	if (ret || !net->stages)
		return -ENOMEM;
	net->nr_stages = nr;
	for (size_t i = 0; i < nr; i++) {
		net->stages[i].net = net;
		net->stages[i].object_fd = -1;
		net->stages[i].node = net->neff->nr_nodes ? &net->neff->nodes[i] : &net->single;
		net->stages[i].cores = neuron_neff_cores(net->neff, net->stages[i].node->kelf);
	}
	return 0;
}

/* The group, and the mode that follows from it. */
static int choose_group(struct neuron_net *net, struct neuron_pool *pool,
			struct neuron_group *group, struct neuron_error *error)
{
	size_t want = 0, least = 1;
	int ret;

	for (size_t i = 0; i < net->nr_stages; i++) {
		const struct stage *s = &net->stages[i];

		if (s->node->cpu)
			continue;
		want += group_cores(s, pool->cores[0]);
		least = MAX(least, group_cores(s, pool->cores[0]));
	}
	if (!group) {
		/* One core at least: memory needs a place. */
		ret = neuron_group_create(pool, want ? want : 1, &group);
		if (ret)
			return want > pool->nr ?
			       error_note(error, -ERANGE, "%zu cores wanted, there are %zu", want,
					  pool->nr) :
			       error_note(error, ret, "%zu cores wanted, %zu are free", want,
					  neuron_pool_free(pool));
		net->implicit = true;
	} else if (group->pool != pool) {
		return -EINVAL;
	} else if (group->nr < least) {
		return error_note(error, -ERANGE, "a node is made for %zu cores, the group has %zu",
				  least, group->nr);
	}
	pthread_mutex_lock(&pool->lock);
	group->nr_nets++;
	pthread_mutex_unlock(&pool->lock);
	net->group = group;
	net->mode = group->nr >= want ? NEURON_NET_NORMAL : NEURON_NET_SHARED;
	return 0;
}

static bool opts_valid(const struct neuron_net_opts *o)
{
	if (o->depth > MAX_DEPTH || (o->nr_ops && !o->ops))
		return false;
	for (size_t i = 0; i < o->nr_ops; i++)
		if (!o->ops[i].name || !o->ops[i].fn)
			return false;
	return true;
}

NEURON_EXPORT int neuron_net_load(struct neuron_pool *pool, const void *bytes, size_t size,
				  const struct neuron_net_opts *opts, struct neuron_net **out)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_net_opts o;
	struct neuron_net *net;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!opts_valid(&o))
		return error_tell(o.error, &error, -EINVAL);
	if (device_inherited(pool->cores[0]->device))
		return error_tell(o.error, &error, -EACCES);
	net = calloc(1, sizeof(*net));
	if (!net)
		return error_tell(o.error, &error, -ENOMEM);
	pthread_mutex_init(&net->lock, NULL);
	pthread_cond_init(&net->progress, NULL);
	net->eventfd = -1;
	net->timeout_ms = o.timeout_ms ? o.timeout_ms : DEFAULT_TIMEOUT_MS;
	ret = open_neff(net, bytes, size, &o, &error) ?:
	      choose_group(net, pool, o.group, &error) ?: load_stages(net, &o, &error);
	/* What the nodes needed of it is on the devices. */
	if (net->neff)
		neuron_neff_forget(net->neff);
	/* The theory of operation's starting point; a shared one has no pipeline. */
	net->depth = o.depth ? o.depth : (uint32_t)net->nr_stages + 1;
	ret = ret ?: list_io(net) ?: make_bounce(net) ?: make_slots(net, &error) ?:
	      start_threads(net);
	if (!ret && net->implicit)
		ret = neuron_net_start(net);
	if (ret) {
		neuron_net_unload(net);
		return error_tell(o.error, &error, ret);
	}
	*out = net;
	return 0;
}

NEURON_EXPORT void neuron_net_unload(struct neuron_net *net)
{
	if (!net)
		return;
	/* In a child there are no threads, and nothing on the device is its own. */
	if (net->group && !device_inherited(net->group->cores[0]->device)) {
		size_t step = net->mode == NEURON_NET_SHARED ? net->nr_stages : 1;

		neuron_net_stop(net);
		pthread_mutex_lock(&net->lock);
		net->quit = true;
		pthread_cond_broadcast(&net->progress);
		pthread_mutex_unlock(&net->lock);
		for (size_t i = 0; i < net->nr_threads; i++)
			pthread_join(net->stages[i * step].thread, NULL);
	}
	net_free(net);
}

NEURON_EXPORT enum neuron_net_mode neuron_net_mode(const struct neuron_net *net)
{
	return net->mode;
}

NEURON_EXPORT struct neuron_core *neuron_net_core(const struct neuron_net *net)
{
	return net->group->cores[0];
}

NEURON_EXPORT size_t neuron_net_tensor_count(const struct neuron_net *net)
{
	return net->nr_io;
}

NEURON_EXPORT int neuron_net_tensor_info(const struct neuron_net *net, size_t index,
					 struct neuron_tensor_info *info)
{
	if (index >= net->nr_io || !result_valid(info))
		return -EINVAL;
	result_copy(info, &net->info[index], sizeof(net->info[index]));
	return 0;
}

NEURON_EXPORT size_t neuron_net_node_count(const struct neuron_net *net)
{
	return net->nr_stages;
}

NEURON_EXPORT int neuron_net_node_stats(struct neuron_net *net, size_t index,
					struct neuron_node_stats *stats)
{
	struct neuron_node_stats s = { .usage.size = sizeof(s.usage) };
	struct stage *stage;

	if (index >= net->nr_stages || !result_valid(stats))
		return -EINVAL;
	stage = &net->stages[index];
	s.name = stage->node->name;
	if (stage->model) {
		s.core = stage->model->core;
		neuron_model_get_usage(stage->model, &s.usage);
	}
	pthread_mutex_lock(&net->lock);
	s.runs = stage->runs;
	s.failed = stage->failed;
	s.busy_ns = stage->busy;
	s.longest_ns = stage->longest;
	pthread_mutex_unlock(&net->lock);
	result_copy(stats, &s, sizeof(s));
	return 0;
}
