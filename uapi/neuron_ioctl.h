/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Neuron device interface: the commands of /dev/neuronN that programs written
 * for AWS's own driver use. Numbers and layouts are fixed by those programs;
 * tests/abi checks every one of them. What the driver does with each command,
 * and where it differs, is in README.md of this directory.
 *
 * Conventions:
 *  - The argument is the address of the structure named in the command, also
 *    where the command is written with a pointer type (there the size field of the number
 *    is 8, the size of a pointer, and is meaningless).
 *  - The direction bits of a number do not tell the direction of the data; [in] and [out]
 *    at the fields do. A field marked [in] that holds an address tells where a result
 *    goes.
 *  - Layouts are those of 64-bit systems; 32-bit programs are not served.
 *
 * New programs should prefer the commands of neuron_native.h where both exist.
 */
#ifndef NEURON_IOCTL_H
#define NEURON_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>
#ifndef __KERNEL__
#include <sys/types.h>
#endif

#include "share/neuron_driver_shared.h"

/** Entries of struct neuron_ioctl_dma_queue_init_batch. */
#define MAX_DMA_QUEUE_INIT_BATCH 256

/** Entries of struct neuron_ioctl_dma_quiesce_queues. */
#define DMA_QUIESCE_MAX_ENG 64

/** Most links a device can have. */
#define NEURON_IOCTL_MAX_CONNECTED_DEVICES 8

/** Register windows reported by DEVICE_INFO. */
#define NEURON_MAX_BARS 2

/** Layout version that DRIVER_INFO_GET reports. */
#define NEURON_DEVICE_DRIVER_INFO_VERSION0 0

/** Most devices of a host. */
#define NEURON_IOCTL_MAX_DEVICES 64

/**
 * struct neuron_ioctl_mem_alloc - argument of MEM_ALLOC
 * @size: [in] bytes
 * @host_memory: [in] non-zero: host memory, 0: device memory
 * @dram_channel: [in] memory channel (HBM number), for device memory
 * @dram_region: [in] region inside the channel
 * @nc_id: [in] core that is charged for the memory
 * @mem_handle: [in] where to store the handle
 */
struct neuron_ioctl_mem_alloc {
	__u64 size;
	__u32 host_memory;
	__u32 dram_channel;
	__u32 dram_region;
	__u32 nc_id;
	__u64 *mem_handle;
};

/**
 * struct neuron_ioctl_mem_alloc_v2 - argument of MEM_ALLOC_V2
 * @size: [in] bytes
 * @align: [in] alignment in bytes; 0 or up to a page means one page
 * @host_memory: [in] non-zero: host memory, 0: device memory
 * @dram_channel: [in] memory channel (HBM number), for device memory
 * @dram_region: [in] region inside the channel
 * @nc_id: [in] core that is charged for the memory
 * @mem_handle: [in] where to store the handle
 */
struct neuron_ioctl_mem_alloc_v2 {
	__u64 size;
	__u64 align;
	__u32 host_memory;
	__u32 dram_channel;
	__u32 dram_region;
	__u32 nc_id;
	__u64 *mem_handle;
};

/**
 * struct neuron_ioctl_mem_alloc_v2_mem_type - argument of MEM_ALLOC_V2MT
 * @size: [in] bytes
 * @align: [in] alignment in bytes; 0 or up to a page means one page
 * @host_memory: [in] non-zero: host memory, 0: device memory
 * @dram_channel: [in] memory channel (HBM number), for device memory
 * @dram_region: [in] region inside the channel
 * @nc_id: [in] core that is charged for the memory
 * @mem_type: [in] what the memory is for, enum mem_alloc_category_t
 * @mem_handle: [in] where to store the handle
 */
struct neuron_ioctl_mem_alloc_v2_mem_type {
	__u64 size;
	__u64 align;
	__u32 host_memory;
	__u32 dram_channel;
	__u32 dram_region;
	__u32 nc_id;
	__u32 mem_type;
	__u64 *mem_handle;
};

/**
 * struct neuron_ioctl_mem_alloc_v2_mem_type64 - argument of MEM_ALLOC_V2MT64
 * @size: [in] bytes
 * @align: [in] alignment in bytes; 0 or up to a page means one page
 * @host_memory: [in] non-zero: host memory, 0: device memory
 * @dram_channel: [in] memory channel (HBM number), for device memory
 * @dram_region: [in] region inside the channel
 * @nc_id: [in] core that is charged for the memory
 * @mem_type: [in] what the memory is for, enum mem_alloc_category_t
 * @mem_handle: [in] where to store the handle
 * @pad: [unused] makes the size of the structure unique
 *
 * The layout differs from the _mem_type form only in size. A driver that knows it tells
 * the application that requests of 4 GiB and more work.
 */
struct neuron_ioctl_mem_alloc_v2_mem_type64 {
	__u64 size;
	__u64 align;
	__u32 host_memory;
	__u32 dram_channel;
	__u32 dram_region;
	__u32 nc_id;
	__u32 mem_type;
	__u64 *mem_handle;
	__u32 pad;
};

/**
 * struct neuron_ioctl_device_init - argument of DEVICE_INIT
 * @mem_regions: [unused] no meaning
 */
struct neuron_ioctl_device_init {
	__u32 mem_regions;
};

/**
 * struct neuron_ioctl_device_reset - argument of NC_RESET
 * @nc_map: [in] bit per core, NEURON_NC_MAP_DEVICE for the whole device
 * @request_id: [out] token for NC_RESET_READY
 */
struct neuron_ioctl_device_reset {
	__u32 nc_map;
	__u32 request_id;
};

/**
 * struct neuron_ioctl_device_ready - argument of NC_RESET_READY
 * @request_id: [in] token from NC_RESET
 * @result: [out] 0 done, 1 failed or token unknown, -4 interrupted
 */
struct neuron_ioctl_device_ready {
	__u32 request_id;
	__s32 result;
};

/**
 * struct neuron_ioctl_mem_get_info - argument of MEM_GET_INFO
 * @mem_handle: [in] handle of the memory
 * @mmap_offset: [in] where to store the offset for mmap, or NULL
 * @pa: [in] where to store the address as the device sees it
 */
struct neuron_ioctl_mem_get_info {
	__u64 mem_handle;
	__u64 *mmap_offset;
	__u64 *pa;
};

/*
 * struct neuron_ioctl_get_apps_info - argument of DEVICE_GET_ALL_APPS_INFO
 * @apps_info_flags: [in] what to report, APP_INFO_*
 * @capacity: [in] number of entries there is room for
 * @size: [out] number of entries written
 *
 * The entries follow as app_data.
 */
struct neuron_ioctl_get_apps_info {
	__u16 apps_info_flags;
	__u32 capacity;
	__u32 size;
	NEURON_FLEX_ARRAY(struct neuron_app_info, app_data)
};

/**
 * struct neuron_ioctl_mem_get_pa - argument of MEM_GET_PA
 * @mem_handle: [in] handle of the memory
 * @pa: [in] where to store the address as the device sees it
 */
struct neuron_ioctl_mem_get_pa {
	__u64 mem_handle;
	__u64 *pa;
};

/**
 * struct neuron_ioctl_mem_get_extended_info - argument of MEM_GET_EXTENDED_INFO
 * @mem_handle: [in] handle of the memory
 * @version: [out] 0
 * @host_memory: [out] 1 host memory, 0 device memory
 * @mmap_offset: [out] offset for mmap
 * @pa: [out] address as the device sees it
 * @pid: [out] process (tgid) that allocated it
 * @size: [out] bytes, rounded up to whole pages
 *
 * The handle is returned unchanged and version is returned as 0.
 */
struct neuron_ioctl_mem_get_extended_info {
	__u64 mem_handle;
	__u32 version;
	__u32 host_memory;
	__u64 mmap_offset;
	__u64 pa;
	__u64 pid;
	__u64 size;
};

/**
 * struct neuron_ioctl_mem_free - argument of MEM_FREE
 * @mem_handle: [in] handle of the memory
 */
