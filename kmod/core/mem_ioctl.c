// SPDX-License-Identifier: GPL-2.0-only
/* ioctls of memory; see uapi/README.md for what differs from the vendor's. */
#include <linux/uaccess.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../compat/compat.h"
#include "../dma/copy.h"
#include "../dma/ring.h"
#include "../mem/account.h"
#include "../mem/chunk.h"
#include "../mem/failure.h"
#include "../mem/handle.h"
#include "../mem/hbm.h"
#include "../mem/host.h"
#include "../mem/limit.h"
#include "../mem/sync.h"

#define NEURON_V1_REGIONS	4	/* of each device memory, uapi/FACTS.md 4 */

/*
 * Allocate a chunk with a handle and tell the caller: through @native if that is given, else at
 * @uhandle.
 */
static int neuron_mem_alloc(struct neuron_client *client, const struct neuron_chunk_request *req,
			    u64 __user *uhandle, struct neuron_failure *why,
			    struct neuron_native_mem_alloc *native)
{
	u32 handle;
	u64 addr;
	int err;

	err = neuron_chunk_alloc_handle(client, req, &handle, &addr, why);
	if (err)
		return err;
	if (native) {
		native->mem_handle = handle;
		native->pa = addr;
		native->mmap_offset = addr;
	} else if (put_user((u64)handle, uhandle)) {
		neuron_chunk_unpublish(client, handle);
		return -EFAULT;
	}
	return 0;
}

static int neuron_alloc_compat(struct neuron_client *client, u64 size, u64 align, u32 host,
			       u32 channel, u32 region, u32 nc, u32 type, u64 __user *uhandle)
{
	struct neuron_chunk_request req = {
		.size = size,
		.align = align,
		.host = host != 0,
		.hbm = channel,
		.core = nc,
		.category = type,
	};
	struct neuron_failure why NEURON_UNINIT;

	/*
	 * Regions are names only.  v1 has NEURON_V1_REGIONS of them; v2 and later have
	 * one, which any number names.
	 */
	if (channel >= client->nd->geo->nr_hbms ||
	    (region >= NEURON_V1_REGIONS && client->nd->geo->arch == NEURON_ARCH_V1))
		return -EINVAL;
	/* The contiguous scratchpad is placed at the far end of the HBM. */
	if (type == NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE)
		req.placement = NEURON_BUDDY_HIGH;
	return neuron_mem_alloc(client, &req, uhandle, &why, NULL);
}

int neuron_do_mem_alloc(struct neuron_call *call)
{
	struct neuron_ioctl_mem_alloc *a = call->arg;

	return neuron_alloc_compat(call->client, a->size, 0, a->host_memory, a->dram_channel,
				   a->dram_region, a->nc_id,
				   a->host_memory ? NEURON_MEMALLOC_TYPE_UNKNOWN_HOST :
						    NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE,
				   (u64 __user *)a->mem_handle);
}

int neuron_do_mem_alloc_v2(struct neuron_call *call)
{
	struct neuron_ioctl_mem_alloc_v2 *a = call->arg;

	return neuron_alloc_compat(call->client, a->size, a->align, a->host_memory, a->dram_channel,
				   a->dram_region, a->nc_id,
				   a->host_memory ? NEURON_MEMALLOC_TYPE_UNKNOWN_HOST :
						    NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE,
				   (u64 __user *)a->mem_handle);
}

/* V2MT and V2MT64 differ in a trailing pad that nobody reads. */
int neuron_do_mem_alloc_v2mt(struct neuron_call *call)
{
	struct neuron_ioctl_mem_alloc_v2_mem_type *a = call->arg;

	return neuron_alloc_compat(call->client, a->size, a->align, a->host_memory, a->dram_channel,
				   a->dram_region, a->nc_id, a->mem_type,
				   (u64 __user *)a->mem_handle);
}

