// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <sys/eventfd.h>
#include <syslog.h>

#include "../common/lock.h"
#include "../common/util.h"
#include "config.h"
#include "cores.h"
#include "model.h"

struct model_list models = TAILQ_HEAD_INITIALIZER(models);
static TAILQ_HEAD(group_list, group) groups = TAILQ_HEAD_INITIALIZER(groups);
/* A model lost a reference, or is unloaded. */
static pthread_cond_t dropped = PTHREAD_COND_INITIALIZER;

/* ---- groups ---------------------------------------------------------------------------- */

static struct group *group_find(struct client *client, uint64_t id)
{
	struct group *g;

	TAILQ_FOREACH(g, &groups, link)
		if (g->id == id && g->client == client)
			break;
	return g;
}

int group_new(struct client *client, uint32_t cores, uint64_t *id)
{
	struct group *g;
	int ret;

	GUARD(&rtd_lock);
	if (client->gone)
		return -ESRCH;
	if (client->nr_groups == CLIENT_MAX_GROUPS)
		return -EDQUOT;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	ret = neuron_group_create(cores_pool(), cores, &g->cores);
	if (ret) {
		free(g);
		return ret;
	}
	g->id = *id = new_id();
	g->client = client;
	client->nr_groups++;
	TAILQ_INSERT_TAIL(&groups, g, link);
	return 0;
}

static void group_free(struct group *g)
{
	int ret = neuron_group_destroy(g->cores);

	if (ret)
		syslog(LOG_ERR, "a group keeps its cores: %s", strerror(-ret));
	if (g->client)
		g->client->nr_groups--;
	TAILQ_REMOVE(&groups, g, link);
	free(g);
}

int group_destroy(struct client *client, uint64_t id)
{
	struct group *g;

	GUARD(&rtd_lock);
	g = group_find(client, id);
	if (!g)
		return -ENOENT;
	if (g->nr_models)
		return -EBUSY;
	group_free(g);
	return 0;
}

void groups_of_ended(struct client *client)
{
	struct group *g, *next;

	GUARD(&rtd_lock);
	for (g = TAILQ_FIRST(&groups); g; g = next) {
		next = TAILQ_NEXT(g, link);
		if (g->client != client)
			continue;
		if (g->nr_models)
			g->client = NULL;
		else
			group_free(g);
	}
}

static void group_leave(struct group *g)
{
	GUARD(&rtd_lock);
	if (!--g->nr_models && !g->client)
		group_free(g);
}

/* ---- loading --------------------------------------------------------------------------- */

static int read_tensors(struct model *m)
{
	m->nr_tensors = neuron_net_tensor_count(m->net);
	if (m->nr_tensors > MODEL_MAX_TENSORS)
		return -E2BIG;
	m->tensors = calloc(m->nr_tensors + 1, sizeof(*m->tensors));
	if (!m->tensors)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_tensors; i++) {
		m->tensors[i].size = sizeof(m->tensors[i]);
		neuron_net_tensor_info(m->net, i, &m->tensors[i]);
		if (m->tensors[i].usage == NEURON_TENSOR_OUTPUT)
			add_capped(&m->output_bytes, m->tensors[i].bytes);
	}
	return 0;
}

static int make_slot(struct model *m, struct slot *s, struct neuron_error *error)
{
	struct neuron_core *core = neuron_net_core(m->net);
	struct neuron_device *device = neuron_core_device(core);
	const struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.hbm = neuron_device_geometry(device)->core_hbm[neuron_core_index(core)],
		.nc = neuron_core_index(core),
		.category = NEURON_MEM_TENSORS,
		.failure = &error->memory,
	};

	s->mem = calloc(m->nr_tensors + 1, sizeof(*s->mem));
	s->io = calloc(m->nr_tensors + 1, sizeof(*s->io));
	if (!s->mem || !s->io)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_tensors; i++) {
		int ret = neuron_mem_alloc(device, m->tensors[i].bytes, &opts, &s->mem[i]);

		if (ret) {
			snprintf(error->text, sizeof(error->text), "no memory for %s: %s",
				 m->tensors[i].name, strerror(-ret));
			return ret;
		}
		s->io[i] = (struct neuron_io){ m->tensors[i].name, s->mem[i], 0,
					       m->tensors[i].bytes };
	}
	TAILQ_INSERT_TAIL(&m->free_slots, s, link);
	return 0;
}