struct neuron_ioctl_mem_free {
	__u64 mem_handle;
};

/**
 * struct neuron_ioctl_mem_copy - argument of MEM_COPY
 * @src_mem_handle: [in] handle of the source
 * @dst_mem_handle: [in] handle of the destination
 * @size: [in] bytes
 * @src_offset: [in] byte offset in the source
 * @dst_offset: [in] byte offset in the destination
 */
struct neuron_ioctl_mem_copy {
	__u64 src_mem_handle;
	__u64 dst_mem_handle;
	__u32 size;
	__u32 src_offset;
	__u32 dst_offset;
};

/**
 * struct neuron_ioctl_mem_copy64 - argument of MEM_COPY64
 * @src_mem_handle: [in] handle of the source
 * @dst_mem_handle: [in] handle of the destination
 * @size: [in] bytes
 * @src_offset: [in] byte offset in the source
 * @dst_offset: [in] byte offset in the destination
 */
struct neuron_ioctl_mem_copy64 {
	__u64 src_mem_handle;
	__u64 dst_mem_handle;
	__u64 size;
	__u64 src_offset;
	__u64 dst_offset;
};

/**
 * struct neuron_ioctl_mem_copy_async - argument of MEM_COPY_ASYNC
 * @src_mem_handle: [in] handle of the source
 * @dst_mem_handle: [in] handle of the destination
 * @size: [in] bytes
 * @src_offset: [in] byte offset in the source
 * @dst_offset: [in] byte offset in the destination
 * @host_prefetch_addr: [in] user buffer to fault in meanwhile, 0 for none
 * @pwait_handle: [in] earlier transfer to wait for: -1 none, 1 or 2 its token;
 *	0 makes this call synchronous
 * @wait_handle: [out] token of this transfer: 1 or 2, 0 when it ran
 *	synchronously
 */
struct neuron_ioctl_mem_copy_async {
	__u64 src_mem_handle;
	__u64 dst_mem_handle;
	__u32 size;
	__u32 src_offset;
	__u32 dst_offset;
	__u64 host_prefetch_addr;
	__u32 pwait_handle;
	__u32 wait_handle;
};

/**
 * struct neuron_ioctl_mem_copy_async64 - argument of MEM_COPY_ASYNC64
 * @src_mem_handle: [in] handle of the source
 * @dst_mem_handle: [in] handle of the destination
 * @size: [in] bytes
 * @src_offset: [in] byte offset in the source
 * @dst_offset: [in] byte offset in the destination
 * @host_prefetch_addr: [in] user buffer to fault in meanwhile, 0 for none
 * @pwait_handle: [in] earlier transfer to wait for: -1 none, 1 or 2 its token;
 *	0 makes this call synchronous
 * @wait_handle: [out] token of this transfer: 1 or 2, 0 when it ran
 *	synchronously
 */
struct neuron_ioctl_mem_copy_async64 {
	__u64 src_mem_handle;
	__u64 dst_mem_handle;
	__u64 size;
	__u64 src_offset;
	__u64 dst_offset;
	__u64 host_prefetch_addr;
	__u32 pwait_handle;
	__u32 wait_handle;
};

/**
 * struct neuron_ioctl_mem_copy_async_wait - argument of MEM_COPY_ASYNC_WAIT
 * @src_mem_handle: [in] source the transfer was started with
 * @dst_mem_handle: [in] destination the transfer was started with
 * @pwait_handle: [in] token, 1 or 2
 */
struct neuron_ioctl_mem_copy_async_wait {
	__u64 src_mem_handle;
	__u64 dst_mem_handle;
	__u32 pwait_handle;
};

/**
 * struct neuron_ioctl_memset - argument of MEMSET
 * @mem_handle: [in] handle of the memory
 * @offset: [in] byte offset in the memory
 * @value: [in] byte to fill with, in the low 8 bits
 * @size: [in] bytes
 */
struct neuron_ioctl_memset {
	__u64 mem_handle;
	__u64 offset;
	__u32 value;
	__u32 size;
};

/**
 * struct neuron_ioctl_memset64 - argument of MEMSET64
 * @mem_handle: [in] handle of the memory
 * @offset: [in] byte offset in the memory
 * @value: [in] byte to fill with, in the low 8 bits
 * @size: [in] bytes
 */
struct neuron_ioctl_memset64 {
	__u64 mem_handle;
	__u64 offset;
	__u32 value;
	__u64 size;
};

/**
 * struct neuron_ioctl_mem_buf_copy - argument of MEM_BUF_COPY
 * @mem_handle: [in] handle of the memory
 * @buffer: [in] user buffer
 * @size: [in] bytes
 * @offset: [in] byte offset in the memory
 * @copy_to_mem_handle: [in] non-zero: buffer to memory, 0: memory to buffer
 */
struct neuron_ioctl_mem_buf_copy {
	__u64 mem_handle;
	void *buffer;
	__u32 size;
	__u32 offset;
	__u32 copy_to_mem_handle;
};

/**
 * struct neuron_ioctl_mem_buf_copy64 - argument of MEM_BUF_COPY64 and MEM_BUF_ZEROCOPY64
 * @mem_handle: [in] handle of the memory
 * @buffer: [in] user buffer
 * @size: [in] bytes
 * @offset: [in] byte offset in the memory
 * @copy_to_mem_handle: [in] non-zero: buffer to memory, 0: memory to buffer
 */
struct neuron_ioctl_mem_buf_copy64 {
	__u64 mem_handle;
	void *buffer;
	__u64 size;
	__u64 offset;
	__u32 copy_to_mem_handle;
};

/**
 * struct neuron_ioctl_program_engine - argument of PROGRAM_ENGINE
 * @dst: [in] device address
 * @buffer: [in] user buffer
 * @size: [in] bytes
 * @offset: [in] byte offset on both sides
 *
 * @offset moves both sides: bytes buffer[offset .. offset + size) go to device
 * addresses dst + offset and up.
 */
struct neuron_ioctl_program_engine {
	__u64 dst;
	void *buffer;
	__u32 size;
	__u32 offset;
};

/**
 * struct neuron_ioctl_program_engine_nc - argument of PROGRAM_ENGINE_NC
 * @nc_id: [in] core whose copy ring carries the transfer
 * @dst: [in] device address
 * @buffer: [in] user buffer
 * @size: [in] bytes
 * @offset: [in] byte offset on both sides
 *
 * @offset moves both sides, as in struct neuron_ioctl_program_engine.
 */
struct neuron_ioctl_program_engine_nc {
	__u32 nc_id;
	__u64 dst;
	void *buffer;
	__u32 size;
	__u32 offset;
};

/**
 * struct neuron_ioctl_program_engine_nc64 - argument of PROGRAM_ENGINE_NC64
 * @nc_id: [in] core whose copy ring carries the transfer
 * @dst: [in] device address
 * @buffer: [in] user buffer
 * @size: [in] bytes
 * @offset: [in] byte offset on both sides
 *
 * @offset moves both sides, as in struct neuron_ioctl_program_engine.
 */
struct neuron_ioctl_program_engine_nc64 {
	__u32 nc_id;
	__u64 dst;
	void *buffer;
	__u64 size;
	__u64 offset;
};

/**
 * struct neuron_ioctl_bar_rw - argument of BAR_READ and BAR_WRITE
 * @bar: [in] BAR number, 0 or 2
 * @address: [in] array of count register addresses, in the space of
 *	bar_address of DEVICE_INFO
 * @data: [in,out] array of count values, read or written by the driver
 * @count: [in] number of registers
 */
struct neuron_ioctl_bar_rw {
	__u32 bar;
	__u64 *address;
	__u32 *data;
	__u32 count;
};

/**
 * struct neuron_ioctl_post_metric - argument of POST_METRIC
 * @data: [in] the metrics
 * @data_size: [in] bytes, at most 128
 */
struct neuron_ioctl_post_metric {
	__u32 *data;
	__u32 data_size;
};