/* What the native calls ask for: 0, or -EINVAL. */
static int neuron_native_request(u32 flags, u32 hbm, u32 core, u32 type, u32 owner,
				 struct neuron_chunk_request *req)
{
	*req = (struct neuron_chunk_request){
		.host = flags & NEURON_NATIVE_ALLOC_HOST,
		.movable = flags & NEURON_NATIVE_ALLOC_MOVABLE,
		.hbm = hbm,
		.core = core,
		.category = type,
		.owner = owner,
	};
	if (flags & NEURON_NATIVE_ALLOC_LOW)
		req->placement = NEURON_BUDDY_LOW;
	if (flags & NEURON_NATIVE_ALLOC_HIGH)
		req->placement |= NEURON_BUDDY_HIGH;
	if (flags & ~(NEURON_NATIVE_ALLOC_HOST | NEURON_NATIVE_ALLOC_LOW |
		      NEURON_NATIVE_ALLOC_HIGH | NEURON_NATIVE_ALLOC_MOVABLE) ||
	    req->placement == (NEURON_BUDDY_LOW | NEURON_BUDDY_HIGH) ||
	    (req->host && (hbm || req->movable)) || neuron_category(type, req->host) != type)
		return -EINVAL;
	return 0;
}

/* At an address: 0, or -EINVAL. */
static int neuron_native_request_at(const struct neuron_native_mem_alloc *a,
				    struct neuron_chunk_request *req)
{
	if (req->placement || req->host || req->movable || a->pa % NEURON_BUDDY_GRANULE ||
	    (a->align && a->pa & (a->align - 1)))
		return -EINVAL;
	req->placement = NEURON_BUDDY_EXACT;
	req->at = a->pa;
	return 0;
}

int neuron_do_native_mem_alloc(struct neuron_call *call)
{
	struct neuron_native_mem_alloc *a = call->arg;
	struct neuron_failure why NEURON_UNINIT;
	struct neuron_chunk_request req;
	int err;

	if (neuron_native_request(a->flags & ~NEURON_NATIVE_ALLOC_AT, a->hbm, a->nc_id, a->mem_type,
				  a->owner, &req) ||
	    (a->flags & NEURON_NATIVE_ALLOC_AT && neuron_native_request_at(a, &req)) ||
	    a->__reserved || a->__reserved2 || a->__reserved3 ||
	    (req.movable && a->align > NEURON_BUDDY_MAX_SIZE))
		return -EINVAL;
	req.size = a->bytes;
	req.align = a->align;

	err = neuron_mem_alloc(call->client, &req, NULL, &why, a);
	a->reason = why.reason;
	a->total = why.total;
	a->free = why.free;
	a->largest_free = why.largest_free;
	a->largest_aligned = why.largest_aligned;
	a->limit = err ? why.limit : 0;
	return err;
}

/* With the handles at @entries, or an error and no chunk. */
static int neuron_alloc_bulk(struct neuron_client *client, struct neuron_chunk_request *req,
			     struct neuron_native_mem_bulk_entry *entries, u32 n, u32 *failed,
			     struct neuron_failure *why)
{
	struct neuron_chunk **chunks;
	int err = -ENOMEM;
	u32 i;

	for (i = 0; i < n; i++)
		if (req->movable && entries[i].align > NEURON_BUDDY_MAX_SIZE)
			return -EINVAL;
	why->reason = NEURON_NATIVE_REASON_HOST;
	chunks = kvmalloc_array(n, sizeof(*chunks), GFP_KERNEL);
	if (chunks)
		err = neuron_chunks_alloc(client, req, entries, n, chunks, failed, why);
	if (!err) {
		err = neuron_chunks_publish(client, chunks, n, entries);
		why->reason = NEURON_NATIVE_REASON_HOST;
	}
	kvfree(chunks);
	return err;
}

