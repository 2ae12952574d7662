// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory that tensors are views of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/lock.h"
#include "../base/log.h"
#include "../base/process.h"
#include "room.h"
#include "storage.h"

static void storage_link(struct nrt_storage *s)
{
	struct nrt_process *p = &nrt_process;

	GUARD(&p->lock);
	s->next = p->storages;
	s->pprev = &p->storages;
	if (s->next)
		s->next->pprev = &s->next;
	p->storages = s;
}

struct nrt_storage *nrt_storage_new(enum nrt_storage_kind kind, uint64_t size)
{
	struct nrt_storage *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->kind = kind;
	s->size = size;
	return s;
}

struct nrt_storage *nrt_storage_of(enum nrt_storage_kind kind, struct neuron_device *device,
				   struct neuron_mem *mem, void *va)
{
	struct nrt_storage *s = nrt_storage_new(kind, neuron_mem_bytes(mem));

	if (!s)
		return NULL;
	s->device = device;
	s->mem = mem;
	atomic_init(&s->va, va);
	storage_link(s);
	return s;
}

struct nrt_storage *nrt_storage_get(struct nrt_storage *s)
{
	if (s)
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void nrt_storage_put(struct nrt_storage *s)
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

struct nrt_storage *nrt_storage_at(const void *va, uint64_t size)
{
	uintptr_t at = (uintptr_t)va;
	struct nrt_storage *s;
	unsigned int refs = 0;

	GUARD(&nrt_process.lock);
	for (s = nrt_process.storages; s; s = s->next) {
		uintptr_t start = (uintptr_t)atomic_load(&s->va);

		if (start && at >= start && at - start <= s->size && size <= s->size - (at - start))
			break;
	}
	/* One that another thread is about to free, which waits for the lock, stays dead. */
	if (s)
		refs = atomic_load(&s->refs);
	while (refs && !atomic_compare_exchange_weak(&s->refs, &refs, refs + 1))
		;
	return refs ? s : NULL;
}

static void storage_lost(struct nrt_storage *s)
{
	s->mem = NULL;
	s->device = NULL;
	atomic_store(&s->va, NULL);
}

/* Under the life lock for writing: nobody else is in here. */
void nrt_storages_close(void)
{
	for (struct nrt_storage *s = nrt_process.storages; s; s = s->next) {
		neuron_mem_free(s->mem);
		storage_lost(s);
	}
}

void nrt_storages_forget(void)
{
	while (nrt_process.storages) {
		struct nrt_storage *s = nrt_process.storages;

		nrt_process.storages = s->next;
		s->next = NULL;
		s->pprev = NULL;
		storage_lost(s);
	}
}

int nrt_core_alloc(const struct nrt_vnc *vnc, enum neuron_mem_category category, uint32_t flags,
		   uint64_t bytes, struct neuron_mem **mem)
{
	struct neuron_mem_failure failure = { .reason = NEURON_MEM_REASON_NONE };
	struct neuron_mem_opts opts = {
		.size = sizeof(opts),
		.flags = flags | (!flags && nrt_process.contiguous ? NEURON_MEM_F_HIGH : 0),
		.hbm = neuron_device_geometry(vnc->device)->core_hbm[vnc->nc],
		.nc = vnc->nc,
		.category = category,
		.failure = &failure,
	};
	struct nrt_room room = { .vnc = vnc };
	int ret;

	do {
		/* More may be so much that the driver cannot count it; this is refused with a reason. */
		ret = neuron_mem_alloc(vnc->device, MIN(bytes, 1ull << 62), &opts, mem);
		if (ret == -ENOMEM)
			nrt_room_refused(&room, &failure, NULL);
	} while (nrt_room_made(&room, ret));
	nrt_room_end(&room, ret);
	return ret;
}

NRT_STATUS nrt_storage_alloc(struct nrt_vnc *vnc, nrt_tensor_placement_t placement,
			     size_t size, struct nrt_storage **out)
{
	const struct neuron_geometry *g = neuron_device_geometry(vnc->device);
	bool host = placement == NRT_TENSOR_PLACEMENT_HOST;
	bool user = placement == NRT_TENSOR_PLACEMENT_VIRTUAL;
	struct nrt_storage *s = nrt_storage_new(user ? NRT_STORAGE_USER : host ? NRT_STORAGE_HOST :
						NRT_STORAGE_DEVICE, size);
	int ret = 0;

	if (!s)
		return NRT_RESOURCE;
	if (user) {
		s->user = calloc(1, size);
		s->owned = true;
	} else {
		ret = nrt_core_alloc(vnc, host ? NEURON_MEM_HOST_TENSORS : NEURON_MEM_TENSORS,
				     host ? NEURON_MEM_F_HOST : 0, size, &s->mem);
		if (ret && ret != -ENOMEM)
			LOG_AS(TDRV, ERROR, "tensor_allocate", "failed to allocate %zu bytes: %s",
			       size, strerror(-ret));
	}
	if (ret || (user && !s->user)) {
		free(s);
		return ret ? nrt_status_of(ret) : NRT_RESOURCE;
	}
	if (!user) {
		s->device = vnc->device;
		s->hbm = host ? 0 : g->core_hbm[vnc->nc];
		s->vnc = (uint32_t)(vnc - nrt_process.vncs);
		storage_link(s);
	}
	*out = s;
	return NRT_SUCCESS;
}
