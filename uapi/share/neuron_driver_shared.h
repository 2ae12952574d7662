/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Neuron device interface: values and layouts that are not the argument of one
 * command alone, among them the datastore in which applications share their
 * counters. Fixed by existing programs; tests/abi checks every one.
 */
#ifndef NEURON_DRIVER_SHARED_H
#define NEURON_DRIVER_SHARED_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <stddef.h>
#endif

/*
 * Member of unknown length at the end of a structure: standard in C, an extension of all
 * compilers in C++, where -pedantic must not warn of it.
 */
#if defined(__cplusplus) && defined(__clang__)
#define NEURON_FLEX_ARRAY(type, name)				\
	_Pragma("clang diagnostic push")			\
	_Pragma("clang diagnostic ignored \"-Wpedantic\"")	\
	type name[];						\
	_Pragma("clang diagnostic pop")
#elif defined(__cplusplus)
#define NEURON_FLEX_ARRAY(type, name) __extension__ type name[];
#else
#define NEURON_FLEX_ARRAY(type, name) type name[];
#endif

/** nc_map of NC_RESET that stands for the whole device. */
#define NEURON_NC_MAP_DEVICE 0xffffffffU

/** Most processes that can be attached to one device at a time. */
#define NEURON_MAX_PROCESS_PER_DEVICE 16

/**
 * enum neuron_driver_feature_flag - bits of feature_flags1 of DRIVER_INFO_GET
 * @NEURON_DRIVER_FEATURE_DMABUF: DMABUF_FD
 * @NEURON_DRIVER_FEATURE_ASYNC_DMA: MEM_COPY_ASYNC and MEM_COPY_ASYNC_WAIT
 * @NEURON_DRIVER_FEATURE_BATCH_DMAQ_INIT: DMA_QUEUE_INIT_BATCH
 * @NEURON_DRIVER_FEATURE_BIG_CORE_MAPS: CRWL_NC_RANGE_*_EXT0
 * @NEURON_DRIVER_FEATURE_MEM_ALLOC_TYPE: MEM_ALLOC_V2MT
 * @NEURON_DRIVER_FEATURE_HBM_SCRUB: HBM_SCRUB_START and HBM_SCRUB_WAIT
 * @NEURON_DRIVER_FEATURE_MEM_ALLOC64: MEM_ALLOC_V2MT64 and the other ...64
 * @NEURON_DRIVER_FEATURE_CONTIGUOUS_SCRATCHPAD: the contiguous scratchpad
 *	category
 */
enum neuron_driver_feature_flag {
	NEURON_DRIVER_FEATURE_DMABUF = 1 << 0,
	NEURON_DRIVER_FEATURE_ASYNC_DMA = 1 << 1,
	NEURON_DRIVER_FEATURE_BATCH_DMAQ_INIT = 1 << 2,
	NEURON_DRIVER_FEATURE_BIG_CORE_MAPS = 1 << 3,
	NEURON_DRIVER_FEATURE_MEM_ALLOC_TYPE = 1 << 4,
	NEURON_DRIVER_FEATURE_HBM_SCRUB = 1 << 5,
	NEURON_DRIVER_FEATURE_MEM_ALLOC64 = 1 << 6,
	NEURON_DRIVER_FEATURE_CONTIGUOUS_SCRATCHPAD = 1 << 7,
};

/* How the hosts of a pod are linked. */
enum {
	NEURON_POD_TYPE_NONE = 0,	/* not in a pod */
	NEURON_POD_TYPE_P2P = 1,	/* host to host */
	NEURON_POD_TYPE_SWITCH = 2,	/* through a switch */
};

/* State of the election of a pod. */
enum {
	NEURON_POD_E_STATE_NOT_STARTED = 0,	/* no election was requested */
	NEURON_POD_E_STATE_IN_PROGRESS = 1,	/* running */
	NEURON_POD_E_STATE_ULTRASERVER = 2,	/* this host is a node of a pod */
	NEURON_POD_E_STATE_FAILED = 3,		/* no agreement */
	NEURON_POD_E_STATE_SINGLE_NODE = 4,	/* this host stands alone */
};

/**
 * enum neuron_pod_ctrl_req - what POD_CTRL is asked to do
 * @NEURON_NPE_POD_CTRL_REQ_POD: elect
 * @NEURON_NPE_POD_CTRL_REQ_SINGLE_NODE: stand alone
 * @NEURON_NPE_POD_CTRL_REQ_KILL: stop a running election
 * @NEURON_NPE_POD_CTRL_SET_MODE: change the operating mode
 */
