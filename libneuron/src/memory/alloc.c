// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of a device and host memory that a device can reach. */
#include <errno.h>
#include <stdlib.h>

#include "../device/device.h"
#include "../device/mapping.h"
#include "../device/opts.h"
#include "../device/sys.h"
#include "offload.h"
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

/* Was something moved so that the refused request fits?  Of aligned runs the driver tells a bound. */
static bool make_room(struct neuron_device *device, const struct neuron_native_mem_alloc *a)
{
	struct neuron_compaction c = { .size = sizeof(c) };

	return (a->reason == NEURON_NATIVE_REASON_FRAGMENTED ||
		a->reason == NEURON_NATIVE_REASON_ALIGNMENT) &&
	       atomic_load(&device->compact) &&
	       !neuron_hbm_compact(device, a->hbm, a->bytes, a->align, 0, &c) && c.moves &&
	       c.largest + (a->align ? a->align - 1 : 0) >= a->bytes;
}

/* @refusal: what the driver said when it was asked for this and others, if it has a reason. */
static int ask_once(struct neuron_device *device, struct neuron_native_mem_alloc *a,
		    const struct neuron_native_mem_alloc_bulk *refusal)
{
	if (!refusal->reason)
		return device_ioctl(device, NEURON_NATIVE_MEM_ALLOC, a);
	a->reason = refusal->reason;
	a->total = refusal->total;
	a->free = refusal->free;
	a->largest_free = refusal->largest_free;
	a->largest_aligned = refusal->largest_aligned;
	return -ENOMEM;
}

