// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stddef.h>
#include <string.h>
#include <syslog.h>

#include "../common/lock.h"
#include "../common/util.h"
#include "config.h"
#include "cores.h"
#include "infer.h"
#include "service.h"

/* A model whose client has ended, or that is shared when the daemon ends. */
static void end_model(struct job *job)
{
	model_unload((struct model *)((char *)job - offsetof(struct model, end)));
}

/* Has one unloaded that was closed; the reference goes. */
static void retire(struct model *m)
{
	infer_drop(m, NULL);
	m->end.run = end_model;
	model_when_unused(m, &m->end);
}

int service_start(void)
{
	return jobs_start();
}

void service_stop(void)
{
	struct model *m;

	jobs_close();
	while ((m = model_close_next()))
		retire(m);
	models_wait();
	jobs_stop();
}

static void run_slow(struct job *job)
{
	struct call *call = (struct call *)job;

	call->method->run(call);
}

static bool count_slow(struct call *call)
{
	GUARD(&rtd_lock);
	call->slow = call->client->nr_slow < CLIENT_MAX_SLOW;
	call->client->nr_slow += call->slow;
	return call->slow;
}

void service_run(struct call *call)
{
	syslog(LOG_DEBUG, "pid %d: %s", call->client->pid, call->method->path);
	if (!call_parse(call, call->method->request))
		return;
	if (call->method->undo)
		call_undo_with(call, call->method->undo);
	if (!call->method->slow) {
		call->method->run(call);
		return;
	}
	call->job.run = run_slow;
	call->job.turn = call->client->turn;
	if (!count_slow(call))
		call_fail_errno(call, -EAGAIN, "too many calls are waiting");
	else if (!job_add_first(&call->job))
		call_fail_errno(call, -ECANCELED, "");
}

void service_end_client(struct client *client)
{
	struct model *m;

	syslog(LOG_INFO, "pid %d has ended", client->pid);
	client_end(client);
	infer_forget(client);
	while ((m = model_of_ended(client)))
		retire(m);
	groups_of_ended(client);
	client_put(client);
}

/* ---- methods ------------------------------------------------------------------------------ */

static uint64_t handle_of(const struct call *call)
{
	return ((const Rtd__Handle *)call->message)->id;
}

static void reply_empty(struct call *call, int ret, const char *what)
{
	const Rtd__Empty empty = RTD__EMPTY__INIT;

	if (ret)
		call_fail_errno(call, ret, ret == -ENOENT ? what : "");
	else
		call_reply(call, &empty.base);
}

static void create_group(struct call *call)
{
	const Rtd__CreateGroupRequest *request = (const Rtd__CreateGroupRequest *)call->message;
	Rtd__Handle handle = RTD__HANDLE__INIT;
	int ret = group_new(call->client, request->cores, &handle.id);

	if (ret == -EINVAL)
		call_fail(call, GRPC_STATUS_INVALID_ARGUMENT, "a group has 1 to %u cores",
			  cores_count());
	else if (ret)
		call_fail_errno(call, ret == -EBUSY ? -EAGAIN : ret,
				ret == -EBUSY ? "too few cores are free" :
				ret == -EDQUOT ? "the client has as many groups as it may" : "");
	else
		call_reply_made(call, handle.id, &handle.base);
}

static void undo_group(struct client *client, uint64_t id)
{
	group_destroy(client, id);
}

static void destroy_group(struct call *call)
{
	int ret = group_destroy(call->client, handle_of(call));

	if (ret == -EBUSY)
		call_fail_errno(call, ret, "models are loaded on the group");
	else
		reply_empty(call, ret, "there is no such group");
}

/*
 * The file: in the message, or a copy from shared memory, because it is checked and then
 * used, and the client could change it in between. *@copy is to be freed.
 */
static int find_neff(const struct call *call, const Rtd__LoadRequest *request,
		     struct model_load *load, void **copy, const char **wrong)
{
	const Rtd__Memory *memory = request->neff_memory;
	struct buffer *buffer;
	int ret;