/**
 * struct neuron_ioctl_dma_copy_descriptors - argument of DMA_COPY_DESCRIPTORS
 * @mem_handle: [in] handle of the memory that holds the ring
 * @buffer: [in] array of 16-byte descriptors
 * @num_descs: [in] number of descriptors
 * @offset: [in] byte offset in the ring memory
 * @queue_type: [in] NEURON_DMA_QUEUE_TYPE_TX or _RX
 */
struct neuron_ioctl_dma_copy_descriptors {
	__u64 mem_handle;
	void *buffer;
	__u32 num_descs;
	__u32 offset;
	enum neuron_dma_queue_type queue_type;
};

/**
 * struct neuron_ioctl_dma_copy_descriptors64 - argument of DMA_COPY_DESCRIPTORS64
 * @mem_handle: [in] handle of the memory that holds the ring
 * @buffer: [in] array of 16-byte descriptors
 * @num_descs: [in] number of descriptors
 * @offset: [in] byte offset in the ring memory
 * @queue_type: [in] NEURON_DMA_QUEUE_TYPE_TX or _RX
 */
struct neuron_ioctl_dma_copy_descriptors64 {
	__u64 mem_handle;
	void *buffer;
	__u32 num_descs;
	__u64 offset;
	enum neuron_dma_queue_type queue_type;
};

/**
 * struct neuron_ioctl_dma_queue_init - argument of DMA_QUEUE_INIT
 * @eng_id: [in] DMA engine number
 * @qid: [in] queue number on the engine
 * @tx_desc_count: [in] descriptors in the source (TX) ring
 * @rx_desc_count: [in] descriptors in the destination (RX) ring
 * @tx_handle: [in] memory of the source ring, 0 for none
 * @rx_handle: [in] memory of the destination ring, 0 for none
 * @rxc_handle: [in] memory of a completion ring; not supported, must be 0
 * @axi_port: [in] second memory port for rings in device memory, architecture
 *	v1 only
 */
struct neuron_ioctl_dma_queue_init {
	__u32 eng_id;
	__u32 qid;
	__u32 tx_desc_count;
	__u32 rx_desc_count;
	__u64 tx_handle;
	__u64 rx_handle;
	__u64 rxc_handle;
	__u32 axi_port;
};

/**
 * struct neuron_ioctl_dma_queue_init_batch - argument of DMA_QUEUE_INIT_BATCH
 * @count: [in] entries used, less than MAX_DMA_QUEUE_INIT_BATCH
 * @entries: [in] the queues, set up in this order
 */
struct neuron_ioctl_dma_queue_init_batch {
	__u32 count;
	struct neuron_ioctl_dma_queue_init entries[MAX_DMA_QUEUE_INIT_BATCH];
};

/**
 * struct neuron_ioctl_dma_queue_release - argument of DMA_QUEUE_RELEASE
 * @eng_id: [in] DMA engine number
 * @qid: [in] queue number on the engine
 */
struct neuron_ioctl_dma_queue_release {
	__u32 eng_id;
	__u32 qid;
};

/**
 * struct neuron_ioctl_dma_quiesce_queues - argument of DMA_QUIESCE_QUEUES
 * @nc_id: [unused] no meaning
 * @engine_count: [unused] no meaning
 * @queue_mask: [unused] no meaning
 *
 * Layout kept for programs that still name it; the command is not supported.
 */
struct neuron_ioctl_dma_quiesce_queues {
	__u32 nc_id;
	__u32 engine_count;
	__u32 queue_mask[DMA_QUIESCE_MAX_ENG];
};

/**
 * struct neuron_ioctl_dma_ack_completed - argument of DMA_ACK_COMPLETED
 * @eng_id: [in] DMA engine number
 * @qid: [in] queue number on the engine
 * @count: [in] descriptors that were seen to be complete
 */
struct neuron_ioctl_dma_ack_completed {
	__u32 eng_id;
	__u32 qid;
	__u32 count;
};

/**
 * struct neuron_ioctl_dma_queue_copy_start - argument of DMA_QUEUE_COPY_START
 * @eng_id: [in] DMA engine number
 * @qid: [in] queue number on the engine
 * @tx_desc_count: [in] descriptors added to the source ring, may be 0
 * @rx_desc_count: [in] descriptors added to the destination ring
 */
struct neuron_ioctl_dma_queue_copy_start {
	__u32 eng_id;
	__u32 qid;
	__u32 tx_desc_count;
	__u32 rx_desc_count;
};

/**
 * struct neuron_ioctl_dma_eng_init - argument of DMA_ENG_INIT
 * @eng_id: [unused] no meaning
 */
struct neuron_ioctl_dma_eng_init {
	__u32 eng_id;
};

/**
 * struct neuron_ioctl_dma_eng_set_state - argument of DMA_ENG_SET_STATE
 * @eng_id: [in] DMA engine number
 * @state: [in] 0 disable, 2 normal, 3 abort
 */
struct neuron_ioctl_dma_eng_set_state {
	__u32 eng_id;
	__u32 state;
};

/**
 * struct neuron_ioctl_dma_eng_get_state - argument of DMA_ENG_GET_STATE
 * @eng_id: [in] DMA engine number
 * @state: [in] where to store the state
 */
struct neuron_ioctl_dma_eng_get_state {
	__u32 eng_id;
	struct neuron_dma_eng_state *state;
};

/**
 * struct neuron_ioctl_dma_queue_get_state - argument of DMA_QUEUE_GET_STATE
 * @eng_id: [in] DMA engine number
 * @qid: [in] queue number on the engine
 * @tx: [in] where to store the state of the source side
 * @rx: [in] where to store the state of the destination side
 */
struct neuron_ioctl_dma_queue_get_state {
	__u32 eng_id;
	__u32 qid;
	struct neuron_dma_queue_state *tx;
	struct neuron_dma_queue_state *rx;
};

/**
 * struct neuron_ioctl_dma_descriptor_copyout - argument of DMA_DESCRIPTOR_COPYOUT
 * @eng_id: [in] DMA engine number
 * @qid: [in] queue number on the engine
 * @type: [in] NEURON_DMA_QUEUE_TYPE_TX or _RX
 * @start_index: [in] first descriptor
 * @count: [in] number of descriptors, not 0
 * @buffer: [in] user buffer
 */
struct neuron_ioctl_dma_descriptor_copyout {
	__u32 eng_id;
	__u32 qid;
	enum neuron_dma_queue_type type;
	__u32 start_index;
	__u32 count;
	void *buffer;
};

/**
 * struct neuron_ioctl_semaphore - argument of the SEMAPHORE_* commands
 * @nc_id: [in] core, counted from 0 on this device
 * @semaphore_index: [in] semaphore number of that core
 * @value: [in,out] value to add, subtract or set; the value read
 */
struct neuron_ioctl_semaphore {
	__u32 nc_id;
	__u32 semaphore_index;
	__u32 value;
};

/**
 * struct neuron_ioctl_event - argument of EVENT_SET and EVENT_GET
 * @nc_id: [in] core, counted from 0 on this device
 * @event_index: [in] event number of that core
 * @value: [in,out] value to set; the value read
 */
struct neuron_ioctl_event {
	__u32 nc_id;
	__u32 event_index;
	__u32 value;
};

/**
 * struct neuron_ioctl_notifications_init_v1 - argument of NOTIFICATIONS_INIT_V1
 * @nc_id: [in] core, counted from 0 on this device
 * @nq_type: [in] kind of queue, enum NQ_TYPE
 * @engine_index: [in] engine of the core (or 0)
 * @size: [in] bytes, a power of two
 * @mmap_offset: [out] offset for mmap
 */
struct neuron_ioctl_notifications_init_v1 {
	__u32 nc_id;
	__u32 nq_type;
	__u32 engine_index;
	__u32 size;
	__u64 mmap_offset;
};

