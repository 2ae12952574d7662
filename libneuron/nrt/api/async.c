// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests of programs: copies of tensors, and executions. */
#include <nrt/nrt_async.h>

#include "../object/model.h"
#include "../object/set.h"
#include "execute.h"
#include "queue.h"

static NRT_STATUS run_write(const struct nrt_job *job)
{
	return nrt_tensor_transfer("nrta_tensor_write", job->dst, job->buf, job->dst_offset,
				   job->size, true);
}

static NRT_STATUS run_read(const struct nrt_job *job)
{
	return nrt_tensor_transfer("nrta_tensor_read", job->src, job->buf, job->src_offset,
				   job->size, false);
}

static NRT_STATUS run_copy(const struct nrt_job *job)
{
	return nrt_tensor_move("nrta_tensor_copy", job->src, job->src_offset, job->dst,
			       job->dst_offset, job->size);
}

static void drop_tensors(const struct nrt_job *job)
{
	nrt_tensor_drop(job->src);
	nrt_tensor_drop(job->dst);
}

static const struct nrt_job_ops write_ops = { .run = run_write, .drop = drop_tensors };
static const struct nrt_job_ops read_ops = { .run = run_read, .drop = drop_tensors };
static const struct nrt_job_ops copy_ops = { .run = run_copy, .drop = drop_tensors };

/* A tensor of the request's own, after the check of the range. */
static NRT_STATUS hold(const char *func, const nrt_tensor_t *tensor, uint64_t offset,
		       uint64_t size, nrt_tensor_t **out)
{
	NRT_STATUS status = nrt_tensor_check(func, tensor, offset, size);

	if (status != NRT_SUCCESS)
		return status;
	*out = nrt_tensor_hold(tensor);
	return *out ? NRT_SUCCESS : NRT_RESOURCE;
}

static NRT_STATUS tensor_op(const char *func, const struct nrt_job_ops *ops, nrt_tensor_t *src,
			    uint64_t src_offset, nrt_tensor_t *dst, uint64_t dst_offset, void *buf,
			    uint64_t size, int queue, NRT_STATUS *ret, nrta_seq_t *seq)
{
	struct nrt_job job = {
		.ops = ops,
		.buf = buf,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.size = size,
		.ret = ret,
	};
	NRT_STATUS status = NRT_SUCCESS;

	NRT_ENTER();
	if (ops != &copy_ops && !buf)
		status = NRT_INVALID;
	if (status == NRT_SUCCESS && ops != &write_ops)
		status = hold(func, src, src_offset, size, &job.src);
	if (status == NRT_SUCCESS && ops != &read_ops)
		status = hold(func, dst, dst_offset, size, &job.dst);
	if (status == NRT_SUCCESS)
		status = nrt_queue_submit((job.dst ? job.dst : job.src)->storage->vnc,
					  NRTA_XU_TENSOR_OP, queue, &job, false, seq);
	if (status != NRT_SUCCESS)
		drop_tensors(&job);
	return status;
}

NEURON_EXPORT NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset,
					   uint64_t size, int queue, NRT_STATUS *ret, nrta_seq_t *seq)
{
	return tensor_op(__func__, &write_ops, NULL, 0, tensor, offset, (void *)(uintptr_t)buf, size,
			 queue, ret, seq);
}

NEURON_EXPORT NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset,
					  uint64_t size, int queue, NRT_STATUS *ret, nrta_seq_t *seq)
{
	return tensor_op(__func__, &read_ops, tensor, offset, NULL, 0, buf, size, queue, ret, seq);
}

NEURON_EXPORT NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst,
					  uint64_t dst_offset, uint64_t size, int queue,
					  NRT_STATUS *ret, nrta_seq_t *seq)
{
	return tensor_op(__func__, &copy_ops, src, src_offset, dst, dst_offset, NULL, size, queue,
			 ret, seq);
}

NEURON_EXPORT NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input_set,
					       nrt_tensor_set_t *output_set, int queue,
					       NRT_STATUS *ret, nrta_seq_t *seq)
{
	const struct nrt_set *in = nrt_set_of(input_set), *out = nrt_set_of(output_set);
	struct nrt_model *m;

	NRT_ENTER();
	m = nrt_model_get(model);
	if (!m)
		return NRT_INVALID_HANDLE;
	if ((!input_set || in) && (!output_set || out))
		return nrt_async_execute(m, in, out, queue, false, ret, seq);
	nrt_model_put(m);
	return NRT_INVALID;
}
