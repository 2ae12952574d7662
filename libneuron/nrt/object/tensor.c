// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tensors: views of storage. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../common/lock.h"
#include "../../common/wait.h"
#include "../base/log.h"
#include "../base/process.h"
#include "../trace/events.h"
#include "handles.h"
#include "tensor.h"

/* How often a tensor was written by an execution; shared with what holds the tensor. */
struct nrt_completions {
	atomic_uint refs;
	uint64_t count;			/* completions_lock */
};

static pthread_mutex_t completions_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t completions_cond = PTHREAD_COND_INITIALIZER;

bool nrt_tensor_valid(const nrt_tensor_t *tensor)
{
	return nrt_handle_live(NRT_HANDLES_TENSORS, tensor);
}

static void completions_put(struct nrt_completions *c)
{
	if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		free(c);
}

static struct nrt_completions *completions_get(struct nrt_completions *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

/* Takes the reference to @completions (NULL makes new ones); to @storage if it succeeds. */
static NRT_STATUS tensor_new(const char *name, struct nrt_completions *completions,
			     struct nrt_storage *storage, uint64_t offset, uint64_t size,
			     nrt_tensor_t **out)
{
	struct nrt_tensor *t = calloc(1, sizeof(*t));

	if (!completions) {
		completions = calloc(1, sizeof(*completions));
		if (completions)
			atomic_init(&completions->refs, 1);
	}
	if (t && name)
		t->name = strdup(name);
	if (!t || !completions || (name && !t->name) || !nrt_handle_add(NRT_HANDLES_TENSORS, t)) {
		completions_put(completions);
		if (t)
			free(t->name);
		free(t);
		return NRT_RESOURCE;
	}
	t->completions = completions;
	t->storage = storage;
	t->offset = offset;
	t->size = size;
	*out = t;
	return NRT_SUCCESS;
}

/* Makes a tensor that shares the storage of another one. */
static NRT_STATUS view_new(const char *name, struct nrt_completions *completions,
			   const nrt_tensor_t *of, uint64_t offset, uint64_t size,
			   nrt_tensor_t **out)
{
	struct nrt_storage *s = nrt_storage_get(of->storage);
	NRT_STATUS status = tensor_new(name, completions, s, of->offset + offset, size, out);

	if (status != NRT_SUCCESS)
		nrt_storage_put(s);
	return status;
}

nrt_tensor_t *nrt_tensor_hold(const nrt_tensor_t *t)
{
	nrt_tensor_t *own = NULL;

	view_new(t->name, completions_get(t->completions), t, 0, t->size, &own);
	return own;
}

static void tensor_free(nrt_tensor_t *t)
{
	nrt_storage_put(t->storage);
	completions_put(t->completions);
	free(t->name);
	free(t);
}

/* While the runtime stays; NULL is allowed. */
void nrt_tensor_drop(nrt_tensor_t *t)
{
	if (t && nrt_handle_remove(NRT_HANDLES_TENSORS, t))
		tensor_free(t);
}

void nrt_completions_forget(void)
{
	pthread_mutex_init(&completions_lock, NULL);
	pthread_cond_init(&completions_cond, NULL);
}

void nrt_tensor_written(nrt_tensor_t *t)
{
	GUARD(&completions_lock);
	t->completions->count++;
	pthread_cond_broadcast(&completions_cond);
}

static const char *tensor_name(const nrt_tensor_t *t)
{
	return t->name ? t->name : "UNKNOWN";
}

NEURON_EXPORT NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t tensor_placement, int vnc,
					     size_t size, const char *name, nrt_tensor_t **tensor)
{
	uint64_t began = nrt_trace_begin();
	struct nrt_storage *s = NULL;
	struct nrt_vnc *v;
	NRT_STATUS status;

	NRT_ENTER();
	status = nrt_vnc_get(vnc, &v);
	if (status != NRT_SUCCESS || !tensor || !size) {
		LOG(NRT, ERROR, "tensor %s of %zu bytes on core %d: invalid argument",
		    name ? name : "UNKNOWN", size, vnc);
		return NRT_INVALID;
	}
	switch (tensor_placement) {
	case NRT_TENSOR_PLACEMENT_DEVICE:
	case NRT_TENSOR_PLACEMENT_HOST:
	case NRT_TENSOR_PLACEMENT_VIRTUAL:
		status = nrt_storage_alloc(v, tensor_placement, size, &s) ?:
			 tensor_new(name, NULL, s, 0, size, tensor);
		break;
	default:
		LOG(NRT, ERROR, "tensor %s: placement %d is not known", name ? name : "UNKNOWN",
		    (int)tensor_placement);
		status = NRT_INVALID;
	}
	nrt_trace_end(began, NRT_TRACE_TENSOR_ALLOCATE, (uint32_t)vnc, status, size, name);
	if (status != NRT_SUCCESS)
		nrt_storage_put(s);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor)
{
	NRT_ENTER();
	return tensor ? tensor_new(name, NULL, NULL, 0, 0, tensor) : NRT_INVALID;
}

