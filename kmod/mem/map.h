/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings of chunks. */
#ifndef NEURON_MEM_MAP_H
#define NEURON_MEM_MAP_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>

#include "../base/device.h"
#include "../compat/compat.h"

struct file;
struct neuron_chunk;
struct neuron_watch;

/**
 * struct neuron_mapping - a chunk in the address space of a process
 * @ref: held by its areas and by lookups
 * @areas: pieces that are mapped
 * @chunk: held
 * @as: what it counts as: NEURON_USER_MAPPING, or NEURON_USER_READER if it cannot be written
 * @watch: of @chunk, for mem/watch.c
 * @peers: drivers that know the memory; mem/peer.c
 * @revoke: called when no piece is mapped any more, or NULL
 */
struct neuron_mapping {
	struct kref ref;
	atomic_t areas;
	struct neuron_chunk *chunk;
	u8 as;
	struct neuron_watch *watch;
	struct list_head peers;
	void (*revoke)(struct neuron_mapping *mapping);
};

/* Memory of a bus is not cached; its frames need no struct pages, as VM_PFNMAP says. */
static inline void neuron_vma_device(const struct neuron_device *nd, struct vm_area_struct *vma)
{
	if (nd->geo->hbm_io)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vm_flags_set(vma, VM_PFNMAP | VM_IO);
}

int neuron_mmap(struct file *file, struct vm_area_struct *vma);
struct neuron_mapping *neuron_mapping_get(u64 va, u64 len, u64 *off, bool *write);
void neuron_mapping_put(struct neuron_mapping *mapping);

#endif
