/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of Neuron devices for other drivers (uapi/FACTS.md 8).  New drivers should
 * import a dma-buf instead.
 */
#ifndef NEURON_P2P_H
#define NEURON_P2P_H

#include <linux/types.h>

/**
 * struct neuron_p2p_page_info - a physically contiguous run of memory
 * @physical_address: where it is
 * @page_count: its length, in pages of 1 << shift_page_size bytes
 */
struct neuron_p2p_page_info {
	u64 physical_address;
	u32 page_count;
};

/**
 * struct neuron_p2p_va_info - memory behind a range of user addresses
 * @virtual_address: first address
 * @size: bytes
 * @shift_page_size: log2 of the page size, 12 or 21
 * @device_index: device that the memory belongs to
 * @entries: entries of @page_info
 * @page_info: the memory, in the order of the user addresses
 */
struct neuron_p2p_va_info {
	u64 virtual_address;
	u64 size;
	u32 shift_page_size;
	u32 device_index;
	u32 entries;
	struct neuron_p2p_page_info page_info[];
};

int neuron_p2p_register_va(u64 virtual_address, u64 length, struct neuron_p2p_va_info **va_info,
			   void (*free_callback)(void *data), void *data);
int neuron_p2p_unregister_va(struct neuron_p2p_va_info *va_info);

#endif
