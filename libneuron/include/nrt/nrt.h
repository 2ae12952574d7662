/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file nrt.h
 * @brief The Neuron runtime interface.
 *
 * A program calls nrt_init(), nrt_load(), allocates tensors, puts them into sets,
 * nrt_execute(), and takes it all down in the opposite order with nrt_close() at
 * the end. Functions return NRT_UNINITIALIZED before nrt_init() and NRT_CLOSED
 * after nrt_close(), unless they are said to be callable at any time.
 *
 * "vnc" is the number of a logical core inside the process, from 0: one physical
 * core, or a pair of them as NEURON_LOGICAL_NC_CONFIG says (libnrt(7)).
 *
 * Functions may be called from several threads; using an object while another
 * thread frees it is an error of the caller. Executions on one core queue up.
 */
#ifndef NRT_NRT_H
#define NRT_NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nrt_status.h"
#include "nrt_version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nrt_model nrt_model_t;
typedef struct nrt_tensor nrt_tensor_t;
typedef void nrt_tensor_set_t;

typedef enum {
	NRT_TENSOR_PLACEMENT_DEVICE = 0,
	NRT_TENSOR_PLACEMENT_HOST = 1,		/**< host memory that the device reaches */
	NRT_TENSOR_PLACEMENT_VIRTUAL = 2,	/**< host memory, copied at execution */
} nrt_tensor_placement_t;

typedef enum {
	NRT_FRAMEWORK_TYPE_INVALID = 0,
	NRT_FRAMEWORK_TYPE_NO_FW = 1,
	NRT_FRAMEWORK_TYPE_TENSORFLOW = 2,
	NRT_FRAMEWORK_TYPE_PYTORCH = 3,
	NRT_FRAMEWORK_TYPE_MXNET = 4,
	NRT_FRAMEWORK_TYPE_PRECHECK = 5,
} nrt_framework_type_t;

enum {
	NRT_INSTANCE_UNKNOWN = 0,
	NRT_INSTANCE_INF1 = 1,
	NRT_INSTANCE_TRN1 = 2,
	NRT_INSTANCE_TRN1N = 3,
	NRT_INSTANCE_INF2 = 4,
	NRT_INSTANCE_TRN2 = 5,
	NRT_INSTANCE_TRN2N = 6,
	NRT_INSTANCE_INF2E = 7,
	NRT_INSTANCE_TRN2P = 8,
	NRT_INSTANCE_TRN2U = 9,
	NRT_INSTANCE_TRN2E = 10,
	NRT_INSTANCE_TRN2EU = 11,
	NRT_INSTANCE_TRN2AC = 12,
	NRT_INSTANCE_TRN2UAC = 13,
	NRT_INSTANCE_TRN3 = 14,
	NRT_INSTANCE_TRN3PDS98 = 15,
};

enum {
	NRT_INSTANCE_SIZE_1XL = 0,
	NRT_INSTANCE_SIZE_2XL = 1,
	NRT_INSTANCE_SIZE_4XL = 2,
	NRT_INSTANCE_SIZE_6XL = 3,
	NRT_INSTANCE_SIZE_8XL = 4,
	NRT_INSTANCE_SIZE_24XL = 5,
	NRT_INSTANCE_SIZE_32XL = 6,
	NRT_INSTANCE_SIZE_48XL = 7,
	NRT_INSTANCE_SIZE_3XL = 8,
	NRT_INSTANCE_SIZE_UNKNOWN = 9,
	NRT_INSTANCE_SIZE_NUM = NRT_INSTANCE_SIZE_UNKNOWN,
};

typedef struct nrt_instance_info {
	uint32_t family;		/**< NRT_INSTANCE_* */
	uint32_t size;			/**< NRT_INSTANCE_SIZE_* */
	char arch_name[16];
	char device_revision[8];
} nrt_instance_info_t;

typedef struct nrt_tensor_device_allocation_info {
	uint64_t physical_address;	/**< device address */
	size_t size;			/**< from there on; may exceed that of the tensor */
	int hbm_index;
} nrt_tensor_device_allocation_info_t;

typedef uint64_t nrt_tensor_batch_offset_t;
typedef uint64_t nrt_tensor_batch_size_t;

typedef struct nrt_tensor_batch_op {
	nrt_tensor_batch_offset_t offset;
	nrt_tensor_batch_size_t size;
	void *buffer;
} nrt_tensor_batch_op_t;

typedef struct nrt_tensor_batch {
	const nrt_tensor_t *tensor;
	const nrt_tensor_batch_op_t *ops;
	uint32_t num_ops;
} nrt_tensor_batch_t;

/** Grows at the end only. */
typedef struct nrt_vnc_memory_stats {
	size_t bytes_used;
	size_t bytes_limit;
} nrt_vnc_memory_stats_t;

typedef enum nrt_op_type {
	NRT_OP_ADD = 0x0,		/**< in fp32, also for integers */
	NRT_OP_FMA = 0x1,
	NRT_OP_MAX = 0x2,
	NRT_OP_MIN = 0x3,
	NRT_OP_INVALID = 0xf,
} nrt_op_type_t;