/* Callable after nrt_close() too: what the tensor had is gone by then. */
NEURON_EXPORT void nrt_tensor_free(nrt_tensor_t **tensor)
{
	nrt_tensor_t *t;

	if (!tensor || !nrt_handle_remove(NRT_HANDLES_TENSORS, *tensor))
		return;
	t = *tensor;
	*tensor = NULL;
	pthread_rwlock_rdlock(&nrt_process.life);
	tensor_free(t);
	pthread_rwlock_unlock(&nrt_process.life);
}

NEURON_EXPORT NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size)
{
	struct nrt_storage *s;

	NRT_ENTER();
	if (!nrt_tensor_valid(tensor) || !buffer || !size ||
	    size > UINTPTR_MAX - (uintptr_t)buffer)
		return NRT_INVALID;
	s = nrt_storage_new(NRT_STORAGE_USER, size);
	if (!s)
		return NRT_RESOURCE;
	s->user = buffer;
	nrt_storage_put(tensor->storage);
	tensor->storage = s;
	tensor->offset = 0;
	tensor->size = size;
	return NRT_SUCCESS;
}

NEURON_EXPORT NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset,
						   size_t size, const char *name,
						   nrt_tensor_t **tensor_slice)
{
	NRT_ENTER();
	if (!nrt_tensor_valid(tensor_source) || !tensor_slice || !tensor_source->storage || !size ||
	    offset > tensor_source->size || size > tensor_source->size - offset) {
		LOG(NRT, ERROR, "slice %s: %zu bytes at %zu are not inside the tensor",
		    name ? name : "UNKNOWN", size, offset);
		return NRT_INVALID;
	}
	return view_new(name, NULL, tensor_source, offset, size, tensor_slice);
}

