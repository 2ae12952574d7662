/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file nrt_sys_trace.h What the runtime does, as a trace.
 *
 * While tracing is on, each logical core keeps its last events.  They are fetched as
 * JSON in the Trace Event format, which Perfetto and chrome://tracing open: complete
 * events ("ph": "X") with times in microseconds of CLOCK_MONOTONIC, the core in
 * args.nc, and the status of the call in args.status.
 *
 * All functions but start and stop are callable at any time.
 */
#ifndef NRT_NRT_SYS_TRACE_H
#define NRT_NRT_SYS_TRACE_H

#include "nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nrt_sys_trace_config nrt_sys_trace_config_t;
typedef struct nrt_sys_trace_fetch_options nrt_sys_trace_fetch_options_t;

/** @brief All cores, all types of events, 65536 events for each core. */
NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **config);
void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *config);
void nrt_sys_trace_config_free(nrt_sys_trace_config_t *config);
/** @brief Events that a core keeps, 1 to 16 Mi; older ones are overwritten. */
void nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t *config,
						uint64_t max_events_per_nc);
void nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t *config,
						     uint32_t nc_idx, bool enabled);
/** @brief NRT_INVALID for a type that nrt_sys_trace_get_event_types() does not name. */
NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t *config,
								   const char *event_type,
								   bool enabled);
/** @brief Names of all types, to be freed with nrt_sys_trace_free_event_types(). */
NRT_STATUS nrt_sys_trace_get_event_types(const char ***event_types, size_t *count);
void nrt_sys_trace_free_event_types(const char **event_types, size_t count);
NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(const nrt_sys_trace_config_t *config,
							const char ***event_types,
							size_t *count);

/** @brief Start; what an earlier trace left is dropped. NULL: defaults. NRT_FAILURE: it is on. */
NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t *config);
/**
 * @brief Stop; the events can still be fetched.
 * @return NRT_FAILURE it is not on, or it is that of an inspection (nrt_profile.h)
 */
NRT_STATUS nrt_sys_trace_stop(void);

/** @brief All cores, all events. */
NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options);
void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options);
void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options);
/** @brief At most so many of each core, the oldest first; 0: all. */
void nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t *options,
						       uint64_t max_events_per_nc);
/** @brief Of this core only. */
void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t *options,
					    uint64_t nc_idx);

/**
 * @brief Take events out that were recorded before; each is returned once.
 *
 * Calls that are recorded meanwhile do not wait for it.
 * @param buffer receives a NUL terminated text, to be freed with nrt_sys_trace_buffer_free()
 * @param written_size its length without the NUL; may be NULL
 * @param options NULL: defaults
 * @return NRT_INVALID no buffer; NRT_RESOURCE no memory, no event is lost
 */
NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written_size,
				      const nrt_sys_trace_fetch_options_t *options);
void nrt_sys_trace_buffer_free(char *buffer);

#ifdef __cplusplus
}
#endif

#endif
