/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was in device memory, in host memory. */
#ifndef NEURON_LIB_IMAGE_H
#define NEURON_LIB_IMAGE_H

#include "mem.h"

struct mem_image;

/* Between memory that is on the device and host memory, within its length. */
int mem_transfer(struct neuron_mem *mem, uint64_t offset, void *buffer, uint64_t bytes, bool to_mem);

/* Copy the contents of memory. 0, -ENOMEM, errors of the copies. */
int mem_image_take(struct neuron_mem *mem, struct mem_image **image);
/* Write them to memory of the same length, which reads as zero. */
int mem_image_put(const struct mem_image *image, struct neuron_mem *mem);
/* NULL is allowed. */
void mem_image_free(struct mem_image *image);

/* Figures of a device, and of what they count the bytes. */
void offload_count_out(struct neuron_device *device, uint64_t bytes);
void offload_count_in(struct neuron_device *device, uint64_t bytes);
/* It was freed while it was in host memory. */
void offload_count_gone(struct neuron_device *device, uint64_t bytes);
/* Somebody had to wait for memory that was not on the device. */
void offload_count_wait(struct neuron_device *device, uint64_t nanoseconds);

#endif