/* Has storage, and the range lies in it. */
NRT_STATUS nrt_tensor_check(const char *func, const nrt_tensor_t *t, uint64_t offset,
			    uint64_t size)
{
	if (!nrt_tensor_valid(t))
		return NRT_INVALID;
	if (!nrt_tensor_stored(t)) {
		LOG_AS(NRT, ERROR, func, "tensor %s has no storage", tensor_name(t));
		return NRT_INVALID;
	}
	if (offset > t->size || size > t->size - offset) {
		LOG_AS(NRT, ERROR, func, "tensor %s of %llu bytes: %llu bytes at %llu are outside",
		       tensor_name(t), (unsigned long long)t->size, (unsigned long long)size,
		       (unsigned long long)offset);
		return NRT_INVALID;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS done(const char *func, const nrt_tensor_t *t, int ret)
{
	if (ret)
		LOG_AS(NRT, ERROR, func, "tensor %s: %s", tensor_name(t), strerror(-ret));
	return nrt_status_of(ret);
}

/* Under the life lock, or in a thread that ends before the runtime does. */
NRT_STATUS nrt_tensor_transfer(const char *func, const nrt_tensor_t *t, void *buf,
			       uint64_t offset, uint64_t size, bool write)
{
	NRT_STATUS status = nrt_tensor_check(func, t, offset, size);
	uint64_t began = nrt_trace_begin();
	struct nrt_storage *s;
	int ret = 0;

	if (status != NRT_SUCCESS || !size)
		return status;
	if (!buf)
		return NRT_INVALID;
	s = t->storage;
	offset += t->offset;
	if (s->kind == NRT_STORAGE_USER && write)
		memmove((char *)s->user + offset, buf, size);
	else if (s->kind == NRT_STORAGE_USER)
		memmove(buf, (char *)s->user + offset, size);
	else if (write)
		ret = neuron_mem_write(s->mem, offset, buf, size);
	else
		ret = neuron_mem_read(s->mem, offset, buf, size);
	status = done(func, t, ret);
	nrt_trace_end(began, write ? NRT_TRACE_TENSOR_WRITE : NRT_TRACE_TENSOR_READ, s->vnc, status,
		      size, t->name);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset,
					 size_t size)
{
	NRT_ENTER();
	return nrt_tensor_transfer(__func__, tensor, buf, offset, size, false);
}

NEURON_EXPORT NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset,
					  size_t size)
{
	NRT_ENTER();
	return nrt_tensor_transfer(__func__, tensor, (void *)(uintptr_t)buf, offset, size, true);
}

static NRT_STATUS batch(const char *func, const nrt_tensor_batch_t *batches,
			uint64_t num_batches, bool write)
{
	NRT_STATUS status = NRT_SUCCESS;

	NRT_ENTER();
	if (!batches && num_batches)
		status = NRT_INVALID;
	for (uint64_t i = 0; i < num_batches && status == NRT_SUCCESS; i++) {
		const nrt_tensor_batch_t *b = &batches[i];

		if (!b->ops && b->num_ops)
			status = NRT_INVALID;
		for (uint32_t k = 0; k < b->num_ops && status == NRT_SUCCESS; k++)
			status = nrt_tensor_transfer(func, b->tensor, b->ops[k].buffer, b->ops[k].offset,
					  b->ops[k].size, write);
	}
	return status;
}

/* Every transfer here is complete when it returns: there is no tracking to skip. */
NEURON_EXPORT NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t *batches,
					       uint64_t num_batches, bool unsafe)
{
	(void)unsafe;
	return batch(__func__, batches, num_batches, false);
}

NEURON_EXPORT NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t *batches,
						uint64_t num_batches, bool unsafe)
{
	(void)unsafe;
	return batch(__func__, batches, num_batches, true);
}

/* Under the life lock, or in a thread that ends before the runtime does. */
NRT_STATUS nrt_tensor_move(const char *func, const nrt_tensor_t *src, uint64_t src_offset,
			   nrt_tensor_t *dst, uint64_t dst_offset, uint64_t size)
{
	NRT_STATUS status = nrt_tensor_check(func, src, src_offset, size);
	uint64_t began = nrt_trace_begin();
	struct nrt_storage *s, *d;

	status = status ?: nrt_tensor_check(func, dst, dst_offset, size);
	if (status != NRT_SUCCESS || !size)
		return status;
	s = src->storage;
	d = dst->storage;
	if (s->kind == NRT_STORAGE_USER)
		return nrt_tensor_transfer(func, dst, (char *)s->user + src->offset + src_offset,
					   dst_offset, size, true);
	if (d->kind == NRT_STORAGE_USER)
		return nrt_tensor_transfer(func, src, (char *)d->user + dst->offset + dst_offset,
					   src_offset, size, false);
	if (s->device != d->device) {
		LOG_AS(NRT, ERROR, func, "tensors %s and %s are on different devices",
		       tensor_name(src), tensor_name(dst));
		return NRT_INVALID;
	}
	status = done(func, dst, neuron_mem_copy(d->mem, dst->offset + dst_offset, s->mem,
						 src->offset + src_offset, size));
	nrt_trace_end(began, NRT_TRACE_TENSOR_COPY, d->vnc, status, size, dst->name);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset,
					 nrt_tensor_t *dst, size_t dst_offset, size_t size)
{
	NRT_ENTER();
	return nrt_tensor_move(__func__, src, src_offset, dst, dst_offset, size);
}

NEURON_EXPORT size_t nrt_tensor_get_size(const nrt_tensor_t *tensor)
{
	return nrt_tensor_valid(tensor) ? tensor->size : 0;
}

NEURON_EXPORT NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value,
					   size_t size)
{
	struct nrt_storage *s;
	NRT_STATUS status;

	NRT_ENTER();
	status = nrt_tensor_check(__func__, tensor, offset, size);
	if (status != NRT_SUCCESS || !size)
		return status;
	s = tensor->storage;
	offset += tensor->offset;
	if (s->kind != NRT_STORAGE_USER)
		return done(__func__, tensor, neuron_mem_set(s->mem, offset, value, size));
	memset((char *)s->user + offset, value, size);
	return NRT_SUCCESS;
}

