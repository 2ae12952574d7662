/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file offload.h
 * @brief What is idle, in host memory instead of device memory.
 */
#ifndef NEURON_OFFLOAD_H
#define NEURON_OFFLOAD_H

#include <neuron/memory.h>
#include <neuron/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup offload Offloading
 *
 * What was offloaded comes back by itself when it is used, or before that by a call. Host memory
 * is taken for what is not zero.
 * @{ */

/**
 * @brief Copy movable memory to host memory and give it back to the driver. Waits for the copy.
 *
 * Any function that uses the memory brings it back, neuron_model_run() too; it then has another
 * handle.
 * @return 0, -EALREADY it is in host memory, -EOPNOTSUPP its address is known, because it is not
 * movable, -EBUSY it is pinned, in a copy that neuron_mem_copy_finish() has not ended, or in a
 * ring, -EADDRINUSE it is mapped, -EPERM it was exported, -ENOMEM no host memory; on error nothing
 * changes
 */
int neuron_mem_offload(struct neuron_mem *mem);
/**
 * @brief Bring memory back. Waits for the copy. @param failure filled in with -ENOMEM, may be NULL
 * @return 0, also if it is on the device; -ENOMEM there is no room; on error it stays
 */
int neuron_mem_onload(struct neuron_mem *mem, struct neuron_mem_failure *failure);

/**
 * @brief Copy all that a model has on its core to host memory, and give it back to the driver:
 * constants, programs, private scratchpad, rings, and its part of the shared scratchpad, whose
 * contents no run expects. Waits for the copy.
 *
 * The next neuron_model_run() brings it back, elsewhere, to the same results.
 * @return 0, -EALREADY it is in host memory, -EBUSY it is running or being moved, -ENOMEM no host
 * memory, -EIO, -ENODEV; on error the model is as it was
 */
int neuron_model_offload(struct neuron_model *model);
/**
 * @brief Begin to bring a model back, and return: it is copied while others run. A run of it waits
 * for the rest.
 *
 * What goes wrong is told by the run, which tries once more.
 * @return 0, also if it is on the device or on its way; -EBUSY it is being offloaded, -EAGAIN no
 * thread, -EPERM
 */
int neuron_model_prefetch(struct neuron_model *model);
/**
 * @brief Bring a model back, or wait until it is there. @param failure filled in with -ENOMEM if
 * device memory is the reason; may be NULL
 * @return 0, also if it is on the device; -ENOMEM there is no room, or its scratchpad cannot be as
 * it was, -EIO, -ENODEV; on error it stays in host memory
 */
int neuron_model_onload(struct neuron_model *model, struct neuron_mem_failure *failure);
/** @brief Device memory that a model does not take because it was offloaded, in bytes. */
uint64_t neuron_model_offloaded(const struct neuron_model *model);

/** @brief What was offloaded of a device by this process. */
struct neuron_offload_stats {
	size_t size;
	uint64_t offloaded;	/**< bytes now, of the pages of device memory */
	uint64_t moved_out;	/**< bytes so far */
	uint64_t moved_in;
	uint64_t offloads;	/**< memory or models so far */
	uint64_t onloads;
	uint64_t waited_ns;	/**< by those that used them, until they were there */
};

/** @brief Figures since the device was opened. @return 0, -EINVAL */
int neuron_device_get_offload_stats(struct neuron_device *device,
				    struct neuron_offload_stats *stats);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
