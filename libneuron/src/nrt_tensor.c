// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tensors: storage, views of it, and sets of them by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nrt_internal.h"

/* ---- storage ----------------------------------------------------------------------- */

static void storage_link(struct nrt_storage *s)
{
	struct nrt_process *p = &nrt_process;

	pthread_mutex_lock(&p->lock);
	s->next = p->storages;
	s->pprev = &p->storages;
	if (s->next)
		s->next->pprev = &s->next;
	p->storages = s;
	pthread_mutex_unlock(&p->lock);
}

static struct nrt_storage *storage_new(enum nrt_storage_kind kind, uint64_t size)
{
	struct nrt_storage *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->kind = kind;
	s->size = size;
	return s;
}

static void storage_put(struct nrt_storage *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&nrt_process.lock);
	if (s->pprev) {
		*s->pprev = s->next;
		if (s->next)
			s->next->pprev = s->pprev;
	}
	pthread_mutex_unlock(&nrt_process.lock);
	neuron_mem_free(s->mem);
	if (s->owned)
		free(s->user);
	free(s);
}

/* Under the life lock for writing: nobody else is in here. */
void nrt_storages_close(void)
{
	for (struct nrt_storage *s = nrt_process.storages; s; s = s->next) {
		neuron_mem_free(s->mem);
		s->mem = NULL;
		s->device = NULL;
	}
}

void nrt_storages_forget(void)
{
	while (nrt_process.storages) {
		struct nrt_storage *s = nrt_process.storages;

		nrt_process.storages = s->next;
		s->next = NULL;
		s->pprev = NULL;
		s->mem = NULL;
		s->device = NULL;
	}
}

static NRT_STATUS storage_alloc(struct nrt_vnc *vnc, nrt_tensor_placement_t placement,
				size_t size, struct nrt_storage **out)
{
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	const struct neuron_geometry *g = neuron_device_geometry(vnc->device);
	bool host = placement == NRT_TENSOR_PLACEMENT_HOST;
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = host ? NEURON_MEM_F_HOST : 0,
		.hbm = g->core_hbm[vnc->nc],
		.nc = vnc->nc,
		.category = host ? NEURON_MEM_HOST_TENSORS : NEURON_MEM_TENSORS,
		.failure = &failure,
	};
	struct nrt_storage *s;
	int ret;

	s = storage_new(host ? NRT_STORAGE_HOST : NRT_STORAGE_DEVICE, size);
	if (!s)
		return NRT_RESOURCE;
	ret = neuron_mem_alloc(vnc->device, size, &opts, &s->mem);
	if (ret) {
		free(s);
		if (ret == -ENOMEM)
			nrt_log_memory(vnc->device, &failure);
		else
			LOG_AS(TDRV, ERROR, "tensor_allocate", "failed to allocate %zu bytes: %s",
			       size, strerror(-ret));
		return nrt_status_of(ret);
	}
	s->device = vnc->device;
	s->hbm = host ? 0 : opts.hbm;
	storage_link(s);
	*out = s;
	return NRT_SUCCESS;
}

/* ---- tensors ----------------------------------------------------------------------- */

static NRT_STATUS tensor_new(const char *name, nrt_tensor_t **out)
{
	struct nrt_tensor *t = calloc(1, sizeof(*t));

	if (!t)
		return NRT_RESOURCE;
	if (name) {
		t->name = strdup(name);
		if (!t->name) {
			free(t);
			return NRT_RESOURCE;
		}
	}
	t->magic = NRT_TENSOR_MAGIC;
	*out = t;
	return NRT_SUCCESS;
}

static const char *tensor_name(const nrt_tensor_t *t)
{
	return t->name ? t->name : "UNKNOWN";
}