int neuron_do_native_mem_alloc_bulk(struct neuron_call *call)
{
	struct neuron_native_mem_alloc_bulk *a = call->arg;
	struct neuron_native_mem_bulk_entry *entries;
	struct neuron_failure why = { .limit = NEURON_NO_LIMIT };
	struct neuron_chunk_request req;
	u32 core = a->nc_id, i;
	int err;

	if (!a->count || a->count > NEURON_NATIVE_BULK_MAX || a->entry_size != sizeof(*entries) ||
	    neuron_native_request(a->flags, a->hbm, core, a->mem_type, a->owner, &req) ||
	    !neuron_index_valid(&core, call->nd->geo->nr_cores))
		return -EINVAL;
	err = neuron_limit_core(call->client, core);
	if (err)
		return err;
	entries = vmemdup_user(u64_to_user_ptr(a->entries), a->count * sizeof(*entries));
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	err = neuron_alloc_bulk(call->client, &req, entries, a->count, &a->failed, &why);
	if (!err && copy_to_user(u64_to_user_ptr(a->entries), entries,
				 a->count * sizeof(*entries))) {
		for (i = 0; i < a->count; i++)
			neuron_chunk_unpublish(call->client, entries[i].mem_handle);
		err = -EFAULT;
	}
	kvfree(entries);
	a->reason = why.reason;
	a->total = why.total;
	a->free = why.free;
	a->largest_free = why.largest_free;
	a->largest_aligned = why.largest_aligned;
	a->limit = why.limit;
	return err;
}

/* The caller did not learn its handle: free the chunk. */
void neuron_undo_native_mem_alloc(struct neuron_call *call)
{
	struct neuron_native_mem_alloc *a = call->arg;

	neuron_chunk_unpublish(call->client, a->mem_handle);
}

int neuron_do_native_mem_pin(struct neuron_call *call)
{
	struct neuron_native_mem_pin *a = call->arg;
	int err;

	if (a->flags)
		return -EINVAL;
	err = neuron_chunk_pin(call->client, a->mem_handle, true, &a->pa);
	a->mmap_offset = a->pa;
	return err;
}

/* The caller did not learn the address. */
void neuron_undo_native_mem_pin(struct neuron_call *call)
{
	struct neuron_native_mem_pin *a = call->arg;

	neuron_chunk_pin(call->client, a->mem_handle, false, NULL);
}

int neuron_do_native_mem_unpin(struct neuron_call *call)
{
	struct neuron_native_mem_unpin *a = call->arg;

	return a->flags ? -EINVAL : neuron_chunk_pin(call->client, a->mem_handle, false, NULL);
}

/* Where the driver checks descriptors, no ring may name what the process has freed. */
static int neuron_mem_free_checked(struct neuron_client *client, u64 handle, bool marked)
{
	struct neuron_chunk *chunk = neuron_chunk_unpublish_hold(client, handle, marked);

	if (!chunk)
		return -ENOENT;
	neuron_ring_forget(client, chunk);
	neuron_chunk_put(chunk);
	return 0;
}

int neuron_do_mem_free(struct neuron_call *call)
{
	struct neuron_ioctl_mem_free *a = call->arg;

	if (likely(call->nd->isolation != NEURON_ISOLATION_CHECKED))
		return neuron_chunk_unpublish(call->client, a->mem_handle);
	return neuron_mem_free_checked(call->client, a->mem_handle, false);
}

int neuron_do_native_mem_free_bulk(struct neuron_call *call)
{
	struct neuron_native_mem_free_bulk *a = call->arg;
	u64 *handles;
	int err;
	u32 i;

	if (a->flags || a->__reserved || !a->count || a->count > NEURON_NATIVE_BULK_MAX)
		return -EINVAL;
	handles = vmemdup_user(u64_to_user_ptr(a->handles), a->count * sizeof(*handles));
	if (IS_ERR(handles))
		return PTR_ERR(handles);
	if (likely(call->nd->isolation != NEURON_ISOLATION_CHECKED)) {
		err = neuron_chunks_unpublish(call->client, handles, a->count);
	} else {
		err = neuron_chunks_mark(call->client, handles, a->count);
		for (i = 0; i < a->count && !err; i++)
			neuron_mem_free_checked(call->client, handles[i], true);
	}
	kvfree(handles);
	return err;
}

