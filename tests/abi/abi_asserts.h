/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Made from tests/abi/abi-values.txt by tests/abi/abi.py; "make -C tests/abi
 * update" makes it anew. Include after uapi/neuron_ioctl.h, in C11 or C++11, in
 * user space or in the kernel.
 */
#ifndef NEURON_ABI_ASSERTS_H
#define NEURON_ABI_ASSERTS_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

#ifdef __cplusplus
#define NEURON_ABI(cond, what) static_assert(cond, what)
#define NEURON_ABI_ALIGN(type) alignof(type)
#define NEURON_ABI_TYPE(type, field, expect)
#else
#define NEURON_ABI(cond, what) _Static_assert(cond, what)
#define NEURON_ABI_ALIGN(type) _Alignof(type)
#define NEURON_ABI_TYPE(type, field, expect) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((type *)0)->field), expect), \
		       #type "." #field " is not " #expect)
#endif

NEURON_ABI(NEURON_IOCTL_DEVICE_RESET == 0x00004e01U,
	   "NEURON_IOCTL_DEVICE_RESET is not 0x00004e01");
NEURON_ABI(NEURON_IOCTL_DEVICE_READY == 0x80014e02U,
	   "NEURON_IOCTL_DEVICE_READY is not 0x80014e02");
NEURON_ABI(NEURON_IOCTL_DEVICE_RESET_STATUS == 0x80014e6aU,
	   "NEURON_IOCTL_DEVICE_RESET_STATUS is not 0x80014e6a");
NEURON_ABI(NEURON_IOCTL_DEVICE_INFO == 0x80084e03U, "NEURON_IOCTL_DEVICE_INFO is not 0x80084e03");
NEURON_ABI(NEURON_IOCTL_DEVICE_INIT == 0x80084e04U, "NEURON_IOCTL_DEVICE_INIT is not 0x80084e04");
NEURON_ABI(NEURON_IOCTL_DEVICE_RELEASE == 0x00004e05U,
	   "NEURON_IOCTL_DEVICE_RELEASE is not 0x00004e05");
NEURON_ABI(NEURON_IOCTL_DEVICE_APP_PID == 0x80044e06U,
	   "NEURON_IOCTL_DEVICE_APP_PID is not 0x80044e06");
NEURON_ABI(NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO == 0x80084e07U,
	   "NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO is not 0x80084e07");
NEURON_ABI(NEURON_IOCTL_BAR_READ == 0x80084e0bU, "NEURON_IOCTL_BAR_READ is not 0x80084e0b");
NEURON_ABI(NEURON_IOCTL_BAR_WRITE == 0x40084e0cU, "NEURON_IOCTL_BAR_WRITE is not 0x40084e0c");
NEURON_ABI(NEURON_IOCTL_POST_METRIC == 0x40084e0dU, "NEURON_IOCTL_POST_METRIC is not 0x40084e0d");
NEURON_ABI(NEURON_IOCTL_MEM_ALLOC == 0x80084e15U, "NEURON_IOCTL_MEM_ALLOC is not 0x80084e15");
NEURON_ABI(NEURON_IOCTL_MEM_ALLOC_V2 == 0x80084e66U,
	   "NEURON_IOCTL_MEM_ALLOC_V2 is not 0x80084e66");
NEURON_ABI(NEURON_IOCTL_MEM_ALLOC_V2MT == 0x80304e66U,
	   "NEURON_IOCTL_MEM_ALLOC_V2MT is not 0x80304e66");
NEURON_ABI(NEURON_IOCTL_MEM_ALLOC_V2MT64 == 0x80384e66U,
	   "NEURON_IOCTL_MEM_ALLOC_V2MT64 is not 0x80384e66");
NEURON_ABI(NEURON_IOCTL_MEM_FREE == 0x80084e16U, "NEURON_IOCTL_MEM_FREE is not 0x80084e16");
NEURON_ABI(NEURON_IOCTL_MEM_COPY == 0x80084e17U, "NEURON_IOCTL_MEM_COPY is not 0x80084e17");
NEURON_ABI(NEURON_IOCTL_MEM_COPY64 == 0x80284e17U, "NEURON_IOCTL_MEM_COPY64 is not 0x80284e17");
NEURON_ABI(NEURON_IOCTL_MEM_BUF_COPY == 0xc0084e18U,
	   "NEURON_IOCTL_MEM_BUF_COPY is not 0xc0084e18");
NEURON_ABI(NEURON_IOCTL_MEM_BUF_COPY64 == 0xc0284e18U,
	   "NEURON_IOCTL_MEM_BUF_COPY64 is not 0xc0284e18");
NEURON_ABI(NEURON_IOCTL_MEM_GET_PA == 0x80084e19U, "NEURON_IOCTL_MEM_GET_PA is not 0x80084e19");
NEURON_ABI(NEURON_IOCTL_MEM_GET_INFO == 0x80084e1aU,
	   "NEURON_IOCTL_MEM_GET_INFO is not 0x80084e1a");
NEURON_ABI(NEURON_IOCTL_PROGRAM_ENGINE == 0xc0084e1bU,
	   "NEURON_IOCTL_PROGRAM_ENGINE is not 0xc0084e1b");
NEURON_ABI(NEURON_IOCTL_MEMSET == 0x80084e1cU, "NEURON_IOCTL_MEMSET is not 0x80084e1c");
NEURON_ABI(NEURON_IOCTL_MEMSET64 == 0x80204e1cU, "NEURON_IOCTL_MEMSET64 is not 0x80204e1c");
NEURON_ABI(NEURON_IOCTL_MEM_GET_EXTENDED_INFO == 0x80084e1dU,
	   "NEURON_IOCTL_MEM_GET_EXTENDED_INFO is not 0x80084e1d");
NEURON_ABI(NEURON_IOCTL_DMA_ENG_INIT == 0x80084e1eU,
	   "NEURON_IOCTL_DMA_ENG_INIT is not 0x80084e1e");
NEURON_ABI(NEURON_IOCTL_DMA_ENG_SET_STATE == 0x80084e1fU,
	   "NEURON_IOCTL_DMA_ENG_SET_STATE is not 0x80084e1f");
NEURON_ABI(NEURON_IOCTL_DMA_ENG_GET_STATE == 0xc0084e20U,
	   "NEURON_IOCTL_DMA_ENG_GET_STATE is not 0xc0084e20");
NEURON_ABI(NEURON_IOCTL_DMA_QUEUE_INIT == 0x80084e21U,
	   "NEURON_IOCTL_DMA_QUEUE_INIT is not 0x80084e21");
NEURON_ABI(NEURON_IOCTL_DMA_QUEUE_INIT_BATCH == 0xb0084e85U,
	   "NEURON_IOCTL_DMA_QUEUE_INIT_BATCH is not 0xb0084e85");
NEURON_ABI(NEURON_IOCTL_DMA_QUEUE_RELEASE == 0x80084e22U,
	   "NEURON_IOCTL_DMA_QUEUE_RELEASE is not 0x80084e22");
NEURON_ABI(NEURON_IOCTL_DMA_QUEUE_COPY_START == 0x80084e23U,
	   "NEURON_IOCTL_DMA_QUEUE_COPY_START is not 0x80084e23");
NEURON_ABI(NEURON_IOCTL_DMA_ACK_COMPLETED == 0x80084e24U,
	   "NEURON_IOCTL_DMA_ACK_COMPLETED is not 0x80084e24");
NEURON_ABI(NEURON_IOCTL_DMA_QUEUE_GET_STATE == 0xc0084e25U,
	   "NEURON_IOCTL_DMA_QUEUE_GET_STATE is not 0xc0084e25");
NEURON_ABI(NEURON_IOCTL_DMA_COPY_DESCRIPTORS == 0x80084e26U,
	   "NEURON_IOCTL_DMA_COPY_DESCRIPTORS is not 0x80084e26");
NEURON_ABI(NEURON_IOCTL_DMA_COPY_DESCRIPTORS64 == 0x80284e26U,
	   "NEURON_IOCTL_DMA_COPY_DESCRIPTORS64 is not 0x80284e26");
NEURON_ABI(NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT == 0xc0084e27U,
	   "NEURON_IOCTL_DMA_DESCRIPTOR_COPYOUT is not 0xc0084e27");
NEURON_ABI(NEURON_IOCTL_DMA_QUIESCE_QUEUES == 0x80084e28U,
	   "NEURON_IOCTL_DMA_QUIESCE_QUEUES is not 0x80084e28");
NEURON_ABI(NEURON_IOCTL_SEMAPHORE_INCREMENT == 0x80084e29U,
	   "NEURON_IOCTL_SEMAPHORE_INCREMENT is not 0x80084e29");
NEURON_ABI(NEURON_IOCTL_SEMAPHORE_DECREMENT == 0x80084e2aU,
	   "NEURON_IOCTL_SEMAPHORE_DECREMENT is not 0x80084e2a");
NEURON_ABI(NEURON_IOCTL_SEMAPHORE_READ == 0xc0084e2bU,
	   "NEURON_IOCTL_SEMAPHORE_READ is not 0xc0084e2b");
NEURON_ABI(NEURON_IOCTL_SEMAPHORE_WRITE == 0x80084e2cU,
	   "NEURON_IOCTL_SEMAPHORE_WRITE is not 0x80084e2c");
NEURON_ABI(NEURON_IOCTL_EVENT_SET == 0x80084e2dU, "NEURON_IOCTL_EVENT_SET is not 0x80084e2d");
NEURON_ABI(NEURON_IOCTL_EVENT_GET == 0xc0084e2eU, "NEURON_IOCTL_EVENT_GET is not 0xc0084e2e");
NEURON_ABI(NEURON_IOCTL_NOTIFICATIONS_INIT_V1 == 0x80084e33U,
	   "NEURON_IOCTL_NOTIFICATIONS_INIT_V1 is not 0x80084e33");
NEURON_ABI(NEURON_IOCTL_NOTIFICATIONS_DESTROY_V1 == 0x80084e34U,
	   "NEURON_IOCTL_NOTIFICATIONS_DESTROY_V1 is not 0x80084e34");
NEURON_ABI(NEURON_IOCTL_NOTIFICATIONS_INIT_V2 == 0x80084e35U,
	   "NEURON_IOCTL_NOTIFICATIONS_INIT_V2 is not 0x80084e35");
NEURON_ABI(NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2 == 0x80084e36U,
	   "NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2 is not 0x80084e36");
NEURON_ABI(NEURON_IOCTL_NOTIFICATIONS_QUEUE_INFO == 0x80084e3aU,
	   "NEURON_IOCTL_NOTIFICATIONS_QUEUE_INFO is not 0x80084e3a");
NEURON_ABI(NEURON_IOCTL_READ_HW_COUNTERS == 0x80084e3dU,
	   "NEURON_IOCTL_READ_HW_COUNTERS is not 0x80084e3d");
NEURON_ABI(NEURON_IOCTL_ACQUIRE_NEURON_DS == 0x80084e47U,
	   "NEURON_IOCTL_ACQUIRE_NEURON_DS is not 0x80084e47");
NEURON_ABI(NEURON_IOCTL_RELEASE_NEURON_DS == 0x80084e48U,
	   "NEURON_IOCTL_RELEASE_NEURON_DS is not 0x80084e48");
NEURON_ABI(NEURON_IOCTL_CRWL_READER_ENTER == 0x40084e51U,
	   "NEURON_IOCTL_CRWL_READER_ENTER is not 0x40084e51");
NEURON_ABI(NEURON_IOCTL_CRWL_READER_EXIT == 0x40084e52U,
	   "NEURON_IOCTL_CRWL_READER_EXIT is not 0x40084e52");
NEURON_ABI(NEURON_IOCTL_CRWL_WRITER_ENTER == 0x40084e53U,
	   "NEURON_IOCTL_CRWL_WRITER_ENTER is not 0x40084e53");
NEURON_ABI(NEURON_IOCTL_CRWL_WRITER_DOWNGRADE == 0x40084e54U,
	   "NEURON_IOCTL_CRWL_WRITER_DOWNGRADE is not 0x40084e54");
NEURON_ABI(NEURON_IOCTL_CRWL_NC_RANGE_MARK == 0x40084e55U,
	   "NEURON_IOCTL_CRWL_NC_RANGE_MARK is not 0x40084e55");
NEURON_ABI(NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0 == 0xc0504e55U,
	   "NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0 is not 0xc0504e55");
NEURON_ABI(NEURON_IOCTL_CRWL_NC_RANGE_UNMARK == 0x40084e56U,
	   "NEURON_IOCTL_CRWL_NC_RANGE_UNMARK is not 0x40084e56");
NEURON_ABI(NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0 == 0x40504e56U,
	   "NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0 is not 0x40504e56");
NEURON_ABI(NEURON_IOCTL_CINIT_SET_STATE == 0x40084e5bU,
	   "NEURON_IOCTL_CINIT_SET_STATE is not 0x40084e5b");
NEURON_ABI(NEURON_IOCTL_NC_MODEL_STARTED_COUNT == 0x40084e5cU,
	   "NEURON_IOCTL_NC_MODEL_STARTED_COUNT is not 0x40084e5c");
NEURON_ABI(NEURON_IOCTL_COMPATIBLE_VERSION == 0x40084e5dU,
	   "NEURON_IOCTL_COMPATIBLE_VERSION is not 0x40084e5d");
NEURON_ABI(NEURON_IOCTL_DEVICE_BASIC_INFO == 0x40084e64U,
	   "NEURON_IOCTL_DEVICE_BASIC_INFO is not 0x40084e64");
NEURON_ABI(NEURON_IOCTL_DEVICE_BDF == 0x80084e65U, "NEURON_IOCTL_DEVICE_BDF is not 0x80084e65");
NEURON_ABI(NEURON_IOCTL_NC_RESET == 0x80084e67U, "NEURON_IOCTL_NC_RESET is not 0x80084e67");
NEURON_ABI(NEURON_IOCTL_NC_RESET_READY == 0x80084e68U,
	   "NEURON_IOCTL_NC_RESET_READY is not 0x80084e68");
NEURON_ABI(NEURON_IOCTL_PROGRAM_ENGINE_NC == 0xc0084e69U,
	   "NEURON_IOCTL_PROGRAM_ENGINE_NC is not 0xc0084e69");
NEURON_ABI(NEURON_IOCTL_PROGRAM_ENGINE_NC64 == 0xc0284e69U,
	   "NEURON_IOCTL_PROGRAM_ENGINE_NC64 is not 0xc0284e69");
NEURON_ABI(NEURON_IOCTL_DEVICE_BDF_EXT == 0x80084e6aU,
	   "NEURON_IOCTL_DEVICE_BDF_EXT is not 0x80084e6a");
NEURON_ABI(NEURON_IOCTL_DMABUF_FD == 0x80084e6bU, "NEURON_IOCTL_DMABUF_FD is not 0x80084e6b");
NEURON_ABI(NEURON_IOCTL_MEM_COPY_ASYNC == 0xc0304e6cU,
	   "NEURON_IOCTL_MEM_COPY_ASYNC is not 0xc0304e6c");
NEURON_ABI(NEURON_IOCTL_MEM_COPY_ASYNC64 == 0xc0384e6cU,
	   "NEURON_IOCTL_MEM_COPY_ASYNC64 is not 0xc0384e6c");
NEURON_ABI(NEURON_IOCTL_MEM_COPY_ASYNC_WAIT == 0x40184e6dU,
	   "NEURON_IOCTL_MEM_COPY_ASYNC_WAIT is not 0x40184e6d");
NEURON_ABI(NEURON_IOCTL_DRIVER_INFO_GET == 0x80184e6eU,
	   "NEURON_IOCTL_DRIVER_INFO_GET is not 0x80184e6e");
NEURON_ABI(NEURON_IOCTL_DRIVER_INFO_SET == 0x40184e6eU,
	   "NEURON_IOCTL_DRIVER_INFO_SET is not 0x40184e6e");
NEURON_ABI(NEURON_IOCTL_MEM_MC_GET_INFO == 0xc0184e6fU,
	   "NEURON_IOCTL_MEM_MC_GET_INFO is not 0xc0184e6f");
NEURON_ABI(NEURON_IOCTL_MEM_MC_GET_INFO_V2 == 0xc0204e6fU,
	   "NEURON_IOCTL_MEM_MC_GET_INFO_V2 is not 0xc0204e6f");
NEURON_ABI(NEURON_IOCTL_RESOURCE_MMAP_INFO == 0xc0204e70U,
	   "NEURON_IOCTL_RESOURCE_MMAP_INFO is not 0xc0204e70");
NEURON_ABI(NEURON_IOCTL_PRINTK == 0x40104e71U, "NEURON_IOCTL_PRINTK is not 0x40104e71");
NEURON_ABI(NEURON_IOCTL_HOST_DEVICE_ID == 0x80044e72U,
	   "NEURON_IOCTL_HOST_DEVICE_ID is not 0x80044e72");
NEURON_ABI(NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP == 0xc1044e73U,
	   "NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP is not 0xc1044e73");
NEURON_ABI(NEURON_IOCTL_DUMP_MEM_CHUNKS == 0x80084e74U,
	   "NEURON_IOCTL_DUMP_MEM_CHUNKS is not 0x80084e74");
NEURON_ABI(NEURON_IOCTL_NC_PID_STATE_DUMP == 0xc0104e75U,
	   "NEURON_IOCTL_NC_PID_STATE_DUMP is not 0xc0104e75");
NEURON_ABI(NEURON_IOCTL_HBM_SCRUB_START == 0xc0104e76U,
	   "NEURON_IOCTL_HBM_SCRUB_START is not 0xc0104e76");
NEURON_ABI(NEURON_IOCTL_HBM_SCRUB_WAIT == 0xc0084e77U,
	   "NEURON_IOCTL_HBM_SCRUB_WAIT is not 0xc0084e77");
NEURON_ABI(NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP == 0xc0104e78U,
	   "NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP is not 0xc0104e78");
NEURON_ABI(NEURON_IOCTL_POD_INFO == 0xc1044e79U, "NEURON_IOCTL_POD_INFO is not 0xc1044e79");
NEURON_ABI(NEURON_IOCTL_POD_STATUS == 0xc10c4e7aU, "NEURON_IOCTL_POD_STATUS is not 0xc10c4e7a");
NEURON_ABI(NEURON_IOCTL_POD_STATUS_V2 == 0xc1144e7aU,
	   "NEURON_IOCTL_POD_STATUS_V2 is not 0xc1144e7a");