NRT_EXPORT NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t tensor_placement, int vnc,
					  size_t size, const char *name, nrt_tensor_t **tensor)
{
	struct nrt_storage *s = NULL;
	nrt_tensor_t *t = NULL;
	struct nrt_vnc *v;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	status = nrt_vnc_get(vnc, &v);
	if (status != NRT_SUCCESS || !tensor || !size) {
		LOG(NRT, ERROR, "tensor %s of %zu bytes on core %d: invalid argument",
		    name ? name : "UNKNOWN", size, vnc);
		status = NRT_INVALID;
		goto out;
	}
	switch (tensor_placement) {
	case NRT_TENSOR_PLACEMENT_DEVICE:
	case NRT_TENSOR_PLACEMENT_HOST:
		status = storage_alloc(v, tensor_placement, size, &s);
		break;
	case NRT_TENSOR_PLACEMENT_VIRTUAL:
		s = storage_new(NRT_STORAGE_USER, size);
		if (s)
			s->user = calloc(1, size);
		if (!s || !s->user) {
			free(s);
			s = NULL;
			status = NRT_RESOURCE;
			break;
		}
		s->owned = true;
		break;
	default:
		LOG(NRT, ERROR, "tensor %s: placement %d is not known", name ? name : "UNKNOWN",
		    (int)tensor_placement);
		status = NRT_INVALID;
	}
	if (status == NRT_SUCCESS)
		status = tensor_new(name, &t);
	if (status != NRT_SUCCESS) {
		storage_put(s);
		goto out;
	}
	t->storage = s;
	t->size = size;
	*tensor = t;
out:
	nrt_leave();
	return status;
}

NRT_EXPORT NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	status = tensor ? tensor_new(name, tensor) : NRT_INVALID;
	nrt_leave();
	return status;
}

/* Callable after nrt_close() too: what the tensor had is gone by then. */
NRT_EXPORT void nrt_tensor_free(nrt_tensor_t **tensor)
{
	nrt_tensor_t *t;

	if (!tensor || !nrt_tensor_valid(*tensor))
		return;
	t = *tensor;
	*tensor = NULL;
	pthread_rwlock_rdlock(&nrt_process.life);
	storage_put(t->storage);
	pthread_rwlock_unlock(&nrt_process.life);
	t->magic = 0;
	free(t->name);
	free(t);
}

NRT_EXPORT NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size)
{
	struct nrt_storage *s;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!nrt_tensor_valid(tensor) || !buffer || !size) {
		status = NRT_INVALID;
		goto out;
	}
	s = storage_new(NRT_STORAGE_USER, size);
	if (!s) {
		status = NRT_RESOURCE;
		goto out;
	}
	s->user = buffer;
	storage_put(tensor->storage);
	tensor->storage = s;
	tensor->offset = 0;
	tensor->size = size;
out:
	nrt_leave();
	return status;
}

NRT_EXPORT NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset,
						size_t size, const char *name,
						nrt_tensor_t **tensor_slice)
{
	nrt_tensor_t *t;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!nrt_tensor_valid(tensor_source) || !tensor_slice || !tensor_source->storage || !size ||
	    offset > tensor_source->size || size > tensor_source->size - offset) {
		LOG(NRT, ERROR, "slice %s: %zu bytes at %zu are not inside the tensor",
		    name ? name : "UNKNOWN", size, offset);
		status = NRT_INVALID;
		goto out;
	}
	status = tensor_new(name, &t);
	if (status != NRT_SUCCESS)
		goto out;
	t->storage = tensor_source->storage;
	atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
	t->offset = tensor_source->offset + offset;
	t->size = size;
	*tensor_slice = t;
out:
	nrt_leave();
	return status;
}

/* Has storage, and the range lies in it. */
static NRT_STATUS check_range(const char *func, const nrt_tensor_t *t, uint64_t offset,
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

static NRT_STATUS transfer(const char *func, const nrt_tensor_t *t, void *buf, uint64_t offset,
			   uint64_t size, bool write)
{
	NRT_STATUS status = check_range(func, t, offset, size);
	struct nrt_storage *s;
	int ret = 0;

	if (status != NRT_SUCCESS)
		return status;
	if (!buf && size)
		return NRT_INVALID;
	s = t->storage;
	offset += t->offset;
	if (!size)
		return NRT_SUCCESS;
	if (s->kind == NRT_STORAGE_USER && write)
		memmove((char *)s->user + offset, buf, size);
	else if (s->kind == NRT_STORAGE_USER)
		memmove(buf, (char *)s->user + offset, size);
	else if (write)
		ret = neuron_mem_write(s->mem, offset, buf, size);
	else
		ret = neuron_mem_read(s->mem, offset, buf, size);
	return done(func, t, ret);
}

NRT_EXPORT NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset,
				      size_t size)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	status = transfer(__func__, tensor, buf, offset, size, false);
	nrt_leave();
	return status;
}

