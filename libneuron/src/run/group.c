// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Core groups, and networks of several nodes with a queue of requests.
 *
 * Each node is a stage with a thread; in shared mode one thread does all of them for a
 * request before it takes the next.  Requests go through the stages in order, so a
 * stage needs to know only how many it has done.
 *
 * A tensor is in one place.  A stage on another device works on a copy in memory of that
 * device, which is made before it runs, or after it for an output.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../common/lock.h"
#include "../../common/thread.h"
#include "../../common/wait.h"
#include "../device/opts.h"
#include "core.h"

#define MAX_DEPTH 1024u
#define DEFAULT_TIMEOUT_MS 30000
/* That a stage copies through between two devices. */
#define BOUNCE_BYTES (1u << 20)

struct neuron_pool {
	atomic_uint refs;
	pthread_mutex_t lock;		/* everything below, and networks of its groups */
	size_t nr;
	struct neuron_core **cores;
	struct neuron_group **owner;	/* by core, NULL free */
};

struct neuron_group {
	struct neuron_pool *pool;
	size_t nr;
	struct neuron_core **cores;	/* the pool's */
	size_t nr_nets;			/* pool->lock */
	struct neuron_net *running;	/* pool->lock */
};

struct stage {
	struct neuron_net *net;
	const struct neuron_neff_node *node;
	struct neuron_model *model;	/* NULL: on the host */
	struct neuron_host_op op;
	void *object;			/* dlopen() */
	int object_fd;			/* its name while it is loaded, or -1 */
	uint32_t cores;			/* physical ones that it is made for */
	uint32_t *inputs, *outputs;	/* edges */
	size_t copies;			/* where slot.copies of its tensors start */
	void *bounce;			/* if the group has several devices */
	uint64_t done;			/* net->lock: requests */
	pthread_t thread;
};

/* A tensor of one request. */
struct slot_edge {
	struct neuron_mem *mem;		/* our own, or the caller's */
	uint64_t offset;
	void *va;			/* where the host needs it */
};

enum slot_state { SLOT_FREE, SLOT_QUEUED, SLOT_DONE };

struct slot {
	enum slot_state state;		/* net->lock */
	struct slot_edge *edges;
	struct neuron_mem **copies;	/* by stage and tensor, NULL not needed so far */
	struct neuron_io *io;		/* for one stage */
	struct neuron_host_tensor *host;
	struct neuron_net_result result;
};

struct neuron_net {
	struct neuron_group *group;
	bool implicit;
	enum neuron_net_mode mode;
	int timeout_ms;
	struct neuron_neff *neff;
	struct neuron_neff_node single;	/* of a NEFF that is no network */
	struct neuron_neff_edge *edges;
	size_t nr_edges;
	bool own_edges;
	size_t nr_io;
	uint32_t *io_edges;
	struct neuron_tensor_info *info;
	struct stage *stages;
	size_t nr_stages;
	size_t nr_copies;		/* tensors of all stages */
	size_t nr_threads;

	pthread_mutex_t lock;
	pthread_cond_t progress;
	uint32_t depth;
	struct slot *slots;		/* by request modulo depth */
	uint64_t submitted;		/* requests */
	bool running;
	bool quit;
	int eventfd;
};

/* ---- pools and groups --------------------------------------------------------------- */

static void pool_put(struct neuron_pool *pool)
{
	if (atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < pool->nr; i++)
		core_put(pool->cores[i]);
	pthread_mutex_destroy(&pool->lock);
	free(pool->cores);
	free(pool->owner);
	free(pool);
}

NEURON_EXPORT int neuron_pool_open(struct neuron_core *const *cores, size_t nr,
				   struct neuron_pool **out)
{
	struct neuron_pool *pool;

	if (!cores || !nr)
		return -EINVAL;
	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k <= i; k++)
			if (!cores[i] || (k < i && cores[i] == cores[k]))
				return -EINVAL;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->cores = calloc(nr, sizeof(*pool->cores));
	pool->owner = calloc(nr, sizeof(*pool->owner));
	if (!pool->cores || !pool->owner) {
		free(pool->cores);
		free(pool->owner);
		free(pool);
		return -ENOMEM;
	}
	atomic_init(&pool->refs, 1);
	pthread_mutex_init(&pool->lock, NULL);
	for (size_t i = 0; i < nr; i++)
		pool->cores[i] = core_get(cores[i]);
	pool->nr = nr;
	*out = pool;
	return 0;
}