NEURON_ABI(NEURON_IOCTL_POD_CTRL == 0xc0104e7bU, "NEURON_IOCTL_POD_CTRL is not 0xc0104e7b");
NEURON_ABI(NEURON_IOCTL_POD_CTRL_V2 == 0xc0144e7bU, "NEURON_IOCTL_POD_CTRL_V2 is not 0xc0144e7b");
NEURON_ABI(NEURON_IOCTL_MEM_BUF_ZEROCOPY64 == 0xc0284e7cU,
	   "NEURON_IOCTL_MEM_BUF_ZEROCOPY64 is not 0xc0284e7c");
NEURON_ABI(MAX_DMA_QUEUE_INIT_BATCH == 256, "MAX_DMA_QUEUE_INIT_BATCH is not 256");
NEURON_ABI(DMA_QUIESCE_MAX_ENG == 64, "DMA_QUIESCE_MAX_ENG is not 64");
NEURON_ABI(NEURON_IOCTL_MAX_CONNECTED_DEVICES == 8,
	   "NEURON_IOCTL_MAX_CONNECTED_DEVICES is not 8");
NEURON_ABI(NEURON_MAX_BARS == 2, "NEURON_MAX_BARS is not 2");
NEURON_ABI(NEURON_DEVICE_DRIVER_INFO_VERSION0 == 0,
	   "NEURON_DEVICE_DRIVER_INFO_VERSION0 is not 0");
NEURON_ABI(NEURON_IOCTL_MAX_DEVICES == 64, "NEURON_IOCTL_MAX_DEVICES is not 64");
NEURON_ABI(NEURON_IOCTL_BASE == 78, "NEURON_IOCTL_BASE is not 78");
NEURON_ABI(NEURON_IOCTL_MAX == 125, "NEURON_IOCTL_MAX is not 125");
NEURON_ABI(NEURON_NC_MAP_DEVICE == 4294967295U, "NEURON_NC_MAP_DEVICE is not 4294967295");
NEURON_ABI(NEURON_MAX_PROCESS_PER_DEVICE == 16, "NEURON_MAX_PROCESS_PER_DEVICE is not 16");
NEURON_ABI(APP_INFO_PID_NC_LOCK_INFO == 1, "APP_INFO_PID_NC_LOCK_INFO is not 1");
NEURON_ABI(APP_INFO_PID_MEM_USAGE == 2, "APP_INFO_PID_MEM_USAGE is not 2");
NEURON_ABI(APP_INFO_ALL == 15, "APP_INFO_ALL is not 15");
NEURON_ABI(APP_INFO_MAX_MODELS_PER_DEVICE == 4, "APP_INFO_MAX_MODELS_PER_DEVICE is not 4");
NEURON_ABI(NDS_INVALID_ID == -1, "NDS_INVALID_ID is not -1");
NEURON_ABI(NEURON_NC_MAP_MAX_ENTRIES == 128, "NEURON_NC_MAP_MAX_ENTRIES is not 128");
NEURON_ABI(NDS_ND_COUNTER_RESERVED == 18, "NDS_ND_COUNTER_RESERVED is not 18");
NEURON_ABI(NDS_NC_COUNTER_RESERVED == 0, "NDS_NC_COUNTER_RESERVED is not 0");
NEURON_ABI(NDS_MAX_NEURONCORE_COUNT == 4, "NDS_MAX_NEURONCORE_COUNT is not 4");
NEURON_ABI(NDS_EXT_MAX_NEURONCORE_COUNT == 12, "NDS_EXT_MAX_NEURONCORE_COUNT is not 12");
NEURON_ABI(NDS_EXT_NC_COUNTER_ADDED_RESERVED == 54,
	   "NDS_EXT_NC_COUNTER_ADDED_RESERVED is not 54");
NEURON_ABI(NDS_TOTAL_NC_COUNTER_COUNT == 95, "NDS_TOTAL_NC_COUNTER_COUNT is not 95");
NEURON_ABI(NDS_HEADER_START == 0, "NDS_HEADER_START is not 0");
NEURON_ABI(NDS_HEADER_SIZE == 8, "NDS_HEADER_SIZE is not 8");
NEURON_ABI(NDS_ND_COUNTERS_START == 8, "NDS_ND_COUNTERS_START is not 8");
NEURON_ABI(NDS_ND_COUNTERS_SIZE == 248, "NDS_ND_COUNTERS_SIZE is not 248");
NEURON_ABI(NDS_NEURONCORE_COUNTERS_COUNT == 31, "NDS_NEURONCORE_COUNTERS_COUNT is not 31");
NEURON_ABI(NDS_NEURONCORE_COUNTERS_START == 256, "NDS_NEURONCORE_COUNTERS_START is not 256");
NEURON_ABI(NDS_NEURONCORE_COUNTERS_SIZE == 992, "NDS_NEURONCORE_COUNTERS_SIZE is not 992");
NEURON_ABI(NDS_EXT_NC_COUNTER_COUNT_OLD == 65, "NDS_EXT_NC_COUNTER_COUNT_OLD is not 65");
NEURON_ABI(NDS_TOTAL_NC_COUNTER_COUNT_OLD == 96, "NDS_TOTAL_NC_COUNTER_COUNT_OLD is not 96");
NEURON_ABI(NDS_EXT_NEURONCORE_COUNTERS_SIZE_OLD == 2080,
	   "NDS_EXT_NEURONCORE_COUNTERS_SIZE_OLD is not 2080");
NEURON_ABI(NDS_EXT_NEURONCORE_NC_DATA_SIZE_OLD == 9216,
	   "NDS_EXT_NEURONCORE_NC_DATA_SIZE_OLD is not 9216");
NEURON_ABI(NDS_EXT_SECTION_SIZE_OLD == 11296, "NDS_EXT_SECTION_SIZE_OLD is not 11296");
NEURON_ABI(NDS_EXT_OFFSET_OLD == 44588, "NDS_EXT_OFFSET_OLD is not 44588");
NEURON_ABI(NDS_EXT_ALIGNMENT == 64, "NDS_EXT_ALIGNMENT is not 64");
NEURON_ABI(NDS_EXT_OFFSET == 55936, "NDS_EXT_OFFSET is not 55936");
NEURON_ABI(NDS_EXT_NEURONCORE_COUNTERS_COUNT == 64,
	   "NDS_EXT_NEURONCORE_COUNTERS_COUNT is not 64");
NEURON_ABI(NDS_EXT_NEURONCORE_COUNTERS_START == 55936,
	   "NDS_EXT_NEURONCORE_COUNTERS_START is not 55936");
NEURON_ABI(NDS_EXT_NEURONCORE_COUNTERS_SIZE == 2048,
	   "NDS_EXT_NEURONCORE_COUNTERS_SIZE is not 2048");
NEURON_ABI(NDS_EXT_NEURONCORE_NC_DATA_PADDING == 1,
	   "NDS_EXT_NEURONCORE_NC_DATA_PADDING is not 1");
NEURON_ABI(NDS_EXT_NEURONCORE_NC_DATA_COUNT == 96, "NDS_EXT_NEURONCORE_NC_DATA_COUNT is not 96");
NEURON_ABI(NDS_EXT_NEURONCORE_NC_DATA_START == 57984,
	   "NDS_EXT_NEURONCORE_NC_DATA_START is not 57984");
NEURON_ABI(NDS_EXT_NEURONCORE_NC_DATA_SIZE == 9216,
	   "NDS_EXT_NEURONCORE_NC_DATA_SIZE is not 9216");

NEURON_ABI(sizeof(struct neuron_ioctl_mem_alloc) == 32,
	   "size of struct neuron_ioctl_mem_alloc is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_alloc) == 8,
	   "alignment of struct neuron_ioctl_mem_alloc is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc, size) == 0,
	   "struct neuron_ioctl_mem_alloc.size is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc *)0)->size) == 8,
	   "struct neuron_ioctl_mem_alloc.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc, host_memory) == 8,
	   "struct neuron_ioctl_mem_alloc.host_memory is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc *)0)->host_memory) == 4,
	   "struct neuron_ioctl_mem_alloc.host_memory has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc, host_memory, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc, dram_channel) == 12,
	   "struct neuron_ioctl_mem_alloc.dram_channel is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc *)0)->dram_channel) == 4,
	   "struct neuron_ioctl_mem_alloc.dram_channel has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc, dram_channel, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc, dram_region) == 16,
	   "struct neuron_ioctl_mem_alloc.dram_region is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc *)0)->dram_region) == 4,
	   "struct neuron_ioctl_mem_alloc.dram_region has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc, dram_region, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc, nc_id) == 20,
	   "struct neuron_ioctl_mem_alloc.nc_id is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc *)0)->nc_id) == 4,
	   "struct neuron_ioctl_mem_alloc.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc, mem_handle) == 24,
	   "struct neuron_ioctl_mem_alloc.mem_handle is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_alloc.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc, mem_handle, __u64 *);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_alloc_v2) == 40,
	   "size of struct neuron_ioctl_mem_alloc_v2 is not 40");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_alloc_v2) == 8,
	   "alignment of struct neuron_ioctl_mem_alloc_v2 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2, size) == 0,
	   "struct neuron_ioctl_mem_alloc_v2.size is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2 *)0)->size) == 8,
	   "struct neuron_ioctl_mem_alloc_v2.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2, align) == 8,
	   "struct neuron_ioctl_mem_alloc_v2.align is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2 *)0)->align) == 8,
	   "struct neuron_ioctl_mem_alloc_v2.align has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2, align, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2, host_memory) == 16,
	   "struct neuron_ioctl_mem_alloc_v2.host_memory is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2 *)0)->host_memory) == 4,
	   "struct neuron_ioctl_mem_alloc_v2.host_memory has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2, host_memory, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2, dram_channel) == 20,
	   "struct neuron_ioctl_mem_alloc_v2.dram_channel is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2 *)0)->dram_channel) == 4,
	   "struct neuron_ioctl_mem_alloc_v2.dram_channel has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2, dram_channel, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2, dram_region) == 24,
	   "struct neuron_ioctl_mem_alloc_v2.dram_region is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2 *)0)->dram_region) == 4,
	   "struct neuron_ioctl_mem_alloc_v2.dram_region has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2, dram_region, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2, nc_id) == 28,
	   "struct neuron_ioctl_mem_alloc_v2.nc_id is not at 28");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2 *)0)->nc_id) == 4,
	   "struct neuron_ioctl_mem_alloc_v2.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2, mem_handle) == 32,
	   "struct neuron_ioctl_mem_alloc_v2.mem_handle is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_alloc_v2.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2, mem_handle, __u64 *);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_alloc_v2_mem_type) == 48,
	   "size of struct neuron_ioctl_mem_alloc_v2_mem_type is not 48");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_alloc_v2_mem_type) == 8,
	   "alignment of struct neuron_ioctl_mem_alloc_v2_mem_type is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, size) == 0,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.size is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->size) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, align) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.align is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->align) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.align has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, align, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, host_memory) == 16,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.host_memory is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->host_memory) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.host_memory has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, host_memory, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, dram_channel) == 20,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.dram_channel is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->dram_channel) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.dram_channel has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, dram_channel, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, dram_region) == 24,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.dram_region is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->dram_region) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.dram_region has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, dram_region, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, nc_id) == 28,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.nc_id is not at 28");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->nc_id) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, mem_type) == 32,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.mem_type is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->mem_type) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.mem_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, mem_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type, mem_handle) == 40,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.mem_handle is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type, mem_handle, __u64 *);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_alloc_v2_mem_type64) == 56,
	   "size of struct neuron_ioctl_mem_alloc_v2_mem_type64 is not 56");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_alloc_v2_mem_type64) == 8,
	   "alignment of struct neuron_ioctl_mem_alloc_v2_mem_type64 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, size) == 0,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.size is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->size) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, align) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.align is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->align) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.align has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, align, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, host_memory) == 16,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.host_memory is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->host_memory) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.host_memory has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, host_memory, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, dram_channel) == 20,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.dram_channel is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->dram_channel) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.dram_channel has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, dram_channel, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, dram_region) == 24,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.dram_region is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->dram_region) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.dram_region has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, dram_region, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, nc_id) == 28,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.nc_id is not at 28");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->nc_id) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, mem_type) == 32,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.mem_type is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->mem_type) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.mem_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, mem_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, mem_handle) == 40,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.mem_handle is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, mem_handle, __u64 *);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_alloc_v2_mem_type64, pad) == 48,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.pad is not at 48");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_alloc_v2_mem_type64 *)0)->pad) == 4,
	   "struct neuron_ioctl_mem_alloc_v2_mem_type64.pad has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_alloc_v2_mem_type64, pad, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_device_init) == 4,
	   "size of struct neuron_ioctl_device_init is not 4");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_init) == 4,
	   "alignment of struct neuron_ioctl_device_init is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_device_init, mem_regions) == 0,
	   "struct neuron_ioctl_device_init.mem_regions is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_init *)0)->mem_regions) == 4,
	   "struct neuron_ioctl_device_init.mem_regions has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_init, mem_regions, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_device_reset) == 8,
	   "size of struct neuron_ioctl_device_reset is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_reset) == 4,
	   "alignment of struct neuron_ioctl_device_reset is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_device_reset, nc_map) == 0,
	   "struct neuron_ioctl_device_reset.nc_map is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_reset *)0)->nc_map) == 4,
	   "struct neuron_ioctl_device_reset.nc_map has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_reset, nc_map, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_reset, request_id) == 4,
	   "struct neuron_ioctl_device_reset.request_id is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_reset *)0)->request_id) == 4,
	   "struct neuron_ioctl_device_reset.request_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_reset, request_id, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_device_ready) == 8,
	   "size of struct neuron_ioctl_device_ready is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_ready) == 4,
	   "alignment of struct neuron_ioctl_device_ready is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_device_ready, request_id) == 0,
	   "struct neuron_ioctl_device_ready.request_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_ready *)0)->request_id) == 4,
	   "struct neuron_ioctl_device_ready.request_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_ready, request_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_ready, result) == 4,
	   "struct neuron_ioctl_device_ready.result is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_ready *)0)->result) == 4,
	   "struct neuron_ioctl_device_ready.result has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_ready, result, __s32);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_get_info) == 24,
	   "size of struct neuron_ioctl_mem_get_info is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_get_info) == 8,
	   "alignment of struct neuron_ioctl_mem_get_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_info, mem_handle) == 0,
	   "struct neuron_ioctl_mem_get_info.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_info *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_get_info.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_info, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_info, mmap_offset) == 8,
	   "struct neuron_ioctl_mem_get_info.mmap_offset is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_info *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_mem_get_info.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_info, mmap_offset, __u64 *);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_info, pa) == 16,
	   "struct neuron_ioctl_mem_get_info.pa is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_info *)0)->pa) == 8,
	   "struct neuron_ioctl_mem_get_info.pa has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_info, pa, __u64 *);

