// SPDX-License-Identifier: LGPL-2.1-or-later
/* Models: loading, what they are, unloading. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_experimental.h>

#include "../base/log.h"
#include "../base/process.h"
#include "../object/model.h"
#include "../object/room.h"
#include "../trace/events.h"

static void log_usage(const struct nrt_model *m)
{
	struct neuron_model_usage u = { .size = sizeof(u) };
	struct neuron_core_stats s = { .size = sizeof(s) };
	char name[NRT_TENSOR_NAME_MAX];
	uint64_t used = 0, total;

	if (!nrt_log_enabled(LOG_TDRV, LOG_INFO) || neuron_model_get_usage(m->model, &u))
		return;
	for (uint32_t nc = m->vnc->nc; nc < m->vnc->nc + nrt_process.lnc; nc++) {
		if (neuron_core_get_stats(m->vnc->device, nc, &s))
			return;
		for (size_t i = 0; i < NEURON_MAX_CATEGORIES; i++)
			used += s.device_bytes[i];
	}
	snprintf(name, sizeof(name), "%s", neuron_model_name(m->model));
	nrt_log_printable(name);
	total = nrt_usage_bytes(&u);
	LOG_AS(TDRV, INFO, "dml_log_dev_neff_mem",
	       "\n[ND %u:NC %u] Current Usage Total: %s\n\tshared scratchpad: %s\n"
	       "Per NEFF memory usage breakdown for [%s]:\n\tTotal: %s\n\t* model code: %s\n"
	       "\t* model constants: %s\n\t* scratchpad: %s\n\t* runtime: %s\n"
	       "\t* dma rings io: %s\n\t* dma rings spill: %s\n\t* dma rings collectives: %s\n"
	       "\t* dma rings runtime: %s\n\t* collectives: %s",
	       neuron_device_index(m->vnc->device), m->vnc->index, SIZE_TEXT(used),
	       SIZE_TEXT(neuron_core_scratchpad(m->vnc->core)), name, SIZE_TEXT(total),
	       SIZE_TEXT(u.code), SIZE_TEXT(u.constants), SIZE_TEXT(u.scratchpad),
	       SIZE_TEXT(u.runtime), SIZE_TEXT(u.rings_io), SIZE_TEXT(u.rings_spill),
	       SIZE_TEXT(u.rings_collectives), SIZE_TEXT(u.rings_runtime),
	       SIZE_TEXT(u.collectives));
}

/* Tensor descriptions of the loaded model. */
static NRT_STATUS describe(struct nrt_model *m)
{
	m->nr_io = neuron_model_tensor_count(m->model);
	m->info = calloc(m->nr_io + 1, sizeof(*m->info));
	m->stages = calloc(m->nr_io + 1, sizeof(*m->stages));
	m->io = calloc(m->nr_io + 1, sizeof(*m->io));
	if (!m->info || !m->stages || !m->io)
		return NRT_RESOURCE;
	for (size_t i = 0; i < m->nr_io; i++) {
		m->info[i].size = sizeof(m->info[i]);
		if (neuron_model_tensor_info(m->model, i, &m->info[i]))
			return NRT_FAILURE;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS load_failed(const struct neuron_error *error, int ret)
{
	NRT_STATUS status = nrt_status_of(ret);

	/* Figures of the file, not of the host, were out of range. */
	if (error->kind == NEURON_ERROR_NEFF_INVALID)
		status = NRT_INVALID;
	/* Memory is not what it lacks. */
	if (error->kind == NEURON_ERROR_LIMIT)
		status = NRT_UNSUPPORTED_NEFF_VERSION;
	if (error->kind == NEURON_ERROR_CORES)
		status = NRT_LOAD_NOT_ENOUGH_NC;
	LOG_AS(NMGR, ERROR, "kmgr_load_nn_post_metrics", "failed to load NN%s%s: %s, err: %d",
	       error->name[0] ? " " : "", error->name,
	       error->text[0] ? error->text : strerror(-ret), (int)status);
	return status;
}

/* What runs on a device should pretend; a card does not. */
static enum neuron_pretend pretend_on(const struct neuron_device *device)
{
	const struct nrt_env *env = &nrt_process.env;
	enum neuron_pretend pretend = NEURON_PRETEND_NONE;
	int ret = neuron_device_pretend(device, &pretend);

	if (ret == -ENOENT && env->has_pretend && env->pretend != NEURON_PRETEND_NONE)
		LOG_AS(NMGR, ERROR, "nrt_load",
		       "NEURON_RT_PRETEND has no effect on Neuron Device %u, which is no software device",
		       neuron_device_index(device));
	return ret == -ENOENT ? NEURON_PRETEND_NONE : env->has_pretend ? env->pretend : pretend;
}

/* At the level that is on. */
static void log_obstacle(const struct nrt_model *m)
{
	const char *name = neuron_model_name(m->model);
	const char *obstacle = neuron_model_obstacle(m->model);

	if (neuron_model_pretends(m->model))
		LOG_AS(NMGR, ERROR, "nrt_load",
		       "%s cannot be executed and only PRETENDS to: its outputs are not results (%s)",
		       name, obstacle);
	else if (obstacle)
		LOG_AS(NMGR, WARN, "nrt_load", "%s can be loaded but not executed: %s", name,
		       obstacle);
}

static NRT_STATUS load_on(uint32_t index, const void *bytes, size_t size, nrt_model_t **model)
{
	struct nrt_process *p = &nrt_process;
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = {
		.size = sizeof(opts),
		.verify_hash = p->verify_hash,
		.error = &error,
		.refused = nrt_room_refused,
		.max_unpacked = p->max_unpacked,
		.short_constants = p->short_constants,
		/* Those of the process from this one on. */
		.cores = (p->nr_vncs - index) * p->lnc,
		/* An execution would end with a tensor between two nodes. */
		.whole = 1,
	};
	struct nrt_model *m = calloc(1, sizeof(*m));
	struct nrt_room room;
	NRT_STATUS status;
	int ret;

	if (!m)
		return NRT_RESOURCE;
	m->vnc = &p->vncs[index];
	m->vnc_index = index;
	m->refs = 1;
	atomic_init(&m->used, atomic_fetch_add(&p->executions, 1));
	turn_init(&m->turn);
	opts.refused_data = &room;
	opts.pretend = pretend_on(m->vnc->device);
	nrt_room_begin(&room, m->vnc);
	do {
		ret = neuron_model_load(m->vnc->core, bytes, size, &opts, &m->model);
	} while (nrt_room_made(&room, ret));
	nrt_room_end(&room, ret);
	status = ret ? load_failed(&error, ret) : describe(m);
	if (status != NRT_SUCCESS) {
		nrt_model_free(m);
		return status;
	}
	log_obstacle(m);
	pthread_mutex_lock(&p->lock);
	m->id = p->next_id++;
	m->vnc->nr_models++;
	m->next = p->models;
	p->models = m;
	pthread_mutex_unlock(&p->lock);
	log_usage(m);
	*model = m;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc,
				  int32_t vnc_count, nrt_model_t **model)
{
	uint64_t began = nrt_trace_begin();
	struct nrt_process *p = &nrt_process;
	NRT_STATUS status;
	uint32_t index;

	NRT_ENTER();
	if (neff_bytes && !size) {
		LOG(NMGR, ERROR, "invalid argument: the NEFF is empty");
		return NRT_INVALID;
	}
	if (!neff_bytes || !model || vnc < -1 || vnc_count < -1) {
		LOG(NMGR, ERROR, "invalid argument: %zu bytes, core %d, %d cores", size, vnc,
		    vnc_count);
		return NRT_INVALID;
	}
	if ((vnc >= 0 && (uint32_t)vnc >= p->nr_vncs) || vnc_count > 1) {
		LOG_AS(TDRV, ERROR, "db_vtpb_get_mla_and_tpb", "could not find VNC id %d, count %d",
		       vnc, vnc_count);
		return NRT_LOAD_NOT_ENOUGH_NC;
	}
	index = vnc < 0 ? nrt_emptiest_vnc() : (uint32_t)vnc;
	status = load_on(index, neff_bytes, size, model);
	nrt_trace_end(began, NRT_TRACE_LOAD, index, status, size,
		      status == NRT_SUCCESS ? neuron_model_name((*model)->model) : NULL);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_unload(nrt_model_t *model)
{
	struct nrt_process *p = &nrt_process;
	uint64_t began = nrt_trace_begin();
	struct nrt_model **at, *found;
	NRT_STATUS status = NRT_SUCCESS;
	uint32_t vnc = 0;

	NRT_ENTER();
	pthread_mutex_lock(&p->lock);
	for (at = &p->models; *at && *at != model; at = &(*at)->next)
		;
	found = *at;
	if (found) {
		vnc = found->vnc_index;
		*at = found->next;
		found->vnc->nr_models--;
	}
	pthread_mutex_unlock(&p->lock);
	if (!found)
		status = NRT_INVALID_HANDLE;
	nrt_model_put(found);
	nrt_trace_end(began, NRT_TRACE_UNLOAD, vnc, status, 0, NULL);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model,
						   nrt_tensor_info_array_t **tensor_info)
{
	nrt_tensor_info_array_t *array;

	NRT_ENTER();
	NRT_MODEL(m, model);
	if (!tensor_info)
		return NRT_INVALID;
	array = calloc(1, sizeof(*array) + m->nr_io * sizeof(array->tensor_array[0]));
	if (!array)
		return NRT_RESOURCE;
	for (size_t i = 0; i < m->nr_io; i++) {
		const struct neuron_tensor_info *info = &m->info[i];
		nrt_tensor_info_t *t = &array->tensor_array[i];

		array->tensor_count = i + 1;
		strncpy(t->name, info->name, sizeof(t->name) - 1);
		t->usage = (nrt_tensor_usage_t)info->usage;
		t->size = info->bytes;
		t->dtype = (nrt_dtype_t)info->dtype;
		t->ndim = info->ndim;
		t->shape = calloc(info->ndim ? info->ndim : 1, sizeof(*t->shape));
		if (!t->shape) {
			nrt_free_model_tensor_info(array);
			return NRT_RESOURCE;
		}
		memcpy(t->shape, info->shape, info->ndim * sizeof(*t->shape));
	}
	*tensor_info = array;
	return NRT_SUCCESS;
}

/* Callable at any time: it is plain memory. */
NEURON_EXPORT NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info)
{
	if (!tensor_info)
		return NRT_INVALID;
	for (uint64_t i = 0; i < tensor_info->tensor_count; i++)
		free(tensor_info->tensor_array[i].shape);
	free(tensor_info);
	return NRT_SUCCESS;
}

static NRT_STATUS model_number(const nrt_model_t *model, uint32_t *out, uint32_t value)
{
	NRT_ENTER();
	NRT_MODEL(m, model);
	if (!out)
		return NRT_INVALID;
	*out = value;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count)
{
	return model_number(model, vnc_count, 1);
}

NEURON_EXPORT NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *nc_count)
{
	return model_number(model, nc_count, 1);
}

NEURON_EXPORT NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count)
{
	return model_number(model, instance_count, 1);
}

NEURON_EXPORT NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info,
					    size_t size_in, size_t *size_out)
{
	nrt_model_info_t ours;
	size_t size = size_in < sizeof(ours) ? size_in : sizeof(ours);

	NRT_ENTER();
	NRT_MODEL(m, model);
	if (!info)
		return NRT_INVALID;
	ours.vnc = m->vnc_index;
	memcpy(info, &ours, size);
	if (size_out)
		*size_out = size;
	return NRT_SUCCESS;
}
