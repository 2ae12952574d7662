// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of a device and host memory that a device can reach. */
#include <errno.h>
#include <stdlib.h>

#include "../device/device.h"
#include "../device/opts.h"
#include "../device/sys.h"
#include "image.h"
#include "snapshot.h"

_Static_assert((int)NEURON_MEM_NR_CATEGORIES == (int)NEURON_MEMALLOC_TYPE_MAX, "categories");
_Static_assert((int)NEURON_MEM_RINGS == (int)NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE, "categories");
_Static_assert((int)NEURON_MEM_SCRATCHPAD_PRIVATE ==
	       (int)NEURON_MEMALLOC_TYPE_SCRATCHPAD_NONSHARED_DEVICE, "categories");
_Static_assert((int)NEURON_MEM_REASON_HOST == (int)NEURON_NATIVE_REASON_HOST, "reasons");
_Static_assert(NEURON_MEM_F_HOST == NEURON_NATIVE_ALLOC_HOST &&
	       NEURON_MEM_F_LOW == NEURON_NATIVE_ALLOC_LOW &&
	       NEURON_MEM_F_HIGH == NEURON_NATIVE_ALLOC_HIGH &&
	       NEURON_MEM_F_MOVABLE == NEURON_NATIVE_ALLOC_MOVABLE &&
	       NEURON_MEM_F_AT == NEURON_NATIVE_ALLOC_AT &&
	       NEURON_MEM_EXPORT_RDONLY == NEURON_NATIVE_EXPORT_RDONLY, "flags");

NEURON_EXPORT int neuron_hbm_compact(struct neuron_device *device, uint32_t hbm, uint64_t bytes,
				     uint64_t align, uint64_t budget,
				     struct neuron_compaction *result)
{
	struct neuron_native_mem_compact c = {
		.size = sizeof(c), .hbm = hbm, .bytes = bytes, .align = align, .budget = budget,
	};
	struct neuron_compaction out = { 0 };
	int ret;

	if (result && !result_valid(result))
		return -EINVAL;
	ret = device_ioctl(device, NEURON_NATIVE_MEM_COMPACT, &c);
	if (ret || !result)
		return ret;
	out.moves = c.moves;
	out.bytes = c.moved_bytes;
	out.largest = c.largest;
	result_copy(result, &out, sizeof(out));
	return 0;
}

NEURON_EXPORT void neuron_device_set_compact(struct neuron_device *device, bool on)
{
	atomic_store(&device->compact, on);
}

/* Was something moved so that the refused request fits? */
static bool make_room(struct neuron_device *device, const struct neuron_native_mem_alloc *a)
{
	struct neuron_compaction c = { .size = sizeof(c) };

	return (a->reason == NEURON_NATIVE_REASON_FRAGMENTED ||
		a->reason == NEURON_NATIVE_REASON_ALIGNMENT) &&
	       atomic_load(&device->compact) &&
	       !neuron_hbm_compact(device, a->hbm, a->bytes, a->align, 0, &c) && c.moves &&
	       c.largest >= a->bytes;
}

static int ask_driver(struct neuron_device *device, struct neuron_native_mem_alloc *a)
{
	const struct neuron_native_mem_alloc first = *a;
	int ret = device_ioctl(device, NEURON_NATIVE_MEM_ALLOC, a);

	/* Pools have more than they use. */
	if (ret == -ENOMEM && !(a->flags & NEURON_NATIVE_ALLOC_HOST) &&
	    device_reclaim(device, a->hbm)) {
		*a = first;
		ret = device_ioctl(device, NEURON_NATIVE_MEM_ALLOC, a);
	}
	if (ret == -ENOMEM && make_room(device, a)) {
		*a = first;
		ret = device_ioctl(device, NEURON_NATIVE_MEM_ALLOC, a);
	}
	return ret;
}

static void tell_refusal(const struct neuron_mem *m, struct neuron_device *device,
			 const struct neuron_native_mem_alloc *a,
			 struct neuron_mem_failure *failure)
{
	const struct neuron_mem_failure f = {
		.reason = (enum neuron_mem_reason)a->reason,
		.category = m->category,
		.hbm = m->hbm,
		.nc = m->nc,
		.bytes = a->bytes,
		.align = a->align,
		.total = a->total,
		.free = a->free,
		.largest_free = a->largest_free,
		.largest_aligned = a->largest_aligned,
	};

	memlog_add(device, MEMLOG_ALLOC, m, f.bytes, f.align, f.reason);
	if (!(m->flags & NEURON_MEM_F_HOST))
		mem_dump(device, &f);
	if (failure)
		*failure = f;
}

/* Memory for @m, as its options say; @at: there, or NULL. On error nothing of it changes. */
static int obtain(struct neuron_device *device, struct neuron_mem *m, const uint64_t *at,
		  struct neuron_mem_failure *failure)
{
	struct neuron_native_mem_alloc a = {
		.size = sizeof(a), .flags = m->flags | (at ? NEURON_NATIVE_ALLOC_AT : 0),
		.bytes = m->bytes, .align = m->align, .hbm = m->hbm, .nc_id = m->nc,
		.mem_type = m->category, .pa = at ? *at : 0, .owner = m->owner,
	};
	int ret = ask_driver(device, &a);

