// SPDX-License-Identifier: LGPL-2.1-or-later
/* Models: load, run, unload. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../uapi/neuron_isa.h"
#include "internal.h"
#include "../trace/profile.h"

NRT_STATUS nrt_status_of(int ret)
{
	switch (ret) {
	case 0: return NRT_SUCCESS;
	case -EINVAL: return NRT_INVALID;
	case -ENOMEM:
	case -E2BIG: return NRT_RESOURCE;
	case -EOPNOTSUPP: return NRT_UNSUPPORTED_NEFF_VERSION;
	case -ETIMEDOUT: return NRT_TIMEOUT;
	case -EBUSY: return NRT_EXEC_NC_BUSY;
	case -ENODEV:
	case -EIO: return NRT_HW_ERROR;
	default: return NRT_FAILURE;
	}
}

/* ---- loading ----------------------------------------------------------------------- */

static void log_usage(const struct nrt_model *m)
{
	struct neuron_model_usage u = { .size = sizeof(u) };
	struct neuron_core_stats s = { .size = sizeof(s) };
	char text[12][32], name[NRT_TENSOR_NAME_MAX];
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
	total = u.code + u.constants + u.scratchpad + u.runtime + u.rings_io + u.rings_spill +
		u.rings_collectives + u.rings_runtime + u.collectives;
	LOG_AS(TDRV, INFO, "dml_log_dev_neff_mem",
	       "\n[ND %u:NC %u] Current Usage Total: %s\n\tshared scratchpad: %s\n"
	       "Per NEFF memory usage breakdown for [%s]:\n\tTotal: %s\n\t* model code: %s\n"
	       "\t* model constants: %s\n\t* scratchpad: %s\n\t* runtime: %s\n"
	       "\t* dma rings io: %s\n\t* dma rings spill: %s\n\t* dma rings collectives: %s\n"
	       "\t* dma rings runtime: %s\n\t* collectives: %s",
	       neuron_device_index(m->vnc->device), m->vnc->index,
	       neuron_report_size(used, text[0], sizeof(text[0])),
	       neuron_report_size(neuron_core_scratchpad(m->vnc->core), text[1], sizeof(text[1])),
	       name, neuron_report_size(total, text[2], sizeof(text[2])),
	       neuron_report_size(u.code, text[3], sizeof(text[3])),
	       neuron_report_size(u.constants, text[4], sizeof(text[4])),
	       neuron_report_size(u.scratchpad, text[5], sizeof(text[5])),
	       neuron_report_size(u.runtime, text[6], sizeof(text[6])),
	       neuron_report_size(u.rings_io, text[7], sizeof(text[7])),
	       neuron_report_size(u.rings_spill, text[8], sizeof(text[8])),
	       neuron_report_size(u.rings_collectives, text[9], sizeof(text[9])),
	       neuron_report_size(u.rings_runtime, text[10], sizeof(text[10])),
	       neuron_report_size(u.collectives, text[11], sizeof(text[11])));
}

