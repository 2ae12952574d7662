/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings of chunks. */
#ifndef NEURON_MEM_MAP_H
#define NEURON_MEM_MAP_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>

struct file;
struct neuron_chunk;
struct neuron_watch;
struct vm_area_struct;

/**
 * struct neuron_mapping - a chunk in the address space of a process
 * @ref: held by its areas and by lookups
 * @areas: pieces that are mapped
 * @chunk: held
 * @watch: of @chunk, for mem/watch.c
 * @peers: drivers that know the memory; mem/peer.c
 * @revoke: called when no piece is mapped any more, or NULL
 */
struct neuron_mapping {
	struct kref ref;
	atomic_t areas;
	struct neuron_chunk *chunk;
	struct neuron_watch *watch;
	struct list_head peers;
	void (*revoke)(struct neuron_mapping *mapping);
};

int neuron_mmap(struct file *file, struct vm_area_struct *vma);
struct neuron_mapping *neuron_mapping_get(u64 va, u64 len, u64 *off, bool *write);
void neuron_mapping_put(struct neuron_mapping *mapping);

#endif
