/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file nrt_async.h Work that goes on while the caller does something else (generation 3.0).
 *
 * A core has queues of three kinds: for tensor transfers, for executions and for
 * collectives.  Work of one queue is done in the order in which it was queued;
 * different queues do not wait for each other.
 *
 * Every request has a status of its own, @p ret, which must stay valid until the
 * request is complete, and a sequence id.  Models may be unloaded, tensors and tensor
 * sets freed or changed as soon as a function has returned; buffers of the caller
 * must stay until the request is complete.
 */
#ifndef NRT_NRT_ASYNC_H
#define NRT_NRT_ASYNC_H

#include "nrt.h"
#include "nrt_experimental.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of queues. */
typedef enum {
	NRTA_XU_TENSOR_OP = 0,		/**< 2 queues per core */
	NRTA_XU_COMPUTE = 1,		/**< 1 queue per core */
	NRTA_XU_COLLECTIVES = 2,	/**< 3 queues per core */
	NRTA_XU_TYPE_NUM = 3,
} nrta_xu_t;

/** Queue in the upper 16 bits, number in it, from 1, in the lower 48. */
typedef uint64_t nrta_seq_t;
/** A queue, as it is in an id. */
typedef uint16_t nrta_xu_id_t;

#define NRTA_SEQ_NUM_BITS 48
#define NRTA_SEQ_NUM_MAX ((UINT64_C(1) << NRTA_SEQ_NUM_BITS) - 1)
#define NRTA_SEQ_GET_SEQ_NUM(seq) ((uint64_t)(seq) & NRTA_SEQ_NUM_MAX)
#define NRTA_SEQ_GET_XU_ID(seq) ((nrta_xu_id_t)((uint64_t)(seq) >> NRTA_SEQ_NUM_BITS))

/**
 * @brief Queue a write to, a read from, or a copy between tensors.
 * @param queue 0 or 1, of the core that the tensor was allocated for
 * @param ret status, written when the request is complete; may be NULL
 * @param seq receives the sequence id; may be NULL
 * @return NRT_INVALID bad tensor, range or queue; NRT_QUEUE_FULL try again later;
 * NRT_RESOURCE; then nothing was queued
 */
NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset,
			     uint64_t size, int queue, NRT_STATUS *ret, nrta_seq_t *seq);
NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size,
			    int queue, NRT_STATUS *ret, nrta_seq_t *seq);
NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst,
			    uint64_t dst_offset, uint64_t size, int queue, NRT_STATUS *ret,
			    nrta_seq_t *seq);

/**
 * @brief Queue an execution.
 * @param queue 0
 * @return NRT_QUEUE_FULL as many as NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS (63 if that
 * is not set) are waiting; NRT_EXEC_UNIT_UNRECOVERABLE the device is gone, the process has
 * to start over; NRT_INVALID_HANDLE, NRT_INVALID, NRT_RESOURCE.  What is wrong with the
 * tensors is found when the execution starts, and is its status.
 */
NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input_set,
				 nrt_tensor_set_t *output_set, int queue, NRT_STATUS *ret,
				 nrta_seq_t *seq);

/**
 * @brief Make a collective operation ready: tensor i of @p output from tensor i of @p input of
 * each rank of the group.
 *
 * Every rank of the group prepares the same; tensors are in memory of the core's device or in
 * host memory that it reaches. All-gather: output of rank_n times the bytes of the input;
 * reduce-scatter: input of rank_n times the bytes of the output; all-reduce: equal. Sums are
 * done in fp32. Input and output may overlap. The tensors may be freed.
 * @param dtype	of all elements
 * @param op	add, max or min; not looked at for all-gather
 * @param cc_ctx receives what nrta_cc_schedule() takes
 * @return NRT_INVALID; NRT_FAILURE the core is not that rank (nrt_cc_global_comm_init()), or
 * one of the others is gone; NRT_RESOURCE
 */
NRT_STATUS nrta_cc_prepare(nrt_cc_comm_t *comm, nrt_tensor_list_t *input,
			   nrt_tensor_list_t *output, nrt_dtype_t dtype, nrt_op_type_t op,
			   nrt_cc_op_type_t cc_op, nrt_cc_context_t **cc_ctx);
/**
 * @brief Queue a collective operation, once; *@p cc_ctx is NULL afterwards.
 * @param queue 0 to 2, the same one of all ranks of the group, in the same order
 * @return NRT_QUEUE_FULL, NRT_INVALID, NRT_INVALID_HANDLE; then @p cc_ctx stays. The status of
 * the operation can be NRT_EXEC_HW_ERR_COLLECTIVES: not all ranks came in
 * NEURON_RT_EXEC_TIMEOUT seconds, one is gone, or one failed; NRT_INVALID: they prepared
 * different things; NRT_RESOURCE
 */
NRT_STATUS nrta_cc_schedule(nrt_cc_context_t **cc_ctx, int queue, NRT_STATUS *ret,
			    nrta_seq_t *seq);

/** @brief Whether a request is complete; NRT_INVALID for an id that was not given out. */
NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed);

/** @brief The last request of a queue that is complete; number 0 if there was none. */
NRT_STATUS nrta_get_sequence(uint32_t lnc, nrta_xu_t xu, int queue, nrta_seq_t *seq);

/**
 * @brief Add 1 to an eventfd when a request is complete, at once if it is.
 *
 * The library keeps its own duplicate of @p fd, and does not wait for one that is full.  -1
 * takes the registration back.  One
 * descriptor per request; another one replaces it.
 */
NRT_STATUS nrta_event_register_seq_id_completion(nrta_seq_t seq, int fd);

/** @brief The same for every request of a queue from now on. */
NRT_STATUS nrta_event_register_xu_completion(int lnc, nrta_xu_t xu, int queue, int fd);

#ifdef __cplusplus
}
#endif

#endif