/**
 * struct neuron_ioctl_notifications_init_v2 - argument of NOTIFICATIONS_INIT_V2
 * @nq_dev_id: [in] core or TopSP number
 * @nq_dev_type: [in] whose queue, enum NQ_DEVICE_TYPE
 * @nq_type: [in] kind of queue, enum NQ_TYPE
 * @engine_index: [in] engine of the core (or 0)
 * @size: [in] bytes, a power of two
 * @on_host_memory: [in] non-zero: host memory, 0: device memory
 * @dram_channel: [in] memory channel (HBM number), for device memory
 * @dram_region: [in] region inside the channel
 * @mmap_offset: [out] offset for mmap, ~0 when in device memory
 * @mem_handle: [out] handle of the queue memory
 */
struct neuron_ioctl_notifications_init_v2 {
	__u32 nq_dev_id;
	__u32 nq_dev_type;
	__u32 nq_type;
	__u32 engine_index;
	__u32 size;
	__u32 on_host_memory;
	__u32 dram_channel;
	__u32 dram_region;
	__u64 mmap_offset;
	__u64 mem_handle;
};

/**
 * struct neuron_ioctl_notifications_init_with_realloc_v2 -
 *	argument of NOTIFICATIONS_INIT_WITH_REALLOC_V2
 * @nq_dev_id: [in] core or TopSP number
 * @nq_dev_type: [in] whose queue, enum NQ_DEVICE_TYPE
 * @nq_type: [in] kind of queue, enum NQ_TYPE
 * @engine_index: [in] engine of the core (or 0)
 * @size: [in] bytes, a power of two
 * @on_host_memory: [in] non-zero: host memory, 0: device memory
 * @dram_channel: [in] memory channel (HBM number), for device memory
 * @dram_region: [in] region inside the channel
 * @force_alloc_mem: [in] non-zero: replace the memory of an existing queue
 * @mmap_offset: [out] offset for mmap, ~0 when in device memory
 * @mem_handle: [out] handle of the queue memory
 */
struct neuron_ioctl_notifications_init_with_realloc_v2 {
	__u32 nq_dev_id;
	__u32 nq_dev_type;
	__u32 nq_type;
	__u32 engine_index;
	__u32 size;
	__u32 on_host_memory;
	__u32 dram_channel;
	__u32 dram_region;
	__u32 force_alloc_mem;
	__u64 mmap_offset;
	__u64 mem_handle;
};

/**
 * struct neuron_ioctl_neuron_ds_info - argument of ACQUIRE_NEURON_DS and RELEASE_NEURON_DS
 * @pid: [in] 0: the caller's own datastore (made when missing), else the process (tgid)
 *	to look up
 * @mmap_offset: [out] offset for mmap
 * @size: [out] bytes of the datastore
 */
struct neuron_ioctl_neuron_ds_info {
	pid_t pid;
	__u64 mmap_offset;
	__u32 size;
};

/**
 * struct neuron_ioctl_notifications_destroy - argument of NOTIFICATIONS_DESTROY_V1
 * @mmap_offset: [unused] no meaning
 */
struct neuron_ioctl_notifications_destroy {
	__u64 mmap_offset;
};

/**
 * struct neuron_ioctl_notifications_destroy_nq - names one notification queue
 * @nq_dev_id: [unused] core or TopSP number
 * @nq_type: [unused] kind of queue
 * @engine_index: [unused] engine
 *
 * Layout kept for programs that still name it; no command takes it.
 */
struct neuron_ioctl_notifications_destroy_nq {
	__u32 nq_dev_id;
	__u32 nq_type;
	__u32 engine_index;
};

/**
 * struct neuron_ioctl_notifications_queue_info - argument of NOTIFICATIONS_QUEUE_INFO
 * @nq_dev_id: [unused] core or TopSP number
 * @nq_dev_type: [unused] whose queue
 * @nq_type: [unused] kind of queue
 * @engine_index: [unused] engine
 * @head: [unused] head index
 * @phase_bit: [unused] phase of the head entry
 *
 * Layout kept for programs that still name it; the command is not supported.
 */
struct neuron_ioctl_notifications_queue_info {
	__u8 nq_dev_id;
	__u8 nq_dev_type;
	__u8 nq_type;
	__u8 engine_index;
	__u32 head;
	__u32 phase_bit;
};

/**
 * struct neuron_ioctl_read_hw_counters - argument of READ_HW_COUNTERS
 * @address: [in] array of count device-side register addresses
 * @data: [in] array that receives count values
 * @count: [in] number of registers
 */
struct neuron_ioctl_read_hw_counters {
	__u64 *address;
	__u32 *data;
	__u32 count;
};

/**
 * struct neuron_ioctl_crwl - argument of CRWL_READER_* and CRWL_WRITER_*
 * @nc_id: [in] core, counted from 0 on this device
 * @uuid: [in] identity of the model
 */
struct neuron_ioctl_crwl {
	__u32 nc_id;
	struct neuron_uuid uuid;
};

/**
 * struct neuron_ioctl_crwl_nc_map - argument of CRWL_NC_RANGE_MARK and _UNMARK
 * @nc_count: [in] cores wanted
 * @start_nc_index: [in] first core to look at, relative to the opened device
 * @end_nc_index: [in] last core to look at, relative to the opened device
 * @max_nc_available: [out] longest run of free cores that was seen
 * @bitmap: [in,out] cores that were claimed; cores to give back
 */
struct neuron_ioctl_crwl_nc_map {
	__u32 nc_count;
	__u32 start_nc_index;
	__u32 end_nc_index;
	__u32 max_nc_available;
	volatile unsigned long bitmap;
};

/**
 * struct neuron_ioctl_crwl_nc_map_ext - argument of CRWL_NC_RANGE_MARK_EXT0 and _UNMARK_EXT0
 * @nc_count: [in] cores wanted
 * @start_nc_index: [in] first core to look at, relative to the opened device
 * @end_nc_index: [in] last core to look at, relative to the opened device
 * @max_nc_available: [out] longest run of free cores that was seen
 * @bitmap: [in,out] cores that were claimed; cores to give back
 */
struct neuron_ioctl_crwl_nc_map_ext {
	__u32 nc_count;
	__u32 start_nc_index;
	__u32 end_nc_index;
	__u32 max_nc_available;
	unsigned long bitmap[8];
};

/**
 * struct neuron_ioctl_cinit_set - argument of CINIT_SET_STATE
 * @nc_id: [in] core, counted from 0 on this device
 * @state: [in] state to enter: NEURON_CINIT_STATE_STARTED or _COMPLETED
 * @new_state: [out] state after the call
 */
struct neuron_ioctl_cinit_set {
	__u32 nc_id;
	__u32 state;
	__u32 new_state;
};

/**
 * struct neuron_ioctl_nc_model_started_count - argument of NC_MODEL_STARTED_COUNT
 * @nc_id: [in] core, counted from 0 on this device
 * @started_count: [out] models started since the last reset
 */
struct neuron_ioctl_nc_model_started_count {
	__u32 nc_id;
	__u64 started_count;
};

/**
 * struct neuron_ioctl_compatible_version - argument of COMPATIBLE_VERSION
 * @max: [out] newest runtime interface the driver serves
 * @min: [out] oldest runtime interface the driver serves
 */
struct neuron_ioctl_compatible_version {
	__u32 max;
	__u32 min;
};

/**
 * struct neuron_ioctl_device_basic_info - argument of DEVICE_BASIC_INFO
 * @architecture: [out] 1 Inferentia, 2 Trainium1 and Inferentia2, 3 Trainium2, 4 Trainium3
 * @revision: [out] PCI revision of the device
 */
struct neuron_ioctl_device_basic_info {
	__u32 architecture;
	__u32 revision;
};

/**
 * struct neuron_ioctl_device_bdf - argument of DEVICE_BDF
 * @bus_number: [out] PCI bus
 * @slot: [out] PCI slot
 * @func: [out] PCI function
 */
struct neuron_ioctl_device_bdf {
	__u32 bus_number;
	__u8 slot;
	__u8 func;
};

