/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file ndebug_stream.h Tensors that a program on the device shows while it runs.
 *
 * A client of the same process would connect to a core and read events. Programs of the
 * software device have no instruction that shows a tensor, so that nobody can connect.
 */
#ifndef NRT_NDEBUG_STREAM_H
#define NRT_NDEBUG_STREAM_H

#include <stdint.h>

#include "nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types of events. */
typedef enum ndebug_stream_event_type {
	NDEBUG_STREAM_EVENT_TYPE_INVALID = 0,
	NDEBUG_STREAM_EVENT_TYPE_DEBUG_TENSOR_READ = 1,
} ndebug_stream_event_type_t;

typedef struct ndebug_stream_event_header {
	uint64_t data_size;		/**< of the payload */
	uint32_t type;
	char reserved[52];
} ndebug_stream_event_header_t;

/** Payload of a tensor; its data is behind it. */
typedef struct ndebug_stream_payload_debug_tensor_read {
	char prefix[512];
	uint32_t logical_nc_id;
	uint32_t pipe;
	char tensor_dtype[16];
	uint64_t tensor_shape[8];
	uint64_t tensor_data_size;
	char reserved[416];
} ndebug_stream_payload_debug_tensor_read_t;

/**
 * @brief Connect to the stream of a core.
 * @param logical_nc_idx core of the process
 * @param stream_fd not written
 * @return NRT_INVALID no such core; NRT_FAILURE, with a line in the log
 */
NRT_STATUS nrt_debug_client_connect(int logical_nc_idx, int *stream_fd);
/** @brief End a connection: there is none, and the descriptor stays as it is. */
void nrt_debug_client_connect_close(int stream_fd);
/**
 * @brief Take an event.
 * @return NRT_INVALID not a descriptor of a stream, which nothing is
 */
NRT_STATUS nrt_debug_client_read_one_event(int stream_fd, ndebug_stream_event_header_t *header,
					   void **payload);

#ifdef __cplusplus
}
#endif

#endif