	load->neff = request->neff.data;
	load->bytes = request->neff.len;
	*wrong = !memory && !load->bytes ? "there is no NEFF" :
		 memory && load->bytes ? "the NEFF is in the message and in memory" :
		 memory && !memory->bytes ? "the NEFF has no length" : NULL;
	if (*wrong)
		return -EINVAL;
	if (!memory)
		return 0;
	*wrong = "the NEFF is longer than max_neff";
	if (memory->bytes > (uint64_t)config.max_neff * MIB)
		return -E2BIG;
	pthread_mutex_lock(&rtd_lock);
	ret = buffer_find(call->client, memory->id, memory->offset, memory->bytes, &buffer);
	pthread_mutex_unlock(&rtd_lock);
	*wrong = ret == -ENOENT ? "there is no such memory" : "the memory ends before the NEFF";
	if (ret)
		return ret;
	*wrong = "";
	*copy = malloc(memory->bytes);
	if (*copy)
		memcpy(*copy, buffer->map + memory->offset, memory->bytes);
	load->neff = *copy;
	load->bytes = memory->bytes;
	GUARD(&rtd_lock);
	buffer_drop(buffer);
	return *copy ? 0 : -ENOMEM;
}

static void reply_load(struct call *call, const struct model *m)
{
	Rtd__LoadResponse response = RTD__LOAD_RESPONSE__INIT;
	Rtd__TensorInfo info[MODEL_MAX_TENSORS], *list[MODEL_MAX_TENSORS];

	response.model = m->id;
	response.shares_cores = neuron_net_mode(m->net) == NEURON_NET_SHARED;
	response.tensors = list;
	for (; response.n_tensors < m->nr_tensors; response.n_tensors++) {
		struct neuron_tensor_info *t = &m->tensors[response.n_tensors];
		Rtd__TensorInfo *i = list[response.n_tensors] = &info[response.n_tensors];

		rtd__tensor_info__init(i);
		i->name = (char *)t->name;
		i->output = t->usage == NEURON_TENSOR_OUTPUT;
		i->bytes = t->bytes;
		i->dtype = t->dtype;
		i->n_shape = t->ndim;
		i->shape = t->shape;
	}
	call_reply_made(call, m->id, &response.base);
}

static void undo_load(struct client *client, uint64_t id)
{
	struct model *m;
	int ret;

	pthread_mutex_lock(&rtd_lock);
	ret = model_find(client, id, true, &m);
	if (!ret)
		model_close(m);
	pthread_mutex_unlock(&rtd_lock);
	if (!ret)
		retire(m);
}

/*
 * What a client leaves is looked for after it is marked as gone: a model that is published
 * before is found there, one that is not, here.
 */
static bool ended_meanwhile(struct call *call, struct model *m)
{
	bool gone, unload;

	pthread_mutex_lock(&rtd_lock);
	gone = call->client->gone;
	unload = gone && !model_close(m);
	/* To unload it, here or for another client, may take longer than the caller stays. */
	if (gone)
		model_disown(m);
	if (gone && !unload)
		model_drop(m);
	pthread_mutex_unlock(&rtd_lock);
	if (unload)
		retire(m);
	return gone;
}

/* What is loaded may be another client's. Whoever reads the log may know of it. */
static void hide_others(const struct call *call, struct neuron_error *error)
{
	char *others = strstr(error->text, "; it would fit without ");

	if (!others)
		return;
	syslog(LOG_NOTICE, "pid %d: %s", call->client->pid, error->text);
	*others = 0;
}

static void load(struct call *call)
{
	const Rtd__LoadRequest *request = (const Rtd__LoadRequest *)call->message;
	struct neuron_error error = { .size = sizeof(error) };
	struct model_load l = {
		.group = request->group,
		.depth = request->depth ?: 4,
		.shared = request->shared,
		.error = &error,
	};
	const char *wrong;
	struct model *m;
	void *copy = NULL;
	int ret;

	if (call_is_gone(call)) {
		call_fail(call, GRPC_STATUS_CANCELLED, "given up");
		return;
	}
	if (l.depth > config.max_depth) {
		call_fail(call, GRPC_STATUS_INVALID_ARGUMENT, "the depth is above %u",
			  config.max_depth);
		return;
	}
	ret = find_neff(call, request, &l, &copy, &wrong);
	if (ret) {
		call_fail_errno(call, ret, wrong);
		return;
	}
	ret = model_load(call->client, &l, &m);
	free(copy);
	if (!ret) {
		ret = infer_add_model(m);
		if (ret)
			model_discard(call->client, m);
		else
			model_publish(call->client, m);
	}
	if (ret == -EBUSY && !l.group)
		ret = -EAGAIN;
	/* Nodes of the host, by name or in the file. */
	if ((ret == -ENOENT || ret == -EPERM) && *error.text)
		ret = -EOPNOTSUPP;
	if (ret) {
		hide_others(call, &error);
		call_fail_errno(call, ret, *error.text ? error.text :
				ret == -ENOENT ? "there is no such group" :
				ret == -EDQUOT ? "the client has as many models as it may" : "");
		return;
	}
	syslog(LOG_INFO, "pid %d: model %lu is loaded", call->client->pid, m->id);
	if (ended_meanwhile(call, m)) {
		call_fail_errno(call, -ECANCELED, "");
		return;
	}
	reply_load(call, m);
	model_put(m);
}