/**
 * struct neuron_ioctl_device_bdf_ext - argument of DEVICE_BDF_EXT
 * @nd_index: [in] device, relative to the opened one
 * @domain: [out] PCI domain
 * @bus_number: [out] PCI bus
 * @slot: [out] PCI slot
 * @func: [out] PCI function
 */
struct neuron_ioctl_device_bdf_ext {
	__u32 nd_index;
	__u32 domain;
	__u32 bus_number;
	__u8 slot;
	__u8 func;
};

/**
 * struct neuron_ioctl_resource_mmap_info - argument of RESOURCE_MMAP_INFO
 * @block: [in] enum neuron_dm_block_type
 * @block_id: [in] number of the block
 * @resource: [in] enum neuron_dm_resource_type
 * @offset: [out] offset for mmap
 * @size: [out] bytes to map
 */
struct neuron_ioctl_resource_mmap_info {
	__u32 block;
	__u32 block_id;
	__u32 resource;
	__u64 offset;
	__u64 size;
};

/**
 * struct neuron_ioctl_device_info - argument of DEVICE_INFO
 * @architecture: [out] 1 Inferentia, 2 Trainium1 and Inferentia2, 3 Trainium2, 4 Trainium3
 * @revision: [out] PCI revision of the device
 * @connected_device_count: [out] number of linked devices
 * @connected_devices: [out] numbers of the linked devices
 * @bar_address: [out] tokens of BAR 0 and BAR 2
 * @bar_size: [out] bytes of BAR 0 and BAR 2
 *
 * The BAR addresses are opaque tokens to build the addresses of BAR_READ and
 * BAR_WRITE from (token plus register offset); they are not pointers. Unused
 * entries of the arrays are zero.
 */
struct neuron_ioctl_device_info {
	__u32 architecture;
	__u32 revision;
	__u32 connected_device_count;
	__u32 connected_devices[NEURON_IOCTL_MAX_CONNECTED_DEVICES];
	__u64 bar_address[NEURON_MAX_BARS];
	__u64 bar_size[NEURON_MAX_BARS];
};

/**
 * struct neuron_ioctl_dmabuf_fd - argument of DMABUF_FD
 * @va: [in] address inside a mapping of this driver
 * @size: [in] bytes to export, within the mapping
 * @fd: [in] where to store the file descriptor
 */
struct neuron_ioctl_dmabuf_fd {
	__u64 va;
	__u64 size;
	__s32 *fd;
};

/**
 * struct neuron_ioctl_device_driver_info - argument of DRIVER_INFO_GET and DRIVER_INFO_SET
 * @architecture: [out] 1 Inferentia, 2 Trainium1 and Inferentia2, 3 Trainium2, 4 Trainium3
 * @revision: [out] PCI revision of the device
 * @version: [out] NEURON_DEVICE_DRIVER_INFO_VERSION0
 * @size: [out] size of this structure
 * @feature_flags1: [out] NEURON_DRIVER_FEATURE_* that the driver has
 */
struct neuron_ioctl_device_driver_info {
	__u32 architecture;
	__u32 revision;
	__u32 version;
	__u32 size;
	__u64 feature_flags1;
};

/**
 * struct neuron_ioctl_mem_get_mc_mmap_info - argument of MEM_MC_GET_INFO
 * @pa: [in] any device address inside the memory
 * @mmap_offset: [out] offset for mmap of its start
 * @size: [out] its size in bytes
 */
struct neuron_ioctl_mem_get_mc_mmap_info {
	__u64 pa;
	__u64 mmap_offset;
	__u64 size;
};

/**
 * struct neuron_ioctl_mem_get_mc_mmap_info_v2 - argument of MEM_MC_GET_INFO_V2
 * @pa: [in] any device address inside the memory
 * @mmap_offset: [out] offset for mmap of its start
 * @size: [out] its size in bytes
 * @mem_handle: [out] its handle
 */
struct neuron_ioctl_mem_get_mc_mmap_info_v2 {
	__u64 pa;
	__u64 mmap_offset;
	__u64 size;
	__u64 mem_handle;
};

/**
 * struct neuron_ioctl_printk - argument of PRINTK
 * @buffer: [in] text, terminated by NUL
 * @size: [in] bytes including the NUL, at most 512
 * @action: [unused] no meaning
 */
struct neuron_ioctl_printk {
	void *buffer;
	__u32 size;
	__u32 action;
};

/**
 * struct neuron_ioctl_host_device_id - argument of HOST_DEVICE_ID
 * @host_device_id: [out] number of the device on this host
 */
struct neuron_ioctl_host_device_id {
	__u32 host_device_id;
};

/**
 * struct neuron_ioctl_dump_mem_chunks - argument of DUMP_MEM_CHUNKS
 * @hbm_index: [in] HBM number
 * @num_entries_in: [in] number of entries data has room for
 * @num_entries_out: [out] number of allocations there are
 * @data: [in] array that receives the entries
 */
struct neuron_ioctl_dump_mem_chunks {
	__u32 hbm_index;
	__u32 num_entries_in;
	__u32 num_entries_out;
	struct neuron_ioctl_mem_chunk_info *data;
};

/**
 * struct neuron_ioctl_nc_pid_state_dump - argument of NC_PID_STATE_DUMP
 * @size: [unused] size of this structure
 * @nc_id: [in] core, counted over all devices of the host
 * @filter_log_owner: [in] non-zero: only lines of the owner of the core
 * @log_dump_limit: [in] most lines to write, 0 for 128
 */
struct neuron_ioctl_nc_pid_state_dump {
	__u32 size;
	__u32 nc_id;
	__u32 filter_log_owner;
	__u32 log_dump_limit;
};

/**
 * struct neuron_ioctl_host_device_id_to_rid_map - argument of HOST_DEVICE_ID_TO_RID_MAP
 * @count: [out] number of devices
 * @host_did_to_rid_map: [out] routing id of each device number
 */
struct neuron_ioctl_host_device_id_to_rid_map {
	__u32 count;
	__u32 host_did_to_rid_map[NEURON_IOCTL_MAX_DEVICES];
};

/**
 * struct neuron_ioctl_hbm_scrub_start - argument of HBM_SCRUB_START
 * @nc_id: [in] core charged for host buffers
 * @hbm_index: [in] HBM number
 * @axi_port: [in] memory port
 * @init_val: [in] 32-bit pattern to fill with
 */
struct neuron_ioctl_hbm_scrub_start {
	__u32 nc_id;
	__u32 hbm_index;
	__u32 axi_port;
	__u32 init_val;
};

/**
 * struct neuron_ioctl_hbm_scrub_wait - argument of HBM_SCRUB_WAIT
 * @nc_id: [unused] no meaning
 * @hbm_index: [in] HBM number
 */
struct neuron_ioctl_hbm_scrub_wait {
	__u32 nc_id;
	__u32 hbm_index;
};

/**
 * struct neuron_ioctl_get_logical_to_physical_nc_map -
 *	argument of GET_LOGICAL_TO_PHYSICAL_NC_MAP
 * @map: [in] where to store the table
 * @max_map_entries: [in] entries map has room for, at most
 *	NEURON_NC_MAP_MAX_ENTRIES
 * @mapping_version: [in] NEURON_IOCTL_NC_MAPPING_TYPE_V0
 */
struct neuron_ioctl_get_logical_to_physical_nc_map {
	struct neuron_ioctl_nc_map *map;
	__u32 max_map_entries;
	__u32 mapping_version;
};

/**
 * struct neuron_ioctl_pod_info - argument of POD_INFO
 * @sz: [in,out] size of the structure passed
 * @pod_type: [out] NEURON_POD_TYPE_*
 * @pod_id: [out] identity of the pod: 8 bytes, then zeroes
 * @pod_sz: [out] number of nodes
 */
struct neuron_ioctl_pod_info {
	__u16 sz;
	__u8 pod_type;
	__u8 pod_id[256];
	__u8 pod_sz;
};