enum neuron_pod_ctrl_req {
	NEURON_NPE_POD_CTRL_REQ_POD = 0,
	NEURON_NPE_POD_CTRL_REQ_SINGLE_NODE = 1,
	NEURON_NPE_POD_CTRL_REQ_KILL = 2,
	NEURON_NPE_POD_CTRL_SET_MODE = 3,
};

/**
 * enum neuron_ultraserver_mode - operating mode of a pod
 * @NEURON_ULTRASERVER_MODE_UNSET: none chosen
 * @NEURON_ULTRASERVER_MODE_X4: four hosts
 * @NEURON_ULTRASERVER_MODE_X2H: two hosts, horizontal links
 * @NEURON_ULTRASERVER_MODE_X2V: two hosts, vertical links
 * @NEURON_ULTRASERVER_MODE_X1: one host
 */
enum neuron_ultraserver_mode {
	NEURON_ULTRASERVER_MODE_UNSET = 0,
	NEURON_ULTRASERVER_MODE_X4 = 1,
	NEURON_ULTRASERVER_MODE_X2H = 2,
	NEURON_ULTRASERVER_MODE_X2V = 3,
	NEURON_ULTRASERVER_MODE_X1 = 4,
};

/**
 * enum neuron_dma_queue_type - which ring of a DMA queue
 * @NEURON_DMA_QUEUE_TYPE_TX: source side, read by the engine from memory
 * @NEURON_DMA_QUEUE_TYPE_RX: destination side, written by the engine
 * @NEURON_DMA_QUEUE_TYPE_COMPLETION: completion ring
 */
enum neuron_dma_queue_type {
	NEURON_DMA_QUEUE_TYPE_TX = 0,
	NEURON_DMA_QUEUE_TYPE_RX = 1,
	NEURON_DMA_QUEUE_TYPE_COMPLETION = 2,
};

/**
 * enum neuron_cinit_state - initialisation of a core
 * @NEURON_CINIT_STATE_STARTED: a process is initialising it
 * @NEURON_CINIT_STATE_COMPLETED: done
 * @NEURON_CINIT_STATE_INVALID: no process has begun since the last reset
 */
enum neuron_cinit_state {
	NEURON_CINIT_STATE_STARTED = 1,
	NEURON_CINIT_STATE_COMPLETED = 2,
	NEURON_CINIT_STATE_INVALID = 3,
};

/**
 * enum neuron_dma_h2t_ctx_handle_type - tokens of MEM_COPY_ASYNC
 * @NEURON_DMA_H2T_CTX_HANDLE_NONE: no earlier transfer
 * @NEURON_DMA_H2T_CTX_HANDLE_SYNC: synchronous
 * @NEURON_DMA_H2T_CTX_HANDLE_ASYNC1: first transfer in flight
 * @NEURON_DMA_H2T_CTX_HANDLE_ASYNC2: second transfer in flight
 * @NEURON_DMA_H2T_CTX_HANDLE_CNT: number of tokens
 */
enum neuron_dma_h2t_ctx_handle_type {
	NEURON_DMA_H2T_CTX_HANDLE_NONE = -1,
	NEURON_DMA_H2T_CTX_HANDLE_SYNC = 0,
	NEURON_DMA_H2T_CTX_HANDLE_ASYNC1 = 1,
	NEURON_DMA_H2T_CTX_HANDLE_ASYNC2 = 2,
	NEURON_DMA_H2T_CTX_HANDLE_CNT = 3,
};

/**
 * enum NQ_DEVICE_TYPE - what a notification queue belongs to
 * @NQ_DEVICE_TYPE_NEURON_CORE: a core
 * @NQ_DEVICE_TYPE_TOPSP: a sequencer for collectives
 * @NQ_DEVICE_TYPE_MAX: number of kinds
 */
enum NQ_DEVICE_TYPE {
	NQ_DEVICE_TYPE_NEURON_CORE = 0,
	NQ_DEVICE_TYPE_TOPSP = 1,
	NQ_DEVICE_TYPE_MAX = 2,
};