typedef enum nrt_cc_op_type {
	NRT_CC_ALLGATHER = 0,		/**< output: the inputs one after the other */
	NRT_CC_ALLREDUCE = 1,		/**< output: the inputs combined */
	NRT_CC_REDUCESCATTER = 2,	/**< output: part number "rank" of that */
} nrt_cc_op_type_t;

/** Who takes part in a collective operation, and which of them the caller is. */
typedef struct nrt_cc_comm {
	uint32_t *replica_group;	/**< ranks in all, in order; NULL: all */
	uint32_t rank;			/**< of the caller, its place in the group */
	uint32_t rank_n;		/**< size of the group */
	uint32_t ctx_device_id;		/**< of the caller among all */
	uint32_t ctx_device_count;
	uint32_t vnc;			/**< core that is this rank */
} nrt_cc_comm_t;

typedef struct nrt_tensor_list {
	nrt_tensor_t **tensors;
	size_t num_tensors;
} nrt_tensor_list_t;

typedef struct nrt_cc_context nrt_cc_context_t;

/** @name Life of the runtime @{ */

/**
 * @brief Claim the cores named by NEURON_RT_VISIBLE_CORES or NEURON_RT_NUM_CORES
 * (all cores without either) and make them ready.
 * @return NRT_SUCCESS; NRT_INVALID bad environment or framework; NRT_FAILURE no device,
 * no driver, cores busy, or already initialised
 */
NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
		    const char *fal_version);
/**
 * @brief Unload all models, free all storage, give the cores back; other threads' calls are
 * turned away from its beginning. Not in a function that the runtime calls back.
 */
void nrt_close(void);

/** @} @name Models @{ */

/**
 * @brief Load a NEFF.
 * @param neff_bytes	the file; not used after the call returns
 * @param vnc		core, -1 the one with the fewest models
 * @param vnc_count	deprecated, pass -1
 * @return NRT_SUCCESS, NRT_INVALID, NRT_RESOURCE, NRT_LOAD_NOT_ENOUGH_NC,
 * NRT_UNSUPPORTED_NEFF_VERSION; nothing stays allocated on error
 */
NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
		    nrt_model_t **model);
/**
 * @brief Same, after nrt_build_global_comm() for the core.
 * @param ctx_device_id		rank of the core
 * @param ctx_device_count	ranks in all
 */
NRT_STATUS nrt_load_collectives(const void *neff_bytes, size_t size, int32_t vnc,
				int32_t vnc_count, uint32_t ctx_device_id,
				uint32_t ctx_device_count, nrt_model_t **model);
NRT_STATUS nrt_unload(nrt_model_t *model);
/** @brief Run a model once and wait; at most NEURON_RT_EXEC_TIMEOUT seconds (30). */
NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
		       nrt_tensor_set_t *output_set);
/**
 * @brief Run a model several times; after each run but the last, output i is copied to
 * input i. Every output needs an input of the same position and size.
 */
NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
			      nrt_tensor_set_t *output_set, int repeat_count);

/** @brief Deprecated: cores of a model. */
NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *nc_count);
NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count);

/** @} @name Cores and instance @{ */

/** @brief All cores of the host; callable at any time. */
NRT_STATUS nrt_get_total_nc_count(uint32_t *nc_count);
NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count);
/** @brief Cores of this process; callable at any time. */
NRT_STATUS nrt_get_visible_nc_count(uint32_t *nc_count);
NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count);
/** @brief Family and size of the instance; callable at any time. */
NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t instance_info_len);
/**
 * @brief Device memory charged to a core, and what its HBM has in all.
 * @param size_in	sizeof(*stats) of the caller
 * @param size_out	bytes written, may be NULL
 */
NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats,
				    size_t size_in, size_t *size_out);
/**
 * @brief Number on the host of a device of this container.
 * @param neuron_dev	N of /dev/neuronN
 * @return NRT_SUCCESS, NRT_INVALID no such device
 */
NRT_STATUS nrt_host_device_id_get(int neuron_dev, uint32_t *host_device_id);
/**
 * @brief Routing id of each device of the host.
 * @param count	in: entries of the map, out: those that matter; numbers in between without a
 * device have 0xffffffff
 * @return NRT_SUCCESS; NRT_RESOURCE the map is too short, nothing but @p count is written;
 * NRT_INVALID, NRT_FAILURE
 */
NRT_STATUS nrt_host_device_id_rid_map_get(uint32_t *count, uint32_t *host_did_to_rid_map);
/**
 * @brief Address of a whole device memory, which the driver does not map: everybody's tensors
 * are in there. Tensors have addresses, see nrt_tensor_get_va().
 * @return NRT_INVALID not supported, or bad argument; NRT_INVALID_HANDLE the device has no
 * memory @p hbm_idx, which ends a loop over them
 */
