// SPDX-License-Identifier: LGPL-2.1-or-later
/* Running a request: each stage does its part, on a core or on the host. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/lock.h"
#include "../../common/thread.h"
#include "../../common/wait.h"
#include "net.h"

/* That a stage copies through between two devices. */
#define BOUNCE_BYTES (1u << 20)

__attribute__((format(printf, 4, 5)))
static void request_failed(struct slot *slot, const struct stage *stage, int err,
			   const char *fmt, ...)
{
	struct neuron_net_result *r = &slot->result;
	va_list args;
	char *text;
	int n;

	if (!r->status)
		r->status = err;
	if (r->nr_errors == NEURON_NET_MAX_ERRORS)
		return;
	text = r->errors[r->nr_errors++];
	n = snprintf(text, sizeof(r->errors[0]), "node %.60s: ", stage->node->name);
	va_start(args, fmt);
	vsnprintf(text + n, sizeof(r->errors[0]) - (size_t)n, fmt, args);
	va_end(args);
	neuron_neff_printable(text);
}

/* Between an edge and its copy on the device of a stage. */
static void copy_edge(struct stage *stage, struct slot *slot, size_t i, struct neuron_mem *copy)
{
	uint32_t e = stage_edge(stage, i);
	const struct slot_edge *edge = &slot->edges[e];
	uint64_t bytes = stage->net->edges[e].bytes, done = 0, n;
	bool in = i < stage->node->nr_inputs;
	struct neuron_mem *from = in ? edge->mem : copy, *to = in ? copy : edge->mem;
	uint64_t from_off = in ? edge->offset : 0, to_off = in ? 0 : edge->offset;
	int ret = 0;

	/* What the host sees is read or written where it is. */
	if (edge->va) {
		ret = in ? neuron_mem_write(copy, 0, edge->va, bytes) :
			   neuron_mem_read(copy, 0, edge->va, bytes);
		done = bytes;
	}
	for (; done < bytes && !ret; done += n) {
		n = MIN(bytes - done, BOUNCE_BYTES);
		ret = neuron_mem_read(from, from_off + done, stage->bounce, n) ?:
		      neuron_mem_write(to, to_off + done, stage->bounce, n);
	}
	if (ret)
		request_failed(slot, stage, ret, "copy of %.60s between devices %u and %u: %s",
			       stage->net->edges[e].name, neuron_device_index(edge->mem->device),
			       neuron_device_index(copy->device), strerror(-ret));
}

/* Copies of inputs before a run, or of outputs after it. */
static void copy_edges(struct stage *stage, struct slot *slot, bool in)
{
	size_t i = in ? 0 : stage->node->nr_inputs;
	size_t end = in ? stage->node->nr_inputs : stage_tensors(stage);

	for (; i < end && !slot->result.status; i++) {
		struct neuron_mem **copy = find_copy(stage, slot, i);

		if (copy)
			copy_edge(stage, slot, i, *copy);
	}
}

static void run_model(struct stage *stage, struct slot *slot)
{
	struct neuron_run_result result = { .size = sizeof(result) };
	struct neuron_net *net = stage->net;
	size_t nr = stage_tensors(stage);
	int ret;

	for (size_t i = 0; i < nr; i++) {
		struct neuron_mem **copy = find_copy(stage, slot, i);
		uint32_t e = stage_edge(stage, i);

		slot->io[i] = (struct neuron_io){
			.name = net->edges[e].name,
			.mem = copy ? *copy : slot->edges[e].mem,
			.offset = copy ? 0 : slot->edges[e].offset,
			.bytes = net->edges[e].bytes,
		};
	}
	copy_edges(stage, slot, true);
	if (slot->result.status)
		return;
	ret = neuron_model_run(stage->model, slot->io, nr, net->timeout_ms, &result);
	if (ret)
		request_failed(slot, stage, ret, "%s", result.text[0] ? result.text : strerror(-ret));
	copy_edges(stage, slot, false);
}