/**
 * enum NQ_TYPE - what a notification queue reports
 * @NQ_TYPE_TRACE: begin and end of instructions
 * @NQ_TYPE_NOTIFY: reports requested by instructions
 * @NQ_TYPE_EVENT: events
 * @NQ_TYPE_ERROR: errors
 * @NQ_TYPE_TRACE_DMA: begin and end of transfers
 * @NQ_TYPE_THROTTLE: throttling
 * @NQ_TYPE_MAX: number of kinds
 */
enum NQ_TYPE {
	NQ_TYPE_TRACE = 0,
	NQ_TYPE_NOTIFY = 1,
	NQ_TYPE_EVENT = 2,
	NQ_TYPE_ERROR = 3,
	NQ_TYPE_TRACE_DMA = 4,
	NQ_TYPE_THROTTLE = 5,
	NQ_TYPE_MAX = 6,
};

/**
 * enum neuron_dm_block_type - blocks of a device that can be mapped
 * @NEURON_DM_BLOCK_INVALID: none
 * @NEURON_DM_BLOCK_TPB: a core
 * @NEURON_DM_BLOCK_TOPSP: a sequencer for collectives
 * @NEURON_DM_BLOCK_HBM: a memory stack
 */
enum neuron_dm_block_type {
	NEURON_DM_BLOCK_INVALID = -1,
	NEURON_DM_BLOCK_TPB = 0,
	NEURON_DM_BLOCK_TOPSP = 1,
	NEURON_DM_BLOCK_HBM = 2,
};

/**
 * enum neuron_dm_resource_type - part of a block that can be mapped
 * @NEURON_DM_RESOURCE_SEMAPHORE: semaphores
 * @NEURON_DM_RESOURCE_ALL: the whole block
 * @NEURON_DM_RESOURCE_SBUF: state buffer
 * @NEURON_DM_RESOURCE_DMEM: device memory
 */
enum neuron_dm_resource_type {
	NEURON_DM_RESOURCE_SEMAPHORE = 0,
	NEURON_DM_RESOURCE_ALL = 1,
	NEURON_DM_RESOURCE_SBUF = 2,
	NEURON_DM_RESOURCE_DMEM = 3,
};

/**
 * struct neuron_dma_eng_state - state of one DMA engine
 * @revision_id: [out] revision of the engine
 * @max_queues: [out] queues the engine can have
 * @num_queues: [out] queues the engine has
 * @tx_state: [out] source side: 0 disabled, 1 idle, 2 normal, 3 abort, 4 reset
 * @rx_state: [out] destination side, same values
 */
struct neuron_dma_eng_state {
	__u32 revision_id;
	__u32 max_queues;
	__u32 num_queues;
	__u32 tx_state;
	__u32 rx_state;
};

/**
 * struct neuron_dma_queue_state - state of one direction of a DMA queue
 * @hw_status: [out] status register
 * @sw_status: [out] 1 disabled, 2 enabled, 3 aborted
 * @base_addr: [out] device address of the ring
 * @length: [out] descriptors in the ring
 * @head_pointer: [out] index the engine fetches next
 * @tail_pointer: [out] index the next descriptor is added at
 * @completion_base_addr: [out] device address of the completion ring
 * @completion_head: [out] index of the completion ring
 */
struct neuron_dma_queue_state {
	__u32 hw_status;
	__u32 sw_status;
	__u64 base_addr;
	__u32 length;
	__u32 head_pointer;
	__u32 tail_pointer;
	__u64 completion_base_addr;
	__u32 completion_head;
};

/**
 * struct neuron_uuid - identity of a loaded model
 * @value: [in,out] 32 opaque bytes
 */
struct neuron_uuid {
	__u8 value[32];
};

/** apps_info_flags of DEVICE_GET_ALL_APPS_INFO: report core locks. */
#define APP_INFO_PID_NC_LOCK_INFO (1)
/** apps_info_flags of DEVICE_GET_ALL_APPS_INFO: report memory. */
#define APP_INFO_PID_MEM_USAGE (1 << 1)
/** apps_info_flags of DEVICE_GET_ALL_APPS_INFO: report everything. */
#define APP_INFO_ALL (0xF)

/** Cores that struct neuron_app_info has room for. */
#define APP_INFO_MAX_MODELS_PER_DEVICE 4

/**
 * struct neuron_app_info - one process attached to a device
 * @pid: [out] process (tgid)
 * @nc_lock_map: [out] bit per core, set when the process holds its lock
 * @uuid_data: [out] model on each core
 * @host_mem_size: [out] bytes of host memory it holds
 * @device_mem_size: [out] bytes of device memory it holds
 *
 * Only cores 0 to 3 have a place here. Entries of uuid_data whose bit in
 * nc_lock_map is clear are zero.
 */
