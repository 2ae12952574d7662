/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** @file buffers.h
 * @brief Places for buffers that are not all in use at the same time.
 */
#ifndef NEURON_BUFFERS_H
#define NEURON_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup buffers Static reuse of memory
 * @{ */

/** @brief A buffer that is in use from one step of a program to another. */
struct neuron_buffer {
	uint64_t bytes;
	uint64_t align;			/**< of its offset, a power of two; 0: any */
	uint32_t first;			/**< step that uses it first */
	uint32_t last;			/**< step that uses it last; not before @c first */
	uint64_t offset;		/**< where it was placed */
};

/** @brief A placement, and what it is worth. */
struct neuron_buffers_result {
	size_t size;
	uint64_t bytes;			/**< memory that it takes */
	uint64_t bound;			/**< no placement takes less */
	uint64_t first_fit;		/**< what first fit in the given order takes */
	const char *heuristic;		/**< that found it */
	uint64_t steps;			/**< of the search, a measure of its time */
};

/**
 * @brief Offsets for buffers, so that no two that are in use at one step overlap.
 *
 * Several heuristics are tried, and the best placement is kept; it never takes more than
 * first fit in the given order. The search ends after a number of steps, not after a time:
 * equal buffers get equal places.
 * @param result may be NULL
 * @return 0, -EINVAL an alignment or a lifetime makes no sense, -E2BIG the buffers
 * together have 2^62 bytes or more, -ENOMEM
 */
int neuron_buffers_place(struct neuron_buffer *buffers, size_t nr,
			 struct neuron_buffers_result *result);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