static struct neuron_host_tensor host_tensor(const struct stage *stage, const struct slot *slot,
					     size_t i)
{
	const struct neuron_neff_edge *edge = &stage->net->edges[stage_edge(stage, i)];

	return (struct neuron_host_tensor){
		.name = edge->name,
		.data = slot->edges[stage_edge(stage, i)].va,
		.bytes = edge->bytes,
	};
}

/* Its inputs, its parameters, its outputs. */
static void run_op(struct stage *stage, struct slot *slot)
{
	const struct neuron_neff_node *node = stage->node;
	struct neuron_host_tensor *out = slot->host;
	int ret;

	for (size_t i = 0; i < node->nr_inputs; i++)
		*out++ = host_tensor(stage, slot, i);
	for (size_t i = 0; i < node->nr_params; i++)
		*out++ = (struct neuron_host_tensor){
			.name = node->params[i].name,
			.data = stage->params[i],
			.bytes = node->params[i].size,
		};
	for (size_t i = 0; i < node->nr_outputs; i++)
		out[i] = host_tensor(stage, slot, node->nr_inputs + i);
	ret = stage->op.fn(stage->op.context, slot->host, node->nr_inputs + node->nr_params, out,
			   node->nr_outputs);
	if (ret)
		request_failed(slot, stage, ret < 0 ? ret : -EIO, "operation %s: %s", node->op,
			       strerror(ret < 0 ? -ret : EIO));
}

/* A request that failed goes through the other stages untouched. */
static void run_stage(struct stage *stage, struct slot *slot)
{
	uint64_t took = now_ns();

	if (slot->result.status)
		return;
	if (stage->model)
		run_model(stage, slot);
	else
		run_op(stage, slot);
	took = now_ns() - took;
	GUARD(&stage->net->lock);
	stage->runs++;
	stage->failed += slot->result.status != 0;
	stage->busy += took;
	stage->longest = MAX(stage->longest, took);
}

static void *stage_thread(void *arg)
{
	struct stage *first = arg;
	struct neuron_net *net = first->net;
	/* In shared mode one thread does all. */
	size_t nr = net->mode == NEURON_NET_SHARED ? net->nr_stages : 1;
	struct stage *last = first + nr - 1;

	pthread_mutex_lock(&net->lock);
	for (;;) {
		uint64_t ready = first == net->stages ? net->submitted : first[-1].done;
		struct slot *slot = &net->slots[last->done % net->depth];

		if (last->done == ready) {
			if (net->quit)
				break;
			pthread_cond_wait(&net->progress, &net->lock);
			continue;
		}
		if (first == net->stages)
			net->started = last->done + 1;
		pthread_mutex_unlock(&net->lock);
		for (struct stage *s = first; s <= last; s++)
			run_stage(s, slot);
		pthread_mutex_lock(&net->lock);
		last->done++;
		if (last == net->stages + net->nr_stages - 1) {
			slot->state = SLOT_DONE;
			if (net->eventfd >= 0)
				tell_eventfd(net->eventfd);
		}
		pthread_cond_broadcast(&net->progress);
	}
	pthread_mutex_unlock(&net->lock);
	return NULL;
}

int start_threads(struct neuron_net *net)
{
	size_t step = net->mode == NEURON_NET_SHARED ? net->nr_stages : 1;
	int ret = 0;

	for (size_t i = 0; i < net->nr_stages && !ret; i += step) {
		ret = thread_start(&net->stages[i].thread, stage_thread, &net->stages[i]);
		if (!ret)
			net->nr_threads++;
	}
	return ret;
}

int make_bounce(struct neuron_net *net)
{
	bool several = false;

	for (size_t i = 1; i < net->group->nr; i++)
		several = several || net->group->cores[i]->device != net->group->cores[0]->device;
	for (size_t i = 0; i < net->nr_stages && several; i++) {
		net->stages[i].bounce = malloc(BOUNCE_BYTES);
		if (!net->stages[i].bounce)
			return -ENOMEM;
	}
	return 0;
}