static int ask_driver(struct neuron_device *device, struct neuron_native_mem_alloc *a,
		      const struct neuron_native_mem_alloc_bulk *refusal)
{
	const struct neuron_native_mem_alloc first = *a;
	int ret = ask_once(device, a, refusal);

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

int mem_no_host(uint64_t bytes, struct neuron_mem_failure *failure)
{
	if (failure)
		*failure = (struct neuron_mem_failure){
			.reason = NEURON_MEM_REASON_HOST,
			.bytes = bytes,
		};
	return -ENOMEM;
}

static void tell_refusal(const struct neuron_mem *m, const struct neuron_native_mem_alloc *a,
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

	memlog_add(m->device, MEMLOG_ALLOC, m, f.bytes, f.align, f.reason);
	if (!(m->flags & NEURON_MEM_F_HOST))
		mem_dump(m->device, &f);
	if (failure)
		*failure = f;
}

static struct neuron_native_mem_alloc request_for(const struct neuron_mem *m)
{
	return (struct neuron_native_mem_alloc){
		.size = sizeof(struct neuron_native_mem_alloc), .flags = m->flags,
		.bytes = m->bytes, .align = m->align, .hbm = m->hbm, .nc_id = m->nc,
		.mem_type = m->category, .pa = m->address, .owner = m->owner,
	};
}

/* On error nothing of @m changes. */
static int obtain_one(struct neuron_mem *m, const struct neuron_native_mem_alloc_bulk *refusal,
		      struct neuron_mem_failure *failure)
{
	struct neuron_native_mem_alloc a = request_for(m);
	int ret = ask_driver(m->device, &a, refusal);

	if (!ret)
		mem_adopt(m, a.mem_handle, a.pa, a.mmap_offset);
	else if (ret == -ENOMEM)
		tell_refusal(m, &a, failure);
	return ret;
}

/* How many of them, from the first one on, one call can ask for. */
static size_t count_alike(struct neuron_mem *const *mem, size_t n)
{
	const struct neuron_mem *a = mem[0];
	size_t i = 1;

	for (; i < MIN(n, NEURON_NATIVE_BULK_MAX) && !(a->flags & NEURON_MEM_F_AT); i++)
		if (mem[i]->flags != a->flags || mem[i]->hbm != a->hbm || mem[i]->nc != a->nc ||
		    mem[i]->category != a->category || mem[i]->owner != a->owner)
			break;
	return i;
}

/* All of them, or none. */
static int ask_for_many(struct neuron_mem *const *mem, size_t n,
			struct neuron_native_mem_bulk_entry *entries,
			struct neuron_native_mem_alloc_bulk *b)
{
	int ret;

	*b = (struct neuron_native_mem_alloc_bulk){
		.size = sizeof(*b), .flags = mem[0]->flags, .hbm = mem[0]->hbm,
		.nc_id = mem[0]->nc, .mem_type = mem[0]->category, .owner = mem[0]->owner,
		.count = (uint32_t)n, .entry_size = sizeof(*entries),
		.entries = (uintptr_t)entries,
	};
	for (size_t i = 0; i < n; i++)
		entries[i] = (struct neuron_native_mem_bulk_entry){
			.bytes = mem[i]->bytes, .align = mem[i]->align,
		};
	ret = device_ioctl(mem[0]->device, NEURON_NATIVE_MEM_ALLOC_BULK, b);
	for (size_t i = 0; i < n && !ret; i++)
		mem_adopt(mem[i], entries[i].mem_handle, entries[i].pa, entries[i].pa);
	return ret;
}

/*
 * Those before the one that there is no room for, of which @refusal tells. Without a reason in
 * it, asking for each by itself tells what was wrong, if not that the driver has no such call.
 */
static size_t obtain_many(struct neuron_mem *const *mem, size_t n,
			  struct neuron_native_mem_bulk_entry *entries,
			  struct neuron_native_mem_alloc_bulk *refusal)
{
	struct neuron_native_mem_alloc_bulk b, again;
	int ret = ask_for_many(mem, n, entries, &b);

	if (!ret)
		return n;
	if (ret != -ENOMEM || b.reason == NEURON_NATIVE_REASON_HOST ||
	    (b.failed && ask_for_many(mem, b.failed, entries, &again)))
		return 0;
	*refusal = b;
	return b.failed;
}

int mem_obtain(struct neuron_mem *const *mem, size_t n, size_t *nr,
	       struct neuron_mem_failure *failure)
{
	struct neuron_native_mem_bulk_entry *entries = NULL;
	int ret = 0;

	*nr = 0;
	if (n > 1) {
		entries = calloc(MIN(n, NEURON_NATIVE_BULK_MAX), sizeof(*entries));
		if (!entries)
			return mem_no_host(mem[0]->bytes, failure);
	}
	while (*nr < n && !ret) {
		struct neuron_native_mem_alloc_bulk refusal = { .reason = 0 };
		size_t end = *nr + count_alike(mem + *nr, n - *nr);

		if (end - *nr > 1)
			*nr += obtain_many(mem + *nr, end - *nr, entries, &refusal);
		/* What follows a refusal that did not last is asked for together again. */
		while (*nr < end && !ret) {
			ret = obtain_one(mem[*nr], &refusal, failure);
			*nr += !ret;
			if (refusal.reason)
				break;
		}
	}
	free(entries);
	return ret;
}

size_t mem_obtain_free(struct neuron_mem *const *mem, size_t n)
{
	struct neuron_native_mem_bulk_entry *entries = calloc(MIN(n, NEURON_NATIVE_BULK_MAX),
							      sizeof(*entries));
	struct neuron_native_mem_alloc_bulk refusal = { .reason = 0 };
	struct neuron_native_mem_alloc a;
	size_t nr = 0, got = 1;

	while (entries && nr < n && got && !refusal.reason) {
		got = obtain_many(mem + nr, count_alike(mem + nr, n - nr), entries, &refusal);
		nr += got;
	}
	/*
	 * Refused without a reason: the driver has no such call or failed otherwise, somebody was
	 * quicker, or there was no host memory.  Then one by one, as far as that goes.
	 */
	while (nr < n && !refusal.reason) {
		a = request_for(mem[nr]);
		if (device_ioctl(mem[nr]->device, NEURON_NATIVE_MEM_ALLOC, &a))
			break;
		mem_adopt(mem[nr++], a.mem_handle, a.pa, a.mmap_offset);
	}
	free(entries);
	return nr;
}

struct neuron_mem *mem_new(struct neuron_device *device, uint64_t bytes,
			   const struct neuron_mem_opts *opts)
{
	struct neuron_mem *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->device = device_get(device);
	pthread_mutex_init(&m->lock, NULL);
	m->bytes = bytes;
	m->flags = opts->flags;
	m->address = opts->flags & NEURON_MEM_F_AT ? opts->address : 0;
	m->align = opts->align;
	m->owner = opts->owner;
	m->category = opts->category;
	m->hbm = opts->flags & NEURON_MEM_F_HOST ? 0 : opts->hbm;
	m->nc = opts->nc;
	m->movable = opts->flags & NEURON_MEM_F_MOVABLE;
	return m;
}

void mem_drop(struct neuron_mem *mem)
{
	device_put(mem->device);
	pthread_mutex_destroy(&mem->lock);
	free(mem);
}

NEURON_EXPORT int neuron_mem_alloc(struct neuron_device *device, uint64_t bytes,
				   const struct neuron_mem_opts *opts, struct neuron_mem **mem)
{
	struct neuron_mem_opts o;
	struct neuron_mem *m;
	size_t nr;
	int ret = opts_copy(&o, sizeof(o), opts);

	if (ret)
		return ret;
	if (!opts)
		o.category = NEURON_MEM_OTHER;
	if (!bytes || !mem)
		return -EINVAL;
	m = mem_new(device, bytes, &o);
	if (!m)
		return mem_no_host(bytes, o.failure);
	ret = mem_obtain(&m, 1, &nr, o.failure);
	if (ret)
		mem_drop(m);
	else
		*mem = m;
	return ret;
}

void mem_adopt(struct neuron_mem *mem, uint64_t handle, uint64_t address, uint64_t mmap_offset)
{
	mem->handle = handle;
	mem->address = address;
	mem->mmap_offset = mmap_offset;
	/* What comes back from host memory may come to any place. */
	mem->flags &= ~NEURON_MEM_F_AT;
	memlog_add(mem->device, MEMLOG_ALLOC, mem, mem->bytes, mem->align, 0);
	mem_count(mem, mem->bytes);
}

void mem_give_up(struct neuron_mem *const *mem, size_t n)
{
	uint64_t handles[NEURON_NATIVE_BULK_MAX];
	uint32_t nr = 0;

	while (n) {
		struct neuron_mem *m = mem[--n];

		if (m->handle) {
			memlog_add(m->device, MEMLOG_FREE, m, m->bytes, 0, 0);
			mem_count(m, 0);
			handles[nr++] = m->handle;
			m->handle = 0;
			m->address = 0;
		}
		if (nr == NEURON_NATIVE_BULK_MAX || (nr && !n)) {
			device_give_back_many(m->device, handles, nr);
			nr = 0;
		}
	}
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
	/* To whoever exports it. */
	const struct neuron_mem_opts charged = { .category = NEURON_MEM_HOST_OTHER };
	struct neuron_native_mem_import i = { .size = sizeof(i), .fd = fd };
	struct neuron_mem *m;
	int ret;

	if (!mem)
		return -EINVAL;
	m = mem_new(device, 0, &charged);
	if (!m)
		return -ENOMEM;
	ret = device_ioctl(device, NEURON_NATIVE_MEM_IMPORT, &i);
	if (ret) {
		mem_drop(m);
		return ret;
	}
	m->handle = i.mem_handle;
	m->address = i.pa;
	m->mmap_offset = i.mmap_offset;
	m->bytes = i.bytes;
	*mem = m;
	return 0;
}

void mem_free_all(struct neuron_mem *const *mem, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *va = atomic_load(&mem[i]->va);

		if (!device_inherited(mem[i]->device))
			copies_end(mem[i]);
		if (va && !device_inherited(mem[i]->device)) {
			/* Before somebody else may get the address. */
			mapping_retire(mem[i]->device, mem[i]->mapping);
			neuron_sys_munmap(va, mem[i]->mapped);
		}
		if (!mem[i]->handle) {
			offload_count_gone(mem[i]->device, mem_pages(mem[i]));
			mem_image_free(mem[i]->image);
		}
	}
	mem_give_up(mem, n);
	while (n)
		mem_drop(mem[--n]);
}

NEURON_EXPORT void neuron_mem_free(struct neuron_mem *mem)
{
	mem_free_all(&mem, mem != NULL);
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