static void model_free(struct nrt_model *m)
{
	neuron_model_unload(m->model);
	for (size_t i = 0; i < m->nr_io && m->stages; i++)
		neuron_mem_free(m->stages[i].mem);
	pthread_mutex_destroy(&m->lock);
	free(m->info);
	free(m->stages);
	free(m->io);
	free(m);
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

static NRT_STATUS load_on(uint32_t index, const void *bytes, size_t size, nrt_model_t **model)
{
	struct nrt_process *p = &nrt_process;
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_model_opts opts = {
		.size = sizeof(opts),
		.verify_hash = p->verify_hash,
		.error = &error,
		.refused = nrt_refused,
		.max_unpacked = p->max_unpacked,
		.short_constants = p->short_constants,
		/* Those of the process from this one on. */
		.cores = (p->nr_vncs - index) * p->lnc,
	};
	struct nrt_model *m = calloc(1, sizeof(*m));
	NRT_STATUS status;
	int ret;

	if (!m)
		return NRT_RESOURCE;
	m->vnc = &p->vncs[index];
	m->vnc_index = index;
	m->refs = 1;
	pthread_mutex_init(&m->lock, NULL);
	opts.refused_data = m->vnc->device;
	ret = neuron_model_load(m->vnc->core, bytes, size, &opts, &m->model);
	status = ret ? load_failed(&error, ret) : describe(m);
	if (status != NRT_SUCCESS) {
		model_free(m);
		return status;
	}
	if (neuron_model_obstacle(m->model))
		LOG_AS(NMGR, WARN, "nrt_load", "%s can be loaded but not executed: %s",
		       neuron_model_name(m->model), neuron_model_obstacle(m->model));
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

uint32_t nrt_emptiest_vnc(void)
{
	struct nrt_process *p = &nrt_process;
	uint32_t best = 0;

	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 1; i < p->nr_vncs; i++)
		if (p->vncs[i].nr_models < p->vncs[best].nr_models)
			best = i;
	pthread_mutex_unlock(&p->lock);
	return best;
}

NRT_EXPORT NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc,
			       int32_t vnc_count, nrt_model_t **model)
{
	uint64_t began = nrt_trace_begin();
	struct nrt_process *p = &nrt_process;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (neff_bytes && !size) {
		LOG(NMGR, ERROR, "invalid argument: the NEFF is empty");
		status = NRT_INVALID;
	} else if (!neff_bytes || !model || vnc < -1 || vnc_count < -1) {
		LOG(NMGR, ERROR, "invalid argument: %zu bytes, core %d, %d cores", size, vnc,
		    vnc_count);
		status = NRT_INVALID;
	} else if ((vnc >= 0 && (uint32_t)vnc >= p->nr_vncs) || vnc_count > 1) {
		LOG_AS(TDRV, ERROR, "db_vtpb_get_mla_and_tpb", "could not find VNC id %d, count %d",
		       vnc, vnc_count);
		status = NRT_LOAD_NOT_ENOUGH_NC;
	} else {
		uint32_t index = vnc < 0 ? nrt_emptiest_vnc() : (uint32_t)vnc;

		status = load_on(index, neff_bytes, size, model);
		nrt_trace_end(began, NRT_TRACE_LOAD, index, status, size,
			      status == NRT_SUCCESS ? neuron_model_name((*model)->model) : NULL);
	}
	nrt_leave();
	return status;
}

/*
 * The list tells handles from anything else.  NULL, or the model, which stays until
 * nrt_model_put() even if another thread unloads it.
 */
struct nrt_model *nrt_model_get(const struct nrt_model *handle)
{
	struct nrt_model *m;

	pthread_mutex_lock(&nrt_process.lock);
	for (m = nrt_process.models; m && m != handle; m = m->next)
		;
	if (m)
		m->refs++;
	pthread_mutex_unlock(&nrt_process.lock);
	return m;
}

void nrt_model_put(struct nrt_model *m)
{
	bool last;

	if (!m)
		return;
	pthread_mutex_lock(&nrt_process.lock);
	last = !--m->refs;
	pthread_mutex_unlock(&nrt_process.lock);
	if (last)
		model_free(m);
}

NRT_EXPORT NRT_STATUS nrt_unload(nrt_model_t *model)
{
	struct nrt_process *p = &nrt_process;
	uint64_t began = nrt_trace_begin();
	struct nrt_model **at, *found = NULL;
	NRT_STATUS status = nrt_enter();
	uint32_t vnc = 0;

	if (status != NRT_SUCCESS)
		return status;
	pthread_mutex_lock(&p->lock);
	for (at = &p->models; *at; at = &(*at)->next)
		if (*at == model) {
			found = model;
			vnc = model->vnc_index;
			*at = model->next;
			model->vnc->nr_models--;
			break;
		}
	pthread_mutex_unlock(&p->lock);
	if (found)
		nrt_model_put(found);
	else
		status = NRT_INVALID_HANDLE;
	nrt_trace_end(began, NRT_TRACE_UNLOAD, vnc, status, 0, NULL);
	nrt_leave();
	return status;
}

/* Under the life lock for writing: nobody else is in here. */
void nrt_models_close(void)
{
	struct nrt_process *p = &nrt_process;

	while (p->models) {
		struct nrt_model *m = p->models;

		p->models = m->next;
		model_free(m);
	}
}

/* ---- running ----------------------------------------------------------------------- */

static int stage_get(struct nrt_model *m, size_t i)
{
	struct nrt_stage *stage = &m->stages[i];
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = NEURON_MEM_F_HOST,
		.nc = m->vnc->nc,
		.category = NEURON_MEM_HOST_TENSORS,
	};
	int ret;

	if (stage->mem)
		return 0;
	ret = neuron_mem_alloc(m->vnc->device, m->info[i].bytes, &opts, &stage->mem);
	if (ret)
		return ret;
	ret = neuron_mem_map(stage->mem, &stage->va);
	if (ret) {
		neuron_mem_free(stage->mem);
		stage->mem = NULL;
	}
	return ret;
}