static int neuron_mem_copy(struct neuron_client *client, u64 src_handle, u64 dst_handle, u64 size,
			   u64 src_off, u64 dst_off)
{
	struct neuron_chunk *src, *dst;
	int err;

	src = neuron_chunk_use(client, src_handle, NEURON_USER_READER);
	dst = neuron_chunk_use(client, dst_handle, NEURON_USER_TRANSFER);
	if (!src || !dst) {
		err = src ? neuron_chunk_missing(client, dst_handle) : -ENOENT;
		goto out;
	}
	err = neuron_chunk_range(src, src_off, size);
	if (!err)
		err = neuron_chunk_range(dst, dst_off, size);
	if (!err)
		err = neuron_dma_copy_chunks(client->nd, dst->host ? src->core : dst->core, dst,
					     dst_off, src, src_off, size);
out:
	neuron_chunk_unuse(src, NEURON_USER_READER);
	neuron_chunk_unuse(dst, NEURON_USER_TRANSFER);
	return err;
}

int neuron_do_mem_copy(struct neuron_call *call)
{
	struct neuron_ioctl_mem_copy *a = call->arg;

	return neuron_mem_copy(call->client, a->src_mem_handle, a->dst_mem_handle, a->size,
			       a->src_offset, a->dst_offset);
}

int neuron_do_mem_copy64(struct neuron_call *call)
{
	struct neuron_ioctl_mem_copy64 *a = call->arg;

	return neuron_mem_copy(call->client, a->src_mem_handle, a->dst_mem_handle, a->size,
			       a->src_offset, a->dst_offset);
}

static int neuron_mem_buf_copy(struct neuron_client *client, u64 handle, void __user *buf, u64 size,
			       u64 off, bool to_chunk)
{
	enum neuron_user as = to_chunk ? NEURON_USER_TRANSFER : NEURON_USER_READER;
	struct neuron_chunk *chunk = neuron_chunk_use(client, handle, as);
	int err;

	if (!chunk)
		return neuron_chunk_missing(client, handle);
	err = neuron_chunk_range(chunk, off, size);
	if (!err && !access_ok(buf, size))
		err = -EFAULT;
	/* Page faults may come in between, which no fence may wait for: there is none. */
	if (!err)
		err = neuron_sync_wait(chunk, to_chunk);
	if (!err)
		err = chunk->host ? neuron_chunk_rw_user(chunk, off, buf, size, to_chunk) :
				    neuron_dma_copy_user(client->nd, chunk->core, chunk, off, buf,
							 size, to_chunk);
	neuron_chunk_unuse(chunk, as);
	return err;
}

int neuron_do_mem_buf_copy(struct neuron_call *call)
{
	struct neuron_ioctl_mem_buf_copy *a = call->arg;

	return neuron_mem_buf_copy(call->client, a->mem_handle, (void __user *)a->buffer, a->size,
				   a->offset, a->copy_to_mem_handle);
}

int neuron_do_mem_buf_copy64(struct neuron_call *call)
{
	struct neuron_ioctl_mem_buf_copy64 *a = call->arg;

	return neuron_mem_buf_copy(call->client, a->mem_handle, (void __user *)a->buffer, a->size,
				   a->offset, a->copy_to_mem_handle);
}

static int neuron_memset(struct neuron_client *client, u64 handle, u64 off, u8 value, u64 size)
{
	struct neuron_chunk *chunk = neuron_chunk_use(client, handle, NEURON_USER_TRANSFER);
	int err;

	if (!chunk)
		return neuron_chunk_missing(client, handle);
	err = neuron_chunk_range(chunk, off, size);
	if (!err && chunk->host)
		err = neuron_sync_wait(chunk, true) ?:
		      neuron_chunk_fill_host(chunk, off, value, size);
	else if (!err)
		err = neuron_dma_fill_chunk(client->nd, chunk->core, chunk, off, value, size);
	neuron_chunk_unuse(chunk, NEURON_USER_TRANSFER);
	return err;
}

int neuron_do_memset(struct neuron_call *call)
{
	struct neuron_ioctl_memset *a = call->arg;

	return neuron_memset(call->client, a->mem_handle, a->offset, a->value, a->size);
}

int neuron_do_memset64(struct neuron_call *call)
{
	struct neuron_ioctl_memset64 *a = call->arg;

	return neuron_memset(call->client, a->mem_handle, a->offset, a->value, a->size);
}

