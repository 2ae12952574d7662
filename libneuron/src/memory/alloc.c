// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of a device and host memory that a device can reach. */
#include <errno.h>
#include <stdlib.h>

#include "../../common/lock.h"
#include "../device/device.h"
#include "../device/opts.h"
#include "../device/sys.h"
#include "mem.h"
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
			 const struct neuron_native_mem_alloc *a, const struct neuron_mem_opts *o)
{
	const struct neuron_mem_failure f = {
		.reason = (enum neuron_mem_reason)a->reason,
		.category = o->category,
		.hbm = a->hbm,
		.nc = o->nc,
		.bytes = a->bytes,
		.align = o->align,
		.total = a->total,
		.free = a->free,
		.largest_free = a->largest_free,
		.largest_aligned = a->largest_aligned,
	};

	memlog_add(device, MEMLOG_ALLOC, m, f.bytes, f.align, f.reason);
	if (!(o->flags & NEURON_MEM_F_HOST))
		mem_dump(device, &f);
	if (o->failure)
		*o->failure = f;
}

NEURON_EXPORT int neuron_mem_alloc(struct neuron_device *device, uint64_t bytes,
				   const struct neuron_mem_opts *opts, struct neuron_mem **mem)
{
	struct neuron_native_mem_alloc a = { .size = sizeof(a), .bytes = bytes };
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
	a.flags = o.flags;
	a.align = o.align;
	a.hbm = o.flags & NEURON_MEM_F_HOST ? 0 : o.hbm;
	a.nc_id = o.nc;
	a.mem_type = o.category;
	a.owner = o.owner;
	a.pa = o.flags & NEURON_MEM_F_AT ? o.address : 0;
	m->category = o.category;
	m->hbm = a.hbm;
	m->nc = o.nc;
	m->movable = o.flags & NEURON_MEM_F_MOVABLE;
	ret = ask_driver(device, &a);
	if (ret) {
		if (ret == -ENOMEM)
			tell_refusal(m, device, &a, &o);
		free(m);
		return ret;
	}
	m->address = a.pa;
	m->bytes = bytes;
	mem_adopt(m, device, a.mem_handle, a.mmap_offset, o.align);
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

NEURON_EXPORT int neuron_mem_export(struct neuron_mem *mem, uint32_t flags, int *fd)
{
	struct neuron_native_mem_export e = {
		.size = sizeof(e), .flags = flags, .mem_handle = mem->handle,
	};
	int ret;

	if (!fd)
		return -EINVAL;
	ret = device_ioctl(mem->device, NEURON_NATIVE_MEM_EXPORT, &e);
	if (!ret)
		*fd = e.fd;
	return ret;
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
	struct leftover left = { .next = NULL };
	void *va;

	if (!mem)
		return;
	va = atomic_load(&mem->va);
	if (va && !device_inherited(mem->device))
		neuron_sys_munmap(va, mem->mapped);
	memlog_add(mem->device, MEMLOG_FREE, mem, mem->bytes, 0, 0);
	mem_count(mem, 0);
	left.handle = mem->handle;
	device_give_back(mem->device, &left);
	device_put(mem->device);
	pthread_mutex_destroy(&mem->lock);
	free(mem);
}

NEURON_EXPORT uint64_t neuron_mem_address(const struct neuron_mem *mem)
{
	return mem->address;
}

/* Under the lock. */
static int pin(struct neuron_mem *mem)
{
	struct neuron_native_mem_pin p = { .size = sizeof(p), .mem_handle = mem->handle };
	int ret = 0;

	if (!mem->pins)
		ret = device_ioctl(mem->device, NEURON_NATIVE_MEM_PIN, &p);
	if (ret)
		return ret;
	if (!mem->pins++) {
		mem->address = p.pa;
		mem->mmap_offset = p.mmap_offset;
	}
	return 0;
}

static int unpin(struct neuron_mem *mem)
{
	struct neuron_native_mem_unpin p = { .size = sizeof(p), .mem_handle = mem->handle };

	if (!mem->pins)
		return -EINVAL;
	if (--mem->pins)
		return 0;
	mem->address = 0;
	return device_ioctl(mem->device, NEURON_NATIVE_MEM_UNPIN, &p);
}

NEURON_EXPORT int neuron_mem_pin(struct neuron_mem *mem, uint64_t *address)
{
	int ret = 0;

	if (device_inherited(mem->device))
		return -EACCES;
	if (mem->movable) {
		GUARD(&mem->lock);
		ret = pin(mem);
	}
	if (!ret && address)
		*address = mem->address;
	return ret;
}

NEURON_EXPORT int neuron_mem_unpin(struct neuron_mem *mem)
{
	if (device_inherited(mem->device))
		return -EACCES;
	if (!mem->movable)
		return 0;
	GUARD(&mem->lock);
	return unpin(mem);
}

NEURON_EXPORT uint64_t neuron_mem_bytes(const struct neuron_mem *mem)
{
	return mem->bytes;
}

NEURON_EXPORT uint64_t neuron_mem_handle(const struct neuron_mem *mem)
{
	return mem->handle;
}

NEURON_EXPORT int neuron_mem_get_info(struct neuron_mem *mem, struct neuron_mem_info *info)
{
	struct neuron_ioctl_mem_get_extended_info e = { .mem_handle = mem->handle };
	struct neuron_mem_info out = { 0 };
	int ret;

	if (!result_valid(info))
		return -EINVAL;
	ret = device_ioctl(mem->device, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &e);
	if (ret)
		return ret;
	out.address = e.pa;
	out.bytes = e.size;
	out.mmap_offset = e.mmap_offset;
	out.host = e.host_memory;
	out.pid = e.pid;
	result_copy(info, &out, sizeof(out));
	return 0;
}

static bool in_range(const struct neuron_mem *mem, uint64_t offset, uint64_t bytes)
{
	return offset <= mem->bytes && bytes <= mem->bytes - offset;
}

static int buf_copy(struct neuron_mem *mem, uint64_t offset, void *buffer, uint64_t bytes,
		    bool to_mem)
{
	struct neuron_ioctl_mem_buf_copy64 c = {
		.mem_handle = mem->handle,
		.buffer = buffer,
		.size = bytes,
		.offset = offset,
		.copy_to_mem_handle = to_mem,
	};

	if (!in_range(mem, offset, bytes))
		return -EINVAL;
	if (!bytes)
		return 0;
	return device_ioctl(mem->device, NEURON_IOCTL_MEM_BUF_COPY64, &c);
}

NEURON_EXPORT int neuron_mem_read(struct neuron_mem *mem, uint64_t offset, void *buffer,
				  uint64_t bytes)
{
	return buf_copy(mem, offset, buffer, bytes, false);
}

NEURON_EXPORT int neuron_mem_write(struct neuron_mem *mem, uint64_t offset, const void *buffer,
				   uint64_t bytes)
{
	/* The interface has one pointer for both directions. */
	return buf_copy(mem, offset, (void *)(uintptr_t)buffer, bytes, true);
}

NEURON_EXPORT int neuron_mem_copy(struct neuron_mem *dst, uint64_t dst_offset,
				  struct neuron_mem *src, uint64_t src_offset, uint64_t bytes)
{
	struct neuron_ioctl_mem_copy64 c = {
		.src_mem_handle = src->handle,
		.dst_mem_handle = dst->handle,
		.size = bytes,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
	};

	if (dst->device != src->device || !in_range(dst, dst_offset, bytes) ||
	    !in_range(src, src_offset, bytes))
		return -EINVAL;
	if (!bytes)
		return 0;
	return device_ioctl(dst->device, NEURON_IOCTL_MEM_COPY64, &c);
}

/* Of the two tokens of a core only the first is used: there is nothing to tell apart. */
#define COPY_TOKEN 1u

NEURON_EXPORT int neuron_mem_copy_finish(struct neuron_mem *dst, struct neuron_mem *src)
{
	struct neuron_ioctl_mem_copy_async_wait w = {
		.src_mem_handle = src->handle,
		.dst_mem_handle = dst->handle,
		.pwait_handle = COPY_TOKEN,
	};

	if (dst->device != src->device)
		return -EINVAL;
	return device_ioctl(dst->device, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &w);
}

NEURON_EXPORT int neuron_mem_copy_start(struct neuron_mem *dst, uint64_t dst_offset,
					struct neuron_mem *src, uint64_t src_offset,
					uint64_t bytes, int eventfd)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.src_mem_handle = src->handle,
		.dst_mem_handle = dst->handle,
		.size = bytes,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.pwait_handle = ~0u,
	};
	struct neuron_native_copy_eventfd e = {
		.size = sizeof(e),
		.src_mem_handle = src->handle,
		.dst_mem_handle = dst->handle,
		.token = COPY_TOKEN,
		.eventfd = eventfd,
	};
	int ret;

	if (dst->device != src->device || !bytes || !in_range(dst, dst_offset, bytes) ||
	    !in_range(src, src_offset, bytes))
		return -EINVAL;
	ret = device_ioctl(dst->device, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);
	if (ret || eventfd < 0)
		return ret;
	ret = device_ioctl(dst->device, NEURON_NATIVE_COPY_EVENTFD, &e);
	/* Nobody would learn of its end. */
	if (ret)
		neuron_mem_copy_finish(dst, src);
	return ret;
}