static nrt_tensor_t *tensor_of(const struct nrt_model *m, size_t i, const struct nrt_set *in,
			       const struct nrt_set *out, size_t hint)
{
	return nrt_set_find(m->info[i].usage == NEURON_TENSOR_INPUT ? in : out, m->info[i].name,
			    hint);
}

static NRT_STATUS bind(struct nrt_model *m, const struct nrt_set *in, const struct nrt_set *out)
{
	size_t seen[2] = { 0, 0 };

	for (size_t i = 0; i < m->nr_io; i++) {
		const struct neuron_tensor_info *info = &m->info[i];
		nrt_tensor_t *t = tensor_of(m, i, in, out, seen[info->usage]++);
		const char *what = NULL;
		int ret;

		if (!t)
			what = "is not in the set";
		else if (!nrt_tensor_valid(t))
			what = "was freed";
		else if (!nrt_tensor_stored(t))
			what = "has no storage";
		else if (t->size < info->bytes)
			what = "is too small";
		else if (t->storage->kind != NRT_STORAGE_USER &&
			 t->storage->device != m->vnc->device)
			what = "is on another device";
		if (what) {
			LOG_AS(NMGR, ERROR, "nrt_execute", "%s %s of %s %s",
			       info->usage == NEURON_TENSOR_INPUT ? "input" : "output", info->name,
			       neuron_model_name(m->model), what);
			return NRT_INVALID;
		}
		m->io[i].name = info->name;
		m->io[i].bytes = info->bytes;
		if (t->storage->kind != NRT_STORAGE_USER) {
			m->io[i].mem = t->storage->mem;
			m->io[i].offset = t->offset;
			continue;
		}
		ret = stage_get(m, i);
		if (ret) {
			LOG_AS(NMGR, ERROR, "nrt_execute", "no host memory for %s: %s", info->name,
			       strerror(-ret));
			return nrt_status_of(ret);
		}
		m->io[i].mem = m->stages[i].mem;
		m->io[i].offset = 0;
		if (info->usage == NEURON_TENSOR_INPUT)
			memcpy(m->stages[i].va, (char *)t->storage->user + t->offset, info->bytes);
	}
	return NRT_SUCCESS;
}

static void copy_out(struct nrt_model *m, const struct nrt_set *out)
{
	for (size_t i = 0; i < m->nr_io; i++) {
		nrt_tensor_t *t;

		if (m->info[i].usage != NEURON_TENSOR_OUTPUT)
			continue;
		t = nrt_set_find(out, m->info[i].name, 0);
		if (t->storage->kind == NRT_STORAGE_USER)
			memcpy((char *)t->storage->user + t->offset, m->stages[i].va,
			       m->info[i].bytes);
	}
}

/* Wakes up who waits for the outputs, so the last thing that is done with them. */
static void outputs_written(const struct nrt_model *m, const struct nrt_set *out)
{
	for (size_t i = 0; i < m->nr_io; i++)
		if (m->info[i].usage == NEURON_TENSOR_OUTPUT)
			nrt_tensor_written(nrt_set_find(out, m->info[i].name, 0));
}

static NRT_STATUS run_status(const struct neuron_run_result *r, int ret)
{
	if (ret != -EIO || r->status == NEURON_RUN_DONE)
		return nrt_status_of(ret);
	switch (r->notice.code) {
	case NEURON_ISA_ERR_BOUNDS:
	case NEURON_ISA_ERR_DMA_ACCESS:
		return NRT_EXEC_OOB;
	case NEURON_ISA_ERR_DMA_DESC:
	case NEURON_ISA_ERR_DMA_RING:
		return NRT_EXEC_HW_ERR_DMA_ABORT;
	case NEURON_ISA_ERR_MEM_UE:
		return NRT_EXEC_HW_ERR_HBM_UE;
	case NEURON_ISA_ERR_MEM_REPAIRABLE:
		return NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE;
	case NEURON_ISA_ERR_SRAM_UE:
		return NRT_EXEC_HW_ERR_NC_UE;
	case NEURON_ISA_ERR_ABORT:
		return r->status == NEURON_RUN_DMA_ERROR ? NRT_EXEC_HW_ERR_DMA_ABORT :
							   NRT_EXEC_COMPLETED_WITH_ERR;
	default:
		return NRT_EXEC_COMPLETED_WITH_ERR;
	}
}

