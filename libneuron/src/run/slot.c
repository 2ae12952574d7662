// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a request of a network has of its own: memory of the edges, and copies of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

struct neuron_mem **find_copy(const struct stage *stage, struct slot *slot, size_t i)
{
	const struct slot_edge *edge = &slot->edges[stage_edge(stage, i)];

	if (!stage->model || edge->mem->device == stage->model->core->device)
		return NULL;
	return &slot->copies[stage->copies + i];
}

static bool uses(const struct stage *stage, uint32_t edge)
{
	for (size_t i = 0; i < stage_tensors(stage); i++)
		if (stage_edge(stage, i) == edge)
			return true;
	return false;
}

bool used_on_host(const struct neuron_net *net, uint32_t edge)
{
	for (size_t s = 0; s < net->nr_stages; s++)
		if (!net->stages[s].model && uses(&net->stages[s], edge))
			return true;
	return false;
}

static int no_memory(const struct neuron_net *net, uint32_t e, int ret, struct neuron_error *error)
{
	return error_note(error, ret, "no memory for %s: %s", net->edges[e].name, strerror(-ret));
}

int make_copies(struct neuron_net *net, struct slot *slot, struct neuron_error *error)
{
	int ret = 0;

	for (size_t n = 0; n < net->nr_stages && !ret; n++) {
		const struct stage *stage = &net->stages[n];

		for (size_t i = 0; i < stage_tensors(stage) && !ret; i++) {
			uint32_t e = stage_edge(stage, i);
			struct neuron_mem **copy;

			if (!slot->edges[e].mem)
				continue;
			copy = find_copy(stage, slot, i);
			if (!copy || *copy)
				continue;
			ret = core_alloc(stage->model->core, NEURON_MEM_TENSORS, 0,
					 net->edges[e].bytes, error ? &error->memory : NULL, copy);
			if (ret && error)
				no_memory(net, e, ret, error);
		}
	}
	return ret;
}

/* The device of the node that writes an edge, or if that is the host, of one that reads it. */
static const struct neuron_device *edge_device(const struct neuron_net *net, uint32_t e)
{
	for (size_t s = 0; s < net->nr_stages; s++)
		if (net->stages[s].model && uses(&net->stages[s], e))
			return net->stages[s].model->core->device;
	return net->group->cores[0]->device;
}

static bool crosses_devices(const struct neuron_net *net, uint32_t e)
{
	const struct neuron_device *device = edge_device(net, e);

	for (size_t s = 0; s < net->nr_stages; s++)
		if (net->stages[s].model && net->stages[s].model->core->device != device &&
		    uses(&net->stages[s], e))
			return true;
	return false;
}

/*
 * Between cores of a device in its memory, next to the first.  Where the host or another
 * device is involved in that of the host, so that it is copied once for each of them.
 */
static int make_edge(struct neuron_net *net, uint32_t e, struct slot_edge *edge,
		     struct neuron_error *error)
{
	const struct neuron_core *core = core_on(net->group, edge_device(net, e));
	bool host = used_on_host(net, e) || crosses_devices(net, e);
	int ret = core_alloc(core, host ? NEURON_MEM_HOST_TENSORS : NEURON_MEM_TENSORS,
			     host ? NEURON_MEM_F_HOST : 0, net->edges[e].bytes, &error->memory,
			     &edge->mem);

	return ret || !host ? ret : neuron_mem_map(edge->mem, &edge->va);
}

static size_t most_params(const struct neuron_net *net)
{
	size_t n = 0;

	for (size_t i = 0; i < net->nr_stages; i++)
		n = MAX(n, net->stages[i].node->nr_params);
	return n;
}

static int make_slot(struct neuron_net *net, struct slot *slot, struct neuron_error *error)
{
	int ret = 0;

	slot->edges = calloc(net->nr_edges + 1, sizeof(*slot->edges));
	slot->copies = calloc(net->nr_copies + 1, sizeof(*slot->copies));
	slot->io = calloc(net->nr_edges + 1, sizeof(*slot->io));
	slot->host = calloc(net->nr_edges * 2 + most_params(net) + 1, sizeof(*slot->host));
	if (!slot->edges || !slot->copies || !slot->io || !slot->host)
		return -ENOMEM;
	for (uint32_t e = 0; e < net->nr_edges && !ret; e++) {
		if (net->edges[e].use != NEURON_NEFF_EDGE_INTERNAL)
			continue;
		ret = make_edge(net, e, &slot->edges[e], error);
		if (ret)
			no_memory(net, e, ret, error);
	}
	return ret ?: make_copies(net, slot, error);
}

int make_slots(struct neuron_net *net, struct neuron_error *error)
{
	int ret = 0;

	net->slots = calloc(net->depth, sizeof(*net->slots));
	if (!net->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->depth && !ret; i++)
		ret = make_slot(net, &net->slots[i], error);
	return ret;
}

void free_slots(struct neuron_net *net)
{
	for (uint32_t i = 0; net->slots && i < net->depth; i++) {
		struct slot *slot = &net->slots[i];

		for (uint32_t e = 0; slot->edges && e < net->nr_edges; e++)
			if (net->edges[e].use == NEURON_NEFF_EDGE_INTERNAL)
				neuron_mem_free(slot->edges[e].mem);
		for (size_t c = 0; slot->copies && c < net->nr_copies; c++)
			neuron_mem_free(slot->copies[c]);
		free(slot->edges);
		free(slot->copies);
		free(slot->io);
		free(slot->host);
	}
	free(net->slots);
}