static void model_free(struct model *m)
{
	/* Ends what uses the memory of slots. */
	neuron_net_unload(m->net);
	for (uint32_t i = 0; m->slots && i < m->depth; i++) {
		for (size_t t = 0; m->slots[i].mem && t < m->nr_tensors; t++)
			neuron_mem_free(m->slots[i].mem[t]);
		free(m->slots[i].mem);
		free(m->slots[i].io);
	}
	free(m->slots);
	free(m->tensors);
	if (m->eventfd >= 0)
		close(m->eventfd);
	if (m->group)
		group_leave(m->group);
	free(m);
}

static int load_net(struct model *m, const struct model_load *load)
{
	const struct neuron_net_opts opts = {
		.size = sizeof(opts),
		.group = m->group ? m->group->cores : NULL,
		.depth = load->depth,
		.error = load->error,
		.timeout_ms = (int)config.timeout * 1000,
		.max_unpacked = 2ull * config.max_neff * MIB,
		.max_descriptors = config.max_descriptors,
	};
	int ret = neuron_net_load(cores_pool(), load->neff, load->bytes, &opts, &m->net) ?:
		  read_tensors(m);

	if (ret)
		return ret;
	m->slots = calloc(m->depth, sizeof(*m->slots));
	m->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!m->slots || m->eventfd < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->depth && !ret; i++)
		ret = make_slot(m, &m->slots[i], load->error);
	return ret ?: neuron_net_set_eventfd(m->net, m->eventfd);
}

/* Counted before it is loaded, so that a client cannot load more at once than one by one. */
static int model_enter(struct client *client, uint64_t group, struct model *m)
{
	GUARD(&rtd_lock);
	if (client->gone)
		return -ESRCH;
	if (client->nr_models == CLIENT_MAX_MODELS)
		return -EDQUOT;
	if (group) {
		m->group = group_find(client, group);
		if (!m->group)
			return -ENOENT;
		m->group->nr_models++;
	}
	client->nr_models++;
	m->id = new_id();
	return 0;
}

void model_discard(struct client *client, struct model *m)
{
	model_free(m);
	GUARD(&rtd_lock);
	client->nr_models--;
}

void model_publish(struct client *client, struct model *m)
{
	GUARD(&rtd_lock);
	m->refs = 2;
	m->client = client;
	m->uid = client->uid;
	m->running = !m->group;
	TAILQ_INSERT_TAIL(&models, m, link);
}