NRT_STATUS nrt_get_hbm_mmap_va(int device_id, int hbm_idx, void **addr, size_t *size);
/**
 * @brief PCI address of the network adapter that is nearest to the memory of a tensor.
 * @param va	inside of what nrt_tensor_get_va() gave for a tensor that the device reaches
 * @param bdf	receives "0000:00:1d.0"
 * @param len	in: bytes at @p bdf, out: length of the text without the NUL
 * @return NRT_SUCCESS; NRT_INVALID no such memory; NRT_RESOURCE @p bdf is too short, @p len is
 * what it takes; NRT_FAILURE the device is on no bus, or there is no adapter
 */
NRT_STATUS nrt_get_attached_efa_bdf(const void *va, char *bdf, size_t *len);

/** @} @name Collectives @{ */

/**
 * @brief Meet the cores that work together, of one or several hosts; each calls it with a number
 * of its own.
 *
 * Blocks until all have come, at most NEURON_RT_EXEC_TIMEOUT seconds; several cores of a
 * process do it in several threads. They meet at rank 0, whose name is in
 * NEURON_RT_ROOT_COMM_ID (address of its host:port), except if there is only one. If the core
 * has that rank already, and nobody is missing, nothing is done. One core of a process can be
 * rank 0 of several. Several hosts need libfabric (nrt_collectives(3)).
 * @return NRT_SUCCESS; NRT_INVALID bad rank or variable, other numbers than the others or
 * than before, or a rank that another core has; NRT_TIMEOUT; NRT_FAILURE more cores than the host
 * has, more than 1024 in all, or rank 0 is on another host than the address, or no rank 0 answers
 * there, or it is another host's without libfabric; NRT_NETWORK_PROXY_FAILURE no fabric between
 * the hosts; NRT_RESOURCE, NRT_CLOSED
 */
NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count);
/** @brief The same, under the name it has where the host schedules the operations. */
NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id, uint32_t g_device_count);

/** @} @name Tensors @{ */

/** @param name	for log lines only, may be NULL */
NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t tensor_placement, int vnc, size_t size,
			       const char *name, nrt_tensor_t **tensor);
/** @brief Free a tensor and set the pointer NULL; storage stays while slices of it exist. */
void nrt_tensor_free(nrt_tensor_t **tensor);
NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size);
NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size);
/**
 * @brief All operations of all batches in order; stops at the first that fails.
 * @param unsafe makes no difference: a transfer does not wait for executions in any case, and
 * what uses the tensor meanwhile is the caller's to know
 */
NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches,
				 bool unsafe);
NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches,
				  bool unsafe);
/** @brief Copy; two device tensors must be on the same device. */
NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst,
			   size_t dst_offset, size_t size);
size_t nrt_tensor_get_size(const nrt_tensor_t *tensor);
NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size);
/** @brief A tensor without storage, for nrt_tensor_attach_buffer(). */
NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor);
/** @brief Use a buffer of the caller as storage; the previous storage is dropped. */
NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size);
/** @brief A view of a part of another tensor. */
NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset,
				     size_t size, const char *name,
				     nrt_tensor_t **tensor_slice);
/**
 * @brief Address for the CPU or NULL. Memory of a device is mapped when it is asked for;
 * NEURON_RT_MAP_HBM=0 says never.
 */
void *nrt_tensor_get_va(const nrt_tensor_t *tensor);
/**
 * @brief A dma-buf of memory at an address from nrt_tensor_get_va(), to be closed by the caller.
 * @param va	at a page border, inside of one tensor with @p size bytes behind it
 * @return NRT_SUCCESS, NRT_INVALID no such memory, NRT_FAILURE
 */
NRT_STATUS nrt_get_dmabuf_fd(uint64_t va, uint64_t size, int *fd);
/** @brief Same for any address; @p offset is where it is in the dma-buf. */
NRT_STATUS nrt_get_dmabuf_fd_v2(uint64_t va, uint64_t size, int *fd, uint64_t *offset);
NRT_STATUS
nrt_tensor_get_device_allocation_info(const nrt_tensor_t *tensor,
				      nrt_tensor_device_allocation_info_t *alloc_info);

/**
 * @brief Wait until executions have written to an output so many times.
 * @param timeout_us microseconds; negative: as long as it takes
 * @return NRT_TIMEOUT; NRT_INVALID for NULL; NRT_CLOSED if nrt_close() came first
 */
NRT_STATUS nrt_tensor_check_output_completion(const nrt_tensor_t *output_tensor,
					      int64_t timeout_us,
					      uint64_t expected_completion_count);
/** @brief Count from 0 again. */
NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *output_tensor);

/** @} @name Tensor sets @{ */

NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result);
/** @brief Free a set, not its tensors, and set the pointer NULL. */
void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set);
/** @brief Add a tensor, or replace the one of that name. */
NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					nrt_tensor_t *tensor);
/** @return NRT_FAILURE if there is none of that name; the output is untouched then */
NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set,
					  const char *tensor_name, nrt_tensor_t **tensor);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
