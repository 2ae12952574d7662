/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory shared as dma-bufs. */
#ifndef NEURON_MEM_DMABUF_H
#define NEURON_MEM_DMABUF_H

#include <linux/types.h>

struct neuron_chunk;
struct page;

int neuron_chunk_page(struct neuron_chunk *chunk, u64 off, struct page **page);

#endif