NEURON_EXPORT void *nrt_tensor_get_va(const nrt_tensor_t *tensor)
{
	void *va = NULL;

	if (nrt_enter() != NRT_SUCCESS)
		return NULL;
	if (nrt_tensor_valid(tensor) && nrt_tensor_stored(tensor)) {
		struct nrt_storage *s = tensor->storage;

		if (s->kind == NRT_STORAGE_USER)
			va = s->user;
		else if ((s->kind == NRT_STORAGE_HOST || nrt_process.map_hbm) &&
			 !neuron_mem_map(s->mem, &va))
			atomic_store(&s->va, va);
		if (va)
			va = (char *)va + tensor->offset;
	}
	nrt_leave();
	return va;
}

NEURON_EXPORT NRT_STATUS
nrt_tensor_get_device_allocation_info(const nrt_tensor_t *tensor,
				      nrt_tensor_device_allocation_info_t *alloc_info)
{
	struct neuron_mem_info info = { .size = sizeof(info) };
	NRT_STATUS status;

	NRT_ENTER();
	if (!nrt_tensor_valid(tensor) || !alloc_info || !nrt_tensor_stored(tensor) ||
	    tensor->storage->kind != NRT_STORAGE_DEVICE)
		return NRT_INVALID;
	status = done(__func__, tensor, neuron_mem_get_info(tensor->storage->mem, &info));
	if (status != NRT_SUCCESS)
		return status;
	memset(alloc_info, 0, sizeof(*alloc_info));
	alloc_info->physical_address = info.address + tensor->offset;
	alloc_info->size = info.bytes - tensor->offset;
	alloc_info->hbm_index = (int)tensor->storage->hbm;
	return status;
}

/*
 * Not under the life lock: that may take forever.  Every second it looks whether the
 * runtime is still there.
 */
NEURON_EXPORT NRT_STATUS nrt_tensor_check_output_completion(const nrt_tensor_t *output_tensor,
							    int64_t timeout_us,
							    uint64_t expected_completion_count)
{
	const int64_t warn_us = 30 * 1000000;
	NRT_STATUS status = nrt_enter();
	struct nrt_completions *c = NULL;
	struct timespec until;
	bool warned = false;
	uint32_t inits;
	uint64_t began;

	if (status != NRT_SUCCESS)
		return status;
	inits = atomic_load(&nrt_process.inits);
	if (nrt_tensor_valid(output_tensor))
		c = completions_get(output_tensor->completions);
	nrt_leave();
	if (!c)
		return NRT_INVALID;
	began = now_ns();
	for (;;) {
		int64_t waited, left = 1000000;
		bool reached;

		waited = (int64_t)((now_ns() - began) / 1000);
		if (timeout_us >= 0 && timeout_us - waited < left)
			left = timeout_us - waited;
		until = time_in_us(left > 0 ? left : 0);
		pthread_mutex_lock(&completions_lock);
		if (c->count < expected_completion_count && left > 0)
			pthread_cond_clockwait(&completions_cond, &completions_lock,
					       CLOCK_MONOTONIC, &until);
		reached = c->count >= expected_completion_count;
		pthread_mutex_unlock(&completions_lock);
		if (reached)
			break;
		if (left <= 0) {
			status = NRT_TIMEOUT;
			break;
		}
		status = nrt_ready();
		/* Of the one that was closed meanwhile nothing comes any more. */
		if (status == NRT_SUCCESS && atomic_load(&nrt_process.inits) != inits)
			status = NRT_CLOSED;
		if (status != NRT_SUCCESS)
			break;
		if (!warned && timeout_us < 0 && waited >= warn_us) {
			warned = true;
			LOG(NRT, WARN, "waiting for an output for more than 30 seconds");
		}
	}
	completions_put(c);
	return status;
}

NEURON_EXPORT NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *output_tensor)
{
	NRT_ENTER();
	if (!nrt_tensor_valid(output_tensor))
		return NRT_INVALID;
	GUARD(&completions_lock);
	output_tensor->completions->count = 0;
	return NRT_SUCCESS;
}