int neuron_do_mem_get_pa(struct neuron_call *call)
{
	struct neuron_ioctl_mem_get_pa *a = call->arg;
	u64 addr;
	int err;

	err = neuron_chunk_address(call->client, a->mem_handle, &addr);
	return err ?: put_user(addr, (u64 __user *)a->pa);
}

int neuron_do_mem_get_info(struct neuron_call *call)
{
	struct neuron_ioctl_mem_get_info *a = call->arg;
	u64 addr;
	int err;

	err = neuron_chunk_address(call->client, a->mem_handle, &addr);
	if (err)
		return err;
	if (put_user(addr, (u64 __user *)a->pa))
		return -EFAULT;
	if (a->mmap_offset && put_user(addr, (u64 __user *)a->mmap_offset))
		return -EFAULT;
	return 0;
}

int neuron_do_mem_get_extended_info(struct neuron_call *call)
{
	struct neuron_ioctl_mem_get_extended_info *a = call->arg;
	struct neuron_chunk *chunk = neuron_chunk_get(call->client, a->mem_handle);
	u64 addr;

	if (!chunk)
		return -ENOENT;
	/* The vendor's driver overwrites the handle with a kernel address; here it stays. */
	a->version = 0;
	a->host_memory = chunk->host;
	if (neuron_chunk_address(call->client, a->mem_handle, &addr))
		addr = 0;
	a->mmap_offset = addr;
	a->pa = addr;
	a->pid = pid_vnr(chunk->client->pid);
	a->size = READ_ONCE(chunk->size);
	neuron_chunk_put(chunk);
	return 0;
}

int neuron_do_mem_mc_get_info(struct neuron_call *call)
{
	struct neuron_ioctl_mem_get_mc_mmap_info *a = call->arg;
	struct neuron_chunk *chunk = neuron_chunk_find(call->client, a->pa, 1, NEURON_USER_NONE);

	if (!chunk)
		return -ENOENT;
	a->mmap_offset = chunk->addr;
	a->size = READ_ONCE(chunk->size);
	neuron_chunk_put(chunk);
	return 0;
}

int neuron_do_mem_mc_get_info_v2(struct neuron_call *call)
{
	struct neuron_ioctl_mem_get_mc_mmap_info_v2 *a = call->arg;
	struct neuron_chunk *chunk = neuron_chunk_find(call->client, a->pa, 1, NEURON_USER_NONE);

	if (!chunk)
		return -ENOENT;
	a->mmap_offset = chunk->addr;
	a->size = READ_ONCE(chunk->size);
	a->mem_handle = neuron_chunk_handle(call->client, chunk);
	neuron_chunk_put(chunk);
	return a->mem_handle ? 0 : -ENOENT;
}

int neuron_do_native_hbm_stats(struct neuron_call *call)
{
	struct neuron_native_hbm_stats *a = call->arg;

	if (!neuron_index_valid(&a->hbm, call->nd->geo->nr_hbms))
		return -EINVAL;
	neuron_hbm_stats(&call->nd->hbm[a->hbm], call->client, a);
	return 0;
}

int neuron_do_native_core_stats(struct neuron_call *call)
{
	struct neuron_native_core_stats *a = call->arg;
	struct neuron_device *nd = call->nd;
	struct neuron_core *core;
	u32 i;

	if (!neuron_index_valid(&a->nc_id, nd->geo->nr_cores) || a->__reserved)
		return -EINVAL;
	core = &nd->core[a->nc_id];
	mutex_lock(&core->lock);
	a->owner = core->owner ? pid_vnr(core->owner->pid) ?: NEURON_NATIVE_OWNER_OUTSIDE : 0;
	mutex_unlock(&core->lock);
	memset(a->device_bytes, 0, sizeof(a->device_bytes));
	for (i = 0; i < NEURON_NR_CATEGORIES; i++)
		a->device_bytes[i] = atomic64_read(&core->category[i].total);
	a->host_bytes = atomic64_read(&core->host_mem.total);
	return 0;
}
