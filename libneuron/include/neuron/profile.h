/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file profile.h
 * @brief Profiles of cores.
 */
#ifndef NEURON_PROFILE_H
#define NEURON_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <neuron/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup profile Profiles
 *
 * While a core is profiled, the device records when its engines begin and end each
 * instruction, when its DMA queues begin and end each packet, and when its semaphores
 * change. It does so in buffers in device memory, category "notifications". @{ */

#define NEURON_PROFILE_MAX_KINDS 8

struct neuron_profile;

/** @brief Kinds of buffers; each can have a size of its own. */
enum neuron_profile_buffer {
	NEURON_PROFILE_EVENT = 0,	/**< instructions, one for each engine; semaphores, one */
	NEURON_PROFILE_DMA,		/**< packets, one for each DMA engine of the core */
	NEURON_PROFILE_THROTTLE,	/**< one; nothing is written to it on software devices */
	NEURON_PROFILE_CC_CORE_INSTRUCTION,	/**< same */
	NEURON_PROFILE_CC_CORE_EVENT,	/**< same */
	NEURON_PROFILE_NR_BUFFERS,
};

struct neuron_profile_opts {
	size_t size;
	/** Bytes of each buffer, a power of two from 4096 to 2^30; 0: 128 MiB for EVENT, else
	 * 64 MiB, which is 1984 MiB in all for each physical core of a trn2. There is room for
	 * kinds to come: 0 */
	uint64_t bytes[NEURON_PROFILE_MAX_KINDS];
	struct neuron_model *model;	/**< only runs of this model on the core; NULL: of all */
	uint64_t last_only;		/**< 1: a run that begins drops the earlier ones */
	struct neuron_mem_failure *failure;	/**< filled in with -ENOMEM, may be NULL */
	neuron_refused_fn refused;	/**< may be NULL; needs @c failure */
	void *refused_data;
};

/** @brief Counts of the recorded runs; see neuron_profile_write() for when they are collected. */
struct neuron_profile_stats {
	size_t size;
	uint64_t runs;
	uint64_t instructions;
	uint64_t packets;
	uint64_t bytes;			/**< written by the packets */
	uint64_t semaphores;		/**< changes of semaphores */
	uint64_t lost;			/**< entries that did not fit into a buffer; and what was
					 * beyond the limits of neuron_profile(3) */
	uint64_t memory;		/**< bytes of the buffers now */
	int64_t error;			/**< first thing that went wrong since the start, or 0 */
};

/**
 * @brief Start: make the buffers, and reset the core. Models stay loaded.
 * @return 0, -EBUSY the core is being profiled, -ENOMEM, -EINVAL a size, or the model is
 * not on the core; -EOPNOTSUPP the model cannot be run
 */
int neuron_profile_start(struct neuron_core *core, const struct neuron_profile_opts *opts,
			 struct neuron_profile **profile);
/**
 * @brief Stop: collect the entries of the buffers and free these. Resets the core.
 *
 * Without the reset the driver keeps the memory of the buffers. The reset is tried again
 * by neuron_profile_close(), by the next call that loads or runs a model on the core or
 * starts a profile of it, and when the core is closed. @return 0, -EALREADY, or the first
 * error since the start
 */
int neuron_profile_stop(struct neuron_profile *profile);
/**
 * @brief Write the recorded runs in the Trace Event format (see neuron_profile(3)).
 *
 * Buffers are read when the core is reset. While the profile is on, this does so; after
 * neuron_profile_stop() it may be called as often as wanted. Runs do not wait for @p fd.
 * @param fd	written to from its present position
 * @return 0, -errno of the descriptor, -ENOMEM, or why the reset failed; or, with the file
 * written, why something that was run is missing in it
 */
int neuron_profile_write(struct neuron_profile *profile, int fd);
int neuron_profile_get_stats(struct neuron_profile *profile, struct neuron_profile_stats *stats);
/** @brief Stop it if it is on, and free everything. NULL is allowed. */
void neuron_profile_close(struct neuron_profile *profile);
/**
 * @brief Take the sizes of buffers that the environment asks for, NEURON_RT_PROFILE_BUF_*_MB,
 * rounded up to a power of two; the others stay.
 * @return 0, -EINVAL @p variable is not a number from 1 to 1024
 */
int neuron_profile_read(struct neuron_profile_opts *opts, const char **variable);
/** @brief Bytes of device memory that a profile takes for each physical core; 0: -EINVAL. */
uint64_t neuron_profile_memory(const struct neuron_geometry *geometry,
			       const struct neuron_profile_opts *opts);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