NEURON_EXPORT void neuron_pool_close(struct neuron_pool *pool)
{
	if (pool)
		pool_put(pool);
}

static size_t pool_free_locked(const struct neuron_pool *pool)
{
	size_t n = 0;

	for (size_t i = 0; i < pool->nr; i++)
		n += !pool->owner[i];
	return n;
}

NEURON_EXPORT size_t neuron_pool_free(struct neuron_pool *pool)
{
	GUARD(&pool->lock);
	return pool_free_locked(pool);
}

NEURON_EXPORT int neuron_group_create(struct neuron_pool *pool, size_t nr,
				      struct neuron_group **out)
{
	struct neuron_group *group;
	int ret = 0;

	if (!nr || nr > pool->nr)
		return -EINVAL;
	group = calloc(1, sizeof(*group));
	if (group)
		group->cores = calloc(nr, sizeof(*group->cores));
	if (!group || !group->cores) {
		free(group);
		return -ENOMEM;
	}
	pthread_mutex_lock(&pool->lock);
	if (pool_free_locked(pool) < nr)
		ret = -EBUSY;
	for (size_t i = 0; !ret && group->nr < nr; i++)
		if (!pool->owner[i]) {
			pool->owner[i] = group;
			group->cores[group->nr++] = pool->cores[i];
		}
	pthread_mutex_unlock(&pool->lock);
	if (ret) {
		free(group->cores);
		free(group);
		return ret;
	}
	atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
	group->pool = pool;
	*out = group;
	return 0;
}

NEURON_EXPORT int neuron_group_destroy(struct neuron_group *group)
{
	struct neuron_pool *pool;
	bool busy;

	if (!group)
		return 0;
	pool = group->pool;
	pthread_mutex_lock(&pool->lock);
	busy = group->nr_nets;
	for (size_t i = 0; i < pool->nr && !busy; i++)
		if (pool->owner[i] == group)
			pool->owner[i] = NULL;
	pthread_mutex_unlock(&pool->lock);
	if (busy)
		return -EBUSY;
	free(group->cores);
	free(group);
	pool_put(pool);
	return 0;
}

/* ---- running a request -------------------------------------------------------------- */

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

static size_t stage_tensors(const struct stage *stage)
{
	return stage->node->nr_inputs + stage->node->nr_outputs;
}

static uint32_t stage_edge(const struct stage *stage, size_t i)
{
	return i < stage->node->nr_inputs ? stage->inputs[i] :
					    stage->outputs[i - stage->node->nr_inputs];
}

/* Where a stage finds a tensor: the edge itself, or the copy on its device. */
static struct neuron_mem **find_copy(const struct stage *stage, struct slot *slot, size_t i)
{
	const struct slot_edge *edge = &slot->edges[stage_edge(stage, i)];

	if (!stage->model || edge->mem->device == stage->model->core->device)
		return NULL;
	return &slot->copies[stage->copies + i];
}

