/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings of a core's state buffer. */
#ifndef NEURON_MEM_RESOURCE_H
#define NEURON_MEM_RESOURCE_H

#include <linux/types.h>

struct neuron_file;
struct vm_area_struct;

int neuron_resource_mmap(struct neuron_file *nf, struct vm_area_struct *vma);

#endif
