/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * @file nrt_profile.h What models do on the device, and what the process does meanwhile.
 *
 * All files are JSON in the Trace Event format, which Perfetto and chrome://tracing open;
 * nrt_profile(3) and neuron_profile(3) describe them. A device profile needs device
 * memory, about 2 GB for each physical core (NEURON_RT_PROFILE_BUF_*, libnrt(7)).
 *
 * Functions that start, save and stop need nrt_init(); those for options and
 * configurations are callable at any time.
 */
#ifndef NRT_NRT_PROFILE_H
#define NRT_NRT_PROFILE_H

#include "nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Record the executions of a model, until nrt_profile_stop().
 * @param filename must be writable, and a FIFO have a reader; what is in it goes when the
 * profile is written, and no file is made if the start fails
 * @return NRT_FAILURE a model is being recorded, its profile is not written yet, or the file
 * cannot be opened; NRT_EXEC_NC_BUSY its core is; NRT_RESOURCE no device memory
 */
NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename);
/**
 * @brief Stop, and write the file. NULL: the name given at the start.
 *
 * If the file cannot be written (NRT_FAILURE), the profile is stopped and kept, until
 * another call writes it ("/dev/null" drops it) or nrt_close() drops it.
 */
NRT_STATUS nrt_profile_stop(const char *filename);

typedef struct nrt_profile_continuous_options nrt_profile_continuous_options_t;

NRT_STATUS nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options);
NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options);
/** @brief Where files go, "./output" unless said otherwise; it is made if need be. */
NRT_STATUS nrt_profile_continuous_options_set_output_dir(nrt_profile_continuous_options_t *options,
							 const char *output_dir);
/** @brief Record the last execution on each core, until nrt_profile_continuous_stop(). */
NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options);
/** @brief Write the last execution on a core to a new file. NULL: the options of the start. */
NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, nrt_profile_continuous_options_t *options);
NRT_STATUS nrt_profile_continuous_stop(void);

typedef struct nrt_inspect_config nrt_inspect_config_t;

NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **config);
NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *config);
/** @brief System and device profiles of all cores, session 1, "./output"; not the environment. */
NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *config);
/**
 * @brief Number in the name of the directory.
 *
 * An inspection overwrites its own files there, and deletes none: those that an earlier one
 * with the same number wrote stay beside them. Give each inspection of a process its own.
 */
NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *config, int session_id);
NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *config,
					     const char *output_dir);
/** @brief As nrt_sys_trace_config_set_max_events_per_nc(). */
NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t *config,
							      uint64_t max_events_per_nc);
/** @brief Whether a core is in the system profile and has a device profile. */
NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t *config,
							 uint32_t nc_idx, bool enabled);
/** @brief As nrt_sys_trace_config_set_capture_enabled_for_event_type(). */
NRT_STATUS
nrt_inspect_config_set_capture_enabled_for_event_type_string(nrt_inspect_config_t *config,
							     const char *event_type,
							     bool enabled);
/** @brief Record at all; true unless said otherwise. */
NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t *config, bool enabled);
/** @brief Record, but write files only if an execution failed, unless inspection is enabled anyway. */
NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t *config,
							 bool enabled);
/** @brief Switch "system_profile", "device_profile", "host_memory", "cpu_util", or "all". */
NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t *config, const char *activity,
					   bool enabled);
/** @brief Names of all activities, to be freed with nrt_inspect_config_free_activity_types(). */
NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***activity_types,
						     size_t *count);
NRT_STATUS nrt_inspect_config_get_enabled_activity_types(nrt_inspect_config_t *config,
							 const char ***activity_types,
							 size_t *count);
void nrt_inspect_config_free_activity_types(const char **activity_types, size_t count);

/** @brief Start, as NEURON_RT_INSPECT_* says. NRT_FAILURE: it is on. */
NRT_STATUS nrt_inspect_begin(void);
/** @brief Start; NULL: with the defaults, whatever the environment says. */
NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t *config);
/**
 * @brief Stop, and write the files.
 * @return NRT_FAILURE it is not on, or they cannot be written: what could not be is lost,
 * but for the system profile (nrt_sys_trace_fetch_events())
 */
NRT_STATUS nrt_inspect_stop(void);

#ifdef __cplusplus
}
#endif

#endif