int model_load(struct client *client, const struct model_load *load, struct model **model)
{
	struct model *m = calloc(1, sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	TAILQ_INIT(&m->free_slots);
	TAILQ_INIT(&m->waiting);
	TAILQ_INIT(&m->under_way);
	TAILQ_INIT(&m->changes);
	m->eventfd = -1;
	m->depth = load->depth;
	m->shared = load->shared;
	ret = model_enter(client, load->group, m);
	if (ret) {
		free(m);
		return ret;
	}
	ret = load_net(m, load);
	if (ret) {
		model_discard(client, m);
		return ret;
	}
	*model = m;
	return 0;
}

/* ---- the table ------------------------------------------------------------------------- */

struct model *model_by_id(uint64_t id)
{
	struct model *m;

	TAILQ_FOREACH(m, &models, link)
		if (m->id == id)
			break;
	return m;
}

bool model_usable(const struct model *model, const struct client *client)
{
	return !model->closing && (model->client == client || model->shared);
}

int model_find(struct client *client, uint64_t id, bool manage, struct model **model)
{
	struct model *m = model_by_id(id);

	if (!m || !model_usable(m, client))
		return -ENOENT;
	if (manage && m->client != client &&
	    (client->uid == CLIENT_NOBODY || (client->uid && client->uid != m->uid)))
		return -EPERM;
	m->refs++;
	*model = m;
	return 0;
}

/* Whether it is time for the job that waits for it. */
static void look_unused(struct model *model)
{
	struct job *job = model->when_unused;

	if (!job || model->refs > 1)
		return;
	model->when_unused = NULL;
	job_add(job);
}

void model_drop(struct model *model)
{
	model->refs--;
	pthread_cond_broadcast(&dropped);
	look_unused(model);
}

void model_put(struct model *model)
{
	GUARD(&rtd_lock);
	model_drop(model);
}

struct slot *model_take_slot(struct model *model)
{
	struct slot *slot = TAILQ_FIRST(&model->free_slots);

	if (slot) {
		TAILQ_REMOVE(&model->free_slots, slot, link);
		model->nr_busy++;
	}
	return slot;
}

static void look_idle(struct model *model)
{
	struct job *job = model->when_idle;

	if (!job || model->nr_busy)
		return;
	model->when_idle = NULL;
	job_add(job);
}

void model_free_slot(struct model *model, struct slot *slot)
{
	TAILQ_INSERT_TAIL(&model->free_slots, slot, link);
	model->nr_busy--;
	look_idle(model);
}

void model_when_idle(struct model *model, struct job *job)
{
	GUARD(&rtd_lock);
	model->when_idle = job;
	look_idle(model);
}

void model_when_unused(struct model *model, struct job *job)
{
	GUARD(&rtd_lock);
	model->when_unused = job;
	model_drop(model);
}

void model_change(struct model *model, struct job *job)
{
	GUARD(&rtd_lock);
	TAILQ_INSERT_TAIL(&model->changes, job, changes);
	if (TAILQ_FIRST(&model->changes) == job)
		job_add(job);
}

void model_changed(struct model *model)
{
	struct job *next;

	GUARD(&rtd_lock);
	TAILQ_REMOVE(&model->changes, TAILQ_FIRST(&model->changes), changes);
	next = TAILQ_FIRST(&model->changes);
	if (next)
		job_add(next);
}

int model_start(struct model *model)
{
	int ret = neuron_net_start(model->net);

	if (!ret) {
		GUARD(&rtd_lock);
		model->running = !model->closing;
	}
	return ret;
}

void model_halt(struct model *model)
{
	GUARD(&rtd_lock);
	model->running = false;
}

int model_stop(struct model *model)
{
	return neuron_net_stop(model->net);
}

int model_close(struct model *model)
{
	if (model->closing)
		return -ENOENT;
	model->closing = true;
	model->running = false;
	return 0;
}

void model_disown(struct model *model)
{
	if (model->client)
		model->client->nr_models--;
	model->client = NULL;
}

void model_unload(struct model *model)
{
	pthread_mutex_lock(&rtd_lock);
	/* A thread may only have looked at its requests. */
	while (model->refs > 1)
		pthread_cond_wait(&dropped, &rtd_lock);
	TAILQ_REMOVE(&models, model, link);
	pthread_cond_broadcast(&dropped);
	model_disown(model);
	pthread_mutex_unlock(&rtd_lock);
	syslog(LOG_INFO, "model %lu is unloaded", model->id);
	model_free(model);
}

struct model *model_of_ended(struct client *client)
{
	struct model *m;

	GUARD(&rtd_lock);
	TAILQ_FOREACH(m, &models, link) {
		if (m->client != client)
			continue;
		if (!m->shared && !model_close(m)) {
			m->refs++;
			return m;
		}
		/* One that another call unloads just now may outlast its client, too. */
		model_disown(m);
	}
	return NULL;
}

struct model *model_close_next(void)
{
	struct model *m;

	GUARD(&rtd_lock);
	TAILQ_FOREACH(m, &models, link)
		if (!model_close(m)) {
			m->refs++;
			break;
		}
	return m;
}

void models_wait(void)
{
	GUARD(&rtd_lock);
	while (!TAILQ_EMPTY(&models))
		pthread_cond_wait(&dropped, &rtd_lock);
}