struct neuron_app_info {
	__s32 pid;
	__u8 nc_lock_map;
	struct neuron_uuid uuid_data[APP_INFO_MAX_MODELS_PER_DEVICE];
	size_t host_mem_size;
	size_t device_mem_size;
};

/**
 * enum mem_alloc_category_t - what memory is for
 *
 * Each category has its own counters in sysfs: those of host memory once per
 * device, those of device memory once per core.
 *
 * @NEURON_MEMALLOC_TYPE_UNKNOWN_HOST: host_mem/uncategorized
 * @NEURON_MEMALLOC_TYPE_CODE_HOST: host_mem/dma_buffers
 * @NEURON_MEMALLOC_TYPE_TENSORS_HOST: host_mem/tensors
 * @NEURON_MEMALLOC_TYPE_CONSTANTS_HOST: host_mem/constants
 * @NEURON_MEMALLOC_TYPE_MISC_HOST: host_mem/application_memory
 * @NEURON_MEMALLOC_TYPE_NCDEV_HOST: host_mem/driver_memory
 * @NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST: host_mem/notifications
 * @NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE: device_mem/uncategorized
 * @NEURON_MEMALLOC_TYPE_CODE_DEVICE: device_mem/model_code
 * @NEURON_MEMALLOC_TYPE_TENSORS_DEVICE: device_mem/tensors
 * @NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE: device_mem/constants
 * @NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE: device_mem/model_shared_scratchpad
 * @NEURON_MEMALLOC_TYPE_MISC_DEVICE: device_mem/runtime_memory
 * @NEURON_MEMALLOC_TYPE_NCDEV_DEVICE: device_mem/driver_memory
 * @NEURON_MEMALLOC_TYPE_COLLECTIVES_DEVICE: device_mem/collectives
 * @NEURON_MEMALLOC_TYPE_SCRATCHPAD_NONSHARED_DEVICE:
 *	device_mem/nonshared_scratchpad
 * @NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE: device_mem/notifications
 * @NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST: host_mem/dma_rings
 * @NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE: device_mem/dma_rings
 * @NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE:
 *	device_mem/model_shared_scratchpad, like SCRATCHPAD_DEVICE
 * @NEURON_MEMALLOC_TYPE_MAX: number of categories
 */
typedef enum mem_alloc_category_t {
	NEURON_MEMALLOC_TYPE_UNKNOWN_HOST = 0,
	NEURON_MEMALLOC_TYPE_CODE_HOST = 1,
	NEURON_MEMALLOC_TYPE_TENSORS_HOST = 2,
	NEURON_MEMALLOC_TYPE_CONSTANTS_HOST = 3,
	NEURON_MEMALLOC_TYPE_MISC_HOST = 4,
	NEURON_MEMALLOC_TYPE_NCDEV_HOST = 5,
	NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST = 6,
	NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE = 7,
	NEURON_MEMALLOC_TYPE_CODE_DEVICE = 8,
	NEURON_MEMALLOC_TYPE_TENSORS_DEVICE = 9,
	NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE = 10,
	NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE = 11,
	NEURON_MEMALLOC_TYPE_MISC_DEVICE = 12,
	NEURON_MEMALLOC_TYPE_NCDEV_DEVICE = 13,
	NEURON_MEMALLOC_TYPE_COLLECTIVES_DEVICE = 14,
	NEURON_MEMALLOC_TYPE_SCRATCHPAD_NONSHARED_DEVICE = 15,
	NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE = 16,
	NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST = 17,
	NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE = 18,
	NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE = 19,
	NEURON_MEMALLOC_TYPE_MAX = 20,
} mem_alloc_category_t;

/**
 * struct neuron_ioctl_mem_chunk_info - one allocation in device memory
 * @pa: [out] first device address
 * @size: [out] bytes
 * @mem_type: [out] enum mem_alloc_category_t
 */
struct neuron_ioctl_mem_chunk_info {
	__u64 pa;
	__u64 size;
	__u32 mem_type;
};

/** Most entries of struct neuron_ioctl_nc_map. */
#define NEURON_NC_MAP_MAX_ENTRIES 128