/* A model that the caller may start and stop, with a reference; NULL: the call has failed. */
static struct model *managed(struct call *call, bool close)
{
	struct model *m;
	int ret;

	pthread_mutex_lock(&rtd_lock);
	ret = model_find(call->client, handle_of(call), true, &m);
	if (!ret && close)
		model_close(m);
	pthread_mutex_unlock(&rtd_lock);
	if (!ret)
		return m;
	call_fail_errno(call, ret, ret == -ENOENT ? "there is no such model" :
			"it belongs to another user");
	return NULL;
}

static void unload_now(struct job *job)
{
	struct call *call = (struct call *)job;

	model_unload(call->model);
	reply_empty(call, 0, "");
}

static void unload(struct call *call)
{
	struct model *m = managed(call, true);

	if (!m)
		return;
	infer_refuse(m, NULL, -ECANCELED, "the model is unloaded");
	call->model = m;
	call->job.run = unload_now;
	model_when_unused(m, &call->job);
}

static void change(struct call *call, void (*run)(struct job *))
{
	struct model *m = managed(call, false);

	if (!m)
		return;
	call->model = m;
	call->job.run = run;
	model_change(m, &call->job);
}

static void end_change(struct call *call, int ret, const char *already)
{
	struct model *m = call->model;

	model_changed(m);
	model_put(m);
	if (ret)
		call_fail_errno(call, ret, ret == -EBUSY ? "another model of its group is running" :
				ret == -EALREADY ? already : "");
	else
		reply_empty(call, 0, "");
}

static void start_now(struct job *job)
{
	struct call *call = (struct call *)job;

	end_change(call, model_start(call->model), "the model is running");
}

static void start(struct call *call)
{
	change(call, start_now);
}

static void stop_idle(struct job *job)
{
	struct call *call = (struct call *)job;

	end_change(call, model_stop(call->model), "the model is not running");
}

static void stop_now(struct job *job)
{
	struct model *m = ((struct call *)job)->model;

	model_halt(m);
	infer_refuse(m, NULL, -ESHUTDOWN, "the model was stopped");
	job->run = stop_idle;
	model_when_idle(m, job);
}

static void stop(struct call *call)
{
	change(call, stop_now);
}

static void released(struct job *job)
{
	reply_empty((struct call *)job, 0, "");
}

/* Its requests may wait for those of other clients. Loads of this one are not waited for. */
static void release_memory(struct call *call)
{
	int ret;

	call->job.run = released;
	ret = buffer_remove(call->client, handle_of(call), &call->job);
	if (ret)
		reply_empty(call, ret, "there is no such memory");
}

static void free_nodes(Rtd__ModelStatus *s)
{
	for (size_t i = 0; i < s->n_nodes; i++) {
		free(s->nodes[i]->name);
		free(s->nodes[i]);
	}
	free(s->nodes);
}