NEURON_ABI(sizeof(struct neuron_ioctl_get_apps_info) == 16,
	   "size of struct neuron_ioctl_get_apps_info is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_get_apps_info) == 8,
	   "alignment of struct neuron_ioctl_get_apps_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_get_apps_info, apps_info_flags) == 0,
	   "struct neuron_ioctl_get_apps_info.apps_info_flags is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_get_apps_info *)0)->apps_info_flags) == 2,
	   "struct neuron_ioctl_get_apps_info.apps_info_flags has not 2 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_get_apps_info, apps_info_flags, __u16);
NEURON_ABI(offsetof(struct neuron_ioctl_get_apps_info, capacity) == 4,
	   "struct neuron_ioctl_get_apps_info.capacity is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_get_apps_info *)0)->capacity) == 4,
	   "struct neuron_ioctl_get_apps_info.capacity has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_get_apps_info, capacity, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_get_apps_info, size) == 8,
	   "struct neuron_ioctl_get_apps_info.size is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_get_apps_info *)0)->size) == 4,
	   "struct neuron_ioctl_get_apps_info.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_get_apps_info, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_get_apps_info, app_data) == 16,
	   "struct neuron_ioctl_get_apps_info.app_data is not at 16");
NEURON_ABI_TYPE(struct neuron_ioctl_get_apps_info, app_data, struct neuron_app_info []);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_get_pa) == 16,
	   "size of struct neuron_ioctl_mem_get_pa is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_get_pa) == 8,
	   "alignment of struct neuron_ioctl_mem_get_pa is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_pa, mem_handle) == 0,
	   "struct neuron_ioctl_mem_get_pa.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_pa *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_get_pa.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_pa, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_pa, pa) == 8,
	   "struct neuron_ioctl_mem_get_pa.pa is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_pa *)0)->pa) == 8,
	   "struct neuron_ioctl_mem_get_pa.pa has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_pa, pa, __u64 *);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_get_extended_info) == 48,
	   "size of struct neuron_ioctl_mem_get_extended_info is not 48");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_get_extended_info) == 8,
	   "alignment of struct neuron_ioctl_mem_get_extended_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_extended_info, mem_handle) == 0,
	   "struct neuron_ioctl_mem_get_extended_info.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_extended_info *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_get_extended_info.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_extended_info, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_extended_info, version) == 8,
	   "struct neuron_ioctl_mem_get_extended_info.version is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_extended_info *)0)->version) == 4,
	   "struct neuron_ioctl_mem_get_extended_info.version has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_extended_info, version, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_extended_info, host_memory) == 12,
	   "struct neuron_ioctl_mem_get_extended_info.host_memory is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_extended_info *)0)->host_memory) == 4,
	   "struct neuron_ioctl_mem_get_extended_info.host_memory has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_extended_info, host_memory, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_extended_info, mmap_offset) == 16,
	   "struct neuron_ioctl_mem_get_extended_info.mmap_offset is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_extended_info *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_mem_get_extended_info.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_extended_info, mmap_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_extended_info, pa) == 24,
	   "struct neuron_ioctl_mem_get_extended_info.pa is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_extended_info *)0)->pa) == 8,
	   "struct neuron_ioctl_mem_get_extended_info.pa has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_extended_info, pa, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_extended_info, pid) == 32,
	   "struct neuron_ioctl_mem_get_extended_info.pid is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_extended_info *)0)->pid) == 8,
	   "struct neuron_ioctl_mem_get_extended_info.pid has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_extended_info, pid, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_extended_info, size) == 40,
	   "struct neuron_ioctl_mem_get_extended_info.size is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_extended_info *)0)->size) == 8,
	   "struct neuron_ioctl_mem_get_extended_info.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_extended_info, size, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_free) == 8,
	   "size of struct neuron_ioctl_mem_free is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_free) == 8,
	   "alignment of struct neuron_ioctl_mem_free is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_free, mem_handle) == 0,
	   "struct neuron_ioctl_mem_free.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_free *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_free.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_free, mem_handle, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_copy) == 32,
	   "size of struct neuron_ioctl_mem_copy is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_copy) == 8,
	   "alignment of struct neuron_ioctl_mem_copy is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy, src_mem_handle) == 0,
	   "struct neuron_ioctl_mem_copy.src_mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy *)0)->src_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy.src_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy, src_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy, dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy.dst_mem_handle is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy *)0)->dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy.dst_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy, dst_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy, size) == 16,
	   "struct neuron_ioctl_mem_copy.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy *)0)->size) == 4,
	   "struct neuron_ioctl_mem_copy.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy, src_offset) == 20,
	   "struct neuron_ioctl_mem_copy.src_offset is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy *)0)->src_offset) == 4,
	   "struct neuron_ioctl_mem_copy.src_offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy, src_offset, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy, dst_offset) == 24,
	   "struct neuron_ioctl_mem_copy.dst_offset is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy *)0)->dst_offset) == 4,
	   "struct neuron_ioctl_mem_copy.dst_offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy, dst_offset, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_copy64) == 40,
	   "size of struct neuron_ioctl_mem_copy64 is not 40");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_copy64) == 8,
	   "alignment of struct neuron_ioctl_mem_copy64 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy64, src_mem_handle) == 0,
	   "struct neuron_ioctl_mem_copy64.src_mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy64 *)0)->src_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy64.src_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy64, src_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy64, dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy64.dst_mem_handle is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy64 *)0)->dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy64.dst_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy64, dst_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy64, size) == 16,
	   "struct neuron_ioctl_mem_copy64.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy64 *)0)->size) == 8,
	   "struct neuron_ioctl_mem_copy64.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy64, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy64, src_offset) == 24,
	   "struct neuron_ioctl_mem_copy64.src_offset is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy64 *)0)->src_offset) == 8,
	   "struct neuron_ioctl_mem_copy64.src_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy64, src_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy64, dst_offset) == 32,
	   "struct neuron_ioctl_mem_copy64.dst_offset is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy64 *)0)->dst_offset) == 8,
	   "struct neuron_ioctl_mem_copy64.dst_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy64, dst_offset, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_copy_async) == 48,
	   "size of struct neuron_ioctl_mem_copy_async is not 48");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_copy_async) == 8,
	   "alignment of struct neuron_ioctl_mem_copy_async is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, src_mem_handle) == 0,
	   "struct neuron_ioctl_mem_copy_async.src_mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->src_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async.src_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, src_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async.dst_mem_handle is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async.dst_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, dst_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, size) == 16,
	   "struct neuron_ioctl_mem_copy_async.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->size) == 4,
	   "struct neuron_ioctl_mem_copy_async.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, src_offset) == 20,
	   "struct neuron_ioctl_mem_copy_async.src_offset is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->src_offset) == 4,
	   "struct neuron_ioctl_mem_copy_async.src_offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, src_offset, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, dst_offset) == 24,
	   "struct neuron_ioctl_mem_copy_async.dst_offset is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->dst_offset) == 4,
	   "struct neuron_ioctl_mem_copy_async.dst_offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, dst_offset, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, host_prefetch_addr) == 32,
	   "struct neuron_ioctl_mem_copy_async.host_prefetch_addr is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->host_prefetch_addr) == 8,
	   "struct neuron_ioctl_mem_copy_async.host_prefetch_addr has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, host_prefetch_addr, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, pwait_handle) == 40,
	   "struct neuron_ioctl_mem_copy_async.pwait_handle is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->pwait_handle) == 4,
	   "struct neuron_ioctl_mem_copy_async.pwait_handle has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, pwait_handle, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async, wait_handle) == 44,
	   "struct neuron_ioctl_mem_copy_async.wait_handle is not at 44");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async *)0)->wait_handle) == 4,
	   "struct neuron_ioctl_mem_copy_async.wait_handle has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async, wait_handle, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_copy_async64) == 56,
	   "size of struct neuron_ioctl_mem_copy_async64 is not 56");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_copy_async64) == 8,
	   "alignment of struct neuron_ioctl_mem_copy_async64 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, src_mem_handle) == 0,
	   "struct neuron_ioctl_mem_copy_async64.src_mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->src_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async64.src_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, src_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async64.dst_mem_handle is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async64.dst_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, dst_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, size) == 16,
	   "struct neuron_ioctl_mem_copy_async64.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->size) == 8,
	   "struct neuron_ioctl_mem_copy_async64.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, src_offset) == 24,
	   "struct neuron_ioctl_mem_copy_async64.src_offset is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->src_offset) == 8,
	   "struct neuron_ioctl_mem_copy_async64.src_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, src_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, dst_offset) == 32,
	   "struct neuron_ioctl_mem_copy_async64.dst_offset is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->dst_offset) == 8,
	   "struct neuron_ioctl_mem_copy_async64.dst_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, dst_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, host_prefetch_addr) == 40,
	   "struct neuron_ioctl_mem_copy_async64.host_prefetch_addr is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->host_prefetch_addr) == 8,
	   "struct neuron_ioctl_mem_copy_async64.host_prefetch_addr has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, host_prefetch_addr, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, pwait_handle) == 48,
	   "struct neuron_ioctl_mem_copy_async64.pwait_handle is not at 48");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->pwait_handle) == 4,
	   "struct neuron_ioctl_mem_copy_async64.pwait_handle has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, pwait_handle, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async64, wait_handle) == 52,
	   "struct neuron_ioctl_mem_copy_async64.wait_handle is not at 52");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async64 *)0)->wait_handle) == 4,
	   "struct neuron_ioctl_mem_copy_async64.wait_handle has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async64, wait_handle, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_copy_async_wait) == 24,
	   "size of struct neuron_ioctl_mem_copy_async_wait is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_copy_async_wait) == 8,
	   "alignment of struct neuron_ioctl_mem_copy_async_wait is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async_wait, src_mem_handle) == 0,
	   "struct neuron_ioctl_mem_copy_async_wait.src_mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async_wait *)0)->src_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async_wait.src_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async_wait, src_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async_wait, dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async_wait.dst_mem_handle is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async_wait *)0)->dst_mem_handle) == 8,
	   "struct neuron_ioctl_mem_copy_async_wait.dst_mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async_wait, dst_mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_copy_async_wait, pwait_handle) == 16,
	   "struct neuron_ioctl_mem_copy_async_wait.pwait_handle is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_copy_async_wait *)0)->pwait_handle) == 4,
	   "struct neuron_ioctl_mem_copy_async_wait.pwait_handle has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_copy_async_wait, pwait_handle, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_memset) == 24,
	   "size of struct neuron_ioctl_memset is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_memset) == 8,
	   "alignment of struct neuron_ioctl_memset is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_memset, mem_handle) == 0,
	   "struct neuron_ioctl_memset.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_memset.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_memset, offset) == 8,
	   "struct neuron_ioctl_memset.offset is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset *)0)->offset) == 8,
	   "struct neuron_ioctl_memset.offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset, offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_memset, value) == 16,
	   "struct neuron_ioctl_memset.value is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset *)0)->value) == 4,
	   "struct neuron_ioctl_memset.value has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset, value, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_memset, size) == 20,
	   "struct neuron_ioctl_memset.size is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset *)0)->size) == 4,
	   "struct neuron_ioctl_memset.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset, size, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_memset64) == 32,
	   "size of struct neuron_ioctl_memset64 is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_memset64) == 8,
	   "alignment of struct neuron_ioctl_memset64 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_memset64, mem_handle) == 0,
	   "struct neuron_ioctl_memset64.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset64 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_memset64.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset64, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_memset64, offset) == 8,
	   "struct neuron_ioctl_memset64.offset is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset64 *)0)->offset) == 8,
	   "struct neuron_ioctl_memset64.offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset64, offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_memset64, value) == 16,
	   "struct neuron_ioctl_memset64.value is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset64 *)0)->value) == 4,
	   "struct neuron_ioctl_memset64.value has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset64, value, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_memset64, size) == 24,
	   "struct neuron_ioctl_memset64.size is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_memset64 *)0)->size) == 8,
	   "struct neuron_ioctl_memset64.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_memset64, size, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_buf_copy) == 32,
	   "size of struct neuron_ioctl_mem_buf_copy is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_buf_copy) == 8,
	   "alignment of struct neuron_ioctl_mem_buf_copy is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy, mem_handle) == 0,
	   "struct neuron_ioctl_mem_buf_copy.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_buf_copy.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy, buffer) == 8,
	   "struct neuron_ioctl_mem_buf_copy.buffer is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy *)0)->buffer) == 8,
	   "struct neuron_ioctl_mem_buf_copy.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy, size) == 16,
	   "struct neuron_ioctl_mem_buf_copy.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy *)0)->size) == 4,
	   "struct neuron_ioctl_mem_buf_copy.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy, offset) == 20,
	   "struct neuron_ioctl_mem_buf_copy.offset is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy *)0)->offset) == 4,
	   "struct neuron_ioctl_mem_buf_copy.offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy, offset, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy, copy_to_mem_handle) == 24,
	   "struct neuron_ioctl_mem_buf_copy.copy_to_mem_handle is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy *)0)->copy_to_mem_handle) == 4,
	   "struct neuron_ioctl_mem_buf_copy.copy_to_mem_handle has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy, copy_to_mem_handle, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_buf_copy64) == 40,
	   "size of struct neuron_ioctl_mem_buf_copy64 is not 40");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_buf_copy64) == 8,
	   "alignment of struct neuron_ioctl_mem_buf_copy64 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy64, mem_handle) == 0,
	   "struct neuron_ioctl_mem_buf_copy64.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy64 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_buf_copy64.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy64, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy64, buffer) == 8,
	   "struct neuron_ioctl_mem_buf_copy64.buffer is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy64 *)0)->buffer) == 8,
	   "struct neuron_ioctl_mem_buf_copy64.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy64, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy64, size) == 16,
	   "struct neuron_ioctl_mem_buf_copy64.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy64 *)0)->size) == 8,
	   "struct neuron_ioctl_mem_buf_copy64.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy64, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy64, offset) == 24,
	   "struct neuron_ioctl_mem_buf_copy64.offset is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy64 *)0)->offset) == 8,
	   "struct neuron_ioctl_mem_buf_copy64.offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy64, offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_buf_copy64, copy_to_mem_handle) == 32,
	   "struct neuron_ioctl_mem_buf_copy64.copy_to_mem_handle is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_buf_copy64 *)0)->copy_to_mem_handle) == 4,
	   "struct neuron_ioctl_mem_buf_copy64.copy_to_mem_handle has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_buf_copy64, copy_to_mem_handle, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_program_engine) == 24,
	   "size of struct neuron_ioctl_program_engine is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_program_engine) == 8,
	   "alignment of struct neuron_ioctl_program_engine is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine, dst) == 0,
	   "struct neuron_ioctl_program_engine.dst is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine *)0)->dst) == 8,
	   "struct neuron_ioctl_program_engine.dst has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine, dst, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine, buffer) == 8,
	   "struct neuron_ioctl_program_engine.buffer is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine *)0)->buffer) == 8,
	   "struct neuron_ioctl_program_engine.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine, size) == 16,
	   "struct neuron_ioctl_program_engine.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine *)0)->size) == 4,
	   "struct neuron_ioctl_program_engine.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine, offset) == 20,
	   "struct neuron_ioctl_program_engine.offset is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine *)0)->offset) == 4,
	   "struct neuron_ioctl_program_engine.offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine, offset, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_program_engine_nc) == 32,
	   "size of struct neuron_ioctl_program_engine_nc is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_program_engine_nc) == 8,
	   "alignment of struct neuron_ioctl_program_engine_nc is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc, nc_id) == 0,
	   "struct neuron_ioctl_program_engine_nc.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc *)0)->nc_id) == 4,
	   "struct neuron_ioctl_program_engine_nc.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc, dst) == 8,
	   "struct neuron_ioctl_program_engine_nc.dst is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc *)0)->dst) == 8,
	   "struct neuron_ioctl_program_engine_nc.dst has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc, dst, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc, buffer) == 16,
	   "struct neuron_ioctl_program_engine_nc.buffer is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc *)0)->buffer) == 8,
	   "struct neuron_ioctl_program_engine_nc.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc, size) == 24,
	   "struct neuron_ioctl_program_engine_nc.size is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc *)0)->size) == 4,
	   "struct neuron_ioctl_program_engine_nc.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc, offset) == 28,
	   "struct neuron_ioctl_program_engine_nc.offset is not at 28");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc *)0)->offset) == 4,
	   "struct neuron_ioctl_program_engine_nc.offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc, offset, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_program_engine_nc64) == 40,
	   "size of struct neuron_ioctl_program_engine_nc64 is not 40");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_program_engine_nc64) == 8,
	   "alignment of struct neuron_ioctl_program_engine_nc64 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc64, nc_id) == 0,
	   "struct neuron_ioctl_program_engine_nc64.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc64 *)0)->nc_id) == 4,
	   "struct neuron_ioctl_program_engine_nc64.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc64, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc64, dst) == 8,
	   "struct neuron_ioctl_program_engine_nc64.dst is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc64 *)0)->dst) == 8,
	   "struct neuron_ioctl_program_engine_nc64.dst has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc64, dst, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc64, buffer) == 16,
	   "struct neuron_ioctl_program_engine_nc64.buffer is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc64 *)0)->buffer) == 8,
	   "struct neuron_ioctl_program_engine_nc64.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc64, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc64, size) == 24,
	   "struct neuron_ioctl_program_engine_nc64.size is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc64 *)0)->size) == 8,
	   "struct neuron_ioctl_program_engine_nc64.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc64, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_program_engine_nc64, offset) == 32,
	   "struct neuron_ioctl_program_engine_nc64.offset is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_program_engine_nc64 *)0)->offset) == 8,
	   "struct neuron_ioctl_program_engine_nc64.offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_program_engine_nc64, offset, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_bar_rw) == 32,
	   "size of struct neuron_ioctl_bar_rw is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_bar_rw) == 8,
	   "alignment of struct neuron_ioctl_bar_rw is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_bar_rw, bar) == 0,
	   "struct neuron_ioctl_bar_rw.bar is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_bar_rw *)0)->bar) == 4,
	   "struct neuron_ioctl_bar_rw.bar has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_bar_rw, bar, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_bar_rw, address) == 8,
	   "struct neuron_ioctl_bar_rw.address is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_bar_rw *)0)->address) == 8,
	   "struct neuron_ioctl_bar_rw.address has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_bar_rw, address, __u64 *);