NEURON_EXPORT int neuron_mem_set(struct neuron_mem *mem, uint64_t offset, int value,
				 uint64_t bytes)
{
	struct neuron_ioctl_memset64 s = {
		.mem_handle = mem->handle,
		.offset = offset,
		.value = (unsigned char)value,
		.size = bytes,
	};

	if (!in_range(mem, offset, bytes))
		return -EINVAL;
	if (!bytes)
		return 0;
	return device_ioctl(mem->device, NEURON_IOCTL_MEMSET64, &s);
}

NEURON_EXPORT int neuron_mem_map(struct neuron_mem *mem, void **address)
{
	void *va;

	if (device_inherited(mem->device))
		return -EACCES;
	GUARD(&mem->lock);
	va = atomic_load(&mem->va);
	if (!va) {
		int ret = mem->movable ? pin(mem) : 0;

		if (ret)
			return ret;
		mem->mapped = round_up(mem->bytes, NEURON_PAGE);
		va = neuron_sys_mmap(mem->device->fd, mem->mmap_offset, mem->mapped);
		ret = -errno;
		/* From here on the mapping keeps it where it is. */
		if (mem->movable)
			unpin(mem);
		if (!va)
			return ret;
		atomic_store(&mem->va, va);
	}
	*address = va;
	return 0;
}

