// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collective operations.  Who takes part reads what it needs from the tensors of the
 * others, which come as dma-bufs, and computes its own result, in the order of the
 * ranks, so that everybody gets the same bits.  Nobody goes on before all have read.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrt/nrt_async.h>

#include "../../common/lock.h"
#include "../base/log.h"
#include "../base/process.h"
#include "../cc/comm.h"
#include "../object/model.h"
#include "../object/tensor.h"
#include "collective.h"
#include "hosts.h"
#include "operation.h"
#include "queue.h"

#define MAX_TENSORS 65536u

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nrt_cc_context *contexts;	/* prepared, not scheduled */

/* ---- communicators ----------------------------------------------------------------- */

static NRT_STATUS join(const char *func, int64_t vnc, uint32_t rank, uint32_t count)
{
	struct nrt_vnc *v;
	NRT_STATUS status = nrt_vnc_get(vnc, &v);

	if (status != NRT_SUCCESS) {
		LOG_AS(ENC, ERROR, func, "there is no core %lld", (long long)vnc);
		return status;
	}
	return nrt_comm_join(func, (uint32_t)vnc, rank, count);
}

static NRT_STATUS build(const char *func, int64_t vnc, uint32_t rank, uint32_t count)
{
	NRT_ENTER();
	return join(func, vnc, rank, count);
}

NEURON_EXPORT NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t g_device_id,
					       uint32_t g_device_count)
{
	return build(__func__, vnc, g_device_id, g_device_count);
}

NEURON_EXPORT NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id,
						 uint32_t g_device_count)
{
	return build(__func__, vnc, g_device_id, g_device_count);
}

NEURON_EXPORT NRT_STATUS nrt_load_collectives(const void *neff_bytes, size_t size, int32_t vnc,
					      int32_t vnc_count, uint32_t ctx_device_id,
					      uint32_t ctx_device_count, nrt_model_t **model)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!neff_bytes || !size || !model) {
		status = NRT_INVALID;
	} else {
		if (vnc == -1)
			vnc = (int32_t)nrt_emptiest_vnc();
		status = join(__func__, vnc, ctx_device_id, ctx_device_count);
	}
	nrt_leave();
	return status == NRT_SUCCESS ? nrt_load(neff_bytes, size, vnc, vnc_count, model) : status;
}

/* ---- calls that wait --------------------------------------------------------------- */

NEURON_EXPORT NRT_STATUS nrt_barrier(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
{
	struct params params = { .kind = KIND_BARRIER };
	struct nrt_exchange x = { EXCHANGE(__func__, g_device_count, params), .fd = -1 };
	NRT_STATUS status;

	NRT_ENTER();
	status = join(__func__, vnc, g_device_id, g_device_count);
	if (status != NRT_SUCCESS)
		return status;
	status = hosts_gather(__func__, (uint32_t)vnc, g_device_count, KIND_BARRIER, 0, NULL, NULL);
	return status == NRT_COLL_PENDING ? nrt_comm_exchange((uint32_t)vnc, &x) : status;
}

static NRT_STATUS gather(int fds[], uint32_t count, size_t size, void *out)
{
	for (uint32_t i = 0; i < count; i++)
		if (!cc_sealed(fds[i], size) || !cc_read_all(fds[i], (char *)out + i * size, size))
			return NRT_FAILURE;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count,
					uint32_t rank_input_size, void *input, void *output)
{
	struct params params = { .kind = KIND_ALL_GATHER, .size = rank_input_size };
	int fds[COMM_MAX_RANKS];
	struct nrt_exchange x = { EXCHANGE(__func__, g_device_count, params), .fds = fds };
	NRT_STATUS status;

	NRT_ENTER();
	if (!rank_input_size || !input || !output) {
		LOG_AS(ENC, ERROR, __func__, "rank_input_size is 0, or input or output NULL");
		return NRT_INVALID;
	}
	status = join(__func__, vnc, g_device_id, g_device_count);
	if (status != NRT_SUCCESS)
		return status;
	status = hosts_gather(__func__, (uint32_t)vnc, g_device_count, KIND_ALL_GATHER,
			      rank_input_size, input, output);
	if (status != NRT_COLL_PENDING)
		return status;
	x.fd = cc_make_memfd();
	/* The others are waiting for us, also if we cannot. */
	if (x.fd < 0 || write_bytes(x.fd, input, rank_input_size) || !cc_seal(x.fd))
		x.failed = true;
	status = nrt_comm_exchange((uint32_t)vnc, &x);
	if (x.fd >= 0)
		close(x.fd);
	if (status == NRT_SUCCESS) {
		status = gather(fds, g_device_count, rank_input_size, output);
		comm_close_fds(fds, g_device_count);
	} else if (x.failed) {
		status = NRT_RESOURCE;
	}
	return status;
}

/* ---- preparing --------------------------------------------------------------------- */

static void context_free(struct nrt_cc_context *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nr_tensors; i++) {
		if (c->in)
			nrt_tensor_drop(c->in[i]);
		if (c->out)
			nrt_tensor_drop(c->out[i]);
	}
	free(c->in);
	free(c->out);
	free(c);
}