NEURON_ABI(offsetof(struct neuron_ioctl_bar_rw, data) == 16,
	   "struct neuron_ioctl_bar_rw.data is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_bar_rw *)0)->data) == 8,
	   "struct neuron_ioctl_bar_rw.data has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_bar_rw, data, __u32 *);
NEURON_ABI(offsetof(struct neuron_ioctl_bar_rw, count) == 24,
	   "struct neuron_ioctl_bar_rw.count is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_bar_rw *)0)->count) == 4,
	   "struct neuron_ioctl_bar_rw.count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_bar_rw, count, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_post_metric) == 16,
	   "size of struct neuron_ioctl_post_metric is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_post_metric) == 8,
	   "alignment of struct neuron_ioctl_post_metric is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_post_metric, data) == 0,
	   "struct neuron_ioctl_post_metric.data is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_post_metric *)0)->data) == 8,
	   "struct neuron_ioctl_post_metric.data has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_post_metric, data, __u32 *);
NEURON_ABI(offsetof(struct neuron_ioctl_post_metric, data_size) == 8,
	   "struct neuron_ioctl_post_metric.data_size is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_post_metric *)0)->data_size) == 4,
	   "struct neuron_ioctl_post_metric.data_size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_post_metric, data_size, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_copy_descriptors) == 32,
	   "size of struct neuron_ioctl_dma_copy_descriptors is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_copy_descriptors) == 8,
	   "alignment of struct neuron_ioctl_dma_copy_descriptors is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors, mem_handle) == 0,
	   "struct neuron_ioctl_dma_copy_descriptors.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_dma_copy_descriptors.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors, buffer) == 8,
	   "struct neuron_ioctl_dma_copy_descriptors.buffer is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors *)0)->buffer) == 8,
	   "struct neuron_ioctl_dma_copy_descriptors.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors, num_descs) == 16,
	   "struct neuron_ioctl_dma_copy_descriptors.num_descs is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors *)0)->num_descs) == 4,
	   "struct neuron_ioctl_dma_copy_descriptors.num_descs has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors, num_descs, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors, offset) == 20,
	   "struct neuron_ioctl_dma_copy_descriptors.offset is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors *)0)->offset) == 4,
	   "struct neuron_ioctl_dma_copy_descriptors.offset has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors, offset, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors, queue_type) == 24,
	   "struct neuron_ioctl_dma_copy_descriptors.queue_type is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors *)0)->queue_type) == 4,
	   "struct neuron_ioctl_dma_copy_descriptors.queue_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors, queue_type, enum neuron_dma_queue_type);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_copy_descriptors64) == 40,
	   "size of struct neuron_ioctl_dma_copy_descriptors64 is not 40");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_copy_descriptors64) == 8,
	   "alignment of struct neuron_ioctl_dma_copy_descriptors64 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors64, mem_handle) == 0,
	   "struct neuron_ioctl_dma_copy_descriptors64.mem_handle is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors64 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_dma_copy_descriptors64.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors64, mem_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors64, buffer) == 8,
	   "struct neuron_ioctl_dma_copy_descriptors64.buffer is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors64 *)0)->buffer) == 8,
	   "struct neuron_ioctl_dma_copy_descriptors64.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors64, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors64, num_descs) == 16,
	   "struct neuron_ioctl_dma_copy_descriptors64.num_descs is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors64 *)0)->num_descs) == 4,
	   "struct neuron_ioctl_dma_copy_descriptors64.num_descs has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors64, num_descs, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors64, offset) == 24,
	   "struct neuron_ioctl_dma_copy_descriptors64.offset is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors64 *)0)->offset) == 8,
	   "struct neuron_ioctl_dma_copy_descriptors64.offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors64, offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_copy_descriptors64, queue_type) == 32,
	   "struct neuron_ioctl_dma_copy_descriptors64.queue_type is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_copy_descriptors64 *)0)->queue_type) == 4,
	   "struct neuron_ioctl_dma_copy_descriptors64.queue_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_copy_descriptors64, queue_type, enum neuron_dma_queue_type);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_queue_init) == 48,
	   "size of struct neuron_ioctl_dma_queue_init is not 48");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_queue_init) == 8,
	   "alignment of struct neuron_ioctl_dma_queue_init is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, eng_id) == 0,
	   "struct neuron_ioctl_dma_queue_init.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_queue_init.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, qid) == 4,
	   "struct neuron_ioctl_dma_queue_init.qid is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->qid) == 4,
	   "struct neuron_ioctl_dma_queue_init.qid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, qid, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, tx_desc_count) == 8,
	   "struct neuron_ioctl_dma_queue_init.tx_desc_count is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->tx_desc_count) == 4,
	   "struct neuron_ioctl_dma_queue_init.tx_desc_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, tx_desc_count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, rx_desc_count) == 12,
	   "struct neuron_ioctl_dma_queue_init.rx_desc_count is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->rx_desc_count) == 4,
	   "struct neuron_ioctl_dma_queue_init.rx_desc_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, rx_desc_count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, tx_handle) == 16,
	   "struct neuron_ioctl_dma_queue_init.tx_handle is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->tx_handle) == 8,
	   "struct neuron_ioctl_dma_queue_init.tx_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, tx_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, rx_handle) == 24,
	   "struct neuron_ioctl_dma_queue_init.rx_handle is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->rx_handle) == 8,
	   "struct neuron_ioctl_dma_queue_init.rx_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, rx_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, rxc_handle) == 32,
	   "struct neuron_ioctl_dma_queue_init.rxc_handle is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->rxc_handle) == 8,
	   "struct neuron_ioctl_dma_queue_init.rxc_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, rxc_handle, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init, axi_port) == 40,
	   "struct neuron_ioctl_dma_queue_init.axi_port is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init *)0)->axi_port) == 4,
	   "struct neuron_ioctl_dma_queue_init.axi_port has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init, axi_port, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_queue_init_batch) == 12296,
	   "size of struct neuron_ioctl_dma_queue_init_batch is not 12296");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_queue_init_batch) == 8,
	   "alignment of struct neuron_ioctl_dma_queue_init_batch is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init_batch, count) == 0,
	   "struct neuron_ioctl_dma_queue_init_batch.count is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init_batch *)0)->count) == 4,
	   "struct neuron_ioctl_dma_queue_init_batch.count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init_batch, count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_init_batch, entries) == 8,
	   "struct neuron_ioctl_dma_queue_init_batch.entries is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_init_batch *)0)->entries) == 12288,
	   "struct neuron_ioctl_dma_queue_init_batch.entries has not 12288 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_init_batch, entries, struct neuron_ioctl_dma_queue_init [256]);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_queue_release) == 8,
	   "size of struct neuron_ioctl_dma_queue_release is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_queue_release) == 4,
	   "alignment of struct neuron_ioctl_dma_queue_release is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_release, eng_id) == 0,
	   "struct neuron_ioctl_dma_queue_release.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_release *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_queue_release.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_release, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_release, qid) == 4,
	   "struct neuron_ioctl_dma_queue_release.qid is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_release *)0)->qid) == 4,
	   "struct neuron_ioctl_dma_queue_release.qid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_release, qid, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_quiesce_queues) == 264,
	   "size of struct neuron_ioctl_dma_quiesce_queues is not 264");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_quiesce_queues) == 4,
	   "alignment of struct neuron_ioctl_dma_quiesce_queues is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_quiesce_queues, nc_id) == 0,
	   "struct neuron_ioctl_dma_quiesce_queues.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_quiesce_queues *)0)->nc_id) == 4,
	   "struct neuron_ioctl_dma_quiesce_queues.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_quiesce_queues, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_quiesce_queues, engine_count) == 4,
	   "struct neuron_ioctl_dma_quiesce_queues.engine_count is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_quiesce_queues *)0)->engine_count) == 4,
	   "struct neuron_ioctl_dma_quiesce_queues.engine_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_quiesce_queues, engine_count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_quiesce_queues, queue_mask) == 8,
	   "struct neuron_ioctl_dma_quiesce_queues.queue_mask is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_quiesce_queues *)0)->queue_mask) == 256,
	   "struct neuron_ioctl_dma_quiesce_queues.queue_mask has not 256 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_quiesce_queues, queue_mask, __u32 [64]);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_ack_completed) == 12,
	   "size of struct neuron_ioctl_dma_ack_completed is not 12");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_ack_completed) == 4,
	   "alignment of struct neuron_ioctl_dma_ack_completed is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_ack_completed, eng_id) == 0,
	   "struct neuron_ioctl_dma_ack_completed.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_ack_completed *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_ack_completed.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_ack_completed, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_ack_completed, qid) == 4,
	   "struct neuron_ioctl_dma_ack_completed.qid is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_ack_completed *)0)->qid) == 4,
	   "struct neuron_ioctl_dma_ack_completed.qid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_ack_completed, qid, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_ack_completed, count) == 8,
	   "struct neuron_ioctl_dma_ack_completed.count is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_ack_completed *)0)->count) == 4,
	   "struct neuron_ioctl_dma_ack_completed.count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_ack_completed, count, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_queue_copy_start) == 16,
	   "size of struct neuron_ioctl_dma_queue_copy_start is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_queue_copy_start) == 4,
	   "alignment of struct neuron_ioctl_dma_queue_copy_start is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_copy_start, eng_id) == 0,
	   "struct neuron_ioctl_dma_queue_copy_start.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_copy_start *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_queue_copy_start.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_copy_start, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_copy_start, qid) == 4,
	   "struct neuron_ioctl_dma_queue_copy_start.qid is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_copy_start *)0)->qid) == 4,
	   "struct neuron_ioctl_dma_queue_copy_start.qid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_copy_start, qid, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_copy_start, tx_desc_count) == 8,
	   "struct neuron_ioctl_dma_queue_copy_start.tx_desc_count is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_copy_start *)0)->tx_desc_count) == 4,
	   "struct neuron_ioctl_dma_queue_copy_start.tx_desc_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_copy_start, tx_desc_count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_copy_start, rx_desc_count) == 12,
	   "struct neuron_ioctl_dma_queue_copy_start.rx_desc_count is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_copy_start *)0)->rx_desc_count) == 4,
	   "struct neuron_ioctl_dma_queue_copy_start.rx_desc_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_copy_start, rx_desc_count, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_eng_init) == 4,
	   "size of struct neuron_ioctl_dma_eng_init is not 4");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_eng_init) == 4,
	   "alignment of struct neuron_ioctl_dma_eng_init is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_eng_init, eng_id) == 0,
	   "struct neuron_ioctl_dma_eng_init.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_eng_init *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_eng_init.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_eng_init, eng_id, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_eng_set_state) == 8,
	   "size of struct neuron_ioctl_dma_eng_set_state is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_eng_set_state) == 4,
	   "alignment of struct neuron_ioctl_dma_eng_set_state is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_eng_set_state, eng_id) == 0,
	   "struct neuron_ioctl_dma_eng_set_state.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_eng_set_state *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_eng_set_state.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_eng_set_state, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_eng_set_state, state) == 4,
	   "struct neuron_ioctl_dma_eng_set_state.state is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_eng_set_state *)0)->state) == 4,
	   "struct neuron_ioctl_dma_eng_set_state.state has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_eng_set_state, state, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_eng_get_state) == 16,
	   "size of struct neuron_ioctl_dma_eng_get_state is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_eng_get_state) == 8,
	   "alignment of struct neuron_ioctl_dma_eng_get_state is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_eng_get_state, eng_id) == 0,
	   "struct neuron_ioctl_dma_eng_get_state.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_eng_get_state *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_eng_get_state.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_eng_get_state, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_eng_get_state, state) == 8,
	   "struct neuron_ioctl_dma_eng_get_state.state is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_eng_get_state *)0)->state) == 8,
	   "struct neuron_ioctl_dma_eng_get_state.state has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_eng_get_state, state, struct neuron_dma_eng_state *);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_queue_get_state) == 24,
	   "size of struct neuron_ioctl_dma_queue_get_state is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_queue_get_state) == 8,
	   "alignment of struct neuron_ioctl_dma_queue_get_state is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_get_state, eng_id) == 0,
	   "struct neuron_ioctl_dma_queue_get_state.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_get_state *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_queue_get_state.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_get_state, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_get_state, qid) == 4,
	   "struct neuron_ioctl_dma_queue_get_state.qid is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_get_state *)0)->qid) == 4,
	   "struct neuron_ioctl_dma_queue_get_state.qid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_get_state, qid, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_get_state, tx) == 8,
	   "struct neuron_ioctl_dma_queue_get_state.tx is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_get_state *)0)->tx) == 8,
	   "struct neuron_ioctl_dma_queue_get_state.tx has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_get_state, tx, struct neuron_dma_queue_state *);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_queue_get_state, rx) == 16,
	   "struct neuron_ioctl_dma_queue_get_state.rx is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_queue_get_state *)0)->rx) == 8,
	   "struct neuron_ioctl_dma_queue_get_state.rx has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_queue_get_state, rx, struct neuron_dma_queue_state *);

NEURON_ABI(sizeof(struct neuron_ioctl_dma_descriptor_copyout) == 32,
	   "size of struct neuron_ioctl_dma_descriptor_copyout is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dma_descriptor_copyout) == 8,
	   "alignment of struct neuron_ioctl_dma_descriptor_copyout is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dma_descriptor_copyout, eng_id) == 0,
	   "struct neuron_ioctl_dma_descriptor_copyout.eng_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_descriptor_copyout *)0)->eng_id) == 4,
	   "struct neuron_ioctl_dma_descriptor_copyout.eng_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_descriptor_copyout, eng_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_descriptor_copyout, qid) == 4,
	   "struct neuron_ioctl_dma_descriptor_copyout.qid is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_descriptor_copyout *)0)->qid) == 4,
	   "struct neuron_ioctl_dma_descriptor_copyout.qid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_descriptor_copyout, qid, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_descriptor_copyout, type) == 8,
	   "struct neuron_ioctl_dma_descriptor_copyout.type is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_descriptor_copyout *)0)->type) == 4,
	   "struct neuron_ioctl_dma_descriptor_copyout.type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_descriptor_copyout, type, enum neuron_dma_queue_type);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_descriptor_copyout, start_index) == 12,
	   "struct neuron_ioctl_dma_descriptor_copyout.start_index is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_descriptor_copyout *)0)->start_index) == 4,
	   "struct neuron_ioctl_dma_descriptor_copyout.start_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_descriptor_copyout, start_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_descriptor_copyout, count) == 16,
	   "struct neuron_ioctl_dma_descriptor_copyout.count is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_descriptor_copyout *)0)->count) == 4,
	   "struct neuron_ioctl_dma_descriptor_copyout.count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_descriptor_copyout, count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dma_descriptor_copyout, buffer) == 24,
	   "struct neuron_ioctl_dma_descriptor_copyout.buffer is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_dma_descriptor_copyout *)0)->buffer) == 8,
	   "struct neuron_ioctl_dma_descriptor_copyout.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dma_descriptor_copyout, buffer, void *);

NEURON_ABI(sizeof(struct neuron_ioctl_semaphore) == 12,
	   "size of struct neuron_ioctl_semaphore is not 12");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_semaphore) == 4,
	   "alignment of struct neuron_ioctl_semaphore is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_semaphore, nc_id) == 0,
	   "struct neuron_ioctl_semaphore.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_semaphore *)0)->nc_id) == 4,
	   "struct neuron_ioctl_semaphore.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_semaphore, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_semaphore, semaphore_index) == 4,
	   "struct neuron_ioctl_semaphore.semaphore_index is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_semaphore *)0)->semaphore_index) == 4,
	   "struct neuron_ioctl_semaphore.semaphore_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_semaphore, semaphore_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_semaphore, value) == 8,
	   "struct neuron_ioctl_semaphore.value is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_semaphore *)0)->value) == 4,
	   "struct neuron_ioctl_semaphore.value has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_semaphore, value, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_event) == 12,
	   "size of struct neuron_ioctl_event is not 12");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_event) == 4,
	   "alignment of struct neuron_ioctl_event is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_event, nc_id) == 0,
	   "struct neuron_ioctl_event.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_event *)0)->nc_id) == 4,
	   "struct neuron_ioctl_event.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_event, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_event, event_index) == 4,
	   "struct neuron_ioctl_event.event_index is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_event *)0)->event_index) == 4,
	   "struct neuron_ioctl_event.event_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_event, event_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_event, value) == 8,
	   "struct neuron_ioctl_event.value is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_event *)0)->value) == 4,
	   "struct neuron_ioctl_event.value has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_event, value, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_notifications_init_v1) == 24,
	   "size of struct neuron_ioctl_notifications_init_v1 is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_notifications_init_v1) == 8,
	   "alignment of struct neuron_ioctl_notifications_init_v1 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v1, nc_id) == 0,
	   "struct neuron_ioctl_notifications_init_v1.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v1 *)0)->nc_id) == 4,
	   "struct neuron_ioctl_notifications_init_v1.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v1, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v1, nq_type) == 4,
	   "struct neuron_ioctl_notifications_init_v1.nq_type is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v1 *)0)->nq_type) == 4,
	   "struct neuron_ioctl_notifications_init_v1.nq_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v1, nq_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v1, engine_index) == 8,
	   "struct neuron_ioctl_notifications_init_v1.engine_index is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v1 *)0)->engine_index) == 4,
	   "struct neuron_ioctl_notifications_init_v1.engine_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v1, engine_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v1, size) == 12,
	   "struct neuron_ioctl_notifications_init_v1.size is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v1 *)0)->size) == 4,
	   "struct neuron_ioctl_notifications_init_v1.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v1, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v1, mmap_offset) == 16,
	   "struct neuron_ioctl_notifications_init_v1.mmap_offset is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v1 *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_notifications_init_v1.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v1, mmap_offset, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_notifications_init_v2) == 48,
	   "size of struct neuron_ioctl_notifications_init_v2 is not 48");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_notifications_init_v2) == 8,
	   "alignment of struct neuron_ioctl_notifications_init_v2 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, nq_dev_id) == 0,
	   "struct neuron_ioctl_notifications_init_v2.nq_dev_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->nq_dev_id) == 4,
	   "struct neuron_ioctl_notifications_init_v2.nq_dev_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, nq_dev_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, nq_dev_type) == 4,
	   "struct neuron_ioctl_notifications_init_v2.nq_dev_type is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->nq_dev_type) == 4,
	   "struct neuron_ioctl_notifications_init_v2.nq_dev_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, nq_dev_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, nq_type) == 8,
	   "struct neuron_ioctl_notifications_init_v2.nq_type is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->nq_type) == 4,
	   "struct neuron_ioctl_notifications_init_v2.nq_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, nq_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, engine_index) == 12,
	   "struct neuron_ioctl_notifications_init_v2.engine_index is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->engine_index) == 4,
	   "struct neuron_ioctl_notifications_init_v2.engine_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, engine_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, size) == 16,
	   "struct neuron_ioctl_notifications_init_v2.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->size) == 4,
	   "struct neuron_ioctl_notifications_init_v2.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, on_host_memory) == 20,
	   "struct neuron_ioctl_notifications_init_v2.on_host_memory is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->on_host_memory) == 4,
	   "struct neuron_ioctl_notifications_init_v2.on_host_memory has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, on_host_memory, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, dram_channel) == 24,
	   "struct neuron_ioctl_notifications_init_v2.dram_channel is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->dram_channel) == 4,
	   "struct neuron_ioctl_notifications_init_v2.dram_channel has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, dram_channel, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, dram_region) == 28,
	   "struct neuron_ioctl_notifications_init_v2.dram_region is not at 28");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->dram_region) == 4,
	   "struct neuron_ioctl_notifications_init_v2.dram_region has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, dram_region, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, mmap_offset) == 32,
	   "struct neuron_ioctl_notifications_init_v2.mmap_offset is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_notifications_init_v2.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, mmap_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_v2, mem_handle) == 40,
	   "struct neuron_ioctl_notifications_init_v2.mem_handle is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_v2 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_notifications_init_v2.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_v2, mem_handle, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_notifications_init_with_realloc_v2) == 56,
	   "size of struct neuron_ioctl_notifications_init_with_realloc_v2 is not 56");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_notifications_init_with_realloc_v2) == 8,
	   "alignment of struct neuron_ioctl_notifications_init_with_realloc_v2 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_dev_id) == 0,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.nq_dev_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->nq_dev_id) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.nq_dev_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_dev_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_dev_type) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.nq_dev_type is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->nq_dev_type) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.nq_dev_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_dev_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_type) == 8,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.nq_type is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->nq_type) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.nq_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, nq_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, engine_index) == 12,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.engine_index is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->engine_index) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.engine_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, engine_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, size) == 16,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->size) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, on_host_memory) == 20,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.on_host_memory is not at 20");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->on_host_memory) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.on_host_memory has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, on_host_memory, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, dram_channel) == 24,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.dram_channel is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->dram_channel) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.dram_channel has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, dram_channel, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, dram_region) == 28,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.dram_region is not at 28");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->dram_region) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.dram_region has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, dram_region, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, force_alloc_mem) == 32,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.force_alloc_mem is not at 32");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->force_alloc_mem) == 4,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.force_alloc_mem has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, force_alloc_mem, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, mmap_offset) == 40,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.mmap_offset is not at 40");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, mmap_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_init_with_realloc_v2, mem_handle) == 48,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.mem_handle is not at 48");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_init_with_realloc_v2 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_notifications_init_with_realloc_v2.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_init_with_realloc_v2, mem_handle, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_neuron_ds_info) == 24,
	   "size of struct neuron_ioctl_neuron_ds_info is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_neuron_ds_info) == 8,
	   "alignment of struct neuron_ioctl_neuron_ds_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_neuron_ds_info, pid) == 0,
	   "struct neuron_ioctl_neuron_ds_info.pid is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_neuron_ds_info *)0)->pid) == 4,
	   "struct neuron_ioctl_neuron_ds_info.pid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_neuron_ds_info, pid, pid_t);
