// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of chunks.  The offset of a mapping is the device address of the
 * memory (uapi spec 7).  A mapping holds a reference on its chunk, so freeing
 * a mapped chunk gives the memory back only when the mapping is gone, too.
 */
#include <linux/fs.h>
#include <linux/mm.h>

#include "../core/neuron.h"

static void neuron_vm_open(struct vm_area_struct *vma)
{
	neuron_chunk_ref(vma->vm_private_data);
}

static void neuron_vm_close(struct vm_area_struct *vma)
{
	neuron_chunk_put(vma->vm_private_data);
}

static vm_fault_t neuron_vm_fault_host(struct vm_fault *vmf)
{
	struct neuron_chunk *chunk = vmf->vma->vm_private_data;

	vmf->page = chunk->pages[vmf->pgoff - (chunk->addr >> PAGE_SHIFT)];
	get_page(vmf->page);
	return 0;
}

static vm_fault_t neuron_vm_fault_device(struct vm_fault *vmf)
{
	struct neuron_chunk *chunk = vmf->vma->vm_private_data;
	struct neuron_device *nd = chunk->client->nd;
	u64 off = ((u64)vmf->pgoff << PAGE_SHIFT) - chunk->addr;
	/* VM_FAULT_OOM would have the task fault again and again. */
	vm_fault_t ret = VM_FAULT_SIGBUS;
	unsigned long pfn;
	int idx;

	/* The frame must not go before removal of the device can find the mapping. */
	if (!neuron_device_enter(nd, &idx))
		return ret;
	if (!nd->ops->hbm_pfn(nd, chunk->hbm, chunk->block.addr + off, &pfn))
		ret = vmf_insert_pfn(vmf->vma, vmf->address, pfn);
	neuron_device_exit(idx);
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
 * neuron_mmap() - map a chunk, or a part of it
 * @file: open descriptor
 * @vma: offset = device address
 *
 * Context: may sleep, mmap lock held for writing.
 * Return: 0; -ENODEV device gone; -EACCES not the process that opened the device; -EPERM not an
 *	   address of a chunk of this process; -EINVAL private mapping, or
 *	   beyond the end of the chunk.
 */
int neuron_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct neuron_file *nf = file->private_data;
	struct neuron_client *client = nf->client;
	struct neuron_chunk *chunk;
	u64 addr = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 len = vma->vm_end - vma->vm_start;

	if (neuron_device_gone(nf->nd))
		return -ENODEV;
	if (!client || client->pid != task_tgid(current))
		return -EACCES;
	/* Device memory has no pages to copy on write. */
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;

	chunk = neuron_chunk_find(client, addr, 1) ?: neuron_datastore_find(client->nd, addr);
	if (!chunk)
		return -EPERM;
	/* Somebody else's datastore is there to be looked at. */
	if (chunk->client != client) {
		if (vma->vm_flags & VM_WRITE) {
			neuron_chunk_put(chunk);
			return -EPERM;
		}
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	if (neuron_chunk_range(chunk, addr - chunk->addr, len)) {
		neuron_chunk_put(chunk);
		return -EINVAL;
	}

	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	if (chunk->host) {
		vma->vm_ops = &neuron_vm_host;
	} else {
		vm_flags_set(vma, VM_PFNMAP | VM_IO);
		vma->vm_ops = &neuron_vm_device;
	}
	vma->vm_private_data = chunk;
	return 0;
}