/**
 * struct neuron_ioctl_pod_status - argument of POD_STATUS
 * @sz: [in,out] size of the structure passed
 * @pod_id: [out] identity of the pod: 8 bytes, then zeroes
 * @state: [out] NEURON_POD_E_STATE_*
 * @pod_type: [out] NEURON_POD_TYPE_*
 * @pod_sz: [out] number of nodes
 * @node_id: [out] number of this node, -1 when there is none
 */
struct neuron_ioctl_pod_status {
	__u16 sz;
	__u8 pod_id[256];
	__u32 state;
	__u8 pod_type;
	__u8 pod_sz;
	__s8 node_id;
};

/**
 * struct neuron_ioctl_pod_status_v2 - argument of POD_STATUS_V2
 * @v1: [in,out] the first version
 * @mode: [out] enum neuron_ultraserver_mode
 * @modes_supported: [out] bit per usable mode, 1 << mode
 */
struct neuron_ioctl_pod_status_v2 {
	struct neuron_ioctl_pod_status v1;
	__u32 mode;
	__u32 modes_supported;
};

/**
 * struct neuron_ioctl_pod_ctrl - argument of POD_CTRL
 * @sz: [in] size of the structure passed
 * @ctrl: [in] enum neuron_pod_ctrl_req
 * @timeout: [in] seconds
 * @state: [out] NEURON_POD_E_STATE_*
 */
struct neuron_ioctl_pod_ctrl {
	__u16 sz;
	__u32 ctrl;
	__u32 timeout;
	__u32 state;
};

/**
 * struct neuron_ioctl_pod_ctrl_v2 - argument of POD_CTRL_V2
 * @v1: [in,out] the first version
 * @mode: [in] enum neuron_ultraserver_mode
 */
struct neuron_ioctl_pod_ctrl_v2 {
	struct neuron_ioctl_pod_ctrl v1;
	__u32 mode;
};

/*
 * Commands.
 *
 * Some numbers carry more than one layout (23, 24, 28, 38, 85, 86, 102, 105,
 * 106, 108, 110, 111, 122, 123); size or direction tell which one is meant.
 */

/** Type byte of all commands, 'N'. */
#define NEURON_IOCTL_BASE 'N'

/* Reset the whole device on behalf of the calling process. */
#define NEURON_IOCTL_DEVICE_RESET _IO(NEURON_IOCTL_BASE, 1)

/*
 * Wait for the reset that the calling process asked for; 1 when the device is ready, 0 when
 * the reset failed.
 */
#define NEURON_IOCTL_DEVICE_READY \
	_IOR(NEURON_IOCTL_BASE, 2, __u8)

/* Store 1. Shares its number with DEVICE_BDF_EXT, the size tells them apart. */
#define NEURON_IOCTL_DEVICE_RESET_STATUS \
	_IOR(NEURON_IOCTL_BASE, 106, __u8)

/* Architecture, revision, linked devices and register windows. */
#define NEURON_IOCTL_DEVICE_INFO \
	_IOR(NEURON_IOCTL_BASE, 3, struct neuron_ioctl_device_info *)

/* Accepted and ignored: a device needs no initialisation by the application. */
#define NEURON_IOCTL_DEVICE_INIT \
	_IOR(NEURON_IOCTL_BASE, 4, struct neuron_ioctl_device_init *)

/* Accepted and ignored: closing the device releases everything. */
#define NEURON_IOCTL_DEVICE_RELEASE _IO(NEURON_IOCTL_BASE, 5)

/* Process (tgid) that attached first, 0 when none is attached. */
#define NEURON_IOCTL_DEVICE_APP_PID \
	_IOR(NEURON_IOCTL_BASE, 6, __s32)

/* The attached processes, with the cores they lock and the memory they hold. */
#define NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO \
	_IOR(NEURON_IOCTL_BASE, 7, struct neuron_ioctl_get_apps_info *)

/* Read registers. */
#define NEURON_IOCTL_BAR_READ \
	_IOR(NEURON_IOCTL_BASE, 11, struct neuron_ioctl_bar_rw *)

/* Write registers. The registers the driver itself depends on are refused. */
#define NEURON_IOCTL_BAR_WRITE \
	_IOW(NEURON_IOCTL_BASE, 12, struct neuron_ioctl_bar_rw *)

/* Hand a blob of metrics to the firmware. */
#define NEURON_IOCTL_POST_METRIC \
	_IOW(NEURON_IOCTL_BASE, 13, struct neuron_ioctl_post_metric *)

/* Allocate memory: page alignment, category "unknown". */
#define NEURON_IOCTL_MEM_ALLOC \
	_IOR(NEURON_IOCTL_BASE, 21, struct neuron_ioctl_mem_alloc *)

/* Allocate memory with an alignment. */
#define NEURON_IOCTL_MEM_ALLOC_V2 \
	_IOR(NEURON_IOCTL_BASE, 102, struct neuron_ioctl_mem_alloc_v2 *)

/* Allocate memory with an alignment and a category. */
#define NEURON_IOCTL_MEM_ALLOC_V2MT \
	_IOR(NEURON_IOCTL_BASE, 102, struct neuron_ioctl_mem_alloc_v2_mem_type)

/* Allocate memory with an alignment and a category; 4 GiB and more. */
#define NEURON_IOCTL_MEM_ALLOC_V2MT64 \
	_IOR(NEURON_IOCTL_BASE, 102, struct neuron_ioctl_mem_alloc_v2_mem_type64)

/*
 * Give a handle back. The memory itself is freed when its last user (mapping, ring,
 * transfer, dma-buf) is gone.
 */
#define NEURON_IOCTL_MEM_FREE \
	_IOR(NEURON_IOCTL_BASE, 22, struct neuron_ioctl_mem_free *)

/* Copy between two allocations by DMA; returns when the bytes are there. */
#define NEURON_IOCTL_MEM_COPY \
	_IOR(NEURON_IOCTL_BASE, 23, struct neuron_ioctl_mem_copy *)

/* MEM_COPY with 64-bit size and offsets. */
#define NEURON_IOCTL_MEM_COPY64 \
	_IOR(NEURON_IOCTL_BASE, 23, struct neuron_ioctl_mem_copy64)

/* Copy between a user buffer and an allocation. */
#define NEURON_IOCTL_MEM_BUF_COPY \
	_IOWR(NEURON_IOCTL_BASE, 24, struct neuron_ioctl_mem_buf_copy *)

/* MEM_BUF_COPY with 64-bit size and offset. */
#define NEURON_IOCTL_MEM_BUF_COPY64 \
	_IOWR(NEURON_IOCTL_BASE, 24, struct neuron_ioctl_mem_buf_copy64)

/* Address of an allocation as the device sees it. */
#define NEURON_IOCTL_MEM_GET_PA \
	_IOR(NEURON_IOCTL_BASE, 25, struct neuron_ioctl_mem_get_pa *)

/* Address and mmap offset of an allocation. */
#define NEURON_IOCTL_MEM_GET_INFO \
	_IOR(NEURON_IOCTL_BASE, 26, struct neuron_ioctl_mem_get_info *)

/*
 * Copy a user buffer to a device address inside the windows an application may write,
 * through core 0.
 */
#define NEURON_IOCTL_PROGRAM_ENGINE \
	_IOWR(NEURON_IOCTL_BASE, 27, struct neuron_ioctl_program_engine *)

/* Fill part of an allocation with a byte. */
#define NEURON_IOCTL_MEMSET \
	_IOR(NEURON_IOCTL_BASE, 28, struct neuron_ioctl_memset *)

/* MEMSET with a 64-bit size. */
#define NEURON_IOCTL_MEMSET64 \
	_IOR(NEURON_IOCTL_BASE, 28, struct neuron_ioctl_memset64)

/* All properties of an allocation. */
#define NEURON_IOCTL_MEM_GET_EXTENDED_INFO \
	_IOR(NEURON_IOCTL_BASE, 29, struct neuron_ioctl_mem_get_extended_info *)

/* Accepted and ignored: engines are set up by the driver. */
#define NEURON_IOCTL_DMA_ENG_INIT \
	_IOR(NEURON_IOCTL_BASE, 30, struct neuron_ioctl_dma_eng_init *)

