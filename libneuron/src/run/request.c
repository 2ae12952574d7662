// SPDX-License-Identifier: LGPL-2.1-or-later
/* The queue of requests of a network. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "../device/opts.h"
#include "net.h"

static int bind_io(struct neuron_net *net, struct slot *slot, const struct neuron_io *io,
		   size_t nr_io)
{
	for (size_t i = 0; i < net->nr_io; i++) {
		uint32_t e = net->io_edges[i];
		const struct neuron_io *b = find_io(io, nr_io, i, net->edges[e].name);
		struct slot_edge *edge = &slot->edges[e];
		void *va = NULL;
		int ret;

		if (!b || !b->mem || b->bytes < net->edges[e].bytes ||
		    b->offset > b->mem->bytes || b->bytes > b->mem->bytes - b->offset ||
		    !core_on(net->group, b->mem->device))
			return -EINVAL;
		if (used_on_host(net, e)) {
			ret = neuron_mem_map(b->mem, &va);
			if (ret)
				return ret;
			va = (char *)va + b->offset;
		}
		edge->mem = b->mem;
		edge->offset = b->offset;
		edge->va = va;
	}
	/* One look at the tensors of all stages. */
	return make_copies(net, slot, NULL);
}

NEURON_EXPORT int neuron_net_submit(struct neuron_net *net, const struct neuron_io *io,
				    size_t nr_io, uint64_t *cookie)
{
	struct slot *slot;
	int ret;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	GUARD(&net->lock);
	slot = &net->slots[net->submitted % net->depth];
	if (!net->running)
		return -ESHUTDOWN;
	ret = slot->state != SLOT_FREE ? -EAGAIN : bind_io(net, slot, io, nr_io);
	if (ret == -EAGAIN)
		neuron_core_count(net->group->cores[0], NEURON_CORE_QUEUE_FULL);
	else if (ret == -EINVAL)
		neuron_core_count(net->group->cores[0], NEURON_CORE_BAD_INPUT);
	if (ret)
		return ret;
	slot->state = SLOT_QUEUED;
	memset(&slot->result, 0, sizeof(slot->result));
	*cookie = net->submitted++;
	pthread_cond_broadcast(&net->progress);
	return 0;
}

/* It was submitted, and not waited for. */
static bool is_known(const struct neuron_net *net, const struct slot *slot, uint64_t cookie)
{
	return cookie < net->submitted && net->submitted - cookie <= net->depth &&
	       slot->state != SLOT_FREE;
}

NEURON_EXPORT int neuron_net_wait(struct neuron_net *net, uint64_t cookie, int timeout_ms,
				  struct neuron_net_result *result)
{
	struct deadline deadline = deadline_in(timeout_ms);
	struct slot *slot;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	GUARD(&net->lock);
	slot = &net->slots[cookie % net->depth];
	/* Of two that wait for one request, the second finds it gone. */
	for (;;) {
		struct timespec until;
		int left;

		if (!is_known(net, slot, cookie))
			return -ENOENT;
		if (slot->state == SLOT_DONE)
			break;
		left = deadline_left(&deadline);
		if (!left)
			return -ETIMEDOUT;
		/* Without a limit it looks again after the longest time that fits. */
		until = time_in_us((left < 0 ? INT32_MAX : left) * 1000ll);
		pthread_cond_clockwait(&net->progress, &net->lock, CLOCK_MONOTONIC, &until);
	}
	result_copy(result, &slot->result, sizeof(slot->result));
	slot->state = SLOT_FREE;
	pthread_cond_broadcast(&net->progress);
	return 0;
}

/* It goes through the stages as one that has failed. */
NEURON_EXPORT int neuron_net_cancel(struct neuron_net *net, uint64_t cookie)
{
	struct neuron_net_result *result;
	struct slot *slot;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	GUARD(&net->lock);
	slot = &net->slots[cookie % net->depth];
	if (!is_known(net, slot, cookie))
		return -ENOENT;
	if (cookie < net->started)
		return -EBUSY;
	result = &slot->result;
	if (!result->status) {
		result->status = -ECANCELED;
		snprintf(result->errors[result->nr_errors++], sizeof(result->errors[0]),
			 "cancelled before it began");
	}
	return 0;
}

NEURON_EXPORT int neuron_net_infer(struct neuron_net *net, const struct neuron_io *io,
				   size_t nr_io, struct neuron_net_result *result)
{
	struct neuron_net_result own = { .size = sizeof(own) };
	uint64_t cookie;
	int ret = neuron_net_submit(net, io, nr_io, &cookie) ?:
		  neuron_net_wait(net, cookie, -1, &own);

	if (ret)
		return ret;
	result_copy(result, &own, sizeof(own));
	return own.status;
}

NEURON_EXPORT int neuron_net_set_eventfd(struct neuron_net *net, int fd)
{
	int own = -1;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	if (fd < -1)
		return -EINVAL;
	if (fd >= 0) {
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (own < 0)
			return -errno;
	}
	GUARD(&net->lock);
	if (net->eventfd >= 0)
		close(net->eventfd);
	net->eventfd = own;
	return 0;
}

static int take_group(struct neuron_net *net)
{
	struct neuron_group *group = net->group;

	GUARD(&group->pool->lock);
	if (group->running)
		return group->running == net ? -EALREADY : -EBUSY;
	group->running = net;
	return 0;
}

NEURON_EXPORT int neuron_net_start(struct neuron_net *net)
{
	int ret = device_inherited(net->group->cores[0]->device) ? -EACCES : take_group(net);

	if (ret)
		return ret;
	GUARD(&net->lock);
	net->running = true;
	return 0;
}

NEURON_EXPORT int neuron_net_stop(struct neuron_net *net)
{
	struct neuron_pool *pool = net->group->pool;
	bool was;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	pthread_mutex_lock(&net->lock);
	was = net->running;
	net->running = false;
	while (net->nr_threads && net->stages[net->nr_stages - 1].done < net->submitted)
		pthread_cond_wait(&net->progress, &net->lock);
	pthread_mutex_unlock(&net->lock);
	pthread_mutex_lock(&pool->lock);
	if (was && net->group->running == net)
		net->group->running = NULL;
	pthread_mutex_unlock(&pool->lock);
	return was ? 0 : -EALREADY;
}