NEURON_ABI(offsetof(struct neuron_ioctl_neuron_ds_info, mmap_offset) == 8,
	   "struct neuron_ioctl_neuron_ds_info.mmap_offset is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_neuron_ds_info *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_neuron_ds_info.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_neuron_ds_info, mmap_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_neuron_ds_info, size) == 16,
	   "struct neuron_ioctl_neuron_ds_info.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_neuron_ds_info *)0)->size) == 4,
	   "struct neuron_ioctl_neuron_ds_info.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_neuron_ds_info, size, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_notifications_destroy) == 8,
	   "size of struct neuron_ioctl_notifications_destroy is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_notifications_destroy) == 8,
	   "alignment of struct neuron_ioctl_notifications_destroy is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_destroy, mmap_offset) == 0,
	   "struct neuron_ioctl_notifications_destroy.mmap_offset is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_destroy *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_notifications_destroy.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_destroy, mmap_offset, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_notifications_destroy_nq) == 12,
	   "size of struct neuron_ioctl_notifications_destroy_nq is not 12");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_notifications_destroy_nq) == 4,
	   "alignment of struct neuron_ioctl_notifications_destroy_nq is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_destroy_nq, nq_dev_id) == 0,
	   "struct neuron_ioctl_notifications_destroy_nq.nq_dev_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_destroy_nq *)0)->nq_dev_id) == 4,
	   "struct neuron_ioctl_notifications_destroy_nq.nq_dev_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_destroy_nq, nq_dev_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_destroy_nq, nq_type) == 4,
	   "struct neuron_ioctl_notifications_destroy_nq.nq_type is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_destroy_nq *)0)->nq_type) == 4,
	   "struct neuron_ioctl_notifications_destroy_nq.nq_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_destroy_nq, nq_type, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_destroy_nq, engine_index) == 8,
	   "struct neuron_ioctl_notifications_destroy_nq.engine_index is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_destroy_nq *)0)->engine_index) == 4,
	   "struct neuron_ioctl_notifications_destroy_nq.engine_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_destroy_nq, engine_index, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_notifications_queue_info) == 12,
	   "size of struct neuron_ioctl_notifications_queue_info is not 12");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_notifications_queue_info) == 4,
	   "alignment of struct neuron_ioctl_notifications_queue_info is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_queue_info, nq_dev_id) == 0,
	   "struct neuron_ioctl_notifications_queue_info.nq_dev_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_queue_info *)0)->nq_dev_id) == 1,
	   "struct neuron_ioctl_notifications_queue_info.nq_dev_id has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_queue_info, nq_dev_id, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_queue_info, nq_dev_type) == 1,
	   "struct neuron_ioctl_notifications_queue_info.nq_dev_type is not at 1");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_queue_info *)0)->nq_dev_type) == 1,
	   "struct neuron_ioctl_notifications_queue_info.nq_dev_type has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_queue_info, nq_dev_type, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_queue_info, nq_type) == 2,
	   "struct neuron_ioctl_notifications_queue_info.nq_type is not at 2");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_queue_info *)0)->nq_type) == 1,
	   "struct neuron_ioctl_notifications_queue_info.nq_type has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_queue_info, nq_type, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_queue_info, engine_index) == 3,
	   "struct neuron_ioctl_notifications_queue_info.engine_index is not at 3");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_queue_info *)0)->engine_index) == 1,
	   "struct neuron_ioctl_notifications_queue_info.engine_index has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_queue_info, engine_index, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_queue_info, head) == 4,
	   "struct neuron_ioctl_notifications_queue_info.head is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_queue_info *)0)->head) == 4,
	   "struct neuron_ioctl_notifications_queue_info.head has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_queue_info, head, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_notifications_queue_info, phase_bit) == 8,
	   "struct neuron_ioctl_notifications_queue_info.phase_bit is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_notifications_queue_info *)0)->phase_bit) == 4,
	   "struct neuron_ioctl_notifications_queue_info.phase_bit has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_notifications_queue_info, phase_bit, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_read_hw_counters) == 24,
	   "size of struct neuron_ioctl_read_hw_counters is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_read_hw_counters) == 8,
	   "alignment of struct neuron_ioctl_read_hw_counters is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_read_hw_counters, address) == 0,
	   "struct neuron_ioctl_read_hw_counters.address is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_read_hw_counters *)0)->address) == 8,
	   "struct neuron_ioctl_read_hw_counters.address has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_read_hw_counters, address, __u64 *);
NEURON_ABI(offsetof(struct neuron_ioctl_read_hw_counters, data) == 8,
	   "struct neuron_ioctl_read_hw_counters.data is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_read_hw_counters *)0)->data) == 8,
	   "struct neuron_ioctl_read_hw_counters.data has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_read_hw_counters, data, __u32 *);
NEURON_ABI(offsetof(struct neuron_ioctl_read_hw_counters, count) == 16,
	   "struct neuron_ioctl_read_hw_counters.count is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_read_hw_counters *)0)->count) == 4,
	   "struct neuron_ioctl_read_hw_counters.count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_read_hw_counters, count, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_crwl) == 36, "size of struct neuron_ioctl_crwl is not 36");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_crwl) == 4,
	   "alignment of struct neuron_ioctl_crwl is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_crwl, nc_id) == 0,
	   "struct neuron_ioctl_crwl.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl *)0)->nc_id) == 4,
	   "struct neuron_ioctl_crwl.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl, uuid) == 4,
	   "struct neuron_ioctl_crwl.uuid is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl *)0)->uuid) == 32,
	   "struct neuron_ioctl_crwl.uuid has not 32 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl, uuid, struct neuron_uuid);

NEURON_ABI(sizeof(struct neuron_ioctl_crwl_nc_map) == 24,
	   "size of struct neuron_ioctl_crwl_nc_map is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_crwl_nc_map) == 8,
	   "alignment of struct neuron_ioctl_crwl_nc_map is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map, nc_count) == 0,
	   "struct neuron_ioctl_crwl_nc_map.nc_count is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map *)0)->nc_count) == 4,
	   "struct neuron_ioctl_crwl_nc_map.nc_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map, nc_count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map, start_nc_index) == 4,
	   "struct neuron_ioctl_crwl_nc_map.start_nc_index is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map *)0)->start_nc_index) == 4,
	   "struct neuron_ioctl_crwl_nc_map.start_nc_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map, start_nc_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map, end_nc_index) == 8,
	   "struct neuron_ioctl_crwl_nc_map.end_nc_index is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map *)0)->end_nc_index) == 4,
	   "struct neuron_ioctl_crwl_nc_map.end_nc_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map, end_nc_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map, max_nc_available) == 12,
	   "struct neuron_ioctl_crwl_nc_map.max_nc_available is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map *)0)->max_nc_available) == 4,
	   "struct neuron_ioctl_crwl_nc_map.max_nc_available has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map, max_nc_available, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map, bitmap) == 16,
	   "struct neuron_ioctl_crwl_nc_map.bitmap is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map *)0)->bitmap) == 8,
	   "struct neuron_ioctl_crwl_nc_map.bitmap has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map, bitmap, volatile unsigned long);

NEURON_ABI(sizeof(struct neuron_ioctl_crwl_nc_map_ext) == 80,
	   "size of struct neuron_ioctl_crwl_nc_map_ext is not 80");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_crwl_nc_map_ext) == 8,
	   "alignment of struct neuron_ioctl_crwl_nc_map_ext is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map_ext, nc_count) == 0,
	   "struct neuron_ioctl_crwl_nc_map_ext.nc_count is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map_ext *)0)->nc_count) == 4,
	   "struct neuron_ioctl_crwl_nc_map_ext.nc_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map_ext, nc_count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map_ext, start_nc_index) == 4,
	   "struct neuron_ioctl_crwl_nc_map_ext.start_nc_index is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map_ext *)0)->start_nc_index) == 4,
	   "struct neuron_ioctl_crwl_nc_map_ext.start_nc_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map_ext, start_nc_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map_ext, end_nc_index) == 8,
	   "struct neuron_ioctl_crwl_nc_map_ext.end_nc_index is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map_ext *)0)->end_nc_index) == 4,
	   "struct neuron_ioctl_crwl_nc_map_ext.end_nc_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map_ext, end_nc_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map_ext, max_nc_available) == 12,
	   "struct neuron_ioctl_crwl_nc_map_ext.max_nc_available is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map_ext *)0)->max_nc_available) == 4,
	   "struct neuron_ioctl_crwl_nc_map_ext.max_nc_available has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map_ext, max_nc_available, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_crwl_nc_map_ext, bitmap) == 16,
	   "struct neuron_ioctl_crwl_nc_map_ext.bitmap is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_crwl_nc_map_ext *)0)->bitmap) == 64,
	   "struct neuron_ioctl_crwl_nc_map_ext.bitmap has not 64 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_crwl_nc_map_ext, bitmap, unsigned long [8]);

NEURON_ABI(sizeof(struct neuron_ioctl_cinit_set) == 12,
	   "size of struct neuron_ioctl_cinit_set is not 12");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_cinit_set) == 4,
	   "alignment of struct neuron_ioctl_cinit_set is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_cinit_set, nc_id) == 0,
	   "struct neuron_ioctl_cinit_set.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_cinit_set *)0)->nc_id) == 4,
	   "struct neuron_ioctl_cinit_set.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_cinit_set, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_cinit_set, state) == 4,
	   "struct neuron_ioctl_cinit_set.state is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_cinit_set *)0)->state) == 4,
	   "struct neuron_ioctl_cinit_set.state has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_cinit_set, state, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_cinit_set, new_state) == 8,
	   "struct neuron_ioctl_cinit_set.new_state is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_cinit_set *)0)->new_state) == 4,
	   "struct neuron_ioctl_cinit_set.new_state has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_cinit_set, new_state, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_nc_model_started_count) == 16,
	   "size of struct neuron_ioctl_nc_model_started_count is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_nc_model_started_count) == 8,
	   "alignment of struct neuron_ioctl_nc_model_started_count is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_nc_model_started_count, nc_id) == 0,
	   "struct neuron_ioctl_nc_model_started_count.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_model_started_count *)0)->nc_id) == 4,
	   "struct neuron_ioctl_nc_model_started_count.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_model_started_count, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_nc_model_started_count, started_count) == 8,
	   "struct neuron_ioctl_nc_model_started_count.started_count is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_model_started_count *)0)->started_count) == 8,
	   "struct neuron_ioctl_nc_model_started_count.started_count has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_model_started_count, started_count, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_compatible_version) == 8,
	   "size of struct neuron_ioctl_compatible_version is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_compatible_version) == 4,
	   "alignment of struct neuron_ioctl_compatible_version is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_compatible_version, max) == 0,
	   "struct neuron_ioctl_compatible_version.max is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_compatible_version *)0)->max) == 4,
	   "struct neuron_ioctl_compatible_version.max has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_compatible_version, max, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_compatible_version, min) == 4,
	   "struct neuron_ioctl_compatible_version.min is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_compatible_version *)0)->min) == 4,
	   "struct neuron_ioctl_compatible_version.min has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_compatible_version, min, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_device_basic_info) == 8,
	   "size of struct neuron_ioctl_device_basic_info is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_basic_info) == 4,
	   "alignment of struct neuron_ioctl_device_basic_info is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_device_basic_info, architecture) == 0,
	   "struct neuron_ioctl_device_basic_info.architecture is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_basic_info *)0)->architecture) == 4,
	   "struct neuron_ioctl_device_basic_info.architecture has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_basic_info, architecture, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_basic_info, revision) == 4,
	   "struct neuron_ioctl_device_basic_info.revision is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_basic_info *)0)->revision) == 4,
	   "struct neuron_ioctl_device_basic_info.revision has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_basic_info, revision, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_device_bdf) == 8,
	   "size of struct neuron_ioctl_device_bdf is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_bdf) == 4,
	   "alignment of struct neuron_ioctl_device_bdf is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf, bus_number) == 0,
	   "struct neuron_ioctl_device_bdf.bus_number is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf *)0)->bus_number) == 4,
	   "struct neuron_ioctl_device_bdf.bus_number has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf, bus_number, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf, slot) == 4,
	   "struct neuron_ioctl_device_bdf.slot is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf *)0)->slot) == 1,
	   "struct neuron_ioctl_device_bdf.slot has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf, slot, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf, func) == 5,
	   "struct neuron_ioctl_device_bdf.func is not at 5");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf *)0)->func) == 1,
	   "struct neuron_ioctl_device_bdf.func has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf, func, __u8);

NEURON_ABI(sizeof(struct neuron_ioctl_device_bdf_ext) == 16,
	   "size of struct neuron_ioctl_device_bdf_ext is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_bdf_ext) == 4,
	   "alignment of struct neuron_ioctl_device_bdf_ext is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf_ext, nd_index) == 0,
	   "struct neuron_ioctl_device_bdf_ext.nd_index is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf_ext *)0)->nd_index) == 4,
	   "struct neuron_ioctl_device_bdf_ext.nd_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf_ext, nd_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf_ext, domain) == 4,
	   "struct neuron_ioctl_device_bdf_ext.domain is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf_ext *)0)->domain) == 4,
	   "struct neuron_ioctl_device_bdf_ext.domain has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf_ext, domain, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf_ext, bus_number) == 8,
	   "struct neuron_ioctl_device_bdf_ext.bus_number is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf_ext *)0)->bus_number) == 4,
	   "struct neuron_ioctl_device_bdf_ext.bus_number has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf_ext, bus_number, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf_ext, slot) == 12,
	   "struct neuron_ioctl_device_bdf_ext.slot is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf_ext *)0)->slot) == 1,
	   "struct neuron_ioctl_device_bdf_ext.slot has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf_ext, slot, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_device_bdf_ext, func) == 13,
	   "struct neuron_ioctl_device_bdf_ext.func is not at 13");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_bdf_ext *)0)->func) == 1,
	   "struct neuron_ioctl_device_bdf_ext.func has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_bdf_ext, func, __u8);

NEURON_ABI(sizeof(struct neuron_ioctl_resource_mmap_info) == 32,
	   "size of struct neuron_ioctl_resource_mmap_info is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_resource_mmap_info) == 8,
	   "alignment of struct neuron_ioctl_resource_mmap_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_resource_mmap_info, block) == 0,
	   "struct neuron_ioctl_resource_mmap_info.block is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_resource_mmap_info *)0)->block) == 4,
	   "struct neuron_ioctl_resource_mmap_info.block has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_resource_mmap_info, block, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_resource_mmap_info, block_id) == 4,
	   "struct neuron_ioctl_resource_mmap_info.block_id is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_resource_mmap_info *)0)->block_id) == 4,
	   "struct neuron_ioctl_resource_mmap_info.block_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_resource_mmap_info, block_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_resource_mmap_info, resource) == 8,
	   "struct neuron_ioctl_resource_mmap_info.resource is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_resource_mmap_info *)0)->resource) == 4,
	   "struct neuron_ioctl_resource_mmap_info.resource has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_resource_mmap_info, resource, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_resource_mmap_info, offset) == 16,
	   "struct neuron_ioctl_resource_mmap_info.offset is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_resource_mmap_info *)0)->offset) == 8,
	   "struct neuron_ioctl_resource_mmap_info.offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_resource_mmap_info, offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_resource_mmap_info, size) == 24,
	   "struct neuron_ioctl_resource_mmap_info.size is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_resource_mmap_info *)0)->size) == 8,
	   "struct neuron_ioctl_resource_mmap_info.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_resource_mmap_info, size, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_device_info) == 80,
	   "size of struct neuron_ioctl_device_info is not 80");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_info) == 8,
	   "alignment of struct neuron_ioctl_device_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_device_info, architecture) == 0,
	   "struct neuron_ioctl_device_info.architecture is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_info *)0)->architecture) == 4,
	   "struct neuron_ioctl_device_info.architecture has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_info, architecture, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_info, revision) == 4,
	   "struct neuron_ioctl_device_info.revision is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_info *)0)->revision) == 4,
	   "struct neuron_ioctl_device_info.revision has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_info, revision, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_info, connected_device_count) == 8,
	   "struct neuron_ioctl_device_info.connected_device_count is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_info *)0)->connected_device_count) == 4,
	   "struct neuron_ioctl_device_info.connected_device_count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_info, connected_device_count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_info, connected_devices) == 12,
	   "struct neuron_ioctl_device_info.connected_devices is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_info *)0)->connected_devices) == 32,
	   "struct neuron_ioctl_device_info.connected_devices has not 32 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_info, connected_devices, __u32 [8]);
NEURON_ABI(offsetof(struct neuron_ioctl_device_info, bar_address) == 48,
	   "struct neuron_ioctl_device_info.bar_address is not at 48");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_info *)0)->bar_address) == 16,
	   "struct neuron_ioctl_device_info.bar_address has not 16 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_info, bar_address, __u64 [2]);
NEURON_ABI(offsetof(struct neuron_ioctl_device_info, bar_size) == 64,
	   "struct neuron_ioctl_device_info.bar_size is not at 64");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_info *)0)->bar_size) == 16,
	   "struct neuron_ioctl_device_info.bar_size has not 16 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_info, bar_size, __u64 [2]);