/* Disable, start or abort a DMA engine. */
#define NEURON_IOCTL_DMA_ENG_SET_STATE \
	_IOR(NEURON_IOCTL_BASE, 31, struct neuron_ioctl_dma_eng_set_state *)

/* State of a DMA engine. */
#define NEURON_IOCTL_DMA_ENG_GET_STATE \
	_IOWR(NEURON_IOCTL_BASE, 32, struct neuron_ioctl_dma_eng_get_state *)

/* Point a DMA queue at its rings; the caller becomes its owner. */
#define NEURON_IOCTL_DMA_QUEUE_INIT \
	_IOR(NEURON_IOCTL_BASE, 33, struct neuron_ioctl_dma_queue_init *)

/* DMA_QUEUE_INIT for several queues in one call, stopping at the first error. */
#define NEURON_IOCTL_DMA_QUEUE_INIT_BATCH \
	_IOR(NEURON_IOCTL_BASE, 133, struct neuron_ioctl_dma_queue_init_batch)

/* Give a DMA queue back. */
#define NEURON_IOCTL_DMA_QUEUE_RELEASE \
	_IOR(NEURON_IOCTL_BASE, 34, struct neuron_ioctl_dma_queue_release *)

/* Tell the engine that descriptors were added to the rings of a queue. */
#define NEURON_IOCTL_DMA_QUEUE_COPY_START \
	_IOR(NEURON_IOCTL_BASE, 35, struct neuron_ioctl_dma_queue_copy_start *)

/* Tell the driver how many descriptors of a queue were seen to be complete. */
#define NEURON_IOCTL_DMA_ACK_COMPLETED \
	_IOR(NEURON_IOCTL_BASE, 36, struct neuron_ioctl_dma_ack_completed *)

/* Ring registers of both sides of a queue. */
#define NEURON_IOCTL_DMA_QUEUE_GET_STATE \
	_IOWR(NEURON_IOCTL_BASE, 37, struct neuron_ioctl_dma_queue_get_state *)

/* Check descriptors and copy them into ring memory. */
#define NEURON_IOCTL_DMA_COPY_DESCRIPTORS \
	_IOR(NEURON_IOCTL_BASE, 38, struct neuron_ioctl_dma_copy_descriptors *)

/* DMA_COPY_DESCRIPTORS with a 64-bit offset. */
#define NEURON_IOCTL_DMA_COPY_DESCRIPTORS64 \
	_IOR(NEURON_IOCTL_BASE, 38, struct neuron_ioctl_dma_copy_descriptors64)

/* Read the descriptors of a queue back. */
#define NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT \
	_IOWR(NEURON_IOCTL_BASE, 39, struct neuron_ioctl_dma_descriptor_copyout *)

/* Number kept, not supported. */
#define NEURON_IOCTL_DMA_QUIESCE_QUEUES \
	_IOR(NEURON_IOCTL_BASE, 40, struct neuron_ioctl_dma_quiesce_queues *)

/* Add to a semaphore of a core. */
#define NEURON_IOCTL_SEMAPHORE_INCREMENT \
	_IOR(NEURON_IOCTL_BASE, 41, struct neuron_ioctl_semaphore *)

/* Subtract from a semaphore of a core. */
#define NEURON_IOCTL_SEMAPHORE_DECREMENT \
	_IOR(NEURON_IOCTL_BASE, 42, struct neuron_ioctl_semaphore *)

/* Read a semaphore of a core. */
#define NEURON_IOCTL_SEMAPHORE_READ \
	_IOWR(NEURON_IOCTL_BASE, 43, struct neuron_ioctl_semaphore *)

/* Set a semaphore of a core. */
#define NEURON_IOCTL_SEMAPHORE_WRITE \
	_IOR(NEURON_IOCTL_BASE, 44, struct neuron_ioctl_semaphore *)

/* Set an event of a core. */
#define NEURON_IOCTL_EVENT_SET \
	_IOR(NEURON_IOCTL_BASE, 45, struct neuron_ioctl_event *)

/* Read an event of a core. */
#define NEURON_IOCTL_EVENT_GET \
	_IOWR(NEURON_IOCTL_BASE, 46, struct neuron_ioctl_event *)

/* Notification queue of a core in host memory, made when it does not exist. */
#define NEURON_IOCTL_NOTIFICATIONS_INIT_V1 \
	_IOR(NEURON_IOCTL_BASE, 51, struct neuron_ioctl_notifications_init_v1 *)

/* Accepted and ignored: the queue ends with the process that made it. */
#define NEURON_IOCTL_NOTIFICATIONS_DESTROY_V1 \
	_IOR(NEURON_IOCTL_BASE, 52, struct neuron_ioctl_notifications_destroy *)

/*
 * Notification queue of a core or TopSP in host or device memory, made when it does not
 * exist.
 */
#define NEURON_IOCTL_NOTIFICATIONS_INIT_V2 \
	_IOR(NEURON_IOCTL_BASE, 53, struct neuron_ioctl_notifications_init_v2 *)

/* NOTIFICATIONS_INIT_V2 that can replace the memory of an existing queue. */
#define NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2 \
	_IOR(NEURON_IOCTL_BASE, 54, struct neuron_ioctl_notifications_init_with_realloc_v2 *)

/* Number kept, not supported. */
#define NEURON_IOCTL_NOTIFICATIONS_QUEUE_INFO \
	_IOR(NEURON_IOCTL_BASE, 58, struct neuron_ioctl_notifications_queue_info *)

/* Read device-side registers through the firmware. */
#define NEURON_IOCTL_READ_HW_COUNTERS \
	_IOR(NEURON_IOCTL_BASE, 61, struct neuron_ioctl_read_hw_counters *)

/* Find or make a datastore: a page range that an application shares its counters in. */
#define NEURON_IOCTL_ACQUIRE_NEURON_DS \
	_IOR(NEURON_IOCTL_BASE, 71, struct neuron_ioctl_neuron_ds_info *)

/* Give the caller's datastore back; its counters are added to the totals. */
#define NEURON_IOCTL_RELEASE_NEURON_DS \
	_IOR(NEURON_IOCTL_BASE, 72, struct neuron_ioctl_neuron_ds_info *)

/* Cooperative lock of a core: take a shared reference for the model that is loaded. */
#define NEURON_IOCTL_CRWL_READER_ENTER \
	_IOW(NEURON_IOCTL_BASE, 81, struct neuron_ioctl_crwl *)

/* Drop a shared reference. */
#define NEURON_IOCTL_CRWL_READER_EXIT \
	_IOW(NEURON_IOCTL_BASE, 82, struct neuron_ioctl_crwl *)

/* Take the lock of a core exclusively, to load a model. */
#define NEURON_IOCTL_CRWL_WRITER_ENTER \
	_IOW(NEURON_IOCTL_BASE, 83, struct neuron_ioctl_crwl *)

/* Turn the exclusive lock into one shared reference. */
#define NEURON_IOCTL_CRWL_WRITER_DOWNGRADE \
	_IOW(NEURON_IOCTL_BASE, 84, struct neuron_ioctl_crwl *)

/* Claim nc_count free cores in a row; 64-bit map. */
#define NEURON_IOCTL_CRWL_NC_RANGE_MARK \
	_IOW(NEURON_IOCTL_BASE, 85, struct neuron_ioctl_crwl_nc_map *)

/* Claim nc_count free cores in a row; 512-bit map. */
#define NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0 \
	_IOWR(NEURON_IOCTL_BASE, 85, struct neuron_ioctl_crwl_nc_map_ext)

/* Give claimed cores back; 64-bit map. */
#define NEURON_IOCTL_CRWL_NC_RANGE_UNMARK \
	_IOW(NEURON_IOCTL_BASE, 86, struct neuron_ioctl_crwl_nc_map *)

/* Give claimed cores back; 512-bit map. */
#define NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0 \
	_IOW(NEURON_IOCTL_BASE, 86, struct neuron_ioctl_crwl_nc_map_ext)