NRT_EXPORT NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset,
				       size_t size)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	status = transfer(__func__, tensor, (void *)(uintptr_t)buf, offset, size, true);
	nrt_leave();
	return status;
}

static NRT_STATUS batch(const char *func, const nrt_tensor_batch_t *batches,
			uint64_t num_batches, bool write)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!batches && num_batches)
		status = NRT_INVALID;
	for (uint64_t i = 0; i < num_batches && status == NRT_SUCCESS; i++) {
		const nrt_tensor_batch_t *b = &batches[i];

		if (!b->ops && b->num_ops)
			status = NRT_INVALID;
		for (uint32_t k = 0; k < b->num_ops && status == NRT_SUCCESS; k++)
			status = transfer(func, b->tensor, b->ops[k].buffer, b->ops[k].offset,
					  b->ops[k].size, write);
	}
	nrt_leave();
	return status;
}

/* Every transfer here is complete when it returns: there is no tracking to skip. */
NRT_EXPORT NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t *batches,
					    uint64_t num_batches, bool unsafe)
{
	(void)unsafe;
	return batch(__func__, batches, num_batches, false);
}

NRT_EXPORT NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t *batches,
					     uint64_t num_batches, bool unsafe)
{
	(void)unsafe;
	return batch(__func__, batches, num_batches, true);
}

NRT_EXPORT NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset,
				      nrt_tensor_t *dst, size_t dst_offset, size_t size)
{
	struct nrt_storage *s, *d;
	uint64_t from, to;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	status = check_range(__func__, src, src_offset, size);
	if (status == NRT_SUCCESS)
		status = check_range(__func__, dst, dst_offset, size);
	if (status != NRT_SUCCESS || !size)
		goto out;
	s = src->storage;
	d = dst->storage;
	from = src->offset + src_offset;
	to = dst->offset + dst_offset;
	if (s->kind == NRT_STORAGE_USER) {
		status = transfer(__func__, dst, (char *)s->user + from, dst_offset, size, true);
	} else if (d->kind == NRT_STORAGE_USER) {
		status = transfer(__func__, src, (char *)d->user + to, src_offset, size, false);
	} else if (s->device != d->device) {
		LOG(NRT, ERROR, "tensors %s and %s are on different devices", tensor_name(src),
		    tensor_name(dst));
		status = NRT_INVALID;
	} else {
		status = done(__func__, dst, neuron_mem_copy(d->mem, to, s->mem, from, size));
	}
out:
	nrt_leave();
	return status;
}

NRT_EXPORT size_t nrt_tensor_get_size(const nrt_tensor_t *tensor)
{
	return nrt_tensor_valid(tensor) ? tensor->size : 0;
}

NRT_EXPORT NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value,
					size_t size)
{
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	status = check_range(__func__, tensor, offset, size);
	if (status == NRT_SUCCESS && size) {
		struct nrt_storage *s = tensor->storage;

		if (s->kind == NRT_STORAGE_USER)
			memset((char *)s->user + tensor->offset + offset, value, size);
		else
			status = done(__func__, tensor,
				      neuron_mem_set(s->mem, tensor->offset + offset, value, size));
	}
	nrt_leave();
	return status;
}

NRT_EXPORT void *nrt_tensor_get_va(const nrt_tensor_t *tensor)
{
	void *va = NULL;

	if (nrt_enter() != NRT_SUCCESS)
		return NULL;
	if (nrt_tensor_valid(tensor) && nrt_tensor_stored(tensor)) {
		struct nrt_storage *s = tensor->storage;

		if (s->kind == NRT_STORAGE_USER)
			va = s->user;
		else if (s->kind == NRT_STORAGE_HOST || nrt_process.map_hbm)
			neuron_mem_map(s->mem, &va);
		if (va)
			va = (char *)va + tensor->offset;
	}
	nrt_leave();
	return va;
}