/**
 * enum neuron_ioctl_nc_mapping_type - layout of struct neuron_ioctl_nc_map
 * @NEURON_IOCTL_NC_MAPPING_TYPE_V0: the only one
 */
enum neuron_ioctl_nc_mapping_type {
	NEURON_IOCTL_NC_MAPPING_TYPE_V0 = 0,
};

/**
 * struct neuron_ioctl_nc_map_entry - where one logical core is
 * @device_id: [out] number of the device
 * @device_nc_idx: [out] core, counted from 0 on that device
 */
struct neuron_ioctl_nc_map_entry {
	__u32 device_id;
	__u32 device_nc_idx;
};

/*
 * struct neuron_ioctl_nc_map - table of logical cores
 * @num_entries: [out] number of entries
 *
 * The entries follow as mappings.
 */
struct neuron_ioctl_nc_map {
	__u32 num_entries;
	NEURON_FLEX_ARRAY(struct neuron_ioctl_nc_map_entry, mappings)
};

/*
 * Datastore: 262144 bytes that an application maps (ACQUIRE_NEURON_DS) to
 * publish its counters. Every counter is a __u64.
 *
 *	offset	content
 *	0	struct nds_header
 *	8	31 counters of the device
 *	256	4 cores with 31 counters each (NDS_NC_COUNTER_*)
 *	55936	the same 4 cores with 64 more (NDS_EXT_NC_COUNTER_*)
 *	57984	12 more cores (number 4 and up) with 95 counters and one pad each
 *	67200	end of the part in use
 */

/** No datastore. */
#define NDS_INVALID_ID (-1)

/* Counters of the device. */
enum {
	NDS_ND_COUNTER_RUNTIME_VERSION = 0,		/* nmetric_version_t */
	NDS_ND_COUNTER_FRAMEWORK_VERSION = 1,		/* nmetric_version_t */
	NDS_ND_COUNTER_FAL_VERSION = 2,			/* nmetric_version_t */
	NDS_ND_COUNTER_FEATURE_BITMAP = 3,		/* features in use */
	NDS_ND_COUNTER_MIN_NEFF_VERSION = 4,		/* oldest model loaded */
	NDS_ND_COUNTER_MAX_NEFF_VERSION = 5,		/* newest model loaded */
	NDS_ND_COUNTER_MEM_USAGE_CODE_HOST = 6,		/* bytes */
	NDS_ND_COUNTER_MEM_USAGE_TENSORS_HOST = 7,	/* bytes */
	NDS_ND_COUNTER_MEM_USAGE_CONSTANTS_HOST = 8,	/* bytes */
	NDS_ND_COUNTER_MEM_USAGE_SCRATCHPAD_HOST = 9,	/* bytes */
	NDS_ND_COUNTER_MEM_USAGE_MISC_HOST = 10,	/* bytes */
	NDS_ND_COUNTER_DYNAMIC_SYSFS_METRIC_BITMAP = 11, /* optional sysfs files that are wanted */
	NDS_ND_COUNTER_DEVICE_CLUSTER_ID = 12,		/* cluster the device works in */
	NDS_ND_COUNTER_COUNT = 31,			/* number, with the reserved ones */
};

/** Reserved counters of the device: 13 + 18 = NDS_ND_COUNTER_COUNT. */
#define NDS_ND_COUNTER_RESERVED 18