/*
 * Take part in the initialisation of a core: enter "started" (waits while another thread
 * is at it) or "completed".
 */
#define NEURON_IOCTL_CINIT_SET_STATE \
	_IOW(NEURON_IOCTL_BASE, 91, struct neuron_ioctl_cinit_set *)

/* Models started on a core since its last reset. */
#define NEURON_IOCTL_NC_MODEL_STARTED_COUNT \
	_IOW(NEURON_IOCTL_BASE, 92, struct neuron_ioctl_nc_model_started_count *)

/* Runtime interface versions that the driver serves. */
#define NEURON_IOCTL_COMPATIBLE_VERSION \
	_IOW(NEURON_IOCTL_BASE, 93, struct neuron_ioctl_compatible_version *)

/* Architecture and revision, for monitoring tools. */
#define NEURON_IOCTL_DEVICE_BASIC_INFO \
	_IOW(NEURON_IOCTL_BASE, 100, struct neuron_ioctl_device_basic_info *)

/* PCI address of the opened device. */
#define NEURON_IOCTL_DEVICE_BDF \
	_IOR(NEURON_IOCTL_BASE, 101, struct neuron_ioctl_device_bdf *)

/* Reset cores (or the device) on behalf of the calling process. */
#define NEURON_IOCTL_NC_RESET \
	_IOR(NEURON_IOCTL_BASE, 103, struct neuron_ioctl_device_reset *)

/* Wait for a reset that was requested with NC_RESET. */
#define NEURON_IOCTL_NC_RESET_READY \
	_IOR(NEURON_IOCTL_BASE, 104, struct neuron_ioctl_device_ready *)

/* PROGRAM_ENGINE through a chosen core. */
#define NEURON_IOCTL_PROGRAM_ENGINE_NC \
	_IOWR(NEURON_IOCTL_BASE, 105, struct neuron_ioctl_program_engine_nc *)

/* PROGRAM_ENGINE_NC with 64-bit size and offset. */
#define NEURON_IOCTL_PROGRAM_ENGINE_NC64 \
	_IOWR(NEURON_IOCTL_BASE, 105, struct neuron_ioctl_program_engine_nc64)

/* PCI address of a device, given relative to the opened one. */
#define NEURON_IOCTL_DEVICE_BDF_EXT \
	_IOR(NEURON_IOCTL_BASE, 106, struct neuron_ioctl_device_bdf_ext *)

/* Export mapped device memory as a dma-buf. */
#define NEURON_IOCTL_DMABUF_FD \
	_IOR(NEURON_IOCTL_BASE, 107, struct neuron_ioctl_dmabuf_fd *)

/* Start a copy and wait for an earlier one. */
#define NEURON_IOCTL_MEM_COPY_ASYNC \
	_IOWR(NEURON_IOCTL_BASE, 108, struct neuron_ioctl_mem_copy_async)

/* MEM_COPY_ASYNC with 64-bit size and offsets. */
#define NEURON_IOCTL_MEM_COPY_ASYNC64 \
	_IOWR(NEURON_IOCTL_BASE, 108, struct neuron_ioctl_mem_copy_async64)

/* Wait for a copy started with MEM_COPY_ASYNC. */
#define NEURON_IOCTL_MEM_COPY_ASYNC_WAIT \
	_IOW(NEURON_IOCTL_BASE, 109, struct neuron_ioctl_mem_copy_async_wait)

/* Features of the driver. */
#define NEURON_IOCTL_DRIVER_INFO_GET \
	_IOR(NEURON_IOCTL_BASE, 110, struct neuron_ioctl_device_driver_info)

/* Number kept, not supported. */
#define NEURON_IOCTL_DRIVER_INFO_SET \
	_IOW(NEURON_IOCTL_BASE, 110, struct neuron_ioctl_device_driver_info)

/* Find the allocation that contains a device address. */
#define NEURON_IOCTL_MEM_MC_GET_INFO \
	_IOWR(NEURON_IOCTL_BASE, 111, struct neuron_ioctl_mem_get_mc_mmap_info)

/* MEM_MC_GET_INFO that also returns the handle. */
#define NEURON_IOCTL_MEM_MC_GET_INFO_V2 \
	_IOWR(NEURON_IOCTL_BASE, 111, struct neuron_ioctl_mem_get_mc_mmap_info_v2)

/* Offset and length for mmap of a block of the device (semaphores, state buffer, ...). */
#define NEURON_IOCTL_RESOURCE_MMAP_INFO \
	_IOWR(NEURON_IOCTL_BASE, 112, struct neuron_ioctl_resource_mmap_info)

/* Write a line to the kernel log. */
#define NEURON_IOCTL_PRINTK \
	_IOW(NEURON_IOCTL_BASE, 113, struct neuron_ioctl_printk)

/* Number of the opened device on this host. */
#define NEURON_IOCTL_HOST_DEVICE_ID \
	_IOR(NEURON_IOCTL_BASE, 114, struct neuron_ioctl_host_device_id)

/* Routing ids of all devices of this host. */
#define NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP \
	_IOWR(NEURON_IOCTL_BASE, 115, struct neuron_ioctl_host_device_id_to_rid_map)

/* List the allocations in one HBM in address order. */
#define NEURON_IOCTL_DUMP_MEM_CHUNKS \
	_IOR(NEURON_IOCTL_BASE, 116, struct neuron_ioctl_dump_mem_chunks *)

/* Write the state of the process that owns a core to the kernel log. */
#define NEURON_IOCTL_NC_PID_STATE_DUMP \
	_IOWR(NEURON_IOCTL_BASE, 117, struct neuron_ioctl_nc_pid_state_dump)

/* Start to overwrite the unused part of an HBM with a pattern. */
#define NEURON_IOCTL_HBM_SCRUB_START \
	_IOWR(NEURON_IOCTL_BASE, 118, struct neuron_ioctl_hbm_scrub_start)

/* Wait for HBM_SCRUB_START. (The structure happens to have the size of a pointer.) */
#define NEURON_IOCTL_HBM_SCRUB_WAIT \
	_IOWR(NEURON_IOCTL_BASE, 119, struct neuron_ioctl_hbm_scrub_wait)

/* Device and core that each logical core number stands for. */
#define NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP \
	_IOWR(NEURON_IOCTL_BASE, 120, struct neuron_ioctl_get_logical_to_physical_nc_map)

/* Pod (group of linked hosts) that this host is part of. */
#define NEURON_IOCTL_POD_INFO \
	_IOWR(NEURON_IOCTL_BASE, 121, struct neuron_ioctl_pod_info)

/* State of the election of the pod. */
#define NEURON_IOCTL_POD_STATUS \
	_IOWR(NEURON_IOCTL_BASE, 122, struct neuron_ioctl_pod_status)

/* POD_STATUS with operating modes. */
#define NEURON_IOCTL_POD_STATUS_V2 \
	_IOWR(NEURON_IOCTL_BASE, 122, struct neuron_ioctl_pod_status_v2)

/* Control the election of the pod. */
#define NEURON_IOCTL_POD_CTRL \
	_IOWR(NEURON_IOCTL_BASE, 123, struct neuron_ioctl_pod_ctrl)

/* POD_CTRL with an operating mode. */
#define NEURON_IOCTL_POD_CTRL_V2 \
	_IOWR(NEURON_IOCTL_BASE, 123, struct neuron_ioctl_pod_ctrl_v2)

/*
 * MEM_BUF_COPY64 that may transfer directly between the pages of the buffer and the memory.
 */
#define NEURON_IOCTL_MEM_BUF_ZEROCOPY64 \
	_IOWR(NEURON_IOCTL_BASE, 124, struct neuron_ioctl_mem_buf_copy64)

/** One more than the numbers handed out in sequence. DMA_QUEUE_INIT_BATCH (133) lies beyond. */
#define NEURON_IOCTL_MAX 125

#endif /* NEURON_IOCTL_H */
