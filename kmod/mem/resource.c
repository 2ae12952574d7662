// SPDX-License-Identifier: GPL-2.0-only
/*
 * RESOURCE_MMAP_INFO, and the mappings that it describes: of a core's state buffer, by
 * the core's owner.  A reset removes the pages of a mapping; the next access shows the
 * buffer as the reset left it.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "../base/call.h"
#include "../base/client.h"
#include "../base/core.h"
#include "../base/hw.h"
#include "../compat/compat.h"
#include "map.h"
#include "resource.h"

static vm_fault_t neuron_resource_fault(struct vm_fault *vmf)
{
	struct neuron_file *nf = vmf->vma->vm_file->private_data;
	struct neuron_device *nd = nf->nd;
	u64 off = ((u64)vmf->pgoff << PAGE_SHIFT) - nd->geo->tpb_base[0];
	u32 index = off / nd->geo->tpb_size;
	struct neuron_core *core = &nd->core[index];
	vm_fault_t ret = VM_FAULT_SIGBUS;
	unsigned long pfn;
	bool resetting;
	int idx;

	/* Neither a reset nor removal may miss a page that is faulted in here. */
	if (!neuron_device_enter(nd, &idx))
		return ret;
	mutex_lock(&core->lock);
	resetting = core->owner == nf->client && core->state == NEURON_CORE_RESETTING;
	if (core->owner == nf->client && core->state == NEURON_CORE_READY &&
	    !nd->ops->core_pfn(nd, index, off - index * nd->geo->tpb_size, &pfn))
		ret = vmf_insert_pfn(vmf->vma, vmf->address, pfn);
	mutex_unlock(&core->lock);
	neuron_device_exit(nd, idx);
	if (resetting) {
		/* Have the access repeated, without keeping the mmap lock for the reset. */
		schedule_timeout_killable(1);
		/* An access of the kernel itself would be repeated for ever. */
		ret = fatal_signal_pending(current) ? VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
	}
	return ret;
}

static const struct vm_operations_struct neuron_resource_vm = {
	.fault = neuron_resource_fault,
};

/**
 * neuron_resource_mmap() - map the state buffer of a core, or a part of it
 * @nf: descriptor of the calling process
 * @vma: offset from RESOURCE_MMAP_INFO
 *
 * Makes the process the owner of the core.
 *
 * Context: may sleep, mmap lock held for writing.
 * Return: 0; -EPERM nothing that can be mapped; -EINVAL past its end; -EBUSY
 *	   another process owns the core, or it is being reset; -EIO its reset failed.
 */
int neuron_resource_mmap(struct neuron_file *nf, struct vm_area_struct *vma)
{
	u64 off = ((u64)vma->vm_pgoff << PAGE_SHIFT) - nf->nd->geo->tpb_base[0];
	u64 index = off / nf->nd->geo->tpb_size, in = off % nf->nd->geo->tpb_size;
	u32 seen;
	int err;

	if (index >= nf->nd->geo->nr_cores || in >= NEURON_RESOURCE_SBUF)
		return -EPERM;
	if (vma->vm_end - vma->vm_start > NEURON_RESOURCE_SBUF - in)
		return -EINVAL;
	seen = neuron_teardowns_read();
	/* A reset is not waited for: it may take minutes, and others wait for the mmap lock. */
	err = neuron_core_acquire_now(nf->nd, index, nf->client);
	if (err == -EBUSY && !neuron_clients_reap(nf->nd, seen))
		err = neuron_core_acquire_now(nf->nd, index, nf->client);
	if (err)
		return err;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	neuron_vma_device(nf->nd, vma);
	vma->vm_ops = &neuron_resource_vm;
	return 0;
}

int neuron_do_resource_mmap_info(struct neuron_call *call)
{
	struct neuron_ioctl_resource_mmap_info *a = call->arg;
	const struct neuron_geometry *geo = call->nd->geo;

	switch (a->block) {
	case NEURON_DM_BLOCK_TPB:
		if (a->block_id >= geo->nr_cores)
			return -EINVAL;
		/* Registers are only reached through the device's operations. */
		if (a->resource == NEURON_DM_RESOURCE_SEMAPHORE)
			return -EOPNOTSUPP;
		if (a->resource != NEURON_DM_RESOURCE_SBUF)
			return -EINVAL;
		a->offset = neuron_core_window(call->nd, a->block_id);
		a->size = NEURON_RESOURCE_SBUF;
		return 0;
	case NEURON_DM_BLOCK_TOPSP:
		return a->block_id < geo->nr_topsp &&
		       (a->resource == NEURON_DM_RESOURCE_SEMAPHORE ||
			a->resource == NEURON_DM_RESOURCE_ALL) ? -EOPNOTSUPP : -EINVAL;
	case NEURON_DM_BLOCK_HBM:
		/* An HBM holds the memory of all processes. */
		return a->block_id < geo->nr_hbms && a->resource == NEURON_DM_RESOURCE_DMEM ?
		       -EPERM : -EINVAL;
	default:
		return -EINVAL;
	}
}