NEURON_ABI(sizeof(struct neuron_ioctl_dmabuf_fd) == 24,
	   "size of struct neuron_ioctl_dmabuf_fd is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dmabuf_fd) == 8,
	   "alignment of struct neuron_ioctl_dmabuf_fd is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dmabuf_fd, va) == 0,
	   "struct neuron_ioctl_dmabuf_fd.va is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dmabuf_fd *)0)->va) == 8,
	   "struct neuron_ioctl_dmabuf_fd.va has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dmabuf_fd, va, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dmabuf_fd, size) == 8,
	   "struct neuron_ioctl_dmabuf_fd.size is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dmabuf_fd *)0)->size) == 8,
	   "struct neuron_ioctl_dmabuf_fd.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dmabuf_fd, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_dmabuf_fd, fd) == 16,
	   "struct neuron_ioctl_dmabuf_fd.fd is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_dmabuf_fd *)0)->fd) == 8,
	   "struct neuron_ioctl_dmabuf_fd.fd has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dmabuf_fd, fd, __s32 *);

NEURON_ABI(sizeof(struct neuron_ioctl_device_driver_info) == 24,
	   "size of struct neuron_ioctl_device_driver_info is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_device_driver_info) == 8,
	   "alignment of struct neuron_ioctl_device_driver_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_device_driver_info, architecture) == 0,
	   "struct neuron_ioctl_device_driver_info.architecture is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_driver_info *)0)->architecture) == 4,
	   "struct neuron_ioctl_device_driver_info.architecture has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_driver_info, architecture, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_driver_info, revision) == 4,
	   "struct neuron_ioctl_device_driver_info.revision is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_driver_info *)0)->revision) == 4,
	   "struct neuron_ioctl_device_driver_info.revision has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_driver_info, revision, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_driver_info, version) == 8,
	   "struct neuron_ioctl_device_driver_info.version is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_driver_info *)0)->version) == 4,
	   "struct neuron_ioctl_device_driver_info.version has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_driver_info, version, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_driver_info, size) == 12,
	   "struct neuron_ioctl_device_driver_info.size is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_driver_info *)0)->size) == 4,
	   "struct neuron_ioctl_device_driver_info.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_driver_info, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_device_driver_info, feature_flags1) == 16,
	   "struct neuron_ioctl_device_driver_info.feature_flags1 is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_device_driver_info *)0)->feature_flags1) == 8,
	   "struct neuron_ioctl_device_driver_info.feature_flags1 has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_device_driver_info, feature_flags1, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_get_mc_mmap_info) == 24,
	   "size of struct neuron_ioctl_mem_get_mc_mmap_info is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_get_mc_mmap_info) == 8,
	   "alignment of struct neuron_ioctl_mem_get_mc_mmap_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_mc_mmap_info, pa) == 0,
	   "struct neuron_ioctl_mem_get_mc_mmap_info.pa is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_mc_mmap_info *)0)->pa) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info.pa has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_mc_mmap_info, pa, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_mc_mmap_info, mmap_offset) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info.mmap_offset is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_mc_mmap_info *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_mc_mmap_info, mmap_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_mc_mmap_info, size) == 16,
	   "struct neuron_ioctl_mem_get_mc_mmap_info.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_mc_mmap_info *)0)->size) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_mc_mmap_info, size, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_get_mc_mmap_info_v2) == 32,
	   "size of struct neuron_ioctl_mem_get_mc_mmap_info_v2 is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_get_mc_mmap_info_v2) == 8,
	   "alignment of struct neuron_ioctl_mem_get_mc_mmap_info_v2 is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_mc_mmap_info_v2, pa) == 0,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.pa is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_mc_mmap_info_v2 *)0)->pa) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.pa has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_mc_mmap_info_v2, pa, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_mc_mmap_info_v2, mmap_offset) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.mmap_offset is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_mc_mmap_info_v2 *)0)->mmap_offset) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.mmap_offset has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_mc_mmap_info_v2, mmap_offset, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_mc_mmap_info_v2, size) == 16,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.size is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_mc_mmap_info_v2 *)0)->size) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_mc_mmap_info_v2, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_get_mc_mmap_info_v2, mem_handle) == 24,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.mem_handle is not at 24");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_get_mc_mmap_info_v2 *)0)->mem_handle) == 8,
	   "struct neuron_ioctl_mem_get_mc_mmap_info_v2.mem_handle has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_get_mc_mmap_info_v2, mem_handle, __u64);

NEURON_ABI(sizeof(struct neuron_ioctl_printk) == 16,
	   "size of struct neuron_ioctl_printk is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_printk) == 8,
	   "alignment of struct neuron_ioctl_printk is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_printk, buffer) == 0,
	   "struct neuron_ioctl_printk.buffer is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_printk *)0)->buffer) == 8,
	   "struct neuron_ioctl_printk.buffer has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_printk, buffer, void *);
NEURON_ABI(offsetof(struct neuron_ioctl_printk, size) == 8,
	   "struct neuron_ioctl_printk.size is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_printk *)0)->size) == 4,
	   "struct neuron_ioctl_printk.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_printk, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_printk, action) == 12,
	   "struct neuron_ioctl_printk.action is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_printk *)0)->action) == 4,
	   "struct neuron_ioctl_printk.action has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_printk, action, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_host_device_id) == 4,
	   "size of struct neuron_ioctl_host_device_id is not 4");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_host_device_id) == 4,
	   "alignment of struct neuron_ioctl_host_device_id is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_host_device_id, host_device_id) == 0,
	   "struct neuron_ioctl_host_device_id.host_device_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_host_device_id *)0)->host_device_id) == 4,
	   "struct neuron_ioctl_host_device_id.host_device_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_host_device_id, host_device_id, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_dump_mem_chunks) == 24,
	   "size of struct neuron_ioctl_dump_mem_chunks is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_dump_mem_chunks) == 8,
	   "alignment of struct neuron_ioctl_dump_mem_chunks is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_dump_mem_chunks, hbm_index) == 0,
	   "struct neuron_ioctl_dump_mem_chunks.hbm_index is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_dump_mem_chunks *)0)->hbm_index) == 4,
	   "struct neuron_ioctl_dump_mem_chunks.hbm_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dump_mem_chunks, hbm_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dump_mem_chunks, num_entries_in) == 4,
	   "struct neuron_ioctl_dump_mem_chunks.num_entries_in is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_dump_mem_chunks *)0)->num_entries_in) == 4,
	   "struct neuron_ioctl_dump_mem_chunks.num_entries_in has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dump_mem_chunks, num_entries_in, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dump_mem_chunks, num_entries_out) == 8,
	   "struct neuron_ioctl_dump_mem_chunks.num_entries_out is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_dump_mem_chunks *)0)->num_entries_out) == 4,
	   "struct neuron_ioctl_dump_mem_chunks.num_entries_out has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dump_mem_chunks, num_entries_out, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_dump_mem_chunks, data) == 16,
	   "struct neuron_ioctl_dump_mem_chunks.data is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_dump_mem_chunks *)0)->data) == 8,
	   "struct neuron_ioctl_dump_mem_chunks.data has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_dump_mem_chunks, data, struct neuron_ioctl_mem_chunk_info *);

NEURON_ABI(sizeof(struct neuron_ioctl_nc_pid_state_dump) == 16,
	   "size of struct neuron_ioctl_nc_pid_state_dump is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_nc_pid_state_dump) == 4,
	   "alignment of struct neuron_ioctl_nc_pid_state_dump is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_nc_pid_state_dump, size) == 0,
	   "struct neuron_ioctl_nc_pid_state_dump.size is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_pid_state_dump *)0)->size) == 4,
	   "struct neuron_ioctl_nc_pid_state_dump.size has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_pid_state_dump, size, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_nc_pid_state_dump, nc_id) == 4,
	   "struct neuron_ioctl_nc_pid_state_dump.nc_id is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_pid_state_dump *)0)->nc_id) == 4,
	   "struct neuron_ioctl_nc_pid_state_dump.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_pid_state_dump, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_nc_pid_state_dump, filter_log_owner) == 8,
	   "struct neuron_ioctl_nc_pid_state_dump.filter_log_owner is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_pid_state_dump *)0)->filter_log_owner) == 4,
	   "struct neuron_ioctl_nc_pid_state_dump.filter_log_owner has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_pid_state_dump, filter_log_owner, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_nc_pid_state_dump, log_dump_limit) == 12,
	   "struct neuron_ioctl_nc_pid_state_dump.log_dump_limit is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_pid_state_dump *)0)->log_dump_limit) == 4,
	   "struct neuron_ioctl_nc_pid_state_dump.log_dump_limit has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_pid_state_dump, log_dump_limit, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_host_device_id_to_rid_map) == 260,
	   "size of struct neuron_ioctl_host_device_id_to_rid_map is not 260");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_host_device_id_to_rid_map) == 4,
	   "alignment of struct neuron_ioctl_host_device_id_to_rid_map is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_host_device_id_to_rid_map, count) == 0,
	   "struct neuron_ioctl_host_device_id_to_rid_map.count is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_host_device_id_to_rid_map *)0)->count) == 4,
	   "struct neuron_ioctl_host_device_id_to_rid_map.count has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_host_device_id_to_rid_map, count, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_host_device_id_to_rid_map, host_did_to_rid_map) == 4,
	   "struct neuron_ioctl_host_device_id_to_rid_map.host_did_to_rid_map is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_host_device_id_to_rid_map *)0)->host_did_to_rid_map) == 256,
	   "struct neuron_ioctl_host_device_id_to_rid_map.host_did_to_rid_map has not 256 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_host_device_id_to_rid_map, host_did_to_rid_map, __u32 [64]);

NEURON_ABI(sizeof(struct neuron_ioctl_hbm_scrub_start) == 16,
	   "size of struct neuron_ioctl_hbm_scrub_start is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_hbm_scrub_start) == 4,
	   "alignment of struct neuron_ioctl_hbm_scrub_start is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_hbm_scrub_start, nc_id) == 0,
	   "struct neuron_ioctl_hbm_scrub_start.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_hbm_scrub_start *)0)->nc_id) == 4,
	   "struct neuron_ioctl_hbm_scrub_start.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_hbm_scrub_start, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_hbm_scrub_start, hbm_index) == 4,
	   "struct neuron_ioctl_hbm_scrub_start.hbm_index is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_hbm_scrub_start *)0)->hbm_index) == 4,
	   "struct neuron_ioctl_hbm_scrub_start.hbm_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_hbm_scrub_start, hbm_index, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_hbm_scrub_start, axi_port) == 8,
	   "struct neuron_ioctl_hbm_scrub_start.axi_port is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_hbm_scrub_start *)0)->axi_port) == 4,
	   "struct neuron_ioctl_hbm_scrub_start.axi_port has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_hbm_scrub_start, axi_port, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_hbm_scrub_start, init_val) == 12,
	   "struct neuron_ioctl_hbm_scrub_start.init_val is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_hbm_scrub_start *)0)->init_val) == 4,
	   "struct neuron_ioctl_hbm_scrub_start.init_val has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_hbm_scrub_start, init_val, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_hbm_scrub_wait) == 8,
	   "size of struct neuron_ioctl_hbm_scrub_wait is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_hbm_scrub_wait) == 4,
	   "alignment of struct neuron_ioctl_hbm_scrub_wait is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_hbm_scrub_wait, nc_id) == 0,
	   "struct neuron_ioctl_hbm_scrub_wait.nc_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_hbm_scrub_wait *)0)->nc_id) == 4,
	   "struct neuron_ioctl_hbm_scrub_wait.nc_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_hbm_scrub_wait, nc_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_hbm_scrub_wait, hbm_index) == 4,
	   "struct neuron_ioctl_hbm_scrub_wait.hbm_index is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_hbm_scrub_wait *)0)->hbm_index) == 4,
	   "struct neuron_ioctl_hbm_scrub_wait.hbm_index has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_hbm_scrub_wait, hbm_index, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_get_logical_to_physical_nc_map) == 16,
	   "size of struct neuron_ioctl_get_logical_to_physical_nc_map is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_get_logical_to_physical_nc_map) == 8,
	   "alignment of struct neuron_ioctl_get_logical_to_physical_nc_map is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_get_logical_to_physical_nc_map, map) == 0,
	   "struct neuron_ioctl_get_logical_to_physical_nc_map.map is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_get_logical_to_physical_nc_map *)0)->map) == 8,
	   "struct neuron_ioctl_get_logical_to_physical_nc_map.map has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_get_logical_to_physical_nc_map, map, struct neuron_ioctl_nc_map *);
NEURON_ABI(offsetof(struct neuron_ioctl_get_logical_to_physical_nc_map, max_map_entries) == 8,
	   "struct neuron_ioctl_get_logical_to_physical_nc_map.max_map_entries is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_get_logical_to_physical_nc_map *)0)->max_map_entries) == 4,
	   "struct neuron_ioctl_get_logical_to_physical_nc_map.max_map_entries has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_get_logical_to_physical_nc_map, max_map_entries, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_get_logical_to_physical_nc_map, mapping_version) == 12,
	   "struct neuron_ioctl_get_logical_to_physical_nc_map.mapping_version is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_get_logical_to_physical_nc_map *)0)->mapping_version) == 4,
	   "struct neuron_ioctl_get_logical_to_physical_nc_map.mapping_version has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_get_logical_to_physical_nc_map, mapping_version, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_pod_info) == 260,
	   "size of struct neuron_ioctl_pod_info is not 260");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_pod_info) == 2,
	   "alignment of struct neuron_ioctl_pod_info is not 2");
NEURON_ABI(offsetof(struct neuron_ioctl_pod_info, sz) == 0,
	   "struct neuron_ioctl_pod_info.sz is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_info *)0)->sz) == 2,
	   "struct neuron_ioctl_pod_info.sz has not 2 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_info, sz, __u16);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_info, pod_type) == 2,
	   "struct neuron_ioctl_pod_info.pod_type is not at 2");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_info *)0)->pod_type) == 1,
	   "struct neuron_ioctl_pod_info.pod_type has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_info, pod_type, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_info, pod_id) == 3,
	   "struct neuron_ioctl_pod_info.pod_id is not at 3");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_info *)0)->pod_id) == 256,
	   "struct neuron_ioctl_pod_info.pod_id has not 256 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_info, pod_id, __u8 [256]);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_info, pod_sz) == 259,
	   "struct neuron_ioctl_pod_info.pod_sz is not at 259");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_info *)0)->pod_sz) == 1,
	   "struct neuron_ioctl_pod_info.pod_sz has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_info, pod_sz, __u8);

NEURON_ABI(sizeof(struct neuron_ioctl_pod_status) == 268,
	   "size of struct neuron_ioctl_pod_status is not 268");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_pod_status) == 4,
	   "alignment of struct neuron_ioctl_pod_status is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status, sz) == 0,
	   "struct neuron_ioctl_pod_status.sz is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status *)0)->sz) == 2,
	   "struct neuron_ioctl_pod_status.sz has not 2 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status, sz, __u16);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status, pod_id) == 2,
	   "struct neuron_ioctl_pod_status.pod_id is not at 2");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status *)0)->pod_id) == 256,
	   "struct neuron_ioctl_pod_status.pod_id has not 256 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status, pod_id, __u8 [256]);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status, state) == 260,
	   "struct neuron_ioctl_pod_status.state is not at 260");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status *)0)->state) == 4,
	   "struct neuron_ioctl_pod_status.state has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status, state, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status, pod_type) == 264,
	   "struct neuron_ioctl_pod_status.pod_type is not at 264");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status *)0)->pod_type) == 1,
	   "struct neuron_ioctl_pod_status.pod_type has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status, pod_type, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status, pod_sz) == 265,
	   "struct neuron_ioctl_pod_status.pod_sz is not at 265");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status *)0)->pod_sz) == 1,
	   "struct neuron_ioctl_pod_status.pod_sz has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status, pod_sz, __u8);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status, node_id) == 266,
	   "struct neuron_ioctl_pod_status.node_id is not at 266");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status *)0)->node_id) == 1,
	   "struct neuron_ioctl_pod_status.node_id has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status, node_id, __s8);

NEURON_ABI(sizeof(struct neuron_ioctl_pod_status_v2) == 276,
	   "size of struct neuron_ioctl_pod_status_v2 is not 276");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_pod_status_v2) == 4,
	   "alignment of struct neuron_ioctl_pod_status_v2 is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status_v2, v1) == 0,
	   "struct neuron_ioctl_pod_status_v2.v1 is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status_v2 *)0)->v1) == 268,
	   "struct neuron_ioctl_pod_status_v2.v1 has not 268 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status_v2, v1, struct neuron_ioctl_pod_status);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status_v2, mode) == 268,
	   "struct neuron_ioctl_pod_status_v2.mode is not at 268");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status_v2 *)0)->mode) == 4,
	   "struct neuron_ioctl_pod_status_v2.mode has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status_v2, mode, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_status_v2, modes_supported) == 272,
	   "struct neuron_ioctl_pod_status_v2.modes_supported is not at 272");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_status_v2 *)0)->modes_supported) == 4,
	   "struct neuron_ioctl_pod_status_v2.modes_supported has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_status_v2, modes_supported, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_pod_ctrl) == 16,
	   "size of struct neuron_ioctl_pod_ctrl is not 16");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_pod_ctrl) == 4,
	   "alignment of struct neuron_ioctl_pod_ctrl is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_pod_ctrl, sz) == 0,
	   "struct neuron_ioctl_pod_ctrl.sz is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_ctrl *)0)->sz) == 2,
	   "struct neuron_ioctl_pod_ctrl.sz has not 2 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_ctrl, sz, __u16);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_ctrl, ctrl) == 4,
	   "struct neuron_ioctl_pod_ctrl.ctrl is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_ctrl *)0)->ctrl) == 4,
	   "struct neuron_ioctl_pod_ctrl.ctrl has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_ctrl, ctrl, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_ctrl, timeout) == 8,
	   "struct neuron_ioctl_pod_ctrl.timeout is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_ctrl *)0)->timeout) == 4,
	   "struct neuron_ioctl_pod_ctrl.timeout has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_ctrl, timeout, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_ctrl, state) == 12,
	   "struct neuron_ioctl_pod_ctrl.state is not at 12");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_ctrl *)0)->state) == 4,
	   "struct neuron_ioctl_pod_ctrl.state has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_ctrl, state, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_pod_ctrl_v2) == 20,
	   "size of struct neuron_ioctl_pod_ctrl_v2 is not 20");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_pod_ctrl_v2) == 4,
	   "alignment of struct neuron_ioctl_pod_ctrl_v2 is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_pod_ctrl_v2, v1) == 0,
	   "struct neuron_ioctl_pod_ctrl_v2.v1 is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_ctrl_v2 *)0)->v1) == 16,
	   "struct neuron_ioctl_pod_ctrl_v2.v1 has not 16 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_ctrl_v2, v1, struct neuron_ioctl_pod_ctrl);