/* What is wrong with a group, or NULL. */
static const char *fault_of_group(const nrt_cc_comm_t *comm)
{
	if (!comm->rank_n || comm->rank_n > WORLD_MAX_RANKS)
		return "rank_n is not 1 to 1024";
	if (comm->rank >= comm->rank_n)
		return "rank is not below rank_n";
	if (!comm->replica_group)
		return comm->rank_n != comm->ctx_device_count || comm->rank != comm->ctx_device_id ?
		       "without replica_group, rank and rank_n are ctx_device_id and ctx_device_count" :
		       NULL;
	for (uint32_t i = 0; i < comm->rank_n; i++) {
		if (comm->replica_group[i] >= comm->ctx_device_count)
			return "a rank in replica_group is not below ctx_device_count";
		for (uint32_t k = 0; k < i; k++)
			if (comm->replica_group[k] == comm->replica_group[i])
				return "a rank is in replica_group twice";
	}
	return comm->replica_group[comm->rank] != comm->ctx_device_id ?
	       "ctx_device_id is not at place rank of replica_group" : NULL;
}

static const char *fault_of_operation(nrt_dtype_t dtype, nrt_op_type_t op, nrt_cc_op_type_t cc_op)
{
	if (!cc_element_size(dtype))
		return "there is no such dtype";
	switch (cc_op) {
	case NRT_CC_ALLGATHER:
		return NULL;
	case NRT_CC_ALLREDUCE:
	case NRT_CC_REDUCESCATTER:
		/* A factor, which fma needs, has no place in the interface. */
		return op == NRT_OP_ADD || op == NRT_OP_MAX || op == NRT_OP_MIN ? NULL :
		       "op is not NRT_OP_ADD, NRT_OP_MAX or NRT_OP_MIN";
	}
	return "there is no such cc_op";
}

static const char *fault_of_lists(const nrt_tensor_list_t *in, const nrt_tensor_list_t *out)
{
	if (!in || !out || !in->tensors || !out->tensors)
		return "a list of tensors is NULL";
	if (!in->num_tensors || in->num_tensors > MAX_TENSORS)
		return "num_tensors is not 1 to 65536";
	return in->num_tensors != out->num_tensors ? "the lists are not of the same length" : NULL;
}

static const char *fault_of_comm(const nrt_cc_comm_t *comm)
{
	struct nrt_vnc *v;

	if (!comm)
		return "comm is NULL";
	return nrt_vnc_get(comm->vnc, &v) != NRT_SUCCESS ? "there is no core vnc" :
							   fault_of_group(comm);
}

/* On the core's device, or in memory of the host that it reaches. */
static bool reachable(const nrt_tensor_t *t, const struct neuron_device *device)
{
	return nrt_tensor_valid(t) && nrt_tensor_stored(t) &&
	       t->storage->kind != NRT_STORAGE_USER && t->storage->device == device;
}