	if (!ret) {
		m->handle = a.mem_handle;
		m->address = a.pa;
		m->mmap_offset = a.mmap_offset;
	} else if (ret == -ENOMEM) {
		tell_refusal(m, device, &a, failure);
	}
	return ret;
}

NEURON_EXPORT int neuron_mem_alloc(struct neuron_device *device, uint64_t bytes,
				   const struct neuron_mem_opts *opts, struct neuron_mem **mem)
{
	struct neuron_mem_opts o;
	struct neuron_mem *m;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!opts)
		o.category = NEURON_MEM_OTHER;
	if (!bytes || !mem)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->bytes = bytes;
	/* What comes back from host memory may come to any place. */
	m->flags = o.flags & ~NEURON_MEM_F_AT;
	m->align = o.align;
	m->owner = o.owner;
	m->category = o.category;
	m->hbm = o.flags & NEURON_MEM_F_HOST ? 0 : o.hbm;
	m->nc = o.nc;
	m->movable = o.flags & NEURON_MEM_F_MOVABLE;
	ret = obtain(device, m, o.flags & NEURON_MEM_F_AT ? &o.address : NULL, o.failure);
	if (ret) {
		free(m);
		return ret;
	}
	mem_adopt(m, device, m->handle, m->mmap_offset, o.align);
	*mem = m;
	return 0;
}

void mem_adopt(struct neuron_mem *mem, struct neuron_device *device, uint64_t handle,
	       uint64_t mmap_offset, uint64_t align)
{
	mem->device = device_get(device);
	mem->handle = handle;
	mem->mmap_offset = mmap_offset;
	pthread_mutex_init(&mem->lock, NULL);
	memlog_add(device, MEMLOG_ALLOC, mem, mem->bytes, align, 0);
	mem_count(mem, mem->bytes);
}

void mem_give_up(struct neuron_mem *mem)
{
	struct leftover left = { .handle = mem->handle };

	memlog_add(mem->device, MEMLOG_FREE, mem, mem->bytes, 0, 0);
	mem_count(mem, 0);
	mem->handle = 0;
	mem->address = 0;
	device_give_back(mem->device, &left);
}

int mem_get_again(struct neuron_mem *mem, struct neuron_mem_failure *failure)
{
	int ret = obtain(mem->device, mem, NULL, failure);

	if (ret)
		return ret;
	memlog_add(mem->device, MEMLOG_ALLOC, mem, mem->bytes, mem->align, 0);
	mem_count(mem, mem->bytes);
	return 0;
}

NEURON_EXPORT int neuron_mem_export_range(struct neuron_device *device, uint64_t address,
					  uint64_t bytes, int *fd)
{
	int32_t out = -1;
	struct neuron_ioctl_dmabuf_fd d = { .va = address, .size = bytes, .fd = &out };
	int ret;

	if (!fd)
		return -EINVAL;
	ret = device_ioctl(device, NEURON_IOCTL_DMABUF_FD, &d);
	if (!ret)
		*fd = out;
	return ret;
}

NEURON_EXPORT int neuron_mem_import(struct neuron_device *device, int fd, struct neuron_mem **mem)
{
	struct neuron_native_mem_import i = { .size = sizeof(i), .fd = fd };
	struct neuron_mem *m;
	int ret;

	if (!mem)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	ret = device_ioctl(device, NEURON_NATIVE_MEM_IMPORT, &i);
	if (ret) {
		free(m);
		return ret;
	}
	m->device = device_get(device);
	m->handle = i.mem_handle;
	m->address = i.pa;
	m->mmap_offset = i.mmap_offset;
	m->bytes = i.bytes;
	m->category = NEURON_MEM_HOST_OTHER;	/* charged to whoever exports it */
	pthread_mutex_init(&m->lock, NULL);
	*mem = m;
	return 0;
}

NEURON_EXPORT void neuron_mem_free(struct neuron_mem *mem)
{
	void *va;

	if (!mem)
		return;
	va = atomic_load(&mem->va);
	if (va && !device_inherited(mem->device))
		neuron_sys_munmap(va, mem->mapped);
	if (mem->handle) {
		mem_give_up(mem);
	} else {
		offload_count_gone(mem->device, mem->bytes);
		mem_image_free(mem->image);
	}
	device_put(mem->device);
	pthread_mutex_destroy(&mem->lock);
	free(mem);
}

NEURON_EXPORT uint64_t neuron_mem_address(const struct neuron_mem *mem)
{
	return mem->address;
}

NEURON_EXPORT uint64_t neuron_mem_bytes(const struct neuron_mem *mem)
{
	return mem->bytes;
}

NEURON_EXPORT uint64_t neuron_mem_handle(const struct neuron_mem *mem)
{
	return mem->handle;
}
