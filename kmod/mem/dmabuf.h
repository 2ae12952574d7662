/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory shared as dma-bufs. */
#ifndef NEURON_MEM_DMABUF_H
#define NEURON_MEM_DMABUF_H

#include <linux/types.h>

struct neuron_chunk;

bool neuron_chunk_has_pages(const struct neuron_chunk *chunk);
int neuron_chunk_frame(struct neuron_chunk *chunk, u64 off, unsigned long *pfn);

#endif
