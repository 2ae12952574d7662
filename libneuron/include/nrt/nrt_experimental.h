/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file nrt_experimental.h Parts of the runtime interface that may still change. */
#ifndef NRT_NRT_EXPERIMENTAL_H
#define NRT_NRT_EXPERIMENTAL_H

#include "nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NRT_TENSOR_NAME_MAX 256

typedef enum nrt_tensor_usage {
	NRT_TENSOR_USAGE_INPUT = 0,
	NRT_TENSOR_USAGE_OUTPUT = 1,
} nrt_tensor_usage_t;

typedef enum nrt_dtype {
	NRT_DTYPE_UNKNOWN = 0x0,
	NRT_DTYPE_INVALID = 0x0,
	NRT_DTYPE_UINT64 = 0x1,
	NRT_DTYPE_INT8 = 0x2,
	NRT_DTYPE_UINT8 = 0x3,
	NRT_DTYPE_INT16 = 0x4,
	NRT_DTYPE_UINT16 = 0x5,
	NRT_DTYPE_BFLOAT16 = 0x6,
	NRT_DTYPE_FLOAT16 = 0x7,
	NRT_DTYPE_INT32 = 0x8,
	NRT_DTYPE_UINT32 = 0x9,
	NRT_DTYPE_FLOAT32 = 0xa,
	NRT_DTYPE_FP32R = 0xb,
	NRT_DTYPE_INT64 = 0xc,
	NRT_DTYPE_FP8_E3 = 0xd,
	NRT_DTYPE_FP8_E4 = 0xe,
	NRT_DTYPE_FP8_E5 = 0xf,
} nrt_dtype_t;

typedef struct nrt_tensor_info {
	char name[NRT_TENSOR_NAME_MAX];
	nrt_tensor_usage_t usage;
	size_t size;
	nrt_dtype_t dtype;
	uint32_t *shape;
	uint32_t ndim;
} nrt_tensor_info_t;

typedef struct nrt_tensor_info_array {
	uint64_t tensor_count;
#ifdef __cplusplus
	nrt_tensor_info_t tensor_array[1];
#else
	nrt_tensor_info_t tensor_array[];
#endif
} nrt_tensor_info_array_t;

/** Grows at the end only. */
typedef struct nrt_model_info {
	uint32_t vnc;
} nrt_model_info_t;

/** @brief Inputs and outputs of a model, to be freed with nrt_free_model_tensor_info(). */
NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model,
				     nrt_tensor_info_array_t **tensor_info);
NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info);
/** @brief Deprecated: copies of a model, always 1. */
NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count);
NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info, size_t size_in,
			      size_t *size_out);

/**
 * @brief Trace all cores, with allocations or without, and write it to a file at the end;
 * see nrt_sys_trace.h. Events of a file that cannot be written can still be fetched.
 */
NRT_STATUS nrt_trace_start(bool trace_mem);
NRT_STATUS nrt_trace_stop(const char *filename);

/**
 * What is called when an execution ends that nrt_execute() queued.
 *
 * model_id is that of the log: 1001 for the first model that was loaded after nrt_init(), one
 * more for each that follows.  job_id is the number of the request in the queue of the core,
 * from 1, which nrta_execute_schedule() uses, too: the lower 48 bits of its sequence id.
 */
typedef void (*NRT_ASYNC_EXEC_STATUS_CALLBACK)(void *params, uint32_t model_id, uint32_t vnc,
					       uint64_t job_id, NRT_STATUS status);

/**
 * @brief Let nrt_execute() queue and return at once.
 *
 * With NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS above 0, and while a callback is
 * registered (NULL takes it back), nrt_execute() waits only if that many executions are
 * queued (nrt_execute_repeat() always waits).  What went wrong is the status of the callback,
 * which comes from a thread of the library and may use the runtime, also while nrt_close()
 * waits for it.  There, nrt_execute() does not wait but returns NRT_QUEUE_FULL,
 * nrt_async_drain_queued_execs() NRT_INVALID, and nrt_close() does nothing.
 *
 * It does not wait for a callback under way, not with NULL either: after it,
 * nrt_async_drain_queued_execs() for each core does, and then @p params can go.
 */
NRT_STATUS nrt_register_async_exec_callback(NRT_ASYNC_EXEC_STATUS_CALLBACK callback,
					    void *params);
/**
 * @brief Wait until everything that is queued for a core now has been executed, and the
 * callbacks have returned.
 * @return NRT_CLOSED if nrt_close() came first
 */
NRT_STATUS nrt_async_drain_queued_execs(int32_t vnc);

/**
 * @brief Wait until all ranks are here.
 *
 * Calls nrt_build_global_comm() first if the core has not joined yet.
 * @return NRT_SUCCESS; NRT_TIMEOUT not all came in NEURON_RT_EXEC_TIMEOUT seconds; NRT_FAILURE
 * one of them is gone; NRT_INVALID; NRT_CLOSED. After a timeout or failure all have to call
 * nrt_build_global_comm() again.
 */
NRT_STATUS nrt_barrier(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count);
/**
 * @brief Collect @p rank_input_size bytes of each rank, in order, in memory of the host.
 * @param input		bytes of the caller
 * @param output	@p g_device_count times as many
 * @return as nrt_barrier(); NRT_INVALID also if the sizes differ
 */
NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count,
			  uint32_t rank_input_size, void *input, void *output);

typedef struct nrt_ucode_img {
	uint8_t *bin;
	size_t size;
} nrt_ucode_img;

typedef struct nrt_ucode_info {
	nrt_ucode_img iram;
	nrt_ucode_img dram;
} nrt_ucode_info;

/**
 * @brief Other microcode for the Pool engine: refused, engines that execute the instructions
 * of neuron_isa.h have none.
 * @return NRT_INVALID no images; NRT_FAILURE
 */
NRT_STATUS nrt_set_pool_eng_ucode(const nrt_ucode_info *ucode_info);
/**
 * @brief Copy to a device tensor through its address.
 * @param dest	inside of what nrt_tensor_get_va() gave, with @p size bytes behind it
 * @return NRT_SUCCESS; NRT_INVALID no such memory
 */
NRT_STATUS nrt_memcpy_to_device(void *dest, const void *src, size_t size);
/**
 * @brief The network plugin for collectives: there is none.
 * @param err	receives NRT_FAILURE; may be NULL, as may @p msg
 * @param msg	receives why, at most @p msg_len bytes with the NUL
 * @return NULL
 */
void *nrt_get_libnccl_net(int *err, char *msg, size_t msg_len);

#ifdef __cplusplus
}
#endif

#endif