NRT_EXPORT NRT_STATUS
nrt_tensor_get_device_allocation_info(const nrt_tensor_t *tensor,
				      nrt_tensor_device_allocation_info_t *alloc_info)
{
	struct neuron_mem_info info = { .size = sizeof(info) };
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!nrt_tensor_valid(tensor) || !alloc_info || !nrt_tensor_stored(tensor) ||
	    tensor->storage->kind != NRT_STORAGE_DEVICE) {
		status = NRT_INVALID;
		goto out;
	}
	status = done(__func__, tensor, neuron_mem_get_info(tensor->storage->mem, &info));
	if (status != NRT_SUCCESS)
		goto out;
	memset(alloc_info, 0, sizeof(*alloc_info));
	alloc_info->physical_address = info.address + tensor->offset;
	alloc_info->size = info.bytes - tensor->offset;
	alloc_info->hbm_index = (int)tensor->storage->hbm;
out:
	nrt_leave();
	return status;
}

/* ---- sets -------------------------------------------------------------------------- */

struct nrt_set *nrt_set_of(const nrt_tensor_set_t *set)
{
	struct nrt_set *s = (struct nrt_set *)(uintptr_t)set;

	return s && s->magic == NRT_SET_MAGIC ? s : NULL;
}

NRT_EXPORT NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result)
{
	struct nrt_set *s;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	s = result ? calloc(1, sizeof(*s)) : NULL;
	if (s) {
		s->magic = NRT_SET_MAGIC;
		*result = s;
	} else {
		status = result ? NRT_RESOURCE : NRT_INVALID;
	}
	nrt_leave();
	return status;
}

NRT_EXPORT void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set)
{
	struct nrt_set *s = tensor_set ? nrt_set_of(*tensor_set) : NULL;

	if (!s)
		return;
	for (size_t i = 0; i < s->nr; i++)
		free(s->entries[i].name);
	free(s->entries);
	s->magic = 0;
	free(s);
	*tensor_set = NULL;
}

static struct nrt_set_entry *set_entry(const struct nrt_set *set, const char *name, size_t hint)
{
	if (hint < set->nr && !strcmp(set->entries[hint].name, name))
		return &set->entries[hint];
	for (size_t i = 0; i < set->nr; i++)
		if (!strcmp(set->entries[i].name, name))
			return &set->entries[i];
	return NULL;
}

nrt_tensor_t *nrt_set_find(const struct nrt_set *set, const char *name, size_t hint)
{
	struct nrt_set_entry *e = set ? set_entry(set, name, hint) : NULL;

	return e ? e->tensor : NULL;
}

NRT_EXPORT NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set,
						   const char *tensor_name, nrt_tensor_t *tensor)
{
	struct nrt_set *s = nrt_set_of(tensor_set);
	struct nrt_set_entry *e;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!s || !tensor_name || !nrt_tensor_valid(tensor)) {
		status = NRT_INVALID;
		goto out;
	}
	e = set_entry(s, tensor_name, s->nr);
	if (e) {
		e->tensor = tensor;
		goto out;
	}
	if (s->nr == s->max) {
		size_t max = s->max ? s->max * 2 : 8;

		e = reallocarray(s->entries, max, sizeof(*e));
		if (!e) {
			status = NRT_RESOURCE;
			goto out;
		}
		s->entries = e;
		s->max = max;
	}
	e = &s->entries[s->nr];
	e->name = strdup(tensor_name);
	e->tensor = tensor;
	if (e->name)
		s->nr++;
	else
		status = NRT_RESOURCE;
out:
	nrt_leave();
	return status;
}

NRT_EXPORT NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set,
						     const char *tensor_name,
						     nrt_tensor_t **tensor)
{
	struct nrt_set *s = nrt_set_of(tensor_set);
	nrt_tensor_t *t;
	NRT_STATUS status = nrt_enter();

	if (status != NRT_SUCCESS)
		return status;
	if (!s || !tensor_name || !tensor) {
		status = NRT_INVALID;
	} else {
		t = nrt_set_find(s, tensor_name, 0);
		if (t)
			*tensor = t;
		else
			status = NRT_FAILURE;
	}
	nrt_leave();
	return status;
}
