/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of a bus in dma-bufs. */
#ifndef NEURON_MEM_BUS_H
#define NEURON_MEM_BUS_H

#include "export.h"

int neuron_bus_attach(struct dma_buf *buf, struct dma_buf_attachment *attach);
int neuron_bus_pin(struct dma_buf_attachment *attach);
void neuron_bus_unpin(struct dma_buf_attachment *attach);
struct sg_table *neuron_bus_map(struct dma_buf_attachment *attach, enum dma_data_direction dir);
void neuron_bus_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir);
void neuron_bus_add(struct neuron_export *export);
void neuron_bus_del(struct neuron_export *export);
void neuron_bus_revoke(struct neuron_device *nd);
int neuron_bus_unused(struct neuron_device *nd);

#endif