NEURON_ABI(offsetof(struct neuron_ioctl_pod_ctrl_v2, mode) == 16,
	   "struct neuron_ioctl_pod_ctrl_v2.mode is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_pod_ctrl_v2 *)0)->mode) == 4,
	   "struct neuron_ioctl_pod_ctrl_v2.mode has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_pod_ctrl_v2, mode, __u32);

NEURON_ABI(sizeof(struct neuron_dma_eng_state) == 20,
	   "size of struct neuron_dma_eng_state is not 20");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_dma_eng_state) == 4,
	   "alignment of struct neuron_dma_eng_state is not 4");
NEURON_ABI(offsetof(struct neuron_dma_eng_state, revision_id) == 0,
	   "struct neuron_dma_eng_state.revision_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_dma_eng_state *)0)->revision_id) == 4,
	   "struct neuron_dma_eng_state.revision_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_eng_state, revision_id, __u32);
NEURON_ABI(offsetof(struct neuron_dma_eng_state, max_queues) == 4,
	   "struct neuron_dma_eng_state.max_queues is not at 4");
NEURON_ABI(sizeof(((struct neuron_dma_eng_state *)0)->max_queues) == 4,
	   "struct neuron_dma_eng_state.max_queues has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_eng_state, max_queues, __u32);
NEURON_ABI(offsetof(struct neuron_dma_eng_state, num_queues) == 8,
	   "struct neuron_dma_eng_state.num_queues is not at 8");
NEURON_ABI(sizeof(((struct neuron_dma_eng_state *)0)->num_queues) == 4,
	   "struct neuron_dma_eng_state.num_queues has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_eng_state, num_queues, __u32);
NEURON_ABI(offsetof(struct neuron_dma_eng_state, tx_state) == 12,
	   "struct neuron_dma_eng_state.tx_state is not at 12");
NEURON_ABI(sizeof(((struct neuron_dma_eng_state *)0)->tx_state) == 4,
	   "struct neuron_dma_eng_state.tx_state has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_eng_state, tx_state, __u32);
NEURON_ABI(offsetof(struct neuron_dma_eng_state, rx_state) == 16,
	   "struct neuron_dma_eng_state.rx_state is not at 16");
NEURON_ABI(sizeof(((struct neuron_dma_eng_state *)0)->rx_state) == 4,
	   "struct neuron_dma_eng_state.rx_state has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_eng_state, rx_state, __u32);

NEURON_ABI(sizeof(struct neuron_dma_queue_state) == 48,
	   "size of struct neuron_dma_queue_state is not 48");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_dma_queue_state) == 8,
	   "alignment of struct neuron_dma_queue_state is not 8");
NEURON_ABI(offsetof(struct neuron_dma_queue_state, hw_status) == 0,
	   "struct neuron_dma_queue_state.hw_status is not at 0");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->hw_status) == 4,
	   "struct neuron_dma_queue_state.hw_status has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, hw_status, __u32);
NEURON_ABI(offsetof(struct neuron_dma_queue_state, sw_status) == 4,
	   "struct neuron_dma_queue_state.sw_status is not at 4");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->sw_status) == 4,
	   "struct neuron_dma_queue_state.sw_status has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, sw_status, __u32);
NEURON_ABI(offsetof(struct neuron_dma_queue_state, base_addr) == 8,
	   "struct neuron_dma_queue_state.base_addr is not at 8");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->base_addr) == 8,
	   "struct neuron_dma_queue_state.base_addr has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, base_addr, __u64);
NEURON_ABI(offsetof(struct neuron_dma_queue_state, length) == 16,
	   "struct neuron_dma_queue_state.length is not at 16");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->length) == 4,
	   "struct neuron_dma_queue_state.length has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, length, __u32);
NEURON_ABI(offsetof(struct neuron_dma_queue_state, head_pointer) == 20,
	   "struct neuron_dma_queue_state.head_pointer is not at 20");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->head_pointer) == 4,
	   "struct neuron_dma_queue_state.head_pointer has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, head_pointer, __u32);
NEURON_ABI(offsetof(struct neuron_dma_queue_state, tail_pointer) == 24,
	   "struct neuron_dma_queue_state.tail_pointer is not at 24");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->tail_pointer) == 4,
	   "struct neuron_dma_queue_state.tail_pointer has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, tail_pointer, __u32);
NEURON_ABI(offsetof(struct neuron_dma_queue_state, completion_base_addr) == 32,
	   "struct neuron_dma_queue_state.completion_base_addr is not at 32");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->completion_base_addr) == 8,
	   "struct neuron_dma_queue_state.completion_base_addr has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, completion_base_addr, __u64);
NEURON_ABI(offsetof(struct neuron_dma_queue_state, completion_head) == 40,
	   "struct neuron_dma_queue_state.completion_head is not at 40");
NEURON_ABI(sizeof(((struct neuron_dma_queue_state *)0)->completion_head) == 4,
	   "struct neuron_dma_queue_state.completion_head has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_dma_queue_state, completion_head, __u32);

NEURON_ABI(sizeof(struct neuron_uuid) == 32, "size of struct neuron_uuid is not 32");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_uuid) == 1, "alignment of struct neuron_uuid is not 1");
NEURON_ABI(offsetof(struct neuron_uuid, value) == 0, "struct neuron_uuid.value is not at 0");
NEURON_ABI(sizeof(((struct neuron_uuid *)0)->value) == 32,
	   "struct neuron_uuid.value has not 32 bytes");
NEURON_ABI_TYPE(struct neuron_uuid, value, __u8 [32]);

NEURON_ABI(sizeof(struct neuron_app_info) == 152, "size of struct neuron_app_info is not 152");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_app_info) == 8,
	   "alignment of struct neuron_app_info is not 8");
NEURON_ABI(offsetof(struct neuron_app_info, pid) == 0, "struct neuron_app_info.pid is not at 0");
NEURON_ABI(sizeof(((struct neuron_app_info *)0)->pid) == 4,
	   "struct neuron_app_info.pid has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_app_info, pid, __s32);
NEURON_ABI(offsetof(struct neuron_app_info, nc_lock_map) == 4,
	   "struct neuron_app_info.nc_lock_map is not at 4");
NEURON_ABI(sizeof(((struct neuron_app_info *)0)->nc_lock_map) == 1,
	   "struct neuron_app_info.nc_lock_map has not 1 bytes");
NEURON_ABI_TYPE(struct neuron_app_info, nc_lock_map, __u8);
NEURON_ABI(offsetof(struct neuron_app_info, uuid_data) == 5,
	   "struct neuron_app_info.uuid_data is not at 5");
NEURON_ABI(sizeof(((struct neuron_app_info *)0)->uuid_data) == 128,
	   "struct neuron_app_info.uuid_data has not 128 bytes");
NEURON_ABI_TYPE(struct neuron_app_info, uuid_data, struct neuron_uuid [4]);
NEURON_ABI(offsetof(struct neuron_app_info, host_mem_size) == 136,
	   "struct neuron_app_info.host_mem_size is not at 136");
NEURON_ABI(sizeof(((struct neuron_app_info *)0)->host_mem_size) == 8,
	   "struct neuron_app_info.host_mem_size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_app_info, host_mem_size, size_t);
NEURON_ABI(offsetof(struct neuron_app_info, device_mem_size) == 144,
	   "struct neuron_app_info.device_mem_size is not at 144");
NEURON_ABI(sizeof(((struct neuron_app_info *)0)->device_mem_size) == 8,
	   "struct neuron_app_info.device_mem_size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_app_info, device_mem_size, size_t);

NEURON_ABI(sizeof(struct neuron_ioctl_mem_chunk_info) == 24,
	   "size of struct neuron_ioctl_mem_chunk_info is not 24");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_mem_chunk_info) == 8,
	   "alignment of struct neuron_ioctl_mem_chunk_info is not 8");
NEURON_ABI(offsetof(struct neuron_ioctl_mem_chunk_info, pa) == 0,
	   "struct neuron_ioctl_mem_chunk_info.pa is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_chunk_info *)0)->pa) == 8,
	   "struct neuron_ioctl_mem_chunk_info.pa has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_chunk_info, pa, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_chunk_info, size) == 8,
	   "struct neuron_ioctl_mem_chunk_info.size is not at 8");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_chunk_info *)0)->size) == 8,
	   "struct neuron_ioctl_mem_chunk_info.size has not 8 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_chunk_info, size, __u64);
NEURON_ABI(offsetof(struct neuron_ioctl_mem_chunk_info, mem_type) == 16,
	   "struct neuron_ioctl_mem_chunk_info.mem_type is not at 16");
NEURON_ABI(sizeof(((struct neuron_ioctl_mem_chunk_info *)0)->mem_type) == 4,
	   "struct neuron_ioctl_mem_chunk_info.mem_type has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_mem_chunk_info, mem_type, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_nc_map_entry) == 8,
	   "size of struct neuron_ioctl_nc_map_entry is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_nc_map_entry) == 4,
	   "alignment of struct neuron_ioctl_nc_map_entry is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_nc_map_entry, device_id) == 0,
	   "struct neuron_ioctl_nc_map_entry.device_id is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_map_entry *)0)->device_id) == 4,
	   "struct neuron_ioctl_nc_map_entry.device_id has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_map_entry, device_id, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_nc_map_entry, device_nc_idx) == 4,
	   "struct neuron_ioctl_nc_map_entry.device_nc_idx is not at 4");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_map_entry *)0)->device_nc_idx) == 4,
	   "struct neuron_ioctl_nc_map_entry.device_nc_idx has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_map_entry, device_nc_idx, __u32);

NEURON_ABI(sizeof(struct neuron_ioctl_nc_map) == 4,
	   "size of struct neuron_ioctl_nc_map is not 4");
NEURON_ABI(NEURON_ABI_ALIGN(struct neuron_ioctl_nc_map) == 4,
	   "alignment of struct neuron_ioctl_nc_map is not 4");
NEURON_ABI(offsetof(struct neuron_ioctl_nc_map, num_entries) == 0,
	   "struct neuron_ioctl_nc_map.num_entries is not at 0");
NEURON_ABI(sizeof(((struct neuron_ioctl_nc_map *)0)->num_entries) == 4,
	   "struct neuron_ioctl_nc_map.num_entries has not 4 bytes");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_map, num_entries, __u32);
NEURON_ABI(offsetof(struct neuron_ioctl_nc_map, mappings) == 4,
	   "struct neuron_ioctl_nc_map.mappings is not at 4");
NEURON_ABI_TYPE(struct neuron_ioctl_nc_map, mappings, struct neuron_ioctl_nc_map_entry []);

