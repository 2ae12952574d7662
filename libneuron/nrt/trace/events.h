/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The trace of calls (nrt_sys_trace(3)). */
#ifndef NRT_EVENTS_H
#define NRT_EVENTS_H

#include <nrt/nrt.h>

/* Cores whose events can be switched off. */
#define MAX_CORES 1024u

enum nrt_trace_type {
	NRT_TRACE_LOAD,
	NRT_TRACE_UNLOAD,
	NRT_TRACE_EXECUTE,
	NRT_TRACE_TENSOR_ALLOCATE,
	NRT_TRACE_TENSOR_READ,
	NRT_TRACE_TENSOR_WRITE,
	NRT_TRACE_TENSOR_COPY,
	NRT_TRACE_NR_TYPES,
};

/* Who started a trace; nobody else can stop it. */
enum nrt_trace_owner {
	NRT_TRACE_OF_PROGRAM,
	NRT_TRACE_OF_INSPECTION,
};

struct nrt_sys_trace_config;

/* The events of a core are not switched off. */
bool nrt_trace_wants(const struct nrt_sys_trace_config *config, uint32_t vnc);

/* The time, or 0 while there is no trace; then nrt_trace_end() does nothing. */
uint64_t nrt_trace_begin(void);
void nrt_trace_end(uint64_t began, enum nrt_trace_type type, uint32_t vnc, NRT_STATUS status,
		   uint64_t bytes, const char *name);
void nrt_trace_close(void);
/* A list of those of @names whose bit is set, to be freed. */
NRT_STATUS nrt_names_list(const char *const *names, unsigned int nr, uint32_t bits,
			  const char ***list, size_t *count);
void nrt_trace_forget(void);
/*
 * Start and stop under the life lock; then write what was not fetched, and close @fd,
 * which may be the -errno of opening @name.
 */
NRT_STATUS nrt_trace_on(enum nrt_trace_owner owner, const struct nrt_sys_trace_config *config);
NRT_STATUS nrt_trace_off(enum nrt_trace_owner owner);
NRT_STATUS nrt_trace_write(int fd, const char *name);

#endif