static NRT_STATUS run_failed(const struct nrt_model *m, const struct neuron_run_result *r, int ret)
{
	NRT_STATUS status = run_status(r, ret);
	unsigned int nd = neuron_device_index(m->vnc->device);
	const char *name = neuron_model_name(m->model);

	if (ret == -EOPNOTSUPP)
		LOG_AS(NMGR, ERROR, "nrt_execute", "%s cannot be executed: %s", name, r->text);
	else if (ret == -ETIMEDOUT)
		LOG_AS(NMGR, ERROR, "nrt_execute",
		       "(FATAL-RT-UNDEFINED-STATE) execution timeout (%d ms) on Neuron Device %u NC %u, model %s, waiting for execution completion notification",
		       nrt_process.timeout_ms, nd, m->vnc->index, name);
	else if (r->status != NEURON_RUN_DONE)
		LOG_AS(TDRV, ERROR, "generate_custom_notification_msg",
		       "nd%u:nc%u:h_model.id%u: %s", nd, m->vnc->index, m->id, r->text);
	LOG_AS(NMGR, ERROR, "dlr_infer",
	       "Inference completed with err: %d. mode->h_nn=%u, start_nc=%u, nc_count=1%s%s",
	       (int)status, m->id, m->vnc_index, r->status == NEURON_RUN_DONE ? ": " : "",
	       r->status != NEURON_RUN_DONE ? "" : r->text[0] ? r->text : strerror(-ret));
	return status;
}

static NRT_STATUS run(struct nrt_model *m, const struct nrt_set *in, const struct nrt_set *out)
{
	struct neuron_run_result result = { .size = sizeof(result) };
	uint64_t began = nrt_trace_begin();
	NRT_STATUS status = NRT_SUCCESS;
	int ret;

	if (!neuron_model_obstacle(m->model))
		status = bind(m, in, out);
	if (status == NRT_INVALID)
		neuron_core_count(m->vnc->core, NEURON_CORE_BAD_INPUT);
	if (status == NRT_SUCCESS) {
		ret = neuron_model_run(m->model, m->io, m->nr_io, nrt_process.timeout_ms, &result);
		if (ret) {
			status = run_failed(m, &result, ret);
		} else {
			copy_out(m, out);
			status = nrt_numeric_check(m, out);
			outputs_written(m, out);
		}
	}
	if (status == NRT_EXEC_COMPLETED_WITH_NUM_ERR)
		neuron_core_count(m->vnc->core, NEURON_CORE_NUMERICAL);
	if (status != NRT_SUCCESS) {
		nrt_execution_failed(m, in, status);
		nrt_inspect_failure();
	}
	nrt_trace_end(began, NRT_TRACE_EXECUTE, m->vnc_index, status, 0,
		      neuron_model_name(m->model));
	return status;
}

/* Input @i of the sets that output @o goes to in the next run. */
static bool pair(const struct nrt_model *m, size_t *out, size_t *in)
{
	while (*out < m->nr_io && m->info[*out].usage != NEURON_TENSOR_OUTPUT)
		(*out)++;
	while (*in < m->nr_io && m->info[*in].usage != NEURON_TENSOR_INPUT)
		(*in)++;
	return *out < m->nr_io;
}

static NRT_STATUS feed_back(struct nrt_model *m, const struct nrt_set *in,
			    const struct nrt_set *out, bool check)
{
	size_t o = 0, i = 0;

	for (; pair(m, &o, &i); o++, i++) {
		nrt_tensor_t *from, *to;
		NRT_STATUS status;

		if (i >= m->nr_io || m->info[i].bytes != m->info[o].bytes) {
			LOG_AS(NMGR, ERROR, "nrt_execute_repeat",
			       "%s has no input of the size of its output %s",
			       neuron_model_name(m->model), m->info[o].name);
			return NRT_INVALID;
		}
		from = nrt_set_find(out, m->info[o].name, 0);
		to = nrt_set_find(in, m->info[i].name, 0);
		if (check || from == to)
			continue;
		status = nrt_tensor_move("nrt_execute_repeat", from, 0, to, 0,
					 m->info[i].bytes);
		if (status != NRT_SUCCESS)
			return status;
	}
	return NRT_SUCCESS;
}

