// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loading the nodes of a network: models onto cores, operations of the host. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../load/steps.h"
#include "net.h"

/* The reader has seen that there is one.  Names are mostly in the order of the edges. */
static uint32_t edge_index(const struct neuron_net *net, const char *name, size_t from)
{
	while (strcmp(net->edges[from].name, name))
		from = (from + 1) % net->nr_edges;
	return (uint32_t)from;
}

static uint32_t *edge_indices(const struct neuron_net *net, const char *const *names, size_t nr)
{
	uint32_t *list = calloc(nr + 1, sizeof(*list));

	for (size_t i = 0; list && i < nr; i++)
		list[i] = edge_index(net, names[i], i ? list[i - 1] : 0);
	return list;
}

/*
 * The function with the name of the operation; the file never touches a disk.  Objects
 * are known by their path, so the descriptor stays as long as the object does.
 */
static int load_object(struct stage *stage, struct neuron_error *error)
{
	const struct neuron_neff_node *node = stage->node;
	char path[32];
	int ret, fd = memfd_create("neff-object", MFD_CLOEXEC);

	stage->object_fd = fd;
	if (fd < 0)
		return error_note(error, -errno, "node %s: memfd_create: %s", node->name,
				  strerror(errno));
	ret = write_bytes(fd, node->object, node->object_size);
	if (ret)
		return error_note(error, ret, "node %s: %s", node->name, strerror(-ret));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	stage->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!stage->object)
		return error_note(error, -EINVAL, "node %s: %s", node->name, dlerror());
	*(void **)&stage->op.fn = dlsym(stage->object, node->op);
	if (!stage->op.fn)
		return error_note(error, -EINVAL, "node %s: its object has no function %s",
				  node->name, node->op);
	return 0;
}

static int find_op(struct stage *stage, const struct neuron_net_opts *o,
		   struct neuron_error *error)
{
	const struct neuron_neff_node *node = stage->node;

	for (size_t i = 0; i < o->nr_ops; i++)
		if (!strcmp(o->ops[i].name, node->op)) {
			stage->op = o->ops[i];
			return 0;
		}
	if (node->object && o->load_objects)
		return load_object(stage, error);
	if (node->object)
		return error_note(error, -EPERM,
				  "node %s: operation %s is in a shared object, which is not loaded",
				  node->name, node->op);
	return error_note(error, -ENOENT, "node %s: no operation %s was registered", node->name,
			  node->op);
}

/* The file goes when the network is loaded. */
static int copy_params(struct stage *stage)
{
	const struct neuron_neff_node *node = stage->node;

	stage->params = calloc(node->nr_params + 1, sizeof(*stage->params));
	if (!stage->params)
		return -ENOMEM;
	for (size_t i = 0; i < node->nr_params; i++) {
		stage->params[i] = malloc(node->params[i].size + 1);
		if (!stage->params[i])
			return -ENOMEM;
		memcpy(stage->params[i], node->params[i].data, node->params[i].size);
	}
	return 0;
}

size_t group_cores(const struct stage *s, const struct neuron_core *core)
{
	size_t lnc = core->peer ? 2 : 1;

	return (s->cores + lnc - 1) / lnc;
}

/* The archive is unpacked once for all nodes. */
static int load_model(struct neuron_net *net, struct stage *s, struct neuron_core *core,
		      const struct neuron_net_opts *o, struct neuron_error *error)
{
	struct loader l = { .error = error };
	struct neuron_model_opts mo = {
		.size = sizeof(mo),
		.error = error,
		.node = s->node->kelf,
		.cores = s->cores,
		.max_unpacked = o->max_unpacked,
		.short_constants = o->short_constants,
		.max_descriptors = o->max_descriptors,
	};
	struct neuron_neff *neff;
	int ret = load_open_node(&l, net->neff, &mo, &neff);

	if (ret)
		return ret;
	ret = model_load_opened(core, neff, &mo, &s->model);
	if (neff != net->neff)
		neuron_neff_close(neff);
	return ret;
}

static int load_node(struct neuron_net *net, struct stage *s, struct neuron_core *core,
		     const struct neuron_net_opts *o, struct neuron_error *error)
{
	int ret;

	s->inputs = edge_indices(net, s->node->inputs, s->node->nr_inputs);
	s->outputs = edge_indices(net, s->node->outputs, s->node->nr_outputs);
	if (!s->inputs || !s->outputs)
		return -ENOMEM;
	s->copies = net->nr_copies;
	net->nr_copies += stage_tensors(s);
	if (s->node->cpu)
		return find_op(s, o, error) ?: copy_params(s);
	ret = load_model(net, s, core, o, error);
	if (ret || !neuron_model_obstacle(s->model))
		return ret;
	return error_note(error, -EOPNOTSUPP, "node %s: %s", s->node->name,
			  neuron_model_obstacle(s->model));
}

/* Each node has them within the limit; a file can have many nodes. */
static int count_descriptors(const struct stage *s, uint64_t max, uint64_t *sum,
			     struct neuron_error *error)
{
	struct neuron_model_usage usage = { .size = sizeof(usage) };

	if (s->node->cpu || !max)
		return 0;
	neuron_model_get_usage(s->model, &usage);
	*sum += usage.descriptors;
	return *sum <= max ? 0 :
	       error_note(error, -E2BIG, "node %s: the nodes have more than %llu descriptors",
			  s->node->name, (unsigned long long)max);
}

int load_stages(struct neuron_net *net, const struct neuron_net_opts *o,
		struct neuron_error *error)
{
	uint64_t descriptors = 0;
	size_t core = 0;
	int ret = 0;

	for (size_t i = 0; i < net->nr_stages && !ret; i++) {
		struct stage *s = &net->stages[i];

		/* Behind the last node that has a core there is none for one of the host. */
		ret = load_node(net, s, s->node->cpu ? NULL : net->group->cores[core], o, error) ?:
		      count_descriptors(s, o->max_descriptors, &descriptors, error);
		if (!s->node->cpu && net->mode == NEURON_NET_NORMAL)
			core += group_cores(s, net->group->cores[0]);
	}
	return ret;
}

void free_stages(struct neuron_net *net)
{
	for (size_t i = 0; i < net->nr_stages; i++) {
		struct stage *s = &net->stages[i];

		neuron_model_unload(s->model);
		free(s->inputs);
		free(s->outputs);
		free(s->bounce);
		for (size_t k = 0; s->params && k < s->node->nr_params; k++)
			free(s->params[k]);
		free(s->params);
		if (s->object)
			dlclose(s->object);
		if (s->object_fd >= 0)
			close(s->object_fd);
	}
	free(net->stages);
}