/* Counters of a core. */
enum {
	NDS_NC_COUNTER_TIME_IN_USE = 0,			/* microseconds */
	NDS_NC_COUNTER_INFER_COMPLETED = 1,		/* executions that succeeded */
	NDS_NC_COUNTER_INFER_COMPLETED_WITH_ERR = 2,	/* finished, with an error */
	NDS_NC_COUNTER_INFER_COMPLETED_WITH_NUM_ERR = 3, /* finished, with a numerical error */
	NDS_NC_COUNTER_INFER_TIMED_OUT = 4,		/* did not finish */
	NDS_NC_COUNTER_INFER_INCORRECT_INPUT = 5,	/* input refused */
	NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE = 6,	/* queue full */
	NDS_NC_COUNTER_ERR_GENERIC = 7,			/* errors, by kind */
	NDS_NC_COUNTER_ERR_NUMERICAL = 8,
	NDS_NC_COUNTER_ERR_MODEL = 9,
	NDS_NC_COUNTER_ERR_TRANSIENT = 10,
	NDS_NC_COUNTER_ERR_HW = 11,
	NDS_NC_COUNTER_ERR_RT = 12,
	NDS_NC_COUNTER_LATENCY_DEVICE = 13,		/* of the last execution, device part */
	NDS_NC_COUNTER_LATENCY_TOTAL = 14,		/* of the last execution */
	NDS_NC_COUNTER_NC_TIME = 15,			/* time on the core */
	NDS_NC_COUNTER_GENERIC_FAIL = 16,		/* calls that failed, by kind */
	NDS_NC_COUNTER_ERR_RESOURCE = 17,
	NDS_NC_COUNTER_ERR_RESOURCE_NC = 18,
	NDS_NC_COUNTER_ERR_INVALID = 19,
	NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION = 20,
	NDS_NC_COUNTER_CC_TIME = 21,			/* time in collectives */
	NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE = 22,	/* bytes, by kind */
	NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE = 23,
	NDS_NC_COUNTER_MEM_USAGE_CONSTANTS_DEVICE = 24,
	NDS_NC_COUNTER_MEM_USAGE_SCRATCHPAD_DEVICE = 25,
	NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE = 26,
	NDS_NC_COUNTER_MODEL_LOAD_COUNT = 27,		/* models loaded */
	NDS_NC_COUNTER_INFERENCE_COUNT = 28,		/* executions */
	NDS_NC_COUNTER_MAC_COUNT = 29,			/* multiply-accumulate operations */
	NDS_NC_COUNTER_OOB = 30,			/* accesses out of bounds */
	NDS_NC_COUNTER_COUNT = 31,			/* number of them */
};

/** Reserved counters of a core. */
#define NDS_NC_COUNTER_RESERVED 0

/** Cores in the first part of the datastore. */
#define NDS_MAX_NEURONCORE_COUNT 4

/** Further cores, in the second part. */
#define NDS_EXT_MAX_NEURONCORE_COUNT 12

/* Further counters of a core; numbering continues after the first ones. */
enum {
	NDS_EXT_NC_COUNTER_HW_ERR_COLLECTIVES = 31,	/* hardware errors, by kind */
	NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE = 32,
	NDS_EXT_NC_COUNTER_HW_ERR_NC_UE = 33,
	NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT = 34,
	NDS_EXT_NC_COUNTER_ERR_SW_NQ_OVERFLOW = 35,	/* errors of the program, by kind */
	NDS_EXT_NC_COUNTER_ERR_SW_SEMAPHORE_ERROR = 36,
	NDS_EXT_NC_COUNTER_ERR_SW_EVENT_ERROR = 37,
	NDS_EXT_NC_COUNTER_ERR_SW_PSUM_COLLISION = 38,
	NDS_EXT_NC_COUNTER_ERR_SW_SEQUENCER_FATAL = 39,
	NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE = 40,
	NDS_EXT_NC_COUNTER_LAST = 41,			/* one past the last */
	NDS_EXT_NC_COUNTER_COUNT = 64,			/* number, with the reserved ones */
};

/** Reserved further counters: 41 - 31 + 54 = NDS_EXT_NC_COUNTER_COUNT. */
#define NDS_EXT_NC_COUNTER_ADDED_RESERVED 54

/** All counters of a core: NDS_NC_COUNTER_COUNT + NDS_EXT_NC_COUNTER_COUNT. */
#define NDS_TOTAL_NC_COUNTER_COUNT 95

/**
 * typedef nmetric_version_t - a version number in a counter
 * @all: the 64 bits as one number
 */
typedef union nmetric_version {
	__u64 all;
} nmetric_version_t;

/**
 * struct nds_header - start of a datastore
 * @signature: [out] "nds0", written by the application
 * @version: [out] layout version, written by the application
 */
struct nds_header {
	char signature[4];
	int version;
};
/** Name that existing programs use for struct nds_header. */
typedef struct nds_header nds_header_t;

/* Offsets and sizes in bytes, counts in counters of 8 bytes. */
#define NDS_HEADER_START 0
#define NDS_HEADER_SIZE 8

#define NDS_ND_COUNTERS_START (NDS_HEADER_START + NDS_HEADER_SIZE)
#define NDS_ND_COUNTERS_SIZE 248	/* NDS_ND_COUNTER_COUNT * 8 */
/** Counters of the device; base is the start of the datastore. */
#define NDS_ND_COUNTERS(base) ((__u64 *)((char *)(base) + NDS_ND_COUNTERS_START))