/* Between an edge and its copy on the device of a stage. */
static void copy_edge(struct stage *stage, struct slot *slot, size_t i, struct neuron_mem *copy)
{
	uint32_t e = stage_edge(stage, i);
	const struct slot_edge *edge = &slot->edges[e];
	uint64_t bytes = stage->net->edges[e].bytes, done = 0, n;
	bool in = i < stage->node->nr_inputs;
	int ret = 0;

	/* What the host sees is read or written where it is. */
	if (edge->va) {
		ret = in ? neuron_mem_write(copy, 0, edge->va, bytes) :
			   neuron_mem_read(copy, 0, edge->va, bytes);
		done = bytes;
	}
	for (; done < bytes && !ret; done += n) {
		n = bytes - done < BOUNCE_BYTES ? bytes - done : BOUNCE_BYTES;
		ret = in ? neuron_mem_read(edge->mem, edge->offset + done, stage->bounce, n) :
			   neuron_mem_read(copy, done, stage->bounce, n);
		if (!ret)
			ret = in ? neuron_mem_write(copy, done, stage->bounce, n) :
				   neuron_mem_write(edge->mem, edge->offset + done, stage->bounce, n);
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

static void run_op(struct stage *stage, struct slot *slot)
{
	const struct neuron_neff_node *node = stage->node;
	struct neuron_net *net = stage->net;
	int ret;

	for (size_t i = 0; i < stage_tensors(stage); i++) {
		uint32_t e = stage_edge(stage, i);

		slot->host[i] = (struct neuron_host_tensor){
			.name = net->edges[e].name,
			.data = slot->edges[e].va,
			.bytes = net->edges[e].bytes,
		};
	}
	ret = stage->op.fn(stage->op.context, slot->host, node->nr_inputs,
			   slot->host + node->nr_inputs, node->nr_outputs);
	if (ret)
		request_failed(slot, stage, ret < 0 ? ret : -EIO, "operation %s: %s", node->op,
			       strerror(ret < 0 ? -ret : EIO));
}

/* A request that failed goes through the other stages untouched. */
static void run_stage(struct stage *stage, struct slot *slot)
{
	if (slot->result.status)
		return;
	if (stage->model)
		run_model(stage, slot);
	else
		run_op(stage, slot);
}

/* Under net->lock. */
static void request_done(struct neuron_net *net, struct slot *slot)
{
	slot->state = SLOT_DONE;
	if (net->eventfd >= 0)
		tell_eventfd(net->eventfd);
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
		pthread_mutex_unlock(&net->lock);
		for (struct stage *s = first; s <= last; s++)
			run_stage(s, slot);
		pthread_mutex_lock(&net->lock);
		last->done++;
		if (last == net->stages + net->nr_stages - 1)
			request_done(net, slot);
		pthread_cond_broadcast(&net->progress);
	}
	pthread_mutex_unlock(&net->lock);
	return NULL;
}

static int start_threads(struct neuron_net *net)
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

/* ---- requests ----------------------------------------------------------------------- */

static const struct neuron_io *find_io(const struct neuron_io *io, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (io[i].name && !strcmp(io[i].name, name))
			return &io[i];
	return NULL;
}

static bool uses(const struct stage *stage, uint32_t edge)
{
	for (size_t i = 0; i < stage_tensors(stage); i++)
		if (stage_edge(stage, i) == edge)
			return true;
	return false;
}

static bool used_on_host(const struct neuron_net *net, uint32_t edge)
{
	for (size_t s = 0; s < net->nr_stages; s++)
		if (!net->stages[s].model && uses(&net->stages[s], edge))
			return true;
	return false;
}

/* Memory for the copies of an edge that is where it is now. */
static int make_copies(struct neuron_net *net, struct slot *slot, uint32_t edge,
		       struct neuron_mem_failure *failure)
{
	for (size_t s = 0; s < net->nr_stages; s++) {
		const struct stage *stage = &net->stages[s];

		for (size_t i = 0; i < stage_tensors(stage); i++) {
			struct neuron_mem **copy;
			int ret;

			if (stage_edge(stage, i) != edge)
				continue;
			copy = find_copy(stage, slot, i);
			if (!copy || *copy)
				continue;
			ret = neuron_mem_alloc(stage->model->core->device, net->edges[edge].bytes,
					       &(struct neuron_mem_opts){
						       .size = sizeof(struct neuron_mem_opts),
						       .nc = stage->model->core->nc,
						       .hbm = stage->model->core->hbm,
						       .category = NEURON_MEM_TENSORS,
						       .failure = failure,
					       }, copy);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* The first core of the group on a device. */
static const struct neuron_core *core_on(const struct neuron_group *group,
					 const struct neuron_device *device)
{
	for (size_t i = 0; i < group->nr; i++)
		if (group->cores[i]->device == device)
			return group->cores[i];
	return NULL;
}

static int bind_io(struct neuron_net *net, struct slot *slot, const struct neuron_io *io,
		   size_t nr_io)
{
	for (size_t i = 0; i < net->nr_io; i++) {
		uint32_t e = net->io_edges[i];
		const struct neuron_io *b = find_io(io, nr_io, net->edges[e].name);
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
		ret = make_copies(net, slot, e, NULL);
		if (ret)
			return ret;
	}
	return 0;
}

NEURON_EXPORT int neuron_net_submit(struct neuron_net *net, const struct neuron_io *io,
				    size_t nr_io, uint64_t *cookie)
{
	struct slot *slot;
	int ret = 0;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	GUARD(&net->lock);
	slot = &net->slots[net->submitted % net->depth];
	if (!net->running)
		ret = -ESHUTDOWN;
	else if (slot->state != SLOT_FREE)
		ret = -EAGAIN;
	else
		ret = bind_io(net, slot, io, nr_io);
	if (ret == -EAGAIN)
		neuron_core_count(net->group->cores[0], NEURON_CORE_QUEUE_FULL);
	else if (ret == -EINVAL)
		neuron_core_count(net->group->cores[0], NEURON_CORE_BAD_INPUT);
	if (!ret) {
		slot->state = SLOT_QUEUED;
		memset(&slot->result, 0, sizeof(slot->result));
		*cookie = net->submitted++;
		pthread_cond_broadcast(&net->progress);
	}
	return ret;
}

NEURON_EXPORT int neuron_net_wait(struct neuron_net *net, uint64_t cookie, int timeout_ms,
				  struct neuron_net_result *result)
{
	struct deadline deadline = deadline_in(timeout_ms);
	struct slot *slot;
	int ret = 0;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	GUARD(&net->lock);
	slot = &net->slots[cookie % net->depth];
	/* Of two that wait for one request, the second finds it gone. */
	for (;;) {
		struct timespec until;
		int left;

		if (cookie >= net->submitted || net->submitted - cookie > net->depth ||
		    slot->state == SLOT_FREE) {
			ret = -ENOENT;
			break;
		}
		if (slot->state == SLOT_DONE)
			break;
		left = deadline_left(&deadline);
		if (!left) {
			ret = -ETIMEDOUT;
			break;
		}
		if (left < 0) {
			pthread_cond_wait(&net->progress, &net->lock);
			continue;
		}
		until = time_in_us((int64_t)left * 1000);
		pthread_cond_clockwait(&net->progress, &net->lock, CLOCK_MONOTONIC, &until);
	}
	if (!ret) {
		if (result_valid(result))
			result_copy(result, &slot->result, sizeof(slot->result));
		slot->state = SLOT_FREE;
		pthread_cond_broadcast(&net->progress);
	}
	return ret;
}

NEURON_EXPORT int neuron_net_infer(struct neuron_net *net, const struct neuron_io *io,
				   size_t nr_io, struct neuron_net_result *result)
{
	struct neuron_net_result own = { .size = sizeof(own) };
	uint64_t cookie;
	int ret = neuron_net_submit(net, io, nr_io, &cookie);

	if (!ret)
		ret = neuron_net_wait(net, cookie, -1, &own);
	if (ret)
		return ret;
	if (result_valid(result))
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

/* ---- start and stop ----------------------------------------------------------------- */

NEURON_EXPORT int neuron_net_start(struct neuron_net *net)
{
	struct neuron_pool *pool = net->group->pool;
	int ret = 0;

	if (device_inherited(net->group->cores[0]->device))
		return -EACCES;
	pthread_mutex_lock(&pool->lock);
	if (net->group->running == net)
		ret = -EALREADY;
	else if (net->group->running)
		ret = -EBUSY;
	else
		net->group->running = net;
	pthread_mutex_unlock(&pool->lock);
	if (ret)
		return ret;
	pthread_mutex_lock(&net->lock);
	net->running = true;
	pthread_mutex_unlock(&net->lock);
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

/* ---- loading ------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4)))
static int load_failed(struct neuron_error *error, int err, const char *fmt, ...)
{
	va_list args;

	error->kind = err == -EINVAL ? NEURON_ERROR_NEFF_INVALID :
		      err == -E2BIG ? NEURON_ERROR_LIMIT :
		      err == -ERANGE ? NEURON_ERROR_CORES :
		      err == -ENOMEM ? NEURON_ERROR_MEMORY : NEURON_ERROR_NEFF_UNSUPPORTED;
	va_start(args, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	neuron_neff_printable(error->text);
	return err;
}

static uint32_t edge_index(const struct neuron_net *net, const char *name)
{
	for (uint32_t i = 0; i < net->nr_edges; i++)
		if (!strcmp(net->edges[i].name, name))
			return i;
	return UINT32_MAX;
}

static uint32_t *edge_indices(const struct neuron_net *net, const char *const *names, size_t nr)
{
	uint32_t *list = calloc(nr + 1, sizeof(*list));

	for (size_t i = 0; list && i < nr; i++)
		list[i] = edge_index(net, names[i]);
	return list;
}

/* A NEFF without nodes is a network of one, whose edges are its inputs and outputs. */
static int make_single(struct neuron_net *net)
{
	const struct neuron_neff_subgraph *sg = &net->neff->subgraphs[0];
	struct neuron_neff_node *node = &net->single;

	net->edges = calloc(sg->nr_vars + 1, sizeof(*net->edges));
	net->own_edges = true;
	node->inputs = calloc(sg->nr_vars + 1, sizeof(*node->inputs));
	node->outputs = calloc(sg->nr_vars + 1, sizeof(*node->outputs));
	if (!net->edges || !node->inputs || !node->outputs)
		return -ENOMEM;
	node->name = sg->name;
	for (size_t i = 0; i < sg->nr_vars; i++) {
		const struct neuron_neff_var *v = &sg->vars[i];
		bool in = v->type == NEURON_NEFF_VAR_INPUT;

		if (!in && v->type != NEURON_NEFF_VAR_OUTPUT)
			continue;
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
	return 0;
}

/*
 * The function with the name of the operation; the file never touches a disk.  Objects
 * are known by their path, so the descriptor stays as long as the object does.
 */
static int load_object(struct stage *stage, struct neuron_error *error)
{
	const struct neuron_neff_node *node = stage->node;
	const char *data = node->object;
	size_t left = node->object_size;
	char path[32];
	int fd = memfd_create("neff-object", MFD_CLOEXEC);

	stage->object_fd = fd;
	if (fd < 0)
		return load_failed(error, -errno, "node %s: memfd_create: %s", node->name,
				   strerror(errno));
	while (left) {
		ssize_t n = write(fd, data, left);

		if (n < 0)
			return load_failed(error, -errno, "node %s: %s", node->name, strerror(errno));
		data += n;
		left -= (size_t)n;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	stage->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!stage->object)
		return load_failed(error, -EINVAL, "node %s: %s", node->name, dlerror());
	*(void **)&stage->op.fn = dlsym(stage->object, node->op);
	if (!stage->op.fn)
		return load_failed(error, -EINVAL, "node %s: its object has no function %s",
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
		return load_failed(error, -EPERM,
				   "node %s: operation %s is in a shared object, which is not loaded",
				   node->name, node->op);
	return load_failed(error, -ENOENT, "node %s: no operation %s was registered", node->name,
			   node->op);
}

/* The node's inputs and outputs are those of its model, and as large. */
static int check_model(const struct neuron_net *net, const struct stage *stage,
		       struct neuron_error *error)
{
	const struct neuron_neff_node *node = stage->node;
	size_t nr = neuron_model_tensor_count(stage->model), found = 0;

	for (size_t i = 0; i < nr; i++) {
		struct neuron_tensor_info info = { .size = sizeof(info) };
		bool in, there = false;

		if (neuron_model_tensor_info(stage->model, i, &info))
			continue;
		in = info.usage == NEURON_TENSOR_INPUT;
		for (size_t k = 0; k < (in ? node->nr_inputs : node->nr_outputs); k++) {
			uint32_t e = in ? stage->inputs[k] : stage->outputs[k];

			if (!strcmp(net->edges[e].name, info.name) &&
			    net->edges[e].bytes == info.bytes)
				there = true;
		}
		if (!there)
			return load_failed(error, -EINVAL,
					   "node %s: no edge of %llu bytes for its tensor %s", node->name,
					   (unsigned long long)info.bytes, info.name);
		found++;
	}
	if (found != node->nr_inputs + node->nr_outputs)
		return load_failed(error, -EINVAL, "node %s: its program has %zu tensors, not %zu",
				   node->name, found, node->nr_inputs + node->nr_outputs);
	return 0;
}

/* Cores of the group for a node; each of them can be a pair. */
static size_t group_cores(const struct stage *s, const struct neuron_core *core)
{
	size_t lnc = core->peer ? 2 : 1;

	return (s->cores + lnc - 1) / lnc;
}

/* The archive is unpacked once for all nodes. */
static int load_model(struct neuron_net *net, struct stage *s, struct neuron_core *core,
		      const struct neuron_net_opts *o, struct neuron_error *error)
{
	struct neuron_neff_error e = { .kind = NEURON_NEFF_OK };
	struct neuron_neff_opts no = {
		.size = sizeof(no),
		.error = &e,
		.node = s->node->kelf,
		.borrow = true,
		.max_total = o->max_unpacked,
		.short_constants = o->short_constants,
	};
	struct neuron_model_opts mo = {
		.size = sizeof(mo),
		.error = error,
		.node = s->node->kelf,
		.cores = s->cores,
	};
	struct neuron_neff *neff = net->neff;
	int ret = 0;

	if (no.node)
		ret = neuron_neff_open_node(net->neff, &no, &neff);
	if (ret)
		return load_failed(error, ret, "%s", e.text);
	ret = model_load_opened(core, neff, &mo, &s->model);
	if (neff != net->neff)
		neuron_neff_close(neff);
	return ret;
}

static int load_stages(struct neuron_net *net, const struct neuron_net_opts *o,
		       struct neuron_error *error)
{
	size_t core = 0;
	int ret = 0;

	for (size_t i = 0; i < net->nr_stages && !ret; i++) {
		struct stage *s = &net->stages[i];

		s->inputs = edge_indices(net, s->node->inputs, s->node->nr_inputs);
		s->outputs = edge_indices(net, s->node->outputs, s->node->nr_outputs);
		if (!s->inputs || !s->outputs)
			return -ENOMEM;
		s->copies = net->nr_copies;
		net->nr_copies += stage_tensors(s);
		if (s->node->cpu) {
			ret = find_op(s, o, error);
			continue;
		}
		ret = load_model(net, s, net->group->cores[core], o, error);
		if (net->mode == NEURON_NET_NORMAL)
			core += group_cores(s, net->group->cores[0]);
		if (!ret)
			ret = check_model(net, s, error);
		if (!ret && neuron_model_obstacle(s->model))
			ret = load_failed(error, -EOPNOTSUPP, "node %s: %s", s->node->name,
					  neuron_model_obstacle(s->model));
	}
	return ret;
}

/* Dtype and shape come from the node that has the tensor. */
static void describe(const struct neuron_net *net, uint32_t e, struct neuron_tensor_info *info)
{
	for (size_t s = 0; s < net->nr_stages; s++) {
		const struct neuron_model *m = net->stages[s].model;

		for (size_t i = 0; m && i < m->nr_io; i++) {
			struct neuron_tensor_info t = { .size = sizeof(t) };

			if (strcmp(m->io[i].name, net->edges[e].name) ||
			    neuron_model_tensor_info(m, i, &t))
				continue;
			info->dtype = t.dtype;
			info->ndim = t.ndim;
			memcpy(info->shape, t.shape, sizeof(info->shape));
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
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = host ? NEURON_MEM_F_HOST : 0,
		.nc = core->nc,
		.hbm = core->hbm,
		.category = host ? NEURON_MEM_HOST_TENSORS : NEURON_MEM_TENSORS,
		.failure = &error->memory,
	};
	int ret = neuron_mem_alloc(core->device, net->edges[e].bytes, &opts, &edge->mem);

	if (!ret && host)
		ret = neuron_mem_map(edge->mem, &edge->va);
	return ret ? load_failed(error, ret, "no memory for %s: %s", net->edges[e].name,
				 strerror(-ret)) : 0;
}

static int make_slots(struct neuron_net *net, struct neuron_error *error)
{
	int ret = 0;

	net->slots = calloc(net->depth, sizeof(*net->slots));
	if (!net->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->depth && !ret; i++) {
		struct slot *slot = &net->slots[i];

		slot->edges = calloc(net->nr_edges + 1, sizeof(*slot->edges));
		slot->copies = calloc(net->nr_copies + 1, sizeof(*slot->copies));
		slot->io = calloc(net->nr_edges + 1, sizeof(*slot->io));
		slot->host = calloc(net->nr_edges * 2 + 1, sizeof(*slot->host));
		if (!slot->edges || !slot->copies || !slot->io || !slot->host)
			return -ENOMEM;
		for (uint32_t e = 0; e < net->nr_edges && !ret; e++) {
			if (net->edges[e].use != NEURON_NEFF_EDGE_INTERNAL)
				continue;
			ret = make_edge(net, e, &slot->edges[e], error);
			if (ret)
				return ret;
			ret = make_copies(net, slot, e, &error->memory);
			if (ret)
				return load_failed(error, ret, "no memory for a copy of %s: %s",
						   net->edges[e].name, strerror(-ret));
		}
	}
	return ret;
}

static int make_bounce(struct neuron_net *net)
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

static void net_free(struct neuron_net *net)
{
	struct neuron_pool *pool = net->group ? net->group->pool : NULL;

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
	for (size_t i = 0; i < net->nr_stages; i++) {
		neuron_model_unload(net->stages[i].model);
		free(net->stages[i].inputs);
		free(net->stages[i].outputs);
		free(net->stages[i].bounce);
		if (net->stages[i].object)
			dlclose(net->stages[i].object);
		if (net->stages[i].object_fd >= 0)
			close(net->stages[i].object_fd);
	}
	if (pool) {
		pthread_mutex_lock(&pool->lock);
		net->group->nr_nets--;
		pthread_mutex_unlock(&pool->lock);
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
	pthread_mutex_destroy(&net->lock);
	pthread_cond_destroy(&net->progress);
	free(net->slots);
	free(net->stages);
	free(net->io_edges);
	free(net->info);
	free(net);
}

static int open_neff(struct neuron_net *net, const void *bytes, size_t size,
		     const struct neuron_net_opts *o, struct neuron_error *error)
{
	struct neuron_neff_error e = { .kind = NEURON_NEFF_OK };
	struct neuron_neff_opts no = {
		.size = sizeof(no),
		.verify_hash = o->verify_hash,
		.error = &e,
		.borrow = true,
		.keep = true,
		.max_total = o->max_unpacked,
		.short_constants = o->short_constants,
	};
	int ret = neuron_neff_open(bytes, size, &no, &net->neff);
	size_t nr = 0;

	memcpy(error->name, e.name, sizeof(e.name));

	if (ret)
		return load_failed(error, ret, "%s", e.text);
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
		if (group_cores(s, pool->cores[0]) > least)
			least = group_cores(s, pool->cores[0]);
	}
	if (!group) {
		/* One core at least: memory needs a place. */
		ret = neuron_group_create(pool, want ? want : 1, &group);
		if (ret)
			return load_failed(error, ret == -EINVAL ? -EBUSY : ret,
					   "%zu cores wanted, %zu are free", want,
					   neuron_pool_free(pool));
		net->implicit = true;
	} else if (group->pool != pool) {
		return -EINVAL;
	} else if (group->nr < least) {
		return load_failed(error, -ERANGE, "a node is made for %zu cores, the group has %zu",
				   least, group->nr);
	}
	pthread_mutex_lock(&pool->lock);
	group->nr_nets++;
	pthread_mutex_unlock(&pool->lock);
	net->group = group;
	net->mode = group->nr >= want ? NEURON_NET_NORMAL : NEURON_NET_SHARED;
	return 0;
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
	if (o.depth > MAX_DEPTH || (o.nr_ops && !o.ops))
		return -EINVAL;
	if (device_inherited(pool->cores[0]->device))
		return -EACCES;
	net = calloc(1, sizeof(*net));
	if (!net)
		return -ENOMEM;
	pthread_mutex_init(&net->lock, NULL);
	pthread_cond_init(&net->progress, NULL);
	net->eventfd = -1;
	net->timeout_ms = o.timeout_ms ? o.timeout_ms : DEFAULT_TIMEOUT_MS;
	ret = open_neff(net, bytes, size, &o, &error);
	if (!ret)
		ret = choose_group(net, pool, o.group, &error);
	if (!ret)
		ret = load_stages(net, &o, &error);
	/* What the nodes needed of it is on the devices. */
	if (net->neff)
		neuron_neff_forget(net->neff);
	if (!ret)
		ret = list_io(net);
	if (!ret)
		ret = make_bounce(net);
	if (!ret) {
		/* The theory of operation's starting point; a shared one has no pipeline. */
		net->depth = o.depth ? o.depth : (uint32_t)net->nr_stages + 1;
		ret = make_slots(net, &error);
	}
	if (!ret)
		ret = start_threads(net);
	if (!ret && net->implicit)
		ret = neuron_net_start(net);
	if (ret) {
		if (result_valid(o.error))
			result_copy(o.error, &error, sizeof(error));
		neuron_net_unload(net);
		return ret;
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
