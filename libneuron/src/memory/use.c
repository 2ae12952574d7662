// SPDX-License-Identifier: LGPL-2.1-or-later
/* Using memory: what is in host memory comes back first. */
#include <errno.h>

#include "../../common/lock.h"
#include "../device/mapping.h"
#include "../device/opts.h"
#include "../device/sys.h"
#include "offload.h"
#include "snapshot.h"

NEURON_EXPORT int neuron_mem_export(struct neuron_mem *mem, uint32_t flags, int *fd)
{
	struct neuron_native_mem_export e = { .size = sizeof(e), .flags = flags };
	int ret;

	if (!fd)
		return -EINVAL;
	if (device_inherited(mem->device))
		return -EACCES;
	GUARD(&mem->lock);
	ret = offload_return_locked(mem, NULL);
	if (ret)
		return ret;
	e.mem_handle = mem->handle;
	ret = device_ioctl(mem->device, NEURON_NATIVE_MEM_EXPORT, &e);
	if (ret)
		return ret;
	mem->exported = true;
	*fd = e.fd;
	return 0;
}

/* Under the lock. */
static int pin(struct neuron_mem *mem)
{
	struct neuron_native_mem_pin p = { .size = sizeof(p) };
	int ret = offload_return_locked(mem, NULL);

	p.mem_handle = mem->handle;
	if (!ret && !mem->pins)
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

NEURON_EXPORT int neuron_mem_get_info(struct neuron_mem *mem, struct neuron_mem_info *info)
{
	struct neuron_ioctl_mem_get_extended_info e = { 0 };
	struct neuron_mem_info out = { 0 };
	int ret;

	if (!result_valid(info))
		return -EINVAL;
	ret = offload_hold(mem);
	if (ret)
		return ret;
	e.mem_handle = mem->handle;
	ret = device_ioctl(mem->device, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &e);
	offload_drop(mem);
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

static int buf_copy(struct neuron_mem *mem, uint64_t offset, void *buffer, uint64_t bytes,
		    bool to_mem)
{
	int ret = mem_in_range(mem, offset, bytes) ? offload_hold(mem) : -EINVAL;

	if (ret)
		return ret;
	ret = mem_transfer(mem, offset, buffer, bytes, to_mem);
	offload_drop(mem);
	return ret;
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

static int hold_both(struct neuron_mem *dst, struct neuron_mem *src)
{
	int ret = offload_hold(dst);

	if (ret)
		return ret;
	ret = offload_hold(src);
	if (ret)
		offload_drop(dst);
	return ret;
}

static void drop_both(struct neuron_mem *dst, struct neuron_mem *src)
{
	offload_drop(src);
	offload_drop(dst);
}

static bool can_copy(const struct neuron_mem *dst, uint64_t dst_offset,
		     const struct neuron_mem *src, uint64_t src_offset, uint64_t bytes)
{
	return dst->device == src->device && mem_in_range(dst, dst_offset, bytes) &&
	       mem_in_range(src, src_offset, bytes);
}

NEURON_EXPORT int neuron_mem_copy(struct neuron_mem *dst, uint64_t dst_offset,
				  struct neuron_mem *src, uint64_t src_offset, uint64_t bytes)
{
	struct neuron_ioctl_mem_copy64 c = {
		.size = bytes,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
	};
	int ret;

	if (!can_copy(dst, dst_offset, src, src_offset, bytes))
		return -EINVAL;
	if (!bytes)
		return 0;
	ret = hold_both(dst, src);
	if (ret)
		return ret;
	c.src_mem_handle = src->handle;
	c.dst_mem_handle = dst->handle;
	ret = device_ioctl(dst->device, NEURON_IOCTL_MEM_COPY64, &c);
	drop_both(dst, src);
	return ret;
}

NEURON_EXPORT int neuron_mem_copy_finish(struct neuron_mem *dst, struct neuron_mem *src)
{
	return device_inherited(dst->device) ? -EACCES : copy_finish(dst, src);
}

NEURON_EXPORT int neuron_mem_copy_start(struct neuron_mem *dst, uint64_t dst_offset,
					struct neuron_mem *src, uint64_t src_offset,
					uint64_t bytes, int eventfd)
{
	struct neuron_ioctl_mem_copy_async64 c = {
		.size = bytes,
		.src_offset = src_offset,
		.dst_offset = dst_offset,
		.pwait_handle = ~0u,
	};
	struct neuron_native_copy_eventfd e = {
		.size = sizeof(e),
		.token = COPY_TOKEN,
		.eventfd = eventfd,
	};
	int ret;

	if (!bytes || !can_copy(dst, dst_offset, src, src_offset, bytes))
		return -EINVAL;
	ret = hold_both(dst, src);
	if (ret)
		return ret;
	c.src_mem_handle = e.src_mem_handle = src->handle;
	c.dst_mem_handle = e.dst_mem_handle = dst->handle;
	ret = device_ioctl(dst->device, NEURON_IOCTL_MEM_COPY_ASYNC64, &c);
	if (ret)
		drop_both(dst, src);
	else
		copy_note(dst, src);
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
		.offset = offset,
		.value = (unsigned char)value,
		.size = bytes,
	};
	int ret;

	if (!mem_in_range(mem, offset, bytes))
		return -EINVAL;
	if (!bytes)
		return 0;
	ret = offload_hold(mem);
	if (ret)
		return ret;
	s.mem_handle = mem->handle;
	ret = device_ioctl(mem->device, NEURON_IOCTL_MEMSET64, &s);
	offload_drop(mem);
	return ret;
}

NEURON_EXPORT int neuron_mem_map(struct neuron_mem *mem, void **address)
{
	void *va;

	if (!address)
		return -EINVAL;
	if (device_inherited(mem->device))
		return -EACCES;
	GUARD(&mem->lock);
	va = atomic_load(&mem->va);
	if (!va) {
		int ret = mem->movable ? pin(mem) : 0;

		if (ret)
			return ret;
		mem->mapped = round_up(mem->bytes, host_page());
		va = neuron_sys_mmap(mem->device->fd, mem->mmap_offset, mem->mapped);
		ret = -errno;
		/* From here on the mapping keeps it where it is. */
		if (mem->movable)
			unpin(mem);
		if (!va)
			return ret;
		mem->mapping = mapping_add(mem->device, &(struct mapping){
			.va = (uintptr_t)va, .mapped = mem->mapped, .address = mem->mmap_offset,
			.bytes = mem->bytes, .nc = mem->nc, .owner = mem->owner,
			.category = mem->category,
		});
		if (!mem->mapping) {
			neuron_sys_munmap(va, mem->mapped);
			return -ENOMEM;
		}
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
		ret = offload_return_locked(mem, NULL);
	g->mem_handle = mem->handle;
	ret = ret ?: device_ioctl(mem->device, NEURON_NATIVE_MEM_GROW, g);
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
		.bytes = bytes,
	};

	return resize(mem, &g);
}