static Rtd__NodeStatus *node_status(struct neuron_net *net, size_t index)
{
	struct neuron_node_stats stats = { .size = sizeof(stats) };
	struct neuron_report_model m = { 0 };
	uint64_t row[NEURON_REPORT_NR_COLUMNS];
	Rtd__NodeStatus *s = malloc(sizeof(*s));
	char *name = NULL;

	if (s && !neuron_net_node_stats(net, index, &stats))
		name = strdup(stats.name);
	if (!name) {
		free(s);
		return NULL;
	}
	m.usage = stats.usage;
	neuron_report_model_row(&m, row);
	rtd__node_status__init(s);
	s->name = name;
	s->device = neuron_device_index(neuron_core_device(stats.core));
	s->core = neuron_core_index(stats.core);
	s->runs = stats.runs;
	s->failed = stats.failed;
	s->busy_ns = stats.busy_ns;
	s->longest_ns = stats.longest_ns;
	s->memory = row[NEURON_REPORT_TOTAL];
	return s;
}

/* Nodes of the host are not loaded here. They are fewer if there is no memory. */
static void list_nodes(struct neuron_net *net, Rtd__ModelStatus *s)
{
	size_t nr = neuron_net_node_count(net);

	s->nodes = calloc(nr, sizeof(*s->nodes));
	for (size_t i = 0; s->nodes && i < nr; i++) {
		Rtd__NodeStatus *node = node_status(net, i);

		if (node)
			s->nodes[s->n_nodes++] = node;
	}
}

/* Under rtd_lock, as many as there is room for. */
static void list_models(const struct client *client, Rtd__StatusResponse *response, size_t max)
{
	const struct model *m;

	TAILQ_FOREACH(m, &models, link) {
		Rtd__ModelStatus *s;

		if (!model_usable(m, client) || response->n_models == max)
			continue;
		s = response->models[response->n_models++];
		s->model = m->id;
		s->running = m->running;
		s->shared = m->shared;
		s->own = m->client == client;
		s->depth = m->depth;
		s->under_way = m->nr_under_way;
		s->waiting = m->nr_waiting;
		s->done = m->done;
		s->failed = m->failed;
		list_nodes(m->net, s);
	}
}

static void status(struct call *call)
{
	enum { MAX = 256 };
	Rtd__StatusResponse response = RTD__STATUS_RESPONSE__INIT;
	Rtd__ModelStatus models_of[MAX], *list[MAX];

	for (size_t i = 0; i < MAX; i++) {
		rtd__model_status__init(&models_of[i]);
		list[i] = &models_of[i];
	}
	response.version = NEURON_VERSION;
	response.cores = cores_count();
	response.free_cores = (uint32_t)neuron_pool_free(cores_pool());
	response.max_message = (uint64_t)config.max_message * MIB;
	response.models = list;
	pthread_mutex_lock(&rtd_lock);
	response.clients = client_count();
	list_models(call->client, &response, MAX);
	pthread_mutex_unlock(&rtd_lock);
	call_reply(call, &response.base);
	for (size_t i = 0; i < response.n_models; i++)
		free_nodes(list[i]);
}

const struct method service_methods[] = {
	{ "/rtd.Runtime/CreateGroup", &rtd__create_group_request__descriptor, create_group,
	  .undo = undo_group, .at_a_time = 2 },
	{ "/rtd.Runtime/DestroyGroup", &rtd__handle__descriptor, destroy_group, .at_a_time = 2 },
	{ "/rtd.Runtime/Load", &rtd__load_request__descriptor, load,
	  .undo = undo_load, .slow = true, .at_a_time = 4 },
	{ "/rtd.Runtime/Unload", &rtd__handle__descriptor, unload, .slow = true, .at_a_time = 4 },
	{ "/rtd.Runtime/Start", &rtd__handle__descriptor, start, .slow = true, .at_a_time = 2 },
	{ "/rtd.Runtime/Stop", &rtd__handle__descriptor, stop, .slow = true, .at_a_time = 2 },
	{ "/rtd.Runtime/Infer", &rtd__infer_request__descriptor, infer_run, .at_a_time = 32 },
	{ "/rtd.Runtime/Post", &rtd__infer_request__descriptor, infer_post,
	  .undo = infer_undo, .at_a_time = 8 },
	{ "/rtd.Runtime/Wait", &rtd__wait_request__descriptor, infer_wait, .at_a_time = 8 },
	{ "/rtd.Runtime/ReleaseMemory", &rtd__handle__descriptor, release_memory,
	  .at_a_time = 2 },
	{ "/rtd.Runtime/Status", &rtd__empty__descriptor, status, .at_a_time = 2 },
};
const unsigned int service_nr_methods = ARRAY_SIZE(service_methods);