static bool sizes_valid(const struct nrt_cc_context *c, uint64_t in, uint64_t out)
{
	uint32_t nr = c->nr;

	if (!in || !out || in % cc_element_size(c->dtype) || out % cc_element_size(c->dtype))
		return false;
	switch (c->cc_op) {
	case NRT_CC_ALLGATHER: return out / nr == in && !(out % nr);
	case NRT_CC_REDUCESCATTER: return in / nr == out && !(in % nr);
	default: return in == out;
	}
}

static NRT_STATUS hold_tensors(struct nrt_cc_context *c, const nrt_tensor_list_t *in,
			       const nrt_tensor_list_t *out)
{
	struct neuron_device *device = nrt_process.vncs[c->vnc].device;

	c->in = calloc(in->num_tensors, sizeof(*c->in));
	c->out = calloc(in->num_tensors, sizeof(*c->out));
	if (!c->in || !c->out)
		return NRT_RESOURCE;
	for (size_t i = 0; i < in->num_tensors; i++) {
		const nrt_tensor_t *from = in->tensors[i], *to = out->tensors[i];

		if (!reachable(from, device) || !reachable(to, device)) {
			LOG_AS(ENC, ERROR, "nrta_cc_prepare",
			       "%s %zu is not a tensor in memory of the core's device",
			       reachable(from, device) ? "output" : "input", i);
			return NRT_INVALID;
		}
		if (!sizes_valid(c, from->size, to->size)) {
			LOG_AS(ENC, ERROR, "nrta_cc_prepare",
			       "input %zu of %llu bytes and output of %llu do not fit the operation of %u ranks, or elements of %u",
			       i, (unsigned long long)from->size, (unsigned long long)to->size, c->nr,
			       cc_element_size(c->dtype));
			return NRT_INVALID;
		}
		c->nr_tensors = i + 1;
		c->in[i] = nrt_tensor_hold(from);
		c->out[i] = nrt_tensor_hold(to);
		if (!c->in[i] || !c->out[i])
			return NRT_RESOURCE;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS prepare(const nrt_cc_comm_t *comm, const nrt_tensor_list_t *in,
			  const nrt_tensor_list_t *out, nrt_dtype_t dtype, nrt_op_type_t op,
			  nrt_cc_op_type_t cc_op, struct nrt_cc_context **context)
{
	const char *fault = context ? NULL : "cc_ctx is NULL";
	struct nrt_cc_context *c;
	NRT_STATUS status;

	fault = fault ?: fault_of_lists(in, out) ?: fault_of_comm(comm) ?:
		fault_of_operation(dtype, op, cc_op);
	if (fault) {
		LOG_AS(ENC, ERROR, "nrta_cc_prepare", "%s", fault);
		return NRT_INVALID;
	}
	status = nrt_comm_check(comm->vnc, comm->ctx_device_id, comm->ctx_device_count);
	if (status != NRT_SUCCESS) {
		LOG_AS(ENC, ERROR, "nrta_cc_prepare",
		       "core %u has not joined as rank %u of %u: nrt_cc_global_comm_init() comes first",
		       comm->vnc, comm->ctx_device_id, comm->ctx_device_count);
		return status;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NRT_RESOURCE;
	c->vnc = comm->vnc;
	c->rank = comm->rank;
	c->nr = comm->rank_n;
	c->dtype = dtype;
	c->op = op;
	c->cc_op = cc_op;
	for (uint32_t i = 0; i < c->nr; i++) {
		c->ranks[i] = comm->replica_group ? comm->replica_group[i] : i;
		if (nrt_comm_host(c->vnc, c->ranks[i]) !=
		    nrt_comm_host(c->vnc, comm->ctx_device_id))
			c->across = true;
		else if (nrt_comm_device(c->vnc, c->ranks[i]) !=
			 nrt_comm_device(c->vnc, comm->ctx_device_id))
			c->through_host = true;
	}
	status = hold_tensors(c, in, out);
	if (status == NRT_SUCCESS)
		*context = c;
	else
		context_free(c);
	return status;
}

static void context_add(struct nrt_cc_context *c)
{
	GUARD(&contexts_lock);
	c->next = contexts;
	contexts = c;
}

/* The list tells handles from anything else. */
static bool context_take(const struct nrt_cc_context *c)
{
	struct nrt_cc_context **at;

	GUARD(&contexts_lock);
	for (at = &contexts; *at && *at != c; at = &(*at)->next)
		;
	if (!*at)
		return false;
	*at = c->next;
	return true;
}

void nrt_cc_close(void)
{
	while (contexts) {
		struct nrt_cc_context *c = contexts;

		contexts = c->next;
		context_free(c);
	}
}

/* In a child: what they hold is the parent's. */
void nrt_cc_forget(void)
{
	pthread_mutex_init(&contexts_lock, NULL);
	contexts = NULL;
}

NEURON_EXPORT NRT_STATUS nrta_cc_prepare(nrt_cc_comm_t *comm, nrt_tensor_list_t *input,
					 nrt_tensor_list_t *output, nrt_dtype_t dtype,
					 nrt_op_type_t op, nrt_cc_op_type_t cc_op,
					 nrt_cc_context_t **cc_ctx)
{
	NRT_STATUS status;

	NRT_ENTER();
	status = prepare(comm, input, output, dtype, op, cc_op, cc_ctx);
	if (status == NRT_SUCCESS)
		context_add(*cc_ctx);
	return status;
}

/* ---- doing it ---------------------------------------------------------------------- */

static NRT_STATUS compute(const struct nrt_cc_context *c, const struct source *sources,
			  uint64_t in_size, uint64_t out_size, const struct source *to)
{
	uint64_t elements = out_size / cc_element_size(c->dtype);
	int ret = 0;

	if (c->cc_op == NRT_CC_REDUCESCATTER)
		return cc_reduce(c, sources, c->nr, c->rank * elements, elements, to);
	if (c->cc_op == NRT_CC_ALLREDUCE)
		return cc_reduce(c, sources, c->nr, 0, elements, to);
	for (uint32_t i = 0; i < c->nr && !ret; i++)
		ret = neuron_mem_copy(to->mem, to->offset + i * in_size, sources[i].mem,
				      sources[i].offset, in_size);
	return nrt_status_of(ret);
}

/* With what all offered: the result, in @staging if others may still read what is there. */
static NRT_STATUS take_part(const struct nrt_cc_context *c, size_t i, int *fds,
			    uint8_t (*all)[COMM_DATA], struct neuron_mem **staging)
{
	nrt_tensor_t *in = c->in[i], *out = c->out[i];
	struct source sources[COMM_MAX_RANKS] = { 0 };
	struct source to = { out->storage->mem, out->offset, c->dtype, false };
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t k = 0; k < c->nr && status == NRT_SUCCESS; k++) {
		uint64_t offset;

		memcpy(&offset, all[k], sizeof(offset));
		if (k == c->rank)
			sources[k] = (struct source){ in->storage->mem, in->offset, c->dtype, false };
		else
			status = cc_fetch(c, fds[k], offset, in->size, &sources[k]);
	}
	if (status == NRT_SUCCESS && cc_overlap(in, out))
		status = nrt_status_of(cc_alloc_staging(c, out->size, staging));
	if (*staging)
		to = (struct source){ *staging, 0, c->dtype, false };
	if (status == NRT_SUCCESS)
		status = compute(c, sources, in->size, out->size, &to);
	cc_put_sources(sources, c->nr);
	return status;
}

static NRT_STATUS run_tensor(const struct nrt_cc_context *c, uint32_t channel, size_t i)
{
	struct params params = cc_params_of(c, KIND_OPERATION, i);
	/* The descriptor has the rest of what a rank says of its input. */
	uint64_t offset = c->in[i]->offset;
	struct neuron_mem *staging = NULL;
	uint8_t all[COMM_MAX_RANKS][COMM_DATA];
	int fds[COMM_MAX_RANKS];
	NRT_STATUS status, own;
	struct nrt_exchange x = {
		EXCHANGE("nrta_cc_schedule", c->nr, params),
		.channel = channel,
		.ranks = c->ranks,
		.data = &offset,
		.data_size = sizeof(offset),
		.all = all,
		.fds = fds,
	};

	x.fd = cc_offer(c, c->in[i], &own);
	x.failed = x.fd < 0;
	status = nrt_comm_exchange(c->vnc, &x);
	if (x.fd >= 0)
		close(x.fd);
	if (status != NRT_SUCCESS)
		return x.failed && status == NRT_EXEC_COMPLETED_WITH_ERR ? own : status;

	own = take_part(c, i, fds, all, &staging);
	comm_close_fds(fds, c->nr);
	/* Until everybody has read, inputs stay as they are. */
	params.kind = KIND_DONE;
	x.fd = -1;
	x.fds = NULL;
	x.failed = own != NRT_SUCCESS;
	status = nrt_comm_exchange(c->vnc, &x);
	if (status == NRT_SUCCESS && staging)
		status = nrt_status_of(neuron_mem_copy(c->out[i]->storage->mem, c->out[i]->offset,
						       staging, 0, c->out[i]->size));
	neuron_mem_free(staging);
	return x.failed && status == NRT_EXEC_COMPLETED_WITH_ERR ? own : status;
}

static NRT_STATUS run_context(const struct nrt_cc_context *c, uint32_t queue)
{
	NRT_STATUS status = NRT_SUCCESS;
	size_t i;

	for (i = 0; i < c->nr_tensors && status == NRT_SUCCESS; i++)
		status = c->across ? hosts_run(c, 1 + queue, i) : run_tensor(c, 1 + queue, i);
	switch (status) {
	case NRT_TIMEOUT:
		LOG_AS(ENC, ERROR, "nrta_cc_schedule",
		       "(FATAL-RT-UNDEFINED-STATE) missing collectives status on Neuron Device %u NC %u, model 0 - suspected hang in collectives operation %zu out of %zu",
		       neuron_device_index(nrt_process.vncs[c->vnc].device),
		       nrt_process.vncs[c->vnc].index, i - 1, c->nr_tensors);
		return NRT_EXEC_HW_ERR_COLLECTIVES;
	case NRT_FAILURE:
	case NRT_NETWORK_PROXY_FAILURE:
	case NRT_EXEC_COMPLETED_WITH_ERR:
		return NRT_EXEC_HW_ERR_COLLECTIVES;
	default:
		return status;
	}
}

/* ---- queueing it ------------------------------------------------------------------- */

static NRT_STATUS run_job(const struct nrt_job *job)
{
	return run_context(job->collective, job->queue);
}

static void drop_job(const struct nrt_job *job)
{
	context_free(job->collective);
}

static const struct nrt_job_ops job_ops = { .run = run_job, .drop = drop_job };

NEURON_EXPORT NRT_STATUS nrta_cc_schedule(nrt_cc_context_t **cc_ctx, int queue, NRT_STATUS *ret,
					  nrta_seq_t *seq)
{
	struct nrt_job job = { .ops = &job_ops, .ret = ret, .queue = (uint32_t)queue };
	struct nrt_cc_context *c;
	NRT_STATUS status;

	NRT_ENTER();
	if (!cc_ctx)
		return NRT_INVALID;
	c = *cc_ctx;
	if (!context_take(c))
		return NRT_INVALID_HANDLE;
	job.collective = c;
	/* Only if it is queued it is the queue's. */
	status = nrt_queue_submit(c->vnc, NRTA_XU_COLLECTIVES, queue, &job, false, seq);
	if (status == NRT_SUCCESS)
		*cc_ctx = NULL;
	else
		context_add(c);
	return status;
}
