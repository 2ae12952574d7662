// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of chunks.  The offset of a mapping is the device address of the
 * memory (uapi/FACTS.md 7).  A mapping holds a reference on its chunk, so the memory of a
 * freed chunk stays until its last mapping is gone.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../base/hw.h"
#include "datastore.h"
#include "handle.h"
#include "map.h"
#include "resource.h"
#include "watch.h"

static void neuron_mapping_free(struct kref *ref)
{
	struct neuron_mapping *mapping = container_of(ref, struct neuron_mapping, ref);

	neuron_unwatch(mapping->watch);
	neuron_chunk_unuse(mapping->chunk, mapping->as);
	kfree(mapping);
}

/**
 * neuron_mapping_put() - drop a reference
 * @mapping: from neuron_mapping_get()
 *
 * Context: may sleep.
 */
void neuron_mapping_put(struct neuron_mapping *mapping)
{
	kref_put(&mapping->ref, neuron_mapping_free);
}

static void neuron_vm_open(struct vm_area_struct *vma)
{
	struct neuron_mapping *mapping = vma->vm_private_data;

	atomic_inc(&mapping->areas);
	kref_get(&mapping->ref);
}

static void neuron_vm_close(struct vm_area_struct *vma)
{
	struct neuron_mapping *mapping = vma->vm_private_data;
	void (*revoke)(struct neuron_mapping *mapping);

	/* A mapping can be split and moved: only the last piece counts. */
	if (atomic_dec_and_test(&mapping->areas)) {
		revoke = READ_ONCE(mapping->revoke);
		if (revoke)
			revoke(mapping);
	}
	neuron_mapping_put(mapping);
}

/* The chunk, and the offset of the fault in it.  NULL: beyond its end. */
static struct neuron_chunk *neuron_vm_chunk(struct vm_fault *vmf, u64 *off)
{
	struct neuron_mapping *mapping = vmf->vma->vm_private_data;
	struct neuron_chunk *chunk = mapping->chunk;

	*off = ((u64)vmf->pgoff << PAGE_SHIFT) - chunk->addr;
	return neuron_chunk_range(chunk, *off, PAGE_SIZE) ? NULL : chunk;
}

static vm_fault_t neuron_vm_fault_host(struct vm_fault *vmf)
{
	u64 off;
	struct neuron_chunk *chunk = neuron_vm_chunk(vmf, &off);

	if (!chunk)
		return VM_FAULT_SIGBUS;
	vmf->page = chunk->pages[off >> PAGE_SHIFT];
	get_page(vmf->page);
	return 0;
}

static vm_fault_t neuron_vm_fault_device(struct vm_fault *vmf)
{
	u64 off;
	struct neuron_chunk *chunk = neuron_vm_chunk(vmf, &off);
	/* VM_FAULT_OOM would make the task fault again and again. */
	vm_fault_t ret = VM_FAULT_SIGBUS;
	struct neuron_device *nd;
	unsigned long pfn;
	int idx;

	if (!chunk)
		return ret;
	nd = chunk->client->nd;
	/* The frame must stay until removal of the device can find the mapping. */
	if (!neuron_device_enter(nd, &idx))
		return ret;
	if (!nd->ops->hbm_pfn(nd, chunk->hbm, chunk->block.addr + off, &pfn))
		ret = vmf_insert_pfn(vmf->vma, vmf->address, pfn);
	neuron_device_exit(nd, idx);
	return ret;
}

static const struct vm_operations_struct neuron_vm_host = {
	.open = neuron_vm_open,
	.close = neuron_vm_close,
	.fault = neuron_vm_fault_host,
};

static const struct vm_operations_struct neuron_vm_device = {
	.open = neuron_vm_open,
	.close = neuron_vm_close,
	.fault = neuron_vm_fault_device,
};

/**
 * neuron_mapping_get() - chunk behind an address of the calling process
 * @va: user address
 * @len: bytes
 * @off: where it is in the chunk, bytes
 * @write: the mapping is writable, or mprotect can make it so
 *
 * Finds mappings of all devices.
 *
 * Context: may sleep.
 * Return: the mapping, with a reference; -EINVAL the range is not inside one mapping of a
 *	   chunk; -EINTR.
 */