/* To g->bytes; the rest of *@g is what the driver answers. */
static int resize(struct neuron_mem *mem, struct neuron_native_mem_grow *g)
{
	bool shrink = g->flags & NEURON_NATIVE_GROW_SHRINK;
	uint64_t bytes = g->bytes;
	int ret;

	if (device_inherited(mem->device))
		return -EACCES;
	GUARD(&mem->lock);
	if (shrink ? !bytes || bytes > mem->bytes : bytes < mem->bytes)
		ret = -EINVAL;
	else if (atomic_load(&mem->va))	/* the mapping that everybody gets is this long */
		ret = -EBUSY;
	else
		ret = device_ioctl(mem->device, NEURON_NATIVE_MEM_GROW, g);
	if (!ret) {
		mem->bytes = bytes;
		mem_count(mem, bytes);
	}
	if (!ret || (ret == -ENOMEM && !shrink))
		memlog_add(mem->device, shrink ? MEMLOG_SHRINK : MEMLOG_GROW, mem, bytes, 0,
			   ret ? g->reason : 0);
	return ret;
}

NEURON_EXPORT int neuron_mem_grow(struct neuron_mem *mem, uint64_t bytes,
				  struct neuron_mem_failure *failure)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g),
		.mem_handle = mem->handle,
		.bytes = bytes,
	};
	int ret = resize(mem, &g);

	if (ret == -ENOMEM) {
		const struct neuron_mem_failure f = {
			.reason = (enum neuron_mem_reason)g.reason,
			.category = mem->category,
			.hbm = mem->hbm,
			.nc = mem->nc,
			.bytes = bytes,
			.total = g.total,
			.free = g.free,
			.largest_free = g.largest_free,
			.largest_aligned = g.largest_free,
		};

		mem_dump(mem->device, &f);
		if (failure)
			*failure = f;
	}
	return ret;
}

NEURON_EXPORT int neuron_mem_shrink(struct neuron_mem *mem, uint64_t bytes)
{
	struct neuron_native_mem_grow g = {
		.size = sizeof(g),
		.flags = NEURON_NATIVE_GROW_SHRINK,
		.mem_handle = mem->handle,
		.bytes = bytes,
	};

	return resize(mem, &g);
}