NEURON_ABI(sizeof(struct nds_header) == 8, "size of struct nds_header is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(struct nds_header) == 4, "alignment of struct nds_header is not 4");
NEURON_ABI(offsetof(struct nds_header, signature) == 0,
	   "struct nds_header.signature is not at 0");
NEURON_ABI(sizeof(((struct nds_header *)0)->signature) == 4,
	   "struct nds_header.signature has not 4 bytes");
NEURON_ABI_TYPE(struct nds_header, signature, char [4]);
NEURON_ABI(offsetof(struct nds_header, version) == 4, "struct nds_header.version is not at 4");
NEURON_ABI(sizeof(((struct nds_header *)0)->version) == 4,
	   "struct nds_header.version has not 4 bytes");
NEURON_ABI_TYPE(struct nds_header, version, int);

NEURON_ABI(sizeof(nmetric_version_t) == 8, "size of nmetric_version_t is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(nmetric_version_t) == 8, "alignment of nmetric_version_t is not 8");
NEURON_ABI(offsetof(nmetric_version_t, all) == 0, "nmetric_version_t.all is not at 0");
NEURON_ABI(sizeof(((nmetric_version_t *)0)->all) == 8, "nmetric_version_t.all has not 8 bytes");
NEURON_ABI_TYPE(nmetric_version_t, all, __u64);

NEURON_ABI(sizeof(nds_header_t) == 8, "size of nds_header_t is not 8");
NEURON_ABI(NEURON_ABI_ALIGN(nds_header_t) == 4, "alignment of nds_header_t is not 4");
NEURON_ABI(offsetof(nds_header_t, signature) == 0, "nds_header_t.signature is not at 0");
NEURON_ABI(sizeof(((nds_header_t *)0)->signature) == 4, "nds_header_t.signature has not 4 bytes");
NEURON_ABI_TYPE(nds_header_t, signature, char [4]);
NEURON_ABI(offsetof(nds_header_t, version) == 4, "nds_header_t.version is not at 4");
NEURON_ABI(sizeof(((nds_header_t *)0)->version) == 4, "nds_header_t.version has not 4 bytes");
NEURON_ABI_TYPE(nds_header_t, version, int);
NEURON_ABI(NEURON_DRIVER_FEATURE_DMABUF == 1, "NEURON_DRIVER_FEATURE_DMABUF is not 1");
NEURON_ABI(NEURON_DRIVER_FEATURE_ASYNC_DMA == 2, "NEURON_DRIVER_FEATURE_ASYNC_DMA is not 2");
NEURON_ABI(NEURON_DRIVER_FEATURE_BATCH_DMAQ_INIT == 4,
	   "NEURON_DRIVER_FEATURE_BATCH_DMAQ_INIT is not 4");
NEURON_ABI(NEURON_DRIVER_FEATURE_BIG_CORE_MAPS == 8,
	   "NEURON_DRIVER_FEATURE_BIG_CORE_MAPS is not 8");
NEURON_ABI(NEURON_DRIVER_FEATURE_MEM_ALLOC_TYPE == 16,
	   "NEURON_DRIVER_FEATURE_MEM_ALLOC_TYPE is not 16");
NEURON_ABI(NEURON_DRIVER_FEATURE_HBM_SCRUB == 32, "NEURON_DRIVER_FEATURE_HBM_SCRUB is not 32");
NEURON_ABI(NEURON_DRIVER_FEATURE_MEM_ALLOC64 == 64,
	   "NEURON_DRIVER_FEATURE_MEM_ALLOC64 is not 64");
NEURON_ABI(NEURON_DRIVER_FEATURE_CONTIGUOUS_SCRATCHPAD == 128,
	   "NEURON_DRIVER_FEATURE_CONTIGUOUS_SCRATCHPAD is not 128");
NEURON_ABI(NEURON_POD_TYPE_NONE == 0, "NEURON_POD_TYPE_NONE is not 0");
NEURON_ABI(NEURON_POD_TYPE_P2P == 1, "NEURON_POD_TYPE_P2P is not 1");
NEURON_ABI(NEURON_POD_TYPE_SWITCH == 2, "NEURON_POD_TYPE_SWITCH is not 2");
NEURON_ABI(NEURON_POD_E_STATE_NOT_STARTED == 0, "NEURON_POD_E_STATE_NOT_STARTED is not 0");
NEURON_ABI(NEURON_POD_E_STATE_IN_PROGRESS == 1, "NEURON_POD_E_STATE_IN_PROGRESS is not 1");
NEURON_ABI(NEURON_POD_E_STATE_ULTRASERVER == 2, "NEURON_POD_E_STATE_ULTRASERVER is not 2");
NEURON_ABI(NEURON_POD_E_STATE_FAILED == 3, "NEURON_POD_E_STATE_FAILED is not 3");
NEURON_ABI(NEURON_POD_E_STATE_SINGLE_NODE == 4, "NEURON_POD_E_STATE_SINGLE_NODE is not 4");
NEURON_ABI(NEURON_NPE_POD_CTRL_REQ_POD == 0, "NEURON_NPE_POD_CTRL_REQ_POD is not 0");
NEURON_ABI(NEURON_NPE_POD_CTRL_REQ_SINGLE_NODE == 1,
	   "NEURON_NPE_POD_CTRL_REQ_SINGLE_NODE is not 1");
NEURON_ABI(NEURON_NPE_POD_CTRL_REQ_KILL == 2, "NEURON_NPE_POD_CTRL_REQ_KILL is not 2");
NEURON_ABI(NEURON_NPE_POD_CTRL_SET_MODE == 3, "NEURON_NPE_POD_CTRL_SET_MODE is not 3");
NEURON_ABI(NEURON_ULTRASERVER_MODE_UNSET == 0, "NEURON_ULTRASERVER_MODE_UNSET is not 0");
NEURON_ABI(NEURON_ULTRASERVER_MODE_X4 == 1, "NEURON_ULTRASERVER_MODE_X4 is not 1");
NEURON_ABI(NEURON_ULTRASERVER_MODE_X2H == 2, "NEURON_ULTRASERVER_MODE_X2H is not 2");
NEURON_ABI(NEURON_ULTRASERVER_MODE_X2V == 3, "NEURON_ULTRASERVER_MODE_X2V is not 3");
NEURON_ABI(NEURON_ULTRASERVER_MODE_X1 == 4, "NEURON_ULTRASERVER_MODE_X1 is not 4");
NEURON_ABI(NEURON_DMA_QUEUE_TYPE_TX == 0, "NEURON_DMA_QUEUE_TYPE_TX is not 0");
NEURON_ABI(NEURON_DMA_QUEUE_TYPE_RX == 1, "NEURON_DMA_QUEUE_TYPE_RX is not 1");
NEURON_ABI(NEURON_DMA_QUEUE_TYPE_COMPLETION == 2, "NEURON_DMA_QUEUE_TYPE_COMPLETION is not 2");
NEURON_ABI(NEURON_CINIT_STATE_STARTED == 1, "NEURON_CINIT_STATE_STARTED is not 1");
NEURON_ABI(NEURON_CINIT_STATE_COMPLETED == 2, "NEURON_CINIT_STATE_COMPLETED is not 2");
NEURON_ABI(NEURON_CINIT_STATE_INVALID == 3, "NEURON_CINIT_STATE_INVALID is not 3");
NEURON_ABI(NEURON_DMA_H2T_CTX_HANDLE_NONE == -1, "NEURON_DMA_H2T_CTX_HANDLE_NONE is not -1");
NEURON_ABI(NEURON_DMA_H2T_CTX_HANDLE_SYNC == 0, "NEURON_DMA_H2T_CTX_HANDLE_SYNC is not 0");
NEURON_ABI(NEURON_DMA_H2T_CTX_HANDLE_ASYNC1 == 1, "NEURON_DMA_H2T_CTX_HANDLE_ASYNC1 is not 1");
NEURON_ABI(NEURON_DMA_H2T_CTX_HANDLE_ASYNC2 == 2, "NEURON_DMA_H2T_CTX_HANDLE_ASYNC2 is not 2");
NEURON_ABI(NEURON_DMA_H2T_CTX_HANDLE_CNT == 3, "NEURON_DMA_H2T_CTX_HANDLE_CNT is not 3");
NEURON_ABI(NQ_DEVICE_TYPE_NEURON_CORE == 0, "NQ_DEVICE_TYPE_NEURON_CORE is not 0");
NEURON_ABI(NQ_DEVICE_TYPE_TOPSP == 1, "NQ_DEVICE_TYPE_TOPSP is not 1");
NEURON_ABI(NQ_DEVICE_TYPE_MAX == 2, "NQ_DEVICE_TYPE_MAX is not 2");
NEURON_ABI(NQ_TYPE_TRACE == 0, "NQ_TYPE_TRACE is not 0");
NEURON_ABI(NQ_TYPE_NOTIFY == 1, "NQ_TYPE_NOTIFY is not 1");
NEURON_ABI(NQ_TYPE_EVENT == 2, "NQ_TYPE_EVENT is not 2");
NEURON_ABI(NQ_TYPE_ERROR == 3, "NQ_TYPE_ERROR is not 3");
NEURON_ABI(NQ_TYPE_TRACE_DMA == 4, "NQ_TYPE_TRACE_DMA is not 4");
NEURON_ABI(NQ_TYPE_THROTTLE == 5, "NQ_TYPE_THROTTLE is not 5");
NEURON_ABI(NQ_TYPE_MAX == 6, "NQ_TYPE_MAX is not 6");
NEURON_ABI(NEURON_DM_BLOCK_INVALID == -1, "NEURON_DM_BLOCK_INVALID is not -1");
NEURON_ABI(NEURON_DM_BLOCK_TPB == 0, "NEURON_DM_BLOCK_TPB is not 0");
NEURON_ABI(NEURON_DM_BLOCK_TOPSP == 1, "NEURON_DM_BLOCK_TOPSP is not 1");
NEURON_ABI(NEURON_DM_BLOCK_HBM == 2, "NEURON_DM_BLOCK_HBM is not 2");
NEURON_ABI(NEURON_DM_RESOURCE_SEMAPHORE == 0, "NEURON_DM_RESOURCE_SEMAPHORE is not 0");
NEURON_ABI(NEURON_DM_RESOURCE_ALL == 1, "NEURON_DM_RESOURCE_ALL is not 1");
NEURON_ABI(NEURON_DM_RESOURCE_SBUF == 2, "NEURON_DM_RESOURCE_SBUF is not 2");
NEURON_ABI(NEURON_DM_RESOURCE_DMEM == 3, "NEURON_DM_RESOURCE_DMEM is not 3");
NEURON_ABI(NEURON_IOCTL_NC_MAPPING_TYPE_V0 == 0, "NEURON_IOCTL_NC_MAPPING_TYPE_V0 is not 0");
NEURON_ABI(NEURON_MEMALLOC_TYPE_UNKNOWN_HOST == 0, "NEURON_MEMALLOC_TYPE_UNKNOWN_HOST is not 0");
NEURON_ABI(NEURON_MEMALLOC_TYPE_CODE_HOST == 1, "NEURON_MEMALLOC_TYPE_CODE_HOST is not 1");
NEURON_ABI(NEURON_MEMALLOC_TYPE_TENSORS_HOST == 2, "NEURON_MEMALLOC_TYPE_TENSORS_HOST is not 2");
NEURON_ABI(NEURON_MEMALLOC_TYPE_CONSTANTS_HOST == 3,
	   "NEURON_MEMALLOC_TYPE_CONSTANTS_HOST is not 3");
NEURON_ABI(NEURON_MEMALLOC_TYPE_MISC_HOST == 4, "NEURON_MEMALLOC_TYPE_MISC_HOST is not 4");
NEURON_ABI(NEURON_MEMALLOC_TYPE_NCDEV_HOST == 5, "NEURON_MEMALLOC_TYPE_NCDEV_HOST is not 5");
NEURON_ABI(NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST == 6,
	   "NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST is not 6");
NEURON_ABI(NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE == 7,
	   "NEURON_MEMALLOC_TYPE_UNKNOWN_DEVICE is not 7");
NEURON_ABI(NEURON_MEMALLOC_TYPE_CODE_DEVICE == 8, "NEURON_MEMALLOC_TYPE_CODE_DEVICE is not 8");
NEURON_ABI(NEURON_MEMALLOC_TYPE_TENSORS_DEVICE == 9,
	   "NEURON_MEMALLOC_TYPE_TENSORS_DEVICE is not 9");
NEURON_ABI(NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE == 10,
	   "NEURON_MEMALLOC_TYPE_CONSTANTS_DEVICE is not 10");
NEURON_ABI(NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE == 11,
	   "NEURON_MEMALLOC_TYPE_SCRATCHPAD_DEVICE is not 11");
NEURON_ABI(NEURON_MEMALLOC_TYPE_MISC_DEVICE == 12, "NEURON_MEMALLOC_TYPE_MISC_DEVICE is not 12");
NEURON_ABI(NEURON_MEMALLOC_TYPE_NCDEV_DEVICE == 13,
	   "NEURON_MEMALLOC_TYPE_NCDEV_DEVICE is not 13");
NEURON_ABI(NEURON_MEMALLOC_TYPE_COLLECTIVES_DEVICE == 14,
	   "NEURON_MEMALLOC_TYPE_COLLECTIVES_DEVICE is not 14");
NEURON_ABI(NEURON_MEMALLOC_TYPE_SCRATCHPAD_NONSHARED_DEVICE == 15,
	   "NEURON_MEMALLOC_TYPE_SCRATCHPAD_NONSHARED_DEVICE is not 15");
NEURON_ABI(NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE == 16,
	   "NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE is not 16");
NEURON_ABI(NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST == 17,
	   "NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST is not 17");
NEURON_ABI(NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE == 18,
	   "NEURON_MEMALLOC_TYPE_DMA_RINGS_DEVICE is not 18");
NEURON_ABI(NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE == 19,
	   "NEURON_MEMALLOC_TYPE_CONTIGUOUS_SCRATCHPAD_DEVICE is not 19");
NEURON_ABI(NEURON_MEMALLOC_TYPE_MAX == 20, "NEURON_MEMALLOC_TYPE_MAX is not 20");
NEURON_ABI(NDS_ND_COUNTER_RUNTIME_VERSION == 0, "NDS_ND_COUNTER_RUNTIME_VERSION is not 0");
NEURON_ABI(NDS_ND_COUNTER_FRAMEWORK_VERSION == 1, "NDS_ND_COUNTER_FRAMEWORK_VERSION is not 1");
NEURON_ABI(NDS_ND_COUNTER_FAL_VERSION == 2, "NDS_ND_COUNTER_FAL_VERSION is not 2");
NEURON_ABI(NDS_ND_COUNTER_FEATURE_BITMAP == 3, "NDS_ND_COUNTER_FEATURE_BITMAP is not 3");
NEURON_ABI(NDS_ND_COUNTER_MIN_NEFF_VERSION == 4, "NDS_ND_COUNTER_MIN_NEFF_VERSION is not 4");
NEURON_ABI(NDS_ND_COUNTER_MAX_NEFF_VERSION == 5, "NDS_ND_COUNTER_MAX_NEFF_VERSION is not 5");
NEURON_ABI(NDS_ND_COUNTER_MEM_USAGE_CODE_HOST == 6,
	   "NDS_ND_COUNTER_MEM_USAGE_CODE_HOST is not 6");
NEURON_ABI(NDS_ND_COUNTER_MEM_USAGE_TENSORS_HOST == 7,
	   "NDS_ND_COUNTER_MEM_USAGE_TENSORS_HOST is not 7");
NEURON_ABI(NDS_ND_COUNTER_MEM_USAGE_CONSTANTS_HOST == 8,
	   "NDS_ND_COUNTER_MEM_USAGE_CONSTANTS_HOST is not 8");
NEURON_ABI(NDS_ND_COUNTER_MEM_USAGE_SCRATCHPAD_HOST == 9,
	   "NDS_ND_COUNTER_MEM_USAGE_SCRATCHPAD_HOST is not 9");
NEURON_ABI(NDS_ND_COUNTER_MEM_USAGE_MISC_HOST == 10,
	   "NDS_ND_COUNTER_MEM_USAGE_MISC_HOST is not 10");
NEURON_ABI(NDS_ND_COUNTER_DYNAMIC_SYSFS_METRIC_BITMAP == 11,
	   "NDS_ND_COUNTER_DYNAMIC_SYSFS_METRIC_BITMAP is not 11");
NEURON_ABI(NDS_ND_COUNTER_DEVICE_CLUSTER_ID == 12, "NDS_ND_COUNTER_DEVICE_CLUSTER_ID is not 12");
NEURON_ABI(NDS_ND_COUNTER_COUNT == 31, "NDS_ND_COUNTER_COUNT is not 31");
NEURON_ABI(NDS_NC_COUNTER_TIME_IN_USE == 0, "NDS_NC_COUNTER_TIME_IN_USE is not 0");
NEURON_ABI(NDS_NC_COUNTER_INFER_COMPLETED == 1, "NDS_NC_COUNTER_INFER_COMPLETED is not 1");
NEURON_ABI(NDS_NC_COUNTER_INFER_COMPLETED_WITH_ERR == 2,
	   "NDS_NC_COUNTER_INFER_COMPLETED_WITH_ERR is not 2");
NEURON_ABI(NDS_NC_COUNTER_INFER_COMPLETED_WITH_NUM_ERR == 3,
	   "NDS_NC_COUNTER_INFER_COMPLETED_WITH_NUM_ERR is not 3");
NEURON_ABI(NDS_NC_COUNTER_INFER_TIMED_OUT == 4, "NDS_NC_COUNTER_INFER_TIMED_OUT is not 4");
NEURON_ABI(NDS_NC_COUNTER_INFER_INCORRECT_INPUT == 5,
	   "NDS_NC_COUNTER_INFER_INCORRECT_INPUT is not 5");
NEURON_ABI(NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE == 6,
	   "NDS_NC_COUNTER_INFER_FAILED_TO_QUEUE is not 6");
NEURON_ABI(NDS_NC_COUNTER_ERR_GENERIC == 7, "NDS_NC_COUNTER_ERR_GENERIC is not 7");
NEURON_ABI(NDS_NC_COUNTER_ERR_NUMERICAL == 8, "NDS_NC_COUNTER_ERR_NUMERICAL is not 8");
NEURON_ABI(NDS_NC_COUNTER_ERR_MODEL == 9, "NDS_NC_COUNTER_ERR_MODEL is not 9");
NEURON_ABI(NDS_NC_COUNTER_ERR_TRANSIENT == 10, "NDS_NC_COUNTER_ERR_TRANSIENT is not 10");
NEURON_ABI(NDS_NC_COUNTER_ERR_HW == 11, "NDS_NC_COUNTER_ERR_HW is not 11");
NEURON_ABI(NDS_NC_COUNTER_ERR_RT == 12, "NDS_NC_COUNTER_ERR_RT is not 12");
NEURON_ABI(NDS_NC_COUNTER_LATENCY_DEVICE == 13, "NDS_NC_COUNTER_LATENCY_DEVICE is not 13");
NEURON_ABI(NDS_NC_COUNTER_LATENCY_TOTAL == 14, "NDS_NC_COUNTER_LATENCY_TOTAL is not 14");
NEURON_ABI(NDS_NC_COUNTER_NC_TIME == 15, "NDS_NC_COUNTER_NC_TIME is not 15");
NEURON_ABI(NDS_NC_COUNTER_GENERIC_FAIL == 16, "NDS_NC_COUNTER_GENERIC_FAIL is not 16");
NEURON_ABI(NDS_NC_COUNTER_ERR_RESOURCE == 17, "NDS_NC_COUNTER_ERR_RESOURCE is not 17");
NEURON_ABI(NDS_NC_COUNTER_ERR_RESOURCE_NC == 18, "NDS_NC_COUNTER_ERR_RESOURCE_NC is not 18");
NEURON_ABI(NDS_NC_COUNTER_ERR_INVALID == 19, "NDS_NC_COUNTER_ERR_INVALID is not 19");
NEURON_ABI(NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION == 20,
	   "NDS_NC_COUNTER_ERR_UNSUPPORTED_NEFF_VERSION is not 20");
NEURON_ABI(NDS_NC_COUNTER_CC_TIME == 21, "NDS_NC_COUNTER_CC_TIME is not 21");
NEURON_ABI(NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE == 22,
	   "NDS_NC_COUNTER_MEM_USAGE_CODE_DEVICE is not 22");
NEURON_ABI(NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE == 23,
	   "NDS_NC_COUNTER_MEM_USAGE_TENSORS_DEVICE is not 23");
NEURON_ABI(NDS_NC_COUNTER_MEM_USAGE_CONSTANTS_DEVICE == 24,
	   "NDS_NC_COUNTER_MEM_USAGE_CONSTANTS_DEVICE is not 24");
NEURON_ABI(NDS_NC_COUNTER_MEM_USAGE_SCRATCHPAD_DEVICE == 25,
	   "NDS_NC_COUNTER_MEM_USAGE_SCRATCHPAD_DEVICE is not 25");
NEURON_ABI(NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE == 26,
	   "NDS_NC_COUNTER_MEM_USAGE_MISC_DEVICE is not 26");
NEURON_ABI(NDS_NC_COUNTER_MODEL_LOAD_COUNT == 27, "NDS_NC_COUNTER_MODEL_LOAD_COUNT is not 27");
NEURON_ABI(NDS_NC_COUNTER_INFERENCE_COUNT == 28, "NDS_NC_COUNTER_INFERENCE_COUNT is not 28");
NEURON_ABI(NDS_NC_COUNTER_MAC_COUNT == 29, "NDS_NC_COUNTER_MAC_COUNT is not 29");
NEURON_ABI(NDS_NC_COUNTER_OOB == 30, "NDS_NC_COUNTER_OOB is not 30");
NEURON_ABI(NDS_NC_COUNTER_COUNT == 31, "NDS_NC_COUNTER_COUNT is not 31");
NEURON_ABI(NDS_EXT_NC_COUNTER_HW_ERR_COLLECTIVES == 31,
	   "NDS_EXT_NC_COUNTER_HW_ERR_COLLECTIVES is not 31");
NEURON_ABI(NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE == 32, "NDS_EXT_NC_COUNTER_HW_ERR_HBM_UE is not 32");
NEURON_ABI(NDS_EXT_NC_COUNTER_HW_ERR_NC_UE == 33, "NDS_EXT_NC_COUNTER_HW_ERR_NC_UE is not 33");
NEURON_ABI(NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT == 34,
	   "NDS_EXT_NC_COUNTER_HW_ERR_DMA_ABORT is not 34");
NEURON_ABI(NDS_EXT_NC_COUNTER_ERR_SW_NQ_OVERFLOW == 35,
	   "NDS_EXT_NC_COUNTER_ERR_SW_NQ_OVERFLOW is not 35");
NEURON_ABI(NDS_EXT_NC_COUNTER_ERR_SW_SEMAPHORE_ERROR == 36,
	   "NDS_EXT_NC_COUNTER_ERR_SW_SEMAPHORE_ERROR is not 36");
NEURON_ABI(NDS_EXT_NC_COUNTER_ERR_SW_EVENT_ERROR == 37,
	   "NDS_EXT_NC_COUNTER_ERR_SW_EVENT_ERROR is not 37");
NEURON_ABI(NDS_EXT_NC_COUNTER_ERR_SW_PSUM_COLLISION == 38,
	   "NDS_EXT_NC_COUNTER_ERR_SW_PSUM_COLLISION is not 38");
NEURON_ABI(NDS_EXT_NC_COUNTER_ERR_SW_SEQUENCER_FATAL == 39,
	   "NDS_EXT_NC_COUNTER_ERR_SW_SEQUENCER_FATAL is not 39");
NEURON_ABI(NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE == 40,
	   "NDS_EXT_NC_COUNTER_HW_ERR_REPAIRABLE_HBM_UE is not 40");
NEURON_ABI(NDS_EXT_NC_COUNTER_LAST == 41, "NDS_EXT_NC_COUNTER_LAST is not 41");
NEURON_ABI(NDS_EXT_NC_COUNTER_COUNT == 64, "NDS_EXT_NC_COUNTER_COUNT is not 64");

/* Number of datastore address macros that give a wrong address. */
static inline int neuron_abi_bad_addresses(char *base)
{
	int bad = 0;

	bad += (char *)NDS_ND_COUNTERS(base) - base != 8;
	bad += (char *)NDS_NEURONCORE_COUNTERS(base, 0) - base != 256;
	bad += (char *)NDS_NEURONCORE_COUNTERS(base, 1) - base != 504;
	bad += (char *)NDS_EXT_NEURONCORE_COUNTERS(base, 0) - base != 55936;
	bad += (char *)NDS_EXT_NEURONCORE_COUNTERS(base, 1) - base != 56448;
	bad += (char *)NDS_EXT_NEURONCORE_NC_DATA(base, 0) - base != 57984;
	bad += (char *)NDS_EXT_NEURONCORE_NC_DATA(base, 1) - base != 58752;
	bad += (char *)NDS_EXT_NEURONCORE_NC_DATA(base, 12) - base != 67200;
	return bad;
}

#undef NEURON_ABI
#undef NEURON_ABI_ALIGN
#undef NEURON_ABI_TYPE

#endif /* NEURON_ABI_ASSERTS_H */