struct neuron_mapping *neuron_mapping_get(u64 va, u64 len, u64 *off, bool *write)
{
	struct neuron_mapping *mapping = ERR_PTR(-EINVAL);
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;

	/* A kernel thread has none. */
	if (!mm || !len)
		return ERR_PTR(-EINVAL);
	if (mmap_read_lock_killable(mm))
		return ERR_PTR(-EINTR);
	vma = vma_lookup(mm, va);
	if (vma && (vma->vm_ops == &neuron_vm_host || vma->vm_ops == &neuron_vm_device) &&
	    len <= vma->vm_end - va) {
		mapping = vma->vm_private_data;
		kref_get(&mapping->ref);
		*off = ((u64)vma->vm_pgoff << PAGE_SHIFT) - mapping->chunk->addr +
		       (va - vma->vm_start);
		*write = vma->vm_flags & VM_MAYWRITE;
	}
	mmap_read_unlock(mm);
	return mapping;
}

/**
 * neuron_mmap() - map a chunk, or a part of it
 * @file: open descriptor
 * @vma: offset = device address
 *
 * Context: may sleep, mmap lock held for writing.
 * Return: 0; -ENODEV device gone; -EACCES not the process that opened the device; -EPERM not an
 *	   address of a chunk of this process; -EINVAL private mapping, or
 *	   beyond the end of the chunk; -ENOMEM.
 */
int neuron_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct neuron_file *nf = file->private_data;
	struct neuron_client *client = nf->client;
	struct neuron_mapping *mapping;
	struct neuron_chunk *chunk;
	enum neuron_user as;
	bool other = false;
	u64 addr = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 len = vma->vm_end - vma->vm_start;
	int err;

	if (neuron_device_gone(nf->nd))
		return -ENODEV;
	if (!client || client->pid != task_tgid(current))
		return -EACCES;
	/*
	 * Device memory has no pages to copy on write.  VM_SHARED is not set for
	 * read-only descriptors.
	 */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;

	as = vma->vm_flags & VM_MAYWRITE ? NEURON_USER_MAPPING : NEURON_USER_READER;
	chunk = neuron_chunk_find(client, addr, 1, as);
	if (!chunk && !(vma->vm_flags & VM_WRITE)) {
		chunk = neuron_chunk_find(client, addr, 1, NEURON_USER_READER);
		/* A ring, which must not become writable later. */
		if (chunk)
			as = NEURON_USER_READER;
	}
	if (!chunk) {
		chunk = neuron_datastore_find(client->nd, addr);
		other = chunk && chunk->client != client;
		if (chunk)
			neuron_chunk_admit(chunk, as);
	}
	if (!chunk)
		return neuron_resource_mmap(nf, vma);
	/* The datastore of another process is read-only. */
	err = other && vma->vm_flags & VM_WRITE ? -EPERM : 0;
	if (!err && neuron_chunk_range(chunk, addr - chunk->addr, len))
		err = -EINVAL;
	mapping = err ? NULL : kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping) {
		neuron_chunk_unuse(chunk, as);
		return err ?: -ENOMEM;
	}
	kref_init(&mapping->ref);
	atomic_set(&mapping->areas, 1);
	INIT_LIST_HEAD(&mapping->peers);
	mapping->chunk = chunk;
	mapping->as = as;
	mapping->watch = neuron_watch_chunk(chunk, addr - chunk->addr, len, NEURON_USER_MAPPING);
	if (as == NEURON_USER_MAPPING)
		WRITE_ONCE(chunk->given, chunk->host);
	if (other || as == NEURON_USER_READER)
		vm_flags_clear(vma, VM_MAYWRITE);

	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	if (chunk->host) {
		vma->vm_ops = &neuron_vm_host;
	} else {
		neuron_vma_device(nf->nd, vma);
		vma->vm_ops = &neuron_vm_device;
	}
	vma->vm_private_data = mapping;
	return 0;
}