#define NDS_NEURONCORE_COUNTERS_COUNT 31	/* NDS_NC_COUNTER_COUNT */
#define NDS_NEURONCORE_COUNTERS_START (NDS_ND_COUNTERS_START + NDS_ND_COUNTERS_SIZE)
#define NDS_NEURONCORE_COUNTERS_SIZE \
	(NDS_NEURONCORE_COUNTERS_COUNT * NDS_MAX_NEURONCORE_COUNT * 8)
/** First counters of core nc_index, less than NDS_MAX_NEURONCORE_COUNT. */
#define NDS_NEURONCORE_COUNTERS(base, nc_index) \
	((__u64 *)((char *)(base) + NDS_NEURONCORE_COUNTERS_START) + \
	 (nc_index) * NDS_NEURONCORE_COUNTERS_COUNT)

/*
 * An earlier layout put the second part at another place. The present one starts behind
 * it, so that old and new programs cannot confuse the two.
 */
#define NDS_EXT_NC_COUNTER_COUNT_OLD 65
#define NDS_TOTAL_NC_COUNTER_COUNT_OLD \
	(NDS_NEURONCORE_COUNTERS_COUNT + NDS_EXT_NC_COUNTER_COUNT_OLD)
#define NDS_EXT_NEURONCORE_COUNTERS_SIZE_OLD \
	(NDS_EXT_NC_COUNTER_COUNT_OLD * NDS_MAX_NEURONCORE_COUNT * 8)
#define NDS_EXT_NEURONCORE_NC_DATA_SIZE_OLD \
	(NDS_TOTAL_NC_COUNTER_COUNT_OLD * NDS_EXT_MAX_NEURONCORE_COUNT * 8)
#define NDS_EXT_SECTION_SIZE_OLD \
	(NDS_EXT_NEURONCORE_COUNTERS_SIZE_OLD + NDS_EXT_NEURONCORE_NC_DATA_SIZE_OLD)
#define NDS_EXT_OFFSET_OLD 44588

#define NDS_EXT_ALIGNMENT 64
#define NDS_EXT_OFFSET \
	((NDS_EXT_OFFSET_OLD + NDS_EXT_SECTION_SIZE_OLD + NDS_EXT_ALIGNMENT - 1) / \
	 NDS_EXT_ALIGNMENT * NDS_EXT_ALIGNMENT)

#define NDS_EXT_NEURONCORE_COUNTERS_COUNT 64	/* NDS_EXT_NC_COUNTER_COUNT */
#define NDS_EXT_NEURONCORE_COUNTERS_START NDS_EXT_OFFSET
#define NDS_EXT_NEURONCORE_COUNTERS_SIZE \
	(NDS_EXT_NEURONCORE_COUNTERS_COUNT * NDS_MAX_NEURONCORE_COUNT * 8)
/** Further counters of core nc_index, less than NDS_MAX_NEURONCORE_COUNT. */
#define NDS_EXT_NEURONCORE_COUNTERS(base, nc_index) \
	((__u64 *)((char *)(base) + NDS_EXT_NEURONCORE_COUNTERS_START) + \
	 (nc_index) * NDS_EXT_NEURONCORE_COUNTERS_COUNT)

#define NDS_EXT_NEURONCORE_NC_DATA_PADDING 1
#define NDS_EXT_NEURONCORE_NC_DATA_COUNT \
	(NDS_TOTAL_NC_COUNTER_COUNT + NDS_EXT_NEURONCORE_NC_DATA_PADDING)
#define NDS_EXT_NEURONCORE_NC_DATA_START \
	(NDS_EXT_NEURONCORE_COUNTERS_START + NDS_EXT_NEURONCORE_COUNTERS_SIZE)
#define NDS_EXT_NEURONCORE_NC_DATA_SIZE \
	(NDS_EXT_NEURONCORE_NC_DATA_COUNT * NDS_EXT_MAX_NEURONCORE_COUNT * 8)
/** All counters of core NDS_MAX_NEURONCORE_COUNT + nc_index. */
#define NDS_EXT_NEURONCORE_NC_DATA(base, nc_index) \
	((__u64 *)((char *)(base) + NDS_EXT_NEURONCORE_NC_DATA_START) + \
	 (nc_index) * NDS_EXT_NEURONCORE_NC_DATA_COUNT)

#endif /* NEURON_DRIVER_SHARED_H */