/* Under the life lock, or in a thread that ends before the runtime does. */
NRT_STATUS nrt_model_execute(struct nrt_model *m, const struct nrt_set *in,
			     const struct nrt_set *out, int repeat_count)
{
	NRT_STATUS status = NRT_SUCCESS;

	pthread_mutex_lock(&m->lock);
	if (repeat_count > 1)
		status = feed_back(m, in, out, true);
	for (int i = 0; i < repeat_count && status == NRT_SUCCESS; i++) {
		if (i)
			status = feed_back(m, in, out, false);
		if (status == NRT_SUCCESS)
			status = run(m, in, out);
	}
	pthread_mutex_unlock(&m->lock);
	return status;
}

static NRT_STATUS execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
			  nrt_tensor_set_t *output_set, int repeat_count)
{
	const struct nrt_set *in = nrt_set_of(input_set), *out = nrt_set_of(output_set);
	NRT_STATUS status = nrt_enter();
	struct nrt_model *m;

	if (status != NRT_SUCCESS)
		return status;
	m = nrt_model_get(model);
	if (!m) {
		status = NRT_INVALID_HANDLE;
		goto out;
	}
	if ((input_set && !in) || (output_set && !out) || repeat_count < 1) {
		status = NRT_INVALID;
	} else if (repeat_count == 1 && nrt_async_implicit()) {
		/* It takes the model. */
		status = nrt_async_execute(m, in, out, 0, true, NULL, NULL);
		m = NULL;
	} else {
		status = nrt_model_execute(m, in, out, repeat_count);
	}
out:
	nrt_model_put(m);
	nrt_leave();
	return status;
}

NRT_EXPORT NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
				  nrt_tensor_set_t *output_set)
{
	return execute(model, input_set, output_set, 1);
}

NRT_EXPORT NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
					 nrt_tensor_set_t *output_set, int repeat_count)
{
	return execute(model, input_set, output_set, repeat_count);
}

/* ---- what a model is --------------------------------------------------------------- */

NRT_EXPORT NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model,
						nrt_tensor_info_array_t **tensor_info)
{
	nrt_tensor_info_array_t *array;
	NRT_STATUS status = nrt_enter();
	struct nrt_model *m;

	if (status != NRT_SUCCESS)
		return status;
	m = nrt_model_get(model);
	if (!m) {
		status = NRT_INVALID_HANDLE;
		goto out;
	}
	if (!tensor_info) {
		status = NRT_INVALID;
		goto out;
	}
	array = calloc(1, sizeof(*array) + model->nr_io * sizeof(array->tensor_array[0]));
	if (!array) {
		status = NRT_RESOURCE;
		goto out;
	}
	for (size_t i = 0; i < model->nr_io; i++) {
		const struct neuron_tensor_info *info = &model->info[i];
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
			status = NRT_RESOURCE;
			goto out;
		}
		memcpy(t->shape, info->shape, info->ndim * sizeof(*t->shape));
	}
	*tensor_info = array;
out:
	nrt_model_put(m);
	nrt_leave();
	return status;
}

/* Callable at any time: it is plain memory. */
NRT_EXPORT NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info)
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
	NRT_STATUS status = nrt_enter();
	struct nrt_model *m;

	if (status != NRT_SUCCESS)
		return status;
	m = nrt_model_get(model);
	if (!m)
		status = NRT_INVALID_HANDLE;
	else if (!out)
		status = NRT_INVALID;
	else
		*out = value;
	nrt_model_put(m);
	nrt_leave();
	return status;
}

NRT_EXPORT NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count)
{
	return model_number(model, vnc_count, 1);
}

NRT_EXPORT NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *nc_count)
{
	return model_number(model, nc_count, 1);
}

NRT_EXPORT NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count)
{
	return model_number(model, instance_count, 1);
}

NRT_EXPORT NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info,
					 size_t size_in, size_t *size_out)
{
	nrt_model_info_t ours;
	NRT_STATUS status = nrt_enter();
	struct nrt_model *m;

	if (status != NRT_SUCCESS)
		return status;
	m = nrt_model_get(model);
	if (!m) {
		status = NRT_INVALID_HANDLE;
	} else if (!info) {
		status = NRT_INVALID;
	} else {
		size_t size = size_in < sizeof(ours) ? size_in : sizeof(ours);

		ours.vnc = model->vnc_index;
		memcpy(info, &ours, size);
		if (size_out)
			*size_out = size;
	}
	nrt_model_put(m);
	nrt_leave();
	return status;
}
