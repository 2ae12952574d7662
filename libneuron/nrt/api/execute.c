// SPDX-License-Identifier: LGPL-2.1-or-later
/* Running a model: tensors in their places, and what becomes of the result. */
#include <string.h>

#include "../../common/lock.h"
#include "../base/log.h"
#include "../base/process.h"
#include "../object/room.h"
#include "../profile/profile.h"
#include "../trace/events.h"
#include "execute.h"
#include "queue.h"

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
		m->io[i] = (struct neuron_io){ info->name, t->storage->mem, t->offset, info->bytes };
		if (t->storage->kind != NRT_STORAGE_USER)
			continue;
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
	static const NRT_STATUS faults[] = {
		[NEURON_FAULT_PROGRAM] = NRT_EXEC_COMPLETED_WITH_ERR,
		[NEURON_FAULT_BOUNDS] = NRT_EXEC_OOB,
		[NEURON_FAULT_SEMAPHORE] = NRT_EXEC_COMPLETED_WITH_ERR,
		[NEURON_FAULT_DMA] = NRT_EXEC_HW_ERR_DMA_ABORT,
		[NEURON_FAULT_MEMORY] = NRT_EXEC_HW_ERR_HBM_UE,
		[NEURON_FAULT_MEMORY_REPAIRABLE] = NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE,
		[NEURON_FAULT_SRAM] = NRT_EXEC_HW_ERR_NC_UE,
	};

	if (ret != -EIO || r->status == NEURON_RUN_DONE)
		return nrt_status_of(ret);
	return faults[r->fault];
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

	if (!neuron_model_obstacle(m->model) || neuron_model_pretends(m->model))
		status = bind(m, in, out);
	if (status == NRT_INVALID)
		neuron_core_count(m->vnc->core, NEURON_CORE_BAD_INPUT);
	if (status == NRT_SUCCESS) {
		atomic_store(&m->used, atomic_fetch_add(&nrt_process.executions, 1));
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

/* To the device, unless somebody else does it meanwhile. Returns whether this thread has its turn. */
static bool bring_back(struct nrt_model *m)
{
	struct neuron_mem_failure failure;
	struct nrt_room room;
	bool has;
	int ret;

	nrt_room_begin(&room, m->vnc);
	do {
		ret = neuron_model_offloaded(m->model) ? neuron_model_onload(m->model, &failure) : 0;
		if (ret == -ENOMEM)
			nrt_room_refused(&room, &failure, NULL);
	} while (nrt_room_made(&room, ret));
	has = !ret && turn_try(&m->turn);
	nrt_room_end(&room, ret);
	if (ret)
		turn_take(&m->turn);
	return has || ret;
}

/* A turn of a model that is on the device; of one that cannot be, the run finds out, and says why. */
static void take(struct nrt_model *m)
{
	for (;;) {
		turn_take(&m->turn);
		if (!neuron_model_offloaded(m->model))
			return;
		turn_give(&m->turn);
		if (bring_back(m))
			return;
	}
}

/* Under the life lock, or in a thread that ends before the runtime does. */
static NRT_STATUS run_times(struct nrt_model *m, const struct nrt_set *in,
			    const struct nrt_set *out, int repeat_count)
{
	NRT_STATUS status = NRT_SUCCESS;

	take(m);
	if (repeat_count > 1)
		status = feed_back(m, in, out, true);
	for (int i = 0; i < repeat_count && status == NRT_SUCCESS; i++) {
		if (i)
			status = feed_back(m, in, out, false);
		if (status == NRT_SUCCESS)
			status = run(m, in, out);
	}
	turn_give(&m->turn);
	return status;
}

/* What nrt_execute() queues once a function is registered, and tells. */
static struct {
	pthread_mutex_t lock;
	NRT_ASYNC_EXEC_STATUS_CALLBACK fn;
	void *params;
} registered = { .lock = PTHREAD_MUTEX_INITIALIZER };

static NRT_STATUS run_job(const struct nrt_job *job)
{
	return run_times(job->model, job->in, job->out, 1);
}

static void call_back(const struct nrt_job *job, uint64_t number, NRT_STATUS status)
{
	NRT_ASYNC_EXEC_STATUS_CALLBACK fn;
	void *params;

	pthread_mutex_lock(&registered.lock);
	fn = registered.fn;
	params = registered.params;
	pthread_mutex_unlock(&registered.lock);
	if (fn)
		fn(params, job->model->id, job->model->vnc_index, number, status);
}

static void drop_job(const struct nrt_job *job)
{
	nrt_set_drop(job->in);
	nrt_set_drop(job->out);
	nrt_model_put(job->model);
}

static const struct nrt_job_ops job_ops = { .run = run_job, .drop = drop_job };
static const struct nrt_job_ops implicit_ops = {
	.run = run_job, .done = call_back, .drop = drop_job,
};

NRT_STATUS nrt_async_execute(struct nrt_model *model, const struct nrt_set *in,
			     const struct nrt_set *out, int queue, bool implicit, NRT_STATUS *ret,
			     uint64_t *seq)
{
	struct nrt_job job = {
		.ops = implicit ? &implicit_ops : &job_ops,
		.model = model,
		.ret = ret,
	};
	NRT_STATUS status = NRT_RESOURCE;

	if ((!in || nrt_set_hold(in, &job.in)) && (!out || nrt_set_hold(out, &job.out)))
		status = nrt_queue_submit(model->vnc_index, NRTA_XU_COMPUTE, queue, &job, implicit,
					  seq);
	if (status != NRT_SUCCESS)
		drop_job(&job);
	return status;
}

static bool queued(void)
{
	GUARD(&registered.lock);
	return nrt_process.implicit_async && registered.fn;
}

NEURON_EXPORT NRT_STATUS nrt_register_async_exec_callback(NRT_ASYNC_EXEC_STATUS_CALLBACK callback,
							  void *params)
{
	NRT_ENTER();
	GUARD(&registered.lock);
	registered.fn = callback;
	registered.params = params;
	return NRT_SUCCESS;
}

void nrt_execute_close(void)
{
	registered.fn = NULL;
}

void nrt_execute_forget(void)
{
	pthread_mutex_init(&registered.lock, NULL);
	registered.fn = NULL;
}

static NRT_STATUS execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
			  nrt_tensor_set_t *output_set, int repeat_count, bool may_queue)
{
	const struct nrt_set *in = nrt_set_of(input_set), *out = nrt_set_of(output_set);
	NRT_STATUS status = NRT_INVALID;
	struct nrt_model *m;

	NRT_ENTER();
	m = nrt_model_get(model);
	if (!m)
		return NRT_INVALID_HANDLE;
	/* It takes the model. */
	if (may_queue && queued() && (!input_set || in) && (!output_set || out))
		return nrt_async_execute(m, in, out, 0, true, NULL, NULL);
	if ((!input_set || in) && (!output_set || out) && repeat_count >= 1)
		status = run_times(m, in, out, repeat_count);
	nrt_model_put(m);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
				     nrt_tensor_set_t *output_set)
{
	return execute(model, input_set, output_set, 1, true);
}

NEURON_EXPORT NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
					    nrt_tensor_set_t *output_set, int repeat_count)
{
	return execute(model, input_set, output_set, repeat_count, false);
}
